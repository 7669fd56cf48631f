/* table.c - a view as a table of text for a terminal of any width and height.
 *
 * Visible rows are measured, then columns are dropped, least important first, until they fit; the
 * job name takes the rest and is cut in its middle, since names differ at their ends. No line is
 * wider than the terminal: a wrapped line would break a table that is redrawn in place.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "job/view/show.h"
#include "mem/heap.h"
#include "text/width.h"

#include <stdlib.h>
#include <string.h>

enum { JOB, STAGE, DEVICE, STATE, PROGRESS, FIGURE, ELAPSED, LEFT, MEMORY, NOTE, COLUMNS };
/* Columns. A name of 16 still shows its two ends; a note under 12 says nothing, one over 100 is a
 * paragraph. */
enum { GAP = 2, BAR = 8, LEAST_JOB = 16, LEAST_STAGE = 8, LEAST_NOTE = 12, MOST_NOTE = 100 };

static const struct {
    const char *title;
    bool right;
} column[COLUMNS] = {
    [JOB] = {"job", false},           [STAGE] = {"stage", false},
    [DEVICE] = {"device", false},     [STATE] = {"state", false},
    [PROGRESS] = {"progress", true},  [FIGURE] = {"figure", false},
    [ELAPSED] = {"elapsed", true},    [LEFT] = {"left", true},
    [MEMORY] = {"memory/plan", true}, [NOTE] = {"note", false},
};
/* Given up in this order when the terminal is narrow; before them, the bar. */
static const int dropped[] = {DEVICE, FIGURE, MEMORY, STAGE, LEFT, ELAPSED, PROGRESS};

typedef struct table {
    fth__text out;
    int width; /* of the terminal; 0: no limit */
    int at;    /* columns written in this line */
    bool colour, bar;
    int64_t columns[COLUMNS]; /* 0: not shown */
} table;

/* ---- cells ---- */

typedef struct cell {
    const char *text;
    char room[96];
} cell;

static void put_bar(fth__text *t, int64_t done, int64_t total)
{
    const double share = (double)done / (double)total;
    const int full = (int)(share * BAR + 0.5);
    FTH_ASSERT(full >= 0 && full <= BAR);
    fth__text_add_chars(t, "[", 1);
    fth__text_add_chars(t, "########", (size_t)full);
    fth__text_add_chars(t, "........", (size_t)(BAR - full));
    fth__text_add_chars(t, "] ", 2);
}

static void fill_progress(fth__text *t, const fth_task *k, bool bar)
{
    if (k->total <= 0 && k->done <= 0) return;
    const bool known = k->total > 0;
    const int64_t done = known ? fth__max_i64(0, fth__min_i64(k->done, k->total)) : k->done;
    if (known && bar && k->state == FTH_STATE_RUNNING) put_bar(t, done, k->total);
    fth__text_add(t, "%lld", (long long)done);
    if (known) fth__text_add(t, "/%lld", (long long)k->total);
}

static void fill_memory(fth__text *t, const fth_task *k)
{
    char word[FTH__WORD];
    const uint64_t now = k->state == FTH_STATE_RUNNING ? k->now_bytes : k->peak_bytes;
    if (now == 0 && k->planned_bytes == 0) return;
    fth__text_add(t, "%s", now ? fth__show_size(now, word) : "-");
    fth__text_add(t, "/%s", k->planned_bytes ? fth__show_size(k->planned_bytes, word) : "-");
}

static void fill_left(fth__text *t, const fth_task *k)
{
    char word[FTH__WORD];
    const double left = fth__task_remaining(k);
    const bool waits = k->state == FTH_STATE_PENDING && k->planned_seconds > 0;
    if (left > 0) fth__text_add(t, "%s", fth__show_seconds(left, word));
    if (waits) fth__text_add(t, "~%s", fth__show_seconds(k->planned_seconds, word));
}

static const char *first_of(const char *a, const char *b)
{
    return *a ? a : b;
}

static void fill(cell *c, const fth_task *k, int which, bool bar)
{
    fth__text t;
    fth__text_init(&t, c->room, sizeof c->room);
    c->text = c->room;
    switch (which) {
    case JOB: c->text = k->job; break;
    case STAGE:
        c->text = k->state == FTH_STATE_RUNNING ? first_of(k->doing, k->stage) : k->stage;
        break;
    case DEVICE: c->text = k->device; break;
    case STATE: c->text = fth__task_state(k); break;
    case PROGRESS: fill_progress(&t, k, bar); break;
    case FIGURE: {
        char word[FTH__WORD];
        if (*fth__show_value(k->value, word)) fth__text_add(&t, "%.64s %s", k->figure, word);
        break;
    }
    case ELAPSED:
        if (k->seconds > 0) fth__show_seconds(k->seconds, c->room);
        break;
    case LEFT: fill_left(&t, k); break;
    case MEMORY: fill_memory(&t, k); break;
    case NOTE: c->text = k->state == FTH_STATE_RUNNING ? k->what : k->reason; break;
    default: break;
    }
}

