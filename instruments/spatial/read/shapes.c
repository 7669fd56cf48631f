/* shapes.c - positions that only the shapes of a SpatialData store have: circles and outlines of
 * cells as GeoParquet, shapes/REGION/shapes.parquet.
 *
 * A shape is a geometry in WKB, the well-known binary of the Open Geospatial Consortium. Its
 * centroid is the position of the cell whose region and instance it is.
 */
#include "shapes.h"

#include <fathom/parquet.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- WKB ---- */

typedef struct wkb {
    const unsigned char *at, *end;
    bool big;  /* most significant byte first */
    int extra; /* numbers of a point beside x and y */
} wkb;

static bool take_bytes(wkb *w, void *to, size_t n)
{
    unsigned char *out = to;
    if ((size_t)(w->end - w->at) < n) return false;
    for (size_t i = 0; i < n; i++) out[i] = w->at[w->big ? n - 1 - i : i];
    w->at += n;
    return true;
}

/* Byte order and type, 1: point, 3: polygon, 6: several; Z and M as ISO or EWKB say it. */
static bool take_head(wkb *w, uint32_t *type)
{
    uint32_t srid;
    if (w->at == w->end || *w->at > 1) return false;
    w->big = *w->at++ == 0;
    if (!take_bytes(w, type, 4)) return false;
    w->extra = ((*type & 0x80000000u) != 0) + ((*type & 0x40000000u) != 0);
    if (*type & 0x20000000u && !take_bytes(w, &srid, 4)) return false;
    *type &= 0x0fffffff;
    if (*type / 1000 > 0) w->extra = *type / 1000 == 3 ? 2 : 1;
    *type %= 1000;
    return true;
}

static bool take_point(wkb *w, double xy[2])
{
    double other;
    if (!take_bytes(w, &xy[0], 8) || !take_bytes(w, &xy[1], 8)) return false;
    for (int i = 0; i < w->extra; i++)
        if (!take_bytes(w, &other, 8)) return false;
    return true;
}

/* Sums over rings, around the first point so that far places keep their digits. */
typedef struct moments {
    bool started;
    double from[2], area, at[2]; /* twice the area, six times its first moments */
    double sum[2];               /* of the corners, where there is no area */
    int64_t n;
} moments;

static bool add_ring(wkb *w, moments *m, bool hole)
{
    uint32_t n;
    double p[2], q[2] = {0, 0}, area = 0, at[2] = {0, 0};
    if (!take_bytes(w, &n, 4)) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!take_point(w, p)) return false;
        if (!m->started) memcpy(m->from, p, sizeof p);
        m->started = true;
        p[0] -= m->from[0];
        p[1] -= m->from[1];
        if (i > 0) {
            const double cross = q[0] * p[1] - p[0] * q[1];
            area += cross;
            at[0] += (q[0] + p[0]) * cross;
            at[1] += (q[1] + p[1]) * cross;
            m->sum[0] += p[0];
            m->sum[1] += p[1];
            m->n++;
        }
        memcpy(q, p, sizeof q);
    }
    const double sign = (area < 0) != hole ? -1 : 1; /* rings turn either way */
    m->area += sign * area;
    m->at[0] += sign * at[0];
    m->at[1] += sign * at[1];
    return true;
}

static bool add_polygon(wkb *w, moments *m)
{
    uint32_t rings;
    if (!take_bytes(w, &rings, 4)) return false;
    for (uint32_t i = 0; i < rings; i++)
        if (!add_ring(w, m, i > 0)) return false;
    return true;
}

bool sp_wkb_centroid(const char *bytes, int64_t n, double xy[2])
{
    wkb w = {.at = (const unsigned char *)bytes, .end = (const unsigned char *)bytes + n};
    moments m = {.started = false};
    uint32_t type, parts;
    if (!take_head(&w, &type)) return false;
    if (type == 1) return take_point(&w, xy);
    if (type == 3 && !add_polygon(&w, &m)) return false;
    if (type == 6) {
        if (!take_bytes(&w, &parts, 4)) return false;
        for (uint32_t i = 0; i < parts; i++)
            if (!take_head(&w, &type) || type != 3 || !add_polygon(&w, &m)) return false;
        type = 6;
    }
    if ((type != 3 && type != 6) || m.n == 0) return false;
    for (int a = 0; a < 2; a++)
        xy[a] = m.from[a] + (m.area != 0 ? m.at[a] / (3 * m.area) : m.sum[a] / (double)m.n);
    return true;
}

