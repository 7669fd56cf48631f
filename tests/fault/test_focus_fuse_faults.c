/* test_focus_fuse_faults.c - fusions that run out of memory at every point.
 *
 * The n-th request fails, for every n: the status says so, nothing stays behind, and the next run
 * gives what an undisturbed one does.
 * seconds: 3
 */
#include "mem/inject.h"
#include "testing/focus/focus.h"

#include <fathom/plan.h>

enum { Z = 4, Y = 12, X = 17, COUNT = Z * Y * X };

typedef struct fusion {
    fth_context *ctx;
    uint16_t stack[COUNT];
    float floats[COUNT];
    uint8_t present[Z], image[Y * X];
    double stats[FO_STATS];
} fusion;

static void make(fusion *f)
{
    t_random r = t_random_make(1);
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 1;
    OK(fth_context_create(&f->ctx, &opt, NULL));
    for (int i = 0; i < COUNT; i++) {
        f->stack[i] = (uint16_t)t_random_i64(&r, 0, 4000);
        f->floats[i] = (float)f->stack[i];
    }
    memset(f->present, 1, Z);
}

static fth_status run(fusion *f, fo_fusion how, fth_dtype t, fth_err *err)
{
    fth_tensor *out[2] = {0};
    fth_plan *p = NULL;
    FTH_TRY(fo_fusion_settle(&how, err));
    fth_graph *g = fth_graph_create(f->ctx);
    if (!g) return FTH_E_NOMEM;
    void *const data = t == FTH_F32 ? (void *)f->floats : (void *)f->stack;
    const fth_source stacks = {
        .kind = "memory", .dtype = t, .n_axes = 4, .size = {1, Z, Y, X}, .data = data};
    const fth_source present = {
        .kind = "memory", .dtype = FTH_U8, .n_axes = 2, .size = {1, Z}, .data = f->present};
    fth_axis(g, "stack", 1);
    fth_axis(g, "z", Z);
    fth_axis(g, "y", Y);
    fth_axis(g, "x", X);
    const fth_val v = fth_input(g, "stacks", t, "stack z y x", stacks),
                  has = fth_input(g, "present", FTH_U8, "stack z", present);
    const fo_fused u = fo_fuse(g, v, has, &how);
    fth_mem *mem = fth_context_mem(f->ctx);
    fth_status s = fth_graph_check(g, err);
    if (s == FTH_OK)
        s = fth_tensor_wrap(&out[0], mem, "image", FTH_U8, 3, ((int64_t[]){1, Y, X}), f->image,
                            err);
    if (s == FTH_OK)
        s = fth_tensor_wrap(&out[1], mem, "stats", FTH_F64, 2, ((int64_t[]){1, FO_STATS}), f->stats,
                            err);
    if (s == FTH_OK) {
        const fth_sink sink[2] = {fth_tensor_sink(out[0]), fth_tensor_sink(out[1])};
        p = fth_plan_make(g, ((fth_val[]){u.image8, u.stats}), 2, &(fth_limits){.sinks = sink},
                          err);
        s = p ? fth_run(p, sink, NULL, NULL, err) : err->status;
    }
    fth_plan_destroy(p);
    fth_tensor_release(out[0]);
    fth_tensor_release(out[1]);
    fth_graph_destroy(g);
    return s;
}

static void every_request(fo_fusion how, fth_dtype t)
{
    static fusion f;
    uint8_t image[Y * X];
    double stats[FO_STATS];
    fth_err err = {0};
    make(&f);
    fth_mem *mem = fth_context_mem(f.ctx);
    OKE(run(&f, how, t, &err), &err);
    memcpy(image, f.image, sizeof image);
    memcpy(stats, f.stats, sizeof stats);
    fth__mem_inject(mem, 0, 0);
    OKE(run(&f, how, t, &err), &err);
    const int64_t requests = fth__mem_alloc_count(mem), step = requests / 60 + 1;
    for (int64_t n = 1; n <= requests; n += step) {
        err = (fth_err){0};
        fth__mem_inject(mem, n, 0);
        const fth_status s = run(&f, how, t, &err);
        fth__mem_inject(mem, 0, 0);
        if (s != FTH_OK) IS(s, FTH_E_NOMEM);
    }
    memset(f.image, 0, sizeof f.image);
    OKE(run(&f, how, t, &err), &err);
    SAME_BYTES(f.image, image, sizeof image);
    SAME_BYTES(f.stats, stats, sizeof stats);
    OKE(fth_context_destroy(f.ctx, &err), &err);
}

TEST(every_request_can_fail)
{
    fo_fusion how = fo_fusion_default();
    every_request(how, FTH_F32);
    how.method = FO_DEPTH;
    how.reject = FO_REJECT_AUTO;
    how.halo_guard = true;
    how.prefer = FO_PREFER_NEAR;
    every_request(how, FTH_U16);
    how = fo_fusion_default();
    how.compat = FO_COMPAT_YX1;
    every_request(how, FTH_U16);
}

TEST_MAIN()
