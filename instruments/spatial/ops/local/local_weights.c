/* local_weights.c - the operation that conditions cells on their neighbours, given the covariance
 * (model 7.2).
 *
 * The matrix of the neighbours is factored once per cell and reused for all groups; where factors
 * have lengthscales of their own, once per cell and factor, and slopes in them come with it (model
 * 19.6).
 */
#include "local_weights.h"
#include "local_op.h"

#include <math.h>

sp_local_cov sp_local_cov_of(const sp_model *m)
{
    const sp_settings *s = &m->set;
    return (sp_local_cov){.sigma = s->sigma,
                          .lengthscale = s->lengthscale,
                          .alpha = s->group_diff_param,
                          .jitter = s->jitter,
                          .kernel = (int32_t)s->kernel,
                          .groups = s->groups ? (int32_t)s->n_groups : 0};
}

static void add_axis(fth_desc *d, fth_axis_id axis, int64_t size)
{
    d->axis[d->n_axes] = axis;
    d->size[d->n_axes++] = size;
}

static fth_status infer(fth_node *node, fth_err *err)
{
    const attr *a = node->attr;
    FTH_TRY(sp_local_real(node, (fth_dtype)a->real, err));
    FTH_TRY(sp_local_need(node, NBR, FTH_I32, 2, err));
    FTH_TRY(sp_local_need(node, AT, FTH_F32, 2, err));
    FTH_TRY(sp_local_need(node, Z, FTH_F32, 2, err));
    FTH_TRY(sp_local_like(node, AT, 0, NBR, 0, err));
    FTH_TRY(sp_local_like(node, AT, 1, Z, 1, err));
    if (a->cov.groups > 0) {
        FTH_TRY(sp_local_need(node, GROUPS_Z, FTH_I32, 1, err));
        FTH_TRY(sp_local_like(node, GROUPS_Z, 0, Z, 0, err));
    }
    if (a->group >= 0) {
        FTH_TRY(sp_local_need(node, a->group, FTH_I32, 1, err));
        FTH_TRY(sp_local_like(node, a->group, 0, NBR, 0, err));
    }
    if (a->distance >= 0) FTH_TRY(sp_local_need(node, a->distance, FTH_F64, 2, err));
    if (a->ell >= 0) FTH_TRY(sp_local_need(node, a->ell, FTH_F64, 1, err));
    if (node->in[Z].size[1] != 2 ||
        (a->distance >= 0 && (node->in[a->distance].size[0] != a->cov.groups ||
                              node->in[a->distance].size[1] != a->cov.groups)))
        return FTH_FAIL(err, FTH_E_AXIS_SIZE, "%s: expected 2 coordinates and %d groups",
                        node->op->name, (int)a->cov.groups);
    const fth_desc *n = &node->in[NBR];
    fth_desc d = {.dtype = (fth_dtype)a->real};
    if (a->every) add_axis(&d, a->axis, a->cov.groups);
    if (a->ell >= 0) add_axis(&d, node->in[a->ell].axis[0], node->in[a->ell].size[0]);
    add_axis(&d, n->axis[0], n->size[0]);
    node->n_out = a->every ? 1 : a->ell >= 0 ? 3 : 2;
    node->out[VARIANCE] = d;
    add_axis(&d, n->axis[1], n->size[1]);
    node->out[WEIGHTS] = node->out[SLOPE] = d;
    return FTH_OK;
}

static void relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    const attr *a = node->attr;
    *out = (fth_relation){.along = FTH_WHOLE, .out_dim = -1};
    const int factors = a->every ? 1 : 0, cells = a->ell >= 0 ? factors + 1 : factors;
    if (dim == 0 && (in == NBR || in == AT || in == a->group)) *out = sp_same(cells);
    if (in == a->ell) *out = sp_same(factors);
}

static int64_t table_room(const attr *a)
{
    const int64_t g = a->cov.groups > 0 ? a->cov.groups : 1;
    return SP_LOCAL_PAIR * g * g;
}

static uint64_t scratch(const fth_call *call)
{
    const attr *a = call->node->attr;
    const int64_t k = call->node->in[NBR].size[1], q = asked(a),
                  system = has_slopes(a) ? k + sp_local_tangent_room(k) : sp_local_room(k, q, 0);
    /* the table, compact distances, groups, results, the linear system with its slopes */
    return sizeof(double) * (uint64_t)(table_room(a) * 3 / 2 + q + 8 + q * (k + 1) + system + 8);
}

