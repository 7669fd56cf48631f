/* config/read.h - what src/job needs of a config that is not checked yet, beyond the public part.
 */
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

#endif
