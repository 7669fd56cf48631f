/* hdf5.c - scans as product files of Ptychodus and as CXI files. */
#include "convert.h"

#include "../scan/copy.h"

#include <math.h>
#include <string.h>

/* ---- pieces ---- */

static fth_status put(fth_h5_writer *w, const char *name, fth_dtype dtype, int n_axes,
                      const int64_t *size, const void *data, fth_err *err)
{
    fth_h5_dataset d = {.name = name, .dtype = dtype, .n_axes = n_axes};
    fth_sink sink;
    if (n_axes > 0) memcpy(d.size, size, (size_t)n_axes * sizeof *size);
    FTH_TRY(fth_h5_sink(w, &d, &sink, err));
    const fth_status s = fth_sink_put(&sink, data, err);
    fth_sink_close(&sink);
    return s;
}

static fth_status put_number(fth_h5_writer *w, const char *name, double v, fth_err *err)
{
    return put(w, name, FTH_F64, 0, NULL, &v, err);
}

static fth_status put_attr(fth_h5_writer *w, const char *object, const char *name, double v,
                           fth_err *err)
{
    return fth_h5_put_attr_f64(w, object, name, &v, 1, err);
}

/* c128 in memory, written as c64. */
static fth_status put_complex(fth_h5_writer *w, fth_mem *mem, const char *name, int n_axes,
                              const int64_t *size, const fth_c128 *from, fth_err *err)
{
    int64_t count = 1;
    void *room = NULL;
    for (int a = 0; a < n_axes; a++) count *= size[a];
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)count * sizeof(fth_c64), name, &room, err));
    fth_c64 *to = room;
    for (int64_t i = 0; i < count; i++) to[i] = (fth_c64){(float)from[i].re, (float)from[i].im};
    const fth_status s = put(w, name, FTH_C64, n_axes, size, room, err);
    fth_mem_release(mem, room, NULL);
    return s;
}

/* Frames of a source, one per HDF5 chunk, so that each can be read alone. */
static fth_status put_frames(fth_h5_writer *w, pt_scan *scan, const char *name,
                             const fth_source *from, fth_err *err)
{
    const fth_h5_dataset d = {.name = name,
                              .dtype = from->dtype,
                              .n_axes = 3,
                              .size = {from->size[0], from->size[1], from->size[2]},
                              .chunk = {1, from->size[1], from->size[2]}};
    fth_sink sink;
    FTH_TRY(fth_h5_sink(w, &d, &sink, err));
    fth_status s = pt_copy_frames(scan, from, &sink, err);
    if (s == FTH_OK && sink.commit) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    return s;
}

static fth_status need_pixel(const pt_scan *scan, const char *path, fth_err *err)
{
    const pt_meta *m = &scan->meta;
    if (m->energy_eV > 0 && m->distance_m > 0 && m->pixel_m > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_KEY,
             "%s: this format stores lengths in metres, and %s lacks its%s%s%s", path, scan->path,
             m->energy_eV > 0 ? "" : " energy", m->distance_m > 0 ? "" : " distance",
             m->detector_pixel_m > 0 ? "" : " detector pixel");
    fth_err_hint(err, "give --energy_eV, --distance_m and --detector_pixel_m");
    return FTH_E_FILE_KEY;
}

/* Positions times a factor. */
static fth_status scaled(const pt_scan *scan, const double *v, double factor, int64_t step,
                         double *out)
{
    for (int64_t i = 0; i < scan->n; i++) out[i * step] = factor * v[i];
    return FTH_OK;
}

/* ---- product ---- */

