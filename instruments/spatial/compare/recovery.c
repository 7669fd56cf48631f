/* recovery.c - how well known factors were found: `fathom spatial recovery MODEL_DIR --truth FILE`.
 *
 * Factors have no order of their own: they are matched so that the sum of correlations is largest,
 * on the cells that training saw. With the frames of --video the same is shown against time (model
 * 15.3).
 */
#include "../answer.h"
#include "../model/model.h"
#include "../read/info.h"
#include "../statistics/correlate.h"
#include "../statistics/match.h"

#include <fathom/json.h>
#include <fathom/plot.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct recovery {
    fth_context *ctx;
    fth_mem *mem;
    const char *dir;
    bool log;             /* compare logarithms */
    double *truth;        /* [cell][factor] */
    int64_t cells, known; /* of the truth */
    int64_t *row;         /* training cells; NULL: all */
    int64_t rows;
    double seconds; /* of the training */
    int64_t iterations;
} recovery;

/* ---- reading ---- */

/* Rows of a source [cell factor], or of frame `frame` of [frame cell factor], as f64. */
static fth_status read_matrix(const recovery *r, const fth_source *s, int64_t frame, double **out,
                              fth_err *err)
{
    const int skip = s->n_axes - 2;
    const int64_t lo[3] = {frame, 0, 0}, cells = s->size[skip], cols = s->size[skip + 1];
    const int64_t n[3] = {1, cells, cols}, all = cells * cols;
    const int64_t *from = skip ? lo : lo + 1, *length = skip ? n : n + 1;
    void *raw = NULL, *wide = NULL;
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, (uint64_t)all * 8, "factors", &wide, err));
    fth_status st = FTH_OK;
    if (s->dtype == FTH_F64)
        st = s->read(s->self, from, length, wide, err);
    else
        st = fth_mem_take(r->mem, FTH_MEM_ANY, (uint64_t)all * 4, "factors", &raw, err);
    if (st == FTH_OK && raw) st = s->read(s->self, from, length, raw, err);
    for (int64_t i = 0; st == FTH_OK && raw && i < all; i++)
        ((double *)wide)[i] = (double)((const float *)raw)[i];
    (void)fth_mem_release(r->mem, raw, NULL);
    if (st == FTH_OK)
        *out = wide;
    else
        (void)fth_mem_release(r->mem, wide, NULL);
    return st;
}

static fth_status check_shape(const fth_source *s, const char *path, int axes, fth_err *err)
{
    if (s->n_axes == axes && (s->dtype == FTH_F32 || s->dtype == FTH_F64)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: f32 or f64 with %d axes is expected, not %s with %d", path, axes,
                    fth_dtype_name(s->dtype), s->n_axes);
}

static fth_status read_truth(recovery *r, const char *path, const char *key, fth_err *err)
{
    fth_source s = {0};
    fth_h5 *h5 = NULL;
    const bool h5ad = strlen(path) > 5 && strcmp(path + strlen(path) - 5, ".h5ad") == 0;
    fth_status st = FTH_OK;
    if (h5ad) {
        FTH_TRY(fth_h5_open(&h5, r->mem, path, err));
        st = fth_h5_source(h5, key ? key : "/obsm/spfac", &s, err);
    } else
        st = fth_npy_open(&s, r->mem, path, err);
    if (st == FTH_OK) st = check_shape(&s, path, 2, err);
    if (st == FTH_OK) st = read_matrix(r, &s, 0, &r->truth, err);
    if (st == FTH_OK) r->cells = s.size[0], r->known = s.size[1];
    fth_source_close(&s);
    fth_h5_close(h5);
    return st;
}

/* Which cells were trained on, from the model and its data. */
static fth_status read_rows(recovery *r, fth_err *err)
{
    char path[FTH_PATH];
    sp_model m = {0};
    sp_data d = {0};
    FTH_TRY(fth_path_join(path, r->dir, SP_CHECKPOINT, err));
    FTH_TRY(sp_model_read(&m, r->mem, path, NULL, true, false, err));
    fth_status s = fth_path_join(path, r->dir, "../" SP_PREPROCESSED, err);
    if (s == FTH_OK) s = sp_data_open(&d, r->mem, path, err);
    if (s == FTH_OK && d.rows != r->cells)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "the truth has %" PRId64 " cells, but the preprocessed data have %" PRId64,
                     r->cells, d.rows);
    if (s == FTH_OK && m.set.holdout_fraction > 0)
        s = sp_data_hold_out(&d, m.set.holdout_fraction, (sp_holdout)m.set.holdout, m.set.seed,
                             err);
    r->row = d.row;
    r->rows = d.size.cells;
    d.row = NULL;
    sp_data_close(&d);
    sp_model_clear(&m);
    return s;
}

