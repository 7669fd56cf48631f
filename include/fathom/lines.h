/* fathom/lines.h - build a text file such as CSV in memory and write it atomically.
 *
 * The text grows in memory; the first failure is remembered and fth_lines_save reports it.
 * Numbers are independent of the locale.
 *
 * Ownership: fth_lines_save and fth_lines_free release the memory.
 * Threads:   one thread at a time per object.
 * Failure:   no file is left behind, and an older file of that name stays.
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
/* Append formatted text. Not for real numbers, whose decimal point depends on the locale. */
FTH_API void fth_lines_add(fth_lines *t, const char *fmt, ...) FTH_PRINTF(2, 3);
/* Append the shortest text that reads back as this number, or nan, inf, -inf. */
FTH_API void fth_lines_real(fth_lines *t, double v);
/* Append a CSV field, quoted if it has a comma, a quote or a line break. NULL is empty. */
FTH_API void fth_lines_field(fth_lines *t, const char *text);
FTH_API FTH_MUST_USE fth_status fth_lines_save(fth_lines *t, const char *path, fth_err *err);
FTH_API void fth_lines_free(fth_lines *t); /* does nothing the second time */

FTH_END_DECLS
#endif /* FATHOM_LINES_H */
