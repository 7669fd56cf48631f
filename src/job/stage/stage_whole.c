/* stage_whole.c - steps that all instruments share: run a graph into a file, draw its figures. */
#include <fathom/stage.h>

#include <string.h>

fth_status fth_stage_step(const fth_stage_call *call, const fth_stage_progress *p, fth_err *err)
{
    char of[32] = "";
    if (fth_stage_report(call, p)) return FTH_OK;
    if (p->total > 0) snprintf(of, sizeof of, " of %lld", (long long)p->total);
    return FTH_FAIL(err, FTH_E_CANCELLED, "%s was stopped after %s %lld%s",
                    call->stage ? call->stage->name : "it", p->what ? p->what : "part",
                    (long long)p->done, of);
}

/* ---- a graph into a file ---- */

enum { AXIS = 64, MOST_OUTLETS = 32 }; /* bytes of the name of an axis; values computed at once */

/* "cell dim" into its names. */
static void cut_axes(const char *axes, char name[FTH_MAX_AXES][AXIS])
{
    for (int k = 0; k < FTH_MAX_AXES; k++) {
        axes += strspn(axes, " ");
        const size_t n = strcspn(axes, " ");
        snprintf(name[k], AXIS, "%.*s", (int)n, axes);
        axes += n;
    }
}

/* Whether a value has the dtype and the axes of an item, and an item with its sizes. */
static bool describe(fth_val v, const fth_file_item *like, fth_file_item *item)
{
    char name[FTH_MAX_AXES][AXIS];
    bool same = fth_val_dtype(v) == like->dtype && fth_val_axes(v) == like->n_axes;
    cut_axes(like->axes, name);
    *item = *like;
    for (int k = 0; same && k < like->n_axes; k++) {
        item->size[k] = fth_val_size(v, k);
        same = strcmp(fth_val_axis(v, k), name[k]) == 0;
    }
    return same;
}

fth_status fth_stage_compute_file_(const fth_stage_call *call, fth_site site, const char *path,
                                   fth_graph *g, const fth_val *outs, const fth_file_item *like,
                                   int n, fth_err *err)
{
    fth_file_item item[FTH_MAX_OUT];
    fth_sink sink[FTH_MAX_OUT];
    fth_safetensors_writer *w = NULL;
    if (n > FTH_MAX_OUT)
        return FTH_FAIL(err, FTH_E_USAGE, "a file takes at most %d values", (int)FTH_MAX_OUT);
    FTH_TRY(fth_graph_check(g, err)); /* a value that is a mistake has no shape */
    for (int i = 0; i < n; i++) {
        char text[200];
        if (!describe(outs[i], &like[i], &item[i]))
            return FTH_FAIL(err, FTH_E_USAGE, "'%s' of %s is %s [%s], and the value is %s",
                            like[i].name, path, fth_dtype_name(like[i].dtype), like[i].axes,
                            fth_val_format(outs[i], text, sizeof text));
    }
    FTH_TRY(fth_safetensors_create(&w, fth_context_mem(call->context), path, item, n, NULL, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < n; i++)
        s = fth_safetensors_sink(w, item[i].name, &sink[i], err);
    if (s == FTH_OK) s = fth_stage_compute_(call, site, g, outs, n, sink, err);
    if (s != FTH_OK) {
        fth_safetensors_abandon(w);
        return s;
    }
    fth_stage_point(call, "before_outputs");
    return fth_safetensors_commit(w, err);
}

/* ---- a graph into numbers and files ---- */

static fth_status open_outlet(fth_sink *sink, fth_mem *mem, fth_val v, const fth_outlet *to,
                              fth_err *err)
{
    int64_t size[FTH_MAX_AXES];
    if (!to->path) {
        *sink = fth_scalar_sink(FTH_F64, to->number);
        return FTH_OK;
    }
    for (int k = 0; k < fth_val_axes(v); k++) size[k] = fth_val_size(v, k);
    return fth_npy_create(sink, mem, to->path, fth_val_dtype(v), fth_val_axes(v), size, err);
}

fth_status fth_stage_compute_to_(const fth_stage_call *call, fth_site site, fth_graph *g,
                                 const fth_val *outs, const fth_outlet *to, int n, fth_err *err)
{
    fth_sink sink[MOST_OUTLETS] = {0};
    if (n > MOST_OUTLETS)
        return FTH_FAIL(err, FTH_E_USAGE, "at most %d values, not %d", (int)MOST_OUTLETS, n);
    FTH_TRY(fth_graph_check(g, err)); /* a value that is a mistake has no shape */
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < n; i++)
        s = open_outlet(&sink[i], fth_context_mem(call->context), outs[i], &to[i], err);
    if (s == FTH_OK) s = fth_stage_compute_(call, site, g, outs, n, sink, err);
    for (int i = 0; i < n; i++)
        if (to[i].path) fth_sink_close(&sink[i]); /* after a failure the file never appears */
    return s;
}

/* ---- files of the stage's model ---- */

fth_status fth_stage_npy(const fth_stage_call *call, const char *name, bool planned, int n_axes,
                         const int64_t *size, fth_source *out, fth_err *err)
{
    char path[FTH_PATH];
    *out = fth_source_zeros(FTH_F32, n_axes, size);
    if (planned) return FTH_OK;
    FTH_TRY(fth_path_join(path, call->model_dir, name, err));
    return fth_npy_open(out, fth_context_mem(call->context), path, err);
}