static fth_status read_course(recovery *r, fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    FTH_TRY(fth_path_join(path, r->dir, SP_TRAINING, err));
    FTH_TRY(fth_json_load(&doc, r->mem, path, err));
    const fth_json_value *v = fth_json_root(doc);
    fth_stage_result last;
    r->seconds = sp_info_training(r->mem, r->dir, &last) ? last.seconds : 0;
    r->iterations = fth_json_get_int(v, "n_iterations", 0);
    fth_json_destroy(doc);
    return FTH_OK;
}

/* ---- correlations ---- */

/* `all`: v has every cell of the data, else those of training alone. */
static double correlation(const recovery *r, const double *v, int64_t cols, int64_t j, bool all,
                          int64_t k)
{
    double sum[2] = {0, 0}, square[2] = {0, 0}, cross = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < r->rows; i++) {
            const int64_t at = r->row ? r->row[i] : i;
            double x = v[(all ? at : i) * cols + j], y = r->truth[at * r->known + k];
            if (r->log) x = log(fmax(x, 1e-300));
            if (pass == 0) {
                sum[0] += x / (double)r->rows;
                sum[1] += y / (double)r->rows;
                continue;
            }
            x -= sum[0];
            y -= sum[1];
            square[0] += x * x;
            square[1] += y * y;
            cross += x * y;
        }
    return cross / sqrt(square[0] * square[1]);
}

/* All pairs, [known][cols]; on a device where there is one. */
static fth_status correlations(const recovery *r, const double *v, int64_t cols, bool all,
                               double *out, fth_err *err)
{
    if (fth_context_device_mem(r->ctx)) {
        const sp_columns truth = {r->truth, r->cells, r->known, r->row, false},
                         found = {v, all ? r->cells : r->rows, cols, all ? r->row : NULL, r->log};
        return sp_correlate(out, r->ctx, &truth, &found, r->rows, err);
    }
    for (int64_t k = 0; k < r->known; k++)
        for (int64_t j = 0; j < cols; j++) out[k * cols + j] = correlation(r, v, cols, j, all, k);
    return FTH_OK;
}

typedef struct matched {
    double mean;
    double pearson[64]; /* of each known factor */
    int64_t column[64];
} matched;

static fth_status match(const recovery *r, const double *v, int64_t cells, int64_t cols,
                        matched *out, fth_err *err)
{
    const bool all = cells == r->cells;
    if ((!all && cells != r->rows) || r->known > 64 || cols > 64)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "factors have %" PRId64 " cells and %" PRId64 " columns, the truth %" PRId64
                        " and %" PRId64 "; up to 64 columns are matched",
                        cells, cols, r->cells, r->known);
    double cost[64 * 64];
    FTH_TRY(correlations(r, v, cols, all, cost, err));
    for (int64_t i = 0; i < r->known * cols; i++) cost[i] = -cost[i];
    FTH_TRY(sp_match_best(out->column, r->mem, cost, r->known, cols, err));
    out->mean = 0;
    for (int64_t k = 0; k < r->known; k++) {
        const int64_t j = out->column[k];
        out->pearson[k] = j < 0 ? (double)NAN : -cost[k * cols + j];
        out->mean += out->pearson[k] / (double)r->known;
    }
    return FTH_OK;
}

static fth_status match_file(const recovery *r, const char *name, matched *out, fth_err *err)
{
    char path[FTH_PATH];
    fth_source s = {0};
    double *v = NULL;
    FTH_TRY(fth_path_join(path, r->dir, name, err));
    FTH_TRY(fth_npy_open(&s, r->mem, path, err));
    fth_status st = check_shape(&s, path, 2, err);
    if (st == FTH_OK) st = read_matrix(r, &s, 0, &v, err);
    if (st == FTH_OK) st = match(r, v, s.size[0], s.size[1], out, err);
    (void)fth_mem_release(r->mem, v, NULL);
    fth_source_close(&s);
    return st;
}

/* ---- the course: mean correlation of every frame ---- */

typedef struct course {
    double *seconds, *mean;
    int64_t n;
} course;

