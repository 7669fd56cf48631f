/* recon.c - see recon.h. */
#include "recon.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* An open file as its named arrays, whichever container it is. */
typedef struct arrays {
    fth_npz *npz;
    fth_h5 *h5;
} arrays;

static bool has(const arrays *a, const char *name)
{
    if (a->h5) return fth_h5_kind_of(a->h5, name) == FTH_H5_DATASET;
    for (int64_t i = 0; i < fth_npz_count(a->npz); i++)
        if (strcmp(fth_npz_name(a->npz, i), name) == 0) return true;
    return false;
}

static fth_status source_of(arrays *a, const char *name, fth_source *out, fth_err *err)
{
    return a->h5 ? fth_h5_source(a->h5, name, out, err) : fth_npz_source(a->npz, name, out, err);
}

/* ---- the object ---- */

static fth_status read_object(pt_recon *r, arrays *a, const char *name, fth_err *err)
{
    fth_source s = {0};
    char what[FTH_PATH + 80];
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(what, sizeof what, "'%s' of %s", name, r->path);
    FTH_TRY(source_of(a, name, &s, err));
    /* a trailing axis of one element is how some programs keep channels */
    if (s.n_axes == 3 && s.size[2] == 1 && s.size[1] > 1) {
        fth_source_close(&s);
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s is %lld x %lld x 1; an image [row col] or slices [slice row col] are "
                        "expected",
                        what, (long long)s.size[0], (long long)s.size[1]);
    }
    const fth_status status = pt_image_load(&r->object, r->mem, &s, 0, what, err);
    fth_source_close(&s);
    return status;
}

static fth_status no_object(const pt_recon *r, const arrays *a, fth_err *err)
{
    char names[600] = "";
    size_t used = 0;
    for (int64_t i = 0; a->npz && i < fth_npz_count(a->npz) && used < sizeof names - 70; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.60s", i ? ", " : "",
                                 fth_npz_name(a->npz, i));
    FTH_FAIL(err, FTH_E_FILE_KEY,
             "%s has no object: neither reconstructed_object nor objectGuess nor object%s%s",
             r->path, a->npz ? "; it has " : "", names);
    fth_err_hint(err, "name the array: %s:NAME", fth_path_name(r->path));
    return FTH_E_FILE_KEY;
}

