/* shim/fail_calls.h - the system says no to the n-th call, whoever makes it.
 *
 * Linked into a program, fail_calls.c takes the place of malloc and its kin, write and pwrite,
 * fsync, and rename for every library of the process, as a preloaded object would. Nothing happens
 * until it is armed. Not for programs with a sanitizer or under valgrind, which want the same
 * place.
 */
#ifndef FATHOM_SHIM_FAIL_CALLS_H
#define FATHOM_SHIM_FAIL_CALLS_H

#include <stdint.h>

typedef enum fail_kind { FAIL_MEMORY, FAIL_WRITE, FAIL_SYNC, FAIL_RENAME, FAIL_KINDS } fail_kind;

/* From now on count calls of this kind; the n-th fails, once. 0: only count. */
void fail_arm(fail_kind kind, int64_t n);
/* Stop, and say how many calls there were. */
int64_t fail_disarm(void);
/* Who made the call that failed: frames, innermost first; returns how many. */
int fail_frames(void *const **frames);

#endif
