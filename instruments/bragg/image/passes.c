/* passes.c - the graphs of an image, planned before the first of them runs.
 *
 * Numbers that one pass computes for another (latch, average, scales) are inputs without axes, so
 * plans do not depend on them; the float image is an input whose source is set once it exists.
 */
#include "image.h"

#include <math.h>
#include <string.h>

typedef enum pass_id { LATCH, RENDER, SUMS, SPREAD, STORE, PASSES } pass_id;
static const char *const pass_name[PASSES] = {[LATCH] = "latch: where interpolation ends",
                                              [RENDER] = "render: image and its sums",
                                              [SUMS] = "sums: of all rows",
                                              [SPREAD] = "spread: rmsd about the mean",
                                              [STORE] = "store: int, PGM and noise pixels"};

/* The sink of an output: ours, or one passed to br_passes_store. */
typedef enum slot { OWN, INTS, PGM, NOISE, SMV32, CBF, SLOTS } slot;

enum { MOST_OUTS = 10 };
typedef struct pass {
    fth_graph *g;
    fth_plan *plan;
    fth_val out[MOST_OUTS];
    fth_sink sink[MOST_OUTS];
    slot slot[MOST_OUTS];
    int n;
} pass;

struct br_passes {
    fth_context *ctx;
    const br_experiment *e;
    br_wanted want;
    pass pass[PASSES];
    int64_t latch;
    double average, int_scale, pgm_scale;        /* inputs of later passes */
    double sum, sum_sqr, omega, spread, photons; /* what passes find */
    float max;
    int64_t row, out_of_range, rendered, overloads;
    fth_tensor *column; /* i64 [slow]: where the largest pixel of each row is */
};

static void add(pass *p, fth_val v, const char *label, fth_sink sink)
{
    p->out[p->n] = fth_label(v, label);
    p->sink[p->n++] = sink;
}

static void add_given(pass *p, fth_val v, const char *label, slot to)
{
    p->slot[p->n] = to;
    add(p, v, label, (fth_sink){0});
}

static fth_val image_input(fth_graph *g, const br_scene *s)
{
    fth_axis(g, "slow", s->slow);
    fth_axis(g, "fast", s->fast);
    return fth_input(g, "image", FTH_F32, "slow fast",
                     fth_source_planned(FTH_F32, 2, (int64_t[]){s->slow, s->fast}));
}

static bool needs_latch(const br_scene *s)
{
    return s->interpolate && br_has(s, BR_QUIRK_INTERP_LATCH);
}

static void build_latch(br_passes *p)
{
    pass *t = &p->pass[LATCH];
    const br_inputs in = br_experiment_inputs(t->g, p->e);
    add(t, br_latch(&p->e->scene, &in), "latch", fth_scalar_sink(FTH_I64, &p->latch));
}

/* The first pixel in serial order that has the largest value, where only a greater one replaces it:
 * first of the rows, then first in its row. */
static void build_maximum(br_passes *p, pass *t, fth_val image)
{
    const fth_val zero = fth_const(t->g, FTH_F32, 0);
    const fth_val above = fth_select(fth_gt(image, zero), image, zero); /* NaN is not above */
    const fth_val of_row = fth_label(fth_rmax(above, "fast"), "row maximum");
    add(t, fth_rmax(of_row, "slow"), "maximum", fth_scalar_sink(FTH_F32, &p->max));
    add(t, fth_argmax(of_row, "slow"), "its row", fth_scalar_sink(FTH_I64, &p->row));
    add(t, fth_argmax(above, "fast"), "its column", fth_tensor_sink(p->column));
}

