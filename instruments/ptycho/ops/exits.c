/* exits.c - the operations of exits.h: shapes, scratch, and the loops of the right precision. */
#include "exits.h"

#include "shapes.h"

#include <string.h>

static const pt_exits_loops *loops_of(fth_dtype real)
{
    return real == FTH_F32 ? FTH_ISA_BEST(pt_exits_f32) : FTH_ISA_BEST(pt_exits_f64);
}

/* ---- the Fourier step ---- */

static fth_status exits_infer(fth_node *node, fth_err *err)
{
    const pt_exits *rule = node->attr;
    const fth_dtype real = node->in[PT_EXITS_OBJECT].dtype;
    const int wanted = PT_EXITS_MASK + (rule->masked ? 1 : 0);
    if (node->n_in != wanted)
        return FTH_FAIL(err, FTH_E_USAGE, "ptycho_exits: %d inputs, but the rule has %d",
                        node->n_in, wanted);
    if (real != FTH_F32 && real != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "ptycho_exits: the object is %s, neither f32 nor f64",
                        fth_dtype_name(real));
    FTH_TRY(pt_check_axes(node, PT_EXITS_OBJECT, real, "part orow ocol", err));
    FTH_TRY(pt_check_axes(node, PT_EXITS_PROBE, real, "mode part row col", err));
    FTH_TRY(pt_check_axes(node, PT_EXITS_PATTERNS, node->in[PT_EXITS_PATTERNS].dtype,
                          "pattern row col", err));
    FTH_TRY(pt_check_axes(node, PT_EXITS_VISITS, FTH_F64, "pattern visit", err));
    FTH_TRY(pt_check_axes(node, PT_EXITS_COUNT, FTH_F64, "", err));
    FTH_TRY(pt_check_axes(node, PT_EXITS_WAVES, real, "pattern mode part row col", err));
    if (rule->masked)
        FTH_TRY(pt_check_axes(node, PT_EXITS_MASK, FTH_BOOL,
                              node->in[PT_EXITS_MASK].n_axes == 2 ? "row col" : "pattern row col",
                              err));
    node->n_out = 2;
    node->out[0] = node->in[PT_EXITS_WAVES];
    return pt_desc_of(node->graph, "pattern told", FTH_F64, &node->out[1], err);
}

static pt_exits_work exits_work(const fth_call *call)
{
    const fth_node *node = call->node;
    return (pt_exits_work){.rule = node->attr,
                           .n = node->in[PT_EXITS_PATTERNS].size[1],
                           .modes = node->in[PT_EXITS_PROBE].size[0],
                           .rows = node->in[PT_EXITS_OBJECT].size[1],
                           .cols = node->in[PT_EXITS_OBJECT].size[2],
                           .dtype = node->in[PT_EXITS_PATTERNS].dtype,
                           .threads = call->threads};
}

static uint64_t exits_scratch(const fth_call *call)
{
    const pt_exits_work w = exits_work(call);
    return loops_of(call->node->in[0].dtype)->scratch(&w);
}

static double exits_flops(const fth_call *call)
{
    const pt_exits_work w = exits_work(call);
    double log2 = 0;
    for (int64_t n = w.n; n > 1; n /= 2) log2 += 1;
    const double pixels = (double)(call->node->in[PT_EXITS_PATTERNS].size[0] * w.n * w.n);
    return pixels * (double)w.modes * (30 * log2 + 60);
}

static fth_status exits_run(const fth_call *call)
{
    const fth_node *node = call->node;
    pt_exits_work w = exits_work(call);
    w.object = call->in[PT_EXITS_OBJECT].data;
    w.probe = call->in[PT_EXITS_PROBE].data;
    w.patterns = call->in[PT_EXITS_PATTERNS].data;
    w.visits = call->in[PT_EXITS_VISITS].data;
    w.from = call->in[PT_EXITS_WAVES].data;
    if (w.rule->masked) {
        w.mask = call->in[PT_EXITS_MASK].data;
        w.mask_step = node->in[PT_EXITS_MASK].n_axes == 3 ? w.n * w.n : 0;
    }
    w.to = call->out[0].data;
    w.told = call->out[1].data;
    w.count = (int64_t) * (const double *)call->in[PT_EXITS_COUNT].data;
    w.team = call->team;
    w.scratch = call->scratch;
    memset(w.told, 0, (size_t)fth_desc_count(&node->out[1]) * sizeof(double));
    const int64_t room = node->in[PT_EXITS_VISITS].size[0];
    FTH_TRY(pt_check_visits(w.visits, w.count, room, PT_VISITS, w.n, w.rows, w.cols, call->err));
    loops_of(node->in[0].dtype)->exits(&w);
    /* what lies behind the last pattern is part of the output too */
    const uint64_t one = (uint64_t)(w.modes * 2 * w.n * w.n * fth_dtype_size(node->in[0].dtype));
    if (w.to) memset((char *)w.to + (uint64_t)w.count * one, 0, (uint64_t)(room - w.count) * one);
    return FTH_OK;
}

