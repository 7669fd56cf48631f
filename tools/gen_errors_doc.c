/* gen_errors_doc.c - write docs/errors.md from the table of errors.
 *
 * The page is committed, so that it can be read without a build; a test
 * compares it with what this program prints.
 */
#include <stdio.h>

typedef struct row {
    const char *name, *code, *brief, *hint;
    int exit_code;
} row;

static const row rows[] = {
#define FTH_ERROR(name, code, exit, brief, hint) {#name, code, brief, hint, exit},
#include <fathom/errors.def>
#undef FTH_ERROR
};

int main(void)
{
    printf(
        "# Errors\n\n"
        "Made from `include/fathom/errors.def` by `make docs`; do not edit.\n\n"
        "Every error carries a code that never changes its meaning, what was wanted and what was\n"
        "found, and one thing to do next. The text and the hint below are the general ones; the\n"
        "place that failed usually has better.\n\n"
        "| code | status | exit | what happened | what to do |\n"
        "|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        printf("| %s | `FTH_E_%s` | %d | %s | %s |\n", rows[i].code, rows[i].name,
               rows[i].exit_code, rows[i].brief, rows[i].hint);
    return ferror(stdout) ? 1 : 0;
}
