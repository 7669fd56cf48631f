/* random_graph.c - axes, inputs and the pool of values that random programs are made from.
 *
 * Graphs are small (a few hundred thousand elements in all) but have one axis long enough for
 * products to be cut. Sizes include 0, 1, odd numbers and the neighbours of powers of two.
 */
#include "testing/engine/random_graph.h"

#include "array/half.h"
#include "graph/graph.h"
#include "testing/engine/op_harness.h"

#include <math.h>
#include <stdarg.h>

enum { MOST_ELEMENTS = 220000, MOST_PER_VALUE = 60000 };
enum { MOST_TRIES = 10000 }; /* of draws that may fail: far more than any that may succeed takes */

int64_t rg_int(rg *g, int64_t low, int64_t high)
{
    return t_random_i64(&g->r, low, high);
}

bool rg_chance(rg *g, int percent)
{
    return rg_int(g, 0, 99) < percent;
}

int rg_class(fth_dtype t)
{
    if (t == FTH_BOOL) return RG_BOOL;
    if (fth_dtype_is_int(t)) return RG_INT;
    return fth_dtype_is_real(t) ? RG_REAL : RG_COMPLEX;
}

const char *rg_axes(fth_val v, char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < fth_val_axes(v) && at < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? " " : "", fth_val_axis(v, i));
    return text;
}

int64_t rg_count(fth_val v)
{
    int64_t n = 1;
    for (int i = 0; i < fth_val_axes(v); i++) n *= fth_val_size(v, i);
    return n;
}

static const char *declare(rg *g, const char *name, int64_t size)
{
    if (g->n_axes == RG_AXES) return NULL;
    snprintf(g->axis[g->n_axes], sizeof g->axis[0], "%s", name);
    g->axis_size[g->n_axes] = size;
    fth_axis(g->g, name, size);
    return g->axis[g->n_axes++];
}

const char *rg_axis(rg *g, int64_t size)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", g->n_axes);
    return declare(g, name, size);
}

const char *rg_axis_of(rg *g, fth_val v)
{
    const int n = fth_val_axes(v);
    const char *name = n > 0 ? fth_val_axis(v, (int)rg_int(g, 0, n - 1)) : NULL;
    for (int i = 0; name && i < g->n_axes; i++) /* our own copy: it outlives the next declaration */
        if (strcmp(g->axis[i], name) == 0) return g->axis[i];
    return NULL;
}

int64_t rg_size(const rg *g, const char *axis)
{
    return fth_axis_size(g->g, axis);
}

bool rg_room(const rg *g, double elements)
{
    return elements <= MOST_PER_VALUE && (double)g->elements + elements <= MOST_ELEMENTS &&
           g->n_values + 4 < RG_VALUES && g->n_data + 2 < RG_DATA && g->n_axes + 3 < RG_AXES;
}

fth_val rg_val(const rg *g, int i)
{
    return g->value[i].v;
}

static double eps_of(fth_dtype t)
{
    if (t == FTH_F16) return 0x1p-10;
    if (t == FTH_BF16) return 0x1p-7;
    if (t == FTH_F32 || t == FTH_C64) return 0x1p-23;
    return 0x1p-52;
}

static void say(rg *g, const char *fmt, va_list args) FTH_PRINTF(2, 0);
static void say(rg *g, const char *fmt, va_list args)
{
    const int room = RG_TEXT - g->text_len;
    if (room > 1) g->text_len += vsnprintf(g->text + g->text_len, (size_t)room, fmt, args);
    if (g->text_len > RG_TEXT - 1) g->text_len = RG_TEXT - 1;
}

static void sayf(rg *g, const char *fmt, ...) FTH_PRINTF(2, 3);
static void sayf(rg *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say(g, fmt, args);
    va_end(args);
}

