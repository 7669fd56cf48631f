/* gmt.c - reads a GMT file twice: how many sets and genes there are, then which. */
#include "gene_sets.h"

#include <string.h>

/* ---- names of genes, by their hashes ---- */

typedef struct book {
    const fth_texts *names;
    int64_t slots, *slot; /* -1: empty */
} book;

static int64_t slot_of(const book *b, const char *name, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
    int64_t at = (int64_t)(h % (uint64_t)b->slots);
    for (; b->slot[at] >= 0; at = (at + 1) % b->slots) {
        const char *text = fth_texts_get(b->names, b->slot[at]);
        if (strlen(text) == n && memcmp(text, name, n) == 0) break;
    }
    return at;
}

/* Room for `more` names that are not in it yet. */
static fth_status open_book(book *b, fth_mem *mem, const fth_texts *names, int64_t more,
                            fth_err *err)
{
    void *block = NULL;
    *b = (book){.names = names, .slots = 2 * (fth_texts_count(names) + more) + 1};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)b->slots * 8, "names", &block, err));
    b->slot = block;
    for (int64_t i = 0; i < b->slots; i++) b->slot[i] = -1;
    for (int64_t g = 0; g < fth_texts_count(names); g++) {
        const char *name = fth_texts_get(names, g);
        const int64_t at = slot_of(b, name, strlen(name));
        if (b->slot[at] < 0) b->slot[at] = g; /* of genes with one name, the first */
    }
    return FTH_OK;
}

/* ---- lines ---- */

static fth_status refuse(const fth_reader *r, const fth_text_line *line, const char *what,
                         fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%lld: %s", r->path, (long long)line->number, what);
    fth_err_hint(err, "a line of a GMT file is a name, a description and genes, parted by tabs");
    return FTH_E_FILE_FORMAT;
}

/* Name and description of the next set; its genes are the fields that are left. line->text is NULL
 * at the end. */
static fth_status next_set(fth_reader *r, fth_text_line *line, fth_text_field *name, fth_err *err)
{
    fth_text_field about;
    do FTH_TRY(fth_reader_next(r, line, err));
    while (line->text && line->n == 0);
    if (!line->text) return FTH_OK;
    if (!fth_text_column_next(line, '\t', name) || name->n == 0)
        return refuse(r, line, "a set has no name", err);
    if (!fth_text_column_next(line, '\t', &about) || !line->at)
        return refuse(r, line, "a set has no genes", err);
    return FTH_OK;
}

static fth_status count_all(fth_reader *r, int64_t *sets, int64_t *fields, fth_err *err)
{
    fth_text_line line;
    fth_text_field f;
    *sets = *fields = 0;
    for (;;) {
        FTH_TRY(next_set(r, &line, &f, err));
        if (!line.text) break;
        ++*sets;
        while (fth_text_column_next(&line, '\t', &f)) ++*fields;
    }
    if (*sets > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: there is no set of genes", r->path);
    fth_err_hint(err, "a line of a GMT file is a name, a description and genes, parted by tabs");
    return FTH_E_FILE_FORMAT;
}

static fth_status add_name(sp_gene_sets *s, book *sets, const fth_reader *r,
                           const fth_text_line *line, const fth_text_field *name, fth_err *err)
{
    sets->names = s->names;
    const int64_t at = slot_of(sets, name->text, name->n);
    if (sets->slot[at] >= 0) return refuse(r, line, "a set of that name was there before", err);
    sets->slot[at] = s->n;
    return fth_texts_add(s->names, name->text, name->n, err);
}

/* Genes of a set that the data have, each once. A gene that they do not have counts as listed as
 * often as it is. */
static void add_genes(sp_gene_sets *s, const book *genes, int64_t *seen, fth_text_line *line)
{
    fth_text_field f;
    int64_t *end = &s->begin[s->n + 1];
    *end = s->begin[s->n];
    s->listed[s->n] = 0;
    while (fth_text_column_next(line, '\t', &f)) {
        if (f.n == 0) continue;
        const int64_t g = genes->slot[slot_of(genes, f.text, f.n)];
        if (g >= 0 && seen[g] == s->n) continue;
        s->listed[s->n]++;
        if (g < 0) continue;
        seen[g] = s->n;
        s->gene[(*end)++] = g;
    }
    s->unknown += *end == s->begin[s->n];
    s->n++;
}

static fth_status read_all(sp_gene_sets *s, fth_reader *r, const book *genes, book *sets,
                           int64_t most, int64_t *seen, fth_err *err)
{
    fth_text_line line;
    fth_text_field name;
    for (;;) {
        FTH_TRY(next_set(r, &line, &name, err));
        if (!line.text) return FTH_OK;
        if (s->n == most) return refuse(r, &line, "the file changed while it was read", err);
        FTH_TRY(add_name(s, sets, r, &line, &name, err));
        add_genes(s, genes, seen, &line);
    }
}

static fth_status read_file(sp_gene_sets *s, fth_reader *r, const fth_texts *gene_names,
                            fth_err *err)
{
    book genes = {0}, sets = {0};
    const int64_t D = fth_texts_count(gene_names);
    int64_t n = 0, fields = 0;
    FTH_TRY(count_all(r, &n, &fields, err));
    FTH_TRY(fth_reader_rewind(r, err));
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)(2 * n + 1 + fields + D) * 8, "gene sets",
                         &s->block, err));
    s->listed = s->block;
    s->begin = s->listed + n;
    s->gene = s->begin + n + 1;
    int64_t *seen = s->gene + fields; /* [gene of the data]: the last set that had it */
    for (int64_t g = 0; g < D; g++) seen[g] = -1;
    s->begin[0] = 0;
    FTH_TRY(fth_texts_create(&s->names, s->mem, err));
    fth_status st = open_book(&genes, s->mem, gene_names, 0, err);
    if (st == FTH_OK) st = open_book(&sets, s->mem, s->names, n, err);
    if (st == FTH_OK) st = read_all(s, r, &genes, &sets, n, seen, err);
    fth_mem_release(s->mem, genes.slot, NULL);
    fth_mem_release(s->mem, sets.slot, NULL);
    return st;
}

fth_status sp_gene_sets_read(sp_gene_sets *out, fth_mem *mem, const char *path,
                             const fth_texts *gene_names, fth_err *err)
{
    fth_reader r;
    *out = (sp_gene_sets){.mem = mem};
    FTH_TRY(fth_reader_open(&r, mem, path, &(fth_reader_options){.room = SP_GMT_LINE}, err));
    const fth_status s = read_file(out, &r, gene_names, err);
    fth_reader_close(&r);
    if (s != FTH_OK) sp_gene_sets_free(out);
    return s;
}

void sp_gene_sets_free(sp_gene_sets *s)
{
    if (s->mem) fth_mem_release(s->mem, s->block, NULL);
    fth_texts_free(s->names);
    *s = (sp_gene_sets){0};
}
