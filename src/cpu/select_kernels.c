/* select_kernels.c - the loops of select.h.
 *
 * Compiled once per instruction set. A sample of the elements gives two keys that lie around the
 * wanted place; counting says whether they do, and only what lies between is kept and looked at
 * again. Where a sample says little, the range of keys is halved, which ends for any elements. What
 * is found depends on the elements alone.
 */
#include "cpu/select.h"
#include "cpu/sort_key.h"

#include <string.h>
#if FTH_ISA_LEVEL >= 4
#include <immintrin.h>
#endif

/* FEW: elements that are sorted. BLOCK: elements whose counts a number of one byte holds, of two or
 * more bytes many of them. SAMPLE: one element of so many, within bounds. */
enum { FEW = 32, BLOCK_8 = 128, BLOCK = 1 << 14, SAMPLE = 64, LEAST = 15, MOST = 255, RUN = 256 };

#define ONES(U) ((U) ~(U)0)

/* A part of a pass over n elements, from `at` on; 0: the run is cancelled. */
static inline int64_t next_part(fth__asking *ask, int64_t n, int64_t at)
{
    const int64_t part = n - at < FTH__ASK_ELEMENTS ? n - at : FTH__ASK_ELEMENTS;
    return fth__asking_on(ask, (double)part) ? part : 0;
}

/* fth__key_U without a jump, so that loops of it are vector loops. One element at a time it is the
 * slower of the two. */
#define DEFINE_KEY(U, S)                                                                           \
    static inline U key_##U(U x, fth__key_rule r)                                                  \
    {                                                                                              \
        const U low = (U)((U) ~(U)0 >> 1);                                                         \
        const U nan = (U) - (U)((U)(x & low) > (U)r.inf), zero = (U) - (U)(x == (U)r.minus_zero);  \
        x = (U)(x & (U)~zero);                                                                     \
        const U negative = (U)((U)((S)x >> (8 * sizeof(U) - 1)) & (U)r.negative);                  \
        return (U)((U)(x ^ (U)(negative | (U)r.sign) ^ (U)r.flip) | nan);                          \
    }
DEFINE_KEY(uint8_t, int8_t)
DEFINE_KEY(uint16_t, int16_t)
DEFINE_KEY(uint32_t, int32_t)
DEFINE_KEY(uint64_t, int64_t)

/* Those of `run` keys that are at most `span` above lo, one behind the other; `to` has room for all
 * of them. */
#define DEFINE_PACK(U)                                                                             \
    static int64_t pack_##U(int64_t run, const U *key, U lo, U span, U *to)                        \
    {                                                                                              \
        U in[RUN];                                                                                 \
        int64_t m = 0;                                                                             \
        for (int64_t i = 0; i < run; i++) in[i] = (U)((U)(key[i] - lo) <= span);                   \
        for (int64_t i = 0; i < run; i++) {                                                        \
            to[m] = key[i];                                                                        \
            m += (int64_t)in[i];                                                                   \
        }                                                                                          \
        return m;                                                                                  \
    }
