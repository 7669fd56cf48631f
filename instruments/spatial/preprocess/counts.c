/* counts.c - the passes over the counts of a source. */
#include "counts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_MT "preprocessing.max_mt_percent"
enum { ROWS = 1 << 16, ROOM = 1 << 20 }; /* of a block, where its size is free */

/* ---- start and end ---- */

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

uint64_t sp_count_walk_bytes(const sp_source *s)
{
    const uint64_t pages = 9 * 4096; /* each is rounded up */
    const uint64_t rows = (uint64_t)s->counts.rows, cols = (uint64_t)s->counts.cols;
    return rows * (1 + 1 + 1 + 4) + cols * (8 + 4 + 1) + pages;
}

/* Sparse columns are read once per block: a block takes all the memory there is. */
void sp_count_walk_block(const sp_source *s, uint64_t free_bytes, int64_t *rows, int64_t *room)
{
    const sp_matrix *m = &s->counts;
    const int64_t largest = most(1, sp_matrix_fullest(m));
    *rows = least(m->rows, ROWS);
    *room = most(ROOM, largest);
    const bool joined = m->layout == SP_LAYOUT_JOINED && sp_joined_has_columns(m);
    if (m->layout == SP_LAYOUT_COLUMNS || joined) {
        *rows = m->rows;
        const uint64_t beside = sp_block_bytes(m, *rows, 0), entry = joined ? 16 : 8;
        const uint64_t left = free_bytes > beside ? (free_bytes - beside) / entry : 0;
        *room = most(largest, left < (uint64_t)m->entries ? (int64_t)left : m->entries);
    }
    *room = most(largest, least(*room, m->entries));
}

static fth_status take(sp_count_walk *w, uint64_t bytes, const char *label, void **out,
                       fth_err *err)
{
    FTH_TRY(fth_mem_take(w->s->mem, FTH_MEM_ANY, bytes, label, out, err));
    memset(*out, 0, bytes);
    return FTH_OK;
}

static fth_status take_all(sp_count_walk *w, fth_err *err)
{
    const uint64_t n = (uint64_t)w->s->counts.rows, d = (uint64_t)w->s->counts.cols;
    void *block = NULL;
    FTH_TRY(take(w, n, "cells wanted", &block, err));
    w->wanted = block;
    FTH_TRY(take(w, n, "cells with a gap", &block, err));
    w->bad = block;
    FTH_TRY(take(w, n, "cells judged", &block, err));
    w->low = block;
    FTH_TRY(take(w, n * 4, "entries of cells", &block, err));
    w->entries = block;
    FTH_TRY(take(w, d * 8, "cells of genes", &block, err));
    w->gene_cells = block;
    FTH_TRY(take(w, d * 4, "genes", &block, err));
    w->gene_map = block;
    FTH_TRY(take(w, d, "genes dropped", &block, err));
    w->gene_why = block;
    return FTH_OK;
}

fth_status sp_count_walk_start(sp_count_walk *w, sp_source *s, const sp_cells *c,
                               uint64_t free_bytes, const fth_stage_call *call, fth_err *err)
{
    *w = (sp_count_walk){.s = s, .call = call, .genes = s->counts.cols, .free_bytes = free_bytes};
    fth_status status = sp_matrix_prepare(&s->counts, err);
    if (status == FTH_OK) status = take_all(w, err);
    if (status == FTH_OK) {
        int64_t rows, room;
        for (int64_t i = 0; i < c->n; i++) w->wanted[c->row[i]] = true;
        for (int64_t g = 0; s->left_out && g < s->counts.cols; g++)
            if (s->left_out[g]) sp_count_walk_drop(w, g, SP_GENE_FEATURE);
        sp_count_walk_renumber(w);
        sp_count_walk_block(s, free_bytes, &rows, &room);
        status = sp_block_create(&w->block, &s->counts, rows, room, err);
    }
    if (status != FTH_OK) sp_count_walk_end(w);
    return status;
}

void sp_count_walk_end(sp_count_walk *w)
{
    sp_block_free(&w->block);
    if (w->s) {
        void *all[] = {w->wanted,     w->bad,      w->low,     w->entries,
                       w->gene_cells, w->gene_map, w->gene_why};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            (void)fth_mem_release(w->s->mem, all[i], NULL);
    }
    *w = (sp_count_walk){0};
}

/* ---- walking ---- */

