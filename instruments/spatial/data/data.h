/* data.h - a preprocessed folder, opened: positions and groups in memory, counts on disk. */
#ifndef SPATIAL_DATA_H
#define SPATIAL_DATA_H

#include "sections.h"

/* Cells are those of the folder, or some of them (sp_data_choose): then cell i of everything here
 * is row[i] of the folder, ascending. */
typedef struct sp_data {
    fth_mem *mem;
    sp_sizes size;
    fth_tensor *xy;      /* f32 [cell dim] */
    fth_tensor *group;   /* i32 [cell] */
    fth_tensor *section; /* i32 [cell]; NULL: the data name none */
    sp_sections sections;
    fth_npz *npz;
    fth_csr *counts; /* of all rows of the folder, f32; only row pointers are in memory */
    fth_texts *gene_names, *cell_names, *group_names; /* cell_names: NULL when there are none */
    int64_t rows;                                     /* of the folder */
    int64_t *row;                                     /* NULL: all of them, in order */
    int64_t *absent; /* with `row`: those that were not chosen, ascending; rows - cells of them */
    uint64_t hash;   /* of the payloads of X.npy, C.npy, S.npy: ties a model to its data */
    uint64_t genes_hash; /* of the gene names */
    double extent;       /* larger of the two extents of the positions, of any one section */
    sp_frame frame;      /* how they were rescaled */
    char dir[FTH_PATH];
} sp_data;

/* Reads and checks the folder `dir` (.../preprocessed, or one that toy or a user wrote). Errors
 * name the file and what is expected. On failure `d` is empty. */
fth_status sp_data_open(sp_data *d, fth_mem *mem, const char *dir, fth_err *err);
void sp_data_close(sp_data *d); /* an empty one is allowed */
/* Keep only these rows of the folder (ascending, n of them) and note the others as absent. */
fth_status sp_data_choose(sp_data *d, const int64_t *row, int64_t n, fth_err *err);
/* Leave out the held-out cells of the settings (holdout_fraction, holdout, seed): model 2.5. */
fth_status sp_data_hold_out(sp_data *d, double fraction, sp_holdout how, int64_t seed,
                            fth_err *err);
/* Map positions to the scale of the training cells, for a model that is used on other cells. An
 * error if one of the two maps is unknown; no change if both are. Cells go to the section of their
 * name in `of`; those of a section that is not there, or too far outside of it, are put nowhere,
 * and *unknown, which may be NULL, counts them. */
typedef struct sp_rescaling {
    const sp_frame *frame;
    const sp_sections *of;
    double lengthscale;
    const char *model; /* path, for errors */
} sp_rescaling;
fth_status sp_data_rescale(sp_data *d, const sp_rescaling *training, int64_t *unknown,
                           fth_err *err);
/* The position of a cell as its source has it; as it is here where the map is unknown. */
void sp_data_source_place(const sp_data *d, int64_t cell, float to[2]);
/* The sizes alone, for plans: of the folder when it is there, else bounds from the source file's
 * header or from the config. */
fth_status sp_data_sizes(sp_sizes *out, const fth_stage_call *call, fth_err *err);

/* ---- batches of counts ---- */

/* Counts of some cells and genes in CSR form, in host memory that does not move. Entries beyond
 * row_ptr[n] are undefined. */
typedef struct sp_counts {
    fth_tensor *row_ptr; /* i64 [cellb + 1] */
    fth_tensor *gene;    /* i32 [entry]: place in the gene batch */
    fth_tensor *value;   /* f32 [entry] */
    double constant;     /* sum of lgamma(y + 1) */
} sp_counts;

/* A reader that gathers the next batch in a thread of its own. Double-buffered: a batch stays valid
 * until the one after the next is requested. Rows come from memory when all counts fit into
 * `resident_bytes`, else from the file; the batches are the same. */
typedef struct sp_reader sp_reader;
/* Upper bound of the entries of a batch of so many cells and genes. Those of a reader are at most
 * as long. */
int64_t sp_reader_entries(const sp_sizes *size, int64_t cells, int64_t genes);
/* The most memory a reader takes. */
uint64_t sp_reader_bytes(const sp_sizes *size, int64_t cells, int64_t genes,
                         uint64_t resident_bytes);
fth_status sp_reader_create(sp_reader **out, const sp_data *data, int64_t cells, int64_t genes,
                            uint64_t resident_bytes, fth_err *err);
void sp_reader_destroy(sp_reader *r); /* NULL is allowed */
/* cell[0..cells) are cells of the data, gene[0..genes) distinct genes; NULL: all of them, and when
 * both are, they are gathered once. Copied. Stored zeros are left out and entries of one place are
 * added. A count that is negative or not finite ends in FTH_E_FILE_FORMAT, from take. */
fth_status sp_reader_ask(sp_reader *r, const int64_t *cell, const int64_t *gene, fth_err *err);
/* The batch asked for; the tensors stay the reader's. */
fth_status sp_reader_take(sp_reader *r, sp_counts *out, fth_err *err);
/* From now on this many threads gather batches, if the rows are in memory: steps on a device take
 * less time than one thread needs. The batches are the same. */
fth_status sp_reader_share(sp_reader *r, int threads, fth_err *err);
/* A callback that the reader's threads run for each batch before it can be taken. */
typedef void sp_reader_then(void *arg);
void sp_reader_after(sp_reader *r, sp_reader_then *then, void *arg);

#endif
