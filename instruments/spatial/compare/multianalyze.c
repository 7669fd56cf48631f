/* multianalyze.c - distances between factors of models, and their pairs. */
#include "multianalyze.h"
#include "../statistics/match.h"

#include <math.h>
#include <string.h>

/* ---- two models ---- */

static void find_lengths(double *length, const float *F, int64_t factors, int64_t cells)
{
    for (int64_t l = 0; l < factors; l++) length[l] = 0;
    for (int64_t i = 0; i < cells; i++)
        for (int64_t l = 0; l < factors; l++)
            length[l] += (double)F[i * factors + l] * (double)F[i * factors + l];
    for (int64_t l = 0; l < factors; l++) length[l] = sqrt(length[l]);
}

void sp_factor_distances(double *distance, const float *A, int64_t a, const float *B, int64_t b,
                         int64_t cells, double *room)
{
    double *of_A = room, *of_B = room + a;
    find_lengths(of_A, A, a, cells);
    find_lengths(of_B, B, b, cells);
    for (int64_t k = 0; k < a * b; k++) distance[k] = 0;
    for (int64_t i = 0; i < cells; i++)
        for (int64_t k = 0; k < a; k++)
            for (int64_t l = 0; l < b; l++)
                distance[k * b + l] += (double)A[i * a + k] * (double)B[i * b + l];
    for (int64_t k = 0; k < a; k++)
        for (int64_t l = 0; l < b; l++) {
            const double p = of_A[k] / (of_A[k] + 1e-10), q = of_B[l] / (of_B[l] + 1e-10);
            const double dot = distance[k * b + l] / ((of_A[k] + 1e-10) * (of_B[l] + 1e-10));
            distance[k * b + l] = fmax(p * p - 2 * dot + q * q, 0);
        }
}

fth_status sp_factor_pairs(sp_factor_pair *pair, fth_mem *mem, const double *distance, int64_t a,
                           int64_t b, bool best, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, (uint64_t)a * sizeof(int64_t), "pairs", &block, err));
    int64_t *column = block, n = 0;
    fth_status s = FTH_OK;
    if (best)
        s = sp_match_best(column, mem, distance, a, b, err);
    else
        sp_match_greedy(column, distance, a, b);
    for (int64_t k = 0; s == FTH_OK && k < a; k++) {
        if (column[k] < 0) continue;
        const sp_factor_pair p = {k, column[k], distance[k * b + column[k]]};
        int64_t at = n++; /* the nearest first; ties stay in the order of rows */
        for (; at > 0 && pair[at - 1].distance > p.distance; at--) pair[at] = pair[at - 1];
        pair[at] = p;
    }
    fth_mem_release(mem, block, NULL);
    return s;
}

/* ---- several ---- */

static int64_t factors_of(const sp_comparison *c, int i)
{
    return fth_tensor_size(c->F[i], 1);
}

static fth_status compare_two(sp_comparison *c, int i, int j, fth_err *err)
{
    const int64_t a = factors_of(c, i), b = factors_of(c, j), size[2] = {a, b};
    void *room = NULL, *pairs = NULL;
    FTH_TRY(fth_tensor_create(&c->distance[i][j], c->mem, "distances", FTH_F64, 2, size, err));
    c->n_pairs[i][j] = a < b ? a : b;
    FTH_TRY(fth_mem_take(c->mem, FTH_MEM_META, (uint64_t)a * sizeof(sp_factor_pair), "pairs",
                         &pairs, err));
    c->pair[i][j] = pairs;
    FTH_TRY(fth_mem_take(c->mem, FTH_MEM_META, (uint64_t)(a + b) * 8, "lengths", &room, err));
    double *distance = fth_tensor_data(c->distance[i][j]);
    sp_factor_distances(distance, fth_tensor_data(c->F[i]), a, fth_tensor_data(c->F[j]), b,
                        fth_tensor_size(c->F[i], 0), room);
    fth_mem_release(c->mem, room, NULL);
    return sp_factor_pairs(pairs, c->mem, distance, a, b, c->best, err);
}

/* The factor of model j that is nearest to factor k of the first. */
static int64_t nearest(const sp_comparison *c, int j, int64_t k)
{
    const int64_t n = factors_of(c, j);
    const double *row = (const double *)fth_tensor_data(c->distance[0][j]) + k * n;
    int64_t best = 0;
    for (int64_t l = 1; l < n; l++)
        if (row[l] < row[best]) best = l;
    return best;
}

static fth_status choose_rows(sp_comparison *c, int64_t rows, fth_err *err)
{
    const int64_t most = c->n_pairs[0][c->against];
    c->rows = rows < most ? rows : most;
    FTH_TRY(fth_mem_take(c->mem, FTH_MEM_META, (uint64_t)(c->rows * c->n) * 16, "rows", &c->block,
                         err));
    c->away = c->block;
    c->shown = (int64_t *)(void *)(c->away + c->rows * c->n);
    for (int64_t r = 0; r < c->rows; r++) {
        const sp_factor_pair *p = &c->pair[0][c->against][r];
        for (int j = 0; j < c->n; j++) {
            const int64_t l = j == 0 ? p->a : j == c->against ? p->b : nearest(c, j, p->a);
            const double *d = j ? fth_tensor_data(c->distance[0][j]) : NULL;
            c->shown[r * c->n + j] = l;
            c->away[r * c->n + j] = j ? d[p->a * factors_of(c, j) + l] : 0;
        }
    }
    return FTH_OK;
}

fth_status sp_compare(sp_comparison *c, int64_t rows, fth_err *err)
{
    for (int i = 0; i < c->n; i++)
        for (int j = i + 1; j < c->n; j++) FTH_TRY(compare_two(c, i, j, err));
    return choose_rows(c, rows, err);
}

void sp_comparison_clear(sp_comparison *c)
{
    for (int i = 0; i < SP_COMPARED; i++) {
        fth_tensor_release(c->F[i]);
        for (int j = 0; j < SP_COMPARED; j++) {
            fth_tensor_release(c->distance[i][j]);
            if (c->mem) fth_mem_release(c->mem, c->pair[i][j], NULL);
        }
    }
    fth_tensor_release(c->xy);
    if (c->mem) fth_mem_release(c->mem, c->block, NULL);
    *c = (sp_comparison){0};
}
