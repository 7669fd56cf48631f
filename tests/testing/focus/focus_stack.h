/* testing/focus/focus_stack.h - stacks of planes through a method of fusion, in any budget. */
#ifndef FATHOM_TESTING_FOCUS_STACK_H
#define FATHOM_TESTING_FOCUS_STACK_H

#include "instruments/focus/fuse/fuse.h"
#include "testing/engine/op_device.h"
#include "testing/test.h"

#include <fathom/io.h>
#include <fathom/plan.h>

#include <math.h>

/* [s z y x]; kept NULL: every plane. */
typedef struct t_stack {
    int64_t size[4];
    fth_dtype dtype;
    const void *data;
    const uint8_t *kept;
} t_stack;

typedef fo_picked t_method(fth_graph *g, fth_val stacks, fth_val kept, const fo_fusion *how);

typedef struct t_limits {
    uint64_t memory; /* of the context; 0: 256 MiB */
    int threads;     /* 0: 1 */
    bool resident;   /* the stack is memory that can be used in place */
    bool device;     /* on the backend of FATHOM_TEST_DEVICE, where there is one */
} t_limits;

static inline fth_status t_stack_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                      fth_err *err)
{
    const t_stack *t = self;
    const int64_t size = fth_dtype_size(t->dtype);
    char *to = dst;
    (void)err;
    for (int64_t s = lo[0]; s < lo[0] + n[0]; s++)
        for (int64_t z = lo[1]; z < lo[1] + n[1]; z++)
            for (int64_t y = lo[2]; y < lo[2] + n[2]; y++, to += n[3] * size)
                memcpy(to,
                       (const char *)t->data +
                           (((s * t->size[1] + z) * t->size[2] + y) * t->size[3] + lo[3]) * size,
                       (size_t)(n[3] * size));
    return FTH_OK;
}

/* Settings that no other part fills in. */
static inline fo_fusion t_fusion(fo_method method)
{
    return (fo_fusion){.method = method,
                       .levels = 4,
                       .window = 3,
                       .base = method == FO_CWT ? FO_BASE_MAX : FO_BASE_MEAN,
                       .consistency = 2,
                       .pad = 16};
}

/* Values (and planes, unless NULL) of a method; the plan's three numbers must hold. */
static inline void t_fuse(const t_stack *t, t_method *method, const fo_fusion *how, t_limits limit,
                          void *value, uint16_t *index)
{
    fth_options opt;
    fth_err err = {0};
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = limit.threads ? limit.threads : 1;
    opt.mem.budget_bytes = limit.memory ? limit.memory : (uint64_t)256 << 20;
    if (limit.device && t_device()) {
        opt.device = "cuda";
        opt.backend_path = getenv("FATHOM_TEST_DEVICE");
        opt.device_memory_bytes = (uint64_t)64 << 20;
    }
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    static const char *const axis[4] = {"stack", "z", "y", "x"};
    for (int i = 0; i < 4; i++) fth_axis(g, axis[i], t->size[i]);
    uint8_t *all = malloc((size_t)(t->size[0] * t->size[1]));
    memset(all, 1, (size_t)(t->size[0] * t->size[1]));
    t_stack copy = *t;
    t_stack mask = {{1, 1, t->size[0], t->size[1]}, FTH_U8, t->kept ? t->kept : all, NULL};
    fth_source source = {
        .kind = "made", .self = &copy, .dtype = t->dtype, .n_axes = 4, .read = t_stack_read};
    memcpy(source.size, t->size, sizeof t->size);
    if (limit.resident) memcpy(&source.data, &t->data, sizeof source.data);
    fth_tensor *kept_t = NULL, *out_t[2] = {NULL, NULL};
    fth_mem *mem = fth_context_mem(ctx);
    void *kept_data;
    memcpy(&kept_data, &mask.data, sizeof kept_data);
    OKE(fth_tensor_wrap(&kept_t, mem, "kept", FTH_U8, 2, t->size, kept_data, &err), &err);
    const fth_val stacks = fth_input(g, "stacks", t->dtype, "stack z y x", source);
    const fth_val kept = fth_input(g, "kept", FTH_U8, "stack z", fth_tensor_source(kept_t));
    const fo_picked p = method(g, stacks, kept, how);
    const fth_val out[2] = {p.value, p.index};
    const int64_t size[3] = {t->size[0], t->size[2], t->size[3]};
    const int n = index ? 2 : 1;
    fth_sink sink[2];
    if (!fth_val_ok(p.value)) {
        fth_graph_errors(g, 0, &err);
        OKE(err.status, &err);
    }
    OKE(fth_tensor_wrap(&out_t[0], mem, "value", fth_val_dtype(p.value), 3, size, value, &err),
        &err);
    sink[0] = fth_tensor_sink(out_t[0]);
    if (index) {
        OKE(fth_tensor_wrap(&out_t[1], mem, "index", FTH_U16, 3, size, index, &err), &err);
        sink[1] = fth_tensor_sink(out_t[1]);
    }
    const fth_limits limits = {.sinks = sink};
    fth_plan *plan = fth_plan_make(g, out, n, &limits, &err);
    OKE(plan ? FTH_OK : err.status, &err);
    fth_run_report report = {0};
    OKE(fth_run(plan, sink, NULL, &report, &err), &err);
    IS_TRUE(report.kept || T_SANITIZED);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    fth_tensor_release(kept_t);
    for (int i = 0; i < 2; i++) fth_tensor_release(out_t[i]);
    free(all);
    OKE(fth_context_destroy(ctx, &err), &err);
}

