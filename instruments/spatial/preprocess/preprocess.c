/* preprocess.c - the stage: from a source to a preprocessed folder (model 2). */
#include "preprocess.h"

#include "../data/data.h"
#include "../read/shapes.h"
#include "../read/vendor.h"
#include "tissue_store.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const fth_flag sp_preprocess_flags[] = {
    FTH_STAGE_FORCE,
    FTH_STAGE_REPLACE,
    {.name = "keep", .doc = "use the folder as it is, also when it was made with other settings"},
    {.name = NULL}};

/* ---- files ---- */

enum { ROWS = 4 /* rows.npy: its place in the list of outputs */ };
#define UNLIKE_EXTENTS 20.0 /* sections whose extents differ by more are told */

typedef struct inputs { /* of one file or folder of the config */
    fth_texts *paths;
    char store[FTH_PATH]; /* folder of Zarr; "": the source is something else */
    char level[FTH_PATH]; /* that of an image of its store; "": none is read */
} inputs;

static void inputs_clear(inputs *in)
{
    fth_texts_free(in->paths);
    *in = (inputs){0};
}

/* Files and folders of the config. */
static int64_t count_sources(const fth_config *cfg)
{
    return sp_source_is_several(cfg) ? fth_config_count(cfg, "preprocessing.paths") : 1;
}

static const char *source_at(const fth_config *cfg, int64_t i)
{
    return sp_source_is_several(cfg) ? fth_config_text_at(cfg, "preprocessing.paths", i)
                                     : sp_source_path(cfg);
}

static fth_status add_input(inputs *in, const char *dir, const char *name, bool optional,
                            fth_err *err)
{
    char path[FTH_PATH];
    if (dir)
        FTH_TRY(fth_path_join(path, dir, name, err));
    else if (snprintf(path, FTH_PATH, "%s", name) >= FTH_PATH)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path %.60s... is too long", name);
    return optional && !fth_path_exists(path) ? FTH_OK
                                              : fth_texts_add(in->paths, path, strlen(path), err);
}

/* Of an output folder. */
static fth_status list_folder(inputs *in, fth_mem *mem, const fth_config *cfg, const sp_loader *l,
                              const char *dir, fth_err *err)
{
    static const char *const texts[] = {"matrix.mtx", "features.tsv", "genes.tsv", "barcodes.tsv"};
    char path[FTH_PATH];
    sp_tenx_files f;
    const bool table = fth_config_has(cfg, "preprocessing.positions_path");
    const char *own = table ? fth_config_text(cfg, "preprocessing.positions_path") : "";
    const fth_status found = l->flags & SP_LOAD_TABLE
                                 ? sp_vendor_files_find(&f, mem, l->name, dir, own, err)
                                 : sp_tenx_files_find(&f, l->name, dir, own, err);
    if (found != FTH_OK && found != FTH_E_FILE_OPEN) return found;
    if (found != FTH_OK) { /* opening it says why */
        if (err) fth_err_clear(err);
        return fth_path_kind_of(dir) == FTH_PATH_FOLDER ? FTH_OK
                                                        : add_input(in, NULL, dir, false, err);
    }
    if (!f.text) FTH_TRY(add_input(in, NULL, f.counts, false, err));
    for (size_t i = 0; f.text && i < sizeof texts / sizeof texts[0]; i++)
        if (sp_mtx_file(f.counts, texts[i], path)) FTH_TRY(add_input(in, NULL, path, false, err));
    if (!table) FTH_TRY(add_input(in, NULL, f.places, false, err));
    sp_tenx_image image;
    FTH_TRY(sp_tenx_image_find(&image, mem, &f, dir, err));
    if (image.path[0]) FTH_TRY(add_input(in, NULL, image.path, false, err));
    return f.scale[0] ? add_input(in, NULL, f.scale, false, err) : FTH_OK;
}

/* The file of a Zarr group that was written last; the hash is of all files. */
static fth_status add_store(inputs *in, fth_mem *mem, const fth_config *cfg, const char *path,
                            fth_err *err)
{
    const char *const key = "preprocessing.table";
    FTH_TRY(sp_store_find(mem, path, fth_config_has(cfg, key) ? fth_config_text(cfg, key) : NULL,
                          in->store, err));
    FTH_TRY(add_input(in, in->store, "zarr.json", true, err));
    return fth_texts_count(in->paths) > 0 ? FTH_OK
                                          : add_input(in, in->store, ".zattrs", false, err);
}

