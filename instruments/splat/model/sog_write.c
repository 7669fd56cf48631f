/* sog_write.c - models as SOG of PlayCanvas, version 2, written; see sog.c.
 *
 * Neighbours in space are neighbours in the pictures: rows go in the order of the bits of their
 * places, taken by turns from x, y and z (Morton). Scales and colours are indices of 256 values
 * each, found by k-means; coefficients of higher degree are rows of a palette.
 */
#include "kmeans.h"
#include "sog.h"

#include <fathom/json.h>
#include <fathom/pictures.h>
#include <fathom/zip.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { AXIS_BITS = 21, LEAST_PALETTE = 1024, MOST_PALETTE = 65536, MOST_SIDE = 16383 };

typedef struct rank {
    uint64_t code;
    int64_t row;
} rank;

typedef struct writer {
    int rounds; /* of k-means */
    const gs_model *m;
    fth_zip_writer *zip; /* NULL: a folder */
    char folder[FTH_PATH];
    rank *order;
    int64_t width, height;
    uint8_t *pixel; /* [height width 4] */
    float low[3], high[3];
    float scales[GS_CODES], sh0[GS_CODES], rest[GS_CODES];
    int64_t entries;
} writer;

/* ---- order ---- */

/* Bits 0, 3, 6, ... of what has 21 of them. */
static uint64_t spread(uint64_t v)
{
    uint64_t out = 0;
    for (int b = 0; b < AXIS_BITS; b++) out |= (v >> b & 1) << (3 * b);
    return out;
}

