/* tables.c - params.def and quirks.def as arrays. */
#include "scene.h"

const br_param_info br_params[BR_PARAMS] = {
#define BR_PARAM(id, name, unit, scale, doc) [BR_##id] = {name, unit, scale, doc},
#include "params.def"
#undef BR_PARAM
};

const br_quirk_info br_quirks[BR_QUIRKS] = {
#define BR_QUIRK(id, name, on, off) [BR_QUIRK_##id] = {name, on, off},
#include "quirks.def"
#undef BR_QUIRK
};
