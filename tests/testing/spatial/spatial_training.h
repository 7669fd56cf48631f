/* testing/spatial/spatial_training.h - the stage train on the golden cells, without the stages
 * before it.
 *
 * The instrument here has two stages: one that only puts the golden folder into place, and train.
 */
#ifndef TESTING_SPATIAL_TRAINING_H
#define TESTING_SPATIAL_TRAINING_H

#include "instruments/spatial/spatial.h"

#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

static inline fth_status ss_folder_files(const fth_stage_call *call, fth_file_list *list,
                                         fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, call->output_dir, SP_PREPROCESSED "/" SP_Y, err));
    return fth_file_list_add(list, FTH_FILE_OUTPUT, path, "counts", err);
}

static inline fth_status ss_folder_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                                        fth_err *err)
{
    (void)call, (void)show, (void)err;
    out->host_bytes = 1 << 20;
    return FTH_OK;
}

static inline fth_status ss_folder_run(const fth_stage_call *call, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, call->output_dir, SP_PREPROCESSED, err));
    t_spatial_folder(path);
    return FTH_OK;
}

static const fth_stage ss_stages[] = {{.name = "preprocess",
                                       .doing = "writing",
                                       .brief = "",
                                       .keys = "",
                                       .after = "",
                                       .shared = true,
                                       .files = ss_folder_files,
                                       .plan = ss_folder_plan,
                                       .run = ss_folder_run},
                                      {.name = "train",
                                       .doing = "training",
                                       .brief = "",
                                       .keys = "model training",
                                       .after = "preprocess",
                                       .flag = sp_train_flags,
                                       .keeps = "checkpoint",
                                       .files = sp_train_files,
                                       .plan = sp_train_plan,
                                       .run = sp_train_run}};
static const fth_instrument ss_instrument = {
    .name = "spatial", .brief = "", .schema = &sp_schema, .stage = ss_stages, .n_stages = 2};

/* Twelve iterations on batches of 120 cells and 16 genes. */
static inline const char *ss_config(char *text, size_t bytes, sp_kind kind, const char *more)
{
    const sp_kind_info *k = &sp_kinds[kind];
    snprintf(text, bytes,
             "name: test\nseed: 7\ndataset: arrays\npreprocessing:\n  path: x\n"
             "model:\n  n_components: 3\n  spatial: %s\n  groups: %s\n  local: %s\n  prior: %s\n"
             "  loadings_mode: multiplicative\n  lengthscale: 8.0\n  num_inducing: 30\n  K: 6\n"
             "  group_diff_param: 1.0\n"
             "training:\n  max_iter: 12\n  learning_rate: 0.02\n  batch_size: 120\n"
             "  y_batch_size: 16\n  checkpoint_interval: 4\n  video_interval: 5\n%s",
             k->spatial ? "true" : "false", k->groups ? "true" : "false",
             k->local ? "true" : "false", k->prior, more ? more : "");
    return text;
}

typedef struct ss_bench {
    fth_mem *mem;
    fth_config *cfg;
    fth_job job;
    char dir[PATH_MAX];
    /* of the next run */
    const char *const *flags;
    uint64_t budget;
    int threads;
    int64_t stop_after; /* iterations; 0: never */
    const char *die_at; /* a point, then the process ends; NULL: nowhere */
    int64_t die_nth;
    /* what happened */
    int64_t iterations;
    char said[4000];
    fth_stage_result result;
    fth_err err;
} ss_bench;

static inline void ss_say(void *user, const char *line)
{
    ss_bench *b = user;
    const size_t used = strlen(b->said);
    snprintf(b->said + used, sizeof b->said - used, "%s\n", line);
}

static inline bool ss_stop(void *user)
{
    const ss_bench *b = user;
    return b->stop_after > 0 && b->iterations >= b->stop_after;
}

static inline void ss_point(void *user, const char *name)
{
    ss_bench *b = user;
    if (strcmp(name, "iteration") == 0) b->iterations++;
    if (b->die_at && strcmp(name, b->die_at) == 0 && --b->die_nth <= 0) _exit(9);
}

/* A job in a folder of its own. `more` are further lines of the section training. */
static inline ss_bench *ss_open(const char *name, sp_kind kind, const char *more)
{
    char text[4000];
    ss_bench *b = calloc(1, sizeof *b);
    b->mem = t_mem((uint64_t)64 << 20);
    b->budget = (uint64_t)1 << 30;
    b->threads = 2;
    if (!realpath(t_temp_dir(), b->dir)) FAIL("no folder");
    const size_t used = strlen(b->dir);
    snprintf(b->dir + used, sizeof b->dir - used, "/%s", name);
    ss_config(text, sizeof text, kind, more);
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    OKE(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), &b->err), &b->err);
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    b->job = (fth_job){.name = "job",
                       .dir_name = "dir",
                       .instrument = &ss_instrument,
                       .model = sp_kinds[kind].name,
                       .output_dir = b->dir,
                       .config_path = "c.yaml",
                       .config = b->cfg};
    return b;
}

static inline void ss_close(ss_bench *b)
{
    OK(fth_config_destroy(b->cfg, NULL));
    OKE(fth_mem_destroy(b->mem, &b->err), &b->err);
    free(b);
}

static inline fth_stage_options ss_options(ss_bench *b, int stage)
{
    fth_stage_options opt = {.job = &b->job,
                             .stage = &ss_stages[stage],
                             .flags = b->flags,
                             .stop = ss_stop,
                             .say = ss_say,
                             .point = ss_point,
                             .user = b};
    fth_options_default(&opt.engine);
    opt.engine.mem.budget_bytes = b->budget;
    opt.engine.threads = b->threads;
    opt.engine.scratch_dir = b->dir;
    return opt;
}

/* Train once; the folder of the data is made when it is not there. */
static inline fth_status ss_train(ss_bench *b)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/.fathom/preprocess.json", b->dir);
    if (access(path, F_OK) != 0) {
        fth_stage_options first = ss_options(b, 0);
        first.engine.mem.budget_bytes = (uint64_t)64 << 20;
        OKE(fth_stage_execute(&first, NULL, &b->err), &b->err);
    }
    const fth_stage_options opt = ss_options(b, 1);
    b->iterations = 0;
    b->said[0] = '\0';
    fth_err_clear(&b->err);
    return fth_stage_execute(&opt, &b->result, &b->err);
}

/* A file of the model's folder, to be freed. */
static inline unsigned char *ss_file(const ss_bench *b, const char *name, size_t *n)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s/%s", b->dir, b->job.model, name);
    return t_file_read(path, n);
}

/* A file of two runs has the same bytes. */
static inline void ss_same(const ss_bench *a, const ss_bench *b, const char *name)
{
    size_t na, nb;
    unsigned char *x = ss_file(a, name, &na), *y = ss_file(b, name, &nb);
    if (na != nb || memcmp(x, y, na) != 0) FAIL("%s of %s differs", name, a->job.model);
    free(x);
    free(y);
}

#endif
