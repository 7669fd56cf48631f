/* checkpoint.c - see checkpoint.h. */
#include "checkpoint.h"

#include <stddef.h>
#include <string.h>

static const char format[] = "fathom ptycho model 1";

/* ---- facts ---- */

void pt_facts_text(pt_facts *f, const char *key, const char *value)
{
    if (f->n == PT_FACTS) return;
    snprintf(f->key[f->n], sizeof f->key[0], "%s", key);
    snprintf(f->value[f->n++], sizeof f->value[0], "%s", value);
}

void pt_facts_number(pt_facts *f, const char *key, double value)
{
    char text[64];
    pt_facts_text(f, key, fth_number_format(text, sizeof text, value, 17));
}

static const struct row {
    const char *key;
    size_t at;
    enum { INT, BOOL, ENUM, REAL } type;
    bool later; /* older models lack it: 0 */
} rows[] = {
#define ROW(key, member, type)                                                                     \
    {                                                                                              \
        key, offsetof(pt_model_options, member), type, false                                       \
    }
#define LATER(key, member, type)                                                                   \
    {                                                                                              \
        key, offsetof(pt_model_options, member), type, true                                        \
    }
    ROW("N", net.n, INT),
    ROW("chan", net.chan, INT),
    ROW("n_filters_scale", net.filters, INT),
    ROW("flavour", net.flavour, ENUM),
    ROW("amp_activation", net.amp, ENUM),
    ROW("probe_big", net.probe_big, BOOL),
    ROW("pad_object", net.pad_object, BOOL),
    ROW("merge", merge, ENUM),
    ROW("object_big", object_big, BOOL),
    ROW("region", region, INT),
    ROW("modes", modes, INT),
    ROW("nphotons", nphotons, REAL),
    ROW("probe_scale", probe_scale, REAL),
    ROW("mae_weight", mae_weight, REAL),
    ROW("nll_weight", nll_weight, REAL),
    ROW("realspace_weight", realspace_weight, REAL),
    ROW("tv_weight", tv_weight, REAL),
    ROW("intensity_scale_trainable", train_scale, BOOL),
    ROW("probe_trainable", train_probe, BOOL),
    LATER("precision", wide, BOOL),
    LATER("realspace_mae_weight", realspace_mae_weight, REAL),
    LATER("probe_mask", probe_mask, BOOL),
    LATER("probe_mask_diameter", mask_diameter, REAL),
    LATER("probe_mask_sigma", mask_sigma, REAL),
    LATER("gaussian_smoothing_sigma", blur, REAL),
    LATER("energy", energy, REAL),
    LATER("neighbor_count", neighbours, INT),
#undef ROW
#undef LATER
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Enums have the size of an int on every platform we build for. */
_Static_assert(sizeof(pt_flavour) == sizeof(int) && sizeof(pt_merge_kind) == sizeof(int),
               "enums are read as int");

static double get(const pt_model_options *opt, const struct row *r)
{
    const void *p = (const char *)opt + r->at;
    switch (r->type) {
    case INT: return (double)*(const int64_t *)p;
    case BOOL: return *(const bool *)p;
    case ENUM: return *(const int *)p;
    case REAL: break;
    }
    return *(const double *)p;
}

static void set(pt_model_options *opt, const struct row *r, double v)
{
    void *p = (char *)opt + r->at;
    switch (r->type) {
    case INT: *(int64_t *)p = (int64_t)v; break;
    case BOOL: *(bool *)p = v != 0; break;
    case ENUM: *(int *)p = (int)v; break;
    case REAL: *(double *)p = v; break;
    }
}

void pt_facts_model(pt_facts *f, const pt_model_options *opt)
{
    for (int i = 0; i < ROWS; i++) pt_facts_number(f, rows[i].key, get(opt, &rows[i]));
}

bool pt_checkpoint_fits(fth_safetensors *file, const pt_facts *own, char *why, size_t bytes)
{
    for (int i = 0; i < own->n; i++) {
        const char *then = fth_safetensors_meta(file, own->key[i]);
        if (then && strcmp(then, own->value[i]) == 0) continue;
        snprintf(why, bytes, "%s was %s, is %s", own->key[i], then ? then : "not given",
                 own->value[i]);
        return false;
    }
    return true;
}

static fth_status read_number(fth_safetensors *file, const char *key, double *out, fth_err *err)
{
    const char *text = fth_safetensors_meta(file, key);
    if (text && fth_real_parse(text, out)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "metadata '%s' of the model is %s, expected a number",
                    key, text ? text : "not there");
}

fth_status pt_checkpoint_options(fth_safetensors *file, const char *path, pt_model_options *out,
                                 double *factor, fth_err *err)
{
    const char *what = fth_safetensors_meta(file, "format");
    if (!what || strcmp(what, format) != 0) {
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: expected a model ('%s'), found '%s'", path, format,
                 what ? what : "another file");
        fth_err_hint(err, "make one with 'fathom ptycho train SCAN --out DIR'");
        return FTH_E_FILE_KEY;
    }
    memset(out, 0, sizeof *out);
    for (int i = 0; i < ROWS; i++) {
        double v = 0;
        if (!rows[i].later || fth_safetensors_meta(file, rows[i].key))
            FTH_TRY(read_number(file, rows[i].key, &v, err));
        set(out, &rows[i], v);
    }
    out->real = out->wide ? FTH_F64 : FTH_F32;
    if (!pt_net_takes(out->net.n) || out->net.chan < 1 || out->net.chan > 64 ||
        out->net.filters < 1 || out->net.filters > 64 || out->modes < 1 || out->modes > 4096 ||
        out->region < out->net.n || out->region > 65536 || out->neighbours < 0 ||
        out->neighbours > 100000)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: N %lld, chan %lld, n_filters_scale %lld, modes %lld, region %lld and "
                        "neighbor_count %lld describe no valid model",
                        path, (long long)out->net.n, (long long)out->net.chan,
                        (long long)out->net.filters, (long long)out->modes, (long long)out->region,
                        (long long)out->neighbours);
    return read_number(file, "factor", factor, err);
}

