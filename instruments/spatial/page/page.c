/* page.c - what a page shows: cells, genes, and their codes. See page.h.
 *
 * Files are read twice in pieces, for the largest numbers and then for codes of them, so memory is
 * that of the codes.
 */
#include "page.h"

#include "../data/permute.h"
#include "../data/walk.h"
#include "../figures/figures.h"
#include "../preprocess/display.h"
#include "../statistics/order.h"

#include <math.h>
#include <string.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- which cells ---- */

static fth_status choose_cells(sp_page *p, const sp_page_options *opt, fth_err *err)
{
    sp_data *d = &p->results->data;
    void *block = NULL;
    p->rows = d->rows;
    p->cells = smaller(opt->cells, p->rows);
    if (p->cells == p->rows) return FTH_OK;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, (uint64_t)p->cells * 8, "cells", &block, err));
    sp_permute_first(block, p->cells, p->rows, opt->seed, SP_STREAM_SHOWN, 0);
    const fth_status s = sp_data_choose(d, block, p->cells, err);
    fth_mem_release(p->mem, block, NULL);
    return s;
}

/* ---- which genes ---- */

static void add_gene(sp_page *p, int64_t gene)
{
    for (int64_t i = 0; i < p->n_genes; i++)
        if (p->gene[i].gene == gene) return;
    p->gene[p->n_genes++] = (sp_page_gene){.gene = gene};
}

static fth_status add_named(sp_page *p, const char *name, size_t n, fth_err *err)
{
    const fth_texts *names = p->results->data.gene_names;
    for (int64_t g = 0; g < fth_texts_count(names); g++) {
        const char *text = fth_texts_get(names, g);
        if (strlen(text) != n || memcmp(text, name, n) != 0) continue;
        add_gene(p, g);
        return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_COMMAND, "--genes: \"%.*s\" is not a gene of %s",
             (int)smaller((int64_t)n, 80), name, p->results->data.dir);
    fth_err_hint(err, "names are written as in gene_names of " SP_METADATA);
    return FTH_E_COMMAND;
}

static int64_t count_names(const char *genes)
{
    int64_t n = genes && genes[0];
    for (; genes && *genes; genes++) n += *genes == ',';
    return n;
}

static fth_status choose_genes(sp_page *p, const char *genes, fth_err *err)
{
    const int64_t D = p->results->data.size.genes, L = p->results->n_factors;
    const float *W = fth_tensor_data(p->results->W);
    for (int64_t l = 0; l < L; l++)
        sp_draw_top(W + l, L, D, true, p->top_gene + l * p->top, p->top);
    for (int64_t i = 0; i < p->top; i++) /* the first of every factor, then the second ... */
        for (int64_t l = 0; l < L && p->n_genes < SP_PAGE_MOST_GENES; l++)
            add_gene(p, p->top_gene[l * p->top + i]);
    for (const char *at = genes; at && *at;) {
        const size_t n = strcspn(at, ",");
        if (n > 0 && p->n_genes < SP_PAGE_MOST_GENES) FTH_TRY(add_named(p, at, n, err));
        at += n + (at[n] == ',');
    }
    return FTH_OK;
}

/* ---- memory ---- */

static int64_t most_genes(const sp_results *r, const sp_page_options *opt)
{
    const int64_t D = r->data.size.genes, top = smaller(opt->top, D);
    return smaller(smaller(top * r->n_factors + count_names(opt->genes), D), SP_PAGE_MOST_GENES);
}

uint64_t sp_page_bytes(const sp_results *r, const sp_page_options *opt)
{
    const int64_t n = smaller(opt->cells, r->data.rows), L = r->n_factors;
    return (uint64_t)(n * (2 * L + most_genes(r, opt)) + n * 24 + L * (16 + opt->top * 8) +
                      r->data.rows * 8) +
           sp_walk_bytes(&r->data.size) + (256 << 10);
}

static fth_status take(sp_page *p, int i, uint64_t bytes, const char *label, fth_err *err)
{
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, bytes + 8, label, &p->block[i], err));
    memset(p->block[i], 0, (size_t)bytes);
    return FTH_OK;
}

static fth_status take_all(sp_page *p, const sp_page_options *opt, fth_err *err)
{
    const uint64_t L = (uint64_t)p->results->n_factors, G = (uint64_t)most_genes(p->results, opt),
                   n = (uint64_t)p->cells, top = (uint64_t)p->top,
                   groups = (uint64_t)p->results->data.size.groups;
    FTH_TRY(take(p, 0, L * 16 + L * top * 8 + G * sizeof *p->gene, "page", err));
    p->factor_most = p->block[0];
    p->moran = p->factor_most + L;
    p->top_gene = (int64_t *)(void *)(p->moran + L);
    p->gene = (sp_page_gene *)(void *)(p->top_gene + L * top);
    FTH_TRY(take(p, 1, groups * sizeof *p->colour, "colours", err));
    p->colour = p->block[1];
    FTH_TRY(take(p, 2, L * n * sizeof *p->factor, "factors of the page", err));
    p->factor = p->block[2];
    return FTH_OK;
}

