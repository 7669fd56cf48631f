/* sog.c - models as SOG of PlayCanvas, version 2, read: pictures without loss in a zip or a folder.
 *
 * A Gaussian is a pixel of each picture. Pictures are unpacked one at a time; none has many more
 * pixels than there are Gaussians.
 */
#include "sog.h"
#include "kmeans.h"

#include <fathom/json.h>
#include <fathom/pictures.h>
#include <fathom/zip.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_META = 1 << 20, MOST_SIDE = 16383, CODES = 256 };
static const int64_t most_rows = INT64_C(1) << 28;

const gs_sog_place gs_sog_places[GS_SOG_TEXTURES] = {
    {"means", 0, "means_l.webp"}, {"means", 1, "means_u.webp"}, {"scales", 0, "scales.webp"},
    {"quats", 0, "quats.webp"},   {"sh0", 0, "sh0.webp"},       {"shN", 0, "shN_centroids.webp"},
    {"shN", 1, "shN_labels.webp"}};
const int gs_sog_others[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};

/* ---- members ---- */

typedef struct sog {
    fth_mem *mem;
    const char *path;
    char folder[FTH_PATH];
    fth_zip *zip; /* NULL: a folder */
    fth_json *meta;
    const fth_json_value *root;
    int64_t n, entries; /* Gaussians; rows of the palette of shN */
    int degree;
} sog;

static void close_sog(sog *s)
{
    fth_json_destroy(s->meta);
    fth_zip_close(s->zip);
}

/* `data` is given back with fth_mem_release. */
static fth_status load_member(sog *s, const char *name, uint64_t most, void **data, uint64_t *bytes,
                              fth_err *err)
{
    char path[FTH_PATH];
    fth_file *file = NULL;
    *data = NULL;
    if (s->zip) return fth_zip_load(s->zip, name, most, data, bytes, err);
    if (strchr(name, '/'))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: expected names of files beside it, found '%.200s'", s->path, name);
    FTH_TRY(fth_path_join(path, s->folder, name, err));
    FTH_TRY(fth_file_open(&file, s->mem, path, err));
    *bytes = fth_file_bytes(file);
    fth_status st = FTH_OK;
    if (*bytes > most)
        st = FTH_FAIL(err, FTH_E_FILE_FEATURE,
                      "%s: expected at most %" PRIu64 " bytes, found %" PRIu64, path, most, *bytes);
    if (st == FTH_OK)
        st = fth_mem_take(s->mem, FTH_MEM_ANY, *bytes + 1, "a member of a SOG", data, err);
    if (st == FTH_OK) st = fth_file_read(file, 0, *bytes, *data, "its bytes", err);
    fth_file_close(file);
    if (st != FTH_OK && *data) {
        (void)fth_mem_release(s->mem, *data, NULL);
        *data = NULL;
    }
    return st;
}

/* ---- meta data ---- */

#define BAD(s, err, ...) bad((s), FTH_E_FILE_FORMAT, (err), __VA_ARGS__)
static fth_status bad(const sog *s, fth_status status, fth_err *err, const char *fmt, ...)
    FTH_PRINTF(4, 5);
static fth_status bad(const sog *s, fth_status status, fth_err *err, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    FTH_FAIL(err, status, "%s, %s: %s", s->path, GS_SOG_META, text);
    fth_err_hint(err, "export the model again as SOG version 2, or as PLY");
    return status;
}

static fth_status check_meta(sog *s, fth_err *err)
{
    const fth_json_value *rest = fth_json_get(s->root, "shN");
    const int64_t version = fth_json_get_int(s->root, "version", 1);
    if (version != GS_SOG_VERSION)
        return bad(s, FTH_E_FILE_FEATURE, err, "expected version 2, found version %" PRId64,
                   version);
    s->n = fth_json_get_int(s->root, "count", -1);
    if (s->n < 0 || s->n > most_rows)
        return BAD(s, err, "\"count\": expected 0 to %" PRId64 ", found %" PRId64, most_rows, s->n);
    if (!rest) return FTH_OK;
    s->entries = fth_json_get_int(rest, "count", -1);
    const int64_t bands = fth_json_get_int(rest, "bands", -1);
    if (s->entries < 0 || s->entries > 65536 || bands < 1 || bands >= GS_DEGREES)
        return BAD(s, err,
                   "\"shN\": expected \"count\" to 65536 and \"bands\" 1 to 3, found %" PRId64
                   " and %" PRId64,
                   s->entries, bands);
    s->degree = (int)bands;
    return FTH_OK;
}

