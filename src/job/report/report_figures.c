/* report_figures.c - thumbnails, and whole figures, inside the page.
 *
 * Thumbnails are distributed round-robin: the first figure of each job, then the second of each,
 * until the byte limit is reached. They are written as they are made, in blocks that the page
 * decodes when it shows them.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "job/report/report.h"
#include "mem/heap.h"
#include "plot/thumbnail.h"
#include "run/team.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    BLOCK = 250, /* thumbnails of one element of the page: parsed in a few milliseconds */
    BATCH = 64,  /* made before any is written: eight for each worker */
    WORKERS = 8,
    LEAST = 700,    /* bytes of the smallest useful thumbnail */
    MOST = 12000,   /* and of the largest: 1600 of them are 20 MB */
    PIECE = 3 << 14 /* bytes of a file that are encoded at once: a multiple of three */
};

void fth__base64_put(const uint8_t *b, uint64_t n, FILE *to)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (; n > 0; b += 3, n -= n < 3 ? n : 3) {
        const uint32_t v =
            (uint32_t)b[0] << 16 | (n > 1 ? (uint32_t)b[1] << 8 : 0) | (n > 2 ? b[2] : 0);
        putc(digit[v >> 18], to);
        putc(digit[v >> 12 & 63], to);
        putc(n > 1 ? digit[v >> 6 & 63] : '=', to);
        putc(n > 2 ? digit[v & 63] : '=', to);
    }
}

fth_status fth__base64_file(fth_mem *mem, const char *path, FILE *to, fth_err *err)
{
    fth_file *f = NULL;
    _Static_assert(PIECE % 3 == 0, "base64 is padded only at the end");
    uint8_t *piece = NULL;
    FTH_TRY(fth_file_open(&f, mem, path, err));
    fth_status s = fth__heap_take(mem, PIECE, 1, (void **)&piece, err);
    for (uint64_t at = 0; s == FTH_OK && at < f->bytes; at += PIECE) {
        const uint64_t n = fth__min_u64(PIECE, f->bytes - at);
        s = fth_file_read(f, at, n, piece, "a figure", err);
        if (s == FTH_OK) fth__base64_put(piece, n, to);
    }
    fth__heap_free(mem, piece);
    fth_file_close(f);
    return s;
}

/* ---- turns ---- */

typedef struct turn {
    int64_t file;
    const fth_task *task; /* its job counts */
    int64_t number;       /* of the figure in its job */
} turn;

static int by_job(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    int c = strcmp(x->task->output_dir, y->task->output_dir);
    if (!c) c = strcmp(x->task->job, y->task->job);
    return c ? c : x->file < y->file ? -1 : x->file > y->file;
}

