/* print_json.c - a plan for programs: everything another program needs to check it. */
#include "plan/plan.h"

#include <fathom/json.h>
#include <fathom/rates.h>

#include <string.h>

static void put_i64(fth_json_writer *w, const char *key, const int64_t *v, int n)
{
    fth_json_open(w, key, '[');
    for (int i = 0; i < n; i++) fth_json_int(w, NULL, v[i]);
    fth_json_close(w);
}

static void put_bufs(fth_json_writer *w, const char *key, const int *v, int n)
{
    fth_json_open(w, key, '[');
    for (int i = 0; i < n; i++)
        if (v[i] >= 0) fth_json_int(w, NULL, v[i]);
    fth_json_close(w);
}

static void put_line(fth_json_writer *w, const fth_site *site)
{
    char text[512];
    snprintf(text, sizeof text, "%s:%d", site->file, site->line);
    fth_json_text(w, "line", text);
}

static void put_allowance(fth_json_writer *w, const fth_plan *p)
{
    fth_json_u64(w, "allowance", p->allow.bytes);
    fth_json_open(w, "libraries", '{');
    for (int i = 0; i < FTH_LIBRARY_COUNT; i++)
        if (p->allow.libraries & (1u << i))
            fth_json_u64(w, fth_library_get_info((fth_library)i)->name,
                         fth__plan_allowance_of(p, &p->allow, i));
    fth_json_u64(w, "more", p->allow.more);
    fth_json_close(w);
}

static void put_ranks(fth_json_writer *w, const fth_plan *p)
{
    fth_plan_info info;
    if (p->ranks < 2) return;
    fth_plan_get_info(p, &info);
    fth_json_open(w, "ranks", '{');
    fth_json_int(w, "count", p->ranks);
    fth_json_int(w, "shared_passes", info.shared_passes);
    fth_json_u64(w, "exchanged", info.exchanged_bytes);
    fth_json_real(w, "shared_fraction", info.shared_fraction);
    fth_json_real(w, "seconds_alone", info.seconds_alone);
    fth_json_real(w, "seconds_together", info.seconds_together);
    fth_json_close(w);
}

static void put_loop(fth_json_writer *w, const fth_plan *p, const fth__sweep *l)
{
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "axis", fth_axis_name(p->graph, l->axis));
    fth_json_int(w, "size", l->size);
    fth_json_int(w, "grid", l->grid);
    fth_json_int(w, "chunk", l->chunk);
    fth_json_int(w, "chunks", l->n_chunks);
    fth_json_int(w, "parent", l->parent);
    fth_json_int(w, "begin", l->begin);
    fth_json_int(w, "end", l->end);
    if (p->ranks > 1) {
        fth_json_bool(w, "shared", l->shared);
        fth_json_u64(w, "exchanged", fth__sweep_exchange(p, l).bytes);
        if (l->alone) fth_json_text(w, "alone", l->alone);
    }
    fth_json_close(w);
}

static void put_buf(fth_json_writer *w, const fth_plan *p, const fth__buf *b)
{
    static const char *const kind[] = {"arena", "foreign", "direct", "view"};
    char name[FTH__NAME];
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "label", fth__buf_label(p, b, name));
    fth_json_text(w, "kind", kind[b->kind]);
    fth_json_text(w, "dtype", fth_dtype_name(b->desc.dtype));
    fth_json_int(w, "element", b->element);
    fth_json_open(w, "axes", '[');
    for (int d = 0; d < b->desc.n_axes; d++)
        fth_json_text(w, NULL, fth_axis_name(p->graph, b->desc.axis[d]));
    fth_json_close(w);
    put_i64(w, "extent", b->extent, b->desc.n_axes);
    fth_json_int(w, "home", b->owner_loop);
    fth_json_int(w, "copies", b->double_buffered ? 2 : 1);
    fth_json_u64(w, "bytes", b->bytes);
    fth_json_u64(w, "offset", b->offset);
    fth_json_int(w, "base", b->base);
    fth_json_int(w, "in_place", b->in_place);
    fth_json_int(w, "from", b->t1 < 0 ? -1 : b->t0);
    fth_json_int(w, "to", b->t1);
    fth_json_close(w);
}

/* The operations that a fused step does, each with the label of its result and its line. */
static void put_members(fth_json_writer *w, const fth_plan *p, const fth__unit *u)
{
    char label[FTH__NAME];
    if (u->n_member == 0) return;
    fth_json_open(w, "ops", '[');
    for (int i = 0; i < u->n_member; i++) {
        const fth_node *n = p->graph->node[u->member[i]];
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "op", fth__node_does(n));
        fth_json_text(w, "label",
                      fth__val_label(p->graph, p->shown[n->out_val[0].id], label, sizeof label));
        put_line(w, &n->site);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_item(fth_json_writer *w, const fth_plan *p, const fth__item *it)
{
    static const char *const kind[] = {"step", "read",   "write", "begin",
                                       "end",  "commit", "spill", "reload"};
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "kind", kind[it->kind]);
    fth_json_int(w, "loop", it->loop);
    put_bufs(w, "in", it->in, FTH_MAX_IN);
    put_bufs(w, "out", it->out, FTH_MAX_OUT);
    fth_json_open(w, "state", '[');
    for (int o = 0; o < FTH_MAX_OUT && it->out[o] >= 0; o++)
        if (it->state[o] >= 0) fth_json_int(w, NULL, it->state[o]);
    fth_json_close(w);
    fth_json_int(w, "scratch", it->scratch);
    if (it->kind == FTH__STEP) {
        const fth_node *n = p->unit[it->unit].node;
        fth_json_text(w, "op", n->op->name);
        fth_json_real(w, "flops", it->flops);
        fth_json_u64(w, "moved", it->moved);
        fth_json_real(w, "seconds", it->seconds);
        put_line(w, &n->site);
        put_members(w, p, &p->unit[it->unit]);
    }
    fth_json_close(w);
}

fth_status fth_plan_add_json(const fth_plan *p, fth_json_writer *w, const char *key)
{
    FTH_TRY(fth__object_check(&p->object, "this prints", NULL));
    fth_json_open(w, key, '{');
    fth_json_text(w, "device", p->ctx->device);
    fth_json_int(w, "threads", p->threads);
    fth_json_u64(w, "budget", p->budget);
    fth_json_u64(w, "peak", p->peak);
    fth_json_u64(w, "lower", p->lower);
    fth_json_u64(w, "foreign", p->foreign);
    fth_json_real(w, "seconds", p->seconds);
    fth_json_real(w, "touch_seconds", p->touch_seconds);
    fth_json_text(w, "rates", fth_context_rates(p->ctx));
    put_allowance(w, p);
    put_ranks(w, p);
    fth_json_open(w, "loops", '[');
    for (int64_t i = 0; i < p->n_loops; i++) put_loop(w, p, &p->loop[i]);
    fth_json_close(w);
    fth_json_open(w, "buffers", '[');
    for (int64_t i = 0; i < p->n_bufs; i++) put_buf(w, p, &p->buf[i]);
    fth_json_close(w);
    fth_json_open(w, "items", '[');
    for (int64_t i = 0; i < p->n_items; i++) put_item(w, p, &p->item[i]);
    fth_json_close(w);
    fth_json_close(w);
    return FTH_OK;
}

fth_status fth_plan_print_json(const fth_plan *p, FILE *f)
{
    fth_json_writer w;
    fth_json_begin_file(&w, f, "the plan", true);
    FTH_TRY(fth_plan_add_json(p, &w, NULL));
    return fth_json_end(&w, NULL);
}
