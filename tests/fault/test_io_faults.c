/* test_io_faults.c - every request for memory and every write to disk fails once, in every format.
 *
 * After each failure: a status that says so, the old file byte for byte, no
 * temporary file, and nothing held.
 * seconds: 10 */
#include "testing/files.h"

#include "mem/inject.h"

#include <signal.h>
#include <sys/resource.h>

typedef fth_status job(fth_mem *mem, const char *path, fth_err *err);

#define FIRST(call)                                                                                \
    do {                                                                                           \
        s = (call);                                                                                \
        if (s != FTH_OK) goto done;                                                                \
    } while (0)

static const int64_t zero[2] = {0, 0};
static const int64_t shape[2] = {6, 5};
static const float numbers[30] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static fth_status write_npy(fth_mem *mem, const char *path, fth_err *err)
{
    fth_sink k = {0};
    fth_status s;
    FIRST(fth_npy_create(&k, mem, path, FTH_F32, 2, shape, err));
    FIRST(k.write(k.self, zero, ((int64_t[]){6, 3}), numbers, err));
    FIRST(k.write(k.self, ((int64_t[]){0, 3}), ((int64_t[]){6, 2}), numbers, err));
    FIRST(k.commit(k.self, err));
done:
    fth_sink_close(&k);
    return s;
}

static fth_status write_raw(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_raw_layout layout = {
        .dtype = FTH_F32, .n_axes = 2, .size = {6, 5}, .offset = 4, .big_endian = true};
    fth_sink k = {0};
    fth_status s;
    FIRST(fth_raw_create(&k, mem, path, &layout, "head", err));
    FIRST(k.write(k.self, zero, shape, numbers, err));
    FIRST(k.commit(k.self, err));
done:
    fth_sink_close(&k);
    return s;
}

static const fth_file_item items[2] = {
    {.name = "a", .dtype = FTH_F32, .n_axes = 2, .size = {6, 5}, .axes = "row col"},
    {.name = "b", .dtype = FTH_F32, .n_axes = 1, .size = {3}}};

static fth_status fill(fth_sink *a, fth_sink *b, fth_err *err)
{
    FTH_TRY(a->write(a->self, ((int64_t[]){3, 0}), ((int64_t[]){3, 5}), numbers,
                     err)); /* out of order */
    FTH_TRY(a->write(a->self, zero, ((int64_t[]){3, 5}), numbers, err));
    FTH_TRY(b->write(b->self, zero, ((int64_t[]){3}), numbers, err));
    FTH_TRY(a->commit(a->self, err));
    return b->commit(b->self, err);
}

static fth_status write_npz(fth_mem *mem, const char *path, fth_err *err)
{
    fth_npz_writer *w = NULL;
    fth_sink a, b;
    fth_status s;
    FIRST(fth_npz_create(&w, mem, path, items, 2, err));
    FIRST(fth_npz_sink(w, "a", &a, err));
    FIRST(fth_npz_sink(w, "b", &b, err));
    FIRST(fill(&a, &b, err));
    s = fth_npz_commit(w, err);
    w = NULL;
done:
    fth_npz_abandon(w);
    return s;
}

static fth_status write_safetensors(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_safetensors_options opt = {.meta = &(fth_file_meta){"k", "v"}, .n_meta = 1};
    fth_safetensors_writer *w = NULL;
    fth_sink a, b;
    fth_status s;
    FIRST(fth_safetensors_create(&w, mem, path, items, 2, &opt, err));
    FIRST(fth_safetensors_sink(w, "a", &a, err));
    FIRST(fth_safetensors_sink(w, "b", &b, err));
    FIRST(fill(&a, &b, err));
    s = fth_safetensors_commit(w, err);
    w = NULL;
done:
    fth_safetensors_abandon(w);
    return s;
}