static fth_status product_positions(fth_h5_writer *w, pt_scan *scan, fth_err *err)
{
    void *room = NULL;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)scan->n * 8, "positions", &room, err));
    int64_t *index = room;
    for (int64_t i = 0; i < scan->n; i++) index[i] = i;
    fth_status s = put(w, "/probe_position_indexes", FTH_I64, 1, &scan->n, room, err);
    for (int64_t i = 0; i < scan->n; i++) index[i] = scan->index ? scan->index[i] : 0;
    if (s == FTH_OK) s = put(w, "/raw_data/scan_index", FTH_I64, 1, &scan->n, room, err);
    scaled(scan, scan->x, scan->meta.pixel_m, 1, room);
    if (s == FTH_OK) s = put(w, "/probe_position_x_m", FTH_F64, 1, &scan->n, room, err);
    scaled(scan, scan->y, scan->meta.pixel_m, 1, room);
    if (s == FTH_OK) s = put(w, "/probe_position_y_m", FTH_F64, 1, &scan->n, room, err);
    if (s == FTH_OK) s = put(w, "/raw_data/xcoords", FTH_F64, 1, &scan->n, scan->x, err);
    if (s == FTH_OK) s = put(w, "/raw_data/ycoords", FTH_F64, 1, &scan->n, scan->y, err);
    fth_mem_release(scan->mem, room, NULL);
    return s;
}

static fth_status product_fields(fth_h5_writer *w, pt_scan *scan, fth_err *err)
{
    const double dx = scan->meta.pixel_m;
    if (scan->modes) {
        const int64_t size[4] = {1, scan->modes, scan->N, scan->N};
        FTH_TRY(put_complex(w, scan->mem, "/probe", 4, size, scan->probe, err));
        FTH_TRY(put_attr(w, "/probe", "pixel_width_m", dx, err));
        FTH_TRY(put_attr(w, "/probe", "pixel_height_m", dx, err));
    }
    if (!scan->object.n_axes) return FTH_OK;
    fth_tensor *object = NULL;
    FTH_TRY(pt_scan_load_object(scan, &object, err));
    const int64_t size[3] = {1, scan->object.size[0], scan->object.size[1]};
    const fth_status s =
        put_complex(w, scan->mem, "/object", 3, size, fth_tensor_view(object), err);
    fth_tensor_release(object);
    FTH_TRY(s);
    FTH_TRY(put_attr(w, "/object", "pixel_width_m", dx, err));
    FTH_TRY(put_attr(w, "/object", "pixel_height_m", dx, err));
    FTH_TRY(put_attr(w, "/object", "center_x_m", dx * (double)size[2] / 2, err));
    return put_attr(w, "/object", "center_y_m", dx * (double)size[1] / 2, err);
}

static fth_status write_product(fth_h5_writer *w, pt_scan *scan, fth_err *err)
{
    const pt_meta *m = &scan->meta;
    fth_source amplitude;
    FTH_TRY(fth_h5_put_attr_text(w, "/", "name", "scan", err));
    FTH_TRY(fth_h5_put_attr_text(w, "/", "comments", "", err));
    FTH_TRY(put_attr(w, "/", "detector_object_distance_m", m->distance_m, err));
    FTH_TRY(put_attr(w, "/", "probe_energy_eV", m->energy_eV, err));
    FTH_TRY(put_attr(w, "/", "exposure_time_s", 0, err));
    if (m->nphotons > 0) FTH_TRY(put_attr(w, "/", "probe_photon_count", m->nphotons, err));
    FTH_TRY(fth_h5_put_group(w, "/raw_data", err));
    FTH_TRY(put_attr(w, "/raw_data", "detector_pixel_m", m->detector_pixel_m, err));
    FTH_TRY(product_positions(w, scan, err));
    FTH_TRY(product_fields(w, scan, err));
    FTH_TRY(pt_scan_view(scan, PT_AMPLITUDE, FTH_F32, &amplitude, err));
    FTH_TRY(put_frames(w, scan, "/raw_data/diffraction", &amplitude, err));
    FTH_TRY(fth_h5_put_attr_text(w, "/raw_data/diffraction", "axis_canonical", "NHW", err));
    const int64_t size[2] = {scan->N, scan->N};
    if (scan->mask) FTH_TRY(put(w, "/raw_data/mask", FTH_BOOL, 2, size, scan->mask, err));
    if (scan->masks.n_axes) FTH_TRY(put_frames(w, scan, "/raw_data/mask", &scan->masks, err));
    return FTH_OK;
}

/* ---- CXI ---- */

#define ENTRY "/entry_1"
#define INSTRUMENT ENTRY "/instrument_1"
#define DETECTOR INSTRUMENT "/detector_1"

