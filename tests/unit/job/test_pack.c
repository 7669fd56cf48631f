/* test_pack.c - tasks into memory, GPUs nobody has, and threads: order, limits, no starvation.
 * seconds: 2 */
#include "job/run/pack.h"
#include "testing/test.h"

#define GIB ((uint64_t)1 << 30)

static fth__pack machine(uint64_t host_gib, int gpus, uint64_t gpu_gib, int threads)
{
    fth_slot slot[FTH__PACK_SLOTS] = {{.device = "cpu", .free_bytes = host_gib * GIB}};
    for (int s = 1; s <= gpus; s++) slot[s].free_bytes = gpu_gib * GIB;
    const fth_runner_options opt = {
        .slot = slot, .n_slots = gpus + 1, .memory_bytes = host_gib * GIB};
    fth__pack pack;
    fth__pack_init(&pack, &opt, threads);
    return pack;
}

static fth__pack_task on_host(int64_t number, int stage, uint64_t gib)
{
    return (fth__pack_task){.number = number, .stage = stage, .cpu_bytes = gib * GIB};
}

static fth__pack_task on_gpu(int64_t number, int stage, uint64_t gib)
{
    return (fth__pack_task){.number = number,
                            .stage = stage,
                            .cpu_bytes = gib * GIB,
                            .device = true,
                            .host_bytes = GIB,
                            .gpu_bytes = gib * GIB};
}

TEST(the_budget_is_what_was_asked_for_or_nine_tenths_of_what_is_free)
{
    const fth_slot slot = {.device = "cpu", .free_bytes = 100 * GIB};
    fth_runner_options opt = {.slot = &slot, .n_slots = 1};
    fth__pack pack;
    fth__pack_init(&pack, &opt, 4);
    EQ_U64(pack.slot[0].total_bytes, 90 * GIB);
    EQ_I64(pack.jobs, 4);
    opt.memory_bytes = 8 * GIB;
    opt.jobs = 6;
    fth__pack_init(&pack, &opt, 4);
    EQ_U64(pack.slot[0].total_bytes, 8 * GIB);
    EQ_I64(pack.threads, 6); /* six jobs were asked for: one thread each */
    EQ_U64(fth__pack_share(&pack, 2), 4 * GIB);
    EQ_U64(fth__pack_share(&pack, 1000), 8 * GIB / 6);
}

TEST(earlier_stages_start_first_then_the_order_of_jobs)
{
    fth__pack pack = machine(64, 0, 0, 8);
    const fth__pack_task ready[] = {on_host(7, 2, 1), on_host(9, 1, 1), on_host(8, 1, 1)};
    fth__reservation r;
    EQ_I64(fth__pack_next(&pack, ready, 3, 3, &r), 2);
}

TEST(threads_are_shared_by_the_jobs_that_can_use_them)
{
    fth__pack pack = machine(64, 0, 0, 8);
    const fth__pack_task ready[] = {on_host(0, 0, 1), on_host(1, 0, 1), on_host(2, 0, 1)};
    fth__reservation r[3];
    EQ_I64(fth__pack_next(&pack, ready, 1, 1, &r[0]), 0);
    EQ_I64(r[0].threads, 8); /* alone */
    for (int i = 0; i < 3; i++) {
        EQ_I64(fth__pack_next(&pack, ready + i, 3 - i, 3 - i, &r[i]), 0);
        fth__pack_take(&pack, &r[i]);
    }
    EQ_I64(r[0].threads + r[1].threads + r[2].threads, 8);
    EQ_I64(r[0].threads, 2);
    for (int i = 0; i < 3; i++) fth__pack_release(&pack, &r[i]);
    EQ_I64(pack.threads_taken, 0);
    EQ_U64(pack.slot[0].taken_bytes, 0);
    fth__pack_release(&pack, &r[0]); /* not held any more: nothing happens */
    EQ_I64(pack.running, 0);
}

TEST(gpu_tasks_take_the_gpu_with_most_room_and_keep_a_margin)
{
    fth__pack pack = machine(64, 2, 24, 16);
    const fth__pack_task ready[] = {on_gpu(0, 1, 10), on_gpu(1, 1, 12), on_gpu(2, 1, 12)};
    fth__reservation r[3];
    for (int i = 0; i < 3; i++) {
        EQ_I64(fth__pack_next(&pack, &ready[i], 1, 16, &r[i]), 0);
        fth__pack_take(&pack, &r[i]);
    }
    EQ_I64(r[0].slot, 1);
    EQ_I64(r[1].slot, 2);
    EQ_I64(r[2].slot, 1); /* 11 GiB are taken there, 13 there */
    EQ_U64(pack.slot[1].taken_bytes, 24 * GIB);
}

