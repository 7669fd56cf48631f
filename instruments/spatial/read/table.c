/* table.c - counts as a dense table of text: a line for each cell, a column for each gene.
 *
 * As MERSCOPE and CosMx write them, gigabytes where there are many cells. The file is read from its
 * front, once for each pass over the counts, through one buffer; zeros are left out on the way. It
 * may be packed by gzip. Columns that name the cell come before or among those of the genes.
 */
#include "vendor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ROOM = 4 << 20 }; /* the longest line: 20,000 genes with long names and quotes have 1 MB */

struct sp_table {
    char path[FTH_PATH];
    fth_reader reader;
    int64_t fields;  /* of a line */
    int64_t next;    /* row that comes next; -1: none was read yet */
    int32_t *column; /* [fields] gene of each, -1: it names the cell, -2: it is not read */
    int id, fov;     /* fields that name the cell; fov is -1 where the id is enough */
};

/* ---- header ---- */

static fth_status next_line(sp_table *t, fth_text_line *line, fth_err *err)
{
    do FTH_TRY(fth_reader_next(&t->reader, line, err));
    while (line->text && line->n == 0);
    return FTH_OK;
}

static bool is_word(const fth_text_field *f, const char *word)
{
    return f->n == strlen(word) && memcmp(f->text, word, f->n) == 0;
}

/* What a column is: a gene, or what names the cell. Of MERSCOPE the first column does, whatever it
 * is called. */
static int32_t kind_of(sp_table *t, const fth_text_field *f, int64_t i, bool cosmx)
{
    static const char *const others[] = {"", "cell", "cell_id"}; /* of newer exports of CosMx */
    if (!cosmx) {
        if (i == 0) t->id = 0;
        return i == 0 ? -1 : 0;
    }
    if (is_word(f, "cell_ID")) {
        t->id = (int)i;
        return -1;
    }
    if (is_word(f, "fov")) {
        t->fov = (int)i;
        return -1;
    }
    for (int k = 0; k < 3; k++)
        if (is_word(f, others[k])) return -2;
    return 0;
}

static fth_status count_fields(sp_table *t, fth_text_line line, fth_err *err)
{
    t->fields = line.text && line.n > 0 ? 1 : 0;
    bool quoted = false;
    for (size_t i = 0; i < line.n && line.text; i++) {
        if (line.text[i] == '"') quoted = !quoted;
        t->fields += line.text[i] == ',' && !quoted;
    }
    if (t->fields > 1 && t->fields < INT32_MAX) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:1: expected names of columns between commas, found %s",
                 t->path, t->fields ? "one column" : "an empty file");
    fth_err_hint(err, "counts have a line for each cell and a column for each gene");
    return s;
}

/* The names of the genes, which may be asked for. */
static fth_status read_header(sp_matrix *m, bool cosmx, fth_texts *names, fth_err *err)
{
    sp_table *t = m->table;
    fth_text_line line;
    fth_text_field f = {0};
    m->cols = 0;
    t->id = t->fov = -1;
    FTH_TRY(fth_reader_next(&t->reader, &line, err));
    FTH_TRY(count_fields(t, line, err));
    if (!t->column) {
        void *block = NULL;
        FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)t->fields * 4, "columns of a table",
                             &block, err));
        t->column = block;
    }
    for (int64_t i = 0; i < t->fields && fth_text_column_next(&line, ',', &f); i++) {
        const int32_t kind = kind_of(t, &f, i, cosmx);
        t->column[i] = kind < 0 ? kind : (int32_t)m->cols++;
        if (kind >= 0 && names) FTH_TRY(fth_texts_add(names, f.text, f.n, err));
    }
    if (t->id >= 0 && (!cosmx || t->fov >= 0) && m->cols > 0) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s:1: expected the columns %s and genes, found no %s",
                 t->path, cosmx ? "fov, cell_ID" : "cell",
                 t->id < 0     ? "cell_ID"
                 : m->cols < 1 ? "genes"
                               : "fov");
    fth_err_hint(err, "see what there is: fathom spatial info FOLDER");
    return s;
}

/* ---- the matrix ---- */

fth_status sp_matrix_open_table(sp_matrix *m, fth_mem *mem, const char *path, bool cosmx,
                                fth_err *err)
{
    void *block = NULL;
    fth_text_line line = {0};
    *m = (sp_matrix){.mem = mem, .layout = SP_LAYOUT_TABLE, .dtype = FTH_F32};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof(sp_table), "counts as a table", &block, err));
    sp_table *t = m->table = block;
    *t = (sp_table){.reader = {.fd = -1}, .next = -1};
    snprintf(t->path, sizeof t->path, "%s", path);
    snprintf(m->label, sizeof m->label, "%.4090s", path);
    const fth_reader_options how = {.unpack = true, .room = ROOM};
    fth_status s = fth_reader_open(&t->reader, mem, t->path, &how, err);
    if (s == FTH_OK) s = read_header(m, cosmx, NULL, err);
    while (s == FTH_OK && (s = next_line(t, &line, err)) == FTH_OK && line.text) m->rows++;
    if (s == FTH_OK && m->rows > INT32_MAX)
        s = FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: %" PRId64 " cells are too many", path, m->rows);
    m->entries = m->rows * m->cols;
    if (s != FTH_OK) sp_matrix_close(m);
    return s;
}

void sp_table_close(sp_matrix *m)
{
    if (!m->table) return;
    fth_reader_close(&m->table->reader);
    (void)fth_mem_release(m->mem, m->table->column, NULL);
    (void)fth_mem_release(m->mem, m->table, NULL);
    m->table = NULL;
}

