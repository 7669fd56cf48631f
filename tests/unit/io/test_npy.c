/* test_npy.c - NPY files of NumPy and of ours, rectangles, refusals, headers cut and bent.
 * seconds: 2 */
#include "testing/io/files.h"

static void check_golden(fth_mem *mem, const char *path, fth_dtype dtype, int n_axes,
                         const int64_t *size)
{
    fth_source s;
    fth_err err = {0};
    OKE(fth_npy_open(&s, mem, path, &err), &err);
    EQ_I64(s.dtype, dtype);
    EQ_I64(s.n_axes, n_axes);
    int64_t count = 1;
    for (int a = 0; a < n_axes; a++) {
        EQ_I64(s.size[a], size[a]);
        count *= size[a];
    }
    fth_tensor *t = NULL;
    OKE(fth_source_load(&s, mem, "whole", &t, &err), &err);
    t_golden_check(dtype, count, fth_tensor_data(t));
    t_source_check(&s, fth_tensor_data(t), 7, 60);
    fth_tensor_release(t);
    fth_source_close(&s);
    EQ_PTR(s.self, NULL);
    fth_source_close(&s);
}

TEST(numpy_files_of_every_dtype_and_byte_order)
{
    fth_mem *mem = t_mem(1 << 24);
    const struct {
        const char *name;
        fth_dtype dtype;
    } d[] = {{"b1", FTH_BOOL}, {"u1", FTH_U8},   {"u2", FTH_U16}, {"i4", FTH_I32},
             {"i8", FTH_I64},  {"f2", FTH_F16},  {"f4", FTH_F32}, {"f8", FTH_F64},
             {"c8", FTH_C64},  {"c16", FTH_C128}};
    const int64_t size[2] = {3, 4};
    for (size_t i = 0; i < sizeof d / sizeof d[0]; i++) {
        char path[200];
        snprintf(path, sizeof path, GOLDEN("c_%s.npy"), d[i].name);
        check_golden(mem, path, d[i].dtype, 2, size);
        if (i < 2) continue; /* single bytes have no order */
        snprintf(path, sizeof path, GOLDEN("big_%s.npy"), d[i].name);
        check_golden(mem, path, d[i].dtype, 2, size);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* u64 has no dtype of ours: it is read as i64. */
TEST(whole_numbers_of_every_width_and_byte_order)
{
    fth_mem *mem = t_mem(1 << 24);
    const struct {
        const char *name;
        fth_dtype dtype;
    } d[] = {{"i1", FTH_I8}, {"i2", FTH_I16}, {"u4", FTH_U32}, {"u8", FTH_I64}};
    for (size_t i = 0; i < sizeof d / sizeof d[0]; i++) {
        char path[200];
        snprintf(path, sizeof path, GOLDEN("wide_%s.npy"), d[i].name);
        check_golden(mem, path, d[i].dtype, 2, ((int64_t[]){3, 4}));
        snprintf(path, sizeof path, GOLDEN("wide_big_%s.npy"), d[i].name);
        check_golden(mem, path, d[i].dtype, 2, ((int64_t[]){3, 4}));
    }
    check_golden(mem, GOLDEN("wide_fortran_u4.npy"), FTH_U32, 3, ((int64_t[]){3, 4, 5}));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(fortran_order_scalars_empty_arrays_and_versions)
{
    fth_mem *mem = t_mem(1 << 24);
    check_golden(mem, GOLDEN("fortran_f4.npy"), FTH_F32, 3, ((int64_t[]){3, 4, 5}));
    check_golden(mem, GOLDEN("fortran_big_c8.npy"), FTH_C64, 3, ((int64_t[]){2, 3, 4}));
    check_golden(mem, GOLDEN("scalar_f8.npy"), FTH_F64, 0, NULL);
    check_golden(mem, GOLDEN("empty_f4.npy"), FTH_F32, 2, ((int64_t[]){0, 3}));
    check_golden(mem, GOLDEN("vector_i8.npy"), FTH_I64, 1, ((int64_t[]){7}));
    check_golden(mem, GOLDEN("version2_f4.npy"), FTH_F32, 2, ((int64_t[]){3, 4}));
    check_golden(mem, GOLDEN("version3_f4.npy"), FTH_F32, 2, ((int64_t[]){3, 4}));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(other_dtypes_are_refused_by_name)
{
    fth_mem *mem = t_mem(1 << 24);
    const struct {
        const char *path, *text, *hint;
    } refused[] = {{GOLDEN("refused_f16.npy"), "'<f16'", "astype"},
                   {GOLDEN("refused_text.npy"), "'<U2'", "astype"},
                   {GOLDEN("refused_record.npy"), "fields", ""},
                   {GOLDEN("refused_void.npy"), "'|V2'", "bf16"}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        fth_source s;
        fth_err err = {0};
        IS(fth_npy_open(&s, mem, refused[i].path, &err), FTH_E_FILE_FEATURE);
        HAS(err.text, refused[i].path);
        HAS(err.text, refused[i].text);
        HAS(err.hint, refused[i].hint);
        EQ_PTR(s.self, NULL);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* What we write is, byte for byte, what NumPy writes. */
TEST(our_files_are_numpys_files)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *names[] = {"c_b1",      "c_u1",    "c_u2",    "c_i4",   "c_i8",      "c_f2",
                           "c_f4",      "c_f8",    "c_c8",    "c_c16",  "scalar_f8", "empty_f4",
                           "vector_i8", "wide_i1", "wide_i2", "wide_u4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char golden[200];
        snprintf(golden, sizeof golden, GOLDEN("%s.npy"), names[i]);
        const char *path = t_temp_path("out.npy");
        fth_source s;
        fth_sink k;
        fth_tensor *t = NULL;
        OK(fth_npy_open(&s, mem, golden, NULL));
        OK(fth_source_load(&s, mem, "t", &t, NULL));
        OK(fth_npy_create(&k, mem, path, s.dtype, s.n_axes, s.size, NULL));
        OK(fth_sink_store(&k, t, NULL));
        size_t a = 0, b = 0;
        unsigned char *x = t_file_read(golden, &a), *y = t_file_read(path, &b);
        EQ_U64(a, b);
        SAME_BYTES(x, y, a);
        free(x);
        free(y);
        fth_sink_close(&k);
        fth_source_close(&s);
        fth_tensor_release(t);
    }
    EQ_I64(t_file_count(), 1);
    remove(t_temp_path("out.npy"));
    OK(fth_mem_destroy(mem, NULL));
}

/* Wide enough for the window, the direct path and several fills of both. */
TEST(large_arrays_by_rectangles_in_any_order)
{
    fth_mem *mem = t_mem(1 << 26);
    const int64_t size[2] = {700, 600};
    const char *path = t_temp_path("large.npy");
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "t", FTH_F32, 2, size, NULL));
    float *v = fth_tensor_data(t);
    for (int64_t i = 0; i < 700 * 600; i++) v[i] = (float)i;
    fth_sink k;
    OK(fth_npy_create(&k, mem, path, FTH_F32, 2, size, NULL));
    const fth_source memory = fth_tensor_source(t);
    float *tile = malloc(700 * 600 * sizeof *tile);
    for (int64_t col = 600; (col -= 150) >= 0;)
        for (int64_t row = 0; row < 700; row += 350) {
            const int64_t lo[2] = {row, col}, n[2] = {350, 150};
            OK(memory.read(memory.self, lo, n, tile, NULL));
            OK(k.write(k.self, lo, n, tile, NULL));
        }
    OK(k.commit(k.self, NULL));
    fth_sink_close(&k);

    fth_source s;
    OK(fth_npy_open(&s, mem, path, NULL));
    t_source_check(&s, v, 3, 10);
    fth_source_close(&s);

    /* The same bytes called Fortran are the transposed matrix. */
    size_t bytes = 0;
    char *file = (char *)t_file_read(path, &bytes);
    char *word = strstr(file + 10, "False");
    memcpy(word, "True ", 5);
    t_file_write(path, file, bytes);
    free(file);
    OK(fth_npy_open(&s, mem, path, NULL));
    for (int64_t i = 0; i < 700; i++) /* v[i][j] of 700 x 600 in Fortran order sits at i + 700 j */
        for (int64_t j = 0; j < 600; j++) tile[i * 600 + j] = v[i + 700 * j];
    t_source_check(&s, tile, 4, 10);
    fth_source_close(&s);
    free(tile);
    fth_tensor_release(t);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Runs of every length, so that some end on the last byte of the window and some just past it. */
TEST(columns_of_every_width)
{
    enum { ROWS = 1100, COLS = 131 };
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("columns.raw");
    unsigned char *v = malloc(ROWS * COLS), *got = malloc(ROWS * COLS);
    t_random r = t_random_make(12);
    for (int i = 0; i < ROWS * COLS; i++) v[i] = (unsigned char)t_random_u64(&r);
    t_file_write(path, v, ROWS * COLS);
    const fth_raw_layout layout = {.dtype = FTH_U8, .n_axes = 2, .size = {ROWS, COLS}};
    fth_source s;
    OK(fth_raw_open(&s, mem, path, &layout, NULL));
    for (int64_t width = 1; width <= COLS; width++) {
        OK(s.read(s.self, ((int64_t[]){0, 0}), ((int64_t[]){ROWS, width}), got, NULL));
        for (int64_t i = 0; i < ROWS; i++)
            if (memcmp(got + i * width, v + i * COLS, (size_t)width) != 0)
                FAIL("row %d, %d columns", (int)i, (int)width);
    }
    fth_source_close(&s);
    free(v);
    free(got);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_sink_commits_whole_or_not_at_all)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("sink.npy");
    t_file_write(path, "old", 3);
    const int64_t size[1] = {4};
    const int32_t v[4] = {1, 2, 3, 4};
    fth_sink k;
    fth_err err = {0};
    OK(fth_npy_create(&k, mem, path, FTH_I32, 1, size, NULL));
    OK(k.write(k.self, ((int64_t[]){0}), ((int64_t[]){3}), v, NULL));
    IS(k.commit(k.self, &err), FTH_E_STATE);
    HAS(err.text, "3 of 4");
    IS(k.write(k.self, ((int64_t[]){3}), ((int64_t[]){1}), v, NULL), FTH_E_STATE);
    IS(k.commit(k.self, NULL), FTH_E_STATE);
    fth_sink_close(&k);
    EQ_I64(t_file_count(), 1);

    OK(fth_npy_create(&k, mem, path, FTH_I32, 1, size, NULL));
    OK(k.write(k.self, ((int64_t[]){0}), ((int64_t[]){4}), v, NULL));
    IS(k.write(k.self, ((int64_t[]){3}), ((int64_t[]){1}), v, NULL),
       FTH_E_STATE); /* written twice */
    IS(k.write(k.self, ((int64_t[]){3}), ((int64_t[]){2}), v, NULL), FTH_E_USAGE);
    k.abandon(k.self);
    fth_sink_close(&k);
    EQ_I64(t_file_count(), 1);
    size_t bytes = 0;
    unsigned char *old = t_file_read(path, &bytes);
    EQ_U64(bytes, 3);
    free(old);
    remove(path);

    fth_err_clear(&err);
    IS(fth_npy_create(&k, mem, t_temp_path("no/such/folder.npy"), FTH_I32, 1, size, &err),
       FTH_E_FILE_WRITE);
    HAS(err.text, "no/such/folder.npy");
    IS(fth_npy_create(&k, mem, t_temp_dir(), FTH_I32, 1, size, NULL), FTH_E_FILE_WRITE);
    fth_err_clear(&err);
    IS(fth_npy_create(&k, mem, path, FTH_BF16, 1, size, &err), FTH_E_DTYPE_OP);
    HAS(err.hint, "safetensors");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_file_that_is_not_there_or_no_file)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_source s;
    fth_err err = {0};
    IS(fth_npy_open(&s, mem, t_temp_path("absent.npy"), &err), FTH_E_FILE_OPEN);
    HAS(err.text, "absent.npy");
    IS(fth_npy_open(&s, mem, t_temp_dir(), NULL), FTH_E_FILE_OPEN);
    OK(fth_mem_destroy(mem, NULL));
}

/* A file cut anywhere is refused with its name; nothing is read past the cut. */
TEST(no_place_for_a_source)
{
    fth_err err = {0};
    IS(fth_npy_open(NULL, NULL, "x.npy", &err), FTH_E_USAGE);
    HAS(err.text, "x.npy: the source");
}

TEST(cut_at_every_byte)
{
    fth_mem *mem = t_mem(1 << 24);
    size_t bytes = 0;
    unsigned char *file = t_file_read(GOLDEN("c_f4.npy"), &bytes);
    const char *path = t_temp_path("cut.npy");
    for (size_t cut = 0; cut < bytes; cut++) {
        t_file_write(path, file, cut);
        fth_source s;
        fth_err err = {0};
        IS(fth_npy_open(&s, mem, path, &err), FTH_E_FILE_SHORT);
        HAS(err.text, "cut.npy, byte ");
    }
    free(file);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status open_header(fth_mem *mem, const char *text, fth_err *err)
{
    char file[1000] = "\x93NUMPY\x01";
    const size_t n = strlen(text);
    file[8] = (char)n;
    file[9] = (char)(n >> 8);
    memcpy(file + 10, text, n);
    const char *path = t_temp_path("bent.npy");
    t_file_write(path, file, 10 + n + 48);
    fth_source s;
    const fth_status status = fth_npy_open(&s, mem, path, err);
    fth_source_close(&s);
    remove(path);
    return status;
}

TEST(headers_bent_on_purpose)
{
    fth_mem *mem = t_mem(1 << 24);
    const struct {
        const char *text, *says;
        fth_status status;
    } c[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", "", FTH_OK},
        {"{\"shape\":(3L,4L),\"descr\":\"<f4\",\"fortran_order\":True}\n", "", FTH_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)} x", "only spaces",
         FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False}", "no key 'shape'", FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (1,)}", "twice", FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'extra': 1}", "'extra'", FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4)}", "True or False",
         FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4)}", "a size", FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", "',' or ')'",
         FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5)}", "only 48 follow",
         FTH_E_FILE_SHORT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "63 bits",
         FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "63 bits",
         FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 3, 0)}",
         "63 bits", FTH_E_FILE_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         "more than 8 axes", FTH_E_FILE_FEATURE},
        {"{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}", "'|f4'", FTH_E_FILE_FEATURE},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "''", FTH_E_FILE_FEATURE},
        {"{'descr': 'f', 'fortran_order': False, 'shape': (1,)}", "'f'", FTH_E_FILE_FEATURE},
        {"{'descr': '<f4", "the end", FTH_E_FILE_FORMAT},
        {"[]", "'{'", FTH_E_FILE_FORMAT},
        {"", "'{'", FTH_E_FILE_FORMAT},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        fth_err err = {0};
        const fth_status s = open_header(mem, c[i].text, &err);
        if (s != c[i].status)
            FAIL("%s\n gave %s: %s", c[i].text, fth_status_get_info(s)->name, err.text);
        HAS(err.text, c[i].says);
        if (s != FTH_OK) HAS(err.text, "bent.npy, byte ");
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* Bool memory holds 0 and 1 alone, whatever the file holds. */
TEST(bool_bytes_become_zero_or_one)
{
    fth_mem *mem = t_mem(1 << 24);
    size_t bytes = 0;
    unsigned char *file = t_file_read(GOLDEN("c_b1.npy"), &bytes);
    file[bytes - 1] = 255;
    file[bytes - 2] = 2;
    const char *path = t_temp_path("bool.npy");
    t_file_write(path, file, bytes);
    free(file);
    fth_source s;
    uint8_t v[12];
    OK(fth_npy_open(&s, mem, path, NULL));
    OK(s.read(s.self, ((int64_t[]){0, 0}), ((int64_t[]){3, 4}), v, NULL));
    EQ_I64(v[11], 1);
    EQ_I64(v[10], 1);
    fth_source_close(&s);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
