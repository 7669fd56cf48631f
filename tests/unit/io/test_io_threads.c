/* test_io_threads.c - several threads read and write, and nobody can tell but by the clock.
 * seconds: 5
 *
 * Sources and sinks here know who is inside of them: those that are not concurrent must never meet
 * two threads, and those that are wait until they do.
 */
#include "testing/engine/host_device.h"
#include "testing/full.h"
#include "testing/test.h"

#include "run/pieces.h"

#include <fathom/fathom.h>

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { FRAMES = 12, ROWS = 512, COLS = 400, FRAME = ROWS * COLS, ALL = FRAMES * FRAME };

static void nap(int milliseconds)
{
    nanosleep(&(struct timespec){0, milliseconds * 1000000L}, NULL);
}

/* ---- where a job is cut ---- */

static void check_cut(const fth__io_job *j, uint64_t aim, uint64_t most)
{
    const fth__pieces p = fth__job_cut(j, aim, most);
    uint64_t offset = 0;
    for (int64_t i = 0; i < p.count; i++) {
        const fth__piece part = fth__job_piece(&p, j, i);
        int64_t count = 1, at = 0;
        for (int d = 0; d < j->source->n_axes; d++) {
            IS_TRUE(part.n[d] > 0 && part.lo[d] >= j->lo[d]);
            IS_TRUE(part.lo[d] + part.n[d] <= j->lo[d] + j->n[d]);
            at = at * j->n[d] + part.lo[d] - j->lo[d];
            count *= part.n[d];
            if (most == 0 && j->source->part[d] > 1 && part.lo[d] > j->lo[d])
                EQ_I64(part.lo[d] % j->source->part[d], 0);
        }
        const uint64_t element = (uint64_t)fth_dtype_size(j->source->dtype);
        EQ_U64(part.offset, offset); /* the parts lie in a row, each dense */
        EQ_U64(part.offset, (uint64_t)at * element);
        EQ_U64(part.bytes, (uint64_t)count * element);
        if (most >= element) IS_TRUE(part.bytes <= most);
        offset += part.bytes;
    }
    EQ_U64(offset, fth__job_bytes(j));
}

/* A first part that is short says nothing about the others: none may exceed the room. */
TEST(no_part_exceeds_the_room_behind_a_short_one)
{
    const fth_source s = {.dtype = FTH_U8, .n_axes = 1, .size = {100}, .part = {40}};
    const fth__io_job j = {.source = &s, .lo = {30}, .n = {60}};
    check_cut(&j, 10, 20);
    check_cut(&j, 10, 0);
}

TEST(parts_cover_a_job_once_and_begin_where_the_source_wants)
{
    t_random rnd = t_random_make(1);
    for (int rep = 0; rep < 3000; rep++) {
        fth_source s = {.dtype = (fth_dtype)t_random_i64(&rnd, 0, FTH_DTYPE_COUNT - 1)};
        s.n_axes = (int)t_random_i64(&rnd, 0, 5);
        fth__io_job j = {.source = &s};
        for (int d = 0; d < s.n_axes; d++) {
            s.size[d] = t_random_i64(&rnd, 1, 12);
            s.part[d] = t_random_i64(&rnd, 0, 2) ? 0 : t_random_i64(&rnd, 1, 14);
            j.lo[d] = t_random_i64(&rnd, 0, s.size[d] - 1);
            j.n[d] = t_random_i64(&rnd, 1, s.size[d] - j.lo[d]);
        }
        const uint64_t aim = (uint64_t)t_random_i64(&rnd, 16, 4000);
        check_cut(&j, aim, 0);
        check_cut(&j, aim, (uint64_t)t_random_i64(&rnd, 16, 4000));
    }
}

/* ---- sources and sinks that know who is inside ---- */

typedef struct room {
    atomic_int inside, most, calls;
    atomic_bool early;  /* a part began elsewhere than asked for */
    int wait_for;       /* stay until so many were inside at once, */
    int slow;           /* or so many milliseconds, */
    struct room *meets; /* or until somebody is in there too */
    atomic_bool met;
    int64_t grain;           /* rows of a part */
    int64_t bad[2];          /* frames that fail, */
    int late[2];             /* after so many milliseconds */
    _Atomic(uintptr_t) only; /* the thread that came first */
    atomic_bool others;      /* another one came */
    uint16_t *kept;          /* sinks: what was written */
} room;

