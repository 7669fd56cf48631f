/* printout.c - the intermediate values of pixels from the plain loop, and the sample at which
 * interpolation ends.
 *
 * The loops of the render drop the sign of the lattice factor, because they use its square; here it
 * is printed, so it is computed again as the reference does.
 */
#include "printout.h"
#include "../ops/render/view.h"

#include <math.h>
#include <string.h>

typedef struct book {
    const br_experiment *e;
    FILE *out;
    br_view view;
    void *block; /* of the view, then of a row: value, omega, mask */
    double *value, *omega;
    uint16_t *mask;
    const br_latch_note *note; /* NULL: told */
} book;

uint64_t br_printout_bytes(const br_experiment *e)
{
    return br_view_bytes(&e->scene) +
           (uint64_t)e->scene.fast * (2 * sizeof(double) + sizeof(uint16_t));
}

static fth_status open_book(book *b, const br_experiment *e, int64_t latch, FILE *out, fth_err *err)
{
    const br_scene *s = &e->scene;
    const uint64_t view = br_view_bytes(s), row = (uint64_t)s->fast;
    *b = (book){.e = e, .out = out};
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, br_printout_bytes(e), "printout", &b->block, err));
    b->value = (double *)((char *)b->block + view);
    b->omega = b->value + row;
    b->mask = (uint16_t *)(b->omega + row);
    const int64_t l = s->hkls > 0 ? s->l_max - s->l_min + 2 : 1,
                  k = s->hkls > 0 ? s->k_max - s->k_min + 2 : 1;
    const br_arrays a = {.param = e->param,
                         .table = e->table ? fth_tensor_data(e->table) : NULL,
                         .source = fth_tensor_data(e->source),
                         .mosaic_rotation = fth_tensor_data(e->mosaic_rotation),
                         .table_step = {k * l, l, 1},
                         .latch = latch};
    br_view_make(&b->view, s, &a, b->block);
    return FTH_OK;
}

static void close_book(book *b)
{
    (void)fth_mem_release(b->e->mem, b->block, NULL);
}

static fth_status read_mask(const br_experiment *e, int64_t slow, uint16_t *mask, fth_err *err)
{
    return e->mask.read(e->mask.self, ((int64_t[]){slow, 0}), ((int64_t[]){1, e->scene.fast}), mask,
                        err);
}

/* ---- the lattice factor with its sign ---- */

static double signed_lattice(const br_scene *s, const br_pixel *p)
{
    double f = 1;
    if (s->shape != BR_SQUARE) return p->F_latt;
    for (int k = 0; k < 3; k++) {
        const double x = M_PI * p->hkl[k];
        if (s->cells[k] > 1) f *= x == 0 ? s->cells[k] : sin(x * s->cells[k]) / sin(x);
    }
    return f;
}

static void tell_note(book *b)
{
    if (b->note) fputs(b->note->text, b->out);
    b->note = NULL;
}

static void tell(void *user, const br_pixel *p)
{
    book *b = user;
    const br_experiment *e = b->e;
    FILE *out = b->out;
    if (b->note && p->slow * e->scene.fast + p->fast >= b->note->pixel) tell_note(b);
    const double two_theta = atan2(sqrt(p->pos[1] * p->pos[1] + p->pos[2] * p->pos[2]), p->pos[0]);
    fprintf(out, "%4lld %4lld : stol = %g or %g\n", (long long)p->fast, (long long)p->slow, p->stol,
            sin(two_theta / 2) / (e->lambda0 * 1e10));
    fprintf(out, "at %g %g %g\n", p->pos[0], p->pos[1], p->pos[2]);
    fprintf(out, "hkl= %f %f %f  hkl0= %.0f %.0f %.0f\n", p->hkl[0], p->hkl[1], p->hkl[2],
            p->hkl0[0] + 0.0, p->hkl0[1] + 0.0, p->hkl0[2] + 0.0); /* a zero has no sign */
    fprintf(out, " F_cell=%g  F_latt=%g   I = %g\n", p->F_cell, signed_lattice(&e->scene, p),
            p->sum);
    fprintf(out, "I/steps %15.10g\n", p->sum / e->scene.steps);
    fprintf(out, "polar   %15.10g\n", p->polar);
    fprintf(out, "omega   %15.10g\n", p->omega);
    fprintf(out, "capfrac %15.10g\n", p->capture);
    fprintf(out, "pixel   %15.10g\n", (double)(float)p->value);
    fprintf(out, "real-space cell vectors (Angstrom):\n");
    fprintf(out, "     %-10s  %-10s  %-10s\n", "a", "b", "c");
    for (int i = 0; i < 3; i++)
        fprintf(out, "%c: %11.8f %11.8f %11.8f\n", "XYZ"[i], p -> cell[i] * 1e10,
                p -> cell[3 + i] * 1e10, p -> cell[6 + i] * 1e10);
}

