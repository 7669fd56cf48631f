/* bench.c - see bench.h. */
#include "bench.h"

#include "../stitch/place.h"

#include <fathom/images.h>
#include <fathom/pictures.h>

#include <math.h>
#include <string.h>

struct fo_bench {
    fo_mosaic_how how;
    fth_mem *files;   /* counts what is written */
    fth_context *ctx; /* its own: one thread of the processor */
    fth_mem *mem;
    fo_aligner *aligner[2]; /* side by side, one above the other; NULL: no tiles lie so */
    float *pixels;          /* [most_tiles][y][x] */
    const float **tile;     /* [most_tiles]; NULL: a hole */
    float *canvas, *weight;
    void *picture; /* the canvas as it is written; tiles as they are read */
    double *work;  /* of matching */
    fo_tone *tone;
    fo_edge *edge;
    fo_tile_place *spot; /* whole pixels that tiles are drawn at */
    int tiles;
};

/* ---- sizes ---- */

static bool is_npy(const fo_format *f)
{
    return strcmp(f->name, "npy") == 0;
}

/* The white of a format: of 8 bits, or of 16 in whatever holds them. */
static double white_of(const fo_format *f)
{
    return f->dtype == FTH_U8 ? 255 : 65535;
}

fo_tiles fo_mosaic_grid(const fo_mosaic_how *how, int tiles)
{
    fo_tiles t = {.rows = how->vertical ? tiles : 1,
                  .columns = how->vertical ? 1 : tiles,
                  .y = how->y,
                  .x = how->x};
    if (how->rows > 0) t.rows = how->rows, t.columns = how->columns;
    return t;
}

/* Pixels of n tiles in a line with the expected overlap. */
static int64_t span(int64_t side, int tiles, double overlap)
{
    return (int64_t)((double)side * (tiles - (tiles - 1) * overlap));
}

void fo_mosaic_canvas(const fo_mosaic_how *how, int tiles, int64_t *y, int64_t *x)
{
    if (how->rows > 0) {
        *y = span(how->y, how->rows, how->overlap);
        *x = span(how->x, how->columns, how->overlap);
        return;
    }
    if (fo_canvas_size(tiles, how->vertical, how->x, y, x)) return;
    /* grids: as large as tiles with the expected overlap, in the same orientation */
    const int64_t along = how->vertical ? how->y : how->x, across = how->vertical ? how->x : how->y;
    *y = span(along, tiles, how->overlap);
    *x = across;
}

static void largest_canvas(const fo_mosaic_how *how, int64_t *y, int64_t *x)
{
    *y = *x = 1;
    for (int n = 1; n <= how->most_tiles; n++) {
        int64_t cy, cx;
        fo_mosaic_canvas(how, n, &cy, &cx);
        if (cy * cx > *y * *x) *y = cy, *x = cx;
    }
}

static fth_picture picture_of(const fo_mosaic_how *how, int64_t y, int64_t x, const void *pixels)
{
    return (fth_picture){.dtype = how->format.dtype,
                         .height = y,
                         .width = x,
                         .channels = 1,
                         .pixels = pixels,
                         .um_per_px = how->um_per_px};
}

static fth_picture_format format_of(const fo_format *f)
{
    fth_picture_format out = {.kind = FTH_PICTURE_PNG};
    (void)!fth_picture_format_parse(f->name, &out, NULL); /* names are one table's */
    out.quality = f->quality;
    return out;
}

static uint64_t encoder_bytes(const fo_mosaic_how *how)
{
    int64_t y, x;
    if (is_npy(&how->format)) return 0;
    largest_canvas(how, &y, &x);
    const fth_picture p = picture_of(how, y, x, how); /* no pixel is read */
    const fth_picture_format f = format_of(&how->format);
    return fth_picture_bound(&p, &f) + fth_picture_work_bytes(&p, &f);
}

/* ---- making one ---- */

