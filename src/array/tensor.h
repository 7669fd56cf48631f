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
/* A block on the device, its contents still to be brought. */
fth_status fth__tensor_place(fth_tensor *t, const fth__mirror_place *place, const char *label,
                             fth_err *err);
/* FTH_E_USAGE where the tensor is on a device alone and `device`, the memory that a graph has its
 * parameters in (NULL: the host's), is not that one's. */
fth_status fth__tensor_check_place(const fth_tensor *t, const fth_mem *device, const char *name,
                                   fth_err *err);
/* What that block counts in the device's ledger. */
uint64_t fth__tensor_mirror_cost(const fth_tensor *t, const fth_mem *mem);
/* Queue on COMPUTE a copy of what the host has changed. The memory stays as it is until that is
 * done. */
fth_status fth__tensor_bring(fth_tensor *t, fth_err *err);
/* The block on the device becomes that of another tensor of the same size, whose contents are to be
 * brought. */
fth_status fth__tensor_hand_over(fth_tensor *from, fth_tensor *to, fth_err *err);
/* A run has put something else into the block on the device. */
void fth__tensor_changed(fth_tensor *t);

/* The host's ledger of a tensor that is on a device alone; NULL: it has memory here. */
fth_mem *fth__tensor_apart(const fth_tensor *t);

/* The tensor that a source or sink of fth_tensor_source and fth_tensor_sink is about; NULL: none.
 */
fth_tensor *fth__source_tensor(const fth_source *s);
fth_tensor *fth__sink_tensor(const fth_sink *s);
/* Whoever has a tensor for an input without a reference of its own looks before it reads: `watch`
 * keeps what is asked, not the data. NULL is allowed. */
void fth__tensor_watch(fth_tensor *t);
void fth__tensor_unwatch(fth_tensor *t);
/* FTH_E_ORDER when its last reference is gone, with the lines that made and released it. */
fth_status fth__tensor_check(const fth_tensor *t, const char *doing, fth_err *err);
/* FTH_E_PLAN_STALE when its rows are not `rows` any more. NULL is allowed. */
fth_status fth__tensor_check_rows(const fth_tensor *t, const char *what, int64_t rows,
                                  fth_err *err);

#endif
