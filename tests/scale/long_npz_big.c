/* long_npz_big.c - a member of more than 4 GiB, and one that starts behind it.
 * seconds: 60 */
#include "testing/io/files.h"

#include <sys/statvfs.h>

enum { ROWS = 1100, COLS = 4 << 20 }; /* 4.3 GiB */

static void fill_row(int64_t row, uint64_t *v)
{
    for (int64_t i = 0; i < COLS / 8; i++)
        v[i] = (uint64_t)(row * COLS + i) * UINT64_C(0x9e3779b97f4a7c15);
}

TEST(sizes_and_offsets_that_need_64_bits)
{
    struct statvfs disk;
    if (statvfs(t_temp_dir(), &disk) != 0 || disk.f_bavail * disk.f_frsize < UINT64_C(6) << 30)
        SKIP("less than 6 GiB free in %s", t_temp_dir());
    fth_mem *mem = t_mem(1 << 26);
    const char *path = t_temp_path("big.npz");
    const fth_file_item items[2] = {
        {.name = "big", .dtype = FTH_U8, .n_axes = 2, .size = {ROWS, COLS}},
        {.name = "far", .dtype = FTH_I64, .n_axes = 1, .size = {3}}};
    uint64_t *row = malloc(COLS), *got = malloc(COLS);
    fth_npz_writer *w = NULL;
    fth_sink big, far;
    OK(fth_npz_create(&w, mem, path, items, 2, NULL));
    OK(fth_npz_sink(w, "big", &big, NULL));
    OK(fth_npz_sink(w, "far", &far, NULL));
    for (int64_t i = 0; i < ROWS; i++) {
        fill_row(i, row);
        OK(big.write(big.self, ((int64_t[]){i, 0}), ((int64_t[]){1, COLS}), row, NULL));
    }
    OK(far.write(far.self, ((int64_t[]){0}), ((int64_t[]){3}), ((int64_t[]){7, 8, 9}), NULL));
    OK(big.commit(big.self, NULL));
    OK(far.commit(far.self, NULL));
    OK(fth_npz_commit(w, NULL));

    fth_npz *npz = NULL;
    fth_source s;
    int64_t three[3];
    OK(fth_npz_open(&npz, mem, path, NULL));
    OK(fth_npz_source(npz, "far", &s, NULL));
    OK(s.read(s.self, ((int64_t[]){0}), ((int64_t[]){3}), three, NULL));
    EQ_I64(three[2], 9);
    fth_source_close(&s);
    OK(fth_npz_source(npz, "big", &s, NULL));
    for (int64_t i = 0; i < ROWS; i++) { /* all of it, in order: the checksum is compared */
        OK(s.read(s.self, ((int64_t[]){i, 0}), ((int64_t[]){1, COLS}), got, NULL));
        fill_row(i, row);
        SAME_BYTES(got, row, COLS);
    }
    fth_source_close(&s);
    fth_npz_close(npz);
    free(row);
    free(got);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
