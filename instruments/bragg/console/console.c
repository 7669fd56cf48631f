/* console.c - what is printed before the render: in c mode what the reference prints, to the byte.
 *
 * Scripts read numbers out of these lines, so their wording is part of the interface. Everything is
 * printed from settings and experiment after they are resolved; in spec mode notices follow, which
 * name choices made for the user.
 */
#include "console.h"
#include "../experiment/resolve.h"
#include "../flags/flag_row.h"
#include "../geometry/cell.h"

#include <string.h>

static const char banner[] =
    "nanoBragg nanocrystal diffraction simulator - James Holton and Ken Frankel 5-17-17";

/* ---- before the banner ---- */

static double norm(const double *v)
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

static void inputs_read(FILE *out, const br_flags *f, const br_experiment *e)
{
    if (f->mask) fprintf(out, "reading %s\n", f->mask);
    if (f->img) fprintf(out, "reading %s\n", f->img);
    for (int i = 1; i < 3; i++)
        if (e->beamsize >= 0 && e->beamsize < e->sample_typed[i])
            fprintf(out, "WARNING: clipping sample (%g m %s) with beam (%g m)\n",
                    e->sample_typed[i], i == 1 ? "high" : "wide", e->beamsize);
    if (f->convention == BR_CUSTOM && norm(f->odet) != 1.0)
        fprintf(out, "WARNING: auto-generating odet_vector\n");
}

/* ---- choices ---- */

static void step_warnings(FILE *out, const br_flags *f, const br_experiment *e)
{
    if (f->thickness > 0 && f->mu < 0)
        fprintf(out, "WARNING: setting detector attenuation depth to %g m\n", e->scene.mu);
    if (f->mosaic_domains <= 0 && f->mosaic_spread > 0)
        fprintf(out, "WARNING: finite mosaicity with only one domain! upping to 10 mosaic "
                     "domains\n");
    if (f->mosaic_domains > 0 && f->mosaic_spread < 0)
        fprintf(out, "WARNING: no mosaic spread specified.  setting mosaic_domains = 1\n");
    if (f->mosaic_domains > 0 && f->mosaic_spread == 0)
        fprintf(out, "WARNING: zero mosaic spread specified.  setting mosaic_domains = 1\n");
}

static double along(const double *beam, const br_dual *axis)
{
    return beam[0] * axis[0].v + beam[1] * axis[1].v + beam[2] * axis[2].v;
}

static void geometry(FILE *out, const br_flags *f, const br_experiment *e)
{
    static const char *const name[] = {
        [BR_ADXV] = "adxv", [BR_MOSFLM] = "mosflm", [BR_DENZO] = "denzo",
        [BR_XDS] = "xds",   [BR_DIALS] = "dials",   [BR_CUSTOM] = "custom"};
    const br_scene *s = &e->scene;
    fprintf(out, "%s convention selected.\n", name[s->convention]);
    fprintf(out, "pivoting detector around %s\n",
            s->pivot == BR_PIVOT_SAMPLE ? "sample" : "direct beam spot");
    fprintf(out, "XDS incident beam: %g %g %g\n", along(s->beam, e->placed.fdet),
            along(s->beam, e->placed.sdet), along(s->beam, e->placed.odet));
    if (f->interpolate != 2) return;
    const bool small = f->cells[0] <= 2 || f->cells[1] <= 2 || f->cells[2] <= 2;
    fprintf(out, small ? "auto-selected tricubic interpolation of structure factors\n"
                       : "auto-selected no interpolation\n");
}

static void matrix(FILE *out, const char *title, const char *const *name, const br_dual (*v)[3],
                   double scale)
{
    fprintf(out, "%s:\n     %-10s  %-10s  %-10s\n", title, name[0], name[1], name[2]);
    for (int x = 0; x < 3; x++)
        fprintf(out, "%c: %11.8f %11.8f %11.8f\n", 'X' + x, v[0][x].v * scale, v[1][x].v * scale,
                v[2][x].v * scale);
}

