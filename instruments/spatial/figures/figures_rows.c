/* figures_rows.c - one number for each cell, computed when a figure reads it.
 *
 * Files have a row for each cell; a panel needs a column. A pass over the file extracts as many
 * columns as fit into 64 MiB: all factors of a usual dataset, a dozen of a million cells. Panels
 * are drawn in the order of the rows, so passes are seldom repeated.
 */
#include "figures.h"

#include <math.h>
#include <string.h>

enum { ROOM = 64 << 20, PIECE = 1 << 16 /* numbers of a piece of a file */ };

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- rows ---- */

static fth_status load(sp_rows *r, int64_t row, fth_err *err)
{
    if (row >= r->first && row < r->first + r->count) return FTH_OK;
    const int64_t n = r->source.size[1];
    if (!r->block) {
        void *block = NULL;
        FTH_TRY(fth_mem_take(r->d->mem, FTH_MEM_ANY, (uint64_t)(r->room * n) * sizeof(float),
                             "rows of a figure", &block, err));
        r->block = block;
    }
    const int64_t first = row / r->together * r->together,
                  count = smaller(r->room, r->source.size[0] - first);
    r->count = 0;
    FTH_TRY(r->make(r->user, first, count, r->block, err));
    r->first = first;
    r->count = count;
    return FTH_OK;
}

static fth_status read_rows(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    sp_rows *r = self;
    float *to = dst;
    for (int64_t i = 0; i < n[0]; i++, to += n[1]) {
        FTH_TRY(load(r, lo[0] + i, err));
        memcpy(to, r->block + (lo[0] + i - r->first) * r->source.size[1] + lo[1],
               (size_t)n[1] * sizeof(float));
    }
    return FTH_OK;
}

void sp_rows_open(sp_rows *r, sp_drawing *d, int64_t rows, int64_t n, int64_t together,
                  uint64_t scratch, sp_rows_fn *make, void *user)
{
    const int64_t room = d->room ? (int64_t)d->room : ROOM,
                  fit = room / (int64_t)sizeof(float) / (n > 0 ? n : 1) / together * together;
    *r = (sp_rows){.d = d, .make = make, .user = user, .together = together};
    r->room = smaller(fit > together ? fit : together, rows);
    r->source = (fth_source){.kind = "rows of a figure",
                             .self = r,
                             .dtype = FTH_F32,
                             .n_axes = 2,
                             .size = {rows, n},
                             .read = read_rows};
    r->bytes = (uint64_t)(r->room * n) * sizeof(float) + scratch;
    d->held += r->bytes;
}

void sp_rows_close(sp_rows *r)
{
    if (!r->d) return;
    (void)fth_mem_release(r->d->mem, r->block, NULL);
    r->d->held -= r->bytes;
    *r = (sp_rows){0};
}

fth_column sp_rows_get(const sp_rows *r, int64_t row)
{
    return fth_column_row(&r->source, row);
}

fth_status sp_rows_limit(const sp_rows *r, int64_t first, int64_t n, double percent, double least,
                         double *out, fth_err *err)
{
    void *block = NULL;
    *out = least;
    if (r->d->planning || n == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(r->d->mem, FTH_MEM_ANY, (uint64_t)n * sizeof(fth_column), "columns",
                         &block, err));
    fth_column *column = block;
    for (int64_t i = 0; i < n; i++) column[i] = sp_rows_get(r, first + i);
    const fth_status s = fth_column_percentile(r->d->mem, column, n, percent, out, err);
    (void)fth_mem_release(r->d->mem, block, NULL);
    if (!(*out > least)) *out = least;
    return s;
}

/* ---- columns of a file ---- */

/* Columns [first, first + count) of `n` rows of a piece, each to a row of its own. */
static void put_columns(float *to, int64_t cells, const void *from, const fth_source *file,
                        int64_t n, int64_t first, int64_t count)
{
    const int64_t columns = file->size[file->n_axes - 1];
    const float *f32 = from;
    const double *f64 = from;
    for (int64_t c = 0; c < count; c++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t k = i * columns + first + c;
            to[c * cells + i] = file->dtype == FTH_F64 ? (float)f64[k] : f32[k];
        }
}

