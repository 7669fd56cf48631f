/* serial_poisson.c - counting noise from the reference's generator: one stream through the pixels.
 *
 * Each deviate takes a varying count of numbers from the stream, so pixels are processed in order:
 * the carry along rows is the state of the generator. Pixels outside the ROI take nothing from the
 * stream.
 */
#include "serial.h"

#include <string.h>

enum { SLOW, FAST };

static fth_status infer(fth_node *node, fth_err *err)
{
    const fth_desc *in = &node->in[0];
    char text[256];
    if (in->dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "serial_poisson: %s is not f32",
                        fth_in_format(node, 0, text, sizeof text));
    if (in->n_axes != 2 || in->axis[SLOW] != fth_axis_find(node->graph, "slow") ||
        in->axis[FAST] != fth_axis_find(node->graph, "fast"))
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "serial_poisson: %s does not have [slow fast]",
                        fth_in_format(node, 0, text, sizeof text));
    node->n_out = 1;
    node->out[0] = *in;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = dim == SLOW ? (fth_relation){.along = FTH_CARRY, .out_dim = SLOW}
                       : (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
}

/* State is requested per element of a row; the generator is one for all of them. */
static uint64_t state(const fth_node *node, int out)
{
    (void)out;
    const int64_t row = node->out[0].size[FAST];
    const uint64_t n = row > 0 ? (uint64_t)row : 1;
    return (sizeof(br_ran1) + n - 1) / n;
}

static double flops(const fth_call *call)
{
    return 60.0 * (double)(call->out[0].extent[SLOW] * call->out[0].extent[FAST]);
}

static fth_status run(const fth_call *call)
{
    const serial_attr *attr = call->node->attr;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    if (out->extent[FAST] == 0) return FTH_OK; /* an empty row has no state and needs none */
    br_ran1 r = attr->start;
    if (!call->first) memcpy(&r, call->state[0].data, sizeof r);
    for (int64_t i = 0; i < out->extent[SLOW]; i++) {
        const int64_t slow = out->origin[SLOW] + i;
        const float *from = (const float *)in->data + (slow - in->origin[SLOW]) * in->stride[SLOW];
        float *to = (float *)out->data + i * out->stride[SLOW];
        const bool row_inside = slow >= attr->roi[2] && slow <= attr->roi[3];
        for (int64_t fast = 0; fast < out->extent[FAST]; fast++) {
            const bool inside = row_inside && fast >= attr->roi[0] && fast <= attr->roi[1];
            to[fast] = inside ? br_poisson(&r, from[fast], &r.seed) : 0.0f;
        }
    }
    memcpy(call->state[0].data, &r, sizeof r);
    return FTH_OK;
}

/* Counts are integers: no gradient for the mean. */
static fth_status vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar, fth_err *err)
{
    (void)node, (void)out_bar, (void)in_bar, (void)err;
    return FTH_OK;
}

static const fth_op op = {.name = "serial_poisson",
                          .brief = "Poisson deviates of the reference's stream, pixel by pixel",
                          .flags = FTH_OP_NO_SPLIT,
                          .infer = infer,
                          .relation = relation,
                          .state = state,
                          .flops = flops,
                          .vjp = vjp,
                          .run = run};

fth_val br_serial_poisson_(fth_site site, const br_scene *scene, fth_val image,
                           const struct br_ran1 *start)
{
    serial_attr attr;
    memset(&attr, 0, sizeof attr); /* padding included, because it is hashed */
    memcpy(attr.roi, scene->roi, sizeof attr.roi);
    attr.start.y = start->y;
    memcpy(attr.start.table, start->table, sizeof attr.start.table);
    attr.start.seed = start->seed;
    attr.start.spare = start->spare;
    attr.start.has_spare = start->has_spare;
    attr.start.mean = start->mean;
    attr.start.root = start->root;
    attr.start.log_mean = start->log_mean;
    attr.start.g = start->g;
    return fth_node_add_(image.graph, site, &op, 1, &image, &attr, sizeof attr);
}
