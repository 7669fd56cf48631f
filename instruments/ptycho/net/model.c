/* model.c - see model.h. */
#include "model.h"

#include "../probe/probe.h"

#include <math.h>
#include <string.h>

/* ---- tensors ---- */

/* The root of the energy of a scaled pattern. */
static double brightness(const pt_model_options *opt)
{
    return opt->energy > 0 ? sqrt(opt->energy) : (double)opt->net.n / 2;
}

void pt_model_set_energy(pt_model *m, double energy)
{
    m->opt.energy = energy;
    m->s = sqrt(m->opt.nphotons) / brightness(&m->opt);
}

fth_status pt_model_create(pt_model *m, fth_mem *mem, const pt_model_options *opt, fth_err *err)
{
    const int64_t n = opt->net.n, probe[3] = {opt->modes, n, n};
    *m = (pt_model){.opt = *opt};
    pt_model_set_energy(m, opt->energy);
    pt_net_init(&m->net, &opt->net);
    fth_status s = fth_tensor_create(&m->log_scale, mem, "w", opt->real, 0, NULL, err);
    if (s == FTH_OK) s = fth_tensor_create(&m->probe_re, mem, "probe.re", opt->real, 3, probe, err);
    if (s == FTH_OK) s = fth_tensor_create(&m->probe_im, mem, "probe.im", opt->real, 3, probe, err);
    for (int i = 0; i < m->net.n && s == FTH_OK; i++) {
        const pt_net_param *p = &m->net.param[i];
        s = fth_tensor_create(&m->weight[i], mem, p->name, opt->real, p->n_axes, p->size, err);
    }
    if (s != FTH_OK) pt_model_clear(m);
    return s;
}

void pt_model_clear(pt_model *m)
{
    for (int i = 0; i < m->net.n; i++) fth_tensor_release(m->weight[i]);
    fth_tensor_release(m->log_scale);
    fth_tensor_release(m->probe_re);
    fth_tensor_release(m->probe_im);
    fth_tensor_release(m->good);
    fth_tensor_release(m->support);
    memset(m, 0, sizeof *m);
}

/* The memory of a tensor, f32 or f64. */
typedef struct numbers {
    void *data;
    fth_dtype dtype;
} numbers;

static numbers numbers_of(fth_tensor *t)
{
    return (numbers){fth_tensor_data(t), fth_tensor_dtype(t)};
}

static void put(numbers to, int64_t i, double v)
{
    if (to.dtype == FTH_F32)
        ((float *)to.data)[i] = (float)v;
    else
        ((double *)to.data)[i] = v;
}

fth_status pt_model_mask(pt_model *m, fth_mem *mem, const uint8_t *mask, fth_err *err)
{
    const int64_t n = m->opt.net.n, size[2] = {n, n};
    int64_t count = 0;
    if (!mask) return FTH_OK;
    for (int64_t i = 0; i < n * n; i++) count += mask[i] != 0;
    if (count == 0) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "the mask leaves no pixel of the patterns to train on");
        fth_err_hint(err, "is mask.convention right?");
        return FTH_E_FILE_FORMAT;
    }
    FTH_TRY(fth_tensor_create(&m->good, mem, "mask", m->opt.real, 2, size, err));
    const numbers to = numbers_of(m->good);
    for (int64_t i = 0; i < n * n; i++) put(to, i, mask[i] ? 1 : 0);
    m->share = (double)count / (double)(n * n);
    return FTH_OK;
}

fth_status pt_model_support(pt_model *m, fth_context *ctx, fth_err *err)
{
    const int64_t n = m->opt.net.n, size[2] = {n, n};
    fth_mem *mem = fth_context_mem(ctx);
    double *disc = NULL;
    if (!m->opt.probe_mask) return FTH_OK;
    FTH_TRY(fth_tensor_create(&m->support, mem, "probe_mask", m->opt.real, 2, size, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof *disc * (uint64_t)(n * n), "disc", (void **)&disc,
                         err));
    const fth_status s =
        pt_probe_mask_soft(ctx, n, m->opt.mask_diameter, m->opt.mask_sigma, disc, err);
    const numbers to = numbers_of(m->support);
    for (int64_t i = 0; s == FTH_OK && i < n * n; i++) put(to, i, disc[i]);
    fth_mem_release(mem, disc, NULL);
    return s;
}

