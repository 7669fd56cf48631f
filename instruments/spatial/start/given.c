/* given.c - see given.h.
 *
 * Given W, the Poisson likelihood is concave in the factors of a cell: multiplicative updates from
 * any positive start reach its maximum, so the start values depend on nothing but counts and W.
 */
#include "given.h"

#include "../prior/loadings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { UPDATES = 100, FEW = 10 };        /* of a cell's factors: at most, and for large data */
static const double work = 2e9;          /* limit of stored counts x factors over all updates */
static const double tiny = 1e-300;       /* a rate below it explains nothing */
static const double least_factor = 1e-2; /* of the mean over cells, added: logarithms are finite */

/* ---- the file ---- */

static fth_status check_shape(const fth_source *src, const sp_settings *s, const char *path,
                              fth_err *err)
{
    const bool real = src->dtype == FTH_F32 || src->dtype == FTH_F64;
    if (real && src->n_axes == 2 && src->size[0] == s->genes && src->size[1] == sp_factors(s))
        return FTH_OK;
    char found[96] = "";
    for (int a = 0; a < src->n_axes && a < 3; a++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%" PRId64, a ? " " : "",
                 src->size[a]);
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "%s: loadings f32 or f64 [%" PRId64 " %" PRId64 "] were expected, %s [%s] was "
                 "found",
                 path, s->genes, sp_factors(s), fth_dtype_name(src->dtype), found);
    fth_err_hint(err,
                 "model.loadings_file has a row for each gene of %s/%s, in its order, and "
                 "a column for each of model.n_components%s",
                 SP_PREPROCESSED, SP_METADATA,
                 sp_is_hybrid(s) ? ", then one for each of model.nonspatial_components" : "");
    return status;
}

static fth_status check_values(const double *W, const sp_settings *s, const char *path,
                               fth_err *err)
{
    const int64_t L = sp_factors(s);
    for (int64_t i = 0; i < s->genes * L; i++)
        if (!(isfinite(W[i]) && W[i] >= 0))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: the loading of gene %" PRId64 " in factor %" PRId64
                            " is %g; finite numbers from 0 are expected",
                            path, i / L, i % L, W[i]);
    for (int64_t l = 0; l < L; l++) {
        double sum = 0;
        for (int64_t g = 0; g < s->genes; g++) sum += W[g * L + l];
        if (!(sum > 0))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: all loadings of factor %" PRId64 " are 0; leave the factor out",
                            path, l);
    }
    return FTH_OK;
}

static fth_status load(double *W, fth_source *src, const sp_model *m, const char *path,
                       fth_err *err)
{
    const int64_t n = m->set.genes * sp_factors(&m->set);
    fth_tensor *t = NULL;
    FTH_TRY(check_shape(src, &m->set, path, err));
    FTH_TRY(fth_source_load(src, m->mem, "loadings of the file", &t, err));
    const void *data = fth_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        W[i] = src->dtype == FTH_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
    fth_tensor_release(t);
    return check_values(W, &m->set, path, err);
}

fth_status sp_loadings_read(sp_model *m, const char *path, fth_err *err)
{
    const int64_t n = m->set.genes * sp_factors(&m->set);
    fth_source src = {0};
    void *block = NULL;
    FTH_TRY(fth_npy_open(&src, m->mem, path, err));
    fth_status s = fth_mem_take(m->mem, FTH_MEM_ANY, 8 * (uint64_t)n, "loadings", &block, err);
    if (s == FTH_OK) s = load(block, &src, m, path, err);
    const double *W = block;
    void *to = s == FTH_OK ? fth_tensor_data(m->param[SP_P_W]) : NULL;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        const double raw = sp_loadings_raw((sp_loadings)m->set.loadings_mode, W[i]);
        if (m->real == FTH_F64)
            ((double *)to)[i] = raw;
        else
            ((float *)to)[i] = (float)raw;
    }
    if (block) (void)fth_mem_release(m->mem, block, NULL);
    fth_source_close(&src);
    return s;
}

/* ---- factors ---- */

typedef struct given {
    const sp_init_parts *p;
    double *column; /* [factor]: sums of the columns of W */
    double *next;   /* [factor] */
    int updates;
} given;

/* f <- f (W^T (y / rate)) / (W^T 1), from equal factors with the cell's total. */
static void fit_cell(void *user, const sp_walk_row *r)
{
    given *s = user;
    const int64_t L = s->p->factors;
    double *f = s->p->F + r->cell * L, total = 0, all = 0;
    for (int64_t i = 0; i < r->n; i++) total += (double)r->value[i];
    for (int64_t l = 0; l < L; l++) all += s->column[l];
    for (int64_t l = 0; l < L; l++) f[l] = total / all;
    for (int k = 0; k < s->updates && total > 0; k++) {
        memset(s->next, 0, (size_t)L * sizeof *s->next);
        for (int64_t i = 0; i < r->n; i++) {
            const double *w = s->p->W + r->gene[i] * L;
            double rate = 0;
            for (int64_t l = 0; l < L; l++) rate += f[l] * w[l];
            if (!(rate > tiny)) continue;
            for (int64_t l = 0; l < L; l++) s->next[l] += (double)r->value[i] / rate * w[l];
        }
        for (int64_t l = 0; l < L; l++) f[l] *= s->next[l] / s->column[l];
    }
}

/* The scale of W stays, so logarithms are not centred as those of init: nmf are. */
static void take_logs(const sp_init_parts *p)
{
    const int64_t L = p->factors;
    for (int64_t l = 0; l < L; l++) {
        double size = 0;
        for (int64_t i = 0; i < p->cells; i++) size += p->F[i * L + l] / (double)p->cells;
        for (int64_t i = 0; i < p->cells; i++) {
            double *f = &p->F[i * L + l];
            *f = log(size > 0 ? *f + least_factor * size : least_factor);
        }
    }
}

static double loading(const sp_model *m, int64_t i)
{
    const void *W = fth_tensor_data(m->param[SP_P_W]);
    const double raw = m->real == FTH_F64 ? ((const double *)W)[i] : (double)((const float *)W)[i];
    const sp_loadings mode = (sp_loadings)m->set.loadings_mode;
    return mode == SP_LOADINGS_EXP        ? exp(raw)
           : mode == SP_LOADINGS_SOFTPLUS ? (raw > 30 ? raw : log1p(exp(raw)))
                                          : raw;
}

fth_status sp_init_given(const sp_init_parts *p, const sp_model *m, fth_err *err)
{
    const int64_t L = p->factors;
    void *block = NULL;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, 16 * (uint64_t)L, "factors of a cell", &block, err));
    given s = {.p = p, .column = memset(block, 0, 16 * (size_t)L), .next = (double *)block + L};
    for (int64_t i = 0; i < p->genes * L; i++) {
        p->W[i] = loading(m, i);
        s.column[i % L] += p->W[i];
    }
    const double afford = work / ((double)p->walk->data->size.entries * (double)L + 1);
    s.updates = afford > UPDATES ? UPDATES : afford > FEW ? (int)afford : FEW;
    const fth_status status = sp_walk_each(p->walk, fit_cell, &s, err);
    (void)fth_mem_release(p->mem, block, NULL);
    if (status == FTH_OK) take_logs(p);
    return status;
}
