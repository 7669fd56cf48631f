/* fused_move.c - rectangles of elements between blocks and memory where they do not lie dense. */
#include "base/assert.h"
#include "cpu/fused.h"
#include "cpu/vec_loop.h"

#include <string.h>

/* Bytes that stand for elements of any dtype of their size. */
#define ANY_TYPE __attribute__((may_alias))
typedef uint8_t ANY_TYPE size1;
typedef uint16_t ANY_TYPE size2;
typedef uint32_t ANY_TYPE size4;
typedef uint64_t ANY_TYPE size8;
typedef struct ANY_TYPE size16 {
    uint64_t a, b;
} size16;

/* One row; the common steps get loops of their own. */
#define MOVES(T)                                                                                   \
    static void row_##T(int64_t n, T *to, int64_t to_step, const T *from, int64_t from_step)       \
    {                                                                                              \
        if (to_step == 1 && from_step == 0) {                                                      \
            const T v = *from;                                                                     \
            FTH__EACH                                                                              \
            for (int64_t i = 0; i < n; i++) to[i] = v;                                             \
        } else if (to_step == 1) {                                                                 \
            FTH__EACH                                                                              \
            for (int64_t i = 0; i < n; i++) to[i] = from[i * from_step];                           \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];                 \
        }                                                                                          \
    }                                                                                              \
    static void move_##T(int64_t rows, int64_t cols, void *to_, int64_t to_row, int64_t to_col,    \
                         const void *from_, int64_t from_row, int64_t from_col)                    \
    {                                                                                              \
        for (int64_t r = 0; r < rows; r++)                                                         \
            row_##T(cols, (T *)to_ + r * to_row, to_col, (const T *)from_ + r * from_row,          \
                    from_col);                                                                     \
    }
/* Squares that go through the cache's lines once each way: 16 elements of four bytes are a line. */
enum { SQUARE = 16 };
#define TRANSPOSE(T)                                                                               \
    static void square_##T(T *to, int64_t to_row, const T *from, int64_t from_col)                 \
    {                                                                                              \
        T kept[SQUARE][SQUARE];                                                                    \
        for (int c = 0; c < SQUARE; c++)                                                           \
            for (int r = 0; r < SQUARE; r++) kept[r][c] = from[c * from_col + r];                  \
        for (int r = 0; r < SQUARE; r++)                                                           \
            for (int c = 0; c < SQUARE; c++) to[r * to_row + c] = kept[r][c];                      \
    }                                                                                              \
    static void transpose_##T(int64_t rows, int64_t cols, void *to_, int64_t to_row,               \
                              const void *from_, int64_t from_col)                                 \
    {                                                                                              \
        T *to = to_;                                                                               \
        const T *from = from_;                                                                     \
        const int64_t r_end = rows / SQUARE * SQUARE, c_end = cols / SQUARE * SQUARE;              \
        for (int64_t r = 0; r < r_end; r += SQUARE)                                                \
            for (int64_t c = 0; c < c_end; c += SQUARE)                                            \
                square_##T(to + r * to_row + c, to_row, from + c * from_col + r, from_col);        \
        for (int64_t r = 0; r < rows; r++)                                                         \
            for (int64_t c = r < r_end ? c_end : 0; c < cols; c++)                                 \
                to[r * to_row + c] = from[c * from_col + r];                                       \
    }
TRANSPOSE(size1)
TRANSPOSE(size2)
TRANSPOSE(size4)
TRANSPOSE(size8)
TRANSPOSE(size16)

static void transpose(int64_t size, int64_t rows, int64_t cols, void *to, int64_t to_row,
                      const void *from, int64_t from_col)
{
    if (size == 1) transpose_size1(rows, cols, to, to_row, from, from_col);
    if (size == 2) transpose_size2(rows, cols, to, to_row, from, from_col);
    if (size == 4) transpose_size4(rows, cols, to, to_row, from, from_col);
    if (size == 8) transpose_size8(rows, cols, to, to_row, from, from_col);
    if (size == 16) transpose_size16(rows, cols, to, to_row, from, from_col);
}

MOVES(size1)
MOVES(size2)
MOVES(size4)
MOVES(size8)
MOVES(size16)

/* Repeat one row, dense: copy what is filled already, twice as much each time. */
static void repeat(int64_t size, int64_t rows, int64_t cols, char *to, const void *from,
                   int64_t from_col)
{
    fth__copy_block(size, 1, cols, to, cols, 1, from, cols, from_col);
    const size_t all = (size_t)(rows * cols * size);
    for (size_t done = (size_t)(cols * size); done > 0 && done < all; done *= 2)
        memcpy(to + done, to, done <= all - done ? done : all - done);
}

void fth__copy_block(int64_t size, int64_t rows, int64_t cols, void *to, int64_t to_row,
                     int64_t to_col, const void *from, int64_t from_row, int64_t from_col)
{
    FTH_ASSERT(size == 1 || size == 2 || size == 4 || size == 8 || size == 16);
    if (to_col == 1 && to_row == cols && from_row == 0 && rows > 1) {
        repeat(size, rows, cols, to, from, from_col);
        return;
    }
    if (to_col == 1 && from_col == 1 && cols * size >= 64) {
        for (int64_t r = 0; r < rows; r++)
            memmove((char *)to + r * to_row * size, (const char *)from + r * from_row * size,
                    (size_t)(cols * size));
        return;
    }
    if (from_row == 1 && to_col == 1 && rows > 1 && cols > 1 && to != from) {
        transpose(size, rows, cols, to, to_row, from, from_col);
        return;
    }
    if (rows > 1 && cols == 1) { /* a column is a row the other way round */
        fth__copy_block(size, cols, rows, to, to_col, to_row, from, from_col, from_row);
        return;
    }
    if (size == 1) move_size1(rows, cols, to, to_row, to_col, from, from_row, from_col);
    if (size == 2) move_size2(rows, cols, to, to_row, to_col, from, from_row, from_col);
    if (size == 4) move_size4(rows, cols, to, to_row, to_col, from, from_row, from_col);
    if (size == 8) move_size8(rows, cols, to, to_row, to_col, from, from_row, from_col);
    if (size == 16) move_size16(rows, cols, to, to_row, to_col, from, from_row, from_col);
}
