/* refuse.c - the refusal: which blocks do not fit, which lines made them, and which limit would. */
#include "base/str.h"
#include "plan/plan.h"

enum { LISTED = 6 }; /* blocks: the message has room for these beside its words */

static void list_one(const fth_plan *p, const fth__buf *b, fth__text *t)
{
    char size[24], name[FTH__NAME];
    const fth_node *n = fth__val_node(fth__val_at(p->graph, b->value));
    const uint64_t bytes = b->double_buffered ? 2 * b->bytes : b->bytes;
    fth__text_add(t, "\n  %10s  %s %s [", fth_mem_format_size(bytes, size, sizeof size),
                  fth__buf_label(p, b, name), fth_dtype_name(b->desc.dtype));
    for (int d = 0; d < b->desc.n_axes; d++) {
        const bool cut = b->extent[d] < b->desc.size[d];
        fth__text_add(t, "%s%s%s%lld", d ? " " : "", fth_axis_name(p->graph, b->desc.axis[d]),
                      cut ? ":" : "=", (long long)b->extent[d]);
    }
    fth__text_add(t, "]%s  %s, %s:%d", b->double_buffered ? " x2" : "", n->op->name, n->site.file,
                  n->site.line);
}

fth_status fth__plan_refuse(fth_plan *p, uint64_t smallest, fth_err *err)
{
    char text[FTH_ERR_TEXT], need[24], allowed[24], foreign[24];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    const uint64_t total = smallest + p->foreign;
    p->refused = total;
    fth__text_add(&t, "the smallest plan needs %s (%llu bytes); %s (%llu bytes) are allowed",
                  fth_mem_format_size(total, need, sizeof need), (unsigned long long)total,
                  fth_mem_format_size(p->budget, allowed, sizeof allowed),
                  (unsigned long long)p->budget);
    if (p->foreign > 0)
        fth__text_add(&t, "; %s of it are the caller's tensors",
                      fth_mem_format_size(p->foreign, foreign, sizeof foreign));
    if (p->by_context && !p->device_memory) {
        fth__text_add(&t, "; of the budget, reserved for libraries: ");
        fth__plan_allowance_add(p, &t);
    }
    int64_t at;
    fth__plan_lower_bound(p, &at);
    int last = -1;
    uint64_t last_bytes = UINT64_MAX;
    for (int n = 0; n < LISTED; n++) {
        int pick = -1;
        uint64_t pick_bytes = 0;
        for (int64_t i = 0; i < p->n_bufs; i++) {
            const fth__buf *b = &p->buf[i];
            const uint64_t bytes = b->double_buffered ? 2 * b->bytes : b->bytes;
            if (b->kind != FTH__BUF_ARENA || b->in_place >= 0 || b->t0 > at || at > b->t1 ||
                bytes == 0)
                continue;
            const bool later = bytes < last_bytes || (bytes == last_bytes && i > last);
            if (later && bytes > pick_bytes) pick = (int)i, pick_bytes = bytes;
        }
        if (pick < 0) break;
        list_one(p, &p->buf[pick], &t);
        last = pick;
        last_bytes = pick_bytes;
    }
    const fth_status s = FTH_FAIL(err, FTH_E_NO_FIT, "%s", text);
    /* a plan's own limit is about its data; the context's budget about everything */
    const bool of_context = p->by_context || total > p->room;
    const uint64_t enough = of_context ? total + p->held : total;
    char limit[FTH__LIMIT_TEXT];
    fth_err_hint(err, "would fit: %s",
                 fth__limit_text(p->ctx->front, p->device_memory, of_context, enough, limit));
    if (last >= 0) fth_err_origin(err, p->site);
    return s;
}
