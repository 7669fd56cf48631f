/* mpi.c - ranks through Open MPI, which is opened at run time: a program that was not started by
 * mpirun never loads it, and nothing is needed to build.
 *
 * Its ABI is fixed by the name of the library (libmpi.so.40: Open MPI 3 to 5): handles are
 * addresses of objects that the library exports. Other MPIs have other handles and are refused.
 */
#include "dist/comm.h"

#include "base/clock.h"
#include "base/hash.h"
#include "mem/heap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* What mpi.h of Open MPI says; there is no other source of these numbers. */
enum { SUCCESS = 0, SERIALIZED = 2, SHARED = 0, ANY = -1, TEXT = 256 };
/* Counts are ints, and one call should end before who watches thinks that it hangs. */
static const uint64_t most_bytes = (uint64_t)1 << 30;
enum { TAG = 71 }; /* one for all: messages between two ranks keep their order */
static const char library_name[] = "libmpi.so.40";

/* name, its type. C has no cast from an object's address to a function's; POSIX means that the
 * bytes agree. */
#define FUNCTIONS(X)                                                                               \
    X(MPI_Initialized, int (*)(int *))                                                             \
    X(MPI_Init_thread, int (*)(int *, char ***, int, int *))                                       \
    X(MPI_Finalize, int (*)(void))                                                                 \
    X(MPI_Comm_rank, int (*)(void *, int *))                                                       \
    X(MPI_Comm_size, int (*)(void *, int *))                                                       \
    X(MPI_Comm_split_type, int (*)(void *, int, int, void *, void **))                             \
    X(MPI_Comm_free, int (*)(void **))                                                             \
    X(MPI_Comm_set_errhandler, int (*)(void *, void *))                                            \
    X(MPI_Isend, int (*)(const void *, int, void *, int, int, void *, void **))                    \
    X(MPI_Irecv, int (*)(void *, int, void *, int, int, void *, void **))                          \
    X(MPI_Ibcast, int (*)(void *, int, void *, int, void *, void **))                              \
    X(MPI_Iallreduce, int (*)(const void *, void *, int, void *, void *, void *, void **))         \
    X(MPI_Test, int (*)(void **, int *, void *))                                                   \
    X(MPI_Iprobe, int (*)(int, int, void *, int *, void *))                                        \
    X(MPI_Error_string, int (*)(int, char *, int *))                                               \
    X(MPI_Abort, int (*)(void *, int))

#define OBJECTS(X)                                                                                 \
    X(ompi_mpi_comm_world)                                                                         \
    X(ompi_mpi_byte)                                                                               \
    X(ompi_mpi_int64_t)                                                                            \
    X(ompi_mpi_op_max)                                                                             \
    X(ompi_mpi_errors_return)                                                                      \
    X(ompi_mpi_info_null)

typedef struct mpi {
    fth__comm comm; /* first: a comm is its mpi */
    fth_mem *mem;
    void *so;
#define DECLARE(name, type) __typeof__((type)0) name;
    FUNCTIONS(DECLARE)
#undef DECLARE
#define DECLARE(name) void *name;
    OBJECTS(DECLARE)
#undef DECLARE
    /* An agreement on its way. */
    int64_t mine, most;
    void *agreement;
} mpi;

static mpi *of(fth__comm *c)
{
    return c->self;
}

static fth_status failed(const mpi *m, fth_status s, const char *doing, int code, fth_err *err)
{
    char text[TEXT + 1] = "";
    int n = 0;
    if (m->MPI_Error_string(code, text, &n) != SUCCESS) snprintf(text, sizeof text, "%d", code);
    return FTH_FAIL(err, s, "rank %d of %d: %s: MPI says: %s", m->comm.rank, m->comm.size, doing,
                    text);
}

/* ---- messages ---- */

/* Open MPI waits by asking again and again, which takes the core from ranks and workers that have
 * something to do. Here a rank asks for a while, in which the answer comes when all have cores of
 * their own, and then sleeps between its questions. */
static int wait_for(const mpi *m, int code, void *request)
{
    const double asking_s = 200e-6;
    const struct timespec pause = {.tv_nsec = 50000};
    const double t0 = fth__clock_seconds();
    int done = 0;
    while (code == SUCCESS && !done) {
        code = m->MPI_Test(&request, &done, NULL); /* NULL: MPI_STATUS_IGNORE */
        if (code == SUCCESS && !done && fth__clock_seconds() - t0 > asking_s)
            (void)nanosleep(&pause, NULL);
    }
    return code;
}

static int piece(uint64_t left)
{
    return (int)(left < most_bytes ? left : most_bytes);
}

