/* sample.c - see sample.h. */
#include "sample.h"

#include <string.h>

/* The planes of several stacks, one after the other, as one stack. */
typedef struct sample {
    fo_input_view view;
    int64_t n;
} sample;

static fth_status read_sample(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    sample *s = self;
    const fth_source source = fo_input_source(&s->view);
    const int64_t planes = s->view.input->planes;
    const int64_t bytes = n[2] * n[3] * fth_dtype_size(source.dtype);
    for (int64_t z = 0; z < n[1]; z++) {
        const int64_t at = lo[1] + z;
        const int64_t from[] = {at / planes, at % planes, lo[2], lo[3]},
                      count[] = {1, 1, n[2], n[3]};
        FTH_TRY(source.read(source.self, from, count, (char *)dst + z * bytes, err));
    }
    return FTH_OK;
}

static fth_status read_sample_mask(void *self, const int64_t *lo, const int64_t *n, void *dst,
                                   fth_err *err)
{
    const sample *s = self;
    const fo_input *in = s->view.input;
    (void)err;
    for (int64_t z = 0; z < n[1]; z++) {
        const int64_t at = lo[1] + z;
        ((uint8_t *)dst)[z] =
            in->present[s->view.chosen[at / in->planes] * in->planes + at % in->planes];
    }
    return FTH_OK;
}

/* At most 16 stacks, evenly spaced: percentiles of more would not differ visibly. */
fth_status fo_sample_scale(fth_context *ctx, fo_input *in, fo_fusion *how, fth_err *err)
{
    enum { MOST = 16 };
    int64_t chosen[MOST];
    sample s = {.view = {.input = in, .chosen = chosen}};
    s.n = in->n_stacks < MOST ? in->n_stacks : MOST;
    while (s.n > 1 && s.n * in->planes > FO_MAX_PLANES) s.n--;
    for (int64_t i = 0; i < s.n; i++) chosen[i] = i * in->n_stacks / s.n;
    s.view.n = s.n;
    fo_fusion look = *how;
    look.scale = FO_SCALE_STACK;
    look.method = FO_MAX;
    look.halo_guard = false;
    look.prefer = FO_PREFER_NONE;
    look.reject = FO_REJECT_NONE;
    const int64_t size[] = {1, s.n * in->planes, in->rows, in->columns};
    fth_source pixels = {.kind = "sample",
                         .self = &s,
                         .dtype = in->dtype,
                         .n_axes = 4,
                         .read = read_sample},
               mask_of = {.kind = "planes",
                          .self = &s,
                          .dtype = FTH_U8,
                          .n_axes = 2,
                          .size = {1, size[1]},
                          .read = read_sample_mask};
    memcpy(pixels.size, size, sizeof size);
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "stack", 1);
    fth_axis(g, "z", size[1]);
    fth_axis(g, "y", size[2]);
    fth_axis(g, "x", size[3]);
    const fo_fused f = fo_fuse(g, fth_input(g, "stacks", in->dtype, "stack z y x", pixels),
                               fth_input(g, "present", FTH_U8, "stack z", mask_of), &look);
    const fth_val outs[] = {f.lo, f.hi};
    const fth_sink sinks[] = {
        {.kind = "lo", .dtype = FTH_F64, .n_axes = 1, .size = {1}, .data = &how->scale_lo},
        {.kind = "hi", .dtype = FTH_F64, .n_axes = 1, .size = {1}, .data = &how->scale_hi}};
    fth_plan *plan = fth_plan_make(g, outs, 2, &(fth_limits){.sinks = sinks}, err);
    fth_status status = plan ? fth_run(plan, sinks, NULL, NULL, err) : err->status;
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return status;
}
