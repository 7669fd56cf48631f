/* fathom/array.h - element types, tiles, and where data comes from and goes to.
 *
 * A tile is a rectangle of a larger array: it knows its place in the whole, so
 * that a kernel sees global indices. Sources and sinks are the only doors
 * between a run and the outside world; both speak in rectangles.
 *
 * Threads: a run uses a source or sink from one thread, unless it says that several may.
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
FTH_API bool fth_dtype_parse(const char *text, fth_dtype *out); /* false: no such dtype */
FTH_API bool fth_dtype_is_int(fth_dtype t);       /* u8 u16 i32 i64 (bool is not a number) */
FTH_API bool fth_dtype_is_real(fth_dtype t);      /* f16 bf16 f32 f64 */
FTH_API bool fth_dtype_is_complex(fth_dtype t);   /* c64 c128 */
FTH_API fth_dtype fth_dtype_real_of(fth_dtype t); /* c64 -> f32, c128 -> f64, others themselves */
FTH_API fth_dtype
fth_dtype_complex_of(fth_dtype t); /* f32 -> c64, f64 -> c128, others themselves */

/* A rectangle of an array. Axis order, dtype and count of axes are those of the
 * value it belongs to. The innermost stride is 1; strides are in elements and
 * those of a dense enclosing box, so a tile may be a slice of something larger. */
typedef struct fth_tile {
    void *data;                   /* first element of this rectangle */
    int64_t extent[FTH_MAX_AXES]; /* elements along each axis; may be 0 */
    int64_t stride[FTH_MAX_AXES]; /* elements between neighbours */
    int64_t origin[FTH_MAX_AXES]; /* global index of the first element */
} fth_tile;

/* A block of memory with a shape; counted references. Axes are named where it enters a graph. */
typedef struct fth_tensor fth_tensor;
FTH_API FTH_MUST_USE fth_status fth_tensor_create_(fth_tensor **out, fth_mem *mem, fth_site site,
                                                   const char *label, fth_dtype dtype, int n_axes,
                                                   const int64_t *size, fth_err *err);
/* Wrap the caller's row-major memory: counted as foreign, never freed by us. `drop` (may be
 * NULL) is called once with `user` when the last reference goes. */
FTH_API FTH_MUST_USE fth_status fth_tensor_wrap_(fth_tensor **out, fth_mem *mem, fth_site site,
                                                 const char *label, fth_dtype dtype, int n_axes,
                                                 const int64_t *size, void *data,
                                                 void (*drop)(void *user), void *user,
                                                 fth_err *err);
/* One whose first axis grows up to `most` rows where it lies (fth_mem_reserve): what is there
 * counts, addresses cost nothing. It starts with size[0] rows of 0. With the ledger of a device's
 * memory (fth_context_device_mem) the rows are on the device alone and take none of the host's:
 * such a tensor is a parameter of graphs of that context, fth_tensor_data and fth_tensor_view give
 * NULL, and rows are read and written in pieces by fth_tensor_get_rows and fth_tensor_put_rows. */
FTH_API FTH_MUST_USE fth_status fth_tensor_reserve_(fth_tensor **out, fth_mem *mem, fth_site site,
                                                    const char *label, fth_dtype dtype, int n_axes,
                                                    const int64_t *size, int64_t most,
                                                    fth_err *err);
#define fth_tensor_reserve(out, mem, label, dtype, n, size, most, err)                             \
    fth_tensor_reserve_((out), (mem), FTH_HERE, (label), (dtype), (n), (size), (most), (err))
/* From now on it has that many rows: new ones are 0, those beyond are forgotten, nothing is copied.
 * A graph is about the rows that were there when it was made: runs of it are refused until there
 * are as many again. On failure nothing changed. */
FTH_API FTH_MUST_USE fth_status fth_tensor_set_rows(fth_tensor *t, int64_t rows, fth_err *err);
/* Row i becomes what row from[i] is, for i below n, and the others are forgotten: from[] ascends,
 * so the order stays and no second copy is needed. */
FTH_API FTH_MUST_USE fth_status fth_tensor_keep_rows(fth_tensor *t, const int64_t *from, int64_t n,
                                                     fth_err *err);
/* The same of several tensors with as many rows each, which belong together. On failure each has
 * its rows, all of them or those to keep. */
FTH_API FTH_MUST_USE fth_status fth_tensors_keep_rows(fth_tensor *const *t, int tensors,
                                                      const int64_t *from, int64_t n, fth_err *err);
