/* extreme_kernels.c - the loops of extreme.h.
 *
 * Compiled once per instruction set. Elements are compared in their own width, not as wide numbers,
 * so a vector holds as many as it can. Along neighbours the extreme of a piece is found first and
 * its position by a second look at the one piece that has it.
 */
#include "cpu/extreme.h"
#include "cpu/vec_loop.h"

#include <fathom/vector.h>
#include <math.h>

enum {
    PIECE = 1 << 14,  /* bytes compared with the extreme so far before a jump: read again, they are
                         in the first cache */
    STEP = 256,       /* elements looked at for the extreme before a jump */
    BRIEF = 32,       /* elements that one loop with positions is done with sooner */
    REALS_FROM = 256, /* bytes of a line, and more up to */
    INTS_FROM = 640,  /* (their second look ends sooner, and asks for no NaN) */
    LONG = 1 << 17,   /* this many, that one reading with positions is done with sooner */
    AHEAD = 2048,     /* bytes that are fetched before they are looked at */
    COLS = 4096,      /* bytes of columns whose extremes are held together, in the first cache */
    ROWS = 4          /* rows joined between a load and a store of the extremes */
};

#define MORE(x, m) ((x) > (m))
#define LESS(x, m) ((x) < (m))
#define IS_NAN(x) ((x) != (x))
#define NEVER(x) ((void)(x), false)
/* Of two at once, by one comparison. */
#define ODD_TWO(ODD, x, y) ODD##_TWO(x, y)
#define IS_NAN_TWO(x, y) __builtin_isunordered(x, y)
#define NEVER_TWO(x, y) false

/* The first NaN is better than every number. */
#define REAL_BETTER(BEFORE, x, m) (BEFORE(x, m) | (IS_NAN(x) & ((m) == (m))))
#define INT_BETTER(BEFORE, x, m) BEFORE(x, m)

/* Position of the first extreme without a jump that depends on the data; false: there is a NaN.
 * Keys are integers that compare like the elements, both zeros alike. */
#define BRIEF_LOOP(fn, T, K, KEY, BEFORE, ODD)                                                     \
    static inline bool brief_##fn(int64_t n, const T *v, int64_t *where)                           \
    {                                                                                              \
        K best = KEY(v[0]);                                                                        \
        bool odd = ODD(v[0]);                                                                      \
        int64_t at = 0;                                                                            \
        for (int64_t i = 1; i < n; i++) {                                                          \
            const K key = KEY(v[i]);                                                               \
            const bool b = BEFORE(key, best);                                                      \
            odd |= ODD(v[i]);                                                                      \
            best = b ? key : best;                                                                 \
            at = b ? i : at;                                                                       \
        }                                                                                          \
        *where = at;                                                                               \
        return !odd;                                                                               \
    }
#define KEY_SELF(x) (x)
static inline int32_t key_f32(float x)
{
    int32_t bits;
    x += 0.0f; /* -0 becomes +0 */
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 31) & INT32_MAX);
}
static inline int64_t key_f64(double x)
{
    int64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 63) & INT64_MAX);
}

#define INT_EXTREME(fn, T, BEFORE)                                                                 \
    static inline T extreme_##fn(int64_t n, const T *v, bool *nan)                                 \
    {                                                                                              \
        T m = v[0];                                                                                \
        for (int64_t i = 1; i < n; i++) m = BEFORE(v[i], m) ? v[i] : m;                            \
        *nan = false;                                                                              \
        return m;                                                                                  \
    }
