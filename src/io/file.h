/* io/file.h - reading and writing files in pieces whose place is known.
 *
 * A reader never maps a file and never trusts a length: every read is checked
 * against the size the file had when it was opened. A writer works under a
 * temporary name in the same folder; commit syncs and renames. Both name the
 * file in every error; a failed write is a FTH_E_FILE_WRITE that says the old
 * file is untouched.
 */
#ifndef FTH_IO_FILE_H
#define FTH_IO_FILE_H

#include <fathom/files.h>

#include <stdatomic.h>

/* ---- in place ---- */

struct fth_file {
    fth_mem *mem;
    atomic_int refs;
    int fd;
    const uint8_t *data; /* of a file in memory, of the caller; NULL: on disk */
    bool writable;
    bool stream;            /* what is read does not stay in the page cache */
    _Atomic uint64_t bytes; /* when it was opened, and what was added since */
    char *path;
};
/* Bytes in memory, which stay the caller's, as a file to be read. */
fth_status fth__file_of_bytes(fth_file **out, fth_mem *mem, const char *label, const void *data,
                              uint64_t bytes, fth_err *err);
fth_file *fth__file_retain(fth_file *f); /* fth_file_close drops one reference */

/* "scan.npz, byte 1234: ..." with FTH_FAIL's manners. */
fth_status fth__file_fail_(fth_err *err, fth_site site, fth_status status, const char *path,
                           uint64_t offset, const char *fmt, ...) FTH_PRINTF(6, 7);
#define FTH__FILE_FAIL(err, status, path, offset, ...)                                             \
    fth__file_fail_((err), FTH_HERE, (status), (path), (offset), __VA_ARGS__)

/* ---- writing ---- */

typedef struct fth__writer {
    fth_mem *mem;
    int fd;     /* of the temporary file; open for reading too */
    char *path; /* where the file will be */
    char *temp; /* where it is now; NULL once renamed or unlinked */
} fth__writer;

fth_status fth__writer_open(fth__writer *w, fth_mem *mem, const char *path, fth_err *err);
fth_status fth__writer_write(fth__writer *w, uint64_t offset, uint64_t bytes, const void *src,
                             fth_err *err);
/* Read back what was written. */
fth_status fth__writer_read(fth__writer *w, uint64_t offset, uint64_t bytes, void *dst,
                            fth_err *err);
/* The file ends here; bytes never written are zero. */
fth_status fth__writer_set_size(fth__writer *w, uint64_t bytes, fth_err *err);
/* Sync, rename over `path`, sync the folder; with `previous`, a file already there is kept under
 * that name. Whatever happens the writer is ended, and after a failure before the rename the old
 * file is as it was. */
fth_status fth__writer_commit(fth__writer *w, const char *previous, fth_err *err);
/* Close and unlink; does nothing after commit or on a zeroed writer. */
void fth__writer_abandon(fth__writer *w);

#endif
