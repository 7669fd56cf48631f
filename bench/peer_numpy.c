/* peer_numpy.c - a Python process that runs the chain with NumPy each time it is told to. */
#include "bench.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer_numpy {
    FILE *to, *from;
    pid_t child;
};

peer_numpy *peer_numpy_start(const char *folder, int64_t n, bool cpu_clock, const char **why)
{
    char script[4096], count[24];
    snprintf(script, sizeof script, "%s/peer_numpy.py", folder);
    snprintf(count, sizeof count, "%lld", (long long)n);
    *why = "peer_numpy.py was not found; run from the root of the repository or give --peers";
    if (access(script, R_OK) != 0) return NULL;
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
        execl("/usr/bin/python3", "python3", script, count, cpu_clock ? "cpu" : "wall",
              (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    peer_numpy *p = malloc(sizeof *p);
    if (!p) abort();
    *p = (peer_numpy){fdopen(down[1], "w"), fdopen(up[0], "r"), child};
    *why = "python3 or NumPy did not start";
    if (child > 0 && p->to && p->from && peer_numpy_run(p) > 0) return p;
    peer_numpy_stop(p);
    return NULL;
}

double peer_numpy_run(peer_numpy *p)
{
    char text[64];
    fputs("go\n", p->to);
    fflush(p->to);
    return fgets(text, sizeof text, p->from) ? atof(text) : 0.0;
}

void peer_numpy_stop(peer_numpy *p)
{
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    if (p->child > 0) waitpid(p->child, NULL, 0);
    free(p);
}
