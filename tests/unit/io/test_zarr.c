/* test_zarr.c - Zarr arrays of others, read: layouts, packings, holes, shards, damage.
 * seconds: 2 */
#include "io/codecs.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/files.h>
#include <fathom/zarr.h>

#include <pthread.h>
#include <unistd.h>
#include <zlib.h>

#undef GOLDEN
#define GOLDEN "tests/golden/zarr/"

enum { D = 5, H = 7, W = 9 };

static fth_mem *mem;

static void start(void)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 64 << 20;
    OK(fth_mem_create(&mem, &opt, NULL));
}

static void stop(void)
{
    fth_err err = {0};
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* Element i of every array of make.py. */
static int64_t value(int64_t i)
{
    return (i * 7919 + 13) % 65521;
}

static fth_source open_source(const char *path)
{
    fth_err err = {0};
    fth_zarr *z = NULL;
    fth_source s;
    OKE(fth_zarr_open(&z, mem, path, &err), &err);
    OKE(fth_zarr_source(z, &s, &err), &err);
    fth_zarr_close(z);
    IS_TRUE(s.concurrent);
    return s;
}

static double element(const fth_source *s, const void *data, int64_t i)
{
    switch ((int)s->dtype) {
    case FTH_U8: return ((const uint8_t *)data)[i];
    case FTH_U16: return ((const uint16_t *)data)[i];
    case FTH_F32: return (double)((const float *)data)[i];
    case FTH_C64: return (double)((const fth_c64 *)data)[i].re;
    default: FAIL("no case for %s", fth_dtype_name(s->dtype));
    }
}

static double wanted(const fth_source *s, int64_t i, bool holes)
{
    const int64_t z = i / (H * W), y = i / W % H, x = i % W;
    if (holes && z < 2 && y < 4 && x < 5) return 42;
    const double v = (double)value(i);
    return s->dtype == FTH_U8 ? (double)((int64_t)v & 255) : s->dtype == FTH_U16 ? v : v / 8;
}

/* A rectangle of an array [5 7 9] against the rule. */
static void check_part(const fth_source *s, const int64_t *lo, const int64_t *n, bool holes)
{
    fth_c64 data[D * H * W];
    fth_err err = {0};
    OKE(s->read(s->self, lo, n, data, &err), &err);
    int64_t k = 0;
    for (int64_t z = lo[0]; z < lo[0] + n[0]; z++)
        for (int64_t y = lo[1]; y < lo[1] + n[1]; y++)
            for (int64_t x = lo[2]; x < lo[2] + n[2]; x++, k++)
                EQ_F64(element(s, data, k), wanted(s, (z * H + y) * W + x, holes));
}

TEST(arrays_of_others_are_read)
{
    static const struct {
        const char *name;
        bool holes;
    } list[] = {{"v2_plain", false},    {"v2_zlib", false},       {"v2_gzip_f", false},
                {"v2_zstd_big", false}, {"v2_blosc_holes", true}, {"v2_blosc_zstd_f32", false},
                {"v3_plain", false},    {"v3_zstd", false},       {"v3_gzip_crc_t", false},
                {"v3_blosc", false},    {"v3_shard_end", false},  {"v3_shard_start_c64", false}};
    t_random r = t_random_make(1);
    start();
    for (int i = 0; i < (int)(sizeof list / sizeof list[0]); i++) {
        char path[200];
        snprintf(path, sizeof path, GOLDEN "%s", list[i].name);
        fth_source s = open_source(path);
        EQ_I64(s.n_axes, 3);
        const int64_t zero[3] = {0}, all[3] = {D, H, W};
        check_part(&s, zero, all, list[i].holes);
        for (int k = 0; k < 20; k++) {
            int64_t lo[3], n[3];
            for (int a = 0; a < 3; a++) {
                lo[a] = t_random_i64(&r, 0, all[a]);
                n[a] = t_random_i64(&r, 0, all[a] - lo[a]);
            }
            check_part(&s, lo, n, list[i].holes);
        }
        const int64_t rows[2] = {4, 1};
        fth_c64 data[2 * H * W];
        OK(s.read_rows(s.self, rows, 2, data, NULL));
        EQ_F64(element(&s, data, 0), wanted(&s, 4 * H * W, list[i].holes));
        fth_source_close(&s);
    }
    stop();
}

TEST(a_single_number_is_an_array)
{
    float v = 0;
    start();
    fth_source s = open_source(GOLDEN "v3_scalar");
    EQ_I64(s.n_axes, 0);
    OK(s.read(s.self, NULL, NULL, &v, NULL));
    EQ_F64(v, 13.0 / 8);
    fth_source_close(&s);
    stop();
}

TEST(info_describes_the_array)
{
    fth_zarr *z = NULL;
    start();
    OK(fth_zarr_open(&z, mem, GOLDEN "v3_shard_end", NULL));
    const fth_zarr_info *info = fth_zarr_get_info(z);
    EQ_I64(info->format, 3);
    EQ_I64(info->chunk[2], 5);
    EQ_I64(info->shard[2], 10);
    EQ_STR(info->packing, "zstd");
    EQ_I64(fth_json_count(fth_zarr_attributes(z)), 0);
    fth_zarr_close(z);
    OK(fth_zarr_open(&z, mem, GOLDEN "v3_zstd", NULL));
    EQ_STR(fth_zarr_get_info(z)->axis[0], "z");
    EQ_STR(fth_zarr_get_info(z)->axis[2], "x");
    fth_zarr_close(z);
    OK(fth_zarr_open(&z, mem, GOLDEN "v3_gzip_crc_t", NULL));
    EQ_STR(fth_zarr_get_info(z)->packing, "gzip crc32c");
    fth_zarr_close(z);
    stop();
}

/* ---- made by hand ---- */

static const char *make_array(const char *name, const char *meta, const char *text)
{
    const char *folder = t_temp_path(name);
    char path[FTH_PATH];
    OK(fth_folder_remove(NULL, folder, NULL));
    OK(fth_folder_make(NULL, folder, NULL));
    OK(fth_path_join(path, folder, meta, NULL));
    t_file_write(path, text, strlen(text));
    return folder;
}

static void add_chunk(const char *folder, const char *name, const void *data, uint64_t bytes)
{
    char path[FTH_PATH];
    OK(fth_path_join(path, folder, name, NULL));
    t_file_write(path, data, bytes);
}

#define V2(dtype, fill, more)                                                                      \
    "{\"zarr_format\":2,\"shape\":[3],\"chunks\":[2],\"dtype\":\"" dtype "\",\"fill_value\":" fill \
    ",\"order\":\"C\",\"filters\":null,\"compressor\":null" more "}"

TEST(fill_values_of_every_kind)
{
    double f64[3];
    float f32[3];
    uint16_t u16[3];
    uint8_t b[3];
    int64_t i64[3];
    fth_c64 c64[3];
    const struct {
        const char *text;
        void *to;
    } list[] = {{V2("<f8", "\"NaN\"", ""), f64},
                {V2("<f4", "\"-Infinity\"", ""), f32},
                {V2("<f2", "1.5", ""), u16},
                {V2("|b1", "true", ""), b},
                {V2("<i8", "-9007199254740993", ""), i64},
                {V2("<c8", "[1.5, -2]", ""), c64},
                {V2("<f4", "null", ""), f32 + 0},
                {V2("|b1", "1", ""), b}, /* as old programs write it */
                {V2("<f4", "\"0x3fC00000\"", ""), f32}};
    start();
    for (int i = 0; i < 9; i++) {
        const int64_t lo = 0, n = 3;
        fth_source s = open_source(make_array("fill", ".zarray", list[i].text));
        OK(s.read(s.self, &lo, &n, list[i].to, NULL));
        if (i == 1) IS_TRUE(f32[0] < -1e38f && f32[2] < -1e38f);
        if (i == 6) EQ_F64(f32[2], 0);
        fth_source_close(&s);
    }
    IS_TRUE(f64[0] != f64[0] && f64[2] != f64[2]);
    EQ_I64(u16[1], 0x3e00);
    EQ_I64(b[2], 1);
    EQ_I64(i64[2], INT64_C(-9007199254740993));
    EQ_F64(c64[1].re, 1.5);
    EQ_F64(c64[1].im, -2);
    EQ_F64(f32[2], 1.5);
    stop();
}

TEST(small_and_unsigned_integers)
{
    int8_t i8[3];
    int16_t i16[3];
    uint32_t u32[3];
    const struct {
        const char *text, *chunk;
        size_t bytes;
        fth_dtype dtype;
        void *to;
    } list[] = {
        {V2("|i1", "-3", ""), "\x80\x7f", 2, FTH_I8, i8},
        {V2(">i2", "-300", ""), "\x80\x00\x00\x07", 4, FTH_I16, i16},
        {V2("<u4", "4294967295", ""), "\xfe\xff\xff\xff\x01\x00\x00\x80", 8, FTH_U32, u32},
    };
    start();
    for (int i = 0; i < 3; i++) {
        const int64_t lo = 0, n = 3;
        const char *folder = make_array("whole", ".zarray", list[i].text);
        add_chunk(folder, "0", list[i].chunk, list[i].bytes);
        fth_source s = open_source(folder);
        EQ_I64(s.dtype, list[i].dtype);
        OK(s.read(s.self, &lo, &n, list[i].to, NULL));
        fth_source_close(&s);
    }
    const int64_t lo = 0, n = 3;
    int64_t i64[3];
    fth_err err = {0};
    const char *folder = make_array("whole", ".zarray", V2("<u8", "7", ""));
    add_chunk(folder, "0", "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80", 16);
    fth_source s = open_source(folder);
    EQ_I64(s.dtype, FTH_I64);
    IS(s.read(s.self, &lo, &n, i64, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "found 9223372036854775808, and there is no dtype u64");
    const int64_t one = 1;
    OK(s.read(s.self, &lo, &one, i64, NULL));
    EQ_I64(i64[0], 1);
    fth_source_close(&s);
    SAME_BYTES(i8, ((int8_t[]){-128, 127, -3}), sizeof i8);
    SAME_BYTES(i16, ((int16_t[]){-32768, 7, -300}), sizeof i16);
    SAME_BYTES(u32, ((uint32_t[]){4294967294u, 2147483649u, 4294967295u}), sizeof u32);
    stop();
}

TEST(bools_become_0_and_1)
{
    uint8_t v[3];
    const int64_t lo = 0, n = 3;
    start();
    const char *folder = make_array("bools", ".zarray", V2("|b1", "false", ""));
    add_chunk(folder, "0", "\x05\x00", 2);
    fth_source s = open_source(folder);
    OK(s.read(s.self, &lo, &n, v, NULL));
    EQ_I64(v[0], 1);
    EQ_I64(v[1], 0);
    fth_source_close(&s);
    stop();
}

TEST(what_is_not_known_is_refused_by_name)
{
#define V3(type, codecs, more)                                                                     \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3],\"data_type\":\"" type               \
    "\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"            \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[" codecs "]" more  \
    "}"
#define BYTES "{\"name\":\"bytes\"}"
    static const struct {
        const char *file, *text;
        fth_status status;
        const char *says;
    } list[] = {
        {".zarray", V2("<m8", "0", ""), FTH_E_FILE_FEATURE, "'<m8', which is not read"},
        {".zarray", V2("<u2", "-1", ""), FTH_E_FILE_FORMAT, "'fill_value' is no u16"},
        {".zarray", V2("|i1", "128", ""), FTH_E_FILE_FORMAT, "'fill_value' is no i8"},
        {".zarray", V2("<u4", "-1", ""), FTH_E_FILE_FORMAT, "'fill_value' is no u32"},
        {".zarray", V2("<u2", "0", ",\"dimension_separator\":\"-\""), FTH_E_FILE_FORMAT, "'-'"},
        {".zarray", "{\"zarr_format\":4}", FTH_E_FILE_FORMAT, "'zarr_format' is 4"},
        {".zarray", "[]", FTH_E_FILE_FORMAT, "'zarr_format' is 0"},
        {".zarray", "{", FTH_E_FILE_FORMAT, ".zarray"},
        {"zarr.json", V2("<u2", "0", ""), FTH_E_FILE_FORMAT, "that of another version"},
        {"zarr.json", V3("r16", BYTES, ""), FTH_E_FILE_FEATURE, "'r16', which is not read"},
        {"zarr.json", V3("uint16", BYTES ",{\"name\":\"lzma\"}", ""), FTH_E_FILE_FEATURE,
         "packed by 'lzma'"},
        {"zarr.json", V3("uint16", "{\"name\":\"delta\"}," BYTES, ""), FTH_E_FILE_FEATURE,
         "the codec 'delta'"},
        {"zarr.json", V3("uint16", "", ""), FTH_E_FILE_FORMAT, "how elements become bytes"},
        {"zarr.json",
         V3("uint16", "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[3]}}",
            ""),
         FTH_E_FILE_FORMAT, "shards of 2 along axis 0 cannot be cut into chunks of 3"},
        {"zarr.json",
         V3("uint16", "{\"name\":\"transpose\",\"configuration\":{\"order\":[1]}}," BYTES, ""),
         FTH_E_FILE_FORMAT, "names no axis"},
        {"zarr.json",
         V3("uint16",
            "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],"
            "\"index_location\":\"middle\",\"codecs\":[" BYTES "]}}",
            ""),
         FTH_E_FILE_FORMAT, "'index_location' is 'middle'"},
        {"zarr.json", V3("uint16", BYTES, ",\"storage_transformers\":[{\"name\":\"x\"}]"),
         FTH_E_FILE_FEATURE, "storage transformers"},
        {"zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}", FTH_E_FILE_FORMAT,
         "it is a group, an array is wanted"},
        {".zgroup", "{\"zarr_format\":2}", FTH_E_FILE_FORMAT, "a group of Zarr arrays"},
        {"notes.txt", "", FTH_E_FILE_FORMAT, "no zarr.json and no .zarray"},
    };
    start();
    for (int i = 0; i < (int)(sizeof list / sizeof list[0]); i++) {
        fth_zarr *z = NULL;
        fth_err err = {0};
        const char *folder = make_array("refused", list[i].file, list[i].text);
        IS(fth_zarr_open(&z, mem, folder, &err), list[i].status);
        HAS(err.text, list[i].says);
        EQ_PTR(z, NULL);
    }
    fth_err err = {0};
    fth_zarr *z = NULL;
    const char *folder = make_array(
        "refused", ".zarray",
        "{\"zarr_format\":2,\"shape\":[3],\"chunks\":[2],\"dtype\":\"<u2\",\"fill_value\":0,"
        "\"order\":\"C\",\"filters\":[{\"id\":\"delta\"}],\"compressor\":null}");
    IS(fth_zarr_open(&z, mem, folder, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "the filter 'delta'");
    stop();
}

/* Copy a golden array, change byte `at` (from the end when negative) of one file, or cut it. */
static const char *damaged(const char *name, const char *file, int64_t at, int64_t cut)
{
    char from[FTH_PATH], path[FTH_PATH], *data = NULL;
    uint64_t n = 0;
    const char *folder = t_temp_path("damaged");
    const char *meta = strncmp(name, "v2", 2) == 0 ? ".zarray" : "zarr.json";
    OK(fth_folder_remove(NULL, folder, NULL));
    OK(fth_path_join(path, folder, file, NULL));
    char *slash = strrchr(path, '/');
    *slash = 0;
    OK(fth_folder_make_all(NULL, path, NULL));
    *slash = '/';
    snprintf(from, sizeof from, GOLDEN "%s/%s", name, file);
    OK(fth_file_load(mem, from, 1 << 20, &data, &n, NULL));
    if (at < 0) at += (int64_t)n;
    if (cut < 0) data[at] ^= 0x41;
    t_file_write(path, data, cut < 0 ? n : (uint64_t)cut);
    OK(fth_mem_release(mem, data, NULL));
    snprintf(from, sizeof from, GOLDEN "%s/%s", name, meta);
    OK(fth_file_load(mem, from, 1 << 20, &data, &n, NULL));
    OK(fth_path_join(path, folder, meta, NULL));
    t_file_write(path, data, n);
    OK(fth_mem_release(mem, data, NULL));
    return folder;
}

static fth_status read_all(const char *folder, fth_err *err)
{
    const int64_t lo[3] = {0}, n[3] = {D, H, W};
    fth_c64 data[D * H * W];
    fth_source s = open_source(folder);
    const fth_status got = s.read(s.self, lo, n, data, err);
    fth_source_close(&s);
    return got;
}

TEST(damage_is_named)
{
    static const struct {
        const char *name, *file;
        int64_t at;
        const char *says;
    } list[] = {{"v2_zlib", "0.0.0", 20, "0.0.0"},
                {"v2_zstd_big", "0.0.0", 0, "packed by zstd do not unpack"},
                {"v2_blosc_holes", "0.0.1", 12, "the lengths in its header make no sense"},
                {"v3_gzip_crc_t", "c/0/0/0", 9, "its crc32c is"},
                {"v3_shard_end", "c/0/0/0", -1, "the index of the shard is damaged"},
                {"v3_shard_end", "c/0/0/0", -60, "the index of the shard is damaged"},
                {"v3_zstd", "c/0/0/0", -1, "packed by zstd"}};
    start();
    for (int i = 0; i < (int)(sizeof list / sizeof list[0]); i++) {
        fth_err err = {0};
        IS(read_all(damaged(list[i].name, list[i].file, list[i].at, -1), &err), FTH_E_FILE_FORMAT);
        HAS(err.text, list[i].says);
    }
    stop();
}

TEST(chunks_cut_anywhere_are_refused)
{
    static const struct {
        const char *name, *file;
        int64_t bytes;
    } list[] = {{"v2_plain", "0.0.0", 80},        {"v2_zlib", "0.0.0", 80},
                {"v2_zstd_big", "0.0.0", 80},     {"v2_blosc_holes", "0.0.1", 80},
                {"v3_gzip_crc_t", "c/0/0/0", 80}, {"v3_shard_end", "c/0/0/0", 200}};
    start();
    for (int i = 0; i < (int)(sizeof list / sizeof list[0]); i++)
        for (int64_t cut = 0; cut < list[i].bytes; cut += cut < 30 ? 1 : 7) {
            fth_err err = {0};
            ONE_OF(read_all(damaged(list[i].name, list[i].file, 0, cut), &err), FTH_E_FILE_FORMAT,
                   FTH_E_FILE_SHORT);
        }
    stop();
}

TEST(crc32c_has_its_known_value)
{
    uint8_t v[300];
    for (int i = 0; i < 300; i++) v[i] = (uint8_t)(i * 37);
    EQ_U64(fth__crc32c(0, "123456789", 9), 0xe3069283);
    for (uint64_t n = 0; n < 300; n += 7) EQ_U64(fth__crc32c(0, v, n), fth__crc32c_plain(0, v, n));
    EQ_U64(fth__crc32c(fth__crc32c(0, v, 100), v + 100, 200), fth__crc32c(0, v, 300));
}

/* A large chunk that is not packed: through a window, in halves where rows are short. */
TEST(parts_of_large_plain_chunks)
{
    enum { ROWS = 600, COLUMNS = 700 };
    static uint16_t all[ROWS * COLUMNS], part[ROWS * COLUMNS];
    const int64_t list[][4] = {{0, 0, ROWS, COLUMNS}, {0, 100, ROWS, 10},   {3, 5, 590, 690},
                               {599, 699, 1, 1},      {7, 0, 300, COLUMNS}, {0, 1, ROWS, 1}};
    start();
    const char *folder =
        make_array("large", ".zarray",
                   "{\"zarr_format\":2,\"shape\":[600,700],\"chunks\":[600,700],\"dtype\":\"<u2\","
                   "\"fill_value\":0,\"order\":\"C\",\"filters\":null,\"compressor\":null}");
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) all[i] = (uint16_t)value(i);
    add_chunk(folder, "0.0", all, sizeof all);
    fth_source s = open_source(folder);
    IS_TRUE(s.billed_bytes <= 8 * (256 << 10)); /* no room for a chunk is needed */
    for (int k = 0; k < 6; k++) {
        const int64_t *b = list[k], lo[2] = {b[0], b[1]}, n[2] = {b[2], b[3]};
        OK(s.read(s.self, lo, n, part, NULL));
        for (int64_t y = 0, i = 0; y < n[0]; y++)
            for (int64_t x = 0; x < n[1]; x++, i++)
                if (part[i] != all[(lo[0] + y) * COLUMNS + lo[1] + x])
                    FAIL("box %d: row %d, column %d is wrong", k, (int)y, (int)x);
    }
    fth_source_close(&s);
    stop();
}

TEST(a_chunk_that_cannot_be_opened_is_no_hole)
{
    uint16_t v[3];
    const int64_t lo = 0, n = 3;
    fth_err err = {0};
    char path[FTH_PATH];
    start();
    const char *folder = make_array("folder", ".zarray", V2("<u2", "0", ""));
    OK(fth_path_join(path, folder, "0", NULL));
    OK(fth_folder_make(NULL, path, NULL)); /* a folder where a chunk should be */
    fth_source s = open_source(folder);
    IS(s.read(s.self, &lo, &n, v, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "a regular file is needed");
    fth_source_close(&s);
    stop();
}

/* What cannot be looked at is no hole either. */
TEST(a_chunk_behind_a_circle_of_links_is_no_hole)
{
    uint16_t v[3];
    const int64_t lo = 0, n = 3;
    char path[FTH_PATH];
    start();
    const char *folder = make_array("links", ".zarray", V2("<u2", "0", ""));
    OK(fth_path_join(path, folder, "0", NULL));
    IS_TRUE(symlink("0", path) == 0);
    fth_source s = open_source(folder);
    IS(s.read(s.self, &lo, &n, v, NULL), FTH_E_FILE_OPEN);
    fth_source_close(&s);
    stop();
}

/* Version 3 with the names of version 2, whose separator is a dot. */
TEST(names_of_chunks_of_version_2)
{
    static const char text[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[2,2],\"data_type\":\"uint8\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[1,2]}},"
        "\"chunk_key_encoding\":{\"name\":\"v2\"},\"fill_value\":9,"
        "\"codecs\":[{\"name\":\"bytes\"}]}";
    uint8_t v[4];
    start();
    const char *folder = make_array("named", "zarr.json", text);
    add_chunk(folder, "0.0", "\x01\x02", 2);
    add_chunk(folder, "1.0", "\x03\x04", 2);
    fth_source s = open_source(folder);
    OK(s.read(s.self, (int64_t[]){0, 0}, s.size, v, NULL));
    SAME_BYTES(v, "\x01\x02\x03\x04", 4);
    fth_source_close(&s);
    stop();
}

/* Packed numbers of the other byte order, wanted as whole chunks and as parts of them; and bytes
 * behind the end of a stream, which nobody can explain. */
TEST(packed_chunks_of_the_other_byte_order)
{
    unsigned char packed[200];
    uLongf bytes = sizeof packed;
    const unsigned char big[4] = {0x01, 0x02, 0x03, 0x04};
    IS_TRUE(compress(packed, &bytes, big, 4) == Z_OK);
    start();
    const char *folder =
        make_array("order", ".zarray",
                   "{\"zarr_format\":2,\"shape\":[4],\"chunks\":[2],\"dtype\":\">u2\","
                   "\"fill_value\":0,\"order\":\"C\",\"filters\":null,"
                   "\"compressor\":{\"id\":\"zlib\",\"level\":1}}");
    add_chunk(folder, "0", packed, bytes);
    packed[bytes] = 7;
    add_chunk(folder, "1", packed, bytes + 1);
    fth_source s = open_source(folder);
    uint16_t v[4];
    fth_err err = {0};
    OK(s.read(s.self, (int64_t[]){0}, (int64_t[]){2}, v, NULL));
    EQ_I64(v[0], 0x0102);
    EQ_I64(v[1], 0x0304);
    OK(s.read(s.self, (int64_t[]){1}, (int64_t[]){1}, v, NULL));
    EQ_I64(v[0], 0x0304);
    IS(s.read(s.self, (int64_t[]){2}, (int64_t[]){2}, v, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "bytes follow their end");
    fth_source_close(&s);
    stop();
}

/* ---- several threads ---- */

typedef struct reader {
    const fth_source *s;
    uint64_t seed;
    int wrong;
} reader;

static void *read_parts(void *arg)
{
    reader *r = arg;
    t_random random = t_random_make(r->seed);
    const int64_t all[3] = {D, H, W};
    for (int k = 0; k < 60; k++) {
        uint16_t data[D * H * W];
        int64_t lo[3], n[3], i = 0;
        for (int a = 0; a < 3; a++) {
            lo[a] = t_random_i64(&random, 0, all[a] - 1);
            n[a] = t_random_i64(&random, 1, all[a] - lo[a]);
        }
        if (r->s->read(r->s->self, lo, n, data, NULL) != FTH_OK) r->wrong++;
        for (int64_t z = lo[0]; z < lo[0] + n[0]; z++)
            for (int64_t y = lo[1]; y < lo[1] + n[1]; y++)
                for (int64_t x = lo[2]; x < lo[2] + n[2]; x++)
                    r->wrong += data[i++] != value((z * H + y) * W + x);
    }
    return NULL;
}

TEST(several_threads_read_one_source)
{
    enum { THREADS = 12 }; /* more than there are rooms */
    start();
    fth_source s = open_source(GOLDEN "v3_shard_end");
    pthread_t thread[THREADS];
    reader r[THREADS];
    for (int i = 0; i < THREADS; i++) {
        r[i] = (reader){&s, 100 + (uint64_t)i, 0};
        EQ_I64(pthread_create(&thread[i], NULL, read_parts, &r[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        EQ_I64(r[i].wrong, 0);
    }
    fth_source_close(&s);
    stop();
}

/* The rooms stand in the ledger from the start: reading takes no more. */
TEST(memory_is_known_when_a_source_is_made)
{
    fth_mem_stats before, after;
    uint16_t data[D * H * W];
    const int64_t lo[3] = {0}, n[3] = {D, H, W};
    start();
    fth_source s = open_source(GOLDEN "v3_zstd");
    fth_mem_get_stats(mem, &before);
    IS_TRUE(s.billed_bytes > 0 && before.used_bytes >= s.billed_bytes);
    EQ_U64(s.libraries, 1u << FTH_LIB_ZSTD);
    fth_mem_mark(mem);
    OK(s.read(s.self, lo, n, data, NULL));
    fth_mem_get_stats(mem, &after);
    EQ_U64(after.peak_bytes, before.used_bytes);
    fth_source_close(&s);
    stop();
}

TEST_MAIN()
