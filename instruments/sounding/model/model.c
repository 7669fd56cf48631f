/* model.c - the surface: its table of terms, its graph, and the file that rebuilds it. */
#include "model.h"

#include <string.h>

const char *const so_column[SO_COLUMNS] = {
    [SO_P] = "power.u", [SO_Q] = "power.v", [SO_A] = "wave.u",        [SO_B] = "wave.v",
    [SO_C] = "shift",   [SO_W] = "weights", [SO_M1] = "weights.mean", [SO_M2] = "weights.square"};

/* ---- terms ---- */

enum { PLANE, BOWL, WAVES }; /* in the order of the choices */

static void set_term(const so_model *m, int64_t k, const float v[SO_W])
{
    for (int i = 0; m && i < SO_W; i++) ((float *)fth_tensor_data(m->column[i]))[k] = v[i];
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

/* ---- memory ---- */

static fth_status make_tensors(so_model *m, fth_err *err)
{
    for (int i = 0; i < SO_COLUMNS; i++) {
        FTH_TRY(fth_tensor_create(&m->column[i], m->mem, so_column[i], FTH_F32, 1, &m->terms, err));
        memset(fth_tensor_data(m->column[i]), 0, (size_t)fth_tensor_bytes(m->column[i]));
    }
    FTH_TRY(fth_tensor_create(&m->loss, m->mem, "loss", FTH_F64, 1, &m->iterations, err));
    memset(fth_tensor_data(m->loss), 0, (size_t)fth_tensor_bytes(m->loss));
    return FTH_OK;
}

void so_model_clear(so_model *m)
{
    for (int i = 0; i < SO_COLUMNS; i++) fth_tensor_release(m->column[i]);
    fth_tensor_release(m->loss);
    *m = (so_model){0};
}

fth_status so_model_create(so_model *m, fth_mem *mem, const fth_config *cfg, fth_err *err)
{
    *m = (so_model){.mem = mem,
                    .terms = list_terms(cfg, NULL),
                    .iterations = fth_config_int(cfg, "fit.iterations"),
                    .size = fth_config_real(cfg, "survey.size"),
                    .offset = fth_config_real(cfg, "survey.depth"),
                    .scale = fth_config_real(cfg, "survey.relief")};
    const fth_status s = make_tensors(m, err);
    if (s == FTH_OK) (void)list_terms(cfg, m);
    if (s != FTH_OK) so_model_clear(m);
    return s;
}

/* ---- the file: everything that is needed to use it or to go on ---- */

enum { FACTS = 4, TENSORS = SO_COLUMNS + 1 };
static const char *const fact[FACTS] = {"step", "size_km", "offset_m", "scale_m"};

fth_status so_model_write(const so_model *m, const char *path, const so_ties *ties, fth_err *err)
{
    const double value[FACTS] = {(double)m->step, m->size, m->offset, m->scale};
    char text[FACTS][FTH_NUMBER];
    fth_file_meta meta[FACTS + SO_TIES];
    for (int i = 0; i < FACTS; i++)
        meta[i] = (fth_file_meta){fact[i], fth_number_format(text[i], FTH_NUMBER, value[i], 17)};
    for (int64_t i = 0; i < ties->n; i++) meta[FACTS + i] = ties->meta[i];
    fth_file_tensor tensor[TENSORS] = {[SO_COLUMNS] = {"loss", m->loss, "iteration"}};
    for (int i = 0; i < SO_COLUMNS; i++)
        tensor[i] = (fth_file_tensor){so_column[i], m->column[i], "term"};
    const fth_safetensors_options opt = {.meta = meta, .n_meta = FACTS + ties->n};
    return fth_safetensors_save(m->mem, path, tensor, TENSORS, &opt, err);
}

/* The length of a tensor of one axis. */
static fth_status get_length(fth_safetensors *f, const char *name, int64_t *n, fth_err *err)
{
    fth_source source;
    FTH_TRY(fth_safetensors_source(f, name, &source, err));
    *n = source.n_axes == 1 ? source.size[0] : 0;
    fth_source_close(&source);
    return *n > 0 ? FTH_OK
                  : FTH_FAIL(err, FTH_E_FILE_SHAPE, "tensor '%s' should have one axis", name);
}

static fth_status read_file(so_model *m, fth_safetensors *f, fth_err *err)
{
    bool ok = true;
    double value[FACTS];
    for (int i = 0; i < FACTS; i++)
        ok = ok && fth_real_parse(fth_safetensors_meta(f, fact[i]), &value[i]);
    FTH_TRY(get_length(f, so_column[SO_W], &m->terms, err));
    FTH_TRY(get_length(f, "loss", &m->iterations, err));
    if (!ok || !(value[0] >= 0 && value[0] <= (double)m->iterations) || !(value[1] > 0))
        return FTH_FAIL(err, FTH_E_FILE_KEY, "step, size_km, offset_m and scale_m are expected");
    m->step = (int64_t)value[0];
    m->size = value[1], m->offset = value[2], m->scale = value[3];
    FTH_TRY(make_tensors(m, err));
    for (int i = 0; i < SO_COLUMNS; i++)
        FTH_TRY(fth_safetensors_fill(f, so_column[i], m->column[i], err));
    return fth_safetensors_fill(f, "loss", m->loss, err);
}

/* Says the first difference. */
static fth_status check_ties(const fth_safetensors *f, const so_ties *ties, fth_err *err)
{
    for (int64_t i = 0; ties && i < ties->n; i++) {
        const fth_file_meta now = ties->meta[i];
        const char *then = fth_safetensors_meta(f, now.key);
        if (!then || strcmp(then, now.value) != 0)
            return FTH_FAIL(err, FTH_E_STATE, "%s was %s, is %s", now.key,
                            then ? then : "not given", now.value);
    }
    return FTH_OK;
}

fth_status so_model_read(so_model *m, fth_mem *mem, const char *path, const so_ties *ties,
                         fth_err *err)
{
    fth_safetensors *f = NULL;
    *m = (so_model){.mem = mem};
    FTH_TRY(fth_safetensors_open(&f, mem, path, err));
    fth_status s = check_ties(f, ties, err);
    if (s == FTH_OK) s = fth_safetensors_verify(f, NULL, err);
    if (s == FTH_OK) s = read_file(m, f, err);
    fth_safetensors_close(f);
    if (s == FTH_OK) return FTH_OK;
    so_model_clear(m);
    return fth_err_note(err, FTH_HERE, s, "reading the model %s", path);
}

/* ---- the graph ---- */

fth_val so_model_sum(const so_model *m, fth_val u, fth_val v, fth_val *trained)
{
    fth_graph *g = u.graph;
    fth_val c[SO_W + 1];
    fth_axis(g, "term", m->terms);
    for (int i = 0; i <= SO_W; i++)
        c[i] = i == SO_W && trained
                   ? (*trained = fth_param(g, so_column[i], "term", m->column[i]))
                   : fth_input(g, so_column[i], FTH_F32, "term", fth_tensor_source(m->column[i]));
    const fth_val us = fth_expand(u, "term"), vs = fth_expand(v, "term");
    const fth_val turns = fth_add(fth_mul(us, c[SO_A]), fth_mul(vs, c[SO_B]));
    const fth_val angle = fth_mul(turns, fth_const(g, FTH_F32, 3.14159265358979324));
    const fth_val wave = fth_cos(fth_add(angle, c[SO_C]));
    const fth_val power = fth_mul(fth_pow(us, c[SO_P]), fth_pow(vs, c[SO_Q]));
    return fth_dot(c[SO_W], fth_label(fth_mul(power, wave), "phi"), "term");
}

fth_val so_model_depth(const so_model *m, fth_val u, fth_val v)
{
    const fth_val scale = fth_const(u.graph, FTH_F32, m->scale);
    return fth_sub(fth_const(u.graph, FTH_F32, m->offset),
                   fth_mul(so_model_sum(m, u, v, NULL), scale));
}

fth_val so_model_unit(const so_model *m, fth_val soundings, int dim)
{
    fth_graph *g = soundings.graph;
    const fth_val at = fth_gather(soundings, "dim", fth_const_i64(g, FTH_I64, dim));
    return fth_sub(fth_mul(at, fth_const(g, FTH_F32, 2.0 / m->size)), fth_const(g, FTH_F32, 1.0));
}
