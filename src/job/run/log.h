/* job/run/log.h - one section of a log file: the output of one run of a stage, between a header and
 * a footer.
 *
 * A section has a limit, and its end is always there: beyond the limit the text goes through a ring
 * of FTH__LOG_TAIL bytes that is written when the section ends, after one line that says how much
 * was dropped. A write that fails (a full disk) loses text and is noted; it never stops the task.
 */
#ifndef FTH_JOB_LOG_H
#define FTH_JOB_LOG_H

#include "base/str.h"

#include <fathom/memory.h>

/* TAIL: some hundred lines, the end that matters. BUFFER: lines of one read of a pipe in few
 * writes. LAST: an error with its hint and a trace. */
enum { FTH__LOG_TAIL = 64 << 10, FTH__LOG_BUFFER = 32 << 10, FTH__LOG_LAST = 4096 };

typedef struct fth__log {
    fth_mem *mem;
    int fd;
    uint64_t from, to; /* bytes of the section in the file */
    uint64_t limit;    /* most text between header and footer */
    uint64_t text;     /* bytes that were added */
    uint64_t head;     /* of them, written before the ring was needed */
    int failed;        /* errno of the first write that failed; 0: none */
    char *ring;        /* made when the limit is reached */
    size_t buffered;
    size_t last_used;
    char last[FTH__LOG_LAST]; /* end of the text: the error of a failed task is in it */
    char buffer[FTH__LOG_BUFFER];
} fth__log;

/* Opens for appending, making the folder of the file. `limit` 0: 256 MiB. */
fth_status fth__log_open(fth__log **out, fth_mem *mem, const char *path, uint64_t limit,
                         fth_err *err);
/* Lines of the header or footer, outside the limit. */
void fth__log_print(fth__log *log, const char *fmt, ...) FTH_PRINTF(2, 3);
void fth__log_add(fth__log *log, const char *text, size_t n);
/* What is buffered goes to the file now, so that `fathom logs -f` sees it. */
void fth__log_flush(fth__log *log);
/* The ring, when there is one, and the line about what was dropped. After it only fth__log_print.
 */
void fth__log_end_text(fth__log *log);
void fth__log_close(fth__log *log); /* NULL is allowed */
/* The error at the end of the text: from its first line ("error FTH-..."), or else the last
 * lines. Terminated. */
void fth__log_error(const fth__log *log, char *text, size_t bytes);

/* A word as a shell reads it back: quoted only where it must be. */
void fth__shell_quote(fth__text *t, const char *word);

#endif
