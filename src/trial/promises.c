/* promises.c - a kernel whole and in pieces, against itself. */
#include "trial/check.h"

#include "mem/heap.h"
#include "ops/fused.h"
#include "ops/ops.h"
#include "ops/scalar.h"
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

enum { FIRST = 0xA5, SECOND = 0x5A, NOT_NUMBERS = 0xFF, HUGE_NUMBERS = 0x7B, SLACK = 64 };

double fth__check_get(fth_dtype t, const void *data, int64_t i)
{
    const fth__wide w = fth__load(t, (const char *)data + i * fth_dtype_size(t));
    return fth_dtype_is_real(t) ? w.f : fth_dtype_is_complex(t) ? w.c.re : (double)w.i;
}

void fth__check_put(fth_dtype t, void *data, int64_t i, double v)
{
    fth__store(t, (char *)data + i * fth_dtype_size(t), fth__wide_of(t, v));
}

/* ---- what differs, in words ---- */

static void put_number(fth_dtype t, const char *p, char *text, size_t bytes)
{
    const fth__wide w = fth__load(t, p);
    if (fth_dtype_is_complex(t))
        snprintf(text, bytes, "%.17g%+.17gi", w.c.re, w.c.im);
    else if (fth_dtype_is_real(t))
        snprintf(text, bytes, t == FTH_F64 ? "%.17g" : "%.9g", w.f);
    else
        snprintf(text, bytes, "%lld", (long long)w.i);
}

/* Two numbers that are written alike (two kinds of NaN, two zeros) are shown as bytes. */
static void put_both(fth_dtype t, const char *want, const char *got, char texts[2][96])
{
    const char *p[2] = {want, got};
    put_number(t, want, texts[0], sizeof texts[0]);
    put_number(t, got, texts[1], sizeof texts[1]);
    if (strcmp(texts[0], texts[1]) != 0) return;
    for (int k = 0; k < 2; k++) {
        int n = snprintf(texts[k], sizeof texts[k], "0x");
        for (int64_t b = fth_dtype_size(t) - 1; b >= 0; b--)
            n +=
                snprintf(texts[k] + n, sizeof texts[k] - (size_t)n, "%02x", (unsigned char)p[k][b]);
    }
}

/* "[row=5 col=2]" */
static const char *put_place(const fth_graph *g, const fth_desc *d, int64_t i, char *text,
                             size_t bytes)
{
    int64_t at[FTH_MAX_AXES];
    int n = snprintf(text, bytes, "[");
    for (int k = d->n_axes - 1; k >= 0; k--) {
        at[k] = i % d->size[k];
        i /= d->size[k];
    }
    for (int k = 0; k < d->n_axes && (size_t)n + 60 < bytes; k++)
        n += snprintf(text + n, bytes - (size_t)n, "%s%s=%lld", k ? " " : "",
                      fth_axis_name(g, d->axis[k]), (long long)at[k]);
    snprintf(text + n, bytes - (size_t)n, "]");
    return text;
}

/* The first element that differs; -1. */
static int64_t differs(const fth_desc *d, const char *a, const char *b)
{
    const size_t size = (size_t)fth_dtype_size(d->dtype), bytes = fth__check_bytes(d);
    if (memcmp(a, b, bytes) == 0) return -1;
    size_t i = 0;
    while (a[i] == b[i]) i++;
    return (int64_t)(i / size);
}

fth_status fth__check_same(const fth__trial *t, char *const *want, char *const *got,
                           const char *when, fth_err *err)
{
    const fth_node *node = t->node;
    for (int k = 0; k < node->n_out; k++) {
        const fth_desc *d = &node->out[k];
        const int64_t at = t->want[k] ? differs(d, want[k], got[k]) : -1;
        if (at < 0) continue;
        char place[256], number[2][96];
        const int64_t byte = at * fth_dtype_size(d->dtype);
        put_both(d->dtype, want[k] + byte, got[k] + byte, number);
        return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                        "operation '%.40s': output %d differs %s: element %s is %s, expected %s",
                        node->op->name, k, when, put_place(node->graph, d, at, place, sizeof place),
                        number[1], number[0]);
    }
    return FTH_OK;
}

