/* conv2d.c - convolutions and their gradients as products of matrices.
 *
 * A few rows of one image at a time: the windows over them are written out as columns in scratch,
 * 512 of (channel, ky, kx) at most, and multiplied with the weights. Where oneDNN has something
 * better for f32 it takes the same tiles. How many rows depends on the width alone, and pieces are
 * cut at multiples of that, so every product has the same shape however the work was divided.
 */
#include "cpu/conv2d.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/blas.h"
#include "cpu/winograd.h"
#include "graph/grid.h"

#include <string.h>

/* DEPTH: of (channel, ky, kx) in one product. Beside the pixels of fth__conv_rows the columns are
 * at most 4 MiB of f32. Not measured against other depths; it decides the order of additions. */
enum { DEPTH = 512, CHANNELS = FTH__CONV_CHANNELS };

static uint64_t round64(int64_t bytes)
{
    return ((uint64_t)bytes + 63u) & ~(uint64_t)63u;
}

/* ---- columns ---- */

static bool place(const fth__conv_source *s, int64_t here, int64_t k, int64_t pad, int64_t limit,
                  int64_t *at)
{
    int64_t p = here * s->stride + k * s->dilation - pad;
    if (s->back) {
        p = here + pad - k * s->dilation;
        if (p < 0 || p % s->stride != 0) return false;
        p /= s->stride;
    }
    *at = p;
    return p >= 0 && p < limit;
}

#define DEFINE_ROW(name, type)                                                                     \
    /* one row of the output's places, for one element of the window; from is the row read */      \
    static void name(const fth__conv_source *s, type *to, const type *from, int64_t kx, int64_t n) \
    {                                                                                              \
        const int64_t step = s->v.s[3],                                                            \
                      shift = s->back ? s->pad_x - kx * s->dilation : kx * s->dilation - s->pad_x; \
        if (s->stride == 1) {                                                                      \
            const int64_t a = fth__min_i64(fth__max_i64(-shift, 0), n);                            \
            const int64_t b = fth__max_i64(fth__min_i64(s->width - shift, n), a);                  \
            for (int64_t x = 0; x < a; x++) to[x] = 0;                                             \
            if (step == 1)                                                                         \
                memcpy(to + a, from + a + shift, (size_t)(b - a) * sizeof(type));                  \
            else                                                                                   \
                for (int64_t x = a; x < b; x++) to[x] = from[(x + shift) * step];                  \
            for (int64_t x = b; x < n; x++) to[x] = 0;                                             \
            return;                                                                                \
        }                                                                                          \
        for (int64_t x = 0; x < n; x++) {                                                          \
            int64_t at;                                                                            \
            to[x] = place(s, x, kx, s->pad_x, s->width, &at) ? from[at * step] : 0;                \
        }                                                                                          \
    }
DEFINE_ROW(row_f32, float)
DEFINE_ROW(row_f64, double)

/* Rows [y0, y0+rows) of one element of the window where the image's rows lie densely and the output
 * is as wide as the image: all rows that are there in one move, then zeros where it wrapped. */
static void fill_dense(const fth__conv_source *s, char *to, const char *image, int64_t ky,
                       int64_t kx, int64_t y0, int64_t rows)
{
    const int64_t width = s->width, size = s->size, shift = kx * s->dilation - s->pad_x,
                  down = ky * s->dilation - s->pad_y, limit = s->height;
    const int64_t a = fth__min_i64(fth__max_i64(-down - y0, 0), rows),
                  b = fth__max_i64(fth__min_i64(limit - down - y0, rows), a);
    const int64_t wide = fth__min_i64(shift < 0 ? -shift : shift, width);
    FTH_ASSERT(a >= 0 && a <= b && b <= rows);
    memset(to, 0, (size_t)(a * width * size));
    memset(to + b * width * size, 0, (size_t)((rows - b) * width * size));
    if (a == b) return;
    /* the first or the last elements of the move would lie outside of the rows that are there */
    const int64_t before = shift < 0 ? wide : 0, after = shift > 0 ? wide : 0;
    const char *from = image + ((y0 + a + down - s->v.origin[2]) * width + shift) * size;
    memcpy(to + (a * width + before) * size, from + before * size,
           (size_t)(((b - a) * width - before - after) * size));
    for (int64_t y = a; y < b && wide > 0; y++)
        memset(to + (y * width + (shift < 0 ? 0 : width - wide)) * size, 0, (size_t)(wide * size));
}

