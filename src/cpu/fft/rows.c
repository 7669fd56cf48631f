/* rows.c - rows of any number of points, by lanes, by steps or as a convolution. */
#include "cpu/fft/rows.h"

#include "base/assert.h"

#include <string.h>

static uint64_t round64(uint64_t bytes)
{
    return (bytes + 63) & ~(uint64_t)63;
}

/* Rows that are copied at a time, of so many: columns of those numbers are whole lines of cache. */
static int64_t bundle(int64_t size, int64_t rows)
{
    const int64_t most = FTH__FFT_VECTOR / size;
    return rows < 1 ? 1 : rows < most ? rows : most;
}

static char *take(char **memory, uint64_t bytes)
{
    char *at = *memory;
    *memory += round64(bytes);
    return at;
}

static bool is_paired(fth_fft_kind kind, int64_t points)
{
    return (kind == FTH_FFT_REAL || kind == FTH_FFT_REAL_INVERSE) && points % 2 == 0;
}

static bool is_inverse(fth_fft_kind kind)
{
    return kind == FTH_FFT_INVERSE || kind == FTH_FFT_REAL_INVERSE;
}

static int64_t complex_points(fth_fft_kind kind, int64_t points)
{
    return is_paired(kind, points) ? points / 2 : points;
}

/* The divisor that is nearest to the root, and at most that: the columns. */
static int64_t divisor(int64_t n)
{
    int64_t best = 1;
    for (int64_t a = 2; a * a <= n; a++)
        if (n % a == 0) best = a;
    return best;
}

/* A length of a convolution of at least n points: 2^k times 1, 3, 5 or 9 as far as that divides by
 * 256, so that both factors fill the lanes. */
static int64_t good_length(int64_t n)
{
    static const int64_t odd[] = {1, 3, 5, 9};
    int64_t best = 256;
    while (best < n) best *= 2;
    for (int i = 1; i < 4; i++)
        for (int64_t m = 256 * odd[i]; m < best; m *= 2)
            if (m >= n) best = m;
    return best;
}

/* Before so many numbers of a long row; false: leave it as it is. */
static bool goes_on(fth__asking *ask, int64_t numbers)
{
    return !ask || fth__asking_on(ask, (double)numbers);
}

/* ---- one long row: columns, roots, rows ---- */

static int64_t in_blocks(int64_t n, int64_t lanes)
{
    return (n + lanes - 1) / lanes * lanes;
}

static uint64_t buffer_bytes(int64_t points)
{
    return (uint64_t)(points + 1) * 2 * FTH__FFT_VECTOR;
}

static uint64_t turns_bytes(int64_t a, int64_t b, int64_t size)
{
    return round64((uint64_t)(a * in_blocks(b, FTH__FFT_VECTOR / size) * 2 * size));
}

static uint64_t steps_bytes(int64_t n, int64_t size)
{
    const int64_t a = divisor(n), b = n / a;
    return round64(fth__fft_plan_bytes(a, size)) + round64(fth__fft_plan_bytes(b, size)) +
           turns_bytes(a, b, size);
}

/* Roots of n = a b points, from those of a and of b steps: sines and cosines of each would take
 * longer than the transform. Double precision, which loses two digits less than single needs; in
 * double precision every root is computed. */
typedef struct circle {
    int64_t n, b;
    const double *far, *near; /* [a]: w^(b i); [b]: w^i */
} circle;

static void root_of(const circle *c, int64_t k, int64_t size, double *re, double *im)
{
    if (size == 8) {
        fth__fft_root(k, c->n, re, im);
        return;
    }
    const double *f = c->far + 2 * (k / c->b), *g = c->near + 2 * (k % c->b);
    *re = f[0] * g[0] - f[1] * g[1];
    *im = f[0] * g[1] + f[1] * g[0];
}

/* Roots w^(j k) of column j and frequency k: for each block of columns and each k the vector of
 * real parts, then that of imaginary parts. `room`: 2 (a + b) numbers. */