/* ---- rooms ---- */

void fth__check_free(fth_mem *mem, const fth_node *node, char **out)
{
    for (int k = 0; k < node->n_out; k++) fth__heap_free(mem, out[k]);
}

fth_status fth__check_room(fth__trial *t, char **out, fth_err *err)
{
    const fth_node *node = t->node;
    for (int k = 0; k < node->n_out; k++) out[k] = NULL;
    for (int k = 0; k < node->n_out; k++) {
        const size_t bytes = fth__check_bytes(&node->out[k]);
        out[k] = fth__heap_alloc(t->mem, bytes + SLACK);
        if (!out[k]) {
            fth__check_free(t->mem, node, out);
            return FTH_FAIL(err, FTH_E_NOMEM, "the check of '%.40s' needs %llu bytes",
                            node->op->name, (unsigned long long)bytes);
        }
        memset(out[k], t->garbage, bytes);
    }
    return FTH_OK;
}

/* A trial as it is cut, against what the whole gave. */
static fth_status attempt(fth__trial *base, const fth__trial *as, const char *when, fth_err *err)
{
    char *out[FTH_MAX_OUT];
    fth__trial t = *as;
    t.out = out;
    FTH_TRY(fth__check_room(&t, out, err));
    fth_status s = fth__trial_run(&t, err);
    base->calls += t.calls - as->calls;
    if (s != FTH_OK && s != FTH_E_GRAPH_PROMISE && s != FTH_E_NOMEM && err) {
        const fth_err why = *err;
        s = FTH_FAIL(err, FTH_E_GRAPH_PROMISE, "operation '%.40s': it fails %s: %.300s",
                     t.node->op->name, when, why.text);
    } else if (s == FTH_OK) {
        s = fth__check_same(&t, base->out, out, when, err);
    }
    fth__check_free(t.mem, t.node, out);
    return s;
}

/* ---- whole ---- */

/* An element that still is what was there before. */
static fth_status check_written(const fth__trial *t, char *const *out, fth_err *err)
{
    for (int k = 0; k < t->node->n_out; k++) {
        const fth_desc *d = &t->node->out[k];
        const int64_t size = fth_dtype_size(d->dtype);
        for (int64_t i = 0; t->want[k] && i < fth_desc_count(d); i++) {
            bool left = true;
            for (int64_t b = 0; b < size; b++) {
                left = left && (unsigned char)t->out[k][i * size + b] == FIRST &&
                       (unsigned char)out[k][i * size + b] == SECOND;
            }
            char place[256];
            if (left)
                return FTH_FAIL(err, FTH_E_GRAPH_PROMISE,
                                "operation '%.40s': it does not write element %s of output %d",
                                t->node->op->name,
                                put_place(t->node->graph, d, i, place, sizeof place), k);
        }
    }
    return FTH_OK;
}

fth_status fth__check_whole(fth__trial *base, fth_err *err)
{
    char *again[FTH_MAX_OUT];
    fth__trial t = *base;
    fth__trial_whole(&t);
    t.most = 0; /* dense, and garbage before and behind */
    t.views = false;
    t.garbage = FIRST;
    t.team = t.crowd = NULL;
    for (int k = 0; k < t.node->n_out; k++)
        memset(t.out[k], FIRST, fth__check_bytes(&t.node->out[k]));
    FTH_TRY(fth__trial_run(&t, err));
    fth__trial second = t;
    second.garbage = SECOND;
    second.out = again;
    FTH_TRY(fth__check_room(&second, again, err));
    fth_status s = fth__trial_run(&second, err);
    if (s == FTH_OK) s = check_written(&t, again, err);
    if (s == FTH_OK)
        s = fth__check_same(&t, t.out, again,
                            "when outputs, state and workspace held other garbage before", err);
    fth__check_free(t.mem, t.node, again);
    base->calls = second.calls;
    return s;
}

