/* init_dispersion.c - where dispersions start: the moments of each gene (model 13.7).
 *
 * With sizes v and the mean m = sum y / sum v, the squares of y - v m sum to m sum v + m^2 sum v^2
 * / theta. Factors explain part of these squares, so the start is too dispersed rather than too
 * little.
 */
#include "../data/totals.h"
#include "init_parts.h"

#include <math.h>
#include <string.h>

static const double least = 0.1, most = 100; /* theta starts within these */

typedef struct moments {
    double median;
    double size, square; /* sums of v and v^2 over cells */
    double *y, *yy, *vy; /* [gene]: sums of y, y^2 and v y */
} moments;

static void add_row(void *user, const sp_walk_row *r)
{
    moments *s = user;
    double total = 0;
    for (int64_t i = 0; i < r->n; i++) total += (double)r->value[i];
    const double v = s->median > 0 ? sp_size_of(total, s->median) : 1;
    s->size += v;
    s->square += v * v;
    for (int64_t i = 0; i < r->n; i++) {
        const double y = (double)r->value[i];
        s->y[r->gene[i]] += y;
        s->yy[r->gene[i]] += y * y;
        s->vy[r->gene[i]] += v * y;
    }
}

static double theta_of(const moments *s, int64_t gene)
{
    const double m = s->y[gene] / s->size,
                 squares = s->yy[gene] - 2 * m * s->vy[gene] + m * m * s->square,
                 over = squares - m * s->size, theta = m * m * s->square / over;
    if (!(m > 0)) return 1;
    return !(over > 0) ? most : fmin(fmax(theta, least), most);
}

fth_status sp_init_dispersion(sp_model *m, const sp_data *data, fth_err *err)
{
    const int64_t genes = m->set.genes;
    const uint64_t bytes = 3 * 8 * (uint64_t)genes;
    void *block = NULL;
    sp_walk walk;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, bytes, "moments of genes", &block, err));
    moments s = {.y = memset(block, 0, (size_t)bytes),
                 .median = m->set.size_factors == SP_SIZE_TOTAL ? m->set.size_median : 0};
    s.yy = s.y + genes;
    s.vy = s.yy + genes;
    fth_status status = sp_walk_open(&walk, data, err);
    if (status == FTH_OK) {
        status = sp_walk_each(&walk, add_row, &s, err);
        sp_walk_close(&walk);
    }
    for (int64_t g = 0; status == FTH_OK && g < genes; g++) {
        const double raw = log(theta_of(&s, g));
        if (m->real == FTH_F64)
            ((double *)fth_tensor_data(m->param[SP_P_THETA]))[g] = raw;
        else
            ((float *)fth_tensor_data(m->param[SP_P_THETA]))[g] = (float)raw;
    }
    (void)fth_mem_release(m->mem, block, NULL);
    return status;
}
