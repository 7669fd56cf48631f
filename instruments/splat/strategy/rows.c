/* rows.c - see rows.h. */
#include "parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *const part_names[GS_PARTS] = {"", " m", " v"};

static int parts_of(unsigned flags)
{
    return flags & GS_ROWS_ADAM ? GS_PARTS : 1;
}

static fth_status make_tensor(gs_rows *rows, int part, int a, fth_err *err)
{
    char label[32];
    const int64_t size[3] = {rows->n,
                             a == GS_SH_N ? gs_coefficients(rows->degree)
                                          : gs_columns((gs_attribute)a, rows->degree),
                             3};
    const int axes = a == GS_SH_N ? 3 : a == GS_OPACITY ? 1 : 2;
    snprintf(label, sizeof label, "%s%s", gs_attribute_names[a], part_names[part]);
    return fth_tensor_reserve(&rows->tensor[part][a], rows->mem, label, FTH_F32, axes, size,
                              rows->most, err);
}

static fth_status make_densify(gs_rows *rows, fth_err *err)
{
    FTH_TRY(fth_tensor_reserve(&rows->densify, rows->mem, "densify", FTH_F32, 2,
                               ((int64_t[]){rows->n, 2}), rows->most, err));
    rows->flags |= GS_ROWS_DENSIFY;
    return FTH_OK;
}

unsigned gs_rows_place(fth_context *context)
{
    fth_mem *mem = fth_context_device_mem(context);
    void *range = NULL;
    if (!mem || fth_mem_reserve(mem, 1, "rows", &range, NULL) != FTH_OK) return 0;
    (void)fth_mem_release(mem, range, NULL);
    return GS_ROWS_DEVICE;
}

/* A device whose budget has no room for the rows: how much they take, which an allocation of one
 * array cannot know. A step takes more, by a plan that cannot be made without rows. */
static fth_status refuse_device(const gs_rows *rows, uint64_t used, unsigned flags, fth_err *err)
{
    char need[24], has[24];
    fth_mem_stats now;
    fth_mem_get_stats(rows->mem, &now);
    const uint64_t least =
        used + gs_rows_bytes(rows->mem, rows->most, rows->degree, flags, rows->n);
    FTH_FAIL(err, FTH_E_BUDGET,
             "%" PRId64 " Gaussians of degree %d%s take %s (%" PRIu64
             " bytes) on the device, and %s (%" PRIu64 " bytes) are allowed",
             rows->n, rows->degree, flags & GS_ROWS_ADAM ? " with the moments of Adam" : "",
             fth_mem_format_size(least, need, sizeof need), least,
             fth_mem_format_size(now.budget_bytes, has, sizeof has), now.budget_bytes);
    fth_err_hint(err,
                 "give --device-memory more than %" PRIu64
                 ": a step needs memory beside them; or start from fewer Gaussians",
                 least);
    return FTH_E_BUDGET;
}

fth_status gs_rows_create(gs_rows *rows, fth_context *context, int64_t n, int64_t most, int degree,
                          unsigned flags, fth_err *err)
{
    const bool device = flags & GS_ROWS_DEVICE;
    fth_mem *mem = device ? fth_context_device_mem(context) : fth_context_mem(context);
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "rows on a device need a context with one");
    *rows = (gs_rows){.context = context,
                      .mem = mem,
                      .n = n,
                      .most = most,
                      .degree = degree,
                      .flags = flags & ~(unsigned)GS_ROWS_DENSIFY};
    fth_mem_stats now;
    fth_mem_get_stats(mem, &now);
    fth_status s = FTH_OK;
    for (int p = 0; s == FTH_OK && p < parts_of(flags); p++)
        for (int a = 0; s == FTH_OK && a < GS_ATTRIBUTES; a++) s = make_tensor(rows, p, a, err);
    if (s == FTH_OK && flags & GS_ROWS_DENSIFY) s = make_densify(rows, err);
    if (s == FTH_E_BUDGET && device) s = refuse_device(rows, now.used_bytes, flags, err);
    if (s != FTH_OK) gs_rows_free(rows);
    return s;
}

fth_status gs_rows_load(gs_rows *rows, fth_context *context, const gs_model *m, int64_t most,
                        unsigned flags, fth_err *err)
{
    FTH_TRY(gs_rows_create(rows, context, m->n, most, m->degree, flags, err));
    fth_status s = FTH_OK;
    for (int a = 0; s == FTH_OK && a < GS_ATTRIBUTES; a++)
        s = fth_tensor_put_rows(rows->tensor[GS_VALUE][a], 0, m->n, m->at[a], err);
    if (s != FTH_OK) gs_rows_free(rows);
    return s;
}

