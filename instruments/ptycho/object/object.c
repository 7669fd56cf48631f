/* object.c - see object.h. Draws come in the order in which PtychoPINN makes them. */
#include "object.h"

#include "blur.h"

#include <math.h>
#include <string.h>

static fth_status take_image(fth_context *ctx, int64_t n, double **out, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth_mem_take(fth_context_mem(ctx), FTH_MEM_ANY, (uint64_t)(n * n) * sizeof(double),
                         "object", &block, err));
    *out = block;
    return FTH_OK;
}

/* ---- lines ---- */

static int64_t sign_of(int64_t v)
{
    return v > 0 ? 1 : -1;
}

/* Bresenham's line, as scikit-image draws it: steps along the longer axis. */
static void draw_line(double *image, int64_t n, int64_t r, int64_t c, int64_t r1, int64_t c1)
{
    int64_t dr = r1 > r ? r1 - r : r - r1, dc = c1 > c ? c1 - c : c - c1;
    int64_t sr = sign_of(r1 - r), sc = sign_of(c1 - c), t;
    const bool steep = dr > dc;
    if (steep) {
        t = c, c = r, r = t;
        t = dc, dc = dr, dr = t;
        t = sc, sc = sr, sr = t;
    }
    int64_t d = 2 * dr - dc;
    for (int64_t i = 0; i < dc; i++) {
        image[steep ? c * n + r : r * n + c] = 1;
        while (d >= 0) {
            r += sr;
            d -= 2 * dc;
        }
        c += sc;
        d += 2 * dr;
    }
    image[steep ? c * n + r : r * n + c] = 1; /* the last pixel: where the walk has arrived */
}

void pt_lines_draw(pt_compat *r, int64_t n, int64_t lines, double *out)
{
    memset(out, 0, (size_t)(n * n) * sizeof *out);
    for (int64_t i = 0; i < lines; i++) {
        int64_t at[4];
        for (int k = 0; k < 4; k++) at[k] = (int64_t)((double)n * pt_compat_double(r));
        draw_line(out, n, at[0], at[1], at[2], at[3]);
    }
}

fth_status pt_lines(fth_context *ctx, pt_compat *r, int64_t n, int64_t lines, double *out,
                    fth_err *err)
{
    static const struct {
        double weight, sigma;
    } blurs[] = {{1, 1}, {2, 5}, {5, 10}};
    fth_mem *mem = fth_context_mem(ctx);
    double *sharp = NULL, *soft = NULL;
    FTH_TRY(take_image(ctx, n, &sharp, err));
    fth_status s = take_image(ctx, n, &soft, err);
    if (s == FTH_OK) pt_lines_draw(r, n, lines, sharp);
    for (int k = 0; s == FTH_OK && k < 3; k++) {
        memcpy(soft, sharp, (size_t)(n * n) * sizeof *soft);
        s = pt_blur(ctx, soft, n, n, blurs[k].sigma, err);
        for (int64_t i = 0; s == FTH_OK && i < n * n; i++)
            out[i] = (k ? out[i] : 0) + blurs[k].weight * soft[i];
    }
    fth_mem_release(mem, soft, NULL);
    fth_mem_release(mem, sharp, NULL);
    return s;
}

/* ---- points and diagonals ---- */

/* The image blurred, and five times itself blurred ten times as far. */
static fth_status two_blurs(fth_context *ctx, int64_t n, double sigma, double *image, fth_err *err)
{
    double *far = NULL;
    FTH_TRY(pt_blur(ctx, image, n, n, sigma, err));
    FTH_TRY(take_image(ctx, n, &far, err));
    memcpy(far, image, (size_t)(n * n) * sizeof *far);
    const fth_status s = pt_blur(ctx, far, n, n, 10 * sigma, err);
    for (int64_t i = 0; s == FTH_OK && i < n * n; i++) image[i] += 5 * far[i];
    fth_mem_release(fth_context_mem(ctx), far, NULL);
    return s;
}

fth_status pt_points(fth_context *ctx, pt_compat *r, int64_t n, double *out, fth_err *err)
{
    const int64_t points = (int64_t)((double)(n * n) * 0.1);
    memset(out, 0, (size_t)(n * n) * sizeof *out);
    for (int64_t i = 0; i < points; i++) out[pt_compat_interval(r, (uint32_t)(n * n - 1))] += 1;
    return two_blurs(ctx, n, 1, out, err);
}

fth_status pt_diagonals(fth_context *ctx, pt_compat *r, int64_t n, double *out, fth_err *err)
{
    enum { LINES = 40 };
    const uint32_t last = (uint32_t)(n - 1);
    memset(out, 0, (size_t)(n * n) * sizeof *out);
    for (int k = 0; k < LINES; k++) {
        const int64_t x = (int64_t)pt_compat_interval(r, last);
        for (int64_t i = 0; i < n; i++) out[i * n + x] = 1;
    }
    for (int k = 0; k < LINES; k++) {
        const int64_t y = (int64_t)pt_compat_interval(r, last);
        for (int64_t i = 0; i < n; i++) out[y * n + i] = 1;
    }
    for (int k = 0; k < LINES; k++) {
        int64_t x = (int64_t)pt_compat_interval(r, last), y = (int64_t)pt_compat_interval(r, last);
        const int64_t off = x < y ? x : y;
        x -= off;
        y -= off;
        for (int64_t i = x, j = y; i < n - y && j < n - x; i++, j++) {
            out[i * n + j] = 1;
            out[i * n + (j ? n - j : 0)] = 1; /* mirrored, as a negative index counts */
        }
    }
    return two_blurs(ctx, n, 0.75, out, err);
}

/* ---- the object of a simulation ---- */

static fth_status cut_lines(fth_context *ctx, pt_compat *r, int64_t n, int64_t lines, double *out,
                            fth_err *err)
{
    double *large = NULL;
    FTH_TRY(take_image(ctx, 2 * n, &large, err));
    const fth_status s = pt_lines(ctx, r, 2 * n, lines, large, err);
    for (int64_t i = 0; s == FTH_OK && i < n; i++)
        memcpy(out + i * n, large + (i + n / 2) * 2 * n + n / 2, (size_t)n * sizeof *out);
    fth_mem_release(fth_context_mem(ctx), large, NULL);
    return s;
}

fth_status pt_object_make(fth_context *ctx, pt_object_kind kind, int64_t n, int64_t lines,
                          uint32_t seed, double *out, fth_err *err)
{
    pt_compat r;
    pt_compat_seed(&r, seed);
    if (kind == PT_OBJECT_LINES) return cut_lines(ctx, &r, n, lines, out, err);
    if (kind == PT_OBJECT_POINTS) return pt_points(ctx, &r, n, out, err);
    if (kind == PT_OBJECT_DIAGONALS) return pt_diagonals(ctx, &r, n, out, err);
    if (kind == PT_OBJECT_GRF) return pt_field(ctx, &r, n, out, err);
    return FTH_FAIL(err, FTH_E_COMMAND, "an object of that kind is read from a file");
}
