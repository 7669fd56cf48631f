/* support.c - which operation supports which dtype, as the engine itself answers.
 *
 * Every row plans the sample of an operation (fathom/samples.h) on a small value of the dtype.
 * Inference refuses what is not defined, planning what the device has no kernel for. A backend
 * without a card to plan for can only tell which operations it has kernels of.
 */
#include "doctor.h"

#include <fathom/samples.h>
#include <string.h>

const fth_dtype doctor_dtypes[FTH_DTYPE_COUNT] = {FTH_BOOL, FTH_U8,  FTH_U16, FTH_U32, FTH_I8,
                                                  FTH_I16,  FTH_I32, FTH_I64, FTH_F16, FTH_BF16,
                                                  FTH_F32,  FTH_F64, FTH_C64, FTH_C128};
_Static_assert(FTH_DTYPE_COUNT == 14, "new dtype: where does it stand?");

static fth_status read_nothing(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_INTERNAL, "the support table plans, it never runs");
}

bool doctor_supports(fth_context *ctx, int i, fth_dtype dtype)
{
    fth_graph *g = fth_graph_create(ctx);
    fth_samples_axes(g, 4);
    const fth_source source = {
        .kind = "none", .dtype = dtype, .n_axes = 2, .size = {4, 4}, .read = read_nothing};
    const fth_val v = fth_sample_build(g, i, fth_input(g, "x", dtype, "i j", source));
    fth_plan *p = fth_val_ok(v) ? fth_plan_make(g, &v, 1, NULL, NULL) : NULL;
    fth_plan_destroy(p);
    fth_graph_destroy(g);
    return p != NULL;
}

/* Whether a backend has a kernel of that operation at all. */
static bool has_kernel(const fth_backend *b, const char *op)
{
    const fth_kernel *k;
    for (int i = 0; (k = b->kernel(i)) != NULL; i++)
        if (strcmp(k->op, op) == 0) return true;
    return false;
}

static void show_table(FILE *out, fth_context *ctx)
{
    fprintf(out, "\noperations on %s\n%-12s", fth_context_device(ctx), "");
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        fprintf(out, " %-5s", fth_dtype_name(doctor_dtypes[t]));
    fputc('\n', out);
    for (int i = 0; fth_sample_at(i); i++) {
        fprintf(out, "%-12s", fth_sample_at(i)->name);
        for (int t = 0; t < FTH_DTYPE_COUNT; t++)
            fprintf(out, t + 1 < FTH_DTYPE_COUNT ? " %-5s" : " %s",
                    doctor_supports(ctx, i, doctor_dtypes[t]) ? "yes" : "-");
        fputc('\n', out);
    }
}

/* Without a card: operations with a kernel, and those without one. */
static void show_kernels(FILE *out, const fth_backend *b)
{
    static const char *const titles[] = {"no kernels for", "kernels for"};
    const fth_sample *row;
    fprintf(out, "\noperations on %s, as far as can be told without a card\n", b->name);
    for (int has = 1; has >= 0; has--) {
        int column = fprintf(out, "  %-14s", titles[has]);
        for (int i = 0; (row = fth_sample_at(i)) != NULL; i++) {
            if (has_kernel(b, row->op) != (has == 1)) continue;
            if (column + (int)strlen(row->name) + 1 > 98) column = fprintf(out, "\n%16s", "") - 1;
            column += fprintf(out, " %s", row->name);
        }
        fputc('\n', out);
    }
}

void doctor_show_support(FILE *out, fth_context *cpu, fth_context *cuda, const fth_backend *backend)
{
    show_table(out, cpu);
    if (cuda)
        show_table(out, cuda);
    else if (backend)
        show_kernels(out, backend);
}

static void json_dtypes(fth_json_writer *j, const char *key, fth_context *ctx, int i)
{
    fth_json_open(j, key, '[');
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        if (doctor_supports(ctx, i, doctor_dtypes[t]))
            fth_json_text(j, NULL, fth_dtype_name(doctor_dtypes[t]));
    fth_json_close(j);
}

void doctor_show_support_json(fth_json_writer *j, fth_context *cpu, fth_context *cuda,
                              const fth_backend *backend)
{
    const fth_sample *row;
    fth_json_open(j, "operations", '[');
    for (int i = 0; (row = fth_sample_at(i)) != NULL; i++) {
        fth_json_open(j, NULL, '{');
        fth_json_text(j, "name", row->name);
        json_dtypes(j, "dtypes", cpu, i);
        if (cuda)
            json_dtypes(j, "cuda_dtypes", cuda, i);
        else if (backend)
            fth_json_bool(j, "cuda_kernel", has_kernel(backend, row->op));
        fth_json_close(j);
    }
    fth_json_close(j);
}
