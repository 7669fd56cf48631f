/* test_splat_bits.c - Gaussians on the image, the image and alpha have the same bits on the CPU and
 * on a device (FATHOM_TEST_DEVICE): plain, antialiased, and through every kind of lens.
 * labels: gpu
 * seconds: 3 */
#include "instruments/splat/raster/raster.h"
#include "testing/engine/op_device.h"
#include "testing/test.h"

#include <fathom/isa.h>
#include <fathom/plan.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 1500, WIDE = 70, HIGH = 50, DEGREE = 3, OUTPUTS = 3 };

typedef struct look {
    const char *name;
    int64_t rays, antialias;
    float lens, reach, bend[GS_BENDS];
} look;

static const look looks[] = {
    {"plain", 0, 0, 0, 0, {0}},
    {"antialiased", 0, 1, 0, 0, {0}},
    {"pinhole by rays", 1, 0, 0, 0, {0}},
    {"radial", 1, 0, 1, 1.2f, {-0.12f, 0.02f, 0, 0, 0, 0, 0, 0.004f, -0.006f}},
    {"fisheye", 1, 1, 2, 1.5f, {-0.03f, 0.01f, -0.004f, 0.001f}},
};

typedef struct scene {
    float *at[GS_ATTRIBUTES], view[GS_VIEW];
} scene;

/* Many small Gaussians one behind the other, so that alpha and light come to their limits often. */
static void make_scene(scene *s, const look *l, t_random *r)
{
    static const double scale[GS_ATTRIBUTES] = {1, 0.8, 0.3, 0.8, 1, 2.5},
                        shift[GS_ATTRIBUTES] = {0, 0.3, 0, -2.2, 0, 1};
    const float pose[12] = {1, 0, 0, 0.1f, 0, 1, 0, -0.05f, 0, 0, 1, 4};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t n = ROWS * gs_columns((gs_attribute)a, DEGREE);
        s->at[a] = malloc((size_t)n * sizeof(float));
        for (int64_t i = 0; i < n; i++)
            s->at[a][i] = (float)(scale[a] * t_random_normal(r) + shift[a]);
    }
    memset(s->view, 0, sizeof s->view);
    memcpy(s->view, pose, sizeof pose);
    s->view[GS_VIEW_FX] = 0.9f * WIDE;
    s->view[GS_VIEW_FY] = 0.8f * WIDE;
    s->view[GS_VIEW_CX] = 0.52f * WIDE;
    s->view[GS_VIEW_CY] = 0.47f * HIGH;
    for (int c = 0; c < 3; c++) {
        s->view[GS_VIEW_CENTRE + c] = -pose[4 * c + 3];
        s->view[GS_VIEW_GROUND + c] = 0.2f + 0.1f * (float)c;
    }
    s->view[GS_VIEW_DEGREE] = DEGREE;
    s->view[GS_VIEW_LENS] = l->lens;
    s->view[GS_VIEW_REACH] = l->reach;
    memcpy(s->view + GS_VIEW_BEND, l->bend, sizeof l->bend);
}

static fth_val param(fth_graph *g, fth_mem *mem, fth_tensor **keep, const char *name,
                     const char *axes, int n, const int64_t *size, const float *from)
{
    OK(fth_tensor_create(keep, mem, name, FTH_F32, n, size, NULL));
    memcpy(fth_tensor_data(*keep), from, (size_t)fth_tensor_bytes(*keep));
    return fth_param(g, name, axes, *keep);
}

/* Splats, image and alpha of a scene, by a context of the CPU or with the device. */
static void draw(const scene *s, const look *l, bool device, fth_tensor *made[OUTPUTS],
                 fth_context **ctx)
{
    const int64_t numbers = l->rays ? GS_RAY_SPLAT : GS_SPLAT;
    const gs_raster rule = {.width = WIDE,
                            .height = HIGH,
                            .tile = 16,
                            .room = 40 * ROWS,
                            .most_alpha = 0.999,
                            .antialias = l->antialias,
                            .rays = l->rays};
    static const char *const axes[] = {"g", "xyz", "wxyz", "c", "k", "p", "view", "i", "j"};
    const int64_t sizes[] = {ROWS, 3, 4, 3, 15, numbers, GS_VIEW, HIGH, WIDE};
    fth_tensor *keep[GS_ATTRIBUTES + 1];
    gs_values model;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 2;
    if (device) opt.device = "cuda", opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    OKE(fth_context_create(ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(*ctx);
    fth_mem *mem = fth_context_mem(*ctx);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) (void)fth_axis(g, axes[i], sizes[i]);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        model.at[a] =
            param(g, mem, &keep[a], gs_attribute_names[a], gs_attribute_axes[a],
                  a == GS_SH_N      ? 3
                  : a == GS_OPACITY ? 1
                                    : 2,
                  (int64_t[]){ROWS, a == GS_SH_N ? 15 : gs_columns((gs_attribute)a, DEGREE), 3},
                  s->at[a]);
    const fth_val view = param(g, mem, &keep[GS_ATTRIBUTES], "view", "view", 1,
                               (int64_t[]){GS_VIEW}, s->view),
                  splats = gs_project(g, &rule, &model, view),
                  image = gs_blend(g, &rule, splats, gs_order(g, &rule, splats), view),
                  outs[OUTPUTS] = {splats, image, fth_out(image, 1)};
    const int64_t size[OUTPUTS][3] = {{ROWS, numbers}, {HIGH, WIDE, 3}, {HIGH, WIDE}};
    fth_sink sinks[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) {
        OK(fth_tensor_create(&made[i], mem, "made", FTH_F32, i == 1 ? 3 : 2, size[i], NULL));
        sinks[i] = fth_tensor_sink(made[i]);
    }
    fth_plan *plan = fth_plan_make(g, outs, OUTPUTS, &(fth_limits){.sinks = sinks}, &err);
    OKE(plan ? FTH_OK : err.status, &err);
    OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    for (int a = 0; a <= GS_ATTRIBUTES; a++) OK(fth_tensor_release(keep[a]));
}

TEST(a_device_draws_with_the_bits_of_the_cpu)
{
    t_random r = t_random_make(11);
    if (!t_device()) SKIP("no device was asked for");
#ifdef FTH_HAVE_ISA_V3
    const bool fma = fth_isa_level() >= 3;
#else
    const bool fma = false;
#endif
    if (!fma) SKIP("loops of this processor have no fma");
    for (size_t k = 0; k < sizeof looks / sizeof *looks; k++) {
        fth_tensor *made[2][OUTPUTS];
        fth_context *ctx[2];
        scene s;
        make_scene(&s, &looks[k], &r);
        for (int device = 0; device < 2; device++)
            draw(&s, &looks[k], device, made[device], &ctx[device]);
        for (int i = 0; i < OUTPUTS; i++) {
            const uint32_t *a = fth_tensor_data(made[0][i]), *b = fth_tensor_data(made[1][i]);
            int64_t other = 0, something = 0;
            const int64_t n = (int64_t)(fth_tensor_bytes(made[0][i]) / sizeof *a);
            for (int64_t j = 0; j < n; j++) other += a[j] != b[j], something += a[j] != 0;
            IS_TRUE(something > n / 3);
            EQ_I64(other, 0);
        }
        for (int device = 0; device < 2; device++) {
            for (int i = 0; i < OUTPUTS; i++) OK(fth_tensor_release(made[device][i]));
            OK(fth_context_destroy(ctx[device], NULL));
        }
        for (int a = 0; a < GS_ATTRIBUTES; a++) free(s.at[a]);
    }
}

TEST_MAIN()
