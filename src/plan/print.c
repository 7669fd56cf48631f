/* print.c - a plan for people: passes, chunks, bytes by label, a chart of lifetimes. */
#include "plan/plan.h"

#include <fathom/rates.h>
#include <string.h>

enum { CHART = 48, SHOWN = 24, LINE = 100 }; /* columns, blocks, columns: a wide terminal's page */
/* Flops per byte above which a step is said to be bound by computing: twice where, by
 * fth__work_seconds, both take as long. */
static const double COMPUTE_BOUND = 4.0;

static const char *size_text(uint64_t bytes, char *text)
{
    return fth_mem_format_size(bytes, text, 24);
}

static void print_shape(const fth_plan *p, const fth__buf *b, FILE *f)
{
    fprintf(f, "%s [", fth_dtype_name(b->desc.dtype));
    for (int d = 0; d < b->desc.n_axes; d++)
        fprintf(f, "%s%s%s%lld", d ? " " : "", fth_axis_name(p->graph, b->desc.axis[d]),
                b->extent[d] < b->desc.size[d] ? ":" : fth__axis_sign(p->graph, b->desc.axis[d]),
                (long long)b->extent[d]);
    fprintf(f, "]%s", b->double_buffered ? " x2" : "");
}

const char *fth__buf_label(const fth_plan *p, const fth__buf *b, char *text)
{
    return b->role ? b->role : fth__val_label(p->graph, p->shown[b->value], text, FTH__NAME);
}

static void print_step(const fth_plan *p, const fth__item *it, int indent, FILE *f)
{
    const fth_node *n = p->unit[it->unit].node;
    fprintf(f, "%*s%-12s -> ", indent, "", n->op->name);
    print_shape(p, &p->buf[it->out[0]], f);
    const double intensity = it->moved > 0 ? it->flops / (double)it->moved : 0.0;
    fprintf(f, "  %.3g s, %.3g flop, %s  %s:%d\n", it->seconds, it->flops,
            intensity > COMPUTE_BOUND ? "compute" : "memory", n->site.file, n->site.line);
}

/* What a fused step does, in order, and what the results are called that have a name. */
static void print_members(const fth_plan *p, const fth__unit *u, int indent, FILE *f)
{
    char word[2 * FTH__NAME];
    fth__text t;
    int at = 0;
    for (int i = 0; i < u->n_member; i++) {
        const fth_node *n = p->graph->node[u->member[i]];
        const char *label = p->graph->value[p->shown[n->out_val[0].id]].label;
        fth__text_init(&t, word, sizeof word);
        fth__text_add(&t, "%s%s%s", fth__node_does(n), label[0] ? " as " : "", label);
        const int length = (int)strlen(word);
        if (at == 0 || at + length + 2 > LINE)
            at = fprintf(f, "%s%*s", at ? ",\n" : "", indent, "");
        else
            at += fprintf(f, ", ");
        at += fprintf(f, "%s", word);
    }
    if (at > 0) fputc('\n', f);
}

/* How ranks share a pass, or why they do not. */
static void print_share(const fth_plan *p, const fth__sweep *l, FILE *f)
{
    char a[24];
    if (p->ranks < 2 || l->depth > 0) return;
    const fth__exchange x = fth__sweep_exchange(p, l);
    const fth__range first = fth__sweep_of_rank(l, 0, p->ranks),
                     last = fth__sweep_of_rank(l, p->ranks - 1, p->ranks);
    if (l->shared) {
        fprintf(f, "    shared: %lld chunks for the first rank, %lld for the last; exchanges %s\n",
                (long long)(first.hi - first.lo), (long long)(last.hi - last.lo),
                size_text(x.bytes, a));
    } else if (!l->alone) {
        fprintf(f, "    on every rank: %s\n",
                p->device_memory ? "the device's memory is not shared"
                                 : "what ranks would keep of it does not fit");
    } else if (l->alone_unit < 0) {
        fprintf(f, "    on every rank: %s\n", l->alone);
    } else {
        const fth_node *n = p->unit[l->alone_unit].node;
        fprintf(f, "    on every rank: %s at %s:%d %s\n", n->op->name, n->site.file, n->site.line,
                l->alone);
    }
}

