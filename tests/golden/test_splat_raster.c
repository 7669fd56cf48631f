/* test_splat_raster.c - an image of 96 Gaussians, its loss and all gradients: in double to 1e-9 of
 * golden/splat, in single as close as it can be, and of the kernels that LichtFeld ran on a card;
 * the same on a device where there is one.
 *
 * labels: gpu
 * seconds: 3
 */
#include "instruments/splat/loss/loss.h"
#include "instruments/splat/raster/raster.h"
#include "testing/engine/op_device.h"
#include "testing/splat/splat.h"

#include <fathom/plan.h>
#include <math.h>

enum { W = 50, H = 42, N = 96 };
static const int64_t columns[GS_ATTRIBUTES] = {3, 3, 45, 3, 4, 1};

/* A golden array as f64, dense; freed by the caller. */
static double *golden(fth_mem *mem, const char *name, int64_t want)
{
    char path[200];
    fth_tensor *t = NULL;
    snprintf(path, sizeof path, SPLAT("%s.npy"), name);
    OK(fth_npy_load(mem, path, name, &t, NULL));
    int64_t n = 1;
    for (int d = 0; d < fth_tensor_axes(t); d++) n *= fth_tensor_size(t, d);
    EQ_I64(n, want);
    double *out = malloc((size_t)n * sizeof *out);
    const void *data = fth_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        out[i] = fth_tensor_dtype(t) == FTH_F64   ? ((const double *)data)[i]
                 : fth_tensor_dtype(t) == FTH_F32 ? (double)((const float *)data)[i]
                 : fth_tensor_dtype(t) == FTH_I32 ? (double)((const int32_t *)data)[i]
                 : fth_tensor_dtype(t) == FTH_I64 ? (double)((const int64_t *)data)[i]
                                                  : (double)((const uint8_t *)data)[i];
    fth_tensor_release(t);
    return out;
}

/* Everything of a run, as f64. */
typedef struct outcome {
    double splats[N * GS_SPLAT], image[H * W * 3], alpha[H * W], loss[3], slope[H * W * 3];
    double grad[GS_ATTRIBUTES][N * 45], bar[N * GS_SPLAT];
} outcome;

typedef struct setting {
    fth_dtype dtype;
    int degree, threads;
    bool little; /* memory */
    int64_t tile;
    bool device;
} setting;

static fth_tensor *tensor_of(fth_mem *mem, fth_dtype dtype, const double *v, int n,
                             const int64_t *size)
{
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "in", dtype, n, size, NULL));
    int64_t count = 1;
    for (int d = 0; d < n; d++) count *= size[d];
    for (int64_t i = 0; i < count; i++)
        if (dtype == FTH_F64)
            ((double *)fth_tensor_data(t))[i] = v[i];
        else
            ((float *)fth_tensor_data(t))[i] = (float)v[i];
    return t;
}

static void read_back(fth_tensor *t, double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = fth_tensor_dtype(t) == FTH_F64 ? ((const double *)fth_tensor_data(t))[i]
                                                : (double)((const float *)fth_tensor_data(t))[i];
}

/* View 0 of the golden scene. */
static void make_view(fth_mem *mem, int degree, double view[GS_VIEW])
{
    double *w2c = golden(mem, "in_w2c", 4 * 16), *intrinsics = golden(mem, "in_intr", 4 * 6),
           *ground = golden(mem, "in_bg", 3);
    memset(view, 0, GS_VIEW * sizeof *view);
    memcpy(view, w2c, 12 * sizeof *view);
    memcpy(view + GS_VIEW_FX, intrinsics, 4 * sizeof *view);
    memcpy(view + GS_VIEW_GROUND, ground, 3 * sizeof *view);
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 3; r++) view[GS_VIEW_CENTRE + k] -= w2c[4 * r + k] * w2c[4 * r + 3];
    view[GS_VIEW_DEGREE] = degree;
    free(w2c);
    free(intrinsics);
    free(ground);
}

