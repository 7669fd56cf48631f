/* toy_counts.c - counts of synthetic cells, Poisson or negative binomial, in sparse rows, written
 * as they are drawn.
 *
 * A count follows from (seed, cell, gene) alone. The file has to know its number of entries before
 * the first is written, so all counts are drawn twice: once to count the entries, once to write
 * them.
 */
#include "toy.h"

#include <math.h>
#include <string.h>

enum {
    PIECE = 16,       /* rows per task */
    BLOCK = 32 << 20, /* approximate bytes of entries in memory */
    SAMPLE = 1 << 17, /* rates that the scale is found from */
    LARGE_RATE = 500, /* above this a count is a rounded normal number */
};

/* ---- one row ---- */

typedef struct rows {
    const sp_toy *t;
    const float *across; /* loadings [factor][gene] */
    int64_t from, n;     /* rows [from, from + n) */
    int64_t width;       /* genes */
    float *rate;         /* [workers][width] */
    int32_t *gene;       /* [n][width]; NULL: entries are only counted */
    float *value;
    int64_t *count; /* [n] */
} rows;

double sp_toy_size(const sp_toy *t, int64_t cell)
{
    if (!(t->depth > 0)) return 1;
    return pow(t->depth, fth_random_uniform_at(t->seed, 0, SP_TOY_SIZE, cell) - 0.5);
}

/* Factors without positions behind the others. */
static double log_factor(const sp_toy *t, int64_t cell, int64_t l)
{
    return l < t->factors ? (double)t->factor[cell * t->factors + l]
                          : (double)t->other[cell * t->others + l - t->factors];
}

static void rates_of(const sp_toy *t, const float *across, int64_t cell, float *rate)
{
    const double scale = t->scale * sp_toy_size(t, cell);
    memset(rate, 0, sizeof *rate * (size_t)t->genes);
    for (int64_t l = 0; l < t->factors + t->others; l++) {
        const float *w = across + l * t->genes;
        const double f = exp(log_factor(t, cell, l));
        const float e = (float)(f * scale);
        for (int64_t d = 0; d < t->genes; d++) rate[d] += e * w[d];
    }
}

static double large_count(const sp_toy *t, double rate, int64_t index)
{
    const double z = fth_random_normal_at(t->seed, 0, SP_TOY_LARGE, index);
    const double more = t->dispersion > 0 ? rate * rate / t->dispersion : 0;
    const double v = floor(rate + sqrt(rate + more) * z + 0.5);
    return v > 0 ? v : 0;
}

/* The same of the negative binomial with mean `rate`. */
static double dispersed_count(const sp_toy *t, double rate, double u, int64_t index)
{
    const double theta = t->dispersion, nothing = theta * log1p(rate / theta),
                 ratio = rate / (rate + theta);
    if (nothing > LARGE_RATE) return large_count(t, rate, index);
    double p = exp(-nothing), sum = p, k = 0;
    while (u > sum && p > 0) {
        p *= ratio * (k + theta) / (k + 1);
        k++;
        sum += p;
    }
    return k;
}

/* Inversion: the count at quantile u. */
static double count_of(const sp_toy *t, double rate, double u, int64_t index)
{
    if (u <= 1 - rate) return 0; /* e^-rate is not below that */
    if (t->dispersion > 0) return dispersed_count(t, rate, u, index);
    if (rate > LARGE_RATE) return large_count(t, rate, index);
    double p = exp(-rate), sum = p, k = 0;
    while (u > sum && p > 0) {
        k++;
        p *= rate / k;
        sum += p;
    }
    return k;
}

static void draw_row(const rows *r, int64_t row, float *rate)
{
    const sp_toy *t = r->t;
    const int64_t cell = r->from + row, pairs = (t->genes + 1) / 2;
    int64_t n = 0;
    uint64_t bits = 0;
    rates_of(t, r->across, cell, rate);
    for (int64_t d = 0; d < t->genes; d++) {
        if (d % 2 == 0) bits = fth_random_bits_at(t->seed, 0, SP_TOY_COUNT, cell * pairs + d / 2);
        const double u = ((double)(uint32_t)bits + 0.5) * 0x1p-32;
        bits >>= 32;
        const double y = count_of(t, (double)rate[d], u, cell * t->genes + d);
        if (!(y > 0)) continue;
        if (r->gene) {
            r->gene[row * r->width + n] = (int32_t)d;
            r->value[row * r->width + n] = (float)y;
        }
        n++;
    }
    r->count[row] = n;
}

static void draw_piece(void *arg, int64_t piece, int worker)
{
    const rows *r = arg;
    const int64_t end = (piece + 1) * PIECE < r->n ? (piece + 1) * PIECE : r->n;
    for (int64_t row = piece * PIECE; row < end; row++)
        draw_row(r, row, r->rate + worker * r->width);
}

/* ---- all rows ---- */

/* Compact the rows, which start at fixed offsets. */
static void pack(rows *r)
{
    int64_t at = 0;
    for (int64_t row = 0; row < r->n; row++) {
        const size_t n = (size_t)r->count[row];
        memmove(r->gene + at, r->gene + row * r->width, sizeof *r->gene * n);
        memmove(r->value + at, r->value + row * r->width, sizeof *r->value * n);
        at += r->count[row];
    }
}