/* Whether the whole fusion of a stack of that size, images and numbers, can be planned within
 * `memory` bytes; nothing is read. */
static inline fth_status t_fuse_plan(const int64_t size[4], fth_dtype dtype, fo_method method,
                                     uint64_t memory, fth_err *err)
{
    fth_options opt;
    fth_err closed = {0};
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = memory;
    OKE(fth_context_create(&ctx, &opt, err), err);
    fth_graph *g = fth_graph_create(ctx);
    static const char *const axis[4] = {"stack", "z", "y", "x"};
    for (int i = 0; i < 4; i++) fth_axis(g, axis[i], size[i]);
    const fth_val stacks =
        fth_input(g, "stacks", dtype, "stack z y x", fth_source_zeros(dtype, 4, size));
    const fth_val present =
        fth_input(g, "present", FTH_U8, "stack z", fth_source_zeros(FTH_U8, 2, size));
    fo_fusion how = fo_fusion_default();
    how.method = method;
    OKE(fo_fusion_settle(&how, err), err);
    const fo_fused f = fo_fuse(g, stacks, present, &how);
    const fth_val out[3] = {f.image8, f.stats, f.index};
    fth_plan *plan = fth_plan_make(g, out, fth_val_ok(f.index) ? 3 : 2, NULL, err);
    const fth_status s = plan ? FTH_OK : err->status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &closed), &closed);
    return s;
}

/* A whole array of a file under tests/golden/focus; of an npz the member NAME (else NULL). */
static inline void *t_golden(const char *file, const char *name, int64_t bytes)
{
    char path[300];
    fth_err err = {0};
    fth_mem *mem = NULL;
    fth_source s;
    fth_npz *npz = NULL;
    const int64_t lo[FTH_MAX_AXES] = {0};
    OKE(fth_mem_create(&mem, &(fth_mem_options){.budget_bytes = 1 << 26}, &err), &err);
    snprintf(path, sizeof path, "tests/golden/focus/%s", file);
    if (name) {
        OKE(fth_npz_open(&npz, mem, path, &err), &err);
        OKE(fth_npz_source(npz, name, &s, &err), &err);
    } else {
        OKE(fth_npy_open(&s, mem, path, &err), &err);
    }
    int64_t n = fth_dtype_size(s.dtype);
    for (int i = 0; i < s.n_axes; i++) n *= s.size[i];
    EQ_I64(n, bytes);
    void *data = malloc((size_t)n);
    OKE(s.read(s.self, lo, s.size, data, &err), &err);
    fth_source_close(&s);
    if (npz) fth_npz_close(npz);
    OKE(fth_mem_destroy(mem, &err), &err);
    return data;
}

enum { GOLDEN_Z = 7, GOLDEN_Y = 96, GOLDEN_X = 80, GOLDEN_AREA = GOLDEN_Y * GOLDEN_X };

/* dB against the sharp scene, as quality.json was made: 8 bits of 1200 to 10200. */
static inline double t_eight(double v)
{
    const double n = (v - 1200) / 9000 * 255;
    return rint(n < 0 ? 0 : n > 255 ? 255 : n);
}
static inline double t_psnr(const double *image)
{
    uint16_t *truth = t_golden("truth_u16.npy", NULL, GOLDEN_AREA * 2);
    double sum = 0;
    for (int i = 0; i < GOLDEN_AREA; i++) {
        const double d = t_eight(image[i]) - t_eight(truth[i]);
        sum += d * d;
    }
    free(truth);
    return 10 * log10(255.0 * 255.0 / (sum / GOLDEN_AREA));
}

#endif
