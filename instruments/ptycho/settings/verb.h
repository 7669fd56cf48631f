/* verb.h - the frame of a verb: words counted, settings read, an answer begun and ended.
 *
 *   static fth_status work(const pt_call *call, fth_err *err) { ... call->cfg, call->answer ... }
 *   PT_RUN(1, "one file", "fathom ptycho info SCAN", work)
 *
 * defines the function `run` of a fth_verb.
 */
#ifndef PTYCHO_SETTINGS_VERB_H
#define PTYCHO_SETTINGS_VERB_H

#include "settings.h"

typedef struct pt_call {
    fth_context *ctx;
    const fth_config *cfg;
    int n_args;
    char *const *arg;
    fth_flag_value_fn *value; /* of a flag; NULL: not given */
    void *user;
    fth_answer *answer;
} pt_call;

typedef struct pt_frame {
    int words; /* that are expected; below 0: `work` counts them */
    const char *expected, *usage;
    fth_status (*work)(const pt_call *call, fth_err *err);
} pt_frame;

fth_status pt_verb_run(const pt_frame *frame, fth_context *ctx, int n_args, char *const *arg,
                       fth_flag_value_fn *value, void *user, FILE *out, fth_err *err);

#define PT_RUN(words, expected, usage, work)                                                       \
    static fth_status run(fth_context *ctx, int n_args, char *const *arg,                          \
                          const char *(*value)(void *user, const char *flag), void *user,          \
                          FILE *out, fth_err *err)                                                 \
    {                                                                                              \
        static const pt_frame frame = {words, expected, usage, work};                              \
        return pt_verb_run(&frame, ctx, n_args, arg, value, user, out, err);                       \
    }

/* A log line: to the log of a stage, or to the notes of a verb; dropped without either. */
void pt_say(const fth_stage_call *call, FILE *notes, const char *fmt, ...) FTH_PRINTF(3, 4);
/* Likewise which of the keys `names` (pt_keys_solve, ...) were given, and their values. */
void pt_say_keys(const fth_stage_call *call, FILE *notes, const fth_config *cfg, const char *names);

#endif