static fth_status open_sog(sog *s, fth_mem *mem, const char *path, fth_err *err)
{
    char label[FTH_PATH + 20];
    void *text = NULL;
    uint64_t bytes = 0;
    *s = (sog){.mem = mem, .path = path};
    fth_status st = FTH_OK;
    if (fth_path_kind_of(path) == FTH_PATH_FOLDER)
        snprintf(s->folder, sizeof s->folder, "%s", path);
    else if (gs_path_is_meta(path))
        st = fth_path_parent(s->folder, path, err);
    else
        st = fth_zip_open(&s->zip, mem, path, err);
    if (st == FTH_OK) st = load_member(s, GS_SOG_META, MOST_META, &text, &bytes, err);
    snprintf(label, sizeof label, "%s, %s", path, GS_SOG_META);
    if (st == FTH_OK) st = fth_json_parse(&s->meta, mem, label, text, bytes, err);
    if (text) (void)fth_mem_release(mem, text, NULL);
    if (st == FTH_OK) {
        s->root = fth_json_root(s->meta);
        st = check_meta(s, err);
    }
    if (st != FTH_OK) close_sog(s);
    return st;
}

/* Numbers of a list; those that are missing or no numbers are an error. */
static fth_status read_list(const sog *s, const char *object, const char *key, int n, float *to,
                            fth_err *err)
{
    const fth_json_value *list = fth_json_get(fth_json_get(s->root, object), key);
    if (fth_json_count(list) != n)
        return BAD(s, err, "\"%s\": expected %d numbers in \"%s\", found %" PRId64, object, n, key,
                   fth_json_count(list));
    for (int i = 0; i < n; i++) {
        const double v = fth_json_get_real(fth_json_at(list, i), NULL, (double)NAN);
        to[i] = (float)v;
        if (!isfinite(to[i]))
            return BAD(s, err, "\"%s\": expected a finite number at place %d of \"%s\"", object, i,
                       key);
    }
    return FTH_OK;
}

/* ---- pictures ---- */

typedef struct texture {
    fth_picture picture;
    const uint8_t *pixel;
} texture;

/* At least `least` pixels on so many columns; 0: on any. Alpha may be left out: see alpha_at. */
static fth_status load_texture(sog *s, gs_sog_texture which, int64_t least, int64_t columns,
                               texture *t, fth_err *err)
{
    const gs_sog_place *place = &gs_sog_places[which];
    const fth_json_value *files = fth_json_get(fth_json_get(s->root, place->object), "files");
    const char *name = fth_json_get_text(fth_json_at(files, place->file), NULL, NULL);
    char label[FTH_PATH + 200];
    void *data = NULL;
    uint64_t bytes = 0;
    bool has_alpha = false;
    *t = (texture){0};
    if (!name)
        return BAD(s, err, "\"%s\": expected the name of a picture at place %d of \"files\"",
                   place->object, place->file);
    snprintf(label, sizeof label, "%s, %.150s", s->path, name);
    /* a picture without loss is hardly larger than its pixels */
    FTH_TRY(load_member(s, name, (uint64_t)(least + (1 << 20)) * 8, &data, &bytes, err));
    const fth_status st =
        fth_picture_decode(s->mem, label, data, bytes, &t->picture, &has_alpha, err);
    (void)fth_mem_release(s->mem, data, NULL);
    FTH_TRY(st);
    const fth_picture *p = &t->picture;
    t->pixel = p->pixels;
    if (p->dtype == FTH_U8 && p->channels >= 3 && (!columns || p->width == columns) &&
        p->width * p->height >= least)
        return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE,
             "%s: expected 3 or 4 channels of 8 bits, %" PRId64
             " pixels%s, found %d of %d bits, %" PRId64 " x %" PRId64,
             label, least, columns ? " on other columns" : "", p->channels,
             (int)(8 * fth_dtype_size(p->dtype)), p->width, p->height);
    fth_picture_free(s->mem, &t->picture);
    return FTH_E_FILE_SHAPE;
}

