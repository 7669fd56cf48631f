/* device.c - cases of a device: opening it, finding PyTorch, comparing. */
#include "device.h"

#include <string.h>

enum { ALONE = 2 }; /* the first have no peer */
static const char *const names[] = {"device_calls",
                                    "device_replay",
                                    "device_copy",
                                    "device_chain",
                                    "device_chain_eager",
                                    "device_chain_copy",
                                    "device_sum",
                                    "device_sums_rows_3",
                                    "device_sums_rows_16",
                                    "device_sums_rows_64",
                                    "device_sums_rows_100",
                                    "device_sums_rows_256",
                                    "device_sums_rows_500",
                                    "device_sums_rows_4001",
                                    "device_sums_f16",
                                    "device_sums_f16_down",
                                    "device_sums_u8",
                                    "device_sums_u8_down",
                                    "device_filter_5x5",
                                    "device_filter_9x9",
                                    "device_filter_wrap",
                                    "device_dot",
                                    "device_dot_split",
                                    "device_dot_f16",
                                    "device_dot_bf16",
                                    "device_batched",
                                    "device_fft2_64",
                                    "device_fft2_512",
                                    "device_cholesky_small",
                                    "device_cholesky_3000_f32",
                                    "device_cholesky_3000_f64",
                                    "device_cholesky_8192_f32",
                                    "device_cholesky_8192_f64",
                                    "device_solve_3000_f32",
                                    "device_solve_3000_f64",
                                    "device_solve_8192_f32",
                                    "device_solve_8192_f64",
                                    "device_squares",
                                    "device_lower",
                                    "device_conv2d",
                                    "device_conv2d_plain",
                                    "device_conv2d_grad_input",
                                    "device_conv2d_grad_input_plain",
                                    "device_conv2d_grad_weight",
                                    "device_conv2d_grad_weight_plain",
                                    "bragg_device_f64",
                                    "bragg_device_f32",
                                    "bragg_device_small",
                                    "device_read",
                                    "device_local_terms",
                                    "device_local_gradient",
                                    "device_local_weights",
                                    "device_nearest",
                                    "device_poisson",
                                    "spatial_device_svgp",
                                    "spatial_device_svgp_large",
                                    "spatial_device_svgp_2gib",
                                    "spatial_device_lcgp",
                                    "spatial_device_analyze",
                                    "ptycho_device_train_16",
                                    "ptycho_device_train_128",
                                    "ptycho_device_infer",
                                    "ptycho_device_lsqml_100",
                                    "ptycho_device_lsqml_1000",
                                    "ptycho_device_epie",
                                    "focus_device_lap_pyr",
                                    "focus_device_cwt",
                                    "focus_device_log",
                                    "focus_device_log_smooth",
                                    "splat_blend_1m",
                                    "splat_blend_5m",
                                    "splat_blend_10m",
                                    "splat_iteration_1m",
                                    "splat_iteration_5m",
                                    "splat_iteration_10m",
                                    "splat_antialiased_1m",
                                    "splat_rays_1m",
                                    "splat_update_1m",
                                    "splat_update_5m",
                                    "splat_update_10m",
                                    "splat_loss",
                                    "splat_loss_masked",
                                    "splat_loss_grids",
                                    "splat_densify_split",
                                    "splat_densify_prune",
                                    "splat_rows_1m",
                                    "splat_rows_5m",
                                    "splat_rows_10m"};

static double run_torch(void *arg)
{
    return peer_python_run(((const device *)arg)->torch);
}

/* bench_pairs hands one pointer to both sides. */
typedef struct sides {
    device *d;
    bench_program *p;
    double seconds;
} sides;

static void ours(void *arg)
{
    bench_go(((sides *)arg)->p); /* returns when the device is done */
}
static double ours_kernels(void *arg)
{
    return ((sides *)arg)->p->report.device_seconds;
}
static double torch_kernels(void *arg)
{
    return peer_python_kernels(((sides *)arg)->d->torch);
}
static double torch(void *arg)
{
    return run_torch(((sides *)arg)->d);
}
static double known(void *arg)
{
    return ((sides *)arg)->seconds;
}

