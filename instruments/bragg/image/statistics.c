/* statistics.c - from sums of an image to the printed statistics and the scales. */
#include "image.h"

#include <math.h>

static double subpixel_centre(const br_scene *s, int64_t pixel)
{
    const double sub = s->pixel / (double)s->oversample;
    const double last = (double)(pixel * s->oversample + s->oversample - 1);
    return sub * last + sub / 2.0;
}

void br_statistics_finish(br_statistics *s, const br_scene *scene)
{
    const int64_t n = s->pixels;
    s->average = s->sum / (double)(n > 1 ? n : 1);
    s->rms = sqrt(s->sum_sqr / (double)((n > 1 ? n : 2) - 1));
    s->max_at[0] = s->max_at[1] = 0;
    if (!(s->max > 0)) return;
    s->max_at[0] = subpixel_centre(scene, s->max_fast);
    s->max_at[1] = subpixel_centre(scene, s->max_slow);
}

void br_statistics_scales(br_statistics *s, const br_outputs *out)
{
    s->int_scale = out->int_scale;
    if (s->int_scale <= 0) s->int_scale = s->max > 0 ? 55000.0 / (double)s->max : 1.0;
    s->pgm_scale = out->pgm_scale;
    if (s->pgm_scale <= 0) s->pgm_scale = s->rmsd > 0 ? 250.0 / (5.0 * s->rmsd) : s->int_scale;
}

void br_print_solid_angle(FILE *out, const br_experiment *e, const br_statistics *s)
{
    /* The reference divides by all steps, including sources and rotations. */
    const br_scene *scene = &e->scene;
    const double own = (double)(scene->layers * scene->oversample * scene->oversample);
    const double omega = s->omega / (e->compat_c ? scene->steps : own);
    fprintf(out, "solid angle subtended by detector = %g steradian ( %g%% sphere)\n", omega,
            100 * omega / 4 / 3.14159265358979323846);
}

void br_print_maximum(FILE *out, const br_statistics *s)
{
    fprintf(out, "max_I = %g  at %g %g\n", (double)s->max, s->max_at[0], s->max_at[1]);
}

void br_print_mean(FILE *out, const br_statistics *s)
{
    fprintf(out, "mean= %g rms= %g rmsd= %g\n", s->average, s->rms, s->rmsd);
}
