/* mtx.c - counts as text: matrix.mtx of the Matrix Market, with lists of features and barcodes.
 *
 * Entries come by ascending barcode, so a block of cells is a run of lines. The file is read from
 * its front, once for each pass over the counts, through one buffer; it may be packed by gzip.
 */
#include "tenx.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct sp_mtx {
    char path[FTH_PATH];
    fth_reader reader;
    int64_t row;  /* of the entry that is held; rows: none is left */
    int64_t seen; /* entries read, the one that is held included */
    int32_t col;
    float val;
};

bool sp_mtx_file(const char *dir, const char *name, char path[FTH_PATH])
{
    static const char *const ends[] = {".gz", ""};
    for (int i = 0; i < 2; i++) {
        const int n = snprintf(path, FTH_PATH, "%s/%s%s", dir, name, ends[i]);
        if (n > 0 && n < FTH_PATH && fth_path_exists(path)) return true;
    }
    return false;
}

/* ---- lines ---- */

static fth_status next_line(fth_reader *r, fth_text_line *line, fth_err *err)
{
    do FTH_TRY(fth_reader_next(r, line, err));
    while (line->text && (line->text[0] == '%' || line->n == 0));
    return FTH_OK;
}

/* Three fields of a line. */
static fth_status take_fields(const sp_mtx *x, fth_text_line *line, fth_text_field f[3],
                              const char *expected, fth_err *err)
{
    for (int i = 0; i < 3; i++)
        if (!line->text || !fth_text_field_next(line, " \t", &f[i]))
            return FTH_FAIL(err, line->text ? FTH_E_FILE_FORMAT : FTH_E_FILE_SHORT,
                            "%s:%" PRId64 ": expected %s, found %s", x->path, line->number,
                            expected, line->text ? "fewer numbers" : "the end of the file");
    return FTH_OK;
}

/* The header, and the sizes: features, cells, entries. */
static fth_status read_head(sp_mtx *x, int64_t size[3], fth_err *err)
{
    fth_text_line line;
    fth_text_field f[3];
    FTH_TRY(fth_reader_next(&x->reader, &line, err));
    static const char head[] = "%%MatrixMarket matrix coordinate ";
    const char *word = line.text && strncmp(line.text, head, sizeof head - 1) == 0
                           ? line.text + sizeof head - 1
                           : "";
    if (strcmp(word, "integer general") != 0 && strcmp(word, "real general") != 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:1: expected '%sinteger general', found '%.80s'",
                        x->path, head, line.text ? line.text : "");
    FTH_TRY(next_line(&x->reader, &line, err));
    FTH_TRY(take_fields(x, &line, f, "numbers of features, cells and entries", err));
    static const int64_t most[3] = {INT32_MAX, INT32_MAX, INT64_MAX / 64};
    for (int i = 0; i < 3; i++)
        FTH_TRY(fth_reader_int(&x->reader, &f[i], 0, most[i], &size[i], err));
    return FTH_OK;
}

static fth_status wrong_count(const sp_matrix *m, const char *found, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected %" PRId64 " entries, found %s",
                    m->mtx->path, m->entries, found);
}

/* The next entry is held; cells ascend. */
static fth_status next_entry(sp_matrix *m, fth_err *err)
{
    sp_mtx *x = m->mtx;
    fth_text_line line;
    fth_text_field f[3];
    int64_t col = 0, row = 0;
    double v = 0;
    FTH_TRY(next_line(&x->reader, &line, err));
    if (!line.text) {
        char found[32];
        snprintf(found, sizeof found, "%" PRId64, x->seen);
        x->row = m->rows;
        return x->seen == m->entries ? FTH_OK : wrong_count(m, found, err);
    }
    if (x->seen == m->entries) return wrong_count(m, "more", err);
    FTH_TRY(take_fields(x, &line, f, "a feature, a cell and a count", err));
    FTH_TRY(fth_reader_int(&x->reader, &f[0], 1, m->cols, &col, err));
    FTH_TRY(fth_reader_int(&x->reader, &f[1], 1, m->rows, &row, err));
    FTH_TRY(fth_reader_real(&x->reader, &f[2], -(double)INFINITY, (double)INFINITY, &v, err));
    if (row - 1 < x->row) {
        const fth_status s = FTH_FAIL(err, FTH_E_FILE_FEATURE,
                                      "%s:%" PRId64 ": expected entries by ascending cell, found "
                                      "cell %" PRId64 " after %" PRId64,
                                      x->path, line.number, row, x->row + 1);
        fth_err_hint(err, "use the .h5 file of the same counts");
        return s;
    }
    x->row = row - 1;
    x->col = (int32_t)(col - 1);
    x->val = (float)v;
    x->seen++;
    return FTH_OK;
}

