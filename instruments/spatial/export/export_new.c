/* export_new.c - a preprocessed folder as a new h5ad file. */
#include "export.h"

#include <inttypes.h>
#include <string.h>

enum { ROWS = 8192, ENTRIES = 1 << 20 };

/* ---- counts ---- */

typedef struct piece {
    int64_t *row_ptr; /* [ROWS + 1] */
    int32_t *col;     /* [room] */
    float *val;
    int64_t room;
} piece;

/* Rows from `first` on that fit into a piece. */
static int64_t rows_that_fit(const fth_csr *csr, int64_t first, int64_t room)
{
    const int64_t rows = fth_csr_rows(csr);
    int64_t n = 1;
    while (first + n < rows && n < ROWS && fth_csr_entries(csr, first, first + n + 1) <= room) n++;
    return n;
}

static fth_status copy_rows(fth_csr *csr, const piece *p, const fth_sink sink[3], fth_err *err)
{
    const int64_t rows = fth_csr_rows(csr);
    int64_t at = 0;
    for (int64_t first = 0; first < rows;) {
        const int64_t n = rows_that_fit(csr, first, p->room);
        FTH_TRY(fth_csr_read(csr, first, n, p->row_ptr, p->col, p->val, err));
        const int64_t entries = p->row_ptr[n];
        FTH_TRY(sink[0].write(sink[0].self, &at, &entries, p->val, err));
        FTH_TRY(sink[1].write(sink[1].self, &at, &entries, p->col, err));
        for (int64_t i = 0; i <= n; i++) p->row_ptr[i] += at;
        FTH_TRY(sink[2].write(sink[2].self, &first, &n, p->row_ptr, err));
        at += entries;
        first += n;
    }
    return sink[2].write(sink[2].self, &rows, (int64_t[]){1}, &at, err);
}

static fth_status put_counts(fth_h5_writer *w, fth_mem *mem, const sp_data *data, fth_err *err)
{
    const int64_t shape[2] = {data->rows, data->size.genes},
                  entries = fth_csr_entries(data->counts, 0, data->rows), ends = data->rows + 1;
    fth_sink sink[3];
    void *block = NULL;
    piece p = {.room = data->size.most_entries > ENTRIES ? data->size.most_entries : ENTRIES};
    FTH_TRY(fth_h5_put_group(w, "/X", err));
    FTH_TRY(fth_h5_put_attr_text(w, "/X", "encoding-type", "csr_matrix", err));
    FTH_TRY(fth_h5_put_attr_text(w, "/X", "encoding-version", "0.1.0", err));
    FTH_TRY(fth_h5_put_attr_i64(w, "/X", "shape", shape, 2, err));
    FTH_TRY(sp_h5ad_array(w, "/X/data", FTH_F32, 1, &entries, &sink[0], err));
    FTH_TRY(sp_h5ad_array(w, "/X/indices", FTH_I32, 1, &entries, &sink[1], err));
    FTH_TRY(sp_h5ad_array(w, "/X/indptr", FTH_I64, 1, &ends, &sink[2], err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (ROWS + 1) * 8 + (uint64_t)p.room * 8, "counts", &block,
                         err));
    p.row_ptr = block;
    p.col = (int32_t *)(p.row_ptr + ROWS + 1);
    p.val = (float *)(p.col + p.room);
    fth_status s = copy_rows(data->counts, &p, sink, err);
    (void)fth_mem_release(mem, block, NULL);
    for (int i = 0; s == FTH_OK && i < 3; i++) s = sink[i].commit(sink[i].self, err);
    return s;
}

/* ---- frames ---- */

static fth_status put_frame(fth_h5_writer *w, const char *place, const char *const *column,
                            int64_t columns, fth_err *err)
{
    FTH_TRY(fth_h5_put_group(w, place, err));
    FTH_TRY(fth_h5_put_attr_text(w, place, "encoding-type", "dataframe", err));
    FTH_TRY(fth_h5_put_attr_text(w, place, "encoding-version", "0.2.0", err));
    FTH_TRY(fth_h5_put_attr_text(w, place, "_index", "_index", err));
    return fth_h5_put_attr_texts(w, place, "column-order", column, columns, err);
}

