/* job/emit.h - JSON to a file, value after value; valid whatever the texts hold, also inside HTML.
 *
 * '<', '>' and '&' are written as \u003c and so on: a name cannot end the <script> element that the
 * page keeps its data in. Bytes that are no UTF-8 become U+FFFD. Numbers have a point in every
 * locale. Write errors stay in the FILE: ask it once at the end.
 */
#ifndef FTH_JOB_EMIT_H
#define FTH_JOB_EMIT_H

#include <fathom/base.h>

typedef struct fth__emit {
    FILE *file;
    bool comma; /* a value stands before the next one */
} fth__emit;

/* `key` NULL: inside a list. */
void fth__emit_open(fth__emit *e, const char *key, char bracket);
void fth__emit_close(fth__emit *e, char bracket);
void fth__emit_text(fth__emit *e, const char *key, const char *text);
void fth__emit_bytes(fth__emit *e, const char *key, const char *text, size_t n);
void fth__emit_int(fth__emit *e, const char *key, int64_t v);
void fth__emit_size(fth__emit *e, const char *key, uint64_t v);
void fth__emit_hex(fth__emit *e, const char *key, uint64_t v);   /* as a text of 16 digits */
void fth__emit_real(fth__emit *e, const char *key, double v);    /* null unless finite */
void fth__emit_seconds(fth__emit *e, const char *key, double v); /* three decimals */
void fth__emit_bool(fth__emit *e, const char *key, bool v);
/* FTH_E_FILE_WRITE when anything before could not be written. */
fth_status fth__emit_end(FILE *file, const char *what, fth_err *err);

#endif
