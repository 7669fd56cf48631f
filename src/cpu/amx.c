/* amx.c - f32 products on the tile unit: each number is the sum of three bf16, exactly.
 *
 * The unit multiplies bf16 and adds up in f32, sixteen times as fast as vectors of f32 are. A float
 * cut to its upper 16 bits is a bf16; what is left of it, cut again, the second; the rest, the
 * third: x = x0 + x1 + x2. Six of the nine products of parts are made; the other three are below
 * the last bit of x y, so the error is like that of f32.
 *
 * Operands are packed into tiles of 16 lines by 32 numbers of k, the three parts of a tile next to
 * each other, for 512 numbers of k at a time: 256 rows of a then stay in the second cache.
 */
#include "cpu/amx.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/checked.h"

#include <fathom/isa.h>

#include <math.h>
#include <string.h>

enum {
    TILE = 16,    /* rows and columns of a tile of the product */
    BLOCK = 32,   /* numbers of k in a tile of an operand; rows and columns made at once */
    PARTS = 3,    /* of a number */
    HALVES = 512, /* bf16 of a tile */
    STRIPE = 256, /* rows of a that are packed at once: with DEPTH and three parts 768 KiB, */
    DEPTH = 512   /* and numbers of k; the second cache of processors with tiles has 2 MiB */
};

static int64_t blocks(int64_t n)
{
    return (n + BLOCK - 1) / BLOCK;
}

static uint64_t packed(int64_t lines, int64_t k)
{
    return (uint64_t)(blocks(lines) * 2 * blocks(k)) * PARTS * HALVES * sizeof(uint16_t);
}

uint64_t fth__amx_room(int64_t m, int64_t n, int64_t k)
{
    k = fth__min_i64(k, DEPTH);
    return packed(fth__min_i64(m, STRIPE), k) + packed(n, k);
}

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tiles and the vectors they are packed from, whatever set the file is compiled for:
 * fathom/vector.h has no tiles, and this file only runs where they are. */
#define ON_TILES __attribute__((target("avx512f,avx512bw,amx-tile,amx-bf16")))

static bool there;

bool fth__amx_there(void)
{
    return there;
}

/* Tiles and bf16 products (bits 24 and 22) are optional beside level 4. The compiler's runtime does
 * not detect them, so this does. Linux lets a process use the large registers once it asks for
 * permission. */
void fth__amx_init(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool known = fth_isa_level() >= 4 && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
                       (d & (1u << 22)) && (d & (1u << 24));
    there = known && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

/* 0 where all n numbers are finite, NaN where one is not. */
ON_TILES static float zero_times(const float *at, int64_t step, int64_t n)
{
    __m512 zeros = _mm512_setzero_ps();
    float zero = 0.0f;
    int64_t i = 0;
    for (; step == 1 && i + TILE <= n; i += TILE)
        zeros = _mm512_fmadd_ps(_mm512_loadu_ps(at + i), _mm512_setzero_ps(), zeros);
    for (; i < n; i++) zero += at[i * step] * 0.0f;
    return zero + _mm512_reduce_add_ps(zeros);
}

/* Is every element finite? */
ON_TILES static bool is_finite(const fth__amx_operand *o, int64_t rows, int64_t cols)
{
    const bool down = o->row < o->col; /* walk along what lies close together */
    const int64_t n = down ? cols : rows, length = down ? rows : cols;
    const int64_t far = down ? o->col : o->row, near = down ? o->row : o->col;
    for (int64_t i = 0; i < n; i++)
        if (zero_times(o->at + i * far, near, length) != 0.0f) return false;
    return true;
}

/* ---- packing ---- */

/* What is not finite has no parts, and becomes zero here. */
ON_TILES static inline __m512 finite_of(__m512 x)
{
    const __mmask16 good =
        _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps((float)INFINITY), _CMP_LT_OQ);
    return _mm512_maskz_mov_ps(good, x);
}

/* Numbers [0, n) of a line and zeros up to 16. */
ON_TILES static inline __m512 line(const float *at, int64_t step, int64_t n)
{
    float v[TILE] = {0};
    if (n >= TILE && step == 1) return finite_of(_mm512_loadu_ps(at));
    for (int64_t i = 0; i < n && i < TILE; i++) v[i] = at[i * step];
    return finite_of(_mm512_loadu_ps(v));
}

