/* scale.c - the operation that makes images of fused values. */
#include "scale.h"

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *v = &node->in[0];
    char text[256];
    if (v->n_axes != 3 || (v->dtype != FTH_U8 && v->dtype != FTH_U16 && v->dtype != FTH_F32))
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "focus_scale: values [stack y x] are wanted, not %s",
                        fth_in_format(node, 0, text, sizeof text));
    for (int i = 1; i < 3; i++)
        if (node->in[i].dtype != FTH_F64 || node->in[i].n_axes != 1 ||
            node->in[i].axis[0] != v->axis[0])
            return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                            "focus_scale: ends f64 [stack] are wanted, not %s",
                            fth_in_format(node, i, text, sizeof text));
    node->n_out = 2;
    node->out[0] = node->out[1] = *v;
    node->out[0].dtype = FTH_U16;
    node->out[1].dtype = FTH_U8;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
}

static uint64_t scratch(const fth_call *call)
{
    return sizeof(uint16_t) * (uint64_t)call->out[0].extent[2];
}

static double flops(const fth_call *call)
{
    return 8.0 * (double)call->out[0].extent[0] * (double)call->out[0].extent[1] *
           (double)call->out[0].extent[2];
}

static fth_status run(const fth_call *call)
{
    const fo_scale_attr *a = call->node->attr;
    const fo_scale_loops *loop = FTH_ISA_BEST(fo_scale_loops);
    const fth_tile *in = &call->in[0], *wide = &call->out[0], *narrow = &call->out[1];
    const fth_dtype t = call->node->in[0].dtype;
    const int64_t n = wide->extent[2];
    for (int64_t s = 0; s < wide->extent[0]; s++) {
        const double lo = ((const double *)call->in[1].data)[s],
                     range = fo_scale_range(lo, ((const double *)call->in[2].data)[s]);
        for (int64_t y = 0; y < wide->extent[1]; y++) {
            const char *v = (const char *)in->data +
                            (s * in->stride[0] + y * in->stride[1]) * fth_dtype_size(t);
            uint16_t *to = call->scratch;
            if (wide->data) to = (uint16_t *)wide->data + s * wide->stride[0] + y * wide->stride[1];
            if (t == FTH_U8)
                loop->u8(to, (const uint8_t *)v, lo, range, (int32_t)a->invert, n);
            else if (t == FTH_U16)
                loop->u16(to, (const uint16_t *)(const void *)v, lo, range, (int32_t)a->invert, n);
            else
                loop->f32(to, (const float *)(const void *)v, lo, range, (int32_t)a->invert, n);
            if (narrow->data)
                loop->upper((uint8_t *)narrow->data + s * narrow->stride[0] + y * narrow->stride[1],
                            to, n);
        }
    }
    return FTH_OK;
}

static const fth_op scale = {
    .name = "focus_scale",
    .brief = "fused values as images of 16 and 8 bits",
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val fo_scale_(fth_site site, fth_val values, fth_val lo, fth_val hi, bool invert)
{
    const fth_val in[] = {values, lo, hi};
    const fo_scale_attr attr = {.invert = invert};
    return fth_node_add_(values.graph, site, &scale, 3, in, &attr, sizeof attr);
}
