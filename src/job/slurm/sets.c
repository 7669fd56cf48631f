/* sets.c - what each task asks of Slurm: the settings of its config and of the command line. */
#include "job/slurm/slurm.h"

#include "job/stage/stage.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

/* CPUS: of a task when nobody says; one node runs several, and most stages use four well. */
enum { CPUS = 4 };

static fth_status find_set(fth__slurm *s, const fth__slurm_settings *says, int64_t *out,
                           fth_err *err)
{
    for (*out = 0; *out < s->n_sets; ++*out)
        if (fth__slurm_is_same(&s->set[*out].says, says)) return FTH_OK;
    FTH_TRY(fth__grow(s->mem, &s->set, &s->cap_sets, s->n_sets + 1, err));
    s->set[s->n_sets++] = (fth__slurm_set){.says = *says};
    return FTH_OK;
}

fth_status fth__slurm_read_sets(fth__job_runner *r, fth__slurm *s, fth_err *err)
{
    const fth_job *last = NULL;
    int64_t k = 0;
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth_job *job = r->graph.node[i].job;
        fth__slurm_settings says;
        if (job != last) {
            FTH_TRY(fth__slurm_read(&says, job, r->opt->slurm, r->opt->n_slurm, err));
            FTH_TRY(find_set(s, &says, &k, err));
        }
        last = job;
        s->task[i].set = k;
    }
    return FTH_OK;
}

fth_status fth__slurm_find_nodes(fth__slurm *s, fth_err *err)
{
    for (int64_t k = 0; k < s->n_sets; k++) {
        s->set[k].partition = fth__slurm_find_partition(&s->info, s->set[k].says.partition, err);
        if (!s->set[k].partition) return FTH_E_EXECUTOR;
    }
    return FTH_OK;
}

fth_status fth__slurm_size_nodes(fth__job_runner *r, fth__slurm_set *set, fth_err *err)
{
    const fth_slurm_partition *p = set->partition;
    fth__pack *pack = &r->pack;
    int cpus = set->says.cpus ? set->says.cpus : r->opt->threads;
    if (cpus <= 0) cpus = p && p->cpus > 0 && p->cpus < CPUS ? (int)p->cpus : CPUS;
    if (p && p->max_minutes && set->says.minutes > p->max_minutes) {
        FTH_FAIL(err, FTH_E_EXECUTOR,
                 "time=%" PRId64 " minutes is beyond the %" PRId64 " minutes of partition %s",
                 set->says.minutes, p->max_minutes, p->name);
        fth_err_hint(err, "ask for less, or name another partition");
        return FTH_E_EXECUTOR;
    }
    set->cpus = cpus;
    pack->n_slots = 1;
    pack->threads = cpus;
    pack->jobs = p && p->cpus > cpus ? (int)(p->cpus / cpus) : 1;
    if (r->opt->memory_bytes)
        pack->slot[0].total_bytes = r->opt->memory_bytes;
    else if (p && p->memory_bytes) /* a twentieth is left to the processes themselves */
        pack->slot[0].total_bytes = p->memory_bytes - p->memory_bytes / 20;
    r->view->budget_bytes = pack->slot[0].total_bytes;
    r->any_device = set->says.gpus[0] != '\0';
    return FTH_OK;
}

int fth__slurm_count_gpus(const fth__job_runner *r, const fth__slurm *s, int64_t i)
{
    const fth__job_node *node = &r->graph.node[i];
    bool any_gpu;
    const char *device = fth__job_device(node->job, &any_gpu);
    if (!node->job->instrument->gpu || (device && strcmp(device, "cpu") == 0)) return 0;
    return fth__slurm_gpus(&s->set[s->task[i].set].says, node->stage->name);
}
