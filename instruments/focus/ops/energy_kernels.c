/* energy_kernels.c - loops over rows of floats, for every instruction set.
 *
 * Each pixel is computed by itself, without fma, so that all sets give the same bits. Rows have
 * room behind their end, so there are no remainders.
 */
#include "energy.h"

#include <fathom/vector.h>

#define V fth_f32v
enum { W = FTH_F32V_LANES, BLOCK = 4 };

static void widen_u8(float *restrict to, const uint8_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

static void widen_u16(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

static void across(float *restrict to, const float *restrict row, const float *restrict w, int r,
                   int64_t n)
{
    for (int64_t x = 0; x < n; x += BLOCK * W) {
        const float *a = row + x;
        V sum[BLOCK];
        for (int j = 0; j < BLOCK; j++) sum[j] = fth_f32v_load(a + j * W) * w[0];
        for (int i = 1; i <= r; i++)
            for (int j = 0; j < BLOCK; j++)
                sum[j] += (fth_f32v_load(a + j * W - i) + fth_f32v_load(a + j * W + i)) * w[i];
        for (int j = 0; j < BLOCK; j++) fth_f32v_store(to + x + j * W, sum[j]);
    }
}

/* One block of a row. */
static inline void down_block(float *restrict to, const float *const *rows, const float *restrict w,
                              int r, int64_t x)
{
    V sum[BLOCK];
    for (int j = 0; j < BLOCK; j++) sum[j] = fth_f32v_load(rows[r] + x + j * W) * w[0];
    for (int i = 1; i <= r; i++) {
        const float *a = rows[r - i] + x, *b = rows[r + i] + x;
        for (int j = 0; j < BLOCK; j++)
            sum[j] += (fth_f32v_load(a + j * W) + fth_f32v_load(b + j * W)) * w[i];
    }
    for (int j = 0; j < BLOCK; j++) fth_f32v_store(to + x + j * W, sum[j]);
}

/* Rows that follow each other share all but one of theirs, which then come from the nearest cache.
 */
static void down(float *restrict to, int64_t step, int count, const float *const *rows,
                 const float *restrict w, int r, int64_t n)
{
    for (int64_t x = 0; x < n; x += BLOCK * W)
        for (int k = 0; k < count; k++) down_block(to + k * step, rows + k, w, r, x);
}

static void log_across(float *restrict to, const float *restrict row, int64_t n)
{
    for (int64_t x = 0; x < n; x++) to[x] = row[x - 1] + row[x + 1] + 2 * row[x];
}

static void log_down(float *restrict to, const float *const *rows, int64_t n)
{
    const float *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2];
    for (int64_t x = 0; x < n; x++) to[x] = a[x] + c[x] + 2 * b[x];
}

/* The Laplacian of size 3 over blurred rows: 2 (a + c + g + i) - 8 e. */
static inline float laplacian(const float *above, const float *row, const float *below, int64_t x)
{
    return 2 * ((above[x - 1] + above[x + 1]) + (below[x - 1] + below[x + 1])) - 8 * row[x];
}

static void log_end(float *restrict to, const float *restrict above, const float *restrict row,
                    const float *restrict below, int64_t n)
{
    for (int64_t x = 0; x < n; x++) to[x] = fabsf(laplacian(above, row, below, x)) * 0.0625f;
}

static void sum_abs(float *restrict to, const float *restrict add, int64_t n)
{
    for (int64_t x = 0; x < n; x++) to[x] = fabsf(to[x] + add[x]);
}

static void sobel_across(float *restrict diff, float *restrict sum, const float *restrict row,
                         int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        diff[x] = row[x + 1] - row[x - 1];
        sum[x] = row[x - 1] + row[x + 1] + 2 * row[x];
    }
}

static void sobel_end(float *restrict to, const float *const *diff, const float *const *sum,
                      int64_t n)
{
    const float *restrict a = diff[0], *restrict b = diff[1], *restrict c = diff[2],
                          *restrict s = sum[0], *restrict t = sum[2];
    for (int64_t x = 0; x < n; x++) {
        const float gx = a[x] + c[x] + 2 * b[x], gy = t[x] - s[x];
        to[x] = gx * gx + gy * gy;
    }
}

