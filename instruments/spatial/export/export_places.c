/* export_places.c - maps cells and genes of a preprocessed folder to their source.
 *
 * Preprocessing drops and reorders. Its folder may record which rows it kept; else names are
 * matched: cell names are the index of obs, gene names were made unique in the order of the file.
 */
#include "../data/metadata.h"
#include "../read/anndata.h"
#include "export.h"

#include <string.h>

/* ---- names ---- */

static uint64_t hash_of(const char *text)
{
    return fth_hash_bytes(text, strlen(text), 0);
}

/* The hash slot of a name, or the free one for it. */
static int64_t slot_of(const int64_t *slot, int64_t slots, const fth_texts *have, const char *name)
{
    int64_t i = (int64_t)(hash_of(name) % (uint64_t)slots);
    while (slot[i] >= 0 && strcmp(fth_texts_get(have, slot[i]), name) != 0) i = (i + 1) % slots;
    return i;
}

fth_status sp_names_match(int64_t *place, fth_mem *mem, const fth_texts *want,
                          const fth_texts *have, int64_t *found, fth_err *err)
{
    const int64_t n = fth_texts_count(want), m = fth_texts_count(have), slots = 2 * m + 1;
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)slots * sizeof(int64_t), "names", &block, err));
    int64_t *slot = block;
    fth_status s = FTH_OK;
    for (int64_t i = 0; i < slots; i++) slot[i] = -1;
    for (int64_t i = 0; s == FTH_OK && i < m; i++) {
        const int64_t at = slot_of(slot, slots, have, fth_texts_get(have, i));
        if (slot[at] >= 0)
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "'%s' is the name of two rows, %lld and %lld",
                         fth_texts_get(have, i), (long long)slot[at], (long long)i);
        slot[at] = i;
    }
    *found = 0;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        place[i] = slot[slot_of(slot, slots, have, fth_texts_get(want, i))];
        *found += place[i] >= 0;
    }
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

/* ---- cells ---- */

static fth_status take(fth_mem *mem, int64_t n, int64_t **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof **out, "places", &block, err));
    *out = block;
    for (int64_t i = 0; i < n; i++) (*out)[i] = -1;
    return FTH_OK;
}

/* A rows.npy that was changed, or of other cells, would assign results to the wrong cells. */
static fth_status wrong_rows(const sp_data *data, const char *what, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s/%s: %s", data->dir, SP_ROWS, what);
    fth_err_hint(err, "preprocess again with --force, or bring back the file that it wrote");
    return FTH_E_FILE_FORMAT;
}

/* Its hash is that of preprocessing, and the cells of these rows have the names of the folder. */
static fth_status check_rows(fth_mem *mem, const sp_data *data, const int64_t *row,
                             const fth_texts *names, fth_err *err)
{
    char path[FTH_PATH], text[400];
    fth_json *doc = NULL;
    FTH_TRY(fth_path_join(path, data->dir, SP_METADATA, err));
    FTH_TRY(sp_metadata_member(&doc, mem, path, "fathom", err));
    const fth_json_value *own = doc ? fth_json_root(doc) : NULL;
    const uint64_t is = fth_hash_bytes(row, (size_t)data->rows * sizeof *row, 0),
                   was = fth_json_get_hash(own, "rows_xxh64", is);
    fth_json_destroy(doc);
    if (is != was)
        return wrong_rows(data, "it was changed after preprocessing wrote it: its hash differs",
                          err);
    for (int64_t i = 0; data->cell_names && i < data->rows; i++) {
        const char *here = fth_texts_get(data->cell_names, i),
                   *there = fth_texts_get(names, row[i]);
        if (strcmp(here, there) == 0) continue;
        snprintf(text, sizeof text, "cell %lld, '%.80s', would be row %lld of the file, '%.80s'",
                 (long long)i, here, (long long)row[i], there);
        return wrong_rows(data, text, err);
    }
    return FTH_OK;
}