static double flops(const fth_call *call)
{
    const double k = (double)call->node->in[NBR].size[1], q = (double)asked(call->node->attr);
    const int ell = ((const attr *)call->node->attr)->ell;
    const double factors = ell >= 0 ? 2 * (double)call->in[ell].extent[0] : 1; /* and slopes */
    return (double)call->in[NBR].extent[0] * factors * (k * k * k / 3 + 20 * k * k + q * 2 * k * k);
}

typedef struct work {
    const fth_call *call;
    const attr *a;
    const sp_local_loops *loop;
    sp_local_table table;
    int32_t *group;
    double *pairs, *distance; /* the table, and what it is made from */
    double *weight, *var, *slope, *room;
} work;

static double *aligned(double *p)
{
    return p + (64 - (uintptr_t)p % 64) % 64 / sizeof *p;
}

static void prepare(work *w, const fth_call *call)
{
    const attr *a = call->node->attr;
    const int64_t g = a->cov.groups > 0 ? a->cov.groups : 1, q = asked(a);
    double *at = call->scratch;
    *w = (work){.call = call, .a = a, .loop = sp_local_best(), .pairs = at};
    at += table_room(a);
    if (a->distance >= 0) {
        const fth_tile *t = &call->in[a->distance];
        w->distance = at;
        for (int64_t i = 0; i < g; i++)
            for (int64_t j = 0; j < g; j++)
                w->distance[i * g + j] = ((const double *)t->data)[sp_at2(t, i, j)];
    }
    at += table_room(a) / 2;
    w->group = (int32_t *)(void *)at;
    for (int64_t i = 0; i < q; i++) w->group[i] = (int32_t)i;
    at = aligned(at + q);
    w->weight = at;
    w->var = at + q * call->node->in[NBR].size[1];
    w->slope = w->var + q;
    w->room = aligned(w->slope + (has_slopes(a) ? call->node->in[NBR].size[1] : 0));
}

/* The covariances of factor l. */
static void make_table(work *w, int64_t l)
{
    const attr *a = w->a;
    sp_local_cov cov = a->cov;
    if (a->ell >= 0) {
        const fth_tile *t = &w->call->in[a->ell];
        cov.lengthscale = exp(((const double *)t->data)[sp_at1(t, l)]);
    }
    sp_local_table_fill(&w->table, w->pairs, &cov, cov.groups > 0 ? cov.groups : 1, w->distance);
}

static fth_status check(const work *w, const sp_local_cell *c, int64_t cell)
{
    const fth_node *node = w->call->node;
    const int64_t cells = node->in[Z].size[0], groups = w->a->cov.groups;
    for (int64_t i = 0; i < c->k; i++) {
        const int64_t n = c->nbr[i];
        if (n < 0 || n >= cells) return wrong_cell(node, WRONG_NEIGHBOUR, cell, n, w->call->err);
        if (groups > 0 && (c->groupsZ[n] < 0 || c->groupsZ[n] >= groups))
            return wrong_cell(node, WRONG_GROUP_OF_NEIGHBOUR, cell, c->groupsZ[n], w->call->err);
    }
    if (groups > 0 && (c->group[0] < 0 || c->group[0] >= groups))
        return wrong_cell(node, WRONG_GROUP, cell, c->group[0], w->call->err);
    return FTH_OK;
}

static void put_row(const fth_tile *out, fth_dtype real, int64_t at, const double *row, int64_t k)
{
    for (int64_t i = 0; out->data && i < k; i++) sp_put(out->data, real, at + i, row[i]);
}

static void store(const work *w, int64_t l, int64_t cell)
{
    const fth_tile *out = w->call->out;
    const int64_t k = w->call->node->in[NBR].size[1];
    const bool each = w->a->ell >= 0;
    const fth_dtype real = (fth_dtype)w->a->real;
    for (int64_t g = 0; w->a->every && g < asked(w->a); g++)
        put_row(out, real, each ? sp_at3(out, g, l, cell) : sp_at2(out, g, cell), w->weight + g * k,
                k);
    if (w->a->every) return;
    const int64_t at = sp_at_factor(&out[WEIGHTS], each, l, cell),
                  one = sp_at_factor(&out[VARIANCE], each, l, cell);
    put_row(&out[WEIGHTS], real, at, w->weight, k);
    if (out[VARIANCE].data)
        sp_put(out[VARIANCE].data, real, one, fmin(fmax(w->var[0], w->a->lo), 100));
    if (each) put_row(&out[SLOPE], real, sp_at2(&out[SLOPE], l, cell), w->slope, k);
}

