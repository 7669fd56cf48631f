/* loess.c - local quadratics at the vertices of a k-d tree, cubic Hermite polynomials between. */
#include "loess.h"

#include "../statistics/order.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BASIS = 3, LEAST = 4 }; /* 1, t, t^2; points of a neighbourhood, the last has no weight */

typedef struct loess {
    int64_t n, near;      /* points, and those of a neighbourhood */
    int64_t *order;       /* points by x */
    double *x, *y;        /* in that order */
    double *a[BASIS], *b; /* [near], weighted: the basis and y */
    double *at;           /* [vertices], ascending */
    double *value, *slope;
    int64_t vertices;
} loess;

/* Cells of at most this many points are not cut: span times 0.2, the customary share. */
static int64_t leaf_points(int64_t n, double span)
{
    return (int64_t)floor((double)n * (span * 0.2));
}

/* ---- memory ---- */

static uint64_t near_of(int64_t n, double span)
{
    int64_t near = (int64_t)floor((double)n * span + 1e-5);
    if (near < LEAST) near = LEAST;
    return (uint64_t)(near < n ? near : n);
}

enum { ARRAYS = 10 };
static void sizes(int64_t n, uint64_t near, uint64_t bytes[ARRAYS])
{
    const uint64_t m = (uint64_t)n, v = m + 2;
    const uint64_t each[ARRAYS] = {m, m, m, near, near, near, near, v, v, v};
    for (int i = 0; i < ARRAYS; i++) bytes[i] = each[i] * 8;
}

uint64_t sp_loess_bytes(int64_t n)
{
    uint64_t bytes[ARRAYS], sum = 0;
    sizes(n, (uint64_t)n, bytes);
    for (int i = 0; i < ARRAYS; i++) sum += bytes[i] + 4096;
    return sum;
}

/* ---- where it is fitted ---- */

/* The last point of the lower half: points of one x stay together where the cell has others. */
static int64_t middle(const loess *l, int64_t low, int64_t high)
{
    const int64_t mid = (low + high) / 2;
    for (int64_t k = 0; mid + k < high && mid + k >= low;) {
        if (l->x[mid + k] < l->x[mid + k + 1]) return mid + k;
        k = k > 0 ? -k : 1 - k; /* 0, 1, -1, 2, -2 ... */
    }
    return mid;
}

/* Cut points [low, high] in the middle until cells are small. Where a cell is cut is a vertex. */
static void cut(loess *l, int64_t low, int64_t high, double left, double right, int64_t leaf)
{
    while (high - low + 1 > leaf) {
        const int64_t mid = middle(l, low, high);
        const double t = l->x[mid];
        if (t <= left || t >= right) return;
        cut(l, low, mid, left, t, leaf);
        l->at[l->vertices++] = t;
        low = mid + 1;
        left = t;
    }
}

static void find_vertices(loess *l, double span)
{
    const double low = l->x[0], high = l->x[l->n - 1];
    const double range =
        fmax(high - low, fmax(fabs(low), fabs(high)) * 1e-10 + 1e-30); /* one x gives a box too */
    const double left = low - 0.005 * range, right = high + 0.005 * range;
    l->at[l->vertices++] = left;
    cut(l, 0, l->n - 1, left, right, leaf_points(l->n, span));
    l->at[l->vertices++] = right;
}

/* ---- a fit ---- */

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Weighted points around q, tricube of their distance; how many there are. */
static int64_t weigh(loess *l, double q)
{
    int64_t low = 0, m = 0;
    while (low + l->near < l->n && l->x[low + l->near] - q < q - l->x[low]) low++;
    const double rho = fmax(q - l->x[low], l->x[low + l->near - 1] - q);
    for (int64_t i = low; i < low + l->near; i++) {
        const double t = l->x[i] - q, r = fabs(t) / rho, cube = 1 - r * r * r;
        const double w = rho > 0 ? sqrt(cube * cube * cube) : 1;
        if (!(w > 0)) continue;
        l->a[0][m] = w;
        l->a[1][m] = w * t;
        l->a[2][m] = w * t * t;
        l->b[m++] = w * l->y[i];
    }
    return m;
}