static int by_code(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void sort_rows(const gs_model *m, rank *order)
{
    double low[3] = {0}, size = 0;
    for (int k = 0; k < 3; k++) {
        double least = (double)INFINITY, most = -(double)INFINITY;
        for (int64_t g = 0; g < m->n; g++) {
            least = fmin(least, (double)m->at[GS_MEANS][3 * g + k]);
            most = fmax(most, (double)m->at[GS_MEANS][3 * g + k]);
        }
        low[k] = least;
        size = fmax(size, most - least);
    }
    for (int64_t g = 0; g < m->n; g++) {
        order[g] = (rank){0, g};
        for (int k = 0; k < 3 && size > 0; k++) {
            const double part = ((double)m->at[GS_MEANS][3 * g + k] - low[k]) / size;
            const double step = fmin(part * (1 << AXIS_BITS), (1 << AXIS_BITS) - 1);
            order[g].code |= spread((uint64_t)step) << k;
        }
    }
    qsort(order, (size_t)m->n, sizeof *order, by_code);
}

/* ---- pictures ---- */

static fth_status put_file(writer *w, const char *name, const void *data, uint64_t bytes,
                           bool packed, fth_err *err)
{
    char path[FTH_PATH];
    if (w->zip) return fth_zip_add(w->zip, name, data, bytes, packed, err);
    FTH_TRY(fth_path_join(path, w->folder, name, err));
    return fth_file_save(w->m->mem, path, data, bytes, err);
}

static fth_status put_texture(writer *w, gs_sog_texture which, const uint8_t *pixel, int64_t width,
                              int64_t height, fth_err *err)
{
    const fth_picture p = {
        .dtype = FTH_U8, .height = height, .width = width, .channels = 4, .pixels = pixel};
    const fth_picture_format f = {.kind = FTH_PICTURE_WEBP};
    void *data = NULL;
    uint64_t bytes = 0;
    FTH_TRY(fth_picture_encode(w->m->mem, &p, &f, &data, &bytes, err));
    const fth_status s = put_file(w, gs_sog_places[which].name, data, bytes, false, err);
    (void)fth_mem_release(w->m->mem, data, NULL);
    return s;
}

static fth_status put_rows(writer *w, gs_sog_texture which, fth_err *err)
{
    return put_texture(w, which, w->pixel, w->width, w->height, err);
}

/* A clear page, opaque. */
static void clear(writer *w)
{
    const int64_t n = w->width * w->height;
    memset(w->pixel, 0, (size_t)n * 4);
    for (int64_t i = 0; i < n; i++) w->pixel[4 * i + 3] = 255;
}

static uint8_t to_byte(double v)
{
    return v >= 255 ? 255 : v > 0 ? (uint8_t)(v + 0.5) : 0;
}

static double flatten(double x)
{
    return x < 0 ? -log1p(-x) : log1p(x);
}

static fth_status write_means(writer *w, fth_err *err)
{
    const gs_model *m = w->m;
    for (int k = 0; k < 3; k++) {
        w->low[k] = INFINITY;
        w->high[k] = -INFINITY;
        for (int64_t g = 0; g < m->n; g++) {
            const float l = (float)flatten((double)m->at[GS_MEANS][3 * g + k]);
            w->low[k] = fminf(w->low[k], l);
            w->high[k] = fmaxf(w->high[k], l);
        }
    }
    for (int high = 0; high < 2; high++) {
        clear(w);
        for (int64_t i = 0; i < m->n; i++)
            for (int k = 0; k < 3; k++) {
                const double size = (double)w->high[k] - (double)w->low[k],
                             l = flatten((double)m->at[GS_MEANS][3 * w->order[i].row + k]) -
                                 (double)w->low[k];
                const double step = size > 0 ? fmin(fmax(65535 * l / size, 0), 65535) : 0;
                const unsigned v = (unsigned)(step + 0.5);
                w->pixel[4 * i + k] = (uint8_t)(high ? v >> 8 : v & 255);
            }
        FTH_TRY(put_rows(w, high ? GS_SOG_MEANS_HIGH : GS_SOG_MEANS_LOW, err));
    }
    return FTH_OK;
}

static fth_status write_rotation(writer *w, fth_err *err)
{
    clear(w);
    for (int64_t i = 0; i < w->m->n; i++) {
        const float *q = w->m->at[GS_ROTATION] + 4 * w->order[i].row;
        double norm = 0;
        int largest = 0;
        for (int k = 0; k < 4; k++) {
            norm += (double)q[k] * (double)q[k];
            if (fabsf(q[k]) > fabsf(q[largest])) largest = k;
        }
        norm = norm > 0 ? sqrt(norm) : 1;
        const double sign = q[largest] < 0 ? -1 : 1;
        for (int k = 0; k < 3; k++) {
            const double v = sign * (double)q[gs_sog_others[largest][k]] / norm * sqrt(2);
            w->pixel[4 * i + k] = to_byte((v * 0.5 + 0.5) * 255);
        }
        w->pixel[4 * i + 3] = (uint8_t)(GS_SOG_LARGEST + largest);
    }
    return put_rows(w, GS_SOG_QUATS, err);
}

/* Three numbers a row as indices of codes. */
static fth_status write_codes(writer *w, gs_attribute attribute, float codes[GS_CODES],
                              gs_sog_texture which, fth_err *err)
{
    const gs_model *m = w->m;
    void *block = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)m->n * 3, "indices", &block, err));
    uint8_t *index = block;
    const fth_status s =
        gs_kmeans_line(m->mem, m->at[attribute], 3 * m->n, w->rounds, codes, index, err);
    clear(w);
    for (int64_t i = 0; s == FTH_OK && i < m->n; i++) {
        const int64_t g = w->order[i].row;
        memcpy(w->pixel + 4 * i, index + 3 * g, 3);
        if (which == GS_SOG_SH0)
            w->pixel[4 * i + 3] = to_byte(255 / (1 + exp(-(double)m->at[GS_OPACITY][g])));
    }
    (void)fth_mem_release(m->mem, block, NULL);
    return s == FTH_OK ? put_rows(w, which, err) : s;
}

/* ---- the palette ---- */

