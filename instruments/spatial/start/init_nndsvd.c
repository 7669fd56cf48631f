/* init_nndsvd.c - non-negative double SVD of the counts, without a matrix of cells by genes (model
 * 13.3).
 *
 * Randomised subspace iteration: the right singular vectors are found in the span of (Y^T Y)^7
 * times a random block of factors + 10 columns; one product with Y^T Y is one pass over the rows.
 * Within the block the problem is a small symmetric one. Y V = U S, which is what the reference
 * takes for U.
 */
#include "init_parts.h"

#include <math.h>
#include <string.h>

enum { MORE = 10, POWERS = 7, SWEEPS = 60 };
static const double nothing = 1e-6; /* smaller values become 0 */

typedef struct svd {
    const sp_init_parts *p;
    int64_t k;        /* columns of the block */
    double *Q, *Z;    /* [gene][k] */
    double *small;    /* [k][k] */
    double *turn;     /* [k][k]: its eigenvectors, by columns */
    double *row;      /* [k] */
    int64_t *order;   /* of the eigenvalues, descending */
    double *positive; /* [factor]: squared lengths of parts of Y V */
    double *negative;
} svd;

/* ---- small matrices ---- */

/* Gram-Schmidt, twice for accuracy; columns that depend on others become 0. */
static void orthonormalize(double *Q, int64_t n, int64_t k)
{
    for (int64_t j = 0; j < k; j++) {
        double before = 0.0, after = 0.0;
        for (int64_t g = 0; g < n; g++) before += Q[g * k + j] * Q[g * k + j];
        for (int again = 0; again < 2; again++)
            for (int64_t i = 0; i < j; i++) {
                double dot = 0.0;
                for (int64_t g = 0; g < n; g++) dot += Q[g * k + i] * Q[g * k + j];
                for (int64_t g = 0; g < n; g++) Q[g * k + j] -= dot * Q[g * k + i];
            }
        for (int64_t g = 0; g < n; g++) after += Q[g * k + j] * Q[g * k + j];
        const double scale = after > 1e-24 * before ? 1.0 / sqrt(after) : 0.0;
        for (int64_t g = 0; g < n; g++) Q[g * k + j] *= scale;
    }
}

/* A Jacobi rotation of rows and columns i and j of the symmetric a, and columns of v, that makes
 * a[i][j] 0. */
static void rotate(double *a, double *v, int64_t k, int64_t i, int64_t j)
{
    const double off = a[i * k + j];
    if (fabs(off) <= 1e-300) return;
    const double theta = (a[j * k + j] - a[i * k + i]) / (2.0 * off);
    const double t = (theta >= 0.0 ? 1.0 : -1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
    const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
    for (int64_t m = 0; m < k; m++) {
        const double x = a[m * k + i], y = a[m * k + j];
        a[m * k + i] = c * x - s * y;
        a[m * k + j] = s * x + c * y;
    }
    for (int64_t m = 0; m < k; m++) {
        const double x = a[i * k + m], y = a[j * k + m];
        a[i * k + m] = c * x - s * y;
        a[j * k + m] = s * x + c * y;
    }
    for (int64_t m = 0; m < k; m++) {
        const double x = v[m * k + i], y = v[m * k + j];
        v[m * k + i] = c * x - s * y;
        v[m * k + j] = s * x + c * y;
    }
}

/* Eigenvalues of a to its diagonal, vectors to the columns of v (Jacobi). */
static void eigen(double *a, double *v, int64_t k)
{
    for (int64_t i = 0; i < k * k; i++) v[i] = i % (k + 1) == 0 ? 1.0 : 0.0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double off = 0.0, all = 0.0;
        for (int64_t i = 0; i < k * k; i++) {
            all += a[i] * a[i];
            if (i % (k + 1) != 0) off += a[i] * a[i];
        }
        if (off <= 1e-32 * all) return;
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = i + 1; j < k; j++) rotate(a, v, k, i, j);
    }
}

/* ---- walks ---- */

static void add_gram(void *user, const sp_walk_row *r)
{
    svd *s = user;
    const int64_t k = s->k;
    memset(s->row, 0, (size_t)k * sizeof *s->row);
    for (int64_t i = 0; i < r->n; i++) {
        const double y = (double)r->value[i], *q = s->Q + r->gene[i] * k;
        for (int64_t j = 0; j < k; j++) s->row[j] += y * q[j];
    }
    for (int64_t i = 0; i < r->n; i++) {
        const double y = (double)r->value[i];
        double *z = s->Z + r->gene[i] * k;
        for (int64_t j = 0; j < k; j++) z[j] += y * s->row[j];
    }
}

/* Z = Y^T Y Q */
static fth_status gram(svd *s, fth_err *err)
{
    memset(s->Z, 0, (size_t)(s->p->genes * s->k) * sizeof *s->Z);
    return sp_walk_each(s->p->walk, add_gram, s, err);
}

/* Rows of F = Y V, and the lengths of the parts of its columns. V is p->W. */
static void project(void *user, const sp_walk_row *r)
{
    svd *s = user;
    const int64_t L = s->p->factors;
    double *x = s->p->F + r->cell * L;
    memset(x, 0, (size_t)L * sizeof *x);
    for (int64_t i = 0; i < r->n; i++) {
        const double y = (double)r->value[i], *v = s->p->W + r->gene[i] * L;
        for (int64_t l = 0; l < L; l++) x[l] += y * v[l];
    }
    for (int64_t l = 0; l < L; l++)
        *(x[l] > 0.0 ? &s->positive[l] : &s->negative[l]) += x[l] * x[l];
}

/* ---- vectors to parts ---- */