/* The names an object goes by, or the only complex image of the file that is no probe. */
static fth_status find_object(pt_recon *r, arrays *a, char *name, size_t bytes, fth_err *err)
{
    static const char *const known[] = {"reconstructed_object", "objectGuess", "object",
                                        "/raw_data/objectGuess"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (has(a, known[i])) {
            snprintf(name, bytes, "%s", known[i]);
            r->is_scan = i == 1;
            return FTH_OK;
        }
    int64_t found = -1, n = 0;
    for (int64_t i = 0; a->npz && i < fth_npz_count(a->npz); i++) {
        fth_source s = {0};
        fth_err ignored = {0};
        if (strcasestr(fth_npz_name(a->npz, i), "probe")) continue;
        if (fth_npz_source(a->npz, fth_npz_name(a->npz, i), &s, &ignored) != FTH_OK) continue;
        if (s.n_axes == 2 && fth_dtype_is_complex(s.dtype)) {
            found = i;
            n++;
        }
        fth_source_close(&s);
    }
    if (n != 1) return no_object(r, a, err);
    snprintf(name, bytes, "%s", fth_npz_name(a->npz, found));
    return FTH_OK;
}

/* ---- what comes with it ---- */

/* A list of real numbers as f64; nothing where there is none or it is not one. */
static fth_status read_numbers(const pt_recon *r, arrays *a, const char *name, int n_axes,
                               fth_tensor **out, fth_err *err)
{
    fth_source s = {0};
    fth_tensor *t = NULL;
    *out = NULL;
    if (!has(a, name)) return FTH_OK;
    FTH_TRY(source_of(a, name, &s, err));
    fth_status status = FTH_OK;
    if (s.n_axes != n_axes || (s.dtype != FTH_F64 && s.dtype != FTH_F32)) {
        fth_source_close(&s);
        return FTH_OK; /* of another program: its meaning is unknown */
    }
    status = fth_source_load(&s, r->mem, name, &t, err);
    if (status == FTH_OK && s.dtype == FTH_F32) {
        status = fth_tensor_create(out, r->mem, name, FTH_F64, n_axes, s.size, err);
        const float *from = fth_tensor_data(t);
        double *to = status == FTH_OK ? fth_tensor_data(*out) : NULL;
        const int64_t n = s.size[0] * (n_axes > 1 ? s.size[1] : 1);
        for (int64_t i = 0; to && i < n; i++) to[i] = (double)from[i];
        (void)fth_tensor_release(t);
    } else if (status == FTH_OK) {
        *out = t;
    }
    fth_source_close(&s);
    return status;
}

static fth_status read_probe(pt_recon *r, arrays *a, const char *name, fth_err *err)
{
    fth_source s = {0};
    char what[FTH_PATH + 80];
    if (!has(a, name)) return FTH_OK;
    snprintf(what, sizeof what, "'%s' of %s", name, r->path);
    FTH_TRY(source_of(a, name, &s, err));
    int64_t modes = 1;
    for (int d = 0; d < s.n_axes - 2; d++) modes *= s.size[d];
    const bool good = s.n_axes >= 2 && s.n_axes <= 4 && fth_dtype_is_complex(s.dtype) &&
                      s.size[s.n_axes - 1] == s.size[s.n_axes - 2] && modes > 0 &&
                      s.size[s.n_axes - 1] > 0;
    fth_status status = FTH_OK;
    if (good) {
        const int64_t side = s.size[s.n_axes - 1], size[3] = {modes, side, side};
        status = fth_tensor_create(&r->probe, r->mem, "probe", FTH_C64, 3, size, err);
        for (int64_t m = 0; status == FTH_OK && m < modes; m++) {
            pt_image one;
            status = pt_image_load(&one, r->mem, &s, m, what, err);
            if (status != FTH_OK) break;
            memcpy((fth_c64 *)fth_tensor_data(r->probe) + m * side * side, one.at,
                   (size_t)(side * side) * sizeof(fth_c64));
            pt_image_free(&one);
        }
        r->modes = modes;
        r->side = side;
    }
    fth_source_close(&s);
    return status;
}

/* x and y of a scan as positions. */
static fth_status read_coordinates(pt_recon *r, arrays *a, fth_err *err)
{
    fth_tensor *x = NULL, *y = NULL;
    fth_status s = read_numbers(r, a, "xcoords", 1, &x, err);
    if (s == FTH_OK) s = read_numbers(r, a, "ycoords", 1, &y, err);
    if (s == FTH_OK && x && y && fth_tensor_size(x, 0) == fth_tensor_size(y, 0)) {
        const int64_t size[2] = {fth_tensor_size(x, 0), 2};
        s = fth_tensor_create(&r->positions, r->mem, "positions", FTH_F64, 2, size, err);
        const double *px = fth_tensor_data(x), *py = fth_tensor_data(y);
        double *to = s == FTH_OK ? fth_tensor_data(r->positions) : NULL;
        for (int64_t i = 0; to && i < size[0]; i++) {
            to[2 * i] = px[i];
            to[2 * i + 1] = py[i];
        }
    }
    (void)fth_tensor_release(x);
    (void)fth_tensor_release(y);
    return s;
}

static fth_status read_rest(pt_recon *r, arrays *a, fth_err *err)
{
    fth_tensor *origin = NULL;
    FTH_TRY(read_probe(r, a,
                       has(a, "reconstructed_probe") ? "reconstructed_probe"
                       : has(a, "probe")             ? "probe"
                                                     : "probeGuess",
                       err));
    FTH_TRY(read_numbers(r, a, "positions", 2, &r->positions, err));
    if (r->positions && fth_tensor_size(r->positions, 1) != 2) {
        (void)fth_tensor_release(r->positions);
        r->positions = NULL;
    }
    if (!r->positions) FTH_TRY(read_coordinates(r, a, err));
    if (r->positions) r->n_positions = fth_tensor_size(r->positions, 0);
    FTH_TRY(read_numbers(r, a, "canvas_origin", 1, &origin, err));
    if (origin && fth_tensor_size(origin, 0) == 2) {
        const double *v = fth_tensor_data(origin);
        r->origin_x = v[0];
        r->origin_y = v[1];
        r->has_origin = isfinite(v[0]) && isfinite(v[1]);
    }
    (void)fth_tensor_release(origin);
    if (r->is_scan) r->has_origin = true;
    FTH_TRY(read_numbers(r, a, a->h5 ? "loss_values" : "error_history", 1, &r->errors, err));
    if (r->errors) r->n_errors = fth_tensor_size(r->errors, 0);
    return FTH_OK;
}

/* ---- files ---- */

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcasecmp(path + n - m, ending) == 0;
}

