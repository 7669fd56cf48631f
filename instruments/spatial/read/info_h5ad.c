/* info_h5ad.c - what is in an h5ad file, and which keys of a config would read it. */
#include "anndata.h"
#include "elements.h"
#include "info.h"
#include "loaders.h"
#include "shapes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { COLUMNS = 200, CATEGORIES = 8, WIDE = 120 };

/* What a config would be made of. */
typedef struct guess {
    char coords[128], counts[128], groups[128], sections[128];
    int coords_rank, counts_rank, groups_rank, sections_rank; /* the larger the better */
    int64_t cells, coords_width;
    const char *dataset;
    char table[128]; /* "": it need not be named */
    bool shapes;     /* of a store, which have positions where obsm has none */
} guess;

static void better(char *best, int *best_rank, const char *name, int rank)
{
    if (rank <= *best_rank || strlen(name) >= 128) return;
    snprintf(best, 128, "%s", name);
    *best_rank = rank;
}

/* Place of a name in a list of words, counted from 1; 0: it is not there. */
static int rank_of(const char *words, const char *name)
{
    const size_t n = strlen(name);
    int rank = 1;
    for (const char *at = words; *at; rank++) {
        const size_t len = strcspn(at, " ");
        if (len == n && strncmp(at, name, n) == 0) return rank;
        at += len + (at[len] == ' ');
    }
    return 0;
}

/* ---- counts ---- */

/* What the first rows look like: 3 counts, 2 not whole but not negative either, 1 negative, 0 they
 * cannot be read. */
static int judge(sp_matrix *m, fth_err *err)
{
    enum { ROWS = 64, ROOM = 1 << 18 };
    sp_block b;
    int good = 3;
    const int64_t want = m->rows < ROWS ? m->rows : ROWS;
    if (m->layout == SP_LAYOUT_COLUMNS || m->layout == SP_LAYOUT_TEXT || want == 0)
        return 3; /* a row would need a full pass */
    if (sp_block_create(&b, m, want, ROOM, err) != FTH_OK) return 0;
    const int64_t fit = sp_matrix_fit(m, 0, ROOM), n = fit < want ? fit : want;
    if (sp_matrix_read(m, 0, n, &b, err) != FTH_OK) good = 0;
    for (int64_t i = 0; good > 1 && i < b.ptr[n]; i++) {
        if (b.val[i] < 0)
            good = 1;
        else if (good == 3 && b.val[i] != floorf(b.val[i]))
            good = 2;
    }
    sp_block_free(&b);
    return good;
}

static void put_matrix(fth_json_writer *w, const char *object, const sp_matrix *m,
                       const char *layout, int good)
{
    static const char *const values[] = {"not readable", "negative", "fractions", "counts"};
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "object", object);
    fth_json_int(w, "cells", m->rows);
    fth_json_int(w, "genes", m->cols);
    fth_json_text(w, "layout", layout);
    fth_json_text(w, "dtype", fth_dtype_name(m->dtype));
    if (m->layout != SP_LAYOUT_DENSE) fth_json_int(w, "stored", m->entries);
    fth_json_text(w, "values", values[good]);
    fth_json_close(w);
}

static fth_status print_matrix(const sp_anndata *a, const char *object, const char *word, int rank,
                               guess *g, const sp_told *t, fth_err *err)
{
    static const char *const layout[] = {"sparse rows", "sparse columns", "dense"};
    sp_matrix m;
    fth_err why = {0};
    if (sp_store_kind(&a->store, object) == FTH_H5_NONE) return FTH_OK;
    FTH_TRY(sp_matrix_open_store(&m, &a->store, a->path, object, err));
    const int good = judge(&m, &why);
    fprintf(t->out, "  %-16s %lld x %lld, %s of %s", object, (long long)m.rows, (long long)m.cols,
            layout[m.layout], fth_dtype_name(m.dtype));
    if (m.layout != SP_LAYOUT_DENSE)
        fprintf(t->out, ", %.3g %% stored",
                100 * (double)m.entries / fmax((double)m.rows * (double)m.cols, 1));
    if (good == 0)
        fprintf(t->out, "; it cannot be read: %.200s\n", why.text);
    else
        fprintf(t->out, "%s\n", good == 1 ? "; negative numbers" : good == 2 ? "; fractions" : "");
    if (t->w) put_matrix(t->w, object, &m, layout[m.layout], good);
    if (good > 1) better(g->counts, &g->counts_rank, word, rank + 10 * (good - 2));
    g->cells = m.rows;
    sp_matrix_close(&m);
    return FTH_OK;
}