static void build_numbers(br_passes *p, pass *t, fth_val image, fth_val omega, fth_val outside,
                          fth_val mask)
{
    const br_scene *s = &p->e->scene;
    const fth_val wide = fth_cast(image, FTH_F64);
    add(t, fth_sum(wide, "slow fast"), "sum", fth_scalar_sink(FTH_F64, &p->sum));
    add(t, fth_sum(fth_sqr(wide), "slow fast"), "sum of squares",
        fth_scalar_sink(FTH_F64, &p->sum_sqr));
    build_maximum(p, t, image);
    add(t, fth_sum(omega, "slow"), "solid angle", fth_scalar_sink(FTH_F64, &p->omega));
    add(t, fth_sum(outside, "slow"), "out of range", fth_scalar_sink(FTH_I64, &p->out_of_range));
    if (!s->masked) return;
    const fth_val open = fth_cast(fth_ne(mask, fth_const_i64(t->g, FTH_U16, 0)), FTH_I64);
    add(t, fth_sum(br_within(s, open, fth_const_i64(t->g, FTH_I64, 0)), "slow fast"), "rendered",
        fth_scalar_sink(FTH_I64, &p->rendered));
}

static void build_render(br_passes *p)
{
    br_scene s = p->e->scene;
    pass *t = &p->pass[RENDER];
    br_inputs in = br_experiment_inputs(t->g, p->e);
    in.latch = fth_input(t->g, "latch", FTH_I64, "", fth_scalar_source(FTH_I64, &p->latch));
    if (p->want.by_rows && s.roi[2] < p->want.first_row) s.roi[2] = p->want.first_row;
    const fth_val image = br_render(&s, &in, FTH_F32);
    add(t, image, "image", (fth_sink){0});
    if (p->want.by_rows) {
        add(t, fth_out(image, 1), "solid angles", (fth_sink){0});
        add(t, fth_out(image, 2), "out of range", (fth_sink){0});
    } else {
        build_numbers(p, t, image, fth_out(image, 1), fth_out(image, 2), in.mask);
    }
}

static fth_val rows_input(fth_graph *g, const char *name, fth_dtype dtype, const br_scene *s)
{
    return fth_input(g, name, dtype, "slow", fth_source_planned(dtype, 1, &s->slow));
}

static void build_sums(br_passes *p)
{
    const br_scene *s = &p->e->scene;
    pass *t = &p->pass[SUMS];
    const fth_val image = image_input(t->g, s), omega = rows_input(t->g, "omega", FTH_F64, s),
                  outside = rows_input(t->g, "outside", FTH_I64, s);
    fth_val mask = {0};
    if (s->masked) mask = fth_input(t->g, "mask", FTH_U16, "slow fast", p->e->mask);
    build_numbers(p, t, image, omega, outside, mask);
}

static void build_spread(br_passes *p)
{
    pass *t = &p->pass[SPREAD];
    const fth_val image = image_input(t->g, &p->e->scene);
    const fth_val average =
        fth_input(t->g, "average", FTH_F64, "", fth_scalar_source(FTH_F64, &p->average));
    const fth_val away = fth_sqr(fth_sub(fth_cast(image, FTH_F64), average));
    add(t, fth_sum(br_within(&p->e->scene, away, fth_const(t->g, FTH_F64, 0)), "slow fast"),
        "spread", fth_scalar_sink(FTH_F64, &p->spread));
}

static void build_photons(br_passes *p, fth_val image, fth_val photons)
{
    const br_experiment *e = p->e;
    pass *t = &p->pass[STORE];
    fth_val mask = {0};
    if (!photons.graph)
        photons = fth_floor(fth_add(fth_cast(image, FTH_F64), fth_const(t->g, FTH_F64, 0.5)));
    if (p->want.smv32)
        add_given(t, br_photon_pixels(&e->scene, photons, mask, e->out.adc, 0), "smv32", SMV32);
    if (!p->want.cbf) return;
    if (e->scene.masked) mask = fth_input(t->g, "mask", FTH_U16, "slow fast", e->mask);
    add_given(t, br_photon_pixels(&e->scene, photons, mask, 0, -1), "cbf", CBF);
}

