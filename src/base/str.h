/* base/str.h - building text in a buffer that somebody else owns.
 *
 * A text never writes past its buffer and is always terminated. It counts what
 * it would have needed, so a caller can ask twice, as with snprintf. When the
 * text does not fit it is cut between characters (UTF-8), never inside one.
 */
#ifndef FTH_BASE_STR_H
#define FTH_BASE_STR_H

#include <fathom/base.h>

typedef struct fth__text {
    char *data;    /* the caller's buffer; may be NULL when bytes is 0     */
    size_t bytes;  /* its size                                             */
    size_t used;   /* characters in it, without the terminator             */
    size_t wanted; /* characters it would hold if the buffer had no end    */
} fth__text;

/* Start an empty text in `data`; it is terminated at once. */
void fth__text_init(fth__text *t, char *data, size_t bytes);
/* Append. Whatever does not fit is counted in `wanted` and left out. */
void fth__text_add(fth__text *t, const char *fmt, ...) FTH_PRINTF(2, 3);
void fth__text_addv(fth__text *t, const char *fmt, va_list args) FTH_PRINTF(2, 0);
void fth__text_add_chars(fth__text *t, const char *chars, size_t n);
/* Append `s` with `indent` spaces after every line break inside it. */
void fth__text_add_indented(fth__text *t, const char *s, int indent);
/* True when something was left out. */
bool fth__text_is_cut(const fth__text *t);
/* When something was left out, replace the end by "...". */
void fth__text_mark_cut(fth__text *t);

/* Length of the UTF-8 character at s, of which `left` bytes may be read (at least one); 0: none. */
size_t fth__utf8_length(const char *s, size_t left);

/* Bytes of the mark that some editors put before UTF-8: 3 when it is there, else 0. */
size_t fth__utf8_bom(const char *text, size_t bytes);

/* Replace, byte by byte, what could steer a terminal by '?': controls but line breaks and tabs,
 * what turns the direction of a line, and bytes that are no UTF-8. */
void fth__str_make_plain(char *text);

/* Copy a string into a fixed array, cut if needed, always terminated. NULL is "". */
void fth__str_copy(char *to, size_t bytes, const char *from);
/* The same, keeping the end of a long string (of a path, the file name matters). */
void fth__str_copy_tail(char *to, size_t bytes, const char *from);

#endif
