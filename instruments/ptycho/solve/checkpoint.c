/* checkpoint.c - the state between two epochs, saved and loaded.
 *
 * Everything that the next epoch reads is in it, so a solver that goes on from it makes the bits of
 * one that was never interrupted. Orders are drawn from (seed, epoch) and need no state.
 */
#include "job.h"
#include "momentum.h"
#include "mpie.h"

#include <inttypes.h>
#include <string.h>

static const char format[] = "fathom ptycho solve 1";
enum { ARRAYS = 18, FACTS = 8 };

typedef struct array {
    fth_file_item item;
    void *data; /* NULL: exit waves */
} array;

/* The arrays of the state; returns how many. */
static int list_arrays(pt_solver *s, array *a)
{
    const int64_t m = s->data.patterns;
    int n = 0;
#define ADD(tag, type, count, axis_names, address, ...)                                            \
    a[n++] = (array){                                                                              \
        {.name = tag, .dtype = type, .n_axes = count, .size = {__VA_ARGS__}, .axes = axis_names},  \
        address}
    ADD("object", s->real, 3, "part orow ocol", fth_tensor_data(s->object), 2, s->rows, s->cols);
    ADD("probe", s->real, 4, "mode part row col", fth_tensor_data(s->probe), s->modes, 2, s->n,
        s->n);
    ADD("light", s->real, 2, "orow ocol", fth_tensor_data(s->light), s->rows, s->cols);
    ADD("x", FTH_F64, 1, "scan", s->x, m);
    ADD("y", FTH_F64, 1, "scan", s->y, m);
    ADD("alpha", FTH_F64, 1, "scan", s->alpha, m);
    ADD("history", FTH_F64, 1, "iteration", s->history, s->epoch);
    for (int k = 0; s->momentum && k < 2; k++) {
        static const char *const speed[2] = {"object.speed", "probe.speed"},
                                 *const past[2][PT_MOMENTUM_DEPTH] = {
                                     {"object.change.1", "object.change.2", NULL},
                                     {"probe.change.1", "probe.change.2", "probe.change.3"}};
        for (int i = -1; i < PT_MOMENTUM_DEPTH; i++) {
            fth_tensor *t = i < 0 ? s->momentum->speed[k] : s->momentum->past[k][i];
            if (!t) continue;
            a[n] = a[k]; /* the shape of the object or of the probe */
            a[n].item.name = i < 0 ? speed[k] : past[k][i];
            a[n++].data = fth_tensor_data(t);
        }
    }
    for (int k = 0; s->mpie && k < 4; k++) {
        static const char *const name[4] = {"object.saved", "probe.saved", "object.speed",
                                            "probe.speed"};
        a[n] = a[k % 2];
        a[n].item.name = name[k];
        a[n++].data = fth_tensor_data((k < 2 ? s->mpie->saved : s->mpie->speed)[k % 2]);
    }
    if (s->eigen) {
        ADD("eigen", s->real, 4, "opr part row col", fth_tensor_data(s->eigen), s->opt.opr, 2, s->n,
            s->n);
        ADD("shares", FTH_F64, 2, "scan share", s->shares, m, s->opt.opr + 1);
    }
    if (s->waves)
        ADD("waves", s->real, 5, "scan mode part row col", NULL, m, s->modes, 2, s->n, s->n);
#undef ADD
    return n;
}

static fth_status write_arrays(pt_solver *s, fth_safetensors_writer *w, const array *a, int n,
                               fth_err *err)
{
    for (int i = 0; i < n; i++) {
        fth_sink sink;
        FTH_TRY(fth_safetensors_sink(w, a[i].item.name, &sink, err));
        if (a[i].data) {
            FTH_TRY(fth_sink_put(&sink, a[i].data, err));
            continue;
        }
        const fth_source waves = pt_waves_source(s);
        FTH_TRY(fth_source_copy(&waves, &sink, s->mem, NULL, NULL, err));
    }
    return FTH_OK;
}

