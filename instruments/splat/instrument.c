/* instrument.c - the instrument in one struct: this is what the program sees. */
#include "splat.h"

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("0", "outputs/splat"),
};

static const fth_schema schema = {
    .name = "splat",
    .brief = "3D Gaussian splatting: captures, models and images.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
};

static const fth_verb *const verbs[] = {
#define GS_VERB(name) &gs_verb_##name,
#include "verbs.def"
#undef GS_VERB
};

const fth_instrument fth_instrument_splat = {
    .name = "splat",
    .brief = "3D Gaussian splatting: captures of cameras, models, their images and gradients",
    .schema = &schema,
    .verb = verbs,
    .n_verbs = sizeof verbs / sizeof verbs[0],
};
