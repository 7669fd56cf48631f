/* consensus_files.c - from the folders of restarts to a consensus, and its files. */
#include "../answer.h"
#include "consensus.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CELLS = 4096 }; /* of factor maps that are compared at a time */

/* Sums, results and an order of factors, then CELLS rows of two maps. */
static uint64_t map_bytes(int64_t L)
{
    return 8 * (uint64_t)(7 * L) + 8 * (uint64_t)(CELLS * L);
}

void sp_consensus_restart_name(char name[SP_NAME * 3], const sp_consensus_row *row, int64_t r)
{
    snprintf(name, SP_NAME * 3, "%s_restart-%02" PRId64, row->base, r);
}

static fth_status path_in(char path[FTH_PATH], const sp_consensus_call *call, const char *model,
                          const char *name, fth_err *err)
{
    char dir[FTH_PATH];
    FTH_TRY(fth_path_join(dir, call->runs.dir, model, err));
    return fth_path_join(path, dir, name, err);
}

uint64_t sp_consensus_most(int64_t restarts, int64_t factors, int64_t genes)
{
    const uint64_t n = (uint64_t)(restarts * factors), picture = 8u << 20,
                   restart = 4 * (uint64_t)(genes * factors), maps = map_bytes(factors),
                   drawn = 8 * n + 4 * n * n + picture, beside = restart > maps ? restart : maps;
    return sp_consensus_bytes(restarts, factors, genes) + (beside > drawn ? beside : drawn);
}

/* ---- which restarts there are ---- */

/* The task of a stage of a model; NULL: the ledger has none. */
static const fth_task *find_task(const fth_view *view, const char *stage, const char *model)
{
    for (int64_t i = 0; i < view->n_tasks; i++)
        if (strcmp(view->task[i].stage, stage) == 0 && strcmp(view->task[i].model, model) == 0)
            return &view->task[i];
    return NULL;
}

static bool is_done(const fth_view *view, const char *model, const char **why)
{
    static const char *const stage[] = {"train", "analyze"};
    *why = "it was not trained";
    for (int i = 0; i < 2; i++) {
        const fth_task *t = find_task(view, stage[i], model);
        if (t && t->state == FTH_STATE_COMPLETED) continue;
        if (t) *why = t->reason[0] ? t->reason : fth_state_name(t->state);
        return false;
    }
    return true;
}

static double held_out(const sp_consensus_call *call, const char *model)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    if (path_in(path, call, model, SP_METRICS, NULL) != FTH_OK ||
        fth_json_load(&doc, call->runs.mem, path, NULL) != FTH_OK)
        return (double)NAN;
    const double held =
        fth_json_get_real(fth_json_get(fth_json_root(doc), "holdout"), "mean", (double)NAN);
    fth_json_destroy(doc);
    return held;
}

static void summarise(sp_consensus_row *row)
{
    double mean = 0, square = 0;
    const double n = (double)row->used;
    for (int64_t i = 0; i < row->used; i++) mean += row->held[i] / n;
    for (int64_t i = 0; i < row->used; i++) square += (row->held[i] - mean) * (row->held[i] - mean);
    row->held_mean = mean;
    row->held_sd = sqrt(square / (n - 1));
    row->held_error = row->held_sd / sqrt(n);
}

static void take_done(sp_consensus_call *call, sp_consensus_row *row, const fth_view *view)
{
    row->used = 0;
    for (int64_t r = 0; r < call->restarts; r++) {
        char name[SP_NAME * 3];
        const char *why;
        sp_consensus_restart_name(name, row, r);
        if (!is_done(view, name, &why)) {
            fprintf(call->runs.answer->notes, "%s is left out: %.*s\n", name,
                    (int)strcspn(why, "\n"), why);
            continue;
        }
        row->number[row->used] = r;
        row->held[row->used++] = held_out(call, name);
    }
}