static fth_status print_counts(const sp_anndata *a, guess *g, const sp_told *t, fth_err *err)
{
    fth_texts *layers = NULL;
    fprintf(t->out, "counts\n");
    FTH_TRY(print_matrix(a, "/X", "X", 2, g, t, err));
    FTH_TRY(print_matrix(a, "/raw/X", "raw", 3, g, t, err));
    if (sp_store_kind(&a->store, "/layers") != FTH_H5_GROUP) return FTH_OK;
    FTH_TRY(sp_store_list(&a->store, "/layers", &layers, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(layers); i++) {
        char object[FTH_PATH];
        const char *name = fth_texts_get(layers, i);
        snprintf(object, sizeof object, "/layers/%s", name);
        s = print_matrix(a, object, name, rank_of("raw_counts count counts", name) ? 4 : 1, g, t,
                         err);
    }
    fth_texts_free(layers);
    return s;
}

/* ---- positions ---- */

/* Columns of a frame; 2 where it does not say. */
static int64_t frame_width(const sp_anndata *a, const char *object)
{
    fth_texts *order = NULL;
    if (sp_store_attr_text(&a->store, object, "column-order", &order, NULL) != FTH_OK) return 2;
    const int64_t n = fth_texts_count(order);
    fth_texts_free(order);
    return n;
}

static fth_status print_obsm(const sp_anndata *a, guess *g, const sp_told *t, fth_err *err)
{
    fth_texts *keys = NULL;
    const fth_h5_kind kind = sp_store_kind(&a->store, "/obsm");
    if (kind == FTH_H5_NONE) return FTH_OK;
    FTH_TRY(kind == FTH_H5_GROUP ? sp_store_list(&a->store, "/obsm", &keys, err)
                                 : sp_store_fields(&a->store, "/obsm", &keys, err));
    fprintf(t->out, "obsm\n");
    for (int64_t i = 0; i < fth_texts_count(keys); i++) {
        const char *key = fth_texts_get(keys, i);
        char object[FTH_PATH];
        fth_source s;
        snprintf(object, sizeof object, "/obsm/%s", key);
        const bool frame = kind == FTH_H5_GROUP && sp_store_kind(&a->store, object) == FTH_H5_GROUP;
        int64_t width = frame ? frame_width(a, object) : 0;
        if (!frame) {
            const fth_status read = kind == FTH_H5_GROUP
                                        ? sp_store_source(&a->store, object, NULL, &s, NULL)
                                        : sp_store_source(&a->store, "/obsm", key, &s, NULL);
            if (read == FTH_OK) {
                width = s.n_axes == 2 ? s.size[1] : 0;
                fth_source_close(&s);
            }
        }
        const int named = rank_of("centroids xy coordinates coords X_spatial spatial", key);
        if (t->w) {
            fth_json_open(t->w, NULL, '{');
            fth_json_text(t->w, "name", key);
            fth_json_int(t->w, "columns", width);
            fth_json_close(t->w);
        }
        if (frame)
            fprintf(t->out, "  %-16s a frame\n", key);
        else
            fprintf(t->out, "  %-16s %lld columns\n", key, (long long)width);
        if (width >= 2 && (named || width == 2) && 1 + 2 * named > g->coords_rank) {
            better(g->coords, &g->coords_rank, key, 1 + 2 * named);
            g->coords_width = width;
        }
    }
    fth_texts_free(keys);
    return FTH_OK;
}

/* ---- columns of obs ---- */

/* Names of columns: the list that a frame keeps, or what is in it. */
static fth_status list_columns(const sp_anndata *a, fth_texts **out, fth_err *err)
{
    if (sp_store_kind(&a->store, "/obs") != FTH_H5_GROUP)
        return sp_store_fields(&a->store, "/obs", out, err);
    if (sp_store_attr_exists(&a->store, "/obs", "column-order") &&
        sp_store_attr_text(&a->store, "/obs", "column-order", out, NULL) == FTH_OK)
        return FTH_OK;
    return sp_store_list(&a->store, "/obs", out, err);
}

static void print_categories(const sp_labels *l, const sp_told *t)
{
    int used = 0;
    const int64_t n = fth_texts_count(l->names);
    for (int64_t i = 0; i < n && i < CATEGORIES; i++) {
        const char *name = fth_texts_get(l->names, i);
        if (used + (int)strlen(name) > WIDE) break;
        used += fprintf(t->out, "%s%s", i ? ", " : "", name);
    }
    fprintf(t->out, "%s\n", n > CATEGORIES ? ", ..." : "");
}

/* All categories: programs need no room on a line. */
static void put_column(fth_json_writer *w, const char *name, const char *type, const sp_labels *l)
{
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "name", name);
    fth_json_text(w, "type", type);
    if (l) fth_json_open(w, "categories", '[');
    for (int64_t i = 0; l && i < fth_texts_count(l->names); i++)
        fth_json_text(w, NULL, fth_texts_get(l->names, i));
    if (l) fth_json_close(w);
    fth_json_close(w);
}

