/* map.cu - single elementwise operations, casts, expansions and reductions as programs.
 *
 * What the planner leaves alone goes the way of fused programs: one instruction, or none; reduce
 * with the order of additions that it has on its own (ops/reduce.h).
 */
#include "cuda/program/fused.h"

extern "C" {
#include "ops/reduce.h"
#include "ops/scalar.h"
}

#include <string.h>

namespace
{

void set_space(fth__program *p, const fth_node *node, const fth_desc *d)
{
    memset(p, 0, sizeof *p);
    p->n_axes = d->n_axes;
    p->n_in = p->n_reg = node->n_in;
    p->n_out = 1;
    p->tail_dim = -1;
    for (int k = 0; k < d->n_axes; k++) {
        p->axis[k] = d->axis[k];
        p->size[k] = d->size[k];
    }
    for (int i = 0; i < node->n_in; i++) p->reg_dtype[i] = (uint8_t)node->in[i].dtype;
}

void add_instruction(fth__program *p, const fth_node *node, int op)
{
    fth__instr *in = &p->instr[p->n_instr++];
    in->op = (int16_t)op;
    in->from = (uint8_t)node->in[node->n_in - 1].dtype;
    in->to = (uint8_t)node->out[0].dtype;
    in->dst = (int16_t)p->n_reg;
    for (int k = 0; k < 3; k++) in->src[k] = (int16_t)(k < node->n_in ? k : -1);
    p->reg_dtype[p->n_reg] = in->to;
    p->out_reg[0] = (int16_t)p->n_reg++;
}

/* As fth__reduce_plain adds: one lane, blocks of fth__reduce_block. */
void set_order(fth__ew_order *o, const fth_node *node, fth_red red, int dim)
{
    const fth_dtype t = node->in[0].dtype;
    const bool exact = fth__reduce_exact(red, t);
    memset(o, 0, sizeof *o);
    o->whole = node->in[0].size[dim];
    o->block = fth__reduce_block(o->whole);
    o->super = fth__grid_superblock(o->whole, o->block);
    o->state = node->op->state(node, 0);
    o->lanes = 1;
    o->exact = exact && !fth_dtype_is_real(t) && !fth_dtype_is_complex(t);
    o->total_in_out = exact || t == FTH_F64 || t == FTH_C128;
    o->has_super = !exact && o->super > o->block;
}

void make(fth__ew_program *e, const fth_node *node)
{
    const char *const name = node->op->name;
    if (strcmp(name, "reduce") == 0) {
        const fth__reduce_attr *attr = (const fth__reduce_attr *)node->attr;
        set_space(&e->p, node, &node->in[0]);
        e->p.tail_dim = fth__reduce_dim(node);
        e->p.tail_red = attr->red;
        fth__ew_order order;
        set_order(&order, node, (fth_red)attr->red, e->p.tail_dim);
        fth__ew_program_init(e, node, &order);
        return;
    }
    set_space(&e->p, node, &node->out[0]);
    if (strcmp(name, "map") == 0) add_instruction(&e->p, node, (int)*(const fth_ew *)node->attr);
    if (strcmp(name, "cast") == 0) add_instruction(&e->p, node, FTH__INSTR_CAST);
    fth__ew_program_init(e, node, NULL);
}

uint64_t scratch(const fth_call *call)
{
    fth__ew_program e;
    make(&e, call->node);
    return fth__ew_scratch(call, &e);
}

fth_status run(const fth_call *call)
{
    fth__ew_program e;
    make(&e, call->node);
    return fth__ew_run(call, &e);
}

fth_status prepare(const fth_node *node, fth_device *device, int64_t runs, fth_err *err)
{
    fth__ew_program e;
    make(&e, node);
    return fth__ew_prepare(node, &e, device, runs, err);
}

bool is_logsumexp(const fth_node *node)
{
    return ((const fth__reduce_attr *)node->attr)->red == FTH_RED_LOGSUMEXP;
}

uint64_t reduce_scratch(const fth_call *call)
{
    return is_logsumexp(call->node) ? fth__cuda_logsumexp_scratch(call) : scratch(call);
}

fth_status reduce_run(const fth_call *call)
{
    return is_logsumexp(call->node) ? fth__cuda_logsumexp(call) : run(call);
}

fth_status reduce_prepare(const fth_node *node, fth_device *device, int64_t runs, fth_err *err)
{
    return is_logsumexp(node) ? FTH_OK : prepare(node, device, runs, err);
}

} // namespace

FTH_CUDA_KERNEL(map) = {.op = "map", .run = run, .prepare = prepare};
FTH_CUDA_KERNEL(cast) = {.op = "cast", .run = run, .prepare = prepare};
FTH_CUDA_KERNEL(expand) = {.op = "expand", .run = run, .prepare = prepare};
FTH_CUDA_KERNEL(reduce) = {
    .op = "reduce", .scratch = reduce_scratch, .run = reduce_run, .prepare = reduce_prepare};