bool rg_add(rg *g, fth_val v, bool exact, double bound, int n_from, const int *from,
            const char *what, ...)
{
    char text[256];
    if (g->n_values == RG_VALUES) return false;
    rg_value *x = &g->value[g->n_values];
    *x = (rg_value){.v = v, .exact = exact, .bound = bound, .op = g->op};
    x->eps = fth_val_ok(v) ? eps_of(fth_val_dtype(v)) : 0.0;
    sayf(g, "v%-2d = ", g->n_values);
    va_list args;
    va_start(args, what);
    say(g, what, args);
    va_end(args);
    sayf(g, " (");
    for (int i = 0; i < n_from; i++) {
        sayf(g, "%sv%d", i ? ", " : "", from[i]);
        g->value[from[i]].read = true;
        if (x->n_from < RG_FROM) x->from[x->n_from++] = from[i];
        x->bits |= g->value[from[i]].bits;
        x->exact = x->exact && g->value[from[i]].exact;
        if (g->value[from[i]].eps > x->eps) x->eps = g->value[from[i]].eps;
        if (g->value[from[i]].noise > x->noise) x->noise = g->value[from[i]].noise;
    }
    if (!exact && x->noise < 4.0 * x->eps * bound) x->noise = 4.0 * x->eps * bound;
    if (!fth_val_ok(v)) {
        sayf(g, ") REFUSED\n");
        return false;
    }
    sayf(g, ") %s%s\n", fth_val_format(v, text, sizeof text), x->exact ? "" : " ~");
    g->n_values++;
    g->elements += rg_count(v);
    return true;
}

/* ---- data ------------------------------------------------------------------------------------ */

rg_data *rg_data_new(rg *g, fth_dtype dtype, int n_axes, const int64_t *size)
{
    if (g->n_data == RG_DATA) return NULL;
    rg_data *d = calloc(1, sizeof *d);
    d->dtype = dtype;
    d->n_axes = n_axes;
    d->bytes = fth_dtype_size(dtype);
    for (int i = 0; i < n_axes; i++) {
        d->size[i] = size[i];
        d->bytes *= size[i];
    }
    d->data = calloc(1, (size_t)d->bytes + 64);
    g->data[g->n_data++] = d;
    return d;
}

static fth_status read_data(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    rg_data *d = self;
    int64_t at[FTH_MAX_AXES] = {0};
    const int64_t size = fth_dtype_size(d->dtype);
    const int last = d->n_axes - 1;
    char *out = dst;
    if (++d->reads == d->fail_at) return FTH_FAIL(err, FTH_E_FILE_READ, "meant to fail");
    for (int i = 0; i < d->n_axes; i++)
        if (n[i] <= 0) return FTH_OK;
    for (;;) {
        int64_t from = 0;
        for (int i = 0; i < d->n_axes; i++) from = from * d->size[i] + lo[i] + at[i];
        const int64_t row = (last >= 0 ? n[last] : 1) * size;
        memcpy(out, (const char *)d->data + from * size, (size_t)row);
        out += row;
        int i = last - 1;
        while (i >= 0 && ++at[i] == n[i]) at[i--] = 0;
        if (i < 0) return FTH_OK;
    }
}

int rg_input_from(rg *g, rg_data *d, const char *axes)
{
    return rg_input_read(g, d, axes, rg_chance(g, 40));
}

int rg_input_read(rg *g, rg_data *d, const char *axes, bool memory)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", g->n_data);
    fth_source s = {.kind = memory ? "memory" : "made",
                    .self = d,
                    .dtype = d->dtype,
                    .n_axes = d->n_axes,
                    .read = read_data,
                    .data = memory ? d->data : NULL};
    memcpy(s.size, d->size, sizeof s.size);
    const fth_val v = fth_input(g->g, name, d->dtype, axes, s);
    if (!rg_add(g, v, true, 2.0, 0, NULL, "input %s", s.kind)) return -1;
    g->value[g->n_values - 1].input = true;
    return g->n_values - 1;
}

static bool odd_numbers;

void rg_use_odd(bool odd)
{
    odd_numbers = odd;
}