/* ---- writing ---- */

/* Characters of `text` that fit into `most` columns, from its start. */
static void put_start(table *t, const char **text, int64_t most)
{
    if (t->width > 0) most = fth__min_i64(most, t->width - t->at);
    for (fth__glyph g; most >= 0;) {
        const char *next = *text;
        size_t plain = 0; /* nearly all of it, and written at once */
        while ((int64_t)plain < most && next[plain] >= 0x20 && next[plain] < 0x7f) plain++;
        if (plain > 0) {
            fth__text_add_chars(&t->out, next, plain);
            t->at += (int)plain;
            most -= (int64_t)plain;
            *text = next += plain;
        }
        if (!fth__glyph_next(&next, &g) || g.columns > most) return;
        fth__text_add_chars(&t->out, g.text, g.bytes);
        t->at += g.columns;
        most -= g.columns;
        *text = next;
    }
}

static void put_blank(table *t, int64_t n)
{
    static const char blanks[] = "                                ";
    if (t->width > 0) n = fth__min_i64(n, t->width - t->at);
    for (int64_t now = 0; n > 0; n -= now) {
        now = fth__min_i64(n, (int64_t)sizeof blanks - 1);
        fth__text_add_chars(&t->out, blanks, (size_t)now);
        t->at += (int)now;
    }
}

static void put_code(table *t, const char *code)
{
    if (t->colour) fth__text_add(&t->out, "\x1b[%sm", code);
}

/* `text` in at most `room` columns, with dots in its middle (or at its end) when it is longer. */
static void put_cut(table *t, const char *text, int64_t columns, int64_t room, bool middle)
{
    if (columns <= room) {
        put_start(t, &text, room);
        return;
    }
    const int64_t mark = room >= 5 ? 2 : room >= 3 ? 1 : 0;
    const int64_t tail = middle ? (room - mark) / 2 : 0, start = t->at;
    put_start(t, &text, room - mark - tail);
    const char *dots = "..";
    put_start(t, &dots, mark);
    int64_t left = columns - (t->at - start - mark); /* columns of what is still in `text` */
    for (fth__glyph g; left > room - (t->at - start) && fth__glyph_next(&text, &g);)
        left -= g.columns;
    if (middle) put_start(t, &text, room - (t->at - start));
}

static void put_cell(table *t, const char *text, int which, bool last)
{
    const int64_t room = t->columns[which], columns = fth__text_columns(text);
    const int64_t blank = columns < room ? room - columns : 0;
    if (column[which].right) put_blank(t, blank);
    const int before = t->at;
    put_cut(t, text, columns, room, which != NOTE);
    if (!last) put_blank(t, column[which].right ? 0 : room - (t->at - before));
}

static void end_line(table *t)
{
    FTH_ASSERT(t->width <= 0 || t->at <= t->width);
    fth__text_add_chars(&t->out, "\n", 1);
    t->at = 0;
}

static const char *state_code(const fth_task *k)
{
    static const char *const code[FTH_STATE_COUNT] = {
        [FTH_STATE_PENDING] = "2",      [FTH_STATE_BLOCKED] = "33",  [FTH_STATE_RUNNING] = "1;36",
        [FTH_STATE_COMPLETED] = "32",   [FTH_STATE_FAILED] = "1;31", [FTH_STATE_SKIPPED] = "33",
        [FTH_STATE_INTERRUPTED] = "33", [FTH_STATE_STALE] = "33",
    };
    return (unsigned)k->state < FTH_STATE_COUNT ? code[k->state] : "0";
}

static void put_row(table *t, const fth_task *k) /* NULL: the titles */
{
    int last = 0;
    for (int i = 0; i < COLUMNS; i++)
        if (t->columns[i] > 0) last = i;
    if (!k) put_code(t, "2");
    for (int i = 0; i <= last; i++) {
        if (t->columns[i] <= 0) continue;
        cell c = {.text = column[i].title};
        if (k) fill(&c, k, i, t->bar);
        if (i == last && !*c.text) break;
        if (i > 0) put_blank(t, GAP);
        if (k && i == STATE) put_code(t, state_code(k));
        put_cell(t, c.text, i, i == last);
        if (k && i == STATE) put_code(t, "0");
    }
    if (!k) put_code(t, "0");
    end_line(t);
}

/* ---- which rows ---- */

