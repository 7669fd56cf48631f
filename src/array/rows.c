/* rows.c - a source whose rows are chosen rows of another: how mini-batches are read. */
#include <fathom/array.h>

static fth_status check_index(const fth_rows *r, int64_t i, fth_err *err)
{
    const int64_t at = r->index[i], size = r->base.size[0];
    if (at >= 0 && at < size) return FTH_OK;
    return FTH_FAIL(err, FTH_E_INDEX_RANGE,
                    "row %lld of the batch asks for row %lld of a %s source with %lld rows",
                    (long long)i, (long long)at, r->base.kind, (long long)size);
}

static fth_status read(void *self, const int64_t *lo, const int64_t *n, void *dst, fth_err *err)
{
    const fth_rows *r = self;
    bool whole_rows = true;
    int64_t from[FTH_MAX_AXES], count[FTH_MAX_AXES], row = fth_dtype_size(r->base.dtype);
    for (int d = 0; d < r->base.n_axes; d++) {
        from[d] = lo[d];
        count[d] = n[d];
        if (d > 0) row *= n[d];
        if (d > 0 && n[d] != r->base.size[d]) whole_rows = false;
    }
    for (int64_t i = 0; i < n[0]; i++) FTH_TRY(check_index(r, lo[0] + i, err));
    if (whole_rows && r->base.read_rows)
        return r->base.read_rows(r->base.self, r->index + lo[0], n[0], dst, err);
    count[0] = 1;
    for (int64_t i = 0; i < n[0]; i++) {
        from[0] = r->index[lo[0] + i];
        FTH_TRY(r->base.read(r->base.self, from, count, (char *)dst + i * row, err));
    }
    return FTH_OK;
}

fth_source fth_rows_source(fth_rows *rows)
{
    fth_source s = rows->base;
    s.kind = "rows";
    s.self = rows;
    s.size[0] = rows->n;
    s.part[0] = 0;
    s.read = rows->base.read || rows->base.read_rows ? read : NULL;
    s.read_rows = NULL;
    s.data = NULL;
    return s;
}
