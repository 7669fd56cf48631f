/* open.c - a file of any known format becomes a scan. */
#include "parts.h"

#include <math.h>
#include <string.h>

static fth_status read_file(pt_draft *d, fth_err *err)
{
    static const unsigned char hdf5[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    unsigned char head[8] = {0};
    fth_file *f = NULL;
    pt_scan *scan = d->scan;
    FTH_TRY(fth_file_open(&f, scan->mem, scan->path, err));
    fth_status s = FTH_OK;
    if (fth_file_bytes(f) < sizeof head)
        s = FTH_FAIL(err, FTH_E_FILE_SHORT, "%s: expected a scan, found a file of %llu bytes",
                     scan->path, (unsigned long long)fth_file_bytes(f));
    else
        s = fth_file_read(f, 0, sizeof head, head, "the beginning", err);
    fth_file_close(f);
    FTH_TRY(s);
    if (memcmp(head, hdf5, sizeof hdf5) == 0) return pt_read_hdf5(d, err);
    if (memcmp(head, "PK", 2) == 0) return pt_read_npz(d, err);
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s is neither an NPZ nor an HDF5 file", scan->path);
    fth_err_hint(err, "scans are .npz, .cxi, .ptyd and .h5 files");
    return FTH_E_FILE_FORMAT;
}

/* ---- common to all formats ---- */

static void settle_kind(pt_draft *d)
{
    pt_scan *scan = d->scan;
    if (scan->kind_is_declared) return;
    scan->kind = d->integral ? PT_COUNTS : PT_AMPLITUDE;
    if (scan->format != PT_NPZ && scan->format != PT_PRODUCT) scan->kind = PT_COUNTS;
    if (d->opt->kind >= 0) scan->kind = (pt_kind)d->opt->kind;
    scan->kind_is_declared = d->opt->kind >= 0;
}

/* How much smaller numbers of pixels of the object are after the frames were cut: fewer pixels of
 * the detector make larger ones of the object. Binning alone changes nothing. */
static double cut_factor(const pt_draft *d)
{
    if (!pt_frames_are_cut(d) || d->rows != d->cols) return 1;
    return (double)(d->scan->N * d->opt->bin) / (double)d->rows;
}

static void settle_physics(pt_draft *d)
{
    pt_meta *m = &d->scan->meta;
    const pt_scan_options *o = d->opt;
    m->electrons = o->electrons;
    if (!isnan(o->energy_eV)) m->energy_eV = o->energy_eV;
    if (!isnan(o->distance_m)) m->distance_m = o->distance_m;
    if (!isnan(o->detector_pixel_m)) m->detector_pixel_m = o->detector_pixel_m;
    const double pitch = m->detector_pixel_m * (double)o->bin;
    const double dx =
        pt_wavelength(m->energy_eV, m->electrons) * m->distance_m / ((double)d->scan->N * pitch);
    m->pixel_m = isfinite(dx) && dx > 0 ? dx : m->pixel_m / cut_factor(d);
}

static fth_status to_pixels(pt_draft *d, fth_err *err)
{
    pt_scan *scan = d->scan;
    if (d->unit_m > 0 && !(scan->meta.pixel_m > 0)) {
        const pt_meta *m = &scan->meta;
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "%s: positions are in metres, and the pixel size of the object is not known "
                 "without%s%s%s",
                 scan->path, m->energy_eV > 0 ? "" : " energy",
                 m->distance_m > 0 ? "" : " distance",
                 m->detector_pixel_m > 0 ? "" : " detector pixel");
        fth_err_hint(err, "give --energy_eV, --distance_m and --detector_pixel_m");
        return FTH_E_FILE_KEY;
    }
    const double unit = d->unit_m > 0 ? d->unit_m / scan->meta.pixel_m : cut_factor(d);
    const double sign = scan->sign, scale = unit * d->opt->coord_scale,
                 fx = (d->opt->flip_x ? -sign : sign) * scale,
                 fy = (d->opt->flip_y ? -sign : sign) * scale;
    const bool apart = scan->start_x != scan->x;
    for (int64_t i = 0; i < scan->n; i++) {
        scan->x[i] *= fx;
        scan->y[i] *= fy;
        if (!apart) continue;
        scan->start_x[i] *= fx;
        scan->start_y[i] *= fy;
    }
    if (!d->opt->swap_xy) return FTH_OK;
    double *x = scan->x, *start = scan->start_x;
    scan->x = scan->y;
    scan->y = x;
    scan->start_x = scan->start_y;
    scan->start_y = start;
    return FTH_OK;
}

