/* opr.c - orthogonal probe relaxation: eigenprobes and the shares of patterns between epochs.
 *
 * The first mode of pattern j is w_j0 P + sum of w_jq E_q. Eigenprobes start as noise beside the
 * probe, and are made orthogonal after each epoch, the strongest first; shares far off are cut.
 */
#include "random.h"
#include "solver.h"

#include <math.h>
#include <stdlib.h>

enum { DRAW_EIGEN = 16, DRAW_SHARE };

fth_status pt_opr_create(pt_solver *s, fth_err *err)
{
    const int64_t q = s->opt.opr, size[4] = {q, 2, s->n, s->n};
    void *block = NULL;
    FTH_TRY(fth_tensor_create(&s->eigen, s->mem, "eigenprobes", s->real, 4, size, err));
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY,
                         (uint64_t)(s->data.patterns * (q + 1)) * sizeof(double), "shares", &block,
                         err));
    s->shares = block;
    return FTH_OK;
}

void pt_opr_destroy(pt_solver *s)
{
    fth_tensor_release(s->eigen);
    fth_mem_release(s->mem, s->shares, NULL);
    s->eigen = NULL;
    s->shares = NULL;
}

/* ---- eigenprobes ---- */

/* Subtract the projection on another field; returns the mean square of the rest. */
static double remove_part(const pt_solver *s, void *e, const void *f)
{
    const int64_t nn = s->n * s->n;
    double re = 0, im = 0, norm = 0, left = 0;
    for (int64_t i = 0; f && i < nn; i++) {
        const double fr = pt_get(f, s->real, i), fi = pt_get(f, s->real, nn + i),
                     er = pt_get(e, s->real, i), ei = pt_get(e, s->real, nn + i);
        re += fr * er + fi * ei;
        im += fr * ei - fi * er;
        norm += fr * fr + fi * fi;
    }
    for (int64_t i = 0; i < nn; i++) {
        double er = pt_get(e, s->real, i), ei = pt_get(e, s->real, nn + i);
        if (norm > 0) {
            const double fr = pt_get(f, s->real, i), fi = pt_get(f, s->real, nn + i);
            er -= (re * fr - im * fi) / norm;
            ei -= (re * fi + im * fr) / norm;
            pt_put(e, s->real, i, er);
            pt_put(e, s->real, nn + i, ei);
        }
        left += er * er + ei * ei;
    }
    return left / (double)nn;
}

static void *eigen_at(pt_solver *s, int64_t q)
{
    return (char *)fth_tensor_data(s->eigen) + q * 2 * s->n * s->n * fth_dtype_size(s->real);
}

static void scale(const pt_solver *s, void *e, double by)
{
    for (int64_t i = 0; i < 2 * s->n * s->n; i++) pt_put(e, s->real, i, by * pt_get(e, s->real, i));
}

void pt_opr_start(pt_solver *s)
{
    const int64_t q = s->opt.opr, all = 2 * s->n * s->n, m = s->data.patterns;
    for (int64_t k = 0; k < q; k++) {
        void *e = eigen_at(s, k);
        for (int64_t i = 0; i < all; i++)
            pt_put(e, s->real, i, pt_draw_normal(s->opt.seed, DRAW_EIGEN, k * all + i));
        double square = remove_part(s, e, fth_tensor_view(s->probe));
        for (int64_t j = 0; j < k; j++) square = remove_part(s, e, eigen_at(s, j));
        scale(s, e, square > 0 ? 1 / sqrt(square) : 0);
    }
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k <= q; k++)
            s->shares[j * (q + 1) + k] =
                k ? 0.1 * pt_draw_normal(s->opt.seed, DRAW_SHARE, j * q + k - 1) : 1;
}

/* ---- between epochs ---- */

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Clip shares at 1.5 times their 95th percentile. */
static void clip_shares(pt_solver *s, int64_t column, double *room)
{
    const int64_t m = s->data.patterns, columns = s->opt.opr + 1;
    for (int64_t j = 0; j < m; j++) room[j] = fabs(s->shares[j * columns + column]);
    qsort(room, (size_t)m, sizeof *room, compare_reals);
    const double most = 1.5 * room[(int64_t)(0.95 * (double)(m - 1))];
    for (int64_t j = 0; j < m; j++) {
        double *v = &s->shares[j * columns + column];
        *v = *v > most ? most : *v < -most ? -most : *v;
    }
}

static double power_of(const pt_solver *s, int64_t column)
{
    double sum = 0;
    for (int64_t j = 0; j < s->data.patterns; j++) {
        const double v = s->shares[j * (s->opt.opr + 1) + column];
        sum += v * v;
    }
    return sum;
}

/* The eigenprobe with the larger shares comes first. */
static void sort_eigen(pt_solver *s)
{
    const int64_t q = s->opt.opr, all = 2 * s->n * s->n;
    for (int64_t a = 0; a < q; a++)
        for (int64_t b = a + 1; b < q; b++) {
            if (!(power_of(s, b + 1) > power_of(s, a + 1))) continue;
            void *x = eigen_at(s, a), *y = eigen_at(s, b);
            for (int64_t i = 0; i < all; i++) {
                const double t = pt_get(x, s->real, i);
                pt_put(x, s->real, i, pt_get(y, s->real, i));
                pt_put(y, s->real, i, t);
            }
            for (int64_t j = 0; j < s->data.patterns; j++) {
                double *v = s->shares + j * (q + 1), t = v[a + 1];
                v[a + 1] = v[b + 1];
                v[b + 1] = t;
            }
        }
}

/* E_k becomes orthogonal to E_j as vectors of real numbers, since shares are real, and the shares
 * of E_j take what it loses: the probe of no pattern changes. */
static void hand_over(pt_solver *s, int64_t k, int64_t j)
{
    const int64_t all = 2 * s->n * s->n, columns = s->opt.opr + 1;
    void *e = eigen_at(s, k);
    const void *f = eigen_at(s, j);
    double part = 0, norm = 0;
    for (int64_t i = 0; i < all; i++) {
        const double v = pt_get(f, s->real, i);
        part += v * pt_get(e, s->real, i);
        norm += v * v;
    }
    if (!(norm > 0)) return;
    part /= norm;
    for (int64_t i = 0; i < all; i++)
        pt_put(e, s->real, i, pt_get(e, s->real, i) - part * pt_get(f, s->real, i));
    for (int64_t i = 0; i < s->data.patterns; i++)
        s->shares[i * columns + j + 1] += part * s->shares[i * columns + k + 1];
}

/* Eigenprobes keep their mean square of 1, so their shares take the factor. */
void pt_opr_scale(pt_solver *s, double by)
{
    const int64_t q = s->opt.opr;
    for (int64_t j = 0; j < s->data.patterns; j++)
        for (int64_t k = 1; k <= q; k++) s->shares[j * (q + 1) + k] *= by;
}

fth_status pt_opr_refine(pt_solver *s, fth_err *err)
{
    const int64_t q = s->opt.opr, m = s->data.patterns;
    void *room = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)m * sizeof(double), "sorted shares", &room,
                         err));
    sort_eigen(s);
    for (int64_t k = 0; k < q; k++) {
        void *e = eigen_at(s, k);
        for (int64_t j = 0; j < k; j++) hand_over(s, k, j);
        const double size = sqrt(remove_part(s, e, NULL));
        if (!(size > 0)) continue;
        scale(s, e, 1 / size);
        for (int64_t j = 0; j < m; j++) s->shares[j * (q + 1) + k + 1] *= size;
    }
    for (int64_t k = 0; k < q; k++) clip_shares(s, k + 1, room);
    return fth_mem_release(s->mem, room, err);
}
