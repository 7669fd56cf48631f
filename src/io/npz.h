/* io/npz.h - members of an NPZ file that are not arrays of numbers. */
#ifndef FTH_IO_NPZ_H
#define FTH_IO_NPZ_H

#include <fathom/io.h>

fth_mem *fth__npz_mem(const fth_npz *npz);
const char *fth__npz_path(const fth_npz *npz);
/* A single string ('|S3' or '<U3'), cut to `bytes`. FTH_E_FILE_KEY when there is no such member. */
fth_status fth__npz_text(fth_npz *npz, const char *name, char *text, size_t bytes, fth_err *err);
/* fth_npz_create, where a member with text[i] is that one string ('|S3'), written at once; its
 * dtype and sizes are not read. */
fth_status fth__npz_create(fth_npz_writer **out, fth_mem *mem, const char *path,
                           const fth_file_item *items, int64_t n_items, const char *const *text,
                           fth_err *err);

#endif
