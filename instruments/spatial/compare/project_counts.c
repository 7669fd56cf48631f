/* project_counts.c - factors of cells from their counts, with fixed loadings.
 *
 * Given W, cells are independent: they are fitted in blocks, one after the other.
 */
#include "../data/totals.h"
#include "../train/step.h"
#include "project.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 8192, ITERATIONS = 200, UPDATES = 100 };
static const double rate_most = 0.1, start_raw = -2.2, least = 1e-8;

typedef struct block {
    sp_project *p;
    sp_reader *reader;
    sp_counts counts;
    int64_t *cell, first, n; /* cells of the data */
    double *W;               /* [gene][factor] */
    double *sums;            /* of the columns of W */
    float *rows;             /* [cell][factor]: results */
} block;

static double loading(const sp_model *m, int64_t i)
{
    fth_tensor *t = m->param[SP_P_W];
    const double w = m->real == FTH_F64 ? ((const double *)fth_tensor_data(t))[i]
                                        : (double)((const float *)fth_tensor_data(t))[i];
    if (m->set.loadings_mode == SP_LOADINGS_EXP) return exp(w);
    if (m->set.loadings_mode == SP_LOADINGS_SOFTPLUS) return w > 30 ? w : log1p(exp(w));
    return w;
}

static const int64_t *order_of(const block *b)
{
    return fth_tensor_data(b->p->order);
}

/* The size of cell n of the block (model 8.4). */
static double size_of(const block *b, int64_t n)
{
    const sp_settings *s = &b->p->model->set;
    const int64_t *ptr = fth_tensor_data(b->counts.row_ptr);
    const float *y = fth_tensor_data(b->counts.value);
    double total = 0;
    for (int64_t e = ptr[n]; e < ptr[n + 1]; e++) total += (double)y[e];
    return s->size_factors == SP_SIZE_TOTAL ? sp_size_of(total, s->size_median) : 1;
}

/* ---- least squares ---- */

static fth_status write_rows(const block *b, const fth_sink *to, fth_err *err)
{
    const int64_t lo[2] = {b->first, 0}, n[2] = {b->n, b->p->model->set.n_components};
    return to->write(to->self, lo, n, b->rows, err);
}

/* F <- F (Y W) / (F W^T W + 1e-8), a row at a time. */
static fth_status fit_squares(block *b, fth_err *err)
{
    const sp_settings *s = &b->p->model->set;
    const int64_t L = s->n_components, D = s->genes, *ptr = fth_tensor_data(b->counts.row_ptr);
    const int32_t *gene = fth_tensor_data(b->counts.gene);
    const float *y = fth_tensor_data(b->counts.value);
    void *room = NULL;
    FTH_TRY(fth_mem_take(b->p->model->mem, FTH_MEM_ANY, (uint64_t)(L * (L + 2)) * sizeof(double),
                         "products of W", &room, err));
    double *square = room, *want = square + L * L, *f = want + L;
    for (int64_t i = 0; i < L * L; i++) {
        square[i] = 0;
        for (int64_t d = 0; d < D; d++) square[i] += b->W[d * L + i / L] * b->W[d * L + i % L];
    }
    for (int64_t n = 0; n < b->n; n++) {
        for (int64_t l = 0; l < L; l++) {
            want[l] = 0;
            f[l] = 0.1 *
                   fth_random_uniform_at(s->seed, 0, SP_STREAM_TRANSFORM, (b->first + n) * L + l);
            for (int64_t e = ptr[n]; e < ptr[n + 1]; e++)
                want[l] += (double)y[e] * b->W[gene[e] * L + l];
        }
        for (int k = 0; k < UPDATES; k++) {
            double next[1024];
            for (int64_t l = 0; l < L; l++) {
                double sum = least;
                for (int64_t j = 0; j < L; j++) sum += f[j] * square[j * L + l];
                next[l] = f[l] * want[l] / sum;
            }
            memcpy(f, next, (size_t)L * sizeof *f);
        }
        const double size = size_of(b, n);
        for (int64_t l = 0; l < L; l++) b->rows[n * L + l] = (float)(f[order_of(b)[l]] / size);
    }
    (void)fth_mem_release(b->p->model->mem, room, NULL);
    return write_rows(b, &b->p->factors, err);
}

