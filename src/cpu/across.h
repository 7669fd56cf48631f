/* across.h - lines that lie across memory, side by side, brought along memory and back: some of
 * them at once, because a line of cache has an element of each.
 */
#ifndef FTH_CPU_ACROSS_H
#define FTH_CPU_ACROSS_H

#include <stdbool.h>
#include <stdint.h>

enum { FTH__ACROSS_MOST = 64 };
/* How many of n elements of so many bytes are worth turning at once: those of a line of cache, more
 * where all stay in the second cache. */
static inline int64_t fth__across_lines(int64_t n, int64_t size)
{
    int64_t lines = 64 / size;
    while (lines < FTH__ACROSS_MOST && 2 * lines * n * size <= 1 << 18) lines *= 2;
    return lines;
}

/* Whether lines begin side by side. */
static inline bool fth__is_across(const char *const *line, int64_t lines, int64_t size)
{
    for (int64_t l = 1; l < lines; l++)
        if (line[l] != line[0] + l * size) return false;
    return true;
}

/* n rows of `lines` neighbours, `step` bytes apart, to lines of n, and back. */
void fth__across_gather(int64_t size, int64_t n, int64_t lines, const char *rows, int64_t step,
                        void *to);
void fth__across_scatter(int64_t size, int64_t n, int64_t lines, const void *from, char *rows,
                         int64_t step);

#endif
