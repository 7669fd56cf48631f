/* test_zarr_write.c - Zarr arrays of our own: any order, parts, threads, shards, failures.
 * seconds: 2 */
#include "mem/inject.h"
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/files.h>
#include <fathom/zarr.h>

#include <pthread.h>

enum { T = 2, Y = 11, X = 13, N = T * Y * X };

static uint16_t values[N];

static void fill(void)
{
    for (int64_t i = 0; i < N; i++) values[i] = (uint16_t)(i * 7919 % 65521);
}

static fth_zarr_array shape(int format, fth_zarr_packing packing, bool shards)
{
    fth_zarr_array a = {.format = format,
                        .dtype = FTH_U16,
                        .n_axes = 3,
                        .size = {T, Y, X},
                        .chunk = {1, 4, 6},
                        .packing = packing};
    if (shards) a.per_shard[1] = 2, a.per_shard[2] = 9;
    return a;
}

static void check_read(fth_mem *mem, const char *path)
{
    fth_err err = {0};
    fth_zarr *z = NULL;
    fth_source s;
    uint16_t got[N] = {0};
    OKE(fth_zarr_open(&z, mem, path, &err), &err);
    OKE(fth_zarr_source(z, &s, &err), &err);
    fth_zarr_close(z);
    OKE(s.read(s.self, (const int64_t[3]){0}, s.size, got, &err), &err);
    SAME_BYTES(got, values, sizeof got);
    fth_source_close(&s);
}

/* Files below a folder, each hashed with its name; the order does not matter. */
static uint64_t digest(fth_mem *mem, const char *folder, const char *name)
{
    fth_texts *list = NULL;
    uint64_t sum = 0;
    OK(fth_folder_list(&list, mem, folder, NULL));
    for (int64_t i = 0; i < fth_texts_count(list); i++) {
        char path[FTH_PATH], own[FTH_PATH];
        snprintf(own, sizeof own, "%s/%s", name, fth_texts_get(list, i));
        OK(fth_path_join(path, folder, fth_texts_get(list, i), NULL));
        HAS_NOT(own, ".part");
        if (fth_path_kind_of(path) == FTH_PATH_FOLDER) {
            sum += digest(mem, path, own);
            continue;
        }
        size_t n = 0;
        unsigned char *data = t_file_read(path, &n);
        sum += fth_hash_bytes(data, n, fth_hash_bytes(own, strlen(own), 1));
        free(data);
    }
    fth_texts_free(list);
    return sum;
}

static void write_box(const fth_sink *s, const int64_t *lo, const int64_t *n)
{
    fth_err err = {0};
    uint16_t part[N];
    int64_t k = 0;
    for (int64_t t = lo[0]; t < lo[0] + n[0]; t++)
        for (int64_t y = lo[1]; y < lo[1] + n[1]; y++)
            for (int64_t x = lo[2]; x < lo[2] + n[2]; x++) part[k++] = values[(t * Y + y) * X + x];
    OKE(s->write(s->self, lo, n, part, &err), &err);
}

TEST(what_is_written_is_read)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("all.zarr");
    fill();
    for (int format = 2; format <= 3; format++)
        for (int packing = 0; packing <= FTH_ZARR_PLAIN; packing++)
            for (int shards = 0; shards < format - 1; shards++) {
                fth_err err = {0};
                fth_sink s;
                const fth_zarr_array a = shape(format, (fth_zarr_packing)packing, shards == 1);
                OKE(fth_zarr_create(&s, mem, path, &a, &err), &err);
                IS_TRUE(s.concurrent && s.billed_bytes > 0);
                OKE(fth_sink_put(&s, values, &err), &err);
                fth_sink_close(&s);
                check_read(mem, path);
            }
    OK(fth_mem_destroy(mem, NULL));
}

