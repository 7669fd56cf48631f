/* depth.c - a further verb: the fitted depth at one place, asked of a model file, or of all models
 * in a folder of results. */
#include "../model/model.h"
#include "../sounding.h"

typedef struct question {
    fth_context *ctx;
    char *const *place; /* two words */
    bool in_fathoms;
    fth_answer answer;
} question;

static fth_status compute(const question *q, const so_model *m, double *depth, fth_err *err)
{
    double at[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (!fth_real_parse(q->place[i], &at[i]) || !(at[i] >= 0 && at[i] <= m->size))
            return FTH_FAIL(err, FTH_E_COMMAND,
                            "expected a coordinate from 0 to %g km, found '%.100s'", m->size,
                            q->place[i]);
    fth_graph *g = fth_graph_create(q->ctx);
    const so_terms terms = so_model_terms(m, g, false);
    const fth_val u = fth_const(g, FTH_F32, 2 * at[0] / m->size - 1),
                  v = fth_const(g, FTH_F32, 2 * at[1] / m->size - 1);
    const fth_status s = fth_fetch_f64(fth_cast(so_model_sum(&terms, u, v), FTH_F64), depth, err);
    *depth = m->offset - m->scale * *depth;
    fth_graph_destroy(g);
    return s;
}

/* One model; of several, `name` tells it from the others. */
static fth_status ask(question *q, const char *path, const char *name, fth_err *err)
{
    fth_answer *a = &q->answer;
    so_model m;
    double depth = 0;
    FTH_TRY(so_model_read(&m, fth_context_mem(q->ctx), path, NULL, err));
    const fth_status s = compute(q, &m, &depth, err);
    so_model_clear(&m);
    FTH_TRY(s);
    fprintf(a->out, "%s%s%.*f %s\n", name ? name : "", name ? " " : "", q->in_fathoms ? 3 : 2,
            depth / (q->in_fathoms ? 1.8288 : 1), q->in_fathoms ? "fathoms" : "m");
    if (a->json) fth_json_real(fth_answer_facts(a), name ? name : "depth_m", depth);
    return FTH_OK;
}

static fth_status ask_all(question *q, const char *folder, fth_err *err)
{
    char path[FTH_PATH], model[FTH_PATH];
    fth_texts *names = NULL;
    int64_t asked = 0;
    FTH_TRY(fth_folder_list(&names, fth_context_mem(q->ctx), folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        s = fth_path_join(path, folder, fth_texts_get(names, i), err);
        if (s == FTH_OK) s = fth_path_join(model, path, SO_MODEL, err);
        if (s != FTH_OK || fth_path_kind_of(model) != FTH_PATH_FILE) continue;
        s = ask(q, model, fth_path_name(path), err);
        asked++;
    }
    fth_texts_free(names);
    if (s != FTH_OK || asked > 0) return s;
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: no folder below it has a %s", folder, SO_MODEL);
}

FTH_VERB_FUNCTION(so_depth_run)
{
    question q = {.ctx = ctx, .place = arg + 1, .in_fathoms = value(user, "fathoms") != NULL};
    (void)n_args; /* three: the row of the verb says so */
    FTH_TRY(fth_answer_begin(&q.answer, ctx, value, user, out, err));
    const bool all = fth_path_kind_of(arg[0]) == FTH_PATH_FOLDER;
    fth_answer_file(&q.answer, FTH_FILE_INPUT, arg[0], -1, all ? "models" : "model");
    const fth_status s = all ? ask_all(&q, arg[0], err) : ask(&q, arg[0], NULL, err);
    return fth_answer_end(&q.answer, s, err);
}
