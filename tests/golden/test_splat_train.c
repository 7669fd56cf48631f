/* test_splat_train.c - 60 steps of Adam on four views in turn: the loss of every step and where the
 * Gaussians end, against golden/splat (train60); SSIM alone against its map and gradient. With a
 * device, there. The first plan has too little room, which changes nothing.
 *
 * labels: gpu
 * seconds: 3
 */
#include "instruments/splat/loss/loss.h"
#include "instruments/splat/raster/raster.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_harness.h"
#include "testing/splat/splat.h"

#include <fathom/optim.h>
#include <fathom/plan.h>
#include <math.h>

enum { W = 50, H = 42, N = 96, STEPS = 60, VIEWS = 4 };
static const char *const names[GS_ATTRIBUTES] = {"in_means",  "in_sh0",   "in_shN",
                                                 "in_scales", "in_quats", "in_opac"};

static fth_tensor *load(fth_mem *mem, const char *name)
{
    char path[200];
    fth_tensor *t = NULL;
    snprintf(path, sizeof path, SPLAT("%s.npy"), name);
    OK(fth_npy_load(mem, path, name, &t, NULL));
    return t;
}

/* A parameter of the shape that the operations take. */
static fth_tensor *param(fth_mem *mem, int a, bool zero)
{
    fth_tensor *from = load(mem, names[a]), *t = NULL;
    const int64_t wide = gs_columns((gs_attribute)a, 3), size[3] = {N, a == GS_SH_N ? 15 : wide, 3};
    OK(fth_tensor_create(&t, mem, names[a], FTH_F32,
                         a == GS_SH_N      ? 3
                         : a == GS_OPACITY ? 1
                                           : 2,
                         size, NULL));
    memset(fth_tensor_data(t), 0, (size_t)fth_tensor_bytes(t));
    if (!zero)
        memcpy(fth_tensor_data(t), fth_tensor_data(from), (size_t)(N * wide) * sizeof(float));
    fth_tensor_release(from);
    return t;
}

static void set_view(fth_mem *mem, int v, float *view)
{
    fth_tensor *pose = load(mem, "in_w2c"), *lens = load(mem, "in_intr"), *bg = load(mem, "in_bg");
    const float *w2c = (const float *)fth_tensor_data(pose) + 16 * v;
    memset(view, 0, GS_VIEW * sizeof *view);
    memcpy(view, w2c, 12 * sizeof *view);
    memcpy(view + GS_VIEW_FX, (const float *)fth_tensor_data(lens) + 6 * v, 4 * sizeof *view);
    memcpy(view + GS_VIEW_GROUND, fth_tensor_data(bg), 3 * sizeof *view);
    for (int k = 0; k < 3; k++) {
        double c = 0;
        for (int r = 0; r < 3; r++) c -= (double)w2c[4 * r + k] * (double)w2c[4 * r + 3];
        view[GS_VIEW_CENTRE + k] = (float)c;
    }
    view[GS_VIEW_DEGREE] = 3;
    fth_tensor_release(pose);
    fth_tensor_release(lens);
    fth_tensor_release(bg);
}

/* A training of everything by Adam. */
typedef struct trainer {
    fth_context *ctx;
    fth_mem *mem;
    fth_tensor *view, *target, *t[3][GS_ATTRIBUTES]; /* values and moments */
    double rate[GS_ATTRIBUTES], parts[3];
    int64_t step, room, need;
    bool listed; /* lists of tiles are made once */
    fth_graph *g;
    fth_plan *plan;
    fth_sink sinks[3 * GS_ATTRIBUTES + 3];
    fth_err err;
} trainer;

static void open_trainer(trainer *z, bool device, int64_t room)
{
    static const double rates[GS_ATTRIBUTES] = {1.6e-4, 2.5e-3, 2.5e-3 / 20, 5e-3, 1e-3, 5e-2};
    const int64_t image_size[3] = {H, W, 3}, view_size[1] = {GS_VIEW};
    fth_options opt;
    *z = (trainer){.room = room};
    memcpy(z->rate, rates, sizeof rates);
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 64 << 20;
    opt.device = device ? "cuda" : "cpu";
    opt.backend_path = device ? getenv("FATHOM_TEST_DEVICE") : NULL;
    OKE(fth_context_create(&z->ctx, &opt, &z->err), &z->err);
    z->mem = fth_context_mem(z->ctx);
    OK(fth_tensor_create(&z->view, z->mem, "view", FTH_F32, 1, view_size, NULL));
    OK(fth_tensor_create(&z->target, z->mem, "target", FTH_F32, 3, image_size, NULL));
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) z->t[k][a] = param(z->mem, a, k > 0);
}