fth_status fth_stage_file_set(const fth_stage_call *call, fth_file_set **set, const char **temp,
                              fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->context);
    int64_t old = 0;
    *set = NULL;
    fth_status s = fth_file_set_create(set, mem, err);
    for (const fth_stage_file *f = call->stage->leaves; s == FTH_OK && f && f->name; f++) {
        char path[FTH_PATH];
        s = fth_path_join(path, call->model_dir, f->name, err);
        if (s == FTH_OK) s = fth_remains_remove(mem, path, &old, err);
        if (s == FTH_OK) s = fth_file_set_add(*set, path, temp++, err);
    }
    return s;
}

/* ---- arrays of a file ---- */

/* Axis k of array i: the size that the item says, and that of every axis of its name before it. */
static bool axis_fits(const fth_arrays *a, const fth_file_item *item, int i, int k)
{
    char mine[FTH_MAX_AXES][AXIS], other[FTH_MAX_AXES][AXIS];
    const int64_t size = a->source[i].size[k];
    cut_axes(item[i].axes, mine);
    if (item[i].size[k] != 0) return size == item[i].size[k];
    for (int j = 0; j <= i; j++) {
        cut_axes(item[j].axes, other);
        for (int m = 0; m < item[j].n_axes; m++)
            if (strcmp(mine[k], other[m]) == 0) return size == a->source[j].size[m];
    }
    return true;
}

fth_status fth_arrays_open(fth_arrays *a, fth_mem *mem, const char *path, const fth_file_item *item,
                           int n, fth_err *err)
{
    *a = (fth_arrays){0};
    if (n > FTH_MAX_OUT) return FTH_FAIL(err, FTH_E_USAGE, "at most %d arrays", (int)FTH_MAX_OUT);
    fth_status s = fth_safetensors_open(&a->file, mem, path, err);
    for (int i = 0; s == FTH_OK && i < n; i++) {
        s = fth_safetensors_source(a->file, item[i].name, &a->source[i], err);
        if (s != FTH_OK) break;
        bool fits = a->source[i].dtype == item[i].dtype && a->source[i].n_axes == item[i].n_axes;
        for (int k = 0; fits && k < item[i].n_axes; k++) fits = axis_fits(a, item, i, k);
        if (!fits)
            s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                         "%s: '%s' should be %s [%s], with one size for axes of one name", path,
                         item[i].name, fth_dtype_name(item[i].dtype), item[i].axes);
    }
    a->rows = a->source[0].size[0];
    if (s != FTH_OK) fth_arrays_close(a);
    return s;
}

void fth_arrays_plan(fth_arrays *a, const fth_file_item *item, int n, int64_t rows,
                     fth_source (*make)(fth_dtype, int, const int64_t *))
{
    *a = (fth_arrays){.rows = rows};
    for (int i = 0; i < n && i < FTH_MAX_OUT; i++) {
        fth_file_item it = item[i];
        for (int k = 0; k < it.n_axes; k++)
            if (it.size[k] == 0) it.size[k] = rows;
        a->source[i] = make(it.dtype, it.n_axes, it.size);
    }
}

void fth_arrays_close(fth_arrays *a)
{
    for (int i = 0; i < FTH_MAX_OUT; i++) fth_source_close(&a->source[i]);
    fth_safetensors_close(a->file);
    *a = (fth_arrays){0};
}

/* ---- figures ---- */

static fth_status draw_one(const fth_stage_call *call, fth_stage_plan *plan, FILE *show,
                           const char *name, fth_figure *figure, fth_err *err)
{
    char path[FTH_PATH], size[24];
    uint64_t bytes = 0;
    FTH_TRY(fth_path_join(path, call->model_dir, name, err));
    if (!plan) return fth_figure_save(figure, path, err);
    FTH_TRY(fth_figure_plan(figure, path, &bytes, err));
    fth_stage_plan_hold(call, plan, bytes, 1u << FTH_LIB_FATHOM);
    if (show) fprintf(show, "%-14s %s\n", name, fth_mem_format_size(bytes, size, sizeof size));
    return FTH_OK;
}

fth_status fth_stage_draw(const fth_stage_call *call, fth_stage_plan *plan, FILE *show,
                          const fth_stage_file *file, fth_figure_fn *make, void *user, fth_err *err)
{
    int n = 0;
    while (file[n].name) n++;
    if (!plan) fth_stage_point(call, "before_outputs");
    for (int i = 0; i < n; i++) {
        fth_figure *figure = NULL;
        fth_status s = make(user, i, &figure, err);
        if (s == FTH_OK) s = draw_one(call, plan, show, file[i].name, figure, err);
        fth_figure_destroy(figure);
        FTH_TRY(s);
        const fth_stage_progress p = {.done = i + 1, .total = n, .what = "figure"};
        if (!plan && i + 1 < n) FTH_TRY(fth_stage_step(call, &p, err));
    }
    if (!plan)
        (void)fth_stage_report(call,
                               &(fth_stage_progress){.done = n, .total = n, .what = "figure"});
    return FTH_OK;
}
