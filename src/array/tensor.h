/* tensor.h - the second home of a tensor: a copy in a device's memory, and which of both is newer.
 *
 * A parameter that a device updates stays there from run to run. Whoever asks for the host's memory
 * (fth_tensor_data) gets it up to date, and is taken to change it: the next run copies it back.
 */
#ifndef FTH_ARRAY_TENSOR_H
#define FTH_ARRAY_TENSOR_H

#include <fathom/array.h>
#include <fathom/backend.h>

typedef struct fth__mirror_place {
    const fth_device_table *table;
    fth_device *device;
    fth_mem *mem; /* ledger of the device's memory */
} fth__mirror_place;

/* The block on the device; NULL: there is none. NULL is allowed. */
void *fth__tensor_mirror(const fth_tensor *t);
/* A block on the device that holds what the tensor holds; queued on COMPUTE. */
fth_status fth__tensor_to_device(fth_tensor *t, const fth__mirror_place *place, const char *label,
                                 void **out, fth_err *err);
/* A run has put something else into the block on the device. */
void fth__tensor_changed(fth_tensor *t);

#endif