static void fill_turns(void *to, int64_t a, int64_t b, int64_t lanes, int64_t size, double *room,
                       fth__asking *ask)
{
    const circle c = {a * b, b, room, room + 2 * a};
    for (int64_t i = 0; i < a; i++) fth__fft_root(b * i, c.n, &room[2 * i], &room[2 * i + 1]);
    for (int64_t i = 0; i < b; i++)
        fth__fft_root(i, c.n, &room[2 * (a + i)], &room[2 * (a + i) + 1]);
    for (int64_t block = 0; block * lanes < b && goes_on(ask, a * lanes); block++)
        for (int64_t k = 0; k < a; k++)
            for (int64_t i = 0; i < lanes; i++) {
                double re, im;
                const int64_t at = ((block * a + k) * 2) * lanes + i;
                root_of(&c, (block * lanes + i) * k % c.n, size, &re, &im);
                if (size == 8) {
                    ((double *)to)[at] = re;
                    ((double *)to)[at + lanes] = im;
                } else {
                    ((float *)to)[at] = (float)re;
                    ((float *)to)[at + lanes] = (float)im;
                }
            }
}

/* With room for `n` points already there. */
static void steps_make(fth__fft_steps *s, int64_t n, const fth__fft_loops *loops, int64_t size,
                       fth__asking *ask, char *free)
{
    const int64_t a = divisor(n), b = n / a;
    FTH_ASSERT(s->n == n && s->buffer);
    fth__fft_plan_make(&s->columns, a, size, take(&free, fth__fft_plan_bytes(a, size)));
    fth__fft_plan_make(&s->rows, b, size, take(&free, fth__fft_plan_bytes(b, size)));
    void *turns = take(&free, turns_bytes(a, b, size));
    s->turns = turns;
    /* a buffer has eight numbers of double precision and more for each point; a is at most b */
    fill_turns(turns, a, b, loops->lanes, size, s->buffer, ask);
}

/* One row of complex numbers that follow each other, to another or in place; exchanged on both
 * sides where it is an inverse. */
static void steps_run(const fth__fft_steps *s, const fth__fft_loops *loops, int64_t size,
                      const void *from, void *to, bool swap_in, bool swap_out, double scale,
                      fth__asking *ask)
{
    const int64_t a = s->columns.n, b = s->rows.n, lanes = loops->lanes, number = 2 * size;
    union {
        const void *in;
        char *out;
    } cast = {from}; /* rows are one type for both directions; this one is only read */
    for (int64_t j = 0; j < b && goes_on(ask, a * lanes); j += lanes) {
        const int64_t rows = b - j < lanes ? b - j : lanes;
        const fth__fft_rows
            in = {cast.out + j * number, 1, b, rows, FTH__FFT_COMPLEX, .swapped = swap_in},
            out = {(char *)s->work + j * number, 1, b, rows, FTH__FFT_COMPLEX, .swapped = false};
        const fth__fft_result r = {s->buffer, s->columns.at, a, 1.0,
                                   (const char *)s->turns + j * a * number};
        loops->load(s->buffer, &in, a);
        loops->run(&s->columns, s->buffer);
        loops->store(&out, &r);
    }
    for (int64_t k = 0; k < a && goes_on(ask, b * lanes); k += lanes) {
        const int64_t rows = a - k < lanes ? a - k : lanes;
        const fth__fft_rows
            in = {(char *)s->work + k * b * number, b, 1, rows, FTH__FFT_COMPLEX, .swapped = false},
            out = {(char *)to + k * number, 1, a, rows, FTH__FFT_COMPLEX, .swapped = swap_out};
        const fth__fft_result r = {s->buffer, s->rows.at, b, scale, NULL};
        loops->load(s->buffer, &in, b);
        loops->run(&s->rows, s->buffer);
        loops->store(&out, &r);
    }
}

/* ---- as a convolution: j k = (j^2 + k^2 - (k - j)^2) / 2 ---- */

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