/* The sample moves opposite to the probe. */
static fth_status cxi_translation(fth_h5_writer *w, pt_scan *scan, fth_err *err)
{
    static const char *const places[] = {ENTRY "/sample_1/geometry_1/translation",
                                         ENTRY "/data_1/translation"};
    const int64_t size[2] = {scan->n, 3};
    void *room = NULL;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)scan->n * 24, "positions", &room, err));
    double *v = room;
    memset(v, 0, (size_t)scan->n * 24);
    scaled(scan, scan->x, -scan->meta.pixel_m, 3, v);
    scaled(scan, scan->y, -scan->meta.pixel_m, 3, v + 1);
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < 2; i++) s = put(w, places[i], FTH_F64, 2, size, room, err);
    fth_mem_release(scan->mem, room, NULL);
    return s;
}

/* 0 is good there. */
static fth_status cxi_mask(fth_h5_writer *w, pt_scan *scan, fth_err *err)
{
    const int64_t size[2] = {scan->N, scan->N};
    void *room = NULL;
    if (scan->masks.n_axes) {
        fth_source bad;
        FTH_TRY(pt_flags_view(scan, &scan->masks, "mask", PT_MASK_BAD, FTH_BOOL, &bad, err));
        return put_frames(w, scan, DETECTOR "/mask", &bad, err);
    }
    if (!scan->mask) return FTH_OK;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(scan->N * scan->N) * 4, "mask", &room,
                         err));
    int32_t *v = room;
    for (int64_t i = 0; i < scan->N * scan->N; i++) v[i] = scan->mask[i] ? 0 : 1;
    const fth_status s = put(w, DETECTOR "/mask", FTH_I32, 2, size, room, err);
    fth_mem_release(scan->mem, room, NULL);
    return s;
}

static fth_status write_cxi(fth_h5_writer *w, pt_scan *scan, fth_err *err)
{
    const pt_meta *m = &scan->meta;
    const int32_t version = 160;
    const double joule = m->energy_eV * 1.602176634e-19;
    fth_source counts = scan->patterns;
    FTH_TRY(put(w, "/cxi_version", FTH_I32, 0, NULL, &version, err));
    FTH_TRY(put_number(w, INSTRUMENT "/source_1/energy", joule, err));
    FTH_TRY(fth_h5_put_attr_text(w, INSTRUMENT "/source_1/energy", "units", "J", err));
    FTH_TRY(put_number(w, INSTRUMENT "/beam_1/energy", joule, err));
    FTH_TRY(put_number(w, DETECTOR "/distance", m->distance_m, err));
    FTH_TRY(put_number(w, DETECTOR "/x_pixel_size", m->detector_pixel_m, err));
    FTH_TRY(put_number(w, DETECTOR "/y_pixel_size", m->detector_pixel_m, err));
    FTH_TRY(cxi_translation(w, scan, err));
    FTH_TRY(cxi_mask(w, scan, err));
    if (scan->modes) {
        const int64_t size[3] = {scan->modes, scan->N, scan->N};
        FTH_TRY(put_complex(w, scan->mem, INSTRUMENT "/source_1/illumination", 3, size, scan->probe,
                            err));
    }
    if (scan->kind != PT_COUNTS) FTH_TRY(pt_scan_view(scan, PT_COUNTS, FTH_F32, &counts, err));
    return put_frames(w, scan, ENTRY "/data_1/data", &counts, err);
}

/* ---- files ---- */

static fth_status write_file(pt_scan *scan, const char *path,
                             fth_status (*fill)(fth_h5_writer *w, pt_scan *scan, fth_err *err),
                             fth_err *err)
{
    fth_h5_writer *w = NULL;
    FTH_TRY(need_pixel(scan, path, err));
    FTH_TRY(fth_h5_create(&w, scan->mem, path, err));
    const fth_status s = fill(w, scan, err);
    if (s == FTH_OK) return fth_h5_commit(w, err);
    fth_h5_abandon(w);
    return s;
}

fth_status pt_convert_product(pt_scan *scan, const char *path, fth_err *err)
{
    return write_file(scan, path, write_product, err);
}

fth_status pt_convert_cxi(pt_scan *scan, const char *path, fth_err *err)
{
    return write_file(scan, path, write_cxi, err);
}
