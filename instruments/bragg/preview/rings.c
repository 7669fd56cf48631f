/* rings.c - lines of equal resolution, traced through a coarse grid of the detector.
 *
 * The scattering angle is known at every pixel of any detector, flat or curved, and marching
 * squares find its level lines: no formula per geometry is needed.
 */
#include "rings.h"
#include "../ops/render/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELLS = 128, NODES = CELLS + 1 };

typedef struct field {
    int cells[2];              /* along fast, slow */
    double at[2][NODES];       /* pixels */
    double stol[NODES][NODES]; /* sin(theta)/lambda = 1/2d, 1/Angstrom: [slow][fast] */
    double most;
} field;

static void set_nodes(field *f, int axis, int64_t pixels)
{
    f->cells[axis] = pixels - 1 < CELLS ? (int)pixels - 1 : CELLS;
    for (int i = 0; i <= f->cells[axis]; i++)
        f->at[axis][i] = f->cells[axis] ? (double)(i * (pixels - 1) / f->cells[axis]) : 0;
}

static fth_status fill(field *f, const br_experiment *e, fth_err *err)
{
    br_scene one = e->scene; /* centres of pixels; the cell is not used */
    one.oversample = one.phis = one.mosaics = one.layers = 1;
    one.mosaic_given = 0;
    void *work = NULL;
    br_view v;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, br_view_bytes(&one), "view of rings", &work, err));
    br_view_make(&v, &one, &(br_arrays){.param = e->param, .source = fth_tensor_data(e->source)},
                 work);
    set_nodes(f, 0, one.fast);
    set_nodes(f, 1, one.slow);
    for (int y = 0; y <= f->cells[1]; y++)
        for (int x = 0; x <= f->cells[0]; x++) {
            const br_row row = {.slow = (int64_t)f->at[1][y], .fast = (int64_t)f->at[0][x], .n = 1};
            double p[3], d[3];
            br_position(&v, &row, 0, (int64_t[3]){0, 0, 0}, p);
            br_unit(p, d);
            const double c = d[0] * one.beam[0] + d[1] * one.beam[1] + d[2] * one.beam[2];
            const double s = sqrt(c < 1 ? (1 - c) / 2 : 0) / (v.lambda * 1e10);
            f->stol[y][x] = s;
            if (s > f->most) f->most = s;
        }
    return fth_mem_release(e->mem, work, err);
}

/* Round numbers: two digits. */
static double rounded(double d)
{
    const double unit = pow(10, floor(log10(d)) - 1);
    return rint(d / unit) * unit;
}

static void choose(br_rings *r, const field *f)
{
    for (int i = 0; i < BR_RINGS; i++) {
        const double d = rounded(0.5 / (f->most * 0.95 * (i + 1) / BR_RINGS));
        if (isfinite(d) && (r->n == 0 || d < r->d[r->n - 1])) r->d[r->n++] = d;
    }
}