/* Columns that tell tissue sections apart, by their names; 0: it is none. */
static int section_rank(const char *name)
{
    return rank_of("fov batch replicate library_id slice_id slice sample_id sample section_id "
                   "section",
                   name);
}

/* A few sections with many cells each. */
static void see_sections(const char *name, int64_t n, guess *g)
{
    enum { MOST = 50, CELLS = 20 };
    const int named = section_rank(name);
    if (named && n >= 2 && n <= MOST && g->cells / n >= CELLS)
        better(g->sections, &g->sections_rank, name, named);
}

static void print_column(const sp_anndata *a, const char *name, guess *g, const sp_told *t)
{
    sp_column c;
    sp_labels l;
    fth_source s;
    fth_dtype dtype = FTH_DTYPE_COUNT;
    if (sp_anndata_column(a, "/obs", name, &c, NULL) != FTH_OK) return;
    if (sp_store_kind(&a->store, c.object) == FTH_H5_DATASET &&
        sp_store_source(&a->store, c.object, sp_column_field(&c), &s, NULL) == FTH_OK) {
        dtype = s.dtype;
        fth_source_close(&s);
    }
    const bool coded =
        dtype != FTH_DTYPE_COUNT && sp_store_attr_exists(&a->store, c.object, "categories");
    /* whole numbers in records may be the codes of categories that are kept elsewhere */
    const bool number = dtype != FTH_DTYPE_COUNT && !coded;
    if (number && (c.field[0] == '\0' || fth_dtype_is_real(dtype))) {
        fprintf(t->out, "  %-28s %s\n", name, fth_dtype_name(dtype));
        if (t->w) put_column(t->w, name, fth_dtype_name(dtype), NULL);
        if (!fth_dtype_is_real(dtype) && section_rank(name) &&
            sp_anndata_labels(a, "/obs", name, g->cells, &l, NULL) == FTH_OK) {
            see_sections(name, fth_texts_count(l.names), g);
            sp_labels_free(&l);
        }
        return;
    }
    if (sp_anndata_labels(a, "/obs", name, g->cells, &l, NULL) != FTH_OK) {
        fprintf(t->out, "  %-28s not read\n", name);
        if (t->w) put_column(t->w, name, NULL, NULL);
        return;
    }
    const int64_t n = fth_texts_count(l.names);
    const int named = rank_of("louvain leiden Cluster cluster celltype cell_type cell_class "
                              "Cell_class Cell_Type Region cl46v1SubShort_ds ClusterName",
                              name);
    fprintf(t->out, "  %-28s %lld categories: ", name, (long long)n);
    print_categories(&l, t);
    if (t->w) put_column(t->w, name, "text", &l);
    see_sections(name, n, g);
    if (n >= 2 && n <= 200 && n <= g->cells / 2 && !section_rank(name))
        better(g->groups, &g->groups_rank, name, 1 + 2 * named);
    sp_labels_free(&l);
}

