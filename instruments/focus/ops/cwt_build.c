/* cwt_build.c - a level from its low-low corner and its details; the last one is the image.
 *
 * Rows of the corner and the details are first widened across, low and high in y apart; four of
 * them in a ring make two rows of the level.
 */
#include "cwt_lines.h"

#include <string.h>

enum { RING = 4 };

static fth_status infer(fth_node *node, fth_err *err)
{
    const fo_cwt_attr *a = node->attr;
    const fth_desc *corner = &node->in[0], *details = &node->in[1];
    const int n = corner->n_axes;
    char text[256];
    if (corner->dtype != FTH_F32 || details->dtype != FTH_F32 || n < 4 || n > 5 ||
        details->n_axes != 5 || details->size[1] != FO_CWT_BANDS)
        return FTH_FAIL(
            err, FTH_E_DTYPE_OP,
            "focus_cwt_build: %s is not f32 [stack part y x] with three bands of details",
            fth_in_format(node, 0, text, sizeof text));
    for (int i = 1; i <= 2; i++)
        if (corner->size[n - i] != details->size[5 - i] ||
            2 * details->size[5 - i] != (i == 1 ? a->cols : a->rows))
            return FTH_FAIL(
                err, FTH_E_AXIS_SIZE, "focus_cwt_build: %s does not make %lld rows of %lld",
                fth_in_format(node, 0, text, sizeof text), (long long)a->rows, (long long)a->cols);
    node->n_out = 1;
    fth_desc *d = &node->out[0];
    *d = (fth_desc){.dtype = FTH_F32, .axis = {corner->axis[0]}, .size = {corner->size[0]}};
    d->n_axes = 1;
    if (!a->last) d->axis[1] = a->part, d->size[1] = 2, d->n_axes = 2;
    d->axis[d->n_axes] = a->y;
    d->size[d->n_axes++] = a->last ? a->height : a->rows;
    d->axis[d->n_axes] = a->x;
    d->size[d->n_axes++] = a->last ? a->width : a->cols;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = dim == 0 ? FTH_SAME : FTH_WHOLE, .out_dim = dim == 0 ? 0 : -1};
}

/* Lines of half the columns with margins: four as read, a ring of RING x (low, high) x (re, im) x
 * (even, odd), two rows made; and a line of the level. */
static int64_t line_floats(int64_t half)
{
    return (half + 15) / 16 * 16 + 2 * FO_CWT_MARGIN;
}
static uint64_t scratch(const fth_call *call)
{
    const fo_cwt_attr *a = call->node->attr;
    return (uint64_t)((4 + RING * 8 + 4) * line_floats(a->cols / 2) + a->cols) * sizeof(float);
}

static double flops(const fth_call *call)
{
    const fth_desc *d = &call->node->out[0];
    return 60.0 * (double)fth_desc_count(d) * (double)call->out[0].extent[d->n_axes - 2] /
           (double)d->size[d->n_axes - 2];
}

typedef struct place {
    const fo_cwt_loops *loops;
    fo_walk corner, details, out;
    int64_t rows, cols, half, len, pad, s, next;
    int parts; /* that are wanted */
    float *read, *ring, *made, *line;
} place;

static float *slot(const place *p, int64_t i, int high, int part)
{
    return p->ring + (((i + RING) % RING * 2 + high) * 2 + part) * 2 * p->len;
}

static const float *read_line(const place *p, int k, const char *row, int64_t step)
{
    float *to = p->read + k * p->len + FO_CWT_MARGIN;
    fo_cwt_read(p->loops, to, row, step, FTH_F32, p->half);
    for (int64_t m = 1; m <= 2; m++) to[p->half + m - 1] = to[(m - 1) % p->half];
    to[-1] = to[p->half - 1];
    return to;
}

