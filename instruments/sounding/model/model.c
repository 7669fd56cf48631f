/* model.c - the surface: its table of terms, its graph, and the file that rebuilds it. */
#include "model.h"

#include <inttypes.h>
#include <stdlib.h>
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

enum { FACTS = 4, TIES = 16, TENSORS = SO_COLUMNS + 1 };

fth_status so_model_write(const so_model *m, const char *path, const fth_file_meta *tie,
                          int64_t n_tie, fth_err *err)
{
    char text[FACTS][32];
    fth_file_meta meta[FACTS + TIES];
    if (n_tie > TIES) return FTH_FAIL(err, FTH_E_INTERNAL, "too many facts for a model");
    snprintf(text[0], sizeof text[0], "%" PRId64, m->step);
    fth_number_format(text[1], sizeof text[1], m->size, 17);
    fth_number_format(text[2], sizeof text[2], m->offset, 17);
    fth_number_format(text[3], sizeof text[3], m->scale, 17);
    static const char *const name[FACTS] = {"step", "size_km", "offset_m", "scale_m"};
    for (int i = 0; i < FACTS; i++) meta[i] = (fth_file_meta){name[i], text[i]};
    for (int64_t i = 0; i < n_tie; i++) meta[FACTS + i] = tie[i];
    fth_file_tensor tensor[TENSORS] = {[SO_COLUMNS] = {"loss", m->loss, "iteration"}};
    for (int i = 0; i < SO_COLUMNS; i++)
        tensor[i] = (fth_file_tensor){so_column[i], m->column[i], "term"};
    const fth_safetensors_options opt = {.meta = meta, .n_meta = FACTS + n_tie};
    return fth_safetensors_save(m->mem, path, tensor, TENSORS, &opt, err);
}

static double get_fact(const fth_safetensors *f, const char *key, bool *ok)
{
    double v = 0;
    if (!fth_real_parse(fth_safetensors_meta(f, key), &v)) *ok = false;
    return v;
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
    m->step = (int64_t)get_fact(f, "step", &ok);
    m->size = get_fact(f, "size_km", &ok);
    m->offset = get_fact(f, "offset_m", &ok);
    m->scale = get_fact(f, "scale_m", &ok);
    FTH_TRY(get_length(f, so_column[SO_W], &m->terms, err));
    FTH_TRY(get_length(f, "loss", &m->iterations, err));
    if (!ok || m->step < 0 || m->step > m->iterations || !(m->size > 0))
        return FTH_FAIL(err, FTH_E_FILE_KEY, "step, size_km, offset_m and scale_m are expected");
    FTH_TRY(make_tensors(m, err));
    for (int i = 0; i < SO_COLUMNS; i++)
        FTH_TRY(fth_safetensors_fill(f, so_column[i], m->column[i], err));
    return fth_safetensors_fill(f, "loss", m->loss, err);
}

fth_status so_model_read(so_model *m, fth_mem *mem, const char *path, fth_err *err)
{
    *m = (so_model){.mem = mem};
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, mem, path, err));
    fth_status s = fth_safetensors_verify(f, NULL, err);
    if (s == FTH_OK) s = read_file(m, f, err);
    fth_safetensors_close(f);
    if (s == FTH_OK) return FTH_OK;
    so_model_clear(m);
    return fth_err_note(err, FTH_HERE, s, "reading the model %s", path);
}

/* ---- the graph ---- */

so_surface so_surface_inputs(fth_graph *g, const so_model *m, bool trained)
{
    so_surface s;
    fth_axis(g, "term", m->terms);
    for (int i = 0; i < SO_W; i++)
        s.column[i] = fth_input(g, so_column[i], FTH_F32, "term", fth_tensor_source(m->column[i]));
    s.weights = trained ? fth_param(g, so_column[SO_W], "term", m->column[SO_W])
                        : fth_input(g, so_column[SO_W], FTH_F32, "term",
                                    fth_tensor_source(m->column[SO_W]));
    return s;
}

fth_val so_surface_at(const so_surface *s, fth_val u, fth_val v)
{
    const fth_val *c = s->column;
    const fth_val pi = fth_const(u.graph, FTH_F32, 3.14159265358979324);
    const fth_val us = fth_expand(u, "term"), vs = fth_expand(v, "term");
    const fth_val turns = fth_add(fth_mul(us, c[SO_A]), fth_mul(vs, c[SO_B]));
    const fth_val wave = fth_cos(fth_add(fth_mul(turns, pi), c[SO_C]));
    const fth_val phi =
        fth_label(fth_mul(fth_mul(fth_pow(us, c[SO_P]), fth_pow(vs, c[SO_Q])), wave), "phi");
    return fth_dot(s->weights, phi, "term");
}

fth_val so_unit(fth_val soundings, int dim, double size)
{
    fth_graph *g = soundings.graph;
    const fth_val at = fth_gather(soundings, "dim", fth_const_i64(g, FTH_I64, dim));
    return fth_sub(fth_mul(at, fth_const(g, FTH_F32, 2.0 / size)), fth_const(g, FTH_F32, 1.0));
}
