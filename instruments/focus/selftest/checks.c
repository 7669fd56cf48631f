/* checks.c - see checks.h. */
#include "checks.h"

#include <stdarg.h>
#include <string.h>

static void tell(fo_checks *c, const char *name, bool ok, const char *text)
{
    c->n++;
    c->failed += !ok;
    const size_t used = strlen(c->failures);
    if (!ok && used + strlen(name) + strlen(c->device) + 8 < sizeof c->failures)
        snprintf(c->failures + used, sizeof c->failures - used, "%s%s (%s)", used ? "; " : "", name,
                 c->device);
    fprintf(c->out, "%-4s  %-7s  %s%s%s\n", ok ? "ok" : "FAIL", c->device, name, ok ? "" : ": ",
            ok ? "" : text);
    fflush(c->out);
    if (!c->w) return;
    fth_json_open_row(c->w, NULL, '{');
    fth_json_text(c->w, "device", c->device);
    fth_json_text(c->w, "check", name);
    fth_json_bool(c->w, "ok", ok);
    if (!ok) fth_json_text(c->w, "found", text);
    fth_json_close(c->w);
}

void fo_check(fo_checks *c, const char *name, bool ok, const char *found, ...)
{
    char text[600];
    va_list args;
    va_start(args, found);
    vsnprintf(text, sizeof text, found, args);
    va_end(args);
    tell(c, name, ok, text);
}

fth_status fo_check_failed(fo_checks *c, const char *name, const fth_err *why)
{
    if (why->status == FTH_E_CANCELLED) return FTH_E_CANCELLED;
    char text[600];
    snprintf(text, sizeof text, "%.590s", why->text);
    for (char *at = text; *at; at++)
        if (*at == '\n') *at = ' ';
    tell(c, name, false, text);
    return FTH_OK;
}
