/* print_json.c - a plan for programs: everything another program needs to check it. */
#include "plan/plan.h"

#include "base/json.h"

#include <string.h>

static void text(FILE *f, const char *s)
{
    fputc('"', f);
    for (size_t left = s ? strlen(s) : 0; left > 0;) {
        const fth__json_char c = fth__json_escape(s, left);
        fwrite(c.text, 1, c.n, f);
        s += c.taken;
        left -= c.taken;
    }
    fputc('"', f);
}

static void list_i64(FILE *f, const int64_t *v, int n)
{
    fputc('[', f);
    for (int i = 0; i < n; i++) fprintf(f, "%s%lld", i ? "," : "", (long long)v[i]);
    fputc(']', f);
}

static void list_bufs(FILE *f, const int *v, int n)
{
    bool any = false;
    fputc('[', f);
    for (int i = 0; i < n; i++)
        if (v[i] >= 0) {
            fprintf(f, "%s%d", any ? "," : "", v[i]);
            any = true;
        }
    fputc(']', f);
}

static void print_allowance(const fth_plan *p, FILE *f)
{
    bool any = false;
    fprintf(f, "\"allowance\":%llu,\"libraries\":{", (unsigned long long)p->allow.bytes);
    for (int i = 0; i < FTH_LIBRARY_COUNT; i++) {
        if (!(p->allow.libraries & (1u << i))) continue;
        if (any) fputc(',', f);
        any = true;
        text(f, fth_library_get_info((fth_library)i)->name);
        fprintf(f, ":%llu", (unsigned long long)fth_library_allowance(1u << i, p->threads));
    }
    fprintf(f, ",\"more\":%llu},", (unsigned long long)p->allow.more);
}

static void print_loop(const fth_plan *p, const fth__sweep *l, FILE *f)
{
    fprintf(f, "{\"axis\":");
    text(f, fth_axis_name(p->graph, l->axis));
    fprintf(f,
            ",\"size\":%lld,\"grid\":%lld,\"chunk\":%lld,\"chunks\":%lld,\"parent\":%d,\"begin\":%"
            "d,\"end\":%d}",
            (long long)l->size, (long long)l->grid, (long long)l->chunk, (long long)l->n_chunks,
            l->parent, l->begin, l->end);
}

static void print_buf(const fth_plan *p, const fth__buf *b, FILE *f)
{
    static const char *const kind[] = {"arena", "foreign", "direct", "view"};
    char name[FTH__NAME];
    fprintf(f, "{\"label\":");
    text(f, fth__buf_label(p, b, name));
    fprintf(f, ",\"kind\":\"%s\",\"dtype\":\"%s\",\"element\":%lld,\"axes\":[", kind[b->kind],
            fth_dtype_name(b->desc.dtype), (long long)b->element);
    for (int d = 0; d < b->desc.n_axes; d++) {
        if (d) fputc(',', f);
        text(f, fth_axis_name(p->graph, b->desc.axis[d]));
    }
    fprintf(f, "],\"extent\":");
    list_i64(f, b->extent, b->desc.n_axes);
    fprintf(f,
            ",\"home\":%d,\"copies\":%d,\"bytes\":%llu,\"offset\":%llu,\"base\":%d,\"in_place\":%d",
            b->home, b->twice ? 2 : 1, (unsigned long long)b->bytes, (unsigned long long)b->offset,
            b->base, b->in_place);
    fprintf(f, ",\"from\":%lld,\"to\":%lld}", b->t1 < 0 ? -1LL : (long long)b->t0,
            (long long)b->t1);
}

/* The operations that a fused step does, each with the label of its result and its line. */
static void print_members(const fth_plan *p, const fth__unit *u, FILE *f)
{
    char label[FTH__NAME], site[512];
    if (u->n_member == 0) return;
    fprintf(f, ",\"ops\":[");
    for (int i = 0; i < u->n_member; i++) {
        const fth_node *n = p->graph->node[u->member[i]];
        fprintf(f, "%s{\"op\":", i ? "," : "");
        text(f, fth__node_does(n));
        fprintf(f, ",\"label\":");
        text(f, fth__val_label(p->graph, n->out_val[0].id, label, sizeof label));
        fprintf(f, ",\"line\":");
        snprintf(site, sizeof site, "%s:%d", n->site.file, n->site.line);
        text(f, site);
        fputc('}', f);
    }
    fputc(']', f);
}

static void print_item(const fth_plan *p, const fth__item *it, FILE *f)
{
    static const char *const kind[] = {"step", "read",   "write", "begin",
                                       "end",  "commit", "spill", "reload"};
    fprintf(f, "{\"kind\":\"%s\",\"loop\":%d,\"in\":", kind[it->kind], it->loop);
    list_bufs(f, it->in, FTH_MAX_IN);
    fprintf(f, ",\"out\":");
    list_bufs(f, it->out, FTH_MAX_OUT);
    fprintf(f, ",\"state\":%d,\"scratch\":%d", it->state, it->scratch);
    if (it->kind == FTH__STEP) {
        const fth_node *n = p->unit[it->unit].node;
        fprintf(f, ",\"op\":");
        text(f, n->op->name);
        fprintf(f, ",\"flops\":%.17g,\"moved\":%llu,\"line\":", it->flops,
                (unsigned long long)it->moved);
        char site[512];
        snprintf(site, sizeof site, "%s:%d", n->site.file, n->site.line);
        text(f, site);
        print_members(p, &p->unit[it->unit], f);
    }
    fputc('}', f);
}

fth_status fth_plan_print_json(const fth_plan *p, FILE *f)
{
    FTH_TRY(fth__object_check(&p->object, "this prints", NULL));
    fprintf(f, "{\"device\":");
    text(f, p->ctx->device);
    fprintf(f, ",\"threads\":%d,\"budget\":%llu,\"peak\":%llu,\"lower\":%llu,\"foreign\":%llu,",
            p->threads, (unsigned long long)p->budget, (unsigned long long)p->peak,
            (unsigned long long)p->lower, (unsigned long long)p->foreign);
    print_allowance(p, f);
    fprintf(f, "\n\"loops\":[");
    for (int64_t i = 0; i < p->n_loops; i++) {
        if (i) fprintf(f, ",\n ");
        print_loop(p, &p->loop[i], f);
    }
    fprintf(f, "],\n\"buffers\":[");
    for (int64_t i = 0; i < p->n_bufs; i++) {
        if (i) fprintf(f, ",\n ");
        print_buf(p, &p->buf[i], f);
    }
    fprintf(f, "],\n\"items\":[");
    for (int64_t i = 0; i < p->n_items; i++) {
        if (i) fprintf(f, ",\n ");
        print_item(p, &p->item[i], f);
    }
    fprintf(f, "]}\n");
    return ferror(f) ? FTH_E_FILE_WRITE : FTH_OK;
}
