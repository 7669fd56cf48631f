/* stage.c - run one stage of one job in this process: check, plan, run, verify, record.
 *
 * Nothing is modified before the plan fits. Then the old record is removed, so that a stage killed
 * midway counts as not done; the new record is written last.
 */
#include "job/stage/stage.h"

#include "base/assert.h"
#include "graph/context.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "config/read.h"
#include "job/ledger/ledger.h"
#include "job/ledger/view.h"
#include "job/stage/rival.h"
#include "mem/heap.h"
#include "mem/inject.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- begin and end ---- */

static void fill_call(fth__stage_link *link, const fth_stage_options *opt)
{
    const fth_job *job = opt->job;
    const bool shared = opt->stage->shared;
    fth__task_id(link->id, sizeof link->id, opt->stage, job->model);
    snprintf(link->model_dir, sizeof link->model_dir, "%s%s%s", job->output_dir, shared ? "" : "/",
             shared ? "" : job->model);
    link->call = (fth_stage_call){.instrument = job->instrument,
                                  .stage = opt->stage,
                                  .config = job->config,
                                  .model = shared ? "" : job->model,
                                  .output_dir = job->output_dir,
                                  .model_dir = link->model_dir,
                                  .flags = opt->flags,
                                  .job = shared && job->dir_name ? job->dir_name : job->name,
                                  .attempt = opt->attempt ? opt->attempt : "",
                                  .link = link};
}

const char *fth__job_device(const fth_job *job, bool *any_gpu)
{
    const char *key = job->instrument->device_key;
    *any_gpu = false;
    if (!key || !fth_config_is_given(job->config, key)) return NULL;
    const char *device = fth_config_text(job->config, key);
    *any_gpu = strcmp(device, "gpu") == 0;
    return *any_gpu || strcmp(device, "auto") == 0 ? NULL : device;
}

uint64_t fth__job_memory(const fth_job *job, int shares)
{
    const char *key = job->instrument->memory_key;
    return key && fth_config_has(job->config, key)
               ? fth_config_size(job->config, key, fth_mem_free_now() / (uint64_t)shares)
               : 0;
}

/* Take from the config what the command line leaves open. True: the config says "gpu", which is
 * treated as auto, with a notice. */
static bool take_from_config(fth_options *engine, const fth_job *job)
{
    bool any_gpu = false;
    if (!engine->device) engine->device = fth__job_device(job, &any_gpu);
    if (!engine->device) engine->device = "auto";
    if (!job->instrument->gpu) engine->no_gpu = "this instrument has no kernels for GPUs yet";
    if (engine->mem.budget_bytes == 0)
        engine->mem.budget_bytes = fth__job_memory(job, fth_ranks_local(engine->ranks));
    return any_gpu;
}

/* The device is resolved here, before anything of the job is looked at. */
static fth_status begin(fth__stage_link *link, const fth_stage_options *opt, fth_err *err)
{
    *link = (fth__stage_link){.opt = opt};
    link->started = fth__wall_seconds();
    link->clock0 = fth__clock_seconds();
    link->sent_at = -1;
    if (!opt->job || !opt->stage || !opt->stage->plan || !opt->stage->run)
        return FTH_FAIL(err, FTH_E_USAGE, "a job and a stage that can plan and run are needed");
    FTH_TRY(fth_instrument_check(opt->job->instrument, err));
    link->resident0 = fth__mem_process_bytes();
    fill_call(link, opt);
    fth_options engine = opt->engine;
    link->any_gpu = take_from_config(&engine, opt->job);
    FTH_TRY(fth_context_create(&link->call.context, &engine, err));
    pthread_mutex_init(&link->lock, NULL);
    fth__file_list_init(&link->list, fth_context_mem(link->call.context));
    snprintf(link->result.device, sizeof link->result.device, "%s",
             fth_context_device(link->call.context));
    return FTH_OK;
}

static fth_status end(fth__stage_link *link, fth_status s, fth_err *err)
{
    if (!link->call.context) return s;
    fth_folder_release(link->claim);
    fth__heap_free(link->list.mem, link->before);
    fth__file_list_clear(&link->list);
    pthread_mutex_destroy(&link->lock);
    fth_err leak = {0};
    const fth_status closed = fth_context_destroy(link->call.context, s == FTH_OK ? err : &leak);
    if (s == FTH_OK) return closed;
    if (closed != FTH_OK)
        fth_log_line(&link->opt->engine.log, FTH_LOG_ERROR, "stage '%s' held memory at its end: %s",
                     link->opt->stage->name, leak.text);
    return s;
}