/* Four vectors at a time hide the latency of the comparisons. */
#define REAL_EXTREME(fn, T, BITS, pick, BEFORE)                                                    \
    static inline T extreme_##fn(int64_t n, const T *v, bool *nan)                                 \
    {                                                                                              \
        enum { L = FTH_F##BITS##V_LANES };                                                         \
        T m = v[0];                                                                                \
        bool odd = false;                                                                          \
        int64_t i = 0;                                                                             \
        if (n >= 4 * L) {                                                                          \
            fth_f##BITS##v a[4];                                                                   \
            fth_m##BITS##v ok[4];                                                                  \
            T part[L];                                                                             \
            for (int k = 0; k < 4; k++) {                                                          \
                a[k] = fth_f##BITS##v_load(v + k * L);                                             \
                ok[k] = fth_f##BITS##v_eq(a[k], a[k]);                                             \
            }                                                                                      \
            for (i = 4 * L; i + 4 * L <= n; i += 4 * L)                                            \
                for (int k = 0; k < 4; k++) {                                                      \
                    const fth_f##BITS##v x = fth_f##BITS##v_load(v + i + k * L);                   \
                    ok[k] = fth_m##BITS##v_both(ok[k], fth_f##BITS##v_eq(x, x));                   \
                    a[k] = fth_f##BITS##v_##pick(x, a[k]);                                         \
                }                                                                                  \
            for (int k = 1; k < 4; k++) {                                                          \
                ok[0] = fth_m##BITS##v_both(ok[0], ok[k]);                                         \
                a[0] = fth_f##BITS##v_##pick(a[k], a[0]);                                          \
            }                                                                                      \
            odd = fth_m##BITS##v_bits(ok[0]) != fth_m##BITS##v_all();                              \
            fth_f##BITS##v_store(part, a[0]);                                                      \
            m = part[0];                                                                           \
            for (int k = 1; k < L; k++) m = BEFORE(part[k], m) ? part[k] : m;                      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            odd |= IS_NAN(v[i]);                                                                   \
            m = BEFORE(v[i], m) ? v[i] : m;                                                        \
        }                                                                                          \
        *nan = odd;                                                                                \
        return m;                                                                                  \
    }

/* Whether one of a piece comes before m or is NaN. */
#define INT_ANY(fn, T, U, BEFORE)                                                                  \
    static inline bool any_##fn(const T *v, T m)                                                   \
    {                                                                                              \
        U any = 0;                                                                                 \
        for (int k = 0; k < PIECE / (int)sizeof(T); k++) any |= (U)BEFORE(v[k], m);                \
        return any != 0;                                                                           \
    }
#define REAL_ANY(fn, T, BITS, UP_TO)                                                               \
    static inline bool any_##fn(const T *v, T m)                                                   \
    {                                                                                              \
        enum { L = FTH_F##BITS##V_LANES };                                                         \
        const fth_f##BITS##v than = fth_f##BITS##v_set(m);                                         \
        fth_m##BITS##v ok[4];                                                                      \
        for (int k = 0; k < 4; k++) ok[k] = UP_TO(BITS, fth_f##BITS##v_load(v + k * L), than);     \
        for (int i = 4 * L; i < PIECE / (int)sizeof(T); i += 4 * L)                                \
            for (int k = 0; k < 4; k++)                                                            \
                ok[k] = fth_m##BITS##v_both(                                                       \
                    ok[k], UP_TO(BITS, fth_f##BITS##v_load(v + i + k * L), than));                 \
        ok[0] = fth_m##BITS##v_both(fth_m##BITS##v_both(ok[0], ok[1]),                             \
                                    fth_m##BITS##v_both(ok[2], ok[3]));                            \
        return fth_m##BITS##v_bits(ok[0]) != fth_m##BITS##v_all();                                 \
    }
#define AT_MOST(BITS, x, m) fth_f##BITS##v_le(x, m)
#define AT_LEAST(BITS, x, m) fth_f##BITS##v_le(m, x)

/* Fetch what lies behind n elements as far as these are looked at, the next line as a rule: they
 * are in the first cache, and memory would wait. */
#define FETCH_AHEAD(v, n, at, step)                                                                \
    for (uintptr_t k = 0; k < (uintptr_t)(step) * sizeof *(v); k += 64)                            \
        __builtin_prefetch(                                                                        \
            (const void *)((uintptr_t)(v) + (uintptr_t)((n) + (at)) * sizeof *(v) + k));

/* Position of the first of n elements of which FOUND is true; there is one. */
#define FIND(n, v, U, FOUND)                                                                       \
    {                                                                                              \
        int64_t at = 0;                                                                            \
        for (int64_t step = STEP; step >= STEP / 8; step /= 8)                                     \
            for (; at + step <= (n); at += step) {                                                 \
                FETCH_AHEAD(v, n, at, step)                                                        \
                U any = 0;                                                                         \
                for (int64_t k = 0; k < step; k++) any |= (U)(FOUND((v)[at + k]));                 \
                if (any) break;                                                                    \
            }                                                                                      \
        while (at < (n)-1 && !(FOUND((v)[at]))) at++;                                              \
        return at;                                                                                 \
    }
#define IS_BEST(x) ((x) == best)

/* Numbers of four and eight bytes have their positions beside them in a vector as wide. In lines of
 * a few pieces one reading finds both, and memory does not wait for a second look; of longer lines
 * few pieces are looked at twice, and less work beside the reading is faster. */
typedef fth_f32v vec32;
typedef fth_f64v vec64;
#if FTH_ISA_LEVEL >= 4
#define I32_LT(a, b) _mm512_cmplt_epi32_mask((__m512i)(a), (__m512i)(b))
#define I64_LT(a, b) _mm512_cmplt_epi64_mask((__m512i)(a), (__m512i)(b))
#else
#define I32_LT(a, b) ((fth_i32v)(a) < (fth_i32v)(b))
#define I64_LT(a, b) ((fth_i64v)(a) < (fth_i64v)(b))
#endif
#define UP(LT, x, m) LT(m, x)
#define DOWN(LT, x, m) LT(x, m)
/* Whether all lanes are numbers, so far. */
#define STILL_REAL(BITS, ok, x) fth_m##BITS##v_both(ok, fth_f##BITS##v_eq(x, x))
#define STILL_INT(BITS, ok, x) (ok)

#define SET(name, T, BITS)                                                                         \
    static inline vec##BITS set_##name(T x)                                                        \
    {                                                                                              \
        T all[FTH_F##BITS##V_LANES];                                                               \
        vec##BITS v;                                                                               \
        for (int k = 0; k < FTH_F##BITS##V_LANES; k++) all[k] = x;                                 \
        memcpy(&v, all, sizeof v);                                                                 \
        return v;                                                                                  \
    }

/* Accumulator a looks at L elements from a * L, and at those every ROW behind them; `at` counts the
 * rows. All begin with the first element, whose position is 0 wherever it is the best. */
#define AT_ONCE(name, fn, T, BITS, LT, WAY, BEFORE, STILL, ODD)                                    \
    static bool once_##fn(int64_t n, const T *v, int64_t *where)                                   \
    {                                                                                              \
        enum { L = FTH_F##BITS##V_LANES, ROW = 4 * L };                                            \
        const vec##BITS first = set_##name(v[0]);                                                  \
        vec##BITS m[4] = {first, first, first, first}, at[4] = {0};                                \
        fth_i##BITS##v now = {0};                                                                  \
        fth_m##BITS##v ok[4];                                                                      \
        int64_t i = 0;                                                                             \
        for (int a = 0; a < 4; a++) ok[a] = fth_m##BITS##v_of(fth_m##BITS##v_all());               \
        for (; i + ROW <= n; i += ROW, now += 1)                                                   \
            for (int a = 0; a < 4; a++) {                                                          \
                vec##BITS x;                                                                       \
                __builtin_prefetch((const void *)((uintptr_t)(v + i + a * L) + AHEAD));            \
                memcpy(&x, v + i + a * L, sizeof x);                                               \
                const fth_m##BITS##v better = WAY(LT, x, m[a]);                                    \
                ok[a] = STILL(BITS, ok[a], x);                                                     \
                m[a] = fth_f##BITS##v_pick(better, x, m[a]);                                       \
                at[a] = fth_f##BITS##v_pick(better, (vec##BITS)now, at[a]);                        \
            }                                                                                      \
        vec##BITS all = m[0];                                                                      \
        for (int a = 1; a < 4; a++) {                                                              \
            ok[0] = fth_m##BITS##v_both(ok[0], ok[a]);                                             \
            all = fth_f##BITS##v_pick(WAY(LT, m[a], all), m[a], all);                              \
        }                                                                                          \
        bool odd = fth_m##BITS##v_bits(ok[0]) != fth_m##BITS##v_all();                             \
        T top[L];                                                                                  \
        memcpy(top, &all, sizeof top);                                                             \
        for (int half = L / 2; half > 0; half /= 2)                                                \
            for (int k = 0; k < half; k++)                                                         \
                top[k] = BEFORE(top[k + half], top[k]) ? top[k + half] : top[k];                   \
        *where = 0;                                                                                \
        if (BEFORE(top[0], v[0])) {                                                                \
            int##BITS##_t place[ROW], least = INT##BITS##_MAX;                                     \
            all = set_##name(top[0]);                                                              \
            for (int a = 0; a < 4; a++) {                                                          \
                const fth_i##BITS##v none = INT##BITS##_MAX - (fth_i##BITS##v){0},                 \
                                     here = (fth_i##BITS##v)at[a] * ROW + a * L;                   \
                const vec##BITS p =                                                                \
                    fth_f##BITS##v_pick(WAY(LT, all, m[a]), (vec##BITS)none, (vec##BITS)here);     \
                memcpy(place + a * L, &p, sizeof p);                                               \
            }                                                                                      \
            for (int k = 0; k < ROW; k++) {                                                        \
                const int##BITS##_t p = place[k] + k % L * (place[k] != INT##BITS##_MAX);          \
                least = p < least ? p : least;                                                     \
            }                                                                                      \
            *where = least;                                                                        \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            odd |= ODD(v[i]);                                                                      \
            if (BEFORE(v[i], v[*where])) *where = i;                                               \
        }                                                                                          \
        return !odd;                                                                               \
    }
#define ONCE_FROM(from, fn, T, n, v, at)                                                           \
    ((n) > (from) / (int64_t)sizeof(T) && (n) <= LONG / (int64_t)sizeof(T) && once_##fn(n, v, at))
#define REAL_ONCE(fn, T, n, v, at) ONCE_FROM(REALS_FROM, fn, T, n, v, at)
#define INT_ONCE(fn, T, n, v, at) ONCE_FROM(INTS_FROM, fn, T, n, v, at)
#define NARROW_ONCE(fn, T, n, v, at) false

/* W: as wide as T, for truths and positions of a vector. */
#define LOOPS(fn, T, U, W, BEFORE, BETTER, ODD, ZERO, ONCE)                                        \
    static bool row_##fn(int64_t n, const void *v, void *wide)                                     \
    {                                                                                              \
        bool nan;                                                                                  \
        const T m = extreme_##fn(n, v, &nan);                                                      \
        *(W *)wide = nan ? (W)NAN : (W)m;                                                          \
        return nan || !ZERO(m);                                                                    \
    }                                                                                              \
    static int64_t find_##fn(int64_t n, const T *v, T best)                                        \
        FIND(n, v, U, IS_BEST) static int64_t find_odd_##fn(int64_t n, const T *v)                 \
            FIND(n, v, U, ODD) static int64_t where_##fn(int64_t n, const void *v_, void *wide)    \
    {                                                                                              \
        const T *v = v_;                                                                           \
        T best = v[0];                                                                             \
        int64_t at = 0;                                                                            \
        bool nan = false;                                                                          \
        if ((n <= BRIEF && brief_##fn(n, v, &at)) || ONCE(fn, T, n, v, &at)) {                     \
            *(W *)wide = (W)v[at];                                                                 \
            return at;                                                                             \
        }                                                                                          \
        at = 0;                                                                                    \
        const int64_t piece = PIECE / (int64_t)sizeof(T);                                          \
        for (int64_t i = 0; i < n && !nan; i += piece) {                                           \
            if (i > 0 && i + piece <= n && !any_##fn(v + i, best)) continue;                       \
            const T m = extreme_##fn(i + piece < n ? piece : n - i, v + i, &nan);                  \
            if (!nan && i > 0 && !BEFORE(m, best)) continue;                                       \
            best = m;                                                                              \
            at = i;                                                                                \
        }                                                                                          \
        at += nan ? find_odd_##fn(n - at, v + at) : find_##fn(n - at, v + at, best);               \
        *(W *)wide = (W)v[at];                                                                     \
        return at;                                                                                 \
    }                                                                                              \
    static inline __attribute__((always_inline)) void rows_##fn(                                   \
        int64_t rows, int64_t lanes, int64_t row_step, const T *row, T *m, U *at)                  \
    {                                                                                              \
        for (int64_t k = 0; k < lanes; k++) {                                                      \
            m[k] = row[k];                                                                         \
            at[k] = 0;                                                                             \
        }                                                                                          \
        for (int64_t r = 1; r < rows; r++) {                                                       \
            row += row_step;                                                                       \
            FTH__EACH                                                                              \
            for (int64_t k = 0; k < lanes; k++) {                                                  \
                const T x = row[k];                                                                \
                const bool b = BETTER(BEFORE, x, m[k]);                                            \
                m[k] = b ? x : m[k];                                                               \
                at[k] = b ? (U)r : at[k];                                                          \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void wheres_##fn(int64_t n, int64_t lanes, int64_t row_step, const void *v_,            \
                            void *wide_, int64_t *where)                                           \
    {                                                                                              \
        const T *v = v_;                                                                           \
        W *wide = wide_;                                                                           \
        const int64_t most = sizeof(U) == 1 ? 256 : 1 << 14; /* positions that U holds */          \
        _Alignas(64) T m[FTH__WHERE_LANES];                                                        \
        _Alignas(64) U at[FTH__WHERE_LANES];                                                       \
        for (int64_t lo = 0; lo < n; lo += most) {                                                 \
            const int64_t rows = lo + most < n ? most : n - lo;                                    \
            if (sizeof(T) <= 2 && lanes == 16) /* a vector of its own length */                    \
                rows_##fn(rows, 16, row_step, v + lo * row_step, m, at);                           \
            else                                                                                   \
                rows_##fn(rows, lanes, row_step, v + lo * row_step, m, at);                        \
            for (int64_t k = 0; k < lanes; k++) {                                                  \
                if (lo > 0 && !(BETTER(BEFORE, (W)m[k], wide[k]))) continue;                       \
                wide[k] = (W)m[k];                                                                 \
                where[k] = lo + (int64_t)at[k];                                                    \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Rows one by one: those with a NaN. */                                                       \
    static void slow_##fn(int64_t rows, int64_t cols, int64_t row_step, const T *v, T *m)          \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++, v += row_step) {                                        \
            FTH__EACH                                                                              \
            for (int64_t c = 0; c < cols; c++) m[c] = (BETTER(BEFORE, v[c], m[c])) ? v[c] : m[c];  \
        }                                                                                          \
    }                                                                                              \
    static inline __attribute__((always_inline)) void cols_##fn(                                   \
        int64_t rows, int64_t cols, int64_t row_step, const T *v, T *acc)                          \
    {                                                                                              \
        _Alignas(64) T m[COLS / sizeof(T)];                                                        \
        U any = 0;                                                                                 \
        for (int64_t c = 0; c < cols; c++) {                                                       \
            m[c] = acc[c];                                                                         \
            any |= (U)ODD(m[c]);                                                                   \
        }                                                                                          \
        int64_t r = 0;                                                                             \
        for (; r + ROWS <= rows; r += ROWS) {                                                      \
            const T *p = v + r * row_step, *q = p + row_step, *s = q + row_step,                   \
                    *t = s + row_step;                                                             \
            FTH__EACH                                                                              \
            for (int64_t c = 0; c < cols; c++) {                                                   \
                T a = m[c];                                                                        \
                a = BEFORE(p[c], a) ? p[c] : a;                                                    \
                a = BEFORE(q[c], a) ? q[c] : a;                                                    \
                a = BEFORE(s[c], a) ? s[c] : a;                                                    \
                a = BEFORE(t[c], a) ? t[c] : a;                                                    \
                m[c] = a;                                                                          \
                any |= (U)(ODD_TWO(ODD, p[c], q[c]) | ODD_TWO(ODD, s[c], t[c]));                   \
            }                                                                                      \
        }                                                                                          \
        for (; r < rows; r++) {                                                                    \
            const T *p = v + r * row_step;                                                         \
            FTH__EACH                                                                              \
            for (int64_t c = 0; c < cols; c++) {                                                   \
                m[c] = BEFORE(p[c], m[c]) ? p[c] : m[c];                                           \
                any |= (U)ODD(p[c]);                                                               \
            }                                                                                      \
        }                                                                                          \
        if (any)                                                                                   \
            slow_##fn(rows, cols, row_step, v, acc);                                               \
        else                                                                                       \
            memcpy(acc, m, (size_t)cols * sizeof *m);                                              \
    }                                                                                              \
    static void column_##fn(int64_t rows, int64_t cols, int64_t row_step, const void *v_,          \
                            void *acc_)                                                            \
    {                                                                                              \
        const T *v = v_;                                                                           \
        T *acc = acc_;                                                                             \
        const bool narrow = sizeof(T) <= 2 && cols == 16;                                          \
        const int64_t most = COLS / (int64_t)sizeof(T);                                            \
        if (narrow) cols_##fn(rows, 16, row_step, v, acc); /* a vector of its own length */        \
        for (int64_t c = 0; c < cols && !narrow; c += most)                                        \
            cols_##fn(rows, c + most < cols ? most : cols - c, row_step, v + c, acc + c);          \
    }

#define IS_ZERO(x) ((x) == 0)
#define INTS(name, T, U, ONCE)                                                                     \
    INT_EXTREME(min_##name, T, LESS)                                                               \
    INT_EXTREME(max_##name, T, MORE)                                                               \
    BRIEF_LOOP(min_##name, T, T, KEY_SELF, LESS, NEVER)                                            \
    BRIEF_LOOP(max_##name, T, T, KEY_SELF, MORE, NEVER)                                            \
    INT_ANY(min_##name, T, U, LESS)                                                                \
    INT_ANY(max_##name, T, U, MORE)                                                                \
    LOOPS(min_##name, T, U, int64_t, LESS, INT_BETTER, NEVER, NEVER, ONCE)                         \
    LOOPS(max_##name, T, U, int64_t, MORE, INT_BETTER, NEVER, NEVER, ONCE)
#define REALS(name, T, U, BITS)                                                                    \
    REAL_EXTREME(min_##name, T, BITS, min, LESS)                                                   \
    REAL_EXTREME(max_##name, T, BITS, max, MORE)                                                   \
    BRIEF_LOOP(min_##name, T, int##BITS##_t, key_##name, LESS, IS_NAN)                             \
    BRIEF_LOOP(max_##name, T, int##BITS##_t, key_##name, MORE, IS_NAN)                             \
    REAL_ANY(min_##name, T, BITS, AT_LEAST)                                                        \
    REAL_ANY(max_##name, T, BITS, AT_MOST)                                                         \
    LOOPS(min_##name, T, U, double, LESS, REAL_BETTER, IS_NAN, IS_ZERO, REAL_ONCE)                 \
    LOOPS(max_##name, T, U, double, MORE, REAL_BETTER, IS_NAN, IS_ZERO, REAL_ONCE)
#define WIDE(name, T, BITS, LT, STILL, ODD)                                                        \
    SET(name, T, BITS)                                                                             \
    AT_ONCE(name, min_##name, T, BITS, LT, DOWN, LESS, STILL, ODD)                                 \
    AT_ONCE(name, max_##name, T, BITS, LT, UP, MORE, STILL, ODD)
WIDE(i32, int32_t, 32, I32_LT, STILL_INT, NEVER)
WIDE(i64, int64_t, 64, I64_LT, STILL_INT, NEVER)
WIDE(f32, float, 32, fth_f32v_lt, STILL_REAL, IS_NAN)
WIDE(f64, double, 64, fth_f64v_lt, STILL_REAL, IS_NAN)
INTS(u8, uint8_t, uint8_t, NARROW_ONCE)
INTS(u16, uint16_t, uint16_t, NARROW_ONCE)
INTS(i32, int32_t, uint32_t, INT_ONCE)
INTS(i64, int64_t, uint64_t, INT_ONCE)
REALS(f32, float, uint32_t, 32)
REALS(f64, double, uint64_t, 64)

/* The other sign: with the highest bit turned, elements compare like those of the twin, whose loops
 * look at a copy, a piece at a time. Wide numbers of the two differ by `shift`. */
enum { TURNED = 16384 }; /* bytes of a copy: sixteen rows of FTH__WHERE_LANES and more */
typedef void turn_fn(int64_t n, const void *v, void *to);
typedef struct turned {
    turn_fn *turn;
    int64_t size, shift;
} turned;

static void turn_rows(const turned *t, int64_t rows, int64_t n, int64_t row_step, const char *v,
                      char *to)
{
    for (int64_t r = 0; r < rows; r++) t->turn(n, v + r * row_step * t->size, to + r * n * t->size);
}

FTH__LENT static bool row_turned(const turned *t, fth__extreme_fn *of, bool largest, int64_t n,
                                 const void *v, void *wide)
{
    _Alignas(64) char copy[TURNED];
    int64_t best = 0;
    for (int64_t i = 0; i < n; i += TURNED / t->size) {
        const int64_t m = n - i < TURNED / t->size ? n - i : TURNED / t->size;
        int64_t x;
        t->turn(m, (const char *)v + i * t->size, copy);
        of(m, copy, &x);
        if (i == 0 || (largest ? x > best : x < best)) best = x;
    }
    *(int64_t *)wide = best + t->shift;
    return true;
}

FTH__LENT static int64_t where_turned(const turned *t, fth__where_fn *of, bool largest, int64_t n,
                                      const void *v, void *wide)
{
    _Alignas(64) char copy[TURNED];
    int64_t best = 0, at = 0;
    for (int64_t i = 0; i < n; i += TURNED / t->size) {
        const int64_t m = n - i < TURNED / t->size ? n - i : TURNED / t->size;
        int64_t x;
        t->turn(m, (const char *)v + i * t->size, copy);
        const int64_t found = of(m, copy, &x);
        if (i > 0 && !(largest ? x > best : x < best)) continue;
        best = x;
        at = i + found;
    }
    *(int64_t *)wide = best + t->shift;
    return at;
}

FTH__LENT static void wheres_turned(const turned *t, fth__wheres_fn *of, bool largest, int64_t n,
                                    int64_t lanes, int64_t row_step, const void *v, int64_t *wide,
                                    int64_t *where)
{
    _Alignas(64) char copy[TURNED];
    int64_t x[FTH__WHERE_LANES], at[FTH__WHERE_LANES];
    const int64_t most = TURNED / t->size / lanes;
    for (int64_t lo = 0; lo < n; lo += most) {
        const int64_t rows = n - lo < most ? n - lo : most;
        turn_rows(t, rows, lanes, row_step, (const char *)v + lo * row_step * t->size, copy);
        of(rows, lanes, lanes, copy, x, at);
        for (int64_t k = 0; k < lanes; k++) {
            x[k] += t->shift;
            if (lo > 0 && !(largest ? x[k] > wide[k] : x[k] < wide[k])) continue;
            wide[k] = x[k];
            where[k] = lo + at[k];
        }
    }
}

/* Columns are as fast by themselves, and no longer than that. */
#define OWN_COLUMN(fn, T, BEFORE)                                                                  \
    static void column_##fn(int64_t rows, int64_t cols, int64_t row_step, const void *v_,          \
                            void *acc_)                                                            \
    {                                                                                              \
        const int64_t most = COLS / (int64_t)sizeof(T);                                            \
        for (int64_t first = 0; first < cols; first += most) {                                     \
            const T *v = (const T *)v_ + first;                                                    \
            T *m = (T *)acc_ + first;                                                              \
            const int64_t n = first + most < cols ? most : cols - first;                           \
            int64_t r = 0;                                                                         \
            for (; r + 2 <= rows; r += 2) {                                                        \
                const T *p = v + r * row_step, *q = p + row_step;                                  \
                FTH__EACH                                                                          \
                for (int64_t c = 0; c < n; c++) {                                                  \
                    const T a = BEFORE(p[c], m[c]) ? p[c] : m[c];                                  \
                    m[c] = BEFORE(q[c], a) ? q[c] : a;                                             \
                }                                                                                  \
            }                                                                                      \
            for (; r < rows; r++)                                                                  \
                for (int64_t c = 0; c < n; c++) {                                                  \
                    const T x = v[r * row_step + c];                                               \
                    m[c] = BEFORE(x, m[c]) ? x : m[c];                                             \
                }                                                                                  \
        }                                                                                          \
    }

#define TURNED_INTS(name, T, U, twin, SHIFT)                                                       \
    static void turn_##name(int64_t n, const void *v_, void *to_)                                  \
    {                                                                                              \
        const U *v = v_;                                                                           \
        U *to = to_;                                                                               \
        FTH__EACH                                                                                  \
        for (int64_t i = 0; i < n; i++) to[i] = (U)(v[i] ^ (U)1 << (8 * sizeof(U) - 1));           \
    }                                                                                              \
    static const turned turned_##name = {turn_##name, sizeof(U), SHIFT};                           \
    TURNED_LOOPS(name, twin, min, false)                                                           \
    TURNED_LOOPS(name, twin, max, true)                                                            \
    OWN_COLUMN(min_##name, T, LESS)                                                                \
    OWN_COLUMN(max_##name, T, MORE)
#define TURNED_LOOPS(name, twin, pick, largest)                                                    \
    static bool row_##pick##_##name(int64_t n, const void *v, void *wide)                          \
    {                                                                                              \
        return row_turned(&turned_##name, row_##pick##_##twin, largest, n, v, wide);               \
    }                                                                                              \
    static int64_t where_##pick##_##name(int64_t n, const void *v, void *wide)                     \
    {                                                                                              \
        return where_turned(&turned_##name, where_##pick##_##twin, largest, n, v, wide);           \
    }                                                                                              \
    static void wheres_##pick##_##name(int64_t n, int64_t lanes, int64_t row_step, const void *v,  \
                                       void *wide, int64_t *where)                                 \
    {                                                                                              \
        wheres_turned(&turned_##name, wheres_##pick##_##twin, largest, n, lanes, row_step, v,      \
                      wide, where);                                                                \
    }
TURNED_INTS(i8, int8_t, uint8_t, u8, -0x80)
TURNED_INTS(i16, int16_t, uint16_t, u16, -0x8000)
TURNED_INTS(u32, uint32_t, uint32_t, i32, 0x80000000)

#define TABLE(kind, pick)                                                                          \
    {                                                                                              \
        [FTH_BOOL] = kind##_##pick##_u8, [FTH_U8] = kind##_##pick##_u8,                            \
        [FTH_U16] = kind##_##pick##_u16, [FTH_I32] = kind##_##pick##_i32,                          \
        [FTH_I64] = kind##_##pick##_i64, [FTH_F32] = kind##_##pick##_f32,                          \
        [FTH_F64] = kind##_##pick##_f64, [FTH_U32] = kind##_##pick##_u32,                          \
        [FTH_I16] = kind##_##pick##_i16, [FTH_I8] = kind##_##pick##_i8                             \
    }
#define BOTH_WAYS(kind)                                                                            \
    {                                                                                              \
        TABLE(kind, min), TABLE(kind, max)                                                         \
    }
const fth__extreme_loops FTH_ISA_NAME(fth__extreme_loops) = {.row = BOTH_WAYS(row),
                                                             .column = BOTH_WAYS(column),
                                                             .where = BOTH_WAYS(where),
                                                             .wheres = BOTH_WAYS(wheres)};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: give it rows above");
