/* test_spatial_genes_faults.c - the verbs genes and page without memory and without room on disk.
 *
 * After each failure: a status that says so, nothing held, no temporary file; and the last run
 * leaves the bytes of an undisturbed one.
 * seconds: 5 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_stage.h"

#include "mem/inject.h"

#include <fathom/pictures.h>

#include <dirent.h>

typedef struct words {
    char config[700], sets[700], out[700], scores[700];
} words;

static const char *value_of(void *user, const char *flag)
{
    const words *w = user;
    if (strcmp(flag, "config") == 0) return w->config;
    if (strcmp(flag, "output") == 0) return w->out;
    if (strcmp(flag, "gene-sets") == 0) return w->sets;
    if (strcmp(flag, "scores") == 0) return w->scores;
    if (strcmp(flag, "permutations") == 0) return "2";
    if (strcmp(flag, "cells") == 0) return "20";
    return strcmp(flag, "quiet") == 0 ? "" : NULL;
}

static int count_temporary(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) n += strstr(e->d_name, ".tmp") != NULL;
    if (d) closedir(d);
    return n;
}

static void fail_each(const fth_verb *verb, const char *name, bool writes, int64_t least)
{
    t_job j = t_job_start(SP_MGGP_SVGP, name, 1, 0, "analyze: {export: false}\n", NULL);
    fth_mem *mem = fth_context_mem(j.ctx);
    fth_err err = {0};
    words w;
    char text[2000];
    OKE(sp_analyze_run(t_job_call(&j, NULL), &err), &err);
    snprintf(w.config, sizeof w.config, "%s/config.yaml", j.dir);
    snprintf(w.sets, sizeof w.sets, "%s/sets.gmt", j.dir);
    snprintf(w.scores, sizeof w.scores, "%s/scores.csv", j.dir);
    snprintf(text, sizeof text,
             "instrument: spatial\nname: golden\nseed: 42\ndataset: arrays\noutput_dir: %s\n"
             "preprocessing: {path: nowhere}\nmodel: {n_components: 3, spatial: true, groups: "
             "true, prior: SVGP}\nfigures: {image_file: '%s/tissue.png'}\n",
             j.dir, j.dir);
    snprintf(w.out, sizeof w.out, "%s/tissue.png", j.dir); /* drawn by page alone */
    static const uint8_t px[20][30][3];
    OK(fth_picture_save(mem, w.out, &(fth_picture){FTH_U8, 20, 30, 3, px, 0},
                        &(fth_picture_format){.kind = FTH_PICTURE_PNG}, NULL));
    snprintf(w.out, sizeof w.out, "%s/out.txt", j.dir);
    t_file_write(w.config, text, strlen(text));
    t_file_write(w.sets, "one\t\ta\tb\ntwo\t\tc\n", 16);
    FILE *out = tmpfile();
    IS_TRUE(out != NULL);
    OKE(verb->run(j.ctx, 0, NULL, value_of, &w, out, &err), &err);
    size_t want_bytes, got_bytes;
    unsigned char *want = t_file_read(w.out, &want_bytes);
    fth_mem_stats before, after;
    (void)fth_mem_trim(mem);
    fth_mem_get_stats(mem, &before);
    int64_t failed = 0;
    for (int64_t n = 1;; n += 1 + n / 16) {
        fth__mem_inject(mem, writes ? 0 : n, writes ? n : 0);
        fth_err_clear(&err);
        const fth_status s = verb->run(j.ctx, 0, NULL, value_of, &w, out, &err);
        const bool over = (writes ? fth__mem_write_count(mem) : fth__mem_alloc_count(mem)) < n;
        fth__mem_inject(mem, 0, 0);
        (void)fth_mem_trim(mem); /* what is only kept for later has records too */
        fth_mem_get_stats(mem, &after);
        EQ_U64(after.used_bytes, before.used_bytes);
        EQ_U64(after.meta_bytes, before.meta_bytes);
        EQ_I64(count_temporary(j.dir), 0);
        if (over) {
            IS(s, FTH_OK);
            break;
        }
        if (s == FTH_OK) continue; /* a plan that was only tried out */
        failed++;
        if (s != (writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM))
            FAIL("%s %lld gave %s", writes ? "write" : "request", (long long)n, err.text);
    }
    printf("%s: %lld %s failed\n", verb->name, (long long)failed, writes ? "writes" : "requests");
    IS_TRUE(failed >= least);
    unsigned char *got = t_file_read(w.out, &got_bytes);
    EQ_U64(got_bytes, want_bytes);
    IS_TRUE(memcmp(got, want, want_bytes) == 0);
    free(got);
    free(want);
    (void)fclose(out);
    t_job_end(&j);
}

TEST(requests_fail_one_by_one)
{
    fail_each(&sp_verb_genes, "genes_memory", false, 20);
    fail_each(&sp_verb_page, "page_memory", false, 20);
}

TEST(writes_fail_one_by_one)
{
    fail_each(&sp_verb_genes, "genes_writes", true, 2);
    fail_each(&sp_verb_page, "page_writes", true, 2);
}

TEST_MAIN()
