/* sweep.c - the sweep as an operation: shapes, scratch, and the loops of the right precision. */
#include "sweep.h"

#include "shapes.h"

#include <string.h>

static const pt_sweep *rule_of(const fth_node *node)
{
    return node->attr;
}

static bool has_weight(const fth_node *node)
{
    return rule_of(node)->rule == PT_LSQML;
}

/* Where an input stands that is not always there. */
static int input_of(const fth_node *node, int which)
{
    int at = PT_SWEEP_WEIGHT;
    if (which > PT_SWEEP_WEIGHT && has_weight(node)) at++;
    if (which > PT_SWEEP_MASK && rule_of(node)->masked) at++;
    if (which > PT_SWEEP_EIGEN && rule_of(node)->opr) at++;
    if (which > PT_SWEEP_SHARES && rule_of(node)->opr) at++;
    return at;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const pt_sweep *rule = node->attr;
    const fth_dtype real = node->in[PT_SWEEP_OBJECT].dtype;
    const fth_desc *patterns = &node->in[PT_SWEEP_PATTERNS];
    const int wanted = PT_SWEEP_WEIGHT + has_weight(node) + (rule->masked ? 1 : 0) +
                       (rule->opr ? 2 : 0) + (rule->hold ? 1 : 0);
    char text[256];
    if (node->n_in != wanted || rule->batch < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "ptycho_sweep: %d inputs, but the rule has %d",
                        node->n_in, wanted);
    if (real != FTH_F32 && real != FTH_F64)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "ptycho_sweep: %s is neither f32 nor f64",
                        fth_in_format(node, PT_SWEEP_OBJECT, text, sizeof text));
    FTH_TRY(pt_check_axes(node, PT_SWEEP_OBJECT, real, "part orow ocol", err));
    FTH_TRY(pt_check_axes(node, PT_SWEEP_PROBE, real, "mode part row col", err));
    FTH_TRY(pt_check_axes(node, PT_SWEEP_PATTERNS, patterns->dtype, "frame row col", err));
    FTH_TRY(pt_check_axes(node, PT_SWEEP_VISITS, FTH_F64, "pattern visit", err));
    FTH_TRY(pt_check_axes(node, PT_SWEEP_SWITCHES, FTH_F64, "switch", err));
    if (has_weight(node)) FTH_TRY(pt_check_axes(node, PT_SWEEP_WEIGHT, real, "orow ocol", err));
    if (rule->masked) {
        const int in = input_of(node, PT_SWEEP_MASK);
        FTH_TRY(pt_check_axes(node, in, FTH_BOOL,
                              node->in[in].n_axes == 2 ? "row col" : "frame row col", err));
    }
    if (patterns->dtype == FTH_BOOL || fth_dtype_is_complex(patterns->dtype) ||
        patterns->dtype == FTH_F16 || patterns->dtype == FTH_BF16)
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "ptycho_sweep: %s are no amplitudes or counts",
                        fth_in_format(node, PT_SWEEP_PATTERNS, text, sizeof text));
    if (patterns->size[1] != patterns->size[2])
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "ptycho_sweep: %s are not square",
                        fth_in_format(node, PT_SWEEP_PATTERNS, text, sizeof text));
    node->n_out = 3;
    if (rule->opr) {
        const int eigen = input_of(node, PT_SWEEP_EIGEN), shares = eigen + 1;
        FTH_TRY(pt_check_axes(node, eigen, real, "opr part row col", err));
        FTH_TRY(pt_check_axes(node, shares, FTH_F64, "pattern share", err));
        if (node->in[eigen].size[0] != rule->opr || node->in[shares].size[1] != rule->opr + 1)
            return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "ptycho_sweep: %d eigenprobes, but %s",
                            rule->opr, fth_in_format(node, eigen, text, sizeof text));
        node->n_out = 5;
        node->out[3] = node->in[eigen];
        node->out[4] = node->in[shares];
    }
    if (rule->hold)
        FTH_TRY(pt_check_axes(node, input_of(node, PT_SWEEP_CHANGE), real, "part orow ocol", err));
    node->out[0] = node->in[PT_SWEEP_OBJECT];
    node->out[1] = node->in[PT_SWEEP_PROBE];
    return pt_desc_of(node->graph, "pattern told", FTH_F64, &node->out[2], err);
}

/* Sizes of a call, without its data. */
static pt_sweep_work work_of(const fth_call *call)
{
    const fth_node *node = call->node;
    return (pt_sweep_work){.rule = node->attr,
                           .n = node->in[PT_SWEEP_PATTERNS].size[1],
                           .modes = node->in[PT_SWEEP_PROBE].size[0],
                           .rows = node->in[PT_SWEEP_OBJECT].size[1],
                           .cols = node->in[PT_SWEEP_OBJECT].size[2],
                           .dtype = node->in[PT_SWEEP_PATTERNS].dtype,
                           .threads = call->threads};
}