/* An infinity or a NaN in place of a part of element i. */
static void put_odd(rg *g, rg_data *d, int64_t i)
{
    const fth_dtype real = fth_dtype_real_of(d->dtype);
    const int64_t size = fth_dtype_size(real), parts = fth_dtype_size(d->dtype) / size;
    char *p = (char *)d->data + (i * parts + rg_int(g, 0, parts - 1)) * size;
    const uint64_t sign = (uint64_t)rg_int(g, 0, 1), nan = (uint64_t)rg_chance(g, 50),
                   payload = nan ? (uint64_t)rg_int(g, 0, 31) : 0;
    const uint16_t f16 = (uint16_t)(sign << 15 | 0x7c00u | nan << 9 | payload),
                   bf16 = (uint16_t)(sign << 15 | 0x7f80u | nan << 6 | payload);
    const uint32_t f32 = (uint32_t)(sign << 31 | 0x7f800000u | nan << 22 | payload);
    const uint64_t f64 = sign << 63 | UINT64_C(0x7ff) << 52 | nan << 51 | payload;
    memcpy(p,
           real == FTH_F16    ? (const void *)&f16
           : real == FTH_BF16 ? (const void *)&bf16
           : real == FTH_F32  ? (const void *)&f32
                              : (const void *)&f64,
           (size_t)size);
}

/* One in forty; now and then a whole input has none. */
void rg_make_odd(rg *g, rg_data *d)
{
    if (!odd_numbers || !(rg_class(d->dtype) & RG_FLOAT) || rg_chance(g, 25)) return;
    for (int64_t i = 0; i < d->bytes / fth_dtype_size(d->dtype); i++)
        if (rg_int(g, 0, 39) == 0) put_odd(g, d, i);
}

static double number(rg *g, fth_dtype t, rg_fill fill)
{
    if (t == FTH_BOOL) return (double)rg_int(g, 0, 1);
    if (fth_dtype_is_int(t) && t_lowest(t) == 0) return (double)rg_int(g, 0, 20);
    if (fth_dtype_is_int(t)) return (double)rg_int(g, fill == RG_FILL_POSITIVE ? 1 : -20, 20);
    if (fill == RG_FILL_POSITIVE) return 0.5 + 1.5 * t_random_f64(&g->r);
    return 4.0 * t_random_f64(&g->r) - 2.0;
}

/* Square matrices over the last two axes: well conditioned, Hermitian or lower triangular. */
static void fill_matrix(rg *g, rg_data *d, bool lower)
{
    const int64_t n = d->n_axes >= 2 ? d->size[d->n_axes - 1] : 0;
    const int64_t batches = n > 0 ? d->bytes / fth_dtype_size(d->dtype) / (n * n) : 0;
    const bool complex = fth_dtype_is_complex(d->dtype);
    for (int64_t b = 0; b < batches; b++)
        for (int64_t r = 0; r < n; r++)
            for (int64_t c = 0; c <= r; c++) {
                const double scale = 0.8 / (double)n;
                const double re = r == c ? 1.5 + t_random_f64(&g->r) + (double)r / 4.0
                                         : scale * (2.0 * t_random_f64(&g->r) - 1.0);
                const double im =
                    complex && r != c ? scale * (2.0 * t_random_f64(&g->r) - 1.0) : 0.0;
                t_put(d->dtype, d->data, (b * n + r) * n + c, re, im);
                if (r != c)
                    t_put(d->dtype, d->data, (b * n + c) * n + r, lower ? 0.0 : re,
                          lower ? 0.0 : -im);
            }
}

