/* fused_code.c - from a program to steps: which registers are blocks, which loops run, in which
 * slots.
 *
 * Done anew at every call, because it depends on how the tiles lie in memory; it costs about a
 * microsecond. Nothing decided here can change a bit of the result.
 */
#include "cpu/fused.h"

#include "base/assert.h"
#include "base/checked.h"
#include "ops/view.h"

#include <string.h>

static bool is_half(fth_dtype t)
{
    return t == FTH_F16 || t == FTH_BF16;
}

static bool is_one(const fth__vm *vm, int r)
{
    return vm->reg[r].place == FTH__AT_CELL || vm->reg[r].place == FTH__AT_SCALAR;
}

static int64_t row_stride(const fth__vm *vm, int array)
{
    return vm->row_dim < 0 ? 0 : vm->stride[array][vm->row_dim];
}

static int64_t col_stride(const fth__vm *vm, int array)
{
    return vm->stride[array][vm->col_dim];
}

static bool is_dense(const fth__vm *vm, int array)
{
    const int64_t row = row_stride(vm, array), col = col_stride(vm, array);
    if (vm->cols == 1) return row == 1;
    return col == 1 && (vm->rows == 1 || row == vm->cols);
}

static bool is_uniform(const fth__vm *vm, int array)
{
    return (vm->cols == 1 || col_stride(vm, array) == 0) &&
           (vm->rows == 1 || row_stride(vm, array) == 0);
}

/* No view of the input divides an index, or takes it from memory: strides say where its elements
 * are. */
static bool has_strides(const fth__vm *vm, int i)
{
    for (int l = 0; l < vm->n_looks; l++)
        if (vm->look[l].view->in == i &&
            (vm->look[l].view->div != 1 || vm->look[l].view->rows >= 0))
            return false;
    return true;
}

/* ---- registers ------------------------------------------------------------------------ */

static void place_operands(fth__vm *vm)
{
    const fth__program *p = vm->p;
    for (int i = 0; i < p->n_in; i++) {
        const fth_dtype t = (fth_dtype)p->reg_dtype[i];
        fth__reg *r = &vm->reg[i];
        *r = (fth__reg){
            .dtype = (uint8_t)fth__vec_dtype(t), .index = (int16_t)i, .last = -1, .slot = -1};
        if (p->n_views > 0 && !fth__program_reads(p, i))
            r->place = FTH__AT_NONE; /* the index of rows */
        else if (!has_strides(vm, i))
            r->place = FTH__AT_SLOT;
        else if (is_uniform(vm, i))
            r->place = is_half(t) ? FTH__AT_CELL : FTH__AT_SCALAR;
        else
            r->place = is_dense(vm, i) && !is_half(t) ? FTH__AT_INPUT : FTH__AT_SLOT;
    }
    for (int i = 0; i < p->n_const; i++) {
        const fth_dtype t = (fth_dtype)p->reg_dtype[p->n_in + i];
        fth__cell_const(t, p->constant[i], p->constant_i64[i], &vm->constant[i]);
        vm->reg[p->n_in + i] = (fth__reg){(uint8_t)fth__vec_dtype(t), FTH__AT_CELL, -1, -1, -1};
    }
    for (int i = p->n_in + p->n_const; i < p->n_reg; i++)
        vm->reg[i] = (fth__reg){(uint8_t)fth__vec_dtype((fth_dtype)p->reg_dtype[i]), FTH__AT_NONE,
                                -1, -1, -1};
    vm->n_regs = p->n_reg;
}

/* ---- steps ---------------------------------------------------------------------------- */

/* A block full of a scalar, for a loop that takes no scalar there. */
static int16_t fill(fth__vm *vm, int16_t r)
{
    FTH_ASSERT(vm->n_regs < FTH__VM_REGS && vm->n_steps < FTH__VM_STEPS);
    const int16_t block = (int16_t)vm->n_regs++;
    vm->reg[block] = (fth__reg){vm->reg[r].dtype, FTH__AT_SLOT, -1, -1, -1};
    vm->step[vm->n_steps++] = (fth__step){.op = FTH__STEP_FILL, .dst = block, .src = {r, -1, -1}};
    return block;
}