/* ---- the file ---- */

/* A name of the averages of a parameter. */
static void average_name(const pt_model *m, int i, int k, char *text, size_t bytes)
{
    snprintf(text, bytes, "optimizer.%s.%s", k ? "second" : "first", pt_model_name(m, i));
}

enum { MOST = 3 * PT_MODEL_MOST + 2 };
typedef struct contents {
    fth_file_tensor t[MOST];
    char name[MOST][PT_NET_NAME + 32];
    int n;
} contents;

static void add(contents *c, const char *name, fth_tensor *t, const char *axes)
{
    snprintf(c->name[c->n], sizeof c->name[0], "%s", name);
    c->t[c->n] = (fth_file_tensor){c->name[c->n], t, axes};
    c->n++;
}

static void add_all(contents *c, const pt_trained *t)
{
    const pt_model *m = &t->model;
    char name[PT_NET_NAME + 32];
    c->n = 0;
    for (int i = 0; i < pt_model_params(m); i++)
        add(c, pt_model_name(m, i), pt_model_param(m, i), pt_model_axes(m, i));
    for (int i = 0; i < pt_model_params(m); i++)
        for (int k = 0; k < 2; k++) {
            fth_tensor *average = k ? t->second[i] : t->first[i];
            if (!average) continue;
            average_name(m, i, k, name, sizeof name);
            add(c, name, average, pt_model_axes(m, i));
        }
}

static void add_standing(pt_facts *f, const pt_trained *t, const pt_standing *at)
{
    pt_facts_number(f, "factor", (double)t->factor);
    pt_facts_number(f, "step", (double)t->step);
    pt_facts_number(f, "epoch", (double)at->epoch);
    pt_facts_number(f, "finished", at->finished);
    pt_facts_number(f, "rate", at->rate);
    pt_facts_number(f, "plateau_best", at->plateau_best);
    pt_facts_number(f, "plateau_wait", (double)at->plateau_wait);
    pt_facts_number(f, "stop_best", at->stop_best);
    pt_facts_number(f, "stop_wait", (double)at->stop_wait);
}

