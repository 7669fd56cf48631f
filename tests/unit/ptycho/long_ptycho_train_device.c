/* long_ptycho_train_device.c - a training on a device takes there what was foreseen: what all of
 * its plans keep, and where there is no room for that what the largest takes, with the same bytes.
 * Its losses are the CPU's.
 * seconds: 40
 */
#include "instruments/ptycho/settings/settings.h"
#include "instruments/ptycho/simulate/simulate.h"
#include "instruments/ptycho/train/train.h"
#include "testing/engine/host_device.h"
#include "testing/io/files.h"

#include <math.h>
#include <string.h>

/* 3 groups by 2: full batches and a last one, of training and of validation. */
static const char *const SETTINGS =
    "name: x\nN: 64\ngridsize: 1\nn_groups: 3\nbatch_size: 2\nnepochs: 1\n"
    "n_filters_scale: 1\nn_images: 4\nsize: 96\nnphotons: 1e5\n";

typedef struct bench {
    fth_context *ctx;
    fth_config *cfg;
    pt_training job;
} bench;

static char scan[FTH_PATH];

static void open_bench(bench *b, uint64_t device, const char *folder)
{
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = (uint64_t)1 << 30;
    opt.device = device ? "cuda" : "cpu";
    opt.backend = &t_host_backend;
    opt.device_memory_bytes = device;
    OKE(fth_context_create(&b->ctx, &opt, &err), &err);
    OKE(fth_config_create(&b->cfg, fth_context_mem(b->ctx), &err), &err);
    OKE(fth_config_parse(b->cfg, "test", SETTINGS, strlen(SETTINGS), &err), &err);
    OKE(fth_config_check(b->cfg, &pt_schema, NULL, &err), &err);
    b->job = (pt_training){.ctx = b->ctx, .cfg = b->cfg, .scan = scan, .folder = folder};
    b->job.notes = tmpfile();
}

static void close_bench(bench *b)
{
    fclose(b->job.notes);
    OK(fth_config_destroy(b->cfg, NULL));
    OK(fth_context_destroy(b->ctx, NULL));
}

static fth_status take_most(void *user, const fth_plan *plan, double runs, fth_err *err)
{
    fth_plan_needs needs;
    uint64_t *most = user;
    (void)runs, (void)err;
    fth_plan_get_needs(plan, &needs);
    if (needs.device_bytes > *most) *most = needs.device_bytes;
    return FTH_OK;
}

/* Losses of training and validation after the only epoch. */
static void read_losses(const char *folder, double loss[2])
{
    static const char *const name[] = {"\"loss\"", "\"val_loss\""};
    char path[FTH_PATH + 32];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/training_history.json", folder);
    char *text = (char *)t_file_read(path, &bytes);
    for (int i = 0; i < 2; i++) {
        const char *at = memmem(text, bytes, name[i], strlen(name[i]));
        IS_TRUE(at && sscanf(strchr(at, '[') + 1, "%lf", &loss[i]) == 1);
    }
    free(text);
}

/* Train inside so many bytes of the device (0: on the CPU); the most that it held. */
static uint64_t train(uint64_t device, const char *name, uint64_t *hash, double loss[2])
{
    bench b;
    fth_err err = {0};
    fth_mem_stats stats;
    char folder[FTH_PATH], model[FTH_PATH + 32];
    snprintf(folder, sizeof folder, "%s", t_temp_path(name));
    snprintf(model, sizeof model, "%s/model.safetensors", folder);
    open_bench(&b, device, folder);
    fth_mem *mem = device ? fth_context_device_mem(b.ctx) : fth_context_mem(b.ctx);
    fth_mem_mark(mem);
    OKE(pt_train(&b.job, &err), &err);
    fth_mem_get_stats(mem, &stats);
    size_t bytes = 0;
    unsigned char *data = t_file_read(model, &bytes);
    *hash = fth_hash_bytes(data, bytes, 0);
    free(data);
    read_losses(folder, loss);
    close_bench(&b);
    return stats.peak_bytes;
}

TEST(trainings_take_what_was_foreseen)
{
    bench b;
    fth_err err = {0};
    uint64_t most = 0, kept = 0, hash[2] = {0, 1};
    snprintf(scan, sizeof scan, "%s", t_temp_path("scan.npz"));
    open_bench(&b, (uint64_t)1 << 30, t_temp_path("foreseen"));
    OKE(pt_simulation_write(b.ctx, NULL, b.cfg, false, scan, &err), &err);
    OKE(pt_train_foresee(&b.job, take_most, &most, &kept, &err), &err);
    close_bench(&b);
    IS_TRUE(kept > most);
    open_bench(&b, kept - 1, t_temp_path("foreseen"));
    uint64_t tight = 1;
    OKE(pt_train_foresee(&b.job, take_most, &most, &tight, &err), &err);
    close_bench(&b);
    EQ_U64(tight, 0);
    double loss[2], cpu[2];
    EQ_U64(train(kept, "wide", &hash[0], loss), kept);
    IS_TRUE(train(most, "tight", &hash[1], loss) <= most);
    EQ_U64(hash[0], hash[1]);
    (void)train(0, "cpu", &hash[1], cpu);
    for (int i = 0; i < 2; i++) NEAR(loss[i], cpu[i], 1e-4 * fabs(cpu[i]));
}

TEST_MAIN()
