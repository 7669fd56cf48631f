/* energy_rows.c - rows of energy of one plane, from the top down.
 *
 * Every stage that looks at rows above and below keeps the rows it needs in a ring, under the
 * number of the row: borders only ask for rows that are inside the image, which are in the ring
 * already or made now. So a border is a mapping of row numbers and of columns, nothing else.
 */
#include "energy.h"

#include <string.h>

enum { MAIN, SECOND, SMOOTH }; /* rings */

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

int64_t fo_rows_round(int64_t width)
{
    return round_up(width > 0 ? width : 1, FO_ENERGY_UNIT);
}

static int64_t margin_of(const fo_energy *e)
{
    const int64_t r = e->radius > e->smooth ? e->radius : e->smooth;
    return round_up(r > 0 ? r : 1, FO_ENERGY_UNIT);
}

static int64_t step_of(const fo_energy *e, int64_t width)
{
    return fo_rows_round(width) + 2 * margin_of(e);
}

/* Slots of a ring, and rows of floats in each. The variance keeps two rows of doubles; the second
 * step of the LoG a blurred row (k = 3), or D and S of one. */
static int slots(const fo_energy *e, int ring, int *rows)
{
    *rows = 1;
    if (ring == SMOOTH) return e->smooth > 0 ? 2 * e->smooth + FO_ROWS_AT_ONCE : 0;
    if (ring == SECOND) {
        *rows = e->radius == 1 ? 1 : 2;
        return e->kind == FO_ENERGY_LOG ? 2 * e->radius + 1 : 0;
    }
    if (e->kind == FO_ENERGY_VARIANCE) *rows = 4;
    if (e->kind == FO_ENERGY_TENENGRAD) *rows = 2;
    return 2 * e->radius + 1;
}

enum { LINES = 4 };

uint64_t fo_rows_bytes(const fo_energy *e, int64_t width)
{
    uint64_t floats = (uint64_t)step_of(e, width) * LINES, held = 0;
    for (int i = 0; i <= SMOOTH; i++) {
        int rows;
        const int n = slots(e, i, &rows);
        floats += (uint64_t)step_of(e, width) * (uint64_t)(n * rows);
        held += (uint64_t)n;
    }
    return floats * sizeof(float) + held * sizeof(int64_t);
}

void fo_rows_init(fo_rows *r, const fo_energy *e, const fo_energy_loops *loop, fth_dtype dtype,
                  int64_t height, int64_t width, void *work)
{
    *r = (fo_rows){.e = e,
                   .loop = loop,
                   .dtype = dtype,
                   .height = height,
                   .width = width,
                   .n = fo_rows_round(width),
                   .step = step_of(e, width),
                   .margin = margin_of(e)};
    memset(work, 0, fo_rows_bytes(e, width)); /* what lies behind rows is read, and must be tame */
    float *at = work;
    r->zero = at + r->margin;
    r->line = r->zero + r->step;
    r->line2 = r->line + r->step;
    r->line3 = r->line2 + r->step;
    at += LINES * r->step;
    int rows[SMOOTH + 1];
    for (int i = 0; i <= SMOOTH; i++) {
        r->ring[i] = (fo_ring){.row = at + r->margin, .slots = slots(e, i, &rows[i])};
        at += r->ring[i].slots * rows[i] * r->step;
    }
    int64_t *held = (int64_t *)(void *)at;
    for (int i = 0; i <= SMOOTH; i++) {
        r->ring[i].held = held;
        held += r->ring[i].slots;
    }
}

void fo_rows_plane(fo_rows *r, const void *data, int64_t first, int64_t row_bytes)
{
    r->data = data;
    r->first = first;
    r->row_bytes = row_bytes;
    for (int i = 0; i <= SMOOTH; i++)
        for (int k = 0; k < r->ring[i].slots; k++) r->ring[i].held[k] = -1;
}

void fo_rows_values(const fo_rows *r, int64_t y, float *to)
{
    const void *from = r->data + (y - r->first) * r->row_bytes;
    if (r->dtype == FTH_U8)
        r->loop->widen_u8(to, from, r->width);
    else if (r->dtype == FTH_U16)
        r->loop->widen_u16(to, from, r->width);
    else
        memcpy(to, from, (size_t)r->width * sizeof(float));
}

