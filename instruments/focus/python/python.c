/* python.c - see python.h. */
#include "python.h"

#include "../input/input.h"
#include "../run/sample.h"

#include <string.h>

struct fth_focus {
    fth_context *ctx;
    fth_mem *mem;
    fth_config *cfg;
    fo_selection selection;
    fo_input in;
    fo_fusion how;
};

typedef struct pairs {
    const char *const *option;
} pairs;

static const char *value_of(void *user, const char *flag)
{
    const pairs *p = user;
    for (const char *const *o = p->option; o && o[0]; o += 2)
        if (strcmp(o[0], flag) == 0) return o[1];
    return NULL;
}

/* A word that is no option is a mistake of the caller, with the nearest one that is. */
static fth_status check_names(const char *const *option, fth_err *err)
{
    char words[2000] = "";
    size_t used = 0;
    for (const fo_option *o = fo_options; o->flag && used < sizeof words; o++)
        if (o->python)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used ? " " : "",
                                     o->flag);
    for (; option && option[0]; option += 2) {
        const fo_option *o = fo_options;
        while (o->flag && (!o->python || strcmp(o->flag, option[0]) != 0)) o++;
        if (o->flag) continue;
        FTH_FAIL(err, FTH_E_USAGE, "focus has no option '%.60s'", option[0]);
        const int near = fth_word_nearest(words, option[0]);
        const char *at = words;
        for (int i = 0; i < near; i++) at = strchr(at, ' ') + 1;
        if (near >= 0) fth_err_hint(err, "did you mean '%.*s'?", (int)strcspn(at, " "), at);
        return FTH_E_USAGE;
    }
    return FTH_OK;
}

static fth_status open_pixels(fth_focus *f, const char *const *path, int n_paths,
                              const fth_focus_array *array, fth_err *err)
{
    if (n_paths > 0) return fo_input_open(&f->in, f->mem, path, n_paths, &f->selection, err);
    if (!array || array->n_axes < 2 || array->n_axes > 4)
        return FTH_FAIL(err, FTH_E_USAGE, "expected axes y x, z y x or b z y x, found %d axes",
                        array ? (int)array->n_axes : 0);
    return fo_input_open_array(&f->in, f->mem, (fth_dtype)array->dtype, array->n_axes, array->size,
                               array->data, &f->selection, err);
}

static fth_status set_up(fth_focus *f, const char *const *path, int n_paths,
                         const fth_focus_array *array, const char *const *option, fth_err *err)
{
    pairs p = {option};
    FTH_TRY(check_names(option, err));
    FTH_TRY(fo_settings_from_flags(&f->cfg, f->mem, true, value_of, &p, err));
    FTH_TRY(fo_selection_read(f->cfg, &f->selection, err));
    FTH_TRY(open_pixels(f, path, n_paths, array, err));
    const fo_input *in = &f->in;
    const fo_pixels pixels = {in->um_per_px, in->significant_bits};
    FTH_TRY(fo_fusion_read(f->cfg, false, &pixels, &f->how, err));
    f->how.want_depth = f->how.want_confidence =
        f->how.method == FO_LOG || f->how.method == FO_LOG_SMOOTH || f->how.method == FO_DEPTH;
    const fo_sizes sizes = {in->n_stacks, in->planes, in->rows, in->columns};
    FTH_TRY(fo_fusion_check(&f->how, &sizes, in->dtype, err));
    return f->how.scale == FO_SCALE_EXPERIMENT ? fo_sample_scale(f->ctx, &f->in, &f->how, err)
                                               : FTH_OK;
}

fth_status fth_focus_open(fth_focus **out, fth_context *ctx, const char *const *path, int n_paths,
                          const fth_focus_array *array, const char *const *option, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(fth_focus), "focus", &block, err));
    fth_focus *f = memset(block, 0, sizeof *f);
    f->ctx = ctx;
    f->mem = mem;
    const fth_status s = set_up(f, path, n_paths, array, option, err);
    if (s == FTH_OK)
        *out = f;
    else
        fth_focus_destroy(f);
    return s;
}

void fth_focus_destroy(fth_focus *f)
{
    if (!f) return;
    if (f->in.mem) fo_input_close(&f->in);
    (void)fth_config_destroy(f->cfg, NULL);
    (void)fth_mem_release(f->mem, f, NULL);
}

/* ---- the graph ---- */

