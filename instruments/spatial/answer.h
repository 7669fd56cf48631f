/* answer.h - files of the spatial instrument in the answer of a verb. */
#ifndef SPATIAL_ANSWER_H
#define SPATIAL_ANSWER_H

#include "data/data.h"

/* "DIR/NAME", with n_axes sizes of a .npy file of it (0: its bytes are not known beforehand). */
fth_status sp_answer_array(fth_answer *a, fth_file_kind kind, const char *dir, const char *name,
                           fth_dtype dtype, int n_axes, const int64_t *size, fth_err *err);
fth_status sp_answer_named(fth_answer *a, fth_file_kind kind, const char *dir, const char *name,
                           const char *what, fth_err *err);
/* The four files of a preprocessed folder, as inputs. */
fth_status sp_answer_data(fth_answer *a, const sp_data *d, fth_err *err);
/* The bytes of an array as a .npy file has them. */
int64_t sp_npy_bytes(fth_dtype dtype, int n_axes, const int64_t *size);

#endif
