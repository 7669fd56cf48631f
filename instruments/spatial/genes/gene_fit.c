/* gene_fit.c - deviance of every gene, of the model and of a constant rate (model 14.11).
 *
 * One pass over the stored counts, as a graph in chunks of cells: sums of y, y ln y and y ln(y/mu)
 * of each gene. The sum of all rates of a gene factorises into sums over cells. Cells that were
 * held out fall into a second bin and do not count. Rates below 1e-10 are raised to it where there
 * is a count.
 */
#include "../statistics/deviance.h"
#include "genes.h"

#include <math.h>
#include <string.h>

enum { BINS = 2, SUMS = 3, OUTPUTS = SUMS + 1 }; /* y, y ln y, y ln(y / mu); and F */

typedef struct pass {
    fth_graph *g;
    fth_val out[OUTPUTS];
    fth_tensor *sum[OUTPUTS]; /* f64 [slot] thrice, slot = bin * genes + gene; f64 [bin factor] */
    fth_tensor *bin;          /* i32 [cell] */
} pass;

static fth_val number(fth_graph *g, double v)
{
    return fth_const(g, FTH_F64, v);
}

static void build(pass *p, fth_context *ctx, const sp_sums_input *in, fth_tensor *W)
{
    fth_graph *g = p->g = fth_graph_create(ctx);
    fth_axis(g, "cell", in->cells);
    fth_axis(g, "factor", in->factors);
    fth_axis(g, "gene", in->genes);
    fth_axis(g, "bin", BINS);
    fth_axis(g, "slot", BINS * in->genes);
    fth_axis_ragged(g, "entry", "cell", in->row_ptr);
    fth_val F = fth_cast(fth_input(g, "F", FTH_F32, "cell factor", in->F), FTH_F64);
    if (in->size.kind)
        F = fth_mul(F, fth_cast(fth_input(g, "size", FTH_F32, "cell", in->size), FTH_F64));
    const fth_val bin = fth_input(g, "bin", FTH_I32, "cell", in->bin),
                  gene = fth_input(g, "gene", FTH_I32, "entry", in->gene),
                  y = fth_cast(fth_input(g, "y", FTH_F32, "entry", in->value), FTH_F64),
                  w = fth_cast(fth_input(g, "W", FTH_F32, "gene factor", fth_tensor_source(W)),
                               FTH_F64),
                  first = fth_mul(fth_cast(bin, FTH_I64), fth_const_i64(g, FTH_I64, in->genes)),
                  slot = fth_add(fth_spread(first, "entry"), fth_cast(gene, FTH_I64)),
                  product = fth_mul(fth_spread(F, "entry"), fth_gather(w, "gene", gene)),
                  mu = fth_max(fth_sum(product, "factor"), number(g, SP_RATE_FLOOR)),
                  zero = number(g, 0), is_more = fth_gt(y, zero), none = fth_mul(y, zero);
    const fth_val of[SUMS] = {y, fth_select(is_more, fth_mul(y, fth_log(y)), none),
                              fth_select(is_more, fth_mul(y, fth_log(fth_div(y, mu))), none)};
    for (int i = 0; i < SUMS; i++) p->out[i] = fth_scatter_add(of[i], "entry", slot, "slot");
    p->out[SUMS] = fth_scatter_add(F, "cell", bin, "bin");
}

static fth_status make_tensors(pass *p, fth_mem *mem, const sp_sums_input *in, fth_tensor *held,
                               fth_err *err)
{
    static const char *const name[] = {"y", "y ln y", "y ln y/mu"};
    const int64_t slots = BINS * in->genes;
    FTH_TRY(fth_tensor_create(&p->bin, mem, "bin", FTH_I32, 1, &in->cells, err));
    for (int i = 0; i < SUMS; i++)
        FTH_TRY(fth_tensor_create(&p->sum[i], mem, name[i], FTH_F64, 1, &slots, err));
    const int64_t size[2] = {BINS, in->factors};
    FTH_TRY(fth_tensor_create(&p->sum[SUMS], mem, "F", FTH_F64, 2, size, err));
    int32_t *bin = fth_tensor_data(p->bin);
    const uint8_t *is_held = held ? fth_tensor_data(held) : NULL;
    for (int64_t i = 0; i < in->cells; i++) bin[i] = is_held && is_held[i];
    return FTH_OK;
}

