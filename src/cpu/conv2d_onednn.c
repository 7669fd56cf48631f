/* conv2d_onednn.c - tiles of a convolution through oneDNN.
 *
 * Each tile is copied with channels innermost, rows beyond the image as zeros, and the result
 * copied back where it belongs. A tile's shape follows from whole sizes, so oneDNN's choice does
 * too. The way back to the image with stride 1 is the convolution with weights turned round.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "cpu/conv2d.h"
#include "cpu/onednn.h"
#include "cpu/turn.h"

#include <string.h>

static int64_t round64(int64_t bytes)
{
    return (bytes + 63) & ~(int64_t)63;
}

/* Zeros before the first column or row, seen from the array that is read. */
static int64_t pad_of(const fth__conv_source *s, int64_t pad, int64_t k)
{
    return s->back ? (k - 1) * s->dilation - pad : pad;
}

static bool shape_of(const fth__conv_job *j, int64_t rows, fth__onednn_shape *out)
{
    const fth__conv_source *s = &j->from;
    const int64_t pad_x = pad_of(s, s->pad_x, s->kx), pad_y = pad_of(s, s->pad_y, s->ky);
    if (s->t != FTH_F32 || (s->back && s->stride != 1) || pad_x < 0 || pad_y < 0 || j->depth == 0)
        return false;
    /* windows of one element are a plain product, which needs no copies */
    if (s->ky == 1 && s->kx == 1 && s->stride == 1 && s->pad_x == 0 && s->pad_y == 0) return false;
    const int64_t reach = (j->to.n[3] - 1) * s->stride + (s->kx - 1) * s->dilation + 1 - pad_x;
    const int64_t width = fth__min_i64(s->width, reach);
    if (width <= 0) return false;
    *out = (fth__onednn_shape){
        .chan = j->w.n[j->depth_role],
        .out_chan = j->to.n[1],
        .rows_in = (rows - 1) * s->stride + (s->ky - 1) * s->dilation + 1,
        .width_in = width,
        .rows = rows,
        .width = j->to.n[3],
        .ky = s->ky,
        .kx = s->kx,
        .stride = s->stride,
        .dilation = s->dilation,
        .pad_left = pad_x,
        .pad_right = reach - width,
    };
    return true;
}

typedef struct rooms {
    int64_t in, out, plain, packed;
} rooms;

static rooms rooms_of(const fth__onednn_shape *s, const fth__onednn_conv *c)
{
    return (rooms){
        .in = round64(s->rows_in * s->width_in * s->chan * 4),
        .out = round64(s->rows * s->width * s->out_chan * 4),
        .plain = round64(s->out_chan * s->chan * s->ky * s->kx * 4),
        .packed = round64((int64_t)c->weights_bytes),
    };
}

/* When oneDNN cannot say how much it wants, no plan fits: more than any machine has. */
static const uint64_t UNKNOWN = (uint64_t)1 << 48;

uint64_t fth__conv_onednn_scratch(const fth__conv_job *j, int64_t rows)
{
    fth__onednn_shape shape;
    fth__onednn_conv c;
    bool can;
    if (!shape_of(j, rows, &shape)) return 0;
    if (fth__onednn_open(&c, &shape, &can, NULL) != FTH_OK) return UNKNOWN;
    if (!can) return 0;
    const rooms r = rooms_of(&shape, &c);
    const uint64_t bytes = (uint64_t)(r.in + r.out + r.plain + r.packed) + c.workspace_bytes;
    fth__onednn_close(&c);
    return bytes;
}

/* dst[i][k] = src[k][i], n by m. */
static void turn(float *dst, int64_t d_step, int64_t d_inner, const float *src, int64_t s_step,
                 int64_t s_inner, int64_t n, int64_t m)
{
    if (d_inner == 1 && s_inner == 1) {
        FTH_ISA_BEST(fth__turn_loops)->turn(dst, d_step, src, s_step, n, m);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++)
            dst[i * d_step + k * d_inner] = src[k * s_step + i * s_inner];
}