int rg_input(rg *g, fth_dtype dtype, const char *axes, rg_fill fill)
{
    fth_axis_id id[FTH_MAX_AXES];
    int64_t size[FTH_MAX_AXES];
    int n;
    double elements = 1.0;
    if (fth_axes_parse(g->g, axes, &n, id, NULL) != FTH_OK) return -1;
    for (int i = 0; i < n; i++) {
        size[i] = fth_axis_size(g->g, fth_axis_name(g->g, id[i]));
        elements *= (double)size[i];
    }
    if (!rg_room(g, elements)) return -1;
    rg_data *d = rg_data_new(g, dtype, n, size);
    if (!d) return -1;
    if (fill == RG_FILL_SPD || fill == RG_FILL_LOWER)
        fill_matrix(g, d, fill == RG_FILL_LOWER);
    else
        for (int64_t i = 0; i < d->bytes / fth_dtype_size(dtype); i++)
            t_put(dtype, d->data, i, number(g, dtype, fill), number(g, dtype, fill));
    if (fill == RG_FILL_ANY || fill == RG_FILL_POSITIVE) rg_make_odd(g, d);
    const int v = rg_input_from(g, d, axes);
    if (v >= 0) g->value[v].bound = fth_dtype_is_int(dtype) ? 20.0 : 3.0;
    return v;
}

int rg_index(rg *g, const char *axes, int64_t n)
{
    static const fth_dtype index[] = {FTH_I32, FTH_I64, FTH_I64, FTH_U32};
    const int v = rg_input(g, index[rg_int(g, 0, 3)], axes, RG_FILL_POSITIVE);
    if (v < 0 || n < 1) return -1;
    rg_data *d = g->data[g->n_data - 1];
    for (int64_t i = 0; i < d->bytes / fth_dtype_size(d->dtype); i++)
        t_put(d->dtype, d->data, i, (double)rg_int(g, 0, n - 1), 0.0);
    g->value[v].bound = (double)n;
    return v;
}

/* ---- drawing operands ------------------------------------------------------------------------ */

static fth_dtype any_dtype(rg *g, int classes)
{
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const fth_dtype t = (fth_dtype)rg_int(g, 0, FTH_DTYPE_COUNT - 1);
        const bool common =
            t == FTH_F32 || t == FTH_F64 || t == FTH_BOOL || t == FTH_I64 || t == FTH_C64;
        if ((rg_class(t) & classes) && (common || rg_chance(g, 50))) return t;
    }
    FAIL("no dtype is of classes %x", (unsigned)classes);
    return FTH_F32;
}

/* Axes of a new input: mostly with the long one. */
static const char *any_axes(rg *g)
{
    static const char *const lists[] = {"s",   "s a", "a s", "s t", "t s", "s a", "s b",
                                        "b s", "a",   "t",   "a b", "t b", "",    "s a b"};
    const int n = (int)(sizeof lists / sizeof lists[0]);
    return lists[rg_int(g, 0, rg_chance(g, 70) ? 7 : n - 1)];
}

int rg_want(rg *g, int classes, bool exact)
{
    int found[RG_VALUES], n = 0;
    for (int i = 0; i < g->n_values; i++) {
        const rg_value *x = &g->value[i];
        if (!(rg_class(fth_val_dtype(x->v)) & classes) || (exact && !x->exact)) continue;
        if (!x->hidden && !x->bits) found[n++] = i;
    }
    if (n > 0 && !rg_chance(g, n > 3 ? 8 : 25)) {
        const int64_t a = rg_int(g, 0, n - 1), b = rg_int(g, 0, n - 1);
        return found[a > b ? a : b]; /* recent ones more often: graphs become deep */
    }
    const int v = rg_input(g, any_dtype(g, classes), any_axes(g), RG_FILL_ANY);
    return v >= 0  ? v
           : n > 0 ? found[rg_int(g, 0, n - 1)]
                   : rg_input(g, any_dtype(g, classes), "a", RG_FILL_ANY);
}

int rg_tame(rg *g, int i, double limit)
{
    const rg_value *x = &g->value[i];
    const fth_dtype t = fth_val_dtype(x->v);
    if (x->bound <= limit || !(rg_class(t) & RG_FLOAT)) return i;
    const double scale = limit / x->bound;
    if (!rg_room(g, (double)rg_count(x->v))) return -1;
    if (!rg_add(g, fth_mul(x->v, fth_const(g->g, t, scale)), true, limit, 1, &i, "mul by %g",
                scale))
        return -1;
    g->value[g->n_values - 1].noise *= scale;
    return g->n_values - 1;
}

