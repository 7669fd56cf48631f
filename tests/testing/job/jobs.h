/* testing/job/jobs.h - an instrument with a shared stage and three variants, and folders of
 * configs.
 *
 * `echo` does nothing; it is there to be expanded, compared and named.
 */
#ifndef FATHOM_TESTING_JOBS_H
#define FATHOM_TESTING_JOBS_H

#include "base/hash.h"
#include "job/find/jobs.h"
#include "testing/io/files.h"

#include <fathom/job.h>

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const fth_config_key jt_keys[] = {
    FTH_INSTRUMENT_KEYS("42", "outputs"),
    {.name = "dataset", .type = FTH_CONFIG_TEXT, .value = "toy", .doc = "dataset"},
    {.name = "preprocessing", .type = FTH_CONFIG_SECTION, .doc = "From raw data to counts."},
    {.name = "preprocessing.path", .type = FTH_CONFIG_PATH, .value = "data.h5", .doc = "data"},
    {.name = "preprocessing.scale",
     .type = FTH_CONFIG_REAL,
     .value = "50",
     .range = "(0, inf)",
     .doc = "scale"},
    {.name = "model.spatial", .type = FTH_CONFIG_BOOL, .value = "false", .doc = "spatial"},
    {.name = "model.groups", .type = FTH_CONFIG_BOOL, .value = "false", .doc = "groups"},
    {.name = "model.n_components",
     .type = FTH_CONFIG_INT,
     .value = "10",
     .range = "[1, inf)",
     .doc = "factors"},
    {.name = "model.kernel",
     .type = FTH_CONFIG_CHOICE,
     .value = "RBF",
     .choices = "RBF Matern32",
     .doc = "kernel",
     .applies = "svgp mggp_svgp"},
    {.name = "model.name", .type = FTH_CONFIG_TEXT, .doc = "name of the folder"},
    {.name = "training.max_iter",
     .type = FTH_CONFIG_INT,
     .value = "10000",
     .range = "[1, inf)",
     .doc = "steps"},
    {.name = "training.learning_rate",
     .type = FTH_CONFIG_REAL,
     .value = "0.01",
     .range = "(0, 1]",
     .doc = "rate"},
};

static inline void jt_check(fth_config *cfg, void *user)
{
    (void)user;
    if (fth_config_bool(cfg, "model.groups") && !fth_config_bool(cfg, "model.spatial"))
        fth_config_complain(cfg, "model.groups", "write spatial: true", "groups needs spatial");
    if (fth_config_int(cfg, "model.n_components") > 500)
        fth_config_notify(cfg, "model.n_components", NULL, "that is a lot");
}

static inline bool jt_general(const fth_config *cfg)
{
    return !fth_config_peek(cfg, "model.spatial");
}

static inline fth_status jt_model(const fth_config *cfg, char *name, size_t bytes, fth_err *err)
{
    if (fth_config_has(cfg, "model.name"))
        snprintf(name, bytes, "%s", fth_config_text(cfg, "model.name"));
    else
        snprintf(name, bytes, "%s%s", fth_config_bool(cfg, "model.groups") ? "mggp_" : "",
                 fth_config_bool(cfg, "model.spatial") ? "svgp" : "pnmf");
    if (strcmp(name, "refused") == 0) return FTH_FAIL(err, FTH_E_CONFIG, "such a model cannot be");
    return FTH_OK;
}

static const fth_schema jt_schema = {.name = "spatial",
                                     .brief = "A table for tests.",
                                     .key = jt_keys,
                                     .n_keys = sizeof jt_keys / sizeof jt_keys[0],
                                     .check = jt_check};
static const fth_schema jt_other_schema = {
    .name = "echo", .brief = "Another.", .key = jt_keys, .n_keys = 5};

static const fth_stage jt_stages[] = {
    {.name = "preprocess", .doing = "preparing", .keys = "dataset preprocessing", .shared = true},
    {.name = "train", .doing = "training", .keys = "model training seed", .after = "preprocess"},
};
static const fth_stage jt_other_stages[] = {{.name = "listen", .keys = "seed"},
                                            {.name = "train", .keys = "seed"}};
static const fth_variant jt_variants[] = {
    {"pnmf", {"model.spatial=false"}},
    {"svgp", {"model.spatial=true"}},
    {"mggp_svgp", {"model.spatial=true", "model.groups=true"}},
};
static const fth_instrument jt_spatial = {.name = "spatial",
                                          .brief = "for tests",
                                          .schema = &jt_schema,
                                          .stage = jt_stages,
                                          .n_stages = 2,
                                          .variant = jt_variants,
                                          .n_variants = 3,
                                          .general = jt_general,
                                          .model = jt_model};
