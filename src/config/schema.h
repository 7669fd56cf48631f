/* config/schema.h - looking things up in a table of keys. */
#ifndef FTH_CONFIG_SCHEMA_H
#define FTH_CONFIG_SCHEMA_H

#include "base/str.h"

#include <fathom/config.h>

/* FTH_E_USAGE when the table contradicts itself; defaults are checked with the values. */
fth_status fth__schema_check(const fth_schema *s, fth_err *err);
/* Row of a full name or alias; -1: none. */
int64_t fth__schema_find(const fth_schema *s, const char *name);
/* Some row's name or alias starts with `name` and a dot, or is a SECTION of that name. */
bool fth__schema_is_section(const fth_schema *s, const char *name);
/* The known name that is nearest to a written one; NULL when none is near. */
const char *fth__schema_nearest(const fth_schema *s, const char *name);

/* Words between blanks: start of word number i in `words` and its length; NULL beyond the last. */
const char *fth__word(const char *words, int i, size_t *length);
/* Number of the word that is equal to `word`, -1: none. NULL `words` has none. */
int fth__word_find(const char *words, const char *word);

/* "an integer in [1, inf)", "one of exp softplus", "a list of paths": what a row takes. */
void fth__schema_expects(fth__text *t, const fth_config_key *row);
/* "integer", "path"... */
const char *fth__type_name(fth_config_type type);

#endif