static void cell(FILE *out, const br_flags *f, const br_experiment *e)
{
    static const char *const direct[] = {"a", "b", "c"};
    static const char *const star[] = {"a_star", "b_star", "c_star"};
    double edge[3], angle[3], edge_star[3], angle_star[3];
    if (f->mat) fprintf(out, "reading %s\n", f->mat);
    if (f->misset_kind < 0)
        fprintf(out, "random orientation misset angles: %f %f %f deg\n", e->param[BR_MX] * BR_RTD,
                e->param[BR_MY] * BR_RTD, e->param[BR_MZ] * BR_RTD);
    br_placed_cells(&e->placed, edge, angle, edge_star, angle_star);
    fprintf(out, "Unit Cell: %g %g %g %g %g %g\n", edge[0], edge[1], edge[2], angle[0] * BR_RTD,
            angle[1] * BR_RTD, angle[2] * BR_RTD);
    fprintf(out, "Recp Cell: %g %g %g %g %g %g\n", edge_star[0], edge_star[1], edge_star[2],
            angle_star[0] * BR_RTD, angle_star[1] * BR_RTD, angle_star[2] * BR_RTD);
    fprintf(out, "volume = %g A^3\n", e->placed.volume);
    matrix(out, "real-space cell vectors (Angstrom)", direct, e->placed.abc, 1e10);
    matrix(out, "reciprocal-space cell vectors (Angstrom^-1)", star, e->placed.star, 1);
}

static void crystal(FILE *out, const br_flags *f, const br_experiment *e)
{
    const br_scene *s = &e->scene;
    const double *x = e->sample;
    fprintf(out, "crystal is %g x %g x %g microns\n", x[0] * 1e6, x[1] * 1e6, x[2] * 1e6);
    if (f->oversample <= 0)
        fprintf(out, "auto-selected %lld-fold oversampling\n", (long long)s->oversample);
    if (f->oversample <= 0 && f->spec)
        fprintf(out, "  from %.17g before it was rounded up\n", e->oversample_wanted);
    if (s->oversample < e->recommended) {
        double largest = x[0];
        for (int i = 1; i < 3; i++) largest = x[i] > largest ? x[i] : largest;
        fprintf(out,
                "WARNING: maximum dimension of sample is %g A\n"
                "         but reciprocal pixel size is %g A\n"
                "         intensity may vary significantly across a pixel!\n"
                "         recommend -oversample %lld to work around this\n",
                largest * 1e10, e->lambda0 * e->placed.distance.v / s->pixel * 1e10,
                (long long)e->recommended);
    }
    fprintf(out, "approximate MW = %g\n",
            x[0] * x[1] * x[2] * 1.2e6 * BR_AVOGADRO / (s->cells[0] * s->cells[1] * s->cells[2]));
}

/* ---- files ---- */

/* Lines of a list whose indices are not whole, counted as the reference counts. */
static void fractions(FILE *out, fth_mem *mem, const char *path)
{
    static const char name[] = "hkl";
    double v[4];
    bool found, digits;
    fth_reader list;
    if (fth_reader_open(&list, mem, path, BR_AS_WRITTEN, NULL) != FTH_OK) return;
    for (int64_t n = 0;; n++) {
        for (int i = 0; i < 4; i++)
            if (fth_reader_scan(&list, &v[i], &found, &digits, NULL) != FTH_OK || !found) goto done;
        for (int i = 0; i < 3; i++)
            if (v[i] != ceil(v[i] - 0.4))
                fprintf(out, "WARNING: non-integer value for %c (%g) at line %lld\n", name[i], v[i],
                        (long long)n);
    }
done:
    fth_reader_close(&list);
}

