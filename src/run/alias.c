/* alias.c - places that a run would write twice, or write while it still reads them.
 *
 * Looked at before anything happens: memory of sinks, of sources and of parameters, the objects
 * behind sinks, and the files that sinks replace. Sharing is allowed where the plan itself shows
 * that nothing can go wrong (see fth_run).
 */
#include "base/assert.h"
#include "run/run.h"

#include "base/hash.h"

#include <string.h>
#include <sys/stat.h>

/* Memory, and whose it is. */
typedef struct place {
    const char *data; /* NULL: no memory */
    uint64_t bytes;
    uint32_t value;       /* output or input */
    int out;              /* number of the output; -1: it is memory of: */
    const fth__input *of; /* an input or a parameter; NULL */
} place;

static bool overlap(const place *a, const place *b)
{
    return a->data && b->data && a->bytes > 0 && b->bytes > 0 && a->data < b->data + b->bytes &&
           b->data < a->data + a->bytes;
}

static fth_site made_at(const fth_plan *p, uint32_t value)
{
    return fth__val_node(fth__val_at(p->graph, value))->site;
}

static uint64_t bytes_of(const fth_desc *d)
{
    return (uint64_t)fth_desc_count(d) * (uint64_t)fth_dtype_size(d->dtype);
}

enum { PLACE_NAME = FTH__INPUT_NAME + 16 };

static const char *name_of(const fth_plan *p, const place *at, char text[PLACE_NAME])
{
    char label[2 * FTH__NAME];
    if (at->of)
        snprintf(text, PLACE_NAME, "%s '%s'", at->of->param ? "parameter" : "input", at->of->name);
    else
        snprintf(text, PLACE_NAME, "output %d, %s,", at->out,
                 fth__val_label(p->graph, at->value, label, sizeof label));
    return text;
}

static fth_status refuse(const fth_plan *p, const place *a, const place *b, const char *what,
                         fth_err *err)
{
    char name_a[PLACE_NAME], name_b[PLACE_NAME];
    const fth_site at_a = made_at(p, a->value), at_b = made_at(p, b->value);
    const fth_status s =
        FTH_FAIL(err, FTH_E_ALIAS, "%s (%s:%d) and %s (%s:%d) %s", name_of(p, a, name_a), at_a.file,
                 at_a.line, name_of(p, b, name_b), at_b.file, at_b.line, what);
    fth_err_origin(err, at_b);
    return s;
}

/* ---- what is written: sinks, and the parameters of assigns ---- */

static int assigned(const fth_plan *p, int out)
{
    const fth_node *n = fth__val_node(fth__val_at(p->graph, p->out_value[out]));
    FTH_ASSERT(n->op == &fth__op_assign);
    return ((const fth__input_attr *)fth__val_node(n->in_val[0])->attr)->index;
}

static place written(const fth_plan *p, const fth_sink *sinks, int out)
{
    place at = {.value = p->out_value[out], .out = out};
    if (fth__plan_is_assign(p, out)) {
        at.of = &p->graph->input[assigned(p, out)];
        at.data = at.of->source.data;
        at.bytes = bytes_of(&at.of->desc);
        return at;
    }
    at.data = sinks[out].data;
    at.bytes = bytes_of(fth__val_desc(fth__val_at(p->graph, at.value)));
    return at;
}

/* The same name in the same folder, whichever way the folder was spelt. Commit replaces a name, so
 * links to one file under other names are other places. */
static bool same_file(const char *a, const char *b)
{
    const char *const path[2] = {a, b};
    const char *name[2];
    struct stat folder[2];
    for (int i = 0; i < 2; i++) {
        char text[4096] = ".";
        const char *slash = strrchr(path[i], '/');
        const size_t n = slash ? (size_t)(slash - path[i]) + 1 : 0;
        if (n >= sizeof text) return strcmp(a, b) == 0;
        if (n > 0) snprintf(text, sizeof text, "%.*s", (int)n, path[i]);
        if (stat(text, &folder[i]) != 0) return strcmp(a, b) == 0;
        name[i] = path[i] + n;
    }
    return strcmp(name[0], name[1]) == 0 && folder[0].st_dev == folder[1].st_dev &&
           folder[0].st_ino == folder[1].st_ino;
}

