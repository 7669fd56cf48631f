/* metadata.c - values from the JSON text that PtychoPINN stores as _metadata. */
#include "parts.h"

#include <math.h>
#include <string.h>

static fth_json *parse_first(pt_scan *scan, fth_texts *texts)
{
    fth_json *doc = NULL;
    for (int64_t i = 0; !doc && i < fth_texts_count(texts); i++) {
        const char *text = fth_texts_get(texts, i);
        if (text[0] == '{' &&
            fth_json_parse(&doc, scan->mem, "_metadata", text, strlen(text), NULL) != FTH_OK)
            doc = NULL;
    }
    return doc;
}

fth_status pt_read_metadata(pt_draft *d, fth_texts *texts, fth_err *err)
{
    pt_scan *scan = d->scan;
    const double unknown = (double)NAN;
    fth_json *doc = parse_first(scan, texts);
    if (!doc) return pt_scan_warn(d->scan, err, "'_metadata' is not JSON text and is ignored");
    const fth_json_value *physics = fth_json_get(fth_json_root(doc), "physics_parameters"),
                         *more = fth_json_get(fth_json_root(doc), "additional_parameters");
    scan->meta.nphotons = fth_json_get_real(physics, "nphotons", unknown);
    scan->meta.gridsize = fth_json_get_int(physics, "gridsize", 0);
    scan->meta.intensity_scale = fth_json_get_real(more, "intensity_scale", unknown);
    scan->meta.energy_eV = fth_json_get_real(more, "energy_eV", unknown);
    scan->meta.distance_m = fth_json_get_real(more, "distance_m", unknown);
    scan->meta.detector_pixel_m = fth_json_get_real(more, "detector_pixel_m", unknown);
    const int64_t N = fth_json_get_int(physics, "N", 0);
    const pt_scan_options *o = d->opt;
    fth_status s = FTH_OK;
    if (N > 0 && N != scan->N)
        s = pt_scan_warn(d->scan, err, "'_metadata' has N = %lld, but the patterns are %lld x %lld",
                         (long long)N, (long long)scan->N, (long long)scan->N);
    if (s == FTH_OK && o->want_N > 0 && o->want_N != scan->N)
        s = pt_scan_warn(d->scan, err, "N is %lld in the config, but the patterns are %lld x %lld",
                         (long long)o->want_N, (long long)scan->N, (long long)scan->N);
    if (s == FTH_OK && !isnan(o->want_nphotons) && !isnan(scan->meta.nphotons) &&
        fabs(o->want_nphotons - scan->meta.nphotons) > 1e-6 * scan->meta.nphotons)
        s = pt_scan_warn(d->scan, err, "nphotons is %g in the config and %g in '_metadata'",
                         o->want_nphotons, scan->meta.nphotons);
    if (s == FTH_OK && o->want_gridsize > 0 && scan->meta.gridsize > 0 &&
        o->want_gridsize != scan->meta.gridsize)
        s = pt_scan_warn(d->scan, err, "gridsize is %lld in the config and %lld in '_metadata'",
                         (long long)o->want_gridsize, (long long)scan->meta.gridsize);
    fth_json_destroy(doc);
    return s;
}
