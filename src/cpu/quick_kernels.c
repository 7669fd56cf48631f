/* quick_kernels.c - values of a long line in order by quicksort with vectors.
 *
 * Compiled once per instruction set; only AVX-512 packs chosen elements. The line becomes keys as
 * it is parted for the first time; parts are parted in place. Those of at most a run's keys wait
 * for others about as long, and a network sorts as many as a vector has keys (sort_kernels.c).
 * Pivots come from fixed places. Where they are bad too often, the range of keys is halved: that
 * ends.
 */
#include "cpu/quick.h"

#include "cpu/sort.h"

#if FTH_ISA_LEVEL >= 4
#include <immintrin.h>

enum {
    RUN = FTH__SORT_RUN,
    CLASSES = 8,     /* of runs by their length */
    PARTS = 160,     /* more than tries of the longest line and bits of a key */
    MANY = 4,        /* vectors at once */
    BLOCK = 1 << 12, /* steps between checks for cancellation */
    ASKED = 1 << 14  /* elements of a part that is worth one */
};
_Static_assert(FTH__QUICK_ROOM == RUN * 64, "a vector for each key of a run");

static bool is_off(fth__asking *ask)
{
    ask->off |= fth_team_cancelled(ask->team);
    return ask->off;
}

#define SIMD static inline __attribute__((always_inline))
#define QUICK(U, BITS)                                                                             \
    enum { LANES_##BITS = 512 / (BITS), ALL_##BITS = (1 << LANES_##BITS) - 1 };                    \
    typedef struct rule_##BITS {                                                                   \
        __m512i negative, sign, flip, low, inf, minus_zero;                                        \
        bool real;                                                                                 \
    } rule_##BITS;                                                                                 \
    static rule_##BITS vectors_##BITS(fth__key_rule r)                                             \
    {                                                                                              \
        return (rule_##BITS){.negative = EACH_##BITS(r.negative),                                  \
                             .sign = EACH_##BITS(r.sign),                                          \
                             .flip = EACH_##BITS(r.flip),                                          \
                             .low = EACH_##BITS(UINT64_MAX >> (65 - (BITS))),                      \
                             .inf = EACH_##BITS(r.inf),                                            \
                             .minus_zero = EACH_##BITS(r.minus_zero),                              \
                             .real = r.negative != 0};                                             \
    }                                                                                              \
    /* In a general register: gcc 12 keeps a mask of 8 bits in a byte of the stack, and counts the \
     * bits of the four that it takes for it. */                                                   \
    SIMD unsigned bits_##BITS(mask##BITS m)                                                        \
    {                                                                                              \
        unsigned bits = m;                                                                         \
        __asm__("" : "+r"(bits));                                                                  \
        return bits;                                                                               \
    }                                                                                              \
    /* fth__key_U of vectors; adds which elements are odd. */                                      \
    SIMD __m512i key_##BITS(__m512i x, const rule_##BITS *v, unsigned *odd)                        \
    {                                                                                              \
        mask##BITS nan = 0;                                                                        \
        if (v->real) {                                                                             \
            const mask##BITS zero = _mm512_cmpeq_epu##BITS##_mask(x, v->minus_zero);               \
            nan = _mm512_cmpgt_epu##BITS##_mask(_mm512_and_si512(x, v->low), v->inf);              \
            x = _mm512_mask_mov_epi##BITS(x, zero, _mm512_setzero_si512());                        \
            *odd |= bits_##BITS((mask##BITS)(zero | nan));                                         \
        }                                                                                          \
        const __m512i s = _mm512_srai_epi##BITS(x, (BITS)-1),                                      \
                      t = _mm512_ternarylogic_epi64(s, v->negative, v->sign, 0xea),                \
                      key = _mm512_ternarylogic_epi64(x, t, v->flip, 0x96);                        \
        return _mm512_mask_mov_epi##BITS(key, nan, _mm512_set1_epi64(-1));                         \
    }                                                                                              \
    SIMD __m512i middle_##BITS(__m512i x, __m512i y, __m512i z)                                    \
    {                                                                                              \
        const __m512i least = _mm512_min_epu##BITS(x, y), most = _mm512_max_epu##BITS(x, y);       \
        return _mm512_max_epu##BITS(least, _mm512_min_epu##BITS(most, z));                         \
    }                                                                                              \
    /* About the median: that of a vector which has of each lane the middle of three middles of    \
     * three. Of elements where they have a rule, otherwise of keys. */                            \
    SIMD U pivot_##BITS(const U *a, int64_t n, const rule_##BITS *rule)                            \
    {                                                                                              \
        enum { LANES = LANES_##BITS };                                                             \
        const int64_t apart = (n - LANES) / 8;                                                     \
        __m512i x[9];                                                                              \
        unsigned odd = 0;                                                                          \
        for (int k = 0; k < 9; k++) {                                                              \
            x[k] = _mm512_loadu_si512(a + k * apart);                                              \
            if (rule) x[k] = key_##BITS(x[k], rule, &odd);                                         \
        }                                                                                          \
        const __m512i v =                                                                          \
            middle_##BITS(middle_##BITS(x[0], x[1], x[2]), middle_##BITS(x[3], x[4], x[5]),        \
                          middle_##BITS(x[6], x[7], x[8]));                                        \
        U each[LANES];                                                                             \
        __m512i below = _mm512_setzero_si512();                                                    \
        _mm512_storeu_si512(each, v);                                                              \
        for (int i = 0; i < LANES; i++) {                                                          \
            const mask##BITS less = _mm512_cmplt_epu##BITS##_mask(EACH_##BITS(each[i]), v);        \
            below = _mm512_mask_add_epi##BITS(below, less, below, EACH_##BITS(1));                 \
        }                                                                                          \
        /* the greatest of those with no more than half below them */                              \
        return _mm512_mask_reduce_max_epu##BITS(                                                   \
            _mm512_cmple_epu##BITS##_mask(below, EACH_##BITS(LANES / 2)), v);                      \
    }                                                                                              \
    /* Between the least and the greatest key; the least where all are equal. */                   \
    static U halved_##BITS(const U *a, int64_t n)                                                  \
    {                                                                                              \
        U least = a[0], most = a[0];                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            least = a[i] < least ? a[i] : least;                                                   \
            most = a[i] > most ? a[i] : most;                                                      \
        }                                                                                          \
        return (U)(least + (most - least) / 2 + (most > least));                                   \
    }                                                                                              \
    /* Keys of a vector: those below the pivot to lo, upwards, the others to hi, downwards. With   \
     * room for all of them at lo what is behind its keys may be anything. */                      \
    SIMD void part_##BITS(U **lo, U **hi, __m512i v, unsigned below, unsigned valid, bool room)    \
    {                                                                                              \
        const unsigned above = valid & ~below;                                                     \
        const int lows = __builtin_popcount(below), highs = __builtin_popcount(valid) - lows;      \
        const __m512i packed = _mm512_maskz_compress_epi##BITS((mask##BITS)below, v);              \
        if (room)                                                                                  \
            _mm512_storeu_si512(*lo, packed);                                                      \
        else                                                                                       \
            _mm512_mask_storeu_epi##BITS(*lo, (mask##BITS)((1u << lows) - 1), packed);             \
        *lo += lows;                                                                               \
        *hi -= highs;                                                                              \
        _mm512_mask_storeu_epi##BITS(*hi, (mask##BITS)((1u << highs) - 1),                         \
                                     _mm512_maskz_compress_epi##BITS((mask##BITS)above, v));       \
    }                                                                                              \
    SIMD unsigned below_##BITS(__m512i v, unsigned valid, __m512i pivot)                           \
    {                                                                                              \
        return bits_##BITS(_mm512_mask_cmplt_epu##BITS##_mask((mask##BITS)valid, v, pivot));       \
    }                                                                                              \
    SIMD unsigned valid_##BITS(int64_t left)                                                       \
    {                                                                                              \
        return left >= LANES_##BITS ? ALL_##BITS : left <= 0 ? 0 : (1u << left) - 1;               \
    }                                                                                              \
    /* The line as keys, below the pivot at the front; how many. */                                \
    SIMD int64_t first_##BITS(const fth__quick_line *line, U pivot, const rule_##BITS *rule,       \
                              bool *odd)                                                           \
    {                                                                                              \
        enum { LANES = LANES_##BITS, STEP = MANY * LANES };                                        \
        const __m512i p = EACH_##BITS(pivot);                                                      \
        const U *from = line->line;                                                                \
        U *lo = line->value, *hi = lo + line->n;                                                   \
        unsigned some = 0;                                                                         \
        int64_t i = 0;                                                                             \
        for (; i + STEP <= line->n; i += STEP) {                                                   \
            __m512i v[MANY];                                                                       \
            unsigned below[MANY];                                                                  \
            for (int k = 0; k < MANY; k++) {                                                       \
                v[k] = key_##BITS(_mm512_loadu_si512(from + i + k * LANES), rule, &some);          \
                below[k] = below_##BITS(v[k], ALL_##BITS, p);                                      \
            }                                                                                      \
            for (int k = 0; k < MANY; k++)                                                         \
                part_##BITS(&lo, &hi, v[k], below[k], ALL_##BITS, true);                           \
            if (i % (BLOCK * STEP) == 0 && is_off(line->ask)) break;                               \
        }                                                                                          \
        for (; i < line->n; i += LANES) {                                                          \
            const unsigned valid = valid_##BITS(line->n - i);                                      \
            const __m512i v = key_##BITS(                                                          \
                _mm512_maskz_loadu_epi##BITS((mask##BITS)valid, from + i), rule, &some);           \
            part_##BITS(&lo, &hi, v, below_##BITS(v, valid, p), valid, false);                     \
            if (i % (BLOCK * STEP) == 0 && is_off(line->ask)) break;                               \
        }                                                                                          \
        *odd = some != 0;                                                                          \
        return lo - (U *)line->value;                                                              \
    }                                                                                              \
    /* Keys below the pivot to the front, in place; how many. Vectors of both ends wait in         \
     * registers, so that there is room at both; the next are taken where there is less. */        \
    static int64_t split_##BITS(U *a, int64_t n, U pivot, fth__asking *ask)                        \
    {                                                                                              \
        enum { LANES = LANES_##BITS, STEP = MANY * LANES };                                        \
        const __m512i p = EACH_##BITS(pivot);                                                      \
        U *lo = a, *hi = a + n, *l = a + STEP, *r = hi - STEP;                                     \
        __m512i left[MANY], right[MANY];                                                           \
        for (int k = 0; k < MANY; k++) {                                                           \
            left[k] = _mm512_loadu_si512(a + k * LANES);                                           \
            right[k] = _mm512_loadu_si512(r + k * LANES);                                          \
        }                                                                                          \
        for (int64_t i = 1; r - l >= STEP; i++) {                                                  \
            /* a branch: guessed wrong half the time, and yet sooner than waiting for counts */    \
            const bool turn = hi - r < l - lo;                                                     \
            const U *from = turn ? r - STEP : l;                                                   \
            __m512i v[MANY];                                                                       \
            unsigned below[MANY];                                                                  \
            r -= turn ? STEP : 0;                                                                  \
            l += turn ? 0 : STEP;                                                                  \
            for (int k = 0; k < MANY; k++) {                                                       \
                v[k] = _mm512_loadu_si512(from + k * LANES);                                       \
                below[k] = below_##BITS(v[k], ALL_##BITS, p);                                      \
            }                                                                                      \
            for (int k = 0; k < MANY; k++)                                                         \
                part_##BITS(&lo, &hi, v[k], below[k], ALL_##BITS, true);                           \
            if (i % BLOCK == 0 && is_off(ask)) break;                                              \
        }                                                                                          \
        __m512i rest[MANY];                                                                        \
        for (int k = 0; k < MANY; k++)                                                             \
            rest[k] = _mm512_maskz_loadu_epi##BITS((mask##BITS)valid_##BITS(r - l - k * LANES),    \
                                                   l + k * LANES);                                 \
        for (int k = 0; k < MANY; k++) {                                                           \
            const unsigned valid = valid_##BITS(r - l - k * LANES);                                \
            part_##BITS(&lo, &hi, rest[k], below_##BITS(rest[k], valid, p), valid, false);         \
        }                                                                                          \
        for (int k = 0; k < MANY; k++)                                                             \
            part_##BITS(&lo, &hi, left[k], below_##BITS(left[k], ALL_##BITS, p), ALL_##BITS,       \
                        false);                                                                    \
        for (int k = 0; k < MANY; k++)                                                             \
            part_##BITS(&lo, &hi, right[k], below_##BITS(right[k], ALL_##BITS, p), ALL_##BITS,     \
                        false);                                                                    \
        return lo - a;                                                                             \
    }                                                                                              \
    /* Runs that wait for others about as long. */                                                 \
    typedef struct runs_##BITS {                                                                   \
        const fth__quick_line *line;                                                               \
        fth__sort_run run[CLASSES][LANES_##BITS];                                                  \
        int waiting[CLASSES];                                                                      \
    } runs_##BITS;                                                                                 \
    static void sort_runs_##BITS(const runs_##BITS *w, const fth__sort_run *run, int n)            \
    {                                                                                              \
        FTH_ISA_NAME(fth__sort_loops).runs_##BITS(run, n, w->line->rule, w->line->columns);        \
    }                                                                                              \
    static void add_run_##BITS(runs_##BITS *w, U *a, int64_t n)                                    \
    {                                                                                              \
        if (n == 0) return;                                                                        \
        const int64_t k = (n - 1) * CLASSES / RUN;                                                 \
        w->run[k][w->waiting[k]++] = (fth__sort_run){a, n};                                        \
        if (w->waiting[k] < LANES_##BITS) return;                                                  \
        sort_runs_##BITS(w, w->run[k], LANES_##BITS);                                              \
        w->waiting[k] = 0;                                                                         \
    }                                                                                              \
    static void last_runs_##BITS(const runs_##BITS *w)                                             \
    {                                                                                              \
        fth__sort_run run[LANES_##BITS];                                                           \
        int n = 0;                                                                                 \
        for (int k = CLASSES - 1; k >= 0; k--)                                                     \
            for (int i = 0; i < w->waiting[k]; i++) {                                              \
                run[n++] = w->run[k][i];                                                           \
                if (n < LANES_##BITS) continue;                                                    \
                sort_runs_##BITS(w, run, n);                                                       \
                n = 0;                                                                             \
            }                                                                                      \
        if (n > 0) sort_runs_##BITS(w, run, n);                                                    \
    }                                                                                              \
    typedef struct part_of_##BITS {                                                                \
        U *a;                                                                                      \
        int64_t n;                                                                                 \
        int tries;                                                                                 \
    } part_of_##BITS;                                                                              \
    /* A part on its way to runs; what is above its pivots goes to `later`. False: cancelled. */   \
    static bool sort_part_##BITS(runs_##BITS *w, part_of_##BITS p, part_of_##BITS *later,          \
                                 int *parts)                                                       \
    {                                                                                              \
        fth__asking *ask = w->line->ask;                                                           \
        while (p.n > RUN) {                                                                        \
            const U pivot = p.tries > 0 ? pivot_##BITS(p.a, p.n, NULL) : halved_##BITS(p.a, p.n);  \
            const int64_t below = split_##BITS(p.a, p.n, pivot, ask);                              \
            if (p.n > ASKED && is_off(ask)) return false;                                          \
            if (p.tries > 0) p.tries--;                                                            \
            if (below > 0) {                                                                       \
                later[(*parts)++] = (part_of_##BITS){p.a + below, p.n - below, p.tries};           \
                p.n = below;                                                                       \
                continue;                                                                          \
            }                                                                                      \
            /* the pivot is the least: its equals are where they belong */                         \
            const int64_t equal =                                                                  \
                pivot == (U) ~(U)0 ? p.n : split_##BITS(p.a, p.n, (U)(pivot + 1), ask);            \
            const U x = fth__unkey_##U(pivot, w->line->rule);                                      \
            for (int64_t i = 0; i < equal; i++) p.a[i] = x;                                        \
            p.a += equal;                                                                          \
            p.n -= equal;                                                                          \
            if (!fth__asking_on(ask, w->line->each * (double)equal)) return false;                 \
        }                                                                                          \
        add_run_##BITS(w, p.a, p.n);                                                               \
        return fth__asking_on(ask, w->line->each * (double)p.n);                                   \
    }                                                                                              \
    static bool quick_##BITS(const fth__quick_line *l)                                             \
    {                                                                                              \
        const rule_##BITS rule = vectors_##BITS(l->rule);                                          \
        runs_##BITS w = {.line = l};                                                               \
        part_of_##BITS part[PARTS];                                                                \
        bool odd = false;                                                                          \
        const U pivot = pivot_##BITS(l->line, l->n, &rule);                                        \
        const int64_t below = first_##BITS(l, pivot, &rule, &odd);                                 \
        int parts = 2;                                                                             \
        part[0] = (part_of_##BITS){(U *)l->value + below, l->n - below, l->tries};                 \
        part[1] = (part_of_##BITS){l->value, below, l->tries};                                     \
        while (parts > 0) {                                                                        \
            const part_of_##BITS next = part[--parts];                                             \
            if (!sort_part_##BITS(&w, next, part, &parts)) return odd;                             \
        }                                                                                          \
        last_runs_##BITS(&w);                                                                      \
        return odd;                                                                                \
    }
#define EACH_32(x) _mm512_set1_epi32((int)(x))
#define EACH_64(x) _mm512_set1_epi64((long long)(x))
typedef __mmask16 mask32;
typedef __mmask8 mask64;
QUICK(uint32_t, 32)
QUICK(uint64_t, 64)
const fth__quick_loops FTH_ISA_NAME(fth__quick_loops) = {{[4] = quick_32, [8] = quick_64}};
#else
const fth__quick_loops FTH_ISA_NAME(fth__quick_loops) = {{0}};
#endif