/* All but the last piece; that one is on its way. */
static fth_status send_begin(fth__comm *c, int to, const void *data, uint64_t bytes, void **request,
                             fth_err *err)
{
    const mpi *m = of(c);
    const char *from = data;
    int code = SUCCESS;
    for (uint64_t left = bytes; code == SUCCESS && left > 0;) {
        const int n = piece(left);
        code = m->MPI_Isend(from, n, m->ompi_mpi_byte, to, TAG, m->ompi_mpi_comm_world, request);
        from += n;
        left -= (uint64_t)n;
        if (left > 0) code = wait_for(m, code, *request);
    }
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_MESSAGE, "sending", code, err);
}

static fth_status send_end(fth__comm *c, void **request, fth_err *err)
{
    const mpi *m = of(c);
    const int code = wait_for(m, SUCCESS, *request);
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_MESSAGE, "sending", code, err);
}

static fth_status send_all(fth__comm *c, int to, const void *data, uint64_t bytes, fth_err *err)
{
    void *request;
    FTH_TRY(send_begin(c, to, data, bytes, &request, err));
    return send_end(c, &request, err);
}

static fth_status receive(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err)
{
    const mpi *m = of(c);
    char *to = data;
    void *request = NULL;
    int code = SUCCESS;
    for (uint64_t left = bytes; code == SUCCESS && left > 0;) {
        const int n = piece(left);
        code = m->MPI_Irecv(to, n, m->ompi_mpi_byte, from, TAG, m->ompi_mpi_comm_world, &request);
        code = wait_for(m, code, request);
        to += n;
        left -= (uint64_t)n;
    }
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_MESSAGE, "receiving", code, err);
}

static fth_status broadcast(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err)
{
    const mpi *m = of(c);
    char *at = data;
    void *request = NULL;
    int code = SUCCESS;
    for (uint64_t left = bytes; code == SUCCESS && left > 0;) {
        const int n = piece(left);
        code = m->MPI_Ibcast(at, n, m->ompi_mpi_byte, from, m->ompi_mpi_comm_world, &request);
        code = wait_for(m, code, request);
        at += n;
        left -= (uint64_t)n;
    }
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_MESSAGE, "broadcasting", code, err);
}

/* In the ranks of one communicator. */
static int largest(const mpi *m, void *ranks, int64_t *value)
{
    const int64_t mine = *value;
    void *request = NULL;
    const int code = m->MPI_Iallreduce(&mine, value, 1, m->ompi_mpi_int64_t, m->ompi_mpi_op_max,
                                       ranks, &request);
    return wait_for(m, code, request);
}

static fth_status agree(fth__comm *c, int64_t *value, fth_err *err)
{
    const mpi *m = of(c);
    const int code = largest(m, m->ompi_mpi_comm_world, value);
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_MESSAGE, "agreeing", code, err);
}

static fth_status agree_begin(fth__comm *c, int64_t value, fth_err *err)
{
    mpi *m = of(c);
    m->mine = value;
    const int code = m->MPI_Iallreduce(&m->mine, &m->most, 1, m->ompi_mpi_int64_t,
                                       m->ompi_mpi_op_max, m->ompi_mpi_comm_world, &m->agreement);
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_MESSAGE, "agreeing", code, err);
}

static fth_status agree_end(fth__comm *c, int64_t *value, fth_err *err)
{
    const mpi *m = of(c);
    const int code = wait_for(m, SUCCESS, m->agreement);
    *value = m->most;
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_MESSAGE, "agreeing", code, err);
}

/* Open MPI moves messages in its calls; which one does not matter. */
static void push(fth__comm *c)
{
    const mpi *m = of(c);
    int there;
    (void)m->MPI_Iprobe(ANY, TAG, m->ompi_mpi_comm_world, &there, NULL);
}

static void end_all(fth__comm *c, int exit_code)
{
    (void)of(c)->MPI_Abort(of(c)->ompi_mpi_comm_world, exit_code);
}

/* ---- begin and end ---- */

/* The library stays: it registered functions for the end of the process. */
static void close_mpi(fth__comm *c)
{
    mpi *m = of(c);
    (void)m->MPI_Finalize();
    fth__heap_free(m->mem, m);
}

static const fth__comm_ops ops = {.name = "mpi",
                                  .send = send_all,
                                  .receive = receive,
                                  .broadcast = broadcast,
                                  .agree = agree,
                                  .send_begin = send_begin,
                                  .send_end = send_end,
                                  .agree_begin = agree_begin,
                                  .agree_end = agree_end,
                                  .push = push,
                                  .abort = end_all,
                                  .close = close_mpi};