static outcome *compute(const setting *how)
{
    static const char *const name[GS_ATTRIBUTES] = {"in_means",  "in_sh0",   "in_shN",
                                                    "in_scales", "in_quats", "in_opac"};
    fth_context *ctx = NULL;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = how->threads;
    opt.mem.budget_bytes = 64 << 20;
    opt.device = how->device ? "cuda" : "cpu";
    opt.backend_path = how->device ? getenv("FATHOM_TEST_DEVICE") : NULL;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_mem *mem = fth_context_mem(ctx);
    const fth_dtype real = how->dtype;
    double view[GS_VIEW], *target = golden(mem, "in_gt", 4 * H * W * 3);
    make_view(mem, how->degree, view);
    fth_tensor *in[GS_ATTRIBUTES], *out[12],
        *cam = tensor_of(mem, real, view, 1, (int64_t[]){GS_VIEW}),
        *truth = tensor_of(mem, real, target, 3, (int64_t[]){H, W, 3});
    fth_graph *g = fth_graph_create(ctx);
    const char *const axes[] = {"g", "xyz", "wxyz", "c", "k", "p", "view", "i", "j"};
    const int64_t sizes[] = {N, 3, 4, 3, 15, GS_SPLAT, GS_VIEW, H, W};
    for (int a = 0; a < 9; a++) IS_TRUE(fth_axis(g, axes[a], sizes[a]));
    gs_values model;
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        double *v = golden(mem, name[a], N * columns[a]);
        const int64_t size[3] = {N, a == GS_SH_N ? 15 : columns[a], 3};
        in[a] = tensor_of(mem, real, v, a == GS_SH_N ? 3 : a == GS_OPACITY ? 1 : 2, size);
        free(v);
        model.at[a] = fth_input(g, gs_attribute_names[a], real, gs_attribute_axes[a],
                                fth_tensor_source(in[a]));
    }
    const gs_raster rule = {.width = W,
                            .height = H,
                            .tile = how->tile,
                            .room = how->little ? 20000 : 400,
                            .most_alpha = 0.999};
    const fth_val vv = fth_input(g, "view", real, "view", fth_tensor_source(cam)),
                  tv = fth_input(g, "target", real, "i j c", fth_tensor_source(truth));
    const fth_val splats = gs_project(g, &rule, &model, vv), order = gs_order(g, &rule, splats),
                  image = gs_blend(g, &rule, splats, order, vv),
                  loss = gs_loss_of(g, 0.2, image, tv);
    fth_val wrt[GS_ATTRIBUTES + 1], grad[GS_ATTRIBUTES + 1], outs[12];
    for (int a = 0; a < GS_ATTRIBUTES; a++) wrt[a] = model.at[a];
    wrt[GS_ATTRIBUTES] = splats;
    OKE(fth_grad(loss, GS_ATTRIBUTES + 1, wrt, grad), &err);
    OKE(fth_graph_check(g, &err), &err);
    outcome *o = calloc(1, sizeof *o);
    double part[3] = {0};
    fth_sink sinks[14];
    int n = 0;
    outs[n++] = splats;
    outs[n++] = image;
    outs[n++] = fth_out(image, 1);
    outs[n++] = fth_out(loss, GS_LOSS_GRADIENT);
    for (int a = 0; a < GS_ATTRIBUTES + 1; a++) outs[n++] = grad[a];
    for (int i = 0; i < n; i++) {
        int64_t size[FTH_MAX_AXES];
        for (int d = 0; d < fth_val_axes(outs[i]); d++) size[d] = fth_val_size(outs[i], d);
        OK(fth_tensor_create(&out[i], mem, "out", real, fth_val_axes(outs[i]), size, NULL));
        sinks[i] = fth_tensor_sink(out[i]);
    }
    fth_val all[14];
    memcpy(all, outs, sizeof outs);
    for (int k = 0; k < 3; k++) {
        all[n + k] = k ? fth_out(loss, k) : loss;
        sinks[n + k] = fth_scalar_sink(FTH_F64, &part[k]);
    }
    fth_plan *plan = fth_plan_make(g, all, n + 3, &(fth_limits){0}, &err);
    if (!plan) FAIL("%s", err.text);
    fth_plan_info info;
    fth_plan_get_info(plan, &info);
    /* less and less memory, until the image is made in several pieces */
    uint64_t most = info.peak_bytes + info.foreign_bytes;
    while (how->little && info.chunks < 2) {
        fth_plan_destroy(plan);
        most -= 65536;
        const fth_limits limits = {.memory_bytes = how->device ? 0 : most,
                                   .device_bytes = how->device ? most : 0};
        plan = fth_plan_make(g, all, n + 3, &limits, &err);
        if (!plan) FAIL("%s", err.text);
        fth_plan_get_info(plan, &info);
    }
    OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
    read_back(out[0], o->splats, N * GS_SPLAT);
    read_back(out[1], o->image, H * W * 3);
    read_back(out[2], o->alpha, H * W);
    read_back(out[3], o->slope, H * W * 3);
    for (int a = 0; a < GS_ATTRIBUTES; a++) read_back(out[4 + a], o->grad[a], N * columns[a]);
    read_back(out[4 + GS_ATTRIBUTES], o->bar, N * GS_SPLAT);
    memcpy(o->loss, part, sizeof part);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    for (int i = 0; i < n; i++) fth_tensor_release(out[i]);
    for (int a = 0; a < GS_ATTRIBUTES; a++) fth_tensor_release(in[a]);
    fth_tensor_release(cam);
    fth_tensor_release(truth);
    free(target);
    OKE(fth_context_destroy(ctx, &err), &err);
    return o;
}

