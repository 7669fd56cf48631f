/* verb.c - `fathom ptycho evaluate RECON TRUTH`. */
#include "../settings/verb.h"
#include "evaluate.h"

/* Output folder: --out, or that of the reconstruction. */
static fth_status find_folder(char folder[FTH_PATH], const char *recon, fth_flag_value_fn *value,
                              void *user, const fth_config *cfg, fth_err *err)
{
    char plain[FTH_PATH];
    if (value(user, "out") || value(user, "config")) {
        snprintf(folder, FTH_PATH, "%s", fth_config_text(cfg, "output_dir"));
        return FTH_OK;
    }
    snprintf(plain, sizeof plain, "%s", recon);
    return fth_path_parent(folder, plain, err);
}

/* For --plan: the objects, and about 22 values of 8 bytes per pixel. */
static fth_status plan(fth_answer *a, fth_context *ctx, char *const *arg, fth_err *err)
{
    pt_recon r = {0};
    FTH_TRY(pt_recon_open(&r, fth_context_mem(ctx), arg[0], err));
    const uint64_t pixels = (uint64_t)(r.object.rows * r.object.cols);
    fth_answer_memory(a, 2 * pt_recon_bytes(&r) + pixels * 174 + (5u << 20),
                      "objects, transforms and metrics");
    pt_recon_close(&r);
    return FTH_OK;
}

static void list_files(fth_answer *a, const char *folder, char *const *arg)
{
    static const char *const name[] = {PT_METRICS_JSON, PT_METRICS_CSV, PT_FRC_CSV, PT_FRC_PNG,
                                       PT_EVALUATION_PNG};
    char path[FTH_PATH];
    fth_answer_file(a, FTH_FILE_INPUT, arg[0], -1, "reconstruction");
    fth_answer_file(a, FTH_FILE_INPUT, arg[1], -1, "truth");
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (fth_path_join(path, folder, name[i], NULL) == FTH_OK)
            fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, NULL);
}

static fth_status work(const pt_call *call, fth_err *err)
{
    char *const *arg = call->arg;
    fth_answer *a = call->answer;
    char folder[FTH_PATH];
    pt_found found;
    const pt_evaluation e = {
        .ctx = call->ctx, .config = call->cfg, .recon = arg[0], .truth = arg[1], .folder = folder};
    FTH_TRY(find_folder(folder, arg[0], call->value, call->user, call->cfg, err));
    list_files(a, folder, arg);
    if (a->plan) return plan(a, call->ctx, arg, err);
    FTH_TRY(pt_evaluate(&e, &found, err));
    const pt_verdict v = pt_found_verdict(&found);
    pt_verdict_print(&v, a->out);
    fprintf(a->notes, "metrics, curves and figures are in %s\n", folder);
    if (a->json) pt_verdict_json(&v, fth_answer_facts(a));
    pt_found_clear(&found);
    return FTH_OK;
}

PT_RUN(2, "a reconstruction and a truth are", "fathom ptycho evaluate RECON TRUTH --out DIR", work)

static const fth_flag flags[] = {{.name = "out",
                                  .value = FTH_FLAG_DIR,
                                  .doc = "folder of the results; default: the folder of RECON"},
#define DATA(...) __VA_ARGS__,
#define EVALUATE(...) __VA_ARGS__,
#include "../settings/flags.inc"
                                 {0}};

const fth_verb pt_verb_evaluate = {
    .name = "evaluate",
    .args = "RECON TRUTH",
    .brief = "compare a reconstruction with a truth, with its patterns, or with its other half",
    .doc =
        "RECON is a reconstruction.npz, a product HDF5 file or a .npy; TRUTH the same, or a scan "
        "with objectGuess. FILE:NAME takes the array NAME of a file.\n"
        "\n"
        "The truth is cropped to the scanned part, the reconstruction registered to it to a "
        "fiftieth of a pixel, phases are aligned and amplitudes scaled; the metrics are MAE, MSE, "
        "PSNR, SSIM, MS-SSIM "
        "and the Fourier ring correlation, each for amplitude and phase. A metric that is "
        "undefined, such as SSIM with a constant truth, is NaN, and 'undefined' says why.\n"
        "\n"
        "A scan without an object is compared by its patterns: R-factor, Fourier error and "
        "Poisson deviance; --residuals true does that beside a truth. With --halves true both "
        "files are reconstructions of half of the patterns, and their ring correlation gives the "
        "resolution.\n"
        "\n"
        "Files: metrics.json, metrics.csv, frc_curves.csv, frc.png, evaluation.png.",
    .max_args = 2,
    .flag = flags,
    .heeds = "plan json quiet seed",
    .run = run};