static fth_status print_obs(const sp_anndata *a, guess *g, const sp_told *t, fth_err *err)
{
    fth_texts *columns = NULL;
    FTH_TRY(list_columns(a, &columns, err));
    fprintf(t->out, "columns of obs\n");
    const int64_t n = fth_texts_count(columns);
    for (int64_t i = 0; i < n && i < COLUMNS; i++) {
        const char *name = fth_texts_get(columns, i);
        if (!rank_of("__categories _index index", name)) print_column(a, name, g, t);
    }
    if (n > COLUMNS) fprintf(t->out, "  and %lld more\n", (long long)(n - COLUMNS));
    fth_texts_free(columns);
    return FTH_OK;
}

/* ---- a config ---- */

/* The keys that would read it, as far as they could be determined. */
static void put_config(const char *path, const guess *g, fth_json_writer *w)
{
    fth_json_open(w, "preprocessing", '{');
    fth_json_text(w, "path", path);
    if (g->table[0]) fth_json_text(w, "table", g->table);
    if (g->coords_rank) fth_json_text(w, "coord_key", g->coords);
    if (g->counts_rank) fth_json_text(w, "counts", g->counts);
    if (g->groups_rank) fth_json_text(w, "group_column", g->groups);
    if (g->sections_rank) fth_json_text(w, "section_column", g->sections);
    fth_json_close(w);
}

static void print_config(const char *path, const guess *g, const sp_told *t)
{
    if (t->w) put_config(path, g, t->w);
    if (!g->counts_rank || (!g->coords_rank && !g->shapes)) {
        fprintf(t->out, "no config is suggested: %s\n",
                g->counts_rank ? "obsm has no positions; name two columns of obs in "
                                 "preprocessing.coord_columns"
                               : "there are no counts");
        return;
    }
    fprintf(t->out,
            "a config that reads it\n"
            "  instrument: spatial\n"
            "  name: my_data\n"
            "  dataset: %s\n"
            "  output_dir: outputs/my_data\n"
            "  preprocessing:\n"
            "    path: %s\n"
            "%s%s%s"
            "%s%s%s"
            "%s"
            "    counts: %s\n",
            g->dataset, path, g->table[0] ? "    table: " : "", g->table, g->table[0] ? "\n" : "",
            g->coords_rank ? "    coord_key: " : "", g->coords_rank ? g->coords : "",
            g->coords_rank ? "\n" : "    # positions are the centroids of shapes\n",
            g->coords_width > 2 ? "    coord_axes: [0, 1] # x and y\n" : "", g->counts);
    if (g->groups_rank) fprintf(t->out, "    group_column: %s\n", g->groups);
    if (g->sections_rank)
        fprintf(t->out, "    section_column: %s # sections with positions of their own\n",
                g->sections);
    fprintf(t->out,
            "  model: {n_components: 10, lengthscale: 8.0, loadings_mode: multiplicative}\n");
}

/* ---- a 10x file ---- */

static fth_status print_names(const sp_anndata *a, const char *group, const char *one,
                              const char *other, const char *title, const sp_told *t, fth_err *err)
{
    char object[FTH_PATH];
    fth_texts *names = NULL;
    int used = 0;
    snprintf(object, sizeof object, "%s/%s", group, one);
    if (other && sp_store_kind(&a->store, object) == FTH_H5_NONE)
        snprintf(object, sizeof object, "%s/%s", group, other);
    FTH_TRY(sp_store_strings(&a->store, object, NULL, &names, err));
    fprintf(t->out, "  %-16s %lld: ", title, (long long)fth_texts_count(names));
    for (int64_t i = 0; i < fth_texts_count(names) && i < CATEGORIES && used < WIDE; i++)
        used += fprintf(t->out, "%s%s", i ? ", " : "", fth_texts_get(names, i));
    fprintf(t->out, "%s\n", fth_texts_count(names) > CATEGORIES ? ", ..." : "");
    fth_texts_free(names);
    return FTH_OK;
}