fth_status sp_page_open(sp_page *p, sp_results *r, const sp_page_options *opt, fth_err *err)
{
    *p = (sp_page){.mem = r->mem, .results = r, .top = smaller(opt->top, r->data.size.genes)};
    fth_status s = choose_cells(p, opt, err);
    if (s == FTH_OK) s = take_all(p, opt, err);
    if (s == FTH_OK) s = choose_genes(p, opt->genes, err);
    if (s == FTH_OK) s = take(p, 3, (uint64_t)(p->n_genes * p->cells), "genes of the page", err);
    p->count = p->block[3];
    if (s != FTH_OK) sp_page_close(p);
    return s;
}

void sp_page_close(sp_page *p)
{
    for (int i = 0; p->mem && i < 4; i++) fth_mem_release(p->mem, p->block[i], NULL);
    sp_page_images_free(p);
    sp_sections_clear(&p->packed);
    *p = (sp_page){0};
}

/* ---- factors ---- */

enum { PIECE = 1 << 16 }; /* numbers of a piece of the file */

static double number_of(float v)
{
    return isfinite(v) && v > 0 ? (double)v : 0;
}

/* The shown rows of [at, at + n) of the file; *next is the first shown cell not seen yet. */
static void see_factors(sp_page *p, const float *x, int64_t at, int64_t n, int64_t *next, bool code)
{
    const int64_t L = p->results->n_factors, *row = p->results->data.row;
    for (; *next < p->cells && (row ? row[*next] : *next) < at + n; ++*next) {
        const float *of = x + ((row ? row[*next] : *next) - at) * L;
        for (int64_t l = 0; l < L; l++) {
            const double v = number_of(of[l]), most = p->factor_most[l];
            if (code)
                p->factor[l * p->cells + *next] =
                    (uint16_t)(most > 0 ? floor(v / most * 65535 + 0.5) : 0);
            else
                p->factor_most[l] = fmax(most, v);
        }
    }
}

static fth_status read_factors(sp_page *p, fth_err *err)
{
    const fth_source *f = &p->results->factors;
    const int64_t L = p->results->n_factors, rows = PIECE / L > 0 ? PIECE / L : 1;
    void *block = NULL;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, (uint64_t)(rows * L) * sizeof(float),
                         "piece of the factors", &block, err));
    fth_status s = FTH_OK;
    for (int code = 0; code < 2; code++) {
        int64_t next = 0;
        for (int64_t at = 0; s == FTH_OK && at < p->rows; at += rows) {
            const int64_t n = smaller(rows, p->rows - at);
            s = f->read(f->self, (int64_t[]){at, 0}, (int64_t[]){n, L}, block, err);
            if (s == FTH_OK) see_factors(p, block, at, n, &next, code);
        }
    }
    fth_mem_release(p->mem, block, NULL);
    return s;
}

/* ---- genes ---- */

typedef struct counting {
    sp_page *p;
    int64_t *place; /* [gene of the folder]: on the page, -1: not there */
    double *sum;    /* [gene of the page]: of the cell, which may have several entries */
    bool code;
} counting;

static uint8_t code_of(const sp_page_gene *g, double v)
{
    if (g->whole && g->most < 256) return (uint8_t)v;
    return (uint8_t)floor(log1p(v) / log1p(g->most) * 255 + 0.5);
}

static void see_counts(void *user, const sp_walk_row *row)
{
    const counting *c = user;
    sp_page *p = c->p;
    for (int64_t i = 0; i < row->n; i++)
        if (c->place[row->gene[i]] >= 0) c->sum[c->place[row->gene[i]]] += number_of(row->value[i]);
    for (int64_t i = 0; i < row->n; i++) {
        const int64_t at = c->place[row->gene[i]];
        if (at < 0 || !(c->sum[at] > 0)) continue;
        sp_page_gene *g = &p->gene[at];
        if (c->code) {
            p->count[at * p->cells + row->cell] = code_of(g, c->sum[at]);
        } else {
            g->most = fmax(g->most, c->sum[at]);
            g->whole = g->whole && c->sum[at] == floor(c->sum[at]);
        }
        c->sum[at] = 0;
    }
}

static fth_status read_counts(sp_page *p, fth_err *err)
{
    const int64_t D = p->results->data.size.genes;
    sp_walk w = {0};
    void *block = NULL;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, (uint64_t)(D + p->n_genes) * 8 + 8, "places of genes",
                         &block, err));
    counting c = {.p = p, .place = block, .sum = (double *)block + D};
    for (int64_t g = 0; g < D; g++) c.place[g] = -1;
    for (int64_t g = 0; g < p->n_genes; g++) {
        c.place[p->gene[g].gene] = g;
        c.sum[g] = 0;
        p->gene[g].whole = true;
    }
    fth_status s = sp_walk_open(&w, &p->results->data, err);
    for (int code = 0; s == FTH_OK && code < 2; code++) {
        c.code = code;
        s = sp_walk_each(&w, see_counts, &c, err);
    }
    sp_walk_close(&w);
    fth_mem_release(p->mem, block, NULL);
    return s;
}

