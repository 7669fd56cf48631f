/* guard.c - the halo guard: beside a bright edge that is out of focus, its blur outshines what lies
 * there in focus, and the wrong plane wins. Such pixels are dim against their surroundings.
 */
#include "guard_fill.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    for (int i = 0; i < 2; i++)
        if (node->in[i].n_axes != 3 || node->in[i].dtype != FTH_F32)
            return FTH_FAIL(err, FTH_E_DTYPE_OP,
                            "focus_guard: depths and energies f32 [stack y x] are wanted");
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}

/* Weights of the image, a row, then depths and weights of every level above. */
static uint64_t scratch(const fth_call *call)
{
    const int64_t height = call->node->in[0].size[1], width = call->node->in[0].size[2];
    return sizeof(float) * (uint64_t)(height * width + width + 2 * fo_guard_cells(height, width));
}

static double flops(const fth_call *call)
{
    return 100.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->out[0].extent[2];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Largest of `radius` on each side along a row. */
static void widest_row(float *to, const float *from, int64_t n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
    for (int64_t i = 1; i <= least(FO_GUARD_RADIUS, n - 1); i++) {
        for (int64_t x = 0; x < n - i; x++) to[x] = from[x + i] > to[x] ? from[x + i] : to[x];
        for (int64_t x = i; x < n; x++) to[x] = from[x - i] > to[x] ? from[x - i] : to[x];
    }
}

/* Largest energies of the square around each pixel of row y. */
static void largest_around(float *most, const float *energy, int64_t step, int64_t y,
                           int64_t height, int64_t width, float *row)
{
    const int64_t from = y > FO_GUARD_RADIUS ? y - FO_GUARD_RADIUS : 0,
                  to = least(y + FO_GUARD_RADIUS, height - 1);
    memset(most, 0, (size_t)width * sizeof *most);
    for (int64_t i = from; i <= to; i++) {
        const float *e = energy + i * step;
        for (int64_t x = 0; x < width; x++) most[x] = e[x] > most[x] ? e[x] : most[x];
    }
    memcpy(row, most, (size_t)width * sizeof *row);
    widest_row(most, row, width);
}

static void guard_image(const fth_call *call, int64_t s)
{
    const fth_tile *in = call->in, *out = &call->out[0];
    const int64_t height = out->extent[1], width = out->extent[2];
    const float *depth = (const float *)in[0].data + s * in[0].stride[0],
                *energy = (const float *)in[1].data + s * in[1].stride[0];
    float *to = (float *)out->data + s * out->stride[0];
    float *weight = call->scratch, *row = weight + height * width, *next = row + width;
    fo_guard_level level[FO_GUARD_LEVELS + 1];
    for (int64_t y = 0; y < height; y++) {
        const float *e = energy + y * in[1].stride[1];
        float *w = weight + y * width;
        largest_around(w, energy, in[1].stride[1], y, height, width, row);
        for (int64_t x = 0; x < width; x++) w[x] = e[x] < FO_GUARD_SHARE * w[x] ? 0.0f : 1.0f;
        memcpy(to + y * out->stride[1], depth + y * in[0].stride[1], (size_t)width * sizeof *to);
    }
    level[0] = (fo_guard_level){to, weight, height, width, out->stride[1]};
    for (int i = 1; i <= FO_GUARD_LEVELS; i++) {
        const int64_t h = (level[i - 1].height + 1) / 2, w = (level[i - 1].width + 1) / 2;
        level[i] = (fo_guard_level){next, next + h * w, h, w, w};
        next += 2 * h * w;
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++) fo_guard_down(&level[i - 1], &level[i], y, x);
    }
    for (int i = FO_GUARD_LEVELS; i > 0; i--)
        for (int64_t y = 0; y < level[i - 1].height; y++)
            for (int64_t x = 0; x < level[i - 1].width; x++)
                fo_guard_up(&level[i], &level[i - 1], y, x);
}

static fth_status run(const fth_call *call)
{
    if (call->out[0].extent[1] == 0 || call->out[0].extent[2] == 0) return FTH_OK;
    for (int64_t s = 0; s < call->out[0].extent[0]; s++) guard_image(call, s);
    return FTH_OK;
}

static const fth_op guard = {
    .name = "focus_guard",
    .brief = "depths beside strong edges, from reliable neighbours",
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val fo_guard_(fth_site site, fth_val depth, fth_val energy)
{
    const fth_val in[] = {depth, energy};
    return fth_node_add_(depth.graph, site, &guard, 2, in, NULL, 0);
}
