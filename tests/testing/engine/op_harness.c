/* op_harness.c - evaluates nodes by their kernels, and tries to catch kernels that cheat.
 *
 * Written without the library's own loops and copies, so that a mistake there cannot hide here.
 */
#include "testing/engine/op_harness.h"

#include "cpu/backend.h"
#include "graph/graph.h"
#include "graph/program.h"
#include "mem/heap.h"
#include "ops/ops.h"
#include "testing/engine/op_device.h"
#include "testing/engine/op_join.h"
#include "testing/full.h"

#include <math.h>

enum { GUARD = 0xA5, MARGIN = 3, PIECES = 5, EMPTY = 3 };

static int n_cuts = 8;

void t_cuts(int n)
{
    n_cuts = n;
}

static bool same_nans;

void t_same_nans(bool same)
{
    same_nans = same;
}

static bool all_exact;

void t_exact(bool exact)
{
    all_exact = exact;
}

/* ---- graphs and inputs ---------------------------------------------------------------------- */

fth_graph *t_graph(const char *axes)
{
    fth_mem_options opt;
    fth_mem *mem = NULL;
    fth_mem_options_default(&opt);
    OK(fth_mem_create(&mem, &opt, NULL));
    fth_context *ctx = fth__heap_alloc(mem, sizeof *ctx);
    ctx->mem = mem;
    ctx->threads = 1;
    fth_graph *g = fth_graph_create(ctx);
    char name[64];
    long long size;
    for (int n = 0; sscanf(axes, " %63[^= ]=%lld%n", name, &size, &n) == 2; axes += n)
        IS_TRUE(fth_axis(g, name, size));
    return g;
}

static bool is_noise(const fth_source *s)
{
    return strcmp(s->kind, "noise") == 0;
}

void t_graph_free(fth_graph *g)
{
    fth_context *ctx = g->ctx;
    fth_mem *mem = ctx->mem;
    for (int64_t i = 0; i < g->n_inputs; i++)
        if (is_noise(&g->input[i].source)) free(g->input[i].source.data);
    fth_graph_destroy(g);
    fth__heap_free(mem, ctx);
    fth_err err = {0};
    const fth_status s = fth_mem_destroy(mem, &err);
    t_status(s, FTH_OK, "fth_mem_destroy", &err, T_AT);
}

static fth_val input(fth_graph *g, const char *kind, const char *name, fth_dtype dtype,
                     const char *axes, void *data)
{
    fth_source s = {.kind = kind, .dtype = dtype, .data = data};
    fth_axis_id id[FTH_MAX_AXES];
    OK(fth_axes_parse(g, axes, &s.n_axes, id, NULL));
    for (int i = 0; i < s.n_axes; i++) s.size[i] = g->axis[id[i]]->size;
    return fth_input(g, name, dtype, axes, s);
}

fth_val t_input(fth_graph *g, const char *name, fth_dtype dtype, const char *axes, const void *data)
{
    union {
        const void *in;
        void *out;
    } cast = {data};
    return input(g, "memory", name, dtype, axes, cast.out);
}

fth_val t_noise(fth_graph *g, const char *name, fth_dtype dtype, const char *axes, t_random *r)
{
    fth_axis_id id[FTH_MAX_AXES];
    int n;
    int64_t count = 1;
    OK(fth_axes_parse(g, axes, &n, id, NULL));
    for (int i = 0; i < n; i++) count *= g->axis[id[i]]->size;
    void *data = malloc((size_t)(count * fth_dtype_size(dtype)) + 1);
    for (int64_t i = 0; i < count; i++) {
        if (fth_dtype_is_int(dtype))
            t_put(dtype, data, i, (double)t_random_i64(r, t_lowest(dtype) < 0 ? -20 : 0, 20), 0.0);
        else if (dtype == FTH_BOOL)
            t_put(dtype, data, i, (double)t_random_i64(r, 0, 1), 0.0);
        else
            t_put(dtype, data, i, t_random_normal(r), t_random_normal(r));
    }
    return input(g, "noise", name, dtype, axes, data);
}

