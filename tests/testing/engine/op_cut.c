/* op_cut.c - see testing/op_cut.h. It loops over every element, so it is optimised as cases of
 * tests are not. */
#include "testing/engine/op_cut.h"

#include "cpu/blas.h"
#include "testing/engine/op_join.h"

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

/* ---- tiles ---- */

/* Where a tile of `d` lies: in a dense array of the whole, or in a padded copy. */
typedef struct oc_buffer {
    char *block;
    size_t bytes;
    fth_tile tile;
} oc_buffer;

/* Between a tile and the array of the whole, line by line: the last axis of both lies close. */
static void oc_copy(const fth_desc *d, int dim, const fth_tile *t, int64_t at, char *whole,
                    int64_t whole_at, bool back)
{
    const int64_t size = fth_dtype_size(d->dtype);
    const bool line = dim == d->n_axes - 1 && t->stride[dim] == 1;
    if (line || dim == d->n_axes) {
        const size_t bytes = (size_t)(line ? size * t->extent[dim] : size);
        char *in_tile = (char *)t->data + at * size;
        char *in_whole = whole + (whole_at + (line ? t->origin[dim] : 0)) * size;
        if (bytes) memcpy(back ? in_whole : in_tile, back ? in_tile : in_whole, bytes);
        return;
    }
    int64_t stride = 1;
    for (int i = dim + 1; i < d->n_axes; i++) stride *= d->size[i];
    for (int64_t i = 0; i < t->extent[dim]; i++)
        oc_copy(d, dim + 1, t, at + i * t->stride[dim], whole,
                whole_at + (t->origin[dim] + i) * stride, back);
}

/* A tile with room around it (pad elements along every axis), filled with `noise`. */
static oc_buffer oc_tile(const fth_desc *d, int64_t element, const int64_t *lo, const int64_t *n,
                         int64_t pad, int noise)
{
    oc_buffer b = {0};
    int64_t count = 1, first = 0;
    for (int i = d->n_axes - 1; i >= 0; i--) {
        b.tile.extent[i] = n[i];
        b.tile.origin[i] = lo[i];
        b.tile.stride[i] = count;
        first += pad * count;
        count *= n[i] + 2 * pad;
    }
    b.bytes = (size_t)((count + 1) * element);
    b.block = aligned_alloc(64, (b.bytes + 127) / 64 * 64);
    IS_TRUE(b.block != NULL);
    memset(b.block, noise, b.bytes);
    b.tile.data = b.block + first * element;
    return b;
}

/* Nothing but the tile itself may differ from the noise around it. */
static void oc_check_around(const fth_desc *d, const oc_buffer *b, int noise, const char *op)
{
    char *want = malloc(b->bytes + 1);
    const size_t line =
        (size_t)((d->n_axes ? b->tile.extent[d->n_axes - 1] : 1) * fth_dtype_size(d->dtype));
    int64_t stride[FTH_MAX_AXES], lines = 1;
    for (int k = d->n_axes - 2; k >= 0; k--) {
        stride[k] = lines;
        lines *= b->tile.extent[k];
    }
    memset(want, noise, b->bytes);
    for (int64_t i = 0; i < lines; i++) {
        int64_t at = 0;
        for (int k = 0; k < d->n_axes - 1; k++)
            at += i / stride[k] % b->tile.extent[k] * b->tile.stride[k];
        const char *from = (char *)b->tile.data + at * fth_dtype_size(d->dtype);
        memcpy(want + (from - b->block), from, line);
    }
    const bool same = memcmp(want, b->block, b->bytes) == 0;
    free(want);
    if (!same) FAIL("%s wrote outside its tile", op);
}

/* ---- running ---- */

fth_status oc_invoke(oc_case *c, fth_call *call, const oc_spans *lies)
{
    const fth_op *op = c->node->op;
    call->err = &c->err;
    call->threads = 1;
    if (c->device) return t_device_run(c->kernel, call, lies->in, lies->out, lies->state);
    uint64_t (*scratch)(const fth_call *) = c->kernel ? c->kernel->scratch : op->scratch;
    fth_call probe = *call; /* while planning there is no data */
    for (int i = 0; i < FTH_MAX_IN; i++) probe.in[i].data = NULL;
    for (int i = 0; i < FTH_MAX_OUT; i++) probe.out[i].data = NULL;
    probe.state[0].data = NULL;
    const uint64_t bytes = scratch ? scratch(&probe) : 0;
    char *room = aligned_alloc(64, (bytes / 64 + 2) * 64);
    IS_TRUE(room != NULL);
    memset(room, 0x5a, (bytes / 64 + 2) * 64);
    call->scratch = room;
    const fth_status s = c->kernel ? c->kernel->run(call) : op->run(call);
    for (uint64_t i = bytes; i < (bytes / 64 + 2) * 64; i++)
        if (room[i] != 0x5a)
            FAIL("%s wrote past its %llu bytes of scratch", op->name, (unsigned long long)bytes);
    free(room);
    return s;
}