static double compare(device *d, const device_task *t, sides *s, double (*peer)(void *arg))
{
    if (t->p->status != FTH_OK) return 0;
    const bench_pair pair = {.name = t->name,
                             .shape = t->shape,
                             .peer_name = t->peer_name,
                             .threads = 1,
                             .amount = t->amount,
                             .unit = t->unit,
                             .limit = t->limit,
                             .bar = d->b->divide > 1 ? 0 : t->bar,
                             .ours = ours,
                             .ours_kernels = ours_kernels,
                             .peer_kernels = peer == torch ? torch_kernels : NULL,
                             .device = d->b->device,
                             .turns = 1,
                             .pairs = t->pairs,
                             .peer = peer,
                             .arg = s,
                             .planned = t->p->planned,
                             .measured = t->p->measured};
    bench_go(t->p); /* the second run records, the warm-up replays */
    return bench_pairs(d->b, &pair);
}

double device_compare(device *d, const device_task *t)
{
    sides s = {.d = d, .p = t->p};
    if (d->torch && peer_python_tell(d->torch, t->peer) > 0) return compare(d, t, &s, torch);
    bench_note(d->b, "SKIP %s against %s: %s", t->name, t->peer_name,
               d->torch ? "it could not prepare it" : d->why_not);
    device_task alone = *t;
    alone.bar = 0;
    alone.peer_name = "-";
    (void)compare(d, &alone, &s, known);
    return 0;
}

void device_against(device *d, const device_task *t, double seconds)
{
    sides s = {.d = d, .p = t->p, .seconds = seconds};
    (void)compare(d, t, &s, known);
}

int64_t device_size(const device *d, int64_t n)
{
    const int64_t less = n / d->b->divide;
    return less < 8 ? 8 : less;
}

void device_close(device *d, bench_program *p)
{
    d->b->failed += !bench_close(p);
}

/* ---- copies: a device of its own, so that nothing but the copy is between the marks ---- */

typedef struct copies {
    device *d;
    fth_mem_system mem;
    void *from, *to;
    uint64_t bytes;
    fth_mark *start, *stop;
    double seconds; /* between them */
    fth_err err;
    fth_status status;
} copies;

static void copy_once(void *arg)
{
    copies *c = arg;
    const fth_device_table *t = c->d->found.backend->device;
    fth_device *card = c->d->card;
    fth_status s = t->mark_set(card, FTH_LANE_COMPUTE, c->start, &c->err);
    if (s == FTH_OK) s = t->copy(card, FTH_LANE_COMPUTE, c->to, c->from, c->bytes, &c->err);
    if (s == FTH_OK) s = t->mark_set(card, FTH_LANE_COMPUTE, c->stop, &c->err);
    if (s == FTH_OK) s = t->host_wait(card, c->stop, &c->err);
    if (c->status == FTH_OK) c->status = s;
    c->seconds = s == FTH_OK ? t->seconds(card, c->start, c->stop) : 1e30;
}
static double copy_kernels(void *arg)
{
    return ((copies *)arg)->seconds;
}
static double copy_torch(void *arg)
{
    return run_torch(((copies *)arg)->d);
}
static double copy_torch_kernels(void *arg)
{
    return peer_python_kernels(((copies *)arg)->d->torch);
}
static double copy_known(void *arg)
{
    copy_once(arg);
    return -1; /* by the clock of the host, as ours */
}

static void time_copies(device *d, copies *c, int64_t n)
{
    char line[64], shape[32];
    snprintf(line, sizeof line, "copy %lld", (long long)n);
    snprintf(shape, sizeof shape, "%lldMi f32", (long long)(n >> 20));
    const bool torch_too = d->torch && peer_python_tell(d->torch, line) > 0;
    double best = 1e30;
    for (int i = 0; i < 9; i++) {
        copy_once(c);
        if (c->seconds < best) best = c->seconds;
    }
    d->copy_rate = 2e-9 * (double)c->bytes / best;
    const bench_pair pair = {.name = "device_copy",
                             .shape = shape,
                             .peer_name = torch_too ? "PyTorch copy_" : "itself",
                             .threads = 1,
                             .amount = 2e-9 * (double)c->bytes,
                             .unit = "GB/s",
                             .limit = d->copy_rate,
                             .ours = copy_once,
                             .ours_kernels = copy_kernels,
                             .peer_kernels = torch_too ? copy_torch_kernels : NULL,
                             .device = d->b->device,
                             .turns = 1,
                             .peer = torch_too ? copy_torch : copy_known,
                             .arg = c};
    const double seconds = bench_pairs(d->b, &pair);
    if (torch_too) d->torch_rate = pair.amount / seconds;
    bench_note(d->b, "copies: ours %.0f GB/s at best, PyTorch's %.0f GB/s", d->copy_rate,
               d->torch_rate);
}

