/* make.c - the synthetic model, and its cameras and points as files of COLMAP. */
#include "toy.h"

#include <fathom/ops.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STREAM_TOY = 0, DRAWS = 64, DEGREE = 1 };
static const double pi = 3.14159265358979324;

static double draw(const gs_toy *toy, int64_t g, int k)
{
    return fth_random_uniform_at(toy->seed, 0, STREAM_TOY, g * DRAWS + k);
}

/* Half of them on a floor of radius 2.5, half on a ball of radius 1 above it; y points down. */
static void place(const gs_toy *toy, int64_t g, float *mean, double *colour)
{
    const double a = 2 * pi * draw(toy, g, 0), u = draw(toy, g, 1);
    if (g % 2 == 0) {
        const double r = 2.5 * sqrt(u);
        const double at[3] = {r * cos(a), 1, r * sin(a)};
        const bool dark = ((int)floor(2 * at[0]) + (int)floor(2 * at[2])) % 2 != 0;
        for (int k = 0; k < 3; k++) {
            mean[k] = (float)at[k];
            colour[k] = dark ? 0.15 : 0.75 - 0.1 * k;
        }
        return;
    }
    const double z = 2 * u - 1, s = sqrt(1 - z * z);
    const double at[3] = {s * cos(a), -0.2 + z, s * sin(a)};
    for (int k = 0; k < 3; k++) {
        mean[k] = (float)at[k];
        colour[k] = 0.5 + 0.4 * sin(3 * at[k] + k + 4 * z);
    }
}

fth_status gs_toy_model(gs_model *m, fth_mem *mem, const gs_toy *toy, fth_err *err)
{
    FTH_TRY(gs_model_create(m, mem, toy->gaussians, DEGREE, err));
    const double size = log(2.2 / sqrt((double)toy->gaussians));
    for (int64_t g = 0; g < toy->gaussians; g++) {
        double colour[3];
        place(toy, g, m->at[GS_MEANS] + 3 * g, colour);
        for (int k = 0; k < 3; k++) {
            m->at[GS_SH_0][3 * g + k] = (float)((colour[k] - 0.5) / GS_SH0);
            m->at[GS_SCALING][3 * g + k] = (float)(size + 0.6 * (draw(toy, g, 2 + k) - 0.5));
        }
        double q[4], square = 0;
        for (int k = 0; k < 4; k++) {
            q[k] = 2 * draw(toy, g, 5 + k) - 1;
            square += q[k] * q[k];
        }
        for (int k = 0; k < 4; k++) /* a unit, so that the PLY has the same numbers */
            m->at[GS_ROTATION][4 * g + k] = (float)(q[k] / sqrt(square));
        m->at[GS_OPACITY][g] = (float)(1 + 3 * draw(toy, g, 9));
        for (int k = 0; k < 9; k++)
            m->at[GS_SH_N][9 * g + k] = (float)(0.1 * (2 * draw(toy, g, 10 + k) - 1));
    }
    return FTH_OK;
}

/* ---- files of COLMAP ---- */

typedef struct buffer {
    uint8_t *data;
    uint64_t n;
} buffer;

static void add(buffer *b, const void *bytes, uint64_t n)
{
    memcpy(b->data + b->n, bytes, n);
    b->n += n;
}

#define ADD(b, type, value) add((b), &(type){(value)}, sizeof(type))

