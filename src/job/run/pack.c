/* pack.c - tasks into memory, devices and threads: see pack.h for the rules. */
#include "job/run/pack.h"

#include "base/assert.h"

#include <inttypes.h>

static uint64_t free_of(const fth__pack_slot *slot)
{
    return slot->total_bytes > slot->taken_bytes ? slot->total_bytes - slot->taken_bytes : 0;
}

void fth__pack_init(fth__pack *pack, const fth_runner_options *opt, int threads)
{
    *pack = (fth__pack){.jobs_per_device = opt->jobs_per_device, .gpu_only = opt->gpu_only};
    pack->n_slots = opt->n_slots < 1 ? 1 : opt->n_slots;
    if (pack->n_slots > FTH__PACK_SLOTS) pack->n_slots = FTH__PACK_SLOTS;
    for (int s = 0; s < opt->n_slots && s < FTH__PACK_SLOTS; s++)
        pack->slot[s].total_bytes = opt->slot[s].free_bytes;
    if (opt->memory_bytes)
        pack->slot[0].total_bytes = opt->memory_bytes;
    else /* a tenth is left to the runner, to other programs and to the cache of files */
        pack->slot[0].total_bytes -= pack->slot[0].total_bytes / 10;
    pack->threads = opt->threads > 0 ? opt->threads : threads > 0 ? threads : 1;
    pack->jobs = opt->jobs > 0 ? opt->jobs : pack->threads;
    /* Asked for more tasks than threads: each gets one. */
    if (pack->threads < pack->jobs) pack->threads = pack->jobs;
}

uint64_t fth__pack_share(const fth__pack *pack, int64_t jobs)
{
    const int64_t most = jobs < pack->jobs ? jobs : pack->jobs;
    return pack->slot[0].total_bytes / (uint64_t)(most > 0 ? most : 1);
}

/* ---- where a task would fit ---- */

/* Bytes on GPU s, with the margin; a sum that overflows fits nowhere. */
static uint64_t gpu_cost(const fth__pack_task *task)
{
    return task->gpu_bytes > UINT64_MAX - FTH__PACK_MARGIN ? UINT64_MAX
                                                           : task->gpu_bytes + FTH__PACK_MARGIN;
}

static bool may_use_host(const fth__pack *pack, const fth__pack_task *task)
{
    return !task->device || (!pack->gpu_only && task->cpu_bytes <= pack->slot[0].total_bytes);
}

bool fth__pack_fits(const fth__pack *pack, const fth__pack_task *task, fth_err *err)
{
    uint64_t largest = 0;
    for (int s = 1; task->device && s < pack->n_slots; s++) {
        if (pack->slot[s].total_bytes > largest) largest = pack->slot[s].total_bytes;
        if (gpu_cost(task) <= pack->slot[s].total_bytes &&
            task->host_bytes <= pack->slot[0].total_bytes)
            return true;
    }
    if (may_use_host(pack, task) && task->cpu_bytes <= pack->slot[0].total_bytes) return true;
    char needs[32], has[32], gpu[32], card[32];
    const bool on_gpu = task->device && pack->n_slots > 1;
    fth_mem_format_size(on_gpu ? task->host_bytes : task->cpu_bytes, needs, sizeof needs);
    fth_mem_format_size(pack->slot[0].total_bytes, has, sizeof has);
    fth_mem_format_size(gpu_cost(task), gpu, sizeof gpu);
    fth_mem_format_size(largest, card, sizeof card);
    if (on_gpu)
        (void)FTH_FAIL(err, FTH_E_NO_FIT,
                       "the task needs %s on a GPU, with its margin, and %s of memory; the largest "
                       "GPU has %s and all tasks together may take %s",
                       gpu, needs, card, has);
    else
        (void)FTH_FAIL(err, FTH_E_NO_FIT, "the task needs %s and all tasks together may take %s",
                       needs, has);
    fth_err_hint(err, "allow more with --memory");
    return false;
}

/* The GPU with the most room that takes the task now, or 0. */
static int gpu_for(const fth__pack *pack, const fth__pack_task *task)
{
    int best = 0;
    if (!task->device || task->host_bytes > free_of(&pack->slot[0])) return 0;
    for (int s = 1; s < pack->n_slots; s++) {
        const fth__pack_slot *slot = &pack->slot[s];
        if (pack->jobs_per_device > 0 && slot->running >= pack->jobs_per_device) continue;
        if (gpu_cost(task) > free_of(slot)) continue;
        if (!best || free_of(slot) > free_of(&pack->slot[best])) best = s;
    }
    return best;
}

