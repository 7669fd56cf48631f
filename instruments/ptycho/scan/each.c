/* each.c - loops on the workers whose body may fail, and sources loaded by them. */
#include "each.h"

#include <string.h>

/* The first of those that a worker failed at, and why. */
typedef struct failure {
    int64_t at; /* INT64_MAX: none */
    fth_err err;
} failure;

typedef struct loop {
    fth_status (*fn)(void *arg, int64_t i, fth_err *err);
    void *arg;
    failure *failed; /* of each worker */
} loop;

static void one(void *arg, int64_t i, int worker)
{
    const loop *l = arg;
    failure *f = &l->failed[worker];
    fth_err err = {0};
    if (l->fn(l->arg, i, &err) != FTH_OK && i < f->at) *f = (failure){i, err};
}

fth_status pt_each(fth_context *ctx, const char *name, int64_t n,
                   fth_status (*fn)(void *arg, int64_t i, fth_err *err), void *arg, fth_err *err)
{
    const int workers = fth_context_threads(ctx);
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_META, (uint64_t)workers * sizeof(failure), name, &block, err));
    loop l = {fn, arg, block};
    for (int i = 0; i < workers; i++) l.failed[i].at = INT64_MAX;
    fth_status s = fth_context_loop(ctx, name, n, one, &l, err);
    const failure *first = &l.failed[0];
    for (int i = 1; i < workers; i++)
        if (l.failed[i].at < first->at) first = &l.failed[i];
    if (s == FTH_OK && first->at < INT64_MAX) {
        s = first->err.status;
        if (err) *err = first->err;
    }
    fth_mem_release(mem, block, NULL);
    return s;
}

/* ---- loading ---- */

static const int64_t PART = 4 << 20; /* bytes that a worker reads at once */

typedef struct loading {
    const fth_source *source;
    int64_t rows, row_bytes; /* of a part, and the bytes of one */
    char *to;
} loading;

static fth_status load_part(void *arg, int64_t i, fth_err *err)
{
    const loading *l = arg;
    const fth_source *s = l->source;
    int64_t lo[FTH_MAX_AXES] = {i * l->rows}, n[FTH_MAX_AXES];
    memcpy(n, s->size, sizeof n);
    n[0] = s->size[0] - lo[0] < l->rows ? s->size[0] - lo[0] : l->rows;
    return s->read(s->self, lo, n, l->to + lo[0] * l->row_bytes, err);
}

fth_status pt_load(fth_context *ctx, const fth_source *source, const char *label, fth_tensor **out,
                   fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    if (!source->concurrent || source->n_axes < 1)
        return fth_source_load(source, mem, label, out, err);
    loading l = {.source = source, .row_bytes = fth_dtype_size(source->dtype)};
    for (int a = 1; a < source->n_axes; a++) l.row_bytes *= source->size[a];
    l.rows = l.row_bytes > 0 ? PART / l.row_bytes : source->size[0];
    if (l.rows < 1) l.rows = 1;
    FTH_TRY(fth_tensor_create(out, mem, label, source->dtype, source->n_axes, source->size, err));
    l.to = fth_tensor_data(*out);
    const int64_t parts = (source->size[0] + l.rows - 1) / l.rows;
    const fth_status s = pt_each(ctx, label, parts, load_part, &l, err);
    if (s == FTH_OK) return FTH_OK;
    fth_tensor_release(*out);
    *out = NULL;
    return s;
}
