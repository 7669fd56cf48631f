/* fathom/array.h - element types, tiles, and where data comes from and goes to.
 *
 * A tile is a rectangle of a larger array and knows its position in it, so that
 * a kernel sees global indices. Sources and sinks are the only interface between
 * a run and the outside world; both transfer rectangles.
 *
 * Ownership: tensors are reference-counted; release what you create or retain. A source or sink
 *            borrows its tensor or file, which must outlive it.
 * Threads:   any thread may retain and release; else one thread at a time per tensor. A run uses a
 *            source or sink from one thread, unless it is `concurrent`.
 * Failure:   *out is NULL and nothing changes.
 */
#ifndef FATHOM_ARRAY_H
#define FATHOM_ARRAY_H

#include <fathom/base.h>
#include <fathom/memory.h>

FTH_BEGIN_DECLS

enum { FTH_MAX_AXES = 8, FTH_MAX_IN = 48, FTH_MAX_OUT = 24 };

typedef struct fth_c64 {
    float re, im;
} fth_c64;
typedef struct fth_c128 {
    double re, im;
} fth_c128;

typedef enum fth_dtype {
#define FTH_DTYPE(name, text, bytes, ctype) FTH_##name,
#include <fathom/dtypes.def>
#undef FTH_DTYPE
    FTH_DTYPE_COUNT
} fth_dtype;

FTH_API const char *fth_dtype_name(fth_dtype t);                /* "f32" */
FTH_API int64_t fth_dtype_size(fth_dtype t);                    /* bytes per element */
FTH_API bool fth_dtype_parse(const char *text, fth_dtype *out); /* false: unknown dtype */
FTH_API bool fth_dtype_is_int(fth_dtype t);       /* u8 u16 u32 i8 i16 i32 i64, not bool */
FTH_API bool fth_dtype_is_real(fth_dtype t);      /* f16 bf16 f32 f64 */
FTH_API bool fth_dtype_is_complex(fth_dtype t);   /* c64 c128 */
FTH_API fth_dtype fth_dtype_real_of(fth_dtype t); /* c64 -> f32, c128 -> f64, others themselves */
FTH_API fth_dtype
fth_dtype_complex_of(fth_dtype t); /* f32 -> c64, f64 -> c128, others themselves */

/* A rectangle of an array. Its axis order, dtype and number of axes are those of the
 * value it belongs to. The innermost stride is 1; strides are in elements and are
 * those of a dense enclosing box, so a tile may be a slice of a larger array. */
typedef struct fth_tile {
    void *data;                   /* first element of this rectangle */
    int64_t extent[FTH_MAX_AXES]; /* elements along each axis; may be 0 */
    int64_t stride[FTH_MAX_AXES]; /* elements between neighbours */
    int64_t origin[FTH_MAX_AXES]; /* global index of the first element */
} fth_tile;

/* A block of memory with a shape, reference-counted. Axes get their names where it enters a graph.
 */
typedef struct fth_tensor fth_tensor;
FTH_API FTH_MUST_USE fth_status fth_tensor_create_(fth_tensor **out, fth_mem *mem, fth_site site,
                                                   const char *label, fth_dtype dtype, int n_axes,
                                                   const int64_t *size, fth_err *err);
/* Wrap row-major memory that the caller owns: counted as foreign, never freed here. `drop` (may be
 * NULL) is called once with `user` when the last reference is released. */
FTH_API FTH_MUST_USE fth_status fth_tensor_wrap_(fth_tensor **out, fth_mem *mem, fth_site site,
                                                 const char *label, fth_dtype dtype, int n_axes,
                                                 const int64_t *size, void *data,
                                                 void (*drop)(void *user), void *user,
                                                 fth_err *err);
/* Create a tensor whose first axis can grow to `most` rows without moving (fth_mem_reserve): only
 * the rows that exist count against the budget. It starts with size[0] rows of zeros. With the
 * ledger of a device's memory (fth_context_device_mem) the rows live on the device only and use no
 * host memory: such a tensor is a parameter of graphs of that context, fth_tensor_data and
 * fth_tensor_view return NULL, and fth_tensor_get_rows and fth_tensor_put_rows read and write it
 * piecewise. */
FTH_API FTH_MUST_USE fth_status fth_tensor_reserve_(fth_tensor **out, fth_mem *mem, fth_site site,
                                                    const char *label, fth_dtype dtype, int n_axes,
                                                    const int64_t *size, int64_t most,
                                                    fth_err *err);
#define fth_tensor_reserve(out, mem, label, dtype, n, size, most, err)                             \
    fth_tensor_reserve_((out), (mem), FTH_HERE, (label), (dtype), (n), (size), (most), (err))
/* Change the number of rows: new rows are zero, removed ones are dropped, nothing is copied. A
 * graph has the number of rows of its construction: its runs fail until the tensor has that many
 * again. On failure nothing changes. */
FTH_API FTH_MUST_USE fth_status fth_tensor_set_rows(fth_tensor *t, int64_t rows, fth_err *err);
/* Keep n rows: row i becomes the former row from[i], and all others are dropped. from[] is strictly
 * ascending, so rows keep their order and move in place. */
FTH_API FTH_MUST_USE fth_status fth_tensor_keep_rows(fth_tensor *t, const int64_t *from, int64_t n,
                                                     fth_err *err);
/* The same for several tensors with equal numbers of rows. On failure each tensor has either all
 * its rows or exactly the kept ones. */
FTH_API FTH_MUST_USE fth_status fth_tensors_keep_rows(fth_tensor *const *t, int tensors,
                                                      const int64_t *from, int64_t n, fth_err *err);