static fth_status take(fo_bench *b, int64_t n, size_t each, const char *label, void *out,
                       fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(b->mem, FTH_MEM_ANY, (uint64_t)n * each, label, &block, err));
    memcpy(out, &block, sizeof block);
    return FTH_OK;
}

static fth_status furnish(fo_bench *b, fth_err *err)
{
    const fo_mosaic_how *how = &b->how;
    const int64_t n = how->most_tiles, tile = how->y * how->x;
    int64_t y, x;
    largest_canvas(how, &y, &x);
    const int64_t most = y * x > tile ? y * x : tile;
    FTH_TRY(take(b, n * tile, sizeof *b->pixels, "tiles", &b->pixels, err));
    FTH_TRY(take(b, n, sizeof *b->tile, "list of tiles", &b->tile, err));
    FTH_TRY(take(b, y * x, sizeof *b->canvas, "canvas", &b->canvas, err));
    if (how->blend == FO_BLEND_LINEAR)
        FTH_TRY(take(b, y * x, sizeof *b->weight, "weights", &b->weight, err));
    FTH_TRY(take(b, most, (size_t)fth_dtype_size(how->format.dtype), "picture", &b->picture, err));
    FTH_TRY(take(b, 4 * n * (n + 1), sizeof *b->work, "matching", &b->work, err));
    FTH_TRY(take(b, n, sizeof *b->tone, "tones", &b->tone, err));
    FTH_TRY(take(b, 2 * n, sizeof *b->edge, "edges", &b->edge, err));
    FTH_TRY(take(b, n, sizeof *b->spot, "spots", &b->spot, err));
    const fo_tiles grid = fo_mosaic_grid(how, how->most_tiles);
    const bool wanted[2] = {grid.columns > 1, grid.rows > 1};
    for (int v = 0; v < 2; v++)
        if (wanted[v])
            FTH_TRY(fo_aligner_create(&b->aligner[v], b->ctx, how->y, how->x, v == 1, how->overlap,
                                      err));
    return FTH_OK;
}

fth_status fo_bench_create(fo_bench **out, const fo_mosaic_how *how, uint64_t bytes, fth_mem *mem,
                           fth_err *err)
{
    fo_bench *b = NULL;
    fth_options opt;
    *out = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof *b, "workbench", (void **)&b, err));
    *b = (fo_bench){.how = *how, .files = mem};
    fth_options_default(&opt);
    opt.threads = 1;
    opt.mem.budget_bytes = bytes;
    fth_status s = fth_context_create(&b->ctx, &opt, err);
    if (s == FTH_OK) b->mem = fth_context_mem(b->ctx);
    if (s == FTH_OK) s = furnish(b, err);
    if (s == FTH_OK)
        *out = b;
    else
        fo_bench_destroy(b);
    return s;
}

void fo_bench_destroy(fo_bench *b)
{
    if (!b) return;
    for (int v = 0; v < 2; v++) fo_aligner_destroy(b->aligner[v]);
    void *const block[] = {b->pixels, (void *)b->tile, b->canvas, b->weight, b->picture,
                           b->work,   b->tone,         b->edge,   b->spot};
    for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
        if (block[i]) fth_mem_release(b->mem, block[i], NULL);
    fth_context_destroy(b->ctx, NULL);
    fth_mem_release(b->files, b, NULL);
}

