/* test_jobs_faults.c - every request for memory and every write on the way to jobs fails once.
 *
 * The status says so, nothing is held, no file is cut short, and none is left behind.
 * seconds: 20 */
#include "testing/job/jobs.h"

#include "job/find/jobs.h"
#include "mem/inject.h"

static const char good[] = "instrument: spatial\nname: g\nseed: 7\ndataset: liver\n"
                           "output_dir: out\nmodel: {n_components: 5}\n";

/* A folder with a general config, one of its files edited, a model by itself, a link. */
static void fill_folder(void)
{
    jt_clean();
    jt_put("c/general.yaml", good);
    jt_put("c/svgp.yaml", "instrument: spatial\nname: m\noutput_dir: out\ndataset: liver\n"
                          "model: {spatial: true}\n");
    jt_put("c/d/own.yaml", "name: o\noutput_dir: c/link/x\nmodel: {spatial: true}\n");
    jt_link("d", "c/link");
}

static fth_status find_and_generate(jt_bench *b)
{
    b->path[0] = "c";
    b->path[1] = "c/d/own.yaml";
    b->set[0] = "training.max_iter=3";
    b->opt.config_name = "none.yaml";
    b->block = 1;
    fth_status s = jt_find(b);
    if (s == FTH_OK) EQ_I64(fth_jobs_count(b->jobs), 4);
    if (s == FTH_OK) s = fth_jobs_generate(b->jobs, true, NULL, &b->err);
    return s;
}

static int64_t files_in(const char *name)
{
    DIR *d = opendir(t_temp_path(name));
    int64_t n = -2;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Until the n-th is never asked for; returns n. */
static int64_t fail_each(bool writes)
{
    for (int64_t n = 1;; n++) {
        fill_folder();
        jt_bench b = jt_start();
        fth__mem_inject(b.mem, writes ? 0 : n, writes ? n : 0);
        const fth_status s = find_and_generate(&b);
        const bool over = (writes ? fth__mem_write_count(b.mem) : fth__mem_alloc_count(b.mem)) < n;
        if (s != (over ? FTH_OK : writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM))
            FAIL("%s %lld gave %d: %s", writes ? "write" : "request", (long long)n, (int)s,
                 b.err.text);
        fth__mem_inject(b.mem, 0, 0);
        jt_drop(&b);
        /* what is there is whole: it can be read again, and the rest made */
        b = jt_start();
        OKE(find_and_generate(&b), &b.err);
        jt_drop(&b);
        EQ_I64(files_in("c"), 6);
        if (over) return n;
    }
}

TEST(every_request_for_memory)
{
    IS_TRUE(fail_each(false) > 100);
}

TEST(every_write)
{
    EQ_I64(fail_each(true), 3 * 4 + 1); /* create, write, sync and rename each file */
}

/* Several values, a base and patterns. */
static fth_status vary_and_select(jt_bench *b)
{
    static const char *const over[] = {"seed=1,2", "training.max_iter=3,4"};
    static const char *const only[] = {"x_seed*"};
    b->path[0] = "c";
    b->opt.over = over;
    b->opt.n_over = 2;
    b->block = 1;
    fth_status s = jt_find(b);
    if (s == FTH_OK) EQ_I64(fth_jobs_count(b->jobs), 4);
    if (s == FTH_OK) s = fth_jobs_select(b->jobs, only, 1, &b->err);
    const fth_job *job = s == FTH_OK ? fth_jobs_get(b->jobs, 3) : NULL;
    if (job) EQ_I64(fth_config_int(job->config, "training.max_iter"), 4);
    if (job) s = fth_jobs_keep(b->jobs, &job->config_path, 1, &b->err);
    if (s == FTH_OK) EQ_I64(fth_jobs_count(b->jobs), 4);
    return s;
}

TEST(every_request_of_variants)
{
    for (int64_t n = 1;; n++) {
        jt_clean();
        jt_put("c/part.yaml", "training: {max_iter: 9}\n");
        jt_put("c/own.yaml", "base: part.yaml\ninstrument: spatial\nname: o\noutput_dir: x\n"
                             "model: {spatial: true}\n");
        jt_bench b = jt_start();
        fth__mem_inject(b.mem, n, 0);
        const fth_status s = vary_and_select(&b);
        const bool over = fth__mem_alloc_count(b.mem) < n;
        if (s != (over ? FTH_OK : FTH_E_NOMEM))
            FAIL("request %lld gave %d: %s: %s", (long long)n, (int)s, b.err.text, b.log->text);
        fth__mem_inject(b.mem, 0, 0);
        jt_drop(&b);
        if (!over) continue;
        IS_TRUE(n > 100);
        return;
    }
}

/* Mistakes and collisions need memory as well. */
TEST(refusals_without_memory)
{
    static const char *const text[] = {
        "instrument: spatail\n",
        "instrument: spatial\nname: x\nseed: -1\nsede: 3\nmodel: {spatial: true}\n",
        "instrument: spatial\nname: x\noutput_dir: out\nmodel: {spatial: true}\n",
        "a: [",
    };
    static const fth_status wanted[] = {FTH_E_CONFIG, FTH_E_CONFIG, FTH_E_COLLISION, FTH_E_CONFIG};
    for (int i = 0; i < 4; i++) {
        jt_clean();
        jt_put("c/general.yaml", good);
        jt_put("x.yaml", text[i]);
        for (int64_t n = 1;; n++) {
            jt_bench b = jt_start();
            b.path[0] = "c";
            b.path[1] = "x.yaml";
            b.block = 1;
            fth__mem_inject(b.mem, n, 0);
            const fth_status s = jt_find(&b);
            const bool over = fth__mem_alloc_count(b.mem) < n;
            if (s != (over ? wanted[i] : FTH_E_NOMEM))
                FAIL("case %d, request %lld gave %d: %s", i, (long long)n, (int)s, b.err.text);
            IS_TRUE(b.jobs == NULL);
            jt_drop(&b);
            if (over) break;
        }
        EQ_I64(files_in("c"), 1);
    }
}

TEST_MAIN()
