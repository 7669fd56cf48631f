/* resample.c - see resample.h.
 *
 * Both rules are separable: a list of weights for each output column and one for each output row.
 * Sums are in double and in the order of the pixels.
 */
#include "resample.h"

#include <math.h>

/* Pixels [first, first + n) of a line, weighted. */
typedef struct span {
    int64_t first;
    int n;
    double weight[2]; /* bilinear: both; box: the first and the last, 1 between them */
} span;

static double value(const void *at, fth_dtype dtype, int64_t i)
{
    if (dtype == FTH_U8) return ((const uint8_t *)at)[i];
    if (dtype == FTH_U16) return ((const uint16_t *)at)[i];
    return (double)((const float *)at)[i];
}

static void put(void *to, fth_dtype dtype, int64_t i, double v)
{
    if (dtype == FTH_U8)
        ((uint8_t *)to)[i] = (uint8_t)floor(v + 0.5);
    else if (dtype == FTH_U16)
        ((uint16_t *)to)[i] = (uint16_t)floor(v + 0.5);
    else
        ((float *)to)[i] = (float)v;
}

/* Output pixel i of `to` covers (i, i+1) * from / to. */
static span box_span(int64_t i, int64_t from, int64_t to)
{
    const double low = (double)i * (double)from / (double)to,
                 high = (double)(i + 1) * (double)from / (double)to;
    int64_t first = (int64_t)floor(low), last = (int64_t)ceil(high) - 1;
    if (last > from - 1) last = from - 1;
    if (first > last) first = last;
    if (first == last) return (span){first, 1, {1, 1}};
    return (span){first, (int)(last - first + 1), {(double)(first + 1) - low, high - (double)last}};
}

/* Between the centres of two pixels, the edge going on. */
static span bilinear_span(int64_t i, int64_t from, int64_t to)
{
    double at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    at = fmin(fmax(at, 0), (double)(from - 1));
    const int64_t first = (int64_t)floor(at);
    const double part = at - (double)first;
    return first + 1 < from ? (span){first, 2, {1 - part, part}} : (span){first, 1, {1, 1}};
}

static double weight_of(const span *s, int k)
{
    return k == 0 ? s->weight[0] : k == s->n - 1 ? s->weight[1] : 1;
}

static double pixel(const gs_grid *g, const void *src, const span *x, const span *y, int c)
{
    double sum = 0, all = 0;
    for (int i = 0; i < y->n; i++) {
        double line = 0, along = 0;
        for (int j = 0; j < x->n; j++) {
            const double w = weight_of(x, j);
            line += w * value(src, g->dtype,
                              ((y->first + i) * g->width + x->first + j) * g->channels + c);
            along += w;
        }
        sum += weight_of(y, i) * line;
        all += weight_of(y, i) * along;
    }
    return sum / all;
}

fth_status gs_resample_image(fth_mem *mem, const gs_grid *from, const void *src, const gs_grid *to,
                             void *dst, gs_resample how, fth_err *err)
{
    span (*of)(int64_t, int64_t, int64_t) = how == GS_BILINEAR ? bilinear_span : box_span;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)to->width * sizeof(span),
                         "columns of an image", &block, err));
    span *columns = block;
    for (int64_t x = 0; x < to->width; x++) columns[x] = of(x, from->width, to->width);
    for (int64_t y = 0; y < to->height; y++) {
        const span rows = of(y, from->height, to->height);
        for (int64_t x = 0; x < to->width; x++)
            for (int c = 0; c < to->channels; c++)
                put(dst, to->dtype, (y * to->width + x) * to->channels + c,
                    pixel(from, src, &columns[x], &rows, c));
    }
    (void)fth_mem_release(mem, block, NULL);
    return FTH_OK;
}