void gs_rows_free(gs_rows *rows)
{
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) (void)fth_tensor_release(rows->tensor[p][a]);
    (void)fth_tensor_release(rows->densify);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++) (void)fth_tensor_release(rows->marks[k][i]);
    *rows = (gs_rows){0};
}

static fth_status memory_of(fth_tensor *t, float **at, fth_err *err)
{
    *at = NULL;
    if (!t) return FTH_OK;
    FTH_TRY(fth_tensor_sync(t, err));
    *at = fth_tensor_data(t);
    return FTH_OK;
}

fth_status gs_rows_open(const gs_rows *rows, gs_rows_memory *m, fth_err *err)
{
    if (rows->flags & GS_ROWS_DEVICE)
        return FTH_FAIL(err, FTH_E_USAGE, "rows on a device have no memory on the host");
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            FTH_TRY(memory_of(rows->tensor[p][a], &m->at[p][a], err));
    return memory_of(rows->densify, &m->densify, err);
}

void gs_row_copy(const gs_rows_memory *m, int degree, int64_t to, int64_t from)
{
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const int64_t columns = gs_columns((gs_attribute)a, degree);
        float *at = m->at[GS_VALUE][a];
        memcpy(at + to * columns, at + from * columns, (size_t)columns * sizeof(float));
    }
}

void gs_row_clear_moments(const gs_rows_memory *m, int degree, int64_t row)
{
    for (int p = GS_FIRST; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++) {
            const int64_t columns = gs_columns((gs_attribute)a, degree);
            if (m->at[p][a])
                memset(m->at[p][a] + row * columns, 0, (size_t)columns * sizeof(float));
        }
}

fth_status gs_rows_model(const gs_rows *rows, gs_model *m, fth_err *err)
{
    *m = (gs_model){.mem = rows->mem, .n = rows->n, .degree = rows->degree};
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        m->tensor[a] = rows->tensor[GS_VALUE][a];
        FTH_TRY(memory_of(m->tensor[a], &m->at[a], err));
    }
    return FTH_OK;
}

fth_status gs_rows_fetch(const gs_rows *rows, gs_model *m, fth_err *err)
{
    FTH_TRY(gs_model_create(m, fth_context_mem(rows->context), rows->n, rows->degree, err));
    const fth_status s = gs_rows_get(rows, 0, rows->n, m, err);
    if (s != FTH_OK) gs_model_free(m);
    return s;
}

fth_status gs_rows_get(const gs_rows *rows, int64_t from, int64_t n, const gs_model *to,
                       fth_err *err)
{
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        FTH_TRY(fth_tensor_get_rows(rows->tensor[GS_VALUE][a], from, n, to->at[a], err));
    return FTH_OK;
}

/* ---- non-finite values ---- */

typedef struct search {
    const float *at;
    int64_t columns;
    atomic_int_fast64_t count;
} search;

static void count_some(void *arg, int64_t from, int64_t to)
{
    search *s = arg;
    int64_t count = 0;
    for (int64_t i = from * s->columns; i < to * s->columns; i++) count += !isfinite(s->at[i]);
    if (count > 0) atomic_fetch_add(&s->count, count);
}

fth_status gs_rows_count_bad(gs_rows *rows, int64_t count[GS_ATTRIBUTES], fth_err *err)
{
    gs_rows_memory m;
    memset(count, 0, GS_ATTRIBUTES * sizeof *count);
    if (rows->n == 0) return FTH_OK;
    if (rows->flags & GS_ROWS_DEVICE) return gs_device_count_bad(rows, count, err);
    FTH_TRY(gs_rows_open(rows, &m, err));
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        search s = {.at = m.at[GS_VALUE][a], .columns = gs_columns((gs_attribute)a, rows->degree)};
        gs_rows_loop(rows->context, "finite", rows->n, count_some, &s);
        count[a] = atomic_load(&s.count);
    }
    return FTH_OK;
}

/* ---- more and fewer ---- */

/* All tensors, densify last; NULL ends them. */
static void list_tensors(const gs_rows *rows, fth_tensor **list)
{
    for (int p = 0; p < GS_PARTS; p++)
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            if (rows->tensor[p][a]) *list++ = rows->tensor[p][a];
    if (rows->densify) *list++ = rows->densify;
    *list = NULL;
}