static int by_place(const void *a, const void *b)
{
    const fth_task *const x = *(const fth_task *const *)a, *const y = *(const fth_task *const *)b;
    const int p = fth__state_place(x->state) - fth__state_place(y->state);
    if (p) return p;
    const int j = strcmp(x->job, y->job);
    return j ? j : x < y ? -1 : x > y; /* a view holds stages in the order of the pipeline */
}

static void measure(table *t, const fth_task *const *row, int64_t n)
{
    for (int i = 0; i < COLUMNS; i++) t->columns[i] = 0;
    for (int64_t r = 0; r < n; r++)
        for (int i = 0; i < COLUMNS; i++) {
            cell c;
            fill(&c, row[r], i, t->bar);
            if (*c.text) t->columns[i] = fth__max_i64(t->columns[i], fth__text_columns(c.text));
        }
    for (int i = 0; i < COLUMNS; i++)
        if (t->columns[i] > 0)
            t->columns[i] = fth__max_i64(t->columns[i], (int64_t)strlen(column[i].title));
    t->columns[NOTE] = fth__min_i64(t->columns[NOTE], MOST_NOTE);
}

/* Columns of all but the note, when names are as short as they may be. */
static int64_t needed(const table *t, bool shortest)
{
    int64_t sum = 0;
    for (int i = 0; i < NOTE; i++) {
        int64_t w = t->columns[i];
        if (shortest && i == JOB) w = fth__min_i64(w, LEAST_JOB);
        if (shortest && i == STAGE) w = fth__min_i64(w, LEAST_STAGE);
        if (w > 0) sum += w + (i > 0 ? GAP : 0);
    }
    return sum;
}

static void fit(table *t, const fth_task *const *row, int64_t n)
{
    t->bar = true;
    measure(t, row, n);
    if (t->width <= 0) return;
    if (needed(t, true) > t->width) {
        t->bar = false;
        measure(t, row, n);
    }
    for (size_t d = 0; d < sizeof dropped / sizeof dropped[0] && needed(t, true) > t->width; d++)
        t->columns[dropped[d]] = 0;
    const int names[] = {STAGE, JOB};
    for (int i = 0; i < 2; i++) {
        const int64_t over = needed(t, false) - t->width, w = t->columns[names[i]];
        const int64_t least = names[i] == JOB ? 1 : fth__min_i64(w, LEAST_STAGE);
        if (over > 0) t->columns[names[i]] = fth__max_i64(least, w - over);
    }
    const int64_t rest = t->width - needed(t, false) - GAP;
    t->columns[NOTE] = rest < LEAST_NOTE ? 0 : fth__min_i64(t->columns[NOTE], rest);
}

/* ---- the summary ---- */

typedef struct sums {
    int64_t state[FTH_STATE_COUNT], cached;
    uint64_t now;
} sums;

static sums count(const fth_view *view, const fth_task *const *row, int64_t from, int64_t to)
{
    sums s = {0};
    for (int64_t i = from; i < to; i++) {
        const fth_task *k = row ? row[i] : &view->task[i];
        if ((unsigned)k->state < FTH_STATE_COUNT) s.state[k->state]++;
        if (k->state == FTH_STATE_COMPLETED) s.cached += k->cached;
        if (k->state == FTH_STATE_RUNNING) s.now += k->now_bytes;
    }
    return s;
}

static void put_counts(fth__text *line, const sums *s)
{
    const char *comma = "";
    for (int place = 0; place < FTH_STATE_COUNT; place++)
        for (int i = 0; i < FTH_STATE_COUNT; i++) {
            if (fth__state_place((fth_state)i) != place || s->state[i] == 0) continue;
            fth__text_add(line, "%s%lld %s", comma, (long long)s->state[i],
                          fth_state_name((fth_state)i));
            if (i == FTH_STATE_COMPLETED && s->cached > 0)
                fth__text_add(line, " (%lld cached)", (long long)s->cached);
            comma = ", ";
        }
}

static void put_line(table *t, const fth__text *line, const char *code)
{
    const char *text = line->data;
    put_code(t, code);
    put_start(t, &text, INT32_MAX);
    put_code(t, "0");
    end_line(t);
}

static void put_summary(table *t, const fth_view *view)
{
    char room[512], word[FTH__WORD];
    fth__text line;
    fth__text_init(&line, room, sizeof room);
    const sums s = count(view, NULL, 0, view->n_tasks);
    put_counts(&line, &s);
    if (view->n_tasks == 0) fth__text_add(&line, "no jobs");
    if (s.now > 0) {
        fth__text_add(&line, "; memory %s", fth__show_size(s.now, word));
        if (view->budget_bytes)
            fth__text_add(&line, " of %s", fth__show_size(view->budget_bytes, word));
    }
    const double end = view->ended > 0 ? view->ended : view->now;
    if (view->started > 0 && end > view->started)
        fth__text_add(&line, "; %s", fth__show_seconds(end - view->started, word));
    put_line(t, &line, s.state[FTH_STATE_FAILED] ? "1;31" : "1");
}

