/* group_graph.c - see group_graph.h. Loadings are copied to the device and back in every run: the
 * host checks convergence in between. */
#include "group_graph.h"

#include "../ops/groups/group_steps.h"

#include <string.h>

struct sp_group_graph {
    fth_mem *mem;
    fth_graph *g;
    fth_plan *plan;
    fth_tensor *YF, *FF;
    int64_t size[3]; /* groups, genes, factors */
    int64_t *steps;
};

static fth_source loadings(const sp_group_graph *g, const double *data)
{
    return (fth_source){.kind = "memory",
                        .dtype = FTH_F64,
                        .n_axes = 3,
                        .size = {g->size[0], g->size[1], g->size[2]},
                        .data = (void *)(uintptr_t)data,
                        .concurrent = true}; /* only read */
}

static fth_sink loadings_to(const sp_group_graph *g, double *data)
{
    return (fth_sink){.kind = "memory",
                      .dtype = FTH_F64,
                      .n_axes = 3,
                      .size = {g->size[0], g->size[1], g->size[2]},
                      .data = data};
}

static fth_status copy_to(fth_tensor **out, fth_mem *mem, const char *label, const int64_t size[3],
                          const double *from, fth_err *err)
{
    FTH_TRY(fth_tensor_create(out, mem, label, FTH_F64, 3, size, err));
    memcpy(fth_tensor_data(*out), from, (size_t)fth_tensor_bytes(*out));
    return FTH_OK;
}

static fth_status build(sp_group_graph *of, const sp_group_problem *p, fth_err *err)
{
    fth_graph *g = of->g = fth_graph_create(p->ctx);
    if (!g) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the graph of group loadings");
    fth_axis(g, "group", p->groups);
    fth_axis(g, "gene", p->genes);
    fth_axis(g, "factor", p->factors);
    fth_axis_like(g, "factor2", "factor");
    const fth_source steps = {
        .kind = "memory", .dtype = FTH_I64, .n_axes = 1, .size = {p->groups}, .data = of->steps};
    const char *axes = "group gene factor";
    const fth_val in[SP_STEPS_INPUTS] = {
        [SP_STEPS_W] = fth_input(g, "W", FTH_F64, axes, loadings(of, p->YF)),
        [SP_STEPS_BEFORE] = fth_input(g, "before", FTH_F64, axes, loadings(of, p->YF)),
        [SP_STEPS_YF] = fth_param(g, "YF", axes, of->YF),
        [SP_STEPS_FF] = fth_param(g, "FF", "group factor factor2", of->FF),
        [SP_STEPS_N] = fth_input(g, "steps", FTH_I64, "group", steps)};
    const fth_val W = sp_group_steps_(FTH_HERE, in), out[2] = {W, fth_out(W, 1)};
    of->plan = fth_plan_make(g, out, 2, &(fth_limits){0}, err);
    return of->plan ? FTH_OK : err->status;
}

static fth_status fill(sp_group_graph *g, const sp_group_problem *p, fth_err *err)
{
    void *steps = NULL;
    FTH_TRY(fth_mem_take(g->mem, FTH_MEM_META, (uint64_t)p->groups * sizeof(int64_t), "steps",
                         &steps, err));
    g->steps = steps;
    memset(steps, 0, (size_t)p->groups * sizeof(int64_t));
    FTH_TRY(copy_to(&g->YF, g->mem, "YF", g->size, p->YF, err));
    const int64_t square[3] = {p->groups, p->factors, p->factors};
    FTH_TRY(copy_to(&g->FF, g->mem, "FF", square, p->FF, err));
    return build(g, p, err);
}

fth_status sp_group_graph_create(sp_group_graph **out, const sp_group_problem *p, fth_err *err)
{
    *out = NULL;
    fth_mem *mem = fth_context_mem(p->ctx);
    void *block = NULL;
    fth_err why = {0}; /* fth_plan_make reports failures through it */
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(sp_group_graph), "group loadings", &block, err));
    sp_group_graph *g = block;
    *g = (sp_group_graph){.mem = mem, .size = {p->groups, p->genes, p->factors}};
    const fth_status s = fill(g, p, &why);
    if (s == FTH_OK) {
        *out = g;
        return FTH_OK;
    }
    sp_group_graph_destroy(g);
    if (err) *err = why;
    return s;
}

void sp_group_graph_destroy(sp_group_graph *g)
{
    if (!g) return;
    fth_plan_destroy(g->plan);
    fth_graph_destroy(g->g);
    fth_tensor_release(g->YF);
    fth_tensor_release(g->FF);
    fth_mem_release(g->mem, g->steps, NULL);
    fth_mem_release(g->mem, g, NULL);
}

int64_t *sp_group_graph_steps(sp_group_graph *g)
{
    return g->steps;
}

fth_status sp_group_graph_run(sp_group_graph *g, double *W, double *before, fth_err *err)
{
    const fth_sink sink[2] = {loadings_to(g, W), loadings_to(g, before)};
    FTH_TRY(fth_input_set(g->g, "W", loadings(g, W), err));
    FTH_TRY(fth_input_set(g->g, "before", loadings(g, before), err));
    return fth_run(g->plan, sink, NULL, NULL, err);
}