/* The upper halves of x; x becomes what they leave. */
ON_TILES static __m512i part_of(__m512 *x)
{
    const __m512i upper = _mm512_and_si512(_mm512_castps_si512(*x), _mm512_set1_epi32(-65536));
    *x = _mm512_sub_ps(*x, _mm512_castsi512_ps(upper));
    return upper;
}

/* Row r of a tile of a: numbers of k one after the other. */
ON_TILES static void pack_row(uint16_t *to, __m512 x, __m512 y)
{
    for (int p = 0; p < PARTS; p++) {
        const __m512i u = _mm512_srli_epi32(part_of(&x), 16),
                      v = _mm512_srli_epi32(part_of(&y), 16);
        _mm256_storeu_si256((__m256i *)(void *)(to + p * HALVES), _mm512_cvtepi32_epi16(u));
        _mm256_storeu_si256((__m256i *)(void *)(to + p * HALVES + TILE), _mm512_cvtepi32_epi16(v));
    }
}

/* A row of a tile of b: two numbers of k of each column. */
ON_TILES static void pack_pair(uint16_t *to, __m512 x, __m512 y)
{
    for (int p = 0; p < PARTS; p++) {
        const __m512i u = _mm512_srli_epi32(part_of(&x), 16);
        _mm512_storeu_si512(to + p * HALVES, _mm512_or_si512(u, part_of(&y)));
    }
}

static uint16_t *tile_at(uint16_t *room, int64_t group, int64_t n_blocks, int64_t block)
{
    return room + (group * n_blocks + block) * PARTS * HALVES;
}

/* Blocks of k that are not zero in block `at` of the rows of a, or of the columns of b. */
typedef struct range {
    int64_t from, to;
} range;
static range range_of(fth__dot_side side, bool rows, int64_t at, int64_t n_blocks)
{
    if (side == FTH__DOT_FULL) return (range){0, n_blocks};
    const bool from_diagonal = rows == (side == FTH__DOT_ABOVE);
    return from_diagonal ? (range){at, n_blocks} : (range){0, fth__min_i64(at + 1, n_blocks)};
}

/* What of r lies in n_blocks blocks from `first` on, counted from there. */
static range within(range r, int64_t first, int64_t n_blocks)
{
    return (range){fth__max_i64(r.from - first, 0), fth__min_i64(r.to - first, n_blocks)};
}

/* Block `at` of 32 rows of a from `start` on, of which there are m. */
ON_TILES static void pack_a(uint16_t *room, fth__amx_operand a, const float *start, int64_t at,
                            int64_t m, int64_t k, range r)
{
    const int64_t n_blocks = blocks(k);
    for (int64_t i = 0; i < BLOCK; i++) {
        const int64_t rows = at * BLOCK + i < m ? 1 : 0;
        const float *row = start + rows * (at * BLOCK + i) * a.row;
        for (int64_t b = r.from; b < r.to; b++) {
            const int64_t left = rows * (k - b * BLOCK), far = fth__max_i64(left - TILE, 0);
            const float *from = row + b * BLOCK * a.col;
            pack_row(tile_at(room, 2 * at + i / TILE, n_blocks, b) + i % TILE * BLOCK,
                     line(from, a.col, left), line(far ? from + TILE * a.col : from, a.col, far));
        }
    }
}

/* Block `at` of 32 columns of b from `start` on, of which there are n. */
ON_TILES static void pack_b(uint16_t *room, fth__amx_operand b, const float *start, int64_t at,
                            int64_t n, int64_t k, range r)
{
    const int64_t n_blocks = blocks(k);
    for (int64_t g = 0; g < 2; g++) {
        const int64_t col = at * BLOCK + g * TILE, cols = fth__max_i64(n - col, 0);
        const float *from = start + (cols ? col : 0) * b.col;
        for (int64_t i = r.from * TILE; i < r.to * TILE; i++) { /* rows 2i and 2i+1 */
            const int64_t even = 2 * i < k ? cols : 0, odd = 2 * i + 1 < k ? cols : 0;
            pack_pair(tile_at(room, 2 * at + g, n_blocks, i / TILE) + i % TILE * BLOCK,
                      line(even ? from + 2 * i * b.row : from, b.col, even),
                      line(odd ? from + (2 * i + 1) * b.row : from, b.col, odd));
        }
    }
}

/* ---- products ---- */

/* A compiler barrier: the tile unit reads and writes the memory at p. */
static inline void settle(const void *p)
{
    __asm__ volatile("" ::"r"(p) : "memory");
}

