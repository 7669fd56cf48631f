/* local_plain.c - the linear system of one cell as plain loops: the reference of the vectorised
 * ones. */
#include "local.h"

#include <math.h>

/* By columns of LANES rows in the widest vector, for all loops alike: the matrix, and six vectors.
 */
int64_t sp_local_room(int64_t k, int64_t asked, int64_t r)
{
    const int64_t p = (k + asked + 7) / 8 * 8;
    return p * p + 6 * p + (p + 4) * ((r + 7) / 8 * 8);
}

/* The same, and the slopes of the matrix. */
int64_t sp_local_tangent_room(int64_t k)
{
    const int64_t p = (k + 1 + 7) / 8 * 8;
    return sp_local_room(k, 1, 0) + p * p;
}

void sp_local_table_fill(sp_local_table *t, double *room, const sp_local_cov *cov, int64_t groups,
                         const double *distance)
{
    static const double root[] = {
#define SP_KERNEL(id, name, root, power) root,
#include "../../kernels.def"
#undef SP_KERNEL
    };
    static const double power[] = {
#define SP_KERNEL(id, name, root, power) power,
#include "../../kernels.def"
#undef SP_KERNEL
    };
    *t = (sp_local_table){.groups = groups,
                          .scale_gain = room,
                          .kernel = (sp_kernel)cov->kernel,
                          .sigma2 = cov->sigma * cov->sigma,
                          .jitter = cov->jitter};
    for (int64_t g = 0; g < groups; g++)
        for (int64_t h = 0; h < groups; h++) {
            const double d2 = distance ? distance[g * groups + h] : g == h ? 0 : 1.000002;
            const double nu = 1 / (fabs(cov->alpha) * d2 + 1);
            double *pair = room + SP_LOCAL_PAIR * (g * groups + h);
            pair[0] = root[cov->kernel] / fabs(cov->lengthscale) * sqrt(nu);
            pair[1] = t->sigma2 * pow(nu, power[cov->kernel]);
        }
}

static double covariance(const sp_local_table *t, const float *a, int32_t g, const float *b,
                         int32_t h)
{
    const double *pair = t->scale_gain + SP_LOCAL_PAIR * (t->groups * g + h);
    const double dx = (double)a[0] - (double)b[0], dy = (double)a[1] - (double)b[1],
                 d2 = dx * dx + dy * dy;
    if (t->kernel == SP_RBF) return pair[1] * exp(-0.5 * d2 * pair[0] * pair[0]);
    const double v = sqrt(d2 + 1e-12) * pair[0];
    return pair[1] * (t->kernel == SP_MATERN32 ? 1 + v : 1 + v + v * v / 3) * exp(-v);
}

/* Its slope in ln lengthscale (model 19.2a). */
static double slope(const sp_local_table *t, const float *a, int32_t g, const float *b, int32_t h)
{
    const double *pair = t->scale_gain + SP_LOCAL_PAIR * (t->groups * g + h);
    const double dx = (double)a[0] - (double)b[0], dy = (double)a[1] - (double)b[1],
                 d2 = dx * dx + dy * dy;
    if (t->kernel == SP_RBF) {
        const double v2 = d2 * pair[0] * pair[0];
        return pair[1] * v2 * exp(-0.5 * v2);
    }
    const double v = sqrt(d2 + 1e-12) * pair[0];
    return pair[1] * v * v * (t->kernel == SP_MATERN32 ? 1 : (1 + v) / 3) * exp(-v);
}

/* Lower factor of m [n][n] in place. */
static bool factor(double *m, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            double sum = m[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= m[i * n + k] * m[j * n + k];
            if (i == j && !(sum > 0)) return false;
            m[i * n + j] = i == j ? sqrt(sum) : sum / m[j * n + j];
        }
    return true;
}

/* x of L L^T x = x. */
static void solve(const double *l, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) x[i] -= l[i * n + k] * x[k];
        x[i] /= l[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) x[i] -= l[k * n + i] * x[k];
        x[i] /= l[i * n + i];
    }
}

static bool weights(const sp_local_cell *c, double *room, double *a, double *var)
{
    const sp_local_table *t = c->table;
    const int64_t k = c->k;
    double *m = room, *kx = room + k * k;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            const int64_t u = c->nbr[i], v = c->nbr[j];
            m[i * k + j] = i == j
                               ? t->sigma2 + t->jitter
                               : covariance(t, c->Z + u * c->Z_step, c->group ? c->groupsZ[u] : 0,
                                            c->Z + v * c->Z_step, c->group ? c->groupsZ[v] : 0);
        }
    if (!factor(m, k)) return false;
    for (int64_t q = 0; q < c->asked; q++, a += k) {
        for (int64_t i = 0; i < k; i++) {
            const int64_t u = c->nbr[i];
            a[i] = kx[i] = covariance(t, c->Z + u * c->Z_step, c->group ? c->groupsZ[u] : 0, c->at,
                                      c->group ? c->group[q] : 0);
        }
        solve(m, k, a);
        var[q] = t->sigma2;
        for (int64_t i = 0; i < k; i++) var[q] -= kx[i] * a[i];
    }
    return true;
}