fth_status sp_count_walk_each(sp_count_walk *w, const char *what, sp_count_fn *fn, void *user,
                              fth_err *err)
{
    sp_matrix *m = &w->s->counts;
    for (int64_t first = 0; first < m->rows;) {
        const int64_t n = least(w->block.rows, sp_matrix_fit(m, first, w->block.room));
        FTH_TRY(sp_matrix_read(m, first, n, &w->block, err));
        FTH_TRY(fn(w, user, first, n, err));
        first += n;
        const fth_stage_progress p = {.done = first, .total = m->rows, .what = what};
        if (w->call && !fth_stage_report(w->call, &p))
            return FTH_FAIL(err, FTH_E_CANCELLED, "stopped while %s", what);
    }
    return FTH_OK;
}

/* ---- looking ---- */

static fth_status bad_count(const sp_count_walk *w, int64_t row, int32_t gene, float v,
                            fth_err *err)
{
    const fth_texts *cells = w->s->cells;
    const fth_status s = FTH_FAIL(
        err, FTH_E_FILE_FORMAT,
        "%s: cell %" PRId64 "%s%s%s has the count %g of gene '%s'; counts are finite and "
        "not negative",
        w->s->counts.label, row, cells ? " ('" : "", cells ? fth_texts_get(cells, row) : "",
        cells ? "')" : "", (double)v, fth_texts_get(w->s->genes, gene));
    fth_err_hint(err, "these may be counts that were scaled or centred; say where the raw ones are "
                      "with preprocessing.counts: X, raw, or a layer");
    return s;
}

static void first_fraction(const sp_count_walk *w, int64_t row, int32_t gene, float v)
{
    if (w->call)
        fth_stage_say(w->call,
                      "note: %s holds counts that are not whole numbers, %g of gene '%s' in cell "
                      "%" PRId64 " for one; they are taken as they are",
                      w->s->counts.label, (double)v, fth_texts_get(w->s->genes, gene), row);
}

typedef struct look {
    const sp_rules *rules;
    const bool *mt; /* by gene; NULL: cells are not judged */
} look;

/* Strict: a share of exactly max_mt is too much; without counts the share is NaN and the cell
 * fails. */
static uint8_t judge(const sp_rules *r, double total, double mt, int64_t genes)
{
    if (r->max_mt >= 0 && !(100 * mt / total < r->max_mt)) return 1 + SP_DROP_MT;
    if (!(total >= (double)r->min_counts)) return 1 + SP_DROP_COUNTS;
    return genes < r->min_genes ? 1 + SP_DROP_GENES : 0;
}

static fth_status look_at(sp_count_walk *w, void *user, int64_t first, int64_t n, fth_err *err)
{
    const look *l = user;
    const sp_block *b = &w->block;
    for (int64_t r = 0; r < n; r++) {
        const int64_t row = first + r;
        if (!w->wanted[row]) continue;
        double total = 0, mt = 0;
        int64_t genes = 0, stored = 0;
        for (int64_t i = b->ptr[r]; i < b->ptr[r + 1]; i++) {
            const float v = b->val[i];
            if (w->gene_map[b->col[i]] < 0) continue;
            stored++;
            if (isnan(v)) w->bad[row] = true;
            if (v < 0 || isinf(v)) return bad_count(w, row, b->col[i], v, err);
            if (v != truncf(v) && !isnan(v) && w->fractions++ == 0)
                first_fraction(w, row, b->col[i], v);
            total += (double)v;
            genes += v > 0;
            if (l->mt && l->mt[b->col[i]]) mt += (double)v;
        }
        w->entries[row] = (int32_t)stored;
        if (l->mt) w->low[row] = judge(l->rules, total, mt, genes);
        if (!l->rules->genes || w->low[row]) continue;
        for (int64_t i = b->ptr[r]; i < b->ptr[r + 1]; i++)
            w->gene_cells[b->col[i]] += b->val[i] > 0;
    }
    return FTH_OK;
}

fth_status sp_count_walk_look(sp_count_walk *w, const sp_rules *rules, fth_err *err)
{
    void *mt = NULL;
    look l = {.rules = rules};
    if (rules->cells) {
        FTH_TRY(take(w, (uint64_t)w->s->counts.cols, "mitochondrial genes", &mt, err));
        int64_t found = 0;
        for (int64_t g = 0; g < w->s->counts.cols; g++) {
            ((bool *)mt)[g] = sp_is_mitochondrial(fth_texts_get(w->s->genes, g));
            found += ((bool *)mt)[g] && w->gene_map[g] >= 0;
        }
        if (found == 0 && w->call && fth_config_is_given(w->s->cfg, MAX_MT))
            fth_stage_say(w->call,
                          "note: " MAX_MT " has no effect but on cells without counts: no gene of "
                          "%s starts with mt-, as '%s' does not",
                          w->s->counts.label, fth_texts_get(w->s->genes, 0));
        l.mt = mt;
    }
    w->looked = w->genes;
    const fth_status s = sp_count_walk_each(w, "looking at counts", look_at, &l, err);
    (void)fth_mem_release(w->s->mem, mt, NULL);
    return s;
}

