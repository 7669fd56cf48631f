/* row_ops.c - see row_ops.h: the plain loops. */
#include "row_ops.h"

#include "../raster/shapes.h"
#include "children.h"
#include "marks.h"

#include <fathom/ops.h>

#include <string.h>

/* ---- shapes ---- */

static fth_status check_marks(const fth_node *node, int first, int pairs, fth_err *err)
{
    for (int i = 0; i < pairs; i++) {
        FTH_TRY(gs_check_axes(node, first + i, FTH_I32, "word", err));
        FTH_TRY(gs_check_axes(node, first + pairs + i, FTH_I64, "block", err));
    }
    return FTH_OK;
}

static fth_status infer_candidates(fth_node *node, fth_err *err)
{
    FTH_TRY(gs_check_axes(node, 0, FTH_F32, "g seen", err));
    FTH_TRY(gs_check_axes(node, 1, FTH_F32, "g xyz", err));
    node->n_out = 2;
    FTH_TRY(gs_desc_of(node->graph, "word", FTH_I32, &node->out[0], err));
    node->out[1] = node->out[0];
    return FTH_OK;
}

static fth_status infer_unwanted(fth_node *node, fth_err *err)
{
    static const char *const axes[3] = {"g xyz", "g wxyz", "g"};
    for (int i = 0; i < 3; i++) FTH_TRY(gs_check_axes(node, i, FTH_F32, axes[i], err));
    node->n_out = 1;
    return gs_desc_of(node->graph, "word", FTH_I32, &node->out[0], err);
}

static fth_status infer_count(fth_node *node, fth_err *err)
{
    FTH_TRY(gs_check_axes(node, 0, FTH_I32, "word", err));
    node->n_out = 2;
    FTH_TRY(gs_desc_of(node->graph, "block", FTH_I64, &node->out[0], err));
    return gs_desc_of(node->graph, "", FTH_I64, &node->out[1], err);
}

static fth_status infer_split(fth_node *node, fth_err *err)
{
    static const char *const axes[GS_SPLIT_PARTS] = {"g xyz", "g xyz", "g wxyz", "g"};
    node->n_out = GS_SPLIT_PARTS;
    for (int i = 0; i < GS_SPLIT_PARTS; i++) {
        FTH_TRY(gs_check_axes(node, i, FTH_F32, axes[i], err));
        node->out[i] = node->in[i];
    }
    return check_marks(node, GS_SPLIT_PARTS, 2, err);
}

static fth_status infer_array(fth_node *node, int pairs, fth_err *err)
{
    char text[256];
    fth_desc g;
    FTH_TRY(gs_desc_of(node->graph, "g", FTH_F32, &g, err));
    if (node->in[0].dtype != FTH_F32 || node->in[0].n_axes < 1 || node->in[0].axis[0] != g.axis[0])
        return FTH_FAIL(err, FTH_E_DTYPE_OP, "%s: %s is not f32 with rows over g", node->op->name,
                        fth_in_format(node, 0, text, sizeof text));
    node->n_out = 1;
    node->out[0] = node->in[0];
    return check_marks(node, 1, pairs, err);
}

static fth_status infer_copy(fth_node *node, fth_err *err)
{
    return infer_array(node, 2, err);
}

static fth_status infer_close(fth_node *node, fth_err *err)
{
    return infer_array(node, 1, err);
}

static int update_of(const fth_node *node, int out)
{
    (void)node;
    return out;
}

/* ---- loops ---- */

static gs_marks marks_of(const fth_tile *words, const fth_tile *before, int64_t n)
{
    return (gs_marks){.n = n, .word = words->data, .before = before ? before->data : NULL};
}

static int64_t columns_of(const fth_tile *t, int axes)
{
    int64_t columns = 1;
    for (int d = 1; d < axes; d++) columns *= t->extent[d];
    return columns;
}

/* Where the output lies elsewhere, it begins as the input. */
static void begin(const fth_call *call, int i)
{
    const fth_tile *t = &call->out[i];
    const int64_t numbers = t->extent[0] * columns_of(t, call->node->in[i].n_axes);
    if (t->data != call->in[i].data && numbers > 0)
        memcpy(t->data, call->in[i].data, (size_t)numbers * sizeof(float));
}

static fth_status run_candidates(const fth_call *call)
{
    const gs_candidates *a = call->node->attr;
    const float *seen = call->in[0].data, *scaling = call->in[1].data;
    const int64_t n = call->in[0].extent[0];
    gs_marks dup = marks_of(&call->out[0], NULL, n), split = marks_of(&call->out[1], NULL, n);
    for (int i = 0; i < 2; i++)
        memset(call->out[i].data, 0, (size_t)call->out[i].extent[0] * sizeof(uint32_t));
    for (int64_t i = 0; i < n; i++)
        if (gs_gradient(seen + 2 * i) > a->high)
            gs_marks_set(gs_largest(scaling + 3 * i) <= a->small ? &dup : &split, i);
    return FTH_OK;
}

static fth_status run_unwanted(const fth_call *call)
{
    const gs_unwanted *a = call->node->attr;
    const float *scaling = call->in[0].data, *rotation = call->in[1].data,
                *opacity = call->in[2].data;
    const int64_t n = call->in[0].extent[0];
    gs_marks gone = marks_of(&call->out[0], NULL, n);
    memset(gone.word, 0, (size_t)call->out[0].extent[0] * sizeof(uint32_t));
    for (int64_t i = 0; i < n; i++)
        if (gs_is_unwanted(scaling + 3 * i, rotation + 4 * i, opacity[i], a->faint, a->huge))
            gs_marks_set(&gone, i);
    return FTH_OK;
}