static void modlap(float *restrict to, const float *const *rows, int64_t n)
{
    const float *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2];
    for (int64_t x = 0; x < n; x++)
        to[x] = fabsf(2 * b[x] - b[x - 1] - b[x + 1]) + fabsf(2 * b[x] - a[x] - c[x]);
}

static void moments_across(double *restrict sum, double *restrict square, const float *restrict row,
                           int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        double s = 0, q = 0;
        for (int i = -FO_VARIANCE_RADIUS; i <= FO_VARIANCE_RADIUS; i++) {
            const double v = (double)row[x + i];
            s += v;
            q += v * v;
        }
        sum[x] = s;
        square[x] = q;
    }
}

static void variance(float *restrict to, const double *const *sum, const double *const *square,
                     int64_t n)
{
    enum { K = 2 * FO_VARIANCE_RADIUS + 1 };
    for (int64_t x = 0; x < n; x++) {
        double s = 0, q = 0;
        for (int i = 0; i < K; i++) s += sum[i][x], q += square[i][x];
        const double v = (q - s * s / (K * K)) / (K * K);
        to[x] = v > 0 ? (float)v : 0.0f;
    }
}

static void laplace(float *restrict to, const float *const *rows, int64_t n)
{
    const float *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2];
    for (int64_t x = 0; x < n; x++) to[x] = fabsf((b[x - 1] + b[x + 1]) + (a[x] + c[x]) - 4 * b[x]);
}

/* ---- the best plane ---- */

static void take(const fo_best *b, const float *restrict e, const float *restrict v, int32_t z,
                 int64_t n)
{
    float *restrict energy = b->energy, *restrict value = b->value;
    int32_t *restrict index = b->index;
    for (int64_t x = 0; x < n; x++) {
        const bool more = e[x] > energy[x];
        energy[x] = more ? e[x] : energy[x];
        value[x] = more ? v[x] : value[x];
        index[x] = more ? z : index[x];
    }
}

/* The plane before the new best, if `more`; the plane after the best, if that was still to come. */
static void neighbours(const fo_best *b, const float *restrict e, const int32_t *restrict more,
                       int64_t from, int64_t n)
{
    float *restrict left = b->left + from, *restrict right = b->right + from,
                    *restrict previous = b->previous + from;
    for (int64_t x = 0; x < n; x++) {
        left[x] = more[x] ? previous[x] : left[x];
        right[x] = more[x] ? FO_NEXT_PLANE : right[x] == FO_NEXT_PLANE ? e[x] : right[x];
        previous[x] = e[x];
    }
}

static void take_all(const fo_best *b, const float *restrict e, const float *restrict v, int32_t z,
                     int64_t n)
{
    int32_t more[FO_ENERGY_UNIT];
    for (int64_t from = 0; from < n; from += FO_ENERGY_UNIT) {
        float *restrict energy = b->energy + from, *restrict value = b->value + from,
                        *restrict second = b->second + from;
        int32_t *restrict index = b->index + from;
        for (int x = 0; x < FO_ENERGY_UNIT; x++) {
            const float now = e[from + x], was = energy[x];
            more[x] = now > was;
            second[x] = now > was ? was : now > second[x] ? now : second[x];
            energy[x] = now > was ? now : was;
            value[x] = now > was ? v[from + x] : value[x];
            index[x] = now > was ? z : index[x];
        }
        neighbours(b, e + from, more, from, FO_ENERGY_UNIT);
    }
}

