/* verb.c - `fathom ptycho compare TRUTH NAME=RECON ...`. */
#include "../settings/verb.h"
#include "compare.h"

static fth_status work(pt_comparison *c, fth_answer *a, fth_err *err)
{
    static const char *const name[] = {"comparison_plot.png", "comparison_metrics.csv", PT_FRC_PNG,
                                       "reconstructions.npz", "reconstructions_aligned.npz"};
    char path[FTH_PATH];
    uint64_t bytes = 0;
    fth_mem *mem = fth_context_mem(c->ctx);
    fth_answer_file(a, FTH_FILE_INPUT, c->truth, -1, "truth");
    for (int i = 0; i < c->n; i++)
        fth_answer_file(a, FTH_FILE_INPUT, c->model[i].path, -1, "%s", c->model[i].name);
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        FTH_TRY(fth_path_join(path, c->folder, name[i], err));
        fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, NULL);
    }
    if (a->plan) {
        for (int i = 0; i < c->n; i++) {
            pt_recon r;
            FTH_TRY(pt_recon_open(&r, mem, c->model[i].path, err));
            bytes += pt_recon_bytes(&r) + (uint64_t)(r.object.rows * r.object.cols) * 16;
            if (i == 0) bytes += (uint64_t)(r.object.rows * r.object.cols) * 190;
            pt_recon_close(&r);
        }
        fth_answer_memory(a, bytes, "objects, transforms and metrics of one at a time");
        return FTH_OK;
    }
    c->out = a->out;
    c->facts = a->json ? fth_answer_facts(a) : NULL;
    FTH_TRY(pt_compare(c, err));
    fprintf(a->notes, "tables, figures and arrays are in %s\n", c->folder);
    return FTH_OK;
}

static fth_status compare_all(const pt_call *call, fth_err *err)
{
    pt_candidate model[PT_MOST_COMPARED];
    if (call->n_args < 2 || call->n_args > 1 + PT_MOST_COMPARED) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "a truth and 1 to %d reconstructions are expected, not %d words",
                 (int)PT_MOST_COMPARED, call->n_args);
        fth_err_hint(err, "write 'fathom ptycho compare TRUTH NAME=RECON NAME=RECON --out DIR'");
        return FTH_E_COMMAND;
    }
    for (int i = 1; i < call->n_args; i++)
        FTH_TRY(pt_candidate_parse(&model[i - 1], call->arg[i], err));
    pt_comparison c = {.ctx = call->ctx,
                       .config = call->cfg,
                       .truth = call->arg[0],
                       .folder = fth_config_text(call->cfg, "output_dir"),
                       .model = model,
                       .n = call->n_args - 1};
    return work(&c, call->answer, err);
}

PT_RUN(-1, NULL, NULL, compare_all)

static const fth_flag flags[] = {
    {.name = "out", .value = FTH_FLAG_DIR, .doc = "folder of the results (output_dir)"},
#define DATA(...) __VA_ARGS__,
#define EVALUATE(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {0}};

const fth_verb pt_verb_compare = {
    .name = "compare",
    .args = "TRUTH NAME=RECON ...",
    .brief = "compare several reconstructions with one truth, side by side",
    .doc = "Each RECON is a file as 'evaluate' takes it; without NAME= it is named after its "
           "folder or file. All are registered to the truth and compared as 'evaluate' does.\n"
           "\n"
           "Files: comparison_plot.png (phases above, amplitudes below, the truth last, colours "
           "from its 10th to its 90th percentile), comparison_metrics.csv, NAME_frc_curves.csv, "
           "frc.png, reconstructions.npz (as stored) and reconstructions_aligned.npz (as they "
           "are compared).",
    .max_args = 1 + PT_MOST_COMPARED,
    .flag = flags,
    .heeds = "plan json quiet seed",
    .run = run};
