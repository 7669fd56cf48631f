/* write.c - see write.h. */
#include "write.h"

#include <math.h>
#include <string.h>

enum { MOST_ITEMS = 12 };

/* ---- metadata ---- */

static void put_known(fth_json_writer *w, const char *key, double v)
{
    if (!isnan(v)) fth_json_real(w, key, v);
}

static void put_text(fth_json_writer *w, const char *key, const char *text)
{
    if (text) fth_json_text(w, key, text);
}

fth_status pt_metadata_make(fth_mem *mem, const pt_metadata *m, fth_json_writer *w, fth_err *err)
{
    fth_json_begin(w, mem, false);
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "schema_version", "1.0.0");
    fth_json_open(w, "creation_info", '{'); /* no time, no host: equal runs give equal files */
    fth_json_text(w, "timestamp", "");
    fth_json_text(w, "script", m->script);
    fth_json_text(w, "hostname", "");
    fth_json_text(w, "ptychopinn_version", "");
    fth_json_text(w, "fathom_version", fth_version());
    fth_json_close(w);
    fth_json_open(w, "physics_parameters", '{');
    put_known(w, "nphotons", m->nphotons);
    fth_json_int(w, "gridsize", m->gridsize > 0 ? m->gridsize : 1);
    fth_json_int(w, "N", m->N);
    fth_json_close(w);
    fth_json_open(w, "training_parameters", '{');
    fth_json_int(w, "n_images", m->n_images);
    fth_json_close(w);
    fth_json_open(w, "data_transformations", '[');
    fth_json_close(w);
    fth_json_open(w, "additional_parameters", '{');
    fth_json_int(w, "seed", m->seed);
    put_text(w, "object", m->object_kind);
    put_text(w, "probe", m->probe_kind);
    put_text(w, "scan", m->scan_kind);
    put_known(w, "intensity_scale", m->intensity_scale);
    put_known(w, "energy_eV", m->energy_eV);
    put_known(w, "distance_m", m->distance_m);
    put_known(w, "detector_pixel_m", m->detector_pixel_m);
    fth_json_close(w);
    fth_json_close(w);
    const fth_status s = fth_json_end(w, err);
    if (s != FTH_OK) fth_json_free(w);
    return s;
}

/* ---- arrays ---- */

static fth_status put_array(fth_npz_writer *w, const char *name, const void *data, fth_err *err)
{
    fth_sink sink;
    FTH_TRY(fth_npz_sink(w, name, &sink, err));
    return fth_sink_put(&sink, data, err);
}

/* Numbers of c128, `row` of them at a time, as c64. */
static fth_status put_complex(fth_npz_writer *w, fth_mem *mem, const char *name,
                              const fth_c128 *from, int64_t count, fth_err *err)
{
    void *room = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)count * sizeof(fth_c64), name, &room, err));
    fth_c64 *to = room;
    for (int64_t i = 0; i < count; i++) to[i] = (fth_c64){(float)from[i].re, (float)from[i].im};
    const fth_status s = put_array(w, name, room, err);
    fth_mem_release(mem, room, NULL);
    return s;
}

/* The object row by row. */
static fth_status put_object(fth_npz_writer *w, fth_mem *mem, const fth_source *o, fth_err *err)
{
    fth_sink sink;
    void *room = NULL;
    const int64_t cols = o->size[1];
    const bool wide = o->dtype == FTH_C128;
    FTH_TRY(fth_npz_sink(w, "objectGuess", &sink, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)cols * sizeof(fth_c128), "row", &room, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < o->size[0]; i++) {
        const int64_t lo[2] = {i, 0}, n[2] = {1, cols};
        const fth_c128 *from = o->data ? (const fth_c128 *)o->data + i * cols : room;
        if (!o->data) s = o->read(o->self, lo, n, room, err);
        for (int64_t j = 0; s == FTH_OK && wide && j < cols; j++) {
            const fth_c128 v = from[j];
            ((fth_c64 *)room)[j] = (fth_c64){(float)v.re, (float)v.im};
        }
        if (s == FTH_OK) s = sink.write(sink.self, lo, n, room, err);
    }
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_mem_release(mem, room, NULL);
    return s;
}

