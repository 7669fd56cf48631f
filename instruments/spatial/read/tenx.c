/* tenx.c - counts of 10x, as an .h5 file or as text, and the table of their spots.
 *
 * Counts are sparse columns of [feature spot], which are rows of spots as we want them; features of
 * other types than genes (antibodies, guides) are left out unless they are asked for. Positions are
 * in tissue_positions.csv (with a header) or tissue_positions_list.csv (without): barcode, in
 * tissue, row and column of the array, then row and column of the image in pixels.
 */
#include "loaders.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PIXEL_ROW = 4, PIXEL_COLUMN = 5, FIELDS = 6 };

fth_status sp_tenx_find(fth_h5 *h5, char group[256], bool *found, fth_err *err)
{
    fth_texts *groups = NULL;
    char name[FTH_PATH];
    snprintf(group, 256, "/matrix");
    *found = fth_h5_kind_of(h5, "/matrix/indptr") == FTH_H5_DATASET;
    if (*found) return FTH_OK;
    FTH_TRY(fth_h5_list(h5, "/", &groups, err));
    for (int64_t i = 0; !*found && i < fth_texts_count(groups); i++) {
        snprintf(group, 256, "/%.200s", fth_texts_get(groups, i));
        snprintf(name, sizeof name, "%s/barcodes", group);
        *found = fth_h5_kind_of(h5, name) == FTH_H5_DATASET;
    }
    fth_texts_free(groups);
    return FTH_OK;
}

static fth_status find_matrix(sp_source *s, fth_err *err)
{
    bool found = false;
    if (!s->h5ad.h5)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: it is a folder, and a 10x .h5 file was expected", s->path);
    FTH_TRY(sp_tenx_find(s->h5ad.h5, s->obsm, &found, err));
    if (found) return FTH_OK;
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no /matrix as in 10x files", s->files.counts);
    fth_err_hint(err, "for an h5ad file write dataset: anndata");
    return status;
}

/* The table of positions of the config; "": none is given. */
static const char *given_table(const sp_source *s)
{
    static const char key[] = "preprocessing.positions_path";
    return fth_config_has(s->cfg, key) ? fth_config_text(s->cfg, key) : "";
}

fth_status sp_tenx_open(sp_source *s, fth_err *err)
{
    sp_tenx_files *f = &s->files;
    snprintf(f->counts, sizeof f->counts, "%s", s->path);
    if (s->loader->flags & SP_LOAD_FOLDER)
        FTH_TRY(sp_tenx_files_find(f, s->loader->name, s->path, given_table(s), err));
    if (f->text) return sp_matrix_open_mtx(&s->counts, s->mem, f->counts, err);
    FTH_TRY(sp_anndata_open(&s->h5ad, s->mem, f->counts, err));
    FTH_TRY(find_matrix(s, err));
    return sp_matrix_open_tenx(&s->counts, s->mem, s->h5ad.h5, f->counts, s->obsm, err);
}

static fth_status read_names(sp_source *s, const char *one, const char *other, int64_t n,
                             fth_texts **out, fth_err *err)
{
    char name[FTH_PATH];
    snprintf(name, sizeof name, "%s/%s", s->obsm, one);
    if (other && fth_h5_kind_of(s->h5ad.h5, name) == FTH_H5_NONE)
        snprintf(name, sizeof name, "%s/%s", s->obsm, other);
    FTH_TRY(fth_h5_strings(s->h5ad.h5, name, out, err));
    if (fth_texts_count(*out) == n) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s, %s: %" PRId64 " names where the matrix has %" PRId64, s->path, name,
                    fth_texts_count(*out), n);
}

/* ---- types of features ---- */

fth_status sp_tenx_types(fth_h5 *h5, const char *group, fth_texts **out, fth_err *err)
{
    char name[FTH_PATH];
    *out = NULL;
    snprintf(name, sizeof name, "%s/features/feature_type", group);
    if (fth_h5_kind_of(h5, name) != FTH_H5_DATASET) return FTH_OK; /* version 2: genes only */
    return fth_h5_strings(h5, name, out, err);
}