static bool host_for(const fth__pack *pack, const fth__pack_task *task)
{
    if (task->cpu_bytes > free_of(&pack->slot[0])) return false;
    if (!task->device) return true;
    if (pack->gpu_only) return false;
    /* One task may take the host while the GPUs are busy; more would starve what feeds them. */
    return pack->n_slots == 1 || pack->fallen_back == 0;
}

/* ---- the choice ---- */

bool fth__pack_before(const fth__pack_task *a, const fth__pack_task *b)
{
    return a->stage != b->stage ? a->stage < b->stage : a->number < b->number;
}

static int threads_for(const fth__pack *pack, int64_t waiting)
{
    const int left = pack->threads - pack->threads_taken;
    int64_t others = pack->jobs - pack->running;
    if (waiting < others) others = waiting;
    const int64_t share = left / (others > 1 ? others : 1);
    return share > 1 ? (int)share : 1;
}

/* Task i, if it can start now. */
static bool place(const fth__pack *pack, const fth__pack_task *task, int threads,
                  fth__reservation *out)
{
    const int gpu = gpu_for(pack, task);
    if (!gpu && !host_for(pack, task)) return false;
    *out = (fth__reservation){.held = true,
                              .slot = gpu,
                              .threads = threads,
                              .fell_back = !gpu && task->device && pack->n_slots > 1,
                              .host_bytes = gpu ? task->host_bytes : task->cpu_bytes,
                              .gpu_bytes = gpu ? gpu_cost(task) : 0};
    return true;
}

/* Whether `r` leaves alone what task `turn` waits for: the host's memory, or only a GPU. */
static bool spares(const fth__pack *pack, const fth__reservation *r, const fth__pack_task *turn)
{
    const uint64_t room = free_of(&pack->slot[0]);
    return turn->device && turn->host_bytes <= room && r->slot == 0 && !r->fell_back &&
           r->host_bytes <= room - turn->host_bytes;
}

/* The first of those whose patience is at an end, or -1. */
static int64_t whose_turn(const fth__pack_task *ready, int64_t n)
{
    int64_t turn = -1;
    for (int64_t i = 0; i < n; i++)
        if (ready[i].passed >= FTH__PACK_PATIENCE &&
            (turn < 0 || fth__pack_before(&ready[i], &ready[turn])))
            turn = i;
    return turn;
}

int64_t fth__pack_next(const fth__pack *pack, const fth__pack_task *ready, int64_t n,
                       int64_t waiting, fth__reservation *out)
{
    *out = (fth__reservation){0};
    if (pack->running >= pack->jobs || pack->threads_taken >= pack->threads) return -1;
    const int threads = threads_for(pack, waiting);
    const int64_t turn = whose_turn(ready, n);
    if (turn >= 0 && place(pack, &ready[turn], threads, out)) return turn;
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        fth__reservation r;
        if (best >= 0 && !fth__pack_before(&ready[i], &ready[best])) continue;
        if (!place(pack, &ready[i], threads, &r)) continue;
        if (turn >= 0 && !spares(pack, &r, &ready[turn])) continue;
        best = i;
        *out = r;
    }
    return best;
}

void fth__pack_take(fth__pack *pack, const fth__reservation *r)
{
    if (!r->held) return;
    FTH_ASSERT(r->slot >= 0 && r->slot < pack->n_slots && r->threads > 0);
    pack->running++;
    pack->threads_taken += r->threads;
    pack->fallen_back += r->fell_back;
    pack->slot[r->slot].running++;
    pack->slot[0].taken_bytes += r->host_bytes;
    if (r->slot) pack->slot[r->slot].taken_bytes += r->gpu_bytes;
    FTH_ASSERT(pack->running <= pack->jobs && pack->threads_taken <= pack->threads);
    FTH_ASSERT(pack->slot[0].taken_bytes <= pack->slot[0].total_bytes);
    FTH_ASSERT(pack->slot[r->slot].taken_bytes <= pack->slot[r->slot].total_bytes);
}

void fth__pack_release(fth__pack *pack, fth__reservation *r)
{
    if (!r->held) return;
    FTH_ASSERT(pack->running > 0 && pack->slot[r->slot].running > 0);
    FTH_ASSERT(pack->threads_taken >= r->threads && pack->slot[0].taken_bytes >= r->host_bytes);
    pack->running--;
    pack->threads_taken -= r->threads;
    pack->fallen_back -= r->fell_back;
    pack->slot[r->slot].running--;
    pack->slot[0].taken_bytes -= r->host_bytes;
    if (r->slot) pack->slot[r->slot].taken_bytes -= r->gpu_bytes;
    *r = (fth__reservation){0};
}