static void make_plan(trainer *z)
{
    static const char *const axes[] = {"g", "xyz", "wxyz", "c", "k", "p", "view", "i", "j"};
    static const int64_t sizes[] = {N, 3, 4, 3, 15, GS_SPLAT, GS_VIEW, H, W};
    fth_val value[3][GS_ATTRIBUTES], grad[GS_ATTRIBUTES], outs[3 * GS_ATTRIBUTES + 3];
    gs_values model;
    fth_graph *g = z->g = fth_graph_create(z->ctx);
    for (int a = 0; a < 9; a++) IS_TRUE(fth_axis(g, axes[a], sizes[a]));
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            char name[40];
            snprintf(name, sizeof name, "%s%d", gs_attribute_names[a], k);
            value[k][a] = fth_param(g, name, gs_attribute_axes[a], z->t[k][a]);
        }
    memcpy(model.at, value[0], sizeof model.at);
    const gs_raster rule = {.width = W,
                            .height = H,
                            .tile = 16,
                            .room = z->room,
                            .need = &z->need,
                            .most_alpha = 0.999,
                            .listed = z->listed};
    const fth_val vv = fth_input(g, "view", FTH_F32, "view", fth_tensor_source(z->view)),
                  tv = fth_input(g, "target", FTH_F32, "i j c", fth_tensor_source(z->target)),
                  splats = gs_project(g, &rule, &model, vv), order = gs_order(g, &rule, splats),
                  loss = gs_loss_of(g, 0.2, gs_blend(g, &rule, splats, order, vv), tv);
    OK(fth_grad(loss, GS_ATTRIBUTES, model.at, grad));
    const fth_val at = fth_input(g, "step", FTH_I64, "", fth_scalar_source(FTH_I64, &z->step));
    int n = 0;
    for (int k = 0; k < 3; k++) {
        z->sinks[n] = fth_scalar_sink(FTH_F64, &z->parts[k]);
        outs[n++] = k ? fth_out(loss, k) : loss;
    }
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        char name[40];
        snprintf(name, sizeof name, "rate%d", a);
        const fth_val lr = fth_input(g, name, FTH_F64, "", fth_scalar_source(FTH_F64, &z->rate[a]));
        OK(fth_adam_step(&((fth_adam){0.9, 0.999, 1e-15, 0}), value[0][a], grad[a], value[1][a],
                         value[2][a], lr, at, outs + n));
        n += 3;
    }
    z->plan = fth_plan_make(g, outs, n, &(fth_limits){0}, &z->err);
    if (!z->plan) FAIL("%s", z->err.text);
}

static void drop_plan(trainer *z)
{
    fth_plan_destroy(z->plan);
    fth_graph_destroy(z->g);
}

static void close_trainer(trainer *z)
{
    drop_plan(z);
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) fth_tensor_release(z->t[k][a]);
    fth_tensor_release(z->view);
    fth_tensor_release(z->target);
    OKE(fth_context_destroy(z->ctx, &z->err), &z->err);
}

/* With too little room nothing changes, and what it needs is enough. */
static void find_room(trainer *z)
{
    char *before[3][GS_ATTRIBUTES];
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const size_t bytes = (size_t)fth_tensor_bytes(z->t[k][a]);
            before[k][a] = malloc(bytes);
            memcpy(before[k][a], fth_tensor_data(z->t[k][a]), bytes);
        }
    make_plan(z);
    IS(fth_run(z->plan, z->sinks, NULL, NULL, &z->err), FTH_E_STATE);
    IS_TRUE(z->need > z->room);
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            SAME_BYTES(before[k][a], fth_tensor_view(z->t[k][a]),
                       (size_t)fth_tensor_bytes(z->t[k][a]));
            free(before[k][a]);
        }
    drop_plan(z);
    z->err = (fth_err){0};
    z->room = z->need + z->need / 4;
}

