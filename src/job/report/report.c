/* report.c - a view as one HTML page that needs no network; see report.h for its parts. */
#include "job/report/report.h"

#include "base/assert.h"
#include "job/ledger/ledger.h"

#include "base/checked.h"
#include "base/str.h"
#include "job/view/show.h"
#include "mem/heap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The end of the log of a failed task is why people open a report, so it is longer. 8 MiB of them
 * together load at once in a browser, beside 20 MB of thumbnails. */
enum { TAIL_LINES = 100, TAIL_FAILED = 16384, TAIL_OTHER = 4096, TAIL_ALL = 8 << 20 };

/* ---- texts of HTML ---- */

static void put_html(FILE *f, const char *s)
{
    for (; *s; s++) switch (*s) {
        case '<': fputs("&lt;", f); break;
        case '>': fputs("&gt;", f); break;
        case '&': fputs("&amp;", f); break;
        case '"': fputs("&quot;", f); break;
        case '\'': fputs("&#39;", f); break;
        default: putc((unsigned char)*s < 0x20 ? ' ' : *s, f);
        }
}

static void put_title(const fth__report *r)
{
    const char *name = strrchr(r->view->root, '/');
    name = name && name[1] ? name + 1 : r->view->root;
    put_html(r->file, *name ? name : "jobs");
}

/* What may be loaded, and from where: its own style and script, pictures beside it. */
static void put_policy(const fth__report *r)
{
    fprintf(r->file,
            "default-src 'none'; script-src '%s'; style-src '%s'; img-src 'self' data: file:; "
            "base-uri 'none'; form-action 'none'",
            fth__page_js_hash, fth__page_css_hash);
    if (r->opt->live) fputs("; connect-src 'self'", r->file);
}

static void put_states(const fth__report *r, const int64_t n[FTH_STATE_COUNT], const char *what)
{
    int64_t all = 0;
    for (int i = 0; i < FTH_STATE_COUNT; i++) all += n[i];
    fprintf(r->file, "%lld %s%s", (long long)all, what, all == 1 ? "" : "s");
    for (int i = 0; i < FTH_STATE_COUNT; i++)
        if (n[i]) fprintf(r->file, ", %lld %s", (long long)n[i], fth_state_name((fth_state)i));
}

/* For readers without scripts: jobs as in run_status.json, and stages. */
static fth_status put_counts(const fth__report *r, fth_err *err)
{
    int64_t jobs[FTH_STATE_COUNT], stages[FTH_STATE_COUNT] = {0};
    FTH_TRY(fth__status_count(r->view, jobs, err));
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const fth_state s = r->view->task[i].state;
        if ((unsigned)s < FTH_STATE_COUNT) stages[s]++;
    }
    put_states(r, jobs, "job");
    fputs("; ", r->file);
    put_states(r, stages, "stage");
    return FTH_OK;
}

/* ---- links ---- */

bool fth__link_between(const char *folder, const char *path, char *link, size_t bytes)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    size_t same = 0; /* bytes up to the last folder that both have */
    for (size_t i = 0;; i++) {
        const bool edge = folder[i] == '\0' || folder[i] == '/';
        if (edge && (path[i] == '/' || path[i] == '\0')) same = i;
        if (folder[i] != path[i] || folder[i] == '\0') break;
    }
    fth__text t;
    fth__text_init(&t, link, bytes);
    for (const char *s = folder + same; *s; s++)
        if (*s == '/' && s[1]) fth__text_add(&t, "../");
    const char *rest = path + same;
    while (*rest == '/') rest++;
    for (; *rest; rest++)
        if (strchr(plain, *rest))
            fth__text_add_chars(&t, rest, 1);
        else
            fth__text_add(&t, "%%%02X", (unsigned)(unsigned char)*rest);
    return !fth__text_is_cut(&t);
}

/* The canonical folder of the page. One that does not exist yet is taken as it is written. */
static fth_status find_folder(fth__report *r, fth_err *err)
{
    char text[PATH_MAX], real[PATH_MAX];
    const char *path = r->opt->path ? r->opt->path : r->view->root;
    if (strlen(path) >= sizeof text)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%.100s...: the path is too long", path);
    strcpy(text, path);
    if (r->opt->path) {
        char *slash = strrchr(text, '/');
        if (!slash)
            strcpy(text, ".");
        else
            slash[slash == text ? 1 : 0] = '\0';
    }
    fth__str_copy(r->folder, sizeof r->folder, realpath(text, real) ? real : text);
    return FTH_OK;
}