static void factors(FILE *out, const br_flags *f, const br_experiment *e)
{
    if (f->hkl) {
        fprintf(out, "counting entries in %s\n", f->hkl);
        if (e->fractional > 0) fractions(out, e->mem, f->hkl);
        if (f->default_F != 0)
            fprintf(out, "initializing to default_F = %g:\ndone initializing:\n", f->default_F);
        fprintf(out, "re-reading %s\n", f->hkl);
        if (f->dump)
            fprintf(out,
                    e->out.dump_file[0] ? "writing dump file for next time: %s\n"
                                        : "WARNING: unable to open dump file: %s\n",
                    f->dump);
    } else if (e->from_dump) {
        fprintf(out, "reading Fs from %s\n", f->fdump ? f->fdump : f->dump);
    }
    if (f->stol) fprintf(out, "reading %s\n", f->stol);
}

/* ---- steps and sources ---- */

static void steps(FILE *out, const br_experiment *e)
{
    const br_scene *s = &e->scene;
    for (int64_t i = 0; i < s->layers; i++)
        fprintf(out, "thick%lld = %g um\n", (long long)i, s->layer_step * (double)i * 1e6);
    for (int64_t i = 0; i < s->phis; i++)
        fprintf(out, "phi%lld = %g\n", (long long)i,
                (e->param[BR_PHI] + s->phi_step * (double)i) * BR_RTD);
}

/* As written in the file, with missing columns filled in. */
static void sources_of_file(FILE *out, const br_flags *f, const br_experiment *e)
{
    br_columns c = {0};
    fprintf(out, "  created a total of %lld sources:\n", (long long)e->scene.sources);
    if (br_source_rows(&c, e->mem, f->sources, e->scene.beam, f->spec, NULL) != FTH_OK) return;
    const double *row = fth_tensor_data(c.table);
    for (int64_t i = 0; i < c.rows; i++, row += 5)
        fprintf(out, "%g %g %g   %g %g\n", row[0], row[1], row[2], row[3],
                isnan(row[4]) ? e->lambda0 : row[4]);
    fth_tensor_release(c.table);
}

typedef struct fan_walk {
    FILE *out;
    const br_experiment *e;
    void (*visit)(struct fan_walk *w, double h, double v);
} fan_walk;

/* The directions that are not trimmed, in their order (model 7.2). */
static void walk(fan_walk *w)
{
    const br_fan *n = &w->e->fan;
    const double even_h = (double)(1 - n->hs % 2), even_v = (double)(1 - n->vs % 2);
    for (int64_t i = 0; i < n->hs; i++)
        for (int64_t k = 0; k < n->vs; k++) {
            const double h = n->h_step * (double)i - n->h_range / 2.0;
            const double v = n->v_step * (double)k - n->v_range / 2.0;
            double test = (h * h - n->h_step * n->h_step / 4.0 * even_h) / n->h_range / n->h_range;
            test += (v * v - n->v_step * n->v_step / 4.0 * even_v) / n->v_range / n->v_range;
            if (n->round && test * 4.0 > 1.1) continue;
            w->visit(w, h, v);
        }
}

static double wavelength(const br_experiment *e, int64_t i)
{
    return e->lambda0 * (1.0 + e->fan.dispersion_step * (double)i - e->fan.dispersion / 2.0);
}

static void show_deviation(fan_walk *w, double h, double v)
{
    fprintf(w->out, "divergence deviation: %g %g\n", h, v);
}

static void show_source(fan_walk *w, double h, double v)
{
    const br_scene *s = &w->e->scene;
    const double from[3] = {-10.0 * s->beam[0], -10.0 * s->beam[1], -10.0 * s->beam[2]};
    double turned[3], x[3];
    br_rotate_axis(from, s->polar, v, turned);
    br_rotate_axis(turned, s->vertical, h, x);
    for (int64_t i = 0; i < w->e->fan.wavelengths; i++)
        fprintf(w->out, "%g %g %g   %g %g\n", x[0], x[1], x[2], 1.0 / (double)s->sources,
                wavelength(w->e, i));
}

static void sources(FILE *out, const br_flags *f, const br_experiment *e)
{
    if (f->sources) {
        sources_of_file(out, f, e);
        return;
    }
    walk(&(fan_walk){out, e, show_deviation});
    for (int64_t i = 0; i < e->fan.wavelengths; i++)
        fprintf(out, "lambda%lld = %.15g\n", (long long)i, wavelength(e, i));
    fprintf(out, "  created a total of %lld sources:\n", (long long)e->scene.sources);
    walk(&(fan_walk){out, e, show_source});
}