/* Before the first row. */
static fth_status restart(sp_matrix *m, fth_err *err)
{
    fth_text_line line;
    FTH_TRY(fth_reader_rewind(&m->table->reader, err));
    FTH_TRY(fth_reader_next(&m->table->reader, &line, err));
    m->table->next = 0;
    return FTH_OK;
}

static fth_status take_line(sp_matrix *m, fth_text_line *line, fth_err *err)
{
    FTH_TRY(next_line(m->table, line, err));
    m->table->next++;
    return line->text
               ? FTH_OK
               : FTH_FAIL(err, FTH_E_FILE_READ, "%s has changed while it was read", m->label);
}

static fth_status wrong_width(const sp_table *t, int64_t number, int64_t found, fth_err *err)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, found);
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "%s:%" PRId64 ": expected %" PRId64 " columns as in the first line, found %s",
                 t->path, number, t->fields, found > t->fields ? "more" : text);
    fth_err_hint(err, "the file may have been cut while it was copied");
    return s;
}

/* The counts of a line. Almost all are one digit between commas. */
static fth_status parse_row(sp_matrix *m, fth_text_line *line, sp_block *b, int64_t *to,
                            fth_err *err)
{
    const sp_table *t = m->table;
    const int64_t number = line->number;
    int64_t i = 0;
    fth_text_field f = {0};
    while (line->at) {
        double v = 0;
        if (i == t->fields) return wrong_width(t, number, i + 1, err);
        const int32_t g = t->column[i++];
        const char *at = line->at;
        if (g >= 0 && at[0] >= '0' && at[0] <= '9' && (at[1] == ',' || at[1] == '\0')) {
            v = at[0] - '0';
            line->at = at[1] ? line->at + 2 : NULL;
        } else {
            if (!fth_text_column_next(line, ',', &f)) break;
            if (g < 0 || f.n == 0) {
                if (g >= 0) return fth_reader_fail(&t->reader, &f, "a count", err);
                continue;
            }
            if (!fth_text_real(&f, &v)) return fth_reader_fail(&t->reader, &f, "a count", err);
        }
        if (v == 0) continue;
        b->col[*to] = g;
        b->val[(*to)++] = (float)v;
    }
    return i == t->fields ? FTH_OK : wrong_width(t, number, i, err);
}

fth_status sp_table_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err)
{
    fth_text_line line;
    int64_t to = 0;
    if (m->table->next < 0 || m->table->next > first) FTH_TRY(restart(m, err));
    while (m->table->next < first) FTH_TRY(take_line(m, &line, err));
    b->ptr[0] = 0;
    for (int64_t r = 0; r < n; r++) {
        FTH_TRY(take_line(m, &line, err));
        FTH_TRY(parse_row(m, &line, b, &to, err));
        b->ptr[r + 1] = to;
    }
    return FTH_OK;
}

/* ---- names ---- */

fth_status sp_table_genes(sp_matrix *m, fth_texts **out, fth_err *err)
{
    const int64_t cols = m->cols;
    fth_texts *names = NULL;
    FTH_TRY(fth_texts_create(&names, m->mem, err));
    m->table->next = -1;
    fth_status s = fth_reader_rewind(&m->table->reader, err);
    if (s == FTH_OK) s = read_header(m, m->table->fov >= 0, names, err);
    if (s == FTH_OK && m->cols != cols)
        s = FTH_FAIL(err, FTH_E_FILE_READ, "%s has changed while it was read", m->label);
    if (s == FTH_OK)
        *out = names;
    else
        fth_texts_free(names);
    return s;
}

/* A field that names the cell, in `text`. */
static void put_name(char *text, size_t bytes, const fth_text_field *f)
{
    snprintf(text, bytes, "%.*s", f->n < 200 ? (int)f->n : 200, f->text);
}

/* "17_2": cell 17 of field of view 2, as squidpy has it. */
static fth_status name_of_line(const sp_table *t, fth_text_line *line, char name[SP_CELL_NAME],
                               bool *background, fth_err *err)
{
    fth_text_field f = {0};
    char id[256] = "", fov[256] = "";
    const int last = t->id > t->fov ? t->id : t->fov;
    *background = false;
    for (int i = 0; i <= last; i++) {
        if (!fth_text_column_next(line, ',', &f)) return wrong_width(t, line->number, i, err);
        if (i == t->id) put_name(id, sizeof id, &f);
        if (i == t->fov) put_name(fov, sizeof fov, &f);
        if (i == t->id && f.n == 0) return fth_reader_fail(&t->reader, &f, "a cell", err);
    }
    snprintf(name, SP_CELL_NAME, t->fov < 0 ? "%s" : "%s_%s", id, fov);
    *background = t->fov >= 0 && strcmp(id, "0") == 0;
    return FTH_OK;
}

fth_status sp_table_cells(sp_matrix *m, fth_texts **out, bool *background, fth_err *err)
{
    fth_texts *names = NULL;
    fth_text_line line;
    FTH_TRY(fth_texts_create(&names, m->mem, err));
    fth_status s = restart(m, err);
    for (int64_t r = 0; s == FTH_OK && r < m->rows; r++) {
        char name[SP_CELL_NAME];
        s = take_line(m, &line, err);
        if (s == FTH_OK) s = name_of_line(m->table, &line, name, &background[r], err);
        if (s == FTH_OK) s = fth_texts_add(names, name, strlen(name), err);
    }
    if (s == FTH_OK)
        *out = names;
    else
        fth_texts_free(names);
    return s;
}