/* ---- a file of shapes ---- */

typedef struct keyed {
    const char *id;
    int32_t region;
    int64_t row;
} keyed;

static int by_key(const void *a, const void *b)
{
    const keyed *x = a, *y = b;
    if (x->region != y->region) return x->region < y->region ? -1 : 1;
    return strcmp(x->id, y->id);
}

typedef struct shapes {
    sp_source *s;
    const keyed *list;
    const char *instance; /* the column of obs, which the index may be called after too */
    char path[FTH_PATH];
    int64_t matched;
} shapes;

static fth_status place(shapes *f, int32_t region, const char *id, const fth_parquet_text *shape,
                        int64_t row, fth_err *err)
{
    const keyed key = {.id = id, .region = region};
    const keyed *found = bsearch(&key, f->list, (size_t)f->s->counts.rows, sizeof key, by_key);
    double xy[2];
    if (!found) return FTH_OK; /* a shape that is no cell of the table */
    if (!sp_wkb_centroid(shape->chars, shape->bytes, xy)) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: row %" PRId64 ": expected a point or an outline in WKB, found %" PRId64
                     " other bytes",
                     f->path, row + 1, shape->bytes);
        fth_err_hint(err, "put positions into the table: table.obsm[\"spatial\"] = ...");
        return s;
    }
    f->s->xy[2 * found->row] = (float)xy[0];
    f->s->xy[2 * found->row + 1] = (float)xy[1];
    f->matched++;
    return FTH_OK;
}

/* Ids are the index of the frame; without a column they are the numbers of the rows. */
static fth_status read_rows(shapes *f, fth_parquet *file, int32_t region, fth_err *err)
{
    static const char index[] = "__index_level_0__";
    fth_parquet_column *shape = NULL, *id = NULL;
    fth_parquet_block b = {0}, names = {0};
    int64_t at = fth_parquet_find(file, index), next = 0;
    if (at < 0) at = fth_parquet_find(file, f->instance);
    fth_status s = fth_parquet_column_open(&shape, file, fth_parquet_find(file, "geometry"), err);
    if (s == FTH_OK && at >= 0) s = fth_parquet_column_open(&id, file, at, err);
    while (s == FTH_OK && (s = fth_parquet_next(shape, &b, err)) == FTH_OK && b.n > 0) {
        if (!b.text) {
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: column 'geometry' should hold WKB", f->path);
            break;
        }
        for (int64_t i = 0; s == FTH_OK && i < b.n; i++, next++) {
            char text[300];
            if (id && next == names.first + names.n) s = fth_parquet_next(id, &names, err);
            if (s != FTH_OK) break;
            const int64_t k = next - names.first;
            if (id && names.text)
                snprintf(text, sizeof text, "%.*s",
                         names.text[k].bytes < 299 ? (int)names.text[k].bytes : 299,
                         names.text[k].chars);
            else
                snprintf(text, sizeof text, "%" PRId64,
                         !id         ? next
                         : names.i64 ? names.i64[k]
                         : names.i32 ? names.i32[k]
                                     : -1);
            s = place(f, region, text, &b.text[i], next, err);
        }
    }
    fth_parquet_column_close(shape);
    fth_parquet_column_close(id);
    return s;
}

/* ---- a store ---- */

bool sp_shapes_root(const char *table, char root[FTH_PATH])
{
    snprintf(root, FTH_PATH, "%s", table);
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(root);
        while (n > 1 && root[n - 1] == '/') root[--n] = '\0';
        char *slash = strrchr(root, '/');
        if (!slash || slash == root) return false;
        *slash = '\0';
    }
    const size_t n = strlen(root);
    return strncmp(table + n, "/table", 6) == 0;
}