static const uint8_t *pixel(const texture *t, int64_t i)
{
    return t->pixel + i * t->picture.channels;
}

/* WebP leaves out an alpha that is 255 everywhere. */
static int alpha_at(const texture *t, int64_t i)
{
    return t->picture.channels > 3 ? pixel(t, i)[3] : 255;
}

static fth_status read_means(sog *s, gs_model *m, fth_err *err)
{
    float low[3], high[3];
    texture part[2] = {0};
    FTH_TRY(read_list(s, "means", "mins", 3, low, err));
    FTH_TRY(read_list(s, "means", "maxs", 3, high, err));
    FTH_TRY(load_texture(s, GS_SOG_MEANS_LOW, s->n, 0, &part[0], err));
    const fth_status st = load_texture(s, GS_SOG_MEANS_HIGH, s->n, 0, &part[1], err);
    for (int64_t g = 0; st == FTH_OK && g < s->n; g++)
        for (int k = 0; k < 3; k++) {
            const int v = pixel(&part[1], g)[k] << 8 | pixel(&part[0], g)[k];
            const double l = (double)low[k] + ((double)high[k] - (double)low[k]) * v / 65535;
            m->at[GS_MEANS][3 * g + k] = (float)(l < 0 ? -expm1(-l) : expm1(l));
        }
    fth_picture_free(s->mem, &part[0].picture);
    fth_picture_free(s->mem, &part[1].picture);
    return st;
}

static fth_status read_rotation(sog *s, gs_model *m, fth_err *err)
{
    texture t;
    FTH_TRY(load_texture(s, GS_SOG_QUATS, s->n, 0, &t, err));
    fth_status st = FTH_OK;
    for (int64_t g = 0; st == FTH_OK && g < s->n; g++) {
        const uint8_t *p = pixel(&t, g);
        const int tag = alpha_at(&t, g), largest = tag - GS_SOG_LARGEST;
        double q[4] = {0}, square = 0;
        if (largest < 0) {
            st = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                          "%s: quaternion %" PRId64
                          ": expected alpha 252 to 255, the largest part, found %d",
                          s->path, g, tag);
            break;
        }
        for (int k = 0; k < 3; k++) {
            const double v = (p[k] / 255.0 - 0.5) * sqrt(2);
            q[gs_sog_others[largest][k]] = v;
            square += v * v;
        }
        q[largest] = square < 1 ? sqrt(1 - square) : 0;
        for (int k = 0; k < 4; k++) m->at[GS_ROTATION][4 * g + k] = (float)q[k];
    }
    fth_picture_free(s->mem, &t.picture);
    return st;
}

static fth_status read_scales(sog *s, gs_model *m, fth_err *err)
{
    float code[CODES];
    texture t;
    FTH_TRY(read_list(s, "scales", "codebook", CODES, code, err));
    FTH_TRY(load_texture(s, GS_SOG_SCALES, s->n, 0, &t, err));
    for (int64_t i = 0; i < 3 * s->n; i++) m->at[GS_SCALING][i] = code[pixel(&t, i / 3)[i % 3]];
    fth_picture_free(s->mem, &t.picture);
    return FTH_OK;
}