static fth_status load(mpi *m, fth_err *err)
{
    const char *missing = NULL;
    m->so = dlopen(library_name, RTLD_NOW | RTLD_GLOBAL); /* its plug-ins look for its symbols */
    if (!m->so) {
        const char *why = dlerror();
        FTH_FAIL(
            err, FTH_E_RANKS,
            "the program was started as one of several ranks, and Open MPI cannot be opened: %s",
            why ? why : library_name);
        fth_err_hint(err, "install Open MPI 4 on every node (Debian: openmpi-bin)");
        return FTH_E_RANKS;
    }
    void *symbol;
#define FIND(name, type)                                                                           \
    if (!(symbol = dlsym(m->so, #name)))                                                           \
        missing = #name;                                                                           \
    else                                                                                           \
        memcpy(&m->name, &symbol, sizeof symbol);
    FUNCTIONS(FIND)
#undef FIND
#define FIND(name)                                                                                 \
    if (!(m->name = dlsym(m->so, #name))) missing = #name;
    OBJECTS(FIND)
#undef FIND
    if (!missing) return FTH_OK;
    FTH_FAIL(err, FTH_E_RANKS, "%s has no symbol '%s': it is not Open MPI", library_name, missing);
    fth_err_hint(err, "install Open MPI 4; MPICH and its relatives are not supported");
    return FTH_E_RANKS;
}

/* Ranks of this node, and whether they may all use the same cores: then each gets a share. */
static int look_around(mpi *m)
{
    void *node = NULL;
    int code = m->MPI_Comm_split_type(m->ompi_mpi_comm_world, SHARED, m->comm.rank,
                                      m->ompi_mpi_info_null, &node);
    if (code != SUCCESS) return code;
    code = m->MPI_Comm_size(node, &m->comm.local);
    cpu_set_t set;
    CPU_ZERO(&set);
    (void)sched_getaffinity(0, sizeof set, &set);
    const int64_t mine = (int64_t)(fth__hash_bytes(&set, sizeof set, 0) >> 2); /* never negative */
    int64_t most = mine, least = -mine;
    if (code == SUCCESS) code = largest(m, node, &most);
    if (code == SUCCESS) code = largest(m, node, &least);
    m->comm.core_share = most == -least ? m->comm.local : 1;
    (void)m->MPI_Comm_free(&node);
    return code;
}

/* Sockets that came into being in MPI_Init_thread. mpirun and its ranks exchange words of a few
 * bytes over them, and say several without waiting for an answer: then the network holds back the
 * second for 40 ms, as long as the receiver may take to acknowledge the first. */
enum { SOCKETS = 256 };

static void note_files(bool there[SOCKETS])
{
    for (int fd = 0; fd < SOCKETS; fd++) there[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void send_words_at_once(const bool before[SOCKETS])
{
    const int yes = 1;
    for (int fd = 0; fd < SOCKETS; fd++)
        if (!before[fd]) (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static fth_status start(mpi *m, fth_err *err)
{
    int there = 0, level = 0;
    bool before[SOCKETS];
    int code = m->MPI_Initialized(&there);
    if (code == SUCCESS && there)
        return FTH_FAIL(err, FTH_E_STATE, "MPI was started before in this process");
    note_files(before);
    if (code == SUCCESS) code = m->MPI_Init_thread(NULL, NULL, SERIALIZED, &level);
    send_words_at_once(before);
    if (code == SUCCESS)
        code = m->MPI_Comm_set_errhandler(m->ompi_mpi_comm_world, m->ompi_mpi_errors_return);
    if (code == SUCCESS) code = m->MPI_Comm_rank(m->ompi_mpi_comm_world, &m->comm.rank);
    if (code == SUCCESS) code = m->MPI_Comm_size(m->ompi_mpi_comm_world, &m->comm.size);
    if (code == SUCCESS) code = look_around(m);
    return code == SUCCESS ? FTH_OK : failed(m, FTH_E_RANKS, "starting", code, err);
}

fth_status fth_ranks_open_mpi(fth_ranks **out, fth_mem *mem, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(mpi), &block, err));
    mpi *m = block;
    m->mem = mem;
    m->comm = (fth__comm){.ops = &ops, .size = 1, .self = m};
    fth_status s = load(m, err);
    if (s == FTH_OK) s = start(m, err);
    if (s == FTH_OK && m->comm.size == 1) {
        close_mpi(&m->comm);
        return FTH_OK;
    }
    if (s != FTH_OK) {
        fth__heap_free(mem, m);
        return s;
    }
    *out = fth__comm_ranks(&m->comm);
    return FTH_OK;
}