/* From the camera at `eye` to the middle of the ball, as COLMAP keeps it. */
static void look_from(const double eye[3], double q[4], double t[3])
{
    double z[3] = {-eye[0], -0.2 - eye[1], -eye[2]}, x[3], y[3];
    const double n = sqrt(z[0] * z[0] + z[1] * z[1] + z[2] * z[2]);
    for (int k = 0; k < 3; k++) z[k] /= n;
    const double flat = sqrt(z[0] * z[0] + z[2] * z[2]); /* never straight down */
    x[0] = z[2] / flat;
    x[1] = 0;
    x[2] = -z[0] / flat;
    y[0] = z[1] * x[2] - z[2] * x[1];
    y[1] = z[2] * x[0] - z[0] * x[2];
    y[2] = z[0] * x[1] - z[1] * x[0];
    const double r[3][3] = {{x[0], x[1], x[2]}, {y[0], y[1], y[2]}, {z[0], z[1], z[2]}};
    const double w = sqrt(fmax(0, 1 + r[0][0] + r[1][1] + r[2][2])) / 2;
    if (w > 0.05) {
        q[0] = w;
        q[1] = (r[2][1] - r[1][2]) / (4 * w);
        q[2] = (r[0][2] - r[2][0]) / (4 * w);
        q[3] = (r[1][0] - r[0][1]) / (4 * w);
    } else { /* nearly half a turn, about y for cameras that stand upright */
        const double v = sqrt(fmax(0, 1 - r[0][0] + r[1][1] - r[2][2])) / 2;
        q[0] = (r[0][2] - r[2][0]) / (4 * v);
        q[1] = (r[0][1] + r[1][0]) / (4 * v);
        q[2] = v;
        q[3] = (r[1][2] + r[2][1]) / (4 * v);
    }
    for (int i = 0; i < 3; i++) t[i] = -(r[i][0] * eye[0] + r[i][1] * eye[1] + r[i][2] * eye[2]);
}

static void put_cameras(const gs_toy *toy, buffer *b)
{
    const double f = 1.1 * (double)(toy->width > toy->height ? toy->width : toy->height);
    ADD(b, uint64_t, 1);
    ADD(b, uint32_t, 1);
    ADD(b, int32_t, 1); /* PINHOLE */
    ADD(b, uint64_t, (uint64_t)toy->width);
    ADD(b, uint64_t, (uint64_t)toy->height);
    ADD(b, double, f);
    ADD(b, double, f);
    ADD(b, double, (double)toy->width / 2);
    ADD(b, double, (double)toy->height / 2);
}

static void put_images(const gs_toy *toy, buffer *b)
{
    ADD(b, uint64_t, (uint64_t)toy->views);
    for (int64_t v = 0; v < toy->views; v++) {
        const double a = 2 * pi * (double)v / (double)toy->views;
        const double eye[3] = {4 * cos(a), v % 2 ? -1.6 : -0.6, 4 * sin(a)};
        double q[4], t[3];
        char name[32];
        look_from(eye, q, t);
        ADD(b, uint32_t, (uint32_t)v + 1);
        add(b, q, sizeof q);
        add(b, t, sizeof t);
        ADD(b, uint32_t, 1);
        snprintf(name, sizeof name, "view_%04d.png", (int)v);
        add(b, name, strlen(name) + 1);
        ADD(b, uint64_t, 0);
    }
}

/* A small offset from the Gaussian, as points of a reconstruction have. */
static void put_points(const gs_model *m, const gs_toy *toy, buffer *b)
{
    ADD(b, uint64_t, (uint64_t)((m->n + 1) / 2));
    for (int64_t g = 0; g < m->n; g += 2) {
        ADD(b, uint64_t, (uint64_t)g + 1);
        const int64_t from = g / 2 % 2 && g + 1 < m->n ? g + 1 : g; /* floor and ball */
        for (int k = 0; k < 3; k++)
            ADD(b, double,
                (double)m->at[GS_MEANS][3 * from + k] + 0.02 * (draw(toy, from, 40 + k) - 0.5));
        for (int k = 0; k < 3; k++) {
            const double c = 255 * (0.5 + GS_SH0 * (double)m->at[GS_SH_0][3 * from + k]);
            ADD(b, uint8_t, (uint8_t)(c > 255 ? 255 : c > 0 ? c : 0));
        }
        ADD(b, double, 0.5);
        ADD(b, uint64_t, 0);
    }
}

fth_status gs_toy_colmap(const gs_model *m, const char *folder, const gs_toy *toy, fth_err *err)
{
    static const char *const names[3] = {"cameras.bin", "images.bin", "points3D.bin"};
    const uint64_t most = 256 + 128 * (uint64_t)toy->views + 51 * (uint64_t)m->n;
    void *block = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, most, "files of COLMAP", &block, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < 3; i++) {
        char path[FTH_PATH];
        buffer b = {block, 0};
        if (i == 0) put_cameras(toy, &b);
        if (i == 1) put_images(toy, &b);
        if (i == 2) put_points(m, toy, &b);
        s = fth_path_join(path, folder, names[i], err);
        if (s == FTH_OK) s = fth_file_save(m->mem, path, b.data, b.n, err);
    }
    (void)fth_mem_release(m->mem, block, NULL);
    return s;
}