static void choose(const fo_best *b, const float *restrict most, bool last, const float *restrict e,
                   const float *restrict v, int32_t z, int64_t n)
{
    int32_t more[FO_ENERGY_UNIT];
    for (int64_t from = 0; from < n; from += FO_ENERGY_UNIT) {
        float *restrict energy = b->energy + from, *restrict value = b->value + from;
        int32_t *restrict index = b->index + from;
        for (int x = 0; x < FO_ENERGY_UNIT; x++) {
            const float now = e[from + x];
            const bool so = now >= FO_NEAR_TIE * most[from + x] && (last || energy[x] < 0);
            more[x] = so;
            energy[x] = so ? now : energy[x];
            value[x] = so ? v[from + x] : value[x];
            index[x] = so ? z : index[x];
        }
        neighbours(b, e + from, more, from, FO_ENERGY_UNIT);
    }
}

static void skip(const fo_best *b, int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        b->right[x] = b->right[x] == FO_NEXT_PLANE ? FO_NO_PLANE : b->right[x];
        b->previous[x] = FO_NO_PLANE;
    }
}

/* ---- 16 bits ---- */

static void log_across_u16(float *restrict to, const uint16_t *restrict row, int64_t n)
{
    for (int64_t x = 1; x < n - 1; x++) to[x] = (float)(row[x - 1] + row[x + 1] + 2 * row[x]);
}

static void take_u16(float *restrict best, uint32_t *restrict packed, const float *restrict e,
                     const uint16_t *restrict v, uint32_t z, int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        const bool more = e[x] > best[x];
        best[x] = more ? e[x] : best[x];
        packed[x] = more ? z << 16 | v[x] : packed[x];
    }
}

static void log_take_u16(float *restrict best, uint32_t *restrict packed, const float *const *rows,
                         const uint16_t *restrict v, uint32_t z, int64_t n)
{
    const float *restrict above = rows[0], *restrict row = rows[1], *restrict below = rows[2];
    for (int64_t x = 0; x < n; x++) {
        const float e = fabsf(laplacian(above, row, below, x)) * 0.0625f;
        const bool more = e > best[x];
        best[x] = more ? e : best[x];
        packed[x] = more ? z << 16 | v[x] : packed[x];
    }
}

static int64_t log_sum(const float *const *rows, int64_t n)
{
    const float *restrict above = rows[0], *restrict row = rows[1], *restrict below = rows[2];
    int64_t sum = 0;
    for (int64_t from = 0; from < n; from += 128) { /* 128 of at most 2^23 each: fits */
        const int64_t end = from + 128 < n ? from + 128 : n;
        int32_t part = 0;
        for (int64_t x = from; x < end; x++)
            part += (int32_t)fabsf(laplacian(above, row, below, x));
        sum += part;
    }
    return sum;
}

static void pack(const fo_best *b, int64_t n)
{
    uint32_t *packed = (uint32_t *)(void *)b->value;
    for (int64_t x = 0; x < n; x++)
        packed[x] = (uint32_t)b->index[x] << 16 | (uint32_t)(int32_t)b->value[x];
}

static void unpack(const fo_best *b, int64_t n)
{
    const uint32_t *packed = (const uint32_t *)(const void *)b->value;
    int32_t *restrict index = b->index;
    for (int64_t x = 0; x < n; x++) index[x] = (int32_t)(packed[x] >> 16);
    for (int64_t x = 0; x < n; x++) {
        const int32_t low = (int32_t)(packed[x] & 0xffff);
        b->value[x] = (float)low;
    }
}

static void start(const fo_best *b, int64_t n)
{
    float *restrict all[] = {b->second, b->left, b->right, b->previous};
    for (int64_t x = 0; x < n; x++) b->energy[x] = FO_NO_PLANE;
    memset(b->value, 0, (size_t)n * sizeof *b->value);
    memset(b->index, 0, (size_t)n * sizeof *b->index);
    for (int i = 0; b->second && i < 4; i++)
        for (int64_t x = 0; x < n; x++) all[i][x] = FO_NO_PLANE;
}

const fo_energy_loops FTH_ISA_NAME(fo_energy_loops) = {
    widen_u8, widen_u16,    across,    down,   log_across,     log_down,       log_end,
    sum_abs,  sobel_across, sobel_end, modlap, laplace,        moments_across, variance,
    take,     take_all,     choose,    skip,   log_across_u16, take_u16,       log_take_u16,
    log_sum,  pack,         unpack,    start};