/* The operation that gives the same with its operands exchanged; -1: there is none. */
static int mirrored(int op, fth_dtype t)
{
    const bool whole = fth__kind_of(t) == FTH__KIND_INT;
    switch (op) {
    case FTH_EW_ADD:
    case FTH_EW_MUL:
    case FTH_EW_EQ:
    case FTH_EW_NE:
    case FTH_EW_AND:
    case FTH_EW_OR:
    case FTH_EW_XOR: return op;
    case FTH_EW_LT: return FTH_EW_GT;
    case FTH_EW_GT: return FTH_EW_LT;
    case FTH_EW_LE: return FTH_EW_GE;
    case FTH_EW_GE: return FTH_EW_LE;
    case FTH_EW_MIN: /* of 0 and -0 the second is taken: only integers have no such pair */
    case FTH_EW_MAX: return whole ? op : -1;
    }
    return -1;
}

static void swap_sources(fth__step *s)
{
    const int16_t first = s->src[0];
    s->src[0] = s->src[1];
    s->src[1] = first;
}

/* Choose the loop: a form for where the scalars are, else blocks filled with them. */
static void choose_binary(fth__vm *vm, fth__step *s, fth_dtype t)
{
    if (is_one(vm, s->src[0])) {
        const int other = mirrored(s->op, t);
        if (other >= 0) {
            s->op = (int16_t)other;
            swap_sources(s);
        } else if (!fth__vec_map(vm->vec, s->op, t)[FTH__SV]) {
            s->src[0] = fill(vm, s->src[0]);
        }
    }
    fth__vec_fn *const *form = fth__vec_map(vm->vec, s->op, t);
    if (is_one(vm, s->src[1]) && !form[FTH__VS]) s->src[1] = fill(vm, s->src[1]);
    s->run = form[is_one(vm, s->src[0]) ? FTH__SV : is_one(vm, s->src[1]) ? FTH__VS : FTH__VV];
    FTH_ASSERT(s->run);
}

static void choose_ternary(fth__vm *vm, fth__step *s, fth_dtype t)
{
    if (is_one(vm, s->src[0]) && s->op == FTH_EW_FMA && !is_one(vm, s->src[1])) swap_sources(s);
    if (is_one(vm, s->src[0])) s->src[0] = fill(vm, s->src[0]);
    const int form = (is_one(vm, s->src[1]) ? 2 : 0) + (is_one(vm, s->src[2]) ? 1 : 0);
    s->run = fth__vec_map(vm->vec, s->op, t)[form];
    FTH_ASSERT(s->run);
}

/* ---- two steps in one ----------------------------------------------------------------- */

static int arity(int op)
{
    return fth__ew_info((fth_ew)op)->arity;
}

static const fth__vec_pair *find_pair(const fth__vm *vm, int first, int second, fth_dtype t,
                                      bool swapped)
{
    const fth__pair_list *list = vm->vec->pairs;
    for (int i = 0; i < list->n; i++) {
        const fth__vec_pair *row = &list->pair[i];
        if (row->first == first && row->second == second && row->dtype == t &&
            row->swapped == swapped)
            return row;
    }
    return NULL;
}

/* Join `s`, not yet added, with the step before it when that made one of its operands for it alone.
 */
static bool join_pair(fth__vm *vm, fth__step *s, fth_dtype t, const int *uses)
{
    if (vm->n_steps == 0 || s->op < 0 || arity(s->op) > 2 || (t != FTH_F32 && t != FTH_F64))
        return false;
    const fth__step *f = &vm->step[vm->n_steps - 1];
    if (f->op < 0 || f->once || f->round || arity(f->op) > 2 || uses[f->dst] != 1) return false;
    if ((fth_dtype)vm->reg[f->dst].dtype != t || is_one(vm, f->src[0])) return false;
    if ((fth_dtype)vm->reg[f->src[0]].dtype != t) return false; /* abs of complex numbers is real */
    bool swapped = s->src[0] != f->dst;
    if (swapped && s->src[1] != f->dst) return false;
    if (swapped && (s->op == FTH_EW_ADD || s->op == FTH_EW_MUL)) {
        swap_sources(s);
        swapped = false;
    }
    const fth__vec_pair *pair = find_pair(vm, f->op, s->op, t, swapped);
    if (!pair) return false;
    const int16_t b = arity(f->op) == 2 ? f->src[1] : -1,
                  c = arity(s->op) == 2 ? s->src[swapped ? 0 : 1] : -1;
    const int form = (b >= 0 && is_one(vm, b) ? 2 : 0) + (c >= 0 && is_one(vm, c) ? 1 : 0);
    if (!pair->run[form]) return false;
    fth__step *joined = &vm->step[vm->n_steps - 1];
    *joined = (fth__step){
        .run = pair->run[form], .op = FTH__STEP_PAIR, .dst = s->dst, .src = {f->src[0], b, c}};
    return true;
}