/* ---- pieces ---- */

/* The same cuts with the true numbers all around agree: it reads what it did not ask for. */
static fth_status explain(fth__trial *base, const fth__trial *cut, fth_err *err)
{
    fth__trial t = *cut;
    const fth_err first = *err;
    t.views = true;
    if (t.elsewhere || cut->views || !strstr(err->text, " differs ") ||
        attempt(base, &t, "", err) != FTH_OK) {
        *err = first;
        return FTH_E_GRAPH_PROMISE;
    }
    *err = first;
    const size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n,
             "; with the whole of every input in memory it agrees, so it reads outside of the part "
             "that relation asks for");
    return FTH_E_GRAPH_PROMISE;
}

static fth_status cut_once(fth__trial *base, int round, int only, fth_err *err)
{
    static const int garbage[] = {NOT_NUMBERS, FIRST, HUGE_NUMBERS, SECOND};
    char places[400], when[480];
    fth__trial t = *base;
    t.seed = base->seed * 31 + (uint64_t)round * 1021 + (uint64_t)(only + 1) * 65537;
    t.garbage = garbage[round % 4];
    t.views = round % 5 == 4;
    t.mixed = true;
    t.team = t.crowd = NULL;
    for (int k = 0; k < t.node->n_out; k++)
        t.want[k] = round < 2 || t.node->n_out == 1 || fth__check_draw(&t.seed, 0, 1);
    fth__trial_cut(&t, only, round % 3 == 2 ? FTH__CUTS : 5, round % 2 == 1);
    snprintf(when, sizeof when, "when cut, %s", fth__trial_places(&t, places, sizeof places));
    if (only >= 0 && !fth__trial_is_cut(&t)) return FTH_OK;
    const fth_status s =
        attempt(base, &t, fth__trial_is_cut(&t) ? when : "when some outputs are not wanted", err);
    return s == FTH_E_GRAPH_PROMISE && err ? explain(base, &t, err) : s;
}

static fth_status check_teams(fth__trial *base, fth_err *err)
{
    char when[64];
    fth__trial t = *base;
    if (!base->team || t.elsewhere) return FTH_OK;
    for (int n = 0; n < 3; n++) {
        t.seed += 17;
        t.crowd = NULL;
        fth__trial_cut(&t, -1, 3, false);
        if (n == 0) fth__trial_whole(&t);
        t.garbage = n == 1 ? NOT_NUMBERS : SECOND;
        t.views = n == 0;
        snprintf(when, sizeof when, "when a team of %d works on it", t.threads);
        FTH_TRY(attempt(base, &t, when, err));
    }
    return FTH_OK;
}

/* Kernels of different pieces run at once: what they keep anywhere but in their call shows. */
static fth_status check_crowd(fth__trial *base, int cuts, fth_err *err)
{
    fth__trial t = *base;
    t.team = NULL;
    for (int n = 0; base->crowd && !t.elsewhere && n < cuts; n++) {
        t.seed += 29;
        fth__trial_cut(&t, -1, FTH__CUTS, false);
        t.garbage = n % 2 ? FIRST : NOT_NUMBERS;
        t.views = n % 2 == 0;
        FTH_TRY(attempt(base, &t, "when pieces run at once on several threads", err));
    }
    return FTH_OK;
}

/* Every output by itself. */
static fth_status check_wants(fth__trial *base, fth_err *err)
{
    char when[64];
    for (int k = 0; base->node->n_out > 1 && k < base->node->n_out; k++) {
        fth__trial t = *base;
        memset(t.want, 0, sizeof t.want);
        t.want[k] = true;
        t.team = t.crowd = NULL;
        t.garbage = FIRST;
        fth__trial_whole(&t);
        snprintf(when, sizeof when, "when it alone is wanted");
        FTH_TRY(attempt(base, &t, when, err));
    }
    return FTH_OK;
}