static fth_status put_index(fth_npz_writer *w, fth_mem *mem, const pt_scan_arrays *a, fth_err *err)
{
    void *room = NULL;
    if (a->index) return put_array(w, "scan_index", a->index, err);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)a->n * sizeof(int64_t), "index", &room, err));
    memset(room, 0, (size_t)a->n * sizeof(int64_t));
    const fth_status s = put_array(w, "scan_index", room, err);
    fth_mem_release(mem, room, NULL);
    return s;
}

static fth_status put_all(fth_npz_writer *w, fth_mem *mem, const pt_scan_arrays *a, bool start,
                          fth_err *err)
{
    fth_sink sink;
    FTH_TRY(put_array(w, "xcoords", a->x, err));
    FTH_TRY(put_array(w, "ycoords", a->y, err));
    FTH_TRY(put_index(w, mem, a, err));
    if (start) FTH_TRY(put_array(w, "xcoords_start", a->start_x, err));
    if (start) FTH_TRY(put_array(w, "ycoords_start", a->start_y, err));
    if (a->modes) FTH_TRY(put_complex(w, mem, "probeGuess", a->probe, a->modes * a->N * a->N, err));
    if (a->object.n_axes) FTH_TRY(put_object(w, mem, &a->object, err));
    if (a->mask) FTH_TRY(put_array(w, "mask", a->mask, err));
    if (!a->masks) return FTH_OK;
    FTH_TRY(fth_npz_sink(w, "mask", &sink, err));
    return fth_source_copy(a->masks, &sink, mem, NULL, NULL, err);
}

fth_status pt_scan_write_npz(fth_npz_writer **out, fth_mem *mem, const char *path,
                             const pt_scan_arrays *a, fth_sink *patterns, fth_err *err)
{
    fth_file_item item[MOST_ITEMS];
    int64_t n = 0;
    const bool start = a->start_x && a->start_x != a->x;
    item[n++] = (fth_file_item){"xcoords", FTH_F64, 1, {a->n}, NULL};
    item[n++] = (fth_file_item){"ycoords", FTH_F64, 1, {a->n}, NULL};
    item[n++] = (fth_file_item){"scan_index", FTH_I64, 1, {a->n}, NULL};
    if (start) item[n++] = (fth_file_item){"xcoords_start", FTH_F64, 1, {a->n}, NULL};
    if (start) item[n++] = (fth_file_item){"ycoords_start", FTH_F64, 1, {a->n}, NULL};
    if (a->modes == 1) item[n++] = (fth_file_item){"probeGuess", FTH_C64, 2, {a->N, a->N}, NULL};
    if (a->modes > 1)
        item[n++] = (fth_file_item){"probeGuess", FTH_C64, 3, {a->modes, a->N, a->N}, NULL};
    if (a->object.n_axes)
        item[n++] = (fth_file_item){
            "objectGuess", FTH_C64, 2, {a->object.size[0], a->object.size[1]}, NULL};
    if (a->mask) item[n++] = (fth_file_item){"mask", FTH_BOOL, 2, {a->N, a->N}, NULL};
    if (a->masks) item[n++] = (fth_file_item){"mask", FTH_BOOL, 3, {a->n, a->N, a->N}, NULL};
    item[n++] = (fth_file_item){"diff3d", a->dtype, 3, {a->n, a->N, a->N}, NULL};
    const fth_file_meta text[3] = {{"_metadata", a->metadata},
                                   {"scale_contract_version", "ci_intensity_v2"},
                                   {"measurement_domain", "count_intensity"}};
    const bool counts = a->kind == PT_COUNTS, told = a->metadata != NULL;
    FTH_TRY(fth_npz_create_with_texts(out, mem, path, item, n, told ? text : text + 1,
                                      (told ? 1 : 0) + (counts ? 2 : 0), err));
    fth_status s = put_all(*out, mem, a, start, err);
    if (s == FTH_OK) s = fth_npz_sink(*out, "diff3d", patterns, err);
    if (s == FTH_OK) return FTH_OK;
    fth_npz_abandon(*out);
    *out = NULL;
    return s;
}
