/* kmeans.h - vector quantisation: k-means of scalars and of rows.
 *
 * The same numbers give the same result: random starts come from the engine's stream 7, sums are in
 * the order of the rows.
 */
#ifndef SPLAT_MODEL_KMEANS_H
#define SPLAT_MODEL_KMEANS_H

#include <fathom/memory.h>

enum { GS_CODES = 256, GS_KMEANS_ROUNDS = 10 }; /* rounds: the default of sog_iterations */

/* `codes` in ascending order, and the nearest of them for each value. Values are finite. Starts
 * from even steps between the least and the largest; a code that no value has goes to where the
 * error is largest. */
fth_status gs_kmeans_line(fth_mem *mem, const float *value, int64_t n, int rounds,
                          float codes[GS_CODES], uint8_t *index, fth_err *err);

/* k rows of `dims` numbers, at most 65536, and one of them for each of n rows. Rows are parted into
 * about sqrt(k) groups first, and each group gets codes by the rows it has, so that the time is
 * that of sqrt(k) distances a row. With k >= n every row stands for itself. */
fth_status gs_kmeans_rows(fth_mem *mem, const float *row, int64_t n, int dims, int64_t k,
                          int rounds, float *centroid, uint16_t *label, fth_err *err);

#endif
