/* sources.c - points of the source: read from a file, or a fan of directions and wavelengths
 * (model 7).
 */
#include "sources.h"
#include "../ops/ops.h"

#include <inttypes.h>

enum { FILE_COLUMNS = 5 }; /* X Y Z weight lambda */

/* A vector of length 0 is left as it is. */
static void put_unit(double *to, const double *v)
{
    const double m = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int i = 0; i < 3; i++) to[i] = m != 0 ? v[i] / m : 0;
}

fth_status br_source_rows(br_columns *out, fth_mem *mem, const char *path, const double *beam,
                          bool strict, fth_err *err)
{
    FTH_TRY(br_columns_read(out, mem, path, FILE_COLUMNS, strict, err));
    double *v = fth_tensor_data(out->table);
    for (int64_t i = 0; i < out->rows; i++, v += FILE_COLUMNS) {
        for (int x = 0; x < 3; x++)
            if (isnan(v[x])) v[x] = -10 * beam[x];
        if (isnan(v[3])) v[3] = 1;
        const bool dark = v[4] <= 0, nowhere = v[0] == 0 && v[1] == 0 && v[2] == 0;
        if (!strict || !(dark || nowhere || v[3] < 0)) continue;
        const fth_status s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                      "%s: source %" PRId64
                                      ": expected X Y Z weight wavelength/m, found %g %g %g %g %g",
                                      path, i + 1, v[0], v[1], v[2], v[3], v[4]);
        fth_err_hint(err, "the direction has a length, the weight is not negative, the wavelength "
                          "is in metres and positive");
        fth_tensor_release(out->table);
        *out = (br_columns){0};
        return s;
    }
    return FTH_OK;
}

fth_status br_sources_read(fth_tensor **out, fth_mem *mem, const char *path, const double *beam,
                           bool strict, fth_err *err)
{
    *out = NULL;
    br_columns rows;
    FTH_TRY(br_source_rows(&rows, mem, path, beam, strict, err));
    const fth_status s = fth_tensor_create(out, mem, "sources", FTH_F64, 2,
                                           ((int64_t[2]){rows.rows, BR_SRC_COLUMNS}), err);
    const double *v = fth_tensor_data(rows.table);
    double *to = s == FTH_OK ? fth_tensor_data(*out) : NULL;
    for (int64_t i = 0; to && i < rows.rows; i++, v += FILE_COLUMNS, to += BR_SRC_COLUMNS) {
        put_unit(to + BR_SRC_X, v);
        to[BR_SRC_FIXED] = isnan(v[4]) ? 0 : v[4];
        to[BR_SRC_PART] = isnan(v[4]) ? 1 : 0;
        to[BR_SRC_WEIGHT] = v[3];
    }
    fth_tensor_release(rows.table);
    return s;
}

/* A pair of deviations of the grid, and whether it is inside the ellipse. Where a range is 0 the
 * quotient is NaN, and nothing is trimmed. */
static bool kept(const br_fan *f, int64_t ih, int64_t iv, double *h, double *v)
{
    *h = f->h_step * (double)ih - f->h_range / 2;
    *v = f->v_step * (double)iv - f->v_range / 2;
    const double a = *h * *h - f->h_step * f->h_step / 4 * (double)(1 - f->hs % 2);
    const double b = *v * *v - f->v_step * f->v_step / 4 * (double)(1 - f->vs % 2);
    const double q = a / f->h_range / f->h_range + b / f->v_range / f->v_range;
    return !(f->round && q * 4 > 1.1);
}

/* Checked before counting: at least half of a grid is inside its ellipse. */
static fth_status check(const br_fan *f, fth_mem *mem, fth_err *err)
{
    if (f->hs < 1 || f->vs < 1 || f->wavelengths < 1)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "sources: expected counts of at least 1, found %" PRId64 " x %" PRId64
                        " directions and %" PRId64 " wavelengths",
                        f->hs, f->vs, f->wavelengths);
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    const double n = (double)f->hs * (double)f->vs * (double)f->wavelengths;
    const double bytes = n * BR_SRC_COLUMNS * (double)sizeof(double);
    if (bytes / 2 <= (double)stats.budget_bytes) return FTH_OK;
    char budget[24];
    const fth_status s = FTH_FAIL(err, FTH_E_BUDGET,
                                  "%" PRId64 " x %" PRId64 " directions and %" PRId64
                                  " wavelengths are %g sources of %zu "
                                  "bytes; the budget is %s",
                                  f->hs, f->vs, f->wavelengths, n, BR_SRC_COLUMNS * sizeof(double),
                                  fth_mem_format_size(stats.budget_bytes, budget, sizeof budget));
    fth_err_hint(err, "lower -hdivsteps, -vdivsteps or -dispsteps, or give larger steps");
    return s;
}

static void put_fan(double *to, const br_scene *scene, const br_fan *f, double h, double v)
{
    const double *b = scene->beam;
    double d[3] = {-10 * b[0], -10 * b[1], -10 * b[2]};
    br_rotate_axis(d, scene->polar, v, d);
    br_rotate_axis(d, scene->vertical, h, d);
    for (int64_t i = 0; i < f->wavelengths; i++, to += BR_SRC_COLUMNS) {
        put_unit(to + BR_SRC_X, d);
        to[BR_SRC_FIXED] = 0;
        to[BR_SRC_PART] = 1.0 + f->dispersion_step * (double)i - f->dispersion / 2;
        to[BR_SRC_WEIGHT] = 1;
    }
}

fth_status br_sources_make(fth_tensor **out, fth_mem *mem, const br_scene *scene, const br_fan *fan,
                           void (*deviation)(void *user, double h, double v), void *user,
                           fth_err *err)
{
    *out = NULL;
    FTH_TRY(check(fan, mem, err));
    double h, v;
    int64_t n = 0;
    for (int64_t ih = 0; ih < fan->hs; ih++)
        for (int64_t iv = 0; iv < fan->vs; iv++) n += kept(fan, ih, iv, &h, &v);
    if (n == 0)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "sources: no direction of a grid of %" PRId64 " x %" PRId64
                        " is inside its ellipse",
                        fan->hs, fan->vs);
    FTH_TRY_CTX(fth_tensor_create(out, mem, "sources", FTH_F64, 2,
                                  ((int64_t[2]){n * fan->wavelengths, BR_SRC_COLUMNS}), err),
                err, "%" PRId64 " directions, %" PRId64 " wavelengths", n, fan->wavelengths);
    double *to = fth_tensor_data(*out);
    for (int64_t ih = 0; ih < fan->hs; ih++)
        for (int64_t iv = 0; iv < fan->vs; iv++) {
            if (!kept(fan, ih, iv, &h, &v)) continue;
            if (deviation) deviation(user, h, v);
            put_fan(to, scene, fan, h, v);
            to += fan->wavelengths * BR_SRC_COLUMNS;
        }
    return FTH_OK;
}
