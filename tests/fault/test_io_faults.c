/* test_io_faults.c - every request for memory and every write to disk fails once, in every format.
 *
 * After each failure: a status that says so, the old file byte for byte, no
 * temporary file, and nothing held.
 * seconds: 10 */
#include "testing/io/files.h"
#include "testing/io/io_jobs.h"

#include "mem/inject.h"

#include <signal.h>
#include <sys/resource.h>

/* Fail the 1st, 2nd, 3rd... request until the job succeeds. */
static void fail_each_request(io_job *run, const char *path)
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
static void fail_each_write(io_job *run, const char *path, int64_t at_least)
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
    fail_each_request(io_write_npy, path);
    fail_each_write(io_write_npy, path, 5);
    fail_each_request(io_read_npy, path);
}

TEST(raw)
{
    const char *path = t_temp_path("f.raw");
    fail_each_write(io_write_raw, path, 5);
    fail_each_request(io_write_raw, path);
    fail_each_request(io_read_raw, path);
    remove(path);
}

TEST(npz_and_csr)
{
    const char *path = t_temp_path("f.npz");
    fail_each_request(io_write_npz, path);
    fail_each_write(io_write_npz, path, 8);
    fail_each_request(io_read_npz, path);
}

TEST(safetensors)
{
    const char *path = t_temp_path("f.safetensors");
    fail_each_write(io_write_safetensors, path, 6);
    fail_each_request(io_write_safetensors, path);
    fail_each_request(io_read_safetensors, path);
    remove(path);
}

TEST(hdf5)
{
    const char *path = t_temp_path("f.h5");
    fail_each_write(io_write_h5, path, 10);
    fail_each_request(io_write_h5, path);
    fail_each_request(io_read_h5, path);
    remove(path);
}

TEST(tiff_and_jpeg)
{
    const char *path = t_temp_path("f.tif");
    fail_each_write(io_write_tiff, path, 5);
    fail_each_request(io_write_tiff, path);
    remove(path);
    fail_each_write(io_write_jpeg, path, 4);
    fail_each_request(io_write_jpeg, path);
    remove(path);
    fail_each_request(io_read_pictures, path);
}

TEST(nd2)
{
    const char *path = t_temp_path("f.nd2");
    fail_each_write(io_write_nd2, path, 20);
    fail_each_request(io_write_nd2, path);
    fail_each_request(io_read_nd2, path);
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

/* The real thing: the system refuses to let a file grow past any of its sizes. */
static void fill_the_disk(io_job *run, const char *path)
{
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    int64_t refused = 0;
    fth_status s = FTH_E_FILE_WRITE;
    for (rlim_t limit = 50; s != FTH_OK; limit += 150) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        t_file_write(path, "old", 3);
        small = old;
        small.rlim_cur = limit;
        setrlimit(RLIMIT_FSIZE, &small);
        s = run(mem, path, &err);
        setrlimit(RLIMIT_FSIZE, &old);
        size_t bytes = 0;
        free(t_file_read(path, &bytes));
        if (s != FTH_OK) {
            IS(s, FTH_E_FILE_WRITE);
            HAS(err.text, path);
            EQ_U64(bytes, 3);
            refused++;
        }
        EQ_I64(t_file_count(), 1);
        OK(fth_mem_destroy(mem, NULL));
        if (s == FTH_OK) IS_TRUE(bytes <= limit && bytes + 150 > limit); /* not a byte too late */
    }
    IS_TRUE(refused > 0);
    remove(path);
}

/* HDF5 1.10 loses what it held for a file that it could not close; asked by the leak sanitizer. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5_serial\n";
}

TEST(a_full_disk)
{
    fill_the_disk(io_write_npy, t_temp_path("full.npy"));
    fill_the_disk(io_write_raw, t_temp_path("full.raw"));
    fill_the_disk(io_write_npz, t_temp_path("full.npz"));
    fill_the_disk(io_write_safetensors, t_temp_path("full.safetensors"));
    fill_the_disk(io_write_h5, t_temp_path("full.h5"));
    fill_the_disk(io_write_nd2, t_temp_path("full.nd2"));
}

TEST_MAIN()
