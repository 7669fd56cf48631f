/* fathom/io.h - files as sources and sinks of rectangles.
 *
 * Opening reads the header and checks every length in it against the size of
 * the file; elements are read when a rectangle is requested. Every error names
 * the file and the byte or member. What each format accepts and refuses is in
 * docs/formats.md.
 *
 * A file is written under a temporary name in the same directory, synced and then
 * renamed: it appears whole or not at all, and an older file of that name
 * stays until then.
 *
 * Ownership: fth_source_close and fth_sink_close free what an open or create
 *            function of this header filled in. Sources of a container live on
 *            after the container is closed; sinks of a writer end with it.
 * Threads:   one thread at a time per object; different sources of one
 *            container may be used by different threads.
 * Failure:   on failure *out is cleared and nothing is left behind.
 */
#ifndef FATHOM_IO_H
#define FATHOM_IO_H

#include <fathom/graph.h>

FTH_BEGIN_DECLS

/* Free a source or sink made by this header and clear it. A sink that was not
 * committed is abandoned. Cleared and NULL ones are allowed; sources and sinks
 * in memory (array.h) are not: they have nothing to close. */
FTH_API void fth_source_close(fth_source *source);
FTH_API void fth_sink_close(fth_sink *sink);

/* Read a whole source, of any kind, into a new tensor. */
FTH_API FTH_MUST_USE fth_status fth_source_load(const fth_source *source, fth_mem *mem,
                                                const char *label, fth_tensor **out, fth_err *err);
/* Write a tensor of the sink's shape and dtype, and commit. A tensor that lives on a device only is
 * copied in pieces of 4 MiB. */
FTH_API FTH_MUST_USE fth_status fth_sink_store(const fth_sink *sink, fth_tensor *t, fth_err *err);
/* The same for a dense array in memory, of the sink's shape and dtype. */
FTH_API FTH_MUST_USE fth_status fth_sink_put(const fth_sink *sink, const void *data, fth_err *err);
/* Copy everything through a buffer of at most 256 KiB, less if the budget is tight, and commit.
 * Shapes and dtypes must be equal. `progress` (may be NULL) is called after each piece; if it
 * returns false: FTH_E_CANCELLED. On failure the sink is not committed; fth_sink_close abandons it.
 *
 *   FTH_TRY(fth_source_copy(&npy, &dataset, mem, NULL, NULL, err)); */
FTH_API FTH_MUST_USE fth_status fth_source_copy(const fth_source *from, const fth_sink *to,
                                                fth_mem *mem, fth_progress_fn *progress, void *user,
                                                fth_err *err);

/* ---- stand-ins: a shape without data, for plans that are made before their files exist ---- */

/* Reading or writing one fails with FTH_E_INTERNAL: the plan was made for prediction only. */
FTH_API fth_source fth_source_planned(fth_dtype dtype, int n_axes, const int64_t *size);
FTH_API fth_sink fth_sink_planned(fth_dtype dtype, int n_axes, const int64_t *size);
/* Reads as zeros; discards what is written. */
FTH_API fth_source fth_source_zeros(fth_dtype dtype, int n_axes, const int64_t *size);
FTH_API fth_sink fth_sink_discard(fth_dtype dtype, int n_axes, const int64_t *size);

/* ---- NPY: one array ---- */