/* columns[k][row*width + x] for k in [k0, k0+nk) and rows [y0, y0+rows) of the output, image b. */
static void fill_columns(const fth__conv_source *s, char *columns, int64_t b, int64_t k0,
                         int64_t nk, int64_t y0, int64_t rows, int64_t width)
{
    const bool dense =
        s->stride == 1 && !s->back && s->v.s[3] == 1 && s->v.s[2] == width && s->width == width;
    for (int64_t k = 0; k < nk; k++) {
        const int64_t kx = (k0 + k) % s->kx, ky = (k0 + k) / s->kx % s->ky,
                      c = (k0 + k) / (s->kx * s->ky);
        if (dense) {
            fill_dense(s, columns + k * rows * width * s->size,
                       s->v.data + (b * s->v.s[0] + c * s->v.s[1]) * s->size, ky, kx, y0, rows);
            continue;
        }
        for (int64_t y = 0; y < rows; y++) {
            char *to = columns + (k * rows + y) * width * s->size;
            int64_t at;
            if (!place(s, y0 + y, ky, s->pad_y, s->height, &at)) {
                memset(to, 0, (size_t)(width * s->size));
                continue;
            }
            const char *from =
                s->v.data +
                (b * s->v.s[0] + c * s->v.s[1] + (at - s->v.origin[2]) * s->v.s[2]) * s->size;
            if (s->t == FTH_F32)
                row_f32(s, (float *)(void *)to, (const float *)(const void *)from, kx, width);
            else
                row_f64(s, (double *)(void *)to, (const double *)(const void *)from, kx, width);
        }
    }
}

/* The columns as a matrix: windows of one element over dense rows are the image itself. */
static fth__matrix columns_of(const fth__conv_source *s, char *columns, int64_t b, int64_t k0,
                              int64_t nk, int64_t y0, int64_t rows, int64_t width)
{
    const bool alone = s->ky == 1 && s->kx == 1 && s->stride == 1 && s->pad_y == 0 && s->pad_x == 0;
    if (alone && s->v.s[3] == 1 && s->v.s[2] == width && width == s->width &&
        y0 + rows <= s->height)
        return (fth__matrix){
            s->v.data + (b * s->v.s[0] + k0 * s->v.s[1] + (y0 - s->v.origin[2]) * width) * s->size,
            s->v.s[1], false};
    fill_columns(s, columns, b, k0, nk, y0, rows, width);
    return (fth__matrix){columns, rows * width, false};
}

/* ---- forward and back to the image ---- */

/* By whole sizes: a cut does not change the way. */
static bool is_tiled(const fth_node *node)
{
    const fth__conv_attr *attr = node->attr;
    return attr->tiled && fth__winograd_pays(fth__conv_size(node, attr->chan),
                                             fth__conv_size(node, attr->out_chan));
}

static bool make_job(const fth_call *call, bool back, fth__conv_job *j)
{
    const fth_node *node = call->node;
    const fth__conv_attr *attr = node->attr;
    const fth__conv_what from = back ? FTH__CONV_RESULT : FTH__CONV_IMAGE,
                         to = back ? FTH__CONV_IMAGE : FTH__CONV_RESULT;
    *j = (fth__conv_job){
        .m_role = back ? 1 : 0, .depth_role = back ? 0 : 1, .tiled = is_tiled(node)};
    j->from = (fth__conv_source){
        .v = fth__conv_view_of(attr, from, &node->in[0], &call->in[0]),
        .height = fth__conv_size(node, back ? attr->out_y : attr->y),
        .width = fth__conv_size(node, back ? attr->out_x : attr->x),
        .ky = fth__conv_size(node, attr->ky),
        .kx = fth__conv_size(node, attr->kx),
        .stride = attr->stride,
        .dilation = attr->dilation,
        .pad_y = attr->pad_y,
        .pad_x = attr->pad_x,
        .back = back,
        .t = node->in[0].dtype,
        .size = fth_dtype_size(node->in[0].dtype),
    };
    j->w = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->in[1], &call->in[1]);
    j->to = fth__conv_view_of(attr, to, &node->out[0], &call->out[0]);
    j->rows = fth__conv_rows(fth__conv_size(node, back ? attr->x : attr->out_x));
    j->depth = j->w.n[j->depth_role] * j->from.ky * j->from.kx;
    FTH_ASSERT(j->to.n[2] == 0 || j->to.origin[2] % j->rows == 0); /* pieces start on the grid */
    FTH_ASSERT(back || fth__conv_covers(node, &j->from.v, &j->to));
    j->cols = node->out[0].axis[node->out[0].n_axes - 1] == (back ? attr->chan : attr->out_chan);
    return j->to.n[0] > 0 && j->to.n[1] > 0 && j->to.n[2] > 0 && j->to.n[3] > 0;
}