double pt_model_at(fth_tensor *t, int64_t i)
{
    const numbers from = numbers_of(t);
    return from.dtype == FTH_F32 ? (double)((const float *)from.data)[i]
                                 : ((const double *)from.data)[i];
}

double pt_model_disc(const pt_model *m, int64_t i)
{
    return m->support ? pt_model_at(m->support, i % (m->opt.net.n * m->opt.net.n)) : 1;
}

static void start_probe(pt_model *m, const fth_c128 *probe)
{
    const int64_t n = m->opt.net.n, all = m->opt.modes * n * n;
    double sum = 0;
    for (int64_t i = 0; i < all; i++) sum += hypot(probe[i].re, probe[i].im) * pt_model_disc(m, i);
    const double mean = sum / (double)all, scale = mean > 0 ? 1 / (m->opt.probe_scale * mean) : 1;
    const numbers re = numbers_of(m->probe_re), im = numbers_of(m->probe_im);
    for (int64_t i = 0; i < all; i++) {
        put(re, i, probe[i].re * scale);
        put(im, i, probe[i].im * scale);
    }
}

void pt_model_start(pt_model *m, int64_t seed, const fth_c128 *probe)
{
    for (int i = 0; i < m->net.n; i++) {
        const int64_t count = pt_net_count(&m->net.param[i]);
        const numbers to = numbers_of(m->weight[i]);
        for (int64_t k = 0; k < count; k++)
            put(to, k,
                (double)(seed < 0 ? pt_net_formula(&m->net, i, k)
                                  : pt_net_start(&m->net, i, seed, k)));
    }
    put(numbers_of(m->log_scale), 0, log(m->s));
    if (probe) start_probe(m, probe);
}

double pt_model_factor(const pt_model_options *opt, double mean_energy)
{
    const double root = brightness(opt);
    return mean_energy > 0 ? sqrt(root * root / mean_energy) : 1;
}

/* ---- the list ---- */

int pt_model_params(const pt_model *m)
{
    return m->net.n + 3;
}

fth_tensor *pt_model_param(const pt_model *m, int i)
{
    if (i < m->net.n) return m->weight[i];
    return i == m->net.n ? m->log_scale : i == m->net.n + 1 ? m->probe_re : m->probe_im;
}

const char *pt_model_name(const pt_model *m, int i)
{
    if (i < m->net.n) return m->net.param[i].name;
    return i == m->net.n ? "w" : i == m->net.n + 1 ? "probe.re" : "probe.im";
}

const char *pt_model_axes(const pt_model *m, int i)
{
    if (i < m->net.n) return m->net.param[i].axes;
    return i == m->net.n ? "" : "mode row col";
}

bool pt_model_is_trained(const pt_model *m, int i)
{
    if (i < m->net.n) return true;
    return i == m->net.n ? m->opt.train_scale : m->opt.train_probe;
}

/* ---- the graph ---- */

void pt_model_declare(fth_graph *g, const pt_model *m, int64_t groups)
{
    const pt_net_options *o = &m->opt.net;
    fth_axis(g, "group", groups);
    fth_axis(g, "chan", o->chan);
    fth_axis(g, "flat", groups * o->chan);
    fth_axis(g, "row", o->n);
    fth_axis(g, "col", o->n);
    fth_axis(g, "prow", m->opt.region);
    fth_axis(g, "pcol", m->opt.region);
    fth_axis(g, "mode", m->opt.modes);
    fth_axis(g, "xy", 2);
    pt_net_axes(g, &m->net);
}

static fth_val weighted(double weight, fth_val loss, fth_val sum)
{
    const fth_val term = fth_mul(loss, fth_const_like(loss, weight));
    return fth_val_ok(sum) ? fth_add(sum, term) : term;
}