/* Boxes that cover the array once: cut at random places, in a random order. */
static void write_boxes(const fth_sink *s, t_random *r)
{
    int64_t cuts[3][5], order[64], n = 0;
    const int64_t size[3] = {T, Y, X};
    for (int a = 0; a < 3; a++) {
        cuts[a][0] = 0, cuts[a][4] = size[a];
        for (int k = 1; k < 4; k++) cuts[a][k] = t_random_i64(r, cuts[a][k - 1], size[a]);
    }
    for (; n < 64; n++) order[n] = n;
    for (int64_t i = 63; i > 0; i--) {
        const int64_t k = t_random_i64(r, 0, i), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
    for (int i = 0; i < 64; i++) {
        const int64_t at[3] = {order[i] / 16, order[i] / 4 % 4, order[i] % 4};
        int64_t lo[3], m[3];
        for (int a = 0; a < 3; a++) {
            lo[a] = cuts[a][at[a]];
            m[a] = cuts[a][at[a] + 1] - lo[a];
        }
        write_box(s, lo, m);
    }
}

TEST(any_order_gives_the_same_files)
{
    fth_mem *mem = t_mem(64 << 20);
    t_random r = t_random_make(3);
    const char *path = t_temp_path("order.zarr");
    fill();
    for (int shards = 0; shards < 2; shards++) {
        const fth_zarr_array a = shape(3, FTH_ZARR_ZSTD, shards == 1);
        uint64_t first = 0;
        for (int k = 0; k < 5; k++) {
            fth_sink s;
            fth_err err = {0};
            OK(fth_zarr_create(&s, mem, path, &a, NULL));
            if (k == 0)
                write_box(&s, (const int64_t[3]){0}, a.size);
            else
                write_boxes(&s, &r);
            OKE(s.commit(s.self, &err), &err);
            fth_sink_close(&s);
            check_read(mem, path);
            const uint64_t now = digest(mem, path, "");
            if (k == 0) first = now;
            EQ_U64(now, first);
        }
    }
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct worker {
    const fth_sink *s;
    int64_t first;
    bool ok;
} worker;

/* Every fourth row: parts of chunks, from four threads at once. */
static void *write_rows(void *arg)
{
    worker *w = arg;
    w->ok = true;
    for (int64_t row = w->first; row < T * Y; row += 4) {
        const int64_t lo[3] = {row / Y, row % Y, 0}, n[3] = {1, 1, X};
        if (w->s->write(w->s->self, lo, n, values + row * X, NULL) != FTH_OK) w->ok = false;
    }
    return NULL;
}

TEST(several_threads_write_one_array)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("threads.zarr");
    const fth_zarr_array a = shape(3, FTH_ZARR_BLOSC, true);
    uint64_t first = 0;
    fill();
    for (int k = 0; k < 5; k++) {
        fth_sink s;
        pthread_t thread[4];
        worker w[4];
        OK(fth_zarr_create(&s, mem, path, &a, NULL));
        for (int i = 0; i < 4; i++) {
            w[i] = (worker){&s, i, false};
            EQ_I64(pthread_create(&thread[i], NULL, write_rows, &w[i]), 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(thread[i], NULL);
            IS_TRUE(w[i].ok);
        }
        OK(s.commit(s.self, NULL));
        fth_sink_close(&s);
        check_read(mem, path);
        const uint64_t now = digest(mem, path, "");
        if (k == 0) first = now;
        EQ_U64(now, first);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(arrays_of_every_dtype_and_no_axes)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("dtype.zarr");
    for (int d = 0; d < FTH_DTYPE_COUNT; d++) {
        fth_err err = {0};
        fth_sink s;
        fth_source in;
        fth_zarr *z = NULL;
        const fth_zarr_array a = {
            .dtype = (fth_dtype)d, .n_axes = 2, .size = {3, 5}, .chunk = {2, 5}};
        uint8_t data[15 * 16], got[15 * 16] = {0};
        for (int i = 0; i < 15 * 16; i++) data[i] = (uint8_t)(d == FTH_BOOL ? i % 2 : i * 37);
        OKE(fth_zarr_create(&s, mem, path, &a, &err), &err);
        OKE(fth_sink_put(&s, data, &err), &err);
        fth_sink_close(&s);
        OK(fth_zarr_open(&z, mem, path, NULL));
        OK(fth_zarr_source(z, &in, NULL));
        fth_zarr_close(z);
        EQ_I64(in.dtype, d);
        OK(in.read(in.self, (const int64_t[2]){0}, in.size, got, NULL));
        SAME_BYTES(got, data, 15 * fth_dtype_size((fth_dtype)d));
        fth_source_close(&in);
    }
    fth_sink s;
    float one = 2.5f, got = 0;
    fth_source in;
    fth_zarr *z = NULL;
    OK(fth_zarr_create(&s, mem, path, &(fth_zarr_array){.dtype = FTH_F32}, NULL));
    OK(fth_sink_put(&s, &one, NULL));
    fth_sink_close(&s);
    OK(fth_zarr_open(&z, mem, path, NULL));
    OK(fth_zarr_source(z, &in, NULL));
    OK(in.read(in.self, NULL, NULL, &got, NULL));
    EQ_F64(got, 2.5);
    fth_source_close(&in);
    fth_zarr_close(z);
    /* an empty axis has no chunks */
    OK(fth_zarr_create(&s, mem, path, &(fth_zarr_array){.dtype = FTH_U8, .n_axes = 1}, NULL));
    OK(s.commit(s.self, NULL));
    fth_sink_close(&s);
    OK(fth_mem_destroy(mem, NULL));
}

/* Bools are settled in a chunk of our own, also where other elements are read in place. */
TEST(bools_of_large_plain_chunks)
{
    enum { MANY = 600000 };
    fth_mem *mem = t_mem(1 << 22);
    fth_err err = {0};
    const char *path = t_temp_path("bools.zarr");
    const fth_zarr_array a = {
        .dtype = FTH_BOOL, .n_axes = 1, .size = {MANY}, .packing = FTH_ZARR_PLAIN};
    uint8_t *in = calloc(MANY, 1), *got = calloc(MANY, 1);
    for (int64_t i = 0; i < MANY; i++) in[i] = i % 3 == 0;
    fth_sink sink;
    OKE(fth_zarr_create(&sink, mem, path, &a, &err), &err);
    OKE(fth_sink_put(&sink, in, &err), &err);
    fth_sink_close(&sink);
    fth_zarr *z = NULL;
    fth_source s;
    OKE(fth_zarr_open(&z, mem, path, &err), &err);
    OKE(fth_zarr_source(z, &s, &err), &err);
    fth_zarr_close(z);
    IS_TRUE(s.billed_bytes >= MANY);
    OKE(s.read(s.self, (const int64_t[1]){0}, s.size, got, &err), &err);
    SAME_BYTES(got, in, MANY);
    fth_source_close(&s);
    free(in);
    free(got);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(whole_or_not_at_all)
{
    fth_mem *mem = t_mem(64 << 20);
    fth_err err = {0};
    fth_sink s;
    char folder[FTH_PATH], path[FTH_PATH], own[FTH_PATH];
    const fth_zarr_array a = shape(3, FTH_ZARR_ZSTD, true);
    fth_texts *list = NULL;
    fill();
    snprintf(folder, sizeof folder, "%s", t_temp_path("whole"));
    OK(fth_folder_make(NULL, folder, NULL));
    OK(fth_path_join(path, folder, "a.zarr", NULL));
    OK(fth_zarr_create(&s, mem, path, &a, NULL));
    EQ_STR(s.path, path);
    write_box(&s, (const int64_t[3]){0}, (const int64_t[3]){1, Y, X});
    IS_TRUE(!fth_path_exists(path));
    IS(s.commit(s.self, &err), FTH_E_STATE);
    HAS(err.text, "9 chunks were not written completely");
    fth_sink_close(&s);
    OK(fth_folder_list(&list, mem, folder, NULL));
    EQ_I64(fth_texts_count(list), 0);
    fth_texts_free(list);
    /* what is no Zarr folder is not replaced */
    OK(fth_path_join(own, folder, "own", NULL));
    OK(fth_folder_make(NULL, own, NULL));
    fth_err_clear(&err);
    IS(fth_zarr_create(&s, mem, own, &a, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "a folder that is no Zarr folder");
    OK(fth_zarr_create(&s, mem, path, &a, NULL));
    OK(fth_sink_put(&s, values, NULL));
    fth_sink_close(&s);
    OK(fth_zarr_create(&s, mem, path, &a, NULL));
    write_box(&s, (const int64_t[3]){0}, (const int64_t[3]){1, Y, X});
    fth_sink_close(&s); /* the old one stays */
    check_read(mem, path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(every_request_and_every_write_may_fail)
{
    fth_mem *mem = t_mem(64 << 20);
    char folder[FTH_PATH], path[FTH_PATH];
    const fth_zarr_array a = shape(3, FTH_ZARR_ZSTD, true);
    fill();
    snprintf(folder, sizeof folder, "%s", t_temp_path("failing"));
    OK(fth_folder_make(NULL, folder, NULL));
    OK(fth_path_join(path, folder, "a.zarr", NULL));
    for (int kind = 0; kind < 2; kind++) {
        OK(fth_folder_remove(NULL, path, NULL));
        for (int64_t n = 1;; n += 1 + n / 8) {
            fth_sink s;
            fth__mem_inject(mem, kind == 0 ? n : 0, kind == 1 ? n : 0);
            fth_status got = fth_zarr_create(&s, mem, path, &a, NULL);
            for (int64_t row = 0; got == FTH_OK && row < T * Y; row++) {
                const int64_t lo[3] = {row / Y, row % Y, 0}, m[3] = {1, 1, X};
                got = s.write(s.self, lo, m, values + row * X, NULL);
            }
            if (got == FTH_OK) got = s.commit(s.self, NULL);
            fth__mem_inject(mem, 0, 0);
            fth_sink_close(&s);
            fth_texts *list = NULL;
            OK(fth_folder_list(&list, mem, folder, NULL));
            EQ_I64(fth_texts_count(list), got == FTH_OK ? 1 : 0);
            fth_texts_free(list);
            if (got == FTH_OK) break;
            IS_TRUE(n < 100000);
        }
        check_read(mem, path);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_makes_no_sense_is_refused)
{
    fth_mem *mem = t_mem(64 << 20);
    const char *path = t_temp_path("never.zarr");
    fth_zarr_array a = shape(2, FTH_ZARR_ZSTD, true);
    fth_err err = {0};
    fth_sink s;
    IS(fth_zarr_create(&s, mem, path, &a, &err), FTH_E_USAGE);
    HAS(err.text, "version 2 has no shards");
    a = shape(4, FTH_ZARR_ZSTD, false);
    IS(fth_zarr_create(&s, mem, path, &a, NULL), FTH_E_USAGE);
    a = shape(2, FTH_ZARR_ZSTD, false);
    a.dtype = FTH_BF16;
    IS(fth_zarr_create(&s, mem, path, &a, NULL), FTH_E_DTYPE_OP);
    a = shape(3, FTH_ZARR_ZSTD, false);
    a.chunk[1] = -1;
    IS(fth_zarr_create(&s, mem, path, &a, NULL), FTH_E_USAGE);
    IS_TRUE(!fth_path_exists(path));
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