void sp_tenx_tally(const fth_texts *types, const bool *only, char *text, size_t bytes)
{
    enum { KINDS = 8 };
    const char *kind[KINDS];
    int64_t count[KINDS + 1] = {0};
    int n = 0;
    for (int64_t i = 0; i < fth_texts_count(types); i++) {
        const char *type = fth_texts_get(types, i);
        int k = 0;
        if (only && !only[i]) continue;
        while (k < n && strcmp(kind[k], type) != 0) k++;
        if (k == n && n < KINDS) kind[n++] = type;
        count[k]++;
    }
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k <= n && used < bytes; k++)
        if (count[k] > 0)
            used += (size_t)snprintf(text + used, bytes - used, "%s%" PRId64 " %.80s",
                                     k ? ", " : "", count[k], k < n ? kind[k] : "of other types");
}

static bool is_wanted(const fth_config *cfg, const char *type)
{
    static const char key[] = "preprocessing.feature_types";
    for (int64_t i = 0; i < fth_config_count(cfg, key); i++) {
        const char *want = fth_config_text_at(cfg, key, i);
        if (strcmp(want, type) == 0 || strcmp(want, "all") == 0) return true;
    }
    return false;
}

static fth_status no_features(const sp_source *s, const fth_texts *types, fth_err *err)
{
    char text[400];
    sp_tenx_tally(types, NULL, text, sizeof text);
    const fth_status status = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                       "%s: none of its features is of the types in "
                                       "preprocessing.feature_types; it has %s",
                                       s->path, text);
    fth_err_hint(err, "name the types to take, or write preprocessing.feature_types: [all]");
    return status;
}

/* Prefix names of left-out features with their type: they must not force suffixes on gene names. */
static fth_status prefix_left_out(sp_source *s, const fth_texts *types, fth_err *err)
{
    fth_texts *names = NULL;
    char text[512];
    fth_status status = fth_texts_create(&names, s->mem, err);
    for (int64_t i = 0; status == FTH_OK && i < s->counts.cols; i++) {
        const char *name = fth_texts_get(s->genes, i);
        if (s->left_out[i]) {
            snprintf(text, sizeof text, "%.200s: %.200s", fth_texts_get(types, i), name);
            name = text;
        }
        status = fth_texts_add(names, name, strlen(name), err);
    }
    if (status != FTH_OK) {
        fth_texts_free(names);
        return status;
    }
    fth_texts_free(s->genes);
    s->genes = names;
    return FTH_OK;
}

fth_status sp_features_choose(sp_source *s, const fth_texts *types, fth_err *err)
{
    const int64_t n = s->counts.cols;
    int64_t out = 0;
    void *block = NULL;
    char text[400];
    if (fth_texts_count(types) != n)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: %" PRId64 " types of features where the matrix has %" PRId64, s->path,
                        fth_texts_count(types), n);
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n, "features left out", &block, err));
    s->left_out = block;
    for (int64_t i = 0; i < n; i++)
        out += s->left_out[i] = !is_wanted(s->cfg, fth_texts_get(types, i));
    if (out == n) return no_features(s, types, err);
    if (out == 0) return FTH_OK;
    sp_tenx_tally(types, s->left_out, text, sizeof text);
    if (s->call)
        fth_stage_say(s->call,
                      "note: left out %s; preprocessing.feature_types says which features are "
                      "taken, [all] takes them all",
                      text);
    return prefix_left_out(s, types, err);
}

/* A list beside counts that are text: features.tsv, before version 3 genes.tsv, barcodes.tsv. */
static fth_status read_list(sp_source *s, const char *one, const char *other, int column,
                            bool optional, fth_texts **out, fth_err *err)
{
    char path[FTH_PATH];
    const bool is_cells = strcmp(one, "barcodes.tsv") == 0;
    const int64_t n = is_cells ? s->counts.rows : s->counts.cols;
    if (!sp_mtx_file(s->files.counts, one, path) &&
        !(other && sp_mtx_file(s->files.counts, other, path)))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there is no %s.gz in this folder",
                        s->files.counts, one);
    FTH_TRY(sp_mtx_names(s->mem, path, column, optional, out, err));
    if (!*out || fth_texts_count(*out) == n) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %" PRId64 " names where the matrix has %" PRId64,
                    path, fth_texts_count(*out), n);
}

static fth_status choose_features(sp_source *s, fth_err *err)
{
    fth_texts *types = NULL;
    if (s->files.text)
        FTH_TRY(read_list(s, "features.tsv", "genes.tsv", 2, true, &types, err));
    else
        FTH_TRY(sp_tenx_types(s->h5ad.h5, s->obsm, &types, err));
    const fth_status status = types ? sp_features_choose(s, types, err) : FTH_OK;
    fth_texts_free(types);
    return status;
}

