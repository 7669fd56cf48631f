/* fathom/parquet.h - columns of Parquet files, read in row order with the memory of one page.
 *
 *   fth_parquet *file;
 *   fth_parquet_column *x;
 *   fth_parquet_block b;
 *   FTH_TRY(fth_parquet_open(&file, mem, path, err));
 *   s = fth_parquet_column_open(&x, file, fth_parquet_find(file, "x"), err);
 *   while (s == FTH_OK && (s = fth_parquet_next(x, &b, err)) == FTH_OK && b.n > 0)
 *       use(b.first, b.n, b.f64);
 *   fth_parquet_column_close(x);
 *   fth_parquet_close(file);
 *
 * Flat tables only: a column inside a group or a list has the type FTH_PARQUET_OTHER, as has one of
 * a type that is not read. docs/formats.md lists encodings and codecs.
 *
 * Ownership: a file outlives its columns; a block is valid until the next call on its column.
 * Threads:   one thread at a time per column; columns of one file are independent.
 * Failure:   file, column, row group and byte; on failure *out is NULL.
 */
#ifndef FATHOM_PARQUET_H
#define FATHOM_PARQUET_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef enum fth_parquet_type {
    FTH_PARQUET_BOOL, /* bytes of 0 and 1 */
    FTH_PARQUET_I32,
    FTH_PARQUET_I64, /* unsigned numbers of 32 bits too; of 64 bits where they fit */
    FTH_PARQUET_F32,
    FTH_PARQUET_F64,
    FTH_PARQUET_TEXT,
    FTH_PARQUET_OTHER /* not read */
} fth_parquet_type;

typedef struct fth_parquet fth_parquet;
/* Read the footer; no column yet. */
FTH_API FTH_MUST_USE fth_status fth_parquet_open(fth_parquet **out, fth_mem *mem, const char *path,
                                                 fth_err *err);
FTH_API void fth_parquet_close(fth_parquet *file); /* NULL is allowed */
FTH_API int64_t fth_parquet_rows(const fth_parquet *file);
FTH_API int64_t fth_parquet_columns(const fth_parquet *file);
/* "x"; "a.b" inside a group; NULL past the last. */
FTH_API const char *fth_parquet_name(const fth_parquet *file, int64_t column);
/* The column of exactly this name; -1: there is none. */
FTH_API int64_t fth_parquet_find(const fth_parquet *file, const char *name);
FTH_API fth_parquet_type fth_parquet_type_of(const fth_parquet *file, int64_t column);

typedef struct fth_parquet_text {
    const char *chars; /* not terminated */
    int64_t bytes;
} fth_parquet_text;

/* The next rows of a column: the array of its type, the others are NULL. A null is 0 or "". */
typedef struct fth_parquet_block {
    int64_t first, n; /* rows [first, first + n); n = 0: the end */
    const uint8_t *bools;
    const int32_t *i32;
    const int64_t *i64;
    const float *f32;
    const double *f64;
    const fth_parquet_text *text;
    const uint8_t *present; /* 0 where a value is null; NULL: all are there */
} fth_parquet_block;

typedef struct fth_parquet_column fth_parquet_column;
/* FTH_E_FILE_KEY: there is no such column; FTH_E_FILE_FEATURE: its type or codec is not read. */
FTH_API FTH_MUST_USE fth_status fth_parquet_column_open(fth_parquet_column **out, fth_parquet *file,
                                                        int64_t column, fth_err *err);
FTH_API void fth_parquet_column_close(fth_parquet_column *c); /* NULL is allowed */
/* At most 4096 rows at once. After a failure the column can only be closed. */
FTH_API FTH_MUST_USE fth_status fth_parquet_next(fth_parquet_column *c, fth_parquet_block *out,
                                                 fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_PARQUET_H */