/* Columns outside the image, `reach` on each side. */
static void extend(const fo_rows *r, float *row, int64_t reach, fo_border border)
{
    const int64_t again = border == FO_BORDER_MIRROR; /* the last column comes twice */
    if (reach < r->width && (again || border == FO_BORDER_REFLECT101)) {
        float *end = row + r->width - 1;
        for (int64_t i = 1; i <= reach; i++) row[-i] = row[i - again], end[i] = end[again - i];
        return;
    }
    for (int64_t i = 1; i <= reach; i++) {
        const int64_t left = fo_border_at(-i, r->width, border),
                      right = fo_border_at(r->width - 1 + i, r->width, border);
        row[-i] = left < 0 ? 0.0f : row[left];
        row[r->width - 1 + i] = right < 0 ? 0.0f : row[right];
    }
}

/* The slot of row y, of `rows` rows; *made: it is there already, else the caller makes it now. */
static float *slot(const fo_rows *r, int ring, int rows, int64_t y, bool *made)
{
    const fo_ring *g = &r->ring[ring];
    const int64_t k = y % g->slots;
    *made = g->held[k] == y;
    g->held[k] = y;
    return g->row + k * rows * r->step;
}

static fo_border border_of(const fo_rows *r)
{
    return (fo_border)r->e->border;
}

/* ---- first stages: rows of the image, as each measure wants them ---- */

/* Fills where[0..2 radius] with rows y - radius to y + radius of a ring; zero outside. */
typedef const float *row_maker(fo_rows *r, int64_t y);
static void around(fo_rows *r, int64_t y, int radius, fo_border border, row_maker *make,
                   const float **where)
{
    for (int i = -radius; i <= radius; i++) {
        const int64_t at = fo_border_at(y + i, r->height, border);
        where[i + radius] = at < 0 ? r->zero : make(r, at);
    }
}

static const float *plain_row(fo_rows *r, int64_t y) /* modlap */
{
    bool made;
    float *row = slot(r, MAIN, 1, y, &made);
    if (made) return row;
    fo_rows_values(r, y, row);
    extend(r, row, 1, border_of(r));
    return row;
}

static void load_line(fo_rows *r, int64_t y, int64_t reach)
{
    fo_rows_values(r, y, r->line);
    extend(r, r->line, reach, border_of(r));
}

static const float *sobel_row(fo_rows *r, int64_t y)
{
    bool made;
    float *row = slot(r, MAIN, 2, y, &made);
    if (made) return row;
    load_line(r, y, 1);
    r->loop->sobel_across(row, row + r->step, r->line, r->n);
    return row;
}

static const float *moment_row(fo_rows *r, int64_t y)
{
    bool made;
    float *row = slot(r, MAIN, 4, y, &made);
    if (made) return row;
    double *sum = (double *)(void *)(row - r->margin);
    load_line(r, y, FO_VARIANCE_RADIUS);
    r->loop->moments_across(sum, sum + r->step, r->line, r->n);
    return row;
}

/* The same without floats of the values; columns at the border by hand. Rows come from memory here
 * for the first time, in runs that are too short for the processor to see them coming. */
enum { LINE = 64, AHEAD = 6 };
static void log_across_u16(const fo_rows *r, int64_t y, float *row)
{
    const uint16_t *v = (const uint16_t *)(const void *)(r->data + (y - r->first) * r->row_bytes);
    const int64_t n = r->width, ends[2] = {0, n - 1};
    for (int64_t at = 0; at < 2 * n; at += LINE)
        __builtin_prefetch((const char *)v + AHEAD * r->row_bytes + at);
    r->loop->log_across_u16(row, v, n);
    for (int i = 0; i < 2; i++) {
        const int64_t left = fo_border_at(ends[i] - 1, n, border_of(r)),
                      right = fo_border_at(ends[i] + 1, n, border_of(r));
        row[ends[i]] =
            (float)((left < 0 ? 0 : v[left]) + (right < 0 ? 0 : v[right]) + 2 * v[ends[i]]);
    }
}

static const float *gauss_row(fo_rows *r, int64_t y)
{
    bool made;
    float *row = slot(r, MAIN, 1, y, &made);
    if (made) return row;
    if (r->e->radius == 1 && r->dtype == FTH_U16) {
        log_across_u16(r, y, row);
        return row;
    }
    load_line(r, y, r->e->radius);
    if (r->e->radius == 1)
        r->loop->log_across(row, r->line, r->n);
    else
        r->loop->across(row, r->line, r->e->gauss, r->e->radius, r->n);
    return row;
}

