/* reader.c - batches of counts, gathered one step ahead by a thread.
 *
 * A batch is some rows of the matrix with some of its columns, renumbered. Rows are copied from
 * memory if all of them fit there, else read from the file in pieces; both pass through the same
 * loop, so a batch has the same bytes either way.
 */
#include "data.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    PIECE = 1 << 16, /* entries read from a file at a time, or one row when that has more */
    TABLE = 1024,    /* lgamma is tabulated for counts below this */
    BLOCK = 16       /* rows per task of the team */
};

/* Rows of counts as they stand: row i has entries ptr[i] to ptr[i + 1] - 1. */
typedef struct rows {
    const int64_t *ptr;
    const int32_t *col;
    const float *val;
} rows;

struct sp_reader {
    fth_mem *mem;
    const sp_data *data;
    int64_t cells, genes; /* of a batch */
    int64_t room;         /* entries of a batch at most */
    bool resident;
    /* all counts when resident, else a piece of the file */
    int64_t *ptr;
    int32_t *col;
    float *val;
    int64_t piece;  /* rows and entries of it */
    int64_t *row;   /* rows of the folder that make up a piece */
    bool *plain;    /* of all rows, when resident: as is_plain says */
    int64_t *last;  /* for every gene of the batch: the entry that was its last */
    int32_t *place; /* of every gene: place in the batch, or -1 */
    double *lgamma;
    sp_counts batch[2];
    bool whole[2]; /* that batch is all cells and genes, in order */
    int into;      /* the batch that is filled next; the other belongs to the caller */

    /* between the caller and the thread, under the lock */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started, stop;
    bool asked;           /* a batch was asked for and not taken yet */
    bool busy;            /* it is being gathered, or is queued */
    int64_t *cell, *gene; /* the lists asked for */
    bool all_cells, all_genes;
    fth_team *team;       /* helper threads; NULL: none */
    sp_reader_then *then; /* called by the thread after a batch */
    void *then_arg;
    fth_status status;
    fth_err err;
};

/* ---- gathering ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static double log_factorial(const sp_reader *r, float y)
{
    if (y < (float)TABLE && y == (float)(int)y) return r->lgamma[(int)y];
    int sign;
    return lgamma_r((double)y + 1.0, &sign);
}

static fth_status bad_count(const sp_reader *r, int64_t cell, int32_t gene, float y, fth_err *err)
{
    const char *name = r->data->gene_names ? fth_texts_get(r->data->gene_names, gene) : NULL;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s/%s: the count of cell %" PRId64 ", gene %" PRId32 "%s%s%s is "
                 "%g; counts are finite and at least 0",
                 r->data->dir, SP_Y, r->data->row ? r->data->row[cell] : cell, gene,
                 name ? " (" : "", name ? name : "", name ? ")" : "", (double)y);
    fth_err_hint(err, "write the counts again, or drop that cell or gene");
    return s;
}

/* The arrays of a batch, and where the next entry goes. */
typedef struct filling {
    int64_t *row_ptr;
    int32_t *gene;
    float *value;
    double constant;
} filling;

/* Row `at` of `from`, which is `cell`, from entry `n` of the batch on; returns where it ends. */
static fth_status add_any_row(sp_reader *r, filling *b, const rows *from, int64_t at, int64_t cell,
                              int64_t *end, fth_err *err)
{
    const int64_t first = *end;
    int64_t n = first;
    for (int64_t i = from->ptr[at]; i < from->ptr[at + 1]; i++) {
        const int32_t place = r->place[from->col[i]];
        const float y = from->val[i];
        if (!(y >= 0.0f && isfinite(y))) return bad_count(r, cell, from->col[i], y, err);
        if (place < 0 || y == 0.0f) continue;
        if (r->last[place] >= first) { /* one place twice */
            b->value[r->last[place]] += y;
            continue;
        }
        if (n == r->room)
            return FTH_FAIL(err, FTH_E_USAGE,
                            "a batch with cells more than once has more than %" PRId64 " entries",
                            r->room);
        r->last[place] = n;
        b->gene[n] = place;
        b->value[n++] = y;
    }
    *end = n;
    return FTH_OK;
}