/* Cells without names are numbered. */
static fth_status put_cell_names(fth_h5_writer *w, fth_mem *mem, const sp_data *data, fth_err *err)
{
    fth_texts *names = NULL;
    if (data->cell_names) return sp_h5ad_put_texts(w, mem, "/obs/_index", data->cell_names, err);
    fth_status s = fth_texts_create(&names, mem, err);
    for (int64_t i = 0; s == FTH_OK && i < data->rows; i++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, i);
        s = fth_texts_add(names, text, strlen(text), err);
    }
    if (s == FTH_OK) s = sp_h5ad_put_texts(w, mem, "/obs/_index", names, err);
    fth_texts_free(names);
    return s;
}

fth_status sp_h5ad_put_categories(fth_h5_writer *w, fth_mem *mem, const char *place,
                                  const int32_t *code, int64_t n, const fth_texts *names,
                                  fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_h5_put_group(w, place, err));
    FTH_TRY(fth_h5_put_attr_text(w, place, "encoding-type", "categorical", err));
    FTH_TRY(fth_h5_put_attr_text(w, place, "encoding-version", "0.2.0", err));
    FTH_TRY(fth_h5_put_attr_bool(w, place, "ordered", false, err));
    snprintf(path, sizeof path, "%s/codes", place);
    FTH_TRY(sp_h5ad_put_array(w, path, FTH_I32, 1, &n, code, err));
    snprintf(path, sizeof path, "%s/categories", place);
    return sp_h5ad_put_texts(w, mem, path, names, err);
}

/* Those of sections as their sources have them, others as the folder has them. */
static fth_status put_places(fth_h5_writer *w, fth_mem *mem, const sp_data *data, fth_err *err)
{
    const int64_t size[2] = {data->rows, 2};
    const char *const place = "/obsm/spatial";
    void *block = NULL;
    if (!data->section)
        return sp_h5ad_put_array(w, place, FTH_F32, 2, size, fth_tensor_data(data->xy), err);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)data->rows * 8, "positions", &block, err));
    for (int64_t i = 0; i < data->rows; i++) sp_data_source_place(data, i, (float *)block + 2 * i);
    const fth_status s = sp_h5ad_put_array(w, place, FTH_F32, 2, size, block, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}

fth_status sp_h5ad_put_data(fth_h5_writer *w, fth_mem *mem, const sp_data *data, fth_err *err)
{
    static const char *const columns[] = {"group", "fathom_kept", "section"};
    static const char *const dicts[] = {"/obsm", "/varm", "/uns", "/layers", "/obsp", "/varp"};
    FTH_TRY(fth_h5_put_attr_text(w, "/", "encoding-type", "anndata", err));
    FTH_TRY(fth_h5_put_attr_text(w, "/", "encoding-version", "0.1.0", err));
    FTH_TRY(put_counts(w, mem, data, err));
    FTH_TRY(put_frame(w, "/obs", columns, data->section ? 3 : 2, err));
    FTH_TRY(put_cell_names(w, mem, data, err));
    FTH_TRY(sp_h5ad_put_categories(w, mem, "/obs/group", fth_tensor_data(data->group), data->rows,
                                   data->group_names, err));
    if (data->section)
        FTH_TRY(sp_h5ad_put_categories(w, mem, "/obs/section", fth_tensor_data(data->section),
                                       data->rows, data->sections.names, err));
    FTH_TRY(put_frame(w, "/var", NULL, 0, err));
    FTH_TRY(sp_h5ad_put_texts(w, mem, "/var/_index", data->gene_names, err));
    for (int i = 0; i < 6; i++) FTH_TRY(sp_h5ad_put_dict(w, dicts[i], err));
    return put_places(w, mem, data, err);
}