static int64_t rows_of_piece(const fth_source *file)
{
    const int64_t n = PIECE / file->size[file->n_axes - 1];
    return n > 0 ? n : 1;
}

static uint64_t piece_bytes(const fth_source *file)
{
    return (uint64_t)(rows_of_piece(file) * file->size[file->n_axes - 1]) * sizeof(double);
}

static fth_status take_columns(const sp_drawing *d, const fth_source *file, int64_t frame,
                               int64_t first, int64_t count, float *to, fth_err *err)
{
    const bool frames = file->n_axes == 3;
    const int64_t columns = file->size[file->n_axes - 1], cells = file->size[file->n_axes - 2];
    const int64_t piece = rows_of_piece(file);
    void *block = NULL;
    fth_status s =
        fth_mem_take(d->mem, FTH_MEM_ANY, piece_bytes(file), "rows of a file", &block, err);
    for (int64_t at = 0; s == FTH_OK && at < cells; at += piece) {
        const int64_t n = smaller(piece, cells - at);
        const int64_t lo[3] = {frames ? frame : at, frames ? at : 0, 0};
        const int64_t size[3] = {frames ? 1 : n, frames ? n : columns, columns};
        s = file->read(file->self, lo, size, block, err);
        if (s == FTH_OK) put_columns(to + at, cells, block, file, n, first, count);
    }
    (void)fth_mem_release(d->mem, block, NULL);
    return s;
}

static fth_status make_columns(void *user, int64_t first, int64_t count, float *to, fth_err *err)
{
    const sp_transposed *t = user;
    return take_columns(t->rows.d, t->file, t->frame, first, count, to, err);
}

void sp_transposed_open(sp_transposed *t, sp_drawing *d, const fth_source *file, int64_t frame)
{
    const int n = file->n_axes;
    *t = (sp_transposed){.file = file, .frame = frame};
    sp_rows_open(&t->rows, d, file->size[n - 1], file->size[n - 2], 1, piece_bytes(file),
                 make_columns, t);
}

/* ---- maps as if all cells were of one group ---- */

static fth_status make_groupwise(void *user, int64_t first, int64_t count, float *to, fth_err *err)
{
    const sp_groupwise *w = user;
    sp_drawing *d = w->rows.d;
    for (int64_t at = 0; at < count;) {
        const int64_t row = first + at, group = row / d->factors, factor = row % d->factors;
        const int64_t n = smaller(count - at, d->factors - factor);
        char name[64];
        fth_source file;
        snprintf(name, sizeof name, SP_GROUPWISE "/group_%lld.npy", (long long)w->group[group]);
        FTH_TRY(sp_draw_open_cells(d, name, &file, err));
        const fth_status s = take_columns(d, &file, 0, factor, n, to + at * d->cells, err);
        fth_source_close(&file);
        FTH_TRY(s);
        at += n;
    }
    return FTH_OK;
}

void sp_groupwise_open(sp_groupwise *w, sp_drawing *d, const int64_t *group, int64_t n)
{
    *w = (sp_groupwise){.group = group};
    sp_rows_open(&w->rows, d, n * d->factors, d->cells, 1, piece_bytes(&d->factor_file),
                 make_groupwise, w);
}

/* ---- counts ---- */

typedef struct scan {
    sp_drawing *d;
    const sp_gene_rows *g;
    int64_t first, count;
    float *to;
    double *sum;      /* instead: [gene], over the cells */
    int32_t *slot;    /* [gene]: the first row of it, counted from 1; 0: none */
    int64_t *row_ptr; /* of a piece */
    int32_t *col;
    float *val;
} scan;

