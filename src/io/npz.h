/* io/npz.h - a member of an NPZ file that is not an array of numbers. */
#ifndef FTH_IO_NPZ_H
#define FTH_IO_NPZ_H

#include <fathom/io.h>

fth_mem *fth__npz_mem(const fth_npz *npz);
const char *fth__npz_path(const fth_npz *npz);
/* A single string ('|S3' or '<U3'), cut to `bytes`. FTH_E_FILE_KEY when there is no such member. */
fth_status fth__npz_text(fth_npz *npz, const char *name, char *text, size_t bytes, fth_err *err);

#endif
