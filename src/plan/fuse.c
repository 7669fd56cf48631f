/* fuse.c - chains of elementwise operations become one unit, with a reduction at the tail.
 *
 * A group grows backwards from its last operation: a producer joins when it covers the same axes
 * and everything that reads it is in the group already (or only waits for it at the end of the
 * run). Operands that are views (windows, slices) are looked through: the group reads what they are
 * views of, and a view that nobody reads is not made. What joins what depends on the graph alone,
 * never on the budget: the bits must not either.
 */
#include "plan/fuse.h"
#include "base/assert.h"
#include "graph/program.h"
#include "mem/heap.h"
#include "ops/dot_reduce.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/ops.h"
#include "ops/view.h"

#include <string.h>

static bool is_body(const fth_node *n)
{
    if (n->op == &fth__op_cast) return !fth__cast_may_fail(n->in[0].dtype, n->out[0].dtype);
    return n->op == &fth__op_map || n->op == &fth__op_expand || n->op == &fth__op_layout;
}

static bool same_axes(const fth_desc *a, const fth_desc *b)
{
    if (a->n_axes != b->n_axes) return false;
    for (int i = 0; i < a->n_axes; i++)
        if (fth_desc_find(b, a->axis[i]) < 0) return false;
    return true;
}

bool fth__node_may_vanish(const fth_node *n)
{
    return is_body(n);
}

bool fth__node_may_take_in(const fth_node *n, int k)
{
    if (is_body(n)) return same_axes(&n->in[k], &n->out[0]);
    return fth__fuse_tail(n);
}

static bool same_order(const fth_desc *a, const fth_desc *b)
{
    for (int i = 0; i < a->n_axes; i++)
        if (a->axis[i] != b->axis[i]) return false;
    return a->n_axes == b->n_axes;
}

typedef enum readers {
    INSIDE, /* none: the value may disappear in the group */
    AT_END, /* assigns and sinks, which wait for the end of the run */
    OUTSIDE
} readers;

/* A mask that is made early goes with its host, where it is a result like any other. */
static bool takes_mask(const fth__fuser *f, const fth__group *gr, int host, int node)
{
    return f->early[node] == host && gr->root < node && !fth__fuse_tail(f->g->node[gr->root]) &&
           same_order(&f->g->node[node]->out[0], &gr->space);
}

/* Who reads a value besides the group. A value may have very many readers and a group has few, so
 * the first one outside ends the search. */
static readers who_reads(const fth__fuser *f, const fth__group *gr, uint32_t v)
{
    readers found = f->is_out[v] ? AT_END : INSIDE;
    const int made_by = (int)f->g->value[v].node;
    for (int64_t r = f->first[v]; r < f->first[v + 1]; r++) {
        if (fth__in_group(gr, f->reader[r]) || takes_mask(f, gr, made_by, f->reader[r])) continue;
        if (f->g->node[f->reader[r]]->op != &fth__op_assign) return OUTSIDE;
        found = AT_END;
    }
    return found;
}

/* Outputs, inputs, constants and instructions of a group; false: too many for one program. */
static bool fits_program(const fth__fuser *f, const fth__group *gr)
{
    uint32_t in[FTH_PROGRAM_INPUTS];
    int n_in = 0, n_const = 0, n_instr = 0, n_out = 0;
    for (int i = 0; i < gr->n; i++) {
        const fth_node *n = f->g->node[gr->member[i]];
        n_instr += n->op == &fth__op_map || n->op == &fth__op_cast;
        n_out += gr->member[i] == gr->root || who_reads(f, gr, n->out_val[0].id) != INSIDE;
        for (int k = 0; k < n->n_in; k++) {
            const uint32_t v = n->in_val[k].id;
            const fth_node *from = fth__fuse_node(f, v);
            if (fth__in_group(gr, (int)f->g->value[v].node)) continue;
            if (from->op == &fth__op_const) {
                n_const++;
                continue;
            }
            bool known = false;
            for (int j = 0; j < n_in; j++) known |= in[j] == v;
            if (known) continue;
            if (n_in == FTH_PROGRAM_INPUTS) return false;
            in[n_in++] = v;
        }
    }
    return n_const <= FTH_PROGRAM_CONSTS && n_instr <= FTH_PROGRAM_INSTRS &&
           n_out <= FTH_PROGRAM_OUTS;
}