/* Only counts above 0 and each gene once: gathering needs no checks. */
static bool is_plain(const rows *from, int64_t at)
{
    bool plain = true;
    for (int64_t i = from->ptr[at]; i < from->ptr[at + 1] && plain; i++)
        plain = from->val[i] > 0.0f && isfinite(from->val[i]) &&
                (i == from->ptr[at] || from->col[i] > from->col[i - 1]);
    return plain;
}

/* The same for a plain row. Whether a gene is in the batch is unpredictable, so there is no branch:
 * an entry that is not kept is overwritten by the next. */
static int64_t add_plain_row(const sp_reader *r, const filling *b, const rows *from, int64_t at,
                             int64_t n)
{
    for (int64_t i = from->ptr[at]; i < from->ptr[at + 1]; i++) {
        const int32_t place = r->place[from->col[i]];
        b->gene[n] = place;
        b->value[n] = from->val[i];
        n += place >= 0;
    }
    return n;
}

/* Row `at` of `from`, which is `cell`, becomes row `to` of the batch. */
static fth_status add_row(sp_reader *r, filling *b, const rows *from, int64_t at, int64_t cell,
                          int64_t to, fth_err *err)
{
    const int64_t first = b->row_ptr[to];
    int64_t n = first;
    if (r->plain && r->plain[at] && n + from->ptr[at + 1] - from->ptr[at] <= r->room)
        n = add_plain_row(r, b, from, at, n);
    else
        FTH_TRY(add_any_row(r, b, from, at, cell, &n, err));
    double sum = b->constant;
    for (int64_t i = first; i < n; i++) sum += log_factorial(r, b->value[i]);
    b->constant = sum;
    b->row_ptr[to + 1] = n;
    return FTH_OK;
}

static int64_t cell_of(const sp_reader *r, int64_t i)
{
    return r->all_cells ? i : r->cell[i];
}

static int64_t length_of(const sp_data *d, int64_t cell)
{
    const int64_t row = d->row ? d->row[cell] : cell;
    return fth_csr_entries(d->counts, row, row + 1);
}

/* Cells [first, ..) of the batch into the piece; returns how many fit. */
static fth_status read_piece(sp_reader *r, int64_t first, int64_t *n, fth_err *err)
{
    int64_t entries = 0;
    for (*n = 0; first + *n < r->cells && *n < r->piece; ++*n) {
        const int64_t cell = cell_of(r, first + *n), more = length_of(r->data, cell);
        if (entries + more > r->piece) break;
        entries += more;
        r->row[*n] = r->data->row ? r->data->row[cell] : cell;
    }
    return fth_csr_read_rows(r->data->counts, r->row, *n, r->piece, r->ptr, r->col, r->val, err);
}

static void find_places(sp_reader *r)
{
    for (int64_t g = 0; g < r->data->size.genes; g++) r->place[g] = r->all_genes ? (int32_t)g : -1;
    for (int64_t i = 0; !r->all_genes && i < r->genes; i++) r->place[r->gene[i]] = (int32_t)i;
}

static void settle(const sp_reader *r, sp_counts *out, const filling *b)
{
    const uint64_t entries = (uint64_t)b->row_ptr[r->cells];
    out->constant = b->constant;
    fth_tensor_set_used(out->gene, entries * sizeof *b->gene);
    fth_tensor_set_used(out->value, entries * sizeof *b->value);
}

static filling filling_of(const sp_counts *out)
{
    return (filling){fth_tensor_data(out->row_ptr), fth_tensor_data(out->gene),
                     fth_tensor_data(out->value), 0.0};
}