/* ---- before anything is touched ---- */

/* Rank 0 has the directory, and writes all that is written there; the others follow it. */
static bool is_writer(const fth__stage_link *link)
{
    return fth_ranks_rank(fth_context_ranks(link->call.context)) == 0;
}

/* Refuse when another runner is active here. */
static fth_status check_lock(const fth__stage_link *link, fth_err *err)
{
    fth__who who;
    const char *dir = link->opt->job->output_dir;
    if (!is_writer(link)) return FTH_OK;
    const bool cluster = fth__lock_has_cluster(dir);
    if (strncmp(link->call.attempt, FTH__CLUSTER_ATTEMPT, strlen(FTH__CLUSTER_ATTEMPT)) == 0 &&
        cluster)
        return FTH_OK; /* its runner is on another machine, or gone */
    if (cluster) return fth__lock_fail_cluster(dir, err);
    if (!fth__lock_read(dir, &who)) return FTH_OK;
    /* The kernel ends a stage with its runner, but not one whose runner was gone before it could
     * ask for that. */
    if (!fth__who_lives(&who))
        return link->call.attempt[0]
                   ? FTH_FAIL(err, FTH_E_CANCELLED, "the runner that started this stage is gone")
                   : FTH_OK;
    if (who.pid == getppid() && who.start == fth__process_start(getppid())) return FTH_OK;
    FTH_FAIL(err, FTH_E_LOCKED, "%s: process %lld on %s is running jobs here", dir,
             (long long)who.pid, who.host);
    fth_err_hint(err, "wait until it ends; 'fathom status %s' shows what it does", dir);
    return FTH_E_LOCKED;
}

static const fth_stage *find_stage(const fth_instrument *instrument, const char *name, size_t n)
{
    for (int i = 0; i < instrument->n_stages; i++)
        if (strlen(instrument->stage[i].name) == n &&
            strncmp(instrument->stage[i].name, name, n) == 0)
            return &instrument->stage[i];
    return NULL;
}

/* What is at the path instead of a file; NULL: nothing, or a file. */
static const char *what_else(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) return NULL;
    if (S_ISDIR(st.st_mode)) return "a folder";
    return S_ISFIFO(st.st_mode) ? "a pipe" : S_ISSOCK(st.st_mode) ? "a socket" : "a device";
}

/* Opening a pipe blocks until its other end is opened, perhaps for ever. */
static fth_status no_file(const fth__stage_link *link, const char *path, const char *what,
                          fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: stage '%s' needs a file, and this is %s", path,
             link->opt->stage->name, what);
    fth_err_hint(err, "write what comes out of it into a file, and name that in the config");
    return FTH_E_FILE_OPEN;
}

static fth_status not_there(const fth__stage_link *link, const char *path, const fth_stage *maker,
                            fth_err *err)
{
    const fth_job *job = link->opt->job;
    const char *what = what_else(path);
    if (what) return no_file(link, path, what, err);
    FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: stage '%s' needs this file, and it is not there%s%s%s",
             path, link->opt->stage->name, maker ? "; stage '" : "", maker ? maker->name : "",
             maker ? "' makes it" : "");
    if (maker)
        fth_err_hint(err, "run 'fathom %s %s -c %s' first", job->instrument->name, maker->name,
                     job->config_path ? job->config_path : "CONFIG");
    else
        fth_err_hint(err, "check the path in the config");
    return FTH_E_FILE_OPEN;
}

/* Results that another config made with other settings are not built on, unless --force; of a
 * stage that the runner started, the runner has looked. */
static fth_status check_maker(const fth__stage_link *link, const fth__job_record *record,
                              const fth_stage *maker, const char *id, fth_err *err)
{
    const fth_job *job = link->opt->job;
    char differences[600];
    fth__claim claim = FTH__CLAIM_NONE;
    if (link->call.attempt[0] || fth_stage_flag(&link->call, "force")) return FTH_OK;
    FTH_TRY(fth__record_claim(record, job, maker, &claim, differences, sizeof differences, err));
    if (claim != FTH__CLAIM_THEIRS) return FTH_OK;
    return fth__record_refuse_use(record, job, link->opt->stage->name, id, differences, err);
}

