/* across.c - the loops of across.h. */
#include "cpu/across.h"

enum { ROWS = 16 }; /* of a piece that is turned: what is written lies in the first cache */

#define DEFINE_TURN(U)                                                                             \
    /* Rows of `lines` neighbours, `step` bytes apart, to lines of n, and back. */                 \
    static void gather_##U(int64_t n, int64_t lines, const char *rows, int64_t step, U *to)        \
    {                                                                                              \
        for (int64_t lo = 0; lo < n; lo += ROWS)                                                   \
            for (int64_t l = 0; l < lines; l++)                                                    \
                for (int64_t i = lo; i < lo + ROWS && i < n; i++)                                  \
                    to[l * n + i] = ((const U *)(const void *)(rows + i * step))[l];               \
    }                                                                                              \
    static void scatter_##U(int64_t n, int64_t lines, const U *from, char *rows, int64_t step)     \
    {                                                                                              \
        for (int64_t lo = 0; lo < n; lo += ROWS)                                                   \
            for (int64_t i = lo; i < lo + ROWS && i < n; i++)                                      \
                for (int64_t l = 0; l < lines; l++)                                                \
                    ((U *)(void *)(rows + i * step))[l] = from[l * n + i];                         \
    }
DEFINE_TURN(uint8_t)
DEFINE_TURN(uint16_t)
DEFINE_TURN(uint32_t)
DEFINE_TURN(uint64_t)

void fth__across_gather(int64_t size, int64_t n, int64_t lines, const char *rows, int64_t step,
                        void *to)
{
    switch (size) {
    case 1: gather_uint8_t(n, lines, rows, step, to); break;
    case 2: gather_uint16_t(n, lines, rows, step, to); break;
    case 4: gather_uint32_t(n, lines, rows, step, to); break;
    default: gather_uint64_t(n, lines, rows, step, to); break;
    }
}
void fth__across_scatter(int64_t size, int64_t n, int64_t lines, const void *from, char *rows,
                         int64_t step)
{
    switch (size) {
    case 1: scatter_uint8_t(n, lines, from, rows, step); break;
    case 2: scatter_uint16_t(n, lines, from, rows, step); break;
    case 4: scatter_uint32_t(n, lines, from, rows, step); break;
    default: scatter_uint64_t(n, lines, from, rows, step); break;
    }
}