fth_status pt_checkpoint_write(const char *path, fth_mem *mem, const pt_trained *t,
                               const pt_standing *at, const pt_history *h, const pt_facts *own,
                               fth_err *err)
{
    struct {
        contents c;
        pt_facts f;
        fth_file_meta meta[2 * PT_FACTS];
    } *w = NULL;
    fth_tensor *curve[2] = {NULL, NULL};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *w, "list of a checkpoint", (void **)&w, err));
    memset(w, 0, sizeof *w);
    pt_facts_text(&w->f, "format", format);
    add_standing(&w->f, t, at);
    int n = 0;
    for (int i = 0; i < w->f.n; i++) w->meta[n++] = (fth_file_meta){w->f.key[i], w->f.value[i]};
    for (int i = 0; i < own->n; i++) w->meta[n++] = (fth_file_meta){own->key[i], own->value[i]};
    add_all(&w->c, t);
    fth_status s = FTH_OK;
    for (int k = 0; k < 2 && s == FTH_OK; k++) {
        s = fth_tensor_create(&curve[k], mem, "history", FTH_F64, 1, &at->epoch, err);
        if (s != FTH_OK) break;
        memcpy(fth_tensor_data(curve[k]), k ? h->val : h->loss, sizeof(double) * (size_t)at->epoch);
        add(&w->c, k ? "history.val_loss" : "history.loss", curve[k], "epoch");
    }
    if (s == FTH_OK)
        s = fth_safetensors_save(mem, path, w->c.t, w->c.n,
                                 &(fth_safetensors_options){.meta = w->meta, .n_meta = n}, err);
    for (int k = 0; k < 2; k++) fth_tensor_release(curve[k]);
    fth_mem_release(mem, w, NULL);
    return s;
}

static fth_status read_standing(fth_safetensors *file, pt_trained *t, pt_standing *at, fth_err *err)
{
    double step = 0, epoch = 0, finished = 0, plateau = 0, stop = 0;
    FTH_TRY(read_number(file, "step", &step, err));
    FTH_TRY(read_number(file, "epoch", &epoch, err));
    FTH_TRY(read_number(file, "finished", &finished, err));
    FTH_TRY(read_number(file, "rate", &at->rate, err));
    FTH_TRY(read_number(file, "plateau_best", &at->plateau_best, err));
    FTH_TRY(read_number(file, "plateau_wait", &plateau, err));
    FTH_TRY(read_number(file, "stop_best", &at->stop_best, err));
    FTH_TRY(read_number(file, "stop_wait", &stop, err));
    t->step = (int64_t)step;
    at->epoch = (int64_t)epoch;
    at->finished = finished != 0;
    at->plateau_wait = (int64_t)plateau;
    at->stop_wait = (int64_t)stop;
    return FTH_OK;
}

static fth_status read_curve(fth_safetensors *file, const char *name, double *out, int64_t n,
                             fth_err *err)
{
    fth_source source;
    const int64_t zero = 0;
    FTH_TRY(fth_safetensors_source(file, name, &source, err));
    fth_status s = FTH_OK;
    if (source.dtype != FTH_F64 || source.n_axes != 1 || source.size[0] != n)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "'%s' of the model is expected to have %lld numbers",
                     name, (long long)n);
    else if (n > 0)
        s = source.read(source.self, &zero, &n, out, err);
    fth_source_close(&source);
    return s;
}

fth_status pt_checkpoint_read(fth_safetensors *file, pt_trained *t, pt_standing *at, pt_history *h,
                              fth_err *err)
{
    const pt_model *m = &t->model;
    char name[PT_NET_NAME + 32];
    double factor = 1;
    for (int i = 0; i < pt_model_params(m); i++)
        FTH_TRY(fth_safetensors_fill(file, pt_model_name(m, i), pt_model_param(m, i), err));
    FTH_TRY(read_number(file, "factor", &factor, err));
    t->factor = (float)factor;
    if (!at) return FTH_OK;
    for (int i = 0; i < pt_model_params(m); i++)
        for (int k = 0; k < 2; k++) {
            fth_tensor *average = k ? t->second[i] : t->first[i];
            if (!average) continue;
            average_name(m, i, k, name, sizeof name);
            FTH_TRY(fth_safetensors_fill(file, name, average, err));
        }
    FTH_TRY(read_standing(file, t, at, err));
    if (at->epoch < 0 || at->epoch > h->room)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "the model has %lld epochs, at most %lld expected",
                        (long long)at->epoch, (long long)h->room);
    FTH_TRY(read_curve(file, "history.loss", h->loss, at->epoch, err));
    return read_curve(file, "history.val_loss", h->val, at->epoch, err);
}

fth_status pt_history_write(const char *path, fth_mem *mem, const pt_history *h, int64_t n,
                            fth_err *err)
{
    fth_json_writer w;
    fth_json_begin(&w, mem, false);
    fth_json_open(&w, NULL, '{');
    for (int k = 0; k < 2; k++) {
        fth_json_open(&w, k ? "val_loss" : "loss", '[');
        for (int64_t i = 0; i < n; i++) fth_json_real(&w, NULL, (k ? h->val : h->loss)[i]);
        fth_json_close(&w);
    }
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}
