/* first_steps.c - values, axes, a plan, a run and a mistake. docs/engine.md explains it line by
 * line.
 *
 * seconds: 1
 * For every cell the sum over landmarks of exp(-|x - z|^2 / 2) times a weight. Written plainly the
 * distances are cells x landmarks x 2 numbers; here the plan streams the cells.
 */
#include <fathom/fathom.h>

#include <math.h>

enum { CELLS = 100000, MARKS = 40 };

static double position(int64_t i, int64_t d)
{
    return sin((double)(i * 7 + d * 3)) * 3.0;
}

/* A source gives any rectangle [lo, lo+n) of its array, when asked. */
static fth_status read_cells(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    (void)self, (void)err;
    double *out = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++)
        for (int64_t d = lo[1]; d < lo[1] + n[1]; d++) *out++ = position(i, d);
    return FTH_OK;
}

/* X [cell dim], Z [mark dim], w [mark] -> [cell] */
static fth_val field(fth_val X, fth_val Z, fth_val w)
{
    const fth_val d = fth_sub(fth_expand(X, "mark"), fth_expand(Z, "cell"));
    const fth_val k =
        fth_exp(fth_mul(fth_sum(fth_sqr(d), "dim"), fth_const(X.graph, FTH_F64, -0.5)));
    return fth_label(fth_dot(w, k, "mark"), "field");
}

/* The same, one cell at a time. */
static double by_hand(int64_t i)
{
    double sum = 0;
    for (int64_t j = 0; j < MARKS; j++) {
        const double a = position(i, 0) - position(j * 50, 0);
        const double b = position(i, 1) - position(j * 50, 1);
        sum += exp(-0.5 * (a * a + b * b)) * (double)(j + 1);
    }
    return sum;
}

static fth_status compute(fth_context *ctx, double *result, fth_err *err)
{
    double z[MARKS][2], w[MARKS];
    for (int64_t j = 0; j < MARKS; j++) {
        z[j][0] = position(j * 50, 0);
        z[j][1] = position(j * 50, 1);
        w[j] = (double)(j + 1);
    }
    /* Memory of ours becomes tensors: used in place, counted, never freed by the library. */
    fth_mem *mem = fth_context_mem(ctx);
    fth_tensor *zt = NULL, *wt = NULL, *rt = NULL;
    FTH_TRY(fth_tensor_wrap(&zt, mem, "Z", FTH_F64, 2, ((int64_t[]){MARKS, 2}), z, err));
    FTH_TRY(fth_tensor_wrap(&wt, mem, "w", FTH_F64, 1, ((int64_t[]){MARKS}), w, err));
    FTH_TRY(fth_tensor_wrap(&rt, mem, "result", FTH_F64, 1, ((int64_t[]){CELLS}), result, err));

    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cell", CELLS); /* one size, one place */
    fth_axis(g, "mark", MARKS);
    fth_axis(g, "dim", 2);
    const fth_source cells = {
        .kind = "made", .dtype = FTH_F64, .n_axes = 2, .size = {CELLS, 2}, .read = read_cells};
    const fth_val X = fth_input(g, "X", FTH_F64, "cell dim", cells);                 /* streamed */
    const fth_val Z = fth_input(g, "Z", FTH_F64, "mark dim", fth_tensor_source(zt)); /* resident */
    const fth_val W = fth_input(g, "w", FTH_F64, "mark", fth_tensor_source(wt));
    const fth_val F = field(X, Z, W);

    const fth_sink sink = fth_tensor_sink(rt);
    const fth_limits limits = {.memory_bytes = 3 << 20, .sinks = &sink};
    fth_plan *p = fth_plan_make(g, &F, 1, &limits, err); /* every mistake above ends here */
    fth_status s = p ? FTH_OK : err->status;
    if (s == FTH_OK) s = fth_plan_print(p, stdout);
    fth_run_report report = {0};
    if (s == FTH_OK) s = fth_run(p, &sink, NULL, &report, err);
    char lines[512];
    fth_run_report_format(&report, lines,
                          sizeof lines); /* what happened, beside what was planned */
    if (s == FTH_OK) fputs(lines, stdout);
    fth_plan_destroy(p); /* before its graph */
    fth_graph_destroy(g);
    fth_tensor_release(zt);
    fth_tensor_release(wt);
    fth_tensor_release(rt);
    return s;
}

/* A wrong line does not stop the program there: poison flows on, and planning reports it. */
static fth_status mistake(fth_context *ctx, fth_err *err)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "cell", CELLS);
    fth_axis(g, "mark", MARKS);
    const fth_val a = fth_index(g, "cell"), b = fth_index(g, "mark");
    const fth_val c = fth_add(a, b); /* neither has the other's axes */
    const fth_val d = fth_sum(fth_sqr(c), "cell");
    fth_plan *p = fth_plan_make(g, &d, 1, NULL, err);
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return p ? FTH_OK : err->status;
}

int main(void)
{
    static double result[CELLS];
    fth_err err = {0}, wanted = {0};
    char text[4096];
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    fth_context *ctx = NULL;
    fth_status s = fth_context_create(&ctx, &opt, &err);
    if (s == FTH_OK) s = compute(ctx, result, &err);
    for (int64_t i = 0; s == FTH_OK && i < CELLS; i += 997)
        if (fabs(result[i] - by_hand(i)) > 1e-9)
            s = FTH_FAIL(&err, FTH_E_NUMERIC, "cell %d", (int)i);
    if (s == FTH_OK && mistake(ctx, &wanted) != FTH_E_AXIS_MISMATCH)
        s = FTH_FAIL(&err, FTH_E_STATE, "the mistake was not noticed");
    if (s == FTH_OK) {
        fth_err_format(&wanted, text, sizeof text);
        printf("%s\n", text);
    }
    const fth_status closed = fth_context_destroy(ctx, &err);
    if (s == FTH_OK) s = closed;
    if (s == FTH_OK) return 0;
    fth_err_format(&err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}