/* Results of the same config before it was edited are used all the same, with a notice. */
static fth_status notice_change(fth__stage_link *link, const fth__job_record *record,
                                const fth_stage *maker, fth_err *err)
{
    char reason[400];
    bool same = false;
    FTH_TRY(fth__record_check(record, link->opt->job, maker, &same, reason, sizeof reason, err));
    if (!same)
        fth_stage_say(&link->call,
                      "notice: '%s' would run again, its results are used as they "
                      "are: %s",
                      maker->name, reason);
    return FTH_OK;
}

/* The outputs of one earlier stage are inputs. */
static fth_status add_before(fth__stage_link *link, const fth_stage *maker, fth_err *err)
{
    const fth_job *job = link->opt->job;
    fth_mem *mem = link->list.mem;
    char id[256], path[PATH_MAX];
    fth__task_id(id, sizeof id, maker, job->model);
    FTH_ASSERT(link->n_before <= job->instrument->n_stages); /* room for one more than there are */
    fth__record_before *b = &link->before[link->n_before];
    if (!fth__record_path(path, sizeof path, job->output_dir, id))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: the path is too long", job->output_dir);
    b->id = fth__store_text(&link->list.texts, id, strlen(id));
    if (!b->id) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the stages before");
    if (!fth__file_look(path, &b->bytes, &b->mtime_ns)) return not_there(link, path, maker, err);
    fth__job_record *record = NULL;
    FTH_TRY(fth__record_read(&record, mem, job->output_dir, id, err));
    if (!record) return not_there(link, path, maker, err);
    link->n_before++;
    fth_status s = check_maker(link, record, maker, b->id, err);
    if (s == FTH_OK) s = notice_change(link, record, maker, err);
    for (int64_t i = 0; s == FTH_OK && i < record->n_files; i++) {
        const fth_task_file *f = &record->file[i];
        if (f->kind == FTH_FILE_INPUT) continue;
        fth_task_file now = *f;
        if (!fth__file_look(f->path, &now.bytes, &now.mtime_ns))
            s = not_there(link, f->path, maker, err);
        const int64_t n = link->list.n;
        if (s == FTH_OK) s = fth_file_list_add(&link->list, FTH_FILE_INPUT, f->path, f->title, err);
        if (s != FTH_OK || link->list.n == n) continue;
        link->list.file[n].task = link->n_before;
        if (now.bytes != f->bytes || now.mtime_ns != f->mtime_ns) continue;
        link->list.file[n].hash = f->hash;
        link->list.file[n].ends = f->ends;
    }
    fth__record_destroy(record);
    return s;
}

static fth_status add_inputs(fth__stage_link *link, fth_err *err)
{
    const fth_stage *stage = link->opt->stage;
    const fth_instrument *instrument = link->opt->job->instrument;
    FTH_TRY(fth__stage_list_files(&link->call, &link->list, err));
    void *block = NULL;
    FTH_TRY(fth__heap_take(link->list.mem, instrument->n_stages + 1, sizeof *link->before, &block,
                           err));
    link->before = block;
    for (const char *name = stage->after ? stage->after : ""; *name;) {
        const size_t n = strcspn(name, " ");
        const fth_stage *maker = find_stage(instrument, name, n);
        if (!maker || link->n_before == instrument->n_stages)
            return FTH_FAIL(err, FTH_E_INTERNAL,
                            "stage '%s' of '%s' comes after '%.*s', which is "
                            "none of its stages",
                            stage->name, instrument->name, (int)n, name);
        FTH_TRY(add_before(link, maker, err));
        name += n;
        name += strspn(name, " ");
    }
    for (int64_t i = 0; i < link->list.n; i++) {
        fth_task_file *f = &link->list.file[i];
        if (f->kind == FTH_FILE_INPUT && !fth__file_look(f->path, &f->bytes, &f->mtime_ns))
            return not_there(link, f->path, NULL, err);
    }
    return FTH_OK;
}