/* ---- genes ---- */

void sp_count_walk_drop(sp_count_walk *w, int64_t gene, sp_gene_drop why)
{
    if (w->gene_why[gene] != SP_GENE_STAYS) return;
    w->gene_why[gene] = (uint8_t)why;
    w->removed[why]++;
}

void sp_count_walk_renumber(sp_count_walk *w)
{
    w->genes = 0;
    for (int64_t g = 0; g < w->s->counts.cols; g++)
        w->gene_map[g] = w->gene_why[g] == SP_GENE_STAYS ? (int32_t)w->genes++ : -1;
}

static fth_status no_genes(const sp_count_walk *w, const sp_rules *r, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s: none of the %" PRId64 " genes is there in %" PRId64 " cells that pass%s",
                 w->s->counts.label, w->s->counts.cols, r->min_cells,
                 r->listed ? " and among those that are listed" : "");
    fth_err_hint(err, "lower preprocessing.min_cells or preprocessing.min_counts");
    return s;
}

fth_status sp_count_walk_choose_genes(sp_count_walk *w, const sp_rules *r, fth_err *err)
{
    const int64_t d = w->s->counts.cols;
    void *listed = NULL;
    if (r->listed) {
        FTH_TRY(take(w, (uint64_t)d, "genes listed", &listed, err));
        const fth_status s = sp_rules_listed(w->s->cfg, w->s->mem, w->s->genes, w->s->left_out,
                                             w->s->counts.label, listed, err);
        if (s != FTH_OK) {
            (void)fth_mem_release(w->s->mem, listed, NULL);
            return s;
        }
    }
    for (int64_t g = 0; g < d; g++) {
        if (w->gene_cells[g] < r->min_cells)
            sp_count_walk_drop(w, g, SP_GENE_CELLS);
        else if (r->filter_mt && sp_is_mitochondrial(fth_texts_get(w->s->genes, g)))
            sp_count_walk_drop(w, g, SP_GENE_MT);
        else if (listed && !((bool *)listed)[g])
            sp_count_walk_drop(w, g, SP_GENE_LIST);
    }
    (void)fth_mem_release(w->s->mem, listed, NULL);
    sp_count_walk_renumber(w);
    return w->genes > 0 ? FTH_OK : no_genes(w, r, err);
}

/* ---- sizes ---- */

static fth_status size_of(sp_count_walk *w, void *user, int64_t first, int64_t n, fth_err *err)
{
    (void)user, (void)err;
    const sp_block *b = &w->block;
    for (int64_t r = 0; r < n; r++) {
        int32_t stay = 0;
        for (int64_t i = b->ptr[r]; i < b->ptr[r + 1]; i++) stay += w->gene_map[b->col[i]] >= 0;
        w->entries[first + r] = stay;
    }
    return FTH_OK;
}

fth_status sp_count_walk_size(sp_count_walk *w, const sp_cells *c, int64_t *total, fth_err *err)
{
    if (w->genes < w->looked)
        FTH_TRY(sp_count_walk_each(w, "counting entries", size_of, NULL, err));
    *total = 0;
    for (int64_t i = 0; i < c->n; i++) *total += w->entries[c->row[i]];
    return FTH_OK;
}

/* ---- writing ---- */

/* Entries [from, to) of the block with the genes that stay, to `col` and `val`, which may be in the
 * block before them. */
static int64_t put_row(const sp_count_walk *w, int64_t from, int64_t to, int32_t *col, float *val)
{
    const sp_block *b = &w->block;
    int64_t n = 0;
    for (int64_t i = from; i < to; i++) {
        const int32_t g = w->gene_map[b->col[i]];
        const float v = b->val[i];
        if (g < 0) continue;
        col[n] = g;
        val[n++] = v;
    }
    return n;
}

typedef struct in_order {
    fth_csr_writer *npz;
    const sp_cells *c;
    int64_t next; /* cell */
} in_order;