static fth_status write_h5(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_h5_dataset a_want = {.name = "/g/a",
                                   .dtype = FTH_F32,
                                   .n_axes = 2,
                                   .size = {6, 5},
                                   .gzip = 1},
                         b_want = {.name = "/g/b", .dtype = FTH_F32, .n_axes = 1, .size = {3}};
    const char *const text[2] = {"x", "yy"};
    fth_h5_writer *w = NULL;
    fth_sink a, b;
    fth_status s;
    FIRST(fth_h5_create(&w, mem, path, err));
    FIRST(fth_h5_sink(w, &a_want, &a, err));
    FIRST(fth_h5_sink(w, &b_want, &b, err));
    FIRST(fill(&a, &b, err));
    FIRST(fth_h5_put_strings(w, "/g/names", text, 2, err));
    FIRST(fth_h5_put_attr_text(w, "/g", "encoding-type", "dict", err));
    FIRST(fth_h5_put_attr_i64(w, "/g", "shape", shape, 2, err));
    s = fth_h5_commit(w, err);
    w = NULL;
done:
    fth_h5_abandon(w);
    return s;
}

static fth_status load(const fth_source *s, fth_mem *mem, fth_err *err)
{
    fth_tensor *t = NULL;
    const fth_status status = fth_source_load(s, mem, "t", &t, err);
    fth_tensor_release(t);
    return status;
}

static fth_status read_npy(fth_mem *mem, const char *path, fth_err *err)
{
    (void)path;
    fth_source a = {0};
    fth_status s;
    FIRST(fth_npy_open(&a, mem, GOLDEN("fortran_f4.npy"), err));
    FIRST(load(&a, mem, err));
done:
    fth_source_close(&a);
    return s;
}

static fth_status read_npz(fth_mem *mem, const char *path, fth_err *err)
{
    (void)path;
    fth_npz *npz = NULL;
    fth_csr *csr = NULL;
    fth_source a = {0};
    fth_status s;
    FIRST(fth_npz_open(&npz, mem, GOLDEN("csr_i64.npz"), err));
    FIRST(fth_npz_source(npz, "data", &a, err));
    FIRST(load(&a, mem, err));
    FIRST(fth_csr_open_npz(&csr, npz, err));
    const fth_source dense = fth_csr_source(csr);
    FIRST(load(&dense, mem, err));
done:
    fth_csr_close(csr);
    fth_source_close(&a);
    fth_npz_close(npz);
    return s;
}

static fth_status read_safetensors(fth_mem *mem, const char *path, fth_err *err)
{
    fth_safetensors *f = NULL;
    fth_source a = {0};
    fth_status s;
    FIRST(fth_safetensors_open(&f, mem, path, err));
    FIRST(fth_safetensors_verify(f, NULL, err));
    FIRST(fth_safetensors_source(f, "a", &a, err));
    FIRST(load(&a, mem, err));
done:
    fth_source_close(&a);
    fth_safetensors_close(f);
    return s;
}

static fth_status read_h5(fth_mem *mem, const char *path, fth_err *err)
{
    fth_h5 *h5 = NULL;
    fth_source a = {0};
    fth_texts *t = NULL;
    fth_status s;
    int64_t v[2], n;
    FIRST(fth_h5_open(&h5, mem, path, err));
    FIRST(fth_h5_source(h5, "/g/a", &a, err));
    FIRST(load(&a, mem, err));
    FIRST(fth_h5_strings(h5, "/g/names", &t, err));
    fth_texts_free(t);
    t = NULL;
    FIRST(fth_h5_list(h5, "/g", &t, err));
    fth_texts_free(t);
    t = NULL;
    FIRST(fth_h5_attr_text(h5, "/g", "encoding-type", &t, err));
    FIRST(fth_h5_attr_i64(h5, "/g", "shape", v, 2, &n, err));
done:
    fth_texts_free(t);
    fth_source_close(&a);
    fth_h5_close(h5);
    return s;
}

/* Fail the 1st, 2nd, 3rd... request until the job succeeds. */
static void fail_each_request(job *run, const char *path)
{
    fth_status s = FTH_E_NOMEM;
    for (int64_t n = 1; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        const int64_t files = t_file_count();
        fth__mem_inject(mem, n, 0);
        s = run(mem, path, &err);
        if (s != FTH_OK && s != FTH_E_NOMEM) FAIL("request %lld gave %s", (long long)n, err.text);
        if (s == FTH_OK && fth__mem_alloc_count(mem) >= n) s = FTH_E_NOMEM; /* it managed without */
        if (s == FTH_E_NOMEM && err.status == FTH_E_NOMEM) EQ_I64(t_file_count(), files);
        OK(fth_mem_destroy(mem, NULL));
    }
}