/* The part of input axis (in, dim) that the piece [out_lo, out_n) and [sum_lo, sum_n) need. */
static void oc_need(const fth_node *node, int in, int dim, const int64_t *out_lo,
                    const int64_t *out_n, int64_t sum_lo, int64_t sum_n, int64_t *lo, int64_t *n)
{
    fth_relation r = {.along = FTH_WHOLE, .out_dim = -1};
    const int64_t size = node->in[in].size[dim];
    if (node->op->relation) node->op->relation(node, in, dim, &r);
    *lo = 0;
    *n = size;
    if (r.along == FTH_SAME) *lo = out_lo[r.out_dim], *n = out_n[r.out_dim];
    if (r.along == FTH_ACCUMULATE) *lo = sum_lo, *n = sum_n;
    if (r.along == FTH_HALO) {
        int64_t a = out_lo[r.out_dim] * r.mul / r.div - r.lo;
        int64_t b = (out_lo[r.out_dim] + out_n[r.out_dim]) * r.mul / r.div + r.hi;
        a = a < 0 ? 0 : a > size ? size : a;
        b = b > size ? size : b < a ? a : b;
        *lo = a;
        *n = b - a;
    }
}

/* One rectangle of the output; the accumulated axis in pieces that end at cut[0..n_cut). */
static fth_status oc_rectangle(oc_case *c, const int64_t *lo, const int64_t *n, int n_cut,
                               const int64_t *cut, int64_t pad)
{
    const fth_node *node = c->node;
    const uint64_t state = node->op->state ? node->op->state(node, 0) : 0;
    oc_buffer out[FTH_MAX_OUT], carried = oc_tile(&node->out[0], (int64_t)state, lo, n, 0, 0x33);
    fth_status s = FTH_OK;
    fth_call call = {.node = node, .state = {carried.tile}};
    oc_spans lies = {.state = {carried.block, carried.bytes}};
    for (int i = 0; i < node->n_out; i++) {
        int64_t olo[FTH_MAX_AXES], on[FTH_MAX_AXES];
        for (int d = 0; d < node->out[i].n_axes; d++) {
            const int at = fth_desc_find(&node->out[0], node->out[i].axis[d]);
            olo[d] = at < 0 ? 0 : lo[at];
            on[d] = at < 0 ? node->out[i].size[d] : n[at];
        }
        out[i] = oc_tile(&node->out[i], fth_dtype_size(node->out[i].dtype), olo, on, pad, 0x77);
        call.out[i] = out[i].tile;
        lies.out[i] = (t_span){out[i].block, out[i].bytes};
    }
    for (int piece = 0; piece < n_cut && s == FTH_OK; piece++) {
        oc_buffer in[FTH_MAX_IN];
        const int64_t from = piece ? cut[piece - 1] : 0;
        for (int i = 0; i < node->n_in; i++) {
            int64_t ilo[FTH_MAX_AXES], in_n[FTH_MAX_AXES];
            for (int d = 0; d < node->in[i].n_axes; d++)
                oc_need(node, i, d, lo, n, from, cut[piece] - from, &ilo[d], &in_n[d]);
            in[i] = oc_tile(&node->in[i], fth_dtype_size(node->in[i].dtype), ilo, in_n, pad, 0x7f);
            oc_copy(&node->in[i], 0, &in[i].tile, 0, c->in[i], 0, false);
            call.in[i] = in[i].tile;
            lies.in[i] = (t_span){in[i].block, in[i].bytes};
        }
        call.first = piece == 0;
        call.last = piece == n_cut - 1;
        s = oc_invoke(c, &call, &lies);
        for (int i = 0; i < node->n_in; i++) free(in[i].block);
    }
    for (int i = 0; i < node->n_out; i++) {
        oc_copy(&node->out[i], 0, &out[i].tile, 0, c->out[i], 0, true);
        oc_check_around(&node->out[i], &out[i], 0x77, node->op->name);
        free(out[i].block);
    }
    free(carried.block);
    return s;
}

