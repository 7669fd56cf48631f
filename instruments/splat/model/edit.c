/* edit.c - see edit.h.
 *
 * Spherical harmonics of one degree turn among themselves. The matrix is the sum of their products
 * over directions that integrate polynomials up to degree 7 exactly: four heights of Gauss and
 * Legendre times eight angles.
 */
#include "edit.h"

#include <fathom/json.h>

#include <math.h>
#include <string.h>

#define REAL double
#define SH(name) sh_##name
#include "../sh/sh.h"

void gs_model_lower(gs_model *m, int degree)
{
    const int64_t from = 3 * gs_coefficients(m->degree), to = 3 * gs_coefficients(degree);
    if (degree >= m->degree) return;
    float *rest = m->at[GS_SH_N];
    for (int64_t g = 0; g < m->n; g++)
        memmove(rest + g * to, rest + g * from, (size_t)to * sizeof *rest);
    m->degree = degree;
}

void gs_model_crop(gs_model *m, const double low[3], const double high[3])
{
    int64_t kept = 0;
    for (int64_t g = 0; g < m->n; g++) {
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            const double v = (double)m->at[GS_MEANS][3 * g + k];
            inside = inside && v >= low[k] && v <= high[k];
        }
        if (inside) gs_model_move(m, kept++, g);
    }
    gs_model_cut(m, kept);
}

/* ---- similarities ---- */

static double determinant(double m[3][3])
{
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
           m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/* The last of 4 rows, 0 0 0 1: other ones would be a projection. */
static bool is_last_row(const fth_json_value *rows)
{
    const fth_json_value *row = fth_json_at(rows, 3);
    if (fth_json_count(rows) != 4 || fth_json_count(row) != 4) return false;
    for (int j = 0; j < 4; j++) {
        const double v = fth_json_get_real(fth_json_at(row, j), NULL, (double)NAN);
        if (!(fabs(v - (j == 3 ? 1 : 0)) <= 1e-9)) return false;
    }
    return true;
}

static fth_status from_matrix(gs_similarity *t, double m[3][4], const char *path, fth_err *err)
{
    double plain[3][3], worst = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) plain[i][j] = m[i][j];
    const double det = determinant(plain);
    t->size = det > 0 ? cbrt(det) : 0;
    for (int i = 0; i < 3; i++) {
        t->shift[i] = m[i][3];
        for (int j = 0; j < 3; j++) t->rotation[i][j] = t->size > 0 ? plain[i][j] / t->size : 0;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double dot = i == j ? -1 : 0;
            for (int k = 0; k < 3; k++) dot += t->rotation[i][k] * t->rotation[j][k];
            if (!(fabs(dot) <= worst)) worst = fabs(dot);
        }
    if (worst <= 1e-4) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FORMAT,
             "%s: expected a rotation times one scale, and a shift, found a matrix that mirrors, "
             "shears or scales unevenly (by %.3g)",
             path, worst);
    fth_err_hint(err, "Gaussians can be rotated, scaled uniformly and shifted");
    return FTH_E_FILE_FORMAT;
}

fth_status gs_similarity_load(gs_similarity *t, fth_mem *mem, const char *path, fth_err *err)
{
    fth_json *doc = NULL;
    double m[3][4];
    bool good = true;
    FTH_TRY(fth_json_load(&doc, mem, path, err));
    const fth_json_value *rows = fth_json_root(doc);
    if (fth_json_get(rows, "matrix"))
        rows = fth_json_get(rows, "matrix");
    else if (fth_json_get(rows, "transform_matrix"))
        rows = fth_json_get(rows, "transform_matrix");
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            m[i][j] = fth_json_get_real(fth_json_at(fth_json_at(rows, i), j), NULL, (double)NAN);
            good = good && isfinite(m[i][j]);
            good = good && fth_json_count(fth_json_at(rows, i)) == 4;
        }
    const bool last = is_last_row(rows);
    fth_json_destroy(doc);
    if (good && last) return from_matrix(t, m, path, err);
    FTH_FAIL(err, FTH_E_FILE_FORMAT,
             good ? "%s: expected 0 0 0 1 as the fourth row of the matrix, found another or none"
                  : "%s: expected a matrix, 4 rows of 4 finite numbers, alone or as \"matrix\"",
             path);
    fth_err_hint(err, "write [[1,0,0,x], [0,1,0,y], [0,0,1,z], [0,0,0,1]] for a shift");
    return FTH_E_FILE_FORMAT;
}