typedef struct rooms {
    int64_t pixels, depth;
    uint64_t columns, weights, product;
} rooms;

static rooms rooms_of(const fth__conv_job *j)
{
    rooms r = {.pixels = fth__min_i64(j->rows, j->to.n[2]) * j->to.n[3],
               .depth = fth__min_i64(DEPTH, j->depth)};
    r.columns = round64(r.depth * r.pixels * j->from.size);
    r.weights = round64(r.depth * j->to.n[1] * j->from.size);
    r.product = round64(r.pixels * j->to.n[1] * j->from.size);
    return r;
}

static void fill_weights(const fth__conv_job *j, char *to, int64_t k0, int64_t nk)
{
    const fth__conv_source *s = &j->from;
    const int64_t m = j->to.n[1];
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < nk; k++) {
            const int64_t kx = (k0 + k) % s->kx, ky = (k0 + k) / s->kx % s->ky,
                          c = (k0 + k) / (s->kx * s->ky);
            const int64_t at =
                i * j->w.s[j->m_role] + c * j->w.s[j->depth_role] + ky * j->w.s[2] + kx * j->w.s[3];
            memcpy(to + (i * nk + k) * s->size, j->w.data + at * s->size, (size_t)s->size);
        }
}

/* The product, m by (row, x), to where the result lies. */
static void scatter(const fth__conv_job *j, const char *product, int64_t b, int64_t y0,
                    int64_t rows)
{
    const int64_t width = j->to.n[3], size = j->from.size, m = j->to.n[1], pixels = rows * width;
    for (int64_t i = 0; i < m; i++)
        for (int64_t y = 0; y < rows; y++)
            for (int64_t x = 0; x < width; x++) {
                const int64_t at = j->cols ? (y * width + x) * m + i : i * pixels + y * width + x;
                const int64_t to =
                    b * j->to.s[0] + i * j->to.s[1] + (y0 + y) * j->to.s[2] + x * j->to.s[3];
                memcpy(j->to.data + to * size, product + at * size, (size_t)size);
            }
}

/* Rows of one image: all products over the depth. */
static void run_rows(const fth__conv_job *j, const rooms *r, char *scratch, int64_t b, int64_t y0,
                     int64_t rows)
{
    const int64_t width = j->to.n[3], pixels = rows * width, m = j->to.n[1];
    char *columns = scratch, *weights = scratch + r->columns, *product = weights + r->weights;
    FTH_ASSERT(pixels <= r->pixels && y0 + rows <= j->to.n[2]);
    fth__matrix_out c = {product, j->cols ? m : pixels, j->cols};
    const bool dense = j->cols ? j->to.s[1] == 1 && j->to.s[2] == width * j->to.s[3]
                               : j->to.s[3] == 1 && j->to.s[2] == width;
    if (dense) {
        c.data = j->to.data + (b * j->to.s[0] + y0 * j->to.s[2]) * j->from.size;
        c.ld = j->cols ? j->to.s[3] : j->to.s[1];
    }
    for (int64_t k0 = 0; k0 < j->depth; k0 += DEPTH) {
        const int64_t nk = fth__min_i64(DEPTH, j->depth - k0);
        const fth__matrix right =
            columns_of(&j->from, columns, b, k0, nk, j->to.origin[2] + y0, rows, width);
        fill_weights(j, weights, k0, nk);
        fth__blas_gemm(j->from.t, m, pixels, nk, 1.0, (fth__matrix){weights, nk, false}, right,
                       false, k0 > 0 ? 1.0 : 0.0, c);
    }
    if (j->depth == 0) /* a sum over nothing */
        for (int64_t i = 0; i < (j->cols ? pixels : m); i++)
            memset((char *)c.data + i * c.ld * j->from.size, 0,
                   (size_t)((j->cols ? m : pixels) * j->from.size));
    if (!dense) scatter(j, product, b, y0, rows);
}