/* Row numbers kept by preprocessing, in the order of the folder; *out NULL: not recorded. */
static fth_status read_kept(fth_mem *mem, const sp_data *data, const char *name, int64_t n,
                            int64_t below, fth_tensor **out, fth_err *err)
{
    char path[FTH_PATH];
    fth_source file;
    *out = NULL;
    FTH_TRY(fth_path_join(path, data->dir, name, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_npy_open(&file, mem, path, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 1 || file.dtype != FTH_I64 || file.size[0] != n)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: i64 [%lld] was expected", path, (long long)n);
    if (s == FTH_OK) s = fth_source_load(&file, mem, "kept", out, err);
    fth_source_close(&file);
    const int64_t *v = *out ? fth_tensor_data(*out) : NULL;
    for (int64_t i = 0; s == FTH_OK && i < n; i++)
        if (v[i] < 0 || v[i] >= below)
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %lld is not a row of %lld", path,
                         (long long)v[i], (long long)below);
    if (s == FTH_OK) return s;
    fth_tensor_release(*out);
    *out = NULL;
    return s;
}

/* Lengths of the frames of a file. */
static fth_status frame_length(const sp_anndata *a, const char *frame, int64_t *n,
                               fth_texts **names, fth_err *err)
{
    FTH_TRY(sp_anndata_names(a, frame, -1, names, err));
    *n = fth_texts_count(*names);
    return FTH_OK;
}

static fth_status match_cells(sp_places *p, const sp_anndata *a, const sp_data *data,
                              const fth_texts *names, fth_err *err)
{
    int64_t found = 0, *place = NULL;
    if (!data->cell_names) {
        if (data->rows == p->rows) { /* nothing was dropped */
            for (int64_t i = 0; i < p->rows; i++) p->cell[i] = i;
            return FTH_OK;
        }
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "%s: its cells have no names, so that they cannot be found in %s",
                        data->dir, a->path);
    }
    FTH_TRY(take(p->mem, data->rows, &place, err));
    fth_status s = sp_names_match(place, p->mem, data->cell_names, names, &found, err);
    if (s == FTH_OK && found != data->rows)
        s = FTH_FAIL(err, FTH_E_FILE_KEY, "%s has %lld of the %lld cells of %s", a->path,
                     (long long)found, (long long)data->rows, data->dir);
    for (int64_t i = 0; s == FTH_OK && i < data->rows; i++) p->cell[place[i]] = i;
    (void)fth_mem_release(p->mem, place, NULL);
    return s;
}

static fth_status find_cells(sp_places *p, const sp_anndata *a, const sp_data *data, fth_err *err)
{
    fth_texts *names = NULL;
    fth_tensor *kept = NULL;
    FTH_TRY(frame_length(a, "/obs", &p->rows, &names, err));
    fth_status s = take(p->mem, p->rows, &p->cell, err);
    if (s == FTH_OK) s = read_kept(p->mem, data, SP_ROWS, data->rows, p->rows, &kept, err);
    if (s == FTH_OK && !kept) s = match_cells(p, a, data, names, err);
    const int64_t *row = kept ? fth_tensor_data(kept) : NULL;
    if (s == FTH_OK && row) s = check_rows(p->mem, data, row, names, err);
    for (int64_t i = 0; s == FTH_OK && row && i < data->rows; i++) p->cell[row[i]] = i;
    fth_tensor_release(kept);
    fth_texts_free(names);
    return s;
}

/* ---- genes ---- */

static fth_status match_genes(const sp_anndata *a, const char *frame, const sp_data *data,
                              int64_t *n, int64_t **out, int64_t *found, fth_err *err)
{
    fth_texts *names = NULL;
    int64_t *place = NULL, changed = 0;
    FTH_TRY(frame_length(a, frame, n, &names, err));
    fth_status s = sp_names_unique(&names, a->mem, &changed, err);
    if (s == FTH_OK) s = take(a->mem, *n, out, err);
    if (s == FTH_OK) s = take(a->mem, data->size.genes, &place, err);
    if (s == FTH_OK) s = sp_names_match(place, a->mem, data->gene_names, names, found, err);
    for (int64_t i = 0; s == FTH_OK && i < data->size.genes; i++)
        if (place[i] >= 0) (*out)[place[i]] = i;
    (void)fth_mem_release(a->mem, place, NULL);
    fth_texts_free(names);
    return s;
}

static fth_status find_genes(sp_places *p, const sp_anndata *a, const sp_data *data, fth_err *err)
{
    int64_t found = 0, raw = 0;
    FTH_TRY(match_genes(a, "/var", data, &p->genes, &p->gene, &found, err));
    if (fth_h5_kind_of(a->h5, "/raw/var") != FTH_H5_NONE)
        FTH_TRY(match_genes(a, "/raw/var", data, &p->raw_genes, &p->raw_gene, &raw, err));
    if (found == data->size.genes || raw == data->size.genes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s has %lld of the %lld genes of %s", a->path,
                    (long long)(found > raw ? found : raw), (long long)data->size.genes, data->dir);
}

fth_status sp_places_find(sp_places *p, fth_mem *mem, const char *path, const sp_data *data,
                          fth_err *err)
{
    sp_anndata a;
    *p = (sp_places){.mem = mem};
    FTH_TRY(sp_anndata_open(&a, mem, path, err));
    fth_status s = find_cells(p, &a, data, err);
    if (s == FTH_OK) s = find_genes(p, &a, data, err);
    if (s == FTH_E_FILE_KEY)
        fth_err_hint(err, "is it the file that was preprocessed? If so, preprocess it again");
    sp_anndata_close(&a);
    if (s != FTH_OK) sp_places_clear(p);
    return s;
}

void sp_places_clear(sp_places *p)
{
    if (!p->mem) return;
    (void)fth_mem_release(p->mem, p->cell, NULL);
    (void)fth_mem_release(p->mem, p->gene, NULL);
    (void)fth_mem_release(p->mem, p->raw_gene, NULL);
    *p = (sp_places){0};
}