/* If there are features other than genes, the config must say whether to take them. */
static fth_status print_types(const sp_anndata *a, const char *group, const sp_told *t,
                              fth_err *err)
{
    fth_texts *types = NULL;
    char text[400];
    FTH_TRY(sp_tenx_types(a->h5, group, &types, err));
    if (!types) return FTH_OK;
    sp_tenx_tally(types, NULL, text, sizeof text);
    if (t->w) fth_json_text(t->w, "types", text);
    fprintf(t->out, "  %-16s %s\n", "types", text);
    fth_texts_free(types);
    return FTH_OK;
}

static fth_status print_tenx(const sp_anndata *a, const char *group, const sp_told *t, fth_err *err)
{
    sp_matrix m;
    fth_err why = {0};
    char table[FTH_PATH];
    FTH_TRY(sp_matrix_open_tenx(&m, a->mem, a->h5, a->path, group, err));
    const int good = judge(&m, &why);
    fprintf(t->out, "%s: a 10x file\ncounts\n", a->path);
    if (t->w) {
        fth_json_open(t->w, "counts", '[');
        put_matrix(t->w, group, &m, "sparse rows", good);
        fth_json_close(t->w);
    }
    fprintf(t->out, "  %-16s %lld spots x %lld genes of %s, %.3g %% stored%s\n", group,
            (long long)m.rows, (long long)m.cols, fth_dtype_name(m.dtype),
            100 * (double)m.entries / fmax((double)m.rows * (double)m.cols, 1),
            good == 0   ? "; it cannot be read"
            : good == 1 ? "; negative numbers"
            : good == 2 ? "; fractions"
                        : "");
    sp_matrix_close(&m);
    fprintf(t->out, "names\n");
    FTH_TRY(print_names(a, group, "features/name", "gene_names", "genes", t, err));
    FTH_TRY(print_types(a, group, t, err));
    FTH_TRY(print_names(a, group, "barcodes", NULL, "barcodes", t, err));
    const bool found = sp_tenx_table(a->path, table);
    if (t->w) fth_json_text(t->w, "positions", found ? table : NULL);
    fprintf(t->out, "positions\n  %s\n",
            found ? table : "no tissue_positions.csv beside it or in spatial/");
    fprintf(t->out,
            "a config that reads it\n"
            "  instrument: spatial\n"
            "  name: my_data\n"
            "  dataset: tenx\n"
            "  output_dir: outputs/my_data\n"
            "  preprocessing:\n"
            "    path: %s\n",
            a->path);
    if (!found)
        fprintf(t->out, "    positions_path: tissue_positions.csv # where the table of spots is\n");
    fprintf(t->out,
            "  model: {n_components: 10, lengthscale: 8.0, loadings_mode: multiplicative}\n");
    return FTH_OK;
}

/* ---- a store ---- */

static void print_key(const sp_anndata *a, const char *object, const char *name, const sp_told *t)
{
    fth_texts *texts = NULL;
    if (sp_store_kind(&a->store, object) != FTH_H5_DATASET ||
        sp_store_strings(&a->store, object, NULL, &texts, NULL) != FTH_OK)
        return;
    fprintf(t->out, "  %-16s ", name);
    if (t->w) fth_json_open(t->w, name, '[');
    for (int64_t i = 0; i < fth_texts_count(texts); i++) {
        fprintf(t->out, "%s%s", i ? ", " : "", fth_texts_get(texts, i));
        if (t->w) fth_json_text(t->w, NULL, fth_texts_get(texts, i));
    }
    if (t->w) fth_json_close(t->w);
    fprintf(t->out, "\n");
    fth_texts_free(texts);
}