/* ---- the variational fit ---- */

static void set_value(fth_tensor *t, int64_t i, double v)
{
    if (fth_tensor_dtype(t) == FTH_F64)
        ((double *)fth_tensor_data(t))[i] = v;
    else
        ((float *)fth_tensor_data(t))[i] = (float)v;
}

static double get_value(fth_tensor *t, int64_t i)
{
    return fth_tensor_dtype(t) == FTH_F64 ? ((const double *)fth_tensor_data(t))[i]
                                          : (double)((const float *)fth_tensor_data(t))[i];
}

/* All factors of a cell start equal, such that its rates sum to its counts. */
static void start_cells(const block *b, sp_model *m)
{
    const int64_t L = m->set.n_components, *ptr = fth_tensor_data(b->counts.row_ptr);
    const float *y = fth_tensor_data(b->counts.value);
    double sum = 0;
    for (int64_t l = 0; l < L; l++) sum += b->sums[l];
    for (int64_t n = 0; n < b->n; n++) {
        double total = 0;
        for (int64_t e = ptr[n]; e < ptr[n + 1]; e++) total += (double)y[e];
        const double mean = log(total / size_of(b, n) / (sum + least) + least);
        for (int64_t l = 0; l < L; l++) {
            set_value(m->param[SP_P_MEAN], l * b->n + n, mean);
            set_value(m->param[SP_P_RAW], l * b->n + n, start_raw);
        }
    }
    for (int p = 0; p < SP_PARAMS; p++)
        for (int i = 0; i < 2; i++) {
            fth_tensor *t = i ? m->second[p] : m->first[p];
            if (t) memset(fth_tensor_data(t), 0, (size_t)fth_tensor_bytes(t));
        }
}

static fth_status take_steps(block *b, sp_step *st, fth_err *err)
{
    const fth_schedule cycle = {
        .kind = FTH_SCHEDULE_ONE_CYCLE, .rate = rate_most, .steps = ITERATIONS};
    FTH_TRY(sp_step_ask(st, NULL, err));
    FTH_TRY(sp_step_take(st, NULL, NULL, &b->counts, err));
    for (int64_t i = 0; i < ITERATIONS; i++)
        FTH_TRY(sp_step_run(st, fth_schedule_rate(&cycle, i), fth_schedule_momentum(&cycle, i, 0.9),
                            b->first / BLOCK * ITERATIONS + i, err));
    return FTH_OK;
}

static fth_status keep_block(block *b, sp_model *m, fth_err *err)
{
    const int64_t L = m->set.n_components;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < b->n * L; i++) {
            const int64_t at = order_of(b)[i % L] * b->n + i / L;
            const double raw = get_value(m->param[SP_P_RAW], at);
            b->rows[i] = (float)(pass == 0  ? exp(get_value(m->param[SP_P_MEAN], at))
                                 : raw > 30 ? raw
                                            : log1p(exp(raw)));
        }
        FTH_TRY(write_rows(b, pass == 0 ? &b->p->factors : &b->p->scales, err));
    }
    return FTH_OK;
}

/* NULL where all cells have size 1. */
static fth_status make_sizes(const block *b, sp_model *m, fth_tensor **out, fth_err *err)
{
    if (m->set.size_factors != SP_SIZE_TOTAL) return FTH_OK;
    FTH_TRY(fth_tensor_create(out, m->mem, "sizes of cells", m->real, 1, &b->n, err));
    for (int64_t n = 0; n < b->n; n++) set_value(*out, n, log(size_of(b, n)));
    return FTH_OK;
}

