/* train.c - epochs over the groups of a scan, with a checkpoint after some of them.
 *
 * The order of an epoch is a function of (seed, epoch) and batches are read one step ahead, so a
 * training that was killed goes on from its checkpoint to the bytes of one that was not.
 */
#include "train.h"

#include "../settings/verb.h"
#include "checkpoint.h"
#include "dataset.h"
#include "normalise.h"
#include "schedule.h"
#include "truth.h"

#include <math.h>
#include <string.h>

enum { ORDER_STREAM = 7000 }; /* of the random numbers that shuffle groups */

typedef struct work {
    const pt_training *job;
    fth_mem *mem;
    pt_dataset data;
    pt_truth truth;
    pt_trained trained;
    pt_standing at;
    pt_history history;
    pt_facts facts;
    int64_t batch, epochs, every; /* groups of a batch; a checkpoint after so many epochs */
    int64_t train, check,
        check_from; /* groups to train with, to validate with, the first of these */
    int64_t *order; /* groups in the order of the epoch, then those to validate */
    int64_t *rows;  /* patterns of a batch */
    fth_batches *reader;
    fth_tensor *room[2];   /* in its place, for plans */
    pt_stepper stepper[4]; /* full batches and the last one, of training and of validation */
    pt_stepper *awake;     /* the one that keeps memory of a device that has none for all; NULL */
    char model[FTH_PATH], curves[FTH_PATH];
    char best[FTH_PATH]; /* the model of the lowest val_loss, until the end; "": the last is kept */
} work;

#define say(w, ...) pt_say((w)->job->call, (w)->job->notes, __VA_ARGS__)

/* ---- setting up ---- */

static fth_status take(work *w, uint64_t bytes, const char *what, void *out, fth_err *err)
{
    void *p = NULL;
    FTH_TRY(fth_mem_take(w->mem, FTH_MEM_ANY, bytes ? bytes : 1, what, &p, err));
    memcpy(out, &p, sizeof p);
    return FTH_OK;
}

/* The first 95 % of the groups are trained with, the others validate. */
static void split(work *w)
{
    const int64_t groups = w->data.groups.n;
    w->train = (int64_t)floor(0.95 * (double)groups);
    w->check = groups - w->train;
    w->check_from = w->train;
    if (groups >= 20) return;
    say(w,
        "%lld groups are too few for a validation set: the training groups are used for validation "
        "too",
        (long long)groups);
    w->train = w->check = groups;
    w->check_from = 0;
}

static fth_status settle(work *w, pt_model_options *opt, fth_err *err)
{
    const fth_config *cfg = w->job->cfg;
    const pt_scan *scan = &w->data.scan;
    int64_t clipped = 0;
    if (scan->modes == 0) {
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s has no probe, which training needs", scan->path);
        fth_err_hint(err, "solve the scan first, or put probeGuess into the file");
        return FTH_E_FILE_KEY;
    }
    FTH_TRY(pt_model_settings(cfg, scan->N, w->data.groups.chan, scan->modes, opt, err));
    if (!fth_config_is_given(cfg, "nphotons") && scan->meta.nphotons > 0) {
        opt->nphotons = scan->meta.nphotons;
        say(w, "nphotons is %g, from '_metadata'", opt->nphotons);
    }
    opt->region = pt_dataset_region(&w->data, cfg, &clipped);
    if (clipped > 0)
        say(w,
            "%lld of %lld groups reach beyond a region of %lld pixels and are clipped: set "
            "merge_size auto",
            (long long)clipped, (long long)w->data.groups.n, (long long)opt->region);
    w->batch = fth_config_int(cfg, "batch_size");
    w->epochs = fth_config_int(cfg, "nepochs");
    w->every = fth_config_int(cfg, "checkpoint_every");
    split(w);
    if (w->batch > w->train) w->batch = w->train;
    return FTH_OK;
}