/* Column l: x becomes scale max(sign x, 0), or scale |x| when sign is 0. */
static void part(double *x, int64_t n, int64_t L, int64_t l, double sign, double scale)
{
    for (int64_t i = 0; i < n; i++) {
        double *at = &x[i * L + l];
        *at = scale * (sign == 0.0 ? fabs(*at) : fmax(sign * *at, 0.0));
        if (!(*at >= nothing)) *at = 0.0;
    }
}

/* Singular value l, and the vector Y V of it in F: the larger of the two parts of each. */
static void column(const svd *s, int64_t l, double value)
{
    const sp_init_parts *p = s->p;
    double up = 0.0, down = 0.0;
    for (int64_t g = 0; g < p->genes; g++) {
        const double v = p->W[g * p->factors + l];
        *(v > 0.0 ? &up : &down) += v * v;
    }
    const double plus = sqrt(s->positive[l] * up), minus = sqrt(s->negative[l] * down);
    const bool pick = plus > minus;
    const double sigma = pick ? plus : minus, weight = sqrt(value * sigma);
    const double f = sqrt(pick ? s->positive[l] : s->negative[l]), w = sqrt(pick ? up : down);
    const double sign = l == 0 ? 0.0 : pick ? 1.0 : -1.0;
    const double first = sqrt(value);
    part(p->F, p->cells, p->factors, l, sign, l == 0 ? first : f > 0.0 ? weight / f : 0.0);
    part(p->W, p->genes, p->factors, l, sign, l == 0 ? first : w > 0.0 ? weight / w : 0.0);
}

/* Fill zeros with the mean, or with noise of a hundredth of it. */
static void fill(const sp_init_parts *p, double *x, int64_t n, int64_t stream)
{
    if (p->kind == SP_INIT_NNDSVD) return;
    for (int64_t i = 0; i < n; i++)
        if (x[i] == 0.0)
            x[i] = p->kind == SP_INIT_NNDSVDA
                       ? p->mean
                       : p->mean * fabs(fth_random_normal_at(p->seed, 0, stream, i)) / 100.0;
}

/* ---- all of it ---- */

static int64_t columns(int64_t cells, int64_t genes, int64_t factors)
{
    const int64_t least = cells < genes ? cells : genes;
    return factors + MORE < least ? factors + MORE : least;
}

uint64_t sp_init_nndsvd_bytes(int64_t cells, int64_t genes, int64_t factors)
{
    const int64_t k = columns(cells, genes, factors);
    return 8 * (uint64_t)(2 * genes * k + 2 * k * k + 2 * k + 2 * factors) + 4096;
}

static fth_status make(svd *s, fth_err *err)
{
    const sp_init_parts *p = s->p;
    const int64_t k = s->k = columns(p->cells, p->genes, p->factors);
    const uint64_t bytes = sp_init_nndsvd_bytes(p->cells, p->genes, p->factors);
    void *block = NULL;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, bytes, "svd", &block, err));
    s->Q = block;
    s->Z = s->Q + p->genes * k;
    s->small = s->Z + p->genes * k;
    s->turn = s->small + k * k;
    s->row = s->turn + k * k;
    s->positive = s->row + k;
    s->negative = s->positive + p->factors;
    s->order = (int64_t *)(void *)(s->negative + p->factors);
    memset(s->positive, 0, 2 * (size_t)p->factors * sizeof(double));
    return FTH_OK;
}

/* Q^T Z, with Z = Y^T Y Q, and its eigenvalues in descending order. */
static void solve_small(svd *s)
{
    const int64_t k = s->k;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0.0;
            for (int64_t g = 0; g < s->p->genes; g++) sum += s->Q[g * k + i] * s->Z[g * k + j];
            s->small[i * k + j] = s->small[j * k + i] = sum;
        }
    eigen(s->small, s->turn, k);
    for (int64_t i = 0; i < k; i++) { /* insertion: k is small */
        int64_t at = i;
        for (; at > 0 && s->small[s->order[at - 1] * (k + 1)] < s->small[i * (k + 1)]; at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = i;
    }
}

fth_status sp_init_nndsvd(const sp_init_parts *p, fth_err *err)
{
    svd s = {.p = p};
    FTH_TRY(make(&s, err));
    const int64_t k = s.k, L = p->factors;
    fth_status status = FTH_OK;
    for (int64_t i = 0; i < p->genes * k; i++)
        s.Q[i] = fth_random_normal_at(p->seed, 1, SP_STREAM_W, i);
    orthonormalize(s.Q, p->genes, k);
    for (int i = 0; status == FTH_OK && i < POWERS; i++) {
        status = gram(&s, err);
        memcpy(s.Q, s.Z, (size_t)(p->genes * k) * sizeof *s.Q);
        orthonormalize(s.Q, p->genes, k);
    }
    if (status == FTH_OK) status = gram(&s, err);
    if (status == FTH_OK) {
        solve_small(&s);
        for (int64_t g = 0; g < p->genes; g++)
            for (int64_t l = 0; l < L; l++) {
                double v = 0.0;
                for (int64_t j = 0; j < k; j++) v += s.Q[g * k + j] * s.turn[j * k + s.order[l]];
                p->W[g * L + l] = v;
            }
        status = sp_walk_each(p->walk, project, &s, err);
    }
    for (int64_t l = 0; status == FTH_OK && l < L; l++)
        column(&s, l, sqrt(fmax(s.small[s.order[l] * (k + 1)], 0.0)));
    if (status == FTH_OK) {
        fill(p, p->F, p->cells * L, SP_STREAM_F);
        fill(p, p->W, p->genes * L, SP_STREAM_W);
    }
    (void)fth_mem_release(p->mem, s.Q, NULL);
    return status;
}
