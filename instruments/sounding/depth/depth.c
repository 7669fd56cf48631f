/* depth.c - a further verb: the fitted depth at one place, asked of a model file. */
#include "../model/model.h"
#include "../sounding.h"

static const double metres_per_fathom = 1.8288;

/* A number on the command line, from 0 to the side of the square. */
static fth_status get_place(const char *text, double size, double *out, fth_err *err)
{
    if (fth_real_parse(text, out) && *out >= 0 && *out <= size) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "a place from 0 to %g km is expected, not '%.100s'", size, text);
    fth_err_hint(err, "write 'fathom sounding depth MODEL X Y'");
    return FTH_E_COMMAND;
}

static fth_status ask(fth_context *ctx, const so_model *m, char *const *place, double *depth,
                      fth_err *err)
{
    double x = 0, y = 0;
    FTH_TRY(get_place(place[0], m->size, &x, err));
    FTH_TRY(get_place(place[1], m->size, &y, err));
    fth_graph *g = fth_graph_create(ctx);
    const fth_val u = fth_const(g, FTH_F32, 2 * x / m->size - 1),
                  v = fth_const(g, FTH_F32, 2 * y / m->size - 1);
    const fth_status s = fth_fetch_f64(fth_cast(so_model_sum(m, u, v, NULL), FTH_F64), depth, err);
    *depth = m->offset - m->scale * *depth;
    fth_graph_destroy(g);
    return s;
}

fth_status so_depth_run(fth_context *ctx, int n_args, char *const *arg,
                        const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                        fth_err *err)
{
    so_model m;
    fth_answer a;
    double depth = 0;
    if (n_args != 3) {
        FTH_FAIL(err, FTH_E_COMMAND, "a model and two numbers are expected, not %d words", n_args);
        fth_err_hint(err, "write 'fathom sounding depth MODEL X Y'");
        return FTH_E_COMMAND;
    }
    FTH_TRY(so_model_read(&m, fth_context_mem(ctx), arg[0], NULL, err));
    const fth_status s = ask(ctx, &m, arg + 1, &depth, err);
    so_model_clear(&m);
    FTH_TRY(s);
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    fth_answer_file(&a, FTH_FILE_INPUT, arg[0], -1, "model");
    if (value(user, "fathoms"))
        fprintf(a.out, "%.3f fathoms\n", depth / metres_per_fathom);
    else
        fprintf(a.out, "%.2f m\n", depth);
    if (a.json) fth_json_real(fth_answer_facts(&a), "depth_m", depth);
    return fth_answer_end(&a, FTH_OK, err);
}
