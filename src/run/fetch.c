/* fetch.c - from a value to numbers on the host: the checked accessors and the debugging print. */
#include "array/half.h"
#include "graph/graph.h"
#include "mem/heap.h"

#include <fathom/plan.h>

static fth_status run_one(fth_val v, const fth_sink *sink, fth_err *err)
{
    const fth_limits limits = {.sinks = sink};
    fth_plan *p = fth_plan_make(v.graph, &v, 1, &limits, err);
    if (!p) return err ? err->status : FTH_E_INTERNAL;
    const fth_status s = fth_run(p, sink, NULL, NULL, err);
    fth_plan_destroy(p);
    return s;
}

static fth_status fetch(fth_val v, fth_dtype want, void *out, fth_err *err)
{
    fth_err own = {0};
    if (!err) err = &own;
    if (!fth_val_ok(v)) {
        FTH_TRY(fth_graph_check(v.graph, err));
        return FTH_FAIL(err, FTH_E_GRAPH_VALUE, "a poisoned value cannot be read");
    }
    char text[384];
    if (fth_val_axes(v) != 0 || fth_val_dtype(v) != want)
        return FTH_FAIL(err, FTH_E_DTYPE_READ, "%s is not one number of dtype %s",
                        fth_val_format(v, text, sizeof text), fth_dtype_name(want));
    const fth_sink sink = fth_scalar_sink(want, out);
    return run_one(v, &sink, err);
}

fth_status fth_fetch_i64(fth_val v, int64_t *out, fth_err *err)
{
    return fetch(v, FTH_I64, out, err);
}

fth_status fth_fetch_f64(fth_val v, double *out, fth_err *err)
{
    return fetch(v, FTH_F64, out, err);
}

/* ---- show ------------------------------------------------------------------------------------ */

static void show_number(FILE *f, fth_dtype t, const void *p)
{
    switch (t) {
    case FTH_BOOL: fprintf(f, "%s", *(const uint8_t *)p ? "true" : "false"); break;
    case FTH_U8: fprintf(f, "%u", (unsigned)*(const uint8_t *)p); break;
    case FTH_U16: fprintf(f, "%u", (unsigned)*(const uint16_t *)p); break;
    case FTH_I32: fprintf(f, "%d", (int)*(const int32_t *)p); break;
    case FTH_U32: fprintf(f, "%u", (unsigned)*(const uint32_t *)p); break;
    case FTH_I16: fprintf(f, "%d", (int)*(const int16_t *)p); break;
    case FTH_I8: fprintf(f, "%d", (int)*(const int8_t *)p); break;
    case FTH_I64: fprintf(f, "%lld", (long long)*(const int64_t *)p); break;
    case FTH_F16: fprintf(f, "%.4g", (double)fth__f16_to_f32(*(const uint16_t *)p)); break;
    case FTH_BF16: fprintf(f, "%.3g", (double)fth__bf16_to_f32(*(const uint16_t *)p)); break;
    case FTH_F32: fprintf(f, "%.7g", (double)*(const float *)p); break;
    case FTH_F64: fprintf(f, "%.10g", *(const double *)p); break;
    case FTH_C64: {
        const fth_c64 *c = p;
        fprintf(f, "%.6g%+.6gi", (double)c->re, (double)c->im);
        break;
    }
    case FTH_C128: {
        const fth_c128 *c = p;
        fprintf(f, "%.9g%+.9gi", c->re, c->im);
        break;
    }
    case FTH_DTYPE_COUNT: break;
    }
}

/* Of a long row, its beginning and its end. */
enum { SHOW_FIRST = 8, SHOW_LAST = 3 };

static void show_rows(fth_val v, fth_tensor *t, int64_t rows, FILE *f)
{
    const fth_dtype type = fth_val_dtype(v);
    const int n = fth_val_axes(v);
    const int64_t inner = n > 0 ? fth_val_size(v, n - 1) : 1;
    const int64_t total = (int64_t)(fth_tensor_bytes(t) / (uint64_t)fth_dtype_size(type));
    const char *data = fth_tensor_data(t);
    for (int64_t i = 0; i < total && (inner == 0 || i / inner < rows); i++) {
        if (inner > SHOW_FIRST + SHOW_LAST + 1 && i % inner == SHOW_FIRST) {
            fputs("... ", f);
            i += inner - SHOW_FIRST - SHOW_LAST;
        }
        show_number(f, type, data + i * fth_dtype_size(type));
        fputs((i + 1) % inner == 0 ? "\n" : " ", f);
    }
    if (inner > 0 && total / inner > rows)
        fprintf(f, "... %lld rows in all\n", (long long)(total / inner));
}

fth_status fth_show(fth_val v, int64_t rows, FILE *file, fth_err *err)
{
    fth_err own = {0};
    if (!err) err = &own;
    if (!fth_val_ok(v)) {
        FTH_TRY(fth_graph_check(v.graph, err));
        return FTH_FAIL(err, FTH_E_GRAPH_VALUE, "a poisoned value cannot be shown");
    }
    int64_t size[FTH_MAX_AXES];
    for (int i = 0; i < fth_val_axes(v); i++) size[i] = fth_val_size(v, i);
    fth_tensor *t;
    FTH_TRY(
        fth_tensor_create(&t, v.graph->mem, "show", fth_val_dtype(v), fth_val_axes(v), size, err));
    const fth_sink sink = fth_tensor_sink(t);
    const fth_status s = run_one(v, &sink, err);
    char text[384];
    if (s == FTH_OK) {
        fprintf(file, "%s\n", fth_val_format(v, text, sizeof text));
        show_rows(v, t, rows, file);
    }
    fth_tensor_release(t);
    return s;
}
