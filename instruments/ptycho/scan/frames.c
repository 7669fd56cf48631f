/* frames.c - frames of a detector as square patterns: pixels added up, cut out about the beam.
 *
 * Pixel (i, j) of a pattern of side N is the sum of bin x bin pixels of the frame, and pixel
 * (N/2, N/2) begins at the centre of the beam. What lies outside of the frame is zero.
 */
#include "parts.h"

#include <math.h>
#include <string.h>

typedef struct frames {
    fth_mem *mem;
    fth_source base;
    int64_t bin, top, left; /* of pixel (0, 0) in the frame; may be negative */
} frames;

/* One pattern row from the rows of a frame. */
#define ADD(type, sum_type)                                                                        \
    for (int64_t k = 0; k < f->bin; k++) {                                                         \
        const int64_t row = f->top + i * f->bin + k;                                               \
        if (row < 0 || row >= f->base.size[1]) continue;                                           \
        const type *in = (const type *)frame + (row - first) * f->base.size[2];                    \
        for (int64_t j = 0; j < n; j++)                                                            \
            for (int64_t m = 0; m < f->bin; m++) {                                                 \
                const int64_t col = f->left + (lo + j) * f->bin + m;                               \
                if (col >= 0 && col < f->base.size[2]) sum[j] += (sum_type)in[col];                \
            }                                                                                      \
    }

static void add_row(const frames *f, int64_t i, int64_t lo, int64_t n, int64_t first,
                    const void *frame, double *sum)
{
    memset(sum, 0, (size_t)n * sizeof *sum);
    if (f->base.dtype == FTH_U8) ADD(uint8_t, double)
    if (f->base.dtype == FTH_U16) ADD(uint16_t, double)
    if (f->base.dtype == FTH_I32) ADD(int32_t, double)
    if (f->base.dtype == FTH_I64) ADD(int64_t, double)
    if (f->base.dtype == FTH_F32) ADD(float, double)
    if (f->base.dtype == FTH_F64) ADD(double, double)
}
#undef ADD

static int64_t clamp(int64_t v, int64_t most)
{
    return v < 0 ? 0 : v > most ? most : v;
}

/* Frames are f64 of sums: counts below 2^53 stay whole. */
static fth_status frames_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                              fth_err *err)
{
    const frames *f = self;
    const int64_t first = clamp(f->top + lo[1] * f->bin, f->base.size[1]),
                  end = clamp(f->top + (lo[1] + n[1]) * f->bin, f->base.size[1]);
    const int64_t rows = end - first, item = fth_dtype_size(f->base.dtype);
    void *frame = NULL;
    double *out = dst;
    FTH_TRY(fth_mem_take(f->mem, FTH_MEM_ANY, (uint64_t)(rows * f->base.size[2] * item) + 1,
                         "frame", &frame, err));
    fth_status s = FTH_OK;
    for (int64_t k = 0; s == FTH_OK && k < n[0]; k++) {
        const int64_t at[3] = {lo[0] + k, first, 0}, some[3] = {1, rows, f->base.size[2]};
        if (rows > 0) s = f->base.read(f->base.self, at, some, frame, err);
        for (int64_t i = 0; s == FTH_OK && i < n[1]; i++, out += n[2])
            add_row(f, lo[1] + i, lo[2], n[2], first, frame, out);
    }
    fth_mem_release(f->mem, frame, NULL);
    return s;
}

/* As asked for, as the file says, or the middle. */
static double centre_of(double asked, double said, int64_t size)
{
    return !isnan(asked) ? asked : !isnan(said) ? said : (double)(size / 2);
}

bool pt_frames_are_cut(const pt_draft *d)
{
    return d->opt->crop > 0 || d->opt->bin > 1;
}

/* Side of a pattern, and where its pixel (0, 0) begins in a frame. */
static int64_t place(const pt_draft *d, int64_t *top, int64_t *left)
{
    const pt_scan_options *o = d->opt;
    const int64_t whole = d->rows < d->cols ? d->rows : d->cols, /* the largest even square */
        N = (o->crop > 0 ? o->crop : whole) / o->bin / 2 * 2;
    *top = llrint(centre_of(o->centre_y, d->centre_y, d->rows)) - N / 2 * o->bin;
    *left = llrint(centre_of(o->centre_x, d->centre_x, d->cols)) - N / 2 * o->bin;
    return N;
}

void pt_frames_cut_mask(const pt_draft *d, const uint8_t *bad, uint8_t *good)
{
    int64_t top, left;
    const int64_t N = place(d, &top, &left), bin = d->opt->bin;
    for (int64_t i = 0; i < N * N; i++) {
        const int64_t y0 = top + i / N * bin, x0 = left + i % N * bin;
        good[i] = 1;
        for (int64_t y = y0; y < y0 + bin; y++)
            for (int64_t x = x0; x < x0 + bin; x++)
                if (y >= 0 && x >= 0 && y < d->rows && x < d->cols && bad[y * d->cols + x])
                    good[i] = 0;
    }
}

fth_status pt_frames_view(const pt_draft *d, const fth_source *base, fth_source *out, fth_err *err)
{
    const pt_scan_options *o = d->opt;
    int64_t top, left;
    const int64_t rows = d->rows, cols = d->cols, N = place(d, &top, &left);
    void *block = NULL;
    if (N < 2)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: frames of %lld x %lld, cut to %lld and binned by %lld, have no pixels",
                        d->scan->path, (long long)rows, (long long)cols, (long long)o->crop,
                        (long long)o->bin);
    FTH_TRY(pt_scan_hold(d->scan, sizeof(frames), "frames of a scan", &block, err));
    frames *f = block;
    *f = (frames){.mem = d->scan->mem, .base = *base, .bin = o->bin, .top = top, .left = left};
    *out = (fth_source){.kind = base->kind,
                        .self = f,
                        .dtype = FTH_F64,
                        .n_axes = 3,
                        .size = {base->size[0], N, N},
                        .read = frames_read,
                        .libraries = base->libraries,
                        .billed_bytes = base->billed_bytes};
    return FTH_OK;
}
