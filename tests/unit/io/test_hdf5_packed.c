/* test_hdf5_packed.c - datasets through filters that libhdf5 lacks: Zstandard, Blosc, LZ4,
 * Bitshuffle. tests/golden/h5ad/make_packed.py wrote them with hdf5plugin, by one formula.
 * seconds: 4 */
#include "testing/io/files.h"

#include <fathom/io.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FILES "tests/golden/h5ad/"

static double value_of(int64_t i)
{
    return (double)((i * 7 + 3) % 251);
}

static double number(fth_dtype t, const void *raw, int64_t i)
{
    switch ((int)t) {
    case FTH_U8: return ((const uint8_t *)raw)[i];
    case FTH_I32: return ((const int32_t *)raw)[i];
    case FTH_I64: return (double)((const int64_t *)raw)[i];
    case FTH_F32: return (double)((const float *)raw)[i];
    case FTH_F64: return ((const double *)raw)[i];
    default: return (double)NAN;
    }
}

/* Every rectangle of a dataset in steps, against the formula. */
static void check(fth_h5 *h5, const char *name)
{
    fth_source s;
    fth_err err = {0};
    char raw[8 * 100];
    OKE(fth_h5_source(h5, name, &s, &err), &err);
    const int64_t width = s.n_axes == 2 ? s.size[1] : 1;
    for (int64_t r = 0; r < s.size[0]; r += 2)
        for (int64_t n = 1; n <= s.size[0] - r && n < 7; n += 3)
            for (int64_t c = 0; c < width; c += 5) {
                const int64_t lo[2] = {r, c}, size[2] = {n, width - c};
                OKE(s.read(s.self, lo, size, raw, &err), &err);
                for (int64_t i = 0; i < n * (width - c); i++)
                    EQ_F64(number(s.dtype, raw, i),
                           value_of((r + i / (width - c)) * width + c + i % (width - c)));
            }
    fth_source_close(&s);
}

TEST(all_packings_and_types)
{
    static const char *const packing[] = {
        "zstd", "blosc_lz4", "blosc_zstd_bits", "blosc_zlib", "blosc_blosclz", "lz4", "bitshuffle"};
    static const char *const kind[] = {"u8", "i32", "big_i32", "f64", "big_f32", "line"};
    fth_mem *mem = t_mem(1 << 24);
    fth_h5 *h5 = NULL;
    fth_err err = {0};
    OKE(fth_h5_open(&h5, mem, FILES "packed.h5", &err), &err);
    for (size_t p = 0; p < sizeof packing / sizeof packing[0]; p++)
        for (size_t k = 0; k < sizeof kind / sizeof kind[0]; k++) {
            char name[64];
            snprintf(name, sizeof name, "%s/%s", packing[p], kind[k]);
            check(h5, name);
        }
    check(h5, "zstd/shuffled");
    check(h5, "lz4/shuffled");
    check(h5, "zstd/sum"); /* a checksum beside it: libhdf5 reads it through our filter */
    check(h5, "zstd/mask");
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(truth_strings_and_holes)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_h5 *h5 = NULL;
    fth_source s;
    fth_texts *t = NULL;
    fth_err err = {0};
    bool truth[20];
    int32_t holes[12];
    const int64_t zero = 0, twenty = 20, twelve = 12;
    OKE(fth_h5_open(&h5, mem, FILES "packed.h5", &err), &err);
    OKE(fth_h5_source(h5, "zstd/truth", &s, &err), &err);
    EQ_I64(s.dtype, FTH_BOOL);
    OKE(s.read(s.self, &zero, &twenty, truth, &err), &err);
    for (int i = 0; i < 20; i++) EQ_I64(truth[i], (int64_t)value_of(i) % 2);
    fth_source_close(&s);
    OKE(fth_h5_source(h5, "zstd/holes", &s, &err), &err);
    OKE(s.read(s.self, &zero, &twelve, holes, &err), &err);
    for (int i = 0; i < 12; i++) EQ_F64(holes[i], i >= 4 && i < 8 ? value_of(i) : -7);
    fth_source_close(&s);
    for (int k = 0; k < 2; k++) {
        OKE(fth_h5_strings(h5, k ? "zstd/names" : "zstd/strings", &t, &err), &err);
        EQ_I64(fth_texts_count(t), k ? 40 : 20);
        for (int i = 0; i < (k ? 40 : 20); i++) {
            char want[16];
            snprintf(want, sizeof want, "s%d", i);
            EQ_STR(fth_texts_get(t, i), want);
        }
        fth_texts_free(t);
    }
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

/* File, dataset, chunk and what to do. */
TEST(a_damaged_chunk_is_named)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_h5 *h5 = NULL;
    fth_source s;
    fth_err err = {0};
    int32_t v[4];
    const int64_t first = 0, second = 4, n = 4;
    OKE(fth_h5_open(&h5, mem, FILES "packed.h5", &err), &err);
    OKE(fth_h5_source(h5, "zstd/bad", &s, &err), &err);
    OKE(s.read(s.self, &first, &n, v, &err), &err);
    IS(s.read(s.self, &second, &n, v, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "packed.h5, zstd/bad: the chunk that begins at row 4 is damaged: it does not "
                  "unpack to its 16 bytes");
    HAS(err.hint, "copy the file again");
    OKE(s.read(s.self, &first, &n, v, &err), &err); /* it is still good */
    EQ_F64(v[3], value_of(3));
    fth_source_close(&s);
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

/* What a chunk needs is billed when it is opened: too small a budget is refused then. */
TEST(rooms_are_billed)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_h5 *h5 = NULL;
    fth_source s;
    fth_err err = {0};
    fth_mem_stats before, during;
    OKE(fth_h5_open(&h5, mem, FILES "packed.h5", &err), &err);
    fth_mem_get_stats(mem, &before);
    OKE(fth_h5_source(h5, "zstd/f64", &s, &err), &err);
    fth_mem_get_stats(mem, &during);
    IS_TRUE(s.billed_bytes > 3 * 96 + 90000); /* three rooms and zstd's state */
    IS_TRUE(during.used_bytes - before.used_bytes >= s.billed_bytes);
    IS_TRUE(s.libraries & 1u << FTH_LIB_ZSTD);
    fth_source_close(&s);
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