/* What a checkpoint must have been trained with. */
static void tie(work *w, const pt_model_options *opt)
{
    const fth_config *cfg = w->job->cfg;
    static const char *const numbers[] = {"learning_rate", "plateau_factor", "plateau_min_lr",
                                          "lr_min_ratio", "gradient_clip_val"};
    static const char *const counts[] = {
        "seed",         "batch_size", "nepochs", "plateau_patience", "early_stop_patience",
        "warmup_epochs"};
    static const char *const words[] = {"optimizer", "scheduler", "gradient_clip_algorithm",
                                        "keep"};
    char print[24];
    pt_facts_number(&w->facts, "algorithm", PT_TRAIN_ALGORITHM);
    pt_facts_model(&w->facts, opt);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        pt_facts_number(&w->facts, numbers[i], fth_config_real(cfg, numbers[i]));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        pt_facts_number(&w->facts, counts[i], (double)fth_config_int(cfg, counts[i]));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        pt_facts_text(&w->facts, words[i], fth_config_text(cfg, words[i]));
    snprintf(print, sizeof print, "%016llx", (unsigned long long)w->data.print);
    pt_facts_text(&w->facts, "data", print);
}

static float factor_of(const work *w)
{
    return (float)pt_model_factor(&w->trained.model.opt, w->data.mean_energy);
}

static fth_status open_all(work *w, bool look, fth_err *err)
{
    const pt_training *job = w->job;
    pt_model_options opt;
    FTH_TRY(pt_dataset_open(&w->data, job->ctx, job->call, job->cfg, job->scan, PT_TO_TRAIN, 0, 0,
                            look, err));
    char text[FTH_PATH];
    if (look) {
        say(w, "%s", pt_scan_choices(&w->data.scan, text, sizeof text));
        pt_say_keys(job->call, job->notes, job->cfg, pt_keys_learn);
    }
    for (int64_t i = 0; i < fth_texts_count(w->data.scan.notes); i++)
        say(w, "warning: %s", fth_texts_get(w->data.scan.notes, i));
    FTH_TRY(settle(w, &opt, err));
    FTH_TRY(pt_trained_create(&w->trained, w->mem, &opt, err));
    FTH_TRY(pt_model_support(&w->trained.model, job->ctx, err));
    FTH_TRY(pt_model_mask(&w->trained.model, w->mem, w->data.mask, err));
    if (look && fth_config_choice(job->cfg, "normalisation") == 1)
        FTH_TRY(pt_normalise_by_object(&w->trained.model, job->ctx, &w->data, err));
    tie(w, &w->trained.model.opt);
    w->trained.factor = factor_of(w);
    if (look && opt.realspace_mae_weight > 0) {
        pt_model *m = &w->trained.model;
        pt_model_start(m, 0, w->data.scan.probe);
        FTH_TRY(pt_truth_open(&w->truth, &w->data, m, err));
    }
    w->history.room = w->epochs;
    const uint64_t curve = sizeof(double) * (uint64_t)w->epochs;
    FTH_TRY(take(w, curve, "losses", &w->history.loss, err));
    FTH_TRY(take(w, curve, "losses", &w->history.val, err));
    FTH_TRY(
        take(w, sizeof *w->order * (uint64_t)w->data.groups.n, "order of groups", &w->order, err));
    return take(w, sizeof *w->rows * (uint64_t)(w->batch * w->data.groups.chan),
                "patterns of a batch", &w->rows, err);
}

static void close_all(work *w)
{
    fth_batches_destroy(w->reader);
    for (int i = 0; i < 4; i++) pt_stepper_clear(&w->stepper[i]);
    for (int i = 0; i < 2; i++) fth_tensor_release(w->room[i]);
    pt_trained_clear(&w->trained);
    void *const block[] = {w->history.loss, w->history.val, w->order, w->rows};
    for (int i = 0; i < 4; i++)
        if (block[i]) fth_mem_release(w->mem, block[i], NULL);
    pt_truth_close(&w->truth);
    pt_dataset_close(&w->data);
}

static pt_standing first_standing(const work *w)
{
    return (pt_standing){
        .rate = pt_schedule_first(w->job->cfg), .plateau_best = 1e300, .stop_best = 1e300};
}