/* ---- positions ---- */

bool sp_tenx_table(const char *file, char path[FTH_PATH])
{
    static const char *const names[] = {"tissue_positions.csv", "tissue_positions_list.csv",
                                        "spatial/tissue_positions.csv",
                                        "spatial/tissue_positions_list.csv"};
    const char *slash = strrchr(file, '/');
    const int dir = slash ? (int)(slash - file) + 1 : 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (snprintf(path, FTH_PATH, "%.*s%s", dir, file, names[i]) < FTH_PATH &&
            fth_path_is_readable(path))
            return true;
    return false;
}

static fth_status find_table(const sp_source *s, char path[FTH_PATH], fth_err *err)
{
    if (fth_config_has(s->cfg, "preprocessing.positions_path")) {
        snprintf(path, FTH_PATH, "%s", fth_config_text(s->cfg, "preprocessing.positions_path"));
        return FTH_OK;
    }
    if (sp_tenx_table(s->path, path)) return FTH_OK;
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_OPEN, "there is no tissue_positions.csv beside %s", s->path);
    fth_err_hint(err, "name the table of positions with preprocessing.positions_path");
    return status;
}

typedef struct spot {
    const char *barcode;
    int64_t row; /* of the table */
} spot;

static int by_barcode(const void *a, const void *b)
{
    return strcmp(((const spot *)a)->barcode, ((const spot *)b)->barcode);
}

/* A number of the table; false: it is none. */
static bool read_number(const char *text, float *out)
{
    char *end = NULL;
    *out = strtof(text, &end);
    return end != text && *end == '\0';
}

/* x is the column of the image, y its row, as other readers have it. */
static fth_status match(sp_source *s, const fth_csv *t, spot *list, int64_t n, fth_err *err)
{
    qsort(list, (size_t)n, sizeof *list, by_barcode);
    for (int64_t i = 0; i < s->counts.rows; i++) {
        const spot want = {.barcode = fth_texts_get(s->cells, i)};
        const spot *found = bsearch(&want, list, (size_t)n, sizeof *list, by_barcode);
        if (!found)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: it has no spot '%s', which %s has",
                            t->path, want.barcode, s->path);
        if (!read_number(fth_csv_get(t, found->row, PIXEL_COLUMN), &s->xy[2 * i]) ||
            !read_number(fth_csv_get(t, found->row, PIXEL_ROW), &s->xy[2 * i + 1]))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: row %" PRId64 " has no position", t->path,
                            found->row + 1);
    }
    return FTH_OK;
}

static fth_status read_table(sp_source *s, const char *path, fth_err *err)
{
    fth_csv t;
    void *list = NULL;
    FTH_TRY(fth_csv_read(&t, s->mem, path, err));
    snprintf(s->where, sizeof s->where, "%.200s", path);
    fth_status status = FTH_OK;
    if (t.width < FIELDS)
        status = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                          "%s: a table of positions has %d columns, this has %" PRId64, path,
                          (int)FIELDS, t.width);
    if (status == FTH_OK)
        status = fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)t.rows * sizeof(spot),
                              "spots by barcode", &list, err);
    if (status == FTH_OK) {
        const int64_t head = strcmp(fth_csv_get(&t, 0, 0), "barcode") == 0;
        spot *spots = list;
        for (int64_t i = head; i < t.rows; i++) spots[i - head] = (spot){fth_csv_get(&t, i, 0), i};
        status = match(s, &t, spots, t.rows - head, err);
    }
    (void)fth_mem_release(s->mem, list, NULL);
    fth_csv_free(&t);
    return status;
}

/* ---- a table of the vendor's folder, joined by name ---- */

typedef struct join {
    sp_source *s;
    spot *list; /* cells by barcode */
    bool *found;
    int64_t matched;
    bool some; /* not every cell has to have a row */
    struct wanted_labels {
        sp_labels *to;
        const char *key, *column; /* NULL: none is wanted */
        fth_texts *names;         /* different ones, in the order they came in */
    } labels[SP_PLACE_LABELS];
    char other[80]; /* a name of the table that is of no cell */
} join;

/* ---- labels of a table ---- */