/* Sum over groups of squared differences of neighbouring pixels. */
static fth_val variation(fth_val patch)
{
    fth_graph *g = patch.graph;
    const char *const axis[2] = {"row", "col"};
    fth_val sum = {g, 0};
    if (fth_axis_size(g, "less") < 0) fth_axis(g, "less", fth_axis_size(g, "row") - 1);
    for (int d = 0; d < 2; d++) {
        const fth_val step =
            fth_sub(fth_slice(patch, axis[d], 1, "less"), fth_slice(patch, axis[d], 0, "less"));
        const fth_val part = fth_sum(fth_abs2(step), d ? "group row less" : "group less col");
        sum = d ? fth_add(sum, part) : part;
    }
    return sum;
}

/* Without any other term a loss of zero, for terms that are added later. */
static fth_val total_loss(const pt_model_options *o, const pt_model_graph *v, fth_val target,
                          fth_val weight)
{
    fth_val sum = {target.graph, 0};
    if (o->mae_weight > 0)
        sum = weighted(o->mae_weight, pt_loss_mae_of(v->predicted, target, weight), sum);
    if (o->nll_weight > 0)
        sum = weighted(o->nll_weight, pt_loss_nll_of(v->predicted, target, weight), sum);
    if (o->realspace_weight > 0 && o->tv_weight > 0)
        sum = weighted(o->realspace_weight * o->tv_weight, variation(v->patch), sum);
    if (!fth_val_ok(sum)) sum = fth_const_like(target, 0);
    return fth_label(sum, "loss");
}

void pt_model_supervise(const pt_model *m, pt_model_graph *v, fth_val truth)
{
    fth_graph *g = truth.graph;
    if (!fth_val_ok(v->patch)) return;
    const fth_dtype real = m->opt.real;
    const fth_val one = fth_complex(fth_const(g, real, 1), fth_const(g, real, 0)),
                  seen = fth_gt(fth_abs2(v->patch), fth_const(g, real, 0)),
                  found = fth_select(seen, v->patch, one), want = fth_select(seen, truth, one);
    const fth_val off =
        fth_add(fth_mean(fth_abs(fth_sub(fth_abs(found), fth_abs(want))), "group row col"),
                fth_mean(fth_abs(fth_sub(fth_arg(found), fth_arg(want))), "group row col"));
    const double weight = m->opt.realspace_weight * m->opt.realspace_mae_weight;
    v->loss = fth_label(weighted(weight, off, v->loss), "loss");
}

pt_model_graph pt_model_build(fth_graph *g, const pt_model *m, fth_val x, fth_val rel,
                              fth_val factor, bool lit)
{
    pt_model_graph v = {.loss = {g, 0}};
    const int n = pt_model_params(m);
    for (int i = 0; i < n; i++)
        v.param[i] = fth_param(g, pt_model_name(m, i), pt_model_axes(m, i), pt_model_param(m, i));
    fth_val part[2] = {v.param[m->net.n + 1], v.param[m->net.n + 2]};
    if (m->support) {
        const fth_val disc =
            fth_input(g, "probe_mask", m->opt.real, "row col", fth_tensor_source(m->support));
        for (int k = 0; k < 2; k++) part[k] = fth_mul(part[k], disc);
    }
    const fth_val probe = v.probe = fth_complex(part[0], part[1]);
    fth_val weight = PT_EVERYWHERE;
    if (m->good) {
        const fth_val good =
            fth_input(g, "mask", m->opt.real, "row col", fth_tensor_source(m->good));
        x = fth_mul(x, good);
        weight = fth_mul(good, fth_const_like(good, 1 / m->share));
    }
    const fth_val target = fth_mul(fth_mul(x, factor), fth_const_like(x, m->s));
    const fth_val scale = fth_exp(v.param[m->net.n]);
    v.objects = pt_net_object(pt_net_build(&m->net, fth_mul(target, fth_recip(scale)), v.param));
    fth_val seen = v.objects;
    if (m->opt.object_big) {
        v.region = pt_merge(m->opt.merge, v.objects, rel, probe);
        v.patch = pt_trim(v.region);
        seen = pt_extract(v.region, rel);
    } else {
        v.patch = fth_sum(v.objects, "chan"); /* there is one */
    }
    if (!lit) return v;
    v.predicted =
        fth_label(fth_mul(pt_diffract_blurred(seen, probe, m->opt.blur), scale), "predicted");
    v.loss = total_loss(&m->opt, &v, target, weight);
    return v;
}