/* Rows [from, from+n) to and from dense memory of the host, wherever the newest are. */
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
/* NULL is allowed. FTH_E_ORDER: it was released as often as it was retained before, which changes
 * nothing; the message goes to the log, and fth_context_destroy tells it again. */
FTH_API fth_status fth_tensor_release_(fth_tensor *t, fth_site site);
#define fth_tensor_release(t) fth_tensor_release_((t), FTH_HERE)
/* Its memory. A parameter that runs on a device update lives there: this brings it up to date, and
 * what is then written is seen by the next run; so ask again after every run. NULL: the device did
 * not answer; fth_tensor_sync says why. */
FTH_API void *fth_tensor_data(fth_tensor *t);
/* The same for those who only read: what is on a device stays as new. */
FTH_API const void *fth_tensor_view(fth_tensor *t);
FTH_API fth_status fth_tensor_sync(fth_tensor *t, fth_err *err);
/* Only the first `bytes` mean something, in lists that are seldom full: no more is copied to a
 * device, until this is called again. What lies behind them there is anything. */
FTH_API void fth_tensor_set_used(fth_tensor *t, uint64_t bytes);
FTH_API fth_dtype fth_tensor_dtype(const fth_tensor *t);
FTH_API int fth_tensor_axes(const fth_tensor *t);
FTH_API int64_t fth_tensor_size(const fth_tensor *t, int axis);
FTH_API uint64_t fth_tensor_bytes(const fth_tensor *t);

/* Where values come from. `self` is owned by whoever made the source. */
typedef struct fth_source {
    const char *kind; /* "npy", "memory"...: for messages */
    void *self;
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    /* Read the rectangle [lo, lo+n) into dense row-major `dst`. */
    fth_status (*read)(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err);
    /* Read rows index[0..n) of the first axis, in that order, into dense `dst`. NULL: read() row by
     * row. */
    fth_status (*read_rows)(void *self, const int64_t *index, int64_t n, void *dst, fth_err *err);
    /* Memory that can be used in place, row-major and whole; NULL: it must be read. */
    void *data;
    /* Libraries that take memory of their own while reading (1u << FTH_LIB_...), and the bytes of
     * it that stand in the ledger already, beyond their rows of libraries.def. */
    uint32_t libraries;
    uint64_t billed_bytes;
    bool concurrent; /* several threads may read at once */
    /* Where a concurrent source is best cut: along axis d its parts begin at multiples of part[d],
     * so that what lies together in the file (a frame, a strip, a chunk) is decoded once. 0: at any
     * element. Each thread that reads takes thread_bytes beside all of the above. */
    int64_t part[FTH_MAX_AXES];
    uint64_t thread_bytes;
} fth_source;

/* Where results go. A run calls write for rectangles that cover the output once,
 * then commit when the whole run succeeded or abandon when it did not. */
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
    void *data;         /* memory that may be written in place; NULL: use write */
    uint32_t libraries; /* as in fth_source */
    uint64_t billed_bytes;
    /* The file that commit replaces, as long as the sink; NULL: none, or not known. Two sinks of a
     * run with one path are an error, unless one `writer` makes the file of both. */
    const char *path;
    const void *writer;
    bool concurrent;            /* several threads may write at once, each a rectangle of its own */
    int64_t part[FTH_MAX_AXES]; /* as in fth_source: an image that is encoded is written at once */
    uint64_t thread_bytes;
} fth_sink;

FTH_API fth_source fth_tensor_source(fth_tensor *t); /* kept alive by the caller */
FTH_API fth_sink fth_tensor_sink(fth_tensor *t);     /* direct: partly written if the run fails */
/* Mini-batches: row i of the source is row index[i] of `base`, whichever indices stand there when a
 * run reads it. The struct belongs to the caller and outlives its use; only `index` may change. */
typedef struct fth_rows {
    fth_source base;
    const int64_t *index;
    int64_t n;
} fth_rows;
FTH_API fth_source fth_rows_source(fth_rows *rows);
/* A number that changes from run to run (learning rate, step, seed): read at every run. */
FTH_API fth_source fth_scalar_source(fth_dtype dtype, const void *value);
FTH_API fth_sink fth_scalar_sink(fth_dtype dtype, void *value);

FTH_END_DECLS
#endif /* FATHOM_ARRAY_H */
