/* kmeans_line.c - k-means of numbers: on a sorted line a code's values are one range. */
#include "kmeans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT = 11, DIGITS = 1 << DIGIT, PASSES = 3 };

/* Bits of a float whose order as numbers is that of the float. */
static uint32_t key_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static float value_of(uint32_t key)
{
    const uint32_t bits = key >> 31 ? key & ~(UINT32_C(1) << 31) : ~key;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* By digits from the lowest, to and fro between the two blocks; the result is in `b`. */
static void sort_keys(uint32_t *a, uint32_t *b, int64_t n)
{
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t at[DIGITS] = {0}, sum = 0;
        const int shift = pass * DIGIT;
        for (int64_t i = 0; i < n; i++) at[a[i] >> shift & (DIGITS - 1)]++;
        for (int d = 0; d < DIGITS; d++) {
            const int64_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++) b[at[a[i] >> shift & (DIGITS - 1)]++] = a[i];
        uint32_t *swap = a;
        a = b;
        b = swap;
    }
}

/* What a round finds about a code. */
typedef struct cell {
    double mean, error;
    int64_t n;
} cell;

static double border(const double *code, int j)
{
    return j + 1 < GS_CODES ? (code[j] + code[j + 1]) / 2 : (double)INFINITY;
}

static void look(const uint32_t *sorted, int64_t n, const double *code, cell *cells)
{
    int64_t i = 0;
    for (int j = 0; j < GS_CODES; j++) {
        double sum = 0, square = 0;
        const int64_t from = i;
        for (; i < n && (double)value_of(sorted[i]) < border(code, j); i++) {
            const double off = (double)value_of(sorted[i]) - code[j];
            sum += off;
            square += off * off;
        }
        const double count = (double)(i - from);
        cells[j] = (cell){code[j], 0, i - from};
        if (i == from) continue;
        cells[j].mean = code[j] + sum / count;
        cells[j].error = fmax(square - sum * sum / count, 0);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Codes to their means; those without values split the worst ranges. */
static void move(cell *cells, double *code)
{
    for (int j = 0; j < GS_CODES; j++) code[j] = cells[j].mean;
    for (int j = 0; j < GS_CODES; j++) {
        int worst = 0;
        if (cells[j].n > 0) continue;
        for (int w = 1; w < GS_CODES; w++)
            if (cells[w].error > cells[worst].error) worst = w;
        if (!(cells[worst].error > 0)) break;
        code[j] = cells[worst].mean + sqrt(cells[worst].error / (double)cells[worst].n);
        cells[worst].error /= 4;
    }
    qsort(code, GS_CODES, sizeof *code, ascending);
}

static uint8_t nearest(const float *codes, float v)
{
    int low = 0, high = GS_CODES - 1;
    while (low < high) {
        const int mid = (low + high) / 2;
        if ((double)v < ((double)codes[mid] + (double)codes[mid + 1]) / 2)
            high = mid;
        else
            low = mid + 1;
    }
    return (uint8_t)low;
}

fth_status gs_kmeans_line(fth_mem *mem, const float *value, int64_t n, int rounds,
                          float codes[GS_CODES], uint8_t *index, fth_err *err)
{
    double code[GS_CODES];
    cell cells[GS_CODES];
    void *block = NULL;
    memset(codes, 0, GS_CODES * sizeof *codes);
    if (n == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * 2 * sizeof(uint32_t), "sorted numbers",
                         &block, err));
    uint32_t *a = block, *sorted = a + n;
    for (int64_t i = 0; i < n; i++) a[i] = key_of(value[i]);
    sort_keys(a, sorted, n);
    const double low = (double)value_of(sorted[0]), high = (double)value_of(sorted[n - 1]);
    for (int j = 0; j < GS_CODES; j++) code[j] = low + (high - low) * j / (GS_CODES - 1);
    for (int round = 0; round < rounds; round++) {
        look(sorted, n, code, cells);
        move(cells, code);
    }
    (void)fth_mem_release(mem, block, NULL);
    for (int j = 0; j < GS_CODES; j++) codes[j] = (float)code[j];
    for (int64_t i = 0; i < n; i++) index[i] = nearest(codes, value[i]);
    return FTH_OK;
}
