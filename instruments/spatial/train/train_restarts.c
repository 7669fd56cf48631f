/* train_restarts.c - the same model trained several times: the best is kept, and its factors are
 * compared with those of the others (model 10.7).
 *
 * Restarts differ in start values, batches and noise. Held-out cells, inducing points and
 * neighbours are the same, so objectives are comparable. For an interrupted run, the best model and
 * the loadings and objectives of all finished restarts are saved beside the checkpoint.
 */
#include "../statistics/match.h"
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEST "restarts.best.safetensors"
#define BEST_BEFORE "restarts.best.prev.safetensors"
#define DONE "restarts.done.safetensors"

/* ---- what is held ---- */

fth_status sp_restarts_open(sp_train *t, fth_err *err)
{
    sp_restarts *r = &t->restarts;
    const bool alone = fth_stage_flag(t->call, "resume") || t->replay.npz ||
                       fth_stage_flag(t->call, "resume-optimizer") ||
                       fth_stage_flag(t->call, "record");
    r->n = alone ? 1 : t->set.restarts;
    if (alone && t->set.restarts > 1 && !t->planning)
        fth_stage_say(
            t->call,
            "training.restarts is ignored: a run that resumes, replays or records is a single run");
    if (r->n == 1) return FTH_OK;
    const int64_t size[3] = {r->n, t->set.genes, sp_factors(&t->set)};
    return fth_tensor_create(&r->W, t->mem, "loadings of restarts", FTH_F32, 3, size, err);
}

void sp_restarts_close(sp_train *t)
{
    fth_tensor_release(t->restarts.W);
    t->restarts = (sp_restarts){.n = 0};
}

static float *loadings(const sp_train *t, int64_t i)
{
    return (float *)fth_tensor_data(t->restarts.W) + i * t->set.genes * sp_factors(&t->set);
}

static void remove_file(const sp_train *t, const char *name)
{
    char path[FTH_PATH];
    if (fth_path_join(path, t->call->model_dir, name, NULL) == FTH_OK)
        fth_path_discard(t->mem, path);
}

/* Removes backups and the files of finished restarts: an interrupted run ends with the same files
 * as an uninterrupted one. */
void sp_restarts_forget(const sp_train *t)
{
    remove_file(t, SP_CHECKPOINT_BEFORE);
    remove_file(t, BEST);
    remove_file(t, BEST_BEFORE);
    remove_file(t, DONE);
}

/* ---- the file of those that are done ---- */

static fth_status write_done(const sp_train *t, fth_err *err)
{
    const sp_restarts *r = &t->restarts;
    char path[FTH_PATH], text[SP_RESTARTS * 26] = "";
    const fth_file_item item = {.name = "W",
                                .dtype = FTH_F32,
                                .axes = "restart gene factor",
                                .n_axes = 3,
                                .size = {r->done, t->set.genes, sp_factors(&t->set)}};
    for (int64_t i = 0; i < r->done; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%a ", r->elbo[i]);
    const fth_file_meta meta = {"elbo", text};
    fth_safetensors_writer *w = NULL;
    FTH_TRY(fth_path_join(path, t->call->model_dir, DONE, err));
    FTH_TRY(fth_safetensors_create(&w, t->mem, path, &item, 1,
                                   &(fth_safetensors_options){.meta = &meta, .n_meta = 1}, err));
    fth_sink sink;
    fth_status s = fth_safetensors_sink(w, "W", &sink, err);
    if (s == FTH_OK) s = fth_sink_put(&sink, loadings(t, 0), err);
    if (s == FTH_OK) return fth_safetensors_commit(w, err);
    fth_safetensors_abandon(w);
    return s;
}

static fth_status take_done(sp_train *t, fth_safetensors *f, int64_t n, fth_err *err)
{
    fth_source src;
    int64_t checked = 0;
    const char *at = fth_safetensors_meta(f, "elbo");
    const int64_t zero[3] = {0, 0, 0}, size[3] = {n, t->set.genes, sp_factors(&t->set)};
    FTH_TRY(fth_safetensors_verify(f, &checked, err));
    FTH_TRY(fth_safetensors_source(f, "W", &src, err));
    fth_status s = FTH_OK;
    if (src.n_axes != 3 || src.dtype != FTH_F32 || src.size[0] < n || src.size[1] != size[1] ||
        src.size[2] != size[2])
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "loadings of %" PRId64 " restarts are expected", n);
    if (s == FTH_OK) s = src.read(src.self, zero, size, loadings(t, 0), err);
    fth_source_close(&src);
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        const char *end = NULL;
        t->restarts.elbo[i] = at ? fth_strtod(at, &end) : 0;
        if (!at || end == at) s = FTH_FAIL(err, FTH_E_FILE_KEY, "objectives are missing");
        at = end;
    }
    return s;
}

