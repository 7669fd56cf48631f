/* walk.c - see walk.h. */
#include "walk.h"
#include "totals.h"

#include <string.h>

enum { PIECE = 1 << 16 }; /* entries, or one row when that has more */

static fth_status take(sp_walk *w, void **out, int64_t n, size_t each, const char *label,
                       fth_err *err)
{
    return fth_mem_take(w->data->mem, FTH_MEM_ANY, (uint64_t)(n + 1) * each, label, out, err);
}

static int64_t row_of(const sp_walk *w, int64_t cell)
{
    return w->data->row ? w->data->row[cell] : cell;
}

static fth_status make(sp_walk *w, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(take(w, &block, w->rows, sizeof *w->ptr, "rows of counts", err));
    w->ptr = block;
    FTH_TRY(take(w, &block, w->rows, sizeof *w->row, "rows to read", err));
    w->row = block;
    FTH_TRY(take(w, &block, w->entries, sizeof *w->col, "genes of counts", err));
    w->col = block;
    FTH_TRY(take(w, &block, w->entries, sizeof *w->val, "counts", err));
    w->val = block;
    return FTH_OK;
}

static int64_t rows_of(const sp_sizes *size)
{
    return size->cells < PIECE ? size->cells : PIECE;
}

static int64_t entries_of(const sp_sizes *size)
{
    return size->most_entries >= PIECE ? size->most_entries : PIECE;
}

uint64_t sp_walk_bytes(const sp_sizes *size)
{
    return 16 * (uint64_t)(rows_of(size) + 1) + 8 * (uint64_t)(entries_of(size) + 1) + 4 * 4096;
}

fth_status sp_walk_open(sp_walk *w, const sp_data *data, fth_err *err)
{
    *w = (sp_walk){.data = data, .rows = rows_of(&data->size), .entries = entries_of(&data->size)};
    const fth_status s = make(w, err);
    if (s != FTH_OK) sp_walk_close(w);
    return s;
}

void sp_walk_close(sp_walk *w)
{
    void *const blocks[] = {w->ptr, w->row, w->col, w->val};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i]) (void)fth_mem_release(w->data->mem, blocks[i], NULL);
    *w = (sp_walk){0};
}

static void divide_rows(sp_walk *w, int64_t n)
{
    for (int64_t i = 0; i < n && w->median > 0; i++) {
        double total = 0;
        for (int64_t k = w->ptr[i]; k < w->ptr[i + 1]; k++) total += (double)w->val[k];
        const double size = sp_size_of(total, w->median);
        for (int64_t k = w->ptr[i]; k < w->ptr[i + 1]; k++)
            w->val[k] = (float)((double)w->val[k] / size);
    }
}

/* Rows from `cell` on into the arrays; returns how many. */
static fth_status read_piece(sp_walk *w, int64_t cell, int64_t *n, fth_err *err)
{
    int64_t entries = 0;
    for (*n = 0; cell + *n < w->data->size.cells && *n < w->rows; ++*n) {
        const int64_t row = row_of(w, cell + *n);
        entries += fth_csr_entries(w->data->counts, row, row + 1);
        if (entries > w->entries) break;
        w->row[*n] = row;
    }
    FTH_TRY(
        fth_csr_read_rows(w->data->counts, w->row, *n, w->entries, w->ptr, w->col, w->val, err));
    divide_rows(w, *n);
    return FTH_OK;
}

fth_status sp_walk_each(sp_walk *w, void (*fn)(void *user, const sp_walk_row *row), void *user,
                        fth_err *err)
{
    for (int64_t cell = 0, n = 0; cell < w->data->size.cells; cell += n) {
        FTH_TRY(read_piece(w, cell, &n, err));
        for (int64_t i = 0; i < n; i++)
            fn(user, &(sp_walk_row){.cell = cell + i,
                                    .n = w->ptr[i + 1] - w->ptr[i],
                                    .gene = w->col + w->ptr[i],
                                    .value = w->val + w->ptr[i]});
    }
    return FTH_OK;
}

fth_status sp_walk_get(sp_walk *w, int64_t cell, double *to, fth_err *err)
{
    const int64_t row = row_of(w, cell);
    memset(to, 0, (size_t)w->data->size.genes * sizeof *to);
    FTH_TRY(fth_csr_read_rows(w->data->counts, &row, 1, w->entries, w->ptr, w->col, w->val, err));
    divide_rows(w, 1);
    for (int64_t i = 0; i < w->ptr[1]; i++) to[w->col[i]] += (double)w->val[i];
    return FTH_OK;
}
