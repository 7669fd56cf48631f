/* verb.c - see verb.h. */
#include "verb.h"

#include <stdarg.h>
#include <string.h>

fth_status pt_verb_run(const pt_frame *frame, fth_context *ctx, int n_args, char *const *arg,
                       fth_flag_value_fn *value, void *user, FILE *out, fth_err *err)
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

/* "batch 24, raster_period 4 5", truncated with two dots. */
void pt_say_keys(const fth_stage_call *call, FILE *notes, const fth_config *cfg, const char *names)
{
    char text[400] = "";
    size_t used = 0;
    for (int64_t i = 0; i < pt_schema.n_keys; i++) {
        const fth_config_key *k = &pt_schema.key[i];
        char one[200], number[40];
        const char *at = strstr(names, k->name);
        const size_t length = strlen(k->name);
        while (at && ((at > names && at[-1] != ' ') || at[length] != ' '))
            at = strstr(at + 1, k->name);
        if (!at || k->type == FTH_CONFIG_SECTION || !fth_config_is_given(cfg, k->name)) continue;
        size_t n = (size_t)snprintf(one, sizeof one, "%s%s", used ? ", " : "", k->name);
        for (int64_t j = 0; j < fth_config_count(cfg, k->name) && n < sizeof one; j++) {
            const char *value =
                k->type == FTH_CONFIG_BOOL ? fth_config_bool_at(cfg, k->name, j) ? "true" : "false"
                : k->type == FTH_CONFIG_INT
                    ? fth_number_format(number, sizeof number,
                                        (double)fth_config_int_at(cfg, k->name, j), 17)
                : k->type == FTH_CONFIG_REAL
                    ? fth_number_format(number, sizeof number, fth_config_real_at(cfg, k->name, j),
                                        9)
                    : fth_config_text_at(cfg, k->name, j);
            n += (size_t)snprintf(one + n, sizeof one - n, " %s", value);
        }
        if (used + strlen(one) + 6 > sizeof text) {
            snprintf(text + used, sizeof text - used, ", ..");
            break;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", one);
    }
    pt_say(call, notes, "keys: %s%s", text, used ? "; the others by default" : "all by default");
}