TEST(one_task_falls_back_to_the_host_unless_only_gpus_may_be_used)
{
    fth__pack pack = machine(64, 1, 12, 16);
    pack.jobs_per_device = 1;
    const fth__pack_task ready[] = {on_gpu(0, 1, 2), on_gpu(1, 1, 2), on_gpu(2, 1, 2)};
    fth__reservation r;
    for (int i = 0; i < 2; i++) {
        EQ_I64(fth__pack_next(&pack, &ready[i], 1, 16, &r), 0);
        EQ_I64(r.slot, i == 0 ? 1 : 0);
        fth__pack_take(&pack, &r);
    }
    EQ_I64(fth__pack_next(&pack, &ready[2], 1, 16, &r), -1);
    const fth__pack_task feeder = on_host(3, 0, 1);
    EQ_I64(fth__pack_next(&pack, &feeder, 1, 16, &r), 0); /* needs no GPU */
    pack = machine(64, 1, 12, 16);
    pack.jobs_per_device = 1;
    pack.gpu_only = true;
    EQ_I64(fth__pack_next(&pack, ready, 1, 16, &r), 0);
    fth__pack_take(&pack, &r);
    EQ_I64(fth__pack_next(&pack, ready, 1, 16, &r), -1);
}

TEST(a_task_that_never_fits_is_told_so_with_both_numbers)
{
    fth__pack pack = machine(8, 1, 12, 4);
    fth_err err = {0};
    fth__pack_task task = on_host(0, 0, 9);
    IS_TRUE(!fth__pack_fits(&pack, &task, &err));
    EQ_I64(err.status, FTH_E_NO_FIT);
    HAS(err.text, "9.00 GiB");
    HAS(err.text, "8.00 GiB");
    task = on_gpu(0, 1, 20);
    fth_err_clear(&err);
    IS_TRUE(!fth__pack_fits(&pack, &task, &err));
    HAS(err.text, "21.00 GiB on a GPU");
    task = on_gpu(0, 1, 11); /* with the margin exactly */
    task.cpu_bytes = 100 * GIB;
    IS_TRUE(fth__pack_fits(&pack, &task, NULL));
    task.gpu_bytes = UINT64_MAX;
    IS_TRUE(!fth__pack_fits(&pack, &task, NULL));
    task = on_gpu(0, 1, 20);
    task.cpu_bytes = GIB; /* does not fit the card, but the host */
    IS_TRUE(fth__pack_fits(&pack, &task, NULL));
    pack.gpu_only = true;
    IS_TRUE(!fth__pack_fits(&pack, &task, NULL));
}

TEST(a_big_task_gets_its_turn_after_it_was_passed_often_enough)
{
    fth__pack pack = machine(8, 0, 0, 8);
    fth__reservation small, r;
    fth__pack_task ready[] = {on_host(0, 1, 8), on_host(1, 2, 2)};
    EQ_I64(fth__pack_next(&pack, ready + 1, 1, 2, &small), 0);
    fth__pack_take(&pack, &small);
    EQ_I64(fth__pack_next(&pack, ready, 2, 2, &r), 1); /* passes the big one */
    ready[0].passed = FTH__PACK_PATIENCE;
    EQ_I64(fth__pack_next(&pack, ready, 2, 2, &r), -1);
    fth__pack_release(&pack, &small);
    EQ_I64(fth__pack_next(&pack, ready, 2, 2, &r), 0);
}

TEST(who_waits_for_a_gpu_lets_host_tasks_pass)
{
    fth__pack pack = machine(8, 1, 12, 8);
    fth__reservation held, r;
    fth__pack_task ready[] = {on_gpu(0, 1, 10), on_host(1, 2, 2), on_host(2, 2, 7)};
    ready[0].cpu_bytes = 100 * GIB;
    EQ_I64(fth__pack_next(&pack, ready, 1, 8, &held), 0);
    fth__pack_take(&pack, &held);
    ready[0].passed = FTH__PACK_PATIENCE;
    EQ_I64(fth__pack_next(&pack, ready, 3, 3, &r), 1);
    EQ_I64(fth__pack_next(&pack, (fth__pack_task[]){ready[0], ready[2]}, 2, 2, &r), -1);
}

/* ---- property: random tasks on random machines ---- */

typedef struct running {
    fth__reservation r;
    int64_t until;
} running;

typedef struct simulation {
    fth__pack pack;
    fth__pack_task task[64];
    int64_t length[64];
    running run[64];
    int64_t n, n_running, started, now;
} simulation;