fth_val t_fused(const fth_val in[2], const char *over)
{
    const uint8_t t = (uint8_t)fth_val_dtype(in[0]);
    const fth_desc *d = fth__val_desc(in[0]);
    fth__program p;
    memset(&p, 0, sizeof p);
    p.n_axes = d->n_axes;
    memcpy(p.axis, d->axis, sizeof p.axis);
    memcpy(p.size, d->size, sizeof p.size);
    p.n_in = p.n_instr = 2;
    p.n_reg = 4;
    for (int i = 0; i < 4; i++) p.reg_dtype[i] = t;
    p.instr[0] = (fth__instr){FTH_EW_ADD, t, t, 2, {0, 1, -1}};
    p.instr[1] = (fth__instr){FTH_EW_MUL, t, t, 3, {2, 0, -1}};
    p.n_out = 1;
    p.out_reg[0] = 3;
    p.tail_dim = over ? fth_desc_find(d, fth_axis_find(in[0].graph, over)) : -1;
    p.tail_red = FTH_RED_SUM;
    return fth_custom(in[0].graph, &fth__op_fused, 2, in, &p, sizeof p);
}

void *t_data(fth_val v)
{
    const fth__input_attr *attr = fth__val_node(v)->attr;
    return v.graph->input[attr->index].source.data;
}

