/* config/read.h - what src/job needs to know of how a config came about, beyond the public part. */
#ifndef FTH_CONFIG_READ_H
#define FTH_CONFIG_READ_H

#include <fathom/config.h>

/* fth_config_set for a value that the program gives: messages call its place `name`, and the
 * numbers of the user's own --set stay as they are. */
fth_status fth__config_set_as(fth_config *cfg, const char *name, const char *assignment,
                              fth_err *err);
/* Where the value stands that fth_config_peek gives; the start of the last file when there is
 * none. */
fth_place fth__config_peek_place(const fth_config *cfg, const char *key);
/* The user's own --set number i as it was written; NULL beyond the last. */
const char *fth__config_set_at(const fth_config *cfg, int i);
/* What it was checked with. */
const fth_config_options *fth__config_options(const fth_config *cfg);

#endif