/* The image of a store that is read, its description and the pixels of one level; what is wrong
 * with it is said when it is opened. */
static fth_status add_image(inputs *in, fth_mem *mem, const fth_config *cfg, fth_err *err)
{
    char root[FTH_PATH], name[256];
    sp_element_image image;
    fth_err failed = {0};
    if (!sp_tissue_store_has(in->store, root)) return FTH_OK;
    fth_status s = sp_tissue_store_choose(mem, cfg, root, false, name, &failed);
    if (s == FTH_OK && name[0])
        s = sp_element_image_find(&image, mem, root, name, SP_IMAGE_SIDE, &failed);
    if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) {
        if (err) *err = failed;
        return s;
    }
    if (s != FTH_OK || !name[0]) return FTH_OK;
    memcpy(in->level, image.level, sizeof in->level);
    s = add_input(in, image.folder, "zarr.json", true, err);
    if (s == FTH_OK) s = add_input(in, image.folder, ".zattrs", true, err);
    sp_element_image_clear(&image);
    return s;
}

/* Shapes of a store whose table has no positions. */
static fth_status add_shapes(inputs *in, fth_mem *mem, fth_err *err)
{
    char path[FTH_PATH], root[FTH_PATH], name[FTH_PATH];
    fth_texts *names = NULL;
    if (fth_path_join(path, in->store, "obsm/spatial", NULL) != FTH_OK || fth_path_exists(path) ||
        !sp_shapes_root(in->store, root) || fth_path_join(path, root, "shapes", NULL) != FTH_OK ||
        fth_path_kind_of(path) != FTH_PATH_FOLDER)
        return FTH_OK;
    FTH_TRY(fth_folder_list(&names, mem, path, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        s = fth_path_join(name, fth_texts_get(names, i), "shapes.parquet", err);
        if (s == FTH_OK) s = add_input(in, path, name, true, err);
    }
    fth_texts_free(names);
    return s;
}

/* Everything that is read: the file or the arrays of a folder, and tables beside. */
static fth_status list_inputs(inputs *in, fth_mem *mem, const fth_config *cfg, const char *file,
                              fth_err *err)
{
    static const char *const tables[] = {
        "preprocessing.labels_path", "preprocessing.positions_path", "preprocessing.genes_file"};
    const sp_loader *l = sp_loader_of(cfg);
    *in = (inputs){0};
    FTH_TRY(fth_texts_create(&in->paths, mem, err));
    if (file[0] && l && l->flags & SP_LOAD_ARRAYS) {
        FTH_TRY(add_input(in, file, SP_Y, false, err));
        FTH_TRY(add_input(in, file, SP_X, false, err));
        FTH_TRY(add_input(in, file, SP_C, true, err));
        FTH_TRY(add_input(in, file, SP_METADATA, true, err));
        FTH_TRY(add_input(in, file, SP_IMAGE, true, err));
        FTH_TRY(add_input(in, file, SP_IMAGE_NPY, true, err));
        FTH_TRY(add_input(in, file, SP_S, true, err));
    } else if (file[0] && l && l->flags & SP_LOAD_FOLDER) {
        FTH_TRY(list_folder(in, mem, cfg, l, file, err));
    } else if (file[0] && fth_path_kind_of(file) == FTH_PATH_FOLDER) {
        FTH_TRY(add_store(in, mem, cfg, file, err));
        if (l && l->flags & SP_LOAD_ZARR) FTH_TRY(add_shapes(in, mem, err));
        FTH_TRY(add_image(in, mem, cfg, err));
    } else if (file[0])
        FTH_TRY(add_input(in, NULL, file, false, err));
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (fth_config_has(cfg, tables[i]))
            FTH_TRY(add_input(in, NULL, fth_config_text(cfg, tables[i]), false, err));
    return FTH_OK;
}

/* Files are listed without a context too, when somebody only looks at a job. */
static fth_status list_call_inputs(fth_file_list *list, const fth_stage_call *call, fth_err *err)
{
    fth_mem *own = NULL;
    inputs in;
    if (!call->context) FTH_TRY(fth_mem_create(&own, NULL, err));
    fth_mem *mem = own ? own : fth_context_mem(call->context);
    fth_status s = FTH_OK;
    for (int64_t k = 0; s == FTH_OK && k < count_sources(call->config); k++) {
        s = list_inputs(&in, mem, call->config, source_at(call->config, k), err);
        for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(in.paths); i++)
            s = fth_file_list_add(list, FTH_FILE_INPUT, fth_texts_get(in.paths, i), NULL, err);
        inputs_clear(&in);
    }
    if (own) (void)fth_mem_destroy(own, NULL);
    return s;
}

