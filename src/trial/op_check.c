/* op_check.c - see fathom/op_check.h. */
#include "base/hash.h"
#include "mem/heap.h"
#include "ops/identity.h"
#include "ops/scalar.h"
#include "trial/check.h"

#include <fathom/op_check.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CUTS = 32, THREADS = 3, AROUND = 5, SLACK = 64 };

/* What a check holds. */
typedef struct held {
    fth_mem *mem;
    const fth_node *node;
    char *in[FTH_MAX_IN], *out[FTH_MAX_OUT];
    fth_team *team, *crowd;
    uint64_t seed, attr_hash;
} held;

static double normal(uint64_t *seed)
{
    const double u = (double)fth__check_draw(seed, 1, 1 << 24) / (1 << 24),
                 a = (double)fth__check_draw(seed, 0, (1 << 24) - 1) / (1 << 24);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * a);
}

static void fill(const fth_desc *d, char *data, uint64_t *seed)
{
    const int64_t size = fth_dtype_size(d->dtype), n = fth_desc_count(d);
    const bool sign = fth__first_int((int)d->dtype) < 0; /* of whole numbers */
    for (int64_t i = 0; i < n; i++) {
        fth__wide w = {0};
        if (fth_dtype_is_real(d->dtype))
            w.f = normal(seed);
        else if (fth_dtype_is_complex(d->dtype))
            w.c = (fth_c128){normal(seed), normal(seed)};
        else
            w.i = d->dtype == FTH_BOOL ? fth__check_draw(seed, 0, 1)
                                       : fth__check_draw(seed, sign ? -20 : 0, 20);
        fth__store(d->dtype, data + i * size, w);
    }
}

static fth_status take(held *h, const fth_op_check_options *o, fth_err *err)
{
    const fth_node *node = h->node;
    for (int i = 0; i < node->n_in; i++) {
        const size_t bytes = fth__check_bytes(&node->in[i]);
        uint64_t seed = o->seed * 257 + (uint64_t)i;
        h->in[i] = fth__heap_alloc(h->mem, bytes + 1);
        if (!h->in[i])
            return FTH_FAIL(err, FTH_E_NOMEM, "input %d of the check of '%.40s'", i,
                            node->op->name);
        if (o->in[i])
            memcpy(h->in[i], o->in[i], bytes);
        else
            fill(&node->in[i], h->in[i], &seed);
    }
    for (int k = 0; k < node->n_out; k++) {
        h->out[k] = fth__heap_alloc(h->mem, fth__check_bytes(&node->out[k]) + SLACK);
        if (!h->out[k])
            return FTH_FAIL(err, FTH_E_NOMEM, "output %d of the check of '%.40s'", k,
                            node->op->name);
    }
    const int threads = o->threads > 0 ? o->threads : THREADS;
    if (threads == 1) return FTH_OK;
    FTH_TRY(fth_team_create(&h->crowd, h->mem, threads, err));
    if (node->op->flags & FTH_OP_TEAM) return fth_team_create(&h->team, h->mem, threads, err);
    return FTH_OK;
}

static void give_back(held *h)
{
    for (int i = 0; i < h->node->n_in; i++) fth__heap_free(h->mem, h->in[i]);
    for (int k = 0; k < h->node->n_out; k++) fth__heap_free(h->mem, h->out[k]);
    fth_team_destroy(h->team);
    fth_team_destroy(h->crowd);
}

/* The sample itself is refused by the kernel. */
static fth_status failed(const fth_node *node, fth_err *err)
{
    if (!err || err->status == FTH_E_GRAPH_PROMISE || err->status == FTH_E_NOMEM)
        return err ? err->status : FTH_E_GRAPH_PROMISE;
    const fth_err why = *err;
    if (!(node->op->flags & FTH_OP_MAY_FAIL))
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': it fails and does not have FTH_OP_MAY_FAIL: %.300s",
                        node->op->name, why.text);
    FTH_TRY(FTH_FAIL(err, FTH_E_USAGE,
                     "operation '%.40s' fails for the inputs it is checked with: %.300s",
                     node->op->name, why.text));
    return FTH_E_USAGE;
}

/* Numbers that are none, and zeros: an operation that may fail either works or says why, and leaves
 * what is around its tiles alone. The words of its error are not compared. */
