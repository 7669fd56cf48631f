/* status.c - `fathom status`: the table of all jobs below a folder, once or until no job runs. */
#include "ledgers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TURNS_A_SECOND = 4 };

typedef struct watcher {
    const cli_call *call;
    const char *dir;
    fth_mem *mem;
    bool terminal;
    int lines; /* that the last table took on the terminal */
    /* of tasks that were told of, where lines are written */
    char **told;
    int64_t n_told;
} watcher;

static const char *folder(const cli_call *call)
{
    return call->n_args > 0 ? call->arg[0] : ".";
}

static void say_notes(const fth_view *view)
{
    for (const char *s = view->note; *s;) {
        const size_t n = strcspn(s, "\n");
        cli_plain_state plain = {0}; /* names of folders */
        fputs("fathom: note: ", stderr);
        for (size_t i = 0; i < n; i++) {
            char text[2];
            fwrite(text, 1, cli_plain(&plain, s + i, 1, text), stderr);
        }
        fputc('\n', stderr);
        s += n + (s[n] == '\n');
    }
}

/* The size of the terminal that `out` is; 0 and 0 when it is none. */
static void find_size(FILE *out, int *width, int *height)
{
    struct winsize size;
    *width = *height = 0;
    if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) != 0) return;
    *width = size.ws_col;
    *height = size.ws_row;
}

/* The table as text, to be freed; NULL: no memory. */
static char *make_table(const fth_view *view, const fth_table_options *opt)
{
    size_t bytes = fth_table_format(view, opt, NULL, 0) + 1;
    char *text = malloc(bytes);
    if (text) fth_table_format(view, opt, text, bytes);
    return text;
}

static fth_status no_table(fth_err *err)
{
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the table");
}

/* Names of jobs, then of their stages, a line each: what 'fathom logs' takes. */
static void list_names(const cli_call *call, const fth_view *view)
{
    for (int stages = 0; stages < 2; stages++)
        for (int64_t i = 0; i < view->n_tasks; i++) {
            const fth_task *t = &view->task[i];
            bool known = false;
            for (int64_t k = i; !stages && k-- > 0 && !known;) /* stages of a job stand together */
                known = strcmp(view->task[k].job, t->job) == 0;
            if (known || t->job[strcspn(t->job, "\n")]) continue;
            fprintf(call->out, stages ? "%s/%s\n" : "%s\n", t->job, t->stage);
        }
}

static fth_status show_once(const cli_call *call, const fth_view *view, fth_err *err)
{
    fth_table_options opt = {.colour = call->colour};
    int height = 0;
    if (cli_get(call, "json")) return fth_view_print_json(view, call->out, err);
    if (cli_get(call, "names")) return list_names(call, view), FTH_OK;
    if (view->n_tasks == 0) {
        FTH_FAIL(err, FTH_E_NO_JOB, "no jobs in %s and below", view->root);
        fth_err_hint(err, "give the output_dir of a run, or a folder above it");
        return FTH_E_NO_JOB;
    }
    find_size(cli_screen(call), &opt.width,
              &height); /* all rows, however many: this one may scroll */
    char *text = make_table(view, &opt);
    if (!text) return no_table(err);
    fputs(text, cli_screen(call));
    free(text);
    return FTH_OK;
}

/* ---- watching ---- */

/* Over the last table. */
static fth_status redraw(watcher *w, const fth_view *view, bool last, fth_err *err)
{
    fth_table_options opt = {.colour = w->call->colour};
    find_size(cli_screen(w->call), &opt.width, &opt.height);
    if (opt.height > 1) opt.height--; /* the cursor stands below */
    if (last) opt.height = 0;
    char *text = make_table(view, &opt);
    if (!text) return no_table(err);
    if (w->lines > 0) fprintf(cli_screen(w->call), "\033[%dA\r\033[J", w->lines);
    fputs(text, cli_screen(w->call));
    fflush(cli_screen(w->call));
    w->lines = 0;
    for (const char *s = text; *s; s++) w->lines += *s == '\n';
    free(text);
    return FTH_OK;
}

/* A line for each task whose state is not the one that was told last. */
static fth_status tell(watcher *w, const fth_view *view, fth_err *err)
{
    if (view->n_tasks > w->n_told) {
        char **more = realloc(w->told, (size_t)view->n_tasks * sizeof *more);
        if (!more) return no_table(err);
        for (int64_t i = w->n_told; i < view->n_tasks; i++) more[i] = NULL;
        w->told = more;
        w->n_told = view->n_tasks;
    }
    bool told = false;
    for (int64_t i = 0; i < view->n_tasks; i++) {
        const fth_task *t = &view->task[i];
        char now[600], line[1000];
        snprintf(now, sizeof now, "%s/%s %s %s", t->output_dir, t->id, fth_state_name(t->state),
                 t->attempt);
        if (w->told[i] && strcmp(w->told[i], now) == 0) continue;
        fth_task_format(t, line, sizeof line);
        fprintf(w->call->out, "%s\n", line);
        char *copy = strdup(now);
        if (!copy) return no_table(err);
        free(w->told[i]);
        w->told[i] = copy;
        told = true;
    }
    char line[200];
    if (told && fth_run_format(view, line, sizeof line) > 0) fprintf(w->call->out, "%s\n", line);
    fflush(w->call->out);
    return FTH_OK;
}

static fth_status watch(watcher *w, fth_err *err)
{
    fth_status s = FTH_OK;
    bool more = true;
    cli_catch_end();
    while (s == FTH_OK && more) {
        const double start = cli_seconds();
        fth_view *view = NULL;
        s = fth_view_read(&view, w->mem, w->dir, err);
        if (s != FTH_OK) return s;
        more = view->runner_pid != 0 && !cli_end_asked();
        if (view->n_tasks == 0 && !more)
            s = show_once(w->call, view, err);
        else
            s = w->terminal ? redraw(w, view, !more, err) : tell(w, view, err);
        if (!more && s == FTH_OK && !cli_end_asked() && !cli_get(w->call, "quiet"))
            fprintf(w->call->out, "no runner is active here\n");
        fth_view_destroy(view);
        /* A thousand ledgers take their time: reading never takes more than half of ours. */
        const double took = cli_seconds() - start, pause = 1.0 / TURNS_A_SECOND;
        if (more) cli_nap(took > pause / 2 ? took : pause - took);
    }
    return s;
}

fth_status cli_run_status(const cli_call *call, fth_err *err)
{
    watcher w = {.call = call, .dir = folder(call)};
    fth_view *view = NULL;
    if (!!cli_get(call, "watch") + !!cli_get(call, "json") + !!cli_get(call, "names") > 1)
        return FTH_FAIL(err, FTH_E_COMMAND, "--watch, --json and --names exclude each other");
    FTH_TRY(cli_small_mem(&w.mem, err));
    fth_status s = FTH_OK;
    if (cli_get(call, "watch")) {
        w.terminal = isatty(fileno(cli_screen(call))) != 0;
        s = watch(&w, err);
        for (int64_t i = 0; i < w.n_told; i++) free(w.told[i]);
        free(w.told);
    } else {
        s = fth_view_read(&view, w.mem, w.dir, err);
        if (s == FTH_OK) {
            say_notes(view);
            s = show_once(call, view, err);
        }
        fth_view_destroy(view);
    }
    const fth_status end = fth_mem_destroy(w.mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}