static fth_status add_output(fth_file_list *list, const fth_stage_call *call, const char *name,
                             fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, call->output_dir, name, err));
    return fth_file_list_add(list, FTH_FILE_OUTPUT, path, NULL, err);
}

fth_status sp_preprocess_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const char *const outputs[] = {SP_PREPROCESSED "/" SP_X, SP_PREPROCESSED "/" SP_Y,
                                          SP_PREPROCESSED "/" SP_C, SP_PREPROCESSED "/" SP_METADATA,
                                          SP_PREPROCESSED "/" SP_ROWS};
    char path[FTH_PATH];
    FTH_TRY(list_call_inputs(list, call, err));
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        FTH_TRY(fth_path_join(path, call->output_dir, outputs[i], err));
        /* a folder that is kept may be from another program */
        if (i == ROWS && fth_stage_flag(call, "keep") && !fth_path_exists(path)) continue;
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, NULL, err));
    }
    if (fth_config_has(call->config, "preprocessing.section_column") ||
        sp_source_is_several(call->config))
        FTH_TRY(add_output(list, call, SP_PREPROCESSED "/" SP_S, err));
    if (!fth_config_has(call->config, "preprocessing.highly_variable")) return FTH_OK;
    FTH_TRY(fth_path_join(path, call->output_dir, SP_PREPROCESSED "/" SP_GENE_SELECTION, err));
    if (fth_stage_flag(call, "keep") && !fth_path_exists(path)) return FTH_OK;
    return fth_file_list_add(list, FTH_FILE_OUTPUT, path, NULL, err);
}

/* ---- what it takes ---- */

enum {
    BYTES_PER_CELL = 8 + 8 + 8 + 4 + 4, /* positions twice, the row, the group twice */
    BYTES_OF_SECTIONS = 4 + 4,          /* the section twice, where there are any */
    BYTES_TO_SORT = 4 + 8 + 24,         /* and of a column while it is made of categories */
    BYTES_PER_NAME = 64,
    CHUNKS = 8 << 20 /* of the small datasets of the source, one at a time */
};

static uint64_t file_bytes(const char *path)
{
    fth_path_info info;
    return fth_path_stat(path, &info, NULL) == FTH_OK ? info.bytes : 0;
}

/* Of rules that are not always there: genes by name, and sums of genes. */
static uint64_t rules_bytes(const sp_source *s)
{
    const sp_rules rules = sp_rules_of(s->cfg, s->loader);
    const uint64_t listed = rules.listed ? (uint64_t)s->counts.cols * 17 + FTH_READER_ROOM : 0;
    return listed + sp_variable_bytes(&rules, s->counts.cols);
}

/* One is in memory at a time; then the place of each. */
static uint64_t tissues_bytes(const sp_tissues *t)
{
    const uint64_t side = (uint64_t)t->side, most = side * side * 3;
    return (t->held < most ? t->held : most) + t->beside + (uint64_t)t->n * SP_WRITTEN_BYTES;
}