static void chirp_make(fth__fft_transform *t, void *chirp, void *wave)
{
    const int64_t n = t->complex, m = t->steps.n;
    memset(wave, 0, (size_t)(m * 2 * t->size));
    for (int64_t j = 0; j < n && goes_on(t->ask, 1); j++) {
        double re, im;
        /* j^2 modulo 2 n without overflow for any n that plans have */
        fth__fft_root((int64_t)((uint64_t)j * (uint64_t)j % (uint64_t)(2 * n)), 2 * n, &re, &im);
        put(chirp, t->size, j, re, im);
        put(wave, t->size, j, re, -im);
        if (j > 0) put(wave, t->size, m - j, re, -im);
    }
    steps_run(&t->steps, t->loops, t->size, wave, wave, false, false, 1.0 / (double)m, t->ask);
    t->chirp = chirp;
    t->wave = wave;
}

static void chirp_run(const fth__fft_transform *t, const void *from, void *to, double scale)
{
    const int64_t n = t->complex, m = t->steps.n, number = 2 * t->size;
    char *row = t->row[1];
    if (!goes_on(t->ask, 0)) return;
    t->loops->multiply(row, from, t->chirp, n);
    memset(row + n * number, 0, (size_t)((m - n) * number));
    steps_run(&t->steps, t->loops, t->size, row, row, false, false, 1.0, t->ask);
    if (!goes_on(t->ask, 0)) return;
    t->loops->multiply(row, row, t->wave, m);
    steps_run(&t->steps, t->loops, t->size, row, row, true, true, scale, t->ask);
    if (!goes_on(t->ask, 0)) return;
    t->loops->multiply(to, row, t->chirp, n);
}

/* ---- a transform: tables that are only read, and room to work in ---- */

static bool is_by_lanes(int64_t n)
{
    return fth__fft_is_smooth(n) && n <= FTH__FFT_LANES;
}

int64_t fth__fft_steps_of(int64_t n)
{
    return fth__fft_is_smooth(n) ? n : good_length(2 * n - 1);
}

static uint64_t tables_bytes(fth_fft_kind kind, int64_t points, int64_t size)
{
    const int64_t n = complex_points(kind, points);
    const uint64_t number = 2 * (uint64_t)size,
                   roots = is_paired(kind, points) ? round64((uint64_t)(n / 2 + 1) * number) : 0;
    if (n == 0) return 0;
    if (is_by_lanes(n))
        return roots + round64(fth__fft_plan_bytes(n, size)) + (n == 64 ? FTH__FFT_ROW_TURNS : 0);
    const int64_t m = fth__fft_steps_of(n);
    const uint64_t waves =
        fth__fft_is_smooth(n) ? 0 : round64((uint64_t)m * number) + round64((uint64_t)n * number);
    return roots + steps_bytes(m, size) + waves;
}

uint64_t fth__fft_room_bytes(fth_fft_kind kind, int64_t points, int64_t size, int64_t rows)
{
    const int64_t n = complex_points(kind, points);
    const uint64_t number = 2 * (uint64_t)size;
    if (n == 0) return 0;
    if (is_by_lanes(n)) return round64(buffer_bytes(n));
    const int64_t m = fth__fft_steps_of(n);
    return round64((uint64_t)m * number) + round64(buffer_bytes(m / divisor(m))) +
           round64((uint64_t)((n + 1) * bundle(size, rows)) * number) +
           (fth__fft_is_smooth(n) ? 0 : round64((uint64_t)m * number));
}

uint64_t fth__fft_transform_bytes(fth_fft_kind kind, int64_t points, int64_t size, int64_t rows)
{
    return tables_bytes(kind, points, size) + fth__fft_room_bytes(kind, points, size, rows);
}

double fth__fft_numbers(fth_fft_kind kind, int64_t points, double rows)
{
    const int64_t n = complex_points(kind, points);
    if (n == 0 || is_by_lanes(n)) return (double)n * rows;
    const double m = (double)fth__fft_steps_of(n);
    if (fth__fft_is_smooth(n)) return m + 2.0 * m * rows; /* roots; columns and rows */
    return (double)n + 3.0 * m + 4.0 * m * rows; /* chirps and their transform; two of each row */
}

