/* lap_pyr_lines.c - see lap_pyr_lines.h. */
#include "lap_pyr_lines.h"

#include "lap_taps.h"

#include <string.h>

static int64_t line_floats(int64_t width)
{
    return (width + 15) / 16 * 16 + 2 * FO_LAP_MARGIN;
}

int64_t fo_lap_lines_floats(int64_t width, int64_t window)
{
    return (8 + 2 * window) * line_floats(width);
}

bool fo_lap_is_stack(const fth_desc *d)
{
    return d->n_axes == 4 && (d->dtype == FTH_U8 || d->dtype == FTH_U16 || d->dtype == FTH_F32);
}

void fo_lap_lines_init(fo_lap_lines *l, const fth_call *call, int64_t window, float *work)
{
    const fth_desc *d = &call->node->in[0], *c = &call->node->in[1];
    const char *axes = d->n_axes == 4 ? "szyx" : "syx";
    *l = (fo_lap_lines){.loops = FTH_ISA_BEST(fo_lap_loops),
                        .fine = fo_walk_of(d, &call->in[0], axes),
                        .coarse = fo_walk_of(c, &call->in[1], axes),
                        .height = d->size[d->n_axes - 2],
                        .width = d->size[d->n_axes - 1],
                        .half = c->size[c->n_axes - 1],
                        .window = window,
                        .len = line_floats(d->size[d->n_axes - 1])};
    float **const line[] = {&l->across, &l->up, &l->square, &l->row, &l->energy, &l->ring};
    l->wide = work + FO_LAP_MARGIN; /* three lines */
    for (int i = 0; i < 6; i++) *line[i] = work + (3 + i) * l->len + FO_LAP_MARGIN;
}

const float *fo_lap_read(const fo_lap_loops *loops, const fo_walk *w, const char *row, float *room,
                         int64_t n)
{
    const int64_t step = w->step[FO_X], size = fth_dtype_size(w->dtype);
    if (step == size && w->dtype == FTH_F32) return (const float *)(const void *)row;
    if (step == size)
        loops->widen(room, row, w->dtype, n);
    else
        for (int64_t i = 0; i < n; i++) loops->widen(room + i, row + i * step, w->dtype, 1);
    return room;
}

float *fo_lap_open(char *row, int64_t step, float *room, int64_t n)
{
    if (step == (int64_t)sizeof *room) return (float *)(void *)row;
    for (int64_t i = 0; i < n; i++) memcpy(room + i, row + i * step, sizeof *room);
    return room;
}

void fo_lap_close(char *row, int64_t step, const float *opened, int64_t n)
{
    if ((const char *)opened == row) return;
    for (int64_t i = 0; i < n; i++) memcpy(row + i * step, opened + i, sizeof *opened);
}

static const float *coarse_row(const fo_lap_lines *l, int64_t k, int room)
{
    const int64_t at = fo_lap_coarse_at(k, l->height);
    return fo_lap_read(l->loops, &l->coarse, fo_walk_row(&l->coarse, l->s, l->z, 0, 0, at),
                       l->wide + room * l->len, l->half);
}

const float *fo_lap_lines_up(fo_lap_lines *l, int64_t y)
{
    const int64_t k = y / 2;
    if (y % 2)
        l->loops->up_odd(l->across,
                         (const float *const[2]){coarse_row(l, k, 0), coarse_row(l, k + 1, 1)},
                         l->half);
    else
        l->loops->up_even(l->across,
                          (const float *const[3]){coarse_row(l, k - 1, 0), coarse_row(l, k, 1),
                                                  coarse_row(l, k + 1, 2)},
                          l->half);
    l->across[-1] = l->across[fo_lap_coarse_at(-1, l->width)];
    l->across[l->half] = l->across[fo_lap_coarse_at(l->half, l->width)];
    l->loops->up_columns(l->up, l->across, l->width);
    return l->up;
}

static float *slot(const fo_lap_lines *l, int64_t y, int energy)
{
    return l->ring + ((y % l->window + l->window) % l->window * 2 + energy) * l->len;
}

static void make_row(fo_lap_lines *l, int64_t y)
{
    const int64_t at = fo_border_at(y, l->height, FO_BORDER_REFLECT101), r = l->window / 2;
    const float *up = fo_lap_lines_up(l, at);
    const float *fine = fo_lap_read(l->loops, &l->fine, fo_walk_row(&l->fine, l->s, l->z, 0, 0, at),
                                    l->row, l->width);
    l->loops->detail(slot(l, y, 0), l->square, fine, up, l->width);
    for (int64_t k = 1; k <= r; k++) {
        l->square[-k] = l->square[fo_border_at(-k, l->width, FO_BORDER_REFLECT101)];
        l->square[l->width - 1 + k] =
            l->square[fo_border_at(l->width - 1 + k, l->width, FO_BORDER_REFLECT101)];
    }
    l->loops->box_columns(slot(l, y, 1), l->square, l->window, l->width);
}

void fo_lap_lines_start(fo_lap_lines *l, int64_t s, int64_t z, int64_t y)
{
    l->s = s;
    l->z = z;
    l->next = y - l->window / 2;
}

const float *fo_lap_lines_energy(fo_lap_lines *l, int64_t y, const float **detail)
{
    const int64_t r = l->window / 2;
    const float *rows[FO_LAP_MAX_WINDOW];
    for (; l->next <= y + r; l->next++) make_row(l, l->next);
    for (int64_t k = 0; k < l->window; k++) rows[k] = slot(l, y - r + k, 1);
    *detail = slot(l, y, 0);
    if (l->window == 1) return rows[0];
    l->loops->box_rows(l->energy, rows, l->window, l->width);
    return l->energy;
}