static void enter(room *r)
{
    const int n = atomic_fetch_add(&r->inside, 1) + 1;
    int most = atomic_load(&r->most);
    while (n > most && !atomic_compare_exchange_weak(&r->most, &most, n)) {
    }
    uintptr_t none = 0;
    const uintptr_t me = (uintptr_t)pthread_self();
    if (!atomic_compare_exchange_strong(&r->only, &none, me) && none != me) r->others = true;
    r->calls++;
    for (int i = 0; i < 400 && atomic_load(&r->most) < r->wait_for; i++) nap(5);
    for (int i = 0; i < 40 && r->meets && !r->met && r->meets->calls > 0; i++) {
        r->met = r->met || r->meets->inside > 0;
        nap(1);
    }
    nap(r->slow);
}

static fth_status leave(room *r, const int64_t *lo, const int64_t *n, fth_status code, fth_err *err)
{
    if (r->grain > 1 && lo[1] % r->grain != 0) r->early = true;
    fth_status s = FTH_OK;
    for (int i = 0; i < 2 && s == FTH_OK; i++) {
        if (r->bad[i] < lo[0] || r->bad[i] >= lo[0] + n[0]) continue;
        nap(r->late[i]);
        s = FTH_FAIL(err, code, "frame %lld is bad", (long long)r->bad[i]);
    }
    atomic_fetch_sub(&r->inside, 1);
    return s;
}

static uint16_t pixel(int64_t f, int64_t y, int64_t x)
{
    return (uint16_t)((f * 5003 + y * 131 + x * 7) & 0x3fff);
}

static fth_status read_frames(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    uint16_t *to = dst;
    enter(self);
    for (int64_t f = lo[0]; f < lo[0] + n[0]; f++)
        for (int64_t y = lo[1]; y < lo[1] + n[1]; y++)
            for (int64_t x = lo[2]; x < lo[2] + n[2]; x++) *to++ = pixel(f, y, x);
    return leave(self, lo, n, FTH_E_FILE_READ, err);
}

static fth_status write_frames(void *self, const int64_t *lo, const int64_t *n, const void *src,
                               fth_err *err)
{
    room *r = self;
    const uint16_t *from = src;
    enter(r);
    for (int64_t f = lo[0]; f < lo[0] + n[0]; f++)
        for (int64_t y = lo[1]; y < lo[1] + n[1]; y++)
            for (int64_t x = lo[2]; x < lo[2] + n[2]; x++)
                r->kept[(f * ROWS + y) * COLS + x] = *from++;
    return leave(self, lo, n, FTH_E_FILE_WRITE, err);
}

typedef struct setup {
    const fth_backend *backend; /* NULL: the CPU */
    int threads, io_threads;
    bool from_many, to_many; /* source and sink are concurrent */
    uint64_t memory;
    const char *stream;
    fth_run_report report;
    fth_run_options opt;
    fth_err err;
} setup;

static fth_source source_of(room *r, bool many)
{
    return (fth_source){.kind = "room",
                        .self = r,
                        .dtype = FTH_U16,
                        .n_axes = 3,
                        .size = {FRAMES, ROWS, COLS},
                        .read = read_frames,
                        .concurrent = many,
                        .part = {1, r->grain, 0}};
}

/* out = in + 1, from one room to another. */
static fth_status carry(setup *s, room *in, room *out)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = s->threads;
    if (s->backend) opt.device = "cuda", opt.backend = s->backend;
    opt.device_memory_bytes = 256 << 20;
    fth_context *ctx;
    s->err = (fth_err){0};
    OKE(fth_context_create(&ctx, &opt, &s->err), &s->err);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "f", FRAMES);
    fth_axis(g, "y", ROWS);
    fth_axis(g, "x", COLS);
    const fth_source from = source_of(in, s->from_many);
    const fth_sink to = {.kind = "room",
                         .self = out,
                         .dtype = FTH_U16,
                         .n_axes = 3,
                         .size = {FRAMES, ROWS, COLS},
                         .write = write_frames,
                         .concurrent = s->to_many,
                         .part = {1, out->grain, 0}};
    const fth_val x = fth_input(g, "x", FTH_U16, "f y x", from);
    const fth_val v = fth_add(x, fth_const(g, FTH_U16, 1));
    const fth_limits limits = {
        .memory_bytes = s->memory, .stream = s->stream, .io_threads = s->io_threads, .sinks = &to};
    fth_plan *p = fth_plan_make(g, &v, 1, &limits, &s->err);
    if (!p) OKE(s->err.status, &s->err);
    const fth_status got = fth_run(p, &to, &s->opt, &s->report, &s->err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    OK(fth_context_destroy(ctx, NULL));
    return got;
}