static bool solve(const work *w, const sp_local_cell *c)
{
    if (has_slopes(w->a) && w->call->out[SLOPE].data)
        return w->loop->tangent(c, w->room, w->weight, w->var, w->slope);
    return w->loop->weights(c, w->room, w->weight, w->var);
}

static fth_status run_cells(const work *w, int64_t l)
{
    const fth_call *call = w->call;
    const attr *a = w->a;
    const fth_tile *nbr = &call->in[NBR], *at = &call->in[AT], *z = &call->in[Z];
    for (int64_t i = nbr->origin[0]; i < nbr->origin[0] + nbr->extent[0]; i++) {
        sp_local_cell c = {.table = &w->table,
                           .k = call->node->in[NBR].size[1],
                           .asked = asked(a),
                           .at = (const float *)at->data + sp_at1(at, i),
                           .nbr = (const int32_t *)nbr->data + sp_at1(nbr, i),
                           .Z = z->data,
                           .Z_step = z->stride[0]};
        if (a->cov.groups > 0) c.groupsZ = call->in[GROUPS_Z].data;
        if (a->cov.groups > 0) c.group = w->group;
        if (a->group >= 0)
            c.group = (const int32_t *)call->in[a->group].data + sp_at1(&call->in[a->group], i);
        FTH_TRY(check(w, &c, i));
        if (!solve(w, &c)) return not_definite(call->node, i, call->err);
        store(w, l, i);
    }
    return FTH_OK;
}

static fth_status run(const fth_call *call)
{
    const attr *a = call->node->attr;
    const int64_t first = a->ell >= 0 ? call->in[a->ell].origin[0] : 0,
                  end = a->ell >= 0 ? first + call->in[a->ell].extent[0] : 1;
    work w;
    prepare(&w, call);
    for (int64_t l = first; l < end; l++) {
        make_table(&w, l);
        FTH_TRY(run_cells(&w, l));
    }
    return FTH_OK;
}

static const fth_op weights = {
    .name = "spatial_local_weights",
    .brief = "weights of neighbours in the conditional mean of a Gaussian process",
    .flags = FTH_OP_MAY_FAIL,
    .infer = infer,
    .relation = relation,
    .scratch = scratch,
    .flops = flops,
    .run = run,
};

static fth_val build(fth_site site, attr *a, const sp_local_places *p)
{
    fth_val in[FTH_MAX_IN] = {[NBR] = p->nbr, [AT] = p->at, [Z] = p->Z};
    int n = GROUPS_Z;
    a->group = a->distance = a->ell = -1;
    if (a->cov.groups > 0) in[n++] = p->groupsZ;
    if (a->cov.groups > 0 && !a->every) {
        a->group = n;
        in[n++] = p->group;
    }
    if (a->cov.groups > 0 && p->distance.id != 0) {
        a->distance = n;
        in[n++] = p->distance;
    }
    if (p->log_ell.id != 0) {
        a->ell = n;
        in[n++] = p->log_ell;
    }
    return fth_node_add_(p->nbr.graph, site, &weights, n, in, a, sizeof *a);
}

fth_val sp_local_weights_(fth_site site, const sp_local_cov *cov, const sp_local_places *p,
                          fth_dtype real, double lo)
{
    attr a = {.cov = *cov, .real = (int32_t)real, .lo = lo};
    return build(site, &a, p);
}

fth_val sp_local_weights_groups_(fth_site site, const sp_local_cov *cov, const sp_local_places *p,
                                 fth_dtype real)
{
    attr a = {.cov = *cov, .real = (int32_t)real, .every = 1};
    a.axis = fth_axis_find(p->nbr.graph, "group");
    if (cov->groups < 1 || a.axis < 0)
        return fth_poison_(p->nbr.graph, site, FTH_E_AXIS_MISSING,
                           "spatial_local_weights: expected an axis 'group' and a model with "
                           "groups, found %d groups",
                           (int)cov->groups);
    return build(site, &a, p);
}
