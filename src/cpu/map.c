/* map.c - single elementwise operations and casts as programs of one instruction. */
#include "cpu/fused.h"

#include "base/assert.h"

static void operands(fth__program *p, const fth_node *node)
{
    const fth_desc *d = &node->out[0];
    *p = (fth__program){
        .n_axes = d->n_axes, .n_in = node->n_in, .n_reg = node->n_in, .n_out = 1, .tail_dim = -1};
    for (int k = 0; k < d->n_axes; k++) {
        p->axis[k] = d->axis[k];
        p->size[k] = d->size[k];
    }
    for (int i = 0; i < node->n_in; i++) p->reg_dtype[i] = (uint8_t)node->in[i].dtype;
}

static void add(fth__program *p, const fth_node *node, int op)
{
    FTH_ASSERT(node->n_in >= 1 && node->n_in <= 3);
    fth__instr *in = &p->instr[p->n_instr++];
    *in = (fth__instr){
        .op = (int16_t)op, .to = (uint8_t)node->out[0].dtype, .dst = (int16_t)p->n_reg};
    in->from = (uint8_t)node->in[node->n_in - 1].dtype;
    for (int k = 0; k < 3; k++) in->src[k] = (int16_t)(k < node->n_in ? k : -1);
    p->reg_dtype[p->n_reg] = in->to;
    p->out_reg[0] = (int16_t)p->n_reg++;
}

static void make(fth__program *p, const fth_node *node)
{
    operands(p, node);
    add(p, node, node->op == &fth__op_map ? (int)*(const fth_ew *)node->attr : FTH__INSTR_CAST);
}

static uint64_t scratch(const fth_call *call)
{
    fth__program p;
    make(&p, call->node);
    return fth__vm_scratch(call, &p);
}

static fth_status run(const fth_call *call)
{
    fth__program p;
    make(&p, call->node);
    return fth__vm_run(call, &p);
}

const fth_kernel fth__cpu_map = {.op = "map", .scratch = scratch, .run = run};
const fth_kernel fth__cpu_cast = {.op = "cast", .scratch = scratch, .run = run};