/* `means`: where they are after so many steps. */
static void follow(bool device, bool listed, int steps, float means[3 * N])
{
    trainer z;
    open_trainer(&z, device, 3);
    z.listed = listed;
    fth_tensor *targets = load(z.mem, "in_gt"), *curve = load(z.mem, "train60_curve");
    const double *want = fth_tensor_data(curve);
    for (int i = 0; i < steps; i++) {
        set_view(z.mem, i % VIEWS, fth_tensor_data(z.view));
        memcpy(fth_tensor_data(z.target),
               (const float *)fth_tensor_data(targets) + i % VIEWS * H * W * 3,
               H * W * 3 * sizeof(float));
        z.step = i + 1;
        if (i == 0) find_room(&z);
        if (i == 0) make_plan(&z);
        OKE(fth_run(z.plan, z.sinks, NULL, NULL, &z.err), &z.err);
        for (int k = 0; k < 3; k++) NEAR(z.parts[k], want[3 * i + k], 1e-4);
        z.rate[GS_MEANS] *= pow(0.01, 1.0 / STEPS);
    }
    static const struct end {
        const char *name;
        int attribute;
    } ends[] = {{"train60_final_means", GS_MEANS},
                {"train60_final_opac", GS_OPACITY},
                {"train60_final_sh0", GS_SH_0}};
    for (int e = 0; steps == STEPS && e < 3; e++) {
        fth_tensor *last = load(z.mem, ends[e].name);
        const double *v = fth_tensor_data(last);
        const float *got = fth_tensor_view(z.t[0][ends[e].attribute]);
        double worst = 0;
        for (int64_t i = 0; i < N * gs_columns((gs_attribute)ends[e].attribute, 3); i++)
            worst = fmax(worst, fabs((double)got[i] - v[i]));
        LE_F64(worst, 1e-3);
        fth_tensor_release(last);
    }
    memcpy(means, fth_tensor_view(z.t[0][GS_MEANS]), 3 * N * sizeof *means);
    fth_tensor_release(targets);
    fth_tensor_release(curve);
    close_trainer(&z);
}

TEST(sixty_steps_follow_the_golden_curve)
{
    float end[3 * N];
    follow(t_device(), t_device(), STEPS, end);
}

TEST(lists_made_once_give_the_same_bits)
{
    float end[2][3 * N];
    for (int listed = 0; listed < 2; listed++) follow(t_device(), listed, 3, end[listed]);
    SAME_BYTES(end[0], end[1], sizeof end[0]);
}

/* A loss that is 1 - SSIM alone. */
TEST(ssim_and_its_gradient_are_the_golden_ones)
{
    enum { ROWS = 40, COLS = 48, ALL = 3 * ROWS * COLS };
    static double image[2][ROWS * COLS * 3], out[ROWS * COLS * 3];
    fth_mem *mem = t_mem(8 << 20);
    fth_tensor *a = load(mem, "ssim_a"), *b = load(mem, "ssim_b"),
               *want = load(mem, "ssim_grad_valid"), *map = load(mem, "ssim_map");
    for (int i = 0; i < ALL; i++) { /* planes to pixels */
        const int to = i % (ROWS * COLS) * 3 + i / (ROWS * COLS);
        image[0][to] = (double)((const float *)fth_tensor_data(a))[i];
        image[1][to] = (double)((const float *)fth_tensor_data(b))[i];
    }
    fth_graph *g = t_graph("i=40 j=48 c=3");
    const fth_val loss = gs_loss_of(g, 1, t_input(g, "a", FTH_F64, "i j c", image[0]),
                                    t_input(g, "b", FTH_F64, "i j c", image[1]));
    double ssim = 0, mean = 0;
    t_eval_f64(fth_out(loss, GS_LOSS_SSIM), &ssim);
    t_eval_f64(fth_out(loss, GS_LOSS_GRADIENT), out);
    for (int i = 0; i < ALL; i++) {
        const int row = i / COLS % ROWS, col = i % COLS;
        if (row >= 5 && row < ROWS - 5 && col >= 5 && col < COLS - 5)
            mean += ((const double *)fth_tensor_data(map))[i] / (3 * (ROWS - 10) * (COLS - 10));
        NEAR(-out[i % (ROWS * COLS) * 3 + i / (ROWS * COLS)],
             ((const double *)fth_tensor_data(want))[i], 1e-9);
    }
    NEAR(ssim, 0.9485909009356273, 1e-9);
    NEAR(ssim, mean, 1e-9);
    t_graph_free(g);
    fth_tensor_release(a);
    fth_tensor_release(b);
    fth_tensor_release(want);
    fth_tensor_release(map);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