/* The first entry is held. */
static fth_status restart(sp_matrix *m, fth_err *err)
{
    int64_t size[3];
    FTH_TRY(fth_reader_rewind(&m->mtx->reader, err));
    FTH_TRY(read_head(m->mtx, size, err));
    m->mtx->row = m->mtx->seen = 0;
    return next_entry(m, err);
}

/* ---- the matrix ---- */

fth_status sp_matrix_open_mtx(sp_matrix *m, fth_mem *mem, const char *dir, fth_err *err)
{
    int64_t size[3] = {0, 0, 0};
    void *block = NULL;
    *m = (sp_matrix){.mem = mem, .layout = SP_LAYOUT_TEXT, .dtype = FTH_F32};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof(sp_mtx), "counts as text", &block, err));
    m->mtx = block;
    *m->mtx = (sp_mtx){.reader = {.fd = -1}};
    fth_status s = FTH_OK;
    if (!sp_mtx_file(dir, "matrix.mtx", m->mtx->path))
        s = FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there is no matrix.mtx.gz in this folder", dir);
    snprintf(m->label, sizeof m->label, "%.4090s", m->mtx->path);
    const fth_reader_options unpack = {.unpack = true};
    if (s == FTH_OK) s = fth_reader_open(&m->mtx->reader, mem, m->mtx->path, &unpack, err);
    if (s == FTH_OK) s = read_head(m->mtx, size, err);
    m->cols = size[0];
    m->rows = size[1];
    m->entries = size[2];
    m->mtx->row = INT64_MAX; /* before the first pass nothing is held */
    if (s != FTH_OK) sp_matrix_close(m);
    return s;
}

void sp_mtx_close(sp_matrix *m)
{
    if (!m->mtx) return;
    fth_reader_close(&m->mtx->reader);
    (void)fth_mem_release(m->mem, m->mtx, NULL);
    m->mtx = NULL;
}

fth_status sp_mtx_count(sp_matrix *m, fth_err *err)
{
    int64_t *ptr = m->row_ptr;
    memset(ptr, 0, (size_t)(m->rows + 1) * sizeof *ptr);
    FTH_TRY(restart(m, err));
    while (m->mtx->row < m->rows) {
        const int64_t row = m->mtx->row;
        if (++ptr[row + 1] > m->cols)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s: cell %" PRId64 " has more entries than there are features",
                            m->label, row + 1);
        FTH_TRY(next_entry(m, err));
    }
    for (int64_t r = 0; r < m->rows; r++) ptr[r + 1] += ptr[r];
    return FTH_OK;
}

fth_status sp_mtx_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err)
{
    sp_mtx *x = m->mtx;
    int64_t at = 0;
    const int64_t held = x->row < m->rows ? x->seen - 1 : m->entries; /* entries before it */
    if (held > m->row_ptr[first]) FTH_TRY(restart(m, err));
    while (x->row < first) FTH_TRY(next_entry(m, err));
    b->ptr[0] = 0;
    for (int64_t r = 0; r < n; r++) {
        while (x->row == first + r) {
            if (at == b->room)
                return FTH_FAIL(err, FTH_E_FILE_READ, "%s has changed while it was read", m->label);
            b->col[at] = x->col;
            b->val[at++] = x->val;
            FTH_TRY(next_entry(m, err));
        }
        b->ptr[r + 1] = at;
    }
    return FTH_OK;
}

/* ---- names ---- */

fth_status sp_mtx_names(fth_mem *mem, const char *path, int column, bool optional, fth_texts **out,
                        fth_err *err)
{
    const fth_reader_options unpack = {.unpack = true};
    fth_reader r;
    fth_text_line line;
    fth_texts *names = NULL;
    bool missing = false;
    *out = NULL;
    FTH_TRY(fth_reader_open(&r, mem, path, &unpack, err));
    fth_status s = fth_texts_create(&names, mem, err);
    while (s == FTH_OK && !missing && (s = fth_reader_next(&r, &line, err)) == FTH_OK &&
           line.text) {
        fth_text_field f = {0};
        int k = -1;
        if (line.n == 0) continue;
        while (k < column && fth_text_column_next(&line, '\t', &f)) k++;
        missing = k < column;
        if (!missing)
            s = fth_texts_add(names, f.text, f.n, err);
        else if (!optional)
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                         "%s:%" PRId64 ": expected %d columns between tabs, found %d", path,
                         line.number, column + 1, k + 1);
    }
    fth_reader_close(&r);
    if (s != FTH_OK || missing) {
        fth_texts_free(names);
        return s;
    }
    *out = names;
    return FTH_OK;
}