fth_status pt_solver_save(pt_solver *s, const char *path, uint64_t print, fth_err *err)
{
    array a[ARRAYS];
    fth_file_item item[ARRAYS];
    char text[FACTS][40];
    static const char *const key[FACTS] = {"format",       "print",      "epoch",
                                           "counts_mean",  "counts_max", "light_known",
                                           "object_known", "probe_known"};
    fth_file_meta meta[FACTS] = {{key[0], format}};
    const int n = list_arrays(s, a);
    for (int i = 0; i < n; i++) item[i] = a[i].item;
    const double number[FACTS] = {0,
                                  0,
                                  (double)s->epoch,
                                  s->counts_mean,
                                  s->counts_max,
                                  s->light_known,
                                  s->momentum ? (double)s->momentum->known[0] : 0,
                                  s->momentum ? (double)s->momentum->known[1] : 0};
    for (int i = 1; i < FACTS; i++) {
        if (i == 1)
            snprintf(text[i], sizeof text[i], "%016" PRIx64, print);
        else
            fth_number_format(text[i], sizeof text[i], number[i], 17);
        meta[i] = (fth_file_meta){key[i], text[i]};
    }
    fth_safetensors_writer *w = NULL;
    const fth_safetensors_options opt = {.meta = meta, .n_meta = FACTS};
    FTH_TRY(fth_safetensors_create(&w, s->mem, path, item, n, &opt, err));
    const fth_status st = write_arrays(s, w, a, n, err);
    if (st == FTH_OK) return fth_safetensors_commit(w, err);
    fth_safetensors_abandon(w);
    return st;
}

/* ---- back ---- */

static bool number_of(const fth_safetensors *f, const char *key, double *out)
{
    const char *text = fth_safetensors_meta(f, key);
    return text && fth_real_parse(text, out);
}

static fth_status read_one(pt_solver *s, fth_safetensors *f, const array *a, fth_err *err)
{
    fth_source source;
    const int64_t zero[FTH_MAX_AXES] = {0};
    FTH_TRY(fth_safetensors_source(f, a->item.name, &source, err));
    bool same = source.dtype == a->item.dtype && source.n_axes == a->item.n_axes;
    for (int i = 0; same && i < source.n_axes; i++) same = source.size[i] == a->item.size[i];
    fth_status st = FTH_OK;
    if (!same)
        st = FTH_FAIL(err, FTH_E_FILE_SHAPE, "'%s' has another shape", a->item.name);
    else if (!a->data)
        st = pt_waves_fill(s, &source, err);
    else if (source.size[0] > 0)
        st = source.read(source.self, zero, source.size, a->data, err);
    fth_source_close(&source);
    return st;
}

static fth_status read_arrays(pt_solver *s, fth_safetensors *f, fth_err *err)
{
    array a[ARRAYS];
    double epoch = -1, known = 0, changes[2] = {0};
    if (!number_of(f, "epoch", &epoch) || !number_of(f, "counts_mean", &s->counts_mean) ||
        !number_of(f, "counts_max", &s->counts_max) || !number_of(f, "light_known", &known) ||
        !number_of(f, "object_known", &changes[0]) || !number_of(f, "probe_known", &changes[1]) ||
        epoch < 0 || epoch > (double)s->opt.iterations)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "its epoch is missing, or beyond the last");
    s->epoch = (int64_t)epoch;
    s->light_known = known != 0;
    for (int k = 0; s->momentum && k < 2; k++)
        s->momentum->known[k] = changes[k] > PT_MOMENTUM_DEPTH ? 0 : (int64_t)changes[k];
    const int n = list_arrays(s, a);
    for (int i = 0; i < n; i++) FTH_TRY(read_one(s, f, &a[i], err));
    return FTH_OK;
}

fth_status pt_solver_load(pt_solver *s, const char *path, uint64_t print, bool *found, char *why,
                          size_t bytes, fth_err *err)
{
    char want[40];
    fth_err damage = {0};
    fth_safetensors *f = NULL;
    *found = false;
    *why = 0;
    if (!fth_path_exists(path)) return FTH_OK;
    snprintf(want, sizeof want, "%016" PRIx64, print);
    fth_status st = fth_safetensors_open(&f, s->mem, path, &damage);
    if (st == FTH_OK) {
        const char *what = fth_safetensors_meta(f, "format"),
                   *have = fth_safetensors_meta(f, "print");
        if (!what || strcmp(what, format) != 0 || !have || strcmp(have, want) != 0) {
            snprintf(why, bytes, "it belongs to other data or settings");
        } else {
            st = fth_safetensors_verify(f, NULL, &damage);
            if (st == FTH_OK) st = read_arrays(s, f, &damage);
            *found = st == FTH_OK;
        }
    }
    fth_safetensors_close(f);
    if (st == FTH_E_NOMEM || st == FTH_E_BUDGET) {
        if (err) *err = damage;
        return st;
    }
    if (st != FTH_OK) {
        snprintf(why, bytes, "%s", damage.text);
        s->epoch = 0;
    }
    return FTH_OK;
}