int rg_positive(rg *g, int i)
{
    const rg_value *x = &g->value[i];
    const fth_dtype t = fth_val_dtype(x->v);
    if (!rg_room(g, (double)rg_count(x->v))) return -1;
    const fth_val v = fth_add(fth_abs(x->v), fth_const(g->g, t, 0.5));
    if (!rg_add(g, v, true, x->bound + 0.5, 1, &i, "add(abs, 0.5)")) return -1;
    return g->n_values - 1;
}

/* ---- a whole graph --------------------------------------------------------------------------- */

static int64_t long_size(rg *g)
{
    static const int64_t sizes[] = {2048, 2049, 4096, 1025, 1024, 3000, 4097};
    const int64_t draw = rg_int(g, 0, 99);
    if (draw < 2) return 0;
    if (draw < 4) return 1;
    if (draw < 10) return rg_int(g, 2, 300);
    if (draw < 40) return sizes[rg_int(g, 0, 6)];
    return rg_int(g, 1500, 6000);
}

static void declare_axes(rg *g)
{
    declare(g, "s", long_size(g));
    declare(g, "t", rg_chance(g, 10) ? rg_int(g, 60, 200) : rg_int(g, 8, 40));
    declare(g, "a", rg_chance(g, 5) ? 0 : rg_int(g, 1, 9));
    declare(g, "b", rg_chance(g, 20) ? 1 : rg_int(g, 2, 6));
}

/* A value is one output at most; an assign counts as another. */
static void add_output(rg *g, int value, int param)
{
    for (int k = 0; k < g->n_outs && param < 0; k++)
        if (g->into[k] < 0 && rg_val(g, g->out[k]).id == rg_val(g, value).id) return;
    g->out[g->n_outs] = value;
    g->into[g->n_outs] = param;
    g->direct[g->n_outs] = param < 0 && rg_chance(g, 30);
    g->n_outs++;
}

static void choose_outputs(rg *g)
{
    for (int i = 0; i < g->n_params; i++)
        if (g->param[i].assigned >= 0) add_output(g, g->param[i].assigned, i);
    const int most = RG_OUTS - 2;
    for (int i = g->n_values - 1; i >= 0 && g->n_outs < most; i--)
        if (!g->value[i].read && !g->value[i].input) add_output(g, i, -1);
    for (int tries = 0; tries < 2 && g->n_outs < RG_OUTS; tries++) {
        const int i = (int)rg_int(g, 0, g->n_values - 1);
        const bool known = g->value[i].hidden || (g->value[i].input && !rg_chance(g, 5));
        if (!known && (rg_chance(g, 40) || g->n_outs == 0)) add_output(g, i, -1);
    }
}

/* ---- what is in it --------------------------------------------------------------------------- */

const char *rg_feature_name(int feature)
{
    static const char *const names[] = {"empty axis", "axis of one", "first unused", "later unused",
                                        "dear waits", "gradient",    "assigned",     "swapped",
                                        "cancelled",  "failed",      "far part",     "views"};
    return feature < RG_DTYPE ? names[feature] : fth_dtype_name((fth_dtype)(feature - RG_DTYPE));
}

/* Several outputs: which of them does something that the outputs need use? */
static void count_unused(rg *g, int first)
{
    bool second = false, itself = false;
    for (int k = 0; k < g->n_outs; k++) itself |= g->out[k] == first;
    for (int i = first + 1; i < g->n_values; i++) {
        const rg_value *x = &g->value[i];
        for (int k = 0; k < x->n_from && x->live; k++) {
            if (x->from[k] != first) continue;
            const bool other = fth_out(rg_val(g, first), 1).id == x->v.id;
            second |= other;
            itself |= !other;
        }
    }
    g->has[RG_FIRST_UNUSED] |= second && !itself;
    g->has[RG_LATER_UNUSED] |= itself && !second;
}