fth_status sp_consensus_collect(sp_consensus_call *call, sp_consensus_row *row, fth_err *err)
{
    fth_view *view = NULL;
    FTH_TRY(fth_view_read(&view, call->runs.mem, call->runs.dir, err));
    take_done(call, row, view);
    fth_view_destroy(view);
    if (row->used >= 2) {
        summarise(row);
        return FTH_OK;
    }
    const fth_status s = FTH_FAIL(err, FTH_E_JOB_FAILED,
                                  "%s: %" PRId64 " of %" PRId64
                                  " restarts were trained to the end; a consensus needs 2",
                                  row->base, row->used, call->restarts);
    fth_err_hint(err,
                 "'fathom status %s' says what failed; a lower training.learning_rate keeps "
                 "training from diverging",
                 call->runs.dir);
    row->used = 0;
    return s;
}

/* ---- their loadings ---- */

static fth_status take_restart(sp_consensus *c, sp_consensus_call *call, sp_consensus_row *row,
                               int64_t i, fth_err *err)
{
    char name[SP_NAME * 3], path[FTH_PATH];
    fth_source src = {0};
    fth_tensor *W = NULL;
    sp_consensus_restart_name(name, row, row->number[i]);
    FTH_TRY(path_in(path, call, name, SP_LOADINGS, err));
    FTH_TRY(fth_npy_open(&src, call->runs.mem, path, err));
    fth_status s = FTH_OK;
    if (src.dtype != FTH_F32 || src.n_axes != 2)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [gene factor] was expected", path);
    if (s == FTH_OK && i == 0) {
        row->factors = src.size[1];
        s = sp_consensus_open(c, call->runs.ctx, row->used, src.size[1], src.size[0], err);
        c->threshold = call->density;
        c->seed = call->seed;
    }
    if (s == FTH_OK && (src.size[0] != c->genes || src.size[1] != c->factors))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: [%" PRId64 " %" PRId64 "] was expected, as in the restarts before", path,
                     c->genes, c->factors);
    if (s == FTH_OK) s = fth_source_load(&src, call->runs.mem, "loadings", &W, err);
    if (s == FTH_OK) s = sp_consensus_take(c, i, fth_tensor_data(W), err);
    fth_tensor_release(W);
    fth_source_close(&src);
    return s;
}

fth_status sp_consensus_cluster(sp_consensus *c, sp_consensus_call *call, sp_consensus_row *row,
                                fth_err *err)
{
    for (int64_t i = 0; i < row->used; i++) FTH_TRY(take_restart(c, call, row, i, err));
    FTH_TRY(sp_consensus_run(c, err));
    row->spectra = c->n;
    row->kept = c->kept;
    row->silhouette = c->overall;
    row->stability = c->stability;
    row->reproducibility = c->reproducibility;
    return FTH_OK;
}

/* Loadings in the given order (NULL: of clusters), each times its scale or not. */
static fth_status save_loadings(const sp_consensus *c, const sp_consensus_call *call,
                                const char *path, const int64_t *order, bool scaled, fth_err *err)
{
    const int64_t size[2] = {c->genes, c->factors}, n = c->genes * c->factors;
    fth_tensor *t = NULL;
    FTH_TRY(fth_tensor_create(&t, call->runs.mem, "consensus", FTH_F32, 2, size, err));
    float *to = fth_tensor_data(t);
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = i % c->factors, k = order ? order[p] : p;
        const double v = (double)c->loadings[i - p + k];
        to[i] = (float)(scaled ? v * c->scale[k] : v);
    }
    const fth_status s = fth_npy_save(call->runs.mem, path, FTH_F32, 2, size, to, err);
    fth_tensor_release(t);
    return s;
}

fth_status sp_consensus_fix(const sp_consensus *c, const sp_consensus_call *call,
                            const sp_consensus_row *row, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, call->runs.dir, row->model, err));
    FTH_TRY(fth_folder_make(call->runs.mem, path, err));
    FTH_TRY(path_in(path, call, row->model, SP_FIXED_LOADINGS, err));
    return save_loadings(c, call, path, NULL, true, err);
}

/* ---- factor maps ---- */

typedef struct maps {
    fth_source mine, theirs; /* f32 [cell factor] */
    float *a, *b;            /* CELLS rows of each */
    double *sum;             /* [factor][5]: x, y, xx, yy, xy */
} maps;