/* da = (K + jitter)^-1 (dk - dK a). */
static bool tangent(const sp_local_cell *c, double *room, double *a, double *var, double *da)
{
    if (!weights(c, room, a, var)) return false;
    for (int64_t i = 0; i < c->k; i++) {
        const float *x = c->Z + c->nbr[i] * c->Z_step;
        const int32_t g = c->group ? c->groupsZ[c->nbr[i]] : 0;
        da[i] = slope(c->table, x, g, c->at, c->group ? c->group[0] : 0);
        for (int64_t j = 0; j < c->k; j++)
            if (i != j)
                da[i] -= a[j] * slope(c->table, x, g, c->Z + c->nbr[j] * c->Z_step,
                                      c->group ? c->groupsZ[c->nbr[j]] : 0);
    }
    solve(room, c->k, da);
    return true;
}

static double at(const void *row, bool single, int64_t i)
{
    return single ? (double)((const float *)row)[i] : ((const double *)row)[i];
}

static void put(void *row, bool single, int64_t i, double x)
{
    if (single)
        ((float *)row)[i] = (float)x;
    else
        ((double *)row)[i] = x;
}

static double clamped(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void terms(sp_local_term *t, double *room)
{
    const int64_t k = t->k, r = t->r;
    const bool single = t->single;
    double *m = room, *h = m + k * k;
#define LAM(i, c) at(t->lam, single, (i)*t->lam_step + (c))
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j <= i; j++) {
            m[i * k + j] = i == j ? t->jitter : 0;
            for (int64_t c = 0; c < r; c++) m[i * k + j] += LAM(t->nbr[i], c) * LAM(t->nbr[j], c);
        }
        h[i] = 0;
        for (int64_t c = 0; c < r; c++) h[i] += LAM(t->nbr[i], c) * LAM(t->cell, c);
    }
    if (factor(m, k))
        solve(m, k, h);
    else
        for (int64_t i = 0; i < k; i++) h[i] = (double)NAN;
    double cq = 0, trace = 0, d = at(t->mu, single, t->cell);
    for (int64_t i = 0; i < k; i++) {
        const double a = at(t->a, single, i);
        cq += t->jitter * h[i] * h[i];
        trace += t->jitter * a * a;
        d -= a * at(t->mu, single, t->nbr[i]);
        if (t->h) put(t->h, single, i, h[i]);
    }
    double *eq = h + k, *ep = eq + r;
    for (int64_t c = 0; c < r; c++) {
        eq[c] = ep[c] = LAM(t->cell, c);
        for (int64_t i = 0; i < k; i++) {
            eq[c] -= LAM(t->nbr[i], c) * h[i];
            ep[c] -= LAM(t->nbr[i], c) * at(t->a, single, i);
        }
        cq += eq[c] * eq[c];
        trace += ep[c] * ep[c];
    }
#undef LAM
    const double by_q = cq < 1e-6 || cq > 100 ? 0 : 1 / cq;
    for (int64_t c = 0; c < r; c++) {
        if (t->eq) put(t->eq, single, c, eq[c] * by_q);
        if (t->ep) put(t->ep, single, c, ep[c] / t->cp);
    }
    t->d = d / t->cp;
    t->kl = 0.5 * (log(t->cp) - log(clamped(cq, 1e-6, 100)) - 1 + (d * d + trace) / t->cp);
}

static void predict(sp_local_term *t, double *room)
{
    (void)room;
    double f = 0, s2 = t->cp;
    for (int64_t i = 0; i < t->k; i++) {
        const double a = at(t->a, t->single, i);
        f += a * at(t->mu, t->single, t->nbr[i]);
        s2 += t->jitter * a * a;
    }
    for (int64_t c = 0; c < t->r; c++) {
        double u = 0;
        for (int64_t i = 0; i < t->k; i++)
            u += at(t->lam, t->single, t->nbr[i] * t->lam_step + c) * at(t->a, t->single, i);
        s2 += u * u;
    }
    t->f = f;
    t->s = sqrt(clamped(s2, 0, 100));
}

static double norm2(const void *row, bool single, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += at(row, single, i) * at(row, single, i);
    return sum;
}

static void touch(sp_local_touch *t, double *room)
{
    const bool single = t->single;
    for (int64_t c = 0; c < t->r; c++) room[c] = 0;
    t->slope_mu = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const int64_t b = t->item[i] / (t->k + 1), slot = t->item[i] % (t->k + 1);
        const bool own = slot == t->k;
        const double d = at(t->d, single, b), a = own ? -1 : at(t->a, single, b * t->a_step + slot),
                     h = own ? -1 : at(t->h, single, b * t->h_step + slot);
        for (int64_t c = 0; c < t->r; c++)
            room[c] += t->weight * (h * at(t->eq, single, b * t->eq_step + c) -
                                    a * at(t->ep, single, b * t->ep_step + c));
        t->slope_mu -= t->weight * a * d;
        if (!own) continue;
        t->slope_mu += at(t->gf, single, b);
        const double s2 = norm2(t->lam, single, t->r);
        for (int64_t c = 0; s2 >= 1e-3 && s2 <= 100 && c < t->r; c++)
            room[c] += at(t->gs, single, b) * at(t->lam, single, c) / sqrt(s2);
    }
    for (int64_t c = 0; t->slope && c < t->r; c++) put(t->slope, single, c, room[c]);
}

const sp_local_loops sp_local_plain = {weights, tangent, terms, predict, touch, norm2};