static void build_store(br_passes *p)
{
    const br_experiment *e = p->e;
    pass *t = &p->pass[STORE];
    const fth_val image = image_input(t->g, &e->scene);
    const double adc = e->out.adc;
    if (p->want.ints) {
        const fth_val scale =
            fth_input(t->g, "int scale", FTH_F64, "", fth_scalar_source(FTH_F64, &p->int_scale));
        add_given(t, br_int_pixels(&e->scene, image, scale, adc), "int", INTS);
    }
    if (p->want.pgm) {
        const fth_val scale =
            fth_input(t->g, "pgm scale", FTH_F64, "", fth_scalar_source(FTH_F64, &p->pgm_scale));
        add_given(t, br_pgm_pixels(image, scale), "pgm", PGM);
    }
    fth_val photons = {0};
    const bool photons_wanted = p->want.smv32 || p->want.cbf;
    if (p->want.noise || (p->want.counts && photons_wanted)) {
        const int64_t seed = (int64_t)(0 - (uint64_t)e->noise_seed);
        photons = br_counts(&e->scene, image, &e->random, seed, e->shot);
    }
    if (p->want.noise) {
        const br_noise n = br_noise_of(&e->scene, photons, adc);
        add_given(t, n.pixels, "noise", NOISE);
        add(t, n.photons, "photons", fth_scalar_sink(FTH_F64, &p->photons));
        add(t, n.overloads, "overloads", fth_scalar_sink(FTH_I64, &p->overloads));
    }
    if (photons_wanted) build_photons(p, image, photons);
}

/* A pass over the rows needs a few at a time, however much memory there is: larger chunks would
 * only delay progress reports and writes. */
enum { PIECE_BYTES = 8 << 20 };
enum { DEVICE_PIECES = 6 }; /* enough rows at a time to fill a device */

/* With checkpoints, two chunks per interval: one is written while the next is rendered. */
static uint64_t piece_bytes(const br_passes *p, const pass *t)
{
    const br_scene *s = &p->e->scene;
    if (!p->want.by_rows || t != &p->pass[RENDER]) return PIECE_BYTES;
    const double bytes = 2.0 * sizeof(float) * (double)p->want.rows_each * (double)s->fast + 16384;
    return bytes < PIECE_BYTES ? (uint64_t)bytes : (uint64_t)PIECE_BYTES;
}

static fth_plan *plan_pass(const br_passes *p, const pass *t, fth_err *err)
{
    const br_experiment *e = p->e;
    const uint64_t arrays = (e->table ? fth_tensor_bytes(e->table) : 0) +
                            fth_tensor_bytes(e->source) + fth_tensor_bytes(e->mosaic_rotation);
    /* more than wanted where one row needs it; if rows are too long even for that, the budget
     * refuses the plan */
    for (uint64_t bytes = piece_bytes(p, t); bytes <= PIECE_BYTES; bytes *= 2) {
        fth_err small = {0};
        const fth_limits limits = {.memory_bytes = arrays + bytes,
                                   .device_bytes = arrays + DEVICE_PIECES * bytes};
        fth_plan *plan = fth_plan_make(t->g, t->out, t->n, &limits, &small);
        if (plan) return plan;
        if (small.status == FTH_E_NO_FIT) continue;
        *err = small;
        return NULL;
    }
    return fth_plan_make(t->g, t->out, t->n, NULL, err);
}

static fth_status plan_all(br_passes *p, fth_err *err)
{
    static void (*const build[PASSES])(br_passes *) = {[LATCH] = build_latch,
                                                       [RENDER] = build_render,
                                                       [SUMS] = build_sums,
                                                       [SPREAD] = build_spread,
                                                       [STORE] = build_store};
    const bool on[PASSES] = {[LATCH] = needs_latch(&p->e->scene),
                             [RENDER] = true,
                             [SUMS] = p->want.by_rows,
                             [SPREAD] = true,
                             [STORE] = p->want.ints || p->want.pgm || p->want.noise ||
                                       p->want.smv32 || p->want.cbf};
    for (int i = 0; i < PASSES; i++) {
        pass *t = &p->pass[i];
        if (!on[i]) continue;
        t->g = fth_graph_create(p->ctx);
        build[i](p);
        t->plan = plan_pass(p, t, err);
        if (!t->plan) return fth_err_note(err, FTH_HERE, err->status, "planning %s", pass_name[i]);
    }
    return FTH_OK;
}