static fth_status tell_row(book *b, int64_t slow, int64_t first, int64_t n, br_watch *watch,
                           fth_err *err)
{
    br_row row = {.slow = slow, .fast = first, .n = n, .value = b->value, .omega = b->omega};
    if (b->e->scene.masked) {
        FTH_TRY(read_mask(b->e, slow, b->mask, err));
        row.mask = b->mask + first;
        row.mask_step = 1;
    }
    br_render_watched(&b->view, &row, watch);
    return FTH_OK;
}

fth_status br_print_pixels(FILE *out, const br_experiment *e, int64_t latch,
                           const br_latch_note *note, fth_err *err)
{
    const br_scene *s = &e->scene;
    const int64_t *only = e->out.printout_pixel;
    book b;
    FTH_TRY(open_book(&b, e, latch, out, err));
    b.note = note;
    br_watch watch = {.pixel = tell, .user = &b};
    fth_status st = FTH_OK;
    if (only[0] >= 0 && br_inside(s, only[1], only[0]))
        st = tell_row(&b, only[1], only[0], 1, &watch, err);
    for (int64_t slow = s->roi[2]; only[0] < 0 && st == FTH_OK && slow <= s->roi[3]; slow++)
        st = tell_row(&b, slow, 0, s->fast, &watch, err);
    tell_note(&b);
    close_book(&b);
    return st;
}

fth_status br_latch_note_make(br_latch_note *note, const br_experiment *e, int64_t latch,
                              fth_err *err)
{
    const br_scene *s = &e->scene;
    *note = (br_latch_note){.pixel = -1};
    if (latch == INT64_MAX) return FTH_OK;
    book b;
    FTH_TRY(open_book(&b, e, latch, NULL, err));
    const int64_t O = s->oversample, each = s->phis * s->mosaics, group = latch / each,
                  at = group / s->sources, pixel = at / (s->layers * O * O);
    const int64_t sub[3] = {at / (O * O) % s->layers, at / O % O, at % O};
    const br_row row = {.slow = pixel / s->fast, .fast = pixel % s->fast, .n = 1};
    const int64_t phi = latch % each / s->mosaics, mosaic = latch % s->mosaics,
                  turned = phi == 0 && group == b.view.chain ? s->phis : phi;
    const double *cell = b.view.cells + (turned * s->mosaics + mosaic) * 9;
    double pos[3], d[3], q[3], stol, hkl[3];
    br_position(&b.view, &row, 0, sub, pos);
    br_unit(pos, d);
    (void)br_scatter(&b.view, group % s->sources, d, q, &stol);
    for (int k = 0; k < 3; k++)
        hkl[k] = cell[3 * k] * q[0] + cell[3 * k + 1] * q[1] + cell[3 * k + 2] * q[2];
    note->pixel = pixel;
    snprintf(note->text, sizeof note->text,
             "WARNING: out of range for three point interpolation: h,k,l,h0,k0,l0: "
             "%g,%g,%g,%.0f,%.0f,%.0f \n"
             "WARNING: further warnings will not be printed! ",
             hkl[0], hkl[1], hkl[2], ceil(hkl[0] - 0.5) + 0.0, ceil(hkl[1] - 0.5) + 0.0,
             ceil(hkl[2] - 0.5) + 0.0);
    close_book(&b);
    return FTH_OK;
}

fth_status br_count_rendered(const br_experiment *e, int64_t end, int64_t *n, fth_err *err)
{
    const br_scene *s = &e->scene;
    void *row = NULL;
    *n = 0;
    if (s->masked)
        FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, (uint64_t)s->fast * sizeof(uint16_t), "mask row",
                             &row, err));
    fth_status st = FTH_OK;
    for (int64_t slow = s->roi[2]; st == FTH_OK && slow <= s->roi[3]; slow++) {
        const int64_t left = end - slow * s->fast; /* pixels of this row before the end */
        const int64_t last = left - 1 < s->roi[1] ? left - 1 : s->roi[1];
        if (row) st = read_mask(e, slow, row, err);
        for (int64_t f = s->roi[0]; st == FTH_OK && f <= last; f++)
            *n += !row || ((const uint16_t *)row)[f] != 0;
    }
    (void)fth_mem_release(e->mem, row, NULL);
    return st;
}
