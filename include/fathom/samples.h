/* fathom/samples.h - every builder by name, and a small program that uses it.
 *
 * For whoever must treat all operations alike: a table of what a device can do, a test that runs
 * each of them, a page of documentation. The rows are those of elementwise.def, then those of
 * ops.def that have a sample.
 *
 *     fth_graph *g = fth_graph_create(ctx);
 *     fth_samples_axes(g, 4);
 *     const fth_val x = fth_input(g, "x", FTH_F32, "i j", source);
 *     for (int i = 0; fth_sample_at(i); i++)
 *         if (!fth_val_ok(fth_sample_build(g, i, x)))
 *             printf("%s does not take f32\n", fth_sample_at(i)->name);
 *
 * Ownership: everything returned lives as long as the library.
 * Threads: as for the graph.
 * Failure: what an operation does not take is poison, with its error in the graph.
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

/* Row i; NULL: there are no more. */
FTH_API const fth_sample *fth_sample_at(int i);
/* Declares what samples need: i, j and k of n elements, which is even and from 4 to
 * FTH_SAMPLES_MOST, and axes of sizes that follow from it. */
FTH_API bool fth_samples_axes(fth_graph *g, int64_t n);
/* Row i built on x, whose axes include i and j. */
FTH_API fth_val fth_sample_build(fth_graph *g, int i, fth_val x);

FTH_END_DECLS
#endif /* FATHOM_SAMPLES_H */
