/* fathom/samples.h - every builder by name, with a small graph that uses it.
 *
 * For code that handles all operations uniformly: a table of what a device supports, a test that
 * runs each of them, a page of documentation. The rows are those of elementwise.def, then those of
 * ops.def that have a sample.
 *
 *     fth_graph *g = fth_graph_create(ctx);
 *     fth_samples_axes(g, 4);
 *     const fth_val x = fth_input(g, "x", FTH_F32, "i j", source);
 *     for (int i = 0; fth_sample_at(i); i++)
 *         if (!fth_val_ok(fth_sample_build(g, i, x)))
 *             printf("%s does not take f32\n", fth_sample_at(i)->name);
 *
 * Ownership: returned rows are constants.
 * Threads:   one thread at a time per graph.
 * Failure:   an unsupported operand gives poison, with the error recorded in the graph.
 */
#ifndef FATHOM_SAMPLES_H
#define FATHOM_SAMPLES_H

#include <fathom/graph.h>

FTH_BEGIN_DECLS

enum { FTH_SAMPLES_MOST = 16 };

typedef struct fth_sample {
    const char *name; /* of the builder, without its fth_ */
    const char *op;   /* name of the operation that it adds to the graph */
    const char *text; /* the sample in C; NULL: elementwise */
} fth_sample;

/* Row i; NULL past the last. */
FTH_API const fth_sample *fth_sample_at(int i);
/* Declare the axes that samples need: i, j and k of n elements (even, 4 to FTH_SAMPLES_MOST), and
 * axes whose sizes follow from n. */
FTH_API bool fth_samples_axes(fth_graph *g, int64_t n);
/* Build row i on x, whose axes include i and j. */
FTH_API fth_val fth_sample_build(fth_graph *g, int i, fth_val x);

FTH_END_DECLS
#endif /* FATHOM_SAMPLES_H */