static void count_features(rg *g)
{
    for (int k = 0; k < g->n_outs; k++) g->value[g->out[k]].live = true;
    for (int i = g->n_values - 1; i >= 0; i--) {
        rg_value *x = &g->value[i];
        for (int k = 0; k < x->n_from && x->live; k++) g->value[x->from[k]].live = true;
    }
    for (int i = 0; i < g->n_values; i++) {
        const rg_value *x = &g->value[i];
        if (!x->live) continue;
        if (x->op >= 0) g->used[x->op] = true;
        if (!x->input) g->has[RG_DTYPE + (int)fth_val_dtype(x->v)] = true;
        for (int d = 0; d < fth_val_axes(x->v); d++) {
            g->has[RG_EMPTY] |= fth_val_size(x->v, d) == 0;
            g->has[RG_ONE] |= fth_val_size(x->v, d) == 1;
        }
        if (!x->input && fth__val_node(x->v)->n_out > 1 &&
            fth__val_node(x->v)->out_val[0].id == x->v.id)
            count_unused(g, i);
    }
}

int rg_op_count(void)
{
    return FTH_EW_COUNT + rg_n_ops;
}

const char *rg_op_name(int op)
{
    static const char *const names[] = {
#define FTH_EW(name, text, ...) text,
#include <fathom/elementwise.def>
#undef FTH_EW
    };
    return op < FTH_EW_COUNT ? names[op] : rg_ops[op - FTH_EW_COUNT].name;
}

static bool add_op(rg *g, int op)
{
    g->op = op;
    const bool added =
        op < FTH_EW_COUNT ? rg_elementwise(g, (fth_ew)op) : rg_ops[op - FTH_EW_COUNT].add(g);
    g->op = -1;
    return added;
}

static const bool *ops_used; /* by graphs made from now on; NULL: all */

void rg_use_ops(const bool *may)
{
    ops_used = may;
}

bool rg_may(const char *name)
{
    for (int i = 0; ops_used && i < rg_op_count(); i++)
        if (strcmp(rg_op_name(i), name) == 0) return ops_used[i];
    return true;
}

/* Elementwise operations are many; draw them about as often as all others together. Of few that may
 * be drawn it is the first one in the end. */
static int draw_op(rg *g)
{
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const int op = (int)(rg_chance(g, 40) ? rg_int(g, 0, FTH_EW_COUNT - 1)
                                              : rg_int(g, FTH_EW_COUNT, rg_op_count() - 1));
        if (!ops_used || ops_used[op]) return op;
    }
    int op = 0;
    while (op < rg_op_count() && !ops_used[op]) op++;
    if (op == rg_op_count()) FAIL("no operation may be drawn");
    return op;
}

/* Seeds take turns with the table, so that a few of them have all of it. */
static int first_op(rg *g)
{
    const int op = (int)(g->seed % (uint64_t)rg_op_count());
    return !ops_used || ops_used[op] ? op : draw_op(g);
}

static bool computes(const rg *g)
{
    for (int i = 0; i < g->n_values; i++)
        if (!g->value[i].input && !g->value[i].hidden) return true;
    return false;
}

/* Something that computes. Operations may refuse whatever they are given, and what is made for them
 * takes the room of a graph away; so after some tries it is a negation, which always fits. */
static void add_some(rg *g)
{
    for (int tries = 0; tries < MOST_TRIES && !computes(g); tries++) add_op(g, draw_op(g));
    if (computes(g)) return;
    int x = -1;
    for (int i = 0; i < g->n_values; i++)
        if ((rg_class(fth_val_dtype(rg_val(g, i))) & RG_FLOAT) && !g->value[i].hidden &&
            (x < 0 || rg_count(rg_val(g, i)) < rg_count(rg_val(g, x))))
            x = i;
    const fth_val of = x >= 0 ? rg_val(g, x) : fth_const(g->g, FTH_F32, 1.0);
    if (g->n_values == RG_VALUES) g->n_values--; /* the last one is not read yet */
    (void)rg_add(g, fth_neg(of), true, x >= 0 ? g->value[x].bound : 1.0, x >= 0, &x, "neg");
}

static bool far_only;

void rg_use_far(bool only)
{
    far_only = only;
}

