/* op_cut.c - see testing/op_cut.h. The cutting is that of src/trial. */
#include "testing/engine/op_cut.h"

#include "cpu/blas.h"
#include "trial/check.h"

enum { NOISE = 0x77 };

void oc_open(oc_bench *b)
{
    fth_err err = {0};
    OK(fth__cpu_blas_init(NULL));
    memset(b, 0, sizeof *b);
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    OKE(fth_mem_create(&b->ctx.mem, &opt, &err), &err);
    b->ctx.threads = 1;
    b->g = fth_graph_create(&b->ctx);
    IS_TRUE(b->g != NULL);
}

void oc_close(oc_bench *b)
{
    fth_err err = {0};
    fth_graph_destroy(b->g);
    OKE(fth_mem_destroy(b->ctx.mem, &err), &err);
}

fth_val oc_in(oc_bench *b, const char *name, fth_dtype dtype, const char *axes)
{
    fth_source src = {.kind = "test", .dtype = dtype};
    fth_axis_id id[FTH_MAX_AXES];
    fth_err err = {0};
    OKE(fth_axes_parse(b->g, axes, &src.n_axes, id, &err), &err);
    for (int i = 0; i < src.n_axes; i++)
        src.size[i] = fth_axis_size(b->g, fth_axis_name(b->g, id[i]));
    return fth_input_(b->g, FTH_HERE, name, dtype, axes, src);
}

const fth_node *oc_node(oc_bench *b, fth_val v)
{
    fth_err err = {0};
    OKE(fth_graph_check(b->g, &err), &err);
    return fth__val_node(v);
}

int64_t oc_bytes(const fth_desc *d)
{
    return fth_desc_count(d) * fth_dtype_size(d->dtype);
}

void oc_fill(t_random *r, const fth_desc *d, void *data)
{
    const int64_t n = fth_desc_count(d);
    for (int64_t i = 0; i < n; i++) {
        const double v = t_random_normal(r), w = t_random_normal(r);
        const float f = (float)v;
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        if (d->dtype == FTH_F32) ((float *)data)[i] = f;
        if (d->dtype == FTH_F64) ((double *)data)[i] = v;
        if (d->dtype == FTH_C64) ((fth_c64 *)data)[i] = (fth_c64){f, (float)w};
        if (d->dtype == FTH_C128) ((fth_c128 *)data)[i] = (fth_c128){v, w};
        if (d->dtype == FTH_BF16) ((uint16_t *)data)[i] = (uint16_t)(u >> 16);
        if (d->dtype == FTH_F16) /* between 0.5 and 2 in size, either sign */
            ((uint16_t *)data)[i] =
                (uint16_t)(0x3800u + (u >> 4) % 0x800u + (v < 0 ? 0x8000u : 0u));
    }
}

double oc_get(const fth_desc *d, const void *data, int64_t i, int part)
{
    if (d->dtype == FTH_F32) return part ? 0.0 : (double)((const float *)data)[i];
    if (d->dtype == FTH_F64) return part ? 0.0 : ((const double *)data)[i];
    if (d->dtype == FTH_C64) return (double)((const float *)data)[2 * i + part];
    if (d->dtype == FTH_C128) return ((const double *)data)[2 * i + part];
    if (d->dtype == FTH_I64) return part ? 0.0 : (double)((const int64_t *)data)[i];
    const uint16_t h = ((const uint16_t *)data)[i];
    const uint32_t bf = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bf, sizeof f);
    if (d->dtype == FTH_F16) {
        const int e = (h >> 10) & 31, m = h & 1023;
        f = (float)(1024 + (e ? m : m - 1024)) * (float)__builtin_ldexp(1.0, (e ? e : 1) - 25);
        if (h & 0x8000u) f = -f;
    }
    return part ? 0.0 : (double)f;
}

double oc_error(const fth_desc *d, const void *x, const void *y)
{
    double diff = 0.0, size = 0.0;
    for (int64_t i = 0; i < fth_desc_count(d); i++)
        for (int part = 0; part < 2; part++) {
            const double a = oc_get(d, x, i, part), b = oc_get(d, y, i, part);
            const bool same = a == b || (a != a && b != b);
            const double e = same ? 0.0 : a > b ? a - b : b - a, s = b > 0 ? b : -b;
            if (diff == diff && !(e <= diff)) diff = e; /* NaN stays */
            if (s > size) size = s;
        }
    return size > 0.0 ? diff / size : diff;
}

