/* test_parquet.c - Parquet files of pyarrow and polars: every encoding and codec that is read,
 * nulls, what is refused, files that are cut, damaged at every byte, or read without memory.
 * seconds: 4 */
#include "io/parquet.h"
#include "io/parquet_thrift.h"
#include "io/snappy.h"
#include "mem/inject.h"
#include "testing/io/files.h"
#include "testing/test.h"

enum { ROWS = 150 };

static const char *const names[6] = {"flag", "small", "large", "single", "double", "text"};

/* Text of row i, as in tests/golden/io/make_parquet.py. */
static int64_t text_of(int64_t i, char text[32])
{
    int64_t n = snprintf(text, 32, "spot-%d", (int)(i % 17));
    for (int64_t k = 0; k < i % 4; k++) {
        text[n++] = (char)0xc3;
        text[n++] = (char)0xa4;
    }
    return n;
}

static void check_row(const fth_parquet_block *b, int64_t k, int64_t i, bool null)
{
    char text[32];
    if (b->bools) EQ_I64(b->bools[k], !null && i % 3 == 0);
    if (b->i32) EQ_I64(b->i32[k], null ? 0 : i * 7 - 500);
    if (b->i64) EQ_I64(b->i64[k], null ? 0 : i * 10000000000 - 3);
    if (b->f32) EQ_F64(b->f32[k], null ? 0 : (double)i / 4 - 3);
    if (b->f64) EQ_F64(b->f64[k], null ? 0 : (double)i / 8 - 3);
    if (!b->text) return;
    EQ_I64(b->text[k].bytes, null ? 0 : text_of(i, text));
    if (!null) SAME_BYTES(b->text[k].chars, text, b->text[k].bytes);
}

/* A column of a golden file; `nulls`: 0 none, 1 every fifth row, 2 all of them. */
static void check_column(fth_parquet *p, int64_t column, int nulls, int64_t rows)
{
    fth_parquet_column *c = NULL;
    fth_parquet_block b;
    int64_t at = 0;
    EQ_STR(fth_parquet_name(p, column), names[column]);
    EQ_I64(fth_parquet_find(p, names[column]), column);
    EQ_I64(fth_parquet_type_of(p, column), column);
    OK(fth_parquet_column_open(&c, p, column, NULL));
    for (;;) {
        OK(fth_parquet_next(c, &b, NULL));
        EQ_I64(b.first, at);
        if (b.n == 0) break;
        for (int64_t k = 0; k < b.n; k++, at++) {
            const bool null =
                nulls == 2 || (nulls == 1 && (at + (int64_t)strlen(names[column])) % 5 == 0);
            if (b.present)
                EQ_I64(b.present[k], !null);
            else
                IS_TRUE(!null);
            check_row(&b, k, at, null);
        }
    }
    EQ_I64(at, rows);
    OK(fth_parquet_next(c, &b, NULL)); /* the end stays */
    EQ_I64(b.n, 0);
    fth_parquet_column_close(c);
}