static void find_best(sp_restarts *r)
{
    r->best = 0;
    for (int64_t i = 1; i < r->done; i++)
        if (r->elbo[i] > r->elbo[r->best]) r->best = i;
}

fth_status sp_restarts_load(sp_train *t, int64_t n, fth_err *err)
{
    char path[FTH_PATH];
    fth_safetensors *f = NULL;
    if (n == 0) return FTH_OK;
    if (t->restarts.n <= n)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "restart %" PRId64 " of %" PRId64, n + 1,
                        t->restarts.n);
    FTH_TRY(fth_path_join(path, t->call->model_dir, BEST, err));
    if (!fth_path_exists(path)) return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s is not there", path);
    FTH_TRY(fth_path_join(path, t->call->model_dir, DONE, err));
    FTH_TRY(fth_safetensors_open(&f, t->mem, path, err));
    const fth_status s = take_done(t, f, n, err);
    fth_safetensors_close(f);
    if (s != FTH_OK) return s;
    t->restarts.done = n;
    find_best(&t->restarts);
    return FTH_OK;
}

/* ---- one more is done ---- */

static void keep_loadings(const sp_train *t, float *to)
{
    const sp_loadings mode = (sp_loadings)t->set.loadings_mode;
    const float *W = fth_tensor_data(t->m.param[SP_P_W]);
    for (int64_t i = 0; i < t->set.genes * sp_factors(&t->set); i++) {
        const double raw = (double)W[i];
        to[i] = (float)(mode == SP_LOADINGS_EXP        ? exp(raw)
                        : mode == SP_LOADINGS_SOFTPLUS ? (raw > 30 ? raw : log1p(exp(raw)))
                                                       : raw);
    }
}

fth_status sp_restarts_add(sp_train *t, fth_err *err)
{
    sp_restarts *r = &t->restarts;
    const int64_t i = t->set.restart;
    char path[FTH_PATH];
    if (r->n == 1) return FTH_OK;
    r->elbo[i] = sp_train_last_tenth(t);
    r->done = i + 1;
    keep_loadings(t, loadings(t, i));
    find_best(r);
    fth_stage_say(t->call, "restart %" PRId64 " of %" PRId64 ": ELBO = %.4f%s", i + 1, r->n,
                  r->elbo[i], r->best == i ? ", the best so far" : "");
    if (r->best == i) {
        FTH_TRY(fth_path_join(path, t->call->model_dir, BEST, err));
        FTH_TRY(sp_train_save_as(t, path, true, err));
        remove_file(t, BEST_BEFORE);
        FTH_TRY(sp_video_save(&t->video, t->first, t->set.video_interval, err));
    }
    if (t->video.model) fth_path_discard(t->mem, t->video.part);
    sp_video_close(&t->video);
    return r->done < r->n ? write_done(t, err) : FTH_OK;
}

/* ---- all are done ---- */