/* How the unit is set up: palette 1, all eight tiles 16 rows of 64 bytes. */
ON_TILES static void configure(void)
{
    uint8_t how[64] = {1};
    for (int i = 0; i < 8; i++) how[16 + 2 * i] = 64, how[48 + i] = TILE;
    settle(how);
    _tile_loadconfig(how);
}

#define LOAD_A(p)                                                                                  \
    _tile_loadd(4, a0 + (p)*HALVES, 64);                                                           \
    _tile_loadd(5, a1 + (p)*HALVES, 64)
#define LOAD_B(p)                                                                                  \
    _tile_loadd(6, b0 + (p)*HALVES, 64);                                                           \
    _tile_loadd(7, b1 + (p)*HALVES, 64)
#define MULTIPLY                                                                                   \
    _tile_dpbf16ps(0, 4, 6);                                                                       \
    _tile_dpbf16ps(1, 4, 7);                                                                       \
    _tile_dpbf16ps(2, 5, 6);                                                                       \
    _tile_dpbf16ps(3, 5, 7)

/* 32 by 32 elements of the product, added to c or put there; 0, 1 and 2 are the parts in falling
 * order. */
ON_TILES static void multiply(const uint16_t *a0, const uint16_t *a1, const uint16_t *b0,
                              const uint16_t *b1, int64_t n_blocks, bool add, float *c, int64_t ld)
{
    const int64_t step = PARTS * HALVES, bytes = ld * (int64_t)sizeof *c;
    if (add) {
        _tile_loadd(0, c, bytes);
        _tile_loadd(1, c + TILE, bytes);
        _tile_loadd(2, c + TILE * ld, bytes);
        _tile_loadd(3, c + TILE * ld + TILE, bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < n_blocks; i++, a0 += step, a1 += step, b0 += step, b1 += step) {
        LOAD_A(0);
        LOAD_B(2);
        MULTIPLY;
        LOAD_B(1);
        MULTIPLY;
        LOAD_B(0);
        MULTIPLY;
        LOAD_A(1);
        MULTIPLY;
        LOAD_B(1);
        MULTIPLY;
        LOAD_A(2);
        LOAD_B(0);
        MULTIPLY;
    }
    _tile_stored(0, c, bytes);
    _tile_stored(1, c + TILE, bytes);
    _tile_stored(2, c + TILE * ld, bytes);
    _tile_stored(3, c + TILE * ld + TILE, bytes);
}

/* m by n numbers, from rows of BLOCK or to them. */
static void copy(float *to, int64_t t_row, int64_t t_col, const float *from, int64_t f_row,
                 int64_t f_col, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) to[i * t_row + j * t_col] = from[i * f_row + j * f_col];
}

/* A stripe of rows and DEPTH of k: what a product is cut into. */
typedef struct piece {
    uint16_t *a, *b;                  /* packed */
    int64_t rows, cols;               /* of the product */
    int64_t first, n_blocks, n_whole; /* blocks of k: the first one, here, in all */
    int64_t first_row;                /* block of rows */
    fth__dot_side side_a, side_b;
} piece;

/* Block (i, j) of the product; a block at an edge is made elsewhere. */
ON_TILES static void multiply_block(const piece *p, int64_t i, int64_t j, bool add, float *c,
                                    int64_t row, int64_t col)
{
    const range ra = range_of(p->side_a, true, p->first_row + i, p->n_whole),
                rb = range_of(p->side_b, false, j, p->n_whole);
    const range all = {fth__max_i64(ra.from, rb.from), fth__min_i64(ra.to, rb.to)},
                r = within(all, p->first, p->n_blocks);
    if (r.from >= r.to) return;
    FTH_ASSERT(r.from >= 0 && r.to <= p->n_blocks);
    _Alignas(64) float room[BLOCK * BLOCK];
    const int64_t m = fth__min_i64(BLOCK, p->rows - i * BLOCK),
                  n = fth__min_i64(BLOCK, p->cols - j * BLOCK), n_blocks = p->n_blocks;
    const bool direct = m == BLOCK && n == BLOCK && col == 1, more = add || all.from < p->first;
    if (!direct) memset(room, 0, sizeof room);
    if (!direct && more) copy(room, BLOCK, 1, c, row, col, m, n);
    settle(room);
    multiply(tile_at(p->a, 2 * i, n_blocks, r.from), tile_at(p->a, 2 * i + 1, n_blocks, r.from),
             tile_at(p->b, 2 * j, n_blocks, r.from), tile_at(p->b, 2 * j + 1, n_blocks, r.from),
             r.to - r.from, more, direct ? c : room, direct ? row : BLOCK);
    settle(room);
    if (!direct) copy(c, row, col, room, BLOCK, 1, m, n);
}