TEST(files_of_other_programs_are_read)
{
    static const struct {
        const char *path;
        int nulls;
        int64_t rows;
    } file[] = {{GOLDEN("parquet_snappy.parquet"), 1, ROWS}, /* dictionaries, pages of version 1 */
                {GOLDEN("parquet_required.parquet"), 0, ROWS}, /* no levels, version 2 */
                {GOLDEN("parquet_gzip.parquet"), 1, ROWS},
                {GOLDEN("parquet_delta.parquet"), 1, ROWS}, /* zstd, differences, runs of bools */
                {GOLDEN("parquet_split.parquet"), 1, ROWS}, /* not packed, checksums */
                {GOLDEN("parquet_lz4.parquet"), 0, ROWS},
                {GOLDEN("parquet_polars.parquet"), 1, ROWS},
                {GOLDEN("parquet_nulls.parquet"), 2, 9},
                {GOLDEN("parquet_empty.parquet"), 0, 0}};
    for (size_t f = 0; f < sizeof file / sizeof file[0]; f++) {
        fth_mem *mem = t_mem(1 << 20);
        fth_parquet *p = NULL;
        fth_err err = {0};
        OKE(fth_parquet_open(&p, mem, file[f].path, &err), &err);
        EQ_I64(fth_parquet_rows(p), file[f].rows);
        EQ_I64(fth_parquet_columns(p), 6);
        EQ_PTR(fth_parquet_name(p, 6), NULL);
        EQ_I64(fth_parquet_find(p, "nothing"), -1);
        for (int64_t k = 0; k < 6; k++) check_column(p, k, file[f].nulls, file[f].rows);
        fth_parquet_close(p);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(two_columns_are_read_side_by_side)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_parquet *p = NULL;
    fth_parquet_column *a = NULL, *b = NULL;
    fth_parquet_block x, y;
    OK(fth_parquet_open(&p, mem, GOLDEN("parquet_snappy.parquet"), NULL));
    OK(fth_parquet_column_open(&a, p, 1, NULL));
    OK(fth_parquet_column_open(&b, p, 5, NULL));
    OK(fth_parquet_next(a, &x, NULL));
    OK(fth_parquet_next(b, &y, NULL));
    EQ_I64(x.i32[1], -493);
    SAME_BYTES(y.text[0].chars, "spot-0", 6);
    fth_parquet_column_close(a);
    fth_parquet_column_close(b);
    fth_parquet_column_close(NULL);
    fth_parquet_close(p);
    fth_parquet_close(NULL);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- types ---- */

static fth_parquet_block first_of(fth_parquet *p, const char *name, fth_parquet_column **c)
{
    fth_parquet_block b;
    OK(fth_parquet_column_open(c, p, fth_parquet_find(p, name), NULL));
    OK(fth_parquet_next(*c, &b, NULL));
    return b;
}

TEST(unsigned_numbers_are_widened)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_parquet *p = NULL;
    fth_parquet_column *c = NULL;
    fth_err err = {0};
    OK(fth_parquet_open(&p, mem, GOLDEN("parquet_types.parquet"), NULL));
    fth_parquet_block b = first_of(p, "u32", &c);
    EQ_I64(b.n, 3);
    EQ_I64(b.i64[1], 4294967295);
    EQ_I64(b.present[2], 0);
    fth_parquet_column_close(c);
    b = first_of(p, "u64", &c);
    EQ_I64(b.i64[1], INT64_MAX);
    fth_parquet_column_close(c);
    b = first_of(p, "day", &c);
    EQ_I64(b.i32[1], 2);
    fth_parquet_column_close(c);
    OK(fth_parquet_column_open(&c, p, fth_parquet_find(p, "over"), NULL));
    IS(fth_parquet_next(c, &b, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "parquet_types.parquet, column 'over', row group 0, byte ");
    HAS(err.text, "and there is no dtype u64");
    fth_parquet_column_close(c);
    fth_parquet_close(p);
    OK(fth_mem_destroy(mem, NULL));
}

static void refuse_column(fth_parquet *p, const char *name, const char *why)
{
    fth_parquet_column *c = NULL;
    fth_err err = {0};
    const int64_t k = fth_parquet_find(p, name);
    IS_TRUE(k >= 0);
    EQ_I64(fth_parquet_type_of(p, k), FTH_PARQUET_OTHER);
    IS(fth_parquet_column_open(&c, p, k, &err), FTH_E_FILE_FEATURE);
    EQ_PTR(c, NULL);
    HAS(err.text, why);
}

TEST(types_that_are_not_read_are_named)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_parquet *p = NULL;
    fth_parquet_column *c = NULL;
    fth_err err = {0};
    OK(fth_parquet_open(&p, mem, GOLDEN("parquet_types.parquet"), NULL));
    refuse_column(p, "price", "column 'price' is a decimal number in FIXED_LEN_BYTE_ARRAY(4)");
    refuse_column(p, "fixed", "column 'fixed' is FIXED_LEN_BYTE_ARRAY(4), which is not read");
    refuse_column(p, "half", "column 'half' is FIXED_LEN_BYTE_ARRAY(2)");
    refuse_column(p, "list.list.element", "is a list or inside a group, of INT32");
    refuse_column(p, "pair.a", "column 'pair.a' is a list or inside a group, of INT32");
    IS(fth_parquet_column_open(&c, p, -1, &err), FTH_E_FILE_KEY);
    const fth_parquet_block b = first_of(p, "last", &c); /* those beside them are read */
    SAME_BYTES(b.text[2].chars, "c", 1);
    fth_parquet_column_close(c);
    fth_parquet_close(p);
    OK(fth_parquet_open(&p, mem, GOLDEN("parquet_int96.parquet"), NULL));
    refuse_column(p, "when", "column 'when' is INT96, which is not read");
    fth_parquet_close(p);
    OK(fth_parquet_open(&p, mem, GOLDEN("parquet_brotli.parquet"), NULL));
    err = (fth_err){0};
    IS(fth_parquet_column_open(&c, p, 1, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "column 'small', row group 0 is packed by BROTLI, which is not read");
    fth_parquet_close(p);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- files that are not whole ---- */

/* All columns of a file; the first failure. */
static fth_status read_all(fth_mem *mem, const char *path, fth_err *err)
{
    fth_parquet *p = NULL;
    FTH_TRY(fth_parquet_open(&p, mem, path, err));
    fth_status s = FTH_OK;
    for (int64_t k = 0; s == FTH_OK && k < fth_parquet_columns(p); k++) {
        fth_parquet_column *c = NULL;
        fth_parquet_block b = {.n = 1};
        s = fth_parquet_column_open(&c, p, k, err);
        while (s == FTH_OK && b.n > 0) {
            s = fth_parquet_next(c, &b, err);
            for (int64_t i = 0; s == FTH_OK && b.text && i < b.n; i++)
                if (memchr(b.text[i].chars, 1, (size_t)b.text[i].bytes)) continue; /* it is there */
        }
        fth_parquet_column_close(c);
    }
    fth_parquet_close(p);
    return s;
}

TEST(what_is_no_parquet_file_is_refused)
{
    static const struct {
        const char *bytes;
        size_t n;
        fth_status status;
        const char *why;
    } file[] = {
        {"PAR1", 4, FTH_E_FILE_SHORT, "a Parquet file has at least 12 bytes, this has 4"},
        {"XXXX\0\0\0\0PAR1", 12, FTH_E_FILE_FORMAT, "byte 0: expected the mark PAR1"},
        {"PAR1\0\0\0\0XXXX", 12, FTH_E_FILE_FORMAT,
         "byte 8: expected the mark PAR1 of Parquet; "
         "the file was cut off"},
        {"PAR1\0\0\0\0PARE", 12, FTH_E_FILE_FEATURE, "its footer is encrypted"},
        {"PAR1\7\0\0\0PAR1", 12, FTH_E_FILE_FORMAT,
         "expected a footer of at most 0 bytes, found 7"},
        {"PAR1\0\1\0\0\0PAR1", 13, FTH_E_FILE_FORMAT, "the metadata of the footer are damaged"}};
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("not.parquet");
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        fth_err err = {0};
        t_file_write(path, file[i].bytes, file[i].n);
        IS(read_all(mem, path, &err), file[i].status);
        HAS(err.text, "not.parquet");
        HAS(err.text, file[i].why);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_file_cut_anywhere_is_refused)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("cut.parquet");
    size_t n = 0;
    unsigned char *data = t_file_read(GOLDEN("parquet_delta.parquet"), &n);
    for (size_t cut = 0; cut < n; cut += 7) {
        t_file_write(path, data, cut);
        ONE_OF(read_all(mem, path, NULL), FTH_E_FILE_FORMAT, FTH_E_FILE_SHORT);
    }
    free(data);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(damage_at_any_byte_is_an_error_or_other_values)
{
    static const char *const files[] = {GOLDEN("parquet_delta.parquet"),
                                        GOLDEN("parquet_polars.parquet"),
                                        GOLDEN("parquet_nulls.parquet")};
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("damaged.parquet");
    t_random rnd = t_random_make(31);
    for (int f = 0; f < 3; f++) {
        size_t n = 0;
        unsigned char *data = t_file_read(files[f], &n);
        for (size_t at = 0; at < n; at++) {
            const unsigned char old = data[at];
            data[at] ^= (unsigned char)(1u << t_random_i64(&rnd, 0, 7));
            t_file_write(path, data, n);
            const fth_status s = read_all(mem, path, NULL);
            IS_TRUE(s == FTH_OK || s == FTH_E_FILE_FORMAT || s == FTH_E_FILE_SHORT ||
                    s == FTH_E_FILE_FEATURE || s == FTH_E_BUDGET);
            data[at] = old;
        }
        free(data);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_checksum_that_differs_is_found)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("sum.parquet");
    size_t n = 0, at = 0;
    fth_err err = {0};
    unsigned char *data = t_file_read(GOLDEN("parquet_split.parquet"), &n);
    while (memcmp(data + at, "spot-3", 6) != 0) at++;
    data[at] = 'S';
    t_file_write(path, data, n);
    IS(read_all(mem, path, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "sum.parquet, column 'text', row group 0, byte ");
    HAS(err.text, "expected the checksum ");
    free(data);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(every_request_for_memory_may_fail)
{
    static const char *const files[] = {GOLDEN("parquet_delta.parquet"),
                                        GOLDEN("parquet_snappy.parquet")};
    fth_mem *mem = t_mem(1 << 20);
    for (int f = 0; f < 2; f++)
        for (int64_t n = 1;; n++) {
            fth_err err = {0};
            fth__mem_inject(mem, n, 0);
            const fth_status s = read_all(mem, files[f], &err);
            fth__mem_inject(mem, 0, 0);
            if (s == FTH_OK) break;
            ONE_OF(s, FTH_E_NOMEM, FTH_E_BUDGET);
            IS_TRUE(n < 1000);
        }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_page_over_the_budget_is_refused)
{
    fth_mem *mem = t_mem(150 << 10); /* of which a column takes 130 */
    fth_err err = {0};
    IS(read_all(mem, GOLDEN("parquet_delta.parquet"), &err), FTH_E_BUDGET);
    HAS(err.text, "unpacking a page of Parquet");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- parts ---- */

TEST(snappy_blocks)
{
    static const struct {
        const char *in;
        size_t n;
        const char *out;
        size_t want;
        bool good;
    } block[] = {{"\0", 1, "", 0, true},
                 {"\5\20hello", 7, "hello", 5, true},
                 {"\10\4ab\11\2", 6, "abababab", 8, true},          /* 11 bits of distance */
                 {"\12\4ab\36\2\0", 7, "ababababab", 10, true},     /* 2 bytes of distance */
                 {"\12\4ab\37\2\0\0\0", 9, "ababababab", 10, true}, /* 4 bytes of distance */
                 {"\3\360\2abc", 6, "abc", 3, true},                /* a length of one byte */
                 {"\3\364\2\0abc", 7, "abc", 3, true},              /* of two */
                 {"\12\4ab\36\3\0", 7, "", 10, false},              /* before the start */
                 {"\12\4ab\36\0\0", 7, "", 10, false},              /* no distance */
                 {"\11\4ab\36\2\0", 7, "", 9, false},               /* over the end */
                 {"\12\4ab\36\2", 6, "", 10, false},                /* cut */
                 {"\13\4ab\36\2\0", 7, "", 11, false},              /* too few */
                 {"\5\20hell", 6, "", 5, false},                    /* literals are cut */
                 {"\377\377\377\377\377\1", 6, "", 5, false},       /* a size over 2^32 */
                 {"", 0, "", 0, false}};
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++) {
        unsigned char out[32];
        memset(out, '?', sizeof out);
        const bool good =
            fth__snappy_block((const unsigned char *)block[i].in, block[i].n, out, block[i].want);
        EQ_I64(good, block[i].good);
        if (good) SAME_BYTES(out, block[i].out, block[i].want);
        EQ_I64(out[block[i].want], '?');
    }
}

TEST(snappy_copies_from_afar)
{
    /* 300 literal bytes; then 4 bytes from 300 back, in 11 bits of distance */
    unsigned char in[2 + 3 + 300 + 2] = {0xb0, 2, 61 << 2, 299 & 255, 299 >> 8}, out[304];
    for (int i = 0; i < 300; i++) in[5 + i] = (unsigned char)(i * 7 + i / 256);
    in[305] = (unsigned char)(1 | (300 >> 8) << 5);
    in[306] = 300 & 255;
    IS_TRUE(fth__snappy_block(in, sizeof in, out, sizeof out));
    SAME_BYTES(out, in + 5, 300);
    SAME_BYTES(out + 300, in + 5, 4);
}

TEST(runs_and_differences_end_with_their_bytes)
{
    uint32_t v[40];
    int64_t wide[8];
    /* 3 times 5, then 8 packed numbers of 3 bits: 0 to 7 */
    static const uint8_t bytes[] = {6, 5, 3, 0x88, 0xc6, 0xfa};
    fth__parquet_runs r = {.at = bytes, .end = bytes + sizeof bytes, .width = 3};
    IS_TRUE(fth__parquet_runs_take(&r, 2, v));
    EQ_U64(v[1], 5);
    IS_TRUE(fth__parquet_runs_take(&r, 4, v)); /* into the packed ones */
    IS_TRUE(fth__parquet_runs_take(&r, 5, v + 4));
    EQ_U64(v[0], 5);
    for (uint32_t k = 0; k < 8; k++) EQ_U64(v[1 + k], k);
    IS_TRUE(!fth__parquet_runs_take(&r, 1, v));
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        r = (fth__parquet_runs){.at = bytes, .end = bytes + cut, .width = 3};
        IS_TRUE(!fth__parquet_runs_take(&r, 11, v));
    }
    static const uint8_t none[] = {0, 5}, wide_value[] = {2, 9};
    r = (fth__parquet_runs){.at = none, .end = none + 2, .width = 3};
    IS_TRUE(!fth__parquet_runs_take(&r, 1, v)); /* a run of none */
    r = (fth__parquet_runs){.at = wide_value, .end = wide_value + 2, .width = 3};
    IS_TRUE(!fth__parquet_runs_take(&r, 1, v)); /* 9 has 4 bits */
    /* 128 in 4, 5 values from 7: differences -2 -2 -2 -2 of no width */
    static const uint8_t delta[] = {0x80, 1, 4, 5, 14, 3, 0, 0, 0, 0};
    fth__parquet_delta d;
    IS_TRUE(fth__parquet_delta_begin(&d, delta, delta + sizeof delta));
    IS_TRUE(fth__parquet_delta_take(&d, 5, wide));
    EQ_I64(wide[0], 7);
    EQ_I64(wide[4], -1);
    IS_TRUE(!fth__parquet_delta_take(&d, 1, wide));
    for (size_t cut = 0; cut < sizeof delta; cut++)
        IS_TRUE(!fth__parquet_delta_begin(&d, delta, delta + cut) ||
                !fth__parquet_delta_take(&d, 5, wide));
    static const uint8_t odd[] = {0x80, 1, 3, 5, 14}, zero[] = {0x80, 1, 0, 5, 14};
    IS_TRUE(!fth__parquet_delta_begin(&d, odd, odd + 5));
    IS_TRUE(!fth__parquet_delta_begin(&d, zero, zero + 5));
}

TEST(thrift_skips_what_it_does_not_know)
{
    /* 1: i32 -3, 2: map {1: true}, 3: list of 2 structs, 4: double, 5: true, 6: text "ab", end */
    static const uint8_t bytes[] = {0x15, 5, 0x1b, 1,    0x31, 7, 1,   0x19, 0x2c,
                                    0x11, 0, 0,    0x17, 0,    0, 0,   0,    0,
                                    0,    0, 0,    0x11, 0x18, 2, 'a', 'b',  0};
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        fth__thrift t = {.at = bytes, .end = bytes + cut};
        fth__thrift_field f = {0};
        int64_t found = 0;
        uint64_t n = 0;
        while (fth__thrift_next(&t, &f))
            if (f.id == 1)
                found += fth__thrift_int(&t, &f);
            else if (f.id == 6)
                found += fth__thrift_bytes(&t, &f, &n)[0] == 'a' ? 100 : 0;
            else
                fth__thrift_skip(&t, &f);
        EQ_I64(t.bad, cut == sizeof bytes ? FTH__THRIFT_GOOD : FTH__THRIFT_SHORT);
        if (!t.bad) EQ_I64(found, 97);
    }
    uint8_t deep[100];
    memset(deep, 0x1c, sizeof deep); /* structs in structs */
    fth__thrift t = {.at = deep, .end = deep + sizeof deep};
    fth__thrift_field f = {0};
    while (fth__thrift_next(&t, &f)) fth__thrift_skip(&t, &f);
    EQ_I64(t.bad, FTH__THRIFT_WRONG);
    static const uint8_t wide[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2};
    t = (fth__thrift){.at = wide, .end = wide + sizeof wide};
    EQ_U64(fth__thrift_varint(&t), 0); /* more than 64 bits */
    EQ_I64(t.bad, FTH__THRIFT_WRONG);
}

TEST_MAIN()