static void add_far(rg *g, bool gradient)
{
    declare_axes(g);
    for (int tries = 0; tries < 8 && !rg_far(g); tries++) {
    }
    for (int64_t n = rg_int(g, 0, 2); n > 0; n--) add_op(g, draw_op(g));
    add_some(g);
    if (rg_chance(g, 50) && gradient) rg_gradient(g);
    choose_outputs(g);
    count_features(g);
}

static void add_all(rg *g, bool gradient)
{
    declare_axes(g);
    rg_want(g, RG_REAL, false);
    for (int n = rg_chance(g, 20) ? (int)rg_int(g, 1, 2) : 0; n > 0; n--) rg_make_param(g);
    const int first = first_op(g);
    for (int tries = 0; tries < 8 && !add_op(g, first); tries++) {
    }
    const bool waits = rg_chance(g, 12) && rg_waits(g);
    if (!waits && rg_chance(g, 50)) rg_two_passes(g);
    if (!waits && rg_chance(g, 20)) rg_far(g);
    for (int64_t n = waits ? rg_int(g, 0, 2) : rg_int(g, 2, 9); n > 0; n--) add_op(g, draw_op(g));
    add_some(g);
    if (rg_chance(g, 35)) rg_views(g);
    if (rg_chance(g, 25) && gradient) rg_gradient(g);
    rg_assign_params(g);
    choose_outputs(g);
    count_features(g);
}

static rg_device device_used; /* by graphs made from now on */

rg_device rg_use_device(rg_device device)
{
    const rg_device before = device_used;
    device_used = device;
    return before;
}

static fth_ranks *ranks_used;

void rg_use_ranks(fth_ranks *ranks)
{
    ranks_used = ranks;
}

static fth_status build(rg **out, uint64_t seed, bool gradient, fth_err *err)
{
    rg *g = *out = calloc(1, sizeof *g);
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = device_used.backend || device_used.path ? "cuda" : "cpu";
    opt.backend = device_used.backend;
    opt.backend_path = device_used.path;
    opt.ranks = ranks_used;
    opt.mem.budget_bytes = opt.device_memory_bytes = (uint64_t)4 << 30;
    opt.scratch_dir = t_temp_dir();
    g->seed = seed;
    g->odd = odd_numbers;
    g->op = -1;
    g->r.state = seed * 0x9e3779b97f4a7c15u + 12345;
    (void)t_random_u64(&g->r);
    const fth_status s = fth_context_create(&g->ctx, &opt, err);
    if (s != FTH_OK) return s;
    g->g = fth_graph_create(g->ctx);
    if (far_only)
        add_far(g, gradient);
    else
        add_all(g, gradient);
    return fth_graph_check(g->g, err);
}

rg *rg_make(uint64_t seed, char *why, size_t why_bytes)
{
    rg *g;
    fth_err err = {0};
    fth_status s = build(&g, seed, true, &err);
    if (s == FTH_E_GRAPH_GRADIENT) { /* the loss depends on something that has none: without it */
        rg_free(g);
        err = (fth_err){0};
        s = build(&g, seed, false, &err);
    }
    if (s == FTH_OK && g->n_outs > 0) return g;
    char text[2048];
    fth_err_format(&err, text, sizeof text);
    snprintf(why, why_bytes, "building: %s\n%s", text, g->text);
    rg_free(g);
    return NULL;
}

void rg_free(rg *g)
{
    if (!g) return;
    fth_graph_destroy(g->g);
    for (int i = 0; i < g->n_params; i++) {
        fth_tensor_release(g->param[i].tensor);
        free(g->param[i].before);
    }
    fth_err err = {0};
    const fth_status s = fth_context_destroy(g->ctx, &err);
    for (int i = 0; i < g->n_data; i++) {
        free(g->data[i]->data);
        free(g->data[i]);
    }
    const uint64_t seed = g->seed;
    free(g);
    if (s != FTH_OK) {
        char text[2048];
        fth_err_format(&err, text, sizeof text);
        FAIL("graph %llu left something behind: %s", (unsigned long long)seed, text);
    }
}
