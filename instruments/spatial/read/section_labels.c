/* section_labels.c - of which section each cell of a source is, and which sections are taken. */
#include "loaders.h"

#include <inttypes.h>
#include <string.h>

#define COLUMN "preprocessing.section_column"
#define CHOSEN "preprocessing.sections"

bool sp_source_has_sections(const sp_source *s)
{
    return s->section.names || s->n_parts > 0 || fth_config_has(s->cfg, COLUMN);
}

static fth_status no_column(const sp_source *s, const char *column, fth_err *err)
{
    const fth_status status = FTH_FAIL(
        err, FTH_E_CONFIG,
        COLUMN " is '%s', but sections are not read from %s: they are a column of obs, of a table "
               "of labels, or of the table of cells of merscope and cosmx",
        column, s->path);
    fth_err_hint(err,
                 "name a CSV file that has the column, with rows in the order of the counts, with "
                 "preprocessing.labels_path; or give a folder for each section with "
                 "preprocessing.paths");
    return status;
}

fth_status sp_source_sections(sp_source *s, fth_err *err)
{
    if (!fth_config_has(s->cfg, COLUMN)) return FTH_OK; /* a folder of arrays has its own */
    const char *column = fth_config_text(s->cfg, COLUMN);
    bool found = false;
    if (s->loader->flags & SP_LOAD_TABLE && s->section.names)
        return FTH_OK; /* its table of cells */
    sp_labels_free(&s->section);
    FTH_TRY(sp_source_table_column(s, column, &s->section, &found, err));
    if (found) return FTH_OK;
    if (!sp_store_is_open(&s->h5ad.store) || s->loader->flags & SP_LOAD_TENX)
        return no_column(s, column, err);
    return sp_anndata_labels(&s->h5ad, "/obs", column, s->counts.rows, &s->section, err);
}

/* ---- which are taken ---- */

static int64_t find_name(const fth_texts *names, const char *name)
{
    for (int64_t i = 0; i < fth_texts_count(names); i++)
        if (strcmp(fth_texts_get(names, i), name) == 0) return i;
    return -1;
}

static fth_status unknown_section(const sp_source *s, const char *name, fth_err *err)
{
    char known[300] = "";
    size_t used = 0;
    for (int64_t i = 0; i < fth_texts_count(s->section.names) && used + 8 < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 fth_texts_get(s->section.names, i));
    const fth_status status = FTH_FAIL(
        err, FTH_E_FILE_KEY, "%s: no cell is of the section '%s' of " CHOSEN, s->path, name);
    fth_err_hint(err, "its sections are: %.280s", known);
    return status;
}

/* The names that are taken, in their order: those of the config, or all that have cells. */
static fth_status take_names(const sp_source *s, const int64_t *cells, fth_texts *to, fth_err *err)
{
    if (!fth_config_has(s->cfg, CHOSEN)) {
        for (int64_t i = 0; i < fth_texts_count(s->section.names); i++) {
            const char *name = fth_texts_get(s->section.names, i);
            if (cells[i] > 0 && !sp_name_is_missing(name))
                FTH_TRY(fth_texts_add(to, name, strlen(name), err));
        }
        return FTH_OK;
    }
    for (int64_t i = 0; i < fth_config_count(s->cfg, CHOSEN); i++) {
        const char *name = fth_config_text_at(s->cfg, CHOSEN, i);
        const int64_t at = find_name(s->section.names, name);
        if (at < 0 || cells[at] == 0) return unknown_section(s, name, err);
        FTH_TRY(fth_texts_add(to, name, strlen(name), err));
    }
    return FTH_OK;
}

static fth_status no_sections(const sp_source *s, fth_err *err)
{
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: no cell has a section in its column '%s'", s->path,
                 fth_config_has(s->cfg, COLUMN) ? fth_config_text(s->cfg, COLUMN) : SP_S);
    fth_err_hint(err, "name another column with " COLUMN "; 'fathom spatial info' lists them");
    return status;
}

/* Codes become places in `names`; cells of no section, or of one that is not taken, leave. */
static void renumber(sp_source *s, const fth_texts *names, int64_t *room)
{
    const int64_t had = fth_texts_count(s->section.names);
    for (int64_t i = 0; i < had; i++)
        room[i] = find_name(names, fth_texts_get(s->section.names, i));
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++) {
        int32_t *code = &s->section.code[s->row[i]];
        const bool missing =
            *code < 0 || sp_name_is_missing(fth_texts_get(s->section.names, *code));
        s->sectionless += missing;
        *code = missing ? -1 : (int32_t)room[*code];
        if (*code >= 0) s->row[n++] = s->row[i];
    }
    s->n = n;
}

fth_status sp_source_choose_sections(sp_source *s, fth_err *err)
{
    if (!s->section.names) return FTH_OK;
    const int64_t had = fth_texts_count(s->section.names);
    void *room = NULL;
    fth_texts *names = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, (uint64_t)(had > 0 ? had : 1) * sizeof(int64_t),
                         "cells of sections", &room, err));
    int64_t *cells = memset(room, 0, (size_t)had * sizeof *cells);
    for (int64_t i = 0; i < s->n; i++) {
        const int32_t code = s->section.code[s->row[i]];
        if (code >= 0) cells[code]++;
    }
    fth_status status = fth_texts_create(&names, s->mem, err);
    if (status == FTH_OK) status = take_names(s, cells, names, err);
    if (status == FTH_OK && fth_texts_count(names) == 0) status = no_sections(s, err);
    if (status == FTH_OK) {
        renumber(s, names, cells);
        fth_texts_free(s->section.names);
        s->section.names = names;
        names = NULL;
    }
    fth_texts_free(names);
    (void)fth_mem_release(s->mem, room, NULL);
    return status;
}
