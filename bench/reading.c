/* reading.c - stacks from the page cache through a run, against plain preads by as many threads.
 *
 * The program takes one row of every plane, so that its kernels do next to nothing and what is
 * measured is how the data come in: on the processors into the arena, on a device through pinned
 * buffers. The peer reads the same bytes in parts of 1 MiB into a block of the arena's size.
 */
#include "device.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACKS = 8, PLANES = 17, ROWS = 2189, COLS = 1152, MOST_THREADS = 64, PART = 1 << 20 };

typedef struct reading {
    char path[64];
    uint64_t bytes; /* of the file */
    int64_t stacks;
    int threads, fd;
    char *block; /* of the peer */
    uint64_t block_bytes;
    atomic_uint_fast64_t next;
    fth_source source;
    uint16_t *out;
    bench_program p;
} reading;

static bool make_file(reading *r)
{
    snprintf(r->path, sizeof r->path, "/tmp/fathom-bench-XXXXXX");
    r->bytes = (uint64_t)r->stacks * PLANES * ROWS * COLS * 2;
    r->fd = mkstemp(r->path);
    if (r->fd < 0) return false;
    char *part = bench_array(PART);
    for (uint64_t i = 0; i < PART; i++) part[i] = (char)(i * 7 + i / 251);
    bool ok = true;
    for (uint64_t at = 0; ok && at < r->bytes; at += PART) {
        const uint64_t n = r->bytes - at < PART ? r->bytes - at : PART;
        ok = pwrite(r->fd, part, n, (off_t)at) == (ssize_t)n;
    }
    free(part);
    return ok;
}

/* ---- the peer ---- */

static void *read_parts(void *arg)
{
    reading *r = arg;
    for (;;) {
        const uint64_t at = atomic_fetch_add(&r->next, PART);
        if (at >= r->bytes) return NULL;
        const uint64_t n = r->bytes - at < PART ? r->bytes - at : PART;
        if (pread(r->fd, r->block + at % r->block_bytes, n, (off_t)at) != (ssize_t)n) abort();
    }
}

static double read_plainly(void *arg)
{
    reading *r = arg;
    pthread_t thread[MOST_THREADS];
    atomic_store(&r->next, 0);
    int n = 0;
    while (n + 1 < r->threads && pthread_create(&thread[n], NULL, read_parts, r) == 0) n++;
    (void)read_parts(r);
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
    return -1;
}

/* ---- ours ---- */

static void build(reading *r)
{
    bench_program *p = &r->p;
    if (p->status != FTH_OK) return;
    fth_axis(p->g, "stack", r->stacks);
    fth_axis(p->g, "z", PLANES);
    fth_axis(p->g, "y", ROWS);
    fth_axis(p->g, "x", COLS);
    fth_axis(p->g, "row", 1);
    const fth_raw_layout layout = {
        .dtype = FTH_U16, .n_axes = 4, .size = {r->stacks, PLANES, ROWS, COLS}};
    p->status = fth_raw_open(&r->source, fth_context_mem(p->ctx), r->path, &layout, &p->err);
    if (p->status != FTH_OK) return;
    const fth_val v = fth_input(p->g, "v", FTH_U16, "stack z y x", r->source);
    bench_output(p, fth_slice(v, "y", ROWS / 2, "row"), r->out);
    const fth_limits limits = {
        .stream = "stack", .min_pieces = r->stacks, .io_threads = r->threads, .sinks = p->sink};
    if (p->status == FTH_OK) p->plan = fth_plan_make(p->g, p->out, p->n_out, &limits, &p->err);
    if (!p->plan) {
        if (p->status == FTH_OK) p->status = p->err.status;
        return;
    }
    bench_go(p);
    p->planned = p->report.planned_bytes;
    p->measured = p->report.growth_bytes;
}

/* The source goes before the memory that it stands in, and after the graph that reads it. */
static void close_ours(bench *b, reading *r)
{
    fth_plan_destroy(r->p.plan);
    fth_graph_destroy(r->p.g);
    r->p.plan = NULL;
    r->p.g = NULL;
    fth_source_close(&r->source);
    b->failed += !bench_close(&r->p);
}

static void run_ours(void *arg)
{
    bench_go(&((reading *)arg)->p);
}

static double ours_kernels(void *arg)
{
    return ((reading *)arg)->p.report.device_seconds;
}

/* Every row that came out is the one in the file. */
static double wrong(void *arg)
{
    const reading *r = arg;
    uint16_t *row = bench_array(2 * COLS);
    double found = 0;
    for (int64_t i = 0; i < r->stacks * PLANES; i++) {
        const int64_t at = (i * ROWS + ROWS / 2) * COLS * 2;
        if (pread(r->fd, row, 2 * COLS, (off_t)at) != 2 * COLS) found++;
        found += memcmp(row, r->out + i * COLS, 2 * COLS) != 0;
    }
    free(row);
    return found;
}

static void one(bench *b, const char *name, int threads, const char *on, double bar)
{
    if (!bench_wants(b, name)) return;
    reading r = {.threads = threads < MOST_THREADS ? threads : MOST_THREADS};
    r.stacks = b->divide > 1 ? 2 : STACKS;
    r.out = bench_array(2ull * (uint64_t)r.stacks * PLANES * COLS);
    r.block_bytes = 4ull * PLANES * ROWS * COLS / PART * PART;
    r.block = bench_array(r.block_bytes + PART);
    if (!make_file(&r)) {
        bench_note(b, "SKIP %s: no room for a file in /tmp", name);
    } else {
        if (on)
            bench_open_within(&r.p, b, 0);
        else
            bench_open(&r.p, 1);
        build(&r);
        char shape[48], peer[48];
        snprintf(shape, sizeof shape, "%dx17x2189x1152 u16", (int)r.stacks);
        snprintf(peer, sizeof peer, "pread, %d thread%s", r.threads, r.threads > 1 ? "s" : "");
        const bench_pair pair = {.name = name,
                                 .shape = shape,
                                 .peer_name = peer,
                                 .threads = 1,
                                 .amount = 1e-9 * (double)r.bytes,
                                 .unit = "GB/s",
                                 .bar = b->divide > 1 ? 0 : bar,
                                 .ours = run_ours,
                                 .ours_kernels = on ? ours_kernels : NULL,
                                 .device = on,
                                 .peer = read_plainly,
                                 .residual = wrong,
                                 .arg = &r,
                                 .planned = r.p.planned,
                                 .measured = r.p.measured};
        if (r.p.status == FTH_OK) (void)bench_pairs(b, &pair);
        if (r.p.status == FTH_OK)
            bench_note(b, "%s: %.1f stacks/s; read %.0f %%, copy %.0f %%, kernels %.1f %% of it",
                       name, (double)r.stacks / r.p.report.seconds,
                       100 * r.p.report.read_seconds / r.p.report.seconds,
                       100 * r.p.report.copy_seconds / r.p.report.seconds,
                       100 * r.p.report.kernel_seconds / r.p.report.seconds);
        close_ours(b, &r);
    }
    if (r.fd >= 0) close(r.fd);
    (void)unlink(r.path);
    free(r.block);
    free(r.out);
}

void bench_reading(bench *b)
{
    one(b, "read", 1, NULL, 0.9);
    one(b, "read_2", 2, NULL, 0.9);
}

void device_reading(device *d)
{
    one(d->b, "device_read", (int)sysconf(_SC_NPROCESSORS_ONLN), d->b->device, 0.5);
}
