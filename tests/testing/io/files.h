/* testing/io/files.h - small helpers of the tests that read and write files. */
#ifndef FATHOM_TESTING_FILES_H
#define FATHOM_TESTING_FILES_H

#include "testing/test.h"

#include <fathom/io.h>

#include <dirent.h>

/* Tests run in the root of the repository. */
#define GOLDEN(name) "tests/golden/io/" name

static inline fth_mem *t_mem(uint64_t budget)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = budget;
    fth_mem *mem = NULL;
    OK(fth_mem_create(&mem, &opt, NULL));
    return mem;
}

/* The whole file, to be freed by the caller. */
static inline unsigned char *t_file_read(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f) FAIL("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*bytes + 1);
    if (fread(data, 1, *bytes, f) != *bytes) FAIL("cannot read %s", path);
    fclose(f);
    return data;
}

static inline void t_file_write(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) FAIL("cannot write %s", path);
}

/* Files in the folder of this process, hidden ones included: nothing may be left behind. */
static inline int64_t t_file_count(void)
{
    DIR *d = opendir(t_temp_dir());
    int64_t n = -2; /* . and .. */
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static inline bool t_file_exists(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f != NULL;
}

/* Element k of the golden files as a pair of doubles. */
static inline void t_golden_value(fth_dtype t, int64_t k, double out[2])
{
    const double half = (double)k / 2 - 3;
    out[1] = fth_dtype_is_complex(t) ? -(double)k : 0;
    out[0] = t == FTH_BOOL ? k % 3 == 0 : fth_dtype_is_int(t) ? (double)k : half;
}

/* Element i of an array as a pair of doubles; f16 by hand, for numbers without exceptions. */
static inline void t_element(fth_dtype t, const void *v, int64_t i, double out[2])
{
    out[1] = 0;
    switch (t) {
    case FTH_BOOL:
    case FTH_U8: out[0] = ((const uint8_t *)v)[i]; return;
    case FTH_U16: out[0] = ((const uint16_t *)v)[i]; return;
    case FTH_I32: out[0] = ((const int32_t *)v)[i]; return;
    case FTH_I64: out[0] = (double)((const int64_t *)v)[i]; return;
    case FTH_U32: out[0] = ((const uint32_t *)v)[i]; return;
    case FTH_I16: out[0] = ((const int16_t *)v)[i]; return;
    case FTH_I8: out[0] = ((const int8_t *)v)[i]; return;
    case FTH_F32: out[0] = (double)((const float *)v)[i]; return;
    case FTH_F64: out[0] = ((const double *)v)[i]; return;
    case FTH_C64:
        out[0] = (double)((const fth_c64 *)v)[i].re;
        out[1] = (double)((const fth_c64 *)v)[i].im;
        return;
    case FTH_C128:
        out[0] = ((const fth_c128 *)v)[i].re;
        out[1] = ((const fth_c128 *)v)[i].im;
        return;
    case FTH_F16: {
        const uint16_t b = ((const uint16_t *)v)[i];
        const int e = (b >> 10) & 31;
        double m = e ? 1 + (b & 1023) / 1024.0 : (b & 1023) / 1024.0;
        for (int k = e ? e : 1; k < 15; k++) m /= 2;
        for (int k = 15; k < e; k++) m *= 2;
        out[0] = b >> 15 ? -m : m;
        return;
    }
    case FTH_BF16:
    case FTH_DTYPE_COUNT: break;
    }
    FAIL("no element of dtype %d", (int)t);
}

/* The elements of `v`, of extents `size`, are the golden ones. */
static inline void t_golden_check(fth_dtype t, int64_t count, const void *v)
{
    for (int64_t k = 0; k < count; k++) {
        double got[2], wanted[2];
        t_element(t, v, k, got);
        t_golden_value(t, k, wanted);
        EQ_F64(got[0], wanted[0]);
        EQ_F64(got[1], wanted[1]);
    }
}

/* Property: random rectangles and rows of a source are those of its whole, read before, and nothing
 * is written behind them. Few rectangles are empty: of six axes that may each have none, most would
 * be, and a test would look at next to nothing. */
static inline void t_source_check(const fth_source *s, const void *whole, uint64_t stream, int reps)
{
    t_random rnd = t_random_make(stream);
    const int64_t item = fth_dtype_size(s->dtype);
    int64_t total = 1;
    for (int a = 0; a < s->n_axes; a++) total *= s->size[a];
    enum { BEHIND = 256, MARK = 0xa5 };
    unsigned char *got = malloc((size_t)(total * item) + BEHIND);
    for (int rep = 0; rep < reps; rep++) {
        int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES], stride[FTH_MAX_AXES + 1], count = 1;
        const int64_t least = rep % 8 ? 1 : 0;
        stride[s->n_axes] = 1;
        for (int a = s->n_axes; a-- > 0;) {
            const int64_t size = s->size[a];
            lo[a] = t_random_i64(&rnd, 0, size < least ? 0 : size - least);
            n[a] = t_random_i64(&rnd, size < least ? 0 : least, size - lo[a]);
            if (t_random_i64(&rnd, 0, 2) == 0) lo[a] = 0, n[a] = size;
            stride[a] = stride[a + 1] * size;
            count *= n[a];
        }
        memset(got, MARK, (size_t)(total * item) + BEHIND);
        OK(s->read(s->self, lo, n, got, NULL));
        for (int64_t k = count * item; k < count * item + BEHIND; k++)
            if (got[k] != MARK) FAIL("byte %d behind the rectangle is written", (int)k);
        for (int64_t k = 0; k < count; k++) {
            int64_t rest = k, from = 0;
            for (int a = s->n_axes; a-- > 0;) {
                from += (lo[a] + rest % n[a]) * stride[a + 1];
                rest /= n[a];
            }
            SAME_BYTES(got + k * item, (const char *)whole + from * item, item);
        }
    }
    if (s->read_rows && s->size[0] > 0) {
        int64_t index[16];
        const int64_t row = total / s->size[0] * item, m = s->size[0] < 16 ? s->size[0] : 16;
        for (int64_t i = 0; i < m; i++) index[i] = t_random_i64(&rnd, 0, s->size[0] - 1);
        OK(s->read_rows(s->self, index, m, got, NULL));
        for (int64_t i = 0; i < m; i++)
            SAME_BYTES(got + i * row, (const char *)whole + index[i] * row, row);
        index[0] = s->size[0];
        IS(s->read_rows(s->self, index, 1, got, NULL), FTH_E_INDEX_RANGE);
    }
    free(got);
}

#endif /* FATHOM_TESTING_FILES_H */
