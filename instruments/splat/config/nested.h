/* nested.h - training_config.json as a config: values of its sections, of Fathom or LichtFeld.
 *
 * What does not belong to a section is overwritten with blanks, so that lines and columns in
 * messages are those of the file.
 */
#ifndef SPLAT_CONFIG_NESTED_H
#define SPLAT_CONFIG_NESTED_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a text is an object that has an object "optimization". */
bool gs_nested_is(const char *text);
/* The first member beside "optimization" that is none of what a training writes; NULL: there is
 * none. It ends with its quote. */
const char *gs_nested_stranger(const char *text);
/* Keep one section; of "dataset", which also has facts, keys alone. False: it has no such section,
 * and the text is as it was. */
bool gs_nested_keep(char *text, const char *section);

#endif