static void insert_member(fth__group *gr, int node)
{
    FTH_ASSERT(gr->n < (int)(sizeof gr->member / sizeof gr->member[0]));
    int i = gr->n++;
    for (; i > 0 && gr->member[i - 1] > node; i--) gr->member[i] = gr->member[i - 1];
    gr->member[i] = node;
}

static bool may_join(const fth__fuser *f, const fth__group *gr, int node)
{
    const fth_node *n = f->g->node[node];
    if (!is_body(n) || f->early[node] >= 0 || f->group[node] >= 0 ||
        !same_axes(&n->out[0], &gr->space))
        return false;
    const readers who = who_reads(f, gr, n->out_val[0].id);
    const bool tail = fth__fuse_tail(f->g->node[gr->root]);
    return who == INSIDE || (who == AT_END && !tail && same_order(&n->out[0], &gr->space));
}

/* Masks among the readers of a value, whose host was just taken in. */
static void take_masks(const fth__fuser *f, fth__group *gr, int host, uint32_t v)
{
    for (int64_t r = f->first[v]; r < f->first[v + 1]; r++)
        if (takes_mask(f, gr, host, f->reader[r]) && !fth__in_group(gr, f->reader[r]))
            insert_member(gr, f->reader[r]);
}

/* A node and the masks beside it, or none of them. */
static bool take_in(const fth__fuser *f, fth__group *gr, int node)
{
    const fth__group before = *gr;
    const fth_node *n = f->g->node[node];
    if (node != gr->root) insert_member(gr, node);
    if (f->hosts[node]) take_masks(f, gr, node, n->out_val[0].id);
    for (int i = 0; f->hosts[node] && i < n->n_in; i++) take_masks(f, gr, node, n->in_val[i].id);
    if (fits_program(f, gr)) return true;
    *gr = before;
    return false;
}

static void grow(const fth__fuser *f, fth__group *gr)
{
    const int most = (int)(sizeof gr->member / sizeof gr->member[0]) - FTH__MASKS;
    for (bool more = true; more;) {
        more = false;
        for (int i = gr->n - 1; i >= 0 && gr->n < most; i--) {
            const fth_node *n = f->g->node[gr->member[i]];
            for (int k = 0; k < n->n_in && gr->n < most; k++) {
                const int from = (int)f->g->value[n->in_val[k].id].node;
                if (fth__in_group(gr, from) || !may_join(f, gr, from)) continue;
                more |= take_in(f, gr, from);
            }
        }
    }
}

/* ---- from a group to a program ---- */

typedef struct coder {
    const fth__fuser *f;
    const fth__group *gr;
    fth__program *pr;
    fth_node *node;
    uint32_t leading;                   /* value that must be input 0; 0: none */
    uint32_t read[FTH_PROGRAM_INPUTS];  /* per input: the operand it stands for; 0: none */
    uint32_t made[FTH_PROGRAM_MADE];    /* per value that is made: the operand it stands for, */
    uint32_t made_by[FTH_PROGRAM_MADE]; /* and what makes it */
    int16_t made_reg[FTH_PROGRAM_MADE];
    fth__fuse_room left;
    int16_t reg[FTH_PROGRAM_INSTRS * 2]; /* per member: register of its result */
} coder;

static int16_t member_reg(const coder *c, int node)
{
    for (int i = 0; i < c->gr->n; i++)
        if (c->gr->member[i] == node) return c->reg[i];
    return -1;
}

/* `value` for operand v, with these axes of it that are not read plainly. */
static int add_value(coder *c, uint32_t v, uint32_t value, int n_axes, const fth__view_axis *axis)
{
    fth__program *pr = c->pr;
    fth_node *node = c->node;
    FTH_ASSERT(node->n_in == pr->n_in && pr->n_in < FTH_PROGRAM_INPUTS);
    FTH_ASSERT(pr->n_views + n_axes <= FTH_PROGRAM_VIEWS);
    const int in = node->n_in++;
    for (int i = 0; i < n_axes; i++) {
        pr->view[pr->n_views] = axis[i];
        pr->view[pr->n_views++].in = (int16_t)in;
    }
    c->left.views -= n_axes;
    c->read[in] = v;
    node->in_val[in] = fth__val_at(c->f->p->graph, value);
    node->in[in] = *fth__val_desc(node->in_val[in]);
    pr->reg_dtype[pr->n_in++] = (uint8_t)node->in[in].dtype;
    return in;
}