/* ---- running ---- */

fth_status oc_invoke(oc_case *c, fth_call *call)
{
    const fth_op *op = c->node->op;
    fth__trial t = {.node = c->node,
                    .mem = c->node->graph->mem,
                    .run = c->kernel ? c->kernel->run : op->run,
                    .scratch = c->kernel ? c->kernel->scratch : op->scratch,
                    .garbage = NOISE};
    return fth__check_call(&t, call, &c->err);
}

static fth_status on_device(void *self, fth_call *call, const t_span *in, const t_span *out,
                            const t_span *state)
{
    const oc_case *c = self;
    call->threads = 1;
    return t_device_run(c->kernel, call, in, out, state);
}

static fth__trial trial_of(oc_case *c, char **in, char **out)
{
    const fth_node *node = c->node;
    fth__trial t = {.node = node,
                    .mem = node->graph->mem,
                    .run = c->kernel ? c->kernel->run : node->op->run,
                    .scratch = c->kernel ? c->kernel->scratch : node->op->scratch,
                    .in = in,
                    .out = out,
                    .garbage = NOISE,
                    .most = 3};
    if (c->device) t.elsewhere = on_device, t.self = c;
    for (int i = 0; i < node->n_in; i++) in[i] = c->in[i];
    for (int k = 0; k < node->n_out; k++) {
        out[k] = c->out[k];
        t.want[k] = true;
    }
    return t;
}

static fth_status oc_run_whole(oc_case *c)
{
    char *in[FTH_MAX_IN], *out[FTH_MAX_OUT];
    fth__trial t = trial_of(c, in, out);
    fth__trial_whole(&t);
    t.views = true;
    return fth__trial_run(&t, &c->err);
}

fth_status oc_run_cut(oc_case *c, t_random *r)
{
    char *in[FTH_MAX_IN], *out[FTH_MAX_OUT];
    fth__trial t = trial_of(c, in, out);
    int64_t joins = 0;
    t.seed = (uint64_t)t_random_i64(r, 1, INT32_MAX);
    fth__trial_cut(&t, -1, 12, false);
    FTH_TRY(fth__trial_run(&t, &c->err));
    return c->device ? FTH_OK : fth__check_joins(&t, &joins, &c->err);
}

/* The device against what the reference gave or said: near it whole, and the same bits cut. */
static void oc_device(const oc_case *reference, fth_status status)
{
    static const double most[FTH_DTYPE_COUNT] = {
        [FTH_F16] = 2e-3,  [FTH_BF16] = 2e-2, [FTH_F32] = 1e-5,
        [FTH_F64] = 1e-12, [FTH_C64] = 1e-5,  [FTH_C128] = 1e-12};
    const fth_node *node = reference->node;
    oc_case whole = *reference, cut;
    whole.kernel = t_device_find(node);
    if (!whole.kernel) return;
    whole.device = true;
    fth_err_clear(&whole.err);
    cut = whole;
    for (int k = 0; k < node->n_out; k++) {
        whole.out[k] = calloc(1, (size_t)oc_bytes(&node->out[k]) + 1);
        cut.out[k] = calloc(1, (size_t)oc_bytes(&node->out[k]) + 1);
    }
    t_random r = t_random_make(4711);
    t_status(oc_run_whole(&whole), status, "the kernel of the device", &whole.err, T_AT);
    if (status == FTH_OK)
        OKE(oc_run_cut(&cut, &r), &cut.err);
    else
        EQ_STR(whole.err.text, reference->err.text);
    for (int k = 0; k < node->n_out; k++) {
        const fth_desc *d = &node->out[k];
        if (status == FTH_OK) {
            SAME_BYTES(whole.out[k], cut.out[k], oc_bytes(d));
            LE_F64(oc_error(d, whole.out[k], reference->out[k]), most[d->dtype]);
        }
        free(whole.out[k]);
        free(cut.out[k]);
    }
}

fth_status oc_run(oc_case *c)
{
    const fth_status s = oc_run_whole(c);
    if (!c->kernel && t_device()) oc_device(c, s);
    return s;
}
