/* around.c - two ways to read a value around the ends of an axis.
 *
 * Rolled values and windows that wrap are concatenations of slices. A program can read such a value
 * where it lies, but then needs the whole axis, since beyond one end lies the other; slices and
 * their concatenation take a copy, and stream. The bits are the same. In memory anyway it is always
 * read where it lies; else that is tried first, and the copy where it does not fit, or fits only
 * with values made again or spilled.
 */
#include "plan/plan.h"

#include "ops/border.h"

/* Where passes are asked for, or shared by ranks, an axis that is needed whole is in their way. */
bool fth__plan_may_go_around(const fth_plan *p)
{
    const bool passes = p->limits.stream && p->limits.stream[0];
    return !passes && p->limits.min_pieces == 0 && !p->sharing;
}

/* Some program reads so what is in memory for that alone. */
static bool goes_around(const fth_plan *p)
{
    for (int64_t i = 0; p->around && i < p->n_units; i++) {
        const fth_node *n = p->unit[i].node;
        const fth__program *pr = n->attr;
        for (int k = 0; n->op == &fth__op_fused && k < pr->n_views; k++)
            if (pr->view[k].border == FTH__BORDER_WRAP &&
                !fth__plan_resident(p, n->in_val[pr->view[k].in].id))
                return true;
    }
    return false;
}

/* `draft`: a refusal is not the last word. */
static fth_status search_with(fth_plan *p, bool around, bool draft, fth_err *err)
{
    if (p->around != around) {
        p->around = around;
        FTH_TRY(fth__plan_collect_again(p, err));
    }
    p->draft = draft;
    p->refused = UINT64_MAX;
    return fth__plan_search(p, err);
}

static bool is_refusal(fth_status s)
{
    return s == FTH_E_NO_FIT || s == FTH_E_SCRATCH;
}

static fth_status fail(const fth_err *what, fth_err *err)
{
    if (err && err->status == FTH_OK) *err = *what;
    return what->status;
}

fth_status fth__plan_settle(fth_plan *p, fth_err *err)
{
    if (!goes_around(p)) return fth__plan_search(p, err);
    fth_err in_place = {0}, copied = {0};
    const fth_status first = search_with(p, true, true, &in_place);
    if (first == FTH_OK && p->recomputed == 0 && p->spilled == 0) return FTH_OK;
    if (first != FTH_OK && !is_refusal(first)) return fail(&in_place, err);
    const double seconds = p->seconds + p->touch_seconds;
    const fth_status second = search_with(p, false, first == FTH_OK, &copied);
    if (second != FTH_OK && !is_refusal(second)) return fail(&copied, err);
    if (second == FTH_OK && (first != FTH_OK || p->seconds + p->touch_seconds <= seconds))
        return FTH_OK;
    if (first == FTH_OK) return search_with(p, true, false, err);
    const uint64_t enough = p->refused; /* of the two refusals the one that asks for less */
    in_place = (fth_err){0};
    const fth_status last = search_with(p, true, false, &in_place);
    if (last == FTH_OK) return FTH_OK;
    return fail(is_refusal(last) && p->refused >= enough ? &copied : &in_place, err);
}