static fth_status check_sinks(const fth_plan *p, const fth_sink *a, const fth_sink *b,
                              const place *at_a, const place *at_b, fth_err *err)
{
    if (a->self && a->self == b->self && a->write && a->write == b->write)
        return refuse(p, at_a, at_b, "would go to one sink", err);
    if (!a->path || !b->path || (a->writer && a->writer == b->writer) ||
        !same_file(a->path, b->path))
        return FTH_OK;
    char what[FTH_ERR_TEXT / 2];
    snprintf(what, sizeof what, "would both become the file '%.300s'%s%.300s%s", b->path,
             strcmp(a->path, b->path) == 0 ? "" : ", which is '",
             strcmp(a->path, b->path) == 0 ? "" : a->path,
             strcmp(a->path, b->path) == 0 ? "" : "'");
    return refuse(p, at_a, at_b, what, err);
}

/* ---- when an input is read, and when an output is written ---- */

/* First and last item of the outermost loop around an item: what happens in there is one time. */
static void span_of(const fth_plan *p, int64_t item, int64_t *from, int64_t *to)
{
    *from = *to = item;
    for (int l = p->item[item].loop; l >= 0; l = p->loop[l].parent) {
        *from = p->loop[l].begin;
        *to = p->loop[l].end;
    }
}

static void span_of_loop(const fth_plan *p, int loop, int64_t *from, int64_t *to)
{
    for (int l = loop; l >= 0; l = p->loop[l].parent) {
        *from = p->loop[l].begin;
        *to = p->loop[l].end;
    }
}

static bool reads_input(const fth_plan *p, const fth__item *it, int input)
{
    for (int k = 0; k < FTH_MAX_IN && it->in[k] >= 0; k++) {
        const fth__buf *b = &p->buf[fth__buf_storage(p, it->in[k])];
        if (b->kind == FTH__BUF_FOREIGN && b->input == input) return true;
    }
    const fth__buf *into = it->kind == FTH__READ ? &p->buf[it->out[0]] : NULL;
    return into && into->input == input;
}

/* When the memory of an input is read for the last time; -1: never. `but`: leave this item out. */
static int64_t last_read(const fth_plan *p, int input, int64_t but)
{
    int64_t last = -1, from, to;
    for (int64_t i = 0; i < p->n_items; i++) {
        if (i == but || p->item[i].kind == FTH__BEGIN || p->item[i].kind == FTH__END ||
            !reads_input(p, &p->item[i], input))
            continue;
        span_of(p, i, &from, &to);
        if (to > last) last = to;
    }
    for (int64_t i = 0; i < p->n_bufs; i++) { /* tiles that are read chunk by chunk */
        const fth__buf *b = &p->buf[i];
        if (b->kind != FTH__BUF_ARENA || b->input != input || b->owner_loop < 0) continue;
        span_of_loop(p, b->owner_loop, &from, &to);
        if (to > last) last = to;
    }
    return last;
}

/* When the first byte of an output is written, and the step that writes it into the sink's memory
 * (-1: none does, it is copied there). */
static int64_t first_write(const fth_plan *p, int out, int64_t *step)
{
    int64_t first = p->n_items, from = 0, to;
    *step = -1;
    for (int64_t i = 0; i < p->n_items; i++) {
        const fth__item *it = &p->item[i];
        bool writes = it->kind == FTH__WRITE && it->unit == out;
        for (int o = 0; it->kind == FTH__STEP && o < FTH_MAX_OUT && it->out[o] >= 0; o++) {
            const fth__buf *b = &p->buf[it->out[o]];
            if (b->kind != FTH__BUF_DIRECT || b->output != out) continue;
            writes = true;
            *step = i;
        }
        if (!writes) continue;
        span_of(p, i, &from, &to);
        if (from < first) first = from;
    }
    for (int64_t i = 0; i < p->n_bufs; i++) { /* tiles that are written chunk by chunk */
        const fth__buf *b = &p->buf[i];
        if (b->kind != FTH__BUF_ARENA || b->output != out || b->owner_loop < 0) continue;
        span_of_loop(p, b->owner_loop, &from, &to);
        if (from < first) first = from;
    }
    return first;
}

/* The step makes each element of the output from the same element of the input, which it reads
 * nowhere else and not beyond its own part: the rules of an output that takes over the bytes of an
 * operand (lifetime.c). */