static void put_links(fth_json_writer *w, const fth__report *r)
{
    char link[4096 * 3];
    fth_json_open(w, "links", '[');
    for (int64_t i = 0; i < r->view->n_files; i++) {
        const fth_task_file *f = &r->view->file[i];
        const bool fits = f->kind != FTH_FILE_INPUT && f->path[0] == '/' && !r->opt->live &&
                          fth__link_between(r->folder, f->path, link, sizeof link);
        fth_json_text(w, NULL, fits ? link : "");
    }
    fth_json_close(w);
    fth_json_open(w, "logs", '[');
    for (int64_t i = 0; i < r->view->n_tasks; i++) {
        const char *path = r->view->task[i].log_path;
        const bool fits = path[0] == '/' && !r->opt->live &&
                          fth__link_between(r->folder, path, link, sizeof link);
        fth_json_text(w, NULL, fits ? link : "");
    }
    fth_json_close(w);
}

/* ---- ends of logs ---- */

size_t fth__log_tail(fth_mem *mem, const char *path, uint64_t from, uint64_t to, int lines,
                     char *text, size_t most)
{
    fth_file *f = NULL;
    if (!*path || fth_file_open(&f, mem, path, NULL) != FTH_OK) return 0;
    const uint64_t end = to > from && to < f->bytes ? to : f->bytes;
    const uint64_t first = from < end ? from : 0; /* an older log than the ledger knows */
    const uint64_t start = end - first > most ? end - most : first;
    size_t n = (size_t)(end - start), skip = 0;
    if (fth_file_read(f, start, n, text, "the end of a log", NULL) != FTH_OK) n = 0;
    fth_file_close(f);
    size_t at = n;
    if (at > 0 && text[at - 1] == '\n') at--; /* the break that ends the last line */
    for (int found = 0; at > 0 && !skip; at--)
        if (text[at - 1] == '\n' && ++found == lines) skip = at;
    if (!skip && start > first) { /* begins inside a line */
        const char *line = memchr(text, '\n', n);
        skip = line && line + 1 < text + n ? (size_t)(line + 1 - text) : 0;
    }
    FTH_ASSERT(skip <= n && n <= most);
    memmove(text, text + skip, n - skip);
    return n - skip;
}

static fth_status put_tails(const fth__report *r, fth_err *err)
{
    char *text = fth__heap_alloc(r->mem, TAIL_FAILED);
    if (!text) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the ends of logs");
    int64_t left = TAIL_ALL;
    fth_json_writer w;
    fth_json_begin_file(&w, r->file, "the report", false);
    fth_json_open(&w, NULL, '{');
    for (int turn = 0; turn < 2; turn++) /* failures first: they must not be left out */
        for (int64_t i = 0; i < r->view->n_tasks && left > 0; i++) {
            const fth_task *t = &r->view->task[i];
            const bool bad = t->state == FTH_STATE_FAILED || t->state == FTH_STATE_INTERRUPTED;
            if (bad != (turn == 0) || t->state == FTH_STATE_PENDING) continue;
            const int64_t most = fth__min_i64(left, bad ? TAIL_FAILED : TAIL_OTHER);
            const size_t n = fth__log_tail(r->mem, t->log_path, t->log_from, t->log_to, TAIL_LINES,
                                           text, (size_t)most);
            char key[24];
            snprintf(key, sizeof key, "%lld", (long long)i);
            if (n > 0) fth_json_bytes(&w, key, text, n);
            left -= (int64_t)n;
        }
    fth_json_close(&w);
    fth__heap_free(r->mem, text);
    return fth_json_end(&w, err);
}

/* ---- the page ---- */