enum { TENSORS = GS_PARTS * GS_ATTRIBUTES + 2 };

fth_status gs_rows_append(gs_rows *rows, int64_t count, fth_err *err)
{
    fth_tensor *list[TENSORS];
    if (count < 0 || count > rows->most - rows->n)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "%" PRId64 " rows of at most %" PRId64 " were to get %" PRId64 " more",
                        rows->n, rows->most, count);
    list_tensors(rows, list);
    for (int i = 0; list[i]; i++) {
        const fth_status s = fth_tensor_set_rows(list[i], rows->n + count, err);
        if (s == FTH_OK) continue;
        while (i-- > 0)
            if (fth_tensor_set_rows(list[i], rows->n, NULL) != FTH_OK) break;
        return s;
    }
    rows->n += count;
    return FTH_OK;
}

typedef struct closing {
    char *data[TENSORS];
    uint64_t row_bytes[TENSORS];
    const gs_marks *gone;
    int order[TENSORS]; /* longest rows first, so that the workers end together */
} closing;

/* Runs of rows that stay move down together. */
static void close_tensor(char *data, uint64_t bytes, const gs_marks *gone)
{
    int64_t to = 0;
    for (int64_t row = 0; row < gone->n;) {
        if (row % GS_WORD == 0 && gone->word[row / GS_WORD] == UINT32_MAX) {
            row += GS_WORD;
            continue;
        }
        if (gs_marks_has(gone, row)) {
            row++;
            continue;
        }
        int64_t end = row + 1;
        while (end < gone->n && !gs_marks_has(gone, end)) end++;
        if (to != row)
            memmove(data + (uint64_t)to * bytes, data + (uint64_t)row * bytes,
                    (uint64_t)(end - row) * bytes);
        to += end - row;
        row = end;
    }
}

static void close_some(void *arg, int64_t from, int64_t to)
{
    const closing *c = arg;
    for (int64_t i = from / GS_BLOCK; i < to / GS_BLOCK; i++)
        close_tensor(c->data[c->order[i]], c->row_bytes[c->order[i]], c->gone);
}

/* Rows of the host, array by array. */
static fth_status close_here(fth_tensor *const *list, fth_context *context, const gs_marks *gone,
                             fth_err *err)
{
    closing c = {.gone = gone};
    int n = 0;
    for (; list[n]; n++) {
        c.row_bytes[n] = fth_tensor_bytes(list[n]) / (uint64_t)gone->n;
        FTH_TRY(fth_tensor_sync(list[n], err));
        c.data[n] = fth_tensor_data(list[n]);
        int at = n;
        for (; at > 0 && c.row_bytes[c.order[at - 1]] < c.row_bytes[n]; at--)
            c.order[at] = c.order[at - 1];
        c.order[at] = n;
    }
    gs_rows_loop(context, "compact", (int64_t)n * GS_BLOCK, close_some, &c);
    return FTH_OK;
}

fth_status gs_rows_compact(gs_rows *rows, const gs_marks *gone, fth_err *err)
{
    fth_tensor *list[TENSORS];
    if (gone->n != rows->n)
        return FTH_FAIL(err, FTH_E_USAGE, "marks of %" PRId64 " rows for %" PRId64, gone->n,
                        rows->n);
    if (gone->count == 0) return FTH_OK;
    list_tensors(rows, list);
    if (rows->flags & GS_ROWS_DEVICE)
        FTH_TRY(gs_device_close(rows, gone, err));
    else
        FTH_TRY(close_here(list, rows->context, gone, err));
    return gs_rows_forget(rows, rows->n - gone->count, err);
}

fth_status gs_rows_forget(gs_rows *rows, int64_t n, fth_err *err)
{
    fth_tensor *list[TENSORS];
    list_tensors(rows, list);
    rows->n = n;
    fth_status s = FTH_OK; /* what does not shrink says so; all others do */
    for (int i = 0; list[i]; i++) {
        const fth_status one = fth_tensor_set_rows(list[i], n, s == FTH_OK ? err : NULL);
        if (s == FTH_OK) s = one;
    }
    return s;
}

