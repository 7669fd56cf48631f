/* test_config_faults.c - every request for memory and every write of a config's life fails once.
 *
 * The status says so, nothing is held, and the old file stays.
 * seconds: 5 */
#include "testing/io/files.h"
#include "testing/job/config_table.h"

#include "config/state.h"
#include "mem/inject.h"

static const char good[] = "name: x\noutput_dir: ${DATA}/out\nmodel: {K: 5, kernel: RBF}\n"
                           "preprocessing: {extra: [a, b, '${SET}']}\npaths: config\n";
static const char bad[] = "nmae: x\nname: 1\nname: 2\nseed: -1\nmodel: {kernel: rbf, local: true}\n"
                          "output_dir: ${NOWHERE}\nmaxiter: 3\ntraining: {save_steps: [1, x]}\n";

static int64_t files = 1; /* that stand there */

/* From layers to a file, or to the list of mistakes. */
static fth_status whole_life(fth_mem *mem, const char *text, const char *path, fth_err *err)
{
    fth_config *cfg = NULL;
    fth_config_options opt = ct_options;
    opt.cwd = "/home";
    t_file_write(path, text, strlen(text));
    fth_status s = fth_config_create(&cfg, mem, err);
    if (cfg) cfg->store.block = 1; /* each node and text is a request of its own */
    if (s == FTH_OK) s = fth_config_read(cfg, path, err);
    if (s == FTH_OK) s = fth_config_set(cfg, "training.max_iter=7", err);
    if (s == FTH_OK) s = fth_config_check(cfg, &ct_schema, &opt, err);
    if (s == FTH_OK) s = fth_config_write(cfg, NULL, "header", path, err);
    if (s == FTH_OK) EQ_STR(fth_config_text(cfg, "output_dir"), "/data/big/out");
    OK(fth_config_destroy(cfg, NULL));
    return s;
}

/* Until the n-th is never asked for; returns n. */
static int64_t fail_each(const char *text, fth_status end, bool writes)
{
    const char *path = t_temp_path("c.yaml");
    for (int64_t n = 1;; n++) {
        fth_mem *mem = t_mem(1 << 22);
        fth_err err = {0};
        fth__mem_inject(mem, writes ? 0 : n, writes ? n : 0);
        const fth_status s = whole_life(mem, text, path, &err);
        const bool over = (writes ? fth__mem_write_count(mem) : fth__mem_alloc_count(mem)) < n;
        if (s != (over ? end : writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM))
            FAIL("%s %lld gave %d: %s", writes ? "write" : "request", (long long)n, (int)s,
                 err.text);
        if (!over) {
            size_t bytes = 0;
            unsigned char *now = t_file_read(path, &bytes);
            EQ_U64(bytes, strlen(text));
            SAME_BYTES(now, text, bytes);
            free(now);
        }
        EQ_I64(t_file_count(), files);
        OKE(fth_mem_destroy(mem, &err), &err);
        if (over) return n;
    }
}

TEST(a_good_config)
{
    IS_TRUE(fail_each(good, FTH_OK, false) > 90);
    IS_TRUE(fail_each(good, FTH_OK, true) > 3);
}

TEST(a_config_that_inherits)
{
    static const char child[] = "base: [b.yaml, c.d.yaml]\nname: y\n", base[] = "seed: 3\n";
    t_file_write(t_temp_path("b.yaml"), good, strlen(good));
    t_file_write(t_temp_path("c.d.yaml"), base, strlen(base));
    files = 3;
    LE_F64(60, (double)fail_each(child, FTH_OK, false));
    files = 1;
    remove(t_temp_path("b.yaml"));
    remove(t_temp_path("c.d.yaml"));
}

TEST(a_config_with_mistakes)
{
    IS_TRUE(fail_each(bad, FTH_E_CONFIG, false) > 120);
}

TEST_MAIN()