static void check_limits(const simulation *s)
{
    uint64_t host = 0, gpu[FTH__PACK_SLOTS] = {0};
    int threads = 0, on[FTH__PACK_SLOTS] = {0};
    for (int64_t i = 0; i < s->n_running; i++) {
        const fth__reservation *r = &s->run[i].r;
        host += r->host_bytes;
        gpu[r->slot] += r->gpu_bytes;
        on[r->slot]++;
        threads += r->threads;
        IS_TRUE(r->threads >= 1);
    }
    IS_TRUE(host <= s->pack.slot[0].total_bytes);
    IS_TRUE(threads <= s->pack.threads && s->n_running <= s->pack.jobs);
    for (int g = 1; g < s->pack.n_slots; g++) {
        IS_TRUE(gpu[g] <= s->pack.slot[g].total_bytes);
        if (s->pack.jobs_per_device) IS_TRUE(on[g] <= s->pack.jobs_per_device);
    }
}

static void make_simulation(simulation *s, t_random *rnd)
{
    *s = (simulation){
        .pack = machine((uint64_t)t_random_i64(rnd, 4, 64), (int)t_random_i64(rnd, 0, 4),
                        (uint64_t)t_random_i64(rnd, 2, 40), (int)t_random_i64(rnd, 1, 16))};
    s->pack.jobs = (int)t_random_i64(rnd, 1, s->pack.threads);
    s->pack.jobs_per_device = (int)t_random_i64(rnd, 0, 2);
    s->pack.gpu_only = t_random_i64(rnd, 0, 3) == 0;
    const int64_t wanted = t_random_i64(rnd, 1, 64);
    for (int64_t i = 0; i < wanted; i++) {
        fth__pack_task t = on_host(i, (int)t_random_i64(rnd, 0, 3), 0);
        t.cpu_bytes = t_random_u64(rnd) % (48 * GIB);
        t.device = t_random_i64(rnd, 0, 1);
        t.host_bytes = t_random_u64(rnd) % (4 * GIB);
        t.gpu_bytes = t_random_u64(rnd) % (32 * GIB);
        if (!fth__pack_fits(&s->pack, &t, NULL)) continue;
        s->length[s->n] = t_random_i64(rnd, 1, 50);
        s->task[s->n++] = t;
    }
}

/* Start all that can be started; the starts that a waiting task saw before its own are bounded. */
static void start_all(simulation *s, int64_t *n_ready)
{
    fth__reservation r;
    int64_t i;
    for (;;) {
        const int64_t waiting = *n_ready ? 1 + s->started * 7 % *n_ready : 0; /* a poor guess */
        i = fth__pack_next(&s->pack, s->task, *n_ready, waiting, &r);
        if (i < 0) return;
        for (int64_t k = 0; k < *n_ready; k++)
            if (k != i && fth__pack_before(&s->task[k], &s->task[i])) s->task[k].passed++;
        fth__pack_take(&s->pack, &r);
        s->run[s->n_running++] = (running){r, s->now + s->length[i]};
        --*n_ready;
        s->task[i] = s->task[*n_ready];
        s->length[i] = s->length[*n_ready];
        s->started++;
        check_limits(s);
    }
}

TEST(random_tasks_stay_within_every_limit_and_all_of_them_run)
{
    t_random rnd = t_random_make(1);
    for (int rep = 0; rep < 3000; rep++) {
        simulation s;
        make_simulation(&s, &rnd);
        int64_t n_ready = s.n;
        while (n_ready > 0 || s.n_running > 0) {
            start_all(&s, &n_ready);
            if (s.n_running == 0 && n_ready > 0)
                FAIL("rep %d: %d wait for ever", rep, (int)n_ready);
            s.now++;
            for (int64_t i = 0; i < s.n_running;) {
                if (s.run[i].until > s.now) {
                    i++;
                    continue;
                }
                fth__pack_release(&s.pack, &s.run[i].r);
                s.run[i] = s.run[--s.n_running];
            }
        }
        EQ_I64(s.started, s.n);
        EQ_I64(s.pack.running + s.pack.threads_taken + s.pack.fallen_back, 0);
        for (int g = 0; g < s.pack.n_slots; g++) EQ_U64(s.pack.slot[g].taken_bytes, 0);
    }
}

/* Small tasks arrive for ever; the big one that needs the whole machine still starts. */
TEST(an_endless_stream_of_small_tasks_does_not_starve_a_big_one)
{
    fth__pack pack = machine(8, 0, 0, 8);
    fth__pack_task ready[] = {on_host(0, 1, 8), on_host(1, 2, 1)};
    running run[64];
    int64_t n = 0, now = 0;
    for (; now < 1000; now++) {
        fth__reservation r;
        int64_t i;
        while ((i = fth__pack_next(&pack, ready, 2, 2, &r)) == 1) {
            ready[0].passed++;
            fth__pack_take(&pack, &r);
            run[n++] = (running){r, now + 3 + now % 4};
        }
        if (i == 0) break;
        for (int64_t k = 0; k < n;) {
            if (run[k].until > now) {
                k++;
                continue;
            }
            fth__pack_release(&pack, &run[k].r);
            run[k] = run[--n];
        }
    }
    IS_TRUE(now < 100);
}

TEST_MAIN()