static fth_status follow(const recovery *r, const fth_source *frames, const fth_source *at,
                         course *c, fth_err *err)
{
    const int64_t n = frames->size[0], zero = 0;
    int64_t *iteration = NULL;
    void *room = NULL;
    FTH_TRY(fth_mem_take(r->mem, FTH_MEM_ANY, (uint64_t)n * 24, "course", &room, err));
    c->seconds = room;
    c->mean = c->seconds + n;
    iteration = (int64_t *)(void *)(c->mean + n);
    fth_status s = at->dtype == FTH_I64 && at->n_axes == 1 && at->size[0] == n
                       ? at->read(at->self, &zero, &n, iteration, err)
                       : FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: i64 [%" PRId64 "] is expected",
                                  SP_FRAME_ITERS, n);
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        matched m;
        double *v = NULL;
        s = read_matrix(r, frames, i, &v, err);
        if (s == FTH_OK) s = match(r, v, frames->size[1], frames->size[2], &m, err);
        (void)fth_mem_release(r->mem, v, NULL);
        if (s == FTH_OK) c->mean[i] = m.mean;
        c->seconds[i] = r->seconds * (double)iteration[i] / fmax((double)r->iterations, 1);
    }
    c->n = n;
    return s;
}

/* Nothing when there are no frames. */
static fth_status follow_frames(const recovery *r, course *c, fth_err *err)
{
    char path[FTH_PATH];
    fth_source frames = {0}, at = {0};
    FTH_TRY(fth_path_join(path, r->dir, SP_FRAMES, err));
    if (fth_npy_open(&frames, r->mem, path, NULL) != FTH_OK) return FTH_OK;
    fth_status s = check_shape(&frames, path, 3, err);
    if (s == FTH_OK) s = fth_path_join(path, r->dir, SP_FRAME_ITERS, err);
    if (s == FTH_OK) s = fth_npy_open(&at, r->mem, path, err);
    if (s == FTH_OK) s = follow(r, &frames, &at, c, err);
    fth_source_close(&frames);
    fth_source_close(&at);
    return s;
}

static fth_status draw(const recovery *r, const course *c, double final, fth_err *err)
{
    char path[FTH_PATH], label[64];
    fth_figure *fig = NULL;
    FTH_TRY(fth_path_join(path, r->dir, "recovery.png", err));
    FTH_TRY(fth_figure_create(&fig, r->mem, &(fth_figure_options){.title = "Known factors"}, err));
    fth_panel *p = fth_figure_panel(fig, 0);
    snprintf(label, sizeof label, "at the end: %.4f", final);
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "seconds of training"});
    fth_panel_axis(p, FTH_AXIS_Y,
                   &(fth_axis_options){.label = "mean correlation with the matched factor"});
    fth_panel_line(p, fth_column_of(FTH_F64, c->seconds, c->n),
                   fth_column_of(FTH_F64, c->mean, c->n), &(fth_line){.label = "factors"});
    fth_panel_reference(p, FTH_AXIS_Y, final, &(fth_line){.dash = FTH_DASH_DASHED, .label = label});
    const fth_status s = fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}

