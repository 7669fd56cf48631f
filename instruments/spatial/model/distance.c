/* distance.c - distances between groups, as a user gives them, replaced by those of an embedding
 * (model 4.3).
 *
 * Any symmetric table is accepted; classical scaling turns it into points: B = -1/2 C D2 C has the
 * points' inner products, a negative eigenvalue, which no Euclidean distances have, becomes 0. 1e-6
 * is added to each, so that groups never coincide. The default of all distances 1 gives 1.000002 by
 * the same rule.
 */
#include "kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIFT 1e-6

/* ---- reading ---- */

/* Numbers of a text file, separated by commas or blanks; lines that start with # are left out. */
static fth_status read_text(fth_reader *r, double *v, int64_t groups, fth_err *err)
{
    int64_t n = 0;
    while (n <= groups * groups) {
        fth_text_field f;
        char word[FTH_READER_NUMBER];
        const char *end = NULL;
        FTH_TRY(fth_reader_word(r, ",; \t\v\f\r", '#', &f, err));
        if (!f.text) break;
        memcpy(word, f.text, f.n);
        word[f.n] = '\0';
        const double x = fth_strtod(word, &end);
        if (*end != '\0')
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: a number was expected, '%s' was found",
                            r->path, word);
        if (n < groups * groups) v[n] = x;
        n++;
    }
    if (n == groups * groups) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %lld groups need %lld numbers, %s%lld were found",
                    r->path, (long long)groups, (long long)(groups * groups),
                    n > groups * groups ? "at least " : "", (long long)n);
}

static fth_status read_csv(double *v, fth_mem *mem, int64_t groups, const char *path, fth_err *err)
{
    fth_reader r;
    FTH_TRY(fth_reader_open(&r, mem, path, &(fth_reader_options){.keep_bom = true}, err));
    const fth_status s = read_text(&r, v, groups, err);
    fth_reader_close(&r);
    return s;
}

static fth_status read_npy(double *v, fth_mem *mem, int64_t groups, const char *path, fth_err *err)
{
    fth_source source = {0};
    fth_tensor *t = NULL;
    FTH_TRY(fth_npy_open(&source, mem, path, err));
    fth_status s = FTH_OK;
    if (source.n_axes != 2 || source.size[0] != groups || source.size[1] != groups ||
        (source.dtype != FTH_F32 && source.dtype != FTH_F64))
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: f32 or f64 [%lld %lld] was expected, %s with %d axes was found", path,
                     (long long)groups, (long long)groups, fth_dtype_name(source.dtype),
                     source.n_axes);
    if (s == FTH_OK) s = fth_source_load(&source, mem, "distances", &t, err);
    for (int64_t i = 0; s == FTH_OK && i < groups * groups; i++)
        v[i] = source.dtype == FTH_F64 ? ((const double *)fth_tensor_data(t))[i]
                                       : (double)((const float *)fth_tensor_data(t))[i];
    fth_tensor_release(t);
    fth_source_close(&source);
    return s;
}

static fth_status check(const double *v, int64_t groups, const char *path, fth_err *err)
{
    for (int64_t i = 0; i < groups; i++)
        for (int64_t j = 0; j <= i; j++) {
            const double x = v[i * groups + j], y = v[j * groups + i];
            const bool fine = isfinite(x) && x >= 0.0 && (i != j || x == 0.0) &&
                              fabs(x - y) <= 1e-6 * fmax(fabs(x), fabs(y));
            if (fine) continue;
            const fth_status s = FTH_FAIL(
                err, FTH_E_FILE_FORMAT,
                "%s: distances are finite, not negative, symmetric and 0 on the diagonal; between "
                "groups %lld and %lld there are %g and %g",
                path, (long long)i, (long long)j, x, y);
            fth_err_hint(err, "correct the table: row and column g are group g of metadata.json");
            return s;
        }
    return FTH_OK;
}

/* ---- classical scaling ---- */

/* One rotation that makes b[p][q] zero; the columns of u follow. */
static void rotate(double *b, double *u, int64_t n, int64_t p, int64_t q)
{
    const double off = b[p * n + q];
    if (off == 0.0) return;
    const double theta = (b[q * n + q] - b[p * n + p]) / (2.0 * off);
    const double t = (theta < 0.0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
    const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
    for (int64_t k = 0; k < n; k++) {
        const double x = b[k * n + p], y = b[k * n + q];
        b[k * n + p] = c * x - s * y;
        b[k * n + q] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) {
        const double x = b[p * n + k], y = b[q * n + k];
        b[p * n + k] = c * x - s * y;
        b[q * n + k] = s * x + c * y;
    }
    for (int64_t k = 0; k < n; k++) {
        const double x = u[k * n + p], y = u[k * n + q];
        u[k * n + p] = c * x - s * y;
        u[k * n + q] = s * x + c * y;
    }
}

/* Eigenvalues onto the diagonal of b, vectors into the columns of u: Jacobi, for tables of groups.
 */
static void diagonalise(double *b, double *u, int64_t n)
{
    double norm = 0.0;
    for (int64_t i = 0; i < n * n; i++) {
        u[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
        norm += b[i] * b[i];
    }
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0.0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) off += b[p * n + q] * b[p * n + q];
        if (off <= 1e-32 * norm) return;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) rotate(b, u, n, p, q);
    }
}

/* v[i][j] become the squared distances of the embedding; b and u are room for n * n each. */
static void embed(double *v, double *b, double *u, int64_t n)
{
    double all = 0.0;
    for (int64_t i = 0; i < n * n; i++) all += v[i] * v[i] / (double)(n * n);
    for (int64_t i = 0; i < n; i++) {
        double row = 0.0;
        for (int64_t k = 0; k < n; k++) row += v[i * n + k] * v[i * n + k] / (double)n;
        u[i] = row;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            b[i * n + j] = -0.5 * (v[i * n + j] * v[i * n + j] - u[i] - u[j] + all);
    diagonalise(b, u, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double d2 = 0.0;
            for (int64_t k = 0; k < n; k++) {
                const double d = u[i * n + k] - u[j * n + k];
                d2 += d * d * (fmax(b[k * n + k], 0.0) + LIFT);
            }
            v[i * n + j] = i == j ? 0.0 : d2;
        }
}

fth_status sp_group_distance_read(fth_tensor **out, fth_mem *mem, const char *path, int64_t groups,
                                  fth_err *err)
{
    void *room = NULL;
    fth_tensor *t = NULL;
    const size_t n = strlen(path);
    const bool npy = n > 4 && strcmp(path + n - 4, ".npy") == 0;
    *out = NULL;
    FTH_TRY(fth_tensor_create(&t, mem, "group distances", FTH_F64, 2, ((int64_t[]){groups, groups}),
                              err));
    double *v = fth_tensor_data(t);
    fth_status s = npy ? read_npy(v, mem, groups, path, err) : read_csv(v, mem, groups, path, err);
    if (s == FTH_OK) s = check(v, groups, path, err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, 2 * (uint64_t)(groups * groups) * sizeof(double),
                         "embedding", &room, err);
    if (s != FTH_OK) {
        fth_tensor_release(t);
        return s;
    }
    embed(v, room, (double *)room + groups * groups, groups);
    fth_mem_release(mem, room, NULL);
    *out = t;
    return FTH_OK;
}