/* An input that no operand stands for: the index of rows, the seed of random numbers. */
static int add_further(coder *c, uint32_t value, int n_axes, const fth__view_axis *axis)
{
    for (int i = 0; i < c->node->n_in && n_axes == 0; i++)
        if (c->node->in_val[i].id == value && !fth__is_viewed(c->pr, i)) return i;
    c->left.inputs--;
    return add_value(c, 0, value, n_axes, axis);
}

static void add_made(coder *c, uint32_t v, const fth__looked *l)
{
    const fth_node *n = fth__fuse_node(c->f, l->path.value);
    const int k = c->pr->n_made++;
    c->pr->made[k] = l->made;
    c->made[k] = v;
    c->made_by[k] = l->path.value;
    c->left.made--;
    c->left.views--;
    c->left.instrs--;
    for (int i = 0; i < n->n_in; i++)
        if (fth__fuse_const(c->f, n->in_val[i].id))
            c->left.consts--;
        else
            (void)add_further(c, n->in_val[i].id, 0, NULL);
}

static void add_input(coder *c, uint32_t v)
{
    fth__looked l;
    fth__fuse_look(c->f, c->gr, v, &c->left, &l);
    if (l.makes) {
        add_made(c, v, &l);
        return;
    }
    const int first = c->pr->n_views, in = add_value(c, v, l.path.value, l.n_axes, l.axis);
    int rows[FTH__LOOK_ROWS] = {0};
    for (int r = 0; r < l.path.n_rows; r++)
        rows[r] = add_further(c, l.path.rows[r].value, l.n_rows_axes[r], l.rows_axis[r]);
    for (int i = first; i < c->pr->n_views; i++)
        if (c->pr->view[i].in == in && c->pr->view[i].rows >= 0)
            c->pr->view[i].rows = (int16_t)rows[c->pr->view[i].rows];
}

static bool is_known(const coder *c, uint32_t v)
{
    bool known = false;
    for (int i = 0; i < c->node->n_in; i++) known |= c->read[i] == v;
    for (int i = 0; i < c->pr->n_made; i++) known |= c->made[i] == v;
    return known;
}

static void add_constant(coder *c, uint32_t v)
{
    fth__program *pr = c->pr;
    const fth__const_attr *a = fth__fuse_node(c->f, v)->attr;
    FTH_ASSERT(pr->n_const < FTH_PROGRAM_CONSTS);
    pr->reg_dtype[pr->n_in + pr->n_const] = (uint8_t)a->dtype;
    pr->constant[pr->n_const] = a->value;
    pr->constant_i64[pr->n_const++] = a->integer;
}

/* Registers of inputs and constants are numbered before temporaries, so they are found first. */
static void number_operands(coder *c)
{
    fth__program *pr = c->pr;
    fth_node *node = c->node;
    if (c->leading) {
        node->in_val[0] = fth__val_at(c->f->p->graph, c->leading);
        node->in[0] = *fth__val_desc(node->in_val[0]);
        pr->reg_dtype[0] = (uint8_t)node->in[0].dtype;
        pr->n_in = node->n_in = 1;
        c->read[0] = c->leading;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < c->gr->n; i++) {
            const fth_node *n = c->f->g->node[c->gr->member[i]];
            for (int k = 0; k < n->n_in; k++) {
                const uint32_t v = n->in_val[k].id;
                const fth_node *from = fth__fuse_node(c->f, v);
                const bool constant = from->op == &fth__op_const;
                if (fth__in_group(c->gr, (int)c->f->g->value[v].node) || constant != (pass == 1))
                    continue;
                if (constant)
                    add_constant(c, v);
                else if (!is_known(c, v))
                    add_input(c, v);
            }
        }
    for (int i = 0; i < pr->n_made; i++) { /* after those that write_code counts */
        const fth_node *n = fth__fuse_node(c->f, c->made_by[i]);
        for (int k = 0; k < n->n_in; k++)
            if (fth__fuse_const(c->f, n->in_val[k].id)) add_constant(c, n->in_val[k].id);
    }
    pr->n_reg = pr->n_in + pr->n_const;
}

static int16_t operand_reg(const coder *c, const fth_node *n, int k, int *next_const)
{
    const uint32_t v = n->in_val[k].id;
    const fth_node *from = fth__fuse_node(c->f, v);
    const int16_t made = member_reg(c, (int)c->f->g->value[v].node);
    if (made >= 0) return made;
    if (from->op == &fth__op_const) return (int16_t)(c->pr->n_in + (*next_const)++);
    for (int j = 0; j < c->pr->n_made; j++)
        if (c->made[j] == v) return c->made_reg[j];
    for (int j = 0; j < c->node->n_in; j++)
        if (c->read[j] == v) return (int16_t)j;
    return -1;
}