/* ---- what is not finite ---- */

static bool is_outside(const fth__amx_operand *o, int64_t i, int64_t j)
{
    return (o->side == FTH__DOT_BELOW && i < j) || (o->side == FTH__DOT_ABOVE && i > j);
}

/* Adds the terms of one element with a factor that is not finite, which the tiles left out. */
static void add_terms(int64_t i, int64_t j, int64_t k, const fth__amx_operand *a,
                      const fth__amx_operand *b, float *c)
{
    for (int64_t l = 0; l < k && !isnan(*c); l++) {
        const float x = a->at[i * a->row + l * a->col], y = b->at[l * b->row + j * b->col];
        if ((!isfinite(x) || !isfinite(y)) && !is_outside(a, i, l) && !is_outside(b, l, j))
            *c += x * y;
    }
}

/* Elements of the rows of a and the columns of b that are not finite; others keep their bits. */
ON_TILES static void add_all_terms(int64_t m, int64_t n, int64_t k, const fth__amx_operand *a,
                                   const fth__amx_operand *b, float *c, int64_t row, int64_t col)
{
    for (int64_t i = 0; i < m; i++) {
        if (zero_times(a->at + i * a->row, a->col, k) == 0.0f) continue;
        for (int64_t j = 0; j < n; j++) add_terms(i, j, k, a, b, &c[i * row + j * col]);
    }
    for (int64_t j = 0; j < n; j++) {
        if (zero_times(b->at + j * b->col, b->row, k) == 0.0f) continue;
        for (int64_t i = 0; i < m; i++)
            if (zero_times(a->at + i * a->row, a->col, k) == 0.0f)
                add_terms(i, j, k, a, b, &c[i * row + j * col]);
    }
}

ON_TILES void fth__amx_product(int64_t m, int64_t n, int64_t k, fth__amx_operand a,
                               fth__amx_operand b, bool add, fth__matrix_out c, void *room)
{
    const int64_t row = c.cols ? 1 : c.ld, col = c.cols ? c.ld : 1;
    FTH_ASSERT(there && fth__is_aligned(room, 64));
    FTH_ASSERT(a.side == FTH__DOT_FULL || b.side == FTH__DOT_FULL);
    configure();
    for (int64_t k0 = 0; k0 < k; k0 += DEPTH) {
        const int64_t depth = fth__min_i64(DEPTH, k - k0);
        piece p = {.a = room, .cols = n, .first = k0 / BLOCK, .n_whole = blocks(k)};
        p.b = p.a + packed(fth__min_i64(m, STRIPE), depth) / sizeof *p.a;
        FTH_ASSERT((uint64_t)((char *)p.b - (char *)room) + packed(n, depth) <=
                   fth__amx_room(m, n, k));
        p.n_blocks = blocks(depth), p.side_a = a.side, p.side_b = b.side;
        for (int64_t j = 0; j < blocks(n); j++)
            pack_b(p.b, b, b.at + k0 * b.row, j, n, depth,
                   within(range_of(b.side, false, j, p.n_whole), p.first, p.n_blocks));
        for (int64_t m0 = 0; m0 < m; m0 += STRIPE) {
            p.rows = fth__min_i64(STRIPE, m - m0), p.first_row = m0 / BLOCK;
            for (int64_t i = 0; i < blocks(p.rows); i++)
                pack_a(p.a, a, a.at + m0 * a.row + k0 * a.col, i, p.rows, depth,
                       within(range_of(a.side, true, p.first_row + i, p.n_whole), p.first,
                              p.n_blocks));
            for (int64_t j = 0; j < blocks(n); j++)
                for (int64_t i = 0; i < blocks(p.rows); i++)
                    multiply_block(&p, i, j, add,
                                   (float *)c.data + (m0 + i * BLOCK) * row + j * BLOCK * col, row,
                                   col);
        }
    }
    _tile_release();
    if (!is_finite(&a, m, k) || !is_finite(&b, k, n))
        add_all_terms(m, n, k, &a, &b, c.data, row, col);
}

#else

void fth__amx_init(void)
{
}

bool fth__amx_there(void)
{
    return false;
}

void fth__amx_product(int64_t m, int64_t n, int64_t k, fth__amx_operand a, fth__amx_operand b,
                      bool add, fth__matrix_out c, void *room)
{
    (void)m, (void)n, (void)k, (void)a, (void)b, (void)add, (void)c, (void)room;
}

#endif
