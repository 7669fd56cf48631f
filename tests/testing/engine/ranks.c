/* ranks.c - see ranks.h. */
#include "testing/engine/ranks.h"

#include "dist/comm.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16, SECONDS = 60 };

typedef struct mesh {
    int fd[MOST][MOST]; /* of rank a, to rank b; -1 */
} mesh;

static int line_to(const fth__comm *c, int other)
{
    return ((const mesh *)c->self)->fd[c->rank][other];
}

static fth_status lost(int other, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_MESSAGE, "rank %d does not answer", other);
}

static fth_status pipe_send(fth__comm *c, int to, const void *data, uint64_t bytes, fth_err *err)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t n = send(line_to(c, to), at, (size_t)bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return lost(to, err);
        at += n;
        bytes -= (uint64_t)n;
    }
    return FTH_OK;
}

static fth_status pipe_receive(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err)
{
    for (char *at = data; bytes > 0;) {
        const ssize_t n = recv(line_to(c, from), at, (size_t)bytes, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return lost(from, err);
        at += n;
        bytes -= (uint64_t)n;
    }
    return FTH_OK;
}

static fth_status pipe_broadcast(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err)
{
    if (c->rank != from) return pipe_receive(c, from, data, bytes, err);
    for (int r = 0; r < c->size; r++)
        if (r != from) FTH_TRY(pipe_send(c, r, data, bytes, err));
    return FTH_OK;
}

static fth_status pipe_agree_begin(fth__comm *c, int64_t value, fth_err *err)
{
    return c->rank > 0 ? pipe_send(c, 0, &value, sizeof value, err) : FTH_OK;
}

/* *value: what this rank began with. */
static fth_status pipe_agree_end(fth__comm *c, int64_t *value, fth_err *err)
{
    for (int r = 1; c->rank == 0 && r < c->size; r++) {
        int64_t other;
        FTH_TRY(pipe_receive(c, r, &other, sizeof other, err));
        if (other > *value) *value = other;
    }
    return pipe_broadcast(c, 0, value, sizeof *value, err);
}

static fth_status pipe_agree(fth__comm *c, int64_t *value, fth_err *err)
{
    FTH_TRY(pipe_agree_begin(c, *value, err));
    return pipe_agree_end(c, value, err);
}

static void pipe_abort(fth__comm *c, int exit_code)
{
    (void)c;
    _exit(exit_code);
}

static void pipe_close(fth__comm *c)
{
    (void)c;
}

static const fth__comm_ops pipes = {.name = "pipes",
                                    .send = pipe_send,
                                    .receive = pipe_receive,
                                    .broadcast = pipe_broadcast,
                                    .agree = pipe_agree,
                                    .agree_begin = pipe_agree_begin,
                                    .agree_end = pipe_agree_end,
                                    .abort = pipe_abort,
                                    .close = pipe_close};

static void make_mesh(mesh *m, int count)
{
    memset(m, -1, sizeof *m);
    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count; b++) {
            int two[2];
            EQ_I64(socketpair(AF_UNIX, SOCK_STREAM, 0, two), 0);
            m->fd[a][b] = two[0];
            m->fd[b][a] = two[1];
        }
}

static void close_lines(const mesh *m, int keep)
{
    for (int a = 0; a < MOST; a++)
        for (int b = 0; b < MOST; b++)
            if (a != keep && m->fd[a][b] >= 0) close(m->fd[a][b]);
}

static void be_rank(mesh *m, int rank, int count, t_rank_fn *fn, void *user, char *found)
{
    fth__comm c = {.ops = &pipes, .rank = rank, .size = count, .self = m};
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (int i = 0; i < 5; i++) signal(faults[i], SIG_DFL); /* not back into the test's cases */
    close_lines(m, rank);
    alarm(SECONDS);
    fn(fth__comm_ranks(&c), user, found);
    _exit(0);
}

char *t_ranks(int count, t_rank_fn *fn, void *user, uint64_t bytes)
{
    mesh m;
    pid_t pid[MOST];
    IS_TRUE(count >= 1 && count <= MOST && bytes > 0);
    char *found = mmap(NULL, (size_t)((uint64_t)count * bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IS_TRUE(found != MAP_FAILED);
    make_mesh(&m, count);
    fflush(NULL);
    for (int r = 0; r < count; r++) {
        pid[r] = fork();
        IS_TRUE(pid[r] >= 0);
        if (pid[r] == 0) be_rank(&m, r, count, fn, user, found + (uint64_t)r * bytes);
    }
    close_lines(&m, -1);
    bool well = true;
    for (int r = 0; r < count; r++) {
        int status = 0;
        waitpid(pid[r], &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        fprintf(stderr, "rank %d of %d ended with status 0x%x\n", r, count, (unsigned)status);
        well = false;
    }
    IS_TRUE(well);
    return found;
}

void t_ranks_free(char *found, int count, uint64_t bytes)
{
    munmap(found, (size_t)((uint64_t)count * bytes));
}

static void end_early(fth_ranks *ranks, void *user, void *found)
{
    (void)user;
    fth_err err = {0};
    if (fth_ranks_rank(ranks) == 0) (void)fth__comm_settle(fth__comm_of(ranks), FTH_OK, &err);
    memcpy(found, &err, sizeof err);
}

fth_status t_ranks_lost(fth_err *err)
{
    char *found = t_ranks(2, end_early, NULL, sizeof *err);
    memcpy(err, found, sizeof *err);
    t_ranks_free(found, 2, sizeof *err);
    return err->status;
}