/* Results that another config made stay, unless --force. Of a stage that the runner started, the
 * runner has looked: it knows which configs run together. */
static fth_status check_owner(const fth__stage_link *link, const fth__job_record *record,
                              fth_err *err)
{
    const fth_job *job = link->opt->job;
    char differences[600], text[2 * PATH_MAX];
    fth__claim claim = FTH__CLAIM_NONE;
    if (link->call.attempt[0] || fth_stage_flag(&link->call, "force")) return FTH_OK;
    FTH_TRY(fth__record_claim(record, job, link->opt->stage, &claim, differences,
                              sizeof differences, err));
    if (claim == FTH__CLAIM_THEIRS)
        return fth__record_refuse(record, job, link->id, differences, err);
    if (claim == FTH__CLAIM_NONE) return FTH_OK;
    fth__record_say_replaced(record, claim, link->id, differences, text, sizeof text);
    fth_stage_say(&link->call, "notice: %s", text);
    return FTH_OK;
}

/* Check the results that exist. Partial results of another algorithm are not resumed from. */
static fth_status look_back(fth__stage_link *link, fth_err *err)
{
    fth__job_record *record = NULL;
    const fth_status read =
        fth__record_read(&record, link->list.mem, link->opt->job->output_dir, link->id, NULL);
    if (read == FTH_E_NOMEM) return FTH_FAIL(err, read, "no memory for the record of %s", link->id);
    if (read != FTH_OK || !record) return FTH_OK; /* a damaged record is no record */
    link->fresh = record->algorithm != link->opt->stage->algorithm;
    const fth_status s = check_owner(link, record, err);
    fth__record_destroy(record);
    return s;
}

/* ---- run ---- */

static fth_status prepare(fth__stage_link *link, fth_err *err)
{
    const char *dir = link->opt->job->output_dir;
    char path[PATH_MAX];
    /* this process or its runner has the lock */
    FTH_ASSERT(link->claim || link->call.attempt[0] || !is_writer(link));
    const int n = snprintf(path, sizeof path, "%s/.fathom", dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the path is too long", dir);
    FTH_TRY(fth_folder_make_all(link->list.mem, path, err));
    FTH_TRY(fth_folder_make_all(link->list.mem, link->model_dir, err));
    return is_writer(link) ? fth__record_remove(dir, link->id, err) : FTH_OK;
}

static fth_status check_outputs(const fth__stage_link *link, fth_err *err)
{
    for (int64_t i = 0; i < link->list.n; i++) {
        const fth_task_file *f = &link->list.file[i];
        uint64_t bytes;
        int64_t mtime;
        if (f->kind != FTH_FILE_INPUT && !fth__file_look(f->path, &bytes, &mtime))
            return FTH_FAIL(err, FTH_E_INTERNAL, "stage '%s' ended without leaving %s",
                            link->opt->stage->name, f->path);
    }
    return FTH_OK;
}

/* An input that changed since the start of the run fails the stage. The hash of an earlier stage's
 * output is known already. */
static fth_status hash_file(fth_mem *mem, fth_task_file *f, bool verify, fth_err *err)
{
    const fth_task_file then = *f;
    if (f->kind == FTH_FILE_INPUT && f->hash != 0) {
        if (!fth__file_look(f->path, &f->bytes, &f->mtime_ns)) f->bytes = 0, f->mtime_ns = 0;
    } else {
        FTH_TRY(fth__file_hash(mem, f->path, verify || f->kind != FTH_FILE_INPUT, f, err));
    }
    if (f->kind != FTH_FILE_INPUT || (f->bytes == then.bytes && f->mtime_ns == then.mtime_ns))
        return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_READ, "%s: this input changed while the stage ran", f->path);
    fth_err_hint(err, "run the stage again when nothing writes the file");
    return FTH_E_FILE_READ;
}

/* How the config was read: with which --set, and where its relative paths start. */
static fth_status note_config(fth__stage_link *link, fth__job_record *r, fth_err *err)
{
    const fth_config *cfg = link->opt->job->config;
    const char *cwd = fth__config_options(cfg)->cwd;
    r->cwd = cwd ? cwd : "";
    while (fth__config_set_at(cfg, (int)r->n_sets)) r->n_sets++;
    r->set = fth__store_take(&link->list.texts, ((uint64_t)r->n_sets + 1) * sizeof *r->set);
    if (!r->set) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the record of %s", link->id);
    for (int64_t i = 0; i < r->n_sets; i++) r->set[i] = fth__config_set_at(cfg, (int)i);
    return FTH_OK;
}