static fth_status run_count(const fth_call *call)
{
    const uint32_t *word = call->in[0].data;
    int64_t *before = call->out[0].data, *all = call->out[1].data, sum = 0;
    for (int64_t b = 0; b < call->out[0].extent[0]; b++) {
        if (before) before[b] = sum;
        for (int w = 0; w < GS_BLOCK / GS_WORD; w++) sum += __builtin_popcount(*word++);
    }
    if (all) *all = sum;
    return FTH_OK;
}

static void copy_numbers(const fth_call *call, int i, int64_t to, int64_t from)
{
    const int64_t columns = columns_of(&call->out[i], call->node->in[i].n_axes);
    float *at = call->out[i].data;
    memcpy(at + to * columns, at + from * columns, (size_t)columns * sizeof(float));
}

static void split_row(const fth_call *call, int64_t row, int64_t second)
{
    const gs_growth *a = call->node->attr;
    float *means = call->out[GS_SPLIT_MEANS].data, *scaling = call->out[GS_SPLIT_SCALING].data,
          *opacity = call->out[GS_SPLIT_OPACITY].data, mean[2][3];
    const float *q = (const float *)call->out[GS_SPLIT_ROTATION].data + 4 * row;
    for (int child = 0; child < 2; child++) {
        double e[3];
        for (int k = 0; k < 3; k++)
            e[k] = fth_random_normal_at(a->seed, a->iteration, GS_STREAM_SPLIT,
                                        gs_child_index(row, child, k));
        gs_child_mean(means + 3 * row, scaling + 3 * row, q, e, mean[child]);
    }
    for (int k = 0; k < 3; k++) scaling[3 * row + k] = gs_child_scaling(scaling[3 * row + k]);
    if (a->revised_opacity) opacity[row] = gs_child_opacity(opacity[row]);
    for (int i = 0; i < GS_SPLIT_PARTS; i++) copy_numbers(call, i, second, row);
    memcpy(means + 3 * row, mean[0], sizeof mean[0]);
    memcpy(means + 3 * second, mean[1], sizeof mean[1]);
}

static fth_status run_split(const fth_call *call)
{
    const gs_growth *a = call->node->attr;
    const fth_tile *m = &call->in[GS_SPLIT_PARTS];
    const gs_marks dup = marks_of(&m[GS_DUP_WORDS], &m[GS_DUP_BEFORE], a->n),
                   split = marks_of(&m[GS_SPLIT_WORDS], &m[GS_SPLIT_BEFORE], a->n);
    int64_t copy = a->n, second = a->n + a->dups;
    for (int i = 0; i < GS_SPLIT_PARTS; i++) begin(call, i);
    for (int64_t row = 0; row < a->n; row++) {
        if (gs_marks_has(&dup, row)) {
            for (int i = 0; i < GS_SPLIT_PARTS; i++) copy_numbers(call, i, copy, row);
            copy++;
        }
        if (gs_marks_has(&split, row)) split_row(call, row, second++);
    }
    return FTH_OK;
}

static fth_status run_copy(const fth_call *call)
{
    const gs_growth *a = call->node->attr;
    const fth_tile *m = &call->in[1];
    const gs_marks dup = marks_of(&m[GS_DUP_WORDS], &m[GS_DUP_BEFORE], a->n),
                   split = marks_of(&m[GS_SPLIT_WORDS], &m[GS_SPLIT_BEFORE], a->n);
    const int64_t columns = columns_of(&call->out[0], call->node->in[0].n_axes);
    float *at = call->out[0].data;
    int64_t copy = a->n, second = a->n + a->dups;
    begin(call, 0);
    for (int64_t row = 0; row < a->n; row++) {
        const bool splits = gs_marks_has(&split, row);
        if (a->moments && splits) memset(at + row * columns, 0, (size_t)columns * sizeof(float));
        if (a->moments) continue;
        if (gs_marks_has(&dup, row)) copy_numbers(call, 0, copy++, row);
        if (splits) copy_numbers(call, 0, second++, row);
    }
    return FTH_OK;
}

static fth_status run_close(const fth_call *call)
{
    const gs_closing *a = call->node->attr;
    const gs_marks gone = marks_of(&call->in[GS_CLOSE_WORDS], &call->in[GS_CLOSE_BEFORE], a->n);
    int64_t to = 0;
    begin(call, 0);
    for (int64_t row = 0; row < a->n; row++)
        if (!gs_marks_has(&gone, row)) copy_numbers(call, 0, to++, row);
    return FTH_OK;
}

/* ---- records ---- */

const fth_op gs_candidates_op = {
    .name = "splat_candidates",
    .brief = "Gaussians whose gradient is large: those to duplicate, those to split",
    .infer = infer_candidates,
    .run = run_candidates,
};
const fth_op gs_unwanted_op = {
    .name = "splat_unwanted",
    .brief = "Gaussians that are transparent, have no rotation or are too large",
    .infer = infer_unwanted,
    .run = run_unwanted,
};
const fth_op gs_count_op = {
    .name = "splat_count",
    .brief = "marked Gaussians before each block of 1024, and in all",
    .infer = infer_count,
    .run = run_count,
};
const fth_op gs_split_op = {
    .name = "splat_split",
    .brief = "places, sizes, rotations and opacities with children and copies",
    .infer = infer_split,
    .update_of = update_of,
    .run = run_split,
};
const fth_op gs_copy_op = {
    .name = "splat_copy",
    .brief = "another array over Gaussians with rows of children and copies",
    .infer = infer_copy,
    .update_of = update_of,
    .run = run_copy,
};
const fth_op gs_close_op = {
    .name = "splat_close",
    .brief = "an array over Gaussians without the rows that go",
    .infer = infer_close,
    .update_of = update_of,
    .run = run_close,
};