/* The number of a label, which is new or not: there are few. */
enum { MOST_LABELS = 4096 };
static fth_status label_of(const join *j, const struct wanted_labels *w,
                           const struct sp_place_label *label, int32_t *code, fth_err *err)
{
    const int64_t n = fth_texts_count(w->names);
    for (int64_t k = 0; k < n; k++) {
        const char *text = fth_texts_get(w->names, k);
        if (strncmp(text, label->text, label->bytes) == 0 && text[label->bytes] == '\0') {
            *code = (int32_t)k;
            return FTH_OK;
        }
    }
    if (n == MOST_LABELS) {
        const fth_status s =
            FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: column '%s' has more than %d different values",
                     j->s->files.places, w->column, (int)MOST_LABELS);
        fth_err_hint(err, "%s names a column of %s", w->key,
                     w->to == &j->s->group ? "cell types" : "tissue sections");
        return s;
    }
    *code = (int32_t)n;
    return fth_texts_add(w->names, label->text, label->bytes, err);
}

/* In the order that labels have elsewhere, without those that are missing. */
static fth_status sort_labels(const struct wanted_labels *w, fth_err *err)
{
    const int64_t n = fth_texts_count(w->names);
    bool missing[MOST_LABELS];
    for (int64_t k = 0; k < n; k++) missing[k] = sp_name_is_missing(fth_texts_get(w->names, k));
    sp_labels l;
    FTH_TRY(sp_labels_of(&l, w->to->mem, w->names, missing, true, err));
    for (int64_t i = 0; i < w->to->n; i++)
        if (w->to->code[i] >= 0) w->to->code[i] = l.code[w->to->code[i]];
    w->to->names = l.names;
    l.names = NULL;
    sp_labels_free(&l);
    return FTH_OK;
}

/* ---- rows of the table ---- */

/* The order of strcmp for a name that is not terminated. */
static int compare(const sp_place *p, const char *barcode)
{
    const size_t n = strlen(barcode), least = p->bytes < n ? p->bytes : n;
    const int order = memcmp(p->name, barcode, least);
    return order ? order : (p->bytes > n) - (p->bytes < n);
}

static fth_status join_row(void *user, const sp_place *p, int64_t row, fth_err *err)
{
    join *j = user;
    sp_source *s = j->s;
    int64_t low = 0, high = s->counts.rows - 1;
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (compare(p, j->list[mid].barcode) > 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (compare(p, j->list[low].barcode) != 0) {
        if (!j->other[0])
            snprintf(j->other, sizeof j->other, "%.*s", p->bytes < 79 ? (int)p->bytes : 79,
                     p->name);
        return FTH_OK; /* of another part of the slide */
    }
    const int64_t i = j->list[low].row;
    if (j->found[i])
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: row %" PRId64 " repeats '%s'", s->files.places,
                        row, j->list[low].barcode);
    j->found[i] = true;
    j->matched++;
    s->xy[2 * i] = (float)p->x;
    s->xy[2 * i + 1] = (float)p->y;
    if (s->outside) s->outside[i] = !p->inside;
    for (int k = 0; k < SP_PLACE_LABELS; k++) {
        const struct wanted_labels *w = &j->labels[k];
        if (w->column) FTH_TRY(label_of(j, w, &p->label[k], &w->to->code[i], err));
    }
    return FTH_OK;
}

static fth_status not_joined(const join *j, fth_err *err)
{
    const sp_source *s = j->s;
    int64_t i = 0;
    while (j->found[i]) i++;
    if (j->matched > 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s has no row for %" PRId64 " of the %" PRId64
                        " barcodes of %s, '%s' for one",
                        s->files.places, s->counts.rows - j->matched, s->counts.rows,
                        s->files.counts, fth_texts_get(s->cells, i));
    const fth_status status = FTH_FAIL(
        err, FTH_E_FILE_FORMAT, "%s: none of its names is a barcode of %s: '%s' here, '%s' there",
        s->files.places, s->files.counts, j->other, fth_texts_get(s->cells, 0));
    fth_err_hint(err, "both have to be of the same sample and the same bin size");
    return status;
}