void fth__fft_transform_move(fth__fft_transform *t, void *room)
{
    char *free = room;
    const int64_t n = t->complex;
    const uint64_t number = 2 * (uint64_t)t->size;
    if (t->way == FTH__FFT_BY_LANES) {
        t->buffer = take(&free, buffer_bytes(n));
        return;
    }
    const int64_t m = t->steps.n;
    t->steps.work = take(&free, (uint64_t)m * number);
    t->steps.buffer = take(&free, buffer_bytes(m / divisor(m)));
    t->row[0] = take(&free, (uint64_t)((n + 1) * t->most) * number);
    if (t->way == FTH__FFT_BY_CHIRP) t->row[1] = take(&free, (uint64_t)m * number);
}

static void fill_roots(fth__fft_transform *t, void *roots)
{
    for (int64_t k = 0; 2 * k <= t->complex; k++) {
        double re, im;
        fth__fft_root(k, t->points, &re, &im);
        put(roots, t->size, k, re, im);
    }
    t->roots = roots;
}

void fth__fft_transform_make(fth__fft_transform *t, fth_fft_kind kind, int64_t points, int64_t size,
                             int64_t rows, double scale, const fth__fft_loops *loops,
                             fth__asking *ask, void *memory)
{
    char *free = memory;
    const int64_t n = complex_points(kind, points);
    const uint64_t number = 2 * (uint64_t)size;
    FTH_ASSERT(n > 0);
    *t = (fth__fft_transform){.kind = kind,
                              .points = points,
                              .complex = n,
                              .size = size,
                              .most = bundle(size, rows),
                              .scale = scale,
                              .loops = loops,
                              .ask = ask,
                              .way = is_by_lanes(n)          ? FTH__FFT_BY_LANES
                                     : fth__fft_is_smooth(n) ? FTH__FFT_BY_STEPS
                                                             : FTH__FFT_BY_CHIRP};
    t->steps.n = t->way == FTH__FFT_BY_LANES ? 0 : fth__fft_steps_of(n);
    fth__fft_transform_move(t, free + tables_bytes(kind, points, size));
    if (is_paired(kind, points)) fill_roots(t, take(&free, (uint64_t)(n / 2 + 1) * number));
    if (t->way == FTH__FFT_BY_LANES) {
        fth__fft_plan_make(&t->plan, n, size, take(&free, fth__fft_plan_bytes(n, size)));
        if (n != 64 || !loops->row_turns) return;
        loops->row_turns(&t->plan, free);
        t->row_turns = free;
        return;
    }
    const int64_t m = t->steps.n;
    steps_make(&t->steps, m, t->loops, size, ask, take(&free, steps_bytes(m, size)));
    if (t->way == FTH__FFT_BY_STEPS) return;
    void *wave = take(&free, (uint64_t)m * number);
    chirp_make(t, take(&free, (uint64_t)n * number), wave);
}

/* ---- rows by lanes ---- */

static void run_lanes(const fth__fft_transform *t, const fth__fft_rows *from,
                      const fth__fft_rows *to)
{
    const fth__fft_loops *loops = t->loops;
    const int64_t n = t->complex;
    const bool paired = is_paired(t->kind, t->points);
    if (from->point == FTH__FFT_COMPLEX && to->point == FTH__FFT_COMPLEX && from->row == 1 &&
        to->row == 1 && from->rows == loops->lanes && t->plan.n_passes > 1) {
        loops->columns(&t->plan, t->buffer, from, to, t->scale);
        return;
    }
    fth__fft_result r = {t->buffer, t->plan.at, n, t->scale, NULL};
    const int64_t half = t->points / 2 + 1; /* frequencies of real points */
    loops->load(t->buffer, from, t->kind == FTH_FFT_REAL_INVERSE ? half : n);
    if (t->kind == FTH_FFT_REAL_INVERSE && paired) loops->join(t->buffer, n, t->roots);
    if (t->kind == FTH_FFT_REAL_INVERSE && !paired) loops->mirror(t->buffer, n);
    loops->run(&t->plan, t->buffer);
    if (t->kind == FTH_FFT_REAL && paired) loops->part(t->buffer, t->plan.at, n, t->roots);
    if (t->kind == FTH_FFT_REAL) r.points = half;
    loops->store(to, &r);
}

