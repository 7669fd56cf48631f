/* bar.c - a progress bar on a terminal, a line now and then elsewhere.
 *
 * Lines of progress are flat JSON of our own making: quotes inside texts are escaped, so a name
 * with its quotes and colon is found only where it is a name.
 */
#include "stage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double lines_apart_s = 2.0; /* of lines in a file or pipe, so that logs stay short */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *find(const char *json, const char *name)
{
    char key[64];
    if (snprintf(key, sizeof key, ",\"%s\":", name) >= (int)sizeof key) return NULL;
    const char *at = strstr(json, key);
    return at ? at + strlen(key) : NULL;
}

bool cli_progress_number(const char *json, const char *name, double *out)
{
    const char *at = find(json, name);
    char *end = NULL;
    if (!at) return false;
    const double v = strtod(at, &end);
    if (end == at) return false;
    *out = v;
    return true;
}

static void get_text(const char *json, const char *name, char *text, size_t bytes)
{
    const char *at = find(json, name);
    const size_t n = at && *at == '"' ? strcspn(at + 1, "\"\\") : 0;
    snprintf(text, bytes, "%.*s", (int)n, n ? at + 1 : "");
}

/* "1:05", "2:03:10" */
static const char *clock_text(double seconds, char *text, size_t bytes)
{
    const long s = seconds > 0 && seconds < 1e9 ? (long)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(text, bytes, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, bytes, "%ld:%02ld", s / 60, s % 60);
    return text;
}

static int columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

/* What stands behind the bar: done, rate, remaining, the figure. */
static int describe(cli_bar *bar, const char *json, double done, double total, char *text,
                    size_t bytes)
{
    char clock[32], what[40];
    double left = 0, value = 0;
    get_text(json, "what", what, sizeof what);
    cli_progress_number(json, "eta_s", &left);
    const double took = now() - bar->first_at;
    const double rate = took > 0.2 ? (done - bar->first_done) / took : 0;
    int n = snprintf(text, bytes, "%s%s%.0f/%.0f", what, what[0] ? " " : "", done, total);
    if (rate > 0) n += snprintf(text + n, bytes - (size_t)n, "  %.3g/s", rate);
    if (left > 0)
        n += snprintf(text + n, bytes - (size_t)n, "  %s left",
                      clock_text(left, clock, sizeof clock));
    if (bar->figure && cli_progress_number(json, bar->figure, &value))
        n += snprintf(text + n, bytes - (size_t)n, "  %s %.6g", bar->figure, value);
    return n;
}

static void draw(const cli_bar *bar, double share, const char *text, int length)
{
    enum { WIDEST = 40 };
    const int room = columns() - length - 12, width = room > WIDEST ? WIDEST : room;
    fprintf(bar->out, "\r\033[K");
    if (width > 4) {
        fputs(bar->colour ? "\033[36m" : "", bar->out);
        for (int i = 0; i < width; i++)
            fputs(share * width > i + 0.5 ? "#" : (i == 0 ? "|" : "-"), bar->out);
        fprintf(bar->out, "%s %3.0f %%  ", bar->colour ? "\033[0m" : "", 100 * share);
    }
    fputs(text, bar->out);
    fflush(bar->out);
}

void cli_bar_show(cli_bar *bar, const char *json)
{
    double done = 0, total = 0;
    char text[256];
    if (!cli_progress_number(json, "iter", &done)) return; /* an event */
    cli_progress_number(json, "total", &total);
    if (bar->first_at <= 0) {
        bar->first_at = bar->shown_at = now();
        bar->first_done = done;
    }
    if (!bar->terminal && now() - bar->shown_at < lines_apart_s) return;
    const int n = describe(bar, json, done, total, text, sizeof text);
    const double share = total > 0 ? fmin(done / total, 1.0) : 0;
    if (bar->terminal)
        draw(bar, share, text, n);
    else
        fprintf(bar->out, "%3.0f %%  %s\n", 100 * share, text);
    bar->shown = bar->terminal;
    bar->shown_at = now();
}

void cli_bar_share(cli_bar *bar, const fth_progress *p)
{
    static const double apart_s = 0.1; /* seconds between redraws */
    char text[128], clock[32];
    if (!bar->terminal || now() - bar->shown_at < apart_s) return;
    int n = snprintf(text, sizeof text, "%.40s", p->what ? p->what : "");
    if (p->remaining_s > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, "  %s left",
                      clock_text(p->remaining_s, clock, sizeof clock));
    draw(bar, fmin(fmax(p->fraction, 0.0), 1.0), text, n);
    bar->shown = true;
    bar->shown_at = now();
}

void cli_bar_clear(cli_bar *bar)
{
    if (bar->shown) fprintf(bar->out, "\r\033[K");
    bar->shown = false;
}