void device_copy(device *d)
{
    const fth_device_table *t = d->found.backend->device;
    const int64_t n = device_size(d, (int64_t)256 << 20);
    copies c = {.d = d, .bytes = 4 * (uint64_t)n};
    t->get_memory(d->card, &c.mem);
    c.from = c.mem.map(c.mem.self, FTH_MEM_DIRECT, c.bytes);
    c.to = c.mem.map(c.mem.self, FTH_MEM_DIRECT, c.bytes);
    c.status = c.from && c.to ? FTH_OK : FTH_FAIL(&c.err, FTH_E_NOMEM, "no room for two arrays");
    if (c.status == FTH_OK) c.status = t->mark_create(d->card, &c.start, &c.err);
    if (c.status == FTH_OK) c.status = t->mark_create(d->card, &c.stop, &c.err);
    if (c.status == FTH_OK)
        c.status = t->fill(d->card, FTH_LANE_COMPUTE, c.from, 1, c.bytes, &c.err);
    if (c.status == FTH_OK) time_copies(d, &c, n);
    if (c.status != FTH_OK) {
        char text[2048];
        fth_err_format(&c.err, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        d->b->failed++;
    }
    if (c.start) t->mark_destroy(d->card, c.start);
    if (c.stop) t->mark_destroy(d->card, c.stop);
    if (c.from) (void)c.mem.unmap(c.mem.self, FTH_MEM_DIRECT, c.from, c.bytes);
    if (c.to) (void)c.mem.unmap(c.mem.self, FTH_MEM_DIRECT, c.to, c.bytes);
}

/* ---- the whole of it ---- */

static bool open_card(device *d, fth_err *err)
{
    const bench *b = d->b;
    if (fth_backend_probe(b->backend, &d->found, err) != FTH_OK) return false;
    const char *colon = strchr(b->device, ':');
    const int index = colon ? colon[1] - '0' : 0;
    const fth_device_table *t = d->found.backend->device;
    if (t->count(err) <= index || t->open(&d->card, index, err) != FTH_OK) return false;
    t->get_info(d->card, &d->info);
    return true;
}

/* Cases that have a peer in PyTorch. */
static void against_torch(device *d)
{
    const bench *b = d->b;
    const char *const none[] = {NULL};
    d->torch = peer_python_start_any(b->peers, "peer_cuda.py", none, &d->why_not);
    if (!d->torch) bench_note(b, "no PyTorch: %s", d->why_not);
    device_copy(d); /* what others are fractions of */
    device_chain(d);
    device_sums(d);
    device_filters(d);
    device_products(d);
    device_convolutions(d);
    device_transforms(d);
    device_solvers(d);
    device_densify(d);
    device_squares(d);
    device_reading(d);
    device_spatial(d);
    if (d->torch) peer_python_stop(d->torch);
}

static bool wants_any(const bench *b, const char *start, int from)
{
    bool any = false;
    for (int i = from; i < (int)(sizeof names / sizeof *names); i++)
        any |= strncmp(names[i], start, strlen(start)) == 0 && bench_wants(b, names[i]);
    return any;
}

void bench_device(bench *b)
{
    device d = {.b = b};
    fth_err err = {0};
    if (!wants_any(b, "", 0)) return;
    if (open_card(&d, &err)) {
        bench_note(b, "device: %s, %d multiprocessors", d.info.name, d.info.multiprocessors);
        device_replay(&d);
        if (wants_any(b, "device_", ALONE)) against_torch(&d);
        if (b->divide == 1) bench_bragg_device(b);
        if (b->divide == 1) bench_focus_device(b);
        if (b->divide == 1) bench_spatial_device(b);
        if (b->divide == 1) bench_ptycho_net_device(b);
        if (b->divide == 1) bench_ptycho_device(b);
        bench_splat_device(b);
        bench_splat_update_device(b);
        bench_splat_look_device(b);
        bench_splat_densify_device(b);
    } else {
        for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
            if (bench_wants(b, names[i])) bench_note(b, "SKIP %s: %s", names[i], err.text);
    }
    if (d.card) d.found.backend->device->close(d.card);
    fth_backend_forget(&d.found);
}