static uint16_t *make_picture(void)
{
    return malloc(sizeof(uint16_t) * ALL);
}

static void check_picture(const uint16_t *p)
{
    for (int64_t f = 0, i = 0; f < FRAMES; f++)
        for (int64_t y = 0; y < ROWS; y++)
            for (int64_t x = 0; x < COLS; x++, i++)
                if (p[i] != (uint16_t)(pixel(f, y, x) + 1))
                    FAIL("frame %d, row %d, column %d is wrong", (int)f, (int)y, (int)x);
}

static const room empty = {.bad = {-1, -1}};

/* ---- results ---- */

/* Threads, budgets, both kinds of sources and sinks, with and without a device: the same bytes, and
 * memory as planned. */
TEST(the_same_bytes_for_any_number_of_threads)
{
    static const struct {
        uint64_t memory;
        const char *stream;
    } limit[] = {{0, NULL}, {4 << 20, "f"}, {1200 << 10, "y"}};
    uint16_t *picture = make_picture();
    /* by fives each of them is met */
    for (int k = 0; k < 3 * 2 * 4; k += t_one_in(1, 5)) {
        const int many = k % 4, threads = 1 + (k * 7 + k / 4) % 4;
        setup s = {.backend = k / 4 % 2 ? &t_host_backend : NULL,
                   .threads = threads,
                   .from_many = many & 1,
                   .to_many = many & 2,
                   .memory = limit[k / 8].memory,
                   .stream = limit[k / 8].stream};
        room in = empty, out = empty;
        in.grain = k % 3 ? 100 : 0;
        out.kept = picture;
        memset(picture, 0xee, sizeof *picture * ALL);
        OKE(carry(&s, &in, &out), &s.err);
        check_picture(picture);
        if (!T_SANITIZED) IS_TRUE(s.report.kept);
        IS_TRUE(s.report.io_threads >= 1 && s.report.io_threads <= threads);
        if (!s.from_many) IS_TRUE(in.most == 1 && !in.others);
        if (!s.to_many) IS_TRUE(out.most == 1 && !out.others);
        IS_TRUE(s.report.read_seconds > 0.0 && s.report.write_seconds > 0.0);
        IS_TRUE(s.report.io_seconds + 1e-9 >= s.report.read_seconds);
        IS_TRUE(s.report.kernel_seconds > 0.0 && s.report.kernel_seconds <= s.report.seconds);
        IS_TRUE((s.report.copy_seconds > 0.0) == (s.backend != NULL));
    }
    free(picture);
}

/* They wait for each other inside: with fewer threads the case would not end well. */
TEST(several_threads_are_inside_at_once)
{
    uint16_t *picture = make_picture();
    for (int k = 0; k < 2; k++) {
        setup s = {.backend = k ? &t_host_backend : NULL,
                   .threads = 1,
                   .io_threads = 4,
                   .from_many = true,
                   .to_many = true};
        room in = empty, out = empty;
        in.grain = 100;
        in.wait_for = out.wait_for = 3;
        out.kept = picture;
        OKE(carry(&s, &in, &out), &s.err);
        check_picture(picture);
        IS_TRUE(!in.early);
        IS_TRUE(in.most >= 3 && in.most <= 4 && out.most >= 3 && out.most <= 4);
        EQ_I64(s.report.io_threads, 4);
    }
    free(picture);
}

/* A source that wants one thread is read while a concurrent sink is written, and the reverse. */
TEST(reading_goes_on_while_others_write)
{
    uint16_t *picture = make_picture();
    for (int k = 0; k < 2; k++) {
        setup s = {
            .threads = 2, .from_many = k == 0, .to_many = k == 1, .memory = 4 << 20, .stream = "f"};
        room in = empty, out = empty;
        in.meets = &out;
        out.slow = 10; /* long enough to be met in there */
        out.kept = picture;
        OKE(carry(&s, &in, &out), &s.err);
        check_picture(picture);
        IS_TRUE(in.met);
    }
    free(picture);
}

/* ---- errors ---- */

