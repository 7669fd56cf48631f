/* several.c - several files as one source: a section each, with the genes that all of them have.
 *
 * Every file is a source of its own. Joined, their rows follow each other, and the columns are
 * those of the first file, of which the ones that another file lacks are left out. Files of one
 * vendor repeat the names of cells, so each has its section behind it: "AAAC-1-young". One file is
 * allowed: it is one section.
 */
#include "loaders.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PATHS "preprocessing.paths"
#define NAMES "preprocessing.sections"

bool sp_source_is_several(const fth_config *cfg)
{
    return fth_config_has(cfg, PATHS);
}

/* ---- opening ---- */

enum { MOST = 1000 };

/* The same file twice would be two sections of the same cells; a symbolic link is the same file. */
static fth_status check_paths(const fth_config *cfg, int64_t n, fth_err *err)
{
    uint64_t hash[MOST]; /* of 1000 paths, so that each is resolved once */
    char real[PATH_MAX], other[PATH_MAX];
    for (int64_t i = 0; i < n; i++) {
        const char *path = fth_config_text_at(cfg, PATHS, i);
        const bool found = realpath(path, real); /* if not, opening it says why */
        hash[i] = found ? fth_hash_bytes(real, strlen(real), 0) : 0;
        for (int64_t k = 0; k < i && found; k++) {
            if (hash[k] != hash[i] || !realpath(fth_config_text_at(cfg, PATHS, k), other) ||
                strcmp(other, real) != 0)
                continue;
            const fth_status status = FTH_FAIL(
                err, FTH_E_CONFIG, PATHS ": %s is the same as %s, which is listed before it", path,
                fth_config_text_at(cfg, PATHS, k));
            fth_err_hint(err, "list every file once: each is a section of its own");
            return status;
        }
    }
    return FTH_OK;
}

fth_status sp_several_open(sp_source *s, fth_err *err)
{
    const int64_t n = fth_config_count(s->cfg, PATHS);
    sp_matrix *counts[MOST];
    void *block = NULL;
    if (n > MOST) return FTH_FAIL(err, FTH_E_CONFIG, PATHS ": at most %d files", MOST);
    FTH_TRY(check_paths(s->cfg, n, err));
    FTH_TRY(
        fth_mem_take(s->mem, FTH_MEM_META, (uint64_t)n * sizeof *s->part, "files", &block, err));
    s->part = memset(block, 0, (size_t)n * sizeof *s->part);
    s->n_parts = n;
    for (int64_t i = 0; i < n; i++) {
        FTH_TRY(sp_source_open_at(&s->part[i], s->mem, s->cfg, s->call,
                                  fth_config_text_at(s->cfg, PATHS, i), err));
        counts[i] = &s->part[i].counts;
    }
    s->path = s->part[0].path;
    return sp_joined_open(&s->counts, s->mem, counts, n, err);
}

void sp_several_close(sp_source *s)
{
    for (int64_t i = 0; i < s->n_parts; i++) {
        if (s->columns) (void)fth_mem_release(s->mem, s->columns[i], NULL);
        sp_source_close(&s->part[i]);
    }
    if (!s->mem) return;
    (void)fth_mem_release(s->mem, s->columns, NULL);
    (void)fth_mem_release(s->mem, s->part, NULL);
}

/* ---- genes ---- */

typedef struct named {
    const char *name;
    int32_t at;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* Which gene of the first file each gene of part i is; those that it lacks are left out. */
static fth_status match_genes(sp_source *s, int64_t i, const named *first, fth_err *err)
{
    const sp_source *p = &s->part[i];
    const int64_t n = p->counts.cols, d = s->counts.cols;
    void *block = NULL, *there = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)n * 4, "genes of a file", &block, err));
    s->columns[i] = block;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)d, "genes found", &there, err));
    bool *found = memset(there, 0, (size_t)d);
    for (int64_t g = 0; g < n; g++) {
        const named key = {.name = fth_texts_get(p->genes, g)};
        const named *at = p->left_out && p->left_out[g]
                              ? NULL
                              : bsearch(&key, first, (size_t)d, sizeof *first, by_name);
        s->columns[i][g] = at ? at->at : -1;
        if (at) found[at->at] = true;
    }
    for (int64_t g = 0; g < d; g++) s->left_out[g] = s->left_out[g] || !found[g];
    (void)fth_mem_release(s->mem, there, NULL);
    sp_joined_columns(&s->counts, i, s->columns[i]);
    return FTH_OK;
}

static void tell_genes(const sp_source *s, int64_t common)
{
    for (int64_t i = 0; s->call && i < s->n_parts; i++) {
        int64_t had = 0;
        for (int64_t g = 0; g < s->part[i].counts.cols; g++)
            had += !(s->part[i].left_out && s->part[i].left_out[g]);
        if (had > common)
            fth_stage_say(s->call,
                          "note: %s: %" PRId64 " of its %" PRId64
                          " genes are not in all files and are left out",
                          s->part[i].path, had - common, had);
    }
}