/* Columns of rows against a golden array, relative to its largest entry. */
static void near_columns(fth_mem *mem, const char *name, const double *got, int step, int wide,
                         double tol)
{
    double *want = golden(mem, name, N * wide), most = 0;
    for (int i = 0; i < N * wide; i++) most = fmax(most, fabs(want[i]));
    for (int g = 0; g < N; g++)
        for (int c = 0; c < wide; c++)
            if (fabs(got[g * step + c] - want[g * wide + c]) > tol * most)
                FAIL("%s[%d, %d]: %.17g, expected %.17g (largest %.3g)", name, g, c,
                     got[g * step + c], want[g * wide + c], most);
    free(want);
}

static void near_all(fth_mem *mem, const char *name, const double *got, int64_t n, double tol)
{
    double *want = golden(mem, name, n);
    for (int64_t i = 0; i < n; i++)
        if (fabs(got[i] - want[i]) > tol)
            FAIL("%s[%lld]: %.17g, expected %.17g", name, (long long)i, got[i], want[i]);
    free(want);
}

static double fact(const fth_json_value *meta, int degree, const char *name)
{
    char key[60];
    snprintf(key, sizeof key, "fwd_deg%d_%s", degree, name);
    return fth_json_get_real(meta, key, (double)NAN);
}

static void compare(fth_mem *mem, const outcome *o, int degree, double image, double slope,
                    double loss, double project)
{
    static const struct row {
        const char *name;
        gs_attribute attribute;
        int wide;
    } grads[] = {{"means", GS_MEANS, 3},    {"sh0", GS_SH_0, 3},       {"shN", GS_SH_N, 45},
                 {"scales", GS_SCALING, 3}, {"quats", GS_ROTATION, 4}, {"opac", GS_OPACITY, 1}};
    char name[60];
    fth_json *doc = NULL;
    OK(fth_json_load(&doc, mem, SPLAT("manifest.json"), NULL));
    const fth_json_value *meta = fth_json_get(fth_json_root(doc), "meta");
    NEAR(o->loss[GS_LOSS], fact(meta, degree, "loss"), loss);
    NEAR(o->loss[GS_LOSS_L1], fact(meta, degree, "l1"), loss);
    NEAR(o->loss[GS_LOSS_SSIM], fact(meta, degree, "ssim_valid"), loss);
    fth_json_destroy(doc);
#define NAME(text) (snprintf(name, sizeof name, "fwd_deg%d_" text, degree), name)
    near_all(mem, NAME("image"), o->image, H * W * 3, image);
    near_all(mem, NAME("alpha"), o->alpha, H * W, image);
    for (size_t k = 0; k < sizeof grads / sizeof grads[0]; k++) {
        snprintf(name, sizeof name, "fwd_deg%d_grad_%s", degree, grads[k].name);
        near_columns(mem, name, o->grad[grads[k].attribute], grads[k].wide, grads[k].wide, slope);
    }
    near_columns(mem, NAME("grad_m2"), o->bar, GS_SPLAT, 2, slope);
    if (degree != 3) return;
    double *tiles = golden(mem, "fwd_deg3_n_tiles", N), *m2 = golden(mem, "fwd_deg3_m2", 2 * N),
           *conic = golden(mem, "fwd_deg3_conic", 3 * N),
           *col = golden(mem, "fwd_deg3_col_raw", 3 * N), *depth = golden(mem, "fwd_deg3_depth", N),
           *op = golden(mem, "fwd_deg3_op", N);
    int64_t seen = 0, instances = 0;
    for (int g = 0; g < N; g++) {
        const double *s = o->splats + g * GS_SPLAT;
        EQ_F64(s[GS_TILES], tiles[g]);
        seen += s[GS_TILES] > 0;
        instances += (int64_t)s[GS_TILES];
        for (int a = 0; a < GS_ATTRIBUTES && !(s[GS_TILES] > 0); a++)
            for (int k = 0; k < columns[a]; k++) EQ_F64(o->grad[a][g * columns[a] + k], 0);
        if (!(s[GS_TILES] > 0)) continue;
        for (int k = 0; k < 2; k++)
            NEAR(s[GS_U + k], m2[2 * g + k], project * (1 + fabs(m2[2 * g + k])));
        for (int k = 0; k < 3; k++) {
            NEAR(s[GS_A + k], conic[3 * g + k],
                 project * (fabs(conic[3 * g]) + fabs(conic[3 * g + 2])));
            NEAR(s[GS_RED + k], col[3 * g + k], project * (1 + fabs(col[3 * g + k])));
        }
        NEAR(s[GS_Z], depth[g], project * depth[g]);
        NEAR(s[GS_O], op[g], project);
    }
    EQ_I64(seen, 93);
    EQ_I64(instances, 243);
    free(tiles);
    free(m2);
    free(conic);
    free(col);
    free(depth);
    free(op);
}