static fth_status read_npy(pt_recon *r, fth_err *err)
{
    fth_source s = {0};
    FTH_TRY(fth_npy_open(&s, r->mem, r->path, err));
    const fth_status status = pt_image_load(&r->object, r->mem, &s, 0, r->path, err);
    fth_source_close(&s);
    return status;
}

static fth_status read_container(pt_recon *r, const char *wanted, fth_err *err)
{
    arrays a = {0};
    char name[64];
    fth_status s = ends_with(r->path, ".npz") ? fth_npz_open(&a.npz, r->mem, r->path, err)
                                              : fth_h5_open(&a.h5, r->mem, r->path, err);
    if (s != FTH_OK) return s;
    if (!wanted) {
        s = find_object(r, &a, name, sizeof name, err);
    } else {
        snprintf(name, sizeof name, "%s", wanted);
        r->is_scan = strcmp(name, "objectGuess") == 0;
    }
    if (s == FTH_OK) s = read_object(r, &a, name, err);
    if (s == FTH_OK) s = read_rest(r, &a, err);
    if (s == FTH_OK && a.h5 && fth_h5_attr_exists(a.h5, name, "pixel_width_m")) {
        int64_t n = 0;
        fth_err ignored = {0};
        if (fth_h5_attr_f64(a.h5, name, "pixel_width_m", &r->pixel_m, 1, &n, &ignored) != FTH_OK)
            r->pixel_m = 0;
    }
    if (a.npz) fth_npz_close(a.npz);
    if (a.h5) fth_h5_close(a.h5);
    return s;
}

fth_status pt_recon_open(pt_recon *out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = (pt_recon){.mem = mem};
    const char *colon = strrchr(path, ':');
    const bool named = colon && colon > path && !fth_path_exists(path);
    const size_t n = named ? (size_t)(colon - path) : strlen(path);
    if (n >= sizeof out->path)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path %.80s... is too long", path);
    memcpy(out->path, path, n);
    fth_path_info info;
    FTH_TRY(fth_path_stat(out->path, &info, err));
    fth_status s;
    if (ends_with(out->path, ".npy"))
        s = read_npy(out, err);
    else if (ends_with(out->path, ".npz") || ends_with(out->path, ".h5") ||
             ends_with(out->path, ".hdf5"))
        s = read_container(out, named ? colon + 1 : NULL, err);
    else
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: an object is read from .npz, .npy, .h5 and .hdf5 files", out->path);
    if (s != FTH_OK) pt_recon_close(out);
    return s;
}

void pt_recon_close(pt_recon *r)
{
    pt_image_free(&r->object);
    (void)fth_tensor_release(r->probe);
    (void)fth_tensor_release(r->positions);
    (void)fth_tensor_release(r->errors);
    *r = (pt_recon){0};
}

uint64_t pt_recon_bytes(const pt_recon *r)
{
    uint64_t sum = 0;
    fth_tensor *const all[] = {r->object.tensor, r->probe, r->positions, r->errors};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]) sum += fth_tensor_bytes(all[i]);
    return sum;
}

bool pt_has_patterns(fth_mem *mem, const char *path)
{
    fth_err ignored = {0};
    fth_npz *npz = NULL;
    if (ends_with(path, ".npy") || !fth_path_exists(path)) return false;
    if (!ends_with(path, ".npz")) return true;
    if (fth_npz_open(&npz, mem, path, &ignored) != FTH_OK) return false;
    const arrays a = {.npz = npz};
    const bool found = has(&a, "diff3d") || has(&a, "diffraction");
    fth_npz_close(npz);
    return found;
}
