/* summary.c - an image and how it was made, as one JSON object: --json of `fathom bragg`.
 *
 * Numbers have 17 digits, so that a program can make the same image from them; parameters are in
 * the units in which they are typed.
 */
#include "summary.h"
#include "json.h"

typedef struct json {
    FILE *out;
    bool comma;
    int depth;
} json;

static void quoted(FILE *out, const char *text)
{
    fth_json_writer w;
    fth_json_begin_file(&w, out, "the summary", false);
    fth_json_text(&w, NULL, text);
}

static void begin(json *j, const char *key)
{
    fprintf(j->out, "%s\n%*s", j->comma ? "," : "", 2 * j->depth, "");
    if (key) {
        quoted(j->out, key);
        fputs(": ", j->out);
    }
    j->comma = true;
}

static void open(json *j, const char *key, char bracket)
{
    if (j->depth) begin(j, key);
    fputc(bracket, j->out);
    j->comma = false;
    j->depth++;
}

static void close(json *j, char bracket)
{
    j->depth--;
    fprintf(j->out, "\n%*s%c", 2 * j->depth, "", bracket);
    j->comma = true;
}

static void real(json *j, const char *key, double v)
{
    begin(j, key);
    fputs(br_json_number(v).text, j->out);
}

static void whole(json *j, const char *key, int64_t v)
{
    begin(j, key);
    fprintf(j->out, "%lld", (long long)v);
}

static void text(json *j, const char *key, const char *v)
{
    begin(j, key);
    if (v && *v)
        quoted(j->out, v);
    else
        fputs("null", j->out);
}

static void how_it_was_made(json *j, const br_experiment *e)
{
    const br_scene *s = &e->scene;
    text(j, "version", fth_version());
    text(j, "compat", e->compat_c ? "c" : "spec");
    whole(j, "quirk_mask", s->quirks);
    open(j, "quirks", '[');
    for (int q = 0; q < BR_QUIRKS; q++)
        if (s->quirks >> q & 1) text(j, NULL, br_quirks[q].name);
    close(j, ']');
    text(j, "precision", s->precision == BR_F32 ? "f32" : "f64");
    open(j, "seeds", '{');
    whole(j, "noise", -e->noise_seed);
    whole(j, "mosaic", -e->mosaic_seed);
    whole(j, "misset", -e->misset_seed);
    close(j, '}');
}

static void parameters(json *j, const br_experiment *e)
{
    open(j, "parameters", '{');
    for (int p = 0; p < BR_PARAMS; p++) {
        open(j, br_params[p].name, '{');
        real(j, "value", e->param[p] / br_params[p].scale);
        text(j, "unit", br_params[p].unit);
        text(j, "doc", br_params[p].doc);
        close(j, '}');
    }
    close(j, '}');
}

static void sampling(json *j, const br_experiment *e)
{
    static const char *const convention[] = {"adxv", "mosflm", "denzo", "xds", "dials", "custom"};
    static const char *const shape[] = {"square", "round", "gauss", "tophat"};
    const br_scene *s = &e->scene;
    open(j, "detector", '{');
    whole(j, "fast", s->fast);
    whole(j, "slow", s->slow);
    real(j, "pixel_mm", s->pixel * 1e3);
    real(j, "distance_mm", e->frame.distance.v * 1e3);
    real(j, "close_distance_mm", e->frame.close.v * 1e3);
    text(j, "convention", convention[s->convention]);
    text(j, "pivot", s->pivot == BR_PIVOT_SAMPLE ? "sample" : "beam");
    open(j, "roi", '[');
    for (int i = 0; i < 4; i++) whole(j, NULL, s->roi[i]);
    close(j, ']');
    close(j, '}');
    open(j, "sampling", '{');
    whole(j, "oversample", s->oversample);
    real(j, "oversample_wanted", e->oversample_wanted);
    whole(j, "sources", s->sources);
    whole(j, "phi_steps", s->phis);
    whole(j, "mosaic_domains", s->mosaics);
    whole(j, "layers", s->layers);
    close(j, '}');
    open(j, "crystal", '{');
    text(j, "shape", shape[s->shape]);
    for (int i = 0; i < 3; i++) real(j, (const char *const[]){"Na", "Nb", "Nc"}[i], s->cells[i]);
    real(j, "volume_A3", e->frame.volume);
    whole(j, "reflections", s->hkls);
    real(j, "default_F", s->default_F);
    begin(j, "interpolated");
    fputs(s->interpolate ? "true" : "false", j->out);
    close(j, '}');
}

static void numbers(json *j, const br_statistics *s)
{
    open(j, "image", '{');
    whole(j, "pixels", s->pixels);
    real(j, "sum", s->sum);
    real(j, "mean", s->average);
    real(j, "rms", s->rms);
    real(j, "rmsd", s->rmsd);
    real(j, "max", (double)s->max);
    whole(j, "max_fast", s->max_fast);
    whole(j, "max_slow", s->max_slow);
    real(j, "int_scale", s->int_scale);
    real(j, "pgm_scale", s->pgm_scale);
    real(j, "photons", s->photons);
    whole(j, "overloads", s->overloads);
    whole(j, "out_of_range", s->out_of_range);
    close(j, '}');
}

void br_summary_json(FILE *out, const br_experiment *e, const br_statistics *s)
{
    json j = {.out = out};
    open(&j, NULL, '{');
    how_it_was_made(&j, e);
    parameters(&j, e);
    sampling(&j, e);
    open(&j, "files", '{');
    text(&j, "float", e->out.float_file);
    text(&j, "int", e->out.int_file);
    text(&j, "noise", e->out.noise_file);
    text(&j, "pgm", e->out.pgm_file);
    text(&j, "dump", e->out.dump_file);
    close(&j, '}');
    if (s) numbers(&j, s);
    close(&j, '}');
    fputc('\n', out);
}
