/* stand_in.c - sources and sinks that have a shape and no data.
 *
 * A read function gets nothing but `self`, so `self` carries what a rectangle of zeros needs: the
 * number of axes and the bytes of an element. There are few such pairs, and a table of constants
 * holds them all; nothing is allocated, and closing one does nothing.
 */
#include "base/assert.h"
#include "io/dense.h"

#include <string.h>

typedef struct zeros {
    fth__opened opened;
    int n_axes;
    int64_t bytes; /* of an element */
} zeros;

static void close_nothing(void *self)
{
    (void)self;
}

enum { SIZES = 5 }; /* elements of 1, 2, 4, 8 and 16 bytes */
#define ROW(n)                                                                                     \
    {                                                                                              \
        {{close_nothing}, n, 1}, {{close_nothing}, n, 2}, {{close_nothing}, n, 4},                 \
            {{close_nothing}, n, 8},                                                               \
        {                                                                                          \
            {close_nothing}, n, 16                                                                 \
        }                                                                                          \
    }
static const zeros table[FTH_MAX_AXES + 1][SIZES] = {ROW(0), ROW(1), ROW(2), ROW(3), ROW(4),
                                                     ROW(5), ROW(6), ROW(7), ROW(8)};
#undef ROW

static void *self_of(fth_dtype dtype, int n_axes)
{
    int k = 0;
    while (k + 1 < SIZES && table[n_axes][k].bytes < fth_dtype_size(dtype)) k++;
    FTH_ASSERT(table[n_axes][k].bytes == fth_dtype_size(dtype)); /* every dtype has its column */
    return (void *)(uintptr_t)&table[n_axes][k];                 /* nobody writes through it */
}

static fth_status read_nothing(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_INTERNAL, "a plan was run that was made to be looked at");
}

static fth_status write_nothing(void *self, const int64_t *lo, const int64_t *n, const void *src,
                                fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)src;
    return FTH_FAIL(err, FTH_E_INTERNAL, "a plan was run that was made to be looked at");
}

static fth_status read_zeros(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    const zeros *z = self;
    (void)lo, (void)err;
    int64_t bytes = z->bytes;
    for (int a = 0; a < z->n_axes; a++) bytes *= n[a];
    memset(dst, 0, (size_t)bytes);
    return FTH_OK;
}

static fth_status write_away(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)src, (void)err;
    return FTH_OK;
}

static fth_source source_of(const char *kind, fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_source s = {.kind = kind, .dtype = dtype, .n_axes = n_axes};
    for (int a = 0; a < n_axes; a++) s.size[a] = size[a];
    return s;
}

static fth_sink sink_of(const char *kind, fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_sink s = {.kind = kind, .dtype = dtype, .n_axes = n_axes};
    for (int a = 0; a < n_axes; a++) s.size[a] = size[a];
    return s;
}

fth_source fth_source_planned(fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_source s = source_of("planned", dtype, n_axes, size);
    s.read = read_nothing;
    return s;
}

fth_source fth_source_zeros(fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_source s = source_of("zeros", dtype, n_axes, size);
    s.self = self_of(dtype, n_axes);
    s.read = read_zeros;
    return s;
}

fth_sink fth_sink_planned(fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_sink s = sink_of("planned", dtype, n_axes, size);
    s.write = write_nothing;
    return s;
}

fth_sink fth_sink_discard(fth_dtype dtype, int n_axes, const int64_t *size)
{
    fth_sink s = sink_of("none", dtype, n_axes, size);
    s.write = write_away;
    return s;
}
