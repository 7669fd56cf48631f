/* plateau.c - a learning rate that is lowered when the objective stops growing. */
#include <fathom/optim.h>

#include <math.h>

/* Weight of the last value in the average, which then follows the last 20 or so: single batches do
 * not reset the patience of 200. */
static const double newest = 0.05;

fth_plateau fth_plateau_default(double rate)
{
    return (fth_plateau){
        .factor = 0.8, .threshold = 1e-4, .min_rate = 1e-5, .patience = 200, .rate = rate};
}

double fth_plateau_step(fth_plateau *p, double value)
{
    p->average = p->seen == 0 ? value : (1.0 - newest) * p->average + newest * value;
    const bool better = p->seen == 0 || p->average > p->best + p->threshold * fabs(p->best);
    p->seen++;
    p->waited = better ? 0 : p->waited + 1;
    if (better) p->best = p->average;
    if (p->waited > p->patience) {
        p->waited = 0;
        const double lower = fmax(p->rate * p->factor, p->min_rate);
        p->rate = fmin(p->rate, lower); /* one that starts below the least is left alone */
    }
    return p->rate;
}