static fth_status read_regions(shapes *f, const sp_labels *regions, fth_err *err)
{
    char root[FTH_PATH], dir[FTH_PATH];
    if (!sp_shapes_root(f->s->h5ad.store.folder, root)) return FTH_OK;
    for (int32_t r = 0; r < fth_texts_count(regions->names); r++) {
        fth_parquet *file = NULL;
        snprintf(dir, sizeof dir, "shapes/%.200s/shapes.parquet", fth_texts_get(regions->names, r));
        if (fth_path_join(f->path, root, dir, NULL) != FTH_OK || !fth_path_exists(f->path))
            continue;
        FTH_TRY(fth_parquet_open(&file, f->s->mem, f->path, err));
        const fth_status s = read_rows(f, file, r, err);
        fth_parquet_close(file);
        FTH_TRY(s);
    }
    return FTH_OK;
}

static fth_status no_shapes(const sp_source *s, const sp_labels *regions, fth_err *err)
{
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "%s: there is no obsm 'spatial', and shapes/%.100s/shapes.parquet has no cell of "
                 "the table or is not there",
                 s->h5ad.store.folder,
                 fth_texts_count(regions->names) > 0 ? fth_texts_get(regions->names, 0) : "");
    fth_err_hint(err, "put positions into the table: table.obsm[\"spatial\"] = ..., or name "
                      "columns of obs with preprocessing.coord_columns");
    return status;
}

/* The text of a member of uns; "": it is not there. */
static fth_status word_of(const sp_source *s, const char *object, char word[256], fth_err *err)
{
    fth_texts *t = NULL;
    word[0] = '\0';
    if (sp_store_kind(&s->h5ad.store, object) == FTH_H5_NONE) return FTH_OK;
    FTH_TRY(sp_store_strings(&s->h5ad.store, object, NULL, &t, err));
    if (fth_texts_count(t) > 0) snprintf(word, 256, "%.255s", fth_texts_get(t, 0));
    fth_texts_free(t);
    return FTH_OK;
}

fth_status sp_shapes_places(sp_source *s, fth_err *err)
{
    char key[256], instance[256];
    sp_column column;
    sp_labels regions = {0};
    fth_texts *ids = NULL;
    void *list = NULL;
    const int64_t n = s->counts.rows;
    snprintf(s->where, sizeof s->where, "centroids of shapes");
    FTH_TRY(word_of(s, SP_REGION_KEY, key, err));
    FTH_TRY(word_of(s, SP_INSTANCE_KEY, instance, err));
    if (!key[0] || !instance[0]) return no_shapes(s, &regions, err);
    FTH_TRY(sp_anndata_column(&s->h5ad, "/obs", instance, &column, err));
    fth_status status = sp_anndata_labels(&s->h5ad, "/obs", key, n, &regions, err);
    if (status == FTH_OK) status = sp_column_texts(&s->h5ad, &column, &ids, err);
    if (status == FTH_OK && fth_texts_count(ids) != n)
        status = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: obs '%s' has %" PRId64 " rows of %" PRId64,
                          s->path, instance, fth_texts_count(ids), n);
    if (status == FTH_OK)
        status = fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(keyed), "cells by instance",
                              &list, err);
    if (status == FTH_OK) {
        keyed *k = list;
        shapes f = {.s = s, .list = list, .instance = instance};
        for (int64_t i = 0; i < n; i++) {
            k[i] = (keyed){fth_texts_get(ids, i), regions.code[i], i};
            s->xy[2 * i] = s->xy[2 * i + 1] = NAN;
        }
        qsort(k, (size_t)n, sizeof *k, by_key);
        status = read_regions(&f, &regions, err);
        if (status == FTH_OK && f.matched == 0) status = no_shapes(s, &regions, err);
        if (status == FTH_OK && s->call)
            fth_stage_say(s->call, "positions of %" PRId64 " cells from the centroids of shapes",
                          f.matched);
    }
    (void)fth_mem_release(s->mem, list, NULL);
    fth_texts_free(ids);
    sp_labels_free(&regions);
    return status;
}