/* Values that are made are instructions before all others; their constants are the last ones. */
static void write_made(coder *c)
{
    fth__program *pr = c->pr;
    int next = 0;
    for (int i = 0; i < pr->n_made; i++) {
        const fth_node *n = fth__fuse_node(c->f, c->made_by[i]);
        for (int k = 0; k < n->n_in; k++) next += fth__fuse_const(c->f, n->in_val[k].id);
    }
    next = pr->n_in + pr->n_const - next;
    for (int i = 0; i < pr->n_made; i++) {
        const fth_node *n = fth__fuse_node(c->f, c->made_by[i]);
        FTH_ASSERT(pr->n_instr < FTH_PROGRAM_INSTRS && n->n_in <= 3);
        fth__instr *in = &pr->instr[pr->n_instr++];
        *in = (fth__instr){.op = FTH__INSTR_MAKE,
                           .from = (uint8_t)i,
                           .to = (uint8_t)n->out[0].dtype,
                           .dst = (int16_t)pr->n_reg,
                           .src = {-1, -1, -1}};
        for (int k = 0; k < n->n_in; k++)
            in->src[k] = (int16_t)(fth__fuse_const(c->f, n->in_val[k].id)
                                       ? next++
                                       : add_further(c, n->in_val[k].id, 0, NULL));
        pr->reg_dtype[pr->n_reg] = in->to;
        c->made_reg[i] = (int16_t)pr->n_reg++;
    }
}

static void write_code(coder *c)
{
    fth__program *pr = c->pr;
    int next_const = 0;
    write_made(c);
    for (int i = 0; i < c->gr->n; i++) {
        const fth_node *n = c->f->g->node[c->gr->member[i]];
        int16_t src[3] = {-1, -1, -1};
        for (int k = 0; k < n->n_in && k < 3; k++) src[k] = operand_reg(c, n, k, &next_const);
        c->reg[i] = src[0];
        if (n->op != &fth__op_map && n->op != &fth__op_cast)
            continue; /* expand, layout, tail: no work */
        FTH_ASSERT(pr->n_instr < FTH_PROGRAM_INSTRS && n->n_in <= 3);
        for (int k = 0; k < n->n_in; k++) FTH_ASSERT(src[k] >= 0 && src[k] < pr->n_reg);
        fth__instr *in = &pr->instr[pr->n_instr++];
        const bool cast = n->op == &fth__op_cast;
        const int32_t op = cast ? FTH__INSTR_CAST : *(const int32_t *)n->attr;
        *in = (fth__instr){.op = (int16_t)op,
                           .from = (uint8_t)n->in[n->n_in == 3 ? 1 : 0].dtype,
                           .to = (uint8_t)n->out[0].dtype,
                           .dst = (int16_t)pr->n_reg,
                           .src = {src[0], src[1], src[2]}};
        pr->reg_dtype[pr->n_reg] = in->to;
        c->reg[i] = (int16_t)pr->n_reg++;
    }
}

static void add_output(coder *c, const fth_node *n, int16_t reg)
{
    fth_node *node = c->node;
    FTH_ASSERT(node->n_out < FTH_PROGRAM_OUTS && reg >= 0);
    node->out[node->n_out] = n->out[0];
    node->out_val[node->n_out] = n->out_val[0];
    c->pr->out_reg[node->n_out++] = reg;
}

/* The root is output 0. */
static void write_outputs(coder *c)
{
    const fth__fuser *f = c->f;
    const fth_node *root = f->g->node[c->gr->root];
    fth_node *node = c->node;
    add_output(c, root, member_reg(c, c->gr->root));
    for (int i = c->gr->n - 1; i >= 0; i--) {
        const fth_node *n = f->g->node[c->gr->member[i]];
        if (n != root && who_reads(f, c->gr, n->out_val[0].id) != INSIDE)
            add_output(c, n, c->reg[i]);
    }
    FTH_ASSERT(node->n_out >= 1 && node->out_val[0].id == root->out_val[0].id);
    c->pr->n_out = node->n_out;
    c->pr->tail_dim = -1;
    if (!fth__fuse_tail(root)) return;
    const fth__reduce_attr *a = root->attr;
    c->pr->tail_dim = fth_desc_find(&c->gr->space, a->axis);
    c->pr->tail_red = a->red;
}

