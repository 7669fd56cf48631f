/* whole.c - see whole.h. */
#include "whole.h"

#include <string.h>

/* ---- names ---- */

static void name_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const fo_work *w = user;
    fo_job_stem_of(&w->e, &w->whole.in.stack[stack], text, bytes);
}

static void well_of(void *user, int64_t stack, char *text, size_t bytes)
{
    const fo_work *w = user;
    char name[FO_WELL_NAME];
    snprintf(text, bytes, "%s", fo_well_name(w->e.map.well[w->whole.in.stack[stack].p], name));
}

/* ---- which stacks ---- */

/* All positions with a well, as a list of numbers. */
static void list_positions(fo_work *w)
{
    fo_whole *all = &w->whole;
    size_t used = 0;
    for (int64_t p = 0; p < w->e.map.n && used < sizeof all->positions; p++)
        if (w->e.map.well[p] >= 0)
            used += (size_t)snprintf(all->positions + used, sizeof all->positions - used, "%s%lld",
                                     used ? "," : "", (long long)p);
    all->selection = w->e.selection;
    all->selection.wells = all->positions;
    all->selection.times = (fo_range){0, -1, 1};
}

fth_status fo_whole_open(fo_work *w, fth_err *err)
{
    fo_whole *all = &w->whole;
    const char *path = w->e.place.raw;
    if (!fo_job_is_part(&w->e)) return FTH_OK;
    list_positions(w);
    FTH_TRY(fo_input_open(&all->in, w->mem, &path, 1, &all->selection, err));
    return fo_results_create(&all->results, w->mem, all->in.n_stacks, all->in.planes, err);
}

void fo_whole_close(fo_work *w)
{
    fo_results_free(&w->whole.results);
    if (w->whole.in.mem) fo_input_close(&w->whole.in);
    w->whole = (fo_whole){0};
}

/* By p, t and c: the order in which an input lists the stacks of a file. */
static int compare(const fo_stack *a, const fo_stack *b)
{
    if (a->p != b->p) return a->p < b->p ? -1 : 1;
    if (a->t != b->t) return a->t < b->t ? -1 : 1;
    return (a->c > b->c) - (a->c < b->c);
}

/* The stack of the work, at `from` or behind it, that is stack i of all; -1: it is not chosen. */
static int64_t find_chosen(const fo_work *w, int64_t i, int64_t from)
{
    int order = -1;
    for (int64_t k = from; k < w->e.in.n_stacks && order < 0; k++) {
        order = compare(&w->e.in.stack[k], &w->whole.in.stack[i]);
        if (order == 0) return k;
    }
    return -1;
}

/* Images that other settings made have no rows among these. */
static bool is_kept(const fo_work *w, int64_t i)
{
    char path[FTH_PATH];
    fth_path_info info;
    return (!w->before.differs || w->force_config) &&
           fo_job_path_of(&w->e, &w->whole.in.stack[i], FO_OUT_IMAGE, path, NULL) == FTH_OK &&
           fth_path_stat(path, &info, NULL) == FTH_OK && info.bytes > 0;
}

/* ---- tables ---- */

fth_status fo_whole_load(fo_work *w, const char *metrics, const char *planes, fth_err *err)
{
    fo_whole *all = &w->whole;
    const fo_labels labels = {name_of, well_of, w};
    for (int64_t i = 0, at = 0; i < all->results.n; i++) {
        const int64_t k = find_chosen(w, i, at);
        if (k >= 0)
            all->results.state[i] = w->results.state[at = k];
        else
            all->results.state[i] = is_kept(w, i) ? FO_SKIPPED : FO_EMPTY;
    }
    FTH_TRY(fo_tables_load(&all->results, &all->in, &labels, metrics, planes, err));
    for (int64_t i = 0, at = 0; i < all->results.n; i++) {
        const int64_t k = find_chosen(w, i, at);
        if (k >= 0) fo_results_copy(&w->results, at = k, &all->results, i);
    }
    return FTH_OK;
}

/* What the work has found out. */
static void take_over(fo_work *w)
{
    for (int64_t i = 0, at = 0; i < w->whole.results.n; i++) {
        const int64_t k = find_chosen(w, i, at);
        if (k >= 0) fo_results_copy(&w->whole.results, i, &w->results, at = k);
    }
}

fth_status fo_whole_save(fo_work *w, const char *metrics, const char *planes, fth_err *err)
{
    const fo_labels labels = {name_of, well_of, w};
    take_over(w);
    return fo_tables_save(&w->whole.results, &w->whole.in, &labels, metrics, planes, err);
}

/* A stack that cannot be read any more has no row, and its image stays. */
fth_status fo_whole_measure(fo_work *w, fth_err *err)
{
    fo_pipeline p = w->pipeline;
    fth_err found = {0};
    take_over(w);
    for (int64_t i = 0; i < w->whole.results.n; i++) { /* what has no image is not measured */
        uint8_t *state = &w->whole.results.state[i];
        if (*state != FO_SKIPPED && *state != FO_DONE) *state = FO_EMPTY;
    }
    p.in = &w->whole.in;
    p.results = &w->whole.results;
    p.writer.n_stacks = w->whole.in.n_stacks;
    p.traces = 0;
    p.name = NULL;
    p.after = NULL;
    p.report = (fth_run_report){0};
    p.plans = 0;
    const fth_status s = fo_pipeline_run(&p, &found);
    if (s == FTH_OK || s == FTH_E_JOB_FAILED) return FTH_OK;
    *err = found;
    return s;
}