static fth_status no_gene(const sp_source *s, int64_t i, fth_err *err)
{
    const fth_status status =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s has no gene that all files before it have: its first is '%s', that of %s '%s'",
                 s->part[i].path, fth_texts_get(s->part[i].genes, 0), s->part[0].path,
                 fth_texts_get(s->genes, 0));
    fth_err_hint(err, "files of " PATHS " name their genes alike: all by symbols, or all by "
                      "identifiers");
    return status;
}

static fth_status join_genes(sp_source *s, fth_err *err)
{
    const int64_t d = s->counts.cols;
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)d, "genes left out", &block, err));
    s->left_out = block;
    for (int64_t g = 0; g < d; g++) s->left_out[g] = s->part[0].left_out && s->part[0].left_out[g];
    s->genes = s->part[0].genes;
    s->part[0].genes = NULL;
    const uint64_t columns = (uint64_t)s->n_parts * sizeof *s->columns;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, columns, "genes of files", &block, err));
    s->columns = memset(block, 0, (size_t)columns);
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)d * sizeof(named), "genes sorted", &block,
                         err));
    named *first = block;
    for (int64_t g = 0; g < d; g++) first[g] = (named){fth_texts_get(s->genes, g), (int32_t)g};
    qsort(first, (size_t)d, sizeof *first, by_name);
    fth_status status = FTH_OK;
    int64_t common = 0;
    for (int64_t i = 0; status == FTH_OK && i < s->n_parts; i++) {
        if (i > 0) status = match_genes(s, i, first, err);
        common = 0;
        for (int64_t g = 0; status == FTH_OK && g < d; g++) common += !s->left_out[g];
        if (status == FTH_OK && common == 0) status = no_gene(s, i, err);
    }
    (void)fth_mem_release(s->mem, block, NULL);
    if (status == FTH_OK) tell_genes(s, common);
    return status;
}

/* ---- cells ---- */

static int64_t place_of(const fth_texts *names, const char *name)
{
    for (int64_t i = 0; i < fth_texts_count(names); i++)
        if (strcmp(fth_texts_get(names, i), name) == 0) return i;
    return -1;
}

/* "NAME-SECTION" of every cell, as anndata.concat with index_unique="-" has it. Those of the files
 * go as they are taken. What is the same even so, as a file that repeats its own names has it, gets
 * a number. */
static fth_status join_names(sp_source *s, fth_err *err)
{
    char name[SP_SOURCE_NAME];
    int64_t changed = 0;
    FTH_TRY(fth_texts_create(&s->cells, s->mem, err));
    for (int64_t i = 0; i < s->n_parts; i++) {
        fth_texts *of = s->part[i].cells;
        const char *section = fth_texts_get(s->section.names, i);
        for (int64_t k = 0; k < fth_texts_count(of); k++) {
            const char *own = fth_texts_get(of, k);
            const int n = snprintf(name, sizeof name, "%s-%s", own, section);
            if (n < 0 || (size_t)n >= sizeof name)
                return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                "%s: the name of cell %" PRId64 ", '%.60s...', is too long",
                                s->part[i].path, k, own);
            FTH_TRY(fth_texts_add(s->cells, name, (uint64_t)n, err));
        }
        fth_texts_free(of);
        s->part[i].cells = NULL;
    }
    FTH_TRY(sp_names_unique(&s->cells, s->mem, &changed, err));
    if (changed > 0 && s->call)
        fth_stage_say(s->call,
                      "note: %" PRId64 " cells had the name of another and got a numeric suffix",
                      changed);
    return FTH_OK;
}

/* Positions as the sources have them, names, and which rows are loaded. */
static fth_status join_cells(sp_source *s, fth_err *err)
{
    const uint64_t rows = (uint64_t)s->counts.rows;
    void *xy = NULL, *row = NULL;
    bool named_cells = true;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, rows * 8, "positions", &xy, err));
    s->xy = xy;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, rows * 8, "cells", &row, err));
    s->row = row;
    for (int64_t i = 0, first = 0; i < s->n_parts; first += s->part[i++].counts.rows) {
        const sp_source *p = &s->part[i];
        for (int64_t k = 0; k < 2 * p->counts.rows; k++)
            s->xy[2 * first + k] =
                p->frame.known ? (float)((double)p->xy[k] / p->frame.scale + p->frame.offset[k % 2])
                               : p->xy[k];
        for (int64_t k = 0; k < p->n; k++) s->row[s->n++] = first + p->row[k];
        s->dropped += p->dropped;
        s->renamed += p->renamed;
        named_cells = named_cells && p->cells;
    }
    snprintf(s->where, sizeof s->where, "%s", s->part[0].where);
    return named_cells ? join_names(s, err) : FTH_OK;
}

static fth_status labels_create(const sp_source *s, sp_labels *l, fth_err *err)
{
    void *code = NULL;
    l->mem = s->mem;
    l->n = s->counts.rows;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->counts.rows * 4, "labels", &code, err));
    l->code = code;
    return fth_texts_create(&l->names, s->mem, err);
}