/* ---- long rows, one by one ---- */

#define DEFINE_MOVE(name, type)                                                                    \
    /* dst[r][i] = src[r][i], steps in elements; rows inside, since columns are next to each other \
     */                                                                                            \
    static void name(void *dst_, int64_t d_row, int64_t d_step, const void *src_, int64_t s_row,   \
                     int64_t s_step, int64_t rows, int64_t n)                                      \
    {                                                                                              \
        type *dst = dst_;                                                                          \
        const type *src = src_;                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t r = 0; r < rows; r++)                                                     \
                dst[r * d_row + i * d_step] = src[r * s_row + i * s_step];                         \
    }
DEFINE_MOVE(move4, uint32_t)
DEFINE_MOVE(move8, uint64_t)
DEFINE_MOVE(move16, fth_c128)

static void move(int64_t size, void *dst, int64_t d_row, int64_t d_step, const void *src,
                 int64_t s_row, int64_t s_step, int64_t rows, int64_t n)
{
    if (d_step == 1 && s_step == 1) {
        for (int64_t r = 0; r < rows; r++)
            memcpy((char *)dst + r * d_row * size, (const char *)src + r * s_row * size,
                   (size_t)(n * size));
    } else if (size == 4) {
        move4(dst, d_row, d_step, src, s_row, s_step, rows, n);
    } else if (size == 8) {
        move8(dst, d_row, d_step, src, s_row, s_step, rows, n);
    } else {
        move16(dst, d_row, d_step, src, s_row, s_step, rows, n);
    }
}

/* Some rows as complex numbers that follow each other, `t->complex + 1` for each row. */
static void gather(const fth__fft_transform *t, const fth__fft_span *from, int64_t rows)
{
    const int64_t size = t->size, n = t->complex, room = n + 1, half = t->points / 2 + 1;
    char *to = t->row[0];
    if (t->kind == FTH_FFT_REAL && !is_paired(t->kind, t->points)) {
        memset(to, 0, (size_t)(rows * room * 2 * size));
        move(size, to, 2 * room, 2, from->data, from->row, from->step, rows, n);
    } else if (t->kind == FTH_FFT_REAL) {
        move(size, to, 2 * room, 1, from->data, from->row, from->step, rows, t->points);
    } else {
        move(2 * size, to, room, 1, from->data, from->row, from->step, rows,
             t->kind == FTH_FFT_REAL_INVERSE ? half : n);
    }
}

static void scatter(const fth__fft_transform *t, const fth__fft_span *to, int64_t rows)
{
    const int64_t size = t->size, n = t->complex, room = n + 1, half = t->points / 2 + 1;
    const char *from = t->row[0];
    if (t->kind == FTH_FFT_REAL_INVERSE && !is_paired(t->kind, t->points))
        move(size, to->data, to->row, to->step, from, 2 * room, 2, rows, n);
    else if (t->kind == FTH_FFT_REAL_INVERSE)
        move(size, to->data, to->row, to->step, from, 2 * room, 1, rows, t->points);
    else
        move(2 * size, to->data, to->row, to->step, from, room, 1, rows,
             t->kind == FTH_FFT_REAL ? half : n);
}

/* A row of complex numbers that follow each other, in place; exchanged on the way in or out. */
static void run_complex(const fth__fft_transform *t, const void *from, void *to, bool swap_in,
                        bool swap_out)
{
    if (t->way == FTH__FFT_BY_STEPS) {
        steps_run(&t->steps, t->loops, t->size, from, to, swap_in, swap_out, t->scale, t->ask);
        return;
    }
    if (swap_in) t->loops->swap(to, from, t->complex);
    chirp_run(t, swap_in ? to : from, to, t->scale);
    if (swap_out) t->loops->swap(to, to, t->complex);
}