/* Either byte order, C and Fortran order (the source is row-major in any case). */
FTH_API FTH_MUST_USE fth_status fth_npy_open(fth_source *out, fth_mem *mem, const char *path,
                                             fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_npy_create(fth_sink *out, fth_mem *mem, const char *path,
                                               fth_dtype dtype, int n_axes, const int64_t *size,
                                               fth_err *err);
/* Save a dense array in memory atomically; load a file as a new tensor. */
FTH_API FTH_MUST_USE fth_status fth_npy_save(fth_mem *mem, const char *path, fth_dtype dtype,
                                             int n_axes, const int64_t *size, const void *data,
                                             fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_npy_load(fth_mem *mem, const char *path, const char *label,
                                             fth_tensor **out, fth_err *err);

/* ---- raw binary: elements in row-major order at an offset of a file ---- */

typedef struct fth_raw_layout {
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    uint64_t offset; /* of the first element, in bytes */
    bool big_endian;
} fth_raw_layout;
FTH_API FTH_MUST_USE fth_status fth_raw_open(fth_source *out, fth_mem *mem, const char *path,
                                             const fth_raw_layout *layout, fth_err *err);
/* `header` holds the layout->offset bytes before the elements; NULL: zeros. */
FTH_API FTH_MUST_USE fth_status fth_raw_create(fth_sink *out, fth_mem *mem, const char *path,
                                               const fth_raw_layout *layout, const void *header,
                                               fth_err *err);

/* ---- several arrays in one file ---- */

typedef struct fth_texts fth_texts; /* a list of strings, below */

/* One array to be written. The strings are copied. */
typedef struct fth_file_item {
    const char *name;
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    const char *axes; /* names, "cell factor"; safetensors keeps them; NULL: none */
} fth_file_item;

/* A named string. */
typedef struct fth_file_meta {
    const char *key, *value;
} fth_file_meta;

/* NPZ: a zip of NPY members, stored or deflated; names are accepted with or without ".npy". */
typedef struct fth_npz fth_npz;
FTH_API FTH_MUST_USE fth_status fth_npz_open(fth_npz **out, fth_mem *mem, const char *path,
                                             fth_err *err);
FTH_API void fth_npz_close(fth_npz *npz);
FTH_API int64_t fth_npz_count(const fth_npz *npz);
/* The i-th name, without ".npy"; NULL past the end. */
FTH_API const char *fth_npz_name(const fth_npz *npz, int64_t i);
/* A stored member is read in place; a deflated one sequentially, so rectangles
 * in ascending order are cheap and going back inflates from the start. The checksum
 * is verified once a member has been read completely. */
FTH_API FTH_MUST_USE fth_status fth_npz_source(fth_npz *npz, const char *name, fth_source *out,
                                               fth_err *err);
/* Whether rows of the member can be read in any order without extra cost: stored, and in C order.
 * Copy others to an fth_scratch first. False also if there is no such member. */
FTH_API bool fth_npz_is_in_place(fth_npz *npz, const char *name);
/* A member of strings ('|S', '<U'), as UTF-8: one, or a list of them. Of Python objects ('|O') only
 * strings that begin with '{' (JSON): the pickle is searched, never executed. At most 64 MiB. */
FTH_API FTH_MUST_USE fth_status fth_npz_strings(fth_npz *npz, const char *name, fth_texts **out,
                                                fth_err *err);

typedef struct fth_npz_writer fth_npz_writer;
FTH_API FTH_MUST_USE fth_status fth_npz_create(fth_npz_writer **out, fth_mem *mem, const char *path,
                                               const fth_file_item *items, int64_t n_items,
                                               fth_err *err);
/* The same with further members after the arrays, one string each ('<U'); they are written at once
 * and have no sink. */
FTH_API FTH_MUST_USE fth_status fth_npz_create_with_texts(
    fth_npz_writer **out, fth_mem *mem, const char *path, const fth_file_item *items,
    int64_t n_items, const fth_file_meta *texts, int64_t n_texts, fth_err *err);
/* Valid until the writer ends. Committing it marks the array complete; abandoning it makes the
 * writer's commit fail. */
FTH_API FTH_MUST_USE fth_status fth_npz_sink(fth_npz_writer *w, const char *name, fth_sink *out,
                                             fth_err *err);
/* Finish the file; fails unless every element of every member was written. Ends the writer in any
 * case. */
FTH_API FTH_MUST_USE fth_status fth_npz_commit(fth_npz_writer *w, fth_err *err);
FTH_API void fth_npz_abandon(fth_npz_writer *w); /* NULL is allowed */

/* safetensors: checkpoints, models and results. */
typedef struct fth_safetensors fth_safetensors;
FTH_API FTH_MUST_USE fth_status fth_safetensors_open(fth_safetensors **out, fth_mem *mem,
                                                     const char *path, fth_err *err);
FTH_API void fth_safetensors_close(fth_safetensors *f);
FTH_API int64_t fth_safetensors_count(const fth_safetensors *f);
/* The i-th name in file order; NULL past the end. */
FTH_API const char *fth_safetensors_name(const fth_safetensors *f, int64_t i);
FTH_API int64_t fth_safetensors_meta_count(const fth_safetensors *f);
/* The i-th entry of the metadata; its value is returned, its key goes to *key. */
FTH_API const char *fth_safetensors_meta_at(const fth_safetensors *f, int64_t i, const char **key);
/* The value of a key; NULL if there is none. */
FTH_API const char *fth_safetensors_meta(const fth_safetensors *f, const char *key);
/* F64 with the axes "... ri" and a last size of 2 comes back as c128. */
FTH_API FTH_MUST_USE fth_status fth_safetensors_source(fth_safetensors *f, const char *name,
                                                       fth_source *out, fth_err *err);
/* Read everything and compare with the hashes kept as metadata "xxh64.<name>"; *n_checked (may be
 * NULL) says how many tensors had one. */
FTH_API FTH_MUST_USE fth_status fth_safetensors_verify(fth_safetensors *f, int64_t *n_checked,
                                                       fth_err *err);

typedef struct fth_safetensors_options {
    const fth_file_meta *meta; /* beside axes.<name> and xxh64.<name>, which are ours */
    int64_t n_meta;
    bool keep_previous; /* a file already there becomes "<stem>.prev.<ending>" */
} fth_safetensors_options;
typedef struct fth_safetensors_writer fth_safetensors_writer;
/* `opt` may be NULL. The same items and metadata give the same bytes. */
FTH_API FTH_MUST_USE fth_status fth_safetensors_create(fth_safetensors_writer **out, fth_mem *mem,
                                                       const char *path, const fth_file_item *items,
                                                       int64_t n_items,
                                                       const fth_safetensors_options *opt,
                                                       fth_err *err);
/* As for NPZ. */
FTH_API FTH_MUST_USE fth_status fth_safetensors_sink(fth_safetensors_writer *w, const char *name,
                                                     fth_sink *out, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_safetensors_commit(fth_safetensors_writer *w, fth_err *err);
FTH_API void fth_safetensors_abandon(fth_safetensors_writer *w);

/* Tensors and metadata as one file, whole or not at all, and back:
 *
 *   const fth_file_tensor t[] = {{"weights", m->weights, "term"}, {"loss", m->loss, "step"}};
 *   FTH_TRY(fth_safetensors_save(mem, path, t, 2, &(fth_safetensors_options){0}, err)); */
typedef struct fth_file_tensor {
    const char *name;
    fth_tensor *tensor;
    const char *axes; /* as of fth_file_item; NULL: none */
} fth_file_tensor;
FTH_API FTH_MUST_USE fth_status fth_safetensors_save(fth_mem *mem, const char *path,
                                                     const fth_file_tensor *t, int64_t n,
                                                     const fth_safetensors_options *opt,
                                                     fth_err *err);
/* One of them as a new tensor. */
FTH_API FTH_MUST_USE fth_status fth_safetensors_load(fth_safetensors *f, const char *name,
                                                     fth_mem *mem, fth_tensor **out, fth_err *err);
/* Read into an existing tensor, which may live on a device only; FTH_E_FILE_SHAPE if the file's has
 * another dtype or shape. */
FTH_API FTH_MUST_USE fth_status fth_safetensors_fill(fth_safetensors *f, const char *name,
                                                     fth_tensor *to, fth_err *err);

/* ---- a list of strings ---- */

FTH_API FTH_MUST_USE fth_status fth_texts_create(fth_texts **out, fth_mem *mem, fth_err *err);
/* Append a copy of n bytes, which need not be terminated. FTH_E_BUDGET: over the memory budget. */
FTH_API FTH_MUST_USE fth_status fth_texts_add(fth_texts *t, const char *chars, uint64_t n,
                                              fth_err *err);
FTH_API int64_t fth_texts_count(const fth_texts *t);
FTH_API const char *fth_texts_get(const fth_texts *t, int64_t i); /* NULL past the end */
FTH_API void fth_texts_free(fth_texts *t);                        /* NULL is allowed */

/* ---- HDF5 ---- */

typedef struct fth_h5 fth_h5;
typedef enum fth_h5_kind { FTH_H5_NONE, FTH_H5_GROUP, FTH_H5_DATASET, FTH_H5_OTHER } fth_h5_kind;
FTH_API FTH_MUST_USE fth_status fth_h5_open(fth_h5 **out, fth_mem *mem, const char *path,
                                            fth_err *err);
FTH_API void fth_h5_close(fth_h5 *h5);
/* The kind of the object at a path like "/obs/index"; NONE also for a broken link. */
FTH_API fth_h5_kind fth_h5_kind_of(fth_h5 *h5, const char *object);
/* Names of the children of a group, sorted bytewise. */
FTH_API FTH_MUST_USE fth_status fth_h5_list(fth_h5 *h5, const char *group, fth_texts **out,
                                            fth_err *err);
/* A dataset of numbers. Integers of a width that no fth_dtype has are widened, those of u64 to i64
 * (a number that does not fit is an error); h5py's bool and complex are supported. While the
 * source is open it holds one chunk of the file, three if it is compressed, from `mem`. */
FTH_API FTH_MUST_USE fth_status fth_h5_source(fth_h5 *h5, const char *dataset, fth_source *out,
                                              fth_err *err);
/* A dataset of strings: one string, or a list of them. */
FTH_API FTH_MUST_USE fth_status fth_h5_strings(fth_h5 *h5, const char *dataset, fth_texts **out,
                                               fth_err *err);
/* Names of the fields of a dataset of a compound type; an empty list for other datasets. */
FTH_API FTH_MUST_USE fth_status fth_h5_fields(fth_h5 *h5, const char *dataset, fth_texts **out,
                                              fth_err *err);
/* One field of such a dataset, as above; an array field gives a second axis. NULL: the dataset
 * itself. */
FTH_API FTH_MUST_USE fth_status fth_h5_field_source(fth_h5 *h5, const char *dataset,
                                                    const char *field, fth_source *out,
                                                    fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_field_strings(fth_h5 *h5, const char *dataset,
                                                     const char *field, fth_texts **out,
                                                     fth_err *err);
/* Attributes of a group or dataset: FTH_E_FILE_KEY if there is none of that name. Up to `max`
 * numbers are stored in `v`; *n is the number of elements of the attribute. */
FTH_API bool fth_h5_attr_exists(fth_h5 *h5, const char *object, const char *name);
FTH_API FTH_MUST_USE fth_status fth_h5_attr_text(fth_h5 *h5, const char *object, const char *name,
                                                 fth_texts **out, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_attr_i64(fth_h5 *h5, const char *object, const char *name,
                                                int64_t *v, int64_t max, int64_t *n, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_attr_f64(fth_h5 *h5, const char *object, const char *name,
                                                double *v, int64_t max, int64_t *n, fth_err *err);
/* The path of the object that an attribute refers to: "/obs/__categories/x". */
FTH_API FTH_MUST_USE fth_status fth_h5_attr_reference(fth_h5 *h5, const char *object,
                                                      const char *name, char *place, size_t bytes,
                                                      fth_err *err);

typedef struct fth_h5_writer fth_h5_writer;
typedef struct fth_h5_dataset {
    const char *name; /* "/a/b": missing groups are created */
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    int64_t chunk[FTH_MAX_AXES]; /* clipped to size; all 0: contiguous, or 1 MiB if compressed */
    int gzip;                    /* 0: not compressed; 1 to 9 */
} fth_h5_dataset;
FTH_API FTH_MUST_USE fth_status fth_h5_create(fth_h5_writer **out, fth_mem *mem, const char *path,
                                              fth_err *err);
/* Start from a byte-for-byte copy of the file `source`. Both paths may be equal: the old file stays
 * until the commit. */
FTH_API FTH_MUST_USE fth_status fth_h5_edit(fth_h5_writer **out, fth_mem *mem, const char *source,
                                            const char *path, fth_err *err);
/* Remove an object and everything below it; a missing object is not an error. Its space in the file
 * is not reclaimed. */
FTH_API FTH_MUST_USE fth_status fth_h5_remove(fth_h5_writer *w, const char *object, fth_err *err);
/* Create a group and its parents if they do not exist. */
FTH_API FTH_MUST_USE fth_status fth_h5_put_group(fth_h5_writer *w, const char *group, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_sink(fth_h5_writer *w, const fth_h5_dataset *dataset,
                                            fth_sink *out, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_put_strings(fth_h5_writer *w, const char *dataset,
                                                   const char *const *text, int64_t n,
                                                   fth_err *err);
/* One string, as a scalar. */
FTH_API FTH_MUST_USE fth_status fth_h5_put_text(fth_h5_writer *w, const char *dataset,
                                                const char *text, fth_err *err);
/* Set attributes of an existing object, replacing one of that name. n = 1 writes a scalar. */
FTH_API FTH_MUST_USE fth_status fth_h5_put_attr_text(fth_h5_writer *w, const char *object,
                                                     const char *name, const char *text,
                                                     fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_put_attr_texts(fth_h5_writer *w, const char *object,
                                                      const char *name, const char *const *text,
                                                      int64_t n, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_put_attr_i64(fth_h5_writer *w, const char *object,
                                                    const char *name, const int64_t *v, int64_t n,
                                                    fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_put_attr_bool(fth_h5_writer *w, const char *object,
                                                     const char *name, bool v, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_put_attr_f64(fth_h5_writer *w, const char *object,
                                                    const char *name, const double *v, int64_t n,
                                                    fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_h5_commit(fth_h5_writer *w, fth_err *err);
FTH_API void fth_h5_abandon(fth_h5_writer *w);

/* ---- compressed sparse rows ---- */

/* A matrix [row col] stored as (data, indices, indptr). Opening reads and checks the row pointers,
 * so the number of entries of any rows is known before they are read. */
typedef struct fth_csr fth_csr;
/* From a group of an HDF5 file, as in h5ad; from a file of scipy.sparse.save_npz. */
FTH_API FTH_MUST_USE fth_status fth_csr_open_h5(fth_csr **out, fth_h5 *h5, const char *group,
                                                fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_csr_open_npz(fth_csr **out, fth_npz *npz, fth_err *err);
/* From three arrays of any file. A CSC matrix is the CSR matrix of its transpose. `label` appears
 * in errors. Takes ownership of the sources, also on failure. */
typedef struct fth_csr_parts {
    fth_source data, indices, indptr;
    int64_t rows, cols;
} fth_csr_parts;
FTH_API FTH_MUST_USE fth_status fth_csr_open_parts(fth_csr **out, fth_mem *mem, const char *label,
                                                   fth_csr_parts *parts, fth_err *err);
FTH_API void fth_csr_close(fth_csr *csr); /* NULL is allowed */
FTH_API int64_t fth_csr_rows(const fth_csr *csr);
FTH_API int64_t fth_csr_cols(const fth_csr *csr);
FTH_API fth_dtype fth_csr_dtype(const fth_csr *csr);
/* Entries in rows [first, end), clipped to the matrix. */
FTH_API int64_t fth_csr_entries(const fth_csr *csr, int64_t first, int64_t end);
/* Read rows [first, first+n) as they are in the file: row_ptr[n+1] starting at 0, col and val with
 * fth_csr_entries elements. Columns are checked; duplicates are kept. */
FTH_API FTH_MUST_USE fth_status fth_csr_read(fth_csr *csr, int64_t first, int64_t n,
                                             int64_t *row_ptr, int32_t *col, void *val,
                                             fth_err *err);
/* Read rows index[0..n), in that order. `room` is the capacity of col and val, in entries; row_ptr
 * is filled first, so row_ptr[n] is the capacity required if FTH_E_USAGE reports too little. */
FTH_API FTH_MUST_USE fth_status fth_csr_read_rows(fth_csr *csr, const int64_t *index, int64_t n,
                                                  int64_t room, int64_t *row_ptr, int32_t *col,
                                                  void *val, fth_err *err);
/* The entries of all rows in order, for an axis of fth_axis_ragged with these row pointers
 * (rows + 1 of them): the matrix stays sparse in a graph. Valid until the csr is closed. */
FTH_API const int64_t *fth_csr_row_ptr(const fth_csr *csr);
FTH_API fth_source fth_csr_columns(fth_csr *csr); /* i32 */
FTH_API fth_source fth_csr_values(fth_csr *csr);
/* The same matrix, dense; duplicate entries are added. Valid until the csr is closed. */
FTH_API fth_source fth_csr_source(fth_csr *csr);

/* A file as scipy.sparse.save_npz writes it, but with stored members, so that rows are read in
 * place. Sizes are fixed when it is created; rows are then appended from the first to the last. */
typedef struct fth_csr_writer fth_csr_writer;
FTH_API FTH_MUST_USE fth_status fth_csr_create_npz(fth_csr_writer **out, fth_mem *mem,
                                                   const char *path, int64_t rows, int64_t cols,
                                                   int64_t entries, fth_dtype dtype, fth_err *err);
/* Append n rows: row_ptr[0..n], with any first value, their columns and values. */
FTH_API FTH_MUST_USE fth_status fth_csr_append(fth_csr_writer *w, int64_t n, const int64_t *row_ptr,
                                               const int32_t *col, const void *val, fth_err *err);
/* Finish the file; fails unless every row and entry was appended. Ends the writer in any case. */
FTH_API FTH_MUST_USE fth_status fth_csr_commit(fth_csr_writer *w, fth_err *err);
FTH_API void fth_csr_abandon(fth_csr_writer *w); /* NULL is allowed */

/* ---- mini-batches, prefetched ---- */

/* Selected rows of a source, read by a background thread while the previous batch is in use:
 *
 *   ask(first);  take(&batch);              create the input and the plan with this batch
 *   ask(next);   run;   take(&batch);       fth_input_set, and so on
 *
 * The object owns the memory of each batch; a plan uses it in place. There are two buffers, so one
 * batch can be prefetched, and a batch stays valid until the next one is taken.
 *
 * Threads: one thread at a time. Between an ask and its take nobody else may use `base`. */
typedef struct fth_batches fth_batches;
/* Bytes of the buffers, before they are allocated; UINT64_MAX: overflow. A plan counts the batch
 * that it uses in place; the rest is additional. */
FTH_API uint64_t fth_batches_bytes(const fth_mem *mem, const fth_source *base, int64_t rows);
/* Batches of up to `rows` rows. `base` is copied; what it refers to must outlive this object. */
FTH_API FTH_MUST_USE fth_status fth_batches_create_(fth_batches **out, fth_mem *mem, fth_site site,
                                                    const fth_source *base, int64_t rows,
                                                    fth_err *err);
/* Read each batch with up to `threads` threads if `base` is in memory or concurrent: for device
 * runs, which leave the host idle. Not while a batch is being read. */
FTH_API FTH_MUST_USE fth_status fth_batches_share(fth_batches *b, int threads, fth_err *err);
/* Wait for a read in progress and discard it; sources that were taken become invalid. NULL is
 * allowed. */
FTH_API void fth_batches_destroy(fth_batches *b);
/* Start reading rows index[0..n) of `base`, in that order. The indices are checked and copied.
 * FTH_E_USAGE: the previous batch was not taken yet. */
FTH_API FTH_MUST_USE fth_status fth_batches_ask_(fth_batches *b, fth_site site,
                                                 const int64_t *index, int64_t n, fth_err *err);
/* Wait for the batch. An error of the background read is reported here, with the line of its ask;
 * the previous batch then stays valid, and another ask is allowed. */
FTH_API FTH_MUST_USE fth_status fth_batches_take(fth_batches *b, fth_source *out, fth_err *err);
/* The buffer of the batch taken last, borrowed, with capacity for `rows` rows; NULL: none was
 * taken. On a device make it a parameter and pass the next one to fth_param_set: it is copied from
 * pinned memory while the following batch is read. */
FTH_API fth_tensor *fth_batches_tensor(const fth_batches *b);
#define fth_batches_create(out, mem, base, rows, err)                                              \
    fth_batches_create_((out), (mem), FTH_HERE, (base), (rows), (err))
#define fth_batches_ask(b, index, n, err) fth_batches_ask_((b), FTH_HERE, (index), (n), (err))

FTH_END_DECLS
#endif /* FATHOM_IO_H */
