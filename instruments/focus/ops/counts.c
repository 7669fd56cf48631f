/* counts.c - the operation that counts values.
 *
 * Each worker of the team has two tables of 32 bit counts of its own: values that repeat come to
 * lie in the two in turn, so that an increment rarely waits for the one before. Integers are added
 * up in any order.
 */
#include "counts.h"

#include <string.h>

typedef struct shape {
    bool together, floats, lower;
    int64_t bins;
} shape;

static shape shape_of(const fth_node *node)
{
    const fo_counts_attr *a = node->attr;
    const fth_dtype t = node->in[0].dtype;
    shape s = {.together = a->together != 0, .floats = t == FTH_F32, .lower = node->n_in == 3};
    s.bins = t == FTH_U8 ? FO_BINS_U8 : s.lower ? (int64_t)FO_RANKS * FO_BINS : FO_BINS;
    return s;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_counts_attr *a = node->attr;
    FTH_TRY(fo_stack_check(node, 1, err));
    const shape s = shape_of(node);
    if (a->step < 1)
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "focus_counts: step %lld is not positive",
                        (long long)a->step);
    if (s.lower && (!s.floats || s.together))
        return FTH_FAIL(err, FTH_E_GRAPH_ATTR, "focus_counts: lower halves are of stacks of f32");
    fth_desc d = {.dtype = FTH_I64};
    if (!s.together) {
        d.axis[0] = node->in[0].axis[FO_STACK];
        d.size[0] = node->in[0].size[FO_STACK];
        d.n_axes = 1;
    }
    d.axis[d.n_axes] = (fth_axis_id)a->bin;
    d.size[d.n_axes++] = s.bins;
    node->n_out = 1;
    node->out[0] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const shape s = shape_of(node);
    if (dim == 0 && !s.together)
        *out = (fth_relation){.along = FTH_SAME, .out_dim = 0};
    else if (in == 2)
        *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    else
        *out = (fth_relation){.along = FTH_ACCUMULATE, .out_dim = -1};
}

enum { TABLES = 2, ROWS_AT_ONCE = 64 };

static uint64_t table_bytes(const fth_node *node)
{
    return TABLES * sizeof(uint32_t) * (uint64_t)shape_of(node).bins;
}

static uint64_t scratch(const fth_call *call)
{
    return table_bytes(call->node) * (uint64_t)(call->threads > 0 ? call->threads : 1);
}

static double flops(const fth_call *call)
{
    double n = 2;
    for (int d = 0; d < FO_STACK_AXES; d++) n *= (double)call->in[0].extent[d];
    return n;
}

/* ---- loops over a row ---- */

static void row_u8(const uint8_t *v, int64_t n, uint32_t *a, uint32_t *b)
{
    int64_t x = 0;
    for (; x + 2 <= n; x += 2) a[v[x]]++, b[v[x + 1]]++;
    if (x < n) a[v[x]]++;
}

static void row_u16(const uint16_t *v, int64_t n, uint32_t *a, uint32_t *b)
{
    int64_t x = 0;
    for (; x + 8 <= n; x += 8) {
        uint64_t w[2];
        memcpy(w, v + x, sizeof w);
        for (int i = 0; i < 2; i++) {
            a[w[i] & 0xffff]++;
            b[w[i] >> 16 & 0xffff]++;
            a[w[i] >> 32 & 0xffff]++;
            b[w[i] >> 48]++;
        }
    }
    for (; x < n; x++) a[v[x]]++;
}

static uint32_t key_at(const float *v)
{
    uint32_t bits;
    memcpy(&bits, v, sizeof bits);
    return fo_float_key(bits);
}

static void row_upper(const float *v, int64_t n, uint32_t *a)
{
    for (int64_t x = 0; x < n; x++) a[key_at(v + x) >> 16]++;
}

static void row_lower(const float *v, int64_t n, const int64_t *upper, uint32_t *a)
{
    for (int64_t x = 0; x < n; x++) {
        const uint32_t key = key_at(v + x);
        for (int r = 0; r < FO_RANKS; r++)
            if (key >> 16 == (uint32_t)upper[r]) a[(uint32_t)r * FO_BINS + (key & 0xffff)]++;
    }
}

