/* commands.c - run Slurm's programs: see commands.h. */
#include "job/slurm/commands.h"

#include "base/clock.h"
#include "base/str.h"
#include "job/run/spawn.h"
#include "mem/heap.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* REPLY: of one call; squeue writes about 60 bytes for each of 100 000 jobs. */
enum { READ = 65536, REPLY = 64 << 20 };

bool fth__slurm_find(const fth__slurm_shell *shell, const char *program, char *path, size_t bytes)
{
    const char *list = "";
    for (const char *const *e = shell->environment; e && *e; e++)
        if (strncmp(*e, "PATH=", 5) == 0) list = *e + 5;
    while (*list) {
        const size_t n = strcspn(list, ":");
        const int m = snprintf(path, bytes, "%.*s/%s", (int)n, n ? list : ".", program);
        if (m > 0 && (size_t)m < bytes && access(path, X_OK) == 0) return true;
        list += n;
        list += *list == ':';
    }
    return false;
}

static fth_status read_all(fth__slurm_reply *reply, fth__child *child, fth_err *err)
{
    for (;;) {
        FTH_TRY(fth__grow(reply->mem, &reply->text, &reply->cap, reply->n + READ + 1, err));
        const ssize_t got = read(child->output, reply->text + reply->n, READ);
        if (got > 0 && reply->n < REPLY) reply->n += got;
        if (got > 0) continue;
        if (got < 0 && errno == EINTR) continue;
        reply->text[reply->n] = '\0';
        if (got < 0 && errno == EAGAIN) return FTH_OK;
        fth__child_close(child);
        return FTH_OK;
    }
}

/* False: it did not end in time, and was killed. */
static fth_status wait_for(fth__slurm_reply *reply, fth__child *child, double seconds,
                           bool *in_time, fth_err *err)
{
    const double until = fth__clock_seconds() + seconds;
    fth_status s = FTH_OK;
    *in_time = true;
    for (;;) {
        struct pollfd fd = {.fd = child->output, .events = POLLIN};
        if (child->output >= 0)
            poll(&fd, 1, 20);
        else
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        if (child->output >= 0 && s == FTH_OK) s = read_all(reply, child, err);
        if (fth__child_reap(child)) break;
        if (fth__clock_seconds() < until && s == FTH_OK) continue;
        *in_time = s != FTH_OK;
        fth__child_signal(child, SIGKILL);
    }
    if (child->output >= 0 && s == FTH_OK) s = read_all(reply, child, err);
    return s;
}

/* What failed is in the last line; the ones before it are about attempts. */
static fth_status fail(const char *word, const fth__slurm_reply *reply, fth_err *err)
{
    size_t end = strlen(reply->text), from;
    while (end > 0 && reply->text[end - 1] == '\n') end--;
    for (from = end; from > 0 && reply->text[from - 1] != '\n';) from--;
    FTH_FAIL(err, FTH_E_EXECUTOR, "%s failed (exit %d): %.*s", word, reply->exit_code,
             end - from < 400 ? (int)(end - from) : 400, reply->text + from);
    if (strstr(reply->text, "unge"))
        fth_err_hint(err, "munge, which Slurm trusts, does not answer on this machine: 'munge -n | "
                          "unmunge' tests it, and who runs the cluster can start munged");
    else
        fth_err_hint(err, "'fathom doctor' shows what Slurm offers here; 'scontrol ping' says "
                          "whether its controller answers");
    return FTH_E_EXECUTOR;
}

fth_status fth__slurm_call(fth__slurm_shell *shell, fth__slurm_reply *reply, double seconds,
                           bool must, const char *const *words, fth_err *err)
{
    char path[4096];
    const char *word[FTH__SLURM_WORDS + 1] = {path};
    fth__child child;
    bool in_time = true;
    *reply = (fth__slurm_reply){.mem = shell->mem};
    if (!fth__slurm_find(shell, words[0], path, sizeof path)) {
        FTH_FAIL(err, FTH_E_EXECUTOR, "there is no %s on PATH, so nothing can be given to Slurm",
                 words[0]);
        fth_err_hint(err, "run this on a login node of the cluster, or load the module of Slurm");
        return FTH_E_EXECUTOR;
    }
    for (int i = 1; i < FTH__SLURM_WORDS && words[i]; i++) word[i] = words[i];
    shell->calls++;
    FTH_TRY(fth__child_start(&child, shell->mem, word, shell->environment, NULL, err));
    const fth_status s = wait_for(reply, &child, seconds, &in_time, err);
    fth__child_close(&child);
    if (s != FTH_OK) return s;
    reply->exit_code = child.exit_code ? child.exit_code : child.signal ? 128 + child.signal : 0;
    if (!in_time) {
        FTH_FAIL(err, FTH_E_EXECUTOR, "%s gave no answer within %.0f s", words[0], seconds);
        fth_err_hint(err, "'scontrol ping' says whether the controller of Slurm answers");
        return FTH_E_EXECUTOR;
    }
    if (!must || reply->exit_code == 0) return FTH_OK;
    return fail(words[0], reply, err);
}

void fth__slurm_reply_clear(fth__slurm_reply *reply)
{
    if (reply->mem) fth__heap_free(reply->mem, reply->text);
    *reply = (fth__slurm_reply){0};
}

/* ---- text ---- */

char *fth__slurm_line(char **text)
{
    char *line = *text;
    if (!line || !*line) return NULL;
    char *end = line + strcspn(line, "\n");
    *text = *end ? end + 1 : end;
    *end = '\0';
    return line;
}

int fth__slurm_fields(char *line, char **field, int most)
{
    int n = 0;
    while (n < most) {
        field[n++] = line;
        line = strchr(line, '|');
        if (!line) break;
        *line++ = '\0';
    }
    for (int k = n; k < most; k++) field[k] = field[n - 1] + strlen(field[n - 1]);
    return n;
}
