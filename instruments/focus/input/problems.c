/* problems.c - see problems.h. */
#include "problems.h"

#include <string.h>

static void add_line(fo_problems *p, bool data, const char *hint, const char *line)
{
    p->n++;
    p->data = p->data || data;
    if (hint && *hint && !p->hint[0]) snprintf(p->hint, sizeof p->hint, "%s", hint);
    const size_t n = strlen(line);
    if (p->used + n + 4 > sizeof p->text) return;
    p->used += (size_t)snprintf(p->text + p->used, sizeof p->text - p->used, "\n  %s", line);
    p->shown++;
}

void fo_problems_add(fo_problems *p, bool data, const char *hint, const char *fmt, ...)
{
    char line[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    add_line(p, data, hint, line);
}

void fo_problems_take(fo_problems *p, const fth_err *found)
{
    char line[700];
    snprintf(line, sizeof line, "%.690s", found->text);
    add_line(p, fth_status_get_info(found->status)->exit_code != 2, found->hint, line);
}

fth_status fo_problems_or(fo_problems *p, fth_status s, const fth_err *found, fth_err *err)
{
    if (s == FTH_OK) return FTH_OK;
    if (s != FTH_E_NOMEM && s != FTH_E_BUDGET) {
        fo_problems_take(p, found);
        return FTH_OK;
    }
    if (err) *err = *found;
    return s;
}

fth_status fo_problems_end(const fo_problems *p, fth_err *err)
{
    if (p->n == 0) return FTH_OK;
    const fth_status s = p->data ? FTH_E_FILE_FORMAT : FTH_E_COMMAND;
    char more[40] = "";
    if (p->shown < p->n) snprintf(more, sizeof more, "\n  and %d more", p->n - p->shown);
    if (p->n == 1)
        FTH_FAIL(err, s, "%s", p->text + 3);
    else
        FTH_FAIL(err, s, "%d problems:%s%s", p->n, p->text, more);
    if (p->hint[0])
        fth_err_hint(err, "%s", p->hint);
    else if (p->data) /* the generic hint is for damaged files, and most are not */
        fth_err_hint(err, "nothing was written; fix the problems and start again");
    return s;
}
