/* judge.c - two small operations: which planes are kept, and the numbers of a stack. */
#include "judge_plane.h"
#include "stack.h"

static void stack_same(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim == 0) *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
}

/* ---- planes ---- */

static fth_status judge_infer(fth_node *node, fth_err *err)
{
    const fth_desc *sums = &node->in[0], *present = &node->in[1];
    const fo_judge_attr *a = node->attr;
    if (sums->n_axes != 3 || sums->size[2] != FO_SUMS ||
        sums->dtype != (a->integers ? FTH_I64 : FTH_F64) || present->n_axes != 2 ||
        present->dtype != FTH_U8 || present->axis[1] != sums->axis[1])
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH,
                        "focus_judge: sums [stack z sum] and a mask u8 [stack z] are wanted");
    node->n_out = FO_JUDGES;
    for (int i = 0; i < FO_JUDGES; i++) {
        node->out[i] = *present;
        node->out[i].dtype = i == FO_JUDGE_KEPT ? FTH_U8 : FTH_F64;
    }
    return FTH_OK;
}

static uint64_t judge_scratch(const fth_call *call)
{
    return 3 * sizeof(double) * (uint64_t)call->node->in[1].size[1];
}

static void means(const fth_call *call, int64_t s, double *mean, double *corr)
{
    const fo_judge_attr *a = call->node->attr;
    const fth_tile *sums = &call->in[0], *present = &call->in[1];
    const int64_t planes = present->extent[1];
    int64_t before = -1;
    for (int64_t z = 0; z < planes; z++) {
        const char *at = (const char *)sums->data +
                         (s * sums->stride[0] + z * sums->stride[1]) * (int64_t)sizeof(double);
        mean[z] = 0;
        corr[z] = (double)NAN;
        if (!fo_stack_has(present, s, z)) continue;
        mean[z] = fo_sums_energy(at, a->pixels, a->integers != 0);
        if (before >= 0)
            corr[before] =
                fo_sums_correlation(at - (z - before) * sums->stride[1] * (int64_t)sizeof(double),
                                    at, a->pixels, a->integers != 0);
        before = z;
    }
}

static fth_status judge_run(const fth_call *call)
{
    const fo_judge_attr *a = call->node->attr;
    const fth_tile *present = &call->in[1], *out = call->out;
    const int64_t planes = present->extent[1];
    double *mean = call->scratch, *corr = mean + planes, *work = corr + planes;
    for (int64_t s = 0; s < present->extent[0]; s++) {
        means(call, s, mean, corr);
        fo_judged j = {.mean = mean,
                       .corr = corr,
                       .present = (const uint8_t *)present->data + s * present->stride[0],
                       .mean_step = 1,
                       .corr_step = 1,
                       .present_step = present->stride[1],
                       .planes = planes};
        fo_judge_stack(&j, a, work);
        const int level = fo_judge_level(&j, a);
        for (int64_t z = 0; z < planes; z++) {
            const int64_t at[FO_JUDGES] = {s * out[0].stride[0] + z, s * out[1].stride[0] + z,
                                           s * out[2].stride[0] + z};
            if (out[0].data) ((uint8_t *)out[0].data)[at[0]] = fo_judge_keeps(&j, a, level, z);
            if (out[1].data) ((double *)out[1].data)[at[1]] = mean[z];
            if (out[2].data) ((double *)out[2].data)[at[2]] = corr[z];
        }
    }
    return FTH_OK;
}

static const fth_op judge = {
    .name = "focus_judge",
    .brief = "which planes of a stack are kept, by their sharpness and their motion",
    .infer = judge_infer,
    .relation = stack_same,
    .scratch = judge_scratch,
    .run = judge_run,
};

fth_val fo_judge_(fth_site site, fth_val sums, fth_val present, const fo_judge_attr *attr)
{
    const fth_val in[] = {sums, present};
    return fth_node_add_(sums.graph, site, &judge, 2, in, attr, sizeof *attr);
}

/* ---- numbers of a stack: in mean, corr, present [stack z], then four of [stack] ---- */

typedef struct summary_attr {
    fo_judge_attr judge;
    int64_t stat;
} summary_attr;

static fth_status summary_infer(fth_node *node, fth_err *err)
{
    const summary_attr *a = node->attr;
    (void)err;
    node->n_out = 1;
    node->out[0] = node->in[0];
    node->out[0].dtype = FTH_F64;
    node->out[0].axis[1] = (fth_axis_id)a->stat;
    node->out[0].size[1] = FO_SUMMARY;
    return FTH_OK;
}

static uint64_t summary_scratch(const fth_call *call)
{
    return sizeof(double) * (uint64_t)call->node->in[0].size[1];
}

static fth_status summary_run(const fth_call *call)
{
    const summary_attr *attr = call->node->attr;
    const fo_judge_attr *a = &attr->judge;
    const fth_tile *mean = &call->in[0], *corr = &call->in[1], *present = &call->in[2];
    for (int64_t s = 0; s < call->out[0].extent[0]; s++) {
        double *out = (double *)call->out[0].data + s * call->out[0].stride[0];
        fo_judged j = {.mean = (const double *)mean->data + s * mean->stride[0],
                       .corr = (const double *)corr->data + s * corr->stride[0],
                       .present = (const uint8_t *)present->data + s * present->stride[0],
                       .mean_step = mean->stride[1],
                       .corr_step = corr->stride[1],
                       .present_step = present->stride[1],
                       .planes = present->extent[1]};
        fo_judge_stack(&j, a, call->scratch);
        fo_judge_numbers(&j, a, out);
        for (int i = 0; i < FO_SUMMARY - FO_JUDGED; i++)
            out[FO_JUDGED + i] = ((const double *)call->in[3 + i].data)[s];
    }
    return FTH_OK;
}

static const fth_op summary = {
    .name = "focus_summary",
    .brief = "the numbers of a stack: planes, sharpness, motion, range",
    .infer = summary_infer,
    .relation = stack_same,
    .scratch = summary_scratch,
    .run = summary_run,
};

fth_val fo_summary_(fth_site site, fth_val mean, fth_val corr, fth_val present,
                    const fth_val range[4], const char *stat, const fo_judge_attr *attr)
{
    const fth_axis_id id = fth_val_ok(mean) ? fth_axis_find(mean.graph, stat) : -1;
    const summary_attr all = {.judge = *attr, .stat = id};
    const fth_val in[] = {mean, corr, present, range[0], range[1], range[2], range[3]};
    if (fth_val_ok(mean) && id < 0)
        return fth_poison_(mean.graph, site, FTH_E_AXIS_NAME, "focus_summary: no axis '%s'", stat);
    return fth_node_add_(mean.graph, site, &summary, 7, in, &all, sizeof all);
}
