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

void cli_live_show(cli_live *live, const fth_view *view, int64_t task)
{
    if (live->table && task < 0) draw(live, view);
    if (live->lines && task >= 0) {
        char line[1024];
        fth_task_format(&view->task[task], line, sizeof line);
        fprintf(live->call->out, "%s\n", line);
        fflush(live->call->out);
    }
    if (live->json && view->ended > 0) (void)!fth_view_print_json(view, live->call->out, NULL);
}

void cli_live_close(cli_live *live)
{
    free(live->text);
    *live = (cli_live){0};
}