/* From the checkpoint where it fits, else from the beginning. */
static fth_status start(work *w, fth_err *err)
{
    char why[200] = "";
    fth_safetensors *file = NULL;
    fth_err damage = {0};
    w->at = first_standing(w);
    if (w->job->resume && fth_path_exists(w->model)) {
        fth_status s = fth_safetensors_open(&file, w->mem, w->model, &damage);
        const bool fits = s == FTH_OK && pt_checkpoint_fits(file, &w->facts, why, sizeof why);
        if (fits) s = pt_checkpoint_read(file, &w->trained, &w->at, &w->history, &damage);
        fth_safetensors_close(file);
        if (fits && s == FTH_OK) {
            say(w, "resuming from the checkpoint after epoch %lld of %lld", (long long)w->at.epoch,
                (long long)w->epochs);
            return FTH_OK;
        }
        if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) {
            if (err) *err = damage;
            return s;
        }
        say(w, "starting over, the checkpoint %s%s", s == FTH_OK ? "is of another training: " : "",
            s == FTH_OK ? why : damage.text);
        w->at = first_standing(w);
        w->trained.step = 0;
        w->trained.factor = factor_of(w);
        for (int i = 0; i < PT_MODEL_MOST; i++)
            for (int k = 0; k < 2; k++) {
                fth_tensor *t = k ? w->trained.second[i] : w->trained.first[i];
                if (t) memset(fth_tensor_data(t), 0, fth_tensor_bytes(t));
            }
    }
    pt_model_start(&w->trained.model, fth_config_int(w->job->cfg, "seed"), w->data.scan.probe);
    return FTH_OK;
}

/* ---- plans ---- */

static bool on_device(const work *w)
{
    return fth_context_device_mem(w->job->ctx) != NULL;
}

static pt_descent descent_of(const fth_config *cfg)
{
    static const fth_optim_kind kinds[] = {FTH_OPTIM_ADAM, FTH_OPTIM_ADAMW, FTH_OPTIM_SGD};
    return (pt_descent){.kind = kinds[fth_config_choice(cfg, "optimizer")],
                        .eps = fth_config_choice(cfg, "flavour") == PT_FLAVOUR_TF ? 1e-7 : 1e-8,
                        .clip = fth_config_real(cfg, "gradient_clip_val"),
                        .clip_by = (pt_clip)fth_config_choice(cfg, "gradient_clip_algorithm")};
}

/* Memory in the shape of a batch of so many groups. */
static fth_source batch_of(const work *w, int64_t groups, void *data)
{
    const int64_t n = w->data.scan.N;
    return (fth_source){.kind = "memory",
                        .dtype = FTH_F32,
                        .n_axes = 3,
                        .size = {groups * w->data.groups.chan, n, n},
                        .data = data};
}

/* Stepper i: full batches of training, its last batch, the same of validation. */
static fth_status make_stepper(work *w, int i, void *room, fth_err *err)
{
    const pt_descent descent = descent_of(w->job->cfg);
    const int64_t all = i < 2 ? w->train : w->check, groups = i % 2            ? all % w->batch
                                                              : all < w->batch ? 0
                                                                               : w->batch;
    if (groups == 0) return FTH_OK;
    return pt_stepper_create(&w->stepper[i], w->job->ctx, &w->trained, groups,
                             batch_of(w, groups, room), i < 2 ? &descent : NULL, err);
}

/* What all of them would keep on a device; 0: there is no room for it. */
static uint64_t kept_by_all(const work *w)
{
    fth_mem_stats device;
    fth_plan *plan[4];
    for (int i = 0; i < 4; i++) plan[i] = w->stepper[i].plan;
    const uint64_t bytes = fth_plans_device_bytes(plan, 4);
    if (bytes == 0) return 0;
    fth_mem_get_stats(fth_context_device_mem(w->job->ctx), &device);
    return bytes <= device.budget_bytes ? bytes : 0;
}

/* Where there is no room for all, those that do not run give back what they keep. */
static void wake(work *w, pt_stepper *s)
{
    if (w->awake && w->awake != s) {
        fth_plan_rest(w->awake->plan);
        w->awake = s;
    }
}

/* ---- epochs ---- */

