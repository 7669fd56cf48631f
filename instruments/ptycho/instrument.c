/* instrument.c - the instrument in one struct: this is what the program sees. */
#include "ptycho.h"

static const fth_verb *const verbs[] = {
#define PT_VERB(name) &pt_verb_##name,
#include "verbs.def"
#undef PT_VERB
};

static const fth_stage stages[] = {
#include "stages.def"
};

static fth_status model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err)
{
    (void)err;
    snprintf(name, bytes, "%s", fth_config_text(cfg, "model"));
    return FTH_OK;
}

const fth_instrument fth_instrument_ptycho = {
    .name = "ptycho",
    .brief = "ptychography: object and probe from overlapping diffraction patterns",
    .schema = &pt_schema,
    .gpu = true, /* every operation of ops/ has a device kernel */
    .stage = stages,
    .n_stages = sizeof stages / sizeof stages[0],
    .general = pt_is_general,
    .expand = pt_expand,
    .model = model_name,
    .verb = verbs,
    .n_verbs = sizeof verbs / sizeof verbs[0],
};
