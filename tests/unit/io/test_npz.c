/* test_npz.c - zips of NumPy and of ours: stored, deflated, zip64, damaged, cut, half written.
 * seconds: 6 */
#include "testing/io/files.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

static fth_npz *open_file(fth_mem *mem, const char *path)
{
    fth_npz *npz = NULL;
    fth_err err = {0};
    OKE(fth_npz_open(&npz, mem, path, &err), &err);
    return npz;
}

static void check_arrays(const char *path)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_npz *npz = open_file(mem, path);
    EQ_I64(fth_npz_count(npz), 3);
    const struct {
        const char *name;
        fth_dtype dtype;
        int64_t count;
    } a[] = {{"coords", FTH_F64, 10}, {"images", FTH_U16, 144}, {"scale", FTH_F32, 1}};
    fth_source kept = {0};
    fth_tensor *images = NULL;
    for (int i = 0; i < 3; i++) {
        EQ_STR(fth_npz_name(npz, i), a[i].name);
        fth_source s;
        fth_tensor *t = NULL;
        fth_err err = {0};
        OKE(fth_npz_source(npz, a[i].name, &s, &err), &err);
        EQ_I64(s.dtype, a[i].dtype);
        OKE(fth_source_load(&s, mem, a[i].name, &t, &err), &err);
        t_golden_check(a[i].dtype, a[i].count, fth_tensor_data(t));
        t_source_check(&s, fth_tensor_data(t), 9, 60);
        if (i == 1) {
            kept = s;
            images = t;
            continue;
        }
        fth_tensor_release(t);
        fth_source_close(&s);
    }
    fth_source s;
    OK(fth_npz_source(npz, "scale.npy", &s, NULL));
    fth_source_close(&s);
    fth_err err = {0};
    IS(fth_npz_source(npz, "coord", &s, &err), FTH_E_FILE_KEY);
    HAS(err.text, "coords, images, scale");
    EQ_PTR(fth_npz_name(npz, 3), NULL);
    fth_npz_close(npz);
    t_source_check(&kept, fth_tensor_data(images), 10, 5); /* outlives its container */
    fth_source_close(&kept);
    fth_tensor_release(images);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(numpys_stored_members)
{
    check_arrays(GOLDEN("stored.npz"));
}

TEST(numpys_deflated_members)
{
    check_arrays(GOLDEN("deflated.npz"));
}

TEST(sizes_that_follow_the_data)
{
    check_arrays(GOLDEN("descriptor.npz"));
}

TEST(zip64_records)
{
    check_arrays(GOLDEN("zip64.npz"));
}

TEST(other_packings_are_refused_by_number)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_npz *npz = open_file(mem, GOLDEN("refused_bzip2.npz"));
    fth_source s;
    fth_err err = {0};
    IS(fth_npz_source(npz, "a", &s, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "method 12");
    fth_npz_close(npz);
    OK(fth_mem_destroy(mem, NULL));
}

/* Writes `images` in columns from the back and `x` in order, so that one checksum is read back. */
static void write_file(fth_mem *mem, const char *path)
{
    const fth_file_item items[3] = {
        {.name = "images", .dtype = FTH_U16, .n_axes = 3, .size = {4, 6, 6}},
        {.name = "x", .dtype = FTH_C128, .n_axes = 1, .size = {9}},
        {.name = "none", .dtype = FTH_F32, .n_axes = 2, .size = {3, 0}}};
    uint16_t column[24];
    fth_c128 x[9];
    fth_npz_writer *w = NULL;
    fth_sink a, b, c;
    OK(fth_npz_create(&w, mem, path, items, 3, NULL));
    OK(fth_npz_sink(w, "images", &a, NULL));
    OK(fth_npz_sink(w, "x", &b, NULL));
    OK(fth_npz_sink(w, "none", &c, NULL));
    for (int64_t col = 6; col-- > 0;) {
        for (int64_t i = 0; i < 24; i++) column[i] = (uint16_t)(i * 6 + col);
        const int64_t lo[3] = {0, 0, col}, n[3] = {4, 6, 1};
        OK(a.write(a.self, lo, n, column, NULL));
    }
    for (int i = 0; i < 9; i++) x[i] = (fth_c128){i / 2.0 - 3, -i};
    OK(b.write(b.self, ((int64_t[]){0}), ((int64_t[]){4}), x, NULL));
    OK(b.write(b.self, ((int64_t[]){4}), ((int64_t[]){5}), x + 4, NULL));
    OK(c.commit(c.self, NULL));
    OK(a.commit(a.self, NULL));
    OK(b.commit(b.self, NULL));
    fth_err err = {0};
    OKE(fth_npz_commit(w, &err), &err);
}