/* Rotate columns i and k of A, and of V, until they are orthogonal; whether they were not. */
static bool rotate(loess *l, double v[BASIS][BASIS], int i, int k, int64_t m)
{
    double *a = l->a[i], *b = l->a[k];
    const double aa = dot(a, a, m), bb = dot(b, b, m), ab = dot(a, b, m);
    if (fabs(ab) <= 1e-15 * sqrt(aa * bb)) return false;
    const double z = (bb - aa) / (2 * ab);
    const double t = (z < 0 ? -1 : 1) / (fabs(z) + sqrt(1 + z * z));
    const double c = 1 / sqrt(1 + t * t), s = c * t;
    for (int64_t r = 0; r < m; r++) {
        const double p = a[r];
        a[r] = c * p - s * b[r];
        b[r] = s * p + c * b[r];
    }
    for (int r = 0; r < BASIS; r++) {
        const double p = v[r][i];
        v[r][i] = c * p - s * v[r][k];
        v[r][k] = s * p + c * v[r][k];
    }
    return true;
}

/* The least-squares solution of smallest norm in columns of norm 1, by the singular values of A:
 * points at fewer than three places do not determine a quadratic. */
static void fit_at(loess *l, int64_t vertex)
{
    enum { SWEEPS = 30 }; /* three columns need a few */
    double v[BASIS][BASIS] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, norm[BASIS], beta[BASIS] = {0};
    const int64_t m = weigh(l, l->at[vertex]);
    for (int k = 0; k < BASIS; k++) {
        norm[k] = sqrt(dot(l->a[k], l->a[k], m));
        for (int64_t r = 0; r < m && norm[k] > 0; r++) l->a[k][r] /= norm[k];
    }
    bool more = true;
    for (int sweep = 0; more && sweep < SWEEPS; sweep++) {
        more = rotate(l, v, 0, 1, m);
        more = rotate(l, v, 0, 2, m) || more;
        more = rotate(l, v, 1, 2, m) || more;
    }
    double square[BASIS], most = 0;
    for (int k = 0; k < BASIS; k++) most = fmax(most, square[k] = dot(l->a[k], l->a[k], m));
    for (int k = 0; k < BASIS; k++) {
        const double tolerance = 100 * DBL_EPSILON;
        if (!(sqrt(square[k]) > tolerance * sqrt(most))) continue;
        const double c = dot(l->a[k], l->b, m) / square[k];
        for (int r = 0; r < BASIS; r++) beta[r] += v[r][k] * c;
    }
    l->value[vertex] = norm[0] > 0 ? beta[0] / norm[0] : 0;
    l->slope[vertex] = norm[1] > 0 ? beta[1] / norm[1] : 0;
}

/* ---- everywhere ---- */

/* The cubic with values and slopes of the vertices on both sides. */
static double between(const loess *l, int64_t k, double x)
{
    const double wide = l->at[k + 1] - l->at[k], h = (x - l->at[k]) / wide, g = 1 - h;
    return g * g * (1 + 2 * h) * l->value[k] + h * h * (3 - 2 * h) * l->value[k + 1] +
           (h * g * g * l->slope[k] - h * h * g * l->slope[k + 1]) * wide;
}

fth_status sp_loess(fth_mem *mem, int64_t n, const double *x, const double *y, double span,
                    double *fitted, fth_err *err)
{
    loess l = {.n = n, .near = (int64_t)near_of(n, span)};
    uint64_t bytes[ARRAYS];
    void *block[ARRAYS] = {NULL};
    fth_status s = FTH_OK;
    if (n < 1) return FTH_OK;
    sizes(n, (uint64_t)l.near, bytes);
    for (int i = 0; s == FTH_OK && i < ARRAYS; i++)
        s = fth_mem_take(mem, FTH_MEM_ANY, bytes[i], "local regression", &block[i], err);
    if (s == FTH_OK) {
        l.order = block[0];
        l.x = block[1];
        l.y = block[2];
        for (int k = 0; k < BASIS; k++) l.a[k] = block[3 + k];
        l.b = block[6];
        l.at = block[7];
        l.value = block[8];
        l.slope = block[9];
        sp_order(l.order, x, n, false);
        for (int64_t i = 0; i < n; i++) {
            l.x[i] = x[l.order[i]];
            l.y[i] = y[l.order[i]];
        }
        find_vertices(&l, span);
        for (int64_t k = 0; k < l.vertices; k++) fit_at(&l, k);
        for (int64_t i = 0, k = 0; i < n; i++) {
            while (k + 2 < l.vertices && l.x[i] > l.at[k + 1]) k++;
            fitted[l.order[i]] = between(&l, k, l.x[i]);
        }
    }
    for (int i = 0; i < ARRAYS; i++) (void)fth_mem_release(mem, block[i], NULL);
    return s;
}