int64_t t_count(fth_val v)
{
    return fth_desc_count(fth__val_desc(v));
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* A range of each axis of one operand. */
typedef struct box {
    int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
} box;

static box whole(const fth_desc *d)
{
    box b = {0};
    for (int i = 0; i < d->n_axes; i++) b.n[i] = d->size[i];
    return b;
}

static void dense_strides(int n, const int64_t *size, int64_t *stride)
{
    int64_t s = 1;
    for (int i = n - 1; i >= 0; i--) {
        stride[i] = s;
        s *= size[i] > 0 ? size[i] : 1;
    }
}

static void copy(int n, int64_t size, const int64_t *extent, char *dst, const int64_t *ds,
                 const char *src, const int64_t *ss)
{
    if (n == 0) {
        memcpy(dst, src, (size_t)size);
        return;
    }
    for (int64_t i = 0; i < extent[0]; i++)
        copy(n - 1, size, extent + 1, dst + i * ds[0] * size, ds + 1, src + i * ss[0] * size,
             ss + 1);
}

/* A tile over part of a dense array: a view of it, or a box of its own with margins of garbage. */
typedef struct held {
    fth_tile tile;
    const fth_desc *desc;
    char *full; /* the dense array */
    char *own;  /* the box, or NULL for a view */
    size_t own_bytes;
    int64_t size, full_stride[FTH_MAX_AXES];
} held;

static void hold(held *h, const fth_desc *d, int64_t size, void *full, box b, bool view,
                 t_random *r)
{
    *h = (held){.desc = d, .full = full, .size = size};
    dense_strides(d->n_axes, d->size, h->full_stride);
    int64_t at = 0;
    for (int i = 0; i < d->n_axes; i++) {
        h->tile.extent[i] = b.n[i];
        h->tile.origin[i] = b.lo[i];
        h->tile.stride[i] = h->full_stride[i];
        at += b.lo[i] * h->full_stride[i];
    }
    h->tile.data = full ? h->full + at * size : NULL;
    if (view) return;
    int64_t extent[FTH_MAX_AXES], before[FTH_MAX_AXES], count = 1;
    for (int i = 0; i < d->n_axes; i++) {
        /* a box is part of the whole value; state (no array behind it) may lie in any box */
        const int64_t after = full ? d->size[i] - b.lo[i] - b.n[i] : MARGIN,
                      most = full ? b.lo[i] : MARGIN;
        before[i] = t_random_i64(r, 0, most < MARGIN ? most : MARGIN);
        extent[i] = b.n[i] + before[i] + t_random_i64(r, 0, after < MARGIN ? after : MARGIN);
        count *= extent[i] > 0 ? extent[i] : 1;
    }
    dense_strides(d->n_axes, extent, h->tile.stride);
    at = 0;
    for (int i = 0; i < d->n_axes; i++) at += before[i] * h->tile.stride[i];
    h->own_bytes = (size_t)((count + 1) * size);
    h->own = malloc(h->own_bytes);
    memset(h->own, GUARD, h->own_bytes);
    char *from = h->tile.data;
    h->tile.data = h->own + at * size;
    if (full) copy(d->n_axes, size, b.n, h->tile.data, h->tile.stride, from, h->full_stride);
}

/* Nothing but the tile itself may differ from the garbage around it. */
static void check_margins(held *h, const fth_node *node)
{
    char *copy_of = malloc(h->own_bytes);
    memset(copy_of, GUARD, h->own_bytes);
    const int64_t at = (char *)h->tile.data - h->own;
    copy(h->desc->n_axes, h->size, h->tile.extent, copy_of + at, h->tile.stride, h->tile.data,
         h->tile.stride);
    const bool same = memcmp(copy_of, h->own, h->own_bytes) == 0;
    free(copy_of);
    if (!same) FAIL("%s wrote outside its tile", node->op->name);
}

static void put_back(held *h, const fth_node *node)
{
    if (!h->own) return;
    check_margins(h, node);
    int64_t at = 0;
    for (int i = 0; i < h->desc->n_axes; i++) at += h->tile.origin[i] * h->full_stride[i];
    copy(h->desc->n_axes, h->size, h->tile.extent, h->full + at * h->size, h->full_stride,
         h->tile.data, h->tile.stride);
}

/* ---- one node, in pieces ----------------------------------------------------------------------
 */

typedef struct cuts {
    int n;
    int64_t at[PIECES + EMPTY + 1];
} cuts;

typedef struct job {
    const fth_node *node;
    fth_status (*run)(const fth_call *call);
    uint64_t (*scratch)(const fth_call *call);
    const fth_kernel *device; /* run there instead; NULL: here */
    char **in, **out;         /* dense and whole */
    bool want[FTH_MAX_OUT];
    cuts axis[FTH_MAX_AXES]; /* of out[0] */
    fth_axis_id sum_axis;    /* accumulated and cut; -1 none */
    cuts sum;
    int carry; /* carried dim of out[0]; -1 none */
    bool views;
    t_random *r;
    fth_err *err;
} job;

static fth_relation relation_of(const fth_node *node, int in, int dim)
{
    fth_relation rel = {.along = FTH_WHOLE, .out_dim = -1};
    if (node->op->relation) node->op->relation(node, in, dim, &rel);
    return rel;
}

static cuts cut_axis(int64_t size, int64_t grid, bool may, t_random *r)
{
    cuts c = {.n = 1, .at = {0, size}};
    const int64_t want = may ? t_random_i64(r, 1, PIECES) : 1;
    while (c.n < want) {
        const int64_t at = t_random_i64(r, 0, size / grid) * grid;
        if (at <= c.at[c.n - 1] || at >= size) break;
        c.at[c.n++] = at;
        c.at[c.n] = size;
    }
    return c;
}

/* Some pieces of an accumulated or carried axis have no elements, as when it begins or ends inside
 * what is streamed: the first, the last, some in between. An axis of one block comes in one piece.
 */
static void add_empty(cuts *c, int64_t grid, t_random *r)
{
    const int64_t more = c->at[c->n] > grid ? t_random_i64(r, 0, EMPTY) : 0;
    for (int64_t k = 0; k < more; k++) {
        const int64_t at = t_random_i64(r, 0, 2) == 0 ? 0 : t_random_i64(r, 0, c->n);
        memmove(&c->at[at + 1], &c->at[at], (size_t)(c->n + 1 - at) * sizeof c->at[0]);
        c->n++;
    }
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

static void follow(const fth_relation *rel, int64_t size, int64_t a, int64_t b, int64_t *lo,
                   int64_t *n)
{
    if (rel->along == FTH_HALO) {
        a = floor_div(a * rel->mul, rel->div) - rel->lo;
        b = -floor_div(-b * rel->mul, rel->div) + rel->hi;
    }
    if (rel->along == FTH_COLLECT) {
        a = rel->row_ptr[a];
        b = rel->row_ptr[b];
    }
    if (rel->along == FTH_SPREAD) { /* rows that own one of these entries */
        const int64_t first = a, end = b;
        for (a = 0; a < size && rel->row_ptr[a + 1] <= first;) a++;
        for (b = a; b < size && first < end && rel->row_ptr[b] < end;) b++;
    }
    a = a < 0 ? 0 : a > size ? size : a;
    b = b < a ? a : b > size ? size : b;
    *lo = a;
    *n = b - a;
}

static box input_box(const job *j, int in, const box *out, int64_t sum_lo, int64_t sum_hi)
{
    const fth_desc *d = &j->node->in[in];
    box b = whole(d);
    for (int i = 0; i < d->n_axes; i++) {
        const fth_relation rel = relation_of(j->node, in, i);
        if (rel.along == FTH_ACCUMULATE && d->axis[i] == j->sum_axis) {
            b.lo[i] = sum_lo;
            b.n[i] = sum_hi - sum_lo;
        } else if (rel.along != FTH_WHOLE && rel.along != FTH_ACCUMULATE) {
            const int o = rel.out_dim;
            follow(&rel, d->size[i], out->lo[o], out->lo[o] + out->n[o], &b.lo[i], &b.n[i]);
        }
    }
    return b;
}

/* Axes of a further output are cut with the axes of the same name of out[0]. */
static box output_box(const job *j, int k, const box *out)
{
    const fth_desc *d = &j->node->out[k], *first = &j->node->out[0];
    box b = whole(d);
    for (int i = 0; i < d->n_axes; i++) {
        const int o = fth_desc_find(first, d->axis[i]);
        if (o < 0) continue;
        b.lo[i] = out->lo[o];
        b.n[i] = out->n[o];
    }
    return b;
}

static t_span span_of(const held *h)
{
    if (h->own) return (t_span){h->own, h->own_bytes};
    return (t_span){h->full, (size_t)(fth_desc_count(h->desc) * h->size)};
}

static fth_status call_device(const job *j, const fth_call *call, const held *ins, const held *outs,
                              const held *state)
{
    t_span in[FTH_MAX_IN], out[FTH_MAX_OUT];
    for (int i = 0; i < j->node->n_in; i++) in[i] = span_of(&ins[i]);
    for (int k = 0; k < j->node->n_out; k++) out[k] = span_of(&outs[k]);
    return t_device_run(j->device, call, in, out, span_of(state));
}

static fth_status call_host(const job *j, fth_call *call)
{
    const uint64_t bytes = j->scratch ? j->scratch(call) : 0;
    void *scratch = aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);
    memset(scratch, GUARD, bytes + 64);
    call->scratch = bytes ? scratch : NULL;
    const fth_status s = j->run(call);
    for (uint64_t i = 0; i < 64; i++)
        if (((const uint8_t *)scratch)[bytes + i] != GUARD)
            FAIL("%s wrote outside its scratch", j->node->op->name);
    free(scratch);
    return s;
}

/* One call: tiles of the inputs are made for it, outputs and state are given. */
static fth_status call_once(job *j, const box *out, held *outs, const held *state, int64_t sum_lo,
                            int64_t sum_hi, bool first, bool last)
{
    const fth_node *node = j->node;
    fth_call call = {.node = node, .first = first, .last = last, .threads = 1, .err = j->err};
    held ins[FTH_MAX_IN];
    for (int i = 0; i < node->n_in; i++) {
        const bool view = j->views || t_random_i64(j->r, 0, 1);
        hold(&ins[i], &node->in[i], fth_dtype_size(node->in[i].dtype), j->in[i],
             input_box(j, i, out, sum_lo, sum_hi), view, j->r);
        call.in[i] = ins[i].tile;
    }
    for (int k = 0; k < node->n_out; k++) {
        call.out[k] = outs[k].tile;
        if (!j->want[k]) call.out[k].data = NULL;
    }
    call.state[0] = state->tile;
    const fth_status s = j->device ? call_device(j, &call, ins, outs, state) : call_host(j, &call);
    for (int i = 0; i < node->n_in; i++) free(ins[i].own);
    return s;
}

/* One piece of the output: all pieces of a carried or accumulated axis in order. */
static fth_status run_piece(job *j, box out)
{
    const fth_node *node = j->node;
    const uint64_t bytes = node->op->state ? node->op->state(node, 0) : 0;
    fth_desc carried = node->out[0];
    for (int i = 0; i < carried.n_axes; i++) carried.size[i] = i == j->carry ? 1 : out.n[i];
    held state, outs[FTH_MAX_OUT];
    hold(&state, &carried, (int64_t)(bytes ? bytes : 1), NULL, whole(&carried), false, j->r);
    for (int i = 0; i < carried.n_axes; i++) state.tile.origin[i] = i == j->carry ? 0 : out.lo[i];
    const bool carry = j->carry >= 0;
    const cuts *pieces = carry ? &j->axis[j->carry] : &j->sum;
    fth_status s = FTH_OK;
    for (int p = 0; p < pieces->n && s == FTH_OK; p++) {
        box now = out;
        if (carry) {
            now.lo[j->carry] = pieces->at[p];
            now.n[j->carry] = pieces->at[p + 1] - pieces->at[p];
        }
        for (int k = 0; k < node->n_out; k++)
            if (p == 0 || carry)
                hold(&outs[k], &node->out[k], fth_dtype_size(node->out[k].dtype), j->out[k],
                     output_box(j, k, &now), j->views || t_random_i64(j->r, 0, 1), j->r);
        s = call_once(j, &now, outs, &state, carry ? 0 : pieces->at[p],
                      carry ? 0 : pieces->at[p + 1], p == 0, p + 1 == pieces->n);
        for (int k = 0; k < node->n_out; k++)
            if (carry || p + 1 == pieces->n || s != FTH_OK) {
                if (s == FTH_OK && j->want[k]) put_back(&outs[k], node);
                free(outs[k].own);
            }
    }
    if (bytes) check_margins(&state, node);
    free(state.own);
    return s;
}

static fth_status run_pieces(job *j)
{
    const fth_desc *d = &j->node->out[0];
    int at[FTH_MAX_AXES] = {0};
    for (;;) {
        box b = whole(d);
        for (int i = 0; i < d->n_axes; i++)
            if (i != j->carry) {
                b.lo[i] = j->axis[i].at[at[i]];
                b.n[i] = j->axis[i].at[at[i] + 1] - b.lo[i];
            }
        const fth_status s = run_piece(j, b);
        if (s != FTH_OK) return s;
        int i = d->n_axes - 1;
        while (i >= 0 && (i == j->carry || ++at[i] == j->axis[i].n)) at[i--] = 0;
        if (i < 0) return FTH_OK;
    }
}

/* Decide where to cut; not at all when `may` is false. */
static void choose_cuts(job *j, bool may)
{
    const fth_node *node = j->node;
    const fth_op *op = node->op;
    int tied[FTH_MAX_AXES] = {0};
    j->carry = -1;
    j->sum_axis = -1;
    j->sum = (cuts){.n = 1};
    int n_sums = 0;
    int64_t sum_grid = 1;
    for (int in = 0; in < node->n_in; in++)
        for (int i = 0; i < node->in[in].n_axes; i++) {
            const fth_relation rel = relation_of(node, in, i);
            if (rel.along == FTH_CARRY) j->carry = rel.out_dim;
            if (rel.along == FTH_ACCUMULATE && t_random_i64(j->r, 0, n_sums++) == 0) {
                const int64_t grid = sum_grid = op->grid ? op->grid(node, in, i) : 1;
                j->sum_axis = node->in[in].axis[i];
                j->sum = cut_axis(node->in[in].size[i], grid, may, j->r);
            }
            if (rel.out_dim >= 0) tied[rel.out_dim]++;
        }
    for (int i = 0; i < node->out[0].n_axes; i++) {
        const int64_t grid = op->grid ? op->grid(node, -1, i) : 1;
        const bool free_axis = tied[i] > 0 || (op->flags & FTH_OP_FREE_AXES);
        j->axis[i] = cut_axis(node->out[0].size[i], grid, may && free_axis, j->r);
    }
    if (may && j->carry >= 0)
        add_empty(&j->axis[j->carry], op->grid ? op->grid(node, -1, j->carry) : 1, j->r);
    if (may && j->carry < 0 && j->sum_axis >= 0) add_empty(&j->sum, sum_grid, j->r);
}

/* ---- whole graphs ------------------------------------------------------------------------------
 */

typedef struct eval {
    fth_graph *g;
    char **data; /* per value; NULL: not computed */
    bool check;
    fth_err *err;
} eval;

static size_t bytes_of(const fth_desc *d)
{
    return (size_t)(fth_desc_count(d) * fth_dtype_size(d->dtype));
}

static void check_cuttings(const job *base, const char *what)
{
    const fth_node *node = base->node;
    const int most = !base->device || !t_slowed() ? n_cuts : t_full() ? 3 : 2;
    const int some = n_cuts < most ? n_cuts : most;
    for (int rep = 0; rep < some; rep++) {
        t_random r = t_random_make((uint64_t)(rep + 1));
        char *out[FTH_MAX_OUT];
        job j = *base;
        j.out = out;
        j.r = &r;
        j.views = rep == 0;
        for (int k = 0; k < node->n_out; k++) {
            out[k] = malloc(bytes_of(&node->out[k]) + 1);
            memset(out[k], GUARD, bytes_of(&node->out[k]));
            j.want[k] = rep < 2 || node->n_out == 1 || t_random_i64(&r, 0, 1);
        }
        choose_cuts(&j, rep > 0);
        OKE(run_pieces(&j), j.err);
        for (int k = 0; k < node->n_out; k++) {
            if (j.want[k] && memcmp(out[k], base->out[k], bytes_of(&node->out[k])) != 0)
                FAIL("%s %s: output %d differs when cut (cutting %d)", what, node->op->name, k,
                     rep);
            free(out[k]);
        }
    }
    t_random r = t_random_make(0);
    const t_join parts = {node, base->in, base->out, base->scratch, base->run};
    if (!base->device) t_check_join(&parts, what, &r);
}

/* Element i has a NaN part there whose bits are others here. */
static bool other_nan(fth_dtype t, const char *want, const char *got, int64_t i)
{
    if (!same_nans || (!fth_dtype_is_real(t) && !fth_dtype_is_complex(t))) return false;
    const size_t size = (size_t)fth_dtype_size(t), parts = fth_dtype_is_complex(t) ? 2 : 1,
                 part = size / parts;
    const fth_c128 v = {t_get(t, want, i), t_get_im(t, want, i)};
    const char *a = want + (size_t)i * size, *b = got + (size_t)i * size;
    return (isnan(v.re) && memcmp(a, b, part) != 0) ||
           (parts == 2 && isnan(v.im) && memcmp(a + part, b + part, part) != 0);
}

/* Near the reference in the scale of its numbers; integers, and what is said to be exact, equal. */
static void check_near(const fth_node *node, char **want, char **got, bool exact, const char *what)
{
    static const double tol[FTH_DTYPE_COUNT] = {
        [FTH_F16] = 2e-3,  [FTH_BF16] = 2e-2, [FTH_F32] = 1e-5,
        [FTH_F64] = 1e-12, [FTH_C64] = 1e-5,  [FTH_C128] = 1e-12};
    for (int k = 0; k < node->n_out; k++) {
        const fth_dtype t = node->out[k].dtype;
        double scale = 1.0;
        for (int64_t i = 0; i < fth_desc_count(&node->out[k]); i++)
            if (isfinite(t_get(t, want[k], i))) scale = fmax(scale, fabs(t_get(t, want[k], i)));
        const double most = exact ? 0.0 : tol[t] * scale;
        for (int64_t i = 0; i < fth_desc_count(&node->out[k]); i++) {
            const fth_c128 a = {t_get(t, want[k], i), t_get_im(t, want[k], i)},
                           b = {t_get(t, got[k], i), t_get_im(t, got[k], i)};
            const bool same =
                (a.re == b.re || (isnan(a.re) && isnan(b.re))) && (a.im == b.im || isnan(a.im));
            if (other_nan(t, want[k], got[k], i))
                FAIL("%s %s: element %lld of output %d (%s) is another NaN than the reference's",
                     what, node->op->name, (long long)i, k, fth_dtype_name(t));
            if (!same && !(fabs(a.re - b.re) <= most && fabs(a.im - b.im) <= most))
                FAIL("%s %s: element %lld of output %d (%s) is %.17g, the reference gives %.17g",
                     what, node->op->name, (long long)i, k, fth_dtype_name(t), b.re, a.re);
        }
    }
}

/* Another kernel than the reference, whose job `j` is, here or on the device. */
static void check_variant(job j, const char *what)
{
    const fth_node *node = j.node;
    char *out[FTH_MAX_OUT], **want = j.out;
    t_random r = t_random_make(0);
    j.out = out;
    j.r = &r;
    for (int k = 0; k < node->n_out; k++) {
        out[k] = malloc(bytes_of(&node->out[k]) + 1);
        memset(out[k], GUARD, bytes_of(&node->out[k]));
    }
    choose_cuts(&j, false);
    OKE(run_pieces(&j), j.err);
    check_near(node, want, out, j.device && (all_exact || t_device_exact(node)), what);
    check_cuttings(&j, what);
    for (int k = 0; k < node->n_out; k++) free(out[k]);
}

static void check_cpu(job j)
{
    const fth_kernel *kernel = fth__cpu_backend.find(j.node);
    if (!kernel) return;
    j.run = kernel->run;
    j.scratch = kernel->scratch;
    check_variant(j, "fast");
}

/* The reference has failed with j->err: the device must say the same. */
static void check_failure(job j, fth_status status)
{
    fth_err err = {0};
    const fth_err *want = j.err;
    j.device = t_device_find(j.node);
    if (!j.device) return;
    j.err = &err;
    t_status(run_pieces(&j), status, "the call on the device", &err, T_AT);
    EQ_STR(err.text, want->text);
}

static fth_status compute(eval *e, uint32_t id);

static fth_status compute_node(eval *e, const fth_node *node)
{
    char *in[FTH_MAX_IN], *out[FTH_MAX_OUT];
    for (int i = 0; i < node->n_in; i++) {
        FTH_TRY(compute(e, node->in_val[i].id));
        in[i] = e->data[node->in_val[i].id];
    }
    for (int k = 0; k < node->n_out; k++) {
        out[k] = malloc(bytes_of(&node->out[k]) + 1);
        memset(out[k], GUARD, bytes_of(&node->out[k]));
        e->data[node->out_val[k].id] = out[k];
    }
    t_random r = t_random_make(0);
    job j = {.node = node,
             .run = node->op->run,
             .scratch = node->op->scratch,
             .in = in,
             .out = out,
             .r = &r,
             .views = true,
             .err = e->err};
    for (int k = 0; k < node->n_out; k++) j.want[k] = true;
    choose_cuts(&j, false);
    const fth_status s = run_pieces(&j);
    if (s != FTH_OK) check_failure(j, s);
    if (s != FTH_OK || !e->check) return s;
    if (node->n_in > 0 && !t_device_only()) {
        check_cuttings(&j, "reference");
        check_cpu(j);
    }
    j.device = t_device_find(node);
    if (j.device) check_variant(j, "device");
    return FTH_OK;
}

static fth_status compute(eval *e, uint32_t id)
{
    const fth_node *node = fth__val_node(fth__val_at(e->g, id));
    if (node->op == &fth__op_input) {
        e->data[id] = t_data(fth__val_at(e->g, id));
        return FTH_OK;
    }
    return e->data[id] ? FTH_OK : compute_node(e, node);
}

static fth_status evaluate(fth_val v, void *out, bool check, fth_err *err)
{
    eval e = {.g = v.graph, .check = check, .err = err};
    e.data = calloc((size_t)v.graph->n_values, sizeof *e.data);
    const fth_status s = compute(&e, v.id);
    if (s == FTH_OK) memcpy(out, e.data[v.id], bytes_of(fth__val_desc(v)));
    for (int64_t i = 1; i < v.graph->n_values; i++)
        if (fth__val_node(fth__val_at(e.g, (uint32_t)i))->op != &fth__op_input) free(e.data[i]);
    free(e.data);
    return s;
}

void t_eval(fth_val v, void *out)
{
    fth_err err = {0};
    MADE(v);
    OKE(evaluate(v, out, true, &err), &err);
}

fth_status t_try(fth_val v, void *out, fth_err *err)
{
    MADE(v);
    return evaluate(v, out, false, err);
}

void t_eval_f64(fth_val v, double *out)
{
    MADE(v);
    void *data = malloc(bytes_of(fth__val_desc(v)) + 1);
    t_eval(v, data);
    for (int64_t i = 0; i < t_count(v); i++) out[i] = t_get(fth_val_dtype(v), data, i);
    free(data);
}

/* ---- checks ------------------------------------------------------------------------------------
 */

void t_refused_(fth_graph *g, fth_status status, const char *part, t_place at)
{
    fth_err err = {0};
    t_status(fth_graph_check(g, &err), status, "fth_graph_check", &err, at);
    char text[4096];
    fth_err_format(&err, text, sizeof text);
    t_has(text, part, "the error", at);
    t_true(err.origin.file != NULL && err.origin.line > 0, "the error names a line", at);
}

void t_made_(fth_val v, t_place at)
{
    fth_err err = {0};
    if (fth_val_ok(v)) return;
    t_status(v.graph ? fth_graph_check(v.graph, &err) : FTH_E_GRAPH_VALUE, FTH_OK, "the builder",
             &err, at);
    t_fail(at, "the value is poisoned, but the graph has no error");
}

void t_shape_(fth_val v, const char *text, t_place at)
{
    char shape[384], got[512];
    t_made_(v, at);
    snprintf(got, sizeof got, "%s %s", fth_dtype_name(fth_val_dtype(v)),
             fth__desc_format(v.graph, fth__val_desc(v), shape, sizeof shape));
    t_eq_str(got, text, "shape", at);
}

static double loss_at(fth_val loss, double *x, double value)
{
    const double keep = *x;
    double out;
    fth_err err = {0};
    *x = value;
    const fth_status s = t_try(loss, &out, &err);
    *x = keep;
    OKE(s, &err);
    return out;
}

void t_grad_(fth_val loss, fth_val wrt, double tol, t_place at)
{
    fth_val grad;
    t_made_(loss, at);
    const fth_status s = fth_grad(loss, 1, &wrt, &grad);
    fth_err err = {0};
    (void)fth_graph_check(loss.graph, &err);
    t_status(s, FTH_OK, "fth_grad", &err, at);
    const int64_t per = fth_val_dtype(wrt) == FTH_C128 ? 2 : 1, n = t_count(wrt) * per;
    double *got = malloc((size_t)n * sizeof *got + 1), *x = t_data(wrt);
    t_eval(grad, got);
    for (int64_t i = 0; i < n && !t_device_only(); i++) {
        const double h = 1e-4;
        const double d1 =
            (loss_at(loss, x + i, x[i] + h) - loss_at(loss, x + i, x[i] - h)) / (2 * h);
        const double d2 =
            (loss_at(loss, x + i, x[i] + 2 * h) - loss_at(loss, x + i, x[i] - 2 * h)) / (4 * h);
        const double want = (4 * d1 - d2) / 3;
        if (!(fabs(got[i] - want) <= tol * (1 + fabs(want))))
            t_fail(at, "gradient %lld is %.12g, differences give %.12g", (long long)i, got[i],
                   want);
    }
    free(got);
}