/* The blurred row, and what the Laplacian needs of it along x: two rows in one slot. */
static const float *blurred_row(fo_rows *r, int64_t y)
{
    const float *near[FO_MOST_K];
    const int radius = r->e->radius;
    bool made;
    float *row = slot(r, SECOND, radius == 1 ? 1 : 2, y, &made);
    if (made) return row;
    around(r, y, radius, border_of(r), gauss_row, near);
    if (radius == 1) {
        r->loop->log_down(row, near, r->n);
        extend(r, row, 1, border_of(r));
        return row;
    }
    r->loop->down(r->line, 0, 1, near, r->e->gauss, radius, r->n);
    extend(r, r->line, radius, border_of(r));
    r->loop->across(row, r->line, r->e->second, radius, r->n);
    r->loop->across(row + r->step, r->line, r->e->binomial, radius, r->n);
    return row;
}

/* ---- rows of energy ---- */

bool fo_rows_plain(const fo_rows *r)
{
    return r->e->kind == FO_ENERGY_LOG && r->e->radius == 1 && r->e->smooth == 0;
}

void fo_rows_near(fo_rows *r, int64_t y, const float *rows[3])
{
    around(r, y, 1, border_of(r), blurred_row, rows);
}

static void log_row(fo_rows *r, int64_t y, float *to)
{
    const float *near[FO_MOST_K], *other[FO_MOST_K];
    const int radius = r->e->radius;
    if (radius == 1) {
        fo_rows_near(r, y, near);
        r->loop->log_end(to, near[0], near[1], near[2], r->n);
        return;
    }
    around(r, y, radius, border_of(r), blurred_row, near);
    for (int i = 0; i <= 2 * radius; i++)
        other[i] = near[i] == r->zero ? r->zero : near[i] + r->step;
    r->loop->down(to, 0, 1, near, r->e->binomial, radius, r->n);
    r->loop->down(r->line2, 0, 1, other, r->e->second, radius, r->n);
    r->loop->sum_abs(to, r->line2, r->n);
}

static void tenengrad_row(fo_rows *r, int64_t y, float *to)
{
    const float *diff[3], *sum[3];
    around(r, y, 1, border_of(r), sobel_row, diff);
    for (int i = 0; i < 3; i++) sum[i] = diff[i] == r->zero ? r->zero : diff[i] + r->step;
    r->loop->sobel_end(to, diff, sum, r->n);
}

static void modlap_row(fo_rows *r, int64_t y, float *to)
{
    const float *near[3];
    around(r, y, 1, border_of(r), plain_row, near);
    r->loop->modlap(to, near, r->n);
}

static void laplace_row(fo_rows *r, int64_t y, float *to)
{
    const float *near[3];
    around(r, y, 1, border_of(r), plain_row, near);
    r->loop->laplace(to, near, r->n);
}

static void variance_row(fo_rows *r, int64_t y, float *to)
{
    enum { K = 2 * FO_VARIANCE_RADIUS + 1 };
    const float *near[K];
    const double *sum[K], *square[K];
    static const double none[FO_ENERGY_UNIT] = {0};
    around(r, y, FO_VARIANCE_RADIUS, border_of(r), moment_row, near);
    for (int64_t x = 0; x < r->n; x += FO_ENERGY_UNIT) {
        for (int i = 0; i < K; i++) {
            const double *row = (const double *)(const void *)(near[i] - r->margin);
            sum[i] = near[i] == r->zero ? none : row + x;
            square[i] = near[i] == r->zero ? none : row + r->step + x;
        }
        r->loop->variance(to + x, sum, square, FO_ENERGY_UNIT);
    }
}

static void (*const measure[FO_ENERGY_KINDS])(fo_rows *r, int64_t y, float *to) = {
    log_row, tenengrad_row, modlap_row, variance_row, laplace_row};

static const float *smooth_row(fo_rows *r, int64_t y)
{
    bool made;
    float *row = slot(r, SMOOTH, 1, y, &made);
    if (made) return row;
    measure[r->e->kind](r, y, r->line3);
    extend(r, r->line3, r->e->smooth, FO_BORDER_MIRROR);
    r->loop->across(row, r->line3, r->e->weight, r->e->smooth, r->n);
    return row;
}

void fo_rows_make_some(fo_rows *r, int64_t y, int count, float *to)
{
    const float *near[FO_RING_MOST];
    const int radius = r->e->smooth;
    if (radius == 0) {
        for (int k = 0; k < count; k++) measure[r->e->kind](r, y + k, to + k * r->n);
        return;
    }
    for (int i = -radius; i < radius + count; i++)
        near[i + radius] = smooth_row(r, fo_border_at(y + i, r->height, FO_BORDER_MIRROR));
    r->loop->down(to, r->n, count, near, r->e->weight, radius, r->n);
}

void fo_rows_make(fo_rows *r, int64_t y, float *to)
{
    fo_rows_make_some(r, y, 1, to);
}
