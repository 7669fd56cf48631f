/* leaf.c - values that no operation computes: inputs, parameters and constants; and assign.
 *
 * The planner knows these four by their address: inputs and parameters are read, constants go
 * into programs or are filled in once, an assign is an effect on its parameter's storage.
 */
#include "array/half.h"
#include "array/tensor.h"
#include "base/assert.h"
#include "base/str.h"
#include "graph/context.h"
#include "graph/graph.h"
#include "mem/heap.h"

#include <math.h>
#include <string.h>

static fth_status input_infer(fth_node *node, fth_err *err)
{
    (void)err;
    const fth__input_attr *attr = node->attr;
    FTH_ASSERT(attr->index >= 0 && attr->index < node->graph->cap_inputs);
    const fth__input *in = &node->graph->input[attr->index];
    node->n_out = 1;
    node->out[0] = in->desc;
    return FTH_OK;
}

const fth_op fth__op_input = {.name = "input", .brief = "data from outside", .infer = input_infer};

static fth_status const_infer(fth_node *node, fth_err *err)
{
    (void)err;
    const fth__const_attr *attr = node->attr;
    node->n_out = 1;
    node->out[0] = (fth_desc){.dtype = (fth_dtype)attr->dtype};
    return FTH_OK;
}

static fth_status const_run(const fth_call *call)
{
    const fth__const_attr *a = call->node->attr;
    void *p = call->out[0].data;
    const float f = (float)a->value.re;
    switch ((fth_dtype)a->dtype) {
    case FTH_BOOL:
    case FTH_U8: *(uint8_t *)p = (uint8_t)a->integer; break;
    case FTH_U16: *(uint16_t *)p = (uint16_t)a->integer; break;
    case FTH_I32: *(int32_t *)p = (int32_t)a->integer; break;
    case FTH_I64: *(int64_t *)p = a->integer; break;
    case FTH_U32: *(uint32_t *)p = (uint32_t)a->integer; break;
    case FTH_I16: *(int16_t *)p = (int16_t)a->integer; break;
    case FTH_I8: *(int8_t *)p = (int8_t)a->integer; break;
    case FTH_F16: *(uint16_t *)p = fth__f32_to_f16(f); break;
    case FTH_BF16: *(uint16_t *)p = fth__f32_to_bf16(f); break;
    case FTH_F32: *(float *)p = f; break;
    case FTH_F64: *(double *)p = a->value.re; break;
    case FTH_C64: *(fth_c64 *)p = (fth_c64){f, (float)a->value.im}; break;
    case FTH_C128: *(fth_c128 *)p = a->value; break;
    case FTH_DTYPE_COUNT: break;
    }
    return FTH_OK;
}

const fth_op fth__op_const = {.name = "const",
                              .brief = "one number",
                              .flags = FTH_OP_CHEAP,
                              .infer = const_infer,
                              .run = const_run};

static fth_status assign_infer(fth_node *node, fth_err *err)
{
    char a[512], b[512];
    const fth_desc *p = &node->in[0], *v = &node->in[1];
    bool same = p->dtype == v->dtype && p->n_axes == v->n_axes;
    for (int i = 0; same && i < p->n_axes; i++) same = p->axis[i] == v->axis[i];
    if (!same)
        return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "assign: %s cannot take %s",
                        fth_in_format(node, 0, a, sizeof a), fth_in_format(node, 1, b, sizeof b));
    node->n_out = 1;
    node->out[0] = *v;
    return FTH_OK;
}

const fth_op fth__op_assign = {
    .name = "assign", .brief = "put a value into a parameter", .infer = assign_infer};

/* ---- builders -----------------------------------------------------------------------------------
 */

static fth_status make_desc(const fth_graph *g, fth_dtype dtype, const char *axes, fth_desc *d,
                            fth_err *err)
{
    *d = (fth_desc){.dtype = dtype};
    FTH_TRY(fth_axes_parse(g, axes, &d->n_axes, d->axis, err));
    for (int i = 0; i < d->n_axes; i++) d->size[i] = g->axis[d->axis[i]]->size;
    return FTH_OK;
}

static fth_status take_name(fth__input *in, const char *name, fth_err *err)
{
    const size_t n = name ? strlen(name) : 0;
    if (n == 0) return FTH_FAIL(err, FTH_E_GRAPH_NAME, "an input has no name");
    if (n >= sizeof in->name)
        return FTH_FAIL(err, FTH_E_GRAPH_NAME,
                        "the name '%.40s...' of an input has %zu bytes; at most %zu are possible",
                        name, n, sizeof in->name - 1);
    memcpy(in->name, name, n + 1);
    return FTH_OK;
}

