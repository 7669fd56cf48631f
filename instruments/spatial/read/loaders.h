/* loaders.h - a source of cells: positions, groups and names in memory, counts open.
 *
 * Cells are in the order of the file; `row` lists those that are loaded, in the order they are
 * loaded in. What the key `dataset` means is a row of loaders.def.
 */
#ifndef SPATIAL_LOADERS_H
#define SPATIAL_LOADERS_H

#include "anndata.h"
#include "tenx.h"

enum {
    SP_LOAD_NONE = 0,
    SP_LOAD_QC = 1,
    SP_LOAD_GROUPS = 2,
    SP_LOAD_DROP = 4,
    SP_LOAD_ORDER = 8,
    SP_LOAD_TENX = 16,
    SP_LOAD_ARRAYS = 32,
    SP_LOAD_FOLDER = 64,
    SP_LOAD_TISSUE = 128,
    SP_LOAD_ZARR = 256,
    SP_LOAD_TABLE = 512
};
enum { SP_SOURCE_NAME = 2 * FTH_PATH }; /* of a cell with its section */
typedef struct sp_loader {
    const char *name, *file, *coords, *counts, *column, *columns;
    unsigned flags;
} sp_loader;
const sp_loader *sp_loader_of(const fth_config *cfg);
/* What such a dataset is read from: ".h5ad file". */
const char *sp_loader_reads(const sp_loader *loader);
/* The file or folder of the config; "": none is given. */
const char *sp_source_path(const fth_config *cfg);

typedef struct sp_source {
    fth_mem *mem;
    const fth_config *cfg;
    const fth_stage_call *call; /* for notices; NULL: none */
    const sp_loader *loader;
    const char *path;     /* path of the file or folder, from the config */
    char where[FTH_PATH]; /* "obsm 'spatial'": for messages about positions */
    char obsm[256];       /* and where they are: "/obsm/spatial" */
    char column[256];     /* of obs, with the cell types; "": they are from elsewhere */
    const char *var;      /* frame of the genes */
    sp_anndata h5ad;      /* empty for folders */
    sp_tenx_files files;  /* of 10x */
    sp_matrix counts;
    /* by sp_source_load: */
    float *xy;                /* [cells of the file][2], as they are there */
    sp_frame frame;           /* of a folder of arrays that were rescaled before */
    sp_labels group;          /* of cells of the file; no names: there are no groups */
    sp_labels section;        /* likewise, of those that are taken; no names: there are none */
    fth_texts *genes, *cells; /* cells: NULL when there are no names */
    bool *left_out;           /* genes that are not taken; NULL: none */
    bool *outside;            /* cells that are not under tissue; NULL: none */
    int64_t *row, n;          /* cells that are loaded */
    int64_t dropped;          /* without a label, where the loader drops these */
    int64_t sectionless;      /* cells without a section, where the data name them */
    int64_t renamed;          /* duplicate gene names that were changed */
    /* of preprocessing.paths (several.c): */
    struct sp_source *part;
    int64_t n_parts;
    int32_t **columns; /* [part][gene of it]: gene of the first; NULL: the first itself */
} sp_source;

/* The file of the config, and the header of its counts. */
fth_status sp_source_open(sp_source *s, fth_mem *mem, const fth_config *cfg,
                          const fth_stage_call *call, fth_err *err);
/* The same of another path, as one of several. */
fth_status sp_source_open_at(sp_source *s, fth_mem *mem, const fth_config *cfg,
                             const fth_stage_call *call, const char *path, fth_err *err);
/* Everything but the counts. */
fth_status sp_source_load(sp_source *s, fth_err *err);
/* The column of cell types alone, in the order of `row` where labels are a table. */
fth_status sp_source_labels(sp_source *s, fth_err *err);
/* Whether the cells have sections: by the config, or by the folder once it is loaded. */
bool sp_source_has_sections(const sp_source *s);
/* How many groups there are before any filter, in place of sp_source_load: for plans. */
fth_status sp_source_groups(sp_source *s, int64_t *groups, fth_err *err);
void sp_source_close(sp_source *s); /* an empty one is allowed */
/* A SpatialData table without positions: those of the shapes are taken. */
bool sp_source_needs_shapes(const sp_source *s);

/* ---- parts, in files of their own ---- */

/* several.c: files of preprocessing.paths. */
bool sp_source_is_several(const fth_config *cfg);
fth_status sp_several_open(sp_source *s, fth_err *err);
fth_status sp_several_load(sp_source *s, fth_err *err);
fth_status sp_several_groups(sp_source *s, int64_t *groups, fth_err *err);
/* What unique names of cells take beyond those that the files have; 0 of one that is not several.
 */
uint64_t sp_several_name_bytes(const sp_source *s);
void sp_several_close(sp_source *s); /* an empty one is allowed */

/* A column of the table of labels, in the order of the file; *found false: there is no table, or
 * it does not have the column. */
fth_status sp_source_table_column(sp_source *s, const char *column, sp_labels *out, bool *found,
                                  fth_err *err);
/* section_labels.c: the section of each cell; then those that are taken, and the others leave. */
fth_status sp_source_sections(sp_source *s, fth_err *err);
fth_status sp_source_choose_sections(sp_source *s, fth_err *err);
/* Positions and names of a 10x file; of a folder of arrays. */
fth_status sp_tenx_open(sp_source *s, fth_err *err);
/* The group of a 10x file's counts: "/matrix", or the one group of a file of version 2. */
fth_status sp_tenx_find(fth_h5 *h5, char group[256], bool *found, fth_err *err);
/* The type of each feature of a 10x file; NULL: it does not say, and all are genes. */
fth_status sp_tenx_types(fth_h5 *h5, const char *group, fth_texts **out, fth_err *err);
/* "4 Gene Expression, 2 Antibody Capture": of those in `only`, NULL: of all. */
void sp_tenx_tally(const fth_texts *types, const bool *only, char *text, size_t bytes);
/* The table of positions beside the file, in its folder or in spatial/; false: there is none. */
bool sp_tenx_table(const char *file, char path[FTH_PATH]);
fth_status sp_tenx_load(sp_source *s, fth_err *err);
/* Leave out features whose type preprocessing.feature_types does not name. */
fth_status sp_features_choose(sp_source *s, const fth_texts *types, fth_err *err);
/* Positions of the cells, and their groups, from the table of a folder. `placed` [cells] gets which
 * of them have a row; NULL: every one has to. */
fth_status sp_places_join(sp_source *s, bool *placed, fth_err *err);
/* A folder of MERSCOPE or CosMx. */
fth_status sp_vendor_open(sp_source *s, fth_err *err);
fth_status sp_vendor_load(sp_source *s, fth_err *err);
fth_status sp_arrays_open(sp_source *s, fth_err *err);
fth_status sp_arrays_load(sp_source *s, fth_err *err);

#endif