static fth_status gather_alone(sp_reader *r, sp_counts *out, fth_err *err)
{
    const rows from = {r->ptr, r->col, r->val};
    filling b = filling_of(out);
    b.row_ptr[0] = 0;
    for (int64_t i = 0; i < r->genes; i++) r->last[i] = -1;
    for (int64_t i = 0, n = 0; i < r->cells; i += n) {
        n = r->cells;
        if (!r->resident) FTH_TRY(read_piece(r, i, &n, err));
        for (int64_t k = 0; k < n; k++) {
            const int64_t cell = cell_of(r, i + k);
            FTH_TRY(add_row(r, &b, &from, r->resident ? cell : k, cell, i + k, err));
        }
    }
    settle(r, out, &b);
    return FTH_OK;
}

/* ---- gathering by a team ----
 *
 * Of plain rows in memory: lengths first, so that each thread knows where its rows begin. */

typedef struct sharing {
    const sp_reader *r;
    rows from;
    filling b;
    atomic_bool odd; /* there is a row that is not plain */
} sharing;

static int64_t end_of(const sp_reader *r, int64_t block)
{
    return least((block + 1) * BLOCK, r->cells);
}

static void count_block(void *arg, int64_t block, int worker)
{
    (void)worker;
    sharing *s = arg;
    const sp_reader *r = s->r;
    for (int64_t to = block * BLOCK; to < end_of(r, block); to++) {
        const int64_t cell = cell_of(r, to);
        int64_t n = 0;
        if (!r->plain[cell]) s->odd = true;
        for (int64_t i = r->ptr[cell]; i < r->ptr[cell + 1]; i++) n += r->place[r->col[i]] >= 0;
        s->b.row_ptr[to + 1] = n;
    }
}

/* Entries beyond the end of a block may belong to another thread, or be out of bounds. */
static void add_careful_row(const sharing *s, int64_t cell, int64_t n)
{
    for (int64_t i = s->from.ptr[cell]; i < s->from.ptr[cell + 1]; i++) {
        const int32_t place = s->r->place[s->from.col[i]];
        if (place < 0) continue;
        s->b.gene[n] = place;
        s->b.value[n++] = s->from.val[i];
    }
}

static void fill_block(void *arg, int64_t block, int worker)
{
    (void)worker;
    const sharing *s = arg;
    const int64_t *ptr = s->b.row_ptr, end = end_of(s->r, block);
    for (int64_t to = block * BLOCK; to < end; to++)
        if (ptr[to + 1] == ptr[end])
            add_careful_row(s, cell_of(s->r, to), ptr[to]);
        else
            (void)add_plain_row(s->r, &s->b, &s->from, cell_of(s->r, to), ptr[to]);
}

/* In the order of the entries, by one thread; beside it what comes after a batch. */
static void end_batch(void *arg, int64_t i, int worker)
{
    (void)worker;
    sharing *s = arg;
    if (i == 1 && s->r->then) s->r->then(s->r->then_arg);
    if (i == 1) return;
    double sum = 0.0;
    for (int64_t k = 0; k < s->b.row_ptr[s->r->cells]; k++)
        sum += log_factorial(s->r, s->b.value[k]);
    s->b.constant = sum;
}

/* false: nothing was gathered and the callback did not run. */
static bool gather_together(sp_reader *r, sp_counts *out)
{
    const int64_t blocks = (r->cells + BLOCK - 1) / BLOCK;
    sharing s = {.r = r, .from = {r->ptr, r->col, r->val}, .b = filling_of(out)};
    if (!r->team || !r->plain) return false;
    fth_team_run(r->team, blocks, count_block, &s);
    s.b.row_ptr[0] = 0;
    for (int64_t i = 0; i < r->cells; i++) s.b.row_ptr[i + 1] += s.b.row_ptr[i];
    if (s.odd || s.b.row_ptr[r->cells] > r->room) return false;
    fth_team_run(r->team, blocks, fill_block, &s);
    fth_team_run(r->team, 2, end_batch, &s);
    settle(r, out, &s.b);
    return true;
}

static fth_status gather(sp_reader *r, sp_counts *out, fth_err *err)
{
    find_places(r);
    if (gather_together(r, out)) return FTH_OK;
    const fth_status s = gather_alone(r, out, err);
    if (r->then) r->then(r->then_arg);
    return s;
}