static bool in_place(const fth_plan *p, int64_t step, int input, int out)
{
    const fth__item *it = &p->item[step];
    const fth_node *n = p->unit[it->unit].node;
    int operand = -1, result = -1, uses = 0;
    for (int k = 0; k < n->n_in; k++) {
        const fth__buf *b = &p->buf[fth__buf_storage(p, it->in[k])];
        if (b->kind != FTH__BUF_FOREIGN || b->input != input) continue;
        operand = p->buf[it->in[k]].kind == FTH__BUF_VIEW ? -1 : k;
        uses++;
    }
    for (int o = 0; o < n->n_out; o++)
        if (p->buf[it->out[o]].kind == FTH__BUF_DIRECT && p->buf[it->out[o]].output == out)
            result = o;
    if (uses != 1 || operand < 0 || result < 0 || it->acc >= 0) return false;
    for (int d = 0; d < FTH__MAX_DEPTH; d++)
        if (it->halo_lo[d] > 0 || it->halo_hi[d] > 0) return false;
    const fth_desc *a = &n->in[operand], *b = &n->out[result];
    if (a->n_axes != b->n_axes || fth_dtype_size(a->dtype) != fth_dtype_size(b->dtype))
        return false;
    for (int d = 0; d < a->n_axes; d++)
        if (a->axis[d] != b->axis[d]) return false;
    return n->op == &fth__op_fused
               ? fth__program_allows(n->attr, operand, result)
               : result == 0 && (n->op->flags & ((uint32_t)FTH_OP_IN_PLACE_0 << operand)) != 0;
}

static bool is_safe(const fth_plan *p, int input, int out, const place *from, const place *to)
{
    int64_t step;
    if (fth__plan_is_assign(p, out)) /* written when everything is read, but for updates in place */
        return assigned(p, out) == input || last_read(p, input, -1) < p->late;
    const int64_t first = first_write(p, out, &step);
    if (last_read(p, input, -1) < first) return true;
    return step >= 0 && from->data == to->data && from->bytes == to->bytes &&
           last_read(p, input, step) < first && in_place(p, step, input, out);
}

static fth_status check_inputs(const fth_plan *p, int out, const place *to, fth_err *err)
{
    const fth_graph *g = p->graph;
    for (int64_t i = 0; i < g->n_inputs; i++) {
        const fth__input *in = &g->input[i];
        const place from = {.data = in->source.data,
                            .bytes = bytes_of(&in->desc),
                            .value = in->value,
                            .out = -1,
                            .of = in};
        if (!overlap(&from, to) || last_read(p, (int)i, -1) < 0 ||
            is_safe(p, (int)i, out, &from, to))
            continue;
        const fth_status s =
            refuse(p, &from, to,
                   from.data == to->data && from.bytes == to->bytes
                       ? "are the same memory, and the plan writes it before all of it is read"
                       : "overlap in memory, and the plan writes it before all of it is read",
                   err);
        fth_err_hint(err, "give the output memory of its own and copy it afterwards");
        return s;
    }
    return FTH_OK;
}

/* ---- runs again and again ---- */

/* Of all memory that the run is about; 0: files are written too, and those may have changed. */
static uint64_t hash_of_places(const fth_plan *p, const fth_sink *sinks)
{
    fth__hash h;
    fth__hash_init(&h, 0);
    for (int64_t i = 0; i < p->graph->n_inputs; i++)
        fth__hash_add(&h, &p->graph->input[i].source.data, sizeof(void *));
    for (int i = 0; i < p->n_outs; i++) {
        if (fth__plan_is_assign(p, i)) continue;
        if (!sinks[i].data || sinks[i].path) return 0;
        fth__hash_add(&h, &sinks[i].data, sizeof(void *));
        fth__hash_add(&h, &sinks[i].self, sizeof(void *));
        fth__hash_add(&h, &sinks[i].write, sizeof sinks[i].write);
    }
    return fth__hash_get(&h);
}

static fth_status check_all(const fth_plan *p, const fth_sink *sinks, fth_err *err)
{
    for (int j = 0; j < p->n_outs; j++) {
        const place b = written(p, sinks, j);
        FTH_TRY(check_inputs(p, j, &b, err));
        for (int i = 0; i < j; i++) {
            const place a = written(p, sinks, i);
            if (overlap(&a, &b))
                return refuse(p, &a, &b, "would be written to the same memory", err);
            if (fth__plan_is_assign(p, i) || fth__plan_is_assign(p, j)) continue;
            FTH_TRY(check_sinks(p, &sinks[i], &sinks[j], &a, &b, err));
        }
    }
    return FTH_OK;
}

/* Parameters that are exchanged from run to run have two places. */
fth_status fth__run_check_places(fth_plan *p, const fth_sink *sinks, fth_err *err)
{
    const uint64_t now = hash_of_places(p, sinks);
    if (now != 0 && (now == p->checked[0] || now == p->checked[1])) return FTH_OK;
    FTH_TRY(check_all(p, sinks, err));
    p->checked[1] = p->checked[0];
    p->checked[0] = now;
    return FTH_OK;
}
