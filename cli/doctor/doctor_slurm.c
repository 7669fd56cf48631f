/* doctor_slurm.c - what doctor says of Slurm: version, limits, partitions, or why it cannot be
 * used. */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

void doctor_look_slurm(void *user, doctor_slurm *out)
{
    fth_mem *mem = NULL;
    fth_err err = {0};
    (void)user;
    *out = (doctor_slurm){0};
    if (fth_mem_create(&mem, NULL, &err) != FTH_OK) return;
    out->answers = fth_slurm_ask(mem, (const char *const *)environ, &out->info, &err) == FTH_OK;
    /* Most machines have no Slurm, which is nothing to report. */
    out->there = out->answers || !strstr(err.text, "on PATH");
    snprintf(out->why, sizeof out->why, "%.399s", out->answers ? "" : err.text);
    fth_mem_destroy(mem, NULL);
}

void doctor_show_slurm(FILE *out, const doctor_slurm *s)
{
    if (!s->there) return;
    if (!s->answers) {
        fprintf(out, "  %-12s cannot be used: %s\n", "slurm", s->why);
        return;
    }
    fprintf(out, "  %-12s %s, cluster %s, accounting %s; arrays of at most %lld", "slurm",
            s->info.version, s->info.cluster, s->info.accounting ? "on" : "off",
            (long long)s->info.max_array);
    if (s->info.max_submit) fprintf(out, ", %lld jobs at a time", (long long)s->info.max_submit);
    fputc('\n', out);
    for (int i = 0; i < s->info.n_partitions; i++) {
        const fth_slurm_partition *p = &s->info.partition[i];
        char memory[32], limit[40] = "no time limit";
        if (p->max_minutes) snprintf(limit, sizeof limit, "%lld min", (long long)p->max_minutes);
        fprintf(out, "  %-12s %s%s: %lld nodes of up to %lld CPUs, %s", "partition", p->name,
                p->is_default ? " (default)" : "", (long long)p->nodes, (long long)p->cpus,
                fth_mem_format_size(p->memory_bytes, memory, sizeof memory));
        if (p->gpus) fprintf(out, " and %lld GPUs", (long long)p->gpus);
        fprintf(out, "; %s%s\n", limit, p->up ? "" : "; down");
    }
}

void doctor_show_slurm_json(fth_json_writer *j, const doctor_slurm *s)
{
    fth_json_open(j, "slurm", '{');
    fth_json_bool(j, "answers", s->answers);
    fth_json_text(j, "why", s->why);
    fth_json_text(j, "version", s->info.version);
    fth_json_text(j, "cluster", s->info.cluster);
    fth_json_bool(j, "accounting", s->info.accounting);
    fth_json_int(j, "max_array_size", s->info.max_array);
    fth_json_int(j, "max_submit_jobs", s->info.max_submit);
    fth_json_open(j, "partitions", '[');
    for (int i = 0; i < s->info.n_partitions; i++) {
        const fth_slurm_partition *p = &s->info.partition[i];
        fth_json_open(j, NULL, '{');
        fth_json_text(j, "name", p->name);
        fth_json_bool(j, "default", p->is_default);
        fth_json_bool(j, "up", p->up);
        fth_json_int(j, "nodes", p->nodes);
        fth_json_int(j, "cpus", p->cpus);
        fth_json_u64(j, "memory_bytes", p->memory_bytes);
        fth_json_int(j, "gpus", p->gpus);
        fth_json_int(j, "max_minutes", p->max_minutes);
        fth_json_close(j);
    }
    fth_json_close(j);
    fth_json_close(j);
}
