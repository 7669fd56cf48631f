/* known.c - nodes whose values are known while planning: constants, and values passed on.
 *
 * Only what gives the same bits as running the node, on every backend: operations that IEEE 754
 * defines to the last bit, computed by the reference cells; and of operations that change nothing
 * those without an exception (x + 0 is not one: it makes +0 of -0).
 */
#include "base/assert.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "plan/distinct.h"

static const fth_node *maker_of(const fth_plan *p, uint32_t value)
{
    return p->node[p->graph->value[value].node];
}

static const fth__const_attr *constant_of(const fth_plan *p, uint32_t value)
{
    const fth_node *n = maker_of(p, value);
    return n->op == &fth__op_const ? n->attr : NULL;
}

static fth_ew op_of(const fth_node *n)
{
    return *(const fth_ew *)n->attr;
}

bool fth__node_constant(const fth_plan *p, int64_t k, fth__const_attr *out)
{
    const fth_node *n = p->node[k];
    const bool cast = n->op == &fth__op_cast;
    if (!cast && (n->op != &fth__op_map || !fth__ew_is_exact(op_of(n)))) return false;
    fth__cell in[3] = {{0}}, r = {0};
    const fth_dtype from = n->in[n->n_in - 1].dtype, to = n->out[0].dtype;
    FTH_ASSERT(n->n_in >= 1 && n->n_in <= 3);
    if (fth_dtype_is_complex(from) || fth_dtype_is_complex(to)) return false;
    for (int i = 0; i < n->n_in; i++) {
        const fth__const_attr *a = constant_of(p, n->in_val[i].id);
        if (!a) return false;
        fth__cell_const((fth_dtype)a->dtype, a->value, a->integer, &in[i]);
    }
    if (!cast)
        fth__cell_map(op_of(n), from, &in[0], &in[1], &in[2], &r);
    else if (!fth__cell_cast(from, to, &in[0], &r))
        return false;
    *out = (fth__const_attr){.dtype = (int32_t)to};
    return fth__cell_number(to, &r, &out->value, &out->integer);
}

static bool is_one(const fth__const_attr *a)
{
    if (!a) return false;
    return fth_dtype_is_real((fth_dtype)a->dtype)
               ? a->value.re == 1.0
               : fth_dtype_is_int((fth_dtype)a->dtype) && a->integer == 1;
}

/* 1 * x and -(-x) are x, but for NaN: an elementwise operation makes the one NaN that there is of
 * computed values (array/nan.h), and an input may hold any. */
uint32_t fth__node_passes_on(const fth_plan *p, int64_t k)
{
    const fth_node *n = p->node[k];
    if (n->op != &fth__op_map || fth_dtype_is_complex(n->out[0].dtype)) return 0;
    const fth_node *inner = maker_of(p, n->in_val[0].id);
    uint32_t v = 0;
    if (op_of(n) == FTH_EW_MUL && is_one(constant_of(p, n->in_val[1].id))) v = n->in_val[0].id;
    if (op_of(n) == FTH_EW_MUL && is_one(constant_of(p, n->in_val[0].id))) v = n->in_val[1].id;
    if (op_of(n) == FTH_EW_NEG && inner->op == &fth__op_map && op_of(inner) == FTH_EW_NEG)
        v = inner->in_val[0].id;
    if (v == 0) return 0;
    const fth_node *from = maker_of(p, v);
    const bool computed = from->op == &fth__op_map || from->op == &fth__op_cast;
    return computed && fth__desc_same(&from->out[0], &n->out[0]) ? v : 0;
}