/* The group as a node of the fused operation; `leading`, if not 0, becomes its first input. */
static void code_group(const fth__fuser *f, const fth__group *gr, uint32_t leading,
                       fth__program_node *room, fth__program *pr)
{
    fth_node *node = fth__program_node_clear(room);
    node->op = &fth__op_fused;
    node->graph = f->p->graph;
    node->site = f->g->node[gr->root]->site;
    node->attr = pr;
    node->attr_bytes = sizeof *pr;
    memset(pr, 0, sizeof *pr);
    pr->n_axes = gr->space.n_axes - (gr->inner >= 0);
    if (gr->inner >= 0)
        pr->inner_red = ((const fth__reduce_attr *)f->g->node[gr->inner]->attr)->red + 1;
    for (int i = 0; i < gr->space.n_axes; i++) {
        pr->axis[i] = gr->space.axis[i];
        pr->size[i] = gr->space.size[i];
    }
    coder c = {.f = f,
               .gr = gr,
               .pr = pr,
               .node = node,
               .leading = leading,
               .left = fth__fuse_room_of(f, gr, leading)};
    number_operands(&c);
    write_code(&c);
    write_outputs(&c);
    fth__program_shorten(pr);
    FTH_ASSERT(pr->n_reg == pr->n_in + pr->n_const + pr->n_instr);
}

static fth__program_node *take_node(const fth__fuser *f, uint64_t attr_bytes, void **attr)
{
    const uint64_t at = (sizeof(fth__program_node) + 15u) & ~(uint64_t)15u;
    fth__program_node *node = fth__heap_alloc(f->p->mem, at + attr_bytes);
    *attr = node ? (char *)node + at : NULL;
    return node;
}

const char *fth__node_does(const fth_node *node)
{
    if (node->op == &fth__op_map) return fth__ew_info(*(const fth_ew *)node->attr)->name;
    if (node->op == &fth__op_reduce)
        return fth__reduce_name((fth_red)((const fth__reduce_attr *)node->attr)->red);
    return node->op->name;
}

/* The last unit does what these nodes would; `first`: one before them, or -1. */
static fth_status note_members(const fth__fuser *f, const fth__group *gr, int first, fth_err *err)
{
    fth__unit *u = &f->p->unit[f->p->n_units - 1];
    FTH_TRY(fth__heap_take(f->p->mem, gr->n + 1, sizeof *u->member, (void **)&u->member, err));
    if (first >= 0) u->member[u->n_member++] = first;
    for (int i = 0; i < gr->n; i++) u->member[u->n_member++] = gr->member[i];
    return FTH_OK;
}

static fth_status add_group(const fth__fuser *f, const fth__group *gr, fth_err *err)
{
    void *pr;
    fth__program_node *node = take_node(f, sizeof(fth__program), &pr);
    if (!node) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a fused group");
    code_group(f, gr, 0, node, pr);
    FTH_TRY(fth__plan_add_unit(f->p, &node->node, true, err));
    return note_members(f, gr, -1, err);
}

/* ---- a product with the group as its epilogue ---- */

/* Join the dot and the group; false: they do not go together. */
static bool code_joined(const fth__fuser *f, const fth__group *gr, const fth_node *dot,
                        fth__program_node *node, void *attr)
{
    fth__program_node fused;
    fth__program pr;
    code_group(f, gr, dot->out_val[0].id, &fused, &pr);
    const int n_in = fused.node.n_in;
    if (!fth__dot_reduce_make(dot, &pr, &fused.in[1], n_in - 1, attr, node)) return false;
    for (int i = 1; i < n_in; i++) node->in_val[i + 1] = fused.in_val[i];
    node->out_val[0] = fused.out_val[0];
    return true;
}

/* A dot that only this group reads, whose product covers the group's axes and is larger than what
 * it is made of: then it is worth never having it whole. */