/* Everything but the counts and what they are read through. */
static uint64_t fixed_bytes(const sp_source *s, const sp_tissues *tissues)
{
    uint64_t parts = 0;
    for (int64_t i = 0; i < s->n_parts; i++) parts += fixed_bytes(&s->part[i], &(sp_tissues){0});
    const uint64_t n = (uint64_t)s->counts.rows, d = (uint64_t)s->counts.cols;
    uint64_t tables = 0;
    if (fth_config_has(s->cfg, "preprocessing.labels_path"))
        tables += 5 * file_bytes(fth_config_text(s->cfg, "preprocessing.labels_path")) + n * 9;
    if (s->loader->flags & SP_LOAD_TENX) tables += n * 512;
    /* a page and a dictionary of four columns, of a table of Parquet; else a buffer */
    const char *end = strrchr(s->files.places, '.');
    const bool packed =
        !(s->loader->flags & SP_LOAD_TABLE) || (end && strcmp(end, ".parquet") == 0);
    if (s->loader->flags & SP_LOAD_FOLDER)
        tables += (packed ? 8 * file_bytes(s->files.places) : 0) + (4 << 20);
    /* ids, and pages of shapes */
    if (sp_source_needs_shapes(s)) tables += n * (24 + BYTES_PER_NAME + 4) + (16 << 20);
    if (s->loader->flags & SP_LOAD_TABLE) tables += n * (16 + 1 + 1 + 8 + 4);
    if (s->loader->flags & SP_LOAD_ARRAYS) {
        char path[FTH_PATH];
        if (fth_path_join(path, s->path, SP_METADATA, NULL) == FTH_OK) tables += file_bytes(path);
    }
    if (s->loader->flags & SP_LOAD_ORDER) tables += n * (16 + 4 + 8);
    if (sp_source_has_sections(s) || s->loader->flags & SP_LOAD_ARRAYS)
        tables += n * BYTES_OF_SECTIONS;
    /* characters of the names: joined, unique and made; those of the files are gone by then */
    if (s->n_parts > 0) tables += sp_several_name_bytes(s) + 2 * n * BYTES_PER_NAME;
    const bool counted =
        s->counts.layout == SP_LAYOUT_COLUMNS || s->counts.layout == SP_LAYOUT_TEXT;
    const uint64_t csc = counted ? n * 8 + (4 << 18) : 0;
    return n * (BYTES_PER_CELL + BYTES_TO_SORT) + (n + d) * BYTES_PER_NAME + d * 128 + CHUNKS +
           csc + tables + sp_count_walk_bytes(s) + tissues_bytes(tissues) + rules_bytes(s) + parts;
}

static uint64_t free_bytes(const sp_source *s, const sp_tissues *tissues)
{
    fth_mem_stats stats;
    fth_mem_get_stats(s->mem, &stats);
    const uint64_t held = stats.used_bytes + fixed_bytes(s, tissues);
    return stats.budget_bytes > held ? (stats.budget_bytes - held) / 2 : 0;
}

fth_status sp_preprocess_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                              fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->context);
    fth_mem_stats before, after;
    sp_source s;
    sp_tissues tissues;
    int64_t rows, room;
    char bytes[3][24];
    fth_mem_get_stats(mem, &before);
    FTH_TRY(sp_source_open(&s, mem, call->config, NULL, err));
    const fth_status found = sp_tissues_find(&tissues, &s, err);
    if (found != FTH_OK) {
        sp_source_close(&s);
        return found;
    }
    fth_mem_get_stats(mem, &after);
    const uint64_t spare = free_bytes(&s, &tissues), fixed = fixed_bytes(&s, &tissues);
    sp_count_walk_block(&s, spare, &rows, &room);
    uint64_t block = sp_block_bytes(&s.counts, rows, room);
    if (s.loader->flags & SP_LOAD_ORDER) {
        const uint64_t all = (uint64_t)s.counts.entries * 8;
        block += all < spare ? all : spare;
    }
    const uint64_t opened = after.used_bytes - before.used_bytes;
    *out = (fth_stage_plan){.bound = true};
    (void)fth_stage_plan_hold(call, out, fixed + block,
                              1u << FTH_LIB_FATHOM | 1u << FTH_LIB_HDF5 | s.counts.libraries |
                                  tissues.libraries);
    const int passes = fth_config_has(call->config, "preprocessing.highly_variable") ? 5 : 3;
    out->seconds = 1 + 3e-8 * (double)s.counts.entries * passes + 2e-6 * (double)s.counts.rows;
    snprintf(out->text, sizeof out->text,
             "cell<=%" PRId64 ", gene<=%" PRId64 ", %" PRId64 " entries", s.counts.rows,
             s.counts.cols, s.counts.entries);
    if (show)
        fprintf(show, "  source %s, cells and names %s, block of counts %s\n",
                fth_mem_format_size(opened, bytes[0], sizeof bytes[0]),
                fth_mem_format_size(fixed, bytes[1], sizeof bytes[1]),
                fth_mem_format_size(block, bytes[2], sizeof bytes[2]));
    sp_tissues_close(&tissues);
    sp_source_close(&s);
    return FTH_OK;
}

/* ---- from the source to what is written ---- */