static const fth_instrument jt_echo = {.name = "echo",
                                       .brief = "without models",
                                       .schema = &jt_other_schema,
                                       .stage = jt_other_stages,
                                       .n_stages = 2};
static const fth_instrument *const jt_instruments[] = {&jt_spatial, &jt_echo};

/* What was logged, one line after the other. */
typedef struct jt_lines {
    char text[1 << 16];
    int errors, warnings;
} jt_lines;

static inline void jt_write(void *user, fth_log_level level, const char *line)
{
    jt_lines *l = user;
    *(level == FTH_LOG_ERROR ? &l->errors : &l->warnings) += 1;
    const size_t n = strlen(l->text);
    snprintf(l->text + n, sizeof l->text - n, "%s\n", line);
}

/* A memory, the configs that were named, and what came of them. */
typedef struct jt_bench {
    fth_mem *mem;
    fth_jobs_options opt;
    const char *path[8], *set[8];
    uint64_t block; /* of texts; 1: each is a request for memory of its own */
    fth_jobs *jobs;
    fth_err err;
    jt_lines *log;
} jt_bench;

static inline jt_bench jt_start(void)
{
    jt_bench b = {.mem = t_mem(1 << 20), .log = calloc(1, sizeof(jt_lines))};
    b.opt = (fth_jobs_options){.mem = b.mem,
                               .instrument = jt_instruments,
                               .n_instruments = 2,
                               .stages = "all",
                               .cwd = t_temp_dir(),
                               .log = {jt_write, b.log, FTH_LOG_INFO}};
    return b;
}

static inline fth_status jt_find(jt_bench *b)
{
    b->opt.path = b->path;
    b->opt.set = b->set;
    for (b->opt.n_paths = 0; b->path[b->opt.n_paths];) b->opt.n_paths++;
    for (b->opt.n_sets = 0; b->set[b->opt.n_sets];) b->opt.n_sets++;
    return fth__jobs_find(&b->jobs, &b->opt, b->block, &b->err);
}

/* The jobs of one path, or of two; fails the case when there are mistakes. */
static inline jt_bench jt_found(const char *one, const char *two)
{
    jt_bench b = jt_start();
    b.path[0] = one;
    b.path[1] = two;
    const fth_status s = jt_find(&b);
    if (s != FTH_OK) FAIL("%s\n%s", b.err.text, b.log->text);
    return b;
}

static inline jt_bench jt_refused(const char *one, const char *two, fth_status wanted)
{
    jt_bench b = jt_start();
    b.path[0] = one;
    b.path[1] = two;
    const fth_status s = jt_find(&b);
    if (s != wanted) FAIL("status %d: %s\n%s", (int)s, b.err.text, b.log->text);
    return b;
}

static inline void jt_drop(jt_bench *b)
{
    fth_err err = {0};
    fth_jobs_destroy(b->jobs);
    free(b->log);
    OKE(fth_mem_destroy(b->mem, &err), &err);
}

/* ---- a folder of this process, with configs ---- */

static inline int jt_remove_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
    (void)st, (void)kind;
    return f->level > 0 ? remove(path) : 0;
}

static inline void jt_clean(void)
{
    nftw(t_temp_dir(), jt_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A file with its folders; the path is below t_temp_dir(). */
static inline void jt_put(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", t_temp_dir(), name);
    for (char *s = path + strlen(t_temp_dir()) + 1; (s = strchr(s, '/')); s++) {
        *s = '\0';
        (void)mkdir(path, 0777);
        *s = '/';
    }
    t_file_write(path, text, strlen(text));
}

static inline void jt_link(const char *target, const char *name)
{
    if (symlink(target, t_temp_path(name)) != 0) FAIL("cannot link %s", name);
}

static uint64_t jt_sum;
static inline int jt_add_one(const char *path, const struct stat *st, int kind, struct FTW *f)
{
    char line[4200];
    (void)kind, (void)f;
    snprintf(line, sizeof line, "%s %lld %llu %lld", path, (long long)st->st_size,
             (unsigned long long)st->st_ino, (long long)st->st_mtim.tv_nsec);
    jt_sum += fth__hash_str(line, 0);
    return 0;
}

/* A number for all that is below the folder: names, sizes, times. Equal: nothing was touched. */
static inline uint64_t jt_listing(void)
{
    jt_sum = 0;
    nftw(t_temp_dir(), jt_add_one, 16, FTW_PHYS);
    return jt_sum;
}

#endif
