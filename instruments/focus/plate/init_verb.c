/* init_verb.c - `fathom focus init-plate`: an empty workbook to be filled in. */
#include "init_verb.h"

#include "table.h"

#include <string.h>
#include <strings.h>

static fth_status answer(fth_answer *a, fth_mem *mem, const char *path, fth_err *err)
{
    if (!a->plan) FTH_TRY(fo_plate_save_template(mem, path, err));
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "workbook of a plate");
    if (a->plan) fth_answer_memory(a, 1 << 20, "a workbook is small");
    if (!a->plan)
        fprintf(a->notes,
                "%s: fill in B2:M9 of each sheet; wells without a start_age_hpf are left out\n",
                path);
    return FTH_OK;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    const char *path = value(user, "output");
    fth_answer a;
    (void)n_args, (void)arg;
    if (!path)
        return FTH_FAIL(err, FTH_E_COMMAND, "init-plate needs -o FILE: EXP_well_metadata.xlsx");
    const size_t n = strlen(path);
    if (n < 5 || strcasecmp(path + n - 5, ".xlsx") != 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "%s: the name of a workbook must end in .xlsx", path);
    if (fth_path_exists(path))
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "%s exists; a workbook that was filled in is not replaced", path);
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    return fth_answer_end(&a, answer(&a, fth_context_mem(ctx), path, err), err);
}

static const fth_flag flags[] = {{.name = "output",
                                  .value = FTH_FLAG_FILE,
                                  .letter = 'o',
                                  .doc = "workbook to write, ending in .xlsx"},
                                 {0}};

const fth_verb fo_verb_init_plate = {.name = "init-plate",
                                     .args = "",
                                     .brief = "write an empty workbook for the table of a plate",
                                     .doc = "One sheet for each column of the plate's table, with "
                                            "the letters of rows and the numbers of "
                                            "columns, and one for the series number of each well. "
                                            "Put it into metadata/well_metadata as "
                                            "EXP_well_metadata.xlsx.",
                                     .flag = flags,
                                     .heeds = "plan json quiet",
                                     .run = run};
