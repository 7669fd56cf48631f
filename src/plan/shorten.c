/* shorten.c - a fused program without what it computes twice.
 *
 * Values that programs make on the way are not merged in the graph, where one that is made once and
 * read in two places would have to be stored (stand.c). Inside a program it is just a register.
 */
#include "base/assert.h"
#include "ops/elementwise.h"
#include "plan/plan.h"

#include <string.h>

enum { REGISTERS = FTH_PROGRAM_INPUTS + FTH_PROGRAM_CONSTS + FTH_PROGRAM_INSTRS };

typedef struct shortener {
    const fth__program *from;
    fth__program *to;
    int16_t reg[REGISTERS];   /* per register of `from`: that of `to` */
    bool goes_out[REGISTERS]; /* per register of `to` */
} shortener;

static bool leaves(const fth__program *pr, int reg)
{
    bool out = false;
    for (int o = 0; o < pr->n_out; o++) out |= pr->out_reg[o] == reg;
    return out;
}

static void add_constant(shortener *s, int c)
{
    const fth__program *a = s->from;
    fth__program *b = s->to;
    const uint8_t dtype = a->reg_dtype[a->n_in + c];
    int k = 0;
    while (k < b->n_const &&
           (b->reg_dtype[b->n_in + k] != dtype || b->constant_i64[k] != a->constant_i64[c] ||
            memcmp(&b->constant[k], &a->constant[c], sizeof a->constant[c]) != 0))
        k++;
    s->reg[a->n_in + c] = (int16_t)(b->n_in + k);
    if (k < b->n_const) return;
    b->constant[k] = a->constant[c];
    b->constant_i64[k] = a->constant_i64[c];
    b->reg_dtype[b->n_in + k] = dtype;
    b->n_const++;
}

static bool same_instr(const fth__instr *a, const fth__instr *b)
{
    if (a->op != b->op || a->from != b->from || a->to != b->to) return false;
    if (memcmp(a->src, b->src, sizeof a->src) == 0) return true;
    return a->op >= 0 && fth__ew_commutes((fth_ew)a->op, (fth_dtype)a->from) &&
           a->src[0] == b->src[1] && a->src[1] == b->src[0];
}

/* Two outputs stay two registers: a kernel may make each where it goes. */
static void add_instr(shortener *s, int i)
{
    const fth__program *a = s->from;
    fth__program *b = s->to;
    fth__instr in = a->instr[i];
    const bool out = leaves(a, in.dst);
    const int16_t old = in.dst;
    for (int k = 0; k < 3; k++)
        if (in.src[k] >= 0) in.src[k] = s->reg[in.src[k]];
    for (int k = 0; k < b->n_instr; k++) {
        const int16_t dst = b->instr[k].dst;
        if (!same_instr(&b->instr[k], &in) || (out && s->goes_out[dst])) continue;
        s->reg[old] = dst;
        s->goes_out[dst] |= out;
        return;
    }
    in.dst = (int16_t)(b->n_in + b->n_const + b->n_instr);
    s->reg[old] = in.dst;
    s->goes_out[in.dst] = out;
    b->reg_dtype[in.dst] = in.to;
    b->instr[b->n_instr++] = in;
}

void fth__program_shorten(fth__program *pr)
{
    const fth__program from = *pr;
    shortener s = {.from = &from, .to = pr};
    pr->n_const = pr->n_instr = 0;
    memset(pr->reg_dtype, 0, sizeof pr->reg_dtype);
    memset(pr->constant, 0, sizeof pr->constant);
    memset(pr->constant_i64, 0, sizeof pr->constant_i64);
    memset(pr->instr, 0, sizeof pr->instr);
    memcpy(pr->reg_dtype, from.reg_dtype, sizeof *pr->reg_dtype * (size_t)from.n_in);
    for (int i = 0; i < from.n_in; i++) s.reg[i] = (int16_t)i;
    for (int c = 0; c < from.n_const; c++) add_constant(&s, c);
    for (int i = 0; i < from.n_instr; i++) add_instr(&s, i);
    for (int o = 0; o < from.n_out; o++) pr->out_reg[o] = s.reg[from.out_reg[o]];
    pr->n_reg = pr->n_in + pr->n_const + pr->n_instr;
    FTH_ASSERT(pr->n_const <= from.n_const && pr->n_instr <= from.n_instr);
}