/* How far the run is; false: nothing runs. */
static bool put_run(table *t, const fth_view *view)
{
    char room[200];
    fth__text line;
    fth__text_init(&line, room, sizeof room);
    line.used = fth_run_format(view, room, sizeof room);
    if (line.used == 0) return false;
    put_line(t, &line, "0");
    return true;
}

static void put_rest(table *t, const fth_view *view, const fth_task *const *row, int64_t shown)
{
    char room[512];
    fth__text line;
    fth__text_init(&line, room, sizeof room);
    const sums s = count(view, row, shown, view->n_tasks);
    fth__text_add(&line, "and %lld more: ", (long long)(view->n_tasks - shown));
    put_counts(&line, &s);
    put_line(t, &line, "2");
}

size_t fth_table_format(const fth_view *view, const fth_table_options *opt, char *text,
                        size_t bytes)
{
    table t = {.width = opt ? opt->width : 0, .colour = opt && opt->colour};
    const int height = opt ? opt->height : 0;
    int64_t n = view->n_tasks, shown = n;
    fth__text_init(&t.out, text, bytes);
    put_summary(&t, view);
    /* a terminal of four lines still has a task */
    const int more = (height == 0 || height > 4) && put_run(&t, view) ? 1 : 0;
    if (height > 0 && n + 2 + more > height) shown = fth__max_i64(0, height - 3 - more);
    if (n == 0 || height == 1) return t.out.wanted;
    /* Without memory for the order the counts alone are shown. */
    const fth_task **row = fth__heap_alloc(view->mem, (uint64_t)n * sizeof *row);
    if (!row) return t.out.wanted;
    for (int64_t i = 0; i < n; i++) row[i] = &view->task[i];
    qsort(row, (size_t)n, sizeof *row, by_place);
    if (shown > 0) {
        fit(&t, row, shown);
        put_row(&t, NULL);
    }
    for (int64_t i = 0; i < shown; i++) put_row(&t, row[i]);
    if (shown < n) put_rest(&t, view, row, shown);
    fth__heap_free(view->mem, row);
    return t.out.wanted;
}

/* ---- one task in one line ---- */

static void put_safe(fth__text *t, const char *text)
{
    for (fth__glyph g; fth__glyph_next(&text, &g);) fth__text_add_chars(t, g.text, g.bytes);
}

static void put_end(fth__text *t, const fth_task *k)
{
    char word[FTH__WORD];
    if (k->state == FTH_STATE_FAILED && k->signal)
        fth__text_add(t, " (signal %d)", k->signal);
    else if (k->state == FTH_STATE_FAILED && k->exit_code)
        fth__text_add(t, " (exit code %d)", k->exit_code);
    if (k->seconds > 0 && !k->cached)
        fth__text_add(t, k->state == FTH_STATE_RUNNING ? ", %s" : " after %s",
                      fth__show_seconds(k->seconds, word));
}

size_t fth_task_format(const fth_task *k, char *text, size_t bytes)
{
    fth__text t;
    cell c;
    char word[FTH__WORD];
    fth__text_init(&t, text, bytes);
    put_safe(&t, k->job);
    fth__text_add(&t, "/");
    put_safe(&t, k->stage);
    fth__text_add(&t, ": %s", fth__task_state(k));
    if (k->state == FTH_STATE_RUNNING && *k->device) {
        fth__text_add(&t, " on ");
        put_safe(&t, k->device);
    }
    put_end(&t, k);
    if (k->state == FTH_STATE_RUNNING && (k->total > 0 || k->done > 0)) {
        fill(&c, k, PROGRESS, false);
        fth__text_add(&t, ", ");
        put_safe(&t, k->what);
        fth__text_add(&t, *k->what ? " %s" : "%s", c.text);
    }
    if (*fth__show_value(k->value, word)) {
        fth__text_add(&t, ", ");
        put_safe(&t, k->figure);
        fth__text_add(&t, " %s", word);
    }
    fill(&c, k, MEMORY, false);
    if (*c.text && k->state != FTH_STATE_PENDING) fth__text_add(&t, ", memory/plan %s", c.text);
    if (*k->reason && k->state != FTH_STATE_COMPLETED) {
        fth__text_add(&t, ": ");
        put_safe(&t, k->reason);
    }
    return t.wanted;
}