/* Rows from `first` on of image b, channels innermost; zeros where there is no row. */
static void copy_in(const fth__conv_job *j, const fth__onednn_shape *s, float *to, int64_t b,
                    int64_t first)
{
    const fth__conv_view *v = &j->from.v;
    for (int64_t r = 0; r < s->rows_in; r++) {
        float *row = to + r * s->width_in * s->chan;
        const int64_t y = first + r;
        if (y < 0 || y >= j->from.height) {
            memset(row, 0, (size_t)(s->width_in * s->chan) * sizeof *row);
            continue;
        }
        FTH_ASSERT(y >= v->origin[2] && y < v->origin[2] + v->n[2]);
        const float *from =
            (const float *)(const void *)v->data + b * v->s[0] + (y - v->origin[2]) * v->s[2];
        if (v->s[1] == 1 && v->s[3] == s->chan)
            memcpy(row, from, (size_t)(s->width_in * s->chan) * sizeof *row);
        else
            turn(row, s->chan, 1, from, v->s[1], v->s[3], s->width_in, s->chan);
    }
}

static void copy_out(const fth__conv_job *j, const fth__onednn_shape *s, const float *from,
                     int64_t b, int64_t y)
{
    const fth__conv_view *v = &j->to;
    for (int64_t r = 0; r < s->rows; r++) {
        float *row = (float *)(void *)v->data + b * v->s[0] + (y + r) * v->s[2];
        turn(row, v->s[1], v->s[3], from + r * s->width * s->out_chan, s->out_chan, 1, s->out_chan,
             s->width);
    }
}

static void plain_weights(const fth__conv_job *j, const fth__onednn_shape *s, float *to)
{
    const fth__conv_view *w = &j->w;
    const float *from = (const float *)(const void *)w->data;
    for (int64_t m = 0; m < s->out_chan; m++)
        for (int64_t c = 0; c < s->chan; c++)
            for (int64_t ky = 0; ky < s->ky; ky++)
                for (int64_t kx = 0; kx < s->kx; kx++) {
                    const int64_t y = j->from.back ? s->ky - 1 - ky : ky,
                                  x = j->from.back ? s->kx - 1 - kx : kx;
                    *to++ = from[m * w->s[j->m_role] + c * w->s[j->depth_role] + y * w->s[2] +
                                 x * w->s[3]];
                }
}

fth_status fth__conv_onednn_run(const fth__conv_job *j, int64_t rows, int64_t y, int64_t tiles,
                                void *scratch, bool *done, fth_err *err)
{
    fth__onednn_shape s;
    fth__onednn_conv c;
    *done = false;
    if (!shape_of(j, rows, &s)) return FTH_OK;
    FTH_TRY(fth__onednn_open(&c, &s, done, err));
    if (!*done) return FTH_OK;
    const rooms room = rooms_of(&s, &c);
    FTH_ASSERT(rows > 0 && y + tiles * rows <= j->to.n[2]);
    char *in = scratch, *out = in + room.in, *plain = out + room.out, *packed = plain + room.plain,
         *work = packed + room.packed;
    const int64_t pad_y = pad_of(&j->from, j->from.pad_y, j->from.ky);
    plain_weights(j, &s, (float *)(void *)plain);
    fth_status status = fth__onednn_pack(&c, plain, packed, work, err);
    for (int64_t i = 0; i < j->to.n[0] * tiles && status == FTH_OK; i++) {
        const int64_t b = i / tiles, at = y + i % tiles * rows;
        copy_in(j, &s, (float *)(void *)in, b, (j->to.origin[2] + at) * s.stride - pad_y);
        status = fth__onednn_run(&c, in, packed, out, work, err);
        if (status == FTH_OK) copy_out(j, &s, (const float *)(const void *)out, b, at);
    }
    fth__onednn_close(&c);
    return status;
}
