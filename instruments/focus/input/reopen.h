/* reopen.h - files that are opened for every read: a plate of tiles has more files than there are
 * descriptors.
 *
 * Readers take their buffers from a ledger of their own, so that opening and closing files does not
 * change the plan of a run; the plan counts the memory of one for each reading thread. At most
 * eight are open at once.
 */
#ifndef FOCUS_INPUT_REOPEN_H
#define FOCUS_INPUT_REOPEN_H

#include "input.h"

typedef struct fo_reopener fo_reopener;
/* For the files of an input, whose sizes are known. */
fth_status fo_reopener_create(fo_reopener **out, fo_input *in, fth_err *err);
void fo_reopener_destroy(fo_reopener *r); /* NULL is allowed */
/* The pixels of a file; waits while too many are open. Every one that succeeded is closed. */
fth_status fo_reopener_open(fo_reopener *r, const fo_file *f, const fo_selection *selection,
                            fth_source *out, fth_err *err);
void fo_reopener_close(fo_reopener *r, fth_source *source);
/* What one open file takes. */
uint64_t fo_reopener_bytes(const fo_reopener *r);

#endif