/* Every step-th of all values, counted over all stacks. */
static void row_some(const void *row, fth_dtype t, int64_t n, int64_t from, int64_t step,
                     uint32_t *a)
{
    for (int64_t x = (step - from % step) % step; x < n; x += step) switch (fth_dtype_size(t)) {
        case 1: a[((const uint8_t *)row)[x]]++; break;
        case 2: a[((const uint16_t *)row)[x]]++; break;
        default: a[key_at((const float *)row + x) >> 16]++;
        }
}

/* ---- shares of the work: runs of rows of one plane ---- */

typedef struct job {
    const fth_call *call;
    shape shape;
    int64_t s, runs; /* of the stack, per plane */
} job;

static uint32_t *table_of(const job *j, int worker)
{
    return (uint32_t *)(void *)((char *)j->call->scratch +
                                (uint64_t)worker * table_bytes(j->call->node));
}

static void share(void *arg, int64_t i, int worker)
{
    const job *j = arg;
    const fth_call *call = j->call;
    const fth_node *node = call->node;
    const fo_counts_attr *attr = node->attr;
    const fth_tile *in = &call->in[0];
    const fth_dtype t = node->in[0].dtype;
    const int64_t z = i / j->runs, from = i % j->runs * ROWS_AT_ONCE, n = in->extent[FO_X];
    uint32_t *a = table_of(j, worker), *b = a + j->shape.bins;
    if (!fo_stack_has(&call->in[1], j->s, z)) return;
    for (int64_t y = from; y < from + ROWS_AT_ONCE && y < in->extent[FO_Y]; y++) {
        const void *row = fo_stack_row(in, fth_dtype_size(t), j->s, z, in->origin[FO_Y] + y);
        if (attr->step > 1) {
            const int64_t *size = node->in[0].size;
            const int64_t plane = (in->origin[FO_STACK] + j->s) * size[FO_Z] + in->origin[FO_Z] + z;
            row_some(row, t, n,
                     (plane * size[FO_Y] + in->origin[FO_Y] + y) * size[FO_X] + in->origin[FO_X],
                     attr->step, a);
        } else if (t == FTH_U8)
            row_u8(row, n, a, b);
        else if (t == FTH_U16)
            row_u16(row, n, a, b);
        else if (j->shape.lower)
            row_lower(row, n, (const int64_t *)call->in[2].data + j->s * call->in[2].stride[0], a);
        else
            row_upper(row, n, a);
    }
}

static void add_up(const job *j, int64_t *out)
{
    const int tables = TABLES * (j->call->threads > 0 ? j->call->threads : 1);
    for (int k = 0; k < tables; k++) {
        const uint32_t *from = table_of(j, 0) + k * j->shape.bins;
        for (int64_t i = 0; i < j->shape.bins; i++) out[i] += from[i];
    }
}

static fth_status run(const fth_call *call)
{
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    job j = {.call = call,
             .shape = shape_of(call->node),
             .runs = (in->extent[FO_Y] + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE};
    const int64_t outs = j.shape.together ? 1 : out->extent[0];
    for (int64_t s = 0; call->first && s < outs; s++)
        memset((int64_t *)out->data + s * out->stride[0] * !j.shape.together, 0,
               sizeof(int64_t) * (uint64_t)j.shape.bins);
    if (in->extent[FO_X] == 0) return FTH_OK;
    for (j.s = 0; j.s < in->extent[FO_STACK]; j.s++) {
        memset(call->scratch, 0, scratch(call));
        fth_team_run(call->team, j.runs * in->extent[FO_Z], share, &j);
        add_up(&j, (int64_t *)out->data + j.s * out->stride[0] * !j.shape.together);
    }
    return FTH_OK;
}

static const fth_op counts = {
    .name = "focus_counts",
    .brief = "how often each value occurs in a stack",
    .flags = FTH_OP_TEAM,
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

fth_val fo_counts_(fth_site site, fth_val stacks, fth_val present, fth_val upper, const char *bin,
                   int64_t step, bool together)
{
    fo_counts_attr attr = {.step = step, .together = together};
    const fth_val in[] = {stacks, present, upper};
    const fth_axis_id id = fth_val_ok(stacks) ? fth_axis_find(stacks.graph, bin) : -1;
    if (fth_val_ok(stacks) && id < 0)
        return fth_poison_(stacks.graph, site, FTH_E_AXIS_NAME, "focus_counts: no axis '%s'", bin);
    attr.bin = (int32_t)id;
    return fth_node_add_(stacks.graph, site, &counts, fth_val_ok(upper) ? 3 : 2, in, &attr,
                         sizeof attr);
}