static void *work(void *arg)
{
    sp_reader *r = arg;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        while (!r->busy && !r->stop) pthread_cond_wait(&r->changed, &r->lock);
        if (r->stop) break;
        pthread_mutex_unlock(&r->lock);
        fth_err_clear(&r->err);
        const fth_status s = gather(r, &r->batch[r->into], &r->err);
        pthread_mutex_lock(&r->lock);
        r->status = s;
        r->busy = false;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- memory ---- */

static int64_t product(int64_t a, int64_t b)
{
    int64_t out;
    return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}

int64_t sp_reader_entries(const sp_sizes *size, int64_t cells, int64_t genes)
{
    const int64_t n = least(size->entries, product(cells, least(genes, size->most_entries)));
    return n > 0 ? n : 1;
}

static uint64_t resident_cost(const sp_sizes *size)
{
    return 8 * (uint64_t)size->entries + 8 * (uint64_t)(size->cells + 1);
}

static int64_t piece_of(const sp_sizes *size)
{
    return least(size->entries, PIECE) > size->most_entries ? least(size->entries, PIECE)
                                                            : size->most_entries + 1;
}

static uint64_t pages(uint64_t bytes)
{
    return (bytes / 4096 + 1) * 4096;
}

uint64_t sp_reader_bytes(const sp_sizes *size, int64_t cells, int64_t genes,
                         uint64_t resident_bytes)
{
    const uint64_t entries = (uint64_t)sp_reader_entries(size, cells, genes);
    const bool resident = resident_cost(size) <= resident_bytes;
    const uint64_t kept = resident ? (uint64_t)size->entries : (uint64_t)piece_of(size);
    const uint64_t rows_kept = resident ? (uint64_t)size->cells : (uint64_t)piece_of(size);
    return 2 * (pages(8 * (uint64_t)(cells + 1)) + 2 * pages(4 * entries)) + 2 * pages(4 * kept) +
           pages(8 * (rows_kept + 1)) + pages(resident ? rows_kept : 8 * rows_kept) +
           2 * pages(8 * (uint64_t)genes) + pages(8 * (uint64_t)cells) +
           pages(4 * (uint64_t)size->genes) + pages(8 * TABLE) + pages(sizeof(sp_reader)) +
           pages(8 * (uint64_t)(size->most_entries + 1));
}

static fth_status take(sp_reader *r, void **out, int64_t n, size_t each, const char *label,
                       fth_err *err)
{
    return fth_mem_take(r->mem, FTH_MEM_ANY, (uint64_t)n * each, label, out, err);
}

/* The entries of the `cells` fullest rows, of each no more than `genes`: no batch has more. */
static fth_status fullest(sp_reader *r, fth_err *err)
{
    const sp_data *d = r->data;
    const int64_t most = least(d->size.most_entries, r->genes);
    void *block = NULL;
    FTH_TRY(take(r, &block, most + 1, sizeof(int64_t), "lengths of rows", err));
    int64_t *having = block, left = r->cells;
    memset(having, 0, (size_t)(most + 1) * sizeof *having);
    for (int64_t i = 0; i < d->size.cells; i++) having[least(length_of(d, i), most)]++;
    for (int64_t n = most; n > 0 && left > 0; n--) {
        const int64_t these = least(having[n], left);
        r->room += these * n;
        left -= these;
    }
    if (r->room == 0) r->room = 1;
    return fth_mem_release(r->mem, block, err);
}

static fth_status make_batches(sp_reader *r, fth_err *err)
{
    FTH_TRY(fullest(r, err));
    for (int i = 0; i < 2; i++) {
        sp_counts *b = &r->batch[i];
        const int64_t rows_n = r->cells + 1;
        FTH_TRY(fth_tensor_create(&b->row_ptr, r->mem, "counts, rows", FTH_I64, 1, &rows_n, err));
        FTH_TRY(fth_tensor_create(&b->gene, r->mem, "counts, genes", FTH_I32, 1, &r->room, err));
        FTH_TRY(fth_tensor_create(&b->value, r->mem, "counts", FTH_F32, 1, &r->room, err));
    }
    return FTH_OK;
}

static fth_status make_lists(sp_reader *r, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(take(r, &block, r->genes, sizeof(int64_t), "gene entries", err));
    r->last = block;
    FTH_TRY(take(r, &block, r->genes, sizeof(int64_t), "gene batch", err));
    r->gene = block;
    FTH_TRY(take(r, &block, r->cells, sizeof(int64_t), "cell batch", err));
    r->cell = block;
    FTH_TRY(take(r, &block, r->data->size.genes, sizeof(int32_t), "gene places", err));
    r->place = block;
    FTH_TRY(take(r, &block, TABLE, sizeof(double), "lgamma", err));
    r->lgamma = block;
    for (int i = 0; i < TABLE; i++) {
        int sign;
        r->lgamma[i] = lgamma_r((double)i + 1.0, &sign);
    }
    return FTH_OK;
}

/* All counts in memory, or room for a piece of them. */
static fth_status make_rows(sp_reader *r, fth_err *err)
{
    const sp_data *d = r->data;
    void *block = NULL;
    r->piece = piece_of(&d->size);
    const int64_t n = r->resident ? d->size.cells : r->piece;
    const int64_t entries = r->resident ? d->size.entries : r->piece;
    FTH_TRY(take(r, &block, n + 1, sizeof(int64_t), "all counts, rows", err));
    r->ptr = block;
    FTH_TRY(take(r, &block, entries, sizeof(int32_t), "all counts, genes", err));
    r->col = block;
    FTH_TRY(take(r, &block, entries, sizeof(float), "all counts", err));
    r->val = block;
    if (!r->resident) {
        FTH_TRY(take(r, &block, n, sizeof(int64_t), "rows to read", err));
        r->row = block;
        return FTH_OK;
    }
    FTH_TRY(take(r, &block, n, sizeof(bool), "rows that are plain", err));
    r->plain = block;
    if (d->row)
        FTH_TRY(fth_csr_read_rows(d->counts, d->row, n, entries, r->ptr, r->col, r->val, err));
    else
        FTH_TRY(fth_csr_read(d->counts, 0, n, r->ptr, r->col, r->val, err));
    for (int64_t i = 0; i < n; i++) r->plain[i] = is_plain(&(rows){r->ptr, r->col, r->val}, i);
    return FTH_OK;
}

static fth_status start(sp_reader *r, fth_err *err)
{
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    if (pthread_create(&r->thread, NULL, work, r) != 0) {
        pthread_mutex_destroy(&r->lock);
        pthread_cond_destroy(&r->changed);
        return FTH_FAIL(err, FTH_E_THREAD, "no thread could be started to read counts ahead");
    }
    r->started = true;
    return FTH_OK;
}

fth_status sp_reader_create(sp_reader **out, const sp_data *data, int64_t cells, int64_t genes,
                            uint64_t resident_bytes, fth_err *err)
{
    *out = NULL;
    if (cells < 1 || cells > data->size.cells || genes < 1 || genes > data->size.genes)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "batches of %" PRId64 " cells and %" PRId64 " genes; there are %" PRId64
                        " and %" PRId64,
                        cells, genes, data->size.cells, data->size.genes);
    void *block = NULL;
    FTH_TRY(fth_mem_take(data->mem, FTH_MEM_ANY, sizeof(sp_reader), "reader", &block, err));
    sp_reader *r = block;
    *r = (sp_reader){.mem = data->mem, .data = data, .cells = cells, .genes = genes};
    r->resident = resident_cost(&data->size) <= resident_bytes;
    fth_status s = make_batches(r, err);
    if (s == FTH_OK) s = make_lists(r, err);
    if (s == FTH_OK) s = make_rows(r, err);
    if (s == FTH_OK) s = start(r, err);
    if (s != FTH_OK)
        sp_reader_destroy(r);
    else
        *out = r;
    return s;
}