static void shuffle(work *w, int64_t epoch)
{
    const int64_t seed = fth_config_int(w->job->cfg, "seed");
    for (int64_t i = 0; i < w->data.groups.n; i++) w->order[i] = i;
    for (int64_t i = w->train - 1; i > 0; i--) {
        const uint64_t bits = fth_random_bits_at(seed, epoch, ORDER_STREAM, i);
        const int64_t j = (int64_t)(bits % (uint64_t)(i + 1)), keep = w->order[i];
        w->order[i] = w->order[j];
        w->order[j] = keep;
    }
}

/* Batch number i of an epoch: first those of training, then those of validation. */
typedef struct piece {
    int stepper;
    int64_t from, groups;
} piece;

static int64_t pieces_of(const work *w, int64_t groups)
{
    return (groups + w->batch - 1) / w->batch;
}

static piece piece_at(const work *w, int64_t i)
{
    const int64_t first = pieces_of(w, w->train);
    const bool check = i >= first;
    const int64_t k = check ? i - first : i, all = check ? w->check : w->train,
                  left = all - k * w->batch;
    const bool last = left < w->batch;
    return (piece){(check ? 2 : 0) + last, (check ? w->check_from : 0) + k * w->batch,
                   last ? left : w->batch};
}

/* Validation takes its groups in their own order. */
static fth_status ask(work *w, int64_t i, fth_err *err)
{
    const piece p = piece_at(w, i);
    pt_dataset_rows(&w->data, p.stepper < 2 ? w->order : NULL, p.from, p.groups, w->rows);
    return fth_batches_ask(w->reader, w->rows, p.groups * w->data.groups.chan, err);
}

static fth_status not_a_number(work *w, const piece *p, fth_err *err)
{
    char groups[120] = "";
    size_t n = 0;
    for (int64_t i = 0; i < p->groups && i < 8; i++)
        n += (size_t)snprintf(groups + n, sizeof groups - n, "%s%lld", i ? ", " : "",
                              (long long)w->order[p->from + i]);
    FTH_FAIL(err, FTH_E_NUMERIC,
             "epoch %lld, step %lld: the loss (%g) or a gradient is not finite, in the batch of "
             "groups %s%s",
             (long long)(w->at.epoch + 1), (long long)w->trained.step,
             (double)w->stepper[p->stepper].loss, groups, p->groups > 8 ? ".." : "");
    fth_err_hint(err,
                 "the model file has the last good parameters; lower learning_rate (%g), or "
                 "clip with gradient_clip_val",
                 w->trained.rate);
    return FTH_E_NUMERIC;
}

/* One run of batch i; the next one is read meanwhile. */
static fth_status one(work *w, int64_t i, int64_t all, double *sum, fth_err *err)
{
    const piece p = piece_at(w, i);
    pt_stepper *s = &w->stepper[p.stepper];
    fth_source x;
    FTH_TRY(fth_batches_take(w->reader, &x, err));
    FTH_TRY(pt_stepper_give(w->stepper, 4, fth_batches_tensor(w->reader), err));
    if (i + 1 < all) FTH_TRY(ask(w, i + 1, err));
    pt_dataset_rel(&w->data, p.stepper < 2 ? w->order : NULL, p.from, p.groups,
                   fth_tensor_data(s->rel));
    if (s->truth)
        pt_truth_patches(&w->truth, &w->data, p.stepper < 2 ? w->order : NULL, p.from, p.groups,
                         fth_tensor_data(s->truth));
    w->trained.rate = w->at.rate;
    w->trained.step += p.stepper < 2;
    wake(w, s);
    FTH_TRY(pt_stepper_run(s, w->job->call, x, err));
    *sum += (double)s->loss * (double)p.groups;
    if (p.stepper < 2 && !s->good) return not_a_number(w, &p, err);
    return FTH_OK;
}

static bool report(const work *w, int64_t i, int64_t all)
{
    if (!w->job->call) return true;
    const int64_t done = w->at.epoch * all + i;
    return fth_stage_report(
        w->job->call, &(fth_stage_progress){.done = done,
                                            .total = w->epochs * all,
                                            .what = "step",
                                            .number = {{"loss", (double)w->stepper[0].loss},
                                                       {"rate", w->at.rate},
                                                       {"epoch", (double)(w->at.epoch + 1)}}});
}

