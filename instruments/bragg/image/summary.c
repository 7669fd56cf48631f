/* summary.c - an image and how it was made, as one JSON object: --json of `fathom bragg`.
 *
 * Numbers have 17 digits, so that a program can reproduce the image from them; parameters are in
 * the units in which they are typed.
 */
#include "summary.h"

/* A text; null where it is empty. */
static void put_text(fth_json_writer *w, const char *key, const char *v)
{
    fth_json_text(w, key, v && *v ? v : NULL);
}

static void how_it_was_made(fth_json_writer *w, const br_experiment *e)
{
    const br_scene *s = &e->scene;
    put_text(w, "version", fth_version());
    put_text(w, "compat", e->compat_c ? "c" : "spec");
    fth_json_int(w, "quirk_mask", s->quirks);
    fth_json_open(w, "quirks", '[');
    for (int q = 0; q < BR_QUIRKS; q++)
        if (s->quirks >> q & 1) put_text(w, NULL, br_quirks[q].name);
    fth_json_close(w);
    put_text(w, "precision", s->precision == BR_F32 ? "f32" : "f64");
    fth_json_open(w, "seeds", '{');
    fth_json_int(w, "noise", -e->noise_seed);
    fth_json_int(w, "mosaic", -e->mosaic_seed);
    fth_json_int(w, "misset", -e->misset_seed);
    fth_json_close(w);
}

static void parameters(fth_json_writer *w, const br_experiment *e)
{
    fth_json_open(w, "parameters", '{');
    for (int p = 0; p < BR_PARAMS; p++) {
        fth_json_open(w, br_params[p].name, '{');
        fth_json_real(w, "value", e->param[p] / br_params[p].scale);
        put_text(w, "unit", br_params[p].unit);
        put_text(w, "doc", br_params[p].doc);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void sampling(fth_json_writer *w, const br_experiment *e)
{
    static const char *const convention[] = {"adxv", "mosflm", "denzo", "xds", "dials", "custom"};
    static const char *const shape[] = {"square", "round", "gauss", "tophat"};
    const br_scene *s = &e->scene;
    fth_json_open(w, "detector", '{');
    fth_json_int(w, "fast", s->fast);
    fth_json_int(w, "slow", s->slow);
    fth_json_real(w, "pixel_mm", s->pixel * 1e3);
    fth_json_real(w, "distance_mm", e->placed.distance.v * 1e3);
    fth_json_real(w, "close_distance_mm", e->placed.close.v * 1e3);
    put_text(w, "convention", convention[s->convention]);
    put_text(w, "pivot", s->pivot == BR_PIVOT_SAMPLE ? "sample" : "beam");
    fth_json_open(w, "roi", '[');
    for (int i = 0; i < 4; i++) fth_json_int(w, NULL, s->roi[i]);
    fth_json_close(w);
    fth_json_close(w);
    fth_json_open(w, "sampling", '{');
    fth_json_int(w, "oversample", s->oversample);
    fth_json_real(w, "oversample_wanted", e->oversample_wanted);
    fth_json_int(w, "sources", s->sources);
    fth_json_int(w, "phi_steps", s->phis);
    fth_json_int(w, "mosaic_domains", s->mosaics);
    fth_json_int(w, "layers", s->layers);
    fth_json_close(w);
    fth_json_open(w, "crystal", '{');
    put_text(w, "shape", shape[s->shape]);
    for (int i = 0; i < 3; i++)
        fth_json_real(w, (const char *const[]){"Na", "Nb", "Nc"}[i], s->cells[i]);
    fth_json_real(w, "volume_A3", e->placed.volume);
    fth_json_int(w, "reflections", s->hkls);
    fth_json_real(w, "default_F", s->default_F);
    fth_json_bool(w, "interpolated", s->interpolate);
    fth_json_close(w);
}

static void numbers(fth_json_writer *w, const br_statistics *s)
{
    fth_json_open(w, "image", '{');
    fth_json_int(w, "pixels", s->pixels);
    fth_json_real(w, "sum", s->sum);
    fth_json_real(w, "mean", s->average);
    fth_json_real(w, "rms", s->rms);
    fth_json_real(w, "rmsd", s->rmsd);
    fth_json_real(w, "max", (double)s->max);
    fth_json_int(w, "max_fast", s->max_fast);
    fth_json_int(w, "max_slow", s->max_slow);
    fth_json_real(w, "int_scale", s->int_scale);
    fth_json_real(w, "pgm_scale", s->pgm_scale);
    fth_json_real(w, "photons", s->photons);
    fth_json_int(w, "overloads", s->overloads);
    fth_json_int(w, "out_of_range", s->out_of_range);
    fth_json_close(w);
}

fth_status br_summary_json(FILE *out, const br_experiment *e, const br_statistics *s, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin_file(&w, out, "the summary", true);
    w.digits = 17;
    fth_json_open(&w, NULL, '{');
    how_it_was_made(&w, e);
    parameters(&w, e);
    sampling(&w, e);
    fth_json_open(&w, "files", '{');
    put_text(&w, "float", e->out.float_file);
    put_text(&w, "int", e->out.int_file);
    put_text(&w, "noise", e->out.noise_file);
    put_text(&w, "pgm", e->out.pgm_file);
    put_text(&w, "dump", e->out.dump_file);
    fth_json_close(&w);
    if (s) numbers(&w, s);
    fth_json_close(&w);
    return fth_json_end(&w, err);
}
