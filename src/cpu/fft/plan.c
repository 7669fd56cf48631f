/* plan.c - radices, roots of unity and the order of the result. */
#include "cpu/fft/plan.h"

#include "base/assert.h"
#include "base/bits.h"

#include <math.h>
#include <string.h>

static uint64_t round64(uint64_t bytes)
{
    return (bytes + 63) & ~(uint64_t)63;
}

static int64_t least_prime(int64_t n)
{
    for (int64_t p = 2; p <= FTH__FFT_RADIX; p++)
        if (n % p == 0) return p;
    return n;
}

bool fth__fft_is_smooth(int64_t n)
{
    while (n > 1) {
        const int64_t p = least_prime(n);
        if (p > FTH__FFT_RADIX) return false;
        n /= p;
    }
    return true;
}

/* Odd primes first, then fours, then eights: the last pass multiplies by no roots, so it should be
 * a large one. */
int fth__fft_radices(int64_t n, int32_t radix[FTH__FFT_PASSES])
{
    int count = 0, twos = 0;
    for (; n > 1 && n % 2 == 0; n /= 2) twos++;
    while (n > 1) {
        const int64_t p = least_prime(n);
        FTH_ASSERT(p <= FTH__FFT_RADIX && count < FTH__FFT_PASSES);
        radix[count++] = (int32_t)p;
        n /= p;
    }
    if (twos == 1) radix[count++] = 2;
    for (; twos > 1 && twos % 3 != 0; twos -= 2) radix[count++] = 4;
    for (; twos >= 3; twos -= 3) radix[count++] = 8;
    if (count == 0) radix[count++] = 1;
    return count;
}

/* The angle is reduced to the first eighth, where sine and cosine are most accurate. */
void fth__fft_root(int64_t k, int64_t n, double *re, double *im)
{
    const double turn = 6.28318530717958647692;
    k %= n;
    const bool below = 2 * k > n; /* conjugates */
    if (below) k = n - k;
    const bool left = 4 * k > n;                                         /* mirrored */
    const double quarter = left ? (double)(n - 2 * k) * 0.5 : (double)k; /* of n / 4 */
    double c, s;
    if (8 * quarter > (double)n) {
        const double rest = (double)n * 0.25 - quarter; /* exact: a multiple of 1/4 */
        c = sin(turn * rest / (double)n);
        s = cos(turn * rest / (double)n);
    } else {
        c = cos(turn * quarter / (double)n);
        s = sin(turn * quarter / (double)n);
    }
    *re = left ? -c : c;
    *im = below ? s : -s;
}

static void put(void *to, int64_t size, int64_t i, double re, double im)
{
    if (size == 8) {
        ((double *)to)[2 * i] = re;
        ((double *)to)[2 * i + 1] = im;
    } else {
        ((float *)to)[2 * i] = (float)re;
        ((float *)to)[2 * i + 1] = (float)im;
    }
}

static uint64_t turns_bytes(int64_t length, int64_t radix, int64_t size)
{
    return round64((uint64_t)(length / radix * (radix - 1) * 2 * size));
}
static uint64_t table_bytes(int64_t radix, int64_t size)
{
    return radix > 8 ? round64((uint64_t)(2 * (radix / 2) * (radix / 2) * size)) : 0;
}

uint64_t fth__fft_plan_bytes(int64_t n, int64_t size)
{
    int32_t radix[FTH__FFT_PASSES];
    const int count = fth__fft_radices(n, radix);
    /* all roots; places of frequencies, and first frequencies of the last butterflies */
    uint64_t bytes = round64((uint64_t)n * 2 * 8) + round64((uint64_t)(2 * n + 1) * 4);
    for (int i = 0; i < count; n /= radix[i++])
        bytes += turns_bytes(n, radix[i], size) + table_bytes(radix[i], size);
    return bytes;
}

static char *take(char **memory, uint64_t bytes)
{
    char *at = *memory;
    *memory += bytes;
    return at;
}

static void fill_table(void *table, int64_t radix, int64_t size)
{
    const int64_t half = radix / 2;
    for (int64_t k = 1; k <= half; k++)
        for (int64_t q = 1; q <= half; q++) {
            double re, im;
            fth__fft_root(k * q, radix, &re, &im);
            const int64_t i = (k - 1) * half + q - 1;
            if (size == 8) {
                ((double *)table)[i] = re;
                ((double *)table)[half * half + i] = -im;
            } else {
                ((float *)table)[i] = (float)re;
                ((float *)table)[half * half + i] = (float)-im;
            }
        }
}

/* roots[k] = exp(-2 pi i k / n): an eighth is computed, the rest mirrored. */
static void fill_circle(double *root, int64_t n)
{
    const int64_t parts = n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
    const int64_t known = parts == 1 ? n / 2 : n / parts;
    for (int64_t k = 0; k <= known; k++) fth__fft_root(k, n, &root[2 * k], &root[2 * k + 1]);
    for (int64_t k = known + 1; k < n; k++) {
        double *r = root + 2 * k;
        if (parts == 8 && 4 * k <= n) { /* mirrored at the diagonal */
            const double *m = root + 2 * (n / 4 - k);
            r[0] = -m[1];
            r[1] = -m[0];
        } else if (parts >= 4 && 2 * k <= n) {
            const double *m = root + 2 * (n / 2 - k);
            r[0] = -m[0];
            r[1] = m[1];
        } else {
            const double *m = root + 2 * (n - k);
            r[0] = m[0];
            r[1] = -m[1];
        }
    }
}

/* Where the passes leave each frequency: digit by digit. Behind them the place of a point more, and
 * the first frequency of each butterfly of the last pass. */
static void fill_order(const fth__fft_plan *plan, int32_t *at)
{
    const int64_t n = plan->n;
    const int last = plan->n_passes - 1;
    at[n] = (int32_t)n;
    for (int64_t place = 0; place < n; place++) {
        int64_t rest = place, weight = 1;
        int64_t k = 0;
        for (int i = 0; i <= last; i++) {
            const int64_t apart = plan->pass[i].length / plan->pass[i].radix;
            k += rest / apart * weight;
            rest %= apart;
            weight *= plan->pass[i].radix;
        }
        at[k] = (int32_t)place;
        if (place % plan->pass[last].radix == 0)
            at[n + 1 + place / plan->pass[last].radix] = (int32_t)k;
    }
}

void fth__fft_plan_make(fth__fft_plan *plan, int64_t n, int64_t size, void *memory)
{
    int32_t radix[FTH__FFT_PASSES];
    char *free = memory;
    FTH_ASSERT(n >= 1 && n <= INT32_MAX / 2);
    plan->n = n;
    plan->n_passes = fth__fft_radices(n, radix);
    double *root = (double *)(void *)take(&free, round64((uint64_t)n * 2 * 8));
    int32_t *at = (int32_t *)(void *)take(&free, round64((uint64_t)(2 * n + 1) * 4));
    fill_circle(root, n);
    int64_t length = n;
    for (int i = 0; i < plan->n_passes; i++) {
        const int64_t r = radix[i], apart = length / r, step = n / length;
        void *turns = take(&free, turns_bytes(length, r, size)),
             *table = take(&free, table_bytes(r, size));
        for (int64_t j = 0; j < apart; j++)
            for (int64_t q = 1; q < r; q++) {
                const double *w = root + 2 * (j * q * step);
                put(turns, size, j * (r - 1) + q - 1, w[0], w[1]);
            }
        if (r > 8) fill_table(table, r, size);
        plan->pass[i] = (fth__fft_level){(int32_t)r, length, turns, table};
        length = apart;
    }
    plan->at = at;
    fill_order(plan, at);
}