/* The pieces of a level line in one cell of the grid; returns how many, up to two. */
static int pieces(const field *f, int x, int y, double level, double piece[2][4])
{
    static const int corner[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    double crossing[4][2];
    int n = 0;
    for (int k = 0; k < 4; k++) {
        const int *a = corner[k], *b = corner[(k + 1) % 4];
        const double u = f->stol[y + a[1]][x + a[0]], w = f->stol[y + b[1]][x + b[0]];
        if ((u < level) == (w < level)) continue;
        const double t = (level - u) / (w - u);
        for (int i = 0; i < 2; i++) {
            const double *at = f->at[i] + (i ? y : x);
            crossing[n][i] = at[a[i]] + t * (at[b[i]] - at[a[i]]);
        }
        n++;
    }
    for (int k = 0; k < n / 2; k++) {
        memcpy(piece[k], crossing[2 * k], sizeof crossing[0]);
        memcpy(piece[k] + 2, crossing[2 * k + 1], sizeof crossing[0]);
    }
    return n / 2;
}

/* The label of a ring is at its upper right, as far from the edges as it is long. */
static void note_label(br_rings *r, const field *f, int ring, const double *at)
{
    const double most[2] = {f->at[0][f->cells[0]], f->at[1][f->cells[1]]};
    double *label = r->label_at[ring];
    for (int i = 0; i < 2; i++)
        if (at[i] < 0.04 * most[i] || at[i] > 0.96 * most[i]) return;
    if (at[0] - at[1] <= label[0] - label[1]) return; /* NaN before the first */
    memcpy(label, at, 2 * sizeof *label);
}

static void note_piece(br_rings *r, const field *f, int ring, const double piece[4], int64_t at)
{
    note_label(r, f, ring, piece);
    if (!r->fast) return;
    for (int i = 0; i < 2; i++) {
        r->fast[at + i] = piece[2 * i];
        r->slow[at + i] = piece[2 * i + 1];
    }
    r->fast[at + 2] = r->slow[at + 2] = (double)NAN;
}

/* Counts the points of all lines; stores them where the arrays have room. */
static void follow(br_rings *r, const field *f)
{
    r->points = 0;
    for (int i = 0; i < r->n; i++) {
        r->label_at[i][0] = r->label_at[i][1] = (double)NAN;
        for (int y = 0; y < f->cells[1]; y++)
            for (int x = 0; x < f->cells[0]; x++) {
                double piece[2][4];
                const int n = pieces(f, x, y, 0.5 / r->d[i], piece);
                for (int k = 0; k < n; k++, r->points += 3)
                    note_piece(r, f, i, piece[k], r->points);
            }
    }
}

/* Part of `a` along the first of three vectors, which need not be at right angles. */
static double part(const double *a, const double *first, const double *second, const double *third)
{
    const double n[3] = {second[1] * third[2] - second[2] * third[1],
                         second[2] * third[0] - second[0] * third[2],
                         second[0] * third[1] - second[1] * third[0]};
    return (a[0] * n[0] + a[1] * n[1] + a[2] * n[2]) /
           (first[0] * n[0] + first[1] * n[1] + first[2] * n[2]);
}

/* Where the beam passes through the detector. The frame's own numbers are before the two-theta
 * rotation; a curved detector is defined by them. */
static void set_beam(br_rings *r, const br_experiment *e)
{
    const br_scene *s = &e->scene;
    const br_placed *f = &e->placed;
    double fdet[3], sdet[3], odet[3], pix0[3], at[3], close = 0, along = 0;
    for (int i = 0; i < 3; i++) {
        fdet[i] = f->fdet[i].v;
        sdet[i] = f->sdet[i].v;
        odet[i] = f->odet[i].v;
        pix0[i] = f->pix0[i].v;
        close += pix0[i] * odet[i];
        along += s->beam[i] * odet[i];
    }
    for (int i = 0; i < 3; i++) at[i] = close / along * s->beam[i] - pix0[i];
    const double fast = s->curved ? f->fbeam : part(at, fdet, sdet, odet),
                 slow = s->curved ? f->sbeam : part(at, sdet, odet, fdet);
    r->beam[0] = fast / s->pixel - 0.5;
    r->beam[1] = slow / s->pixel - 0.5;
}

static fth_status draw_all(br_rings *r, field *f, const br_experiment *e, fth_err *err)
{
    void *line = NULL;
    FTH_TRY(fill(f, e, err));
    choose(r, f);
    follow(r, f);
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, (uint64_t)r->points * 2 * sizeof(double), "rings",
                         &line, err));
    r->fast = line;
    r->slow = r->fast + r->points;
    follow(r, f);
    set_beam(r, e);
    return FTH_OK;
}

fth_status br_rings_make(br_rings *out, const br_experiment *e, fth_err *err)
{
    *out = (br_rings){.mem = e->mem};
    void *grid = NULL;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, sizeof(field), "grid of rings", &grid, err));
    const fth_status s = draw_all(out, memset(grid, 0, sizeof(field)), e, err);
    (void)fth_mem_release(e->mem, grid, NULL);
    return s;
}

void br_rings_clear(br_rings *r)
{
    if (r->mem) (void)fth_mem_release(r->mem, r->fast, NULL);
    *r = (br_rings){0};
}

void br_rings_draw(const br_rings *r, fth_panel *panel, const br_scene *s)
{
    const fth_colour white = fth_rgb(255, 255, 255);
    if (r->points > 0)
        fth_panel_line(
            panel, fth_column_of(FTH_F64, r->fast, r->points),
            fth_column_of(FTH_F64, r->slow, r->points),
            &(fth_line){.colour = white, .width = 0.8, .alpha = 0.6, .dash = FTH_DASH_SOLID});
    for (int i = 0; i < r->n; i++) {
        char text[32];
        if (isnan(r->label_at[i][0])) continue;
        snprintf(text, sizeof text, "%.4g \xc3\x85", r->d[i]);
        fth_panel_text(panel, r->label_at[i][0], r->label_at[i][1], text,
                       &(fth_note){.halo = true, .size = 8});
    }
    const double *b = r->beam;
    if (b[0] >= 0 && b[0] < (double)s->fast && b[1] >= 0 && b[1] < (double)s->slow)
        fth_panel_points(
            panel, fth_column_of(FTH_F64, &r->beam[0], 1), fth_column_of(FTH_F64, &r->beam[1], 1),
            &(fth_points){.marker = FTH_MARKER_CROSS, .area = 80, .colour = fth_rgb(255, 60, 60)});
}
