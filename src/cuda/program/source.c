/* source.c - from a program to CUDA C++.
 *
 * Registers become variables r0, r1, ..; an operation on a dtype becomes one small function around
 * its expression.
 */
#include "cuda/program/source.h"

#include "base/str.h"
#include "cuda/program/fused_args.h"
#include "ops/elementwise.h"
#include "ops/fused.h"
#include "ops/ops.h"
#include "ops/random.h"
#include "ops/view.h"

#include <string.h>

/* ---- tables --------------------------------------------------------------------------- */

/* The columns of elementwise.def as text: bool, integer, real, complex. */
static const char *const expressions[FTH_EW_COUNT][4] = {
#define FTH_EW(name, text, arity, result, b, i, r, c, dx, dy, dz)                                  \
    [FTH_EW_##name] = {#b, #i, #r, #c},
#include <fathom/elementwise.def>
#undef FTH_EW
};

/* Types of a dtype: in memory, in a register, in expressions; FTH_U and FTH_FN of expressions; the
 * constant of a program; how elements become registers and back, and computed ones (array/nan.h).
 */
typedef struct type_row {
    const char *memory, *reg, *expr, *wrap, *fn, *constant, *load, *store, *round, *settle;
} type_row;
static const type_row types[FTH_DTYPE_COUNT] = {
    [FTH_BOOL] = {"uint8_t", "uint8_t", "uint8_t", "uint32_t", "i32", ".u8", "", "", "", ""},
    [FTH_U8] = {"uint8_t", "uint8_t", "int32_t", "uint32_t", "i32", ".u8", "", "", "", ""},
    [FTH_U16] = {"uint16_t", "uint16_t", "int32_t", "uint32_t", "i32", ".u16", "", "", "", ""},
    [FTH_I32] = {"int32_t", "int32_t", "int32_t", "uint32_t", "i32", ".i32", "", "", "", ""},
    [FTH_I64] = {"int64_t", "int64_t", "int64_t", "uint64_t", "i64", ".i64", "", "", "", ""},
    [FTH_U32] = {"uint32_t", "uint32_t", "uint32_t", "uint32_t", "u32", ".u32", "", "", "", ""},
    [FTH_I16] = {"int16_t", "int16_t", "int32_t", "uint32_t", "i32", ".i16", "", "", "", ""},
    [FTH_I8] = {"int8_t", "int8_t", "int32_t", "uint32_t", "i32", ".i8", "", "", "", ""},
    [FTH_F16] = {"uint16_t", "float", "float", "", "f32", ".f32[0]", "fth__dev_f16_to_f32",
                 "fth__dev_f32_to_f16", "fth__round_f16", "fth__settled_f16"},
    [FTH_BF16] = {"uint16_t", "float", "float", "", "f32", ".f32[0]", "fth__dev_bf16_to_f32",
                  "fth__dev_f32_to_bf16", "fth__round_bf16", "fth__settled_bf16"},
    [FTH_F32] = {"float", "float", "float", "", "f32", ".f32[0]", "", "", "", "fth__settled"},
    [FTH_F64] = {"double", "double", "double", "", "f64", ".f64[0]", "", "", "", "fth__settled"},
    [FTH_C64] = {"fth_c64", "fth_c64", "fth_c64", "", "c64", "", "", "", "", "fth__settled"},
    [FTH_C128] = {"fth_c128", "fth_c128", "fth_c128", "", "c128", "", "", "", "", "fth__settled"},
};
_Static_assert(FTH_DTYPE_COUNT == 14,
               "new dtype: give it a row above and in cuda/program/number.h");

static const char *expression(int op, fth_dtype t)
{
    const unsigned class = fth__dtype_class(t);
    return expressions[op][class == FTH__CLASS_BOOL   ? 0
                           : class == FTH__CLASS_INT  ? 1
                           : class == FTH__CLASS_REAL ? 2
                                                      : 3];
}

/* ---- how operands lie ------------------------------------------------------------------ */

enum {
    LONG_ENOUGH = 800,
    LIGHT = 16,
    LONG_BLOCK = FTH__EW_LONG_BLOCK,
    MOST_TINY = 4,    /* elements of a row whose threads have all of it */
    MOST_INSIDE = 32, /* bytes of an item with whole blocks */
    UNDER_WAY = 64,   /* bytes of a thread, of one operand, where all of them have some */
};

static bool is_long(const fth__program *p, fth_axis_id axis)
{
    for (int k = 0; k < p->n_axes + (p->inner_red > 0); k++)
        if (p->axis[k] == axis) return p->size[k] > 1;
    return false;
}

static bool goes_along(const fth__program *p, int i, const fth_desc *d, int axis)
{
    bool goes = false;
    for (int k = 0; k < d->n_axes; k++) {
        const fth__view_axis *v = fth__view_find(p, i, k);
        goes |= v ? v->along == axis || v->tap == axis : d->axis[k] == p->axis[axis];
    }
    return goes;
}

/* The same of an input with views: rows that one chooses lie as rows do, but what moves through an
 * axis of its own along the items is read element by element. */
static int where_viewed(const fth__program *p, int i, const fth_desc *in, int inner)
{
    const fth_desc *d = &in[i];
    int last = -1, along = -1;
    for (int k = 0; k < d->n_axes; k++) {
        const fth__view_axis *v = fth__view_find(p, i, k);
        if (v && inner >= 0 && (v->along == inner || v->tap == inner)) return FTH__EW_FAR;
        if (v && v->rows >= 0 && inner >= 0 && goes_along(p, v->rows, &in[v->rows], inner))
            return FTH__EW_FAR;
        if (v ? d->size[k] > 1 : is_long(p, d->axis[k])) last = k;
        if (!v && inner >= 0 && d->axis[k] == p->axis[inner]) along = k;
    }
    if (along < 0) return FTH__EW_SPREAD;
    return last == along ? FTH__EW_DENSE : FTH__EW_FAR;
}

static int where_lies(const fth__program *p, int i, const fth_desc *in, int inner)
{
    const fth_desc *d = &in[i];
    int last = -1;
    if (!fth__program_reads(p, i)) return FTH__EW_FAR; /* the index of rows */
    if (fth__is_viewed(p, i)) return where_viewed(p, i, in, inner);
    for (int k = 0; k < d->n_axes; k++)
        if (is_long(p, d->axis[k])) last = k;
    if (last < 0) return FTH__EW_HELD;
    if (inner < 0 || fth_desc_find(d, p->axis[inner]) < 0) return FTH__EW_SPREAD;
    return d->axis[last] == p->axis[inner] ? FTH__EW_DENSE : FTH__EW_FAR;
}

/* About how many instructions an operation takes: what is long already has enough under way, and
 * copies of it only take time to compile. */
static int weight(const fth__instr *in)
{
    const fth_dtype t = (fth_dtype)in->from;
    int n = 1;
    switch (in->op) {
    case FTH_EW_POW:
    case FTH_EW_LGAMMA:
    case FTH_EW_DIGAMMA:
    case FTH_EW_TRIGAMMA: n = 150; break;
    case FTH_EW_ATAN2:
    case FTH_EW_ARG:
    case FTH_EW_ERF:
    case FTH_EW_TANH:
    case FTH_EW_SOFTPLUS:
    case FTH_EW_MOD:
    case FTH_EW_IDIV: n = 60; break;
    case FTH_EW_EXP:
    case FTH_EW_EXPM1:
    case FTH_EW_LOG:
    case FTH_EW_LOG1P:
    case FTH_EW_SIN:
    case FTH_EW_COS:
    case FTH_EW_SIGMOID: n = 35; break;
    case FTH_EW_DIV:
    case FTH_EW_SQRT:
    case FTH_EW_RSQRT:
    case FTH_EW_RECIP: n = 12; break;
    default: break;
    }
    return fth_dtype_is_complex(t) ? 4 * n : t == FTH_F64 ? 2 * n : n;
}

/* A reduction has nothing under way but its loads. Of a map, blocks of threads that are done soon
 * are better: fewer of them are left alone at the end. */
static int most_items(int streams, bool tail)
{
    if (!tail) return streams <= 1 ? 2 : 1;
    return streams <= 1 ? 8 : streams <= 2 ? 4 : streams <= 5 ? 2 : 1;
}

static int items_under_way(int heavy, int vec, int most)
{
    const int n = LONG_ENOUGH / (heavy * vec);
    return n < 1 ? 1 : n < most ? n : most;
}

fth_dtype fth__ew_joined(const fth__program *p)
{
    const fth_dtype t = (fth_dtype)p->reg_dtype[p->out_reg[0]];
    return p->inner_red > 0 ? fth__reduce_dtype((fth_red)(p->inner_red - 1), t) : t;
}

void fth__ew_shape_of(const fth__program *p, const fth_desc *in, fth__ew_shape *out)
{
    int last = -1, column = -1;
    for (int k = 0; k < p->n_axes; k++) {
        if (p->size[k] <= 1) continue;
        last = k;
        if (k != p->tail_dim) column = k;
    }
    memset(out, 0, sizeof *out);
    /* The taps of a window are neighbours where its elements are: threads side by side go along
     * those, and each adds its taps, in the order that short tails have anyway. */
    const bool taps =
        p->n_views > 0 && last == p->tail_dim && column >= 0 && p->size[last] <= FTH__TAIL_SHORT;
    out->rows = p->tail_dim >= 0 && ((last == p->tail_dim && !taps) || column < 0);
    out->inner = out->rows ? p->tail_dim : column;
    int64_t widest = 1;
    int streams = 0;
    for (int i = 0; i < p->n_in; i++) {
        out->where[i] = (uint8_t)where_lies(p, i, in, out->inner);
        if (!fth__program_reads(p, i)) continue;
        if (out->where[i] != FTH__EW_DENSE && out->where[i] != FTH__EW_FAR) continue;
        const int64_t size = fth_dtype_size((fth_dtype)p->reg_dtype[i]);
        widest = size > widest ? size : widest;
        streams++;
    }
    for (int i = 0; i < p->n_out && p->tail_dim < 0; i++) {
        const int64_t size = fth_dtype_size((fth_dtype)p->reg_dtype[p->out_reg[i]]);
        widest = size > widest ? size : widest;
    }
    for (int i = 0; i < p->n_views; i++)
        if (fth__view_looks(&p->view[i])) {
            out->look_rows[out->looks] = (int8_t)p->view[i].rows;
            out->look_in[out->looks++] = (int8_t)p->view[i].in;
        }
    for (int i = 0; i < p->n_made; i++) out->look_in[out->looks++] = -1;
    out->vec = (int)(16 / widest);
    int heavy = 1;
    for (int i = 0; i < p->n_instr; i++) heavy += weight(&p->instr[i]);
    for (int i = 0; i < p->n_made; i++)
        if (p->made[i].kind != FTH__MADE_INDEX) heavy += FTH__RANDOM_FLOPS;
    out->widest = (int)widest;
    out->weight = heavy;
    out->streams = streams;
    const int most = most_items(streams, p->tail_dim >= 0);
    out->unroll = items_under_way(heavy, out->vec, most);
    /* with more registers than that, the compiler keeps loads together */
    out->blocks = heavy > LIGHT ? 1 : streams <= 2 ? 3 : 2;
    const int many = most_items(streams, true);
    out->unroll_any = heavy * 4 > LONG_ENOUGH / 4 ? 1 : many > 4 ? many : 4;
    if (p->inner_red > 0) out->unroll = out->unroll_any = 1; /* the axis inside is long enough */
}

/* Whole blocks in an item where they fit; else as many threads as make a line of lanes, with short
 * items where blocks are long: what they read together lies together then, and stays in no cache.
 */
void fth__ew_shape_rows(fth__ew_shape *s, int64_t block, int64_t whole)
{
    const int full = 16 / s->widest, inside = block * s->widest <= MOST_INSIDE ? (int)block : 1;
    int vec = inside > full ? inside : full;
    if (s->lanes > 1 && block > LONG_BLOCK) vec = s->widest < 4 ? 4 / s->widest : 1;
    while (vec > full && whole % vec != 0) vec /= 2;
    if (s->lanes > 1 && block > vec && vec > s->lanes) vec = s->lanes;
    s->block = (int)(block < LONG_BLOCK ? block : LONG_BLOCK);
    s->inside = block <= vec ? (int)block : 0;
    s->vec = s->inside > 0 && whole % block != 0 ? 1 : vec;
    if (s->vec == 1) s->inside = 0;
    const int fit = UNDER_WAY / (s->vec * s->widest), most = most_items(s->streams, true);
    s->unroll = items_under_way(s->weight, s->vec, fit < 1 ? 1 : fit < most ? fit : most);
    if (s->weight <= LIGHT && s->streams <= 2) s->blocks = block >= 32 ? 6 : block >= 16 ? 5 : 4;
}

/* Rows of so few elements that threads which read whole ones still read most of every line they
 * touch; and only operands that lie so, or are the same everywhere. */
void fth__ew_shape_brief(fth__ew_shape *s, int n_in, int64_t whole)
{
    bool good = s->rows && whole >= 2 && whole <= MOST_TINY;
    for (int i = 0; i < n_in; i++)
        good &= s->where[i] == FTH__EW_HELD || s->where[i] == FTH__EW_DENSE;
    if (!good) return;
    s->tiny = (int)whole;
    if (s->weight <= LIGHT && s->streams <= 2) s->blocks = 6;
}

/* ---- text ------------------------------------------------------------------------------ */

static const type_row *row_of(const fth__program *p, int reg)
{
    return &types[p->reg_dtype[reg]];
}

static void write_operation(fth__text *t, const fth__instr *in)
{
    const type_row *from = &types[in->from], *to = &types[in->to];
    const fth__ew_row *info = fth__ew_info((fth_ew)in->op);
    const bool is_struct = fth_dtype_is_complex((fth_dtype)in->to);
    fth__text_add(t,
                  "#define FTH_T %s\n#define FTH_U(v) ((%s)(v))\n#define FTH_FN(f) fth__##f##_%s\n",
                  from->expr, from->wrap, from->fn);
    fth__text_add(t, "FTH__MATH %s op%d_%d(%s x", to->reg, in->op, in->from,
                  info->result == FTH__EW_PICK ? "uint8_t" : from->expr);
    for (int k = 1; k < info->arity; k++)
        fth__text_add(t, ", %s %c", from->expr, k == 1 ? 'y' : 'z');
    fth__text_add(t, ")\n{\n    return ");
    if (!is_struct) fth__text_add(t, "(%s)", to->reg);
    fth__text_add(t, "%s;\n}\n#undef FTH_T\n#undef FTH_U\n#undef FTH_FN\n",
                  expression(in->op, (fth_dtype)in->from));
}

static void write_operations(fth__text *t, const fth__program *p)
{
    for (int i = 0; i < p->n_instr; i++) {
        const fth__instr *in = &p->instr[i];
        bool known = in->op < 0;
        for (int k = 0; k < i && !known; k++)
            known = p->instr[k].op == in->op && p->instr[k].from == in->from;
        if (!known) write_operation(t, in);
    }
}

static bool is_one(const fth__ew_shape *s, int i)
{
    return s->where[i] == FTH__EW_HELD || s->where[i] == FTH__EW_SPREAD;
}

static bool has_looks(const fth__ew_shape *s, int i)
{
    bool has = false;
    for (int l = 0; l < s->looks; l++) has |= s->look_in[l] == i;
    return has;
}

/* Neighbours `from` to `to` of an input with looks: all where the first one is, or each on its own.
 */
static void write_look(fth__text *t, const fth__program *p, const fth__ew_shape *s, int i)
{
    const bool each = s->where[i] == FTH__EW_FAR, dense = s->where[i] == FTH__EW_DENSE;
    const char *memory = row_of(p, i)->memory, *e = each ? "e" : "0";
    int last = 0;
    fth__text_add(t, "    %sfor (int e = 0; e < %s; e++) {\n        bool in = true;\n",
                  each ? "\n#pragma unroll\n    " : "", each ? "VEC" : "1");
    fth__text_add(t, "        int64_t off = p.off[%d] + at * a.operand[%d].along%s", i, i,
                  each ? "" : ";\n");
    if (each) fth__text_add(t, " + e * a.operand[%d].step;\n", i);
    for (int l = 0; l < s->looks; l++) {
        if (s->look_in[l] != i) continue;
        const int j = p->n_in + l;
        last = l;
        const int rows = s->look_rows[l];
        if (rows >= 0) {
            fth__text_add(t,
                          "        in &= fth__row_at(a, %d, p.off[%d] + at * a.operand[%d].along + "
                          "%s * a.operand[%d].step, (int64_t)a.operand[%d].data + p.off[%d] + at * "
                          "a.operand[%d].along + %s * a.operand[%d].step, off);\n",
                          l, rows, rows, e, rows, j, j, j, e, j);
            continue;
        }
        fth__text_add(
            t,
            "        in &= fth__look_at(a.look[%d], (int64_t)a.operand[%d].data - "
            "FTH__EW_RAW + p.off[%d] + at * a.operand[%d].along + %s * a.operand[%d].step, "
            "off);\n",
            l, j, j, j, e, j);
    }
    fth__text_add(t, "        const %s *from = (const %s *)a.operand[%d].data + off;\n", memory,
                  memory, i);
    if (!dense) {
        fth__text_add(t,
                      "        if (in) b.a%d[%s] = *from;\n        else memcpy(&b.a%d[%s], "
                      "&a.look[%d].fill, sizeof b.a%d[0]);\n    }\n",
                      i, e, i, e, last, i);
        return;
    }
    fth__text_add(
        t,
        "        if (in) fth__read<%s, VEC>(b.a%d, from);\n        for (int k = 0; !in && k "
        "< VEC; k++) memcpy(&b.a%d[k], &a.look[%d].fill, sizeof b.a%d[0]);\n    }\n",
        memory, i, i, last, i);
}

/* Operands of an item; with a reduction inside they are not all that is known of it. */
static void write_batch(fth__text *t, const fth__program *p, const fth__ew_shape *s, bool vec)
{
    const char *name = p->inner_red > 0 ? "operands" : "batch";
    fth__text_add(t, "struct %s {\n", name);
    for (int i = 0; i < p->n_in; i++)
        fth__text_add(t, "    %s a%d[%s];\n", row_of(p, i)->memory, i, is_one(s, i) ? "1" : "VEC");
    for (int i = 0; i < p->n_made; i++) fth__text_add(t, "    int64_t n%d;\n", i);
    fth__text_add(t, "    FTH__METHOD void held(const %s &o)\n    {\n", name);
    for (int i = 0; i < p->n_in; i++)
        if (s->where[i] == FTH__EW_HELD) fth__text_add(t, "        a%d[0] = o.a%d[0];\n", i, i);
    fth__text_add(t, "    }\n};\nFTH__MATH void fth__hold(const fth__ew_args &a, %s &b)\n{\n",
                  name);
    for (int i = 0; i < p->n_in; i++)
        if (s->where[i] == FTH__EW_HELD)
            fth__text_add(t, "    b.a%d[0] = *(const %s *)a.operand[%d].data;\n", i,
                          row_of(p, i)->memory, i);
    fth__text_add(t,
                  "}\nFTH__MATH void fth__fetch(const fth__ew_args &a, const "
                  "place &p, int64_t at, %s &b)\n{\n",
                  name);
    for (int i = 0; i < p->n_in; i++) {
        if (s->where[i] == FTH__EW_HELD || !fth__program_reads(p, i)) continue;
        if (has_looks(s, i)) {
            write_look(t, p, s, i);
            continue;
        }
        fth__text_add(t, "    const %s *i%d = (const %s *)a.operand[%d].data + p.off[%d] + at",
                      row_of(p, i)->memory, i, row_of(p, i)->memory, i, i);
        if (!vec || s->where[i] != FTH__EW_DENSE) fth__text_add(t, " * a.operand[%d].along", i);
        fth__text_add(t, ";\n");
        if (s->where[i] == FTH__EW_DENSE)
            fth__text_add(t, "    fth__read<%s, VEC>(b.a%d, i%d);\n", row_of(p, i)->memory, i, i);
        else if (s->where[i] == FTH__EW_SPREAD)
            fth__text_add(t, "    b.a%d[0] = *i%d;\n", i, i);
        else
            fth__text_add(t,
                          "#pragma unroll\n    for (int e = 0; e < VEC; e++) b.a%d[e] = i%d[e * "
                          "a.operand[%d].step];\n",
                          i, i, i);
    }
    for (int i = 0; i < p->n_made; i++) {
        const int j = p->n_in + s->looks - p->n_made + i;
        fth__text_add(t,
                      "    b.n%d = (int64_t)a.operand[%d].data - FTH__EW_RAW + p.off[%d] + at * "
                      "a.operand[%d].along;\n",
                      i, j, j, j);
    }
    fth__text_add(t, "}\n");
}

/* A number at a place of its own: neighbours are a step apart. */
static void write_made(fth__text *t, const fth__program *p, const fth__ew_shape *s,
                       const fth__instr *in)
{
    static const char *const draws[3][2] = {
        {"(int64_t)((uint64_t)d.v[1] << 32 | d.v[0])", ""},
        {"fth__uniform_f32(d.v[0])", "fth__uniform_f64(d.v[0], d.v[1])"},
        {"fth__normal_f32(&d)", "fth__normal_f64(&d)"}};
    const fth__made *made = &p->made[in->from];
    const int l = s->looks - p->n_made + in->from;
    const char *reg = types[in->to].reg;
    fth__text_add(t, "    const int64_t n%d = b.n%d + e * a.operand[%d].step;\n", in->dst, in->from,
                  p->n_in + l);
    if (made->kind == FTH__MADE_INDEX) {
        fth__text_add(t, "    const %s r%d = n%d;\n", reg, in->dst, in->dst);
        return;
    }
    fth__text_add(t,
                  "    %s r%d;\n    {\n        const fth__random_key key = "
                  "fth__random_key_make(r%d, r%d, a.look[%d].size);\n        const fth__philox d = "
                  "fth__random_bits(&key, (uint64_t)n%d);\n        r%d = %s;\n    }\n",
                  reg, in->dst, in->src[0], in->src[1], l, in->dst, in->dst,
                  draws[made->kind][in->to == FTH_F64]);
}

static void write_cast(fth__text *t, const fth__instr *in)
{
    const fth_dtype to = (fth_dtype)in->to;
    const char *reg = types[to].reg;
    if (to == FTH_BOOL)
        fth__text_add(t, "(uint8_t)(r%d != 0)", in->src[0]);
    else if (to == FTH_F16 || to == FTH_BF16)
        fth__text_add(t, "%s(fth__near_f32(r%d))", types[to].round, in->src[0]);
    else if (fth_dtype_is_complex(to))
        fth__text_add(t, "fth__to_%s(r%d)", types[to].fn, in->src[0]);
    else
        fth__text_add(t, "(%s)r%d", reg, in->src[0]);
}

static void write_constant(fth__text *t, const fth__program *p, int i)
{
    const int reg = p->n_in + i;
    const type_row *row = row_of(p, reg);
    const char *name = row->fn;
    if (fth_dtype_is_complex((fth_dtype)p->reg_dtype[reg])) {
        const char *member = strcmp(name, "c64") == 0 ? "f32" : "f64";
        fth__text_add(t, "    const %s r%d = {a.constant[%d].%s[0], a.constant[%d].%s[1]};\n",
                      row->reg, reg, i, member, i, member);
        return;
    }
    fth__text_add(t, "    const %s r%d = a.constant[%d]%s;\n", row->reg, reg, i, row->constant);
}

/* The program itself: inputs and constants to registers, then one line per instruction. */
static void write_registers(fth__text *t, const fth__program *p, const fth__ew_shape *s)
{
    for (int i = 0; i < p->n_in; i++)
        if (fth__program_reads(p, i))
            fth__text_add(t, "    const %s r%d = %s(b.a%d[%s]);\n", row_of(p, i)->reg, i,
                          row_of(p, i)->load, i, is_one(s, i) ? "0" : "e");
    for (int i = 0; i < p->n_const; i++) write_constant(t, p, i);
    for (int i = 0; i < p->n_instr; i++) {
        const fth__instr *in = &p->instr[i];
        if (in->op == FTH__INSTR_MAKE) {
            write_made(t, p, s, in);
            continue;
        }
        fth__text_add(t, "    const %s r%d = ", types[in->to].reg, in->dst);
        if (in->op == FTH__INSTR_CAST) {
            write_cast(t, in);
        } else {
            fth__text_add(t, "%s(op%d_%d(r%d", types[in->to].round, in->op, in->from, in->src[0]);
            for (int k = 1; k < fth__ew_info((fth_ew)in->op)->arity; k++)
                fth__text_add(t, ", r%d", in->src[k]);
            fth__text_add(t, "))");
        }
        fth__text_add(t, ";\n");
    }
}

static void write_map(fth__text *t, const fth__program *p, const fth__ew_shape *s)
{
    fth__text_add(t, "struct results {\n");
    for (int i = 0; i < p->n_out; i++)
        fth__text_add(t, "    %s o%d;\n", row_of(p, p->out_reg[i])->memory, i);
    fth__text_add(t, "};\nFTH__MATH void fth__compute(const fth__ew_args &a, const "
                     "batch &b, int e, results &o)\n{\n");
    write_registers(t, p, s);
    for (int i = 0; i < p->n_out; i++) {
        const type_row *row = row_of(p, p->out_reg[i]);
        const bool computed = p->out_reg[i] >= p->n_in + p->n_const;
        fth__text_add(t, "    o.o%d = %s(r%d);\n", i, computed ? row->settle : row->store,
                      p->out_reg[i]);
    }
    fth__text_add(t, "}\nFTH__MATH void fth__put(const fth__ew_args &a, const "
                     "place &p, const results (&r)[VEC])\n{\n");
    for (int i = 0; i < p->n_out; i++) {
        const char *memory = row_of(p, p->out_reg[i])->memory;
        if (p->n_out > 1) fth__text_add(t, "    if (a.operand[N_IN + %d].data)", i);
        fth__text_add(
            t,
            "    {\n        %s v[VEC];\n#pragma unroll\n        for (int e = 0; e < VEC; e++) "
            "v[e] = r[e].o%d;\n        fth__write<%s, VEC>((%s *)a.operand[N_IN + %d].data "
            "+ p.off[N_IN + %d], v);\n    }\n",
            memory, i, memory, memory, i, i);
    }
    fth__text_add(t, "}\n");
}

static void write_reduced(fth__text *t, const fth__program *p, const fth__ew_shape *s)
{
    const fth_dtype first = (fth_dtype)p->reg_dtype[p->out_reg[0]], from = fth__ew_joined(p);
    const unsigned class = fth__dtype_class(from);
    const bool inner = p->inner_red > 0;
    fth__text_add(t, "typedef %s wide;\ntypedef %s value;\ntypedef %s result;\n",
                  class == FTH__CLASS_REAL      ? "double"
                  : class == FTH__CLASS_COMPLEX ? "fth_c128"
                                                : "int64_t",
                  types[from].reg, types[fth__reduce_dtype((fth_red)p->tail_red, from)].memory);
    fth__text_add(t, "FTH__MATH %s fth__reduced(const fth__ew_args &a, const %s &b, int e)\n{\n",
                  types[first].reg, inner ? "operands" : "batch");
    write_registers(t, p, s);
    fth__text_add(t, "    return r%d;\n}\n", p->out_reg[0]);
    if (!inner) return;
    fth__text_add(t, "#define INNER_RED %d\n#define INNER_TO %d\n#define INNER_MEMORY %s\n",
                  p->inner_red - 1, (int)from, types[from].memory);
    fth__text_add(t, "#define INNER_LOAD %s\n#include \"cuda/program/fused_inner.h\"\n",
                  types[from].load);
}

/* Sums of small whole numbers: 1, and 2 where they are the bytes of the first operand. */
static int smallness(const fth__program *p, const fth__ew_shape *s)
{
    const int reg = p->out_reg[0], from = p->reg_dtype[reg];
    if (p->inner_red > 0 || p->tail_red != FTH_RED_SUM || (from != FTH_U8 && from != FTH_U16))
        return 0;
    return from == FTH_U8 && reg == 0 && !is_one(s, 0) ? 2 : 1;
}

size_t fth__cuda_source(const fth__program *p, const fth__ew_shape *shape, bool vec, char *text,
                        size_t bytes)
{
    const bool tail = p->tail_dim >= 0;
    fth__text t;
    fth__text_init(&t, text, bytes);
    fth__text_add(&t, "#define N_IN %d\n#define N_OUT %d\n#define HAS_TAIL %d\n",
                  p->n_in + shape->looks, p->n_out, tail);
    fth__text_add(&t, "#define VEC %d\n#define UNROLL %d\n", vec ? shape->vec : 1,
                  vec ? shape->unroll : shape->unroll_any);
    if (tail) {
        const fth_dtype to = fth__reduce_dtype((fth_red)p->tail_red, fth__ew_joined(p));
        fth__text_add(&t, "#define TAIL_RED %d\n#define TAIL_TO %d\n", p->tail_red, (int)to);
        fth__text_add(&t, "#define OUT_BYTES %d\n#define ROWS %d\n", (int)fth_dtype_size(to),
                      shape->rows);
        fth__text_add(&t, "#define TAIL_BRIEF %d\n#define TAIL_LANES %d\n#define TAIL_BLOCK %d\n",
                      shape->brief, shape->lanes, shape->block);
        fth__text_add(&t, "#define TAIL_INSIDE %d\n#define TAIL_FREE %d\n#define TAIL_SUPER %d\n",
                      vec ? shape->inside : 0, shape->free, shape->super);
        fth__text_add(&t, "#define BLOCKS %d\n#define TAIL_SMALL %d\n#define TAIL_TINY %d\n",
                      shape->blocks, smallness(p, shape), vec ? shape->tiny : 0);
    }
    fth__text_add(&t, "#include \"cuda/program/item.h\"\n");
    if (p->n_made > 0) fth__text_add(&t, "#include \"ops/philox.h\"\n");
    write_operations(&t, p);
    write_batch(&t, p, shape, vec);
    if (tail)
        write_reduced(&t, p, shape);
    else
        write_map(&t, p, shape);
    fth__text_add(&t, "#include \"cuda/program/fused_body.h\"\n");
    return t.wanted + 1;
}
