/* model.c - the surface: its table of terms, its graph, and the file that rebuilds it. */
#include "model.h"

const char *const so_tensor[SO_TENSORS] = {
    [SO_P] = "power.u",       [SO_Q] = "power.v",         [SO_A] = "wave.u",
    [SO_B] = "wave.v",        [SO_C] = "shift",           [SO_W] = "weights",
    [SO_M1] = "weights.mean", [SO_M2] = "weights.square", [SO_LOSS] = "loss"};

/* ---- terms ---- */

enum { PLANE, BOWL, WAVES }; /* in the order of the choices */

static void set_term(const so_model *m, int64_t k, const float v[SO_W])
{
    for (int i = 0; m && i < SO_W; i++) ((float *)fth_tensor_data(m->tensor[i]))[k] = v[i];
}

/* Terms of a config, in order; with NULL for the model it only counts. */
static int64_t list_terms(const fth_config *cfg, const so_model *m)
{
    const int basis = fth_config_choice(cfg, "model.basis");
    const int64_t order = fth_config_int(cfg, "model.order");
    static const float polynomial[][SO_W] = {{0, 0}, {1, 0}, {0, 1}, {2, 0}, {1, 1}, {0, 2}};
    int64_t n = 0;
    for (; n < (basis == BOWL ? 6 : 3); n++) set_term(m, n, polynomial[n]);
    for (int64_t a = 0; basis == WAVES && a <= order; a++)
        for (int64_t b = a > 0 ? -order : 1; b <= order; b++)
            for (int sine = 0; sine < 2; sine++, n++)
                set_term(m, n,
                         (const float[SO_W]){0, 0, 0.5f * (float)a, 0.5f * (float)b,
                                             sine ? -1.57079632679489662f : 0.0f});
    return n;
}

/* ---- the file: everything that is needed to use it or to resume the fit ---- */

enum { ROWS = SO_TENSORS + 4 };

static void list_rows(so_model *m, fth_state_row row[ROWS])
{
    const fth_state_row numbers[] = {{.name = "step", .count = &m->step},
                                     {.name = "size_km", .number = &m->size},
                                     {.name = "offset_m", .number = &m->offset},
                                     {.name = "scale_m", .number = &m->scale}};
    for (int i = 0; i < ROWS; i++) {
        const bool loss = i == SO_LOSS;
        row[i] = i >= SO_TENSORS ? numbers[i - SO_TENSORS]
                                 : (fth_state_row){.name = so_tensor[i],
                                                   .tensor = &m->tensor[i],
                                                   .dtype = loss ? FTH_F64 : FTH_F32,
                                                   .axes = loss ? "iteration" : "term"};
    }
}

fth_status so_model_create(so_model *m, fth_mem *mem, const fth_config *cfg, fth_err *err)
{
    fth_state_row row[ROWS];
    *m = (so_model){.terms = list_terms(cfg, NULL),
                    .iterations = fth_config_int(cfg, "fit.iterations"),
                    .size = fth_config_real(cfg, "survey.size"),
                    .offset = fth_config_real(cfg, "survey.depth"),
                    .scale = fth_config_real(cfg, "survey.relief")};
    const fth_extent extent[] = {{"term", m->terms}, {"iteration", m->iterations}};
    list_rows(m, row);
    FTH_TRY(fth_state_create(mem, row, ROWS, extent, 2, err));
    (void)list_terms(cfg, m);
    return FTH_OK;
}

fth_status so_model_write(so_model *m, fth_mem *mem, const char *path, const fth_ties *ties,
                          fth_err *err)
{
    fth_state_row row[ROWS];
    list_rows(m, row);
    return fth_state_save(mem, path, row, ROWS, ties, err);
}

fth_status so_model_read(so_model *m, fth_mem *mem, const char *path, const fth_ties *ties,
                         fth_err *err)
{
    fth_state_row row[ROWS];
    *m = (so_model){0};
    list_rows(m, row);
    FTH_TRY(fth_state_load(mem, path, row, ROWS, ties, err));
    m->terms = fth_tensor_size(m->tensor[SO_W], 0);
    m->iterations = fth_tensor_size(m->tensor[SO_LOSS], 0);
    if (m->step >= 0 && m->step <= m->iterations && m->size > 0) return FTH_OK;
    so_model_clear(m);
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: its step or its size_km is invalid", path);
}

void so_model_clear(so_model *m)
{
    for (int i = 0; i < SO_TENSORS; i++) fth_tensor_release(m->tensor[i]);
    *m = (so_model){0};
}

/* ---- the graph ---- */

so_terms so_model_terms(const so_model *m, fth_graph *g, bool trained)
{
    so_terms t;
    fth_axis(g, "term", m->terms);
    for (int i = 0; i <= SO_W; i++)
        t.column[i] = i == SO_W && trained ? fth_param(g, so_tensor[i], "term", m->tensor[i])
                                           : fth_input(g, so_tensor[i], FTH_F32, "term",
                                                       fth_tensor_source(m->tensor[i]));
    return t;
}

fth_val so_model_sum(const so_terms *t, fth_val u, fth_val v)
{
    const fth_val *c = t->column;
    const fth_val us = fth_expand(u, "term"), vs = fth_expand(v, "term");
    const fth_val turns = fth_add(fth_mul(us, c[SO_A]), fth_mul(vs, c[SO_B]));
    const fth_val angle = fth_mul(turns, fth_const(u.graph, FTH_F32, 3.14159265358979324));
    const fth_val wave = fth_cos(fth_add(angle, c[SO_C]));
    const fth_val power = fth_mul(fth_pow(us, c[SO_P]), fth_pow(vs, c[SO_Q]));
    return fth_dot(c[SO_W], fth_label(fth_mul(power, wave), "phi"), "term");
}

fth_val so_model_depth(const so_model *m, const so_terms *t, fth_val u, fth_val v)
{
    const fth_val scale = fth_const(u.graph, FTH_F32, m->scale);
    return fth_sub(fth_const(u.graph, FTH_F32, m->offset), fth_mul(so_model_sum(t, u, v), scale));
}

fth_val so_model_unit(const so_model *m, fth_val soundings, int dim)
{
    fth_graph *g = soundings.graph;
    const fth_val at = fth_gather(soundings, "dim", fth_const_i64(g, FTH_I64, dim));
    return fth_sub(fth_mul(at, fth_const(g, FTH_F32, 2.0 / m->size)), fth_const(g, FTH_F32, 1.0));
}