static void run_long(const fth__fft_transform *t, const fth__fft_span *from,
                     const fth__fft_span *to, int64_t rows)
{
    const int64_t n = t->complex, number = 2 * t->size, half = t->points / 2;
    const bool inverse = is_inverse(t->kind), paired = is_paired(t->kind, t->points);
    gather(t, from, rows);
    for (int64_t r = 0; r < rows; r++) {
        char *row = (char *)t->row[0] + r * (n + 1) * number;
        if (t->kind == FTH_FFT_REAL_INVERSE && paired) t->loops->join_row(row, n, t->roots);
        if (t->kind == FTH_FFT_REAL_INVERSE && !paired) t->loops->mirror_row(row, t->points);
        run_complex(t, row, row, inverse && !(t->kind == FTH_FFT_REAL_INVERSE && paired), inverse);
        if (t->kind == FTH_FFT_REAL && paired) t->loops->part_row(row, half, t->roots);
    }
    scatter(t, to, rows);
}

/* ---- any rows ---- */

/* Complex rows that follow each other need no copy. */
static bool is_direct(const fth__fft_transform *t, const fth__fft_span *from,
                      const fth__fft_span *to)
{
    return (t->kind == FTH_FFT_FORWARD || t->kind == FTH_FFT_INVERSE) && from->step == 1 &&
           to->step == 1;
}

static fth__fft_point point_of(const fth__fft_transform *t, bool real)
{
    if (!real) return FTH__FFT_COMPLEX;
    return is_paired(t->kind, t->points) ? FTH__FFT_PAIR : FTH__FFT_REAL;
}

/* All rows of 64 points at once. */
static void run_rows_64(const fth__fft_transform *t, const fth__fft_span *from,
                        const fth__fft_span *to, int64_t rows)
{
    const bool swapped = is_inverse(t->kind);
    t->loops->rows_64(
        t->row_turns,
        &(fth__fft_rows){from->data, from->row, 1, rows, FTH__FFT_COMPLEX, .swapped = swapped},
        &(fth__fft_rows){to->data, to->row, 1, rows, FTH__FFT_COMPLEX, .swapped = swapped},
        t->scale);
}

void fth__fft_transform_run(const fth__fft_transform *t, const fth__fft_span *from,
                            const fth__fft_span *to, int64_t rows)
{
    if (t->row_turns && is_direct(t, from, to)) {
        run_rows_64(t, from, to, rows);
        return;
    }
    const bool inverse = is_inverse(t->kind), paired = is_paired(t->kind, t->points),
               real_in = t->kind == FTH_FFT_REAL, real_out = t->kind == FTH_FFT_REAL_INVERSE;
    const int64_t in_size = real_in ? t->size : 2 * t->size,
                  out_size = real_out ? t->size : 2 * t->size,
                  most = t->way == FTH__FFT_BY_LANES ? t->loops->lanes
                         : is_direct(t, from, to)    ? 1
                                                     : t->most;
    for (int64_t r = 0; r < rows; r += most) {
        const int64_t some = rows - r < most ? rows - r : most;
        const fth__fft_span a = {(char *)from->data + r * from->row * in_size, from->row,
                                 from->step},
                            b = {(char *)to->data + r * to->row * out_size, to->row, to->step};
        if (t->way == FTH__FFT_BY_LANES)
            run_lanes(t,
                      &(fth__fft_rows){a.data, a.row, a.step, some, point_of(t, real_in),
                                       inverse && !(real_out && paired), t->far},
                      &(fth__fft_rows){b.data, b.row, b.step, some, point_of(t, real_out), inverse,
                                       t->far});
        else if (is_direct(t, from, to))
            run_complex(t, a.data, b.data, inverse, inverse);
        else
            run_long(t, &a, &b, some);
    }
}
