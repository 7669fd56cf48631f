/* blocks.h - gradients that sum over the rows of an image.
 *
 * Their last inputs are images: cotangents, weights. Rows are taken in blocks: a block is summed
 * from its first pixel to its last, blocks are added in order, so the result does not depend on
 * chunks or workers.
 */
#ifndef BRAGG_OPS_BLOCKS_H
#define BRAGG_OPS_BLOCKS_H

#include "../render/op.h"

int br_bar_in(const fth_node *node); /* the first input that is an image; at most BR_BARS follow */
/* All inputs as a render has them, and images f64 [slow fast]. */
fth_status br_bar_check(const fth_node *node, fth_err *err);
void br_bar_relation(const fth_node *node, int in, int dim, fth_relation *out);
int64_t br_bar_grid(const fth_node *node, int in, int dim);
double br_bar_samples(const fth_call *call);

enum { BR_BARS = 2 };
typedef struct br_bars { /* of a row: data[k][i * step[k]] belongs to its pixel i */
    const double *data[BR_BARS];
    int64_t step[BR_BARS];
} br_bars;

/* A sum over a block, computed by one worker in `part`. */
typedef struct br_blocks {
    const fth_call *call;
    double *part; /* `size` doubles for each worker of the call */
    int64_t size;
    void *user;
    void (*start)(void *user, double *part); /* sets a sum to 0 */
    void (*row)(void *user, const br_row *row, const br_bars *bars, double *part); /* adds one */
    void (*add)(void *user, const double *part); /* to the result */
} br_blocks;
void br_blocks_run(br_blocks *b);

#endif
