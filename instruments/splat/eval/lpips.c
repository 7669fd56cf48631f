/* lpips.c - see lpips.h. */
#include "lpips.h"

#include "../loss/mask.h"

#include <fathom/files.h>
#include <fathom/ops.h>
#include <fathom/plan.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CONVOLUTIONS = 13, BLOCKS = 5, LEAST = 16, NAME = 40 };

/* The block of each convolution, and its number among the layers of VGG16. */
static const struct layer {
    int block, number;
} layers[CONVOLUTIONS] = {{1, 0},  {1, 2},  {2, 5},  {2, 7},  {3, 10}, {3, 12}, {3, 14},
                          {4, 17}, {4, 19}, {4, 21}, {5, 24}, {5, 26}, {5, 28}};

struct gs_lpips {
    fth_context *ctx;
    fth_tensor *weight[CONVOLUTIONS], *bias[CONVOLUTIONS], *share[BLOCKS];
    int64_t channels[CONVOLUTIONS + 1];
    fth_tensor *pair; /* [b c y x]: the image and its target, as the network takes them */
    fth_graph *graph;
    fth_plan *plan;
    fth_sink sink;
    int64_t width, height;
    double far;
};

/* ---- weights ---- */

/* An array of the file with the sizes that are not 0; the others are what the file has. */
static fth_status load(const gs_lpips *l, fth_safetensors *file, const char *path, const char *name,
                       int axes, int64_t *size, fth_tensor **out, fth_err *err)
{
    fth_source s;
    FTH_TRY(fth_safetensors_source(file, name, &s, err));
    bool good = s.dtype == FTH_F32 && s.n_axes == axes;
    for (int i = 0; good && i < axes; i++) {
        if (size[i] == 0) size[i] = s.size[i];
        good = s.size[i] == size[i] && size[i] > 0;
    }
    fth_status st = FTH_OK;
    if (!good) {
        st =
            FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: %s: expected %d axes of f32, %" PRId64 " along the first, found %d axes, "
                     "%" PRId64 " along the first",
                     path, name, axes, size[0], s.n_axes, s.n_axes > 0 ? s.size[0] : 0);
        fth_err_hint(err, "write the state of lpips.LPIPS(net='vgg') as safetensors");
    }
    if (st == FTH_OK) st = fth_source_load(&s, fth_context_mem(l->ctx), name, out, err);
    fth_source_close(&s);
    return st;
}

static fth_status load_all(gs_lpips *l, fth_safetensors *file, const char *path, fth_err *err)
{
    char name[NAME];
    l->channels[0] = 3;
    for (int k = 0; k < CONVOLUTIONS; k++) {
        int64_t size[4] = {0, l->channels[k], 3, 3};
        snprintf(name, sizeof name, "net.slice%d.%d.weight", layers[k].block, layers[k].number);
        FTH_TRY(load(l, file, path, name, 4, size, &l->weight[k], err));
        l->channels[k + 1] = size[0];
        snprintf(name, sizeof name, "net.slice%d.%d.bias", layers[k].block, layers[k].number);
        FTH_TRY(load(l, file, path, name, 1, size, &l->bias[k], err));
        if (k + 1 < CONVOLUTIONS && layers[k + 1].block == layers[k].block) continue;
        int64_t share[4] = {1, size[0], 1, 1};
        snprintf(name, sizeof name, "lin%d.model.1.weight", layers[k].block - 1);
        FTH_TRY(load(l, file, path, name, 4, share, &l->share[layers[k].block - 1], err));
    }
    return FTH_OK;
}

fth_status gs_lpips_open(gs_lpips **out, fth_context *ctx, const char *path, fth_err *err)
{
    fth_safetensors *file = NULL;
    void *block = NULL;
    *out = NULL;
    FTH_TRY(fth_safetensors_open(&file, fth_context_mem(ctx), path, err));
    fth_status s =
        fth_mem_take(fth_context_mem(ctx), FTH_MEM_META, sizeof(gs_lpips), "LPIPS", &block, err);
    if (s == FTH_OK) {
        *out = memset(block, 0, sizeof(gs_lpips));
        (*out)->ctx = ctx;
        s = load_all(*out, file, path, err);
    }
    fth_safetensors_close(file);
    if (s == FTH_OK) return s;
    gs_lpips_close(*out);
    *out = NULL;
    return s;
}

