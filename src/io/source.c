/* source.c - what is the same for sources and sinks of every format. */
#include "array/rect.h"
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
