/* job/run/progress.h - parse the output of a task: lines and progress from the bytes of its pipes.
 *
 * Bytes come in any pieces. They are cut into lines; a line that is too long to be one of ours is
 * handed on in pieces and not looked into. Nothing a process writes can be an error here.
 */
#ifndef FTH_JOB_PROGRESS_H
#define FTH_JOB_PROGRESS_H

#include <fathom/memory.h>

enum { FTH__LINE_BYTES = 4096 }; /* the longest line that a stage sends */

typedef struct fth__progress_lines {
    size_t used;
    bool inside; /* of a line of which pieces were handed on already */
    char text[FTH__LINE_BYTES];
} fth__progress_lines;
/* `end` is '\n' or '\r', or 0 for a piece of an unfinished line; `whole` is false for every piece
 * of a long line, its last included. The text is not terminated. */
typedef void fth__line_fn(void *user, const char *text, size_t n, char end, bool whole);
void fth__lines_feed(fth__progress_lines *lines, const char *data, size_t n, fth__line_fn *each,
                     void *user);
/* The rest, when no more will come. */
void fth__lines_flush(fth__progress_lines *lines, fth__line_fn *each, void *user);

typedef struct fth__progress {
    int64_t done, total; /* total 0: not known */
    double remaining_s;  /* 0: not known */
    double value;        /* of the key figure; NaN: none yet */
    char what[48];
    uint64_t bytes;      /* resident, as the process reports; 0: not reported */
    uint64_t base_bytes; /* resident before it began: no part of the plan */
    uint64_t planned_bytes, device_planned_bytes; /* by the plan that it made itself */
    uint64_t ledger_bytes, peak_bytes, read_bytes, written_bytes; /* reported at its end */
    double io_seconds, compute_seconds, device_seconds;
    char bound_by[80];
} fth__progress;
/* One line of JSON of a stage; `figure` names the number that is shown, and may be "". What the
 * line does not name stays; false: it is no JSON, and nothing changed. */
bool fth__progress_json(fth__progress *p, fth_mem *mem, const char *line, size_t n,
                        const char *figure);
/* Text of other programs: "Iteration 500: ELBO = -1.5e3" and bars such as
 * " 50%|##  | 5/10 [01:23<02:45, ELBO=-5.475e+05]". Fields that the line does not name stay. True
 * for a bar: thousands of them say nothing in a log. */
bool fth__progress_foreign(fth__progress *p, const char *line, size_t n);

#endif