static fth_status check_hostile(fth__trial *base, fth_err *err)
{
    const fth_node *node = base->node;
    for (int kind = 0; kind < 2; kind++) {
        char *in[FTH_MAX_IN] = {0}, *out[FTH_MAX_OUT];
        fth__trial t = *base;
        fth_err own = {0};
        fth_status s = fth__check_room(&t, out, err);
        if (s != FTH_OK) return s;
        for (int i = 0; i < node->n_in && s == FTH_OK; i++) {
            const size_t bytes = fth__check_bytes(&node->in[i]);
            in[i] = fth__heap_alloc(t.mem, bytes + 1);
            if (!in[i]) s = FTH_FAIL(err, FTH_E_NOMEM, "the check of '%.40s'", node->op->name);
            if (!in[i]) break;
            memcpy(in[i], base->in[i], bytes);
            if (fth_dtype_is_real(node->in[i].dtype) || fth_dtype_is_complex(node->in[i].dtype))
                memset(in[i], kind ? 0 : 0xFF, bytes);
        }
        t.in = in;
        t.out = out;
        t.views = false;
        t.team = t.crowd = NULL;
        fth__trial_whole(&t);
        if (s == FTH_OK && fth__trial_run(&t, &own) == FTH_E_GRAPH_PROMISE) {
            s = FTH_E_GRAPH_PROMISE;
            if (err) *err = own;
        }
        for (int i = 0; i < node->n_in; i++) fth__heap_free(t.mem, in[i]);
        fth__check_free(t.mem, node, out);
        FTH_TRY(s);
    }
    return FTH_OK;
}

static uint64_t attr_hash(const fth_node *node)
{
    return node->attr_bytes ? fth__hash_bytes(node->attr, node->attr_bytes, 1) : 0;
}

static fth_status check_all(held *h, fth_val v, const fth_op_check_options *o,
                            fth_op_check_report *report, fth_err *err)
{
    const fth_node *node = h->node;
    fth__trial base = {.node = node,
                       .mem = h->mem,
                       .run = node->op->run,
                       .scratch = node->op->scratch,
                       .in = h->in,
                       .out = h->out,
                       .carry = -1,
                       .sum_axis = -1,
                       .garbage = 0xA5,
                       .thorough = true,
                       .most = AROUND,
                       .threads = o->threads > 0 ? o->threads : THREADS,
                       .team = h->team,
                       .crowd = h->crowd,
                       .seed = o->seed + 1};
    const int cuts = o->cuts > 0 ? o->cuts : CUTS;
    for (int k = 0; k < node->n_out; k++) base.want[k] = true;
    FTH_TRY(fth__check_said(node, h->mem, err));
    h->attr_hash = attr_hash(node);
    if (fth__check_whole(&base, err) != FTH_OK) return failed(node, err);
    FTH_TRY(fth__check_pieces(&base, cuts, err));
    FTH_TRY(fth__check_joins(&base, &report->joins, err));
    if (node->op->flags & FTH_OP_MAY_FAIL) FTH_TRY(check_hostile(&base, err));
    if (attr_hash(node) != h->attr_hash)
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE, "operation '%.40s': it changes its attributes",
                        node->op->name);
    report->calls = base.calls;
    for (int i = 0; i < fth__trial_axes(node); i++) {
        fth__trial t = base;
        fth__trial_cut(&t, i, 3, false);
        report->axes += fth__trial_is_cut(&t);
    }
    if (o->gradient < 0.0) return FTH_OK;
    return fth__check_gradient(v, h->in, h->mem, o->gradient, o->seed + 3, &report->gradient_error,
                               err);
}

fth_status fth_op_check(fth_val v, const fth_op_check_options *options, fth_op_check_report *report,
                        fth_err *err)
{
    const fth_op_check_options none = {0}, *o = options ? options : &none;
    fth_op_check_report own, *r = report ? report : &own;
    fth_err local = {0};
    if (!err) err = &local;
    *r = (fth_op_check_report){.gradient_error = -1.0};
    if (!v.graph) return FTH_FAIL(err, FTH_E_USAGE, "fth_op_check: the value is poison");
    if (!fth_val_ok(v)) return fth_graph_check(v.graph, err);
    const fth_node *node = fth__val_node(v);
    if (node->op->flags & FTH_OP_ALIAS) return FTH_OK; /* no bytes, no kernel */
    if (!node->op->run)
        return FTH_FAIL(err, FTH_E_NO_KERNEL, "operation '%.40s' has no run to check",
                        node->op->name);
    held h = {.mem = v.graph->mem, .node = node};
    fth_status s = take(&h, o, err);
    if (s == FTH_OK) s = check_all(&h, v, o, r, err);
    give_back(&h);
    if (s == FTH_E_GRAPH_PROMISE && !err->origin.file) err->origin = node->site;
    return s;
}
