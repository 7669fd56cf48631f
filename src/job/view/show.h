/* job/view/show.h - format numbers of tasks as short texts, independent of the locale. */
#ifndef FTH_JOB_SHOW_H
#define FTH_JOB_SHOW_H

#include <fathom/job.h>

enum { FTH__WORD = 24 };
/* "812M", "1.2G": powers of 1024, at most five characters. */
const char *fth__show_size(uint64_t bytes, char word[FTH__WORD]);
/* "0.4s", "12s", "3:25", "1:02:33", "5d 03h"; "" when it is no time. */
const char *fth__show_seconds(double seconds, char word[FTH__WORD]);
/* Five digits at most: "-1.2346e+05"; "" when it is not finite. */
const char *fth__show_value(double value, char word[FTH__WORD]);
/* Seconds that a running task will still take, from what it says, from how far it is, or from
 * its plan; 0: unknown. */
double fth__task_remaining(const fth_task *task);
/* "cached" for what was not run again; else the name of the state. */
const char *fth__task_state(const fth_task *task);
/* Place of a state in lists: running, pending, blocked, failed, interrupted, skipped, completed. */
int fth__state_place(fth_state state);

#endif
