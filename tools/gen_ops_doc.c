/* gen_ops_doc.c - print docs/operations.md: every operation, from the tables and from the engine.
 *
 * What a row says is not written anywhere a second time: dtypes are those that a plan is made for,
 * and a gradient is there where the operation's record has one.
 */
#include "cli/doctor/doctor.h"
#include "ops/elementwise.h"
#include "ops/ops.h"

#include <fathom/samples.h>
#include <string.h>

static const struct op_row {
    const fth_op *op;
    const char *kernels;
    bool inner;
} ops[] = {
#define FTH_OP(name, kernels, ...) {&fth__op_##name, kernels, false},
#define FTH_OP_INNER(name, kernels, ...) {&fth__op_##name, kernels, true},
#include <fathom/ops.def>
};
enum { OPS = sizeof ops / sizeof ops[0] };

static const struct also_row {
    const char *name, *op;
} also[] = {
#define FTH_OP_ALSO(name, op, ...) {#name, #op},
#include <fathom/ops.def>
};
enum { ALSO = sizeof also / sizeof also[0] };

static const struct op_row *row_of(const char *op)
{
    for (int i = 0; i < OPS; i++)
        if (strcmp(ops[i].op->name, op) == 0) return &ops[i];
    return NULL;
}

/* "integers" for "u8 u16 i32 i64", and so on; "all" for everything. */
static void put_dtypes(const char *list)
{
    static const struct {
        const char *word, *dtypes;
    } groups[] = {{"all", "bool u8 u16 u32 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128 "},
                  {"integers", "u8 u16 u32 i8 i16 i32 i64 "},
                  {"reals", "f16 bf16 f32 f64 "},
                  {"complex", "c64 c128 "}};
    const char *before = "";
    while (*list) {
        size_t taken = 0;
        for (size_t k = 0; k < sizeof groups / sizeof groups[0] && !taken; k++)
            if (strncmp(list, groups[k].dtypes, strlen(groups[k].dtypes)) == 0) {
                printf("%s%s", before, groups[k].word);
                taken = strlen(groups[k].dtypes);
            }
        if (!taken) {
            const size_t n = strcspn(list, " ");
            printf("%s%.*s", before, (int)n, list);
            taken = n + 1;
        }
        before = " ";
        list += taken;
    }
}

static void put_support(fth_context *ctx, int i)
{
    char list[128] = "";
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        if (doctor_supports(ctx, i, doctor_dtypes[t])) {
            strcat(list, fth_dtype_name(doctor_dtypes[t]));
            strcat(list, " ");
        }
    put_dtypes(list);
}

/* A text in a cell of a table. */
static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == (char)124) putchar(92);
        putchar(*text);
    }
}

static void put_also(const char *op)
{
    const char *before = "; also ";
    for (int i = 0; i < ALSO; i++)
        if (strcmp(also[i].op, op) == 0) {
            printf("%s`fth_%s`", before, also[i].name);
            before = ", ";
        }
}

static void put_elementwise(fth_context *ctx)
{
    printf("## Elementwise\n\n| builder | operands | dtypes |\n|---|---|---|\n");
    for (int i = 0; fth_sample_at(i) && !fth_sample_at(i)->text; i++) {
        printf("| `fth_%s` | %d | ", fth_sample_at(i)->name, fth__ew_info((fth_ew)i)->arity);
        put_support(ctx, i);
        printf(" |\n");
    }
}

static void put_others(fth_context *ctx)
{
    const char *last = "";
    printf("\n## Others\n\n| builder | what | dtypes | kernels on CUDA | gradient | sample |\n"
           "|---|---|---|---|---|---|\n");
    for (int i = 0; fth_sample_at(i); i++) {
        const fth_sample *s = fth_sample_at(i);
        const struct op_row *row = row_of(s->op);
        if (!s->text || !row) continue;
        printf("| `fth_%s`", s->name);
        if (strcmp(last, s->op) != 0) put_also(s->op);
        last = s->op;
        printf(" | ");
        put_cell(row->op->brief);
        printf(" | ");
        put_support(ctx, i);
        printf(" | ");
        put_dtypes(row->kernels);
        printf(" | %s | `%s` |\n", row->op->vjp ? "yes" : "", s->text);
    }
}

static void put_inner(void)
{
    printf("\n## Inner operations\n\nWhat casts, gradients and the planner make, and what several "
           "builders above share.\n\n| operation | what | kernels on CUDA |\n|---|---|---|\n");
    for (int i = 0; i < OPS; i++) {
        if (!ops[i].inner) continue;
        printf("| `%s`", ops[i].op->name);
        put_also(ops[i].op->name);
        printf(" | ");
        put_cell(ops[i].op->brief);
        printf(" | ");
        put_dtypes(ops[i].kernels);
        printf(" |\n");
    }
}

int main(void)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.threads = 1;
    opt.device = "cpu";
    if (fth_context_create(&ctx, &opt, &err) != FTH_OK) {
        fprintf(stderr, "gen_ops_doc: %s\n", err.text);
        return 1;
    }
    printf(
        "# Operations\n\n"
        "<!-- written by tools/gen_ops_doc: make docs -->\n\n"
        "Every operation of the engine: one row in `fathom/ops.def` or `fathom/elementwise.def`. "
        "How "
        "to call each is beside its builder\nin `fathom/ops.h`; how they work together is in [the "
        "engine](engine.md#operations). The dtypes are those that this build plans on the\nCPU; "
        "`fathom doctor --ops` asks the devices of a machine. A sample works on `x [i j]` of dtype "
        "`t` in the graph `g`\n(`fathom/samples.h`, `src/ops/samples.c`). What steps, like a "
        "count, has a gradient of zero. A mean is\nthe sum in the dtype of its elements, divided: "
        "of f32 whose sum "
        "is infinite it is infinite, so cast them to f64 (f16 and bf16 are summed in f32).\n\n");
    put_elementwise(ctx);
    put_others(ctx);
    put_inner();
    return fth_context_destroy(ctx, NULL) == FTH_OK && fflush(stdout) == 0 ? 0 : 1;
}
