/* around.c - two ways to read a value around the ends of an axis.
 *
 * Rolled values and windows that wrap are concatenations of slices. A program can read such a value
 * where it lies, but then needs the whole axis, since beyond one end lies the other. Or slices and
 * their concatenation are made, which takes a copy and streams: the ends are made first, in a pass
 * of their own. The bits are the same. What is in memory anyway is always read where it lies. Else
 * the first way is taken where everything fits at once, the quicker one where it does not, and the
 * second where passes are asked for; any of them that fits.
 */
#include "plan/plan.h"

#include "ops/border.h"
#include "plan/look.h"

/* Where passes are asked for, or shared by ranks, an axis that is needed whole is in their way. */
static bool wants_passes(const fth_plan *p)
{
    return p->sharing || p->limits.min_pieces != 0 || (p->limits.stream && p->limits.stream[0]);
}

bool fth__plan_first_around(const fth_plan *p)
{
    return !wants_passes(p);
}

/* Some program reads so what is in memory for that alone; or would, where a copy is made. */
static bool has_choice(const fth_plan *p)
{
    fth__look_cycle cycle;
    for (int64_t i = 0; i < p->n_units; i++) {
        const fth_node *n = p->unit[i].node;
        if (!p->around && fth__look_around(p, n, &cycle)) return true;
        const fth__program *pr = n->op == &fth__op_fused ? n->attr : NULL;
        for (int k = 0; p->around && pr && k < pr->n_views; k++)
            if (pr->view[k].border == FTH__BORDER_WRAP &&
                !fth__plan_resident(p, n->in_val[pr->view[k].in].id))
                return true;
    }
    return false;
}

/* `sharing`: as it was before a search gave it up. `draft`: a refusal is not the last word. */
static fth_status search_with(fth_plan *p, bool sharing, bool around, bool draft, fth_err *err)
{
    p->sharing = sharing;
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
    const bool around = p->around, sharing = p->sharing, passes = wants_passes(p);
    if (p->limits.no_fuse || !has_choice(p)) return fth__plan_search(p, err);
    fth_err one = {0}, other = {0};
    const fth_status first = search_with(p, sharing, around, true, &one);
    if (first == FTH_OK && (p->at_once || passes)) return FTH_OK;
    if (first != FTH_OK && !is_refusal(first)) return fail(&one, err);
    const double seconds = p->seconds + p->touch_seconds;
    const fth_status second = search_with(p, sharing, !around, first == FTH_OK, &other);
    if (second != FTH_OK && !is_refusal(second)) return fail(&other, err);
    if (second == FTH_OK && (first != FTH_OK || p->seconds + p->touch_seconds < seconds))
        return FTH_OK;
    if (first == FTH_OK) return search_with(p, sharing, around, false, err);
    const uint64_t enough = p->refused; /* of the two refusals the one that asks for less */
    one = (fth_err){0};
    const fth_status last = search_with(p, sharing, around, false, &one);
    if (last == FTH_OK) return FTH_OK;
    return fail(is_refusal(last) && p->refused >= enough ? &other : &one, err);
}
