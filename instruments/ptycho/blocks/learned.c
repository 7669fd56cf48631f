/* learned.c - the blocks of the learned path: the network alone, and one step of training. */
#include "block.h"

/* Mean energy of a pattern. */
static double mean_energy(const pt_array *x)
{
    const int64_t patterns = x->size[0] * x->size[1], pixels = x->size[2] * x->size[3];
    const void *data = fth_tensor_data(x->data);
    double sum = 0;
    for (int64_t i = 0; i < patterns * pixels; i++) {
        const double v =
            x->dtype == FTH_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
        sum += v * v;
    }
    return patterns > 0 ? sum / (double)patterns : 0;
}

/* X [group chan row col], real, and the options of a model for it. */
static fth_status prepare(pt_block *b, pt_model_options *opt, fth_val *x, const pt_array **array,
                          fth_err *err)
{
    pt_array *a;
    FTH_TRY(pt_block_read(b, "X", &a, err));
    if (a->dtype != FTH_F32 && a->dtype != FTH_F64)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: 'X' is %s, expected f32 or f64", b->name,
                        fth_dtype_name(a->dtype));
    /* gradients are small differences of large numbers: single precision only on request */
    const fth_dtype real = fth_config_is_given(b->cfg, "precision") ? pt_block_real(b, a) : FTH_F64;
    FTH_TRY(pt_block_input(b, a, "group chan row col", real, x, err));
    if (a->size[2] != a->size[3])
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: frames of X are %lld by %lld, not square",
                        b->name, (long long)a->size[2], (long long)a->size[3]);
    FTH_TRY(pt_model_settings(b->cfg, a->size[2], a->size[1], 1, opt, err));
    opt->real = real;
    *array = a;
    return FTH_OK;
}

fth_status pt_block_cnn(pt_block *b, fth_err *err)
{
    pt_model_options opt;
    const pt_array *a;
    fth_val x, param[PT_MODEL_MOST];
    pt_model *m = &b->model;
    FTH_TRY(prepare(b, &opt, &x, &a, err));
    FTH_TRY(pt_model_create(m, b->mem, &opt, err));
    pt_model_start(m, -1, NULL);
    pt_net_axes(b->g, &m->net);
    for (int i = 0; i < m->net.n; i++)
        param[i] = fth_param(b->g, pt_model_name(m, i), pt_model_axes(m, i), pt_model_param(m, i));
    const pt_net_out out = pt_net_build(&m->net, x, param);
    pt_block_put(b, "amp", out.amp);
    pt_block_put(b, "phase", out.phase);
    return FTH_OK;
}

/* Every element of the probe in f64, [mode row col]. */
static fth_status load_probe(pt_block *b, const pt_array *p, fth_c128 **out, fth_err *err)
{
    const int64_t n = p->size[0] * p->size[1] * p->size[2];
    FTH_TRY(
        fth_mem_take(b->mem, FTH_MEM_ANY, sizeof **out * (uint64_t)n, "probe", (void **)out, err));
    const void *data = fth_tensor_data(p->data);
    for (int64_t i = 0; i < n; i++) switch ((int)p->dtype) {
        case FTH_C64:
            (*out)[i] = (fth_c128){(double)((const fth_c64 *)data)[i].re,
                                   (double)((const fth_c64 *)data)[i].im};
            break;
        case FTH_C128: (*out)[i] = ((const fth_c128 *)data)[i]; break;
        case FTH_F32: (*out)[i] = (fth_c128){(double)((const float *)data)[i], 0}; break;
        case FTH_F64: (*out)[i] = (fth_c128){((const double *)data)[i], 0}; break;
        default: (*out)[i] = (fth_c128){0, 0};
        }
    return FTH_OK;
}

static void put_gradients(pt_block *b, const pt_model_graph *v)
{
    const pt_model *m = &b->model;
    fth_val wrt[PT_MODEL_MOST], grad[PT_MODEL_MOST];
    char name[PT_NET_NAME + 8];
    int which[PT_MODEL_MOST], n = 0;
    for (int i = 0; i < pt_model_params(m); i++) {
        if (i > m->net.n && !m->opt.train_probe) continue;
        which[n] = i;
        wrt[n++] = v->param[i];
    }
    fth_grad(v->loss, n, wrt, grad);
    for (int k = 0; k < n; k++) {
        const bool w = which[k] == m->net.n;
        snprintf(name, sizeof name, "%s%s", w ? "grad_" : "grad.", pt_model_name(m, which[k]));
        pt_block_put(b, name, grad[k]);
    }
}

fth_status pt_block_step(pt_block *b, fth_err *err)
{
    pt_model_options opt;
    const pt_array *a;
    fth_val x, rel, probe;
    fth_c128 *values = NULL;
    if (fth_config_choice(b->cfg, "normalisation") == 1)
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "step: normalisation dataset takes the scale of an object, and step reads "
                        "none: leave normalisation out");
    FTH_TRY(prepare(b, &opt, &x, &a, err));
    FTH_TRY(pt_block_probe(b, opt.real, &probe, err));
    const pt_array *p = &b->array[b->n_arrays - 1];
    if (p->n_axes != 3)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "step: the probe is expected to be [mode row col]");
    opt.modes = p->size[0];
    FTH_TRY(pt_block_rel(b, opt.real, &rel, err));
    FTH_TRY(pt_block_region(b, opt.net.n, &opt.region, err));
    FTH_TRY(pt_model_create(&b->model, b->mem, &opt, err));
    FTH_TRY(load_probe(b, p, &values, err));
    pt_model_start(&b->model, -1, values);
    fth_mem_release(b->mem, values, NULL);
    pt_net_axes(b->g, &b->model.net);
    const fth_val factor = fth_const(b->g, opt.real, pt_model_factor(&opt, mean_energy(a)));
    const pt_model_graph v = pt_model_build(b->g, &b->model, x, rel, factor, true);
    pt_block_put(b, "loss", v.loss);
    pt_block_put(b, "pred", v.predicted);
    put_gradients(b, &v);
    return FTH_OK;
}
