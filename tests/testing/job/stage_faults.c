/* stage_faults.c - requests for memory and writes of a stage fail, one by one. */
#include "stage_faults.h"

#include "../io/files.h"
#include "base/hash.h"
#include "job/stage/files.h"

#include <ftw.h>
#include <limits.h>
#include <unistd.h>

typedef struct bench {
    const t_stage_faults *of;
    fth_mem *mem;
    fth_config *cfg;
    fth_job job;
    char dir[PATH_MAX];
    bool leaked;
    fth_err err;
} bench;

static void on_log(void *user, fth_log_level level, const char *line)
{
    bench *b = user;
    if (level == FTH_LOG_ERROR && strstr(line, "held memory")) {
        printf("%s\n", line);
        b->leaked = true;
    }
}

static bench *start(const t_stage_faults *of, const char *name)
{
    bench *b = calloc(1, sizeof *b);
    b->of = of;
    b->mem = t_mem(of->budget);
    if (!realpath(t_temp_dir(), b->dir)) FAIL("no folder");
    strcat(b->dir, "/");
    strcat(b->dir, name);
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    OKE(fth_config_parse(b->cfg, "c.yaml", of->config, strlen(of->config), &b->err), &b->err);
    OKE(fth_config_check(b->cfg, of->instrument->schema, NULL, &b->err), &b->err);
    b->job = (fth_job){.name = name,
                       .dir_name = name,
                       .instrument = of->instrument,
                       .model = of->model,
                       .output_dir = b->dir,
                       .config_path = "c.yaml",
                       .config = b->cfg};
    return b;
}

static void drop(bench *b)
{
    OK(fth_config_destroy(b->cfg, NULL));
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err);
    free(b);
}

static fth_status run(bench *b, int stage, int64_t fail_alloc, int64_t fail_write)
{
    static const char *const again[] = {"force", NULL}; /* whatever lies there */
    fth_stage_options opt = {
        .job = &b->job, .stage = &b->of->instrument->stage[stage], .flags = again};
    fth_options_default(&opt.engine);
    opt.engine.mem.budget_bytes = b->of->budget;
    opt.engine.mem.fail_alloc = fail_alloc;
    opt.engine.mem.fail_write = fail_write;
    opt.engine.threads = 1;
    opt.engine.log = (fth_log){.write = on_log, .user = b, .level = FTH_LOG_ERROR};
    fth_err_clear(&b->err);
    return fth_stage_execute(&opt, NULL, &b->err);
}

/* ---- what lies in the folder ---- */

static struct {
    int temporary;
    uint64_t hash; /* of names and contents, without records */
    const char *except;
} seen;

static bool is_excepted(const char *name)
{
    char word[256];
    snprintf(word, sizeof word, " %s ", name);
    return seen.except && strstr(seen.except, word);
}

static int look(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    if (kind != FTW_F) return 0;
    const size_t n = strlen(path);
    seen.temporary += n > 4 && strcmp(path + n - 4, ".tmp") == 0;
    if (strstr(path, "/.fathom/") || is_excepted(path + at->base)) return 0;
    size_t bytes;
    unsigned char *data = t_file_read(path, &bytes);
    seen.hash += fth__hash_str(path + at->base, fth__hash_bytes(data, bytes, 0)); /* in any order */
    free(data);
    return 0;
}

static uint64_t folder_hash(const bench *b)
{
    memset(&seen, 0, sizeof seen);
    seen.except = b->of->except;
    if (nftw(b->dir, look, 8, FTW_PHYS) != 0) return 0;
    return seen.hash;
}

static bool has_record(const bench *b, int stage)
{
    char path[PATH_MAX];
    const fth_stage *s = &b->of->instrument->stage[stage];
    const int n = snprintf(path, sizeof path, "%s/.fathom/%s%s%s.json", b->dir, s->name,
                           s->shared ? "" : ".", s->shared ? "" : b->of->model);
    return n < (int)sizeof path && access(path, F_OK) == 0;
}

/* Fail number 1, 2, 3 ... in larger and larger steps, until nothing fails any more. */
static int64_t fail_each(bench *b, int stage, bool writes)
{
    int64_t failed = 0, quiet = 0;
    for (int64_t n = 1; quiet < 5;
         n += 1 + (writes ? n / b->of->write_step : n / b->of->request_step)) {
        const fth_status s = run(b, stage, writes ? 0 : n, writes ? n : 0);
        quiet = s == FTH_OK ? quiet + 1 : 0;
        if (b->leaked) FAIL("%s %lld leaked", writes ? "write" : "request", (long long)n);
        folder_hash(b);
        EQ_I64(seen.temporary, 0);
        if (s == FTH_OK) continue;
        failed++;
        const bool opens = writes && s == FTH_E_FILE_OPEN; /* a file without a name is made so */
        if (s != (writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM) && !opens)
            FAIL("%s %lld gave %s", writes ? "write" : "request", (long long)n, b->err.text);
        IS_TRUE(b->err.status == s && b->err.text[0]);
    }
    return failed;
}

void t_stage_fail(const t_stage_faults *of, int stage, int64_t requests, int64_t writes)
{
    bench *good = start(of, "good"), *b = start(of, of->instrument->stage[stage].name);
    for (int i = 0; i <= stage; i++) OKE(run(good, i, 0, 0), &good->err);
    for (int i = 0; i < stage; i++) OKE(run(b, i, 0, 0), &b->err);
    for (int kind = 0; kind < 2; kind++) {
        const int64_t n = fail_each(b, stage, kind == 1);
        printf("%s: %lld %s failed\n", of->instrument->stage[stage].name, (long long)n,
               kind == 1 ? "writes" : "requests");
        IS_TRUE(n >= (kind == 1 ? writes : requests));
        OKE(run(b, stage, 0, 0), &b->err);
        IS_TRUE(has_record(b, stage));
        const uint64_t want = folder_hash(good);
        EQ_U64(folder_hash(b), want);
    }
    drop(b);
    drop(good);
}

/* While a stage fails there is no record that says otherwise. */
void t_stage_fail_record(const t_stage_faults *of)
{
    bench *b = start(of, "record");
    OKE(run(b, 0, 0, 0), &b->err);
    IS_TRUE(has_record(b, 0));
    IS(run(b, 0, 0, 1), FTH_E_FILE_WRITE);
    IS_TRUE(!has_record(b, 0));
    drop(b);
}