TEST(what_is_written_comes_back_aligned)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("ours.npz");
    write_file(mem, path);
    EQ_I64(t_file_count(), 1);
    fth_npz *npz = open_file(mem, path);
    EQ_I64(fth_npz_count(npz), 3);
    const struct {
        const char *name;
        fth_dtype dtype;
        int64_t count;
    } a[] = {{"images", FTH_U16, 144}, {"x", FTH_C128, 9}, {"none", FTH_F32, 0}};
    for (int i = 0; i < 3; i++) {
        fth_source s;
        fth_tensor *t = NULL;
        fth_err err = {0};
        OKE(fth_npz_source(npz, a[i].name, &s, &err), &err);
        EQ_I64(s.dtype, a[i].dtype);
        OKE(fth_source_load(&s, mem, "t", &t, &err), &err);
        t_golden_check(a[i].dtype, a[i].count, fth_tensor_data(t));
        fth_tensor_release(t);
        fth_source_close(&s);
    }
    fth_npz_close(npz);
    size_t bytes = 0, again = 0;
    unsigned char *file = t_file_read(path, &bytes);
    int64_t arrays = 0;
    for (size_t i = 0; i + 6 < bytes; i++)
        if (memcmp(file + i, "\x93NUMPY", 6) == 0) {
            EQ_U64(i % 64, 0);
            arrays++;
        }
    EQ_I64(arrays, 3);
    write_file(mem, path);
    unsigned char *same = t_file_read(path, &again);
    EQ_U64(bytes, again);
    SAME_BYTES(file, same, bytes);
    free(file);
    free(same);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Any one bit of the elements wrong: reading the whole says so, at once or at the end. */
