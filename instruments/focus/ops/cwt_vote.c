/* cwt_vote.c - planes of coefficients agree with their neighbours.
 *
 * Between bands: where two of the three at a place name one plane, the third takes it. In space:
 * the plane that most of 3x3 name, the smallest of equals, with rows and columns repeated at the
 * border. Coefficients that vanish in every plane name none and have no vote.
 */
#include "cwt_lines.h"

#include <string.h>

enum { SIDE = 1 }; /* columns that a row of votes has before and after itself */

static fth_status infer(fth_node *node, fth_err *err)
{
    char text[256];
    const fth_desc *d = &node->in[0];
    if (!fo_cwt_names(d->dtype) || d->n_axes != 4 || node->in[1].dtype != FTH_I64 ||
        node->in[1].n_axes != 1)
        return FTH_FAIL(
            err, FTH_E_DTYPE_OP,
            "focus_cwt_vote: %s is not u8 or u16 [stack band y x], or the first plane not i64 "
            "[stack]",
            fth_in_format(node, 0, text, sizeof text));
    node->n_out = 1;
    node->out[0] = *d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)node, (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (dim == 1 || dim == 3) *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    if (dim == 2)
        *out =
            (fth_relation){.along = FTH_HALO, .out_dim = 2, .mul = 1, .div = 1, .lo = 1, .hi = 1};
}

static uint64_t scratch(const fth_call *call)
{
    const fth_desc *d = &call->node->in[0];
    return (uint64_t)((3 * d->size[1] + 1) * (d->size[3] + 2 * SIDE)) *
           sizeof(uint16_t); /* u8: half */
}

static double flops(const fth_call *call)
{
    return 100.0 * (double)fth_desc_count(&call->node->out[0]) * (double)call->out[0].extent[2] /
           (double)call->node->out[0].size[2];
}

typedef struct place {
    const fo_cwt_planes *planes;
    fo_walk in, out;
    int64_t consistency, rows, n, size, len; /* columns; bytes of a name, of a line */
    char *room; /* ring of three rows of each band, and one for results */
} place;

static char *line(const place *p, int64_t y, int64_t b)
{
    return p->room + ((y + 3) % 3 * p->in.n[FO_B] + b) * p->len + SIDE * p->size;
}

/* Row y of every band, with what the bands say to each other. */
static void read_row(const place *p, int64_t s, int64_t y)
{
    const int64_t at = y < 0 ? 0 : y < p->rows ? y : p->rows - 1;
    const size_t size = (size_t)p->size;
    for (int64_t b = 0; b < p->in.n[FO_B]; b++) {
        char *to = line(p, y, b), *row = fo_walk_row(&p->in, s, 0, b, 0, at);
        if (p->in.step[FO_X] == p->size) /* else it was copied there */
            memcpy(to, row, size * (size_t)p->n);
        else
            (void)fo_cwt_open_planes(row, p->in.step[FO_X], p->size, to, p->n);
    }
    if (p->consistency >= 1 && p->in.n[FO_B] == FO_CWT_BANDS)
        p->planes->agree((void *const[3]){line(p, y, 0), line(p, y, 1), line(p, y, 2)}, p->n);
    for (int64_t b = 0; b < p->in.n[FO_B]; b++) {
        char *to = line(p, y, b), *end = to + p->n * p->size;
        memcpy(to - size, to, size);
        memcpy(end, end - size, size);
    }
}

static void write_row(const place *p, int64_t s, int64_t y, int64_t first)
{
    char *result = p->room + 3 * p->in.n[FO_B] * p->len;
    for (int64_t b = 0; b < p->in.n[FO_B]; b++) {
        const void *const rows[3] = {line(p, y - 1, b), line(p, y, b), line(p, y + 1, b)};
        char *row = fo_walk_row(&p->out, s, 0, b, 0, y);
        if (p->consistency >= 2)
            p->planes->majority(result, rows, first, p->n);
        else
            p->planes->settle(result, rows[1], first, p->n);
        for (int64_t x = 0; p->out.step[FO_X] != p->size && x < p->n; x++)
            memcpy(row + x * p->out.step[FO_X], result + x * p->size, (size_t)p->size);
        if (p->out.step[FO_X] == p->size) memcpy(row, result, (size_t)(p->n * p->size));
    }
}

static fth_status run(const fth_call *call)
{
    const fo_cwt_vote_attr *a = call->node->attr;
    const fth_desc *d = &call->node->in[0];
    const fo_walk first = fo_walk_of(&call->node->in[1], &call->in[1], "s");
    const int64_t size = fth_dtype_size(d->dtype);
    place p = {.planes = fo_cwt_planes_of(FTH_ISA_BEST(fo_cwt_loops), d->dtype),
               .in = fo_walk_of(d, &call->in[0], "sbyx"),
               .out = fo_walk_of(d, &call->out[0], "sbyx"),
               .consistency = a->consistency,
               .rows = d->size[2],
               .n = d->size[3],
               .size = size,
               .len = (d->size[3] + 2 * SIDE) * size,
               .room = call->scratch};
    const int64_t lo = p.out.lo[FO_Y], hi = lo + p.out.n[FO_Y];
    if (lo == hi || p.n == 0) return FTH_OK;
    for (int64_t s = p.out.lo[FO_S]; s < p.out.lo[FO_S] + p.out.n[FO_S]; s++) {
        int64_t plane;
        memcpy(&plane, fo_walk_row(&first, s, 0, 0, 0, 0), sizeof plane);
        read_row(&p, s, lo - 1);
        read_row(&p, s, lo);
        for (int64_t y = lo; y < hi; y++) {
            read_row(&p, s, y + 1);
            write_row(&p, s, y, plane);
        }
    }
    return FTH_OK;
}

const fth_op fo_cwt_vote_op = {.name = "focus_cwt_vote",
                               .brief = "planes that neighbouring wavelet coefficients agree on",
                               .infer = infer,
                               .relation = relation,
                               .scratch = scratch,
                               .flops = flops,
                               .flop_cost = 2.05,
                               .run = run};
