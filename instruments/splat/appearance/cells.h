/* cells.h - a pixel among the cells of a grid, in one precision (`real`, FMA), for loops and for
 * kernels (GS_BOTH). Pixels between two columns of cells are a piece, and likewise of rows; the
 * last pixel is in the last piece. */

enum { GS_STRIP = 8 }; /* rows of a piece whose gradients are added up at once */

/* Cells of an axis for each pixel, and pixels; a single pixel is at the first cell. */
typedef struct axis {
    real by;
    int pixels, cells;
} axis;

static inline GS_BOTH axis axis_of(int64_t pixels, int64_t cells)
{
    axis a;
    a.by = pixels > 1 ? (real)(cells - 1) / (real)(pixels - 1) : 0;
    a.pixels = (int)pixels;
    a.cells = (int)cells;
    return a;
}

/* First pixel of a piece; of cells - 1 the end of the image. */
static inline GS_BOTH int first_of(const axis *a, int piece)
{
    if (piece <= 0) return 0;
    if (piece >= a->cells - 1 || a->by == 0) return a->pixels;
    int p = (int)((real)piece / a->by);
    if (p > a->pixels) p = a->pixels;
    while (p > 0 && (int)((real)(p - 1) * a->by) >= piece) p--;
    while (p < a->pixels && (int)((real)p * a->by) < piece) p++;
    return p;
}

/* Interpolation weight of a pixel between the first and second cells of its piece, 0 to 1. */
static inline GS_BOTH real within(const axis *a, int piece, int p)
{
    const real at = (real)p * a->by - (real)piece;
    return at < 1 ? at : 1;
}

/* Strips of the piece with most rows. */
static inline GS_BOTH int strips_of(const axis *rows)
{
    int most = 0;
    for (int p = 0; p + 1 < rows->cells; p++) {
        const int n = first_of(rows, p + 1) - first_of(rows, p);
        if (n > most) most = n;
    }
    return (most + GS_STRIP - 1) / GS_STRIP;
}

/* A clamped colour with a 1 behind it, and its place among the levels of brightness. */
typedef struct pixel {
    real v[4], up; /* up: from level `low` to `high` */
    int low, high;
    bool open[3]; /* false: it was clamped */
} pixel;

static inline GS_BOTH void pixel_of(const real rgb[3], int luma, pixel *p)
{
    for (int c = 0; c < 3; c++) {
        const real x = rgb[c];
        p->v[c] = x < 0 ? 0 : x > 1 ? 1 : x; /* NaN stays NaN */
        p->open[c] = x >= 0 && x <= 1;
    }
    p->v[3] = 1;
    real at = FMA((real)0.299, p->v[0], FMA((real)0.587, p->v[1], (real)0.114 * p->v[2])) *
              (real)(luma - 1);
    if (!(at > 0)) at = 0;
    p->low = (int)at < luma ? (int)at : luma - 1;
    p->high = p->low + 1 < luma ? p->low + 1 : luma - 1;
    p->up = at - (real)p->low;
}

/* Between two columns of cells whose rows are joined already, [luma affine] each: the map of a
 * pixel, and its derivative by the level. */
static inline GS_BOTH void map_of(const real *left, const real *right, real across, const pixel *p,
                                  real map[GS_AFFINE], real slope[GS_AFFINE])
{
    const int low = p->low * GS_AFFINE, high = p->high * GS_AFFINE;
    for (int k = 0; k < GS_AFFINE; k++) {
        const real a = FMA(across, right[low + k] - left[low + k], left[low + k]),
                   b = FMA(across, right[high + k] - left[high + k], left[high + k]);
        slope[k] = b - a;
        map[k] = FMA(p->up, slope[k], a);
    }
}

static inline GS_BOTH real mapped(const real *map, const pixel *p)
{
    return FMA(map[0], p->v[0], FMA(map[1], p->v[1], FMA(map[2], p->v[2], map[3])));
}

/* Cotangents of the map's result back to the colour, by the map and by the level. */
static inline GS_BOTH void colour_back(const real map[GS_AFFINE], const real slope[GS_AFFINE],
                                       const pixel *p, const real bar[3], int luma, real out[3])
{
    const real weight[3] = {(real)0.299, (real)0.587, (real)0.114};
    real level = 0;
    for (int o = 0; o < 3; o++) level = FMA(bar[o], mapped(slope + 4 * o, p), level);
    level *= (real)(luma - 1);
    for (int c = 0; c < 3; c++) {
        real sum = level * weight[c];
        for (int o = 0; o < 3; o++) sum = FMA(bar[o], map[4 * o + c], sum);
        out[c] = p->open[c] ? sum : 0;
    }
}
