/* text/width.h - how many columns of a terminal a text takes, character by character.
 *
 * Names come from files and people: what could move the cursor, turn the direction of the line or
 * is no UTF-8 is shown as '?', so that a name can neither break the table nor pretend to be
 * another one.
 */
#ifndef FTH_TEXT_WIDTH_H
#define FTH_TEXT_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fth__glyph {
    const char *text; /* what to write: the bytes of the character, or "?" */
    size_t bytes;
    int columns; /* 0, 1 or 2 */
} fth__glyph;

/* The character at *at, which moves behind it; false at the end of the text. */
bool fth__glyph_next(const char **at, fth__glyph *out);
/* Columns of a whole text. */
int64_t fth__text_columns(const char *text);
/* One UTF-8 character: its bytes, 0 when there is none that is well formed. */
int fth__utf8_read(const char *text, uint32_t *code);

#endif