/* One is created without a limit, and its memory measured. */
fth_status fo_bench_bytes(const fo_mosaic_how *how, uint64_t *bytes, fth_err *err)
{
    enum { SPARE = 1 << 20 }; /* blocks are rounded up; texts, open files */
    fth_mem *mem = NULL;
    fo_bench *b = NULL;
    fth_mem_stats stats;
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    fth_status s = fo_bench_create(&b, how, (uint64_t)1 << 50, mem, err);
    if (s == FTH_OK) {
        fth_mem_get_stats(b->mem, &stats);
        uint64_t most = encoder_bytes(how);
        for (int v = 0; v < 2; v++) {
            const uint64_t aligning = b->aligner[v] ? fo_aligner_bytes(b->aligner[v]) : 0;
            if (aligning > most) most = aligning;
        }
        *bytes = stats.used_bytes + most + SPARE;
    }
    fo_bench_destroy(b);
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

/* ---- tiles ---- */

void fo_bench_begin(fo_bench *b, int tiles)
{
    b->tiles = tiles;
    for (int i = 0; i < tiles; i++) {
        b->tile[i] = NULL;
        b->tone[i] = (fo_tone){1, 0, 1};
    }
}

float *fo_bench_tile(fo_bench *b, int tile)
{
    float *to = b->pixels + tile * b->how.y * b->how.x;
    b->tile[tile] = to;
    return to;
}

static void to_reals(const void *from, fth_dtype dtype, int64_t n, float *to)
{
    if (dtype == FTH_U8)
        for (int64_t i = 0; i < n; i++) to[i] = ((const uint8_t *)from)[i];
    else if (dtype == FTH_U16)
        for (int64_t i = 0; i < n; i++) to[i] = ((const uint16_t *)from)[i];
    else
        memcpy(to, from, (size_t)n * sizeof *to);
}

static fth_status open_tile(fo_bench *b, const char *path, fth_source *out, fth_err *err)
{
    fth_images *images = NULL;
    if (is_npy(&b->how.format)) return fth_npy_open(out, b->mem, path, err);
    FTH_TRY(fth_images_open(&images, b->mem, path, &(fth_images_options){.common = true}, err));
    const fth_status s = fth_images_source(images, out, err);
    fth_images_close(images);
    return s;
}

fth_status fo_bench_load(fo_bench *b, int tile, const char *path, fth_err *err)
{
    const int64_t lo[FTH_MAX_AXES] = {0}, n = b->how.y * b->how.x;
    fth_source source;
    FTH_TRY(open_tile(b, path, &source, err));
    const int axes = source.n_axes;
    fth_status s = FTH_OK;
    int64_t count = 1;
    for (int a = 0; a < axes; a++) count *= source.size[a];
    if (count != n || source.size[axes - 1] != b->how.x || source.dtype != b->how.format.dtype)
        s = FTH_FAIL(
            err, FTH_E_FILE_SHAPE,
            "%s: expected a tile of y=%lld x=%lld %s, found y=%lld x=%lld %s; remove it, and "
            "it is created again",
            path, (long long)b->how.y, (long long)b->how.x, fth_dtype_name(b->how.format.dtype),
            (long long)source.size[axes - 2], (long long)source.size[axes - 1],
            fth_dtype_name(source.dtype));
    if (s == FTH_OK) s = source.read(source.self, lo, source.size, b->picture, err);
    if (s == FTH_OK) to_reals(b->picture, source.dtype, n, fo_bench_tile(b, tile));
    fth_source_close(&source);
    return s;
}

static fo_tiles tiles_of(const fo_bench *b)
{
    fo_tiles t = fo_mosaic_grid(&b->how, b->tiles);
    t.tile = b->tile;
    return t;
}

/* ---- one mosaic ---- */

fth_status fo_bench_align(fo_bench *b, fo_tile_place *place, fth_err *err)
{
    const fo_tiles tiles = tiles_of(b);
    int n = 0;
    for (int i = 0; i < b->tiles; i++) /* with the next of its row, and of its column */
        for (int v = 0; v < 2; v++) {
            const int k = i + (v == 1 ? tiles.columns : 1);
            const bool next = v == 1 ? k < b->tiles : (i + 1) % tiles.columns != 0;
            if (!next || !b->tile[i] || !b->tile[k]) continue;
            b->edge[n] = (fo_edge){.from = i, .to = k};
            FTH_TRY(fo_aligner_run(b->aligner[v], b->tile[i], b->tile[k], &b->edge[n], err));
            n++;
        }
    return fo_place_tiles(place, &tiles, b->edge, n, b->how.overlap, b->mem, err);
}

/* The nearest pixel; compat truncates. */
static void settle_spots(fo_bench *b, const fo_tile_place *place)
{
    for (int i = 0; i < b->tiles; i++) {
        b->spot[i] = place[i];
        if (b->how.gamma) continue;
        b->spot[i].y = floor(place[i].y + 0.5);
        b->spot[i].x = floor(place[i].x + 0.5);
    }
}

void fo_bench_match(fo_bench *b, const fo_tile_place *place)
{
    const fo_tiles tiles = tiles_of(b);
    settle_spots(b, place);
    if (b->how.gamma)
        fo_tones_gamma(b->tone, &tiles, b->spot, white_of(&b->how.format));
    else
        fo_tones_match(b->tone, &tiles, b->spot, b->work);
}

/* Rows of tiles are drawn as columns, so that images of both are upright. */
static bool is_turned(const fo_bench *b)
{
    return !b->how.vertical && b->how.rows == 0 && b->tiles > 1;
}

void fo_bench_draw(fo_bench *b, const fo_tile_place *place, double white)
{
    const fo_tiles tiles = tiles_of(b);
    const bool turn = is_turned(b);
    int64_t y, x, have_y, have_x;
    settle_spots(b, place);
    fo_mosaic_canvas(&b->how, b->tiles, &y, &x);
    fo_mosaic_size(&tiles, b->spot, &have_y, &have_x);
    fo_window w = {.rows = turn ? x : y, .columns = turn ? y : x};
    w.y = fo_canvas_from(have_y, w.rows);
    w.x = fo_canvas_from(have_x, w.columns);
    const fo_drawing d = {
        &tiles, b->spot, b->tone, b->how.blend, white > 0 ? white : white_of(&b->how.format), true};
    fo_mosaic_draw(b->canvas, b->weight, &w, &d);
}

/* Value (i, j) of the picture, upright. */
static float value_at(const fo_bench *b, int64_t y, int64_t x, int64_t i, int64_t j)
{
    const bool turn = is_turned(b);
    return turn ? b->canvas[j * y + i] : b->canvas[i * x + j];
}

const uint8_t *fo_bench_bytes_of(fo_bench *b)
{
    uint8_t *to = b->picture;
    int64_t y, x;
    fo_mosaic_canvas(&b->how, b->tiles, &y, &x);
    for (int64_t i = 0; i < y; i++)
        for (int64_t j = 0; j < x; j++) to[i * x + j] = (uint8_t)value_at(b, y, x, i, j);
    return to;
}

static void fill_picture(fo_bench *b, int64_t y, int64_t x)
{
    const fth_dtype dtype = b->how.format.dtype;
    const float white = (float)white_of(&b->how.format);
    for (int64_t i = 0; i < y; i++)
        for (int64_t j = 0; j < x; j++) {
            float v = value_at(b, y, x, i, j);
            if (b->how.invert) v = white - v;
            if (dtype == FTH_U8)
                ((uint8_t *)b->picture)[i * x + j] = (uint8_t)v;
            else if (dtype == FTH_U16)
                ((uint16_t *)b->picture)[i * x + j] = (uint16_t)v;
            else
                ((float *)b->picture)[i * x + j] = v;
        }
}

fth_status fo_bench_save(fo_bench *b, const char *path, fth_err *err)
{
    int64_t y, x;
    void *data = NULL;
    uint64_t bytes = 0;
    fo_mosaic_canvas(&b->how, b->tiles, &y, &x);
    fill_picture(b, y, x);
    fo_scalebar_draw(&b->how.scalebar, b->how.format.dtype, y, x, b->picture);
    const int64_t size[] = {y, x};
    if (is_npy(&b->how.format))
        return fth_npy_save(b->files, path, b->how.format.dtype, 2, size, b->picture, err);
    const fth_picture picture = picture_of(&b->how, y, x, b->picture);
    const fth_picture_format format = format_of(&b->how.format);
    FTH_TRY_CTX(fth_picture_encode(b->mem, &picture, &format, &data, &bytes, err), err,
                "encoding %s", path);
    const fth_status s = fth_file_save(b->files, path, data, bytes, err);
    fth_mem_release(b->mem, data, NULL);
    return s;
}
