/* cwt_lines.c - see cwt_lines.h. */
#include "cwt_lines.h"

#include <string.h>

enum { TAPS = 6 };

static int64_t line_floats(int64_t half)
{
    return (half + 15) / 16 * 16 + 2 * FO_CWT_MARGIN;
}

int64_t fo_cwt_lines_floats(int64_t cols)
{
    const int64_t len = line_floats(cols / 2);
    return (cols + 15) / 16 * 16 + (TAPS * 2 * 2 + 4 * 2) * len;
}

bool fo_cwt_is_plane(const fth_node *node)
{
    return node->in[0].n_axes == 4;
}

fth_status fo_cwt_check_level(const fth_node *node, fth_err *err)
{
    const fo_cwt_attr *a = node->attr;
    const fth_desc *d = &node->in[0];
    const int n = d->n_axes;
    char text[256];
    const bool plane = n == 4 && (d->dtype == FTH_U8 || d->dtype == FTH_U16 || d->dtype == FTH_F32);
    const bool level = n == 5 && d->dtype == FTH_F32 && d->size[2] == 2 && d->size[3] == a->rows &&
                       d->size[4] == a->cols;
    if (plane || level) return FTH_OK;
    return FTH_FAIL(err, FTH_E_DTYPE_OP,
                    "%s: %s is neither a stack [stack z y x] of u8, u16 or f32 nor a level f32 "
                    "[stack z part=2 y=%lld x=%lld]",
                    node->op->name, fth_in_format(node, 0, text, sizeof text), (long long)a->rows,
                    (long long)a->cols);
}

int64_t fo_cwt_grid(const fth_node *node, int in, int dim)
{
    const fth_desc *d = &node->out[0];
    if (in >= 0 || dim == 0 || dim == d->n_axes - 2) return 1;
    const fo_cwt_attr *a = node->attr;
    if (d->axis[dim] != a->part && d->axis[dim] != a->band && dim != d->n_axes - 1) return 1;
    int64_t whole = 1;
    while (whole < d->size[dim]) whole *= 2;
    return whole;
}

void fo_cwt_lines_init(fo_cwt_lines *l, const fth_call *call, float *work)
{
    const fth_node *node = call->node;
    const fo_cwt_attr *a = node->attr;
    const bool plane = fo_cwt_is_plane(node);
    const fth_desc *d = &node->in[0];
    *l = (fo_cwt_lines){.loops = FTH_ISA_BEST(fo_cwt_loops),
                        .in = fo_walk_of(d, &call->in[0], plane ? "szyx" : "szpyx"),
                        .rows = a->rows,
                        .cols = a->cols,
                        .pad = plane ? a->pad : 0,
                        .height = d->size[d->n_axes - 2],
                        .width = d->size[d->n_axes - 1],
                        .half = a->cols / 2,
                        .len = line_floats(a->cols / 2),
                        .parts = plane ? 1 : 2};
    l->line = work;
    l->ring = work + (a->cols + 15) / 16 * 16;
    float *down = l->ring + TAPS * 2 * 2 * l->len;
    for (int i = 0; i < 4; i++) l->down[i / 2][i % 2] = down + i * 2 * l->len;
    /* what lies between the lines is filtered along with them */
    memset(work, 0, (size_t)fo_cwt_lines_floats(a->cols) * sizeof *work);
}