/* Sizes that differ are often those of the axes in another order, or of fewer axes. */
static void hint_sizes(const fth_graph *g, const fth_desc *d, const fth_source *s, fth_err *err)
{
    char order[640];
    fth__text t;
    bool taken[FTH_MAX_AXES] = {false};
    if (s->n_axes != d->n_axes) {
        fth_err_hint(err, "the data have %d axes: name each of them, the outermost first",
                     s->n_axes);
        return;
    }
    fth__text_init(&t, order, sizeof order);
    for (int i = 0; i < s->n_axes; i++) {
        int k = 0;
        while (k < d->n_axes && (taken[k] || d->size[k] != s->size[i])) k++;
        if (k == d->n_axes) return;
        taken[k] = true;
        fth__text_add(&t, "%s%s", i ? " " : "", g->axis[d->axis[k]]->name);
    }
    fth_err_hint(err, "the data seem to lie as \"%s\": name the axes in that order", order);
}

static fth_status check_source(const fth_graph *g, const char *name, const fth_desc *d,
                               const fth_source *s, fth_err *err)
{
    char shape[256];
    const char *kind = s->kind ? s->kind : "unnamed";
    if (s->n_axes < 0 || s->n_axes > FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_AXIS_LIMIT, "input '%s': its %s source has %d axes", name, kind,
                        s->n_axes);
    if (s->dtype != d->dtype)
        return FTH_FAIL(err, FTH_E_DTYPE, "input '%s' is declared %s but its %s source holds %s",
                        name, fth_dtype_name(d->dtype), kind, fth_dtype_name(s->dtype));
    bool same = s->n_axes == d->n_axes;
    for (int i = 0; same && i < d->n_axes; i++) same = s->size[i] == d->size[i];
    if (same) return FTH_OK;
    char found[640];
    fth__text t;
    fth__text_init(&t, found, sizeof found);
    for (int i = 0; i < s->n_axes; i++)
        fth__text_add(&t, "%s%lld", i ? " " : "", (long long)s->size[i]);
    fth__text_add(&t, "]");
    for (int i = 0; i < d->n_axes && i < s->n_axes; i++) {
        const fth__axis *a = g->axis[d->axis[i]];
        if (a->size != s->size[i])
            fth__text_add(&t, "; axis '%s' is %lld since %s:%d", a->name, (long long)a->size,
                          a->site.file, a->site.line);
    }
    (void)FTH_FAIL(err, FTH_E_AXIS_SIZE,
                   "input '%s' is declared %s but its %s source has sizes [%s", name,
                   fth__desc_format(g, d, shape, sizeof shape), kind, found);
    hint_sizes(g, d, s, err);
    return FTH_E_AXIS_SIZE;
}

static fth_status add_input(fth_graph *g, fth_site site, const fth__input *in, fth_val *out,
                            fth_err *err)
{
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->input[i].name, in->name) == 0) {
            const fth_site first = g->node[g->value[g->input[i].value].node]->site;
            return FTH_FAIL(err, FTH_E_GRAPH_NAME,
                            "the name '%s' is taken by an input made at %s:%d", in->name,
                            first.file, first.line);
        }
    FTH_TRY(fth__grow(g->mem, &g->input, &g->cap_inputs, g->n_inputs + 1, err));
    g->input[g->n_inputs] = *in;
    const fth__input_attr attr = {.index = (int32_t)g->n_inputs,
                                  .in_place = in->source.data != NULL};
    const fth_val v = fth_node_add_(g, site, &fth__op_input, 0, NULL, &attr, sizeof attr);
    if (!fth_val_ok(v)) return FTH_OK; /* recorded by fth_node_add_ */
    g->input[g->n_inputs++].value = v.id;
    *out = fth_label(v, in->name);
    return FTH_OK;
}

fth_val fth_input_(fth_graph *g, fth_site site, const char *name, fth_dtype dtype, const char *axes,
                   fth_source source)
{
    fth_val out = {g, 0};
    if (!g) return out;
    fth_err err = {0};
    fth__input in = {.dtype = dtype, .source = source, .watched = fth__source_tensor(&source)};
    fth_status s = take_name(&in, name, &err);
    if (s == FTH_OK) s = make_desc(g, dtype, axes, &in.desc, &err);
    if (s == FTH_OK) s = check_source(g, in.name, &in.desc, &source, &err);
    if (s == FTH_OK) s = fth__tensor_check(in.watched, "this reads", &err);
    if (s == FTH_OK) s = add_input(g, site, &in, &out, &err);
    if (fth_val_ok(out)) fth__tensor_watch(in.watched);
    return s == FTH_OK ? out : fth__graph_fail(g, site, &err);
}