static fth_status epoch(work *w, fth_err *err)
{
    const int64_t first = pieces_of(w, w->train), all = first + pieces_of(w, w->check);
    double sum[2] = {0, 0};
    shuffle(w, w->at.epoch);
    FTH_TRY(ask(w, 0, err));
    for (int64_t i = 0; i < all; i++) {
        FTH_TRY(one(w, i, all, &sum[i >= first], err));
        if (!report(w, i + 1, all))
            return FTH_FAIL(err, FTH_E_CANCELLED, "the training was stopped in epoch %lld of %lld",
                            (long long)(w->at.epoch + 1), (long long)w->epochs);
    }
    const double loss = sum[0] / (double)w->train, val = sum[1] / (double)w->check;
    w->history.loss[w->at.epoch] = loss;
    w->history.val[w->at.epoch] = val;
    w->at.epoch++;
    say(w, "epoch %lld of %lld: loss %.6g, val_loss %.6g, rate %.3g", (long long)w->at.epoch,
        (long long)w->epochs, loss, val, w->at.rate);
    const bool stop = pt_schedule_next(w->job->cfg, &w->at, loss, val);
    w->at.finished = stop || w->at.epoch == w->epochs;
    if (stop && w->at.epoch < w->epochs)
        say(w, "the loss has not fallen for %lld epochs: stopping early",
            (long long)w->at.stop_wait);
    return FTH_OK;
}

/* Whether the last epoch has the lowest val_loss of all. */
static bool is_best(const work *w)
{
    const double *val = w->history.val, last = val[w->at.epoch - 1];
    for (int64_t i = 0; i < w->at.epoch - 1; i++)
        if (!(last < val[i])) return false;
    return true;
}

/* At the end: the parameters of the best epoch are those of the model. */
static fth_status take_best(work *w, fth_err *err)
{
    fth_safetensors *file = NULL;
    FTH_TRY(fth_safetensors_open(&file, w->mem, w->best, err));
    const fth_status s = pt_checkpoint_read(file, &w->trained, NULL, NULL, err);
    fth_safetensors_close(file);
    return s;
}

static fth_status save(work *w, fth_err *err)
{
    FTH_TRY(pt_history_write(w->curves, w->mem, &w->history, w->at.epoch, err));
    return pt_checkpoint_write(w->model, w->mem, &w->trained, &w->at, &w->history, &w->facts, err);
}

/* run.json of a verb: its settings beside the results; a job has its config. */
static fth_status write_run(const work *w, fth_err *err)
{
    char path[FTH_PATH];
    fth_json_writer j;
    FTH_TRY(fth_path_join(path, w->job->folder, "run.json", err));
    fth_json_begin(&j, w->mem, true);
    fth_json_open(&j, NULL, '{');
    fth_json_text(&j, "version", fth_version());
    fth_json_text(&j, "scan", w->job->scan);
    fth_json_int(&j, "groups", w->data.groups.n);
    fth_json_int(&j, "epochs", w->at.epoch);
    fth_json_real(&j, "nphotons", w->trained.model.opt.nphotons);
    pt_settings_write(w->job->cfg, true, &j, "config");
    fth_json_close(&j);
    return fth_json_save(&j, path, err);
}

static fth_status all_epochs(work *w, fth_err *err)
{
    if (w->at.finished) {
        say(w, "the training is already finished");
        return pt_history_write(w->curves, w->mem, &w->history, w->at.epoch, err);
    }
    while (!w->at.finished) {
        const fth_status s = epoch(w, err);
        if (s == FTH_E_NUMERIC) { /* parameters of the last good step */
            fth_err unsaved = {0};
            if (save(w, &unsaved) != FTH_OK) say(w, "%s", unsaved.text);
        }
        if (s != FTH_OK) return s;
        if (*w->best && is_best(w))
            FTH_TRY(pt_checkpoint_write(w->best, w->mem, &w->trained, &w->at, &w->history,
                                        &w->facts, err));
        if (*w->best && w->at.finished) FTH_TRY(take_best(w, err));
        if (w->at.finished && w->job->call) fth_stage_point(w->job->call, "before_outputs");
        if (w->at.finished || w->at.epoch % w->every == 0) FTH_TRY(save(w, err));
    }
    return *w->best ? fth_path_remove(w->mem, w->best, err) : FTH_OK;
}