static void put_result(fth_json_writer *w, const recovery *r, const matched *m, const course *c)
{
    fth_json_real(w, "mean_pearson", m->mean);
    fth_json_open(w, "factors", '[');
    for (int64_t k = 0; k < r->known; k++) {
        fth_json_open(w, NULL, '{');
        fth_json_int(w, "matched", m->column[k]);
        fth_json_real(w, "pearson", m->pearson[k]);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_open(w, "course", '[');
    for (int64_t i = 0; i < c->n; i++) {
        fth_json_open(w, NULL, '[');
        fth_json_seconds(w, NULL, c->seconds[i]);
        fth_json_real(w, NULL, c->mean[i]);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static fth_status write_json(const recovery *r, const matched *m, const course *c, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer w;
    FTH_TRY(fth_path_join(path, r->dir, "recovery.json", err));
    fth_json_begin(&w, r->mem, true);
    fth_json_open(&w, NULL, '{');
    put_result(&w, r, m, c);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

static fth_status tell_files(const recovery *r, const char *truth, bool draws, fth_answer *a,
                             fth_err *err)
{
    fth_answer_file(a, FTH_FILE_INPUT, truth, -1, "%" PRId64 " x %" PRId64, r->cells, r->known);
    FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_CHECKPOINT, NULL, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_FACTORS, NULL, err));
    if (draws) FTH_TRY(sp_answer_named(a, FTH_FILE_FIGURE, r->dir, "recovery.png", NULL, err));
    return sp_answer_named(a, FTH_FILE_OUTPUT, r->dir, "recovery.json", NULL, err);
}

/* --plan: the truth is read, which says how large the factors are; nothing is matched. */
static fth_status plan(const recovery *r, const char *truth, fth_answer *a, fth_err *err)
{
    char path[FTH_PATH];
    fth_source frames = {0};
    FTH_TRY(fth_path_join(path, r->dir, SP_FRAMES, err));
    const bool draws = fth_npy_open(&frames, r->mem, path, NULL) == FTH_OK && frames.n_axes == 3 &&
                       frames.size[0] > 1;
    fth_source_close(&frames);
    FTH_TRY(tell_files(r, truth, draws, a, err));
    fth_mem_stats held;
    fth_mem_get_stats(r->mem, &held);
    /* Factors are read as f32 and held as f64. */
    fth_answer_memory(a, held.used_bytes + 12 * (uint64_t)(r->cells * r->known) + (16u << 20),
                      "estimated: the truth, and as many factors beside it");
    return FTH_OK;
}

static fth_status recover(recovery *r, const char *truth, const char *key, fth_answer *a,
                          fth_err *err)
{
    matched m;
    course c = {0};
    FTH_TRY(read_truth(r, truth, key, err));
    FTH_TRY(read_rows(r, err));
    FTH_TRY(read_course(r, err));
    if (a->plan) return plan(r, truth, a, err);
    FTH_TRY(match_file(r, SP_FACTORS, &m, err));
    for (int64_t k = 0; k < r->known; k++)
        fprintf(a->out, "known factor %" PRId64 " is factor %" PRId64 ": correlation %.4f\n", k + 1,
                m.column[k] + 1, m.pearson[k]);
    fprintf(a->out, "mean correlation on %" PRId64 " cells: %.4f\n", r->rows, m.mean);
    fth_status s = follow_frames(r, &c, err);
    if (s == FTH_OK && c.n > 1) s = draw(r, &c, m.mean, err);
    if (s == FTH_OK) s = write_json(r, &m, &c, err);
    if (s == FTH_OK) s = tell_files(r, truth, c.n > 1, a, err);
    if (s == FTH_OK && a->json) {
        fth_json_int(fth_answer_facts(a), "cells", r->rows);
        put_result(fth_answer_facts(a), r, &m, &c);
    }
    (void)fth_mem_release(r->mem, c.seconds, NULL);
    return s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    const char *truth = value(user, "truth");
    if (n_args != 1 || !truth) {
        const fth_status s = FTH_FAIL(err, FTH_E_COMMAND,
                                      "the folder of a model and --truth FILE "
                                      "are needed");
        fth_err_hint(err, "fathom spatial recovery outputs/toy/svgp --truth "
                          "data/toy/ground_truth_factors.npy --log-space");
        return s;
    }
    recovery r = {.ctx = ctx, .mem = fth_context_mem(ctx), .dir = arg[0]};
    r.log = value(user, "log-space") != NULL;
    fth_answer a;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    const fth_status s = fth_answer_end(&a, recover(&r, truth, value(user, "key"), &a, err), err);
    (void)fth_mem_release(r.mem, r.truth, NULL);
    (void)fth_mem_release(r.mem, r.row, NULL);
    return s;
}

static const fth_flag flags[] = {
    {.name = "truth",
     .value = FTH_FLAG_FILE,
     .doc = "the known factors [cell factor]: a .npy file, or an .h5ad file with --key"},
    {.name = "key",
     .value = FTH_FLAG_WORD,
     .doc = "where they are in the .h5ad file (default: /obsm/spfac)"},
    {.name = "log-space", .doc = "the truth is that of log-factors"},
    {0}};

const fth_verb sp_verb_recovery = {
    .name = "recovery",
    .args = "MODEL_DIR",
    .brief = "compare factors with known ones, of synthetic data",
    .doc = "Matches the factors of an analyzed model with known ones so that the sum of "
           "correlations is largest, on the cells that training saw, and writes recovery.json. "
           "With the frames of 'train --video' it also draws recovery.png: the correlation against "
           "the time of training.",
    .max_args = 1,
    .flag = flags,
    .heeds = "plan json",
    .run = run};