static void forget(gs_lpips *l)
{
    if (l->plan) (void)fth_plan_destroy(l->plan);
    if (l->graph) (void)fth_graph_destroy(l->graph);
    (void)fth_tensor_release(l->pair);
    l->plan = NULL;
    l->graph = NULL;
    l->pair = NULL;
    l->width = l->height = 0;
}

void gs_lpips_close(gs_lpips *l)
{
    if (!l) return;
    forget(l);
    for (int k = 0; k < CONVOLUTIONS; k++) {
        (void)fth_tensor_release(l->weight[k]);
        (void)fth_tensor_release(l->bias[k]);
    }
    for (int b = 0; b < BLOCKS; b++) (void)fth_tensor_release(l->share[b]);
    (void)fth_mem_release(fth_context_mem(l->ctx), l, NULL);
}

/* ---- the network ---- */

/* Names of axes: y1 x1 of the first block, and so on; c0 to c13 before and after convolutions. */
typedef struct axes {
    char y[NAME], x[NAME], from[NAME], to[NAME];
} axes;

static axes axes_of(int k)
{
    axes a;
    snprintf(a.y, sizeof a.y, "y%d", layers[k].block);
    snprintf(a.x, sizeof a.x, "x%d", layers[k].block);
    snprintf(a.from, sizeof a.from, "c%d", k);
    snprintf(a.to, sizeof a.to, "c%d", k + 1);
    return a;
}

static fth_val convolve(const gs_lpips *l, fth_graph *g, int k, fth_val v)
{
    const axes a = axes_of(k);
    char name[NAME], dims[3 * NAME];
    const fth_conv how = {.y = a.y,
                          .x = a.x,
                          .out_y = a.y,
                          .out_x = a.x,
                          .chan = a.from,
                          .ky = "ky",
                          .kx = "kx",
                          .stride = 1,
                          .dilation = 1,
                          .pad_y = 1,
                          .pad_x = 1};
    snprintf(name, sizeof name, "weight%d", k);
    snprintf(dims, sizeof dims, "%s %s ky kx", a.to, a.from);
    const fth_val w = fth_input(g, name, FTH_F32, dims, fth_tensor_source(l->weight[k]));
    snprintf(name, sizeof name, "bias%d", k);
    const fth_val bias = fth_input(g, name, FTH_F32, a.to, fth_tensor_source(l->bias[k]));
    return fth_relu(fth_add(fth_conv2d(v, w, &how), bias));
}

/* The largest of 2 x 2 pixels; a last row or column that has no other is dropped. */
static fth_val halve(int block, fth_val v)
{
    for (int side = 0; side < 2; side++) {
        char from[NAME], even[NAME], to[NAME];
        snprintf(from, sizeof from, "%c%d", side ? 'x' : 'y', block);
        snprintf(even, sizeof even, "%c%d_even", side ? 'x' : 'y', block);
        snprintf(to, sizeof to, "%c%d", side ? 'x' : 'y', block + 1);
        v = fth_pool_max(fth_slice(v, from, 0, even), even, 2, to);
    }
    return v;
}

/* Features of a block with length 1 in each pixel, subtracted, squared, weighed and averaged. */
static fth_val compare(const gs_lpips *l, fth_graph *g, int k, fth_val v)
{
    const axes a = axes_of(k);
    const int b = layers[k].block - 1;
    char name[NAME], dims[2 * NAME], flat[2 * NAME];
    snprintf(name, sizeof name, "share%d", b);
    snprintf(dims, sizeof dims, "one %s one1 one2", a.to);
    snprintf(flat, sizeof flat, "%s %s", a.y, a.x);
    const fth_val share = fth_sum(fth_input(g, name, FTH_F32, dims, fth_tensor_source(l->share[b])),
                                  "one one1 one2"),
                  length = fth_sqrt(fth_sum(fth_mul(v, v), a.to)),
                  unit = fth_div(v, fth_add(length, fth_const(g, FTH_F32, 1e-10))),
                  b_of = fth_cast(fth_index(g, "b"), FTH_F32),
                  sign = fth_sub(fth_const(g, FTH_F32, 1), fth_mul(fth_const(g, FTH_F32, 2), b_of)),
                  apart = fth_sum(fth_mul(unit, sign), "b"),
                  seen = fth_sum(fth_mul(fth_mul(apart, apart), share), a.to);
    return fth_mean(fth_cast(seen, FTH_F64), flat);
}