static int find_product(const fth__fuser *f, const fth__group *gr)
{
    if (gr->inner >= 0) return -1;
    if (!fth__fuse_tail(f->g->node[gr->root])) return -1;
    for (int i = 0; i < gr->n; i++) {
        const fth_node *n = f->g->node[gr->member[i]];
        for (int k = 0; k < n->n_in; k++) {
            const uint32_t v = n->in_val[k].id;
            const fth_node *dot = fth__fuse_node(f, v);
            if (dot->op != &fth__op_dot || !same_axes(&dot->out[0], &gr->space)) continue;
            const bool large = fth_desc_count(&dot->out[0]) >
                               fth_desc_count(&dot->in[0]) + fth_desc_count(&dot->in[1]);
            if (large && who_reads(f, gr, v) == INSIDE) return (int)f->g->value[v].node;
        }
    }
    return -1;
}

/* As the epilogue of a product the group reads no views. */
static bool try_join(const fth__fuser *f, fth__group *gr, int dot)
{
    fth__program_node node;
    fth__dot_reduce_attr attr;
    gr->plain = dot >= 0;
    gr->plain = gr->plain && code_joined(f, gr, f->g->node[dot], &node, &attr);
    return gr->plain;
}

static fth_status add_joined(const fth__fuser *f, const fth__group *gr, int dot, fth_err *err)
{
    void *attr;
    fth__program_node *node = take_node(f, sizeof(fth__dot_reduce_attr), &attr);
    if (!node) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a fused product");
    if (!code_joined(f, gr, f->g->node[dot], node, attr)) {
        fth__heap_free(f->p->mem, node);
        return FTH_FAIL(err, FTH_E_INTERNAL, "a product joined its epilogue and then did not");
    }
    FTH_TRY(fth__plan_add_unit(f->p, &node->node, true, err));
    return note_members(f, gr, dot, err);
}

static bool is_short(const fth_node *reduce)
{
    const fth_axis_id axis = ((const fth__reduce_attr *)reduce->attr)->axis;
    const int64_t n = reduce->in[0].size[fth_desc_find(&reduce->in[0], axis)];
    return n > 0 && n <= FTH__TAIL_SHORT;
}

/* Sums over the taps of a window of a window: what the first leaves for each tap of the second need
 * not be kept. Both axes are short, so that neither is ever cut, and something is looked through.
 * -1: it is none. */
static int find_inner(const fth__fuser *f, int root)
{
    const fth_node *n = f->g->node[root];
    if (!f->any_view || !fth__fuse_tail(n) || !is_short(n)) return -1;
    const uint32_t v = n->in_val[0].id;
    const int inner = (int)f->g->value[v].node;
    const fth_node *first = f->g->node[inner];
    if (!fth__fuse_tail(first) || !is_short(first) || f->is_out[v] || f->group[inner] >= 0)
        return -1;
    if (f->first[v + 1] - f->first[v] != 1) return -1; /* the root alone reads it */
    const fth_node *of = fth__fuse_node(f, first->in_val[0].id);
    bool looks = f->is_view[f->g->value[first->in_val[0].id].node];
    for (int k = 0; is_body(of) && k < of->n_in; k++)
        looks |= f->is_view[f->g->value[of->in_val[k].id].node];
    return looks ? inner : -1;
}

/* The axes that the program walks; that of the inner reduction is the last one. */
static fth_desc space_of(const fth__fuser *f, int root, int inner)
{
    const fth_node *n = f->g->node[root];
    if (inner < 0) return fth__fuse_tail(n) ? n->in[0] : n->out[0];
    const fth_node *first = f->g->node[inner];
    fth_desc d = first->in[0];
    const fth_axis_id axis = ((const fth__reduce_attr *)first->attr)->axis;
    const int at = fth_desc_find(&d, axis);
    const int64_t size = d.size[at];
    fth_desc_drop(&d, at);
    d.axis[d.n_axes] = axis;
    d.size[d.n_axes++] = size;
    return d;
}

static void make_group(const fth__fuser *f, int root, fth__group *gr)
{
    gr->root = root;
    gr->plain = false;
    gr->inner = find_inner(f, root);
    gr->n = 1;
    gr->member[0] = root;
    gr->space = space_of(f, root, gr->inner);
    if (gr->inner >= 0) insert_member(gr, gr->inner);
    (void)take_in(f, gr, root);
    grow(f, gr);
}

/* A constant that only programs read lives in the programs. */
static bool read_plainly(const fth__fuser *f, uint32_t v)
{
    bool plain = f->is_out[v];
    for (int64_t r = f->first[v]; r < f->first[v + 1]; r++) {
        const int k = f->reader[r];
        const bool made = !f->is_view[k] || f->is_read[f->g->node[k]->out_val[0].id];
        plain |= f->group[k] < 0 && made;
    }
    return plain;
}

