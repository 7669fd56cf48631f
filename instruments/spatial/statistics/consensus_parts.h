/* consensus_parts.h - steps of a consensus on spectra whose inner products are known. */
#ifndef SPATIAL_CONSENSUS_PARTS_H
#define SPATIAL_CONSENSUS_PARTS_H

#include "consensus.h"

/* k-means of the spectra with label >= 0 into c->factors clusters, the best of ten starts; labels
 * are replaced, and numbered by their first spectrum. At least as many spectra as clusters. */
void sp_spectra_kmeans(sp_consensus *c);
/* Numbers of doubles and integers of its room. */
int64_t sp_spectra_room(int64_t n, int64_t factors);
int64_t sp_spectra_list(int64_t n, int64_t factors);
/* Mean distance of each spectrum to its nearest ones, three tenths of the restarts. */
void sp_spectra_density(sp_consensus *c);
/* Silhouettes of labelled spectra; returns their mean. */
double sp_spectra_silhouette(sp_consensus *c);
/* The median of n numbers, which are sorted. */
double sp_median(double *x, int64_t n);

#endif