/* Two frames fail, and the later one sooner: the words are of the first. */
TEST(the_first_in_the_data_speaks)
{
    uint16_t *picture = make_picture();
    for (int k = 0; k < 16; k++) {
        const bool write = k & 1, device = k & 2;
        setup s = {.backend = device ? &t_host_backend : NULL,
                   .threads = 4,
                   .from_many = true,
                   .to_many = true,
                   .memory = k & 4 ? 4 << 20 : 0,
                   .stream = k & 4 ? "f" : NULL};
        room in = empty, out = empty;
        room *r = write ? &out : &in;
        r->bad[0] = 1, r->bad[1] = k & 8 ? 11 : 2;
        r->late[0] = 20;
        out.kept = picture;
        IS(carry(&s, &in, &out), write ? FTH_E_FILE_WRITE : FTH_E_FILE_READ);
        HAS(s.err.text, "frame 1 is bad");
        HAS(s.err.text, write ? "output" : "input 'x'");
        EQ_I64(atomic_load(&in.inside), 0);
        EQ_I64(atomic_load(&out.inside), 0);
    }
    free(picture);
}

static bool until_begun(void *user, const fth_progress *p)
{
    (void)p;
    return atomic_load(&((room *)user)->calls) == 0;
}

TEST(cancelling_stops_all_of_them)
{
    uint16_t *picture = make_picture();
    for (int k = 0; k < 2; k++) {
        room in = empty, out = empty;
        setup s = {.backend = k ? &t_host_backend : NULL,
                   .threads = 3,
                   .from_many = true,
                   .to_many = true,
                   .opt = {until_begun, &in}};
        in.slow = 200; /* milliseconds of each part */
        out.kept = picture;
        IS(carry(&s, &in, &out), FTH_E_CANCELLED);
        IS_TRUE(in.calls <= 6 && out.calls == 0 && in.inside == 0);
    }
    free(picture);
}

/* ---- memory ---- */

/* Arrays of the caller are copied to a device and back by several threads too. */
TEST(arrays_are_copied_by_several)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 4;
    opt.device = "cuda";
    opt.backend = &t_host_backend;
    opt.device_memory_bytes = 256 << 20;
    fth_context *ctx;
    OK(fth_context_create(&ctx, &opt, NULL));
    const int64_t size[] = {FRAMES, ROWS, COLS};
    fth_tensor *from, *to;
    OK(fth_tensor_create(&from, fth_context_mem(ctx), "from", FTH_U16, 3, size, NULL));
    OK(fth_tensor_create(&to, fth_context_mem(ctx), "to", FTH_U16, 3, size, NULL));
    uint16_t *at = fth_tensor_data(from);
    for (int64_t f = 0; f < FRAMES; f++)
        for (int64_t y = 0; y < ROWS; y++)
            for (int64_t x = 0; x < COLS; x++) *at++ = pixel(f, y, x);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "f", FRAMES);
    fth_axis(g, "y", ROWS);
    fth_axis(g, "x", COLS);
    const fth_val x = fth_input(g, "x", FTH_U16, "f y x", fth_tensor_source(from));
    const fth_val v = fth_add(x, fth_const(g, FTH_U16, 1));
    const fth_sink sink = fth_tensor_sink(to);
    fth_plan *p = fth_plan_make(g, &v, 1, (&(fth_limits){.sinks = &sink}), NULL);
    fth_run_report report;
    for (int rep = 0; rep < 2; rep++) {
        memset(fth_tensor_data(to), 0, fth_tensor_bytes(to));
        OK(fth_run(p, &sink, NULL, &report, NULL));
        check_picture(fth_tensor_data(to));
        EQ_I64(report.io_threads, 4);
    }
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    fth_tensor_release(from);
    fth_tensor_release(to);
    OK(fth_context_destroy(ctx, NULL));
}

/* What each thread takes is set apart before the run. */
TEST(what_threads_take_is_planned)
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    fth_context *ctx;
    OK(fth_context_create(&ctx, &opt, NULL));
    uint64_t allowance[3];
    for (int k = 0; k < 3; k++) {
        room in = empty;
        fth_graph *g = fth_graph_create(ctx);
        fth_axis(g, "f", FRAMES);
        fth_axis(g, "y", ROWS);
        fth_axis(g, "x", COLS);
        fth_source from = source_of(&in, true);
        from.thread_bytes = k ? 5 << 20 : 0;
        const fth_val x = fth_input(g, "x", FTH_U16, "f y x", from), v = fth_rmax(x, "f y x");
        const fth_limits limits = {.io_threads = k == 2 ? 6 : 0};
        fth_plan *p = fth_plan_make(g, &v, 1, &limits, NULL);
        fth_plan_info info;
        fth_plan_get_info(p, &info);
        allowance[k] = info.allowance_bytes;
        fth_plan_destroy(p);
        fth_graph_destroy(g);
    }
    EQ_U64(allowance[1] - allowance[0], 2 * (5 << 20));
    EQ_U64(allowance[2] - allowance[0], 6 * (5 << 20) + 4 * (64 << 10));
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