fth_status fth_input_set(fth_graph *g, const char *name, fth_source source, fth_err *err)
{
    for (int64_t i = 0; g && i < g->n_inputs; i++) {
        fth__input *in = &g->input[i];
        if (strcmp(in->name, name) != 0) continue;
        if (in->param)
            return FTH_FAIL(err, FTH_E_USAGE, "'%s' is a parameter; its storage is its source",
                            name);
        FTH_TRY(check_source(g, name, &in->desc, &source, err));
        fth_tensor *watched = fth__source_tensor(&source);
        FTH_TRY(fth__tensor_check(watched, "this reads", err));
        fth__tensor_watch(watched);
        fth__tensor_unwatch(in->watched);
        in->watched = watched;
        in->source = source;
        return FTH_OK;
    }
    return FTH_FAIL(err, FTH_E_GRAPH_NAME, "the graph has no input '%s'", name);
}

fth_val fth_param_(fth_graph *g, fth_site site, const char *name, const char *axes,
                   fth_tensor *storage)
{
    fth_val out = {g, 0};
    if (!g) return out;
    if (!storage)
        return fth_poison_(g, site, FTH_E_GRAPH_VALUE, "parameter '%s' has no storage", name);
    fth_err err = {0};
    fth__input in = {
        .dtype = fth_tensor_dtype(storage), .source = fth_tensor_source(storage), .param = storage};
    fth_status s = take_name(&in, name, &err);
    if (s == FTH_OK) s = make_desc(g, in.dtype, axes, &in.desc, &err);
    if (s == FTH_OK) s = check_source(g, in.name, &in.desc, &in.source, &err);
    if (s == FTH_OK) s = fth__tensor_check_place(storage, g->ctx->gpu_mem, in.name, &err);
    if (s == FTH_OK) s = add_input(g, site, &in, &out, &err);
    if (s != FTH_OK) return fth__graph_fail(g, site, &err);
    if (fth_val_ok(out)) fth_tensor_retain(storage);
    return out;
}

fth_status fth_param_set(fth_graph *g, const char *name, fth_tensor *storage, fth_err *err)
{
    if (!storage) return FTH_FAIL(err, FTH_E_GRAPH_VALUE, "parameter '%s' has no storage", name);
    for (int64_t i = 0; g && i < g->n_inputs; i++) {
        fth__input *in = &g->input[i];
        if (strcmp(in->name, name) != 0) continue;
        if (!in->param)
            return FTH_FAIL(err, FTH_E_USAGE, "'%s' is an input, not a parameter", name);
        if (in->param == storage) return FTH_OK;
        const fth_source source = fth_tensor_source(storage);
        FTH_TRY(check_source(g, name, &in->desc, &source, err));
        FTH_TRY(fth__tensor_check(storage, "this reads", err));
        FTH_TRY(fth__tensor_check_place(storage, g->ctx->gpu_mem, name, err));
        FTH_TRY(fth__tensor_hand_over(in->param, storage, err));
        fth_tensor *before = in->param;
        in->param = fth_tensor_retain(storage);
        in->source = source;
        return fth_tensor_release(before);
    }
    return FTH_FAIL(err, FTH_E_GRAPH_NAME, "the graph has no parameter '%s'", name);
}

fth_val fth_assign_(fth_site site, fth_val param, fth_val value)
{
    fth_graph *g = param.graph;
    const fth_node *node = fth__val_node(param);
    if (!node || !fth_val_ok(value)) return (fth_val){g, 0};
    const fth__input_attr *attr = node->attr;
    if (node->op != &fth__op_input || !g->input[attr->index].param) {
        char text[384];
        return fth_poison_(g, site, FTH_E_GRAPH_ASSIGN, "assign: %s is not a parameter",
                           fth_val_format(param, text, sizeof text));
    }
    fth__input *input = &g->input[attr->index];
    const fth_node *old = fth__val_node((fth_val){g, input->assign});
    if (old && old->op == &fth__op_assign && old->in_val[0].id == param.id)
        return fth_poison_(g, site, FTH_E_GRAPH_ASSIGN,
                           "parameter '%s' is assigned here and at %s:%d", input->name,
                           old->site.file, old->site.line);
    const fth_val in[2] = {param, value},
                  made = fth_node_add_(g, site, &fth__op_assign, 2, in, NULL, 0);
    input->assign = made.id;
    return made;
}