static void prepared_free(sp_prepared *p)
{
    fth_mem *mem = p->source.mem;
    sp_count_walk_end(&p->walk);
    sp_variable_free(&p->variable);
    if (mem) {
        (void)fth_mem_release(mem, p->cells.xy, NULL);
        (void)fth_mem_release(mem, p->cells.code, NULL);
        (void)fth_mem_release(mem, p->cells.section, NULL);
        (void)fth_mem_release(mem, p->group_map, NULL);
    }
    sp_tissues_close(&p->tissues);
    sp_sections_clear(&p->sections);
    sp_source_close(&p->source);
    *p = (sp_prepared){0};
}

/* Positions and groups of the cells that were loaded, in their order. */
static fth_status take_cells(sp_prepared *p, fth_err *err)
{
    sp_source *s = &p->source;
    sp_cells *c = &p->cells;
    void *block = NULL;
    *c = (sp_cells){.n = s->n, .row = s->row};
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)c->n * 8, "positions", &block, err));
    c->xy = block;
    if (s->group.names) {
        FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)c->n * 4, "groups", &block, err));
        c->code = block;
    }
    if (s->section.names) {
        FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)c->n * 4, "sections", &block, err));
        c->section = block;
        FTH_TRY(sp_sections_create(&p->sections, s->mem, s->section.names, err));
    }
    for (int64_t i = 0; i < c->n; i++) {
        memcpy(c->xy + 2 * i, s->xy + 2 * c->row[i], 2 * sizeof *c->xy);
        if (c->code) c->code[i] = s->group.code[c->row[i]];
        if (c->section) c->section[i] = s->section.code[c->row[i]];
    }
    return FTH_OK;
}

static fth_status none_passes(const sp_prepared *p, fth_err *err)
{
    const sp_rules *r = &p->rules;
    char share[80] = "";
    if (r->max_mt >= 0)
        snprintf(share, sizeof share, " of which less than %g %% are mitochondrial", r->max_mt);
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: no cell has %" PRId64 " counts%s%s",
                                  p->source.counts.label, r->min_counts, share,
                                  r->min_genes > 0 ? ", and enough genes" : "");
    fth_err_hint(err,
                 "lower preprocessing.min_counts%s%s, or name the raw counts with "
                 "preprocessing.counts",
                 r->min_genes > 0 ? " or min_genes" : "",
                 r->max_mt >= 0 ? ", raise max_mt_percent" : "");
    return s;
}

/* Cells that quality control passed (model 2.2). */
static fth_status control_quality(sp_prepared *p, fth_err *err)
{
    sp_cells *c = &p->cells;
    int64_t n = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const uint8_t low = p->walk.low[c->row[i]];
        if (low) {
            p->dropped[low - 1]++;
            continue;
        }
        sp_cells_move(c, i, n++);
    }
    c->n = n;
    return n > 0 ? FTH_OK : none_passes(p, err);
}

static fth_status no_cells(const sp_prepared *p, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: no cell is left: %" PRId64 " have no position, %" PRId64
                 " a missing count, %" PRId64 " no group, %" PRId64 " are of small groups",
                 p->source.path, p->dropped[SP_DROP_POSITION], p->dropped[SP_DROP_COUNT],
                 p->dropped[SP_DROP_LABEL], p->dropped[SP_DROP_GROUP]);
    fth_err_hint(err, "lower preprocessing.min_group_size or min_group_fraction, or name another "
                      "column of cell types");
    return s;
}

/* The filters of every dataset (model 2.4). */
static fth_status filter(sp_prepared *p, fth_err *err)
{
    const fth_config *cfg = p->source.cfg;
    sp_filter_missing(&p->cells, p->walk.bad, p->source.group.names, p->dropped);
    p->groups = 1;
    if (p->cells.n == 0) return no_cells(p, err);
    if (!p->cells.code) return FTH_OK;
    const int64_t groups = fth_texts_count(p->source.group.names);
    const int64_t threshold =
        fth_config_has(cfg, "preprocessing.min_group_fraction")
            ? sp_group_threshold(fth_config_real(cfg, "preprocessing.min_group_fraction"),
                                 p->cells.n)
            : fth_config_int(cfg, "preprocessing.min_group_size");
    void *map = NULL;
    FTH_TRY(fth_mem_take(p->source.mem, FTH_MEM_ANY, (uint64_t)groups * 4, "groups that stay", &map,
                         err));
    p->group_map = map;
    p->groups = sp_filter_small(&p->cells, groups, threshold, map, p->dropped);
    return p->cells.n > 0 ? FTH_OK : no_cells(p, err);
}

