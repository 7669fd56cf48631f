/* compare.c - see compare.h. */
#include "compare.h"

#include "loss.h"
#include "mask.h"

/* The mean difference of alpha where the mask keeps a pixel. */
static fth_val alpha_term(fth_graph *g, const gs_compare *with, fth_val image, fth_val alpha)
{
    fth_val apart = fth_abs(fth_sub(fth_out(image, 1), alpha));
    fth_val mean = fth_mean(apart, "i j");
    if (fth_val_ok(with->mask)) {
        const fth_val kept = fth_ge(with->mask, fth_const_i64(g, FTH_U8, GS_MASK_LEAST)),
                      n = fth_cast(fth_count(kept, "i j"), FTH_F32);
        apart = fth_select(kept, apart, fth_const(g, FTH_F32, 0));
        mean = fth_div(fth_sum(apart, "i j"), fth_max(n, fth_const(g, FTH_F32, 1)));
    }
    return fth_mul(fth_cast(mean, FTH_F64), fth_const(g, FTH_F64, with->lambda_alpha));
}

fth_val gs_compare_of(fth_graph *g, const gs_compare *with, fth_val image, fth_val shown,
                      fth_val *photo)
{
    const bool seen_through = fth_val_ok(with->alpha);
    fth_val target = with->target, alpha = {0};
    if (seen_through) {
        alpha = fth_div(fth_cast(with->alpha, FTH_F32), fth_const(g, FTH_F32, 255));
        target = fth_add(fth_mul(fth_sub(target, with->ground), alpha), with->ground);
    }
    *photo = fth_val_ok(with->mask) ? gs_loss_masked(g, with->lambda, shown, target, with->mask)
                                    : gs_loss_of(g, with->lambda, shown, target);
    return seen_through ? fth_add(*photo, alpha_term(g, with, image, alpha)) : *photo;
}
