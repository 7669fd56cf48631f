/* slots.h - the tensors of a model as one list, over which creating, writing and reading loop. */
#ifndef SPATIAL_SLOTS_H
#define SPATIAL_SLOTS_H

#include "model.h"

#define SP_FORMAT "fathom-spatial/1"

typedef enum sp_slot_use {
    SP_SLOT_PARAM,
    SP_SLOT_FIRST, /* moments of the optimiser: optional in a file */
    SP_SLOT_SECOND,
    SP_SLOT_FIXED,    /* Z, neighbours: determined by the data */
    SP_SLOT_DISTANCE, /* only when groups are not equally far apart              */
    SP_SLOT_HISTORY,
    SP_SLOT_STABILITY /* only where there were restarts */
} sp_slot_use;

typedef struct sp_slot {
    char name[24];
    const char *axes; /* NULL: not in this model */
    fth_dtype dtype;
    sp_slot_use use;
    fth_tensor **at;
    const fth_source *file; /* of moments; NULL: none */
} sp_slot;

/* Rows of `slot` for a model with these settings and m->real. */
enum { SP_SLOTS = 3 * SP_PARAMS + 7 };
void sp_model_slots(sp_model *m, sp_slot slot[SP_SLOTS]);
/* Sizes of the axes; how many there are. */
int sp_slot_sizes(const sp_settings *s, const char *axes, int64_t size[FTH_MAX_AXES]);
/* The tensor of a slot, its pages untouched. */
fth_status sp_slot_create(sp_model *m, const sp_slot *slot, fth_err *err);
#endif
