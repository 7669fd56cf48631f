/* config/surrogates.h - "\ud83d\ude00", how JSON writes one character beyond U+FFFF.
 *
 * libyaml refuses such pairs, and only libyaml knows which texts stand in double quotes, where
 * backslashes mean something. So every pair becomes, before libyaml reads, two marks (characters
 * that the text does not hold) and "\U0001f600": as many characters as before, so that places stay
 * right. In a text from double quotes the marks are taken out; in any other the pair is put back as
 * it was, for which the marks say where its letters were large.
 */
#ifndef FTH_CONFIG_SURROGATES_H
#define FTH_CONFIG_SURROGATES_H

#include "config/store.h"

/* The text with its pairs rewritten, in the store; the text itself when it has none. `marks` is the
 * first of 16 characters that are marks, 0: none. NULL: no memory. */
const char *fth__surrogates_hide(fth__store *store, const char *text, size_t *bytes,
                                 unsigned *marks);
/* What a scalar says, terminated, in the store; NULL: no memory. */
char *fth__surrogates_show(fth__store *store, const char *text, size_t n, bool double_quoted,
                           unsigned marks);

#endif