/* ---- turning ---- */

/* The quaternion wxyz of a rotation matrix, by its largest component. */
static void quaternion_of(double r[3][3], double q[4])
{
    const double s[4] = {1 + r[0][0] + r[1][1] + r[2][2], 1 + r[0][0] - r[1][1] - r[2][2],
                         1 - r[0][0] + r[1][1] - r[2][2], 1 - r[0][0] - r[1][1] + r[2][2]};
    int k = 0;
    for (int i = 1; i < 4; i++)
        if (s[i] > s[k]) k = i;
    const double d[4][4] = {
        {s[0], r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]},
        {r[2][1] - r[1][2], s[1], r[0][1] + r[1][0], r[0][2] + r[2][0]},
        {r[0][2] - r[2][0], r[0][1] + r[1][0], s[2], r[1][2] + r[2][1]},
        {r[1][0] - r[0][1], r[0][2] + r[2][0], r[1][2] + r[2][1], s[3]},
    };
    for (int i = 0; i < 4; i++) q[i] = d[k][i] / (2 * sqrt(s[k]));
}

static void turn_quaternion(const double a[4], float *q)
{
    const double b[4] = {(double)q[0], (double)q[1], (double)q[2], (double)q[3]};
    q[0] = (float)(a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]);
    q[1] = (float)(a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]);
    q[2] = (float)(a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]);
    q[3] = (float)(a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]);
}

/* d[i][j]: how much of function j before is function i after; 0 between degrees. */
static void turn_functions(double r[3][3], double d[16][16])
{
    static const double height[2] = {0.33998104358485626, 0.86113631159405258},
                        weight[2] = {0.65214515486254614, 0.34785484513745386};
    const double pi = 3.14159265358979324;
    memset(d, 0, 256 * sizeof(double));
    for (int p = 0; p < 32; p++) {
        const int level = p % 4;
        const double z = level < 2 ? height[level] : -height[level - 2],
                     w = weight[level % 2] * pi / 4, s = sqrt(1 - z * z), a = pi / 4 * (p / 4);
        const double at[3] = {s * cos(a), s * sin(a), z};
        double back[3], here[16], there[16];
        for (int k = 0; k < 3; k++) back[k] = r[0][k] * at[0] + r[1][k] * at[1] + r[2][k] * at[2];
        sh_basis(3, at[0], at[1], at[2], here);
        sh_basis(3, back[0], back[1], back[2], there);
        for (int l = 1; l < 4; l++)
            for (int i = l * l; i < (l + 1) * (l + 1); i++)
                for (int j = l * l; j < (l + 1) * (l + 1); j++) d[i][j] += w * here[i] * there[j];
    }
}

static void turn_rest(double d[16][16], int degree, float *rest)
{
    double before[GS_COEFFICIENTS][3];
    const int k = (int)gs_coefficients(degree);
    for (int i = 0; i < k; i++)
        for (int c = 0; c < 3; c++) before[i][c] = (double)rest[3 * i + c];
    for (int i = 0; i < k; i++)
        for (int c = 0; c < 3; c++) {
            double sum = 0;
            for (int j = 0; j < k; j++) sum += d[i + 1][j + 1] * before[j][c];
            rest[3 * i + c] = (float)sum;
        }
}

void gs_model_transform(gs_model *m, gs_similarity *t)
{
    double q[4], d[16][16];
    const int64_t columns = gs_columns(GS_SH_N, m->degree);
    quaternion_of(t->rotation, q);
    turn_functions(t->rotation, d);
    for (int64_t g = 0; g < m->n; g++) {
        float *mean = m->at[GS_MEANS] + 3 * g;
        const double at[3] = {(double)mean[0], (double)mean[1], (double)mean[2]};
        for (int i = 0; i < 3; i++) {
            double sum = 0;
            for (int j = 0; j < 3; j++) sum += t->rotation[i][j] * at[j];
            mean[i] = (float)(t->size * sum + t->shift[i]);
            m->at[GS_SCALING][3 * g + i] += (float)log(t->size);
        }
        turn_quaternion(q, m->at[GS_ROTATION] + 4 * g);
        turn_rest(d, m->degree, m->at[GS_SH_N] + columns * g);
    }
}