static fth_status finish(pt_draft *d, fth_err *err)
{
    pt_scan *scan = d->scan;
    settle_kind(d);
    if (d->opt->bin > 1 && scan->kind == PT_AMPLITUDE) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: amplitudes cannot be binned; expected counts",
                 scan->path);
        fth_err_hint(err, "leave out --bin, or give --data.kind counts");
        return FTH_E_FILE_FORMAT;
    }
    settle_physics(d);
    scan->sign = d->opt->sign ? d->opt->sign : d->own_sign;
    FTH_TRY(to_pixels(d, err));
    if (cut_factor(d) != 1 && d->unit_m == 0)
        FTH_TRY(pt_scan_warn(
            d->scan, err,
            "positions in pixels were rescaled: cropping the frames makes pixels %g times as large",
            1 / cut_factor(d)));
    if (cut_factor(d) != 1 && scan->object.n_axes) {
        scan->object = (fth_source){0};
        FTH_TRY(pt_scan_warn(d->scan, err,
                             "the object of the file is ignored: its pixels differ from those of "
                             "the cropped frames"));
    }
    FTH_TRY(pt_take_subset(d, err));
    if (d->opt->random && d->slow) FTH_TRY(pt_unpack(scan, &scan->patterns, &scan->patterns, err));
    return FTH_OK;
}

/* ---- open and close ---- */

fth_status pt_scan_open(pt_scan *out, fth_context *ctx, const char *path,
                        const pt_scan_options *opt, fth_err *err)
{
    const double unknown = (double)NAN;
    *out = (pt_scan){.ctx = ctx,
                     .mem = fth_context_mem(ctx),
                     .strict = opt->strict,
                     .meta = {unknown, unknown, unknown, unknown, unknown, unknown, 0, false}};
    pt_draft d = {.scan = out, .opt = opt, .centre_x = unknown, .centre_y = unknown, .own_sign = 1};
    if (strlen(path) >= sizeof out->path)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path of the scan is too long: %zu characters",
                        strlen(path));
    snprintf(out->path, sizeof out->path, "%s", path);
    fth_status s = fth_texts_create(&out->notes, out->mem, err);
    if (s == FTH_OK) s = read_file(&d, err);
    if (s == FTH_OK) s = finish(&d, err);
    if (s != FTH_OK) pt_scan_close(out);
    return s;
}

void pt_scan_close(pt_scan *scan)
{
    if (!scan->mem) return;
    pt_scan_release_parts(scan);
    fth_texts_free(scan->notes);
    *scan = (pt_scan){0};
}

fth_status pt_scan_load_object(pt_scan *scan, fth_tensor **out, fth_err *err)
{
    fth_tensor *t = NULL, *wide = NULL;
    *out = NULL;
    if (scan->object.n_axes == 0) return FTH_OK;
    if (scan->object.dtype == FTH_C128)
        return fth_source_load(&scan->object, scan->mem, "object", out, err);
    FTH_TRY(fth_source_load(&scan->object, scan->mem, "object", &t, err));
    const fth_status s =
        fth_tensor_create(&wide, scan->mem, "object", FTH_C128, 2, scan->object.size, err);
    if (s == FTH_OK) {
        const fth_c64 *from = fth_tensor_view(t);
        fth_c128 *to = fth_tensor_data(wide);
        for (int64_t i = 0; i < scan->object.size[0] * scan->object.size[1]; i++)
            to[i] = (fth_c128){(double)from[i].re, (double)from[i].im};
        *out = wide;
    }
    fth_tensor_release(t);
    return s;
}
