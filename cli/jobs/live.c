/* live.c - the display while jobs run: a table that stays in its place on a terminal, one
 * line for every change otherwise, one JSON object at the end for programs. */
#include "runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void cli_live_open(cli_live *live, const cli_call *call)
{
    const char *term = getenv("TERM");
    *live = (cli_live){.call = call};
    live->json = cli_get(call, "json");
    if (live->json || cli_get(call, "quiet")) return;
    live->table =
        isatty(STDOUT_FILENO) && !cli_get(call, "no-live") && !(term && strcmp(term, "dumb") == 0);
    live->lines = !live->table;
}

/* The text of the view in memory that grows; NULL: none could be had. */
static const char *format(cli_live *live, const fth_view *view)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size.ws_row = 24, size.ws_col = 80;
    const fth_table_options opt = {.width = size.ws_col,
                                   .height = size.ws_row > 1 ? size.ws_row - 1 : 0,
                                   .colour = live->call->colour};
    for (int try = 0; try < 2; try++) {
        const size_t n = fth_table_format(view, &opt, live->text, live->bytes);
        if (n < live->bytes) return live->text;
        char *more = realloc(live->text, n + 4096);
        if (!more) return NULL;
        live->text = more;
        live->bytes = n + 4096;
    }
    return NULL;
}

static void draw(cli_live *live, const fth_view *view)
{
    FILE *out = cli_screen(live->call);
    const char *text = format(live, view);
    if (!text) return;
    /* Up to where the table began; each line is cleared behind its end, so nothing flickers. */
    if (live->height > 0) fprintf(out, "\x1b[%dA\r", live->height);
    int height = 0;
    for (const char *s = text; *s;) {
        const size_t n = strcspn(s, "\n");
        fprintf(out, "%.*s\x1b[K\n", (int)n, s);
        height++;
        s += n + (s[n] == '\n');
    }
    fputs("\x1b[J", out);
    fflush(out);
    live->height = height;
}

/* Where lines are written, one about the whole run follows the end of a task, or comes by itself
 * while a long one runs: seldom enough that a file of them stays short. */
static void say_whole(cli_live *live, const fth_view *view, int64_t task)
{
    static const double apart_s = 2, alone_s = 60;
    char line[200];
    const bool ended = task >= 0 && view->task[task].state != FTH_STATE_RUNNING &&
                       view->task[task].state != FTH_STATE_PENDING && !view->task[task].cached;
    const double since = view->now - (live->said_at > 0 ? live->said_at : view->started);
    if (since < (ended ? apart_s : alone_s)) return;
    if (fth_run_format(view, line, sizeof line) == 0) return;
    fprintf(live->call->out, "%s\n", line);
    fflush(live->call->out);
    live->said_at = view->now;
}

void cli_live_show(cli_live *live, const fth_view *view, int64_t task)
{
    if (live->table && task < 0) draw(live, view);
    if (live->lines && task >= 0) {
        char line[1024];
        fth_task_format(&view->task[task], line, sizeof line);
        fprintf(live->call->out, "%s\n", line);
        fflush(live->call->out);
    }
    if (live->lines) say_whole(live, view, task);
    if (live->json && view->ended > 0) (void)!fth_view_print_json(view, live->call->out, NULL);
}

void cli_live_close(cli_live *live)
{
    free(live->text);
    *live = (cli_live){0};
}
