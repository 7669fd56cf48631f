/* test_raw.c - elements without a format: offsets, byte order, sizes that do not fit.
 * seconds: 1 */
#include "testing/io/files.h"

TEST(a_header_then_numbers_in_either_byte_order)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("image.raw");
    for (int big = 0; big < 2; big++) {
        const fth_raw_layout layout = {
            .dtype = FTH_U16, .n_axes = 2, .size = {2, 3}, .offset = 5, .big_endian = big};
        const uint16_t v[6] = {0x0102, 3, 4, 5, 6, 0x0708};
        fth_sink k;
        OK(fth_raw_create(&k, mem, path, &layout, "HEAD\n", NULL));
        OK(k.write(k.self, ((int64_t[]){0, 0}), ((int64_t[]){2, 3}), v, NULL));
        OK(k.commit(k.self, NULL));
        fth_sink_close(&k);

        size_t bytes = 0;
        unsigned char *file = t_file_read(path, &bytes);
        EQ_U64(bytes, 17);
        SAME_BYTES(file, "HEAD\n", 5);
        EQ_I64(file[5], big ? 1 : 2);
        EQ_I64(file[16], big ? 8 : 7);
        free(file);

        fth_source s;
        OK(fth_raw_open(&s, mem, path, &layout, NULL));
        t_source_check(&s, v, 1, 40);
        fth_source_close(&s);
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(complex_numbers_swap_part_by_part)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("wave.raw");
    const unsigned char file[8] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}; /* 1 - 2i, big-endian f32 */
    t_file_write(path, file, sizeof file);
    const fth_raw_layout layout = {.dtype = FTH_C64, .big_endian = true};
    fth_source s;
    fth_c64 v;
    OK(fth_raw_open(&s, mem, path, &layout, NULL));
    OK(s.read(s.self, NULL, NULL, &v, NULL));
    EQ_F64(v.re, 1);
    EQ_F64(v.im, -2);
    fth_source_close(&s);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(no_header_means_zeros_and_a_short_file_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("short.raw");
    fth_raw_layout layout = {.dtype = FTH_F64, .n_axes = 1, .size = {2}, .offset = 3};
    fth_sink k;
    OK(fth_raw_create(&k, mem, path, &layout, NULL, NULL));
    OK(k.write(k.self, ((int64_t[]){0}), ((int64_t[]){2}), ((double[]){1, 2}), NULL));
    OK(k.commit(k.self, NULL));
    fth_sink_close(&k);
    size_t bytes = 0;
    unsigned char *file = t_file_read(path, &bytes);
    SAME_BYTES(file, "\0\0\0", 3);
    free(file);

    fth_source s;
    fth_err err = {0};
    layout.size[0] = 3;
    IS(fth_raw_open(&s, mem, path, &layout, &err), FTH_E_FILE_SHORT);
    HAS(err.text, "f64 [3]");
    HAS(err.text, "27 bytes; it has 19");
    layout.offset = UINT64_MAX - 3;
    IS(fth_raw_open(&s, mem, path, &layout, NULL), FTH_E_SIZE_OVERFLOW);
    IS(fth_raw_open(&s, mem, path, NULL, NULL), FTH_E_USAGE);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
