/* log.c - one formatted line to whoever listens. Long lines are cut. */
#include <fathom/base.h>

#include "base/str.h"

enum { LINE_BYTES = 2048 };

void fth_log_line(const fth_log *log, fth_log_level level, const char *fmt, ...)
{
    if (!log || !log->write || level > log->level) return;
    char line[LINE_BYTES];
    fth__text t;
    fth__text_init(&t, line, sizeof line);
    va_list args;
    va_start(args, fmt);
    fth__text_addv(&t, fmt, args);
    va_end(args);
    fth__text_mark_cut(&t);
    fth__str_make_plain(line);
    log->write(log->user, level, line);
}