/* What the file is; of SpatialData its tables and what the one that is described annotates. */
static void print_kind(const sp_anndata *a, const char *path, const fth_texts *tables, guess *g,
                       const sp_told *t)
{
    g->dataset = tables ? "spatialdata" : "anndata";
    if (!tables) {
        fprintf(t->out, "%s: an %s\n", path, a->h5 ? "h5ad file" : "AnnData store of Zarr");
        return;
    }
    fprintf(t->out, "%s: a SpatialData store\ntables\n", path);
    if (t->w) fth_json_open(t->w, "tables", '[');
    for (int64_t i = 0; i < fth_texts_count(tables); i++) {
        fprintf(t->out, "  %s%s\n", fth_texts_get(tables, i), i == 0 ? ", described here" : "");
        if (t->w) fth_json_text(t->w, NULL, fth_texts_get(tables, i));
    }
    if (t->w) fth_json_close(t->w);
    if (fth_texts_count(tables) > 1)
        snprintf(g->table, sizeof g->table, "%s", fth_texts_get(tables, 0));
    char shapes[FTH_PATH];
    g->shapes = fth_path_join(shapes, path, "shapes", NULL) == FTH_OK && fth_path_exists(shapes);
    fprintf(t->out, "what it annotates\n");
    print_key(a, SP_REGIONS, "region", t);
    print_key(a, SP_REGION_KEY, "region_key", t);
    print_key(a, SP_INSTANCE_KEY, "instance_key", t);
}

/* The first table of several. */
static fth_status open_any(sp_anndata *a, fth_mem *mem, const char *path, fth_texts **tables,
                           fth_err *err)
{
    *tables = NULL;
    if (fth_path_kind_of(path) == FTH_PATH_FOLDER) FTH_TRY(sp_store_tables(mem, path, tables, err));
    const fth_status s = sp_anndata_open_table(
        a, mem, path, *tables && fth_texts_count(*tables) > 0 ? fth_texts_get(*tables, 0) : NULL,
        err);
    if (s != FTH_OK) fth_texts_free(*tables);
    return s;
}

/* ---- images ---- */

static void print_image(const sp_anndata *a, const char *library, const char *size, int64_t *n,
                        const sp_told *t)
{
    char object[FTH_PATH];
    fth_source s = {0};
    const int used = snprintf(object, sizeof object, "/uns/spatial/%s/images/%s", library, size);
    if (used >= FTH_PATH || sp_store_kind(&a->store, object) != FTH_H5_DATASET ||
        sp_store_source(&a->store, object, NULL, &s, NULL) != FTH_OK)
        return;
    if (s.n_axes >= 2) {
        if ((*n)++ == 0) fprintf(t->out, "images of uns['spatial']\n");
        fprintf(t->out, "  %s %s, %" PRId64 " x %" PRId64 " pixels\n", library, size, s.size[1],
                s.size[0]);
        if (t->w) {
            if (*n == 1) fth_json_open(t->w, "images", '[');
            fth_json_open(t->w, NULL, '{');
            fth_json_text(t->w, "library", library);
            fth_json_text(t->w, "size", size);
            fth_json_int(t->w, "width", s.size[1]);
            fth_json_int(t->w, "height", s.size[0]);
            fth_json_close(t->w);
        }
    }
    fth_source_close(&s);
}

/* Nothing where there are none. */
static fth_status print_images(const sp_anndata *a, const sp_told *t, fth_err *err)
{
    fth_texts *libraries = NULL;
    int64_t n = 0, last = -1, several = 0;
    if (sp_store_kind(&a->store, "/uns/spatial") != FTH_H5_GROUP) return FTH_OK;
    FTH_TRY(sp_store_list(&a->store, "/uns/spatial", &libraries, err));
    for (int64_t i = 0; i < fth_texts_count(libraries); i++) {
        const int64_t before = n;
        print_image(a, fth_texts_get(libraries, i), "hires", &n, t);
        print_image(a, fth_texts_get(libraries, i), "lowres", &n, t);
        if (n == before) continue;
        several += last >= 0;
        last = i;
    }
    if (several) fprintf(t->out, "  preprocessing.image_library names the one to draw\n");
    if (n > 0 && t->w) fth_json_close(t->w);
    fth_texts_free(libraries);
    return FTH_OK;
}

