/* limits.c - limits of the site, as Slurm's programs print them: see limits.h. */
#include "job/slurm/limits.h"

#include "base/str.h"
#include "job/find/slurm.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_S = 30 }; /* a busy controller answers within ten seconds */

static void take_value(const char *line, const char *key, char *out, size_t bytes)
{
    const size_t n = strlen(key);
    if (strncmp(line, key, n) != 0 || (line[n] != ' ' && line[n] != '=')) return;
    const char *value = strchr(line, '=');
    if (!value) return;
    value += 1 + strspn(value + 1, " ");
    fth__str_copy(out, bytes, value);
    for (size_t m = strlen(out); m > 0 && out[m - 1] == ' '; m--) out[m - 1] = '\0';
}

fth_status fth__slurm_parse_config(char *text, fth_slurm_info *out, fth_err *err)
{
    char size[32] = "", age[32] = "", storage[64] = "";
    for (char *line; (line = fth__slurm_line(&text)) != NULL;) {
        take_value(line, "SLURM_VERSION", out->version, sizeof out->version);
        take_value(line, "ClusterName", out->cluster, sizeof out->cluster);
        take_value(line, "MaxArraySize", size, sizeof size);
        take_value(line, "MinJobAge", age, sizeof age);
        take_value(line, "AccountingStorageType", storage, sizeof storage);
    }
    out->max_array = strtoll(size, NULL, 10);
    out->min_job_age_s = strtoll(age, NULL, 10);
    out->accounting = storage[0] && !strstr(storage, "none");
    if (out->max_array > 1) return FTH_OK;
    if (size[0]) {
        FTH_FAIL(err, FTH_E_EXECUTOR, "this Slurm has no job arrays (MaxArraySize is %s)", size);
        fth_err_hint(err, "its administrator can set MaxArraySize in slurm.conf");
    } else {
        FTH_FAIL(err, FTH_E_EXECUTOR, "'scontrol show config' names no MaxArraySize");
        fth_err_hint(err, "Slurm 20.11 and later are known to work");
    }
    return FTH_E_EXECUTOR;
}

/* GPUs of "gpu:a100:4(S:0-1),nic:2". */
static int64_t count_gpus(const char *gres)
{
    const char *at = strstr(gres, "gpu:");
    if (!at) return 0;
    at += 4;
    const char *colon = strpbrk(at, ":(,");
    if (colon && *colon == ':') at = colon + 1;
    const long long n = strtoll(at, NULL, 10);
    return n > 0 ? n : 0;
}

static void take_partition(fth_slurm_info *out, char **f)
{
    fth_slurm_partition *p = NULL;
    const size_t n = strlen(f[0]);
    const bool chosen = n > 0 && f[0][n - 1] == '*';
    if (chosen) f[0][n - 1] = '\0';
    for (int k = 0; k < out->n_partitions; k++)
        if (strcmp(out->partition[k].name, f[0]) == 0) p = &out->partition[k];
    if (!p && out->n_partitions == FTH_SLURM_PARTITIONS) return;
    if (!p) p = &out->partition[out->n_partitions++];
    fth__str_copy(p->name, sizeof p->name, f[0]);
    p->is_default = chosen;
    p->up = strcmp(f[1], "up") == 0;
    const int64_t minutes = fth__slurm_minutes(f[2]);
    p->max_minutes = minutes > 0 ? minutes : 0;
    const uint64_t memory = strtoull(f[3], NULL, 10) << 20;
    const int64_t cpus = strtoll(f[4], NULL, 10), gpus = count_gpus(f[5]);
    if (memory > p->memory_bytes) p->memory_bytes = memory;
    if (cpus > p->cpus) p->cpus = cpus;
    if (gpus > p->gpus) p->gpus = gpus;
    p->nodes += strtoll(f[6], NULL, 10);
}

void fth__slurm_parse_partitions(char *text, fth_slurm_info *out)
{
    for (char *line, *f[7]; (line = fth__slurm_line(&text)) != NULL;)
        if (fth__slurm_fields(line, f, 7) == 7) take_partition(out, f);
}

int64_t fth__slurm_parse_submit(char *text)
{
    int64_t least = 0;
    for (char *line, *f[2]; (line = fth__slurm_line(&text)) != NULL;) {
        const int n = fth__slurm_fields(line, f, 2);
        for (int k = 0; k < n; k++) {
            const int64_t v = strtoll(f[k], NULL, 10);
            if (v > 0 && (!least || v < least)) least = v;
        }
    }
    return least;
}

fth_status fth__slurm_ask_limits(fth__slurm_shell *shell, fth_slurm_info *out, fth_err *err)
{
    fth__slurm_reply reply;
    char user[100], room[1024];
    struct passwd entry, *found = NULL;
    *out = (fth_slurm_info){0};
    fth_status s = fth__slurm_call(shell, &reply, WAIT_S, true,
                                   (const char *[]){"scontrol", "show", "config", NULL}, err);
    if (s == FTH_OK) s = fth__slurm_parse_config(reply.text, out, err);
    fth__slurm_reply_clear(&reply);
    if (s != FTH_OK) return s;
    s = fth__slurm_call(shell, &reply, WAIT_S, true,
                        (const char *[]){"sinfo", "-h", "-e", "-o", "%P|%a|%l|%m|%c|%G|%D", NULL},
                        err);
    if (s == FTH_OK) fth__slurm_parse_partitions(reply.text, out);
    fth__slurm_reply_clear(&reply);
    if (s != FTH_OK || !out->accounting) return s;
    if (getpwuid_r(geteuid(), &entry, room, sizeof room, &found) != 0 || !found) return FTH_OK;
    snprintf(user, sizeof user, "user=%.64s", found->pw_name);
    /* A limit that cannot be asked for is found when sbatch refuses. */
    s = fth__slurm_call(shell, &reply, WAIT_S, false,
                        (const char *[]){"sacctmgr", "-nP", "show", "assoc", user,
                                         "format=MaxSubmitJobs,GrpSubmitJobs", NULL},
                        NULL);
    if (s == FTH_OK && reply.exit_code == 0 && reply.text)
        out->max_submit = fth__slurm_parse_submit(reply.text);
    fth__slurm_reply_clear(&reply);
    return s == FTH_E_NOMEM ? FTH_FAIL(err, s, "no memory for the limits of Slurm") : FTH_OK;
}

const fth_slurm_partition *fth__slurm_find_partition(const fth_slurm_info *info, const char *name,
                                                     fth_err *err)
{
    char list[400];
    fth__text t;
    fth__text_init(&t, list, sizeof list);
    for (int k = 0; k < info->n_partitions; k++) {
        const fth_slurm_partition *p = &info->partition[k];
        if (name[0] ? strcmp(p->name, name) == 0 : p->is_default) return p;
        fth__text_add(&t, "%s%s", k ? " " : "", p->name);
    }
    fth__text_mark_cut(&t);
    if (name[0])
        (void)FTH_FAIL(err, FTH_E_EXECUTOR, "Slurm has no partition '%s' on this cluster", name);
    else
        (void)FTH_FAIL(err, FTH_E_EXECUTOR, "this cluster has no default partition");
    fth_err_hint(err, "name one of '%s' with --slurm partition=NAME", list);
    return NULL;
}