fth_status br_passes_create(br_passes **out, fth_context *ctx, const br_experiment *e,
                            br_wanted want, fth_err *err)
{
    *out = NULL;
    fth_err own = {0};
    if (!err) err = &own; /* planning reports its status only there */
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(br_passes), "bragg passes", &block, err));
    br_passes *p = memset(block, 0, sizeof *p);
    p->ctx = ctx;
    p->e = e;
    p->want = want;
    p->latch = INT64_MAX;
    fth_status s =
        fth_tensor_create(&p->column, mem, "row maximum", FTH_I64, 1, &e->scene.slow, err);
    if (s == FTH_OK) s = plan_all(p, err);
    if (s != FTH_OK) {
        br_passes_destroy(p);
        return s;
    }
    *out = p;
    return FTH_OK;
}

void br_passes_destroy(br_passes *p)
{
    if (!p) return;
    for (int i = 0; i < PASSES; i++) {
        fth_plan_destroy(p->pass[i].plan);
        fth_graph_destroy(p->pass[i].g);
    }
    fth_tensor_release(p->column);
    fth_mem_release(fth_context_mem(p->ctx), p, NULL);
}

fth_status br_passes_print(const br_passes *p, FILE *file)
{
    for (int i = 0; i < PASSES; i++) {
        if (!p->pass[i].plan) continue;
        fprintf(file, "%s\n", pass_name[i]);
        FTH_TRY(fth_plan_print(p->pass[i].plan, file));
    }
    return FTH_OK;
}

fth_status br_passes_print_json(const br_passes *p, FILE *file)
{
    fth_json_writer w;
    fth_json_begin_file(&w, file, "the plan", true);
    fth_json_open(&w, NULL, '{');
    fth_json_open(&w, "passes", '[');
    for (int i = 0; i < PASSES; i++) {
        if (!p->pass[i].plan) continue;
        fth_json_open(&w, NULL, '{');
        fth_json_text(&w, "pass", pass_name[i]);
        FTH_TRY(fth_plan_add_json(p->pass[i].plan, &w, "plan"));
        fth_json_close(&w);
    }
    fth_json_close(&w);
    fth_json_close(&w);
    return fth_json_end(&w, NULL);
}

int br_passes_count(const br_passes *p)
{
    (void)p;
    return PASSES;
}

const char *br_passes_name(int i)
{
    return i >= 0 && i < PASSES ? pass_name[i] : "";
}

const fth_plan *br_passes_plan(const br_passes *p, int i)
{
    return i >= 0 && i < PASSES ? p->pass[i].plan : NULL;
}

fth_status br_passes_check_ranks(const br_passes *p, fth_err *err)
{
    int64_t parts = 1;
    for (int i = 0; i < PASSES; i++) {
        fth_plan_info info;
        if (!p->pass[i].plan) continue;
        fth_plan_get_info(p->pass[i].plan, &info);
        if (info.most_parts > parts) parts = info.most_parts;
    }
    return fth_ranks_check_parts(fth_context_ranks(p->ctx), "the image", parts, err);
}

fth_status br_passes_latch(br_passes *p, const fth_run_options *opt, int64_t *latch, fth_err *err)
{
    pass *t = &p->pass[LATCH];
    if (t->plan)
        FTH_TRY_CTX(fth_run(t->plan, t->sink, opt, NULL, err), err, "%s", pass_name[LATCH]);
    *latch = p->latch;
    return FTH_OK;
}

static int64_t span(int64_t lo, int64_t hi)
{
    return hi >= lo ? hi - lo + 1 : 0;
}