TEST(damage_is_found_by_the_checksum)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *files[2] = {GOLDEN("stored.npz"), GOLDEN("deflated.npz")},
               *path = t_temp_path("damaged.npz");
    for (int k = 0; k < 2; k++) {
        size_t bytes = 0;
        unsigned char *file = t_file_read(files[k], &bytes);
        size_t at = 0; /* of the data of images.npy: its local header is the second */
        for (size_t i = 4, seen = 0; i < bytes && seen < 1; i++)
            if (memcmp(file + i, "PK\3\4", 4) == 0) at = i, seen++;
        size_t start = at + 30 + file[at + 26] + file[at + 28];
        const size_t end = k == 0 ? start + 128 + 288 : start + 180;
        if (k == 0) start += 128;
        for (size_t i = start; i < end; i += 7) {
            file[i] ^= 16;
            t_file_write(path, file, bytes);
            file[i] ^= 16;
            fth_npz *npz = open_file(mem, path);
            fth_source s;
            fth_tensor *t = NULL;
            fth_err err = {0};
            fth_status status = fth_npz_source(npz, "images", &s, &err);
            if (status == FTH_OK) status = fth_source_load(&s, mem, "images", &t, &err);
            if (status == FTH_OK) FAIL("a wrong bit at byte %zu of %s was not found", i, files[k]);
            HAS(err.text, "images.npy");
            fth_source_close(&s);
            fth_npz_close(npz);
        }
        free(file);
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A file of one array, with bit `damaged` of it wrong (-1: none). */
enum { LINES = 40, LINE = 70000 };
static void write_lines(fth_mem *mem, const char *path, int64_t damaged)
{
    const fth_file_item item = {
        .name = "lines", .dtype = FTH_U8, .n_axes = 2, .size = {LINES, LINE}};
    uint8_t *data = malloc(LINES * LINE);
    for (int64_t i = 0; i < LINES * LINE; i++) data[i] = (uint8_t)(i * i % 251);
    fth_npz_writer *w = NULL;
    fth_sink sink;
    OK(fth_npz_create(&w, mem, path, &item, 1, NULL));
    OK(fth_npz_sink(w, "lines", &sink, NULL));
    OK(fth_sink_put(&sink, data, NULL));
    OK(fth_npz_commit(w, NULL));
    free(data);
    if (damaged < 0) return;
    size_t bytes = 0, start = 0;
    unsigned char *file = t_file_read(path, &bytes);
    while (memcmp(file + start, "\x93NUMPY", 6) != 0) start++;
    start += 10 + file[start + 8] + 256u * file[start + 9];
    file[start + (size_t)damaged / 8] ^= (unsigned char)(1 << damaged % 8);
    t_file_write(path, file, bytes);
    free(file);
}

/* Parts of any length in any order, some of them twice: when all were read, the damage was told. */
TEST(damage_is_found_in_any_order)
{
    fth_mem *mem = t_mem(1 << 24);
    t_random r = t_random_make(1);
    const char *path = t_temp_path("lines.npz");
    uint8_t *room = malloc(LINES * LINE);
    for (int k = 0; k < 12; k++) {
        const bool damaged = k % 3 > 0;
        write_lines(mem, path,
                    damaged ? (int64_t)(t_random_u64(&r) % (LINES * (uint64_t)LINE * 8)) : -1);
        fth_npz *npz = open_file(mem, path);
        fth_source s;
        OK(fth_npz_source(npz, "lines", &s, NULL));
        bool seen[LINES] = {0}, found = false;
        for (int left = LINES; left > 0;) {
            const int64_t at = (int64_t)(t_random_u64(&r) % LINES),
                          most = LINES - at < 4 ? LINES - at : 4,
                          n = 1 + (int64_t)(t_random_u64(&r) % (uint64_t)most);
            fth_err err = {0};
            const fth_status status =
                s.read(s.self, ((int64_t[]){at, 0}), ((int64_t[]){n, LINE}), room, &err);
            if (status != FTH_OK) HAS(err.text, "checksum");
            found |= status != FTH_OK;
            for (int64_t i = at; i < at + n; i++) {
                left -= !seen[i];
                seen[i] = true;
            }
            if (left > 0) IS_TRUE(!found);
        }
        IS_TRUE(found == damaged);
        fth_source_close(&s);
        fth_npz_close(npz);
    }
    free(room);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct lines {
    fth_source s;
    atomic_int next, failures;
} lines;

static void *read_lines(void *user)
{
    lines *l = user;
    uint8_t *room = malloc(LINE);
    for (int i; (i = atomic_fetch_add(&l->next, 1)) < LINES;)
        l->failures +=
            l->s.read(l->s.self, ((int64_t[]){i, 0}), ((int64_t[]){1, LINE}), room, NULL) != FTH_OK;
    free(room);
    return NULL;
}

TEST(stored_members_are_read_by_several_threads)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("lines.npz");
    for (int damaged = 0; damaged < 2; damaged++) {
        lines l = {0};
        pthread_t thread[4];
        write_lines(mem, path, damaged ? 12345678 : -1);
        fth_npz *npz = open_file(mem, path);
        OK(fth_npz_source(npz, "lines", &l.s, NULL));
        IS_TRUE(l.s.concurrent);
        for (int i = 0; i < 4; i++)
            if (pthread_create(&thread[i], NULL, read_lines, &l) != 0) FAIL("no thread");
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
        EQ_I64(l.failures, damaged);
        fth_source_close(&l.s);
        fth_npz_close(npz);
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(cut_at_every_byte)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *files[3] = {GOLDEN("deflated.npz"), GOLDEN("zip64.npz"), GOLDEN("stored.npz")};
    const char *path = t_temp_path("cut.npz");
    for (int k = 0; k < 3; k++) {
        size_t bytes = 0;
        unsigned char *file = t_file_read(files[k], &bytes);
        for (size_t cut = 0; cut < bytes; cut++) {
            t_file_write(path, file, cut);
            fth_npz *npz = NULL;
            fth_err err = {0};
            ONE_OF(fth_npz_open(&npz, mem, path, &err), FTH_E_FILE_SHORT, FTH_E_FILE_FORMAT);
            HAS(err.text, "cut.npz, byte ");
            EQ_PTR(npz, NULL);
        }
        free(file);
    }
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Every byte of the directory set to every kind of value: an error or the true arrays, never a
 * crash. */
TEST(directories_bent_on_purpose)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("bent.npz");
    const char *files[2] = {GOLDEN("deflated.npz"), GOLDEN("zip64.npz")};
    int64_t refused = 0;
    for (int k = 0; k < 2; k++) {
        size_t bytes = 0;
        unsigned char *file = t_file_read(files[k], &bytes);
        size_t first = bytes;
        for (size_t i = 0; i + 4 < bytes; i++)
            if (memcmp(file + i, "PK\1\2", 4) == 0 && first == bytes) first = i;
        for (size_t i = first; i < bytes; i++) {
            const unsigned char old = file[i], values[3] = {0, 255, (unsigned char)(old ^ 1)};
            for (int v = 0; v < 3; v++) {
                file[i] = values[v];
                t_file_write(path, file, bytes);
                fth_npz *npz = NULL;
                fth_status status = fth_npz_open(&npz, mem, path, NULL);
                for (int64_t m = 0; status == FTH_OK && m < fth_npz_count(npz); m++) {
                    fth_source s;
                    fth_tensor *t = NULL;
                    status = fth_npz_source(npz, fth_npz_name(npz, m), &s, NULL);
                    if (status == FTH_OK) status = fth_source_load(&s, mem, "t", &t, NULL);
                    fth_tensor_release(t);
                    fth_source_close(&s);
                }
                refused += status != FTH_OK;
                fth_npz_close(npz);
            }
            file[i] = old;
        }
        free(file);
    }
    IS_TRUE(refused > 200);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* More members than 16 bits can count: the zip64 end record, written and read. */
TEST(seventy_thousand_members)
{
    enum { N = 70000 };
    fth_mem *mem = t_mem(1 << 28);
    const char *path = t_temp_path("many.npz");
    fth_file_item *items = calloc(N, sizeof *items);
    char(*names)[16] = calloc(N, sizeof *names);
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "m%d", i);
        items[i] = (fth_file_item){.name = names[i], .dtype = FTH_I32};
    }
    fth_npz_writer *w = NULL;
    OK(fth_npz_create(&w, mem, path, items, N, NULL));
    for (int32_t i = 0; i < N; i++) {
        fth_sink k;
        OK(fth_npz_sink(w, names[i], &k, NULL));
        OK(k.write(k.self, NULL, NULL, &i, NULL));
        OK(k.commit(k.self, NULL));
    }
    OK(fth_npz_commit(w, NULL));
    fth_npz *npz = open_file(mem, path);
    EQ_I64(fth_npz_count(npz), N);
    for (int i = 0; i < N; i += 6999) {
        fth_source s;
        int32_t v = -1;
        OK(fth_npz_source(npz, names[i], &s, NULL));
        OK(s.read(s.self, NULL, NULL, &v, NULL));
        EQ_I64(v, i);
        fth_source_close(&s);
    }
    fth_npz_close(npz);
    free(items);
    free(names);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct reader {
    fth_source s;
    uint16_t v[144];
    fth_status status;
} reader;

static void *read_often(void *user)
{
    reader *r = user;
    for (int i = 0; i < 200 && r->status == FTH_OK; i++)
        r->status = r->s.read(r->s.self, ((int64_t[]){0, 0, 0}), r->s.size, r->v, NULL);
    return NULL;
}

TEST(sources_of_one_file_in_two_threads)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *files[2] = {GOLDEN("stored.npz"), GOLDEN("deflated.npz")};
    for (int k = 0; k < 2; k++) {
        fth_npz *npz = open_file(mem, files[k]);
        reader r[2] = {0};
        pthread_t thread[2];
        for (int i = 0; i < 2; i++) OK(fth_npz_source(npz, "images", &r[i].s, NULL));
        fth_npz_close(npz);
        for (int i = 0; i < 2; i++)
            if (pthread_create(&thread[i], NULL, read_often, &r[i]) != 0) FAIL("no thread");
        for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < 2; i++) {
            OK(r[i].status);
            t_golden_check(FTH_U16, 144, r[i].v);
            fth_source_close(&r[i].s);
        }
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(unfinished_files_never_appear)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("never.npz");
    const fth_file_item items[2] = {{.name = "a", .dtype = FTH_U8, .n_axes = 1, .size = {2}},
                                    {.name = "b", .dtype = FTH_U8}};
    fth_npz_writer *w = NULL;
    fth_sink a;
    fth_err err = {0};
    OK(fth_npz_create(&w, mem, path, items, 2, NULL));
    OK(fth_npz_sink(w, "a", &a, NULL));
    OK(a.write(a.self, ((int64_t[]){0}), ((int64_t[]){1}), "x", NULL));
    IS(a.commit(a.self, &err), FTH_E_STATE);
    HAS(err.text, "1 of 2");
    fth_err_clear(&err);
    IS(fth_npz_commit(w, &err), FTH_E_STATE);
    OK(fth_npz_create(&w, mem, path, items, 2, NULL));
    fth_npz_abandon(w);
    const fth_file_item half = {.name = "a", .dtype = FTH_BF16};
    IS(fth_npz_create(&w, mem, path, &half, 1, NULL), FTH_E_DTYPE_OP);
    EQ_I64(t_file_count(), 0);

    OK(fth_npz_create(&w, mem, path, NULL, 0, NULL)); /* no arrays is a file too */
    OK(fth_npz_commit(w, NULL));
    fth_npz *npz = open_file(mem, path);
    EQ_I64(fth_npz_count(npz), 0);
    fth_npz_close(npz);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