static void print_element(fth_mem *mem, const char *root, const char *name, const sp_told *t)
{
    char systems[300] = "", channels[300] = "";
    sp_element_image i;
    fth_texts *in = NULL;
    fth_err failed = {0};
    const fth_status s = sp_element_image_find(&i, mem, root, name, 1, &failed);
    if (s == FTH_OK && sp_element_systems(mem, i.folder, &in, NULL) == FTH_OK)
        sp_element_names(in, systems, sizeof systems);
    if (s == FTH_OK) sp_element_names(i.channels, channels, sizeof channels);
    if (s != FTH_OK)
        fprintf(t->out, "  %s: %s\n", name, failed.text);
    else
        fprintf(t->out, "  %s, %" PRId64 " x %" PRId64 " pixels%s%s, in %s\n", name, i.width,
                i.height, channels[0] ? " of " : "", channels, systems);
    if (t->w) {
        fth_json_open(t->w, NULL, '{');
        fth_json_text(t->w, "name", name);
        if (s == FTH_OK) {
            fth_json_int(t->w, "width", i.width);
            fth_json_int(t->w, "height", i.height);
            fth_json_text(t->w, "channels", channels);
            fth_json_text(t->w, "coordinate_systems", systems);
        } else
            fth_json_text(t->w, "error", failed.text);
        fth_json_close(t->w);
    }
    fth_texts_free(in);
    sp_element_image_clear(&i);
}

/* Of a SpatialData store; nothing where there are none. */
static fth_status print_elements(const sp_anndata *a, const sp_told *t, fth_err *err)
{
    char root[FTH_PATH];
    fth_texts *names = NULL;
    if (!a->store.folder[0] || !sp_shapes_root(a->store.folder, root)) return FTH_OK;
    FTH_TRY(sp_element_images(a->store.mem, root, &names, err));
    const int64_t n = names ? fth_texts_count(names) : 0;
    if (n > 0) fprintf(t->out, "images of the store\n");
    if (n > 0 && t->w) fth_json_open(t->w, "store_images", '[');
    for (int64_t i = 0; i < n; i++) print_element(a->store.mem, root, fth_texts_get(names, i), t);
    if (n > 1) fprintf(t->out, "  preprocessing.image names the one to draw\n");
    if (n > 0 && t->w) fth_json_close(t->w);
    fth_texts_free(names);
    return FTH_OK;
}

fth_status sp_info_h5ad(fth_mem *mem, const char *path, const sp_told *t, fth_err *err)
{
    sp_anndata a;
    guess g = {.cells = 0};
    fth_texts *tables = NULL;
    FTH_TRY(open_any(&a, mem, path, &tables, err));
    char group[256];
    bool tenx = false;
    fth_status s = FTH_OK;
    if (a.h5 && fth_h5_kind_of(a.h5, "/obs") == FTH_H5_NONE)
        s = sp_tenx_find(a.h5, group, &tenx, err);
    if (tenx || s != FTH_OK) {
        if (tenx) s = print_tenx(&a, group, t, err);
        sp_anndata_close(&a);
        return s;
    }
    print_kind(&a, path, tables, &g, t);
    fth_texts_free(tables);
    static const struct {
        const char *key;
        fth_status (*print)(const sp_anndata *a, guess *g, const sp_told *t, fth_err *err);
    } part[] = {{"counts", print_counts}, {"obsm", print_obsm}, {"obs", print_obs}};
    for (int i = 0; s == FTH_OK && i < 3; i++) {
        if (t->w) fth_json_open(t->w, part[i].key, '[');
        s = part[i].print(&a, &g, t, err);
        if (t->w) fth_json_close(t->w);
    }
    if (s == FTH_OK) s = print_images(&a, t, err);
    if (s == FTH_OK) s = print_elements(&a, t, err);
    if (s == FTH_OK) print_config(path, &g, t);
    sp_anndata_close(&a);
    return s;
}
