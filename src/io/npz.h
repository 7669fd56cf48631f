/* io/npz.h - members of an NPZ file that are not arrays of numbers. */
#ifndef FTH_IO_NPZ_H
#define FTH_IO_NPZ_H

#include "io/npy.h"

/* A member, open, with its header. Close `bytes`. */
typedef struct fth__npz_array {
    fth__bytes bytes;
    fth__npy npy;
    uint64_t total;    /* bytes, unpacked, the header included */
    const char *label; /* "scan.npz: coords.npy"; lives as long as `bytes` */
    bool deflated;
} fth__npz_array;
fth_status fth__npz_member(fth_npz *npz, const char *name, fth__npz_array *out, fth_err *err);

fth_mem *fth__npz_mem(const fth_npz *npz);
const char *fth__npz_path(const fth_npz *npz);
/* A single string ('|S3' or '<U3'), cut to `bytes`. FTH_E_FILE_KEY when there is no such member. */
fth_status fth__npz_text(fth_npz *npz, const char *name, char *text, size_t bytes, fth_err *err);
/* fth_npz_create, where a member with text[i] is that one string, written at once, as bytes ('|S3')
 * or, from member `wide` on, as characters ('<U3'); its dtype and sizes are not read. */
fth_status fth__npz_create(fth_npz_writer **out, fth_mem *mem, const char *path,
                           const fth_file_item *items, int64_t n_items, const char *const *text,
                           int64_t wide, fth_err *err);

#endif