/* Constants of integer dtypes must be numbers of that dtype. */
static fth_val add_const(fth_graph *g, fth_site site, const fth__const_attr *attr)
{
    static const struct {
        int64_t lo, hi;
    } range[FTH_DTYPE_COUNT] = {[FTH_BOOL] = {0, 1},
                                [FTH_U8] = {0, UINT8_MAX},
                                [FTH_U16] = {0, UINT16_MAX},
                                [FTH_I32] = {INT32_MIN, INT32_MAX},
                                [FTH_I64] = {INT64_MIN, INT64_MAX},
                                [FTH_U32] = {0, UINT32_MAX},
                                [FTH_I16] = {INT16_MIN, INT16_MAX},
                                [FTH_I8] = {INT8_MIN, INT8_MAX}};
    const fth_dtype t = (fth_dtype)attr->dtype;
    if (!g) return (fth_val){NULL, 0};
    if ((fth_dtype_is_int(t) || t == FTH_BOOL) &&
        (attr->integer < range[t].lo || attr->integer > range[t].hi))
        return fth_poison_(g, site, FTH_E_GRAPH_ATTR, "const: %lld does not fit %s",
                           (long long)attr->integer, fth_dtype_name(t));
    return fth_node_add_(g, site, &fth__op_const, 0, NULL, attr, sizeof *attr);
}

/* What rounds to infinity. Whole numbers of 64 bits fit all dtypes but f16. */
static bool rounds_to_infinity(fth_dtype t, double x)
{
    static const double least[FTH_DTYPE_COUNT] = {[FTH_F16] = 65520.0,
                                                  [FTH_BF16] = 0x1.FFp127,
                                                  [FTH_F32] = 0x1.FFFFFFp127,
                                                  [FTH_C64] = 0x1.FFFFFFp127};
    return t < FTH_DTYPE_COUNT && least[t] > 0.0 && isfinite(x) && fabs(x) >= least[t];
}

fth_val fth_const_like_(fth_site site, fth_val like, double value)
{
    if (!fth_val_ok(like)) return like;
    return fth_const_(like.graph, site, fth_dtype_real_of(fth_val_dtype(like)), value, 0.0);
}

fth_val fth_const_(fth_graph *g, fth_site site, fth_dtype dtype, double re, double im)
{
    const bool whole = fth_dtype_is_int(dtype) || dtype == FTH_BOOL;
    const bool fits = re >= -9223372036854775808.0 && re <= 9223372036854774784.0;
    const int64_t integer = whole && fits ? (int64_t)re : 0;
    if (g && whole && (!fits || (double)integer != re))
        return fth_poison_(g, site, FTH_E_GRAPH_ATTR,
                           floor(re) == re ? "const: %g does not fit %s"
                                           : "const: %g is not a whole number and cannot be %s",
                           re, fth_dtype_name(dtype));
    if (g && im != 0.0 && !fth_dtype_is_complex(dtype))
        return fth_poison_(g, site, FTH_E_GRAPH_ATTR, "const: %g%+gi is complex and cannot be %s",
                           re, im, fth_dtype_name(dtype));
    if (g && (rounds_to_infinity(dtype, re) || rounds_to_infinity(dtype, im)))
        return fth_poison_(g, site, FTH_E_GRAPH_ATTR, "const: %g does not fit %s",
                           rounds_to_infinity(dtype, re) ? re : im, fth_dtype_name(dtype));
    const fth__const_attr attr = {.value = {re, im}, .integer = integer, .dtype = (int32_t)dtype};
    return add_const(g, site, &attr);
}

fth_val fth_const_i64_(fth_graph *g, fth_site site, fth_dtype dtype, int64_t value)
{
    if (g && rounds_to_infinity(dtype, (double)value))
        return fth_poison_(g, site, FTH_E_GRAPH_ATTR, "const: %lld does not fit %s",
                           (long long)value, fth_dtype_name(dtype));
    const fth__const_attr attr = {
        .value = {(double)value, 0.0}, .integer = value, .dtype = (int32_t)dtype};
    return add_const(g, site, &attr);
}