static fth_status no_counts(const sp_prepared *p, fth_err *err)
{
    const sp_source *src = &p->source;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: every count of the %" PRId64 " cells and %" PRId64
                 " genes that are left is 0; the file has %" PRId64 " cells and %" PRId64 " genes",
                 src->counts.label, p->cells.n, p->walk.genes, src->counts.rows, src->counts.cols);
    fth_err_hint(err, "a model has nothing to explain: name other counts with "
                      "preprocessing.counts, or other cells (sample_id, min_group_size, "
                      "min_counts); 'fathom spatial info FILE' lists what the file has");
    return s;
}

static double extent_of(const sp_section *s)
{
    return sqrt((s->high[0] - s->low[0]) * (s->high[1] - s->low[1]));
}

/* All sections have one scale: in different units, one of them is a dot, or far larger than any
 * lengthscale. */
static void report_extents(const sp_sections *s, const fth_stage_call *call)
{
    int64_t small = 0, large = 0;
    for (int64_t i = 1; i < s->n; i++) {
        if (extent_of(&s->of[i]) < extent_of(&s->of[small])) small = i;
        if (extent_of(&s->of[i]) > extent_of(&s->of[large])) large = i;
    }
    if (s->n == 0 || extent_of(&s->of[large]) <= UNLIKE_EXTENTS * extent_of(&s->of[small])) return;
    fth_stage_say(call,
                  "note: section %s is %.0f times as large as %s, and all have one scale and one "
                  "lengthscale: are their positions in the same unit?",
                  sp_sections_name(s, large), extent_of(&s->of[large]) / extent_of(&s->of[small]),
                  sp_sections_name(s, small));
}

/* A section without counts has maps that say nothing but what the prior says. */
static void report_empty(const sp_prepared *p, const fth_stage_call *call)
{
    for (int64_t i = 0; i < p->sections.n; i++)
        if (p->sections.of[i].entries == 0)
            fth_stage_say(call,
                          "warning: every count of section %s is 0, so a model learns nothing of "
                          "it; " SP_LEAVE_SECTION_OUT,
                          sp_sections_name(&p->sections, i));
}

static void report(const sp_prepared *p, const fth_stage_call *call)
{
    static const char *const why[SP_DROP_KINDS] = {
        [SP_DROP_REGION] = "without a region",    [SP_DROP_COUNTS] = "with too few counts",
        [SP_DROP_GENES] = "with too few genes",   [SP_DROP_POSITION] = "without a position",
        [SP_DROP_COUNT] = "with a missing count", [SP_DROP_LABEL] = "without a group",
        [SP_DROP_GROUP] = "of small groups",      [SP_DROP_SECTION] = "without a section"};
    for (int k = 0; k < SP_DROP_KINDS; k++)
        if (k == SP_DROP_MT && p->dropped[k] > 0)
            fth_stage_say(call, "removed %" PRId64 " cells with %g %% mitochondrial counts or more",
                          p->dropped[k], p->rules.max_mt);
        else if (p->dropped[k] > 0)
            fth_stage_say(call, "removed %" PRId64 " cells %s", p->dropped[k], why[k]);
    const int64_t genes = p->source.counts.cols - p->walk.genes;
    if (genes > 0) fth_stage_say(call, "removed %" PRId64 " genes", genes);
    const int64_t had = p->group_map ? fth_texts_count(p->source.group.names) : 1;
    if (had > p->groups) fth_stage_say(call, "removed %" PRId64 " groups", had - p->groups);
    fth_stage_say(call,
                  "%" PRId64 " cells, %" PRId64 " genes, %" PRId64 " groups, %" PRId64
                  " counts above 0",
                  p->cells.n, p->walk.genes, p->groups, p->entries);
    for (int64_t i = 0; i < p->sections.n; i++)
        fth_stage_say(call, "section %s: %" PRId64 " cells", sp_sections_name(&p->sections, i),
                      p->sections.of[i].cells);
    report_extents(&p->sections, call);
    if (p->entries > 0) report_empty(p, call); /* all are 0: an error */
    if (p->rules.idle_flavor)
        fth_stage_say(call, "note: preprocessing.highly_variable_flavor has no effect without "
                            "preprocessing.highly_variable, the number of genes to keep");
}

/* ---- positions ---- */

