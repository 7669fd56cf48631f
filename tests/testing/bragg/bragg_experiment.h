/* testing/bragg/bragg_experiment.h - an experiment made of a scene that was set up by hand. */
#ifndef FATHOM_TESTING_BRAGG_EXPERIMENT_H
#define FATHOM_TESTING_BRAGG_EXPERIMENT_H

#include "instruments/bragg/experiment/experiment.h"
#include "testing/bragg/bragg.h"

/* The arrays stay those of the case. Ended by te_empty, also after a failure. */
static inline fth_status te_fill(br_experiment *e, fth_mem *mem, const tb_case *c, fth_err *err)
{
    const br_scene *s = &c->s;
    fth_tensor *mask = NULL;
    memset(e, 0, sizeof *e);
    e->mem = mem;
    e->scene = *s;
    memcpy(e->param, c->param, sizeof e->param);
    br_place(s, e->param, &e->placed);
    const int64_t some[3] = {s->h_max - s->h_min + 2, s->k_max - s->k_min + 2,
                             s->l_max - s->l_min + 2},
                  none[3] = {1, 1, 1};
    const int64_t source[2] = {s->sources, BR_SRC_COLUMNS}, rotations[2] = {s->mosaics, 9},
                  all[2] = {s->slow, s->fast};
    FTH_TRY(fth_tensor_wrap(&e->table, mem, "table", FTH_F64, 3, s->hkls > 0 ? some : none,
                            c->table, err));
    FTH_TRY(fth_tensor_wrap(&e->source, mem, "source", FTH_F64, 2, source, c->source, err));
    FTH_TRY(fth_tensor_wrap(&e->mosaic_rotation, mem, "mosaic_rotation", FTH_F64, 2, rotations,
                            c->mosaic_rotation, err));
    if (c->mask) {
        FTH_TRY(fth_tensor_wrap(&mask, mem, "mask", FTH_U16, 2, all, c->mask, err));
        e->mask = fth_tensor_source(mask);
    }
    e->lambda0 = e->param[BR_LAM];
    e->out.adc = 40;
    e->compat_c = true;
    e->roi_typed[1] = s->fast;
    e->roi_typed[3] = s->slow;
    br_ran1_clear(&e->random);
    e->random.seed = e->noise_seed = -1;
    return FTH_OK;
}

static inline void te_empty(br_experiment *e)
{
    fth_tensor_release(e->table);
    fth_tensor_release(e->source);
    fth_tensor_release(e->mosaic_rotation);
    if (e->mask.kind) fth_tensor_release(e->mask.self);
    memset(e, 0, sizeof *e);
}

#endif