/* ---- the summary ---- */

static void vector(FILE *out, const char *name, const double *v)
{
    fprintf(out, "  %s= %g %g %g\n", name, v[0], v[1], v[2]);
}

static void dual_vector(FILE *out, const char *name, const br_dual *v)
{
    vector(out, name, (const double[3]){v[0].v, v[1].v, v[2].v});
}

static void about_crystal(FILE *out, const br_experiment *e)
{
    static const char *const shape[] = {[BR_SQUARE] = "parallelpiped",
                                        [BR_ROUND] = "ellipsoidal",
                                        [BR_GAUSS] = "gaussian",
                                        [BR_TOPHAT] = "tophat-spot"};
    const br_scene *s = &e->scene;
    fprintf(out, "  created a total of %lld mosaic domains\n", (long long)s->mosaics);
    fprintf(out, "  %lld initialized hkls (all others =%g)\n", (long long)s->hkls, s->default_F);
    fprintf(out, "  %s xtal: %.0fx%.0fx%.0f cells\n", shape[s->shape], s->cells[0], s->cells[1],
            s->cells[2]);
    fprintf(out, "  wave=%g meters +/- %g%% in %lld steps\n", e->lambda0, e->dispersion * 100,
            (long long)e->dispsteps);
    if (s->nopolar)
        fprintf(out, "  polarization effect disabled\n");
    else
        fprintf(out, "  Kahn polarization factor: %f\n", s->kahn);
    if (s->curved) fprintf(out, "  curved detector: all pixels same distance from origin\n");
    if (s->point_pixel) fprintf(out, "  pixel obliquity effect disabled\n");
    fprintf(out, "  incident fluence: %g photons/m^2\n", e->param[BR_FLU]);
}

static void about_detector(FILE *out, const br_experiment *e)
{
    const br_scene *s = &e->scene;
    const br_placed *f = &e->placed;
    fprintf(out, "  distance=%g detsize=%gx%g  pixel=%g meters (%lldx%lld pixels)\n", f->distance.v,
            s->detsize[0], s->detsize[1], s->pixel, (long long)s->fast, (long long)s->slow);
    fprintf(out, "  sensor is %g m thick in %lld layers with mu= %g\n", s->thickness,
            (long long)s->layers, s->mu);
    fprintf(out, "  Xbeam=%g Ybeam=%g\n", e->xbeam, e->ybeam);
    fprintf(out, "  Fbeam=%g Sbeam=%g\n", f->fbeam, f->sbeam);
    fprintf(out, "  Xclose=%g Yclose=%g\n", e->xclose, e->yclose);
    fprintf(out, "  Fclose=%g Sclose=%g\n", f->fclose, f->sclose);
    dual_vector(out, "DIRECTION_OF_DETECTOR_X-AXIS", f->fdet);
    dual_vector(out, "DIRECTION_OF_DETECTOR_Y-AXIS", f->sdet);
    dual_vector(out, "DIRECTION_OF_DETECTOR_Z-AXIS", f->odet);
    vector(out, "INCIDENT_BEAM_DIRECTION", s->beam);
    vector(out, "spindle ROTATION_AXIS", s->spindle);
    const double *b = s->beam, *p = s->polar;
    vector(out, "POLARIZATION_PLANE_NORMAL",
           (const double[3]){b[1] * p[2] - b[2] * p[1], b[2] * p[0] - b[0] * p[2],
                             b[0] * p[1] - b[1] * p[0]});
    vector(out, "dials origin", f->dials_origin);
    fprintf(out, "  roi: %lld < x < %lld && %lld < y < %lld\n", (long long)e->roi_typed[0],
            (long long)e->roi_typed[1], (long long)e->roi_typed[2], (long long)e->roi_typed[3]);
}

