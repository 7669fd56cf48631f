/* source.c - what sources and sinks of every format share. */
#include "array/rect.h"
#include "array/tensor.h"
#include "base/assert.h"
#include "io/dense.h"

#include <string.h>

void fth_source_close(fth_source *source)
{
    if (!source) return;
    fth__opened *opened = source->self;
    if (opened) opened->close(opened);
    *source = (fth_source){0};
}

void fth_sink_close(fth_sink *sink)
{
    if (!sink) return;
    fth__opened *opened = sink->self;
    if (opened) opened->close(opened);
    *sink = (fth_sink){0};
}

fth_status fth_source_load(const fth_source *source, fth_mem *mem, const char *label,
                           fth_tensor **out, fth_err *err)
{
    if (!out || !source || !source->read)
        return FTH_FAIL(err, FTH_E_USAGE, "nothing to load, or nowhere to put it");
    *out = NULL;
    FTH_TRY(fth_tensor_create(out, mem, label, source->dtype, source->n_axes, source->size, err));
    const int64_t lo[FTH_MAX_AXES] = {0};
    const fth_status s = source->read(source->self, lo, source->size, fth_tensor_data(*out), err);
    if (s == FTH_OK) return FTH_OK;
    fth_tensor_release(*out);
    *out = NULL;
    return fth_err_note(err, FTH_HERE, s, "loading '%s'", label ? label : "");
}

/* ---- tensors that are on a device only: copied in pieces of rows ---- */

enum { PIECE = 4 << 20 }; /* bytes copied to or from a device at a time; not tuned */

typedef struct transfer {
    fth_mem *mem;
    fth_tensor *tensor;
    void *block;
    int64_t size[FTH_MAX_AXES], rows; /* of the tensor; rows of a piece */
} transfer;

static fth_status begin_transfer(transfer *v, fth_tensor *t, fth_err *err)
{
    const uint64_t row =
        fth_tensor_size(t, 0) > 0 ? fth_tensor_bytes(t) / (uint64_t)fth_tensor_size(t, 0) : 0;
    *v = (transfer){.mem = fth__tensor_apart(t), .tensor = t};
    v->rows = row > 0 && row < PIECE ? (int64_t)(PIECE / row) : 1;
    for (int a = 0; a < fth_tensor_axes(t); a++) v->size[a] = fth_tensor_size(t, a);
    return fth_mem_take(v->mem, FTH_MEM_ANY, (uint64_t)v->rows * row, "staging rows", &v->block,
                        err);
}

/* The piece from row `from` on. */
static void set_piece(const transfer *v, int64_t from, int64_t lo[FTH_MAX_AXES],
                      int64_t n[FTH_MAX_AXES])
{
    FTH_ASSERT(from >= 0 && from < v->size[0] && v->rows >= 1);
    memcpy(n, v->size, sizeof v->size);
    lo[0] = from;
    n[0] = v->size[0] - from < v->rows ? v->size[0] - from : v->rows;
}

static fth_status store_apart(const fth_sink *sink, fth_tensor *t, fth_err *err)
{
    transfer v;
    int64_t lo[FTH_MAX_AXES] = {0}, n[FTH_MAX_AXES];
    FTH_TRY(begin_transfer(&v, t, err));
    fth_status s = FTH_OK;
    for (int64_t from = 0; s == FTH_OK && from < v.size[0]; from += v.rows) {
        set_piece(&v, from, lo, n);
        s = fth_tensor_get_rows(t, from, n[0], v.block, err);
        if (s == FTH_OK) s = sink->write(sink->self, lo, n, v.block, err);
    }
    (void)fth_mem_release(v.mem, v.block, NULL);
    return s == FTH_OK && sink->commit ? sink->commit(sink->self, err) : s;
}

static fth_status fill_apart(const fth_source *source, fth_tensor *t, fth_err *err)
{
    transfer v;
    int64_t lo[FTH_MAX_AXES] = {0}, n[FTH_MAX_AXES];
    FTH_TRY(begin_transfer(&v, t, err));
    fth_status s = FTH_OK;
    for (int64_t from = 0; s == FTH_OK && from < v.size[0]; from += v.rows) {
        set_piece(&v, from, lo, n);
        s = source->read(source->self, lo, n, v.block, err);
        if (s == FTH_OK) s = fth_tensor_put_rows(t, from, n[0], v.block, err);
    }
    (void)fth_mem_release(v.mem, v.block, NULL);
    return s;
}

fth_status fth__source_fill(const fth_source *source, fth_tensor *t, fth_err *err)
{
    const int64_t lo[FTH_MAX_AXES] = {0};
    if (fth__tensor_apart(t)) return fill_apart(source, t, err);
    return source->read(source->self, lo, source->size, fth_tensor_data(t), err);
}

fth_status fth_sink_store(const fth_sink *sink, fth_tensor *t, fth_err *err)
{
    if (!sink || !sink->write || !t)
        return FTH_FAIL(err, FTH_E_USAGE, "nothing to store, or nowhere to put it");
    bool same = sink->dtype == fth_tensor_dtype(t) && sink->n_axes == fth_tensor_axes(t);
    int64_t size[FTH_MAX_AXES] = {0};
    for (int a = 0; a < fth_tensor_axes(t); a++) {
        size[a] = fth_tensor_size(t, a);
        same = same && size[a] == sink->size[a];
    }
    if (!same) {
        char have[200], want[200];
        return FTH_FAIL(
            err, FTH_E_USAGE, "the sink takes %s, the tensor is %s",
            fth__shape_text(sink->dtype, sink->n_axes, sink->size, want, sizeof want),
            fth__shape_text(fth_tensor_dtype(t), fth_tensor_axes(t), size, have, sizeof have));
    }
    if (fth__tensor_apart(t)) return store_apart(sink, t, err);
    return fth_sink_put(sink, fth_tensor_data(t), err);
}

fth_status fth_sink_put(const fth_sink *sink, const void *data, fth_err *err)
{
    if (!sink || !sink->write || !data)
        return FTH_FAIL(err, FTH_E_USAGE, "nothing to store, or nowhere to put it");
    const int64_t lo[FTH_MAX_AXES] = {0};
    FTH_TRY(sink->write(sink->self, lo, sink->size, data, err));
    return sink->commit ? sink->commit(sink->self, err) : FTH_OK;
}