void fo_cwt_read(const fo_cwt_loops *loops, float *out, const char *row, int64_t step,
                 fth_dtype dtype, int64_t n)
{
    if (step == fth_dtype_size(dtype)) {
        loops->widen(out, row, dtype, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) loops->widen(out + i, row + i * step, dtype, 1);
}

/* Line `r` of the level, padded. */
static void read_line(const fo_cwt_lines *l, int64_t r, int part)
{
    const int64_t from = l->pad, to = l->pad + l->width;
    const char *row = fo_walk_row(&l->in, l->s, l->z, 0, part,
                                  fo_border_at(r - l->pad, l->height, FO_BORDER_MIRROR));
    fo_cwt_read(l->loops, l->line + from, row, l->in.step[FO_X], l->in.dtype, l->width);
    for (int64_t x = 0; x < from; x++)
        l->line[x] = l->line[from + fo_border_at(x - from, l->width, FO_BORDER_MIRROR)];
    for (int64_t x = to; x < l->cols; x++)
        l->line[x] = l->line[from + fo_border_at(x - from, l->width, FO_BORDER_MIRROR)];
}

static float *slot(const fo_cwt_lines *l, int64_t r, int part)
{
    return l->ring + ((r % TAPS + TAPS) % TAPS * 2 + part) * 2 * l->len;
}

/* A ring of `half` samples goes on at both ends. */
static void close_ring(float *samples, int64_t half)
{
    for (int64_t k = 1; k <= 2; k++) {
        samples[-k] = samples[((-k % half) + half) % half];
        samples[half + k - 1] = samples[(k - 1) % half];
    }
}

static void read_row(fo_cwt_lines *l, int64_t r)
{
    const int64_t at = (r % l->rows + l->rows) % l->rows;
    for (int part = 0; part < l->parts; part++) {
        float *even = slot(l, r, part) + FO_CWT_MARGIN, *odd = even + l->len;
        read_line(l, at, part);
        l->loops->deal(even, odd, l->line, l->half);
        close_ring(even, l->half);
        close_ring(odd, l->half);
    }
}

void fo_cwt_lines_start(fo_cwt_lines *l, int64_t s, int64_t z, int64_t i)
{
    l->s = s;
    l->z = z;
    l->next = 2 * i - 3;
}

void fo_cwt_lines_down(fo_cwt_lines *l, int64_t i, bool low, bool high)
{
    for (; l->next <= 2 * i + 2; l->next++) read_row(l, l->next);
    const float *re[TAPS], *im[TAPS];
    for (int j = 0; j < TAPS; j++) {
        re[j] = slot(l, 2 * i - 3 + j, 0);
        im[j] = slot(l, 2 * i - 3 + j, 1);
    }
    const float *const *imaginary = l->parts == 2 ? im : NULL;
    if (low) l->loops->low(re, imaginary, l->down[0][0], l->down[0][1], 2 * l->len);
    if (high) l->loops->high(re, imaginary, l->down[1][0], l->down[1][1], 2 * l->len);
}

void fo_cwt_lines_across(const fo_cwt_lines *l, bool high_y, bool high_x, float *re, float *im)
{
    const float *from[2][TAPS];
    for (int part = 0; part < 2; part++) {
        const float *even = l->down[high_y][part] + FO_CWT_MARGIN, *odd = even + l->len;
        const float *const taps[TAPS] = {odd - 2, even - 1, odd - 1, even, odd, even + 1};
        memcpy(from[part], taps, sizeof taps);
    }
    (high_x ? l->loops->high : l->loops->low)(from[0], from[1], re, im, l->half);
}

void fo_cwt_lines_band(fo_cwt_lines *l, bool corner, int64_t b, int64_t i, float *re, float *im)
{
    float *const to[2] = {re, im};
    if (!corner) {
        if (b == 0) fo_cwt_lines_down(l, i, true, true);
        fo_cwt_lines_across(l, b > 0, b < 2, re, im);
        return;
    }
    memset(im, 0, (size_t)l->width * sizeof *im);
    for (int part = 0; part < l->parts; part++)
        fo_cwt_read(l->loops, to[part], fo_walk_row(&l->in, l->s, l->z, 0, part, i),
                    l->in.step[FO_X], l->in.dtype, l->width);
}

float *fo_cwt_open_f32(char *row, int64_t step, float *room, int64_t n)
{
    if (step == (int64_t)sizeof *room) return (float *)(void *)row;
    for (int64_t i = 0; i < n; i++) memcpy(room + i, row + i * step, sizeof *room);
    return room;
}

void *fo_cwt_open_planes(char *row, int64_t step, int64_t size, void *room, int64_t n)
{
    if (step == size) return row;
    for (int64_t i = 0; i < n; i++) memcpy((char *)room + i * size, row + i * step, (size_t)size);
    return room;
}

void fo_cwt_close_f32(char *row, int64_t step, const float *opened, int64_t n)
{
    if ((const char *)opened == row) return;
    for (int64_t i = 0; i < n; i++) memcpy(row + i * step, opened + i, sizeof *opened);
}

void fo_cwt_close_planes(char *row, int64_t step, int64_t size, const void *opened, int64_t n)
{
    if ((const char *)opened == row) return;
    for (int64_t i = 0; i < n; i++)
        memcpy(row + i * step, (const char *)opened + i * size, (size_t)size);
}

const fo_cwt_planes *fo_cwt_planes_of(const fo_cwt_loops *loops, fth_dtype dtype)
{
    return dtype == FTH_U8 ? &loops->u8 : &loops->u16;
}

bool fo_cwt_names(fth_dtype dtype)
{
    return dtype == FTH_U8 || dtype == FTH_U16;
}