static fth_status prepare(work *w, bool look, fth_err *err)
{
    const int64_t size[3] = {w->batch * w->data.groups.chan, w->data.scan.N, w->data.scan.N};
    if (!look) { /* as much as the two buffers of the reader would be */
        fth_tensor **const room[2] = {&w->room[0], &w->room[1]};
        for (int i = 0; i < 2; i++)
            FTH_TRY(fth_tensor_create(room[i], w->mem, "batch", FTH_F32, 3, size, err));
        if (on_device(w)) w->trained.batch = w->room[0];
        for (int i = 0; i < 4; i++) FTH_TRY(make_stepper(w, i, fth_tensor_data(w->room[0]), err));
        return FTH_OK;
    }
    FTH_TRY(fth_batches_create(&w->reader, w->mem, &w->data.amplitude,
                               w->batch * w->data.groups.chan, err));
    /* plans are made for memory: any of the right size will do */
    fth_source first;
    shuffle(w, 0);
    FTH_TRY(ask(w, 0, err));
    FTH_TRY(fth_batches_take(w->reader, &first, err));
    if (on_device(w)) w->trained.batch = fth_batches_tensor(w->reader);
    for (int i = 0; i < 4; i++) FTH_TRY(make_stepper(w, i, first.data, err));
    if (kept_by_all(w) == 0) w->awake = &w->stepper[0];
    return FTH_OK;
}

static fth_status with_work(const pt_training *job, bool look,
                            fth_status (*fn)(work *, void *, fth_err *), void *user, fth_err *err)
{
    fth_mem *mem = fth_context_mem(job->ctx);
    work *w = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *w, "training", (void **)&w, err));
    memset(w, 0, sizeof *w);
    w->job = job;
    w->mem = mem;
    fth_status s = fth_path_join(w->model, job->folder, PT_MODEL_FILE, err);
    if (s == FTH_OK) s = fth_path_join(w->curves, job->folder, PT_HISTORY_FILE, err);
    if (s == FTH_OK && fth_config_choice(job->cfg, "keep") == 1)
        s = fth_path_join(w->best, job->folder, "best.safetensors", err);
    if (s == FTH_OK) s = open_all(w, look, err);
    if (s == FTH_OK) s = fn(w, user, err);
    close_all(w);
    fth_mem_release(mem, w, NULL);
    return s;
}

static fth_status run_all(work *w, void *user, fth_err *err)
{
    fth_claim *claim = NULL;
    (void)user;
    /* Create the folder only now, after the scan was checked. A stage has its folder. */
    if (!w->job->call) FTH_TRY(fth_folder_claim(&claim, w->mem, w->job->folder, err));
    fth_status s = start(w, err);
    if (s == FTH_OK) s = prepare(w, true, err);
    if (s == FTH_OK) s = all_epochs(w, err);
    if (s == FTH_OK && !w->job->call) s = write_run(w, err);
    fth_folder_release(claim);
    return s;
}

fth_status pt_train(const pt_training *job, fth_err *err)
{
    return with_work(job, true, run_all, NULL, err);
}

/* ---- memory prediction ---- */

typedef struct foreseen {
    pt_foresee *use;
    void *user;
    uint64_t kept;
} foreseen;

static fth_status show_plan(work *w, void *user, fth_err *err)
{
    foreseen *f = user;
    FTH_TRY(prepare(w, false, err));
    f->kept = kept_by_all(w);
    for (int i = 0; i < 4; i++) {
        const int64_t all = i < 2 ? w->train : w->check;
        const double runs = i % 2 ? 1 : (double)(all / w->batch);
        if (w->stepper[i].plan)
            FTH_TRY(f->use(f->user, w->stepper[i].plan, runs * (double)w->epochs, err));
    }
    return FTH_OK;
}

fth_status pt_train_foresee(const pt_training *job, pt_foresee *foresee, void *user, uint64_t *kept,
                            fth_err *err)
{
    foreseen f = {foresee, user, 0};
    const fth_status s = with_work(job, false, show_plan, &f, err);
    *kept = f.kept;
    return s;
}
