/* problems.h - all problems of the inputs, reported at once and before any work. */
#ifndef FOCUS_INPUT_PROBLEMS_H
#define FOCUS_INPUT_PROBLEMS_H

#include <fathom/fathom.h>

typedef struct fo_problems {
    int n, shown;
    bool data;                     /* one of them is of a file: exit code 3, else 2 */
    char text[FTH_ERR_TEXT - 100]; /* a line each */
    size_t used;
    char hint[FTH_ERR_HINT]; /* of the first that has one */
} fo_problems;

/* One line. `hint` may be NULL. */
void fo_problems_add(fo_problems *p, bool data, const char *hint, const char *fmt, ...)
    FTH_PRINTF(4, 5);
/* The same of an error that a reader found. */
void fo_problems_take(fo_problems *p, const fth_err *found);
/* The status of a reader: an error of the file is collected, and FTH_OK returned; out of memory is
 * passed on. */
FTH_MUST_USE fth_status fo_problems_or(fo_problems *p, fth_status s, const fth_err *found,
                                       fth_err *err);
/* FTH_OK, or FTH_E_FILE_FORMAT or FTH_E_COMMAND with all of them. */
fth_status fo_problems_end(const fo_problems *p, fth_err *err);

#endif