const fth_op pt_exits_op = {
    .name = "ptycho_exits",
    .brief = "exit waves after the Fourier step of DM or RAAR",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT | FTH_OP_MAY_FAIL,
    .infer = exits_infer,
    .scratch = exits_scratch,
    .flops = exits_flops,
    .run = exits_run,
};

/* ---- the overlap ---- */

static fth_status overlap_infer(fth_node *node, fth_err *err)
{
    const pt_overlap *rule = node->attr;
    const fth_dtype real = node->in[PT_OVERLAP_WAVES].dtype;
    const char *object = "part orow ocol", *probe = "mode part row col";
    if (node->n_in != PT_OVERLAP_INPUTS)
        return FTH_FAIL(err, FTH_E_USAGE, "ptycho_overlap: %d inputs, not %d", node->n_in,
                        PT_OVERLAP_INPUTS);
    if (real != FTH_F32 && real != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "ptycho_overlap: exits are %s, neither f32 nor f64",
                        fth_dtype_name(real));
    FTH_TRY(pt_check_axes(node, PT_OVERLAP_OTHER, real, rule->probe ? object : probe, err));
    FTH_TRY(pt_check_axes(node, PT_OVERLAP_VISITS, FTH_F64, "pattern visit", err));
    FTH_TRY(pt_check_axes(node, PT_OVERLAP_COUNT, FTH_F64, "", err));
    FTH_TRY(pt_check_axes(node, PT_OVERLAP_WAVES, real, "pattern mode part row col", err));
    FTH_TRY(pt_check_axes(node, PT_OVERLAP_ABOVE, real, rule->probe ? probe : object, err));
    FTH_TRY(
        pt_check_axes(node, PT_OVERLAP_BELOW, real, rule->probe ? "row col" : "orow ocol", err));
    node->n_out = 2;
    node->out[0] = node->in[PT_OVERLAP_ABOVE];
    node->out[1] = node->in[PT_OVERLAP_BELOW];
    return FTH_OK;
}

static double overlap_flops(const fth_call *call)
{
    return 10.0 * (double)fth_desc_count(&call->node->in[PT_OVERLAP_WAVES]);
}

static fth_status overlap_run(const fth_call *call)
{
    const fth_node *node = call->node;
    const pt_overlap *rule = node->attr;
    const fth_desc *waves = &node->in[PT_OVERLAP_WAVES],
                   *object = &node->in[rule->probe ? PT_OVERLAP_OTHER : PT_OVERLAP_ABOVE];
    const pt_overlap_work w = {.probe = rule->probe,
                               .n = waves->size[3],
                               .modes = waves->size[1],
                               .rows = object->size[1],
                               .cols = object->size[2],
                               .other = call->in[PT_OVERLAP_OTHER].data,
                               .waves = call->in[PT_OVERLAP_WAVES].data,
                               .visits = call->in[PT_OVERLAP_VISITS].data,
                               .above = call->out[0].data,
                               .below = call->out[1].data,
                               .count = (int64_t) * (const double *)call->in[PT_OVERLAP_COUNT].data,
                               .team = call->team};
    for (int i = 0; i < 2; i++)
        memcpy(call->out[i].data, call->in[PT_OVERLAP_ABOVE + i].data,
               (size_t)(fth_desc_count(&node->out[i]) * fth_dtype_size(waves->dtype)));
    FTH_TRY(pt_check_visits(w.visits, w.count, waves->size[0], PT_VISITS, w.n, w.rows, w.cols,
                            call->err));
    loops_of(waves->dtype)->overlap(&w);
    return FTH_OK;
}

const fth_op pt_overlap_op = {
    .name = "ptycho_overlap",
    .brief = "sums over patterns from which DM and RAAR make the object or the probe",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT | FTH_OP_MAY_FAIL,
    .infer = overlap_infer,
    .flops = overlap_flops,
    .run = overlap_run,
};