/* Turn the counts of rows into row pointers. */
static fth_status append(rows *r, fth_csr_writer *w, fth_err *err)
{
    pack(r);
    int64_t end = 0;
    for (int64_t row = 0; row <= r->n; row++) {
        const int64_t n = row < r->n ? r->count[row] : 0;
        r->count[row] = end;
        end += n;
    }
    return fth_csr_append(w, r->n, r->count, r->gene, r->value, err);
}

static fth_status all_rows(rows *r, int64_t block, fth_csr_writer *w, int64_t *entries,
                           fth_err *err)
{
    *entries = 0;
    for (r->from = 0; r->from < r->t->cells; r->from += block) {
        const int64_t left = r->t->cells - r->from;
        r->n = left < block ? left : block;
        FTH_TRY(
            fth_context_loop(r->t->ctx, "counts", (r->n + PIECE - 1) / PIECE, draw_piece, r, err));
        for (int64_t row = 0; row < r->n; row++) *entries += r->count[row];
        if (w) FTH_TRY(append(r, w, err));
    }
    return FTH_OK;
}

static fth_status write_rows(sp_toy *t, rows *r, int64_t block, const char *path, fth_err *err)
{
    int32_t *gene = r->gene;
    r->gene = NULL;
    FTH_TRY(all_rows(r, block, NULL, &t->entries, err));
    r->gene = gene;
    fth_csr_writer *w = NULL;
    int64_t again = 0;
    FTH_TRY(fth_csr_create_npz(&w, t->mem, path, t->cells, t->genes, t->entries, FTH_F32, err));
    const fth_status s = all_rows(r, block, w, &again, err);
    if (s == FTH_OK) return fth_csr_commit(w, err);
    fth_csr_abandon(w);
    return s;
}

/* Rows that are held. */
static int64_t block_of(const sp_toy *t)
{
    const int64_t block = BLOCK / (8 * t->genes);
    return block < 1 ? 1 : block > t->cells ? t->cells : block;
}

uint64_t sp_toy_counts_bytes(const sp_toy *t)
{
    const uint64_t D = (uint64_t)t->genes, block = (uint64_t)block_of(t);
    const uint64_t workers = (uint64_t)fth_context_threads(t->ctx);
    return (block + 1) * sizeof(int64_t) +
           D * (8 * block + sizeof(float) * (workers + (uint64_t)(t->factors + t->others)));
}

fth_status sp_toy_write_counts(sp_toy *t, const char *path, fth_err *err)
{
    const uint64_t D = (uint64_t)t->genes;
    const uint64_t workers = (uint64_t)fth_context_threads(t->ctx);
    const int64_t block = block_of(t);
    rows r = {.t = t, .width = t->genes};
    void *memory = NULL;
    FTH_TRY(
        fth_mem_take(t->mem, FTH_MEM_ANY, sp_toy_counts_bytes(t), "counts of cells", &memory, err));
    r.count = memory;
    r.gene = (int32_t *)(void *)(r.count + block + 1);
    r.value = (float *)(void *)(r.gene + block * t->genes);
    r.rate = r.value + block * t->genes;
    float *across = r.rate + workers * D;
    const int64_t L = t->factors + t->others;
    for (int64_t l = 0; l < L; l++)
        for (int64_t d = 0; d < t->genes; d++) across[l * t->genes + d] = t->loading[d * L + l];
    r.across = across;
    const fth_status s = write_rows(t, &r, block, path, err);
    fth_mem_release(t->mem, memory, NULL);
    return s;
}

/* ---- loadings, and the scale of all rates ---- */

static double rate_at(const sp_toy *t, int64_t cell, int64_t gene)
{
    const int64_t L = t->factors + t->others;
    double sum = 0;
    for (int64_t l = 0; l < L; l++)
        sum += (double)t->loading[gene * L + l] * exp(log_factor(t, cell, l));
    return sum;
}

static double share_above_zero(const double *rate, int64_t n, double scale)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum -= expm1(-rate[i] * scale);
    return sum / (double)n;
}

static void find_scale(sp_toy *t, double *rate)
{
    for (int64_t i = 0; i < SAMPLE; i++) {
        const uint64_t bits = fth_random_bits_at(t->seed, 0, SP_TOY_SAMPLE, i);
        rate[i] = rate_at(t, (int64_t)((bits >> 32) % (uint64_t)t->cells),
                          (int64_t)((bits & UINT32_MAX) % (uint64_t)t->genes));
    }
    double low = 1e-12, high = 1e12;
    for (int i = 0; i < 100; i++) {
        const double middle = sqrt(low * high);
        if (share_above_zero(rate, SAMPLE, middle) < t->density)
            low = middle;
        else
            high = middle;
    }
    t->scale = sqrt(low * high);
}

fth_status sp_toy_load(sp_toy *t, fth_err *err)
{
    const int64_t L = t->factors + t->others;
    for (int64_t i = 0; i < t->genes * L; i++) {
        const int64_t main = i / L % L, l = i % L; /* of the gene, where there are two kinds */
        const bool own = (main < t->factors) == (l < t->factors);
        const double w = fth_random_uniform_at(t->seed, 0, SP_TOY_LOADING, i);
        t->loading[i] = (float)(t->others == 0 ? w : own ? w + (l == main ? 2 : 0) : 0);
    }
    t->scale = 0.1;
    if (!(t->density > 0)) return FTH_OK;
    double *rate = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *rate * SAMPLE, "rates", (void **)&rate, err));
    find_scale(t, rate);
    fth_mem_release(t->mem, rate, NULL);
    return FTH_OK;
}