/* Fail each write in turn: the old file must not change. */
static void fail_each_write(job *run, const char *path, int64_t at_least)
{
    static const char old[] = "the old file";
    fth_status s = FTH_E_FILE_WRITE;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        t_file_write(path, old, sizeof old);
        fth__mem_inject(mem, 0, n);
        s = run(mem, path, &err);
        if (s != FTH_OK) {
            if (s != FTH_E_FILE_WRITE) FAIL("write %lld gave %s", (long long)n, err.text);
            HAS(err.text, path);
            size_t bytes = 0;
            unsigned char *now = t_file_read(path, &bytes);
            EQ_U64(bytes, sizeof old);
            SAME_BYTES(now, old, bytes);
            free(now);
        }
        EQ_I64(t_file_count(), 1);
        OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(n - 2 >= at_least); /* so many writes did fail */
    remove(path);
}

TEST(npy)
{
    const char *path = t_temp_path("f.npy");
    fail_each_request(write_npy, path);
    fail_each_write(write_npy, path, 5);
    fail_each_request(read_npy, path);
}

TEST(raw)
{
    const char *path = t_temp_path("f.raw");
    fail_each_request(write_raw, path);
    fail_each_write(write_raw, path, 5);
}

TEST(npz_and_csr)
{
    const char *path = t_temp_path("f.npz");
    fail_each_request(write_npz, path);
    fail_each_write(write_npz, path, 8);
    fail_each_request(read_npz, path);
}

TEST(safetensors)
{
    const char *path = t_temp_path("f.safetensors");
    fail_each_write(write_safetensors, path, 6);
    fail_each_request(write_safetensors, path);
    fail_each_request(read_safetensors, path);
    remove(path);
}

TEST(hdf5)
{
    const char *path = t_temp_path("f.h5");
    fail_each_write(write_h5, path, 10);
    fail_each_request(write_h5, path);
    fail_each_request(read_h5, path);
    remove(path);
}

/* With the previous file kept, each failure leaves a whole current file. */
static fth_status write_keeping(fth_mem *mem, const char *path, fth_err *err)
{
    const fth_safetensors_options opt = {.keep_previous = true};
    fth_safetensors_writer *w = NULL;
    FTH_TRY(fth_safetensors_create(&w, mem, path, NULL, 0, &opt, err));
    return fth_safetensors_commit(w, err);
}

TEST(the_previous_file_survives_every_failure)
{
    const char *path = t_temp_path("m.safetensors"), *prev = t_temp_path("m.prev.safetensors");
    fth_status s = FTH_E_FILE_WRITE;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        t_file_write(path, "current", 7);
        t_file_write(prev, "older", 5);
        fth__mem_inject(mem, 0, n);
        s = write_keeping(mem, path, &err);
        ONE_OF(s, FTH_OK, FTH_E_FILE_WRITE);
        size_t bytes = 0;
        unsigned char *now = t_file_read(path, &bytes);
        if (s != FTH_OK) SAME_BYTES(now, "current", 7);
        free(now);
        now = t_file_read(prev, &bytes);
        IS_TRUE(bytes == 5 || memcmp(now, "current", 7) == 0);
        free(now);
        EQ_I64(t_file_count(), 2);
        OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(n >= 6);
    remove(path);
    remove(prev);
}

/* The real thing: the system refuses to let a file grow. */
TEST(a_full_disk)
{
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    const char *path = t_temp_path("full.npy");
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    t_file_write(path, "old", 3);
    setrlimit(RLIMIT_FSIZE, &small);
    const fth_status s = write_npy(mem, path, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    IS(s, FTH_E_FILE_WRITE);
    HAS(err.text, "full.npy");
    EQ_I64(t_file_count(), 1);
    size_t bytes = 0;
    unsigned char *now = t_file_read(path, &bytes);
    EQ_U64(bytes, 3);
    free(now);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
