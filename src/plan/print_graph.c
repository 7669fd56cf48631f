/* print_graph.c - a graph for people: one line per value, and the mistakes made on the way. */
#include "plan/plan.h"

static void print_shape(const fth_graph *g, const fth_desc *d, FILE *f)
{
    char shape[256];
    fprintf(f, "  %s %s", fth_dtype_name(d->dtype), fth__desc_format(g, d, shape, sizeof shape));
    if (d->triangle != FTH_FULL)
        fprintf(f, " %s over %s %s", d->triangle == FTH_LOWER ? "lower" : "upper",
                fth_axis_name(g, d->axis[d->row]), fth_axis_name(g, d->axis[d->col]));
}

static void print_constant(const fth_node *n, FILE *f)
{
    const fth__const_attr *a = n->attr;
    const fth_dtype t = (fth_dtype)a->dtype;
    if (fth_dtype_is_complex(t))
        fprintf(f, " %g%+gi", a->value.re, a->value.im);
    else if (fth_dtype_is_real(t))
        fprintf(f, " %g", a->value.re);
    else
        fprintf(f, " %lld", (long long)a->integer);
}

/* "   7  rate = exp(x)  f32 [row=20000 col=4]  a.c:12" */
static void print_value(const fth_graph *g, uint32_t v, FILE *f)
{
    char name[2 * FTH__NAME];
    const fth_node *n = g->node[g->value[v].node];
    fprintf(f, "%4u  %s = %s", (unsigned)v, fth__val_label(g, v, name, sizeof name),
            fth__node_does(n));
    for (int k = 0; k < n->n_in; k++)
        fprintf(f, "%s%s", k ? ", " : "(", fth__val_label(g, n->in_val[k].id, name, sizeof name));
    if (n->n_in > 0) fputc(')', f);
    if (n->op == &fth__op_const) print_constant(n, f);
    if (n->n_out > 1) fprintf(f, " output %d", (int)g->value[v].out);
    print_shape(g, &n->out[g->value[v].out], f);
    fprintf(f, "  %s:%d\n", n->site.file, n->site.line);
}

fth_status fth_graph_print(const fth_graph *g, FILE *f)
{
    if (!g) return FTH_E_NOMEM;
    FTH_TRY(fth__object_check(&g->object, "this prints", NULL));
    fprintf(f, "graph of %lld values over %lld axes\n", (long long)(g->n_values - 1),
            (long long)g->n_axes);
    for (int64_t v = 1; v < g->n_values; v++) print_value(g, (uint32_t)v, f);
    for (int i = 0; i < g->n_errors && i < FTH__GRAPH_ERRORS; i++) {
        fth_err err = {0};
        fth_graph_errors(g, i, &err);
        fprintf(f, "mistake at %s:%d: %s\n", err.origin.file ? err.origin.file : "?",
                err.origin.line, err.text);
    }
    return ferror(f) ? FTH_E_FILE_WRITE : FTH_OK;
}