static void add_cells(maps *m, int64_t n, const sp_consensus *c, const int64_t *order,
                      const int64_t *matched)
{
    const int64_t L = c->factors;
    for (int64_t p = 0; p < L; p++) {
        double *s = m->sum + 5 * p;
        for (int64_t i = 0; i < n; i++) {
            const double x = (double)m->a[i * L + p], y = (double)m->b[i * L + matched[order[p]]];
            s[0] += x;
            s[1] += y;
            s[2] += x * x;
            s[3] += y * y;
            s[4] += x * y;
        }
    }
}

static double correlation_of(const double *s, double n)
{
    const double vx = s[2] - s[0] * s[0] / n, vy = s[3] - s[1] * s[1] / n;
    return vx > 0 && vy > 0 ? (s[4] - s[0] * s[1] / n) / sqrt(vx * vy) : 0;
}

static fth_status compare_maps(maps *m, const sp_consensus *c, int64_t r, const int64_t *order,
                               double *mean, fth_err *err)
{
    const int64_t cells = m->mine.size[0], L = c->factors;
    memset(m->sum, 0, (size_t)(5 * L) * sizeof *m->sum);
    if (m->theirs.n_axes != 2 || m->theirs.size[0] != cells || m->theirs.size[1] != L ||
        m->theirs.dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s of a restart has other cells or factors",
                        SP_FACTORS);
    for (int64_t at = 0; at < cells; at += CELLS) {
        const int64_t n = cells - at < CELLS ? cells - at : CELLS, lo[2] = {at, 0},
                      size[2] = {n, L};
        FTH_TRY(m->mine.read(m->mine.self, lo, size, m->a, err));
        FTH_TRY(m->theirs.read(m->theirs.self, lo, size, m->b, err));
        add_cells(m, n, c, order, c->matched + r * L);
    }
    for (int64_t p = 0; p < L; p++)
        mean[p] += correlation_of(m->sum + 5 * p, (double)cells) / (double)c->restarts;
    return FTH_OK;
}

/* Mean correlation of each map of the consensus model with the matched maps of the restarts. */
static fth_status match_maps(maps *m, const sp_consensus *c, const sp_consensus_call *call,
                             const sp_consensus_row *row, const int64_t *order, double *mean,
                             fth_err *err)
{
    char path[FTH_PATH], name[SP_NAME * 3];
    FTH_TRY(path_in(path, call, row->model, SP_FACTORS, err));
    FTH_TRY(fth_npy_open(&m->mine, call->runs.mem, path, err));
    if (m->mine.n_axes != 2 || m->mine.size[1] != c->factors || m->mine.dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [cell %" PRId64 "] was expected", path,
                        c->factors);
    for (int64_t i = 0; i < row->used; i++) {
        sp_consensus_restart_name(name, row, row->number[i]);
        FTH_TRY(path_in(path, call, name, SP_FACTORS, err));
        FTH_TRY(fth_npy_open(&m->theirs, call->runs.mem, path, err));
        const fth_status s = compare_maps(m, c, i, order, mean, err);
        fth_source_close(&m->theirs);
        if (s != FTH_OK) return s;
    }
    return FTH_OK;
}

/* ---- tables ---- */

static fth_status write_stability(const sp_consensus *c, const sp_consensus_call *call,
                                  const char *path, const int64_t *order, const double *maps_of,
                                  fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, call->runs.mem);
    fth_lines_add(&t, "factor,spectra,restarts,silhouette,loadings_correlation,"
                      "loadings_correlation_min,factor_correlation\n");
    for (int64_t p = 0; p < c->factors; p++) {
        const int64_t k = order[p];
        const double v[] = {c->mean[k], c->match[k], c->least[k], maps_of[p]};
        fth_lines_add(&t, "%" PRId64 ",%" PRId64 ",%" PRId64, p, c->members[k], c->sources[k]);
        for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
            fth_lines_add(&t, ",");
            fth_lines_real(&t, v[i]);
        }
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}