static const pt_sweep_loops *loops_of(const fth_node *node)
{
    return node->in[PT_SWEEP_OBJECT].dtype == FTH_F32 ? FTH_ISA_BEST(pt_sweep_f32)
                                                      : FTH_ISA_BEST(pt_sweep_f64);
}

static uint64_t scratch(const fth_call *call)
{
    const pt_sweep_work w = work_of(call);
    return loops_of(call->node)->scratch(&w);
}

/* Two transforms of each mode, and some thirty passes over the pixels. */
static double flops(const fth_call *call)
{
    const pt_sweep_work w = work_of(call);
    double log2 = 0;
    for (int64_t n = w.n; n > 1; n /= 2) log2 += 1;
    const double pixels = (double)(call->node->in[PT_SWEEP_VISITS].size[0] * w.n * w.n);
    return pixels * (double)w.modes * (20 * log2 + 100);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    pt_sweep_work w = work_of(call);
    const double *switches = call->in[PT_SWEEP_SWITCHES].data;
    w.object = call->out[0].data;
    w.probe = call->out[1].data;
    w.told = call->out[2].data;
    w.patterns = call->in[PT_SWEEP_PATTERNS].data;
    w.visits = call->in[PT_SWEEP_VISITS].data;
    if (has_weight(node)) w.weight = call->in[PT_SWEEP_WEIGHT].data;
    if (w.rule->masked) {
        const int in = input_of(node, PT_SWEEP_MASK);
        w.mask = call->in[in].data;
        w.mask_step = node->in[in].n_axes == 3 ? w.n * w.n : 0;
    }
    w.count = (int64_t)switches[PT_SWITCH_COUNT];
    w.probe_on = switches[PT_SWITCH_PROBE] != 0;
    w.positions_on = switches[PT_SWITCH_POSITIONS] != 0;
    w.probe_share = switches[PT_SWITCH_SHARE];
    w.team = call->team;
    w.scratch = call->scratch;
    const size_t real = (size_t)fth_dtype_size(node->in[0].dtype);
    if (w.rule->rule == PT_LOOK) { /* nothing changes, and nobody may want the outputs */
        w.object = call->in[PT_SWEEP_OBJECT].data;
        w.probe = call->in[PT_SWEEP_PROBE].data;
    }
    const int from[2] = {w.rule->hold ? input_of(node, PT_SWEEP_CHANGE) : PT_SWEEP_OBJECT,
                         PT_SWEEP_PROBE};
    if (w.rule->hold) {
        w.object = call->in[PT_SWEEP_OBJECT].data;
        w.change = call->out[0].data;
    }
    for (int i = 0; i < 2; i++)
        if (call->out[i].data)
            memcpy(call->out[i].data, call->in[from[i]].data,
                   (size_t)fth_desc_count(&node->in[from[i]]) * real);
    if (w.rule->opr) {
        const int eigen = input_of(node, PT_SWEEP_EIGEN);
        w.eigen = call->out[3].data ? call->out[3].data : call->in[eigen].data;
        w.shares = call->out[4].data ? call->out[4].data : call->in[eigen + 1].data;
        for (int i = 0; i < 2; i++)
            if (call->out[3 + i].data)
                memcpy(call->out[3 + i].data, call->in[eigen + i].data,
                       (size_t)(fth_desc_count(&node->out[3 + i]) *
                                fth_dtype_size(node->out[3 + i].dtype)));
    }
    memset(w.told, 0, (size_t)fth_desc_count(&node->out[2]) * sizeof(double));
    FTH_TRY(pt_check_visits(w.visits, w.count, node->in[PT_SWEEP_VISITS].size[0], PT_VISITS, w.n,
                            w.rows, w.cols, call->err));
    for (int64_t i = 0; i < w.count; i++) {
        const double frame = w.visits[i * PT_VISITS + PT_VISIT_FRAME];
        if (!(frame >= 0 && frame < (double)node->in[PT_SWEEP_PATTERNS].size[0]))
            return FTH_FAIL(call->err, FTH_E_USAGE, "visit %lld is of pattern %g, there are %lld",
                            (long long)i, frame, (long long)node->in[PT_SWEEP_PATTERNS].size[0]);
    }
    loops_of(node)->run(&w);
    return FTH_OK;
}

const fth_op pt_sweep_op = {
    .name = "ptycho_sweep",
    .brief = "a piece of an epoch of an iterative solver: object and probe after it",
    .flags = FTH_OP_TEAM | FTH_OP_NO_SPLIT | FTH_OP_MAY_FAIL,
    .infer = infer,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};
