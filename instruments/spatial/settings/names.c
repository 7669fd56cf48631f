/* names.c - the table of models. */
#include "../spatial.h"

const sp_kind_info sp_kinds[SP_KIND_COUNT] = {
#define SP_MODEL(id, name, spatial, groups, local, prior) {name, spatial, groups, local, prior},
#include "../models.def"
#undef SP_MODEL
};