/* Factors are those of the restart's own files; clusters are factors of the consensus. */
static fth_status write_spectra(const sp_consensus *c, const sp_consensus_call *call,
                                const sp_consensus_row *row, const char *path, const int64_t *order,
                                fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, call->runs.mem);
    fth_lines_add(&t, "restart,factor,density,consensus_factor,silhouette\n");
    for (int64_t i = 0; i < c->n; i++) {
        int64_t place = -1;
        for (int64_t p = 0; p < c->factors; p++)
            if (order[p] == c->label[i]) place = p;
        fth_lines_add(&t, "%" PRId64 ",%" PRId64 ",", row->number[i / c->factors], i % c->factors);
        fth_lines_real(&t, c->density[i]);
        fth_lines_add(&t, ",%" PRId64 ",", place);
        fth_lines_real(&t, c->silhouette[i]);
        fth_lines_add(&t, "\n");
    }
    return fth_lines_save(&t, path, err);
}

static fth_status write_table(const sp_consensus *c, const sp_consensus_call *call,
                              const char *path, const int64_t *order, fth_err *err)
{
    char dir[FTH_PATH];
    sp_data data = {0};
    fth_lines t;
    FTH_TRY(fth_path_join(dir, call->runs.dir, SP_PREPROCESSED, err));
    FTH_TRY(sp_data_open(&data, call->runs.mem, dir, err));
    fth_lines_begin(&t, call->runs.mem);
    fth_lines_add(&t, "gene");
    for (int64_t p = 0; p < c->factors; p++) fth_lines_add(&t, ",factor_%" PRId64, p);
    fth_lines_add(&t, "\n");
    for (int64_t g = 0; g < c->genes; g++) {
        fth_lines_field(&t, fth_texts_get(data.gene_names, g));
        for (int64_t p = 0; p < c->factors; p++) {
            fth_lines_add(&t, ",");
            fth_lines_real(&t, (double)c->loadings[g * c->factors + order[p]]);
        }
        fth_lines_add(&t, "\n");
    }
    sp_data_close(&data);
    return fth_lines_save(&t, path, err);
}

void sp_consensus_put(const sp_consensus_call *call, const sp_consensus_row *row,
                      fth_json_writer *w)
{
    fth_json_text(w, "model", row->model);
    fth_json_int(w, "n_components", row->factors);
    fth_json_int(w, "restarts", call->restarts);
    fth_json_open(w, "used", '[');
    for (int64_t i = 0; i < row->used; i++) fth_json_int(w, NULL, row->number[i]);
    fth_json_close(w);
    fth_json_int(w, "spectra", row->spectra);
    fth_json_int(w, "kept", row->kept);
    fth_json_real(w, "density_threshold", call->density);
    fth_json_real(w, "silhouette", row->silhouette);
    fth_json_real(w, "stability", row->stability);
    fth_json_real(w, "reproducibility", row->reproducibility);
    fth_json_real(w, "holdout_mean", row->held_mean);
    fth_json_real(w, "holdout_sd", row->held_sd);
    fth_json_real(w, "holdout_standard_error", row->held_error);
    fth_json_real(w, "consensus_holdout", row->consensus_held);
    fth_json_open(w, "holdout", '[');
    for (int64_t i = 0; i < row->used; i++) fth_json_real(w, NULL, row->held[i]);
    fth_json_close(w);
}

