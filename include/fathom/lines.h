/* fathom/lines.h - a text of lines, such as CSV, that is written whole or not at all.
 *
 * It grows in memory; what fails on the way is remembered and reported once, by fth_lines_save.
 * Numbers look the same in every locale.
 *
 * Ownership: give it back with fth_lines_save or fth_lines_free.
 * Threads:   one thread at a time.
 * Failure:   nothing is left behind, and an older file of that name stays.
 */
#ifndef FATHOM_LINES_H
#define FATHOM_LINES_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef struct fth_lines {
    fth_mem *mem;
    char *data; /* terminated; NULL while nothing was added */
    int64_t used, bytes;
    fth_status status;
} fth_lines;

FTH_API void fth_lines_begin(fth_lines *t, fth_mem *mem);
/* Text as printf makes it: not for real numbers, whose point depends on the locale. */
FTH_API void fth_lines_add(fth_lines *t, const char *fmt, ...) FTH_PRINTF(2, 3);
/* The shortest text that reads as this number; nan, inf and -inf otherwise. */
FTH_API void fth_lines_real(fth_lines *t, double v);
/* A field of CSV: in quotes where it has a comma, a quote or a line break. NULL is empty. */
FTH_API void fth_lines_field(fth_lines *t, const char *text);
FTH_API FTH_MUST_USE fth_status fth_lines_save(fth_lines *t, const char *path, fth_err *err);
FTH_API void fth_lines_free(fth_lines *t); /* does nothing the second time */

FTH_END_DECLS
#endif /* FATHOM_LINES_H */