/* Genes may come twice: every row that shows one gets its counts. */
static void put_counts(const scan *s, int64_t cell, int64_t n_cells, int64_t from, int64_t to)
{
    for (int64_t k = from; k < to; k++) {
        const int32_t gene = s->col[k];
        if (s->sum) {
            s->sum[gene] += (double)s->val[k];
            continue;
        }
        if (s->slot[gene] == 0) continue;
        for (int64_t i = s->slot[gene] - 1; i < s->count; i++)
            if (s->g->gene[s->first + i] == gene) s->to[i * n_cells + cell] += s->val[k];
    }
}

/* Rows of the folder in pieces; rows of other cells are skipped. */
static fth_status scan_counts(const scan *s, int64_t piece, fth_err *err)
{
    const sp_data *data = &s->d->data;
    const int64_t cells = data->size.cells, rows = fth_csr_rows(data->counts);
    int64_t cell = 0;
    for (int64_t at = 0; at < rows;) {
        int64_t n = 1;
        while (at + n < rows && n < piece && fth_csr_entries(data->counts, at, at + n + 1) <= PIECE)
            n++;
        FTH_TRY(fth_csr_read(data->counts, at, n, s->row_ptr, s->col, s->val, err));
        for (int64_t i = 0; i < n; i++) {
            if (data->row && (cell == cells || data->row[cell] != at + i)) continue;
            put_counts(s, cell++, cells, s->row_ptr[i], s->row_ptr[i + 1]);
        }
        at += n;
    }
    return FTH_OK;
}

static int64_t most_entries(const sp_drawing *d)
{
    return d->data.size.most_entries > PIECE ? d->data.size.most_entries : PIECE;
}

enum { SCAN_ROWS = 8192 };

static uint64_t scan_bytes(const sp_drawing *d)
{
    return (uint64_t)d->genes * 4 + (SCAN_ROWS + 1) * 8 + (uint64_t)most_entries(d) * 8 + 256;
}

static fth_status scan_all(scan *s, fth_err *err)
{
    sp_drawing *d = s->d;
    void *block = NULL;
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, scan_bytes(d), "counts", &block, err));
    s->row_ptr = block;
    s->val = (float *)(s->row_ptr + SCAN_ROWS + 1);
    s->col = (int32_t *)(s->val + most_entries(d));
    s->slot = s->col + most_entries(d);
    memset(s->slot, 0, (size_t)d->genes * sizeof *s->slot);
    for (int64_t i = s->count; i-- > 0;) s->slot[s->g->gene[s->first + i]] = (int32_t)(i + 1);
    const fth_status status = scan_counts(s, SCAN_ROWS, err);
    (void)fth_mem_release(d->mem, block, NULL);
    return status;
}

static fth_status make_counts(void *user, int64_t first, int64_t count, float *to, fth_err *err)
{
    sp_gene_rows *g = user;
    const int64_t cells = g->rows.source.size[1];
    scan s = {.d = g->rows.d, .g = g, .first = first, .count = count, .to = to};
    memset(to, 0, (size_t)(count * cells) * sizeof *to);
    FTH_TRY(scan_all(&s, err));
    for (int64_t i = 0; g->log1p && i < count * cells; i++)
        if (to[i] != 0) to[i] = log1pf(to[i]);
    return FTH_OK;
}

fth_status sp_mean_counts(sp_drawing *d, double *mean, fth_err *err)
{
    scan s = {.d = d, .sum = mean};
    memset(mean, 0, (size_t)d->genes * sizeof *mean);
    d->held += scan_bytes(d);
    if (d->planning && d->held > d->most) d->most = d->held;
    d->held -= scan_bytes(d);
    if (d->planning) return FTH_OK;
    FTH_TRY(scan_all(&s, err));
    for (int64_t g = 0; g < d->genes; g++) mean[g] /= (double)d->cells;
    return FTH_OK;
}

void sp_gene_rows_open(sp_gene_rows *g, sp_drawing *d, const int64_t *gene, int64_t n, bool log1p)
{
    *g = (sp_gene_rows){.gene = gene, .log1p = log1p};
    sp_rows_open(&g->rows, d, n, d->cells, 1, scan_bytes(d), make_counts, g);
}

