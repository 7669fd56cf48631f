/* drill.c - inject failures that a runner must survive.
 *
 * Whether a job is hit is drawn from (seed, model, stage), so a test knows it beforehand:
 *     hash = FNV-1a of "MODEL/STAGE"; u = top 53 bits of splitmix64(seed + hash) / 2^53
 * and it is hit when u < drill.chance. An instrument without the rows FTH_DRILL_KEYS has no drills.
 */
#include "job/stage/stage.h"

#include <fathom/files.h>

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NONE, ERROR, CRASH, HANG, SLOW, CHATTER, FILL, NUMERIC }; /* in the order of the choices */

/* Asking a config for a key that its table does not have is a mistake, so look at the table. */
static bool has_drills(const fth_stage_call *call)
{
    const fth_schema *schema = call->instrument->schema;
    for (int64_t i = 0; i < schema->n_keys; i++)
        if (strcmp(schema->key[i].name, "drill.stage") == 0) return true;
    return false;
}

static uint64_t fnv(uint64_t h, const char *s)
{
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

static double draw_number(const fth_stage_call *call)
{
    uint64_t h = fnv(fnv(fnv(0xcbf29ce484222325u, call->model), "/"), call->stage->name);
    uint64_t z = (uint64_t)fth_config_int(call->config, "seed") + h + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Lines of jobs that start at once do not mix. */
fth_status fth__stage_log_start(const fth_stage_call *call, fth_err *err)
{
    if (!has_drills(call) || !fth_config_has(call->config, "drill.start_log")) return FTH_OK;
    const char *path = fth_config_text(call->config, "drill.start_log");
    char line[512];
    const int n =
        snprintf(line, sizeof line, "%s %ld %s %s\n", call->attempt[0] ? call->attempt : "-",
                 (long)getpid(), call->job, call->stage->name);
    if (n <= 0 || n >= (int)sizeof line)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: the line of %s is too long", path, call->job);
    return fth_file_append(fth_context_mem(call->context), path, line, (uint64_t)n, err);
}

static void sleep_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A hanging stage does not listen; a slow one does. */
static fth_status wait_seconds(const fth_stage_call *call, bool listens, fth_err *err)
{
    const double seconds = fth_config_real(call->config, "drill.seconds"), start = now();
    while (now() - start < seconds) {
        const fth_stage_progress p = {.done = (int64_t)(100 * (now() - start)),
                                      .total = (int64_t)(100 * seconds),
                                      .what = "drill"};
        if (listens && !fth_stage_report(call, &p))
            return FTH_FAIL(err, FTH_E_CANCELLED, "the drill was stopped");
        sleep_a_little();
    }
    return FTH_OK;
}

static fth_status chatter(const fth_stage_call *call, uint64_t bytes, fth_err *err)
{
    for (uint64_t said = 0, line = 0; said < bytes; said += 80, line++) {
        fth_stage_say(call, "drill %10llu: the quick brown fox jumps over the lazy dog, again %10s",
                      (unsigned long long)line, "and on");
        if (line % 1000 == 0 && fth_stage_is_cancelled(call))
            return FTH_FAIL(err, FTH_E_CANCELLED, "the drill was stopped");
    }
    return FTH_OK;
}

/* Write until the disk is full; remove what was written either way. */
static fth_status fill_disk(const fth_stage_call *call, uint64_t bytes, fth_err *err)
{
    enum { PIECE = 1 << 16 };
    static const char zeros[PIECE];
    char path[FTH_PATH];
    fth_sink sink;
    const fth_raw_layout layout = {.dtype = FTH_U8, .n_axes = 1, .size = {(int64_t)bytes}};
    FTH_TRY(fth_path_join(path, call->model_dir, "drill.fill", err));
    FTH_TRY(fth_raw_create(&sink, fth_context_mem(call->context), path, &layout, NULL, err));
    fth_status s = FTH_OK;
    for (int64_t at = 0; s == FTH_OK && at < (int64_t)bytes; at += PIECE) {
        const int64_t piece = (int64_t)bytes - at < PIECE ? (int64_t)bytes - at : PIECE;
        s = sink.write(sink.self, &at, &piece, zeros, err);
    }
    fth_sink_close(&sink);
    return s;
}

fth_status fth_stage_drill(const fth_stage_call *call, fth_err *err)
{
    const fth_config *cfg = call->config;
    if (!has_drills(call)) return FTH_OK;
    const uint64_t bytes = fth_config_size(cfg, "drill.bytes", 1u << 30);
    if (strcmp(fth_config_text(cfg, "drill.stage"), call->stage->name) != 0 ||
        draw_number(call) >= fth_config_real(cfg, "drill.chance"))
        return FTH_OK;
    switch (fth_config_choice(cfg, "drill.kind")) {
    case ERROR: {
        const fth_status s =
            FTH_FAIL(err, FTH_E_FILE_FORMAT, "a drill: this stage was asked to find a bad file");
        fth_err_hint(err, "set drill.stage to none");
        return s;
    }
    case CRASH: raise(SIGABRT); return FTH_OK;
    case HANG: return wait_seconds(call, false, err);
    case SLOW: return wait_seconds(call, true, err);
    case CHATTER: return chatter(call, bytes, err);
    case FILL: return fill_disk(call, bytes, err);
    case NUMERIC:
        return FTH_FAIL(err, FTH_E_NUMERIC,
                        "a drill: this stage was asked for a non-finite number");
    default: return FTH_OK;
    }
}
