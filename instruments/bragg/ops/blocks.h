/* blocks.h - gradients that sum over the rows of an image.
 *
 * Their last input is the cotangents of the image. Rows are taken in blocks: a block is summed from
 * its first pixel to its last, blocks are added in their order, so how rows come and who sums them
 * does not show in the result.
 */
#ifndef BRAGG_OPS_BLOCKS_H
#define BRAGG_OPS_BLOCKS_H

#include "op.h"

int br_bar_in(const fth_node *node); /* which input the cotangents are */
/* All inputs as a render has them, and cotangents f64 [slow fast]. */
fth_status br_bar_check(const fth_node *node, fth_err *err);
void br_bar_relation(const fth_node *node, int in, int dim, fth_relation *out);
int64_t br_bar_grid(const fth_node *node, int in, int dim);
double br_bar_samples(const fth_call *call);

/* A sum over a block, made by one worker in `part`. */
typedef struct br_blocks {
    const fth_call *call;
    double *part; /* `size` doubles for each worker of the call */
    int64_t size;
    void *user;
    void (*start)(void *user, double *part); /* sets a sum to 0 */
    /* Adds a row; bar[i * bar_step] belongs to its pixel i. */
    void (*row)(void *user, const br_row *row, const double *bar, int64_t bar_step, double *part);
    void (*add)(void *user, const double *part); /* to the result */
} br_blocks;
void br_blocks_run(br_blocks *b);

#endif