static double correlation(const float *a, const float *b, int64_t genes, int64_t L)
{
    double mean[2] = {0, 0}, square[2] = {0, 0}, cross = 0;
    for (int64_t g = 0; g < genes; g++) {
        mean[0] += (double)a[g * L] / (double)genes;
        mean[1] += (double)b[g * L] / (double)genes;
    }
    for (int64_t g = 0; g < genes; g++) {
        const double x = (double)a[g * L] - mean[0], y = (double)b[g * L] - mean[1];
        square[0] += x * x;
        square[1] += y * y;
        cross += x * y;
    }
    return square[0] > 0 && square[1] > 0 ? cross / sqrt(square[0] * square[1]) : 0;
}

/* Factors of the best matched with those of another so that the sum of correlations of their
 * loadings is largest; the correlations are added to `sum`. */
static fth_status compare(sp_train *t, int64_t other, double *cost, int64_t *column, float *sum,
                          fth_err *err)
{
    sp_restarts *r = &t->restarts;
    const int64_t L = sp_factors(&t->set);
    const float *mine = loadings(t, r->best), *theirs = loadings(t, other);
    for (int64_t i = 0; i < L * L; i++)
        cost[i] = -correlation(mine + i / L, theirs + i % L, t->set.genes, L);
    FTH_TRY(sp_match_best(column, t->mem, cost, L, L, err));
    r->match[other] = 0;
    for (int64_t l = 0; l < L; l++) {
        const double c = -cost[l * L + column[l]];
        r->match[other] += c / (double)L;
        sum[l] += (float)(c / (double)(r->n - 1));
    }
    return FTH_OK;
}

/* Computes the stability of each factor of the best restart. */
static fth_status measure(sp_train *t, fth_err *err)
{
    sp_restarts *r = &t->restarts;
    const int64_t L = sp_factors(&t->set);
    void *block = NULL;
    fth_tensor_release(t->m.stability);
    t->m.stability = NULL;
    FTH_TRY(fth_tensor_create(&t->m.stability, t->mem, "stability", FTH_F32, 1, &L, err));
    float *sum = memset(fth_tensor_data(t->m.stability), 0, (size_t)L * sizeof(float));
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, 8 * (uint64_t)(L * (L + 1)), "match", &block, err));
    double *cost = block;
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < r->n; i++) {
        r->match[i] = 1;
        if (i != r->best) s = compare(t, i, cost, (int64_t *)(void *)(cost + L * L), sum, err);
    }
    (void)fth_mem_release(t->mem, block, NULL);
    return s;
}

fth_status sp_restarts_end(sp_train *t, fth_err *err)
{
    sp_restarts *r = &t->restarts;
    char path[FTH_PATH];
    if (r->n == 1) return FTH_OK;
    FTH_TRY(fth_path_join(path, t->call->model_dir, BEST, err));
    t->set.restart = r->best;
    FTH_TRY(sp_train_read_again(t, path, err));
    FTH_TRY(measure(t, err));
    double mean = 0, least = 1;
    for (int64_t l = 0; l < sp_factors(&t->set); l++) {
        const double v = (double)((const float *)fth_tensor_data(t->m.stability))[l];
        mean += v / (double)sp_factors(&t->set);
        least = fmin(least, v);
    }
    fth_stage_say(t->call,
                  "kept restart %" PRId64 "; loadings correlate with those of the others at %.3f "
                  "on average, %.3f for the least stable factor",
                  r->best + 1, mean, least);
    return FTH_OK;
}

/* Numbers of whole restarts; those of each factor are in metrics.json, in its order. */
void sp_restarts_put(fth_json_writer *w, const sp_train *t)
{
    const sp_restarts *r = &t->restarts;
    if (r->n == 1) return;
    fth_json_open(w, "restarts", '{');
    fth_json_int(w, "n", r->n);
    fth_json_int(w, "kept", r->best);
    fth_json_open(w, "elbo", '[');
    for (int64_t i = 0; i < r->n; i++) fth_json_real(w, NULL, r->elbo[i]);
    fth_json_close(w);
    fth_json_open(w, "matched_correlation", '[');
    for (int64_t i = 0; i < r->n; i++) fth_json_real(w, NULL, r->match[i]);
    fth_json_close(w);
    fth_json_close(w);
}
