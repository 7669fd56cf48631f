/* test_hdf5.c - datasets by rectangles, strings, attributes, refusals by name, files that appear
 * whole. seconds: 4 */
#include "testing/io/files.h"

#include <hdf5.h>
#include <time.h>

static fth_h5 *open_file(fth_mem *mem, const char *path)
{
    fth_h5 *h5 = NULL;
    fth_err err = {0};
    OKE(fth_h5_open(&h5, mem, path, &err), &err);
    return h5;
}

/* Write one dataset in two halves of its rows and read it back. */
static void round_trip(fth_mem *mem, const fth_h5_dataset *want, uint64_t stream)
{
    const char *path = t_temp_path("round.h5");
    int64_t count = 1, item = fth_dtype_size(want->dtype);
    for (int a = 0; a < want->n_axes; a++) count *= want->size[a];
    unsigned char *v = malloc((size_t)(count * item) + 1);
    t_random r = t_random_make(stream);
    for (int64_t i = 0; i < count * item; i++)
        v[i] = (unsigned char)(want->dtype == FTH_BOOL ? t_random_u64(&r) & 1
                                                       : t_random_u64(&r) % 100);
    fth_err err = {0};
    fth_h5_writer *w = NULL;
    fth_sink k;
    OKE(fth_h5_create(&w, mem, path, &err), &err);
    OKE(fth_h5_sink(w, want, &k, &err), &err);
    int64_t lo[FTH_MAX_AXES] = {0}, n[FTH_MAX_AXES];
    memcpy(n, want->size, sizeof n);
    const int64_t half = want->n_axes ? want->size[0] / 2 : 0,
                  row = want->n_axes && want->size[0] ? count / want->size[0] : 0;
    n[0] -= half;
    lo[0] = half;
    OKE(k.write(k.self, lo, n, v + half * row * item, &err), &err);
    n[0] = half;
    lo[0] = 0;
    if (want->n_axes) OKE(k.write(k.self, lo, n, v, &err), &err);
    OK(k.commit(k.self, NULL));
    fth_sink_close(&k);
    OKE(fth_h5_commit(w, &err), &err);

    fth_h5 *h5 = open_file(mem, path);
    fth_source s;
    OKE(fth_h5_source(h5, want->name, &s, &err), &err);
    EQ_I64(s.dtype, want->dtype);
    EQ_I64(s.n_axes, want->n_axes);
    for (int a = 0; a < s.n_axes; a++) EQ_I64(s.size[a], want->size[a]);
    fth_h5_close(h5); /* the source keeps it open */
    t_source_check(&s, v, stream, 30);
    fth_source_close(&s);
    free(v);
    remove(path);
}

