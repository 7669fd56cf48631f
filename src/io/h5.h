/* io/h5.h - what the files that use libhdf5 share; nobody else includes it.
 *
 * HDF5's own printing of errors is off between fth__h5_enter and leave; the
 * innermost line of its error stack goes into our error, with file and object.
 */
#ifndef FTH_IO_H5_H
#define FTH_IO_H5_H

#include "io/dense.h"

#include <hdf5.h>

struct fth_h5 {
    fth_mem *mem;
    atomic_int refs;
    hid_t file;
    char *path;
    uint64_t bytes; /* of the file */
};

typedef struct fth__h5_quiet {
    H5E_auto2_t print;
    void *data;
} fth__h5_quiet;
fth__h5_quiet fth__h5_enter(void);
void fth__h5_leave(fth__h5_quiet q);

/* "file, object: what failed: why", the why from HDF5's stack. */
fth_status fth__h5_fail_(fth_err *err, fth_site site, fth_status status, const char *path,
                         const char *object, const char *what);
#define H5_FAIL(err, status, path, object, what)                                                   \
    fth__h5_fail_((err), FTH_HERE, (status), (path), (object), (what))

/* File access without locks, which fail on many cluster file systems, and closed for good; -1 on
 * failure. */
hid_t fth__h5_access(void);
/* The type of our elements in memory, which is also the type we write; -1 on failure. */
hid_t fth__h5_type(fth_dtype dtype);

typedef struct fth__h5_packed fth__h5_packed; /* hdf5_packed.c */
typedef struct fth__h5_dataset {
    fth__opened opened;
    fth_mem *mem;
    fth_h5 *h5; /* kept open; NULL when writing */
    hid_t id, type, space, transfer;
    void *bill; /* what the library holds of a chunk */
    uint64_t bill_bytes;
    fth__h5_packed *packed; /* chunks that are unpacked here; NULL: libhdf5 does it */
    char *name;
    fth_dtype dtype;
    int n_axes;
    int inner; /* of them, the last ones: axes of a field of a record, not of the dataset */
    int64_t size[FTH_MAX_AXES];
    uint64_t beyond; /* a number that i64 does not hold, met while reading; 0: none */
} fth__h5_dataset;
/* Why elements could not be read, or made those of our dtype. */
fth_status fth__h5_read_fail(fth__h5_dataset *d, const char *what, fth_err *err);
/* Everything but the struct itself. */
bool fth__h5_dataset_close(fth__h5_dataset *d); /* false: HDF5 could not write all of it */
/* Select [lo, lo+n) and make the shape of the memory; -1 when HDF5 fails. */
hid_t fth__h5_select(fth__h5_dataset *d, const int64_t *lo, const int64_t *n);
/* Access with a cache of one chunk, billed with what packing it needs. */
fth_status fth__h5_bill_chunk(fth__h5_dataset *d, hid_t create, uint64_t item, hid_t *access,
                              const char *path, fth_err *err);
/* Sets `packed` and bills its rooms where the only filter, or the only one after HDF5's shuffle, is
 * one of those below. */
fth_status fth__h5_packed_open(fth__h5_dataset *d, hid_t create, hid_t type, fth_err *err);
void fth__h5_packed_close(fth__h5_dataset *d);
uint32_t fth__h5_packed_libraries(const fth__h5_dataset *d);
fth_status fth__h5_packed_read(fth__h5_dataset *d, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err);

/* ---- filters that libhdf5 lacks: hdf5_filters.c ---- */

enum {
    FTH__H5_BLOSC = 32001,
    FTH__H5_LZ4 = 32004,
    FTH__H5_BITSHUFFLE = 32008,
    FTH__H5_ZSTD = 32015
};
bool fth__h5_filter_is_ours(H5Z_filter_t id, size_t n, const unsigned *values);
/* Bytes that unpacking a chunk needs to work in, aligned to 64. */
uint64_t fth__h5_filter_room(H5Z_filter_t id, uint64_t bytes);
uint32_t fth__h5_filter_libraries(H5Z_filter_t id);
typedef struct fth__h5_unpacking {
    fth_mem *mem;
    H5Z_filter_t filter;
    uint64_t item; /* Bitshuffle: bytes of an element */
    const unsigned char *in;
    uint64_t n_in;
    unsigned char *out;
    uint64_t want;       /* bytes that must come out */
    unsigned char *room; /* Bitshuffle: as many */
    void *work;
    uint64_t work_bytes;
} fth__h5_unpacking;
bool fth__h5_filter_unpack(const fth__h5_unpacking *u); /* false: it is damaged */
void fth__h5_register_filters(void);                    /* with libhdf5, once per process */
/* That packed chunks which libhdf5 reads, of elements of `item` bytes, have the size of a chunk. */
fth_status fth__h5_check_packed(hid_t dataset, hid_t create, uint64_t item, fth_mem *mem,
                                const char *path, const char *object, fth_err *err);

/* The member `field` of a compound type, to be closed; -1 and an error when there is none. */
hid_t fth__h5_member(hid_t type, const char *field, const char *path, const char *object,
                     fth_err *err);
/* A record in memory that has this one field at its start; closes `member`. -1 on failure. */
hid_t fth__h5_record(const char *field, hid_t member);
fth_status fth__h5_check_filters(hid_t create, const char *path, const char *object, fth_err *err);
/* That LZF chunks of elements of `item` bytes in the file unpack to whole chunks. */
fth_status fth__h5_check_lzf(hid_t dataset, hid_t create, uint64_t item, fth_mem *mem,
                             const char *path, const char *object, fth_err *err);

#endif
