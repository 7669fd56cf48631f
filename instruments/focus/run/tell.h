/* tell.h - reports on each stack: a line of the log when it is complete, and timelines of the first
 * stacks and of the whole run. */
#ifndef FOCUS_RUN_TELL_H
#define FOCUS_RUN_TELL_H

#include "pipeline.h"

/* *out is NULL where nothing is to be reported. The context records into a timeline until the
 * end. */
fth_status fo_tell_begin(fo_tell **out, fo_pipeline *p, fth_err *err);
/* Writes trace_run.json. Returns `s`, or what went wrong with a timeline. NULL is allowed. */
fth_status fo_tell_end(fo_tell *t, fth_status s, fth_err *err);
fo_watch *fo_tell_watch(fo_tell *t); /* NULL of NULL */

/* These stacks are about to be fused, within so many bytes; and that they were. */
void fo_tell_batch(fo_tell *t, const int64_t *chosen, int64_t n, uint64_t bytes);
void fo_tell_fused(fo_tell *t, const int64_t *chosen, int64_t n, const fth_run_report *report);

/* Whether the log takes debug lines. */
bool fo_is_debug(const fth_context *ctx);

#endif