static fth_status leave_record(fth__stage_link *link, fth_err *err)
{
    fth_mem *mem = link->list.mem;
    const fth_job *job = link->opt->job;
    char *lines = NULL;
    FTH_TRY(fth__record_lines(mem, job->config, link->opt->stage->keys, &lines, err));
    fth__job_record r = {.mem = mem,
                         .output_dir = job->output_dir,
                         .config_path = job->config_path,
                         .algorithm = link->opt->stage->algorithm,
                         .config = lines,
                         .config_hash = fth__hash_str(lines, 0),
                         .input_hash = fth__record_input_hash(link->list.file, link->list.n),
                         .file = link->list.file,
                         .n_files = link->list.n,
                         .before = link->before,
                         .n_before = link->n_before,
                         .started = link->started,
                         .ended = fth__wall_seconds(),
                         .result = link->result};
    fth__str_copy(r.attempt, sizeof r.attempt, link->call.attempt);
    fth__str_copy(r.version, sizeof r.version, fth_version());
    /* of an input, 0 or the number of the stage before that left it */
    for (int64_t i = 0; i < link->list.n; i++)
        FTH_ASSERT(link->list.file[i].task >= 0 && link->list.file[i].task <= link->n_before);
    fth__stage_point(link, "before_record");
    fth_status s = note_config(link, &r, err);
    if (s == FTH_OK) s = fth__record_write(&r, job->output_dir, link->id, err);
    fth__heap_free(mem, lines);
    if (s == FTH_OK) fth__stage_point(link, "after_record");
    return s;
}

/* A device that was asked for and did nothing is a failure, whatever the results are. */
static fth_status check_device(const fth__stage_link *link, fth_err *err)
{
    if (link->runs == 0 || strcmp(link->result.device, "cpu") == 0 ||
        link->result.device_seconds > 0)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_DEVICE, "stage '%s' ran on %s, which did no work",
                    link->opt->stage->name, link->result.device);
}

/* Only the plan of a stage knows what it holds beside the engine: too much is refused here, before
 * anything is modified, and not by the allocation that would pass the budget. */
static fth_status check_fit(const fth__stage_link *link, const fth_mem *mem, uint64_t bytes,
                            bool device, fth_err *err)
{
    fth_mem_stats stats;
    char a[24], b[24];
    fth_mem_get_stats(mem, &stats);
    if (bytes <= stats.budget_bytes) return FTH_OK;
    FTH_FAIL(err, FTH_E_NO_FIT, "stage '%s' would take %s%s, and %s are allowed",
             link->opt->stage->name, fth_mem_format_size(bytes, a, sizeof a),
             device ? " on the device" : "", fth_mem_format_size(stats.budget_bytes, b, sizeof b));
    char limit[FTH__LIMIT_TEXT];
    fth_err_hint(err, "would fit: %s",
                 fth__limit_text(link->opt->engine.front, device, true, bytes, limit));
    return FTH_E_NO_FIT;
}

/* Ranks that would have nothing to do are a mistake; a plan can be shown for any number. */
static fth_status check_ranks(const fth__stage_link *link, fth_err *err)
{
    char what[64];
    snprintf(what, sizeof what, "stage '%.40s'", link->opt->stage->name);
    return fth_ranks_check_parts(link->opt->engine.ranks, what, link->result.plan.most_parts, err);
}

static void say_ranks(const fth__stage_link *link)
{
    char size[24];
    const fth_stage_plan *p = &link->result.plan;
    const int ranks = fth_ranks_count(link->opt->engine.ranks);
    if (ranks < 2) return;
    fth_stage_say(&link->call, "ranks   %d share %.0f %% of the work; each exchanges %s", ranks,
                  p->seconds_alone > 0 ? 100 * p->seconds_shared / p->seconds_alone : 0.0,
                  fth_mem_format_size(p->exchanged_bytes, size, sizeof size));
}

