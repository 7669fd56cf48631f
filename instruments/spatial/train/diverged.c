/* diverged.c - how a training ended, by its objective: trainings that became worse than their
 * start.
 *
 * A rate that is too high can throw the parameters far away in a few steps. All numbers stay finite
 * and the falling rate of a cycle never brings them back, so nothing else would tell.
 */
#include "train.h"

#include <inttypes.h>

double sp_train_last_tenth(const sp_train *t)
{
    const double *elbo = fth_tensor_data(t->m.history);
    const int64_t all = t->m.iterations, tenth = (all + 9) / 10;
    double sum = 0;
    for (int64_t i = all - tenth; i < all; i++) sum += elbo[i] / (double)tenth;
    return sum;
}

int64_t sp_train_diverged(const sp_train *t)
{
    enum { LEAST = 20 }; /* iterations: the objective of fewer says little where it is noisy */
    const double *elbo = fth_tensor_data(t->m.history);
    int64_t last = t->m.iterations;
    if (last < LEAST || sp_train_last_tenth(t) >= elbo[0]) return 0;
    while (last > 1 && elbo[last - 1] < elbo[0]) last--;
    return last + 1;
}

void sp_train_warn_diverged(const sp_train *t)
{
    const int64_t since = sp_train_diverged(t);
    if (since == 0) return;
    const double *elbo = fth_tensor_data(t->m.history);
    fth_stage_say(t->call,
                  "warning: training diverged: since iteration %" PRId64
                  " the objective is below %.6g, that of the first one; it ended at %.6g. Lower "
                  "training.learning_rate, which was %g",
                  since, elbo[0], sp_train_last_tenth(t), t->set.learning_rate);
}
