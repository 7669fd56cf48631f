/* matrix.h - counts of a source file, in whichever layout, read as blocks of sparse rows of f32.
 *
 * Sparse rows are read as they are. Sparse columns are transposed: a block of rows is filled by one
 * pass over all columns, so blocks should be as large as the budget allows. Dense rows are read
 * through a piece of fixed size. Text is read from its front, in a pass of its own for each walk
 * over the rows. In every case a row comes out with its columns ascending, entries
 * of one place added up and zeros left out.
 */
#ifndef SPATIAL_MATRIX_H
#define SPATIAL_MATRIX_H

#include "store.h"

/* Element i of an array of real numbers, integers or truth values. */
double sp_number_at(fth_dtype t, const void *raw, int64_t i);

typedef enum sp_layout {
    SP_LAYOUT_ROWS,
    SP_LAYOUT_COLUMNS,
    SP_LAYOUT_DENSE,
    SP_LAYOUT_TEXT,  /* entries by row, from the front only */
    SP_LAYOUT_TABLE, /* all columns of each row, from the front only */
    SP_LAYOUT_JOINED /* several matrices, one after the other */
} sp_layout;

typedef struct sp_mtx sp_mtx;       /* mtx.c */
typedef struct sp_table sp_table;   /* table.c */
typedef struct sp_joined sp_joined; /* joined.c */

typedef struct sp_matrix {
    fth_mem *mem;
    char label[FTH_PATH + SP_NAME]; /* "file, /X" */
    sp_layout layout;
    int64_t rows, cols;
    int64_t entries; /* stored; a bound where it is dense */
    fth_dtype dtype;
    uint32_t libraries; /* that unpack it, beside HDF5 */
    fth_csr *csr;       /* of rows, or of columns: then its rows are our columns */
    fth_source dense;   /* [rows cols] */
    sp_mtx *mtx;        /* of text */
    sp_table *table;    /* of a table */
    int64_t *row_ptr;   /* of columns and text, once counted; else NULL */
    sp_joined *joined;
} sp_matrix;

/* The matrix at `object` of an HDF5 file: a dataset, or a group with data, indices and indptr. */
fth_status sp_matrix_open(sp_matrix *m, fth_mem *mem, fth_h5 *h5, const char *path,
                          const char *object, fth_err *err);
fth_status sp_matrix_open_store(sp_matrix *m, const sp_store *store, const char *path,
                                const char *object, fth_err *err);
/* Sparse rows of Y.npz. */
fth_status sp_matrix_open_npz(sp_matrix *m, fth_mem *mem, const char *path, fth_err *err);
/* The matrix of a 10x file: sparse columns of [gene cell], which are rows of cells. */
fth_status sp_matrix_open_tenx(sp_matrix *m, fth_mem *mem, fth_h5 *h5, const char *path,
                               const char *group, fth_err *err);
void sp_matrix_close(sp_matrix *m); /* an empty one is allowed */

/* Before the first block: counts the entries of each row where the file does not say. */
fth_status sp_matrix_prepare(sp_matrix *m, fth_err *err);
/* Entries of rows [first, end), at most. */
int64_t sp_matrix_entries(const sp_matrix *m, int64_t first, int64_t end);
/* A bound of the entries of one row, known before sp_matrix_prepare. */
int64_t sp_matrix_fullest(const sp_matrix *m);
/* How many rows from `first` on, at least one, have at most `room` entries together. */
int64_t sp_matrix_fit(const sp_matrix *m, int64_t first, int64_t room);

/* Room for a block, and what reading needs beside it. */
typedef struct sp_block {
    fth_mem *mem;
    int64_t rows, room; /* at most */
    int64_t *ptr;       /* [rows + 1], from 0 */
    int32_t *col;
    float *val;
    void *raw;         /* values as they are in the file */
    int64_t *part_ptr; /* of columns or dense pieces; NULL where not needed */
    int32_t *part_col;
    int64_t part;
    struct sp_block *inner; /* of the file that is read, of several; NULL: none yet */
    int64_t part_of;        /* which one it is */
} sp_block;
/* What a block of so many entries takes from the budget. `rows` is how many it can have. */
uint64_t sp_block_bytes(const sp_matrix *m, int64_t rows, int64_t room);
fth_status sp_block_create(sp_block *b, const sp_matrix *m, int64_t rows, int64_t room,
                           fth_err *err);
void sp_block_free(sp_block *b); /* an empty one is allowed */
/* Rows [first, first + n). */
fth_status sp_matrix_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err);

/* ---- several matrices, in a file of their own ---- */

/* These n matrices, which outlive it. Columns are those of the first; of another part
 * sp_joined_columns says which of them each of its own is, -1: none. */
fth_status sp_joined_open(sp_matrix *m, fth_mem *mem, sp_matrix *const *of, int64_t n,
                          fth_err *err);
void sp_joined_columns(sp_matrix *m, int64_t i, const int32_t *column);
void sp_joined_close(sp_matrix *m); /* an empty one is allowed */
fth_status sp_joined_prepare(sp_matrix *m, fth_err *err);
int64_t sp_joined_entries(const sp_matrix *m, int64_t first, int64_t end);
int64_t sp_joined_fit(const sp_matrix *m, int64_t first, int64_t room);
int64_t sp_joined_fullest(const sp_matrix *m);
/* Whether one of them is of sparse columns, which are read once per block. */
bool sp_joined_has_columns(const sp_matrix *m);
uint64_t sp_joined_block_bytes(const sp_matrix *m, int64_t rows, int64_t room);
/* Rows of one file. */
fth_status sp_joined_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err);

/* ---- counts as text, in a file of its own ---- */

void sp_mtx_close(sp_matrix *m); /* an empty one is allowed */
/* Row pointers of all rows. */
fth_status sp_mtx_count(sp_matrix *m, fth_err *err);
/* Rows as they are in the file. */
fth_status sp_mtx_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err);

/* A table of text, gzip or not: a line for each cell, a column for each gene, and columns that name
 * the cell: fov and cell_ID of `cosmx`, else the first. */
fth_status sp_matrix_open_table(sp_matrix *m, fth_mem *mem, const char *path, bool cosmx,
                                fth_err *err);
void sp_table_close(sp_matrix *m); /* an empty one is allowed */
fth_status sp_table_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err);

#endif
