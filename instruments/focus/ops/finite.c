/* finite.c - floats that are no numbers are refused where they come in, plane by plane. */
#include "map.h"

#include <math.h>
#include <string.h>

static fth_status infer(fth_node *node, fth_err *err)
{
    FTH_TRY(fo_stack_check(node, 1, err));
    if (node->in[0].dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "focus_finite: integers are finite");
    node->n_out = 1;
    node->out[0] = node->in[0];
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static fth_status complain(const fth_call *call, int64_t s, int64_t z, int64_t y, int64_t x,
                           float v)
{
    const fth_tile *in = &call->in[0];
    return FTH_FAIL(call->err, FTH_E_FILE_FORMAT, FO_NOT_FINITE, isnan(v) ? "NaN" : "an infinity",
                    (long long)(in->origin[FO_Z] + z), (long long)(in->origin[FO_STACK] + s),
                    (long long)(in->origin[FO_Y] + y), (long long)(in->origin[FO_X] + x));
}

/* Sums of differences are NaN exactly when some v - v is, which is 0 for finite v. */
static bool finite_row(const float *v, int64_t n)
{
    float sum = 0;
    for (int64_t x = 0; x < n; x++) sum += v[x] - v[x];
    return sum == 0;
}

static fth_status run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    const int64_t n = out->extent[3];
    for (int64_t s = 0; s < out->extent[0]; s++)
        for (int64_t z = 0; z < out->extent[1]; z++)
            for (int64_t y = 0; y < out->extent[2]; y++) {
                const float *from = (const float *)(const void *)fo_stack_row(
                    in, sizeof *from, s, z, in->origin[FO_Y] + y);
                float *to = (float *)out->data + s * out->stride[0] + z * out->stride[1] +
                            y * out->stride[2];
                const bool has = fo_stack_has(&call->in[1], s, z);
                if (has && !finite_row(from, n))
                    for (int64_t x = 0; x < n; x++)
                        if (!isfinite(from[x])) return complain(call, s, z, y, x, from[x]);
                if (has)
                    memmove(to, from, (size_t)n * sizeof *to);
                else
                    memset(to, 0, (size_t)n * sizeof *to);
            }
    return FTH_OK;
}

static const fth_op all_finite = {
    .name = "focus_finite",
    .brief = "stacks of finite floats; planes that do not exist are zero",
    .flags = FTH_OP_MAY_FAIL | FTH_OP_IN_PLACE_0,
    .infer = infer,
    .relation = relation,
    .run = run,
};

fth_val fo_finite_(fth_site site, fth_val stacks, fth_val present)
{
    const fth_val in[] = {stacks, present};
    return fth_node_add_(stacks.graph, site, &all_finite, 2, in, NULL, 0);
}