DEFINE_PACK(uint8_t)
DEFINE_PACK(uint16_t)
#if FTH_ISA_LEVEL >= 4
#define DEFINE_VECTOR_PACK(U, BITS)                                                                \
    static int64_t pack_##U(int64_t run, const U *key, U lo, U span, U *to)                        \
    {                                                                                              \
        enum { LANES = 512 / (BITS) };                                                             \
        const __m512i from = _mm512_set1_epi##BITS((int##BITS##_t)lo),                             \
                      width = _mm512_set1_epi##BITS((int##BITS##_t)span);                          \
        int64_t i = 0, m = 0;                                                                      \
        for (; i + LANES <= run; i += LANES) {                                                     \
            const __m512i x = _mm512_loadu_si512(key + i);                                         \
            const unsigned in =                                                                    \
                _mm512_cmple_epu##BITS##_mask(_mm512_sub_epi##BITS(x, from), width);               \
            _mm512_storeu_si512(to + m, _mm512_maskz_compress_epi##BITS((lanes##BITS)in, x));      \
            m += __builtin_popcount(in);                                                           \
        }                                                                                          \
        for (; i < run; i++) {                                                                     \
            to[m] = key[i];                                                                        \
            m += (U)(key[i] - lo) <= span;                                                         \
        }                                                                                          \
        return m;                                                                                  \
    }
typedef __mmask16 lanes32;
typedef __mmask8 lanes64;
DEFINE_VECTOR_PACK(uint32_t, 32)
DEFINE_VECTOR_PACK(uint64_t, 64)
#else
DEFINE_PACK(uint32_t)
DEFINE_PACK(uint64_t)
#endif

#define DEFINE_SELECT(U)                                                                           \
    static const int64_t block_##U = sizeof(U) == 1 ? BLOCK_8 : BLOCK;                             \
    static void insert_##U(U *sorted, int64_t n, U x)                                              \
    {                                                                                              \
        for (; n > 0 && sorted[n - 1] > x; n--) sorted[n] = sorted[n - 1];                         \
        sorted[n] = x;                                                                             \
    }                                                                                              \
    /* Keys around place `rank`, probably. */                                                      \
    static void pivots_##U(int64_t n, const U *x, fth__key_rule r, int64_t rank, U *lo, U *hi)     \
    {                                                                                              \
        U sample[MOST];                                                                            \
        int64_t m = n / SAMPLE < LEAST ? LEAST : n / SAMPLE > MOST ? MOST : n / SAMPLE, by = 1;    \
        while ((by + 1) * (by + 1) <= m) by++; /* two standard deviations of a median's place */   \
        for (int64_t i = 0; i < m; i++)                                                            \
            insert_##U(sample, i, key_##U(x[i * (n / m) + n / m / 2], r));                         \
        const int64_t at = (int64_t)((double)rank / (double)n * (double)m);                        \
        *lo = at < by ? 0 : sample[at - by];                                                       \
        *hi = at + by >= m ? ONES(U) : sample[at + by];                                            \
    }                                                                                              \
    /* How many keys are less than lo, and how many at most hi. */                                 \
    static void count_some_##U(int64_t n, const U *x, fth__key_rule r, U lo, U hi, int64_t *below, \
                               int64_t *up_to)                                                     \
    {                                                                                              \
        for (int64_t at = 0; at < n; at += block_##U) {                                            \
            const int64_t end = at + block_##U < n ? at + block_##U : n;                           \
            U less = 0, most = 0;                                                                  \
            for (int64_t i = at; i < end; i++) {                                                   \
                const U key = key_##U(x[i], r);                                                    \
                less = (U)(less + (key < lo));                                                     \
                most = (U)(most + (key <= hi));                                                    \
            }                                                                                      \
            *below += (int64_t)less;                                                               \
            *up_to += (int64_t)most;                                                               \
        }                                                                                          \
    }                                                                                              \
    static void count_##U(int64_t n, const U *x, fth__key_rule r, U lo, U hi, int64_t *below,      \
                          int64_t *up_to, fth__asking *ask)                                        \
    {                                                                                              \
        *below = *up_to = 0;                                                                       \
        for (int64_t at = 0, m; at < n && (m = next_part(ask, n, at)) > 0; at += m)                \
            count_some_##U(m, x + at, r, lo, hi, below, up_to);                                    \
    }                                                                                              \
    /* Keys from lo to hi; `to` may be x. */                                                       \
    static int64_t keep_some_##U(int64_t n, const U *x, fth__key_rule r, U lo, U hi, U *to)        \
    {                                                                                              \
        const U span = (U)(hi - lo);                                                               \
        int64_t m = 0;                                                                             \
        for (int64_t at = 0; at < n; at += RUN) {                                                  \
            const int64_t run = n - at < RUN ? n - at : RUN;                                       \
            U key[RUN];                                                                            \
            for (int64_t i = 0; i < run; i++) key[i] = key_##U(x[at + i], r);                      \
            m += pack_##U(run, key, lo, span, to + m);                                             \
        }                                                                                          \
        return m;                                                                                  \
    }                                                                                              \
    static void keep_##U(int64_t n, const U *x, fth__key_rule r, U lo, U hi, U *to,                \
                         fth__asking *ask)                                                         \
    {                                                                                              \
        for (int64_t at = 0, m; at < n && (m = next_part(ask, n, at)) > 0; at += m)                \
            to += keep_some_##U(m, x + at, r, lo, hi, to);                                         \
    }                                                                                              \
    /* The key at place `rank`. */                                                                 \
    static U key_at_##U(const fth__selection *s, fth__key_rule r, int64_t rank)                    \
    {                                                                                              \
        const U *x = s->line;                                                                      \
        int64_t n = s->n;                                                                          \
        U low = 0, high = ONES(U), sorted[FEW]; /* all keys that are left lie between these */     \
        bool halves = false;                                                                       \
        while (n > FEW && low < high) {                                                            \
            U lo = low, hi = (U)(low + (U)(high - low) / 2);                                       \
            int64_t below, up_to, m;                                                               \
            if (!halves) pivots_##U(n, x, r, rank, &lo, &hi);                                      \
            count_##U(n, x, r, lo, hi, &below, &up_to, s->ask);                                    \
            if (s->ask->off) return 0;                                                             \
            if (rank < below) {                                                                    \
                high = (U)(lo - 1);                                                                \
                m = below;                                                                         \
            } else if (rank >= up_to) {                                                            \
                low = (U)(hi + 1);                                                                 \
                m = n - up_to;                                                                     \
                rank -= up_to;                                                                     \
            } else {                                                                               \
                low = lo > low ? lo : low;                                                         \
                high = hi < high ? hi : high;                                                      \
                m = up_to - below;                                                                 \
                rank -= below;                                                                     \
            }                                                                                      \
            halves = m > n / 4 * 3;                                                                \
            if (m == n || low == high) continue;                                                   \
            keep_##U(n, x, r, low, high, s->scratch, s->ask);                                      \
            if (s->ask->off) return 0;                                                             \
            x = s->scratch;                                                                        \
            n = m;                                                                                 \
            r = fth__key_rule_of(FTH_BOOL, false); /* they are keys */                             \
            r.inf = ONES(U) >> 1;                                                                  \
        }                                                                                          \
        if (low == high) return low;                                                               \
        for (int64_t i = 0; i < n; i++) insert_##U(sorted, i, key_##U(x[i], r));                   \
        return sorted[rank];                                                                       \
    }                                                                                              \
    /* What lies around a key: how many are less and not more, the next one, the last. */          \
    typedef struct around_##U {                                                                    \
        int64_t below, up_to;                                                                      \
        U next, last;                                                                              \
    } around_##U;                                                                                  \
    static around_##U look_around_##U(const fth__selection *s, fth__key_rule r, U key)             \
    {                                                                                              \
        const U *x = s->line;                                                                      \
        around_##U a = {.next = ONES(U)};                                                          \
        count_##U(s->n, x, r, key, key, &a.below, &a.up_to, s->ask);                               \
        U next = ONES(U), last = 0;                                                                \
        for (int64_t at = 0, m; at < s->n && (m = next_part(s->ask, s->n, at)) > 0; at += m)       \
            for (int64_t i = at; i < at + m; i++) {                                                \
                const U k = key_##U(x[i], r), above = (U)(k | (U) - (U)(k <= key));                \
                next = above < next ? above : next;                                                \
                last = k > last ? k : last;                                                        \
            }                                                                                      \
        a.next = next;                                                                             \
        a.last = last;                                                                             \
        return a;                                                                                  \
    }                                                                                              \
    /* Where the one stands that has `before` equals before it. */                                 \
    static int64_t find_##U(const fth__selection *s, fth__key_rule r, U key, int64_t before)       \
    {                                                                                              \
        const U *x = s->line;                                                                      \
        int64_t at = 0;                                                                            \
        for (; at + BLOCK_8 <= s->n; at += BLOCK_8) {                                              \
            U equal = 0;                                                                           \
            if (at % FTH__ASK_ELEMENTS == 0 && !next_part(s->ask, s->n, at)) return 0;             \
            for (int64_t i = at; i < at + BLOCK_8; i++)                                            \
                equal = (U)(equal + (key_##U(x[i], r) == key));                                    \
            if ((int64_t)equal > before) break;                                                    \
            before -= (int64_t)equal;                                                              \
        }                                                                                          \
        for (; at < s->n - 1; at++)                                                                \
            if (key_##U(x[at], r) == key && before-- == 0) break;                                  \
        return at;                                                                                 \
    }                                                                                              \
    static void select_##U(const fth__selection *s)                                                \
    {                                                                                              \
        const fth__key_rule r = fth__key_rule_of(s->dtype, s->descending);                         \
        const U first = key_at_##U(s, r, s->rank[0]);                                              \
        around_##U a = {0};                                                                        \
        if (s->ranks > 1 || s->wants_position) a = look_around_##U(s, r, first);                   \
        for (int k = 0; k < s->ranks; k++) {                                                       \
            const int64_t rank = s->rank[k];                                                       \
            U key = first;                                                                         \
            int64_t below = a.below;                                                               \
            if (k > 0 && (rank < a.below || rank >= a.up_to)) {                                    \
                const bool is_next = rank == a.up_to, is_last = rank == s->n - 1;                  \
                key = is_next ? a.next : is_last ? a.last : key_at_##U(s, r, rank);                \
                below = a.up_to;                                                                   \
            }                                                                                      \
            if (s->ask->off) return;                                                               \
            const U x = fth__unkey_##U(key, r);                                                    \
            const bool odd = r.negative && (x == 0 || fth__is_odd_##U(x, r));                      \
            memcpy((U *)s->value + k, &x, sizeof x);                                               \
            if (!odd && !s->wants_position) continue;                                              \
            if (k == 0 ? s->ranks == 1 && !s->wants_position                                       \
                       : rank != a.up_to && (rank < a.below || rank > a.up_to)) {                  \
                int64_t up_to;                                                                     \
                count_##U(s->n, s->line, r, key, key, &below, &up_to, s->ask);                     \
            }                                                                                      \
            s->position[k] = find_##U(s, r, key, rank - below);                                    \
            memcpy((U *)s->value + k, (const U *)s->line + s->position[k], sizeof x);              \
        }                                                                                          \
    }
DEFINE_SELECT(uint8_t)
DEFINE_SELECT(uint16_t)
DEFINE_SELECT(uint32_t)
DEFINE_SELECT(uint64_t)

const fth__select_loops FTH_ISA_NAME(fth__select_loops) = {
    .of = {
        [1] = select_uint8_t, [2] = select_uint16_t, [4] = select_uint32_t, [8] = select_uint64_t}};