void sp_reader_destroy(sp_reader *r)
{
    if (!r) return;
    if (r->started) {
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
    }
    fth_team_destroy(r->team);
    for (int i = 0; i < 2; i++) {
        fth_tensor_release(r->batch[i].row_ptr);
        fth_tensor_release(r->batch[i].gene);
        fth_tensor_release(r->batch[i].value);
    }
    void *const blocks[] = {r->ptr,  r->col,  r->val,   r->row,    r->plain, r->last,
                            r->gene, r->cell, r->place, r->lgamma, r};
    fth_mem *mem = r->mem;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        (void)fth_mem_release(mem, blocks[i], NULL);
}

/* ---- asking and taking ---- */

fth_status sp_reader_share(sp_reader *r, int threads, fth_err *err)
{
    if (r->asked || r->team)
        return FTH_FAIL(err, FTH_E_USAGE, "helper threads were added to a running reader");
    return fth_team_create(&r->team, r->mem, threads, err);
}

void sp_reader_after(sp_reader *r, sp_reader_then *then, void *arg)
{
    r->then = then;
    r->then_arg = arg;
}

/* Indices in range; genes once each. */
static fth_status check_list(const int64_t *list, int64_t n, int64_t size, const char *what,
                             fth_err *err)
{
    for (int64_t i = 0; list && i < n; i++)
        if (list[i] < 0 || list[i] >= size)
            return FTH_FAIL(err, FTH_E_INDEX_RANGE,
                            "place %" PRId64 " of the batch asks for %s %" PRId64
                            "; there are %" PRId64,
                            i, what, list[i], size);
    return FTH_OK;
}