/* 1024 rows, and twice as many for each doubling of the model, to 65536. */
static int64_t palette_size(int64_t n)
{
    int64_t k = LEAST_PALETTE;
    while (k < MOST_PALETTE && 2 * k <= n) k *= 2;
    return k < n ? k : n;
}

static fth_status put_palette(writer *w, const uint8_t *index, fth_err *err)
{
    const int64_t k = gs_coefficients(w->m->degree), width = GS_SOG_ACROSS * k,
                  height = (w->entries + GS_SOG_ACROSS - 1) / GS_SOG_ACROSS;
    void *block = NULL;
    FTH_TRY(fth_mem_take(w->m->mem, FTH_MEM_ANY, (uint64_t)(width * height * 4), "a palette",
                         &block, err));
    uint8_t *pixel = block;
    memset(pixel, 0, (size_t)(width * height * 4));
    for (int64_t i = 0; i < width * height; i++) pixel[4 * i + 3] = 255;
    for (int64_t i = 0; i < w->entries * k * 3; i++) {
        const int64_t e = i / (3 * k), at = i / 3 % k;
        const int64_t x = e % GS_SOG_ACROSS * k + at, y = e / GS_SOG_ACROSS;
        pixel[(y * width + x) * 4 + i % 3] = index[i];
    }
    const fth_status s = put_texture(w, GS_SOG_CENTROIDS, pixel, width, height, err);
    (void)fth_mem_release(w->m->mem, block, NULL);
    return s;
}

static fth_status write_rest(writer *w, fth_err *err)
{
    const gs_model *m = w->m;
    const int dims = 3 * (int)gs_coefficients(m->degree);
    w->entries = palette_size(m->n);
    const uint64_t centroids = (uint64_t)(w->entries * dims);
    void *block = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, centroids * 5 + (uint64_t)m->n * 2 + 2, "a palette",
                         &block, err));
    float *centroid = block;
    uint16_t *label = (uint16_t *)(void *)(centroid + centroids);
    uint8_t *index = (uint8_t *)(label + m->n);
    fth_status s = gs_kmeans_rows(m->mem, m->at[GS_SH_N], m->n, dims, w->entries, w->rounds,
                                  centroid, label, err);
    if (s == FTH_OK)
        s = gs_kmeans_line(m->mem, centroid, (int64_t)centroids, w->rounds, w->rest, index, err);
    if (s == FTH_OK) s = put_palette(w, index, err);
    clear(w);
    for (int64_t i = 0; s == FTH_OK && i < m->n; i++) {
        const uint16_t e = label[w->order[i].row];
        w->pixel[4 * i] = (uint8_t)e;
        w->pixel[4 * i + 1] = (uint8_t)(e >> 8);
    }
    (void)fth_mem_release(m->mem, block, NULL);
    return s == FTH_OK ? put_rows(w, GS_SOG_LABELS, err) : s;
}

/* ---- meta data ---- */

static void put_list(fth_json_writer *j, const char *key, const float *v, int n)
{
    fth_json_open_row(j, key, '[');
    for (int i = 0; i < n; i++) fth_json_real(j, NULL, (double)v[i]);
    fth_json_close(j);
}

static void put_files(fth_json_writer *j, const char *object)
{
    fth_json_open_row(j, "files", '[');
    for (int i = 0; i < GS_SOG_TEXTURES; i++)
        if (strcmp(gs_sog_places[i].object, object) == 0)
            fth_json_text(j, NULL, gs_sog_places[i].name);
    fth_json_close(j);
    fth_json_close(j);
}

static void put_coded(fth_json_writer *j, const char *object, const float *codes)
{
    fth_json_open(j, object, '{');
    put_list(j, "codebook", codes, GS_CODES);
    put_files(j, object);
}