static void take_numbers(br_passes *p, br_statistics *out)
{
    const br_scene *s = &p->e->scene;
    const int64_t roi = span(s->roi[0], s->roi[1]) * span(s->roi[2], s->roi[3]);
    *out = (br_statistics){.sum = p->sum,
                           .sum_sqr = p->sum_sqr,
                           .pixels = s->masked ? p->rendered : roi,
                           .roi_pixels = roi,
                           .max = p->max,
                           .max_slow = p->row,
                           .max_fast = ((const int64_t *)fth_tensor_data(p->column))[p->row],
                           .omega = p->omega,
                           .out_of_range = p->out_of_range};
    br_statistics_finish(out, s);
}

fth_status br_passes_render(br_passes *p, const fth_sink *sink, const fth_run_options *opt,
                            fth_run_report *report, br_statistics *out, fth_err *err)
{
    pass *t = &p->pass[RENDER];
    t->sink[0] = *sink;
    FTH_TRY_CTX(fth_run(t->plan, t->sink, opt, report, err), err, "%s", pass_name[RENDER]);
    take_numbers(p, out);
    return FTH_OK;
}

void br_passes_set_latch(br_passes *p, int64_t latch)
{
    p->latch = latch;
}

fth_status br_passes_render_rows(br_passes *p, const br_row_sinks *sinks,
                                 const fth_run_options *opt, fth_run_report *report, fth_err *err)
{
    pass *t = &p->pass[RENDER];
    t->sink[0] = sinks->image;
    t->sink[1] = sinks->omega;
    t->sink[2] = sinks->outside;
    FTH_TRY_CTX(fth_run(t->plan, t->sink, opt, report, err), err, "%s", pass_name[RENDER]);
    return FTH_OK;
}

/* The plans expect a source here. */
static fth_source read_only(fth_source s)
{
    s.data = NULL;
    return s;
}

fth_status br_passes_sum(br_passes *p, fth_source image, fth_source omega, fth_source outside,
                         br_statistics *out, fth_err *err)
{
    pass *t = &p->pass[SUMS];
    FTH_TRY(fth_input_set(t->g, "image", read_only(image), err));
    FTH_TRY(fth_input_set(t->g, "omega", read_only(omega), err));
    FTH_TRY(fth_input_set(t->g, "outside", read_only(outside), err));
    FTH_TRY_CTX(fth_run(t->plan, t->sink, NULL, NULL, err), err, "%s", pass_name[SUMS]);
    take_numbers(p, out);
    return FTH_OK;
}

fth_status br_passes_measure(br_passes *p, fth_source image, br_statistics *s, fth_err *err)
{
    pass *t = &p->pass[SPREAD];
    p->average = s->average;
    FTH_TRY(fth_input_set(t->g, "image", image, err));
    FTH_TRY_CTX(fth_run(t->plan, t->sink, NULL, NULL, err), err, "%s", pass_name[SPREAD]);
    const int64_t n = s->roi_pixels > 1 ? s->roi_pixels : 2;
    s->rmsd = sqrt(p->spread / (double)(n - 1));
    br_statistics_scales(s, &p->e->out);
    return FTH_OK;
}

fth_status br_passes_store(br_passes *p, fth_source image, const br_pixel_sinks *sinks,
                           br_statistics *s, fth_err *err)
{
    pass *t = &p->pass[STORE];
    if (!t->plan) return FTH_OK;
    p->int_scale = s->int_scale;
    p->pgm_scale = s->pgm_scale;
    const fth_sink *const given[SLOTS] = {[INTS] = &sinks->ints,
                                          [PGM] = &sinks->pgm,
                                          [NOISE] = &sinks->noise,
                                          [SMV32] = &sinks->smv32,
                                          [CBF] = &sinks->cbf};
    for (int i = 0; i < t->n; i++)
        if (t->slot[i] != OWN) t->sink[i] = *given[t->slot[i]];
    FTH_TRY(fth_input_set(t->g, "image", image, err));
    FTH_TRY_CTX(fth_run(t->plan, t->sink, NULL, NULL, err), err, "%s", pass_name[STORE]);
    s->photons = p->photons;
    s->overloads = p->overloads;
    return FTH_OK;
}
