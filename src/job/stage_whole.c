/* stage_whole.c - steps that stages of all instruments have: a graph into a file, its figures. */
#include <fathom/stage.h>

#include <string.h>

fth_status fth_stage_step(const fth_stage_call *call, const fth_stage_progress *p, fth_err *err)
{
    if (fth_stage_report(call, p)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_CANCELLED, "%s was stopped after %s %lld of %lld",
                    call->stage ? call->stage->name : "it", p->what ? p->what : "part",
                    (long long)p->done, (long long)p->total);
}

/* ---- a graph into a file ---- */

enum { AXES_TEXT = 512 };

static void describe(fth_val v, const char *name, char axes[AXES_TEXT], fth_file_item *item)
{
    size_t n = 0;
    *item = (fth_file_item){
        .name = name, .dtype = fth_val_dtype(v), .n_axes = fth_val_axes(v), .axes = axes};
    axes[0] = '\0';
    for (int k = 0; k < item->n_axes && n < AXES_TEXT; k++) {
        item->size[k] = fth_val_size(v, k);
        n += (size_t)snprintf(axes + n, AXES_TEXT - n, "%s%s", k ? " " : "", fth_val_axis(v, k));
    }
}

fth_status fth_stage_compute_file_(const fth_stage_call *call, fth_site site, const char *path,
                                   fth_graph *g, const fth_val *outs, const char *const *name,
                                   int n, fth_err *err)
{
    fth_file_item item[FTH_MAX_OUT];
    fth_sink sink[FTH_MAX_OUT];
    char axes[FTH_MAX_OUT][AXES_TEXT];
    fth_safetensors_writer *w = NULL;
    if (n > FTH_MAX_OUT)
        return FTH_FAIL(err, FTH_E_USAGE, "a file takes at most %d values of a graph",
                        (int)FTH_MAX_OUT);
    FTH_TRY(fth_graph_check(g, err)); /* a value that is a mistake has no shape */
    for (int i = 0; i < n; i++) describe(outs[i], name[i], axes[i], &item[i]);
    FTH_TRY(fth_safetensors_create(&w, fth_context_mem(call->context), path, item, n, NULL, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < n; i++) s = fth_safetensors_sink(w, name[i], &sink[i], err);
    if (s == FTH_OK) s = fth_stage_compute_(call, site, g, outs, n, sink, err);
    if (s != FTH_OK) {
        fth_safetensors_abandon(w);
        return s;
    }
    fth_stage_point(call, "before_outputs");
    return fth_safetensors_commit(w, err);
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
