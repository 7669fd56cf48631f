/* asking.h - a long loop of a kernel says how far it is, and asks whether to go on.
 *
 * The kernel says once how much there is, in elements or whatever its parts are made of, then
 * before each part how much that is. Only now and then is the team asked, so parts may be short.
 */
#ifndef FTH_OPS_ASKING_H
#define FTH_OPS_ASKING_H

#include <fathom/op.h>

typedef struct fth__asking {
    fth_team *team;
    double all, done;  /* of the kernel's work; all 0: not known, it only asks */
    double often, due; /* work between two questions; when the next one is due */
    bool off;          /* the run is cancelled */
} fth__asking;

/* Between two questions, which take some 30 ns each: elements of a loop that takes nanoseconds for
 * one, and products of matrices, of which a nanosecond makes some. */
enum { FTH__ASK_ELEMENTS = 1 << 16, FTH__ASK_PRODUCTS = 1 << 22 };

static inline fth__asking fth__asking_begin(const fth_call *call, double all, double often)
{
    return (fth__asking){.team = call->team, .all = all, .often = often, .due = often};
}

/* The same of a loop over the elements of in[0], some times over. */
static inline fth__asking fth__asking_elements(const fth_call *call, double times)
{
    double all = times;
    for (int d = 0; d < call->node->in[0].n_axes; d++) all *= (double)call->in[0].extent[d];
    return fth__asking_begin(call, all, FTH__ASK_ELEMENTS);
}

/* Before a part of so much work; false: leave, the outputs are never used. */
static inline bool fth__asking_on(fth__asking *a, double work)
{
    if (a->done + work >= a->due && !a->off) {
        a->due = a->done + a->often;
        if (a->all > 0.0) {
            fth_team_until(a->team, a->done / a->all);
            fth_team_until(a->team, (a->done + work) / a->all);
        }
        a->off = fth_team_cancelled(a->team);
    }
    a->done += work;
    return !a->off;
}

/* Before an fth_team_run that is so much work: it asks by itself. */
static inline void fth__asking_loop(fth__asking *a, double work)
{
    fth_team_until(a->team, a->done / a->all);
    a->done += work;
    a->due = a->done + a->often;
    fth_team_until(a->team, a->done / a->all);
}

#endif