static void about_sampling(FILE *out, const br_flags *f, const br_experiment *e)
{
    const br_scene *s = &e->scene;
    const double phi0 = e->param[BR_PHI];
    fprintf(out, "  hdivrange=%g hdivstep=%g  radians\n", e->hdiv_range, e->hdiv_step);
    fprintf(out, "  vdivrange=%g vdivstep=%g  radians\n", e->vdiv_range, e->vdiv_step);
    fprintf(out, "  %lld divergence steps\n", (long long)e->divergence_steps);
    fprintf(out, "  %lld sources\n", (long long)s->sources);
    fprintf(out, "  %lld mosaic domains over mosaic spread of %g degrees\n", (long long)s->mosaics,
            e->mosaic_spread * BR_RTD);
    fprintf(out, "  %lld phi steps from %g to %g degrees\n", (long long)s->phis, phi0 * BR_RTD,
            (phi0 + e->osc) * BR_RTD);
    fprintf(out, "  %lldx%lld pixel oversample steps%s%s%s\n", (long long)s->oversample,
            (long long)s->oversample, s->oversample_thick ? " +thick" : "",
            s->oversample_polar ? " +polar" : "", s->oversample_omega ? " +omega" : "");
    if (f->mask) fprintf(out, "  skipping zero-flagged pixels in %s\n", f->mask);
    if (!f->write_noise) return;
    fprintf(out, "\n  noise image paramters:\n  seed: %lld\n", (long long)e->noise_seed);
    fprintf(out, "  water droplet size: %g m\n", s->water);
}

/* ---- notices of spec mode ---- */

static void notices(FILE *out, const br_flags *f, const br_experiment *e)
{
    const uint32_t quirks = e->scene.quirks;
    if (f->convention == BR_CUSTOM)
        fprintf(out,
                "NOTICE: a vector flag made the convention custom: axes that were not given keep "
                "its defaults, and X, Y of the beam centre run along fast and slow\n");
    if (!f->given[BR_FLAG_SEED] && f->seed_all < 0 && f->write_noise)
        fprintf(out, "NOTICE: no seed was given: %lld is used\n", -(long long)e->noise_seed);
    if (f->misset_kind < 0)
        fprintf(out, "NOTICE: the orientation was drawn with -misset_seed %lld\n",
                -(long long)e->misset_seed);
    for (int q = 0; q < BR_QUIRKS; q++)
        if (quirks >> q & 1) fprintf(out, "NOTICE: %s: %s\n", br_quirks[q].name, br_quirks[q].on);
}

void br_console_before(FILE *out, const br_flags *f, const br_experiment *e)
{
    inputs_read(out, f, e);
    fprintf(out, "%s\n", banner);
    step_warnings(out, f, e);
    geometry(out, f, e);
    cell(out, f, e);
    crystal(out, f, e);
    factors(out, f, e);
    steps(out, e);
    sources(out, f, e);
    about_crystal(out, e);
    about_detector(out, e);
    about_sampling(out, f, e);
    if (f->spec) notices(out, f, e);
}

void br_console_usage(FILE *out, const br_flags *f)
{
    const bool factors_there = br_flags_enough(f) || f->hkl || f->default_F != 0;
    fprintf(out, "%s\n", banner);
    if (!factors_there) fprintf(out, "ERROR: no hkl file and no dump file to read.");
    fprintf(out, "usage: nanoBragg -mat auto.mat -hkl Fs.hkl\noptions:\n");
    for (int id = 0; id < BR_FLAG_COUNT; id++) {
        const br_flag_info *i = br_flag_get_info((br_flag_id)id);
        const size_t n = strcspn(i->names, " ");
        fprintf(out, "\t%.*s%s%s\t%s%s%s%s", (int)n, i->names, i->args[0] ? " " : "", i->args,
                i->doc, i->unit[0] ? " (" : "", i->unit, i->unit[0] ? ")" : "");
        if (i->names[n]) fprintf(out, "; also%s", i->names + n);
        if (i->fallback[0]) fprintf(out, "; default: %s", i->fallback);
        fputc('\n', out);
    }
}
