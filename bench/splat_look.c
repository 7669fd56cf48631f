/* splat_look.c - the loss of an image of 1920 x 1080 with its gradient, plain, under a mask, and
 * with the colours of the image mapped by a bilateral grid of its own, of 185 that learn.
 */
#include "bench.h"

#include "instruments/splat/appearance/grids.h"
#include "instruments/splat/loss/loss.h"

#include <stdlib.h>
#include <string.h>

enum { PLAIN, MASKED, GRIDS, KINDS };
enum { WIDTH = 1920, HEIGHT = 1080, IMAGES = 185, WARM = 4, TIMES = 31 };

/* A disc is kept. */
static fth_val mask_of(bench_program *p, int64_t height, int64_t width, uint8_t *bytes)
{
    for (int64_t i = 0; i < height * width; i++) {
        const double y = (double)(i / width) / (double)height - 0.5,
                     x = (double)(i % width) / (double)width - 0.5;
        bytes[i] = x * x + y * y < 0.2 ? 255 : 0;
    }
    return bench_param_of(p, "mask", FTH_U8, "i j", bytes);
}

static void build(bench_program *p, int kind, const gs_grids *grids, gs_grid_turn *turn,
                  int64_t height, int64_t width, uint8_t *bytes)
{
    fth_axis(p->g, "i", height);
    fth_axis(p->g, "j", width);
    fth_axis(p->g, "c", 3);
    const fth_val image = bench_param(p, "image", FTH_F32, "i j c", FTH_FULL),
                  target = bench_param(p, "target", FTH_F32, "i j c", FTH_FULL),
                  to = bench_param(p, "gradient", FTH_F32, "i j c", FTH_FULL);
    const gs_grid_values v = kind == GRIDS ? gs_grids_open(p->g, grids, turn) : (gs_grid_values){0};
    const fth_val shown = kind == GRIDS ? gs_slice(p->g, image, v.grid) : image,
                  loss = kind == MASKED ? gs_loss_masked(p->g, 0.2, shown, target,
                                                         mask_of(p, height, width, bytes))
                                        : gs_loss_of(p->g, 0.2, shown, target),
                  wrt[2] = {image, v.grid};
    fth_val bar[2], gradient, assigns[GS_GRID_STEPS];
    if (fth_grad(loss, kind == GRIDS ? 2 : 1, wrt, bar) != FTH_OK) return; /* the plan says it */
    bench_assign(p, to, bar[0]);
    if (kind != GRIDS) return;
    const fth_val variation = gs_grids_learn(p->g, &v, 10, bar[1], &gradient);
    if (gs_grids_step(p->g, &v, gradient, fth_isfinite(variation), assigns) != FTH_OK) return;
    for (int k = 0; k < GS_GRID_STEPS; k++) {
        p->out[p->n_out] = assigns[k];
        p->sink[p->n_out++] = (fth_sink){0};
    }
}

/* Seconds of the kernels in the middle. */
static double time_one(bench *b, const char *name, int kind, double asked)
{
    const bool whole = b->divide == 1;
    const int64_t height = whole ? HEIGHT : 16, width = whole ? WIDTH : 16;
    const gs_grid_size size = {whole ? IMAGES : 2, whole ? 8 : 2, whole ? 16 : 2, whole ? 16 : 2};
    gs_grid_turn turn = {.image = 1, .step = 1, .go = 1, .rate = 2e-3};
    gs_grids grids = {0};
    bench_program p;
    double seconds[TIMES] = {0};
    uint8_t *bytes = bench_array((uint64_t)(height * width));
    bench_open_within(&p, b, 0);
    if (p.status == FTH_OK)
        p.status = gs_grids_create(&grids, fth_context_mem(p.ctx), &size, &p.err);
    if (p.status == FTH_OK) build(&p, kind, &grids, &turn, height, width, bytes);
    bench_plan(&p, 0, false);
    for (int i = 0; i < WARM + TIMES; i++, turn.step++) {
        bench_go(&p);
        if (i >= WARM) seconds[i - WARM] = p.report.device_seconds;
    }
    const bool well = p.status == FTH_OK;
    if (well) {
        char shape[40];
        snprintf(shape, sizeof shape, "%d x %d px", (int)width, (int)height);
        bench_single(b, name, shape, seconds, TIMES, asked, "asked for");
    }
    fth_plan_destroy(p.plan);
    fth_graph_destroy(p.g);
    p.plan = NULL;
    p.g = NULL;
    gs_grids_free(&grids);
    if (!bench_close(&p)) b->failed++;
    free(bytes);
    return seconds[TIMES / 2];
}

void bench_splat_look_device(bench *b)
{
    static const char *const names[KINDS] = {"splat_loss", "splat_loss_masked", "splat_loss_grids"};
    double plain = 0;
    for (int k = 0; k < KINDS; k++) {
        if (!bench_wants(b, names[k]) || b->trace) continue;
        /* what is asked of masks and grids is what they may add */
        const double took = time_one(b, names[k], k, k == PLAIN ? 1e-3 : plain + 0.5e-3);
        if (k == PLAIN) plain = took;
        if (k != PLAIN && plain > 0)
            bench_note(b, "%s: %.3f ms more than without", names[k], 1e3 * (took - plain));
    }
}
