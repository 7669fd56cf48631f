/* nonbragg.h - scattering without a lattice (model 15.2): an image from F(stol), and F from an
 * image. */
#ifndef BRAGG_NONBRAGG_H
#define BRAGG_NONBRAGG_H

#include "../experiment/experiment.h"
#include "../ops/diffuse/diffuse.h"
#include "../read/stol.h"

/* Declares axes and inputs in g; the crystal of the experiment is ignored. */
br_diffuse br_diffuse_inputs(fth_graph *g, const br_experiment *e, const br_stol *stol);

/* ---- pooling of amplitudes ---- */

/* Pooled pixels of a table row. */
typedef struct br_pool {
    int64_t n;
    double mean, rmsd, median, mad; /* mean and rmsd of the values that were not rejected */
} br_pool;
/* Of n numbers, which are reordered. Those further from the median than five times the standard
 * deviation estimated from the median absolute deviation are left out of mean and rmsd with
 * `reject`. */
br_pool br_pool_of(float *v, int64_t n, bool reject);

#endif
