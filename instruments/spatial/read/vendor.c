/* vendor.c - which files a folder of MERSCOPE or CosMx has, and which features are genes. */
#include "vendor.h"
#include "loaders.h"

#include <inttypes.h>
#include <string.h>

enum { CONTROLS = 5 };
typedef struct vendor {
    const char *name, *title;
    const char *counts, *cells; /* part of the names of the two tables */
    struct {
        const char *start, *type;
    } control[CONTROLS]; /* names of features that are no genes start so */
} vendor;

static const vendor vendors[] = {{"merscope",
                                  "an output folder of MERSCOPE",
                                  "cell_by_gene",
                                  "cell_metadata",
                                  {{"Blank", "Blank"}, {"blank", "Blank"}}},
                                 {"cosmx",
                                  "an output folder of CosMx",
                                  "exprMat_file",
                                  "metadata_file",
                                  {{"Negative", "Negative"},
                                   {"NegPrb", "Negative"},
                                   {"SystemControl", "SystemControl"},
                                   {"FalseCode", "SystemControl"}}}};
enum { VENDORS = sizeof vendors / sizeof vendors[0] };

static const vendor *vendor_of(const char *name)
{
    for (int i = 0; i < VENDORS; i++)
        if (strcmp(vendors[i].name, name) == 0) return &vendors[i];
    return NULL;
}

bool sp_vendor_is(const char *kind)
{
    return vendor_of(kind) != NULL;
}

const char *sp_vendor_title(const char *kind)
{
    const vendor *v = vendor_of(kind);
    return v ? v->title : "";
}

/* ---- files ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

enum { LISTED = 300 };
/* "A_exprMat_file.csv and B_exprMat_file.csv"; of many, the first ones. */
static void add_listed(char listed[LISTED], const char *name)
{
    const size_t used = strlen(listed), n = strlen(name);
    if (used + n + 12 < LISTED)
        snprintf(listed + used, LISTED - used, "%s%s", used ? ", " : "", name);
    else if (used + 5 < LISTED && strcmp(listed + used - 3, "...") != 0)
        snprintf(listed + used, LISTED - used, ", ...");
}

/* The one file whose name has `part` in it: NAME.csv itself first, then others; `several` lists
 * those that are as good, where it is not one. */
static bool find_part(const fth_texts *names, const char *part, bool parquet, char name[256],
                      char several[LISTED])
{
    static const char *const ends[] = {".csv", ".csv.gz", ".parquet"};
    char exact[64];
    several[0] = '\0';
    for (int k = 0; k < 2 + parquet; k++) {
        snprintf(exact, sizeof exact, "%.40s%s", part, ends[k]);
        for (int64_t i = 0; i < fth_texts_count(names); i++)
            if (strcmp(fth_texts_get(names, i), exact) == 0) {
                snprintf(name, 256, "%s", exact);
                return true;
            }
    }
    int64_t found = 0;
    for (int k = 0; k < 2 + parquet && found == 0; k++)
        for (int64_t i = 0; i < fth_texts_count(names); i++) {
            const char *text = fth_texts_get(names, i);
            if (text[0] == '.' || !strstr(text, part) || !ends_with(text, ends[k])) continue;
            found++;
            add_listed(several, text);
            snprintf(name, 256, "%.250s", text);
        }
    return found == 1;
}

static fth_status not_found(const vendor *v, const char *dir, const char *part, const char *several,
                            const char *key, fth_err *err)
{
    const fth_status s =
        several[0]
            ? FTH_FAIL(err, FTH_E_FILE_OPEN,
                       "%s: there are several files like %s.csv in this folder: %s", dir, part,
                       several)
            : FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there is no %s.csv in this folder", dir, part);
    if (several[0])
        fth_err_hint(
            err, "put the files of each into a folder of its own, and name one folder with "
                 "preprocessing.path, or all of them, a section each, with preprocessing.paths");
    else if (!key[0])
        fth_err_hint(err, "preprocessing.path needs one region of %s",
                     v->title + strlen("an output folder of "));
    else
        fth_err_hint(err, "name the table of cells with %s", key);
    return s;
}

fth_status sp_vendor_files_find(sp_tenx_files *f, fth_mem *mem, const char *kind, const char *dir,
                                const char *table, fth_err *err)
{
    const vendor *v = vendor_of(kind);
    char name[256], several[LISTED];
    fth_texts *names = NULL;
    *f = (sp_tenx_files){.kind = v->name};
    if (fth_path_kind_of(dir) != FTH_PATH_FOLDER)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: expected %s, found %s", dir, v->title,
                        fth_path_exists(dir) ? "a file" : "nothing of that name");
    FTH_TRY(fth_folder_list(&names, mem, dir, err));
    fth_status s = find_part(names, v->counts, false, name, several)
                       ? fth_path_join(f->counts, dir, name, err)
                       : not_found(v, dir, v->counts, several, "", err);
    if (s == FTH_OK && table[0])
        snprintf(f->places, sizeof f->places, "%s", table);
    else if (s == FTH_OK)
        s = find_part(names, v->cells, true, name, several)
                ? fth_path_join(f->places, dir, name, err)
                : not_found(v, dir, v->cells, several, "preprocessing.positions_path", err);
    fth_texts_free(names);
    return s;
}

