/* product.c - the product file of Ptychodus, with the patterns it was made of in /raw_data. */
#include "hdf5.h"

#include <math.h>

static fth_status read_attr(fth_h5 *h5, const char *object, const char *name, double *out,
                            fth_err *err)
{
    double v[1];
    int64_t n = 0;
    *out = (double)NAN;
    if (!fth_h5_attr_exists(h5, object, name)) return FTH_OK;
    FTH_TRY(fth_h5_attr_f64(h5, object, name, v, 1, &n, err));
    if (n > 0) *out = v[0];
    return FTH_OK;
}

static fth_status read_positions(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    pt_scan *scan = d->scan;
    int64_t n = 0, m = 0;
    static const char *const places[2][2] = {{"/probe_position_x_m", "/probe_position_y_m"},
                                             {"/raw_data/xcoords", "/raw_data/ycoords"}};
    const bool pixels = fth_h5_kind_of(h5, places[1][0]) == FTH_H5_DATASET;
    const char *const *place = places[pixels];
    FTH_TRY(pt_h5_column(d, h5, place[0], -1, &scan->x, &n, err));
    FTH_TRY(pt_h5_column(d, h5, place[1], -1, &scan->y, &m, err));
    scan->start_x = scan->x;
    scan->start_y = scan->y;
    scan->n = n;
    d->unit_m = pixels ? 0 : 1;
    if (n == m) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' has %lld positions and '%s' has %lld",
                    scan->path, place[0], (long long)n, place[1], (long long)m);
}

static fth_status read_index(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    static const char place[] = "/raw_data/scan_index";
    double *v = NULL;
    int64_t n = 0;
    if (fth_h5_kind_of(h5, place) != FTH_H5_DATASET) return FTH_OK;
    FTH_TRY(pt_h5_column(d, h5, place, -1, &v, &n, err));
    return pt_set_index(d, v, n, place, err);
}

fth_status pt_read_product(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    pt_scan *scan = d->scan;
    pt_meta *m = &scan->meta;
    double width = (double)NAN;
    if (fth_h5_kind_of(h5, "/raw_data/diffraction") != FTH_H5_DATASET) {
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "%s: a product file without patterns: expected '/raw_data/diffraction'",
                 scan->path);
        fth_err_hint(err, "a reconstruction alone can be read by 'fathom ptycho evaluate'");
        return FTH_E_FILE_KEY;
    }
    FTH_TRY(read_positions(d, h5, err));
    FTH_TRY(read_attr(h5, "/", "probe_energy_eV", &m->energy_eV, err));
    FTH_TRY(read_attr(h5, "/", "detector_object_distance_m", &m->distance_m, err));
    FTH_TRY(read_attr(h5, "/", "probe_photon_count", &m->nphotons, err));
    FTH_TRY(read_attr(h5, "/raw_data", "detector_pixel_m", &m->detector_pixel_m, err));
    if (fth_h5_kind_of(h5, "/object") == FTH_H5_DATASET)
        FTH_TRY(read_attr(h5, "/object", "pixel_width_m", &width, err));
    if (isnan(width) && fth_h5_kind_of(h5, "/probe") == FTH_H5_DATASET)
        FTH_TRY(read_attr(h5, "/probe", "pixel_width_m", &width, err));
    if (width > 0) m->pixel_m = width;
    FTH_TRY(pt_h5_patterns(d, h5, "/raw_data/diffraction", scan->n, err));
    FTH_TRY(read_index(d, h5, err));
    d->own_rule = PT_MASK_GOOD;
    FTH_TRY(pt_h5_mask(d, h5, "/raw_data/mask", err));
    FTH_TRY(pt_h5_probe(d, h5, "/probe /raw_data/probeGuess", err));
    if (fth_h5_kind_of(h5, "/object") == FTH_H5_DATASET) return pt_h5_object(d, h5, "/object", err);
    return pt_h5_object(d, h5, "/raw_data/objectGuess", err);
}