/* ---- what the model says ---- */

/* Pieces of the file of factors, as f64 [cell][factor], times the sizes of the cells. */
typedef void factors_fn(void *user, int64_t first, int64_t n, const double *factor);
static fth_status scale_piece(const sp_drawing *d, int64_t first, int64_t n, float *size,
                              double *factor, fth_err *err)
{
    const fth_source *file = &d->size_file;
    if (!file->kind) return FTH_OK;
    FTH_TRY(file->read(file->self, &first, &n, size, err));
    for (int64_t i = 0; i < n * d->factors; i++) factor[i] *= (double)size[i / d->factors];
    return FTH_OK;
}

static fth_status walk_factors(const sp_drawing *d, factors_fn *each, void *user, fth_err *err)
{
    const fth_source *file = &d->factor_file;
    const int64_t L = d->factors, piece = rows_of_piece(file);
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(d->mem, FTH_MEM_ANY, 2 * piece_bytes(file), "rows of a file", &block, err));
    double *wide = (double *)block + piece * L;
    fth_status s = FTH_OK;
    for (int64_t at = 0; s == FTH_OK && at < d->cells; at += piece) {
        const int64_t n = smaller(piece, d->cells - at);
        s = file->read(file->self, (int64_t[]){at, 0}, (int64_t[]){n, L}, block, err);
        for (int64_t i = 0; i < n * L; i++)
            wide[i] = file->dtype == FTH_F64 ? ((double *)block)[i] : (double)((float *)block)[i];
        if (s == FTH_OK) s = scale_piece(d, at, n, block, wide, err); /* the rows were copied */
        if (s == FTH_OK) each(user, at, n, wide);
    }
    (void)fth_mem_release(d->mem, block, NULL);
    return s;
}

typedef struct fitting {
    const sp_fitted_rows *f;
    int64_t first, count;
    float *to;
} fitting;

static void fit_piece(void *user, int64_t first, int64_t n, const double *factor)
{
    const fitting *w = user;
    const sp_drawing *d = w->f->rows.d;
    for (int64_t k = 0; k < w->count; k++) {
        const float *loading = d->loadings + w->f->gene[w->first + k] * d->factors;
        for (int64_t i = 0; i < n; i++) {
            double rate = 0;
            for (int64_t l = 0; l < d->factors; l++)
                rate += factor[i * d->factors + l] * (double)loading[l];
            w->to[k * d->cells + first + i] = (float)log1p(rate);
        }
    }
}

static fth_status make_fitted(void *user, int64_t first, int64_t count, float *to, fth_err *err)
{
    const sp_fitted_rows *f = user;
    fitting w = {.f = f, .first = first, .count = count, .to = to};
    return walk_factors(f->rows.d, fit_piece, &w, err);
}

void sp_fitted_rows_open(sp_fitted_rows *f, sp_drawing *d, const int64_t *gene, int64_t n)
{
    *f = (sp_fitted_rows){.gene = gene};
    sp_rows_open(&f->rows, d, n, d->cells, 1, 2 * piece_bytes(&d->factor_file), make_fitted, f);
}

/* ---- means ---- */

typedef struct sums {
    double *sum;
    int64_t factors;
} sums;

static void add_factors(void *user, int64_t first, int64_t n, const double *factor)
{
    const sums *w = user;
    (void)first;
    for (int64_t i = 0; i < n * w->factors; i++) w->sum[i % w->factors] += factor[i];
}

fth_status sp_mean_factors(sp_drawing *d, double *mean, fth_err *err)
{
    sums w = {.sum = mean, .factors = d->factors};
    memset(mean, 0, (size_t)d->factors * sizeof *mean);
    if (d->planning) return FTH_OK;
    FTH_TRY(walk_factors(d, add_factors, &w, err));
    for (int64_t l = 0; l < d->factors; l++) mean[l] /= (double)d->cells;
    return FTH_OK;
}