static fth_status read_sh0(sog *s, gs_model *m, fth_err *err)
{
    float code[CODES];
    texture t;
    FTH_TRY(read_list(s, "sh0", "codebook", CODES, code, err));
    FTH_TRY(load_texture(s, GS_SOG_SH0, s->n, 0, &t, err));
    for (int64_t g = 0; g < s->n; g++) {
        for (int c = 0; c < 3; c++) m->at[GS_SH_0][3 * g + c] = code[pixel(&t, g)[c]];
        m->at[GS_OPACITY][g] = gs_logit(alpha_at(&t, g) / 255.0);
    }
    fth_picture_free(s->mem, &t.picture);
    return FTH_OK;
}

static fth_status read_rest(sog *s, gs_model *m, fth_err *err)
{
    const int64_t k = gs_coefficients(s->degree), lines = (s->entries + 63) / GS_SOG_ACROSS;
    float code[CODES];
    texture palette = {0}, labels = {0};
    FTH_TRY(read_list(s, "shN", "codebook", CODES, code, err));
    FTH_TRY(load_texture(s, GS_SOG_CENTROIDS, lines * GS_SOG_ACROSS * k, GS_SOG_ACROSS * k,
                         &palette, err));
    fth_status st = load_texture(s, GS_SOG_LABELS, s->n, 0, &labels, err);
    for (int64_t g = 0; st == FTH_OK && g < s->n; g++) {
        const int64_t e = pixel(&labels, g)[1] << 8 | pixel(&labels, g)[0];
        if (e >= s->entries)
            st = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                          "%s: label %" PRId64 ": expected one below %" PRId64 ", found %" PRId64,
                          s->path, g, s->entries, e);
        for (int64_t i = 0; st == FTH_OK && i < 3 * k; i++) {
            const int64_t x = e % GS_SOG_ACROSS * k + i / 3, y = e / GS_SOG_ACROSS;
            m->at[GS_SH_N][g * 3 * k + i] =
                code[pixel(&palette, y * palette.picture.width + x)[i % 3]];
        }
    }
    fth_picture_free(s->mem, &palette.picture);
    fth_picture_free(s->mem, &labels.picture);
    return st;
}

/* ---- the format ---- */

bool gs_path_is_meta(const char *path)
{
    return strcmp(fth_path_name(path), GS_SOG_META) == 0;
}

static bool is(const uint8_t *head, uint64_t n, uint64_t size, const char *path)
{
    (void)size;
    return gs_path_is_meta(path) || (n >= 4 && memcmp(head, "PK\3\4", 4) == 0);
}

static fth_status look(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err)
{
    sog s;
    FTH_TRY(open_sog(&s, mem, path, err));
    info->n = s.n;
    info->degree = s.degree;
    info->version = GS_SOG_VERSION;
    close_sog(&s);
    return FTH_OK;
}

/* No more rows than the first picture has pixels: nothing is taken for what a count claims. */
static fth_status check_count(sog *s, fth_err *err)
{
    texture t;
    FTH_TRY(load_texture(s, GS_SOG_SCALES, s->n, 0, &t, err));
    fth_picture_free(s->mem, &t.picture);
    return FTH_OK;
}

static fth_status load(gs_model *m, fth_mem *mem, const char *path, fth_err *err)
{
    sog s;
    FTH_TRY(open_sog(&s, mem, path, err));
    fth_status st = s.n > 0 ? check_count(&s, err) : FTH_OK;
    if (st == FTH_OK) st = gs_model_create(m, mem, s.n, s.degree, err);
    fth_status (*const parts[])(sog *, gs_model *, fth_err *) = {read_means, read_rotation,
                                                                 read_scales, read_sh0, read_rest};
    const int n = s.n == 0 ? 0 : s.degree > 0 ? 5 : 4;
    for (int i = 0; st == FTH_OK && i < n; i++) st = parts[i](&s, m, err);
    close_sog(&s);
    return st;
}

static fth_status save(const gs_model *m, const char *path, fth_err *err)
{
    return gs_sog_save(m, path, GS_KMEANS_ROUNDS, err);
}

const gs_format_row gs_sog_format = {"SOG", ".sog", is, look, load, save};
