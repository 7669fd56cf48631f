/* test_spatial_analyze_faults.c - analyze without memory and without room on the disk.
 *
 * After each failure: a status that says so, nothing held, no temporary file; and the next run ends
 * with the bytes of an undisturbed one.
 * seconds: 25 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_stage.h"

#include "instruments/spatial/analyze/analyze.h"
#include "mem/inject.h"

#include <ftw.h>

static struct {
    int temporary;
    uint64_t hash; /* of names and contents, but for the times in metrics.json */
} seen;

static int look(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    if (kind != FTW_F) return 0;
    const size_t n = strlen(path);
    seen.temporary += n > 4 && strcmp(path + n - 4, ".tmp") == 0;
    if (strcmp(path + at->base, SP_METRICS) == 0) return 0;
    size_t bytes;
    unsigned char *data = t_file_read(path, &bytes);
    const uint64_t name = fth_hash_bytes(path + at->base, strlen(path + at->base), 0);
    seen.hash += fth_hash_bytes(data, bytes, name); /* in any order */
    free(data);
    return 0;
}

static uint64_t folder_hash(const char *dir)
{
    memset(&seen, 0, sizeof seen);
    if (nftw(dir, look, 8, FTW_PHYS) != 0) FAIL("cannot look into %s", dir);
    return seen.hash;
}

/* Fail number 1, 2, 3 ... in larger and larger steps, until all is over before it comes. */
static void fail_each(sp_kind kind, const char *name, bool writes, int64_t step, int64_t least)
{
    t_job j = t_job_start(kind, name, 1, 0, "analyze: {export: false}\n", NULL);
    fth_mem *mem = fth_context_mem(j.ctx);
    fth_err err = {0};
    OKE(sp_analyze_run(t_job_call(&j, NULL), &err), &err);
    const uint64_t want = folder_hash(j.dir);
    fth_mem_stats before, after;
    (void)fth_mem_trim(mem);
    fth_mem_get_stats(mem, &before);
    int64_t failed = 0;
    for (int64_t n = 1;; n += 1 + n / step) {
        fth__mem_inject(mem, writes ? 0 : n, writes ? n : 0);
        fth_err_clear(&err);
        const fth_status s = sp_analyze_run(t_job_call(&j, NULL), &err);
        const bool over = (writes ? fth__mem_write_count(mem) : fth__mem_alloc_count(mem)) < n;
        fth__mem_inject(mem, 0, 0);
        (void)fth_mem_trim(mem); /* what is only kept for later has records too */
        fth_mem_get_stats(mem, &after);
        EQ_U64(after.used_bytes, before.used_bytes);
        EQ_U64(after.meta_bytes, before.meta_bytes);
        folder_hash(j.dir);
        EQ_I64(seen.temporary, 0);
        if (over) {
            IS(s, FTH_OK);
            break;
        }
        if (s == FTH_OK) continue; /* a plan that was only tried out, or a search that goes on */
        failed++;
        if (s != (writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM))
            FAIL("%s %lld gave %s", writes ? "write" : "request", (long long)n, err.text);
        IS_TRUE(err.status == s && err.text[0]);
    }
    printf("%s: %lld %s failed\n", sp_kinds[kind].name, (long long)failed,
           writes ? "writes" : "requests");
    IS_TRUE(failed >= least);
    const uint64_t got = folder_hash(j.dir);
    EQ_U64(got, want);
    t_job_end(&j);
}

TEST(requests_fail_one_by_one)
{
    fail_each(SP_MGGP_SVGP, "memory", false, 12, 40);
    fail_each(SP_LCGP, "memory_local", false, 8, 30);
}

TEST(writes_fail_one_by_one)
{
    fail_each(SP_MGGP_SVGP, "writes", true, 16, 20);
}

TEST(a_damaged_model_is_refused_before_anything_is_written)
{
    t_job j = t_job_start(SP_PNMF, "damaged", 1, 0, "analyze: {export: false}\n", NULL);
    char path[800];
    fth_err err = {0};
    snprintf(path, sizeof path, "%s/" SP_CHECKPOINT, j.model_dir);
    size_t bytes;
    unsigned char *data = t_file_read(path, &bytes);
    data[bytes - 5] ^= 1; /* one bit of one tensor */
    t_file_write(path, data, bytes);
    IS_TRUE(sp_analyze_run(t_job_call(&j, NULL), &err) != FTH_OK);
    HAS(err.text, SP_CHECKPOINT);
    t_file_write(path, data, bytes / 2);
    fth_err_clear(&err);
    IS_TRUE(sp_analyze_run(t_job_call(&j, NULL), &err) != FTH_OK);
    HAS(err.text, SP_CHECKPOINT);
    snprintf(path, sizeof path, "%s/" SP_FACTORS, j.model_dir);
    IS_TRUE(!t_file_exists(path));
    free(data);
    t_job_end(&j);
}

TEST_MAIN()
