/* train_import.c - the stage train with --import: a model of the public project in the place of one
 * that is trained. Its files are those of a training that made no steps, so that analyze, figures
 * and --resume go on from them.
 */
#include "../import/pth.h"
#include "train.h"

#include <math.h>

static const char *file_of(const sp_train *t)
{
    return fth_stage_flag_value(t->call, "import");
}

fth_status sp_train_import_settings(sp_train *t, sp_notes *notes, fth_err *err)
{
    sp_pth f;
    if (!file_of(t)) return FTH_OK;
    if (t->replay.npz || fth_stage_flag(t->call, "resume") || fth_stage_flag(t->call, "record"))
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--import takes no steps: it cannot be combined with --replay, --record or "
                        "--resume");
    if (sp_is_natural(&t->set)) {
        FTH_FAIL(err, FTH_E_CONFIG,
                 "--import takes means and deviations, which model.training_mode: natural does not "
                 "have");
        fth_err_hint(err, "set model.training_mode: standard");
        return FTH_E_CONFIG;
    }
    FTH_TRY(sp_pth_open(&f, t->mem, file_of(t), err));
    const fth_status s = sp_pth_settings(&f, &t->set, notes, err);
    sp_pth_close(&f);
    return s;
}

static fth_status fill(sp_train *t, fth_err *err)
{
    sp_pth f;
    FTH_TRY(sp_pth_open(&f, t->mem, file_of(t), err));
    const fth_status s = sp_pth_fill(&f, &t->m, err);
    sp_pth_close(&f);
    return s;
}

fth_status sp_train_import(sp_train *t, fth_err *err)
{
    const int64_t none = 1; /* a history without iterations */
    FTH_TRY(sp_model_create(&t->m, t->mem, &t->set, FTH_F32, false, err));
    FTH_TRY(sp_model_tie(&t->m, &t->data, err));
    FTH_TRY(fth_tensor_create(&t->m.history, t->mem, "history", FTH_F64, 1, &none, err));
    FTH_TRY(sp_train_place(t, err));
    FTH_TRY(fill(t, err));
    t->m.elbo = (double)NAN;
    FTH_TRY(sp_train_write(t, err));
    FTH_TRY(sp_train_save(t, true, err));
    fth_stage_say(t->call, "the model of %s, without training", file_of(t));
    return FTH_OK;
}