/* ---- the rest ---- */

/* Sections side by side. */
static fth_status pack(sp_page *p, fth_err *err)
{
    const sp_data *d = &p->results->data;
    float *xy = fth_tensor_data(d->xy);
    const int32_t *section = d->section ? fth_tensor_data(d->section) : NULL;
    if (!section) return FTH_OK;
    FTH_TRY(sp_sections_copy(&p->packed, p->mem, &d->sections, err));
    (void)sp_sections_pack(&p->packed, &d->sections);
    for (int64_t i = 0; i < d->size.cells; i++)
        sp_sections_shift(&p->packed, &d->sections, section[i], xy + 2 * i);
    return FTH_OK;
}

static void find_box(sp_page *p)
{
    const float *xy = fth_tensor_data(p->results->data.xy);
    double high[2] = {-(double)INFINITY, -(double)INFINITY};
    p->low[0] = p->low[1] = (double)INFINITY;
    for (int64_t i = 0; i < 2 * p->cells; i++) {
        p->low[i % 2] = fmin(p->low[i % 2], (double)xy[i]);
        high[i % 2] = fmax(high[i % 2], (double)xy[i]);
    }
    const double extent = fmax(high[0] - p->low[0], high[1] - p->low[1]);
    p->step = extent > 0 ? extent / 65535 : 1;
}

/* factor_idx,moran_i: a line for each factor. A folder without the file has none. */
static fth_status read_moran(sp_page *p, fth_err *err)
{
    char path[FTH_PATH];
    fth_reader file;
    fth_text_line line = {0};
    for (int64_t l = 0; l < p->results->n_factors; l++) p->moran[l] = (double)NAN;
    FTH_TRY(sp_results_path(p->results, SP_MORAN, path, err));
    if (!fth_path_exists(path)) return FTH_OK;
    fth_status s = fth_reader_open(&file, p->mem, path, NULL, err);
    while (s == FTH_OK && (s = fth_reader_next(&file, &line, err)) == FTH_OK && line.text) {
        fth_text_field factor, value;
        int64_t l = 0;
        double v = 0;
        if (fth_text_column_next(&line, ',', &factor) && fth_text_int(&factor, &l) && l >= 0 &&
            l < p->results->n_factors && fth_text_column_next(&line, ',', &value) &&
            fth_text_real(&value, &v))
            p->moran[l] = v;
    }
    fth_reader_close(&file);
    return s;
}

/* Columns 3, 6 and 11 of genes.csv, whose lines are in the order of the folder; a table of other
 * genes is not used. */
static void see_gene_line(sp_page *p, fth_text_line *line, int64_t gene)
{
    fth_text_field f;
    for (int64_t i = 0; i < p->n_genes; i++) {
        sp_page_gene *g = &p->gene[i];
        if (g->gene != gene) continue;
        for (int c = 0; fth_text_column_next(line, ',', &f); c++) {
            double *to = c == 3 ? &g->moran : c == 6 ? &g->q : c == 11 ? &g->share : NULL;
            const char *name = fth_texts_get(p->results->data.gene_names, gene);
            if (c == 0 && (strlen(name) != f.n || memcmp(name, f.text, f.n) != 0)) return;
            if (to && !fth_text_real(&f, to)) *to = (double)NAN;
        }
        return;
    }
}

static fth_status read_gene_table(sp_page *p, fth_err *err)
{
    char path[FTH_PATH];
    fth_reader file;
    fth_text_line line = {0};
    for (int64_t i = 0; i < p->n_genes; i++)
        p->gene[i].moran = p->gene[i].q = p->gene[i].share = (double)NAN;
    FTH_TRY(sp_results_path(p->results, SP_GENES_CSV, path, err));
    if (!fth_path_exists(path)) return FTH_OK;
    fth_status s = fth_reader_open(&file, p->mem, path, NULL, err);
    for (int64_t gene = -1; s == FTH_OK; gene++) {
        s = fth_reader_next(&file, &line, err);
        if (s != FTH_OK || !line.text) break;
        if (gene >= 0) see_gene_line(p, &line, gene);
    }
    fth_reader_close(&file);
    return s;
}

fth_status sp_page_fill(sp_page *p, fth_err *err)
{
    sp_shown shown;
    const sp_data *d = &p->results->data;
    FTH_TRY(sp_shown_read(&shown, p->colour, d->size.groups, p->mem, d->dir, err));
    for (int64_t g = 0; !shown.coloured && g < d->size.groups; g++)
        p->colour[g] = fth_colour_category(g, d->size.groups);
    const char *unit = NULL;
    p->each = sp_scale_each(p->results->config, &shown, &unit);
    snprintf(p->unit, sizeof p->unit, "%s", unit);
    FTH_TRY(pack(p, err));
    find_box(p);
    FTH_TRY(sp_page_images_fill(p, err));
    FTH_TRY(read_moran(p, err));
    FTH_TRY(read_gene_table(p, err));
    FTH_TRY(read_factors(p, err));
    return read_counts(p, err);
}