/* Output channels [m0, m0+1024) of a call. */
static fth__conv_job channels_of(const fth__conv_job *all, int64_t m0)
{
    fth__conv_job j = *all;
    FTH_ASSERT(m0 % CHANNELS == 0 && m0 < all->to.n[1]);
    j.to.n[1] = fth__min_i64(CHANNELS, all->to.n[1] - m0);
    j.w.n[j.m_role] = j.to.n[1];
    if (j.to.data) j.to.data += m0 * all->to.s[1] * j.from.size;
    if (j.w.data) j.w.data += m0 * all->w.s[j.m_role] * j.from.size;
    return j;
}

static uint64_t scratch_of(const fth_call *call, bool back)
{
    fth__conv_job all;
    if (!make_job(call, back, &all)) return 0;
    uint64_t most = 0;
    for (int64_t m0 = 0; m0 < all.to.n[1]; m0 += CHANNELS) {
        const fth__conv_job j = channels_of(&all, m0);
        const uint64_t tiled = fth__winograd_scratch(&j);
        const rooms r = rooms_of(&j);
        most = fth__max_u64(most, tiled);
        if (tiled > 0) continue;
        most = fth__max_u64(most, r.columns + r.weights + r.product);
        if (j.to.n[2] >= j.rows) most = fth__max_u64(most, fth__conv_onednn_scratch(&j, j.rows));
        if (j.to.n[2] % j.rows > 0)
            most = fth__max_u64(most, fth__conv_onednn_scratch(&j, j.to.n[2] % j.rows));
    }
    return most;
}

/* Tiles of one height. */
static fth_status run_tiles(const fth_call *call, const fth__conv_job *j, int64_t rows, int64_t y,
                            int64_t tiles)
{
    bool done = false;
    if (tiles == 0 || rows == 0) return FTH_OK;
    FTH_TRY(fth__conv_onednn_run(j, rows, y, tiles, call->scratch, &done, call->err));
    if (done) return FTH_OK;
    const rooms r = rooms_of(j);
    for (int64_t b = 0; b < j->to.n[0]; b++)
        for (int64_t i = 0; i < tiles; i++) run_rows(j, &r, call->scratch, b, y + i * rows, rows);
    return FTH_OK;
}

static fth_status run_job(const fth_call *call, bool back)
{
    fth__conv_job all;
    if (!make_job(call, back, &all)) return FTH_OK;
    for (int64_t m0 = 0; m0 < all.to.n[1]; m0 += CHANNELS) {
        const fth__conv_job j = channels_of(&all, m0);
        const int64_t tiles = j.to.n[2] / j.rows;
        if (fth__winograd_scratch(&j) > 0) {
            fth__winograd_run(&j, call->scratch);
            continue;
        }
        FTH_TRY(run_tiles(call, &j, j.rows, 0, tiles));
        FTH_TRY(run_tiles(call, &j, j.to.n[2] % j.rows, tiles * j.rows, 1));
    }
    return FTH_OK;
}

static uint64_t scratch_forward(const fth_call *call)
{
    return scratch_of(call, false);
}
static fth_status run_forward(const fth_call *call)
{
    return run_job(call, false);
}
static uint64_t scratch_input(const fth_call *call)
{
    return scratch_of(call, true);
}
static fth_status run_input(const fth_call *call)
{
    return run_job(call, true);
}

/* BLAS counts in 32 bits; larger arrays take the plain loop. */
static bool supports(const fth_node *node)
{
    return fth_desc_count(&node->in[0]) <= INT32_MAX && fth_desc_count(&node->in[1]) <= INT32_MAX &&
           fth_desc_count(&node->out[0]) <= INT32_MAX;
}

/* Shapes that oneDNN does not take go to BLAS; the last tile may, where the others did not. */
static uint32_t libraries(const fth_node *node, uint64_t *more)
{
    (void)more;
    return 1u << FTH_LIB_OPENBLAS | (node->out[0].dtype == FTH_F32 ? 1u << FTH_LIB_ONEDNN : 0u);
}

const fth_kernel fth__cpu_conv2d = {.op = "conv2d",
                                    .supports = supports,
                                    .scratch = scratch_forward,
                                    .run = run_forward,
                                    .libraries = libraries};
const fth_kernel fth__cpu_conv2d_grad_input = {.op = "conv2d_grad_input",
                                               .supports = supports,
                                               .scratch = scratch_input,
                                               .run = run_input,
                                               .libraries = libraries};

/* ---- the weights ---- */

typedef struct weight_job {
    fth__conv_source from; /* the image */
    fth__conv_view r, w, carried;
    int64_t rows, depth,
        pixels; /* rows of the result per product; chan*ky*kx of this call; pixels of a product */
    int64_t total, block, super; /* of the batch */
    uint64_t columns, left, sum;
    fth__winograd_sum tiles;
    bool tiled;
} weight_job;