TEST(every_dtype_comes_back)
{
    fth_mem *mem = t_mem(1 << 24);
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        round_trip(
            mem,
            &(fth_h5_dataset){.name = "/a", .dtype = (fth_dtype)t, .n_axes = 2, .size = {7, 5}}, 1);
        round_trip(
            mem,
            &(fth_h5_dataset){
                .name = "/g/h/a", .dtype = (fth_dtype)t, .n_axes = 3, .size = {7, 5, 3}, .gzip = 4},
            2);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(scalars_empty_arrays_and_uneven_chunks)
{
    fth_mem *mem = t_mem(1 << 24);
    round_trip(mem, &(fth_h5_dataset){.name = "s", .dtype = FTH_F64}, 1);
    round_trip(
        mem,
        &(fth_h5_dataset){.name = "e", .dtype = FTH_F32, .n_axes = 2, .size = {0, 4}, .gzip = 1},
        2);
    round_trip(mem,
               &(fth_h5_dataset){.name = "c",
                                 .dtype = FTH_I32,
                                 .n_axes = 2,
                                 .size = {50, 37},
                                 .chunk = {8, 9},
                                 .gzip = 1},
               3);
    round_trip(mem,
               &(fth_h5_dataset){
                   .name = "c", .dtype = FTH_U16, .n_axes = 1, .size = {1000}, .chunk = {64}},
               4);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(one_chunk_is_billed_while_a_source_is_open)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("bill.h5");
    const fth_h5_dataset want = {
        .name = "a", .dtype = FTH_F32, .n_axes = 2, .size = {100, 100}, .chunk = {50, 100}};
    fth_h5_writer *w = NULL;
    fth_sink k;
    float v[100] = {0};
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_sink(w, &want, &k, NULL));
    for (int64_t row = 0; row < 100; row++)
        OK(k.write(k.self, ((int64_t[]){row, 0}), ((int64_t[]){1, 100}), v, NULL));
    OK(k.commit(k.self, NULL));
    OK(fth_h5_commit(w, NULL));
    fth_h5 *h5 = open_file(mem, path);
    fth_source s;
    fth_mem_stats stats;
    OK(fth_h5_source(h5, "a", &s, NULL));
    fth_mem_get_stats(mem, &stats);
    EQ_U64(stats.asked_bytes, 20000);
    fth_source_close(&s);
    fth_mem_get_stats(mem, &stats);
    EQ_U64(stats.used_bytes, 0);
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));

    mem = t_mem(16384); /* no room for one chunk: an error, before anything is read */
    h5 = open_file(mem, path);
    fth_err err = {0};
    IS(fth_h5_source(h5, "a", &s, &err), FTH_E_BUDGET);
    fth_h5_close(h5);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(strings_attributes_and_lists)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("text.h5");
    enum { N = 3000 };
    char(*names)[12] = calloc(N, sizeof *names);
    const char **text = calloc(N, sizeof *text);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "gene%d", i);
        text[i] = i == 1 ? "" : i == 2 ? "\xce\xb1" : names[i];
    }
    fth_h5_writer *w = NULL;
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_put_strings(w, "/var/index", text, N, NULL));
    OK(fth_h5_put_strings(w, "/var/none", NULL, 0, NULL));
    OK(fth_h5_put_attr_text(w, "/var", "encoding-type", "dataframe", NULL));
    OK(fth_h5_put_attr_i64(w, "/var", "shape", ((int64_t[]){3, 4}), 2, NULL));
    OK(fth_h5_put_attr_i64(w, "/", "one", ((int64_t[]){-7}), 1, NULL));
    OK(fth_h5_put_text(w, "/var/kind", "one text", NULL));
    OK(fth_h5_put_attr_f64(w, "/var/kind", "vector", ((double[]){0.5, -1e-300, 3}), 3, NULL));
    OK(fth_h5_put_attr_f64(w, "/var/kind", "length", ((double[]){2.5}), 1, NULL));
    OK(fth_h5_put_attr_texts(w, "/var", "axes", ((const char *const[]){"x", "\xce\xb1"}), 2, NULL));
    IS(fth_h5_put_text(w, "/var/no", NULL, NULL), FTH_E_USAGE);
    IS(fth_h5_put_attr_f64(w, "/var", "no", &(double){1}, 0, NULL), FTH_E_USAGE);
    IS(fth_h5_put_attr_texts(w, "/var", "no", NULL, 1, NULL), FTH_E_USAGE);
    OK(fth_h5_commit(w, NULL));

    fth_h5 *h5 = open_file(mem, path);
    fth_texts *t = NULL;
    OK(fth_h5_strings(h5, "/var/index", &t, NULL));
    EQ_I64(fth_texts_count(t), N);
    for (int i = 0; i < N; i++) EQ_STR(fth_texts_get(t, i), text[i]);
    EQ_PTR(fth_texts_get(t, N), NULL);
    fth_texts_free(t);
    OK(fth_h5_strings(h5, "/var/none", &t, NULL));
    EQ_I64(fth_texts_count(t), 0);
    fth_texts_free(t);
    OK(fth_h5_list(h5, "/var", &t, NULL));
    EQ_I64(fth_texts_count(t), 3);
    EQ_STR(fth_texts_get(t, 0), "index");
    EQ_STR(fth_texts_get(t, 1), "kind");
    EQ_STR(fth_texts_get(t, 2), "none");
    fth_texts_free(t);
    OK(fth_h5_strings(h5, "/var/kind", &t, NULL));
    EQ_I64(fth_texts_count(t), 1);
    EQ_STR(fth_texts_get(t, 0), "one text");
    fth_texts_free(t);
    OK(fth_h5_attr_text(h5, "/var", "axes", &t, NULL));
    EQ_I64(fth_texts_count(t), 2);
    EQ_STR(fth_texts_get(t, 1), "\xce\xb1");
    fth_texts_free(t);
    OK(fth_h5_attr_text(h5, "/var", "encoding-type", &t, NULL));
    EQ_STR(fth_texts_get(t, 0), "dataframe");
    fth_texts_free(t);
    int64_t v[2] = {0, 0}, n = 0;
    double d = 0, vector[3] = {0};
    OK(fth_h5_attr_f64(h5, "/var/kind", "vector", vector, 3, &n, NULL));
    EQ_I64(n, 3);
    EQ_F64(vector[0], 0.5);
    EQ_F64(vector[1], -1e-300);
    EQ_F64(vector[2], 3);
    OK(fth_h5_attr_f64(h5, "/var/kind", "length", &d, 1, &n, NULL));
    EQ_I64(n, 1);
    EQ_F64(d, 2.5);
    OK(fth_h5_attr_i64(h5, "/var", "shape", v, 2, &n, NULL));
    EQ_I64(n, 2);
    EQ_I64(v[1], 4);
    OK(fth_h5_attr_i64(h5, "/var", "shape", v, 0, &n, NULL)); /* only asks how many */
    EQ_I64(n, 2);
    OK(fth_h5_attr_f64(h5, "/", "one", &d, 1, &n, NULL));
    EQ_F64(d, -7);
    EQ_I64(fth_h5_kind_of(h5, "/var"), FTH_H5_GROUP);
    EQ_I64(fth_h5_kind_of(h5, "/var/index"), FTH_H5_DATASET);
    EQ_I64(fth_h5_kind_of(h5, "/var/gone"), FTH_H5_NONE);
    IS_TRUE(fth_h5_attr_exists(h5, "/var", "shape"));
    IS_TRUE(!fth_h5_attr_exists(h5, "/var", "size"));
    IS_TRUE(!fth_h5_attr_exists(h5, "/gone", "size"));

    fth_err err = {0};
    fth_source s;
    IS(fth_h5_source(h5, "/var/index", &s, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "text.h5, /var/index");
    fth_err_clear(&err);
    IS(fth_h5_source(h5, "/var/gone", &s, &err), FTH_E_FILE_KEY);
    HAS(err.hint, "the group '/var' holds: ");
    IS(fth_h5_source(h5, "gone", &s, &err), FTH_E_FILE_KEY);
    HAS(err.hint, "the group '/' holds: ");
    IS(fth_h5_source(h5, "/var", &s, &err), FTH_E_FILE_KEY);
    HAS(err.hint, "the group '/var' holds: ");
    HAS(err.text, "/var/gone");
    IS(fth_h5_attr_text(h5, "/var", "shape", &t, NULL), FTH_E_FILE_SHAPE);
    IS(fth_h5_attr_i64(h5, "/var", "encoding-type", v, 2, &n, NULL), FTH_E_FILE_SHAPE);
    fth_err_clear(&err);
    IS(fth_h5_attr_i64(h5, "/var", "size", v, 2, &n, &err), FTH_E_FILE_KEY);
    HAS(err.text, "'size'");
    IS(fth_h5_list(h5, "/var/index", &t, NULL), FTH_E_FILE_KEY);
    EQ_PTR(t, NULL);
    fth_h5_close(h5);
    free(names);
    free(text);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Files of other programs, made with libhdf5 itself. */
static hid_t foreign(const char *path)
{
    return H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

static void put(hid_t file, const char *name, hid_t type, hid_t memory, hsize_t n, const void *v,
                hid_t create)
{
    const hid_t space = H5Screate_simple(1, &n, NULL);
    const hid_t d = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (v) H5Dwrite(d, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, v);
    H5Dclose(d);
    H5Sclose(space);
}

TEST(integers_of_files_of_others_and_byte_orders)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("foreign.h5");
    const hid_t f = foreign(path);
    const int8_t i8[3] = {-1, 0, 127};
    const int16_t i16[3] = {-32768, -1, 32767};
    const uint32_t u32[3] = {0, 7, 4294967295u};
    const uint64_t u64[3] = {0, 7, UINT64_C(1) << 63};
    const float f32[3] = {1.5f, -2, 0};
    put(f, "i8", H5T_STD_I8LE, H5T_NATIVE_INT8, 3, i8, H5P_DEFAULT);
    put(f, "i16", H5T_STD_I16BE, H5T_NATIVE_INT16, 3, i16, H5P_DEFAULT);
    put(f, "u32", H5T_STD_U32BE, H5T_NATIVE_UINT32, 3, u32, H5P_DEFAULT);
    put(f, "u64", H5T_STD_U64LE, H5T_NATIVE_UINT64, 3, u64, H5P_DEFAULT);
    put(f, "big", H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, 3, f32, H5P_DEFAULT);
    put(f, "ld", H5T_NATIVE_LDOUBLE, H5T_NATIVE_FLOAT, 3, f32, H5P_DEFAULT);
    const hid_t fixed = H5Tcopy(H5T_C_S1);
    H5Tset_size(fixed, 4);
    H5Tset_strpad(fixed, H5T_STR_SPACEPAD);
    put(f, "fixed", fixed, fixed, 3, "ab  cdefx   ", H5P_DEFAULT);
    H5Tclose(fixed);
    H5Fclose(f);

    fth_h5 *h5 = open_file(mem, path);
    fth_source s;
    int8_t a[3];
    int16_t d[3];
    uint32_t e[3];
    int64_t b[3];
    float c[3];
    const int64_t lo = 0, n3 = 3, n2 = 2;
    OK(fth_h5_source(h5, "i8", &s, NULL));
    EQ_I64(s.dtype, FTH_I8);
    OK(s.read(s.self, &lo, &n3, a, NULL));
    SAME_BYTES(a, i8, sizeof i8);
    fth_source_close(&s);
    OK(fth_h5_source(h5, "i16", &s, NULL));
    EQ_I64(s.dtype, FTH_I16);
    OK(s.read(s.self, &lo, &n3, d, NULL));
    SAME_BYTES(d, i16, sizeof i16);
    fth_source_close(&s);
    OK(fth_h5_source(h5, "u32", &s, NULL));
    EQ_I64(s.dtype, FTH_U32);
    OK(s.read(s.self, &lo, &n3, e, NULL));
    SAME_BYTES(e, u32, sizeof u32);
    fth_source_close(&s);
    fth_err err = {0};
    OK(fth_h5_source(h5, "u64", &s, NULL));
    OK(s.read(s.self, &lo, &n2, b, NULL));
    EQ_I64(b[1], 7);
    /* HDF5 alone would clip to 2^63-1 */
    IS(s.read(s.self, &lo, &n3, b, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "u64: found 9223372036854775808, and there is no dtype u64");
    fth_source_close(&s);
    OK(fth_h5_source(h5, "big", &s, NULL));
    OK(s.read(s.self, &lo, &n3, c, NULL));
    EQ_F64(c[0], 1.5);
    EQ_F64(c[1], -2);
    fth_source_close(&s);
    IS(fth_h5_source(h5, "ld", &s, NULL), FTH_E_FILE_FEATURE);
    fth_texts *t = NULL;
    OK(fth_h5_strings(h5, "fixed", &t, NULL));
    EQ_STR(fth_texts_get(t, 0), "ab");
    EQ_STR(fth_texts_get(t, 1), "cdef");
    EQ_STR(fth_texts_get(t, 2), "x");
    fth_texts_free(t);
    fth_h5_close(h5);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A stand-in for ZFP while the file is written; gone when it is read. */
static size_t as_it_is(unsigned flags, size_t n, const unsigned values[], size_t bytes,
                       size_t *room, void **buf)
{
    (void)flags, (void)n, (void)values, (void)room, (void)buf;
    return bytes;
}

TEST(a_missing_filter_is_named)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("filter.h5");
    const H5Z_class2_t zfp = {.version = H5Z_CLASS_T_VERS,
                              .id = 32013,
                              .encoder_present = 1,
                              .decoder_present = 1,
                              .name = "some filter",
                              .filter = as_it_is};
    H5Zregister(&zfp);
    const hid_t f = foreign(path), create = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 3;
    const float v[3] = {1, 2, 3};
    H5Pset_chunk(create, 1, &chunk);
    H5Pset_filter(create, 32013, 0, 0, NULL);
    put(f, "packed", H5T_NATIVE_FLOAT, H5T_NATIVE_FLOAT, 3, v, create);
    H5Pclose(create);
    H5Fclose(f);
    H5Zunregister(32013);
    fth_h5 *h5 = open_file(mem, path);
    fth_source s;
    fth_err err = {0};
    IS(fth_h5_source(h5, "packed", &s, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "ZFP (32013)");
    HAS(err.text, "filter.h5, packed");
    HAS(err.hint, "h5repack");
    fth_h5_close(h5);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Chunks as h5py packs them: literals, a copy, a copy that overlaps itself, and damage. */
TEST(lzf_chunks_are_unpacked)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("lzf.h5");
    const H5Z_class2_t packer = {.version = H5Z_CLASS_T_VERS,
                                 .id = 32000,
                                 .encoder_present = 1,
                                 .decoder_present = 1,
                                 .name = "packer",
                                 .filter = as_it_is};
    H5Zregister(&packer); /* only until the file is written */
    const unsigned char packed[] = {3, 'a', 'b', 'c', 'd', 0x40, 3, 0xe0, 2, 0};
    const hid_t f = foreign(path), create = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 19, zero = 0;
    const unsigned values[3] = {4, 261, 19};
    H5Pset_chunk(create, 1, &chunk);
    H5Pset_filter(create, 32000, 0, 3, values);
    for (int damaged = 0; damaged < 2; damaged++) {
        const hid_t space = H5Screate_simple(1, &chunk, NULL);
        const hid_t d = H5Dcreate2(f, damaged ? "bad" : "good", H5T_STD_U8LE, space, H5P_DEFAULT,
                                   create, H5P_DEFAULT);
        IS_TRUE(H5Dwrite_chunk(d, H5P_DEFAULT, 0, &zero, damaged ? 5 : sizeof packed,
                               packed + damaged) >= 0);
        H5Dclose(d);
        H5Sclose(space);
    }
    H5Pclose(create);
    H5Fclose(f);
    H5Zunregister(32000);
    fth_h5 *h5 = open_file(mem, path);
    fth_source s;
    fth_err err = {0};
    char v[20] = "";
    const int64_t lo = 0, n = 19;
    OKE(fth_h5_source(h5, "good", &s, &err), &err);
    OKE(s.read(s.self, &lo, &n, v, &err), &err);
    EQ_STR(v, "abcdabcdddddddddddd");
    fth_source_close(&s);
    OK(fth_h5_source(h5, "bad", &s, NULL));
    IS(s.read(s.self, &lo, &n, v, &err), FTH_E_FILE_READ);
    HAS(err.text, "lzf.h5, bad");
    fth_source_close(&s);
    fth_h5_close(h5);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* As h5py packs strings of any length: the filter has no values. A chunk of three references of 16
 * bytes is taken from a plain dataset and written back as literals, whole and cut short. */
TEST(lzf_strings_are_read)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("lzf_text.h5");
    const H5Z_class2_t packer = {.version = H5Z_CLASS_T_VERS,
                                 .id = 32000,
                                 .encoder_present = 1,
                                 .decoder_present = 1,
                                 .name = "packer",
                                 .filter = as_it_is};
    H5Zregister(&packer);
    const hid_t f = foreign(path), create = H5Pcreate(H5P_DATASET_CREATE), text = H5Tcopy(H5T_C_S1);
    const hsize_t chunk = 3, zero = 0;
    const char *const words[3] = {"Layer 1", "", "a longer name of a cell type"};
    H5Tset_size(text, H5T_VARIABLE);
    H5Pset_chunk(create, 1, &chunk);
    put(f, "plain", text, text, 3, words, create);
    H5Pset_filter(create, 32000, H5Z_FLAG_OPTIONAL, 0, NULL);
    unsigned char raw[48], packed[50];
    uint32_t mask = 0;
    const hid_t from = H5Dopen2(f, "plain", H5P_DEFAULT);
    IS_TRUE(H5Dread_chunk(from, H5P_DEFAULT, &zero, &mask, raw) >= 0);
    H5Dclose(from);
    packed[0] = 31, packed[33] = 15;
    memcpy(packed + 1, raw, 32);
    memcpy(packed + 34, raw + 32, 16);
    for (int damaged = 0; damaged < 2; damaged++) {
        const hid_t space = H5Screate_simple(1, &chunk, NULL);
        const hid_t d = H5Dcreate2(f, damaged ? "short" : "good", text, space, H5P_DEFAULT, create,
                                   H5P_DEFAULT);
        IS_TRUE(H5Dwrite_chunk(d, H5P_DEFAULT, 0, &zero, damaged ? 33 : sizeof packed, packed) >=
                0);
        H5Dclose(d);
        H5Sclose(space);
    }
    H5Tclose(text);
    H5Pclose(create);
    H5Fclose(f);
    H5Zunregister(32000);
    fth_h5 *h5 = open_file(mem, path);
    fth_texts *t = NULL;
    fth_err err = {0};
    OKE(fth_h5_strings(h5, "good", &t, &err), &err);
    EQ_I64(fth_texts_count(t), 3);
    for (int i = 0; i < 3; i++) EQ_STR(fth_texts_get(t, i), words[i]);
    fth_texts_free(t);
    IS(fth_h5_strings(h5, "short", &t, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "lzf_text.h5, short");
    fth_h5_close(h5);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A dataset whose bytes are in another file could read anything on the machine. */
TEST(elements_in_other_files_are_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("external.h5");
    const hid_t f = foreign(path), create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(create, "/etc/hostname", 0, 3);
    put(f, "out", H5T_NATIVE_UINT8, H5T_NATIVE_UINT8, 3, NULL, create);
    H5Pclose(create);
    H5Fclose(f);
    fth_h5 *h5 = open_file(mem, path);
    fth_source s;
    fth_err err = {0};
    IS(fth_h5_source(h5, "out", &s, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "other files");
    fth_h5_close(h5);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* HDF5 never speaks for itself; its own setting comes back afterwards. */
TEST(no_file_another_format_and_a_cut_one)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_h5 *h5 = NULL;
    fth_err err = {0};
    IS(fth_h5_open(&h5, mem, t_temp_path("absent.h5"), &err), FTH_E_FILE_OPEN);
    HAS(err.text, "absent.h5");
    fth_err_clear(&err);
    IS(fth_h5_open(&h5, mem, GOLDEN("c_f4.npy"), &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "c_f4.npy");
    EQ_PTR(h5, NULL);
    H5E_auto2_t print = NULL;
    void *data = NULL;
    H5Eget_auto2(H5E_DEFAULT, &print, &data);
    IS_TRUE(print != NULL);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(an_unfinished_file_never_appears)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("never.h5");
    const fth_h5_dataset want = {.name = "a", .dtype = FTH_U8, .n_axes = 1, .size = {4}};
    fth_h5_writer *w = NULL;
    fth_sink k;
    fth_err err = {0};
    OK(fth_h5_create(&w, mem, path, NULL));
    OK(fth_h5_sink(w, &want, &k, NULL));
    OK(k.write(k.self, ((int64_t[]){0}), ((int64_t[]){2}), "ab", NULL));
    IS(k.commit(k.self, NULL), FTH_E_STATE);
    IS(fth_h5_commit(w, &err), FTH_E_STATE);
    HAS(err.text, "2 of 4");
    OK(fth_h5_create(&w, mem, path, NULL));
    fth_h5_abandon(w);
    fth_h5_abandon(NULL);
    EQ_I64(t_file_count(), 0);

    OK(fth_h5_create(&w, mem, path, NULL));
    fth_h5_dataset bad = want;
    bad.gzip = 10;
    IS(fth_h5_sink(w, &bad, &k, NULL), FTH_E_USAGE);
    bad = want;
    bad.n_axes = 2;
    bad.size[1] = 3;
    bad.chunk[0] = 2;
    IS(fth_h5_sink(w, &bad, &k, NULL), FTH_E_USAGE);
    OK(fth_h5_commit(w, NULL));
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* What an edited file holds: a text that was there, and a number that may be. */
static void check_edited(fth_mem *mem, const char *path, const char *kept, bool removed,
                         int64_t added)
{
    fth_h5 *h5 = open_file(mem, path);
    fth_texts *t = NULL;
    int64_t n = 0, v = 0;
    OK(fth_h5_strings(h5, "/g/kept", &t, NULL));
    EQ_STR(fth_texts_get(t, 0), kept);
    fth_texts_free(t);
    EQ_I64(fth_h5_kind_of(h5, "/g/gone"), removed ? FTH_H5_NONE : FTH_H5_DATASET);
    EQ_I64(fth_h5_kind_of(h5, "/new/group"), removed ? FTH_H5_GROUP : FTH_H5_NONE);
    OK(fth_h5_attr_i64(h5, "/g", "n", &v, 1, &n, NULL));
    EQ_I64(v, added);
    fth_h5_close(h5);
}

static fth_status edit(fth_mem *mem, const char *source, const char *path, fth_err *err)
{
    fth_h5_writer *w = NULL;
    FTH_TRY(fth_h5_edit(&w, mem, source, path, err));
    fth_status s = fth_h5_remove(w, "/g/gone", err);
    if (s == FTH_OK) s = fth_h5_remove(w, "/g/gone", err); /* the second time it is not there */
    if (s == FTH_OK) s = fth_h5_remove(w, "/nowhere/at/all", err);
    if (s == FTH_OK) s = fth_h5_put_group(w, "/new/group", err);
    if (s == FTH_OK) s = fth_h5_put_group(w, "/new/group", err);
    if (s == FTH_OK) s = fth_h5_put_attr_i64(w, "/g", "n", &(int64_t){2}, 1, err);
    if (s == FTH_OK) s = fth_h5_put_text(w, "/new/group/text", "added", err);
    if (s == FTH_OK) s = fth_h5_put_attr_bool(w, "/new/group", "ordered", true, err);
    if (s == FTH_OK) s = fth_h5_put_attr_texts(w, "/new/group", "nothing", NULL, 0, err);
    if (s == FTH_OK) return fth_h5_commit(w, err);
    fth_h5_abandon(w);
    return s;
}

TEST(a_copy_of_a_file_can_be_added_to)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *from = t_temp_path("from.h5"), *to = t_temp_path("to.h5");
    fth_h5_writer *w = NULL;
    fth_err err = {0};
    OK(fth_h5_create(&w, mem, from, NULL));
    OK(fth_h5_put_text(w, "/g/kept", "kept", NULL));
    OK(fth_h5_put_text(w, "/g/gone", "gone", NULL));
    OK(fth_h5_put_attr_i64(w, "/g", "n", &(int64_t){1}, 1, NULL));
    OK(fth_h5_commit(w, NULL));
    OKE(edit(mem, from, to, &err), &err);
    check_edited(mem, from, "kept", false, 1);
    check_edited(mem, to, "kept", true, 2);

    /* Each write and each request fails once: the old file stays, nothing is left behind. */
    for (int kind = 0; kind < 2; kind++) {
        fth_status s = FTH_E_NOMEM;
        for (int64_t n = 1; s != FTH_OK; n++) {
            fth_mem_options opt;
            fth_mem *poor = NULL;
            fth_mem_options_default(&opt);
            opt.budget_bytes = 1 << 24;
            opt.fail_alloc = kind == 0 ? n : 0;
            opt.fail_write = kind == 1 ? n : 0;
            s = fth_mem_create(&poor, &opt, NULL);
            if (s == FTH_OK) s = edit(poor, from, from, NULL);
            if (s != FTH_OK) check_edited(mem, from, "kept", false, 1);
            OK(fth_mem_destroy(poor, NULL));
            EQ_I64(t_file_count(), 2);
        }
        check_edited(mem, from, "kept", true, 2);
        if (kind == 1) break;
        OK(fth_h5_edit(&w, mem, from, from, NULL));
        OK(fth_h5_remove(w, "/new", NULL));
        OK(fth_h5_put_text(w, "/g/gone", "again", NULL));
        OK(fth_h5_put_attr_i64(w, "/g", "n", &(int64_t){1}, 1, NULL));
        OK(fth_h5_commit(w, NULL));
    }
    IS(fth_h5_edit(&w, mem, t_temp_path("none.h5"), to, NULL), FTH_E_FILE_OPEN);
    t_file_write(from, "no HDF5 at all", 14);
    IS(fth_h5_edit(&w, mem, from, to, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "from.h5");
    check_edited(mem, to, "kept", true, 2);
    remove(from);
    remove(to);
    OK(fth_mem_destroy(mem, NULL));
}

/* Equal data, equal bytes: no time is kept. */
TEST(the_same_data_give_the_same_file)
{
    fth_mem *mem = t_mem(1 << 24);
    unsigned char *file[2];
    size_t bytes[2];
    for (int k = 0; k < 2; k++) {
        const char *path = t_temp_path("same.h5");
        const fth_h5_dataset want = {
            .name = "/g/a", .dtype = FTH_U8, .n_axes = 1, .size = {4}, .gzip = 1};
        fth_h5_writer *w = NULL;
        fth_sink s;
        OK(fth_h5_create(&w, mem, path, NULL));
        OK(fth_h5_sink(w, &want, &s, NULL));
        OK(s.write(s.self, ((int64_t[]){0}), ((int64_t[]){4}), "abcd", NULL));
        OK(s.commit(s.self, NULL));
        OK(fth_h5_put_attr_text(w, "/g", "k", "v", NULL));
        OK(fth_h5_commit(w, NULL));
        file[k] = t_file_read(path, &bytes[k]);
        remove(path);
        struct timespec second = {1, 100000000};
        if (k == 0) nanosleep(&second, NULL);
    }
    EQ_U64(bytes[0], bytes[1]);
    SAME_BYTES(file[0], file[1], bytes[0]);
    free(file[0]);
    free(file[1]);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(fields_of_records)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_h5 *h5 = open_file(mem, GOLDEN("records.h5"));
    fth_texts *t = NULL;
    fth_source s;
    fth_err err = {0};
    OKE(fth_h5_fields(h5, "/table", &t, &err), &err);
    EQ_I64(fth_texts_count(t), 4);
    EQ_STR(fth_texts_get(t, 3), "xyz");
    fth_texts_free(t);
    static const struct {
        const char *field;
        fth_dtype dtype;
        int64_t n;
    } wanted[3] = {{"count", FTH_I64, 5}, {"flag", FTH_BOOL, 5}, {"xyz", FTH_F32, 15}};
    for (int k = 0; k < 3; k++) {
        char whole[15 * 8];
        const int64_t lo[2] = {0, 0};
        OKE(fth_h5_field_source(h5, "/table", wanted[k].field, &s, &err), &err);
        EQ_I64(s.dtype, wanted[k].dtype);
        EQ_I64(s.n_axes, wanted[k].n == 15 ? 2 : 1);
        OKE(s.read(s.self, lo, s.size, whole, &err), &err);
        t_golden_check(s.dtype, wanted[k].n, whole);
        t_source_check(&s, whole, 3, 40);
        fth_source_close(&s);
    }
    OKE(fth_h5_field_strings(h5, "/table", "name", &t, &err), &err);
    EQ_I64(fth_texts_count(t), 5);
    EQ_STR(fth_texts_get(t, 2), "");
    EQ_STR(fth_texts_get(t, 3), "dddd");
    fth_texts_free(t);
    OKE(fth_h5_field_strings(h5, "/g/words", "word", &t, &err), &err);
    EQ_STR(fth_texts_get(t, 1), "zwei");
    fth_texts_free(t);
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(fields_and_references_that_are_not_there)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_h5 *h5 = open_file(mem, GOLDEN("records.h5"));
    fth_texts *t = NULL;
    fth_source s;
    fth_err err = {0};
    char place[64], tiny[4];
    OKE(fth_h5_attr_reference(h5, "/g", "refers", place, sizeof place, &err), &err);
    EQ_STR(place, "/table");
    IS(fth_h5_attr_reference(h5, "/g", "refers", tiny, sizeof tiny, NULL), FTH_E_FILE_FORMAT);
    IS(fth_h5_attr_reference(h5, "/g", "number", place, sizeof place, NULL), FTH_E_FILE_SHAPE);
    IS(fth_h5_attr_reference(h5, "/g", "nothing", place, sizeof place, NULL), FTH_E_FILE_KEY);
    IS(fth_h5_field_source(h5, "/table", "nothing", &s, &err), FTH_E_FILE_KEY);
    HAS(err.text, "no field 'nothing'");
    IS(fth_h5_field_source(h5, "/table", "name", &s, NULL), FTH_E_FILE_SHAPE);
    IS(fth_h5_field_strings(h5, "/table", "count", &t, NULL), FTH_E_FILE_SHAPE);
    IS(fth_h5_field_strings(h5, "/table", "nothing", &t, NULL), FTH_E_FILE_KEY);
    IS(fth_h5_fields(h5, "/g", &t, NULL), FTH_E_FILE_KEY);
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_public_h5ad_file)
{
    const char *path = t_data_path("spatial/nsf_S1.h5ad");
    fth_mem *mem = t_mem(1 << 28);
    fth_h5 *h5 = open_file(mem, path);
    fth_texts *t = NULL;
    OK(fth_h5_list(h5, "/", &t, NULL));
    bool has_x = false;
    for (int64_t i = 0; i < fth_texts_count(t); i++)
        has_x = has_x || strcmp(fth_texts_get(t, i), "X") == 0;
    IS_TRUE(has_x);
    fth_texts_free(t);
    fth_h5_close(h5);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
