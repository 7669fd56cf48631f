/* io/dense.h - arrays that lie in a file element after element.
 *
 * NPY, NPZ, safetensors and raw files differ only in how they say where the
 * elements are. Reading goes through fth__bytes, so that a part of a file and
 * an inflated zip member look alike; writing goes to a place in a file whose
 * layout was fixed when it was created.
 */
#ifndef FTH_IO_DENSE_H
#define FTH_IO_DENSE_H

#include <fathom/io.h>

#include "base/hash.h"
#include "io/file.h"

#include <inttypes.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files and memory have the same byte order");

/* First member of every `self` of ours: how fth_source_close and fth_sink_close end it. */
typedef struct fth__opened {
    void (*close)(void *self);
} fth__opened;

/* ---- bytes that can be read at any place ---- */

typedef struct fth__bytes {
    void *self;
    fth_status (*read)(void *self, uint64_t offset, uint64_t bytes, void *dst, fth_err *err);
    void (*close)(void *self);
    bool concurrent; /* several threads may read at once */
} fth__bytes;
/* [start, end of file) of a file, whose reference passes over on success. */
fth_status fth__bytes_of_file(fth__bytes *out, fth_file *f, uint64_t start, fth_err *err);

/* ---- reading ---- */

/* Read a whole source into a tensor of its dtype and shape, wherever that is. */
fth_status fth__source_fill(const fth_source *source, fth_tensor *t, fth_err *err);

typedef struct fth__layout {
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    uint64_t offset; /* of the first element, in fth__bytes */
    bool fortran;    /* the first axis is the one whose neighbours touch */
    bool swap;       /* big-endian */
    bool is_u64;     /* read as i64; a number from 2^63 on is an error */
} fth__layout;
/* Fill in a source. The layout was checked against the bytes there are. `bytes` passes over on
 * success only; `kind` is a literal. */
fth_status fth__dense_open(fth_source *out, const char *kind, fth_mem *mem, const fth__bytes *bytes,
                           const fth__layout *layout, fth_err *err);
/* Reverse the bytes of each component. */
void fth__swap_elements(fth_dtype dtype, int64_t count, void *elements);
/* Numbers without a sign were read as i64: FTH_E_FILE_FEATURE names the first that does not fit.
 * `where` is the file or the array. */
fth_status fth__u64_check(const char *where, int64_t count, const int64_t *v, fth_err *err);
fth_status fth__u64_fail(const char *where, uint64_t number, fth_err *err);
#define FTH__U64_TEXT "found %" PRIu64 ", and there is no dtype u64: i64 holds numbers up to 2^63-1"
#define FTH__U64_HINT                                                                              \
    "save the array as f64, which rounds such numbers, or as two of u32, its high and low halves"

/* ---- writing ---- */

typedef enum fth__sum_kind { FTH__SUM_NONE, FTH__SUM_CRC32, FTH__SUM_XXH64 } fth__sum_kind;

/* Where one array goes. Rectangles may come in any order; a checksum is kept on the way as long
 * as they come from the front, and otherwise made by reading back. */
typedef struct fth__dense_place {
    fth__writer *writer;
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    uint64_t offset, bytes; /* in the file */
    bool swap;
    int64_t count;           /* elements */
    _Atomic int64_t written; /* of them; places without a checksum are for several threads */
    fth__sum_kind sum;
    uint64_t summed; /* bytes from the front that are in the checksum */
    uint32_t crc;
    fth__hash xxh;
} fth__dense_place;
/* `crc_so_far` continues the checksum of bytes before the elements; 0 to start anew. */
fth_status fth__place_init(fth__dense_place *p, fth__writer *w, fth_dtype dtype, int n_axes,
                           const int64_t *size, uint64_t offset, fth__sum_kind sum,
                           uint32_t crc_so_far, fth_err *err);
fth_status fth__place_write(fth__dense_place *p, const int64_t *lo, const int64_t *n,
                            const void *src, fth_err *err);
/* FTH_E_STATE unless every element was written; then the checksum is complete. */
fth_status fth__place_finish(fth__dense_place *p, fth_err *err);

/* A sink that is a whole file: `head` bytes, then one array. */
fth_status fth__dense_create(fth_sink *out, const char *kind, fth_mem *mem, const char *path,
                             const fth__layout *layout, const void *head, fth_err *err);

/* ---- several places in one file (NPZ, safetensors) ---- */

typedef struct fth__members fth__members;
typedef struct fth__member {
    fth__opened opened;
    fth__members *owner;
    fth__dense_place place;
    char *name;
    bool done;
} fth__member;
struct fth__members {
    fth_mem *mem;
    fth__writer writer;
    char *path;           /* a copy: the writer frees its own when it ends */
    fth__member *member;  /* in the order they were given */
    fth__member **sorted; /* by name */
    int64_t n;
    bool abandoned;
};
/* Open the file and copy the names, which must be distinct and not empty. Places are for the
 * caller to fill in. On failure everything is freed. */
fth_status fth__members_open(fth__members *m, fth_mem *mem, const char *path,
                             const fth_file_item *items, int64_t n_items, fth_err *err);
fth_status fth__members_sink(fth__members *m, const char *kind, const char *name, fth_sink *out,
                             fth_err *err);
/* FTH_E_STATE naming the first member that was not committed. */
fth_status fth__members_check(const fth__members *m, fth_err *err);
void fth__members_close(fth__members *m); /* abandons the file unless it was committed */

#endif
