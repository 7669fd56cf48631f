/* hdf5.c - which layout an HDF5 file has, and what readers of all of them need. */
#include "hdf5.h"

#include <math.h>
#include <string.h>

/* ---- layouts ---- */

static const struct layout {
    pt_format format;
    const char *mark; /* only such a file has it */
    fth_h5_kind kind;
    fth_status (*read)(pt_draft *d, fth_h5 *h5, fth_err *err);
} layouts[] = {{PT_PRODUCT, "/probe_position_x_m", FTH_H5_DATASET, pt_read_product},
               {PT_PRODUCT, "/raw_data/diffraction", FTH_H5_DATASET, pt_read_product},
               {PT_PTYD, "/chunks", FTH_H5_GROUP, pt_read_ptyd},
               {PT_CXI, "/entry_1", FTH_H5_GROUP, pt_read_cxi},
               {PT_VELOCIPROBE, "/entry/instrument/detector", FTH_H5_GROUP, pt_read_velociprobe}};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static fth_status read_any(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    char have[300];
    if (d->opt->data[0]) {
        d->scan->format = PT_GENERIC;
        return pt_read_generic(d, h5, err);
    }
    for (int i = 0; i < LAYOUTS; i++)
        if (fth_h5_kind_of(h5, layouts[i].mark) == layouts[i].kind) {
            d->scan->format = layouts[i].format;
            return layouts[i].read(d, h5, err);
        }
    FTH_FAIL(err, FTH_E_FILE_KEY,
             "%s: an HDF5 file of no known layout (product, CXI, ptyd, Velociprobe); at its root "
             "there is %s",
             d->scan->path, pt_h5_children(h5, "/", have, sizeof have));
    fth_err_hint(err, "name the datasets: --hdf5.data PATH --hdf5.x PATH --hdf5.y PATH");
    return FTH_E_FILE_KEY;
}

fth_status pt_read_hdf5(pt_draft *d, fth_err *err)
{
    fth_h5 *h5 = NULL;
    d->own_sign = 1;
    d->own_rule = PT_MASK_CXI;
    FTH_TRY(fth_h5_open(&h5, d->scan->mem, d->scan->path, err));
    const fth_status s = read_any(d, h5, err);
    fth_h5_close(h5);
    return s;
}

/* ---- places ---- */