/* Copy rows [from, from+n) to and from dense host memory, wherever their current values are. */
FTH_API FTH_MUST_USE fth_status fth_tensor_get_rows(fth_tensor *t, int64_t from, int64_t n,
                                                    void *dst, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_tensor_put_rows(fth_tensor *t, int64_t from, int64_t n,
                                                    const void *src, fth_err *err);
#define fth_tensor_create(out, mem, label, dtype, n, size, err)                                    \
    fth_tensor_create_((out), (mem), FTH_HERE, (label), (dtype), (n), (size), (err))
#define fth_tensor_wrap(out, mem, label, dtype, n, size, data, err)                                \
    fth_tensor_wrap_((out), (mem), FTH_HERE, (label), (dtype), (n), (size), (data), NULL, NULL,    \
                     (err))
FTH_API fth_tensor *fth_tensor_retain(fth_tensor *t);
/* NULL is allowed. FTH_E_ORDER: the tensor has no references left; nothing changes, the message
 * goes to the log, and fth_context_destroy reports it again. */
FTH_API fth_status fth_tensor_release_(fth_tensor *t, fth_site site);
#define fth_tensor_release(t) fth_tensor_release_((t), FTH_HERE)
/* The tensor's host memory, to read and write. A parameter that runs on a device update lives
 * there: this call copies it to the host, and the next run sees what you write; so call it again
 * after every run. NULL: the copy failed; fth_tensor_sync returns the reason. */
FTH_API void *fth_tensor_data(fth_tensor *t);
/* The same for reading only: the copy on a device stays valid. */
FTH_API const void *fth_tensor_view(fth_tensor *t);
FTH_API fth_status fth_tensor_sync(fth_tensor *t, fth_err *err);
/* For lists that are seldom full: only the first `bytes` are meaningful, and only these are copied
 * to a device until the next call. What follows them on the device is undefined. */
FTH_API void fth_tensor_set_used(fth_tensor *t, uint64_t bytes);
FTH_API fth_dtype fth_tensor_dtype(const fth_tensor *t);
FTH_API int fth_tensor_axes(const fth_tensor *t);
FTH_API int64_t fth_tensor_size(const fth_tensor *t, int axis);
FTH_API uint64_t fth_tensor_bytes(const fth_tensor *t);

/* Where values come from. `self` belongs to whoever made the source. */
typedef struct fth_source {
    const char *kind; /* "npy", "memory"...: for messages */
    void *self;
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    /* Read the rectangle [lo, lo+n) into dense row-major `dst`. */
    fth_status (*read)(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err);
    /* Read rows index[0..n) of the first axis, in that order, into dense `dst`. NULL: the engine
     * calls read() once per row. */
    fth_status (*read_rows)(void *self, const int64_t *index, int64_t n, void *dst, fth_err *err);
    /* The whole array in row-major memory, to be used in place; NULL: it must be read. */
    void *data;
    /* Libraries that allocate memory while reading (1u << FTH_LIB_...), and the bytes, beyond their
     * rows of libraries.def, that the ledger already counts. */
    uint32_t libraries;
    uint64_t billed_bytes;
    bool concurrent; /* several threads may read at once */
    /* Preferred cuts of a concurrent source: along axis d, pieces start at multiples of part[d], so
     * that a unit of the file (a frame, a strip, a chunk) is decoded once. 0: at any element. Each
     * reading thread needs another thread_bytes. */
    int64_t part[FTH_MAX_AXES];
    uint64_t thread_bytes;
} fth_source;

/* Where results go. A run calls write for rectangles that cover the output exactly once,
 * then commit if the whole run succeeded or abandon if it failed. */
typedef struct fth_sink {
    const char *kind;
    void *self;
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    fth_status (*write)(void *self, const int64_t *lo, const int64_t *n, const void *src,
                        fth_err *err);
    fth_status (*commit)(void *self, fth_err *err); /* NULL: nothing to do */
    void (*abandon)(void *self);                    /* NULL: nothing to do */
    void *data;         /* row-major memory to write in place; NULL: use write */
    uint32_t libraries; /* as in fth_source */
    uint64_t billed_bytes;
    /* The file that commit replaces, valid as long as the sink; NULL: none, or unknown. Two sinks
     * of a run with one path are an error, unless the same `writer` makes the file of both. */
    const char *path;
    const void *writer;
    bool concurrent;            /* several threads may write disjoint rectangles at once */
    int64_t part[FTH_MAX_AXES]; /* as in fth_source: an encoded image is written by one call */
    uint64_t thread_bytes;
} fth_sink;

FTH_API fth_source fth_tensor_source(fth_tensor *t); /* borrows the tensor */
FTH_API fth_sink fth_tensor_sink(fth_tensor *t);     /* in place: partly written if the run fails */
/* Mini-batches: row i of the source is row index[i] of `base`, with the indices present when a run
 * reads it. The caller owns the struct and keeps it alive; only the indices may change. */
typedef struct fth_rows {
    fth_source base;
    const int64_t *index;
    int64_t n;
} fth_rows;
FTH_API fth_source fth_rows_source(fth_rows *rows);
/* A number that changes from run to run (learning rate, step, seed): every run reads *value, which
 * the caller keeps alive. */
FTH_API fth_source fth_scalar_source(fth_dtype dtype, const void *value);
FTH_API fth_sink fth_scalar_sink(fth_dtype dtype, void *value);

FTH_END_DECLS
#endif /* FATHOM_ARRAY_H */