TEST(the_double_build_agrees_to_1e9)
{
    fth_mem *mem = t_mem(64 << 20);
    for (int degree = 0; degree <= 3; degree += 3) {
        outcome *o = compute(&(setting){FTH_F64, degree, 2, false, 16, false});
        compare(mem, o, degree, 1e-9, 1e-9, 1e-9, 1e-9);
        free(o);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(single_precision_agrees_as_far_as_it_can)
{
    fth_mem *mem = t_mem(64 << 20);
    for (int degree = 0; degree <= 3; degree += 3) {
        outcome *o = compute(&(setting){FTH_F32, degree, 2, false, 16, false});
        compare(mem, o, degree, 2e-5, 5e-4, 1e-5, 2e-5);
        free(o);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* What LichtFeld's own kernels gave on a card, in single precision as well. */
TEST(kernels_of_lichtfeld_agree)
{
    static const struct row {
        const char *name;
        int attribute, wide; /* attribute -1: on the image */
    } rows[] = {{"grad_means", GS_MEANS, 3},
                {"grad_sh0", GS_SH_0, 3},
                {"grad_shN", GS_SH_N, 45},
                {"grad_scales", GS_SCALING, 3},
                {"grad_quats", GS_ROTATION, 4},
                {"grad_opac", GS_OPACITY, 1},
                {"grad_m2", -1, 2}};
    outcome *o = compute(&(setting){FTH_F32, 3, 2, false, 16, false});
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        const int wide = rows[k].wide;
        char path[200];
        size_t bytes = 0;
        double most = 0;
        snprintf(path, sizeof path, SPLAT("fastgs_f32/%s.f32"), rows[k].name);
        float *want = (float *)(void *)t_file_read(path, &bytes);
        EQ_I64((int64_t)bytes, 4 * N * wide);
        for (int i = 0; i < N * wide; i++) most = fmax(most, fabs((double)want[i]));
        for (int i = 0; i < N * wide; i++)
            NEAR(rows[k].attribute < 0 ? o->bar[i / 2 * GS_SPLAT + i % 2]
                                       : o->grad[rows[k].attribute][i],
                 (double)want[i], 5e-4 * most);
        free(want);
    }
    free(o);
}

TEST(threads_budgets_and_tiles_change_no_bit)
{
    outcome *o = compute(&(setting){FTH_F32, 3, 1, false, 16, false});
    for (int threads = 1; threads <= 5; threads += 2) {
        /* little memory: the image is made a row of tiles at a time */
        outcome *p = compute(&(setting){FTH_F32, 3, threads, threads == 3, 16, false});
        SAME_BYTES(o, p, sizeof *o);
        free(p);
    }
    for (int64_t tile = 8; tile <= 32; tile *= 4) {
        outcome *p = compute(&(setting){FTH_F32, 3, 2, false, tile, false});
        SAME_BYTES(o->image, p->image, sizeof o->image);
        SAME_BYTES(o->alpha, p->alpha, sizeof o->alpha);
        free(p);
    }
    free(o);
}

/* Every promise of the CPU, with a device's kernels: as near to golden, nearer to the CPU, the same
 * bits in pieces and the same image with other tiles. */
TEST(a_device_agrees)
{
    if (!t_device()) SKIP("no FATHOM_TEST_DEVICE");
    fth_mem *mem = t_mem(64 << 20);
    for (int degree = 0; degree <= 3; degree += 3) {
        outcome *here = compute(&(setting){FTH_F32, degree, 2, false, 16, false}),
                *o = compute(&(setting){FTH_F32, degree, 1, false, 16, true}),
                *pieces = compute(&(setting){FTH_F32, degree, 1, true, 16, true}),
                *twice = compute(&(setting){FTH_F64, degree, 1, false, 16, true});
        compare(mem, o, degree, 2e-5, 5e-4, 1e-5, 2e-5);
        compare(mem, twice, degree, 1e-9, 1e-9, 1e-9, 1e-9);
        for (int i = 0; i < H * W * 3; i++) NEAR(o->image[i], here->image[i], 1e-5);
        for (int g = 0; g < N; g++)
            EQ_F64(o->splats[g * GS_SPLAT + GS_TILES], here->splats[g * GS_SPLAT + GS_TILES]);
        SAME_BYTES(o, pieces, sizeof *o);
        for (int64_t tile = 8; tile <= 32; tile *= 4) {
            outcome *p = compute(&(setting){FTH_F32, degree, 1, false, tile, true});
            SAME_BYTES(o->image, p->image, sizeof o->image);
            SAME_BYTES(o->alpha, p->alpha, sizeof o->alpha);
            free(p);
        }
        free(here);
        free(o);
        free(pieces);
        free(twice);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