/* Size of the accumulated axis and its grid; -1: there is none. */
static int64_t oc_summed(const fth_node *node, int64_t *grid)
{
    for (int i = 0; i < node->n_in; i++)
        for (int d = 0; d < node->in[i].n_axes && node->op->relation; d++) {
            fth_relation r = {0};
            node->op->relation(node, i, d, &r);
            if (r.along != FTH_ACCUMULATE) continue;
            *grid = node->op->grid ? node->op->grid(node, i, d) : 1;
            return node->in[i].size[d];
        }
    return -1;
}

/* May this axis of out[0] be made in pieces? */
static bool oc_cuttable(const fth_node *node, int dim)
{
    bool any = false;
    for (int i = 0; i < node->n_in; i++)
        for (int d = 0; d < node->in[i].n_axes && node->op->relation; d++) {
            fth_relation r = {0};
            node->op->relation(node, i, d, &r);
            any |= (r.along == FTH_SAME || r.along == FTH_HALO) && r.out_dim == dim;
        }
    return any;
}

static fth_status oc_run_whole(oc_case *c)
{
    const int64_t lo[FTH_MAX_AXES] = {0};
    int64_t grid, size = oc_summed(c->node, &grid);
    const int64_t cut[1] = {size < 0 ? 0 : size};
    return oc_rectangle(c, lo, c->node->out[0].size, 1, cut, 0);
}

enum { OC_CUTS = 64 };
/* Random ends of pieces of an axis, on its grid; about half the time the axis stays whole. */
static int oc_cuts(t_random *r, int64_t size, int64_t grid, int64_t *end)
{
    int n = 0;
    for (int64_t at = grid; at < size && n < OC_CUTS - 1; at += grid)
        if (t_random_i64(r, 0, size / grid < 4 ? 1 : 2) == 0) end[n++] = at;
    end[n++] = size;
    return n;
}

/* Parts of the accumulated axis, as ranks make them, joined to what the pieces gave. */
static void oc_join(const oc_case *c, t_random *r)
{
    const fth_node *node = c->node;
    char *in[FTH_MAX_IN] = {0}, *out[FTH_MAX_OUT] = {0};
    for (int i = 0; i < node->n_in; i++) in[i] = c->in[i];
    for (int o = 0; o < node->n_out; o++) out[o] = c->out[o];
    const t_join parts = {node, in, out, c->kernel ? c->kernel->scratch : node->op->scratch,
                          c->kernel ? c->kernel->run : node->op->run};
    if (!c->device) t_check_join(&parts, c->kernel ? "fast" : "reference", r);
}

fth_status oc_run_cut(oc_case *c, t_random *r)
{
    const fth_node *node = c->node;
    const int n_axes = node->out[0].n_axes;
    int64_t end[FTH_MAX_AXES][OC_CUTS], sum[OC_CUTS] = {0}, grid = 1;
    int n_end[FTH_MAX_AXES], n_sum = 1, at[FTH_MAX_AXES] = {0};
    const int64_t size = oc_summed(node, &grid);
    if (size >= 0) n_sum = oc_cuts(r, size, grid, sum);
    for (int d = 0; d < n_axes; d++) {
        const int64_t g = node->op->grid ? node->op->grid(node, -1, d) : 1,
                      all = node->out[0].size[d];
        n_end[d] = oc_cuts(r, all, oc_cuttable(node, d) ? g : all + 1, end[d]);
    }
    for (;;) {
        int64_t lo[FTH_MAX_AXES], n[FTH_MAX_AXES];
        for (int d = 0; d < n_axes; d++) {
            lo[d] = at[d] ? end[d][at[d] - 1] : 0;
            n[d] = end[d][at[d]] - lo[d];
        }
        const fth_status s = oc_rectangle(c, lo, n, n_sum, sum, t_random_i64(r, 0, 3));
        if (s != FTH_OK) return s;
        int d = n_axes - 1;
        while (d >= 0 && ++at[d] == n_end[d]) at[d--] = 0;
        if (d >= 0) continue;
        oc_join(c, r);
        return FTH_OK;
    }
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