/* Cells in ascending order: rows are compacted inside the block and written at once. */
static fth_status write_ascending(sp_count_walk *w, void *user, int64_t first, int64_t n,
                                  fth_err *err)
{
    in_order *o = user;
    sp_block *b = &w->block;
    int64_t k = 0, end = 0, from = b->ptr[0];
    for (int64_t r = 0; r < n && o->next < o->c->n; r++) {
        const int64_t begin = from;
        from = b->ptr[r + 1]; /* read before k <= r is written */
        if (o->c->row[o->next] != first + r) continue;
        end += put_row(w, begin, from, b->col + end, b->val + end);
        b->ptr[++k] = end;
        o->next++;
    }
    b->ptr[0] = 0;
    return fth_csr_append(o->npz, k, b->ptr, b->col, b->val, err);
}

/* Cells in another order: each pass collects as many as fit in memory. */
typedef struct collect {
    int32_t *place; /* by row of the source: number of the cell, -1: none */
    int64_t first, n;
    int64_t *ptr; /* of the cells collected */
    int32_t *col;
    float *val;
} collect;

static fth_status collect_rows(sp_count_walk *w, void *user, int64_t first, int64_t n, fth_err *err)
{
    (void)err;
    const collect *o = user;
    const sp_block *b = &w->block;
    for (int64_t r = 0; r < n; r++) {
        const int64_t k = o->place[first + r] - o->first;
        if (o->place[first + r] < 0 || k < 0 || k >= o->n) continue;
        put_row(w, b->ptr[r], b->ptr[r + 1], o->col + o->ptr[k], o->val + o->ptr[k]);
    }
    return FTH_OK;
}

static fth_status write_collected(sp_count_walk *w, const sp_cells *c, collect *o, int64_t room,
                                  fth_csr_writer *npz, fth_err *err)
{
    memset(o->place, 0xff, (size_t)w->s->counts.rows * 4);
    for (int64_t i = 0; i < c->n; i++) o->place[c->row[i]] = (int32_t)i;
    for (o->first = 0; o->first < c->n; o->first += o->n) {
        o->ptr[0] = 0;
        for (o->n = 0; o->first + o->n < c->n; o->n++) {
            const int64_t end = o->ptr[o->n] + w->entries[c->row[o->first + o->n]];
            if (end > room && o->n > 0) break;
            o->ptr[o->n + 1] = end;
        }
        FTH_TRY(sp_count_walk_each(w, "writing counts", collect_rows, o, err));
        FTH_TRY(fth_csr_append(npz, o->n, o->ptr, o->col, o->val, err));
    }
    return FTH_OK;
}

static fth_status write_any_order(sp_count_walk *w, const sp_cells *c, int64_t total,
                                  fth_csr_writer *npz, fth_err *err)
{
    collect o = {0};
    fth_mem *mem = w->s->mem;
    void *block[4] = {NULL};
    int64_t room = 1;
    for (int64_t i = 0; i < c->n; i++) room = most(room, w->entries[c->row[i]]);
    room = most(room, least(total, (int64_t)(w->free_bytes / 8)));
    fth_status s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)w->s->counts.rows * 4,
                                "places of cells", &block[0], err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(c->n + 1) * 8, "rows in order", &block[1],
                         err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)room * 4, "genes in order", &block[2], err);
    if (s == FTH_OK)
        s = fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)room * 4, "counts in order", &block[3], err);
    o.place = block[0];
    o.ptr = block[1];
    o.col = block[2];
    o.val = block[3];
    if (s == FTH_OK) s = write_collected(w, c, &o, room, npz, err);
    for (int i = 0; i < 4; i++) (void)fth_mem_release(mem, block[i], NULL);
    return s;
}

fth_status sp_count_walk_write(sp_count_walk *w, const sp_cells *c, int64_t total, const char *path,
                               fth_err *err)
{
    bool ascending = true;
    for (int64_t i = 1; i < c->n; i++) ascending = ascending && c->row[i - 1] < c->row[i];
    in_order o = {.c = c};
    FTH_TRY(fth_csr_create_npz(&o.npz, w->s->mem, path, c->n, w->genes, total, FTH_F32, err));
    const fth_status s = ascending
                             ? sp_count_walk_each(w, "writing counts", write_ascending, &o, err)
                             : write_any_order(w, c, total, o.npz, err);
    if (s == FTH_OK) return fth_csr_commit(o.npz, err);
    fth_csr_abandon(o.npz);
    return s;
}