fth_status gs_rows_begin_densify(gs_rows *rows, fth_err *err)
{
    float *at = NULL;
    if (!rows->densify) return make_densify(rows, err);
    if (rows->flags & GS_ROWS_DEVICE)
        return rows->n > 0 ? gs_device_clear_densify(rows, err) : FTH_OK;
    FTH_TRY(memory_of(rows->densify, &at, err));
    if (rows->n > 0) memset(at, 0, (size_t)rows->n * 2 * sizeof(float));
    return FTH_OK;
}

void gs_rows_end_densify(gs_rows *rows)
{
    (void)fth_tensor_release(rows->densify);
    rows->densify = NULL;
    rows->flags &= ~(unsigned)GS_ROWS_DENSIFY;
}

/* ---- memory ---- */

uint64_t gs_rows_bytes(const fth_mem *mem, int64_t most, int degree, unsigned flags, int64_t n)
{
    uint64_t sum = 0;
    for (int a = 0; a < GS_ATTRIBUTES; a++) {
        const uint64_t row = (uint64_t)gs_columns((gs_attribute)a, degree) * sizeof(float);
        sum += (uint64_t)parts_of(flags) *
               fth_mem_range_cost(mem, row * (uint64_t)most, row * (uint64_t)n);
    }
    if (flags & GS_ROWS_DENSIFY)
        sum += fth_mem_range_cost(mem, 8 * (uint64_t)most, 8 * (uint64_t)n);
    return sum;
}

int64_t gs_rows_fit(const fth_mem *mem, int64_t most, int degree, unsigned flags, uint64_t bytes)
{
    int64_t fits = 0, beyond = most + 1;
    while (beyond - fits > 1) {
        const int64_t n = fits + (beyond - fits) / 2;
        if (gs_rows_bytes(mem, most, degree, flags, n) <= bytes)
            fits = n;
        else
            beyond = n;
    }
    return fits;
}

int64_t gs_rows_afford(const gs_rows *rows, int64_t wanted, uint64_t held,
                       uint64_t (*bytes)(const void *arg, int64_t more), const void *arg)
{
    fth_mem_stats stats;
    fth_mem_get_stats(rows->mem, &stats);
    const uint64_t beside = stats.used_bytes > held ? stats.used_bytes - held : 0;
    int64_t fits = 0, beyond = wanted + 1;
    for (int64_t more = wanted; beyond - fits > 1; more = fits + (beyond - fits) / 2) {
        if (bytes(arg, more) <= stats.budget_bytes - beside)
            fits = more;
        else
            beyond = more;
    }
    if (fits < wanted)
        fth_log_line(fth_context_log(rows->context), FTH_LOG_WARN,
                     "memory for %" PRId64 " of %" PRId64 " new Gaussians: the cap is %" PRId64
                     " for now",
                     fits, wanted, rows->n + fits);
    return fits;
}

/* ---- work over rows ---- */

enum { CHUNKS = 512 }; /* many per worker, so that all end at about the same time */

typedef struct loop {
    int64_t n, rows; /* rows of a chunk */
    void (*fn)(void *arg, int64_t from, int64_t to);
    void *arg;
    bool done[CHUNKS];
} loop;

static void run_chunk(void *arg, int64_t i, int worker)
{
    loop *l = arg;
    const int64_t from = i * l->rows, to = from + l->rows < l->n ? from + l->rows : l->n;
    (void)worker;
    l->fn(l->arg, from, to);
    l->done[i] = true;
}

void gs_rows_loop(fth_context *context, const char *name, int64_t n,
                  void (*fn)(void *arg, int64_t from, int64_t to), void *arg)
{
    const int64_t blocks = (n + GS_BLOCK - 1) / GS_BLOCK, each = (blocks + CHUNKS - 1) / CHUNKS;
    loop l = {.n = n, .rows = each * GS_BLOCK, .fn = fn, .arg = arg};
    if (n < 1) return;
    const int64_t chunks = (blocks + each - 1) / each;
    if (fth_context_loop(context, name, chunks, run_chunk, &l, NULL) == FTH_OK) return;
    for (int64_t i = 0; i < chunks; i++)
        if (!l.done[i]) run_chunk(&l, i, 0);
}

static void count_marks(void *arg, int64_t from, int64_t to)
{
    gs_marks_count_blocks(arg, from / GS_BLOCK, (to + GS_BLOCK - 1) / GS_BLOCK);
}

void gs_rows_count_marks(fth_context *context, gs_marks *m)
{
    gs_rows_loop(context, "count marks", m->n, count_marks, m);
    gs_marks_add_blocks(m);
}
