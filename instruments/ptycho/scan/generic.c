/* generic.c - an HDF5 file of no known layout: the keys hdf5.* say where things are. */
#include "hdf5.h"

#include <math.h>
#include <string.h>

static fth_status need(const pt_draft *d, fth_h5 *h5, const char *key, const char *place,
                       fth_err *err)
{
    char have[300];
    if (place[0] && fth_h5_kind_of(h5, place) == FTH_H5_DATASET) return FTH_OK;
    if (!place[0]) return FTH_FAIL(err, FTH_E_COMMAND, "hdf5.data is set, but --%s is not", key);
    FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no dataset '%s' (%s); at the root there is %s",
             d->scan->path, place, key, pt_h5_children(h5, "/", have, sizeof have));
    return FTH_E_FILE_KEY;
}

static fth_status read_physics(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    pt_meta *m = &d->scan->meta;
    const pt_scan_options *o = d->opt;
    if (o->energy[0]) {
        FTH_TRY(need(d, h5, "hdf5.energy_eV", o->energy, err));
        FTH_TRY(pt_h5_number(d, h5, o->energy, PT_ENERGY, &m->energy_eV, err));
    }
    if (o->distance[0]) {
        FTH_TRY(need(d, h5, "hdf5.distance_m", o->distance, err));
        FTH_TRY(pt_h5_number(d, h5, o->distance, PT_LENGTH, &m->distance_m, err));
    }
    if (o->pixel[0]) {
        FTH_TRY(need(d, h5, "hdf5.pixel_m", o->pixel, err));
        FTH_TRY(pt_h5_number(d, h5, o->pixel, PT_LENGTH, &m->detector_pixel_m, err));
    }
    return FTH_OK;
}

/* What the key or the file says; else metres where a size of pixels can be worked out: then pixels
 * would be a strange choice. */
static fth_status find_unit(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    static const double units[] = {[PT_UNITS_M] = 1,
                                   [PT_UNITS_MM] = 1e-3,
                                   [PT_UNITS_UM] = 1e-6,
                                   [PT_UNITS_NM] = 1e-9,
                                   [PT_UNITS_PIXEL] = 0};
    const pt_meta *m = &d->scan->meta;
    const pt_scan_options *o = d->opt;
    double x, y;
    const bool known = (m->energy_eV > 0 || o->energy_eV > 0) &&
                       (m->distance_m > 0 || o->distance_m > 0) &&
                       (m->detector_pixel_m > 0 || o->detector_pixel_m > 0);
    d->unit_m = units[o->position_unit];
    if (o->position_unit != PT_UNITS_AUTO) return FTH_OK;
    x = y = -1;
    if (o->x[0]) FTH_TRY(pt_h5_unit(d, h5, o->x, &x, err));
    if (o->x[0]) FTH_TRY(pt_h5_unit(d, h5, o->y, &y, err));
    d->unit_m = x >= 0 ? x : known ? 1 : 0;
    if (x == y) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: '%s' and '%s' have different units", d->scan->path, o->x,
             o->y);
    fth_err_hint(err, "give --positions.unit, or correct their attribute 'units'");
    return FTH_E_FILE_FORMAT;
}

/* Those of the file, or a raster over the data's own axes. */
static fth_status read_positions(pt_draft *d, fth_h5 *h5, int64_t *n, fth_err *err)
{
    pt_scan *scan = d->scan;
    const pt_scan_options *o = d->opt;
    int64_t m = 0;
    if (!o->x[0] && o->step > 0) {
        fth_source s;
        char shape[120];
        FTH_TRY(fth_h5_source(h5, o->data, &s, err));
        const int64_t rows = s.size[0], cols = s.size[1];
        const bool cube = s.n_axes == 4;
        pt_shape_text(&s, shape, sizeof shape);
        fth_source_close(&s);
        if (!cube)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                            "%s: '%s' is %s; positions.step is for [scan row, scan col, row, col]",
                            scan->path, o->data, shape);
        *n = rows * cols;
        return pt_raster_positions(d, rows, cols, err);
    }
    FTH_TRY(need(d, h5, "hdf5.x", o->x, err));
    FTH_TRY(need(d, h5, "hdf5.y", o->y, err));
    const bool together = strcmp(o->x, o->y) == 0; /* [scan 2], x first */
    FTH_TRY(pt_h5_column(d, h5, o->x, together ? 0 : -1, &scan->x, n, err));
    FTH_TRY(pt_h5_column(d, h5, o->y, together ? 1 : -1, &scan->y, &m, err));
    scan->start_x = scan->x;
    scan->start_y = scan->y;
    if (*n == m) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' has %lld positions and '%s' has %lld",
                    scan->path, o->x, (long long)*n, o->y, (long long)m);
}

fth_status pt_read_generic(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    const pt_scan_options *o = d->opt;
    int64_t n = 0;
    FTH_TRY(need(d, h5, "hdf5.data", o->data, err));
    FTH_TRY(read_positions(d, h5, &n, err));
    FTH_TRY(read_physics(d, h5, err));
    FTH_TRY(find_unit(d, h5, err));
    FTH_TRY(pt_h5_patterns(d, h5, o->data, n, err));
    if (o->mask_path[0]) {
        FTH_TRY(need(d, h5, "hdf5.mask", o->mask_path, err));
        FTH_TRY(pt_h5_mask(d, h5, o->mask_path, err));
    }
    if (o->probe[0]) {
        FTH_TRY(need(d, h5, "hdf5.probe", o->probe, err));
        FTH_TRY(pt_h5_probe(d, h5, o->probe, err));
    }
    return FTH_OK;
}