/* What programs need not be given as a value: views, rows, and what they make themselves. */
static bool is_source(const fth__fuser *f, const fth_node *n)
{
    fth__look_cycle around;
    if (fth__look_around(f->p, n, &around))
        return f->p->around || fth__plan_resident(f->p, around.value);
    return fth__is_view(n) || n->op == &fth__op_gather || n->op == &fth__op_index ||
           n->op == &fth__op_random;
}

static void find_views(fth__fuser *f)
{
    const fth__fuse_nodes *g = f->g;
    for (int64_t k = g->n_nodes - 1; k >= 0; k--) { /* readers first */
        const fth_node *n = g->node[k];
        if (!f->needed[k] || !is_source(f, n) || f->is_out[n->out_val[0].id]) continue;
        const uint32_t v = n->out_val[0].id;
        bool only = true;
        for (int64_t r = f->first[v]; only && r < f->first[v + 1]; r++) {
            const fth_node *reader = g->node[f->reader[r]];
            only = is_body(reader) || fth__fuse_tail(reader) || f->is_view[f->reader[r]];
        }
        f->is_view[k] = only;
        f->any_view |= only;
    }
}

/* Views that the group does read: as in number_operands. */
static void mark_read(fth__fuser *f, const fth__group *gr)
{
    fth__program_node node;
    fth__program pr;
    if (!f->any_view) return;
    if (gr->plain) {
        for (int i = 0; i < gr->n; i++) {
            const fth_node *n = f->g->node[gr->member[i]];
            for (int k = 0; k < n->n_in; k++) f->is_read[n->in_val[k].id] = true;
        }
        return;
    }
    code_group(f, gr, 0, &node, &pr);
    for (int i = 0; i < node.node.n_in; i++) f->is_read[node.in_val[i].id] = true;
}

/* A view that is made reads its operand, which may be another one. */
static void mark_operands(fth__fuser *f)
{
    for (int64_t k = f->g->n_nodes - 1; k >= 0; k--) { /* readers first */
        const fth_node *n = f->g->node[k];
        for (int i = 0; f->is_view[k] && f->is_read[n->out_val[0].id] && i < n->n_in; i++)
            f->is_read[n->in_val[i].id] = true;
    }
}

static void find_groups(fth__fuser *f)
{
    const fth__fuse_nodes *g = f->g;
    fth__group gr;
    find_views(f);
    for (int64_t k = g->n_nodes - 1; k >= 0; k--) { /* last first: groups grow backwards */
        const fth_node *n = g->node[k];
        if (!f->needed[k] || f->early[k] >= 0 || f->group[k] >= 0 ||
            !(is_body(n) || fth__fuse_tail(n)))
            continue;
        make_group(f, (int)k, &gr);
        f->inner[k] = gr.inner;
        for (int i = 0; i < gr.n; i++) f->group[gr.member[i]] = (int)k;
        const int dot = find_product(f, &gr);
        if (try_join(f, &gr, dot)) {
            f->product[k] = dot;
            f->group[dot] = (int)k;
        }
        mark_read(f, &gr);
    }
    mark_operands(f);
    for (int64_t k = g->n_nodes - 1; k >= 0; k--) { /* lists in ascending order */
        const int root = f->group[k];
        if (root < 0 || f->product[root] == k) continue;
        f->next[k] = f->head[root];
        f->head[root] = (int)k;
    }
}

/* What was moved here from later: after the unit that makes its operand. */
static fth_status add_moved(fth__fuser *f, const fth_node *maker, fth_err *err)
{
    for (int o = 0; o < maker->n_out; o++) {
        const uint32_t v = maker->out_val[o].id;
        for (int64_t r = f->first[v]; r < f->first[v + 1]; r++) {
            const fth_node *n = f->g->node[f->reader[r]];
            if (!f->moved[f->reader[r]]) continue;
            FTH_TRY(fth__plan_add_unit(f->p, n, false, err));
            FTH_TRY(add_moved(f, n, err));
        }
    }
    return FTH_OK;
}