static fth_status run_pass(pass *p, fth_answer *answer, fth_err *err)
{
    fth_sink sink[OUTPUTS];
    fth_err own = {0};
    if (!err) err = &own; /* fth_plan_make reports failures through it */
    for (int i = 0; i < OUTPUTS; i++) sink[i] = fth_tensor_sink(p->sum[i]);
    FTH_TRY(fth_graph_check(p->g, err));
    fth_plan *plan = sp_plan_small(p->g, p->out, OUTPUTS, &(fth_limits){.sinks = sink}, err);
    const fth_status s = !plan    ? err->status
                         : answer ? fth_answer_plan(answer, "deviance", plan, err)
                                  : fth_run(plan, sink, NULL, NULL, err);
    fth_plan_destroy(plan);
    return s;
}

/* Sums of y ln y and of y ln(mean) over the cells. A gene that all cells have alike has none, and
 * not what rounding leaves of the difference. */
static double null_deviance(double own, double mean)
{
    const double more = own - mean;
    return more > 1e-11 * (fabs(own) + fabs(mean)) ? 2 * more : 0;
}

static void conclude(sp_gene_fit *f, const pass *p, const sp_sums_input *in, const float *W,
                     double cells)
{
    const int64_t L = in->factors;
    const double *y = fth_tensor_data(p->sum[0]), *own = fth_tensor_data(p->sum[1]),
                 *fit = fth_tensor_data(p->sum[2]), *F = fth_tensor_data(p->sum[SUMS]);
    for (int64_t d = 0; d < f->genes; d++) {
        double rates = 0, most = -1;
        for (int64_t l = 0; l < L; l++) {
            const double part = F[l] * (double)W[d * L + l];
            rates += part;
            if (part > most) most = part, f->top[d] = l;
        }
        f->top_share[d] = rates > 0 ? most / rates : (double)NAN;
        f->deviance[d] = 2 * (fit[d] - y[d] + rates);
        f->null[d] = y[d] > 0 ? null_deviance(own[d], y[d] * log(y[d] / cells)) : 0;
        f->share[d] = f->null[d] > 0 ? 1 - f->deviance[d] / f->null[d] : (double)NAN;
    }
}

uint64_t sp_gene_fit_bytes(int64_t genes)
{
    return (uint64_t)genes * 5 * 8 + 8;
}

fth_status sp_gene_fit_run(sp_gene_fit *out, fth_context *ctx, const sp_data *data, fth_source F,
                           fth_source size, fth_tensor *W, fth_tensor *held_out, fth_answer *answer,
                           fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const int64_t D = data->size.genes;
    pass p = {0};
    *out = (sp_gene_fit){.genes = D, .mem = mem};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sp_gene_fit_bytes(D), "fit of genes", &out->block, err));
    out->deviance = memset(out->block, 0, (size_t)D * 5 * 8);
    out->null = out->deviance + D;
    out->share = out->null + D;
    out->top_share = out->share + D;
    out->top = (int64_t *)(void *)(out->top_share + D);
    sp_sums_input in = sp_sums_of(data, F.size[1]);
    fth_status s = make_tensors(&p, mem, &in, held_out, err);
    if (s == FTH_OK) {
        double cells = 0;
        const int32_t *bin = fth_tensor_data(p.bin);
        for (int64_t i = 0; i < in.cells; i++) cells += bin[i] == 0;
        in.F = F;
        in.size = size;
        in.bin = fth_tensor_source(p.bin);
        build(&p, ctx, &in, W);
        s = run_pass(&p, answer, err);
        if (s == FTH_OK && !answer) conclude(out, &p, &in, fth_tensor_data(W), cells);
    }
    fth_graph_destroy(p.g);
    for (int i = 0; i < OUTPUTS; i++) fth_tensor_release(p.sum[i]);
    fth_tensor_release(p.bin);
    if (s != FTH_OK || answer) sp_gene_fit_clear(out);
    return s;
}

void sp_gene_fit_clear(sp_gene_fit *f)
{
    if (f->mem) fth_mem_release(f->mem, f->block, NULL);
    *f = (sp_gene_fit){0};
}