/* Where it is the same all over a block, one of it. */
static void add_made(fth__vm *vm, const fth__instr *in)
{
    const bool once = is_uniform(vm, FTH__VM_MADE + in->from);
    vm->reg[in->dst].place = once ? FTH__AT_CELL : FTH__AT_SLOT;
    FTH_ASSERT(vm->n_steps < FTH__VM_STEPS);
    vm->step[vm->n_steps++] = (fth__step){.op = FTH__INSTR_MAKE,
                                          .made = in->from,
                                          .dst = in->dst,
                                          .src = {in->src[0], in->src[1], -1},
                                          .once = once};
}

static void add_instr(fth__vm *vm, const fth__instr *in, const int *uses)
{
    if (in->op == FTH__INSTR_MAKE) {
        add_made(vm, in);
        return;
    }
    const fth_dtype from = fth__vec_dtype((fth_dtype)in->from), to = (fth_dtype)in->to;
    fth__step s = {
        .op = in->op, .dst = in->dst, .src = {in->src[0], in->src[1], in->src[2]}, .once = true};
    if (is_half(to)) s.round = (*vm->vec->half)[to == FTH_BF16].round;
    for (int k = 0; k < 3; k++)
        if (s.src[k] >= 0 && !is_one(vm, s.src[k])) s.once = false;
    vm->reg[s.dst].place = s.once ? FTH__AT_CELL : FTH__AT_SLOT;
    if (s.op == FTH_EW_MUL && s.src[0] == s.src[1]) {
        s.op = FTH_EW_SQR;
        s.src[1] = -1;
    }
    if (s.op == FTH__INSTR_CAST) {
        s.run = (*vm->vec->cast)[in->from][in->to];
    } else if (s.once || arity(s.op) == 1) {
        s.run = fth__vec_map(vm->vec, s.op, from)[FTH__VV];
        if (!s.once && !s.round && join_pair(vm, &s, from, uses)) return;
    } else {
        if (arity(s.op) == 2 && !s.round && join_pair(vm, &s, from, uses)) return;
        if (arity(s.op) == 2)
            choose_binary(vm, &s, from);
        else
            choose_ternary(vm, &s, from);
    }
    FTH_ASSERT(s.run && vm->n_steps < FTH__VM_STEPS);
    vm->step[vm->n_steps++] = s;
}

/* ---- slots ---------------------------------------------------------------------------- */

static bool overlap(const fth_desc *a, const fth_tile *ta, const fth_desc *b, const fth_tile *tb)
{
    int64_t na = 1, nb = 1;
    for (int d = 0; d < a->n_axes; d++) na += (ta->extent[d] - 1) * ta->stride[d];
    for (int d = 0; d < b->n_axes; d++) nb += (tb->extent[d] - 1) * tb->stride[d];
    const uintptr_t pa = (uintptr_t)ta->data, pb = (uintptr_t)tb->data;
    return pa < pb + (uintptr_t)(nb * fth_dtype_size(b->dtype)) &&
           pb < pa + (uintptr_t)(na * fth_dtype_size(a->dtype));
}

/* May the step `made` write output o at once? Not while an operand in the same memory is still
 * read. */
static bool safe_output(const fth__vm *vm, int o, int made)
{
    const fth_call *call = vm->call;
    for (int i = 0; i < vm->p->n_in; i++) {
        const fth__reg *r = &vm->reg[i];
        if (r->place != FTH__AT_INPUT && r->place != FTH__AT_SCALAR) continue;
        if (r->last > made &&
            overlap(&call->node->in[i], &call->in[i], &call->node->out[o], &call->out[o]))
            return false;
    }
    return true;
}

