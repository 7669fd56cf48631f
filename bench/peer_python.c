/* peer_python.c - a Python process that does its work each time it is told to, and says how long it
 * took by its own clock; and how many bytes it grew by, where it knows. */
#include "bench.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS = 16 };

struct peer_python {
    FILE *to, *from;
    pid_t child;
    uint64_t bytes;
    double kernels;
};

static peer_python *start(const char *python, const char *folder, const char *script,
                          const char *const *arg, const char **why)
{
    char path[4096];
    char *words[ARGS + 3] = {"python3", path};
    int n = 0;
    for (; arg[n] && n < ARGS; n++) words[n + 2] = (char *)(uintptr_t)arg[n];
    words[n + 2] = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, script);
    *why = "its script was not found; run from the root of the repository or give --peers";
    if (access(path, R_OK) != 0 || bench_predicting()) return NULL;
    int down[2], up[2];
    *why = "no pipe";
    if (pipe(down) != 0 || pipe(up) != 0) return NULL;
    signal(SIGPIPE, SIG_IGN);
    const pid_t child = fork();
    if (child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execvp(python, words);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    peer_python *p = malloc(sizeof *p);
    if (!p) abort();
    *p = (peer_python){fdopen(down[1], "w"), fdopen(up[0], "r"), child, 0, 0};
    *why = "python3 or a module of its did not start";
    if (child > 0 && p->to && p->from && peer_python_run(p) > 0) return p;
    peer_python_stop(p);
    return NULL;
}

peer_python *peer_python_start(const char *folder, const char *script, const char *const *arg,
                               const char **why)
{
    return start("/usr/bin/python3", folder, script, arg, why);
}

peer_python *peer_python_start_any(const char *folder, const char *script, const char *const *arg,
                                   const char **why)
{
    return start("python3", folder, script, arg, why);
}

double peer_python_run(peer_python *p)
{
    return peer_python_tell(p, "go");
}

double peer_python_tell(peer_python *p, const char *line)
{
    char text[128];
    fprintf(p->to, "%s\n", line);
    fflush(p->to);
    if (!fgets(text, sizeof text, p->from)) return 0.0;
    char *rest = NULL;
    const double seconds = strtod(text, &rest);
    p->bytes = strtoull(rest, &rest, 10);
    p->kernels = strtod(rest, NULL);
    return seconds;
}

double peer_python_kernels(const peer_python *p)
{
    return p->kernels;
}

uint64_t peer_python_bytes(const peer_python *p)
{
    return p->bytes;
}

void peer_python_stop(peer_python *p)
{
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    if (p->child > 0) waitpid(p->child, NULL, 0);
    free(p);
}

void bench_against_python(bench *b, const bench_pair *pair, bench_program *p, peer_python *peer,
                          const char *why)
{
    if (!peer)
        bench_note(b, "SKIP %s: %s", pair->name, why);
    else if (p->status == FTH_OK)
        bench_pairs(b, pair);
    if (peer) peer_python_stop(peer);
    bench_close(p);
}
