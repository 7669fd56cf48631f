/* safetensors_whole.c - tensors to one file and back, for models and checkpoints. */
#include "array/rect.h"
#include "io/safetensors.h"
#include "mem/heap.h"

static void shape_of(const fth_tensor *t, int64_t size[FTH_MAX_AXES])
{
    for (int a = 0; a < fth_tensor_axes(t); a++) size[a] = fth_tensor_size(t, a);
}

static fth_status store_all(fth_safetensors_writer *w, const fth_file_tensor *t, int64_t n,
                            fth_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        fth_sink sink;
        FTH_TRY(fth_safetensors_sink(w, t[i].name, &sink, err));
        FTH_TRY(fth_sink_store(&sink, t[i].tensor, err));
    }
    return FTH_OK;
}

fth_status fth_safetensors_save(fth_mem *mem, const char *path, const fth_file_tensor *t, int64_t n,
                                const fth_safetensors_options *opt, fth_err *err)
{
    fth_file_item *item = NULL;
    fth_safetensors_writer *w = NULL;
    FTH_TRY(fth__heap_take(mem, n, sizeof *item, (void **)&item, err));
    for (int64_t i = 0; i < n; i++) {
        item[i] = (fth_file_item){.name = t[i].name,
                                  .dtype = fth_tensor_dtype(t[i].tensor),
                                  .n_axes = fth_tensor_axes(t[i].tensor),
                                  .axes = t[i].axes};
        shape_of(t[i].tensor, item[i].size);
    }
    fth_status s = fth_safetensors_create(&w, mem, path, item, n, opt, err);
    fth__heap_free(mem, item);
    FTH_TRY(s);
    s = store_all(w, t, n, err);
    if (s == FTH_OK) return fth_safetensors_commit(w, err);
    fth_safetensors_abandon(w);
    return s;
}

fth_status fth_safetensors_load(fth_safetensors *f, const char *name, fth_mem *mem,
                                fth_tensor **out, fth_err *err)
{
    fth_source source;
    *out = NULL;
    FTH_TRY(fth_safetensors_source(f, name, &source, err));
    const fth_status s = fth_source_load(&source, mem, name, out, err);
    fth_source_close(&source);
    return s;
}

fth_status fth_safetensors_fill(fth_safetensors *f, const char *name, fth_tensor *to, fth_err *err)
{
    fth_source source;
    int64_t size[FTH_MAX_AXES] = {0};
    shape_of(to, size);
    FTH_TRY(fth_safetensors_source(f, name, &source, err));
    bool same = source.dtype == fth_tensor_dtype(to) && source.n_axes == fth_tensor_axes(to);
    for (int a = 0; same && a < source.n_axes; a++) same = source.size[a] == size[a];
    fth_status s = FTH_OK;
    if (!same) {
        char have[200], want[200];
        s = FTH_FAIL(
            err, FTH_E_FILE_SHAPE, "tensor '%s' should be %s, and is %s", name,
            fth__shape_text(fth_tensor_dtype(to), fth_tensor_axes(to), size, want, sizeof want),
            fth__shape_text(source.dtype, source.n_axes, source.size, have, sizeof have));
    }
    if (s == FTH_OK) s = fth__source_fill(&source, to, err);
    fth_source_close(&source);
    return s;
}