static void make_weight_job(const fth_call *call, weight_job *j)
{
    const fth_node *node = call->node;
    const fth__conv_attr *attr = node->attr;
    *j = (weight_job){.r = fth__conv_view_of(attr, FTH__CONV_RESULT, &node->in[0], &call->in[0])};
    j->w = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->out[0], &call->out[0]);
    j->carried = fth__conv_view_of(attr, FTH__CONV_WEIGHTS, &node->out[0], &call->state[0]);
    j->from = (fth__conv_source){
        .v = fth__conv_view_of(attr, FTH__CONV_IMAGE, &node->in[1], &call->in[1]),
        .height = fth__conv_size(node, attr->y),
        .width = fth__conv_size(node, attr->x),
        .ky = fth__conv_size(node, attr->ky),
        .kx = fth__conv_size(node, attr->kx),
        .stride = attr->stride,
        .dilation = attr->dilation,
        .pad_y = attr->pad_y,
        .pad_x = attr->pad_x,
        .t = node->in[0].dtype,
        .size = fth_dtype_size(node->in[0].dtype),
    };
    j->rows = fth__conv_rows(j->r.n[3]);
    j->depth = j->w.n[1] * j->from.ky * j->from.kx;
    j->pixels = fth__min_i64(j->rows, j->r.n[2]) * j->r.n[3];
    j->total = fth__conv_size(node, attr->batch);
    j->block = fth__grid_reduce(j->total);
    j->super = fth__grid_superblock(j->total, j->block);
    j->columns = round64(fth__min_i64(DEPTH, j->depth) * j->pixels * j->from.size);
    j->left = round64(j->w.n[0] * j->pixels * j->from.size);
    j->sum = round64(j->w.n[0] * j->depth * j->from.size);
    j->tiles = (fth__winograd_sum){&j->from, &j->r, j->w.n[1], is_tiled(node)};
    const uint64_t tiles = fth__winograd_sum_scratch(&j->tiles);
    j->tiled = tiles > 0;
    if (j->tiled) {
        j->columns = tiles;
        j->left = 0;
    }
}

static uint64_t scratch_weight(const fth_call *call)
{
    weight_job j;
    make_weight_job(call, &j);
    return j.columns + j.left + j.sum;
}

/* Rows of the result as a matrix, out_chan by pixels: where they lie, if they lie densely. */
static fth__matrix left_of(const weight_job *j, char *room, int64_t b, int64_t y0, int64_t rows)
{
    const int64_t width = j->r.n[3], size = j->from.size;
    char *from = j->r.data + (b * j->r.s[0] + y0 * j->r.s[2]) * size;
    if (j->r.s[3] == 1 && (rows == 1 || j->r.s[2] == width) && j->r.s[1] >= rows * width)
        return (fth__matrix){from, j->r.s[1], false};
    for (int64_t o = 0; o < j->w.n[0]; o++)
        for (int64_t y = 0; y < rows; y++) {
            char *row = room + (o * rows + y) * width * size;
            const char *at = from + (o * j->r.s[1] + y * j->r.s[2]) * size;
            for (int64_t x = 0; x < width; x++)
                memcpy(row + x * size, at + x * j->r.s[3] * size, (size_t)size);
        }
    return (fth__matrix){room, rows * width, false};
}

/* sum (out_chan by depth) += the product of one image. */
static void add_image(const weight_job *j, char *scratch, int64_t b, bool first)
{
    char *columns = scratch, *left = scratch + j->columns, *sum = left + j->left;
    const int64_t width = j->r.n[3], size = j->from.size;
    for (int64_t y = 0; y < j->r.n[2]; y += j->rows) {
        const int64_t rows = fth__min_i64(j->rows, j->r.n[2] - y), pixels = rows * width;
        const fth__matrix result = left_of(j, left, b, y, rows);
        for (int64_t k0 = 0; k0 < j->depth; k0 += DEPTH) {
            const int64_t nk = fth__min_i64(DEPTH, j->depth - k0);
            fill_columns(&j->from, columns, b, k0, nk, y, rows, width);
            fth__blas_gemm(j->from.t, j->w.n[0], nk, pixels, 1.0, result,
                           (fth__matrix){columns, pixels, true}, false, first && y == 0 ? 0.0 : 1.0,
                           (fth__matrix_out){sum + k0 * size, j->depth, false});
        }
    }
}

