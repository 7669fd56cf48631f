/* deviance.c - goodness of fit from the sums of its bins.
 *
 * The sum of all rates factorises into sums over cells and sums over genes. Rates below the floor
 * need a correction, which is 0 unless all factors of a cell are tiny.
 */
#include "deviance.h"
#include "group_loadings.h"

#include <math.h>

/* Sums over bins, in their order. */
static double of_bins(fth_tensor *t, int64_t first, int64_t end)
{
    const double *v = fth_tensor_data(t);
    double sum = 0;
    for (int64_t b = first; b < end; b++) sum += v[b];
    return sum;
}

static double sum_rates(const sp_sums *s, const float *W, int64_t genes, int64_t factors,
                        int64_t first, int64_t end)
{
    const double *F = fth_tensor_data(s->F);
    double sum = 0;
    for (int64_t l = 0; l < factors; l++) {
        double cells = 0, loadings = 0;
        for (int64_t b = first; b < end; b++) cells += F[b * factors + l];
        for (int64_t d = 0; d < genes; d++) loadings += (double)W[d * factors + l];
        sum += cells * loadings;
    }
    return sum;
}

/* |Y - F W^T|^2 = |Y|^2 - 2 <Y^T F, W> + <F^T F, W^T W>, a bin at a time. */
static double residual(const sp_sums *s, const sp_sums_input *in, const float *W, int64_t first,
                       int64_t end)
{
    const int64_t L = in->factors;
    const double *YF = fth_tensor_data(s->YF), *FF = fth_tensor_data(s->FF);
    double cross = 0, square = 0;
    for (int64_t d = 0; d < in->genes; d++)
        for (int64_t l = 0; l < L; l++) {
            double yf = 0;
            for (int64_t b = first; b < end; b++) yf += YF[(b * in->genes + d) * L + l];
            cross += yf * (double)W[d * L + l];
        }
    for (int64_t l = 0; l < L; l++)
        for (int64_t k = 0; k < L; k++) {
            double ff = 0, ww = 0;
            for (int64_t b = first; b < end; b++) ff += FF[(l * in->bins + b) * L + k];
            for (int64_t d = 0; d < in->genes; d++)
                ww += (double)W[d * L + l] * (double)W[d * L + k];
            square += ff * ww;
        }
    return fmax(of_bins(s->kind[SP_SUM_YY], first, end) - 2 * cross + square, 0);
}

void sp_fit_of(sp_fit *out, const sp_sums *s, const sp_sums_input *in, const float *W,
               int64_t first, int64_t end, int64_t cells, double more)
{
    const double n = (double)cells, genes = (double)in->genes;
    const double y = of_bins(s->kind[SP_SUM_Y], first, end);
    const double ylog = of_bins(s->kind[SP_SUM_YLOG], first, end);
    const double stored = of_bins(s->kind[SP_SUM_STORED], first, end);
    const double rates = sum_rates(s, W, in->genes, in->factors, first, end) + more;
    const double total = 2 * (ylog - y + rates);
    *out = (sp_fit){.total = total,
                    .mean = total / (n * genes),
                    .mean_per_gene = total / genes,
                    .nsf = (stored > 0 ? ylog / stored : 0) + (rates - y) / (n * genes),
                    .error = (double)NAN,
                    .cells = cells};
    if (s->YF)
        out->error = sqrt(residual(s, in, W, first, end) / of_bins(s->kind[SP_SUM_YY], first, end));
}

/* ---- rates below the floor ---- */

enum { PIECE = 1024 }; /* cells read at once */

/* What the floor adds for one cell. */
static double add_of_cell(const double *F, const float *W, int64_t genes, int64_t factors)
{
    double more = 0;
    for (int64_t d = 0; d < genes; d++) {
        double mu = 0;
        for (int64_t l = 0; l < factors; l++) mu += F[l] * (double)W[d * factors + l];
        if (mu < SP_RATE_FLOOR) more += SP_RATE_FLOOR - mu;
    }
    return more;
}

/* No rate of a cell is below its largest factor times the least loading on it. */
static bool is_clear(const double *F, const double *least, int64_t factors)
{
    for (int64_t l = 0; l < factors; l++)
        if (F[l] * least[l] >= SP_RATE_FLOOR) return true;
    return false;
}

typedef struct piece {
    float *F, *s, *size;
    int32_t *bin;
    double *row, *least; /* [factor] */
} piece;

static fth_status floor_piece(double *more, const piece *p, const sp_sums_input *in, const float *W,
                              int64_t at, int64_t n, fth_err *err)
{
    const int64_t L = in->factors, lo[2] = {at, 0}, size[2] = {n, L};
    FTH_TRY(in->F.read(in->F.self, lo, size, p->F, err));
    if (in->spread.kind) FTH_TRY(in->spread.read(in->spread.self, lo, size, p->s, err));
    if (in->size.kind) FTH_TRY(in->size.read(in->size.self, lo, size, p->size, err));
    FTH_TRY(in->bin.read(in->bin.self, lo, size, p->bin, err));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t l = 0; l < L; l++) {
            const double s = in->spread.kind ? (double)p->s[i * L + l] : 0;
            const double v = in->size.kind ? (double)p->size[i] : 1;
            p->row[l] = (double)p->F[i * L + l] * exp(s * s * 0.5) * v;
        }
        if (!is_clear(p->row, p->least, L)) more[p->bin[i]] += add_of_cell(p->row, W, in->genes, L);
    }
    return FTH_OK;
}

fth_status sp_floor_rates(double *more, fth_mem *mem, const sp_sums_input *in, const float *W,
                          fth_err *err)
{
    const int64_t L = in->factors;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(PIECE * (2 * L + 2) * 4 + 2 * L * 8),
                         "rates below the floor", &block, err));
    piece p = {.row = block};
    p.least = p.row + L;
    p.F = (float *)(void *)(p.least + L);
    p.s = p.F + PIECE * L;
    p.size = p.s + PIECE * L;
    p.bin = (int32_t *)(void *)(p.size + PIECE);
    for (int64_t b = 0; b < in->bins; b++) more[b] = 0;
    for (int64_t l = 0; l < L; l++) {
        p.least[l] = (double)INFINITY;
        for (int64_t d = 0; d < in->genes; d++) p.least[l] = fmin(p.least[l], (double)W[d * L + l]);
    }
    fth_status s = FTH_OK;
    for (int64_t at = 0; s == FTH_OK && at < in->cells; at += PIECE)
        s = floor_piece(more, &p, in, W, at, in->cells - at < PIECE ? in->cells - at : PIECE, err);
    fth_mem_release(mem, block, NULL);
    return s;
}