/* Cells of every section that are left. */
static fth_status count_sections(sp_prepared *p, fth_err *err)
{
    sp_sections *s = &p->sections;
    for (int64_t i = 0; i < s->n; i++) s->of[i].cells = 0;
    for (int64_t i = 0; s->n > 0 && i < p->cells.n; i++) s->of[p->cells.section[i]].cells++;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->of[i].cells >= SP_SECTION_LEAST) continue;
        const fth_status status =
            FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: %" PRId64 " cells of section '%s' are left after the filters; at least "
                     "%d are needed",
                     p->source.n_parts > 0 ? p->source.part[i].path : p->source.path,
                     s->of[i].cells, sp_sections_name(s, i), SP_SECTION_LEAST);
        fth_err_hint(err,
                     SP_LEAVE_SECTION_OUT "; or relax the filters (min_counts, min_group_size)");
        return status;
    }
    return FTH_OK;
}

/* To the scale of the models (model 2.3); sections to one plane (model 21.1). */
static fth_status rescale(sp_prepared *p, const fth_config *cfg, fth_err *err)
{
    const sp_source *s = &p->source;
    const bool wanted = fth_config_bool(cfg, "preprocessing.rescale");
    const double by = fth_config_real(cfg, "preprocessing.spatial_scale");
    char label[2 * FTH_PATH];
    snprintf(label, sizeof label, "%s, %s", s->n_parts > 0 ? "preprocessing.paths" : s->path,
             s->where);
    p->frame = (sp_frame){.known = true, .scale = 1};
    if (p->sections.n > 0)
        FTH_TRY(sp_sections_arrange(&p->sections, p->cells.xy, p->cells.section, p->cells.n,
                                    wanted ? 4 * by : 0, label, &p->frame.scale, err));
    else if (wanted)
        FTH_TRY(sp_rescale(p->cells.xy, p->cells.n, by, label, &p->frame, err));
    if (!s->frame.known) return FTH_OK;
    for (int a = 0; a < 2; a++) { /* compose both maps */
        p->frame.offset[a] = s->frame.offset[a] + p->frame.offset[a] / s->frame.scale;
        for (int64_t i = 0; i < p->sections.n; i++)
            p->sections.of[i].offset[a] =
                s->frame.offset[a] + p->sections.of[i].offset[a] / s->frame.scale;
    }
    p->frame.scale *= s->frame.scale;
    return FTH_OK;
}

/* ---- all of it ---- */

static fth_status prepare(sp_prepared *p, const fth_stage_call *call, fth_err *err)
{
    const fth_config *cfg = call->config;
    sp_source *s = &p->source;
    FTH_TRY(sp_source_open(s, fth_context_mem(call->context), cfg, call, err));
    FTH_TRY(sp_tissues_find(&p->tissues, s, err));
    const uint64_t spare = free_bytes(s, &p->tissues);
    FTH_TRY(sp_source_load(s, err));
    p->dropped[SP_DROP_REGION] = s->dropped;
    p->dropped[SP_DROP_SECTION] = s->sectionless;
    FTH_TRY(take_cells(p, err));
    FTH_TRY(sp_count_walk_start(&p->walk, s, &p->cells, spare, call, err));
    p->rules = sp_rules_of(cfg, s->loader);
    FTH_TRY(sp_count_walk_look(&p->walk, &p->rules, err));
    if (p->rules.cells) FTH_TRY(control_quality(p, err));
    if (p->rules.genes) FTH_TRY(sp_count_walk_choose_genes(&p->walk, &p->rules, err));
    FTH_TRY(rescale(p, cfg, err));
    FTH_TRY(filter(p, err));
    FTH_TRY(count_sections(p, err));
    if (p->rules.variable > 0)
        FTH_TRY(sp_variable_choose(&p->variable, &p->walk, &p->cells, &p->rules, err));
    FTH_TRY(sp_count_walk_size(&p->walk, &p->cells, &p->entries, err));
    for (int64_t i = 0; p->sections.n > 0 && i < p->cells.n; i++)
        p->sections.of[p->cells.section[i]].entries += p->walk.entries[p->cells.row[i]];
    report(p, call);
    return p->entries > 0 ? FTH_OK : no_counts(p, err);
}

/* ---- the stage ---- */

/* The plain hash of a single file, so that other programs can compute it; of several, a hash of
 * their hashes. */