/* Row i of the low and of the high half in y, widened to all columns. */
static void widen_row(const place *p, int64_t i)
{
    static const int band[2][2] = {{-1, 0}, {2, 1}}; /* [high_y][high_x]; -1: the corner */
    const int64_t half_rows = p->rows / 2, at = (i % half_rows + half_rows) % half_rows;
    for (int high = 0; high < 2; high++) {
        const float *from[2][2];
        for (int k = 0; k < 4; k++) {
            const int b = band[high][k / 2];
            const fo_walk *w = b < 0 ? &p->corner : &p->details;
            from[k / 2][k % 2] =
                read_line(p, k, fo_walk_row(w, p->s, 0, b < 0 ? 0 : b, k % 2, at), w->step[FO_X]);
        }
        const float *even[2][6], *odd[2][6];
        for (int h = 0; h < 2; h++)
            for (int k = 0; k < 3; k++)
                for (int part = 0; part < 2; part++) {
                    even[h][3 * part + k] = from[h][part] + 1 - k;
                    odd[h][3 * part + k] = from[h][part] + 2 - k;
                }
        float *re = slot(p, i, high, 0), *im = slot(p, i, high, 1);
        p->loops->even(even[0], even[1], re, im, p->half);
        p->loops->odd(odd[0], odd[1], re + p->len, im + p->len, p->half);
    }
}

/* Row r of the level to the output. */
static void write_row(const place *p, int64_t r)
{
    const int64_t k = r / 2, first = r % 2 ? k + 2 : k + 1, y = r - p->pad;
    const float *from[2][6];
    for (int high = 0; high < 2; high++)
        for (int m = 0; m < 3; m++)
            for (int part = 0; part < 2; part++)
                from[high][3 * part + m] = slot(p, first - m, high, part);
    float *made[2] = {p->made, p->made + 2 * p->len};
    (r % 2 ? p->loops->odd : p->loops->even)(from[0], from[1], made[0], made[1], 2 * p->len);
    for (int part = 0; part < p->parts; part++) {
        p->loops->weave(p->line, made[part], made[part] + p->len, p->half);
        char *row = fo_walk_row(&p->out, p->s, 0, 0, part, y);
        const int64_t step = p->out.step[FO_X], n = p->out.n[FO_X];
        if (step == (int64_t)sizeof(float))
            memcpy(row, p->line + p->pad, (size_t)n * sizeof(float));
        else
            for (int64_t x = 0; x < n; x++)
                memcpy(row + x * step, p->line + p->pad + x, sizeof(float));
    }
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    const fo_cwt_attr *a = node->attr;
    place p = {.loops = FTH_ISA_BEST(fo_cwt_loops),
               .corner = fo_walk_of(&node->in[0], &call->in[0],
                                    node->in[0].n_axes == 5 ? "sbpyx" : "spyx"),
               .details = fo_walk_of(&node->in[1], &call->in[1], "sbpyx"),
               .out = fo_walk_of(&node->out[0], &call->out[0], a->last ? "syx" : "spyx"),
               .rows = a->rows,
               .cols = a->cols,
               .half = a->cols / 2,
               .len = line_floats(a->cols / 2),
               .pad = a->last ? a->pad : 0,
               .parts = a->last ? 1 : 2,
               .read = call->scratch};
    p.ring = p.read + 4 * p.len;
    p.made = p.ring + RING * 8 * p.len;
    p.line = p.made + 4 * p.len;
    memset(p.read, 0, (size_t)scratch(call)); /* what lies between the lines is made along */
    const int64_t lo = p.out.lo[FO_Y] + p.pad, hi = lo + p.out.n[FO_Y];
    for (p.s = p.out.lo[FO_S]; p.s < p.out.lo[FO_S] + p.out.n[FO_S]; p.s++) {
        int64_t next = lo / 2 - 1;
        for (int64_t r = lo; r < hi; r++) {
            for (; next <= r / 2 + 2; next++) widen_row(&p, next);
            write_row(&p, r);
        }
    }
    return FTH_OK;
}

const fth_op fo_cwt_build_op = {.name = "focus_cwt_build",
                                .brief = "a level of a wavelet transform from the one below",
                                .flags = FTH_OP_FREE_AXES,
                                .infer = infer,
                                .relation = relation,
                                .grid = fo_cwt_grid,
                                .scratch = scratch,
                                .flops = flops,
                                .flop_cost = 2.05,
                                .run = run};
