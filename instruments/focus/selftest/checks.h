/* checks.h - what a self-test finds: a line for each check, and how many failed. */
#ifndef FOCUS_SELFTEST_CHECKS_H
#define FOCUS_SELFTEST_CHECKS_H

#include "scene.h"

#include <fathom/fathom.h>

typedef struct fo_checks {
    FILE *out;          /* lines for people */
    fth_json_writer *w; /* a list that is open there; NULL: none is wanted */
    const char *device; /* where the next checks are done */
    int n, failed;
    char failures[400]; /* names of those that failed, as far as they fit */
} fo_checks;
/* One check; `found` says what is wrong with it. */
void fo_check(fo_checks *c, const char *name, bool ok, const char *found, ...) FTH_PRINTF(4, 5);
/* The same of something that could not be done at all. FTH_E_CANCELLED is returned: the user
 * stopped it. */
FTH_MUST_USE fth_status fo_check_failed(fo_checks *c, const char *name, const fth_err *why);

/* What a fusion of the scene gives. */
typedef struct fo_expected {
    const char *name;
    fth_dtype dtype;
    const char *options; /* "method=log filter-size=7" */
    double lo, hi;
    uint32_t stack, image, index, depth; /* CRC-32; 0: there is none */
} fo_expected;
extern const fo_expected fo_expected_table[]; /* ends with a row that has no name */

/* Every row of the table; the same bits of three stacks at once, cut into pieces; memory as
 * planned. On the device of `ctx`. */
FTH_MUST_USE fth_status fo_check_fusions(fo_checks *c, fth_context *ctx, const fo_test_scene *scene,
                                         const fo_expected *table, fth_err *err);
/* What is written is read back, in every format; `folder` is there and empty. */
FTH_MUST_USE fth_status fo_check_formats(fo_checks *c, fth_mem *mem, const fo_test_scene *scene,
                                         const char *folder, fth_err *err);

#endif
