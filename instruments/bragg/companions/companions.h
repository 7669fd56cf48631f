/* companions.h - verbs beside the render: `fathom bragg noisify`, `fathom bragg nonbragg`.
 *
 * They take the flags of the programs of those names, with one dash, and ours with two.
 */
#ifndef BRAGG_COMPANIONS_H
#define BRAGG_COMPANIONS_H

#include "../geometry/scene.h"

#include <fathom/instrument.h>

/* ---- what both share ---- */

typedef struct br_call {
    fth_context *ctx;
    int n_words;
    char *const *word;
    const char *(*value)(void *user, const char *flag); /* of flags with two dashes */
    void *user;
    fth_answer *answer;
    FILE *out; /* of the JSON answer: what was done, and the results */
} br_call;

/* Runs a verb with the flags that the program parsed. */
fth_status br_call_run(fth_status (*run)(const br_call *call, fth_err *err), fth_context *ctx,
                       int n_args, char *const *arg,
                       const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                       fth_err *err);
/* The same as the flags of the render see it, with other words. */
fth_direct_call br_call_direct(const br_call *call, int n_words, char *const *word);
/* Mask of the quirks that --compat and --quirk switch on. */
fth_status br_call_quirks(const br_call *call, uint32_t *mask, fth_err *err);
/* The number of a flag with two dashes; `otherwise` when it was not given. */
fth_status br_call_int(const br_call *call, const char *flag, int64_t otherwise, int64_t *out,
                       fth_err *err);

/* Signal in ADU, f64 [slow fast], as whole numbers for a file: cut to what `bits` (16 or 32) can
 * hold, decimals dropped. */
fth_val br_digitise(fth_val adu, int bits);
/* i64 []: how many are cut at the upper end. */
fth_val br_overloads(fth_val adu, int bits);

/* A plan, run at once or only shown. Outputs are added with their sinks; sinks that were opened
 * for it are closed by the end. */
enum { BR_SWEEP_OUTS = 8 };
typedef struct br_sweep {
    fth_context *ctx;
    fth_graph *graph;
    int n;
    fth_val out[BR_SWEEP_OUTS];
    fth_sink sink[BR_SWEEP_OUTS];
    bool file[BR_SWEEP_OUTS]; /* to be closed */
} br_sweep;
void br_sweep_add(br_sweep *sweep, fth_val v, fth_sink sink, bool file);
/* With `show` the plan goes there under that name, and nothing runs. Closes sinks and graph either
 * way. */
fth_status br_sweep_end(br_sweep *sweep, const char *name, fth_answer *show, fth_err *err);
void br_sweep_drop(br_sweep *sweep); /* closes them without a plan */

/* ---- verbs ---- */

extern const char br_noisify_doc[], br_nonbragg_doc[];

fth_status br_noisify_run(fth_context *ctx, int n_args, char *const *arg,
                          const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                          fth_err *err);
fth_status br_nonbragg_run(fth_context *ctx, int n_args, char *const *arg,
                           const char *(*value)(void *user, const char *flag), void *user,
                           FILE *out, fth_err *err);
extern const fth_flag br_companion_flags[]; /* --compat, --quirk, --precision */

#endif
