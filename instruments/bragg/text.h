/* text.h - a text file in pieces: numbers one after the other, or lines.
 *
 * A file of any length takes one buffer. Threads: one at a time per object.
 */
#ifndef BRAGG_TEXT_H
#define BRAGG_TEXT_H

#include <fathom/fathom.h>

enum { BR_TEXT_ROOM = 65536, BR_TEXT_NUMBER = 512 }; /* bytes: buffer, longest number */

typedef struct br_text {
    fth_mem *mem;
    const char *path; /* the caller's */
    int fd;
    bool end;     /* the buffer holds the last bytes of the file */
    char *buffer; /* BR_TEXT_ROOM + 1 */
    size_t at, n; /* next byte, bytes there are */
    int64_t line; /* of the next byte, from 1 */
} br_text;

fth_status br_text_open(br_text *t, fth_mem *mem, const char *path, fth_err *err);
void br_text_close(br_text *t); /* one that did not open is allowed */
fth_status br_text_rewind(br_text *t, fth_err *err);
/* At least `want` bytes in the buffer, or all that the file still has. */
fth_status br_text_fill(br_text *t, size_t want, fth_err *err);

/* The next number after any white space, as scanf takes it; *found is false at the first text that
 * is none and at the end. *digits: it was written with digits and a sign alone. */
fth_status br_text_number(br_text *t, double *v, bool *found, bool *digits, fth_err *err);
/* The next line without its end, cut at a zero byte; NULL at the end of the file. *whole (may be
 * NULL): there was no zero byte. t->line is then that of the line after it. */
fth_status br_text_line(br_text *t, char **line, bool *whole, fth_err *err);

/* strtod with a point, whatever the locale says. */
double br_strtod(const char *text, const char **end);

#endif