static fth_status make_plan(fth__stage_link *link, FILE *show, fth_err *err)
{
    const fth_stage_plan *plan = &link->result.plan;
    fth_context *ctx = link->call.context;
    FTH_TRY(link->opt->stage->plan(&link->call, &link->result.plan, show, err));
    FTH_TRY(check_fit(link, fth_context_mem(ctx), plan->host_bytes, false, err));
    const fth_mem *device = fth_context_device_mem(ctx);
    return device ? check_fit(link, device, plan->device_bytes, true, err) : FTH_OK;
}

static fth_status plan_and_run(fth__stage_link *link, fth_err *err)
{
    const fth_stage *stage = link->opt->stage;
    FTH_TRY(make_plan(link, NULL, err));
    FTH_TRY(check_ranks(link, err));
    fth__stage_send_plan(link);
    say_ranks(link);
    FTH_TRY(fth_context_meet(link->call.context, err)); /* all have looked at the old record */
    if (!link->call.attempt[0] &&
        is_writer(link)) /* the runner that started it has the directory */
        FTH_TRY(fth_folder_claim(&link->claim, link->list.mem, link->opt->job->output_dir, err));
    FTH_TRY(prepare(link, err));
    fth__stage_point(link, "stage_planned");
    FTH_TRY(fth__stage_log_start(&link->call, err));
    FTH_TRY(stage->run(&link->call, err));
    FTH_TRY(check_outputs(link, err));
    fth__stage_point(link, "after_outputs");
    for (int64_t i = 0; is_writer(link) && i < link->list.n; i++)
        FTH_TRY(hash_file(link->list.mem, &link->list.file[i], link->opt->verify, err));
    fth__stage_send_last(link);
    fth__stage_measure(link);
    FTH_TRY(check_device(link, err));
    return leave_record(link, err); /* of rank 0: that of others never gets its name */
}

fth_status fth_stage_execute(const fth_stage_options *opt, fth_stage_result *out, fth_err *err)
{
    fth__stage_link link;
    fth__mem_process_peak_reset(); /* not for a prediction: the peak is the caller's then */
    if (out) *out = (fth_stage_result){0};
    fth_status s = begin(&link, opt, err);
    if (s == FTH_OK) {
        fth__stage_point(&link, "stage_start");
        if (link.any_gpu)
            fth_stage_say(&link.call, "note: %s: gpu is taken as auto: %s (%s)",
                          opt->job->instrument->device_key, link.result.device,
                          fth_context_device_reason(link.call.context));
        s = check_lock(&link, err);
        if (s == FTH_OK) s = look_back(&link, err);
        if (s == FTH_OK) s = add_inputs(&link, err);
        if (s == FTH_OK) s = plan_and_run(&link, err);
        if (s != FTH_OK) {
            fth__stage_send_last(&link);
            fth__stage_measure(&link);
        } else {
            fth__stage_say_end(&link);
        }
        fth__stage_send_end(&link, s);
        if (out) *out = link.result;
    }
    return end(&link, s, err);
}

/* A plan opens the inputs that are there. Which they are may not be known yet; then the stage looks
 * when it runs. */
static fth_status check_inputs(fth__stage_link *link, fth_err *err)
{
    const fth_stage *stage = link->opt->stage;
    const fth_status s = fth__stage_list_files(&link->call, &link->list, NULL);
    if (s == FTH_E_NOMEM) return FTH_FAIL(err, s, "no memory for the files of '%s'", stage->name);
    for (int64_t i = 0; s == FTH_OK && i < link->list.n; i++) {
        const fth_task_file *f = &link->list.file[i];
        const char *what = f->kind == FTH_FILE_INPUT ? what_else(f->path) : NULL;
        if (what) return no_file(link, f->path, what, err);
    }
    return FTH_OK;
}

fth_status fth_stage_predict(const fth_stage_options *opt, FILE *show, fth_stage_result *out,
                             fth_err *err)
{
    fth__stage_link link;
    if (out) *out = (fth_stage_result){0};
    fth_status s = begin(&link, opt, err);
    if (s == FTH_OK) s = check_inputs(&link, err);
    if (s == FTH_OK) s = make_plan(&link, show, err);
    if (s == FTH_OK && out) *out = link.result;
    return end(&link, s, err);
}