static fth_status add_units(fth__fuser *f, fth_err *err)
{
    const fth__fuse_nodes *g = f->g;
    if (!f->p->limits.no_fuse) find_groups(f);
    for (int64_t k = 0; k < g->n_nodes; k++) {
        const fth_node *n = g->node[k];
        if (!f->needed[k] || n->op == &fth__op_input || n->op == &fth__op_assign) continue;
        if (f->moved[k]) continue;
        if (f->is_view[k] && !f->is_read[n->out_val[0].id]) continue; /* looked through by all */
        if (n->op == &fth__op_const && !read_plainly(f, n->out_val[0].id)) continue;
        if (f->group[k] < 0) {
            FTH_TRY(fth__plan_add_unit(f->p, n, false, err));
        } else if (f->group[k] == k) {
            fth__group gr = {.root = (int)k, .plain = f->product[k] >= 0, .inner = f->inner[k]};
            gr.space = space_of(f, gr.root, gr.inner);
            for (int j = f->head[k]; j >= 0; j = f->next[j]) gr.member[gr.n++] = j;
            FTH_TRY(f->product[k] >= 0 ? add_joined(f, &gr, f->product[k], err)
                                       : add_group(f, &gr, err));
        }
        if (f->group[k] < 0 || f->group[k] == k) FTH_TRY(add_moved(f, n, err));
    }
    for (int64_t k = 0; k < g->n_nodes; k++)
        if (f->needed[k] && g->node[k]->op == &fth__op_assign)
            FTH_TRY(fth__plan_add_unit(f->p, g->node[k], false, err));
    return FTH_OK;
}

static fth_status find_readers(fth__fuser *f, fth_err *err)
{
    const fth__fuse_nodes *g = f->g;
    fth_mem *mem = f->p->mem;
    int64_t total = 0;
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->group, (void **)&f->group, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->product, (void **)&f->product, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->head, (void **)&f->head, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->next, (void **)&f->next, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->inner, (void **)&f->inner, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->is_view, (void **)&f->is_view, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->early, (void **)&f->early, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->hosts, (void **)&f->hosts, err));
    FTH_TRY(fth__heap_take(mem, g->n_nodes + 1, sizeof *f->moved, (void **)&f->moved, err));
    FTH_TRY(fth__heap_take(mem, g->n_values, sizeof *f->is_read, (void **)&f->is_read, err));
    FTH_TRY(fth__heap_take(mem, g->n_values, sizeof *f->is_out, (void **)&f->is_out, err));
    FTH_TRY(fth__heap_take(mem, g->n_values + 2, sizeof *f->first, (void **)&f->first, err));
    for (int64_t k = 0; k < g->n_nodes; k++) {
        f->group[k] = f->product[k] = f->head[k] = f->next[k] = f->inner[k] = -1;
        f->early[k] = -1;
        for (int i = 0; f->needed[k] && i < g->node[k]->n_in; i++, total++)
            f->first[g->node[k]->in_val[i].id + 2]++;
    }
    FTH_TRY(fth__heap_take(mem, total + 1, sizeof *f->reader, (void **)&f->reader, err));
    for (int64_t v = 2; v < g->n_values + 2; v++) f->first[v] += f->first[v - 1];
    for (int64_t k = 0; k < g->n_nodes; k++)
        for (int i = 0; f->needed[k] && i < g->node[k]->n_in; i++)
            f->reader[f->first[g->node[k]->in_val[i].id + 1]++] = (int)k;
    for (int o = 0; o < f->p->n_outs; o++) f->is_out[f->p->out_value[o]] = true;
    return FTH_OK;
}

fth_status fth__plan_fuse(fth_plan *p, const bool *needed, fth_err *err)
{
    const fth__fuse_nodes g = {p->node, p->graph->value, p->graph->n_nodes, p->graph->n_values};
    fth__fuser f = {.p = p, .g = &g, .needed = needed};
    fth_status s = find_readers(&f, err);
    if (s == FTH_OK && !p->limits.no_fuse) s = fth__fuse_find_masks(&f, err);
    if (s == FTH_OK) s = add_units(&f, err);
    fth__heap_free(p->mem, f.group);
    fth__heap_free(p->mem, f.product);
    fth__heap_free(p->mem, f.head);
    fth__heap_free(p->mem, f.next);
    fth__heap_free(p->mem, f.inner);
    fth__heap_free(p->mem, f.is_view);
    fth__heap_free(p->mem, f.early);
    fth__heap_free(p->mem, f.hosts);
    fth__heap_free(p->mem, f.moved);
    fth__heap_free(p->mem, f.is_read);
    fth__heap_free(p->mem, f.is_out);
    fth__heap_free(p->mem, f.first);
    fth__heap_free(p->mem, f.reader);
    return s;
}