static void place_outputs(fth__vm *vm)
{
    const fth__program *p = vm->p;
    for (int o = 0; o < p->n_out && vm->tail.dim < 0; o++) {
        fth__reg *r = &vm->reg[p->out_reg[o]];
        if (!vm->call->out[o].data || r->place != FTH__AT_SLOT || p->out_reg[o] < p->n_in) continue;
        if (is_half((fth_dtype)p->reg_dtype[p->out_reg[o]]) ||
            !is_dense(vm, FTH_PROGRAM_INPUTS + o))
            continue;
        int made = 0;
        while (made < vm->n_steps && vm->step[made].dst != p->out_reg[o]) made++;
        FTH_ASSERT(made < vm->n_steps); /* a register in a slot was made by some step */
        if (!safe_output(vm, o, made)) continue;
        r->place = FTH__AT_OUT;
        r->index = (int16_t)o;
    }
}

static void find_last(fth__vm *vm)
{
    for (int i = 0; i < vm->n_steps; i++)
        for (int k = 0; k < 3; k++)
            if (vm->step[i].src[k] >= 0) vm->reg[vm->step[i].src[k]].last = (int16_t)i;
    for (int o = 0; o < vm->p->n_out; o++) vm->reg[vm->p->out_reg[o]].last = FTH__VM_STEPS;
}

static int16_t take_slot(fth__vm *vm, bool *used)
{
    int i = 0;
    while (i < FTH__VM_REGS && used[i]) i++;
    FTH_ASSERT(i < FTH__VM_REGS);
    used[i] = true;
    if (i + 1 > vm->n_slots) vm->n_slots = i + 1;
    return (int16_t)i;
}

/* Inputs that are looked after keep theirs, wherever most of their blocks are. */
static void place_input_slots(fth__vm *vm, bool *used)
{
    for (int i = 0; i < vm->p->n_in; i++) {
        fth__reg *r = &vm->reg[i];
        const bool looked_after = fth__is_looked_after(vm, i);
        if (r->place != FTH__AT_SLOT && !looked_after) continue;
        const int16_t slot = take_slot(vm, used);
        if (r->place == FTH__AT_SLOT) r->index = slot;
        if (looked_after) r->slot = slot;
    }
}

static void place_slots(fth__vm *vm)
{
    bool used[FTH__VM_REGS] = {false};
    place_input_slots(vm, used);
    for (int i = 0; i < vm->n_steps; i++) {
        const fth__step *s = &vm->step[i];
        fth__reg *d = &vm->reg[s->dst];
        bool later[3] = {false};
        for (int k = 0; k < 3; k++) {
            const fth__reg *r = s->src[k] < 0 ? NULL : &vm->reg[s->src[k]];
            if (!r || r->place != FTH__AT_SLOT || r->last != i) continue;
            /* a result of the same width may take its operand's place */
            later[k] = fth_dtype_size((fth_dtype)r->dtype) != fth_dtype_size((fth_dtype)d->dtype);
            if (!later[k]) used[r->index] = false;
        }
        if (d->place == FTH__AT_SLOT) d->index = take_slot(vm, used);
        for (int k = 0; k < 3; k++)
            if (later[k]) used[vm->reg[s->src[k]].index] = false;
    }
}

void fth__vm_code(fth__vm *vm)
{
    const fth__program *p = vm->p;
    int uses[FTH__VM_REGS] = {0};
    FTH_ASSERT(p->n_reg <= FTH__VM_REGS && p->n_instr <= FTH_PROGRAM_INSTRS);
    for (int i = 0; i < p->n_instr; i++)
        for (int k = 0; k < 3; k++)
            if (p->instr[i].src[k] >= 0) uses[p->instr[i].src[k]]++;
    for (int i = 0; i < p->n_instr; i++) /* a square is one use */
        if (p->instr[i].op == FTH_EW_MUL && p->instr[i].src[0] == p->instr[i].src[1])
            uses[p->instr[i].src[0]]--;
    for (int o = 0; o < p->n_out; o++) uses[p->out_reg[o]] += 2;
    place_operands(vm);
    for (int i = 0; i < p->n_instr; i++) add_instr(vm, &p->instr[i], uses);
    find_last(vm);
    place_outputs(vm);
    place_slots(vm);
}