static fth_status join_table(join *j, fth_err *err)
{
    sp_source *s = j->s;
    const int64_t n = s->counts.rows;
    for (int64_t i = 0; i < n; i++) j->list[i] = (spot){fth_texts_get(s->cells, i), i};
    memset(j->found, 0, (size_t)n);
    qsort(j->list, (size_t)n, sizeof *j->list, by_barcode);
    for (int64_t i = 1; i < n; i++)
        if (by_barcode(&j->list[i - 1], &j->list[i]) == 0)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: the barcode '%s' is there twice",
                            s->files.counts, j->list[i].barcode);
    sp_places_how how = {.kind = s->loader->name};
    for (int k = 0; k < SP_PLACE_LABELS; k++) how.label[k] = j->labels[k].column;
    FTH_TRY(sp_places_read(s->mem, s->files.places, &how, join_row, j, err));
    if (j->matched < n && !(j->some && j->matched > 0)) return not_joined(j, err);
    for (int k = 0; k < SP_PLACE_LABELS; k++)
        if (j->labels[k].column) FTH_TRY(sort_labels(&j->labels[k], err));
    return FTH_OK;
}

/* Room for the labels of the columns that are asked for; a table of labels comes before this one,
 * and is that of both. */
static fth_status want_labels(join *j, fth_err *err)
{
    sp_source *s = j->s;
    const struct wanted_labels all[SP_PLACE_LABELS] = {
        [SP_PLACE_GROUP] = {.to = &s->group, .key = "preprocessing.group_column"},
        [SP_PLACE_SECTION] = {.to = &s->section, .key = "preprocessing.section_column"}};
    for (int k = 0; k < SP_PLACE_LABELS; k++) {
        struct wanted_labels *w = &j->labels[k];
        void *code = NULL;
        *w = all[k];
        if (!fth_config_has(s->cfg, w->key) || fth_config_has(s->cfg, "preprocessing.labels_path"))
            continue;
        FTH_TRY(
            fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->counts.rows * 4, "labels", &code, err));
        memset(code, 0xff, (size_t)s->counts.rows * 4); /* -1: missing */
        *w->to = (sp_labels){.mem = s->mem, .n = s->counts.rows, .code = code};
        FTH_TRY(fth_texts_create(&w->names, s->mem, err));
        w->column = fth_config_text(s->cfg, w->key);
    }
    return FTH_OK;
}

fth_status sp_places_join(sp_source *s, bool *placed, fth_err *err)
{
    const uint64_t n = (uint64_t)s->counts.rows;
    void *list = NULL, *found = placed, *outside = NULL;
    const bool tissue =
        s->loader->flags & SP_LOAD_TISSUE && fth_config_bool(s->cfg, "preprocessing.in_tissue");
    snprintf(s->where, sizeof s->where, "%.200s", s->files.places);
    fth_status status =
        fth_mem_take(s->mem, FTH_MEM_ANY, n * sizeof(spot), "spots by barcode", &list, err);
    if (status == FTH_OK && !placed)
        status = fth_mem_take(s->mem, FTH_MEM_ANY, n, "spots with a position", &found, err);
    if (status == FTH_OK && tissue)
        status = fth_mem_take(s->mem, FTH_MEM_ANY, n, "spots outside", &outside, err);
    s->outside = outside;
    join j = {.s = s, .list = list, .found = found, .some = placed != NULL};
    if (status == FTH_OK && s->loader->flags & SP_LOAD_TABLE) status = want_labels(&j, err);
    if (status == FTH_OK) status = join_table(&j, err);
    for (int k = 0; k < SP_PLACE_LABELS; k++) fth_texts_free(j.labels[k].names);
    if (!placed) (void)fth_mem_release(s->mem, found, NULL);
    (void)fth_mem_release(s->mem, list, NULL);
    return status;
}

/* ---- everything but the counts ---- */

static fth_status load_names(sp_source *s, fth_err *err)
{
    if (s->files.text) {
        FTH_TRY(read_list(s, "features.tsv", "genes.tsv", 1, false, &s->genes, err));
        FTH_TRY(choose_features(s, err));
        return read_list(s, "barcodes.tsv", NULL, 0, false, &s->cells, err);
    }
    FTH_TRY(read_names(s, "features/name", "gene_names", s->counts.cols, &s->genes, err));
    FTH_TRY(choose_features(s, err));
    return read_names(s, "barcodes", NULL, s->counts.rows, &s->cells, err);
}

fth_status sp_tenx_load(sp_source *s, fth_err *err)
{
    char path[FTH_PATH];
    void *block = NULL;
    const bool folder = s->loader->flags & SP_LOAD_FOLDER;
    FTH_TRY(load_names(s, err));
    if (!folder) FTH_TRY(find_table(s, path, err));
    FTH_TRY(
        fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->counts.rows * 8, "positions", &block, err));
    s->xy = block;
    return folder ? sp_places_join(s, NULL, err) : read_table(s, path, err);
}