bool pt_h5_find(fth_h5 *h5, const char *places, char *place, size_t bytes)
{
    for (const char *at = places; *at;) {
        const size_t n = strcspn(at, " ");
        snprintf(place, bytes, "%.*s", (int)n, at);
        if (n > 0 && fth_h5_kind_of(h5, place) == FTH_H5_DATASET) return true;
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

const char *pt_h5_children(fth_h5 *h5, const char *group, char *text, size_t bytes)
{
    fth_texts *names = NULL;
    size_t used = 0;
    snprintf(text, bytes, "nothing");
    if (fth_h5_list(h5, group, &names, NULL) != FTH_OK) return text;
    for (int64_t i = 0; i < fth_texts_count(names) && used + 2 < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s'%.60s'", i ? ", " : "",
                                 fth_texts_get(names, i));
    fth_texts_free(names);
    return text;
}

/* ---- numbers ---- */

static bool find_unit(const char *unit, pt_quantity what, double *factor)
{
    static const struct {
        const char *name;
        pt_quantity what;
        double factor;
    } units[] = {{"m", PT_LENGTH, 1},
                 {"mm", PT_LENGTH, 1e-3},
                 {"um", PT_LENGTH, 1e-6},
                 {"\xc2\xb5m", PT_LENGTH, 1e-6},
                 {"micron", PT_LENGTH, 1e-6},
                 {"microns", PT_LENGTH, 1e-6},
                 {"nm", PT_LENGTH, 1e-9},
                 {"meter", PT_LENGTH, 1},
                 {"metre", PT_LENGTH, 1},
                 {"angstrom", PT_LENGTH, 1e-10},
                 {"A", PT_LENGTH, 1e-10},
                 {"pixel", PT_LENGTH, 0},
                 {"pixels", PT_LENGTH, 0},
                 {"px", PT_LENGTH, 0},
                 {"J", PT_ENERGY, 1 / 1.602176634e-19},
                 {"eV", PT_ENERGY, 1},
                 {"keV", PT_ENERGY, 1e3}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (units[i].what == what && strcmp(units[i].name, unit) == 0) {
            *factor = units[i].factor;
            return true;
        }
    return false;
}

static double factor_of(const char *unit, pt_quantity what, double v)
{
    double factor = 1;
    if (find_unit(unit, what, &factor)) return factor;
    /* without a unit CXI means joule; no beam energy in joule exceeds 1, none in eV is below it */
    if (what == PT_ENERGY && v <= 1) return 1 / 1.602176634e-19;
    return 1;
}

/* The attribute `units` of a dataset; "" where it has none. */
static void read_unit(fth_h5 *h5, const char *place, char *unit, size_t bytes)
{
    fth_texts *text = NULL;
    unit[0] = '\0';
    if (!fth_h5_attr_exists(h5, place, "units") ||
        fth_h5_attr_text(h5, place, "units", &text, NULL) != FTH_OK)
        return;
    if (fth_texts_count(text) > 0) snprintf(unit, bytes, "%s", fth_texts_get(text, 0));
    fth_texts_free(text);
}

fth_status pt_h5_unit(pt_draft *d, fth_h5 *h5, const char *place, double *out, fth_err *err)
{
    char unit[24];
    *out = -1;
    read_unit(h5, place, unit, sizeof unit);
    if (!unit[0] || find_unit(unit, PT_LENGTH, out)) return FTH_OK;
    return pt_scan_warn(d->scan, err, "'%s' has the unknown unit of length '%s'", place, unit);
}

fth_status pt_h5_number(pt_draft *d, fth_h5 *h5, const char *places, pt_quantity what, double *out,
                        fth_err *err)
{
    char place[300], unit[24];
    double *v = NULL;
    int64_t n = 0;
    fth_source s;
    *out = (double)NAN;
    if (!pt_h5_find(h5, places, place, sizeof place)) return FTH_OK;
    FTH_TRY(fth_h5_source(h5, place, &s, err));
    FTH_TRY(pt_load_reals(d->scan, &s, place, &v, &n, err));
    if (n == 0) return FTH_OK;
    read_unit(h5, place, unit, sizeof unit);
    *out = v[0] * factor_of(unit, what, v[0]);
    return FTH_OK;
}

fth_status pt_h5_column(pt_draft *d, fth_h5 *h5, const char *place, int64_t col, double **out,
                        int64_t *n, fth_err *err)
{
    fth_source s;
    char shape[120];
    void *block = NULL, *raw = NULL;
    *out = NULL;
    *n = 0;
    FTH_TRY(fth_h5_source(h5, place, &s, err));
    if (col < 0 || s.n_axes == 1) {
        FTH_TRY(pt_load_reals(d->scan, &s, place, out, n, err));
        return pt_check_positions(d, *out, *n, place, err);
    }
    if (s.n_axes != 2 || s.size[1] <= col || !pt_is_number(s.dtype)) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: '%s' is %s of %s; expected real numbers [scan %lld]",
                 d->scan->path, place, pt_shape_text(&s, shape, sizeof shape),
                 fth_dtype_name(s.dtype), (long long)(col < 2 ? 3 : col + 1));
        fth_source_close(&s);
        return FTH_E_FILE_SHAPE;
    }
    const int64_t lo[2] = {0, col}, some[2] = {s.size[0], 1};
    const fth_dtype dtype = s.dtype;
    fth_status got =
        pt_scan_hold(d->scan, (uint64_t)s.size[0] * sizeof(double), place, &block, err);
    if (got == FTH_OK)
        got = fth_mem_take(d->scan->mem, FTH_MEM_ANY, (uint64_t)s.size[0] * sizeof(double), place,
                           &raw, err);
    if (got == FTH_OK) got = s.read(s.self, lo, some, raw, err);
    if (got == FTH_OK) pt_to_f64(dtype, raw, some[0], block);
    fth_mem_release(d->scan->mem, raw, NULL);
    fth_source_close(&s);
    FTH_TRY(got);
    *out = block;
    *n = some[0];
    return pt_check_positions(d, *out, *n, place, err);
}

/* ---- arrays ---- */

fth_status pt_h5_patterns(pt_draft *d, fth_h5 *h5, const char *place, int64_t count, fth_err *err)
{
    fth_source s;
    FTH_TRY(fth_h5_source(h5, place, &s, err));
    d->slow = s.part[0] > 1; /* a chunk holds several frames */
    return pt_set_patterns(d, &s, place, count, err);
}

fth_status pt_h5_probe(pt_draft *d, fth_h5 *h5, const char *places, fth_err *err)
{
    char place[300];
    fth_source s;
    if (d->opt->guess == PT_GUESS_ESTIMATE || d->opt->guess == PT_GUESS_DEFAULT) return FTH_OK;
    if (!pt_h5_find(h5, places, place, sizeof place)) {
        if (d->opt->guess == PT_GUESS_AUTO) return FTH_OK;
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no probe at %s", d->scan->path, places);
    }
    FTH_TRY(fth_h5_source(h5, place, &s, err));
    return pt_set_probe(d, &s, place, err);
}

fth_status pt_h5_mask(pt_draft *d, fth_h5 *h5, const char *places, fth_err *err)
{
    char place[300];
    fth_source s;
    if (!pt_h5_find(h5, places, place, sizeof place)) return FTH_OK;
    FTH_TRY(fth_h5_source(h5, place, &s, err));
    return pt_set_mask(d, &s, place, err);
}

/* [row col], or the only slice of [slice row col]. */
fth_status pt_h5_object(pt_draft *d, fth_h5 *h5, const char *place, fth_err *err)
{
    pt_scan *scan = d->scan;
    fth_source s;
    char shape[120];
    if (fth_h5_kind_of(h5, place) != FTH_H5_DATASET) return FTH_OK;
    FTH_TRY(fth_h5_source(h5, place, &s, err));
    const fth_source kept = s;
    FTH_TRY(pt_scan_keep(scan, &s, err));
    if (!fth_dtype_is_complex(kept.dtype) || kept.n_axes < 2 || kept.n_axes > 3)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: '%s' is %s of %s; expected complex numbers [row col]", scan->path,
                        place, pt_shape_text(&kept, shape, sizeof shape),
                        fth_dtype_name(kept.dtype));
    if (kept.n_axes == 3 && kept.size[0] != 1)
        return pt_scan_warn(d->scan, err, "'%s' has %lld slices and is ignored", place,
                            (long long)kept.size[0]);
    scan->object = kept;
    if (kept.n_axes == 2) return FTH_OK;
    return pt_slice_view(scan, &kept, &scan->object, err);
}
