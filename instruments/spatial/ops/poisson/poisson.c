/* poisson.c - what the operations of the likelihood share: shapes, tiles, which loops. */
#include "poisson.h"

static fth_status wrong(const fth_node *node, int in, const char *want, fth_err *err)
{
    char text[256];
    return FTH_FAIL(err, FTH_E_AXIS_MISMATCH, "%s: %s is wanted, not %s", node->op->name, want,
                    fth_in_format(node, in, text, sizeof text));
}

int sp_poisson_cell_dim(const fth_node *node)
{
    return node->in[SP_IN_PHI].n_axes - 1;
}

int64_t sp_poisson_draws(const fth_node *node)
{
    return node->in[SP_IN_PHI].n_axes == 3 ? node->in[SP_IN_PHI].size[0] : 1;
}

static bool same_shape(const fth_desc *a, const fth_desc *b)
{
    bool same = a->dtype == b->dtype && a->n_axes == b->n_axes;
    for (int d = 0; same && d < a->n_axes; d++) same = a->axis[d] == b->axis[d];
    return same;
}

fth_status sp_poisson_check(const fth_node *node, fth_err *err)
{
    const fth_desc *phi = &node->in[SP_IN_PHI], *W = &node->in[SP_IN_W],
                   *rows = &node->in[SP_IN_ROW_PTR], *gene = &node->in[SP_IN_GENE],
                   *value = &node->in[SP_IN_VALUE];
    if ((phi->n_axes != 2 && phi->n_axes != 3) || (phi->dtype != FTH_F32 && phi->dtype != FTH_F64))
        return wrong(node, SP_IN_PHI, "phi f32 or f64 [draw factor cellb]", err);
    if (W->n_axes != 2 || W->dtype != phi->dtype || W->axis[1] != phi->axis[phi->n_axes - 2])
        return wrong(node, SP_IN_W, "W [geneb factor] of the dtype of phi", err);
    if (rows->n_axes != 1 || rows->dtype != FTH_I64 ||
        rows->size[0] != phi->size[phi->n_axes - 1] + 1)
        return wrong(node, SP_IN_ROW_PTR, "row_ptr i64 with one element more than cells", err);
    if (gene->n_axes != 1 || gene->dtype != FTH_I32)
        return wrong(node, SP_IN_GENE, "gene i32 [entry]", err);
    if (value->n_axes != 1 || value->dtype != FTH_F32 || value->axis[0] != gene->axis[0])
        return wrong(node, SP_IN_VALUE, "value f32 [entry]", err);
    if (node->n_in > SP_IN_EPS && !same_shape(&node->in[SP_IN_EPS], phi))
        return wrong(node, SP_IN_EPS, "eps of the shape of phi", err);
    return FTH_OK;
}

fth_val sp_poisson_add(fth_site site, const fth_op *op, const sp_poisson_in *in, fth_val eps,
                       bool update)
{
    const sp_poisson_attr attr = {.path = (int32_t)in->path, .update = update};
    const fth_val all[] = {in->phi, in->W, in->row_ptr, in->gene, in->value, eps};
    return fth_node_add_(in->phi.graph, site, op, fth_val_ok(eps) ? 6 : 5, all, &attr, sizeof attr);
}

double sp_poisson_flops(const fth_call *call)
{
    const fth_node *n = call->node;
    const double share = (double)call->in[SP_IN_PHI].extent[sp_poisson_cell_dim(n)] /
                         (double)(n->in[SP_IN_PHI].size[sp_poisson_cell_dim(n)] + 1);
    return 13.0 * share * (double)n->in[SP_IN_VALUE].size[0] * (double)n->in[SP_IN_W].size[1] *
           (double)sp_poisson_draws(n);
}

/* Steps between draws and between factors of phi or eps. */
static void steps(const fth_node *node, const fth_tile *t, int64_t *draw, int64_t *factor)
{
    const int n = node->in[SP_IN_PHI].n_axes;
    *draw = n == 3 ? t->stride[0] : 0;
    *factor = t->stride[n - 2];
}

sp_poisson_piece sp_poisson_of(const fth_call *call)
{
    const fth_node *node = call->node;
    const sp_poisson_attr *attr = node->attr;
    const int cell = sp_poisson_cell_dim(node);
    const fth_tile *phi = &call->in[SP_IN_PHI], *rows = &call->in[SP_IN_ROW_PTR];
    const int64_t *row_ptr = rows->data, first = call->in[SP_IN_GENE].origin[0];
    sp_poisson_piece p = {.row_ptr = row_ptr + phi->origin[cell],
                          .gene = (const int32_t *)call->in[SP_IN_GENE].data - first,
                          .value = (const float *)call->in[SP_IN_VALUE].data - first,
                          .W = call->in[SP_IN_W].data,
                          .w_step = call->in[SP_IN_W].stride[0],
                          .phi = phi->data,
                          .cells = phi->extent[cell],
                          .genes = node->in[SP_IN_W].size[0],
                          .factors = node->in[SP_IN_W].size[1],
                          .draws = sp_poisson_draws(node),
                          .update = attr->update != 0};
    steps(node, phi, &p.phi_draw, &p.phi_factor);
    if (node->n_in > SP_IN_EPS) {
        p.eps = call->in[SP_IN_EPS].data;
        steps(node, &call->in[SP_IN_EPS], &p.eps_draw, &p.eps_factor);
    }
    /* Decided by the whole batch, not the chunk: bits must not depend on chunks. */
    const int64_t all = node->in[SP_IN_PHI].size[cell];
    const double stored = (double)(row_ptr[all] - row_ptr[0]);
    p.dense = attr->path == SP_PATH_DENSE ||
              (attr->path == SP_PATH_AUTO && stored > 0.25 * (double)all * (double)p.genes);
    return p;
}

sp_poisson_piece sp_poisson_some(const sp_poisson_piece *p, int64_t from, int64_t n, fth_dtype real)
{
    sp_poisson_piece some = *p;
    const int64_t bytes = from * fth_dtype_size(real);
    some.row_ptr += from;
    some.phi = (const char *)p->phi + bytes;
    if (p->eps) some.eps = (const char *)p->eps + bytes;
    some.cells = n;
    return some;
}

/* ---- loops ---- */

enum { MOST_LANES = 16 };

int64_t sp_poisson_padded(int64_t n, int lanes)
{
    return (n + lanes - 1) / lanes * lanes;
}

int64_t sp_poisson_part(int64_t genes, int64_t factors)
{
    const int64_t sparse = genes * sp_poisson_padded(factors, MOST_LANES);
    const int64_t dense = factors * sp_poisson_padded(genes, MOST_LANES);
    return sparse > dense ? sparse : dense;
}

int64_t sp_poisson_work(int64_t genes, int64_t factors, int64_t draws)
{
    const int64_t bunch = SP_POISSON_BUNCH * (factors + draws + 1);
    const int64_t tile = MOST_LANES * (bunch + draws * factors);
    const int64_t group = 2 * SP_POISSON_GROUP * draws * sp_poisson_padded(factors, MOST_LANES);
    return tile + group + sp_poisson_padded(genes, MOST_LANES);
}

const sp_poisson_loops *sp_poisson_at(int level, fth_dtype real)
{
    return real == FTH_F32 ? FTH_ISA_AT(sp_poisson_f32, level) : FTH_ISA_AT(sp_poisson_f64, level);
}

const sp_poisson_loops *sp_poisson_best(fth_dtype real)
{
    return real == FTH_F32 ? FTH_ISA_BEST(sp_poisson_f32) : FTH_ISA_BEST(sp_poisson_f64);
}