static fth_status fit_block(block *b, fth_err *err)
{
    fth_tensor *sizes = NULL;
    const sp_model *of = b->p->model;
    sp_settings set = of->set;
    sp_model m;
    sp_step st = {0};
    set.cells = set.batch_size = b->n;
    set.y_batch_size = set.genes;
    set.loadings_mode = SP_MULTIPLICATIVE; /* the parameter is W itself, not trained */
    set.optimizer = SP_ADAM;
    set.training_mode = SP_STANDARD; /* the optimum does not depend on how its model was trained */
    FTH_TRY(sp_model_create(&m, of->mem, &set, of->real, true, err));
    for (int64_t i = 0; i < set.genes * set.n_components; i++)
        set_value(m.param[SP_P_W], i, b->W[i]);
    if (m.param[SP_P_THETA])
        memcpy(fth_tensor_data(m.param[SP_P_THETA]), fth_tensor_data(of->param[SP_P_THETA]),
               (size_t)fth_tensor_bytes(m.param[SP_P_THETA]));
    start_cells(b, &m);
    fth_status s = make_sizes(b, &m, &sizes, err);
    const sp_step_options opt = {.ctx = b->p->ctx,
                                 .model = &m,
                                 .data = b->p->data,
                                 .counts = b->counts,
                                 .fixed_W = true,
                                 .fixed_theta = true,
                                 .log_size = sizes};
    if (s == FTH_OK) s = sp_step_open(&st, &opt, err);
    if (s == FTH_OK && b->p->answer)
        s = fth_answer_plan(b->p->answer, "a block of cells", st.plan, err);
    else if (s == FTH_OK)
        s = take_steps(b, &st, err);
    if (s == FTH_OK && !b->p->answer) s = keep_block(b, &m, err);
    sp_step_close(&st);
    fth_tensor_release(sizes);
    sp_model_clear(&m);
    return s;
}

/* ---- all blocks ---- */

static fth_status run_block(block *b, bool least_squares, fth_err *err)
{
    for (int64_t i = 0; i < b->n; i++) b->cell[i] = b->first + i;
    FTH_TRY(sp_reader_create(&b->reader, b->p->data, b->n, b->p->model->set.genes, 0, err));
    fth_status s = sp_reader_ask(b->reader, b->cell, NULL, err);
    if (s == FTH_OK) s = sp_reader_take(b->reader, &b->counts, err);
    if (b->p->answer && least_squares) {
        fth_mem_stats held;
        fth_mem_get_stats(b->p->model->mem, &held);
        b->p->held_bytes = held.used_bytes;
    } else if (s == FTH_OK)
        s = least_squares ? fit_squares(b, err) : fit_block(b, err);
    sp_reader_destroy(b->reader);
    return s;
}

static fth_status run_blocks(block *b, bool least_squares, fth_err *err)
{
    const sp_model *m = b->p->model;
    const int64_t cells = b->p->data->size.cells, L = m->set.n_components;
    for (int64_t i = 0; i < m->set.genes * L; i++) {
        b->W[i] = loading(m, i);
        b->sums[i % L] += b->W[i];
    }
    for (b->first = 0; b->first < cells; b->first += BLOCK) {
        b->n = cells - b->first < BLOCK ? cells - b->first : BLOCK;
        FTH_TRY(run_block(b, least_squares, err));
        if (b->p->answer) return FTH_OK; /* no block is larger than the first */
    }
    FTH_TRY(b->p->factors.commit(b->p->factors.self, err));
    return least_squares ? FTH_OK : b->p->scales.commit(b->p->scales.self, err);
}

fth_status sp_project_counts(sp_project *p, bool least_squares, fth_err *err)
{
    const sp_settings *s = &p->model->set;
    block b = {.p = p};
    const uint64_t L = (uint64_t)s->n_components, W = L * (uint64_t)s->genes * sizeof(double),
                   cells = BLOCK * sizeof(int64_t), rows = BLOCK * L * sizeof(float);
    if (L > 1024)
        return FTH_FAIL(err, FTH_E_USAGE, "a model of more than 1024 factors is not projected");
    void *room = NULL;
    FTH_TRY(fth_mem_take(p->model->mem, FTH_MEM_ANY, W + L * sizeof(double) + cells + rows,
                         "projection", &room, err));
    memset(room, 0, (size_t)(W + L * sizeof(double)));
    b.W = room;
    b.sums = b.W + L * (uint64_t)s->genes;
    b.cell = (int64_t *)(b.sums + L);
    b.rows = (float *)(b.cell + BLOCK);
    const fth_status st = run_blocks(&b, least_squares, err);
    (void)fth_mem_release(p->model->mem, room, NULL);
    return st;
}