fth_status sp_vendor_files_guess(sp_tenx_files *f, fth_mem *mem, const char *dir, fth_err *err)
{
    fth_texts *names = NULL;
    char name[256], several[LISTED];
    for (int i = 0; i < VENDORS; i++)
        if (sp_vendor_files_find(f, mem, vendors[i].name, dir, "", NULL) == FTH_OK) return FTH_OK;
    *f = (sp_tenx_files){0};
    FTH_TRY(fth_folder_list(&names, mem, dir, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < VENDORS; i++)
        if (!find_part(names, vendors[i].counts, false, name, several) && several[0])
            s = not_found(&vendors[i], dir, vendors[i].counts, several, "", err);
    fth_texts_free(names);
    return s;
}

/* ---- features ---- */

fth_status sp_vendor_types(fth_mem *mem, const char *kind, const fth_texts *names, fth_texts **out,
                           fth_err *err)
{
    const vendor *v = vendor_of(kind);
    fth_texts *types = NULL;
    FTH_TRY(fth_texts_create(&types, mem, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        const char *name = fth_texts_get(names, i), *type = "Gene Expression";
        for (int k = 0; k < CONTROLS && v->control[k].start; k++)
            if (strncmp(name, v->control[k].start, strlen(v->control[k].start)) == 0)
                type = v->control[k].type;
        s = fth_texts_add(types, type, strlen(type), err);
    }
    if (s == FTH_OK)
        *out = types;
    else
        fth_texts_free(types);
    return s;
}

/* ---- a source ---- */

fth_status sp_vendor_open(sp_source *s, fth_err *err)
{
    static const char key[] = "preprocessing.positions_path";
    const char *table = fth_config_has(s->cfg, key) ? fth_config_text(s->cfg, key) : "";
    FTH_TRY(sp_vendor_files_find(&s->files, s->mem, s->loader->name, s->path, table, err));
    return sp_matrix_open_table(&s->counts, s->mem, s->files.counts,
                                strcmp(s->loader->name, "cosmx") == 0, err);
}

/* Cells that have a row in the table of cells and are not background. */
static fth_status keep_cells(sp_source *s, const bool *background, const bool *placed, fth_err *err)
{
    int64_t behind = 0, unplaced = 0;
    void *block = NULL;
    const int64_t n = s->counts.rows;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * 8, "cells", &block, err));
    s->row = block;
    s->n = 0;
    for (int64_t i = 0; i < n; i++)
        if (background[i])
            behind++;
        else if (!placed[i])
            unplaced++;
        else
            s->row[s->n++] = i;
    if (s->call && behind > 0)
        fth_stage_say(s->call, "note: left out %" PRId64 " rows of counts outside of cells",
                      behind);
    if (s->call && unplaced > 0)
        fth_stage_say(s->call, "note: left out %" PRId64 " cells without a row in %s", unplaced,
                      s->files.places);
    return s->n > 0 ? FTH_OK
                    : FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: all its rows are outside of cells",
                               s->files.counts);
}

fth_status sp_vendor_load(sp_source *s, fth_err *err)
{
    fth_texts *types = NULL;
    void *behind = NULL, *placed = NULL, *xy = NULL;
    const uint64_t n = (uint64_t)s->counts.rows;
    FTH_TRY(sp_table_genes(&s->counts, &s->genes, err));
    FTH_TRY(sp_vendor_types(s->mem, s->loader->name, s->genes, &types, err));
    fth_status status = sp_features_choose(s, types, err);
    fth_texts_free(types);
    FTH_TRY(status);
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, n * 8, "positions", &xy, err));
    s->xy = xy;
    status = fth_mem_take(s->mem, FTH_MEM_ANY, n, "rows outside of cells", &behind, err);
    if (status == FTH_OK)
        status = fth_mem_take(s->mem, FTH_MEM_ANY, n, "cells with a position", &placed, err);
    if (status == FTH_OK) status = sp_table_cells(&s->counts, &s->cells, behind, err);
    if (status == FTH_OK) status = sp_places_join(s, placed, err);
    if (status == FTH_OK) status = keep_cells(s, behind, placed, err);
    (void)fth_mem_release(s->mem, placed, NULL);
    (void)fth_mem_release(s->mem, behind, NULL);
    return status;
}