static fth_status write_json(const sp_consensus_call *call, const sp_consensus_row *row,
                             const char *path, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin(&w, call->runs.mem, true);
    fth_json_open(&w, NULL, '{');
    sp_consensus_put(call, row, &w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

/* ---- all of it ---- */

/* The order that analyze gave the factors of the consensus model. */
static fth_status read_order(const sp_consensus *c, const sp_consensus_call *call,
                             const sp_consensus_row *row, int64_t *order, fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    FTH_TRY(path_in(path, call, row->model, SP_METRICS, err));
    FTH_TRY(fth_json_load(&doc, call->runs.mem, path, err));
    const fth_json_value *list =
        fth_json_get(fth_json_get(fth_json_root(doc), "moran_i"), "sorted_indices");
    bool fine = fth_json_count(list) == c->factors;
    for (int64_t p = 0; fine && p < c->factors; p++) {
        order[p] = fth_json_get_int(fth_json_at(list, p), NULL, -1);
        fine = order[p] >= 0 && order[p] < c->factors;
    }
    fth_json_destroy(doc);
    return fine ? FTH_OK
                : FTH_FAIL(err, FTH_E_FILE_KEY, "%s: an order of %" PRId64 " factors is expected",
                           path, c->factors);
}

static fth_status write_all(const sp_consensus *c, sp_consensus_call *call, sp_consensus_row *row,
                            maps *m, int64_t *order, double *maps_of, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(read_order(c, call, row, order, err));
    FTH_TRY(match_maps(m, c, call, row, order, maps_of, err));
    row->consensus_held = held_out(call, row->model);
    FTH_TRY(path_in(path, call, row->model, SP_CONSENSUS_LOADINGS, err));
    FTH_TRY(save_loadings(c, call, path, order, false, err));
    FTH_TRY(path_in(path, call, row->model, SP_CONSENSUS_TABLE, err));
    FTH_TRY(write_table(c, call, path, order, err));
    FTH_TRY(path_in(path, call, row->model, SP_CONSENSUS_SPECTRA, err));
    FTH_TRY(write_spectra(c, call, row, path, order, err));
    FTH_TRY(path_in(path, call, row->model, SP_CONSENSUS_STABILITY, err));
    FTH_TRY(write_stability(c, call, path, order, maps_of, err));
    FTH_TRY(path_in(path, call, row->model, SP_CONSENSUS_FIGURE, err));
    FTH_TRY(sp_consensus_draw(c, order, path, err));
    FTH_TRY(path_in(path, call, row->model, SP_CONSENSUS_JSON, err));
    return write_json(call, row, path, err);
}

fth_status sp_consensus_write(const sp_consensus *c, sp_consensus_call *call, sp_consensus_row *row,
                              fth_err *err)
{
    const int64_t L = c->factors;
    const uint64_t small = 8 * (uint64_t)(7 * L), bytes = map_bytes(L);
    void *block = NULL;
    FTH_TRY(fth_mem_take(call->runs.mem, FTH_MEM_ANY, bytes, "factor maps", &block, err));
    memset(block, 0, small);
    double *sum = block, *maps_of = sum + 5 * L;
    maps m = {.sum = sum, .a = (float *)block + small / 4};
    m.b = m.a + CELLS * L;
    const fth_status s = write_all(c, call, row, &m, (int64_t *)block + 6 * L, maps_of, err);
    fth_source_close(&m.mine);
    (void)fth_mem_release(call->runs.mem, block, NULL);
    return s;
}

fth_status sp_consensus_tell(const sp_consensus_call *call, const sp_consensus_row *row,
                             fth_err *err)
{
    static const struct {
        const char *name, *what;
    } file[] = {{SP_CHECKPOINT, "the model"},
                {SP_FACTORS, "factors given the consensus loadings"},
                {SP_CONSENSUS_LOADINGS, "medians of clusters, of sum 1"},
                {SP_CONSENSUS_TABLE, "the same with gene names"},
                {SP_FIXED_LOADINGS, "loadings of the model"},
                {SP_CONSENSUS_STABILITY, "stability of each factor"},
                {SP_CONSENSUS_SPECTRA, "density and cluster of each spectrum"},
                {SP_CONSENSUS_JSON, "numbers of the whole"}};
    char name[SP_NAME * 3 + 8], dir[FTH_PATH];
    fth_answer *a = call->runs.answer;
    for (int64_t r = 0; r < call->restarts; r++) {
        sp_consensus_restart_name(name, row, r);
        FTH_TRY(
            sp_answer_named(a, FTH_FILE_OUTPUT, call->runs.dir, name, "folder of a restart", err));
    }
    FTH_TRY(fth_path_join(dir, call->runs.dir, row->model, err));
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        FTH_TRY(sp_answer_named(a, FTH_FILE_OUTPUT, dir, file[i].name, file[i].what, err));
    return sp_answer_named(a, FTH_FILE_FIGURE, dir, SP_CONSENSUS_FIGURE, "clustergram", err);
}