static fth_status write_meta(writer *w, fth_err *err)
{
    fth_json_writer j;
    fth_json_begin(&j, w->m->mem, true);
    fth_json_open(&j, NULL, '{');
    fth_json_int(&j, "version", GS_SOG_VERSION);
    fth_json_int(&j, "count", w->m->n);
    fth_json_open(&j, "means", '{');
    put_list(&j, "mins", w->low, 3);
    put_list(&j, "maxs", w->high, 3);
    put_files(&j, "means");
    put_coded(&j, "scales", w->scales);
    fth_json_open(&j, "quats", '{');
    put_files(&j, "quats");
    put_coded(&j, "sh0", w->sh0);
    if (w->m->degree > 0) {
        fth_json_open(&j, "shN", '{');
        fth_json_int(&j, "count", w->entries);
        fth_json_int(&j, "bands", w->m->degree);
        put_list(&j, "codebook", w->rest, GS_CODES);
        put_files(&j, "shN");
    }
    fth_json_close(&j);
    fth_status s = fth_json_end(&j, err);
    if (s == FTH_OK) s = put_file(w, GS_SOG_META, j.data, (uint64_t)j.used, true, err);
    fth_json_free(&j);
    return s;
}

/* ---- whole files ---- */

static fth_status check(const gs_model *m, const char *path, fth_err *err)
{
    if (m->n == 0)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: expected at least one Gaussian, which SOG needs, found none", path);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        for (int64_t i = 0; i < m->n * gs_columns((gs_attribute)a, m->degree); i++)
            if (!isfinite(m->at[a][i]))
                return FTH_FAIL(err, FTH_E_NUMERIC,
                                "%s: expected finite numbers, found one in \"%s\" that is not: "
                                "row %" PRId64,
                                path, gs_attribute_names[a],
                                i / gs_columns((gs_attribute)a, m->degree));
    return FTH_OK;
}

static fth_status write_all(writer *w, fth_err *err)
{
    sort_rows(w->m, w->order);
    FTH_TRY(write_means(w, err));
    FTH_TRY(write_codes(w, GS_SCALING, w->scales, GS_SOG_SCALES, err));
    FTH_TRY(write_rotation(w, err));
    FTH_TRY(write_codes(w, GS_SH_0, w->sh0, GS_SOG_SH0, err));
    if (w->m->degree > 0) FTH_TRY(write_rest(w, err));
    return write_meta(w, err); /* last: a folder without it is no model */
}

static fth_status open_out(writer *w, const char *path, fth_err *err)
{
    if (!gs_path_is_meta(path)) return fth_zip_create(&w->zip, w->m->mem, path, err);
    FTH_TRY(fth_path_parent(w->folder, path, err));
    return fth_folder_make_all(w->m->mem, w->folder, err);
}

fth_status gs_sog_save(const gs_model *m, const char *path, int rounds, fth_err *err)
{
    writer w = {.m = m, .rounds = rounds};
    void *order = NULL, *pixel = NULL;
    FTH_TRY(check(m, path, err));
    w.width = 4 * (int64_t)ceil(sqrt((double)m->n) / 4);
    w.height = 4 * (int64_t)ceil((double)m->n / (double)w.width / 4);
    if (w.width > MOST_SIDE)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: SOG holds at most %d Gaussians in a row of pixels, this model needs "
                        "%" PRId64,
                        path, MOST_SIDE, w.width);
    fth_status s = fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)m->n * sizeof(rank),
                                "the order of rows", &order, err);
    if (s == FTH_OK)
        s = fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)(w.width * w.height * 4), "a picture",
                         &pixel, err);
    w.order = order;
    w.pixel = pixel;
    if (s == FTH_OK) s = open_out(&w, path, err);
    if (s == FTH_OK) {
        s = write_all(&w, err);
        if (s == FTH_OK && w.zip)
            s = fth_zip_commit(w.zip, err);
        else
            fth_zip_abandon(w.zip);
    }
    if (pixel) (void)fth_mem_release(m->mem, pixel, NULL);
    if (order) (void)fth_mem_release(m->mem, order, NULL);
    return s;
}