static void print_items(const fth_plan *p, FILE *f)
{
    char name[FTH__NAME];
    for (int64_t i = 0; i < p->n_items; i++) {
        const fth__item *it = &p->item[i];
        const int depth = it->loop < 0 ? 0 : p->loop[it->loop].depth + 1;
        switch (it->kind) {
        case FTH__STEP:
            print_step(p, it, 2 + 2 * depth, f);
            print_members(p, &p->unit[it->unit], 6 + 2 * depth, f);
            break;
        case FTH__READ:
            fprintf(f, "%*sread         %s\n", 2 + 2 * depth, "",
                    fth__buf_label(p, &p->buf[it->out[0]], name));
            break;
        case FTH__WRITE:
            fprintf(f, "%*swrite        %s\n", 2 + 2 * depth, "",
                    fth__buf_label(p, &p->buf[it->in[0]], name));
            break;
        case FTH__COMMIT:
            fprintf(f, "  assign       %s\n", fth__buf_label(p, &p->buf[it->in[0]], name));
            break;
        case FTH__BEGIN: {
            const fth__sweep *l = &p->loop[it->loop];
            fprintf(f, "%*spass %d: stream %s, %s%lld chunks of %lld\n", 2 * depth, "", l->pass + 1,
                    fth_axis_name(p->graph, l->axis),
                    p->graph->axis[l->axis]->bound ? "at most " : "", (long long)l->n_chunks,
                    (long long)l->chunk);
            print_share(p, l, f);
            break;
        }
        case FTH__SPILL:
            fprintf(f, "  spill        %s\n", fth__buf_label(p, &p->buf[it->in[0]], name));
            break;
        case FTH__RELOAD:
            fprintf(f, "  reload       %s\n", fth__buf_label(p, &p->buf[it->out[0]], name));
            break;
        case FTH__END: break;
        }
    }
}

static void print_bar(const fth_plan *p, const fth__buf *b, FILE *f)
{
    const int64_t n = p->n_items > 1 ? p->n_items : 1;
    const int64_t from = b->t0 * CHART / n, to = b->t1 * CHART / n;
    for (int64_t c = 0; c < CHART; c++) fputc(c >= from && c <= to ? '#' : '.', f);
}

/* The largest blocks, each once, with when they live. */
static void print_blocks(const fth_plan *p, FILE *f)
{
    char size[24], name[FTH__NAME];
    uint64_t last = UINT64_MAX;
    int64_t last_index = -1;
    for (int k = 0; k < SHOWN; k++) {
        int64_t pick = -1;
        uint64_t most = 0;
        for (int64_t i = 0; i < p->n_bufs; i++) {
            const fth__buf *b = &p->buf[i];
            const uint64_t bytes = b->double_buffered ? 2 * b->bytes : b->bytes;
            if (b->kind != FTH__BUF_ARENA || b->in_place >= 0 || bytes == 0 || b->t1 < 0) continue;
            const bool after = bytes < last || (bytes == last && i > last_index);
            if (after && bytes > most) most = bytes, pick = i;
        }
        if (pick < 0) return;
        const fth__buf *b = &p->buf[pick];
        fprintf(f, "  %10s  ", size_text(most, size));
        print_bar(p, b, f);
        fprintf(f, "  %s ", fth__buf_label(p, b, name));
        print_shape(p, b, f);
        fputc('\n', f);
        last = most;
        last_index = pick;
    }
}

fth_status fth_plan_print(const fth_plan *p, FILE *f)
{
    FTH_TRY(fth__object_check(&p->object, "this prints", NULL));
    char a[24], b[24], c[24], d[24];
    fth_plan_info info;
    fth_plan_get_info(p, &info);
    fprintf(f, "plan on %s, %d thread%s: arena %s (lower bound %s), foreign %s, budget %s\n",
            p->ctx->device, p->threads, p->threads == 1 ? "" : "s", size_text(p->peak, a),
            size_text(p->lower, b), size_text(p->foreign, c), size_text(p->budget, d));
    char rows[256];
    fth__text t;
    fth__text_init(&t, rows, sizeof rows);
    fth__plan_allowance_add(p, &t);
    fprintf(f, "beside it %s for libraries: %s\n", size_text(p->allow.bytes, a), rows);
    fprintf(f, "%lld steps, %lld passes, %lld nested, %lld made again, %lld spilled, %.4g flop\n",
            (long long)info.steps, (long long)info.passes, (long long)info.nested,
            (long long)info.recomputed, (long long)info.spilled, info.flops);
    if (p->merged + p->folded > 0)
        fprintf(f, "%lld values are equal to others and not made, %lld are constants\n",
                (long long)p->merged, (long long)p->folded);
    if (p->ranks > 1)
        fprintf(f,
                "%d ranks share %lld of %lld passes, %.0f %% of the work; each exchanges %s; %.3g "
                "times as fast as one\n",
                p->ranks, (long long)info.shared_passes, (long long)info.passes,
                100.0 * info.shared_fraction, size_text(info.exchanged_bytes, a),
                info.seconds_together > 0.0 ? info.seconds_alone / info.seconds_together : 1.0);
    fprintf(f, "predicted %.3g s, and %.3g s more where the arena is touched first; rates %s\n",
            p->seconds, p->touch_seconds, fth_context_rates(p->ctx));
    print_items(p, f);
    fprintf(f, "blocks over time\n");
    print_blocks(p, f);
    return ferror(f) ? FTH_E_FILE_WRITE : FTH_OK;
}