static fth_status read_mask(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const fo_input *in = self;
    (void)err;
    for (int64_t i = 0; i < n[0]; i++)
        memcpy((char *)dst + i * n[1], in->present + (lo[0] + i) * in->planes + lo[1],
               (size_t)n[1]);
    return FTH_OK;
}

static fo_fused build(fth_focus *f, fo_input_view *view, fth_graph **out)
{
    const fo_input *in = &f->in;
    fth_graph *g = *out = fth_graph_create(f->ctx);
    *view = (fo_input_view){.input = &f->in};
    fth_axis(g, "stack", in->n_stacks);
    fth_axis(g, "z", in->planes);
    fth_axis(g, "y", in->rows);
    fth_axis(g, "x", in->columns);
    const fth_source planes = {.kind = "planes",
                               .self = &f->in,
                               .dtype = FTH_U8,
                               .n_axes = 2,
                               .size = {in->n_stacks, in->planes},
                               .read = read_mask};
    const fth_val stacks = fth_input(g, "stacks", in->dtype, "stack z y x", fo_input_source(view));
    return fo_fuse(g, stacks, fth_input(g, "present", FTH_U8, "stack z", planes), &f->how);
}

void fth_focus_size(const fth_focus *f, int64_t size[4], int32_t *dtype, bool has[3])
{
    fth_focus copy = *f; /* a graph of its own; nothing of f changes */
    fo_input_view view;
    fth_graph *g = NULL;
    const fo_fused fused = build(&copy, &view, &g);
    const fth_val values[3] = {fused.index, fused.depth, fused.confidence};
    const int64_t sizes[4] = {f->in.n_stacks, f->in.planes, f->in.rows, f->in.columns};
    memcpy(size, sizes, sizeof sizes);
    *dtype = fth_val_ok(fused.image) ? (int32_t)fth_val_dtype(fused.image) : (int32_t)FTH_U16;
    for (int i = 0; i < 3; i++) has[i] = fth_val_ok(values[i]);
    fth_graph_destroy(g);
}

/* Planes of the file and um, as the maps of the command have them. */
static void finish(const fth_focus *f, uint16_t *index, float *depth, double *stats)
{
    const fo_input *in = &f->in;
    const int64_t n = in->n_stacks * in->rows * in->columns;
    const double unit = in->z_step_um > 0 ? in->z_step_um : 1;
    for (int64_t i = 0; index && i < n; i++) index[i] = (uint16_t)(index[i] + in->first_plane);
    for (int64_t i = 0; depth && i < n; i++)
        depth[i] = (float)(((double)depth[i] + (double)in->first_plane) * unit);
    for (int64_t i = 0; i < in->n_stacks; i++)
        if (stats[i * FO_STATS + FO_STAT_BEST_Z] >= 0)
            stats[i * FO_STATS + FO_STAT_BEST_Z] += (double)in->first_plane;
}

fth_status fth_focus_run(fth_focus *f, void *image, uint16_t *index, float *depth,
                         float *confidence, double *stats, fth_err *err)
{
    enum { MOST = 5 };
    fo_input_view view;
    fth_graph *g = NULL;
    const fo_fused fused = build(f, &view, &g);
    const fth_val value[MOST] = {fused.image, fused.stats, fused.index, fused.depth,
                                 fused.confidence};
    void *const data[MOST] = {image, stats, index, depth, confidence};
    fth_val out[MOST];
    fth_sink sink[MOST];
    int n = 0;
    for (int i = 0; i < MOST; i++) {
        if (!data[i]) continue;
        out[n] = value[i];
        sink[n] = (fth_sink){.kind = "memory", .data = data[i], .dtype = fth_val_dtype(value[i])};
        sink[n].n_axes = fth_val_axes(value[i]) > 0 ? fth_val_axes(value[i]) : 0;
        for (int a = 0; a < sink[n].n_axes; a++) sink[n].size[a] = fth_val_size(value[i], a);
        n++;
    }
    fth_err own = {0};
    if (!err) err = &own;
    fth_plan *plan = fth_plan_make(g, out, n, &(fth_limits){.sinks = sink}, err);
    fth_status s = plan ? fth_run(plan, sink, NULL, NULL, err) : err->status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    if (s == FTH_OK) finish(f, index, depth, stats);
    return s;
}

const char *fth_focus_stat(int i)
{
    return i >= 0 && i < FO_STATS ? fo_stat_names[i] : NULL;
}
