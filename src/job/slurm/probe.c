/* probe.c - whether a node sees the files: a tiny job looks before anything is submitted.
 *
 * One file on each file system that the output directories are on, and the program. When no node is
 * free within seconds nothing is known, and a line says so: then the first tasks will tell.
 */
#include "job/slurm/slurm.h"

#include "base/str.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

enum { DISKS = 8, WAIT_S = 40 };

static fth_status look(const fth__job_runner *r, fth__slurm *s, const fth__slurm_settings *says,
                       const char *command, fth_err *err)
{
    const char *words[FTH__SLURM_WORDS + 1] = {
        "srun",     "--immediate=20",         "--quiet", "--ntasks=1", "--mem=64M",
        "--time=1", "--job-name=fathom-probe"};
    char store[sizeof says->options], *rest = store;
    int n = 7;
    fth__slurm_reply reply;
    fth__str_copy(store, sizeof store, says->options);
    for (char *line; n < FTH__SLURM_WORDS - 4 && (line = fth__slurm_line(&rest)) != NULL;)
        if (strstr(line, "--partition=") || strstr(line, "--account=") || strstr(line, "--qos=") ||
            strstr(line, "--constraint=") || strstr(line, "--reservation="))
            words[n++] = strstr(line, "--");
    words[n++] = "/bin/sh";
    words[n++] = "-c";
    words[n] = command;
    fth_status t = fth__slurm_call(&s->shell, &reply, WAIT_S, false, words, NULL);
    const char *missing = t == FTH_OK && reply.text ? strstr(reply.text, "MISSING ") : NULL;
    if (missing) {
        const size_t m = strcspn(missing + 8, "\n");
        t = FTH_FAIL(err, FTH_E_EXECUTOR, "a node of the cluster does not see %.*s", (int)m,
                     missing + 8);
        fth_err_hint(err, "write results, configs and the program to a file system that all nodes "
                          "share; --slurm probe=false submits without this test");
    } else if (t == FTH_OK && !(reply.text && strstr(reply.text, "ALL SEEN"))) {
        const size_t m = reply.text ? strcspn(reply.text, "\n") : 0;
        fth_log_line(&r->opt->log, FTH_LOG_WARN,
                     "whether nodes see the files was not tested: no node took the test within "
                     "20 s%s%.*s",
                     m ? ": " : "", m < 200 ? (int)m : 200, reply.text ? reply.text : "");
    } else if (t == FTH_E_NOMEM) {
        FTH_FAIL(err, t, "no memory for a test of the nodes");
    } else {
        t = FTH_OK; /* no srun, or no answer: sbatch has its own errors */
    }
    fth__slurm_reply_clear(&reply);
    return t;
}

fth_status fth__slurm_probe(const fth__job_runner *r, fth__slurm *s,
                            const fth__slurm_settings *says, fth_err *err)
{
    uint64_t disk[DISKS];
    int n = 0;
    const size_t bytes = (size_t)(2 * DISKS + 4) * (size_t)FTH_PATH;
    char *command = fth__heap_alloc(s->mem, bytes), path[FTH_PATH], name[80];
    if (!command) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a test of the nodes");
    fth__text t;
    fth__text_init(&t, command, bytes);
    fth__text_add(&t, "see() { test -r \"$1\" || { echo \"MISSING $1\"; exit 0; }; }; see ");
    fth__shell_quote(&t, r->opt->program);
    fth_status u = FTH_OK;
    const char *made[DISKS];
    snprintf(name, sizeof name, "probe.%.48s", s->folder[0].token);
    for (int64_t d = 0; d < r->graph.n_dirs && n < DISKS && u == FTH_OK; d++) {
        fth_path_disk_info info;
        bool known = false;
        if (!r->graph.dir[d].locked || fth_path_disk(r->graph.dir[d].path, &info, NULL) != FTH_OK)
            continue;
        for (int k = 0; k < n; k++) known = known || disk[k] == info.id;
        if (known || !fth__fathom_path(path, r->graph.dir[d].path, name)) continue;
        u = fth_file_save(s->mem, path, "", 0, err);
        made[n] = r->graph.dir[d].path;
        disk[n++] = info.id;
        fth__text_add(&t, "; see ");
        fth__shell_quote(&t, path);
    }
    fth__text_add(&t, "; echo ALL SEEN");
    if (u == FTH_OK && !fth__text_is_cut(&t)) u = look(r, s, says, command, err);
    for (int k = 0; k < n; k++)
        if (fth__fathom_path(path, made[k], name)) (void)fth_path_remove(s->mem, path, NULL);
    fth__heap_free(s->mem, command);
    return u;
}