static int by_number(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

static fth_status find_turns(const fth__report *r, turn **out, int64_t *n, fth_err *err)
{
    const fth_view *v = r->view;
    *n = 0;
    FTH_TRY(fth__heap_take(r->mem, v->n_files + 1, sizeof **out, (void **)out, err));
    turn *t = *out;
    for (int64_t i = 0; i < v->n_files; i++) {
        const fth_task_file *f = &v->file[i];
        if (f->kind == FTH_FILE_FIGURE && f->task >= 0 && f->task < v->n_tasks)
            t[(*n)++] = (turn){.file = i, .task = &v->task[f->task]};
    }
    FTH_ASSERT(*n <= v->n_files);
    qsort(t, (size_t)*n, sizeof *t, by_job);
    for (int64_t i = 1; i < *n; i++) {
        const bool same = strcmp(t[i].task->job, t[i - 1].task->job) == 0 &&
                          strcmp(t[i].task->output_dir, t[i - 1].task->output_dir) == 0;
        if (same) t[i].number = t[i - 1].number + 1;
    }
    qsort(t, (size_t)*n, sizeof *t, by_number);
    return FTH_OK;
}

/* ---- writing ---- */

static bool ends_with(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n >= m && strcasecmp(path + n - m, end) == 0;
}

static const char *media_type(const char *path)
{
    static const char *const types[][2] = {{".png", "image/png"},      {".svg", "image/svg+xml"},
                                           {".jpg", "image/jpeg"},     {".jpeg", "image/jpeg"},
                                           {".gif", "image/gif"},      {".webp", "image/webp"},
                                           {".pdf", "application/pdf"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (ends_with(path, types[i][0])) return types[i][1];
    return "application/octet-stream";
}

static void put_thumb(FILE *f, int64_t *written, int64_t file, const fth__thumb *t)
{
    if (*written % BLOCK == 0) {
        if (*written) fputs("]</script>\n", f);
        fputs("<script type=\"application/json\" class=\"thumbs\">[", f);
    } else
        fputs(",\n", f);
    fprintf(f, "[%lld,%lld,%lld,\"", (long long)file, (long long)t->width, (long long)t->height);
    fth__base64_put(t->png, t->bytes, f);
    fputs("\"]", f);
    ++*written;
}

/* Thumbnails are made many at a time, by all cores, and written in their order. */
typedef struct batch {
    const fth_view *view;
    const turn *turn;
    uint64_t most;
    fth__thumbs *thumbs[WORKERS];
    struct {
        fth_status status;
        fth_err err;
        fth__thumb thumb;
        uint8_t png[MOST];
    } made[BATCH];
} batch;

static void make_one(void *arg, int64_t i, int worker)
{
    batch *b = arg;
    const char *path = b->view->file[b->turn[i].file].path;
    fth__thumb *thumb = &b->made[i].thumb;
    FTH_ASSERT(i >= 0 && i < BATCH && worker >= 0 && worker < WORKERS && b->thumbs[worker]);
    b->made[i].err = (fth_err){0};
    b->made[i].status = FTH_E_FILE_FEATURE;
    if (!ends_with(path, ".png")) return;
    b->made[i].status = fth__thumbs_make(b->thumbs[worker], path, b->most, thumb, &b->made[i].err);
    if (b->made[i].status != FTH_OK) return;
    FTH_ASSERT(thumb->bytes <= b->most && b->most <= MOST);
    memcpy(b->made[i].png, thumb->png, thumb->bytes);
    thumb->png = b->made[i].png;
}

static int cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    const int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n < WORKERS ? n : WORKERS;
}

/* A missing, damaged or unsupported figure does not fail the report: it is shown as such. Only lack
 * of memory does. */
static fth_status put_batch(const fth__report *r, batch *b, int64_t n, uint64_t all, uint64_t *used,
                            int64_t *written, fth_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (b->made[i].status == FTH_E_NOMEM) {
            if (err) *err = b->made[i].err;
            return FTH_E_NOMEM;
        }
        if (b->made[i].status != FTH_OK) continue;
        const uint64_t cost = (b->made[i].thumb.bytes + 2) / 3 * 4; /* as base64 */
        if (*used + cost > all) continue;
        *used += cost;
        put_thumb(r->file, written, b->turn[i].file, &b->made[i].thumb);
    }
    return FTH_OK;
}

static fth_status put_all(const fth__report *r, batch *b, fth_team *team, const turn *t, int64_t n,
                          fth_err *err)
{
    /* 20 MB unless asked otherwise: a page that mail and browsers still take */
    const uint64_t all = r->opt->inline_bytes ? r->opt->inline_bytes : 20000000;
    uint64_t used = 0;
    int64_t written = 0;
    fth_status s = FTH_OK;
    b->most = fth__max_u64(LEAST, fth__min_u64(MOST, n ? all / (uint64_t)n * 3 / 4 : 0));
    for (int64_t i = 0; i < n && s == FTH_OK && used + LEAST <= all && !ferror(r->file);
         i += BATCH) {
        const int64_t now = fth__min_i64(BATCH, n - i);
        b->turn = t + i;
        fth_team_run(team, now, make_one, b);
        s = put_batch(r, b, now, all, &used, &written, err);
    }
    if (written) fputs("]</script>\n", r->file);
    return s;
}

static fth_status put_thumbs(const fth__report *r, const turn *t, int64_t n, fth_err *err)
{
    /* at least four thumbnails for a worker, which has to be started */
    const int workers = (int)fth__max_i64(1, fth__min_i64(cores(), n / 4));
    fth_team *team = NULL;
    batch *b = NULL;
    FTH_TRY(fth__heap_take(r->mem, 1, sizeof *b, (void **)&b, err));
    b->view = r->view;
    fth_status s = FTH_OK;
    for (int i = 0; i < workers && s == FTH_OK; i++)
        s = fth__thumbs_create(&b->thumbs[i], r->mem, err);
    if (s == FTH_OK) s = fth_team_create(&team, r->mem, workers, err);
    if (s == FTH_OK) s = put_all(r, b, team, t, n, err);
    fth_team_destroy(team);
    for (int i = 0; i < WORKERS; i++) fth__thumbs_destroy(b->thumbs[i]);
    fth__heap_free(r->mem, b);
    return s;
}

static fth_status put_missing(const fth__report *r, const turn *t, int64_t n, fth_err *err)
{
    fth_json_writer w;
    fputs("<script type=\"application/json\" id=\"missing\">", r->file);
    fth_json_begin_file(&w, r->file, "the report", false);
    fth_json_open(&w, NULL, '[');
    for (int64_t i = 0; i < n; i++)
        if (access(r->view->file[t[i].file].path, R_OK) != 0) fth_json_int(&w, NULL, t[i].file);
    fth_json_close(&w);
    FTH_TRY(fth_json_end(&w, err));
    fputs("</script>\n", r->file);
    return FTH_OK;
}

static fth_status put_whole(const fth__report *r, const turn *t, int64_t n, fth_err *err)
{
    for (int64_t i = 0; i < n && !ferror(r->file); i++) {
        const char *path = r->view->file[t[i].file].path;
        if (access(path, R_OK) != 0) continue;
        fprintf(r->file, "<script type=\"text/plain\" id=\"figure%lld\">data:%s;base64,",
                (long long)t[i].file, media_type(path));
        fth_err one = {0}; /* one that cannot be read to its end is shown as broken */
        const fth_status s = fth__base64_file(r->mem, path, r->file, &one);
        fputs("</script>\n", r->file);
        if (s != FTH_E_NOMEM) continue;
        if (err) *err = one;
        return s;
    }
    return FTH_OK;
}

fth_status fth__report_figures(const fth__report *r, fth_err *err)
{
    turn *t = NULL;
    int64_t n = 0;
    fth_status s = find_turns(r, &t, &n, err);
    if (s == FTH_OK) s = put_missing(r, t, n, err);
    if (s == FTH_OK) s = put_thumbs(r, t, n, err);
    if (s == FTH_OK && r->opt->embed) s = put_whole(r, t, n, err);
    fth__heap_free(r->mem, t);
    return s;
}
