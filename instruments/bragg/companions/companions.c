/* companions.c - what the companion verbs share: their flags, digital images, one-shot plans. */
#include "companions.h"
#include "../flags/flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const fth_flag br_companion_flags[] = {
    {.name = "compat",
     .value = FTH_FLAG_WORD,
     .doc = "c: as the original program, its flags and random numbers included; spec: as intended "
            "(default)"},
    {.name = "quirk",
     .value = FTH_FLAG_SET,
     .doc = "switch one defect of the original on or off: substring-flags=on"},
    {0}};

static const char *value_of(void *user, const char *flag)
{
    const br_call *call = user;
    return call->value(call->user, flag);
}

static const char *value_at(void *user, const char *flag, int i)
{
    return i == 0 ? value_of(user, flag) : NULL;
}

fth_status br_call_run(fth_status (*run)(const br_call *call, fth_err *err), fth_context *ctx,
                       int n_args, char *const *arg,
                       const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                       fth_err *err)
{
    fth_answer a;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    const br_call call = {.ctx = ctx,
                          .n_words = n_args,
                          .word = arg,
                          .value = value,
                          .user = user,
                          .answer = &a,
                          .out = a.notes};
    return fth_answer_end(&a, run(&call, err), err);
}

fth_direct_call br_call_direct(const br_call *call, int n_words, char *const *word)
{
    return (fth_direct_call){.context = call->ctx,
                             .n_words = n_words,
                             .word = word,
                             .value = value_of,
                             .value_at = value_at,
                             .user = (void *)(uintptr_t)call,
                             .out = call->out,
                             .notes = call->out};
}

fth_status br_call_quirks(const br_call *call, uint32_t *mask, fth_err *err)
{
    const fth_direct_call direct = br_call_direct(call, 0, call->word);
    br_flags f;
    FTH_TRY(br_flags_of_call(&f, &direct, err));
    *mask = f.quirks;
    return FTH_OK;
}

fth_status br_call_int(const br_call *call, const char *flag, int64_t otherwise, int64_t *out,
                       fth_err *err)
{
    const char *text = call->value(call->user, flag);
    *out = otherwise;
    if (!text || fth_int_parse(text, out)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s takes a whole number, not '%.100s'", flag, text);
}

/* ---- digital images ---- */

static double most(int bits)
{
    return bits == 32 ? 2147483647.0 : 65535.0;
}

fth_val br_digitise(fth_val adu, int bits)
{
    fth_graph *g = adu.graph;
    const double least = bits == 32 ? -2147483648.0 : 0;
    const fth_val cut =
        fth_min(fth_max(adu, fth_const(g, FTH_F64, least)), fth_const(g, FTH_F64, most(bits)));
    return fth_cast(cut, bits == 32 ? FTH_I32 : FTH_U16);
}

fth_val br_overloads(fth_val adu, int bits)
{
    return fth_count(fth_gt(adu, fth_const(adu.graph, FTH_F64, most(bits))), "slow fast");
}

/* ---- one-shot plans ---- */

void br_sweep_add(br_sweep *sweep, fth_val v, fth_sink sink, bool file)
{
    sweep->out[sweep->n] = v;
    sweep->sink[sweep->n] = sink;
    sweep->file[sweep->n++] = file;
}

static fth_status plan_and_run(br_sweep *sweep, const char *name, fth_answer *show, fth_err *err)
{
    const fth_limits limits = {.sinks = show ? NULL : sweep->sink};
    fth_plan *p = fth_plan_make(sweep->graph, sweep->out, sweep->n, &limits, err);
    if (!p) return err->status;
    const fth_status s =
        show ? fth_answer_plan(show, name, p, err) : fth_run(p, sweep->sink, NULL, NULL, err);
    fth_plan_destroy(p);
    return s;
}

void br_sweep_drop(br_sweep *sweep)
{
    for (int i = 0; i < sweep->n; i++)
        if (sweep->file[i]) fth_sink_close(&sweep->sink[i]);
    fth_graph_destroy(sweep->graph);
    *sweep = (br_sweep){0};
}

fth_status br_sweep_end(br_sweep *sweep, const char *name, fth_answer *show, fth_err *err)
{
    const fth_status s = plan_and_run(sweep, name, show, err);
    br_sweep_drop(sweep);
    return s;
}