/* Groups by name, in the order in which the files have them. */
static fth_status join_groups(sp_source *s, fth_err *err)
{
    for (int64_t i = 1; i < s->n_parts; i++)
        if (!s->part[i].group.names != !s->part[0].group.names) {
            const int64_t has = s->part[0].group.names ? 0 : i, lacks = i - has;
            const fth_status status =
                FTH_FAIL(err, FTH_E_FILE_KEY, "%s has a column of cell types, %s has none",
                         s->part[has].path, s->part[lacks].path);
            fth_err_hint(err, "name a column that all files have with preprocessing.group_column");
            return status;
        }
    if (!s->part[0].group.names) return FTH_OK;
    FTH_TRY(labels_create(s, &s->group, err));
    for (int64_t i = 0, first = 0; i < s->n_parts; first += s->part[i++].counts.rows) {
        const sp_labels *l = &s->part[i].group;
        void *block = NULL;
        const int64_t n = fth_texts_count(l->names);
        FTH_TRY(fth_mem_take(s->mem, FTH_MEM_META, (uint64_t)(n + 1) * 4, "groups", &block, err));
        int32_t *number = block;
        fth_status status = FTH_OK;
        for (int64_t g = 0; status == FTH_OK && g < n; g++) {
            const char *name = fth_texts_get(l->names, g);
            const int64_t at = place_of(s->group.names, name);
            number[g] = (int32_t)(at < 0 ? fth_texts_count(s->group.names) : at);
            if (at < 0) status = fth_texts_add(s->group.names, name, strlen(name), err);
        }
        for (int64_t k = 0; status == FTH_OK && k < s->part[i].counts.rows; k++)
            s->group.code[first + k] = l->code[k] < 0 ? -1 : number[l->code[k]];
        (void)fth_mem_release(s->mem, block, NULL);
        FTH_TRY(status);
    }
    return FTH_OK;
}

/* "tissue" of "data/tissue.h5ad", and of a folder. */
static void stem_of(const char *path, char stem[FTH_PATH])
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') start--;
    snprintf(stem, FTH_PATH, "%.*s", (int)(end - start), path + start);
    char *dot = strrchr(stem, '.');
    if (dot && dot != stem) *dot = '\0';
}

static void section_of(const sp_source *s, int64_t i, char name[FTH_PATH])
{
    if (fth_config_has(s->cfg, NAMES))
        snprintf(name, FTH_PATH, "%s", fth_config_text_at(s->cfg, NAMES, i));
    else
        stem_of(s->part[i].path, name);
}

/* A file is a section. */
static fth_status join_sections(sp_source *s, fth_err *err)
{
    FTH_TRY(labels_create(s, &s->section, err));
    for (int64_t i = 0, first = 0; i < s->n_parts; first += s->part[i++].counts.rows) {
        char name[FTH_PATH];
        section_of(s, i, name);
        const int64_t same = place_of(s->section.names, name);
        if (same >= 0) {
            const fth_status status =
                FTH_FAIL(err, FTH_E_CONFIG, "%s and %s would both be the section '%s'",
                         s->part[same].path, s->part[i].path, name);
            fth_err_hint(err, "name the files in their order with " NAMES ": [A, B]");
            return status;
        }
        if (s->part[i].section.names) {
            const fth_status status = FTH_FAIL(
                err, FTH_E_CONFIG, "%s has sections of its own; a file of " PATHS " is one section",
                s->part[i].path);
            fth_err_hint(err, "give it alone, with preprocessing.path");
            return status;
        }
        FTH_TRY(fth_texts_add(s->section.names, name, strlen(name), err));
        for (int64_t k = 0; k < s->part[i].counts.rows; k++)
            s->section.code[first + k] = (int32_t)i;
    }
    return FTH_OK;
}

fth_status sp_several_load(sp_source *s, fth_err *err)
{
    for (int64_t i = 0; i < s->n_parts; i++) FTH_TRY(sp_source_load(&s->part[i], err));
    FTH_TRY(join_genes(s, err));
    FTH_TRY(join_sections(s, err)); /* names of cells have theirs */
    FTH_TRY(join_cells(s, err));
    return join_groups(s, err);
}

uint64_t sp_several_name_bytes(const sp_source *s)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < s->n_parts; i++) {
        char section[FTH_PATH];
        section_of(s, i, section);
        /* in the joined list, in that of unique names, and once while these are made; lists double
         * as they grow */
        bytes += (uint64_t)s->part[i].counts.rows * 5 * (strlen(section) + 1);
    }
    return bytes + sp_names_unique_bytes(s->counts.rows);
}

fth_status sp_several_groups(sp_source *s, int64_t *groups, fth_err *err)
{
    *groups = 0;
    for (int64_t i = 0; i < s->n_parts; i++) {
        int64_t n = 0;
        FTH_TRY(sp_source_groups(&s->part[i], &n, err));
        *groups += n;
    }
    return FTH_OK;
}
