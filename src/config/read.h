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

/* A whole file of at most FTH__CONFIG_BYTES; the caller frees the text with fth__heap_free. */
fth_status fth__config_load(fth_mem *mem, const char *path, char **text, size_t *bytes,
                            fth_err *err);
/* fth_config_parse for the text of a file at `path`, which messages call `name`: `base` in it names
 * files that it inherits from, and those are layers below it. */
fth_status fth__config_parse_file(fth_config *cfg, const char *name, const char *path,
                                  const char *text, size_t bytes, fth_err *err);
/* The path of an inherited file; NULL beyond the last. */
const char *fth__config_base_at(const fth_config *cfg, int i);

#endif
