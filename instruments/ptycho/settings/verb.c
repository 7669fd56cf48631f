/* verb.c - see verb.h. */
#include "verb.h"

#include <stdarg.h>

fth_status pt_verb_run(const pt_frame *frame, fth_context *ctx, int n_args, char *const *arg,
                       pt_value_fn *value, void *user, FILE *out, fth_err *err)
{
    fth_answer a;
    fth_config *cfg = NULL;
    if (frame->words >= 0 && n_args != frame->words) {
        FTH_FAIL(err, FTH_E_COMMAND, "%s expected, found %d word%s", frame->expected, n_args,
                 n_args == 1 ? "" : "s");
        fth_err_hint(err, "write '%s'", frame->usage);
        return FTH_E_COMMAND;
    }
    FTH_TRY(pt_settings_read(&cfg, fth_context_mem(ctx), value, user, err));
    fth_status s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) {
        const pt_call call = {ctx, cfg, n_args, arg, value, user, &a};
        s = fth_answer_end(&a, frame->work(&call, err), err);
    }
    const fth_status closed = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

void pt_say(const fth_stage_call *call, FILE *notes, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (call)
        fth_stage_say(call, "%s", text);
    else if (notes)
        fprintf(notes, "%s\n", text);
}