static fth_status hash_files(sp_prepared *p, const inputs *in, fth_mem *mem, uint64_t *hash,
                             fth_err *err)
{
    const int64_t n = fth_texts_count(in->paths);
    int64_t bytes = 0, i = 0;
    if (in->store[0]) FTH_TRY(sp_store_hash(mem, in->store, &hash[i++], &bytes, err));
    p->bytes += bytes;
    for (; i < n; i++) {
        const char *path = fth_texts_get(in->paths, i);
        FTH_TRY(fth_file_hash(mem, path, &hash[i], err));
        p->bytes += (int64_t)file_bytes(path);
    }
    if (!in->level[0]) return FTH_OK;
    FTH_TRY(sp_store_hash(mem, in->level, &hash[n], &bytes, err));
    p->bytes += bytes;
    return FTH_OK;
}

static fth_status hash_one(sp_prepared *p, const fth_config *cfg, const char *file, fth_mem *mem,
                           uint64_t *out, fth_err *err)
{
    inputs in;
    void *block = NULL;
    fth_status s = list_inputs(&in, mem, cfg, file, err);
    const uint64_t n =
        s == FTH_OK ? (uint64_t)fth_texts_count(in.paths) + (in.level[0] != '\0') : 0;
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_META, (n + 1) * sizeof *out, "hashes of files", &block, err);
    uint64_t *hash = block;
    if (s == FTH_OK) s = hash_files(p, &in, mem, memset(hash, 0, (n + 1) * sizeof *hash), err);
    if (s == FTH_OK) *out = n == 1 ? hash[0] : fth_hash_bytes(hash, n * sizeof *hash, 0);
    if (block) (void)fth_mem_release(mem, block, NULL);
    inputs_clear(&in);
    return s;
}

static fth_status hash_inputs(sp_prepared *p, const fth_config *cfg, fth_mem *mem, fth_err *err)
{
    const int64_t n = count_sources(cfg);
    FTH_TRY(hash_one(p, cfg, source_at(cfg, 0), mem, &p->hash, err));
    for (int64_t i = 1; i < n; i++) {
        uint64_t both[2] = {p->hash, 0};
        FTH_TRY(hash_one(p, cfg, source_at(cfg, i), mem, &both[1], err));
        p->hash = fth_hash_bytes(both, sizeof both, 0);
    }
    return FTH_OK;
}

/* Whether the existing folder can be used; then *done. */
static fth_status look_at_folder(const sp_prepared *p, const fth_stage_call *call, const char *dir,
                                 bool *done, fth_err *err)
{
    char text[700];
    *done = false;
    if (!sp_folder_exists(dir) || !fth_stage_may_resume(call)) return FTH_OK;
    sp_folder_maker maker;
    FTH_TRY(sp_folder_compare(p, call->config, dir, text, sizeof text, &maker, err));
    *done = maker != SP_MADE_EARLIER || text[0];
    if (!*done) {
        fth_stage_say(call, "rewriting %s: the version that wrote it recorded less", dir);
        return FTH_OK;
    }
    if (text[0] && maker != SP_MADE_ELSEWHERE && fth_stage_flag(call, "replace")) {
        fth_stage_say(call, "rebuilding %s: %s", dir, text);
        *done = false;
        return FTH_OK;
    }
    if (!text[0]) {
        fth_stage_say(call, "kept %s: it was made with the same settings", dir);
        return FTH_OK;
    }
    const fth_status s = FTH_FAIL(err, FTH_E_CONFIG, "%s was made otherwise: %s", dir, text);
    fth_err_hint(err, "--force rebuilds it, --keep uses it as it is");
    return s;
}

fth_status sp_preprocess_run(const fth_stage_call *call, fth_err *err)
{
    char dir[FTH_PATH];
    sp_prepared p = {0};
    bool done = false;
    fth_mem *mem = fth_context_mem(call->context);
    FTH_TRY(fth_path_join(dir, call->output_dir, SP_PREPROCESSED, err));
    if (fth_stage_flag(call, "keep") && sp_folder_exists(dir)) {
        fth_stage_say(call, "kept %s as it is", dir);
        return FTH_OK;
    }
    FTH_TRY(hash_inputs(&p, call->config, mem, err));
    p.source.mem = mem;
    p.source.path = sp_source_path(call->config);
    FTH_TRY(look_at_folder(&p, call, dir, &done, err));
    if (done) return FTH_OK;
    fth_status s = prepare(&p, call, err);
    if (s == FTH_OK) s = sp_folder_write(&p, call, dir, err);
    prepared_free(&p);
    return s;
}