/* to[i] = from[i] (+ to[i]) for n neighbours. */
#define DEFINE_PUT(name, type)                                                                     \
    static void name(type *to, const type *from, int64_t n, bool add)                              \
    {                                                                                              \
        if (add)                                                                                   \
            for (int64_t i = 0; i < n; i++) to[i] = from[i] + to[i];                               \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) to[i] = from[i] + (type)0;                             \
    }
DEFINE_PUT(put_f32, float)
DEFINE_PUT(put_f64, double)

static void put(fth_dtype t, char *to, const char *from, int64_t n, bool add)
{
    if (t == FTH_F32)
        put_f32((float *)(void *)to, (const float *)(const void *)from, n, add);
    else
        put_f64((double *)(void *)to, (const double *)(const void *)from, n, add);
}

/* How many of the innermost elements of (chan, ky, kx) lie side by side. */
static int64_t dense_of(const weight_job *j, const fth__conv_view *v)
{
    int64_t n = 1;
    const int64_t size[3] = {j->from.kx, j->from.ky, j->w.n[1]};
    for (int d = 0; d < 3 && (v->s[3 - d] == n || size[d] == 1); d++) n *= size[d];
    return n;
}

/* Add the sum of one block of images, which ends before image `next`, to the result. */
static void fold(const weight_job *j, const char *sum, int64_t at, int64_t next)
{
    const int64_t size = j->from.size, all = j->w.n[0] * j->depth;
    const bool many = j->super > j->block, closes = next % j->super == 0 || next == j->total;
    int64_t n = dense_of(j, &j->w);
    if (many) n = fth__min_i64(n, dense_of(j, &j->carried));
    for (int64_t i = 0; i < all; i += n) {
        const int64_t kx = i % j->from.kx, ky = i / j->from.kx % j->from.ky;
        const int64_t c = i / (j->from.kx * j->from.ky) % j->w.n[1], o = i / j->depth;
        char *out =
            j->w.data + (o * j->w.s[0] + c * j->w.s[1] + ky * j->w.s[2] + kx * j->w.s[3]) * size;
        const char *from = sum + i * size;
        if (many) {
            char *part = j->carried.data + (o * j->carried.s[0] + c * j->carried.s[1] +
                                            ky * j->carried.s[2] + kx * j->carried.s[3]) *
                                               size;
            put(j->from.t, part, from, n, at % j->super != 0);
            if (!closes) continue;
            from = part;
        }
        put(j->from.t, out, from, n, at >= j->super);
    }
}

static fth_status run_weight(const fth_call *call)
{
    weight_job j;
    make_weight_job(call, &j);
    char *sum = (char *)call->scratch + j.columns + j.left;
    const uint64_t bytes = (uint64_t)(j.w.n[0] * j.depth * j.from.size);
    const bool nothing = j.pixels == 0 || j.r.n[0] == 0;
    FTH_ASSERT(j.r.n[0] == j.from.v.n[0] && j.r.origin[0] == j.from.v.origin[0]);
    FTH_ASSERT(j.r.n[0] == 0 || j.r.origin[0] % j.block == 0); /* pieces start on the grid */
    FTH_ASSERT(j.super <= j.block || j.carried.data);
    if (j.w.n[0] == 0 || j.depth == 0) return FTH_OK;
    if (nothing) memset(sum, 0, bytes);
    if (j.r.n[0] == 0 && call->first) fold(&j, sum, 0, j.total);
    for (int64_t b = 0; b < j.r.n[0]; b += j.block) {
        const int64_t end = fth__min_i64(b + j.block, j.r.n[0]);
        if (j.tiled && !nothing)
            fth__winograd_sum_run(&j.tiles, b, end, (float *)(void *)sum, call->scratch);
        for (int64_t i = b; i < end && !nothing && !j.tiled; i++)
            add_image(&j, call->scratch, i, i == b);
        fold(&j, sum, j.r.origin[0] + b, j.r.origin[0] + end);
    }
    return FTH_OK;
}

static uint32_t libraries_weight(const fth_node *node, uint64_t *more)
{
    (void)node, (void)more;
    return 1u << FTH_LIB_OPENBLAS;
}

const fth_kernel fth__cpu_conv2d_grad_weight = {.op = "conv2d_grad_weight",
                                                .supports = supports,
                                                .scratch = scratch_weight,
                                                .run = run_weight,
                                                .libraries = libraries_weight};