static fth_status check_twice(sp_reader *r, const int64_t *gene, fth_err *err)
{
    for (int64_t g = 0; g < r->data->size.genes; g++) r->place[g] = -1;
    for (int64_t i = 0; gene && i < r->genes; i++) {
        if (r->place[gene[i]] >= 0)
            return FTH_FAIL(err, FTH_E_USAGE, "gene %" PRId64 " is in the batch twice", gene[i]);
        r->place[gene[i]] = 0;
    }
    return FTH_OK;
}

/* The batch that the caller holds is already the requested one. */
static bool have_it(const sp_reader *r)
{
    return r->all_cells && r->all_genes && r->whole[1 - r->into];
}

fth_status sp_reader_ask(sp_reader *r, const int64_t *cell, const int64_t *gene, fth_err *err)
{
    const sp_sizes *size = &r->data->size;
    if (r->asked) return FTH_FAIL(err, FTH_E_USAGE, "the requested batch was not taken yet");
    if ((!cell && r->cells != size->cells) || (!gene && r->genes != size->genes))
        return FTH_FAIL(err, FTH_E_USAGE, "a batch of some of the cells or genes needs a list");
    FTH_TRY(check_list(cell, r->cells, size->cells, "cell", err));
    FTH_TRY(check_list(gene, r->genes, size->genes, "gene", err));
    FTH_TRY(check_twice(r, gene, err)); /* the thread is idle: nothing was requested */
    if (cell) memcpy(r->cell, cell, (size_t)r->cells * sizeof *cell);
    if (gene) memcpy(r->gene, gene, (size_t)r->genes * sizeof *gene);
    r->all_cells = !cell;
    r->all_genes = !gene;
    r->asked = true;
    if (have_it(r)) {
        r->status = FTH_OK;
        return FTH_OK;
    }
    r->whole[r->into] = false;
    pthread_mutex_lock(&r->lock);
    r->busy = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return FTH_OK;
}

fth_status sp_reader_take(sp_reader *r, sp_counts *out, fth_err *err)
{
    *out = (sp_counts){0};
    if (!r->asked) return FTH_FAIL(err, FTH_E_USAGE, "no batch was requested");
    pthread_mutex_lock(&r->lock);
    while (r->busy) pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    r->asked = false;
    if (r->status != FTH_OK) {
        if (err && err->status == FTH_OK) *err = r->err;
        return r->status;
    }
    if (have_it(r)) {
        *out = r->batch[1 - r->into];
        return FTH_OK;
    }
    r->whole[r->into] = r->all_cells && r->all_genes;
    *out = r->batch[r->into];
    r->into = 1 - r->into;
    return FTH_OK;
}
