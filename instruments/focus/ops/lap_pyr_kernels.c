/* lap_pyr_kernels.c - loops of the Laplacian pyramid, once per instruction set.
 *
 * Plain loops over columns that the compiler turns into vectors; every set has the bits of
 * lap_taps.h.
 */
#include "lap_pyr.h"
#include "lap_taps.h"

#include <string.h>

static void widen(float *restrict out, const void *restrict in, fth_dtype dtype, int64_t n)
{
    const uint8_t *u8 = in;
    const uint16_t *u16 = in;
    if (dtype == FTH_U8)
        for (int64_t i = 0; i < n; i++) out[i] = (float)u8[i];
    else if (dtype == FTH_U16)
        for (int64_t i = 0; i < n; i++) out[i] = (float)u16[i];
    else
        memcpy(out, in, (size_t)n * sizeof *out);
}

static void down_rows(float *restrict out, const float *const rows[5], int64_t n)
{
    const float *const a = rows[0], *const b = rows[1], *const c = rows[2];
    const float *const d = rows[3], *const e = rows[4];
    for (int64_t i = 0; i < n; i++) out[i] = fo_lap_five_of(a[i], b[i], c[i], d[i], e[i]);
}

static void down_columns(float *restrict out, const float *restrict in, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = FO_LAP_DOWN * fo_lap_five_of(in[2 * i - 2], in[2 * i - 1], in[2 * i],
                                              in[2 * i + 1], in[2 * i + 2]);
}

static void up_even(float *restrict out, const float *const rows[3], int64_t n)
{
    const float *const a = rows[0], *const b = rows[1], *const c = rows[2];
    for (int64_t i = 0; i < n; i++) out[i] = fo_lap_at_of(a[i], b[i], c[i]);
}

static void up_odd(float *restrict out, const float *const rows[2], int64_t n)
{
    const float *const a = rows[0], *const b = rows[1];
    for (int64_t i = 0; i < n; i++) out[i] = fo_lap_between_of(a[i], b[i]);
}

static void up_columns(float *restrict out, const float *restrict in, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++) {
        out[2 * i] = FO_LAP_UP * fo_lap_at_of(in[i - 1], in[i], in[i + 1]);
        out[2 * i + 1] = FO_LAP_UP * fo_lap_between_of(in[i], in[i + 1]);
    }
    const int64_t m = n / 2;
    if (n % 2) out[n - 1] = FO_LAP_UP * fo_lap_at_of(in[m - 1], in[m], in[m + 1]);
}

static void detail(float *restrict out, float *restrict square, const float *restrict fine,
                   const float *restrict coarse, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = fine[i] - coarse[i];
        out[i] = v;
        square[i] = v * v;
    }
}

static inline void box_of(float *restrict out, const float *restrict in, int64_t window, int64_t n)
{
    in -= window / 2;
    for (int64_t i = 0; i < n; i++) {
        float sum = in[i];
        for (int64_t k = 1; k < window; k++) sum += in[i + k];
        out[i] = sum;
    }
}

static void box_columns(float *out, const float *square, int64_t window, int64_t n)
{
    if (window == 1)
        box_of(out, square, 1, n);
    else if (window == 3)
        box_of(out, square, 3, n);
    else if (window == 5)
        box_of(out, square, 5, n);
    else
        box_of(out, square, window, n);
}

static void box_rows(float *restrict out, const float *const *rows, int64_t window, int64_t n)
{
    if (window == 3) {
        const float *const a = rows[0], *const b = rows[1], *const c = rows[2];
        for (int64_t i = 0; i < n; i++) out[i] = (a[i] + b[i]) + c[i];
        return;
    }
    memcpy(out, rows[0], (size_t)n * sizeof *out);
    for (int64_t k = 1; k < window; k++) {
        const float *const row = rows[k];
        for (int64_t i = 0; i < n; i++) out[i] += row[i];
    }
}

static void best(float *restrict energy, float *restrict value, const float *restrict new_energy,
                 const float *restrict new_value, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float e = new_energy[i], old = energy[i];
        energy[i] = e > old ? e : old;
        value[i] = e > old ? new_value[i] : value[i];
    }
}

static void add(float *restrict out, const float *restrict a, const float *restrict b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

extern const fo_lap_loops FTH_ISA_NAME(fo_lap_loops);
const fo_lap_loops FTH_ISA_NAME(fo_lap_loops) = {widen,    down_rows,  down_columns, up_even,
                                                 up_odd,   up_columns, detail,       box_columns,
                                                 box_rows, best,       add};