/* ---- the place of an input ---- */

static bool same_place(const fth_node *node, int in, int out)
{
    const fth_desc *a = &node->in[in], *b = &node->out[out];
    if (a->n_axes != b->n_axes || fth_dtype_size(a->dtype) != fth_dtype_size(b->dtype))
        return false;
    for (int d = 0; d < a->n_axes; d++) {
        const int at = fth_desc_find(b, a->axis[d]);
        if (a->size[d] != b->size[d] || (at >= 0 && at != d)) return false;
    }
    return true;
}

/* Outputs lie where inputs lie: that of `from[k]` for output k, -1: in its own place. */
static fth_status in_place(fth__trial *base, const int *from, bool cut, const char *when,
                           fth_err *err)
{
    const fth_node *node = base->node;
    char *in[FTH_MAX_IN], *out[FTH_MAX_OUT];
    fth__trial t = *base;
    t.team = t.crowd = NULL;
    t.garbage = SECOND;
    t.out = out;
    FTH_TRY(fth__check_room(&t, out, err));
    for (int i = 0; i < node->n_in; i++) in[i] = base->in[i];
    for (int k = 0; k < node->n_out; k++) {
        if (from[k] < 0) continue;
        memcpy(out[k], base->in[from[k]], fth__check_bytes(&node->out[k]));
        in[from[k]] = out[k];
    }
    t.in = in;
    t.views = t.updates = true;
    t.seed = base->seed + 77;
    if (cut)
        fth__trial_cut(&t, -1, 6, false);
    else
        fth__trial_whole(&t);
    fth_status s = fth__trial_run(&t, err);
    if (s == FTH_OK) s = fth__check_same(&t, base->out, out, when, err);
    fth__check_free(t.mem, node, out);
    return s;
}

enum { IN_PLACE_FLAGS = 12 };

static fth_status check_places(fth__trial *base, fth_err *err)
{
    const fth_node *node = base->node;
    const fth_op *op = node->op;
    char when[96];
    int from[FTH_MAX_OUT], updates = 0;
    if (base->elsewhere) return FTH_OK;
    for (int k = 0; k < node->n_out; k++) from[k] = -1;
    for (int i = 0; i < node->n_in && i < IN_PLACE_FLAGS; i++) {
        if (!(op->flags & ((uint32_t)FTH_OP_IN_PLACE_0 << i)) || !same_place(node, i, 0)) continue;
        if (op == &fth__op_fused && !fth__program_allows(node->attr, i, 0)) continue;
        from[0] = i;
        snprintf(when, sizeof when, "when it takes the place of input %d (FTH_OP_IN_PLACE)", i);
        FTH_TRY(in_place(base, from, false, when, err));
    }
    from[0] = -1;
    for (int k = 0; op->update_of && k < node->n_out; k++) {
        from[k] = op->update_of(node, k);
        updates += from[k] >= 0;
    }
    for (int cut = 0; updates > 0 && cut < 3; cut++)
        FTH_TRY(in_place(base, from, cut > 0,
                         cut ? "in pieces, where it overwrites the input that update_of names"
                             : "where it overwrites the input that update_of names",
                         err));
    return FTH_OK;
}

fth_status fth__check_pieces(fth__trial *base, int cuts, fth_err *err)
{
    const int axes = fth__trial_axes(base->node);
    FTH_TRY(check_wants(base, err));
    for (int i = 0; i < axes; i++)
        for (int n = 0; base->thorough && axes > 1 && n < (cuts + axes - 1) / axes; n++)
            FTH_TRY(cut_once(base, n + 2, i, err));
    for (int n = 0; n < cuts; n++) FTH_TRY(cut_once(base, n, -1, err));
    FTH_TRY(check_teams(base, err));
    FTH_TRY(check_places(base, err));
    return check_crowd(base, cuts / 4, err);
}