static void declare_axes(const gs_lpips *l, fth_graph *g)
{
    char name[NAME + 8];
    fth_axis(g, "b", 2);
    fth_axis(g, "ky", 3);
    fth_axis(g, "kx", 3);
    fth_axis(g, "one", 1);
    fth_axis(g, "one1", 1);
    fth_axis(g, "one2", 1);
    for (int k = 0; k <= CONVOLUTIONS; k++) {
        snprintf(name, sizeof name, "c%d", k);
        fth_axis(g, name, l->channels[k]);
    }
    for (int b = 1; b <= BLOCKS; b++)
        for (int side = 0; side < 2; side++) {
            const int64_t n = (side ? l->width : l->height) >> (b - 1);
            snprintf(name, sizeof name, "%c%d", side ? 'x' : 'y', b);
            fth_axis(g, name, n);
            snprintf(name, sizeof name, "%c%d_even", side ? 'x' : 'y', b);
            if (b < BLOCKS) fth_axis(g, name, n / 2 * 2);
        }
}

static fth_status make_plan(gs_lpips *l, int64_t width, int64_t height, fth_err *err)
{
    const int64_t size[4] = {2, 3, height, width};
    forget(l);
    l->width = width;
    l->height = height;
    FTH_TRY(fth_tensor_create(&l->pair, fth_context_mem(l->ctx), "image and target", FTH_F32, 4,
                              size, err));
    fth_graph *g = l->graph = fth_graph_create(l->ctx);
    declare_axes(l, g);
    fth_val v = fth_input(g, "pair", FTH_F32, "b c0 y1 x1", fth_tensor_source(l->pair)), sum = {0};
    for (int k = 0; k < CONVOLUTIONS; k++) {
        v = convolve(l, g, k, v);
        if (k + 1 < CONVOLUTIONS && layers[k + 1].block == layers[k].block) continue;
        const fth_val part = compare(l, g, k, v);
        sum = k < 2 ? part : fth_add(sum, part);
        if (k + 1 < CONVOLUTIONS) v = halve(layers[k].block, v);
    }
    FTH_TRY(fth_graph_check(g, err));
    l->sink = fth_scalar_sink(FTH_F64, &l->far);
    l->plan = fth_plan_make(g, &sum, 1, &(fth_limits){.sinks = &l->sink}, err);
    return l->plan ? FTH_OK : err ? err->status : FTH_E_NO_FIT;
}

/* ---- images ---- */

/* From 0..1 to what the network was made for: from -1..1, less a mean and over a deviation. */
static void fill(const gs_lpips *l, const gs_lpips_job *job)
{
    static const float shift[3] = {-0.030f, -0.088f, -0.188f}, scale[3] = {0.458f, 0.448f, 0.450f};
    const int64_t pixels = job->width * job->height;
    float *to = fth_tensor_data(l->pair);
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++) {
            const float target = job->target[3 * i + c], seen = job->image[3 * i + c];
            const bool out = job->mask && job->mask[i] < GS_MASK_LEAST;
            const float image = out ? target : seen > 1 ? 1 : seen > 0 ? seen : 0;
            to[c * pixels + i] = (2 * image - 1 - shift[c]) / scale[c];
            to[(3 + c) * pixels + i] = (2 * target - 1 - shift[c]) / scale[c];
        }
}

fth_status gs_lpips_run(gs_lpips *l, const gs_lpips_job *job, double *out, fth_err *err)
{
    if (job->width < LEAST || job->height < LEAST)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "LPIPS: expected images of at least %d px on a side, found %" PRId64
                        " x %" PRId64,
                        LEAST, job->width, job->height);
    if (!l->plan || l->width != job->width || l->height != job->height)
        FTH_TRY(make_plan(l, job->width, job->height, err));
    fill(l, job);
    FTH_TRY(fth_run(l->plan, &l->sink, NULL, NULL, err));
    *out = l->far;
    return FTH_OK;
}
