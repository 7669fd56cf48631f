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
    if (d->dtype != FTH_U16 || d->n_axes != 4 || node->in[1].dtype != FTH_I64 ||
        node->in[1].n_axes != 1)
        return FTH_FAIL(
            err, FTH_E_DTYPE_OP,
            "focus_cwt_vote: %s is not u16 [stack band y x], or the first plane not i64 "
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
    return (uint64_t)((3 * d->size[1] + 1) * (d->size[3] + 2 * SIDE)) * sizeof(uint16_t);
}

static double flops(const fth_call *call)
{
    return 100.0 * (double)fth_desc_count(&call->node->out[0]) * (double)call->out[0].extent[2] /
           (double)call->node->out[0].size[2];
}

typedef struct place {
    const fo_cwt_loops *loops;
    fo_walk in, out;
    int64_t consistency, rows, n, len;
    uint16_t *room; /* ring of three rows of each band, and one for results */
} place;

static uint16_t *line(const place *p, int64_t y, int64_t b)
{
    return p->room + ((y + 3) % 3 * p->in.n[FO_B] + b) * p->len + SIDE;
}

/* Row y of every band, with what the bands say to each other. */
static void read_row(const place *p, int64_t s, int64_t y)
{
    const int64_t at = y < 0 ? 0 : y < p->rows ? y : p->rows - 1;
    for (int64_t b = 0; b < p->in.n[FO_B]; b++) {
        uint16_t *to = line(p, y, b);
        const char *row = fo_walk_row(&p->in, s, 0, b, 0, at);
        for (int64_t x = 0; x < p->n; x++) memcpy(to + x, row + x * p->in.step[FO_X], sizeof *to);
    }
    if (p->consistency >= 1 && p->in.n[FO_B] == FO_CWT_BANDS)
        p->loops->agree((uint16_t *const[3]){line(p, y, 0), line(p, y, 1), line(p, y, 2)}, p->n);
    for (int64_t b = 0; b < p->in.n[FO_B]; b++) {
        uint16_t *to = line(p, y, b);
        to[-1] = to[0];
        to[p->n] = to[p->n - 1];
    }
}

static void write_row(const place *p, int64_t s, int64_t y, uint16_t first)
{
    uint16_t *result = p->room + 3 * p->in.n[FO_B] * p->len;
    for (int64_t b = 0; b < p->in.n[FO_B]; b++) {
        const uint16_t *const rows[3] = {line(p, y - 1, b), line(p, y, b), line(p, y + 1, b)};
        char *row = fo_walk_row(&p->out, s, 0, b, 0, y);
        if (p->consistency >= 2)
            p->loops->majority(result, rows, first, p->n);
        else
            for (int64_t x = 0; x < p->n; x++)
                result[x] = rows[1][x] == FO_CWT_NONE ? first : rows[1][x];
        for (int64_t x = 0; x < p->n; x++)
            memcpy(row + x * p->out.step[FO_X], result + x, sizeof *result);
    }
}

static fth_status run(const fth_call *call)
{
    const fo_cwt_vote_attr *a = call->node->attr;
    const fth_desc *d = &call->node->in[0];
    const fo_walk first = fo_walk_of(&call->node->in[1], &call->in[1], "s");
    place p = {.loops = FTH_ISA_BEST(fo_cwt_loops),
               .in = fo_walk_of(d, &call->in[0], "sbyx"),
               .out = fo_walk_of(d, &call->out[0], "sbyx"),
               .consistency = a->consistency,
               .rows = d->size[2],
               .n = d->size[3],
               .len = d->size[3] + 2 * SIDE,
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
            write_row(&p, s, y, (uint16_t)plane);
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
                               .run = run};