static fth_status put_data(const fth__report *r, fth_err *err)
{
    fputs("<script type=\"application/json\" id=\"data\">", r->file);
    FTH_TRY(fth_view_print_json(r->view, r->file, err));
    fputs("</script>\n<script type=\"application/json\" id=\"page\">", r->file);
    fth_json_writer w;
    fth_json_begin_file(&w, r->file, "the report", false);
    fth_json_open(&w, NULL, '{');
    fth_json_bool(&w, "live", r->opt->live);
    fth_json_bool(&w, "embed", r->opt->embed);
    fth_json_seconds(&w, "made", fth__wall_seconds());
    fth_json_text(&w, "fathom", fth_version());
    put_links(&w, r);
    fth_json_close(&w);
    FTH_TRY(fth_json_end(&w, err));
    fputs("</script>\n", r->file);
    return FTH_OK;
}

/* What is large stands behind the script: the page is drawn before it is read. */
static fth_status put_later(const fth__report *r, fth_err *err)
{
    fputs("<script type=\"application/json\" id=\"tails\">", r->file);
    FTH_TRY(put_tails(r, err));
    fputs("</script>\n", r->file);
    return fth__report_figures(r, err);
}

static fth_status put_mark(const fth__report *r, const char *mark, size_t n, fth_err *err)
{
    if (n == 5 && memcmp(mark, "TITLE", n) == 0) put_title(r);
    if (n == 6 && memcmp(mark, "POLICY", n) == 0) put_policy(r);
    if (n == 6 && memcmp(mark, "COUNTS", n) == 0) return put_counts(r, err);
    if (n == 3 && memcmp(mark, "CSS", n) == 0) fputs(fth__page_css, r->file);
    if (n == 6 && memcmp(mark, "SCRIPT", n) == 0) fputs(fth__page_js, r->file);
    if (n == 4 && memcmp(mark, "DATA", n) == 0) return put_data(r, err);
    if (n == 5 && memcmp(mark, "LATER", n) == 0 && !r->opt->live) return put_later(r, err);
    return FTH_OK;
}

fth_status fth_report_print(const fth_view *view, const fth_report_options *opt, FILE *file,
                            fth_err *err)
{
    static const fth_report_options none = {0};
    fth__report r = {.mem = view->mem, .view = view, .opt = opt ? opt : &none, .file = file};
    FTH_TRY(find_folder(&r, err));
    for (const char *at = fth__page_html;;) {
        const char *mark = strchr(at, '@'), *end = mark ? strchr(mark + 1, '@') : NULL;
        if (!end) {
            fputs(at, file);
            break;
        }
        fwrite(at, 1, (size_t)(mark - at), file);
        FTH_TRY(put_mark(&r, mark + 1, (size_t)(end - mark - 1), err));
        at = end + 1;
    }
    return fth_stream_end(file, "the report", err);
}

/* ---- into a file ---- */

typedef struct sink {
    fth__writer writer;
    uint64_t at;
    fth_status status;
    fth_err *err;
} sink;

static ssize_t sink_write(void *cookie, const char *bytes, size_t n)
{
    sink *s = cookie;
    if (s->status == FTH_OK) s->status = fth__writer_write(&s->writer, s->at, n, bytes, s->err);
    s->at += n;
    return s->status == FTH_OK ? (ssize_t)n : 0;
}

fth_status fth_report_save(const fth_view *view, const fth_report_options *opt, fth_err *err)
{
    if (!opt || !opt->path) return FTH_FAIL(err, FTH_E_USAGE, "expected the path of the report");
    sink s = {.status = FTH_OK, .err = err};
    FTH_TRY(fth__writer_open(&s.writer, view->mem, opt->path, err));
    FILE *file = fopencookie(&s, "w", (cookie_io_functions_t){.write = sink_write});
    if (!file) {
        fth__writer_abandon(&s.writer);
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory to write %s", opt->path);
    }
    setvbuf(file, NULL, _IOFBF, 1 << 18); /* few large writes: a page has some MB */
    fth_err later = {0};
    fth_status status = fth_report_print(view, opt, file, &later);
    if (fclose(file) != 0 && status == FTH_OK) status = FTH_E_FILE_WRITE;
    if (s.status != FTH_OK)
        status = s.status; /* what went wrong first, and its error */
    else if (status != FTH_OK && err)
        *err = later;
    if (status == FTH_OK) return fth__writer_commit(&s.writer, NULL, err);
    fth__writer_abandon(&s.writer);
    return status;
}
