/* python.h - images for programs that are not written in C: what bindings/python calls.
 *
 *   create; set each flag; resolve; size; render or jacobian; destroy
 *
 * These few functions are all that libfathom_instruments.so exports. Numbers come as the text that
 * a person would type, so that there is one parser.
 */
#ifndef BRAGG_PYTHON_H
#define BRAGG_PYTHON_H

#include <fathom/fathom.h>

FTH_BEGIN_DECLS

typedef struct fth_bragg fth_bragg;

/* `compat` is "spec" or "c". */
FTH_API FTH_MUST_USE fth_status fth_bragg_create(fth_bragg **out, fth_context *ctx,
                                                 const char *compat, fth_err *err);
FTH_API void fth_bragg_destroy(fth_bragg *b); /* NULL is allowed */
/* A flag of nanoBragg without its dash and its values; of a switch none, or "true" or "false"; one
 * value for all edges, such as N, may also be one for each. Those of Fathom, with one value:
 * "quirk" (phi-carryover=on), "precision", "fdump", "smv32", "cbf", and "seed", the seed of all
 * streams.
 */
FTH_API FTH_MUST_USE fth_status fth_bragg_set(fth_bragg *b, const char *flag,
                                              const char *const *value, int n, fth_err *err);
/* Once, after the last flag: reads files, checks everything. */
FTH_API FTH_MUST_USE fth_status fth_bragg_resolve(fth_bragg *b, fth_err *err);
FTH_API void fth_bragg_size(const fth_bragg *b, int64_t *slow, int64_t *fast);
/* Photons, f32 [slow fast]; writes the files that flags name, and no others. */
FTH_API FTH_MUST_USE fth_status fth_bragg_render(fth_bragg *b, float *image, fth_err *err);
/* Derivatives by n parameters, in their typed units: f64 [slow fast n]. */
FTH_API FTH_MUST_USE fth_status fth_bragg_jacobian(fth_bragg *b, const char *const *param, int n,
                                                   double *out, fth_err *err);
/* Name and unit of parameter i; NULL beyond the last. `unit` may be NULL. */
FTH_API const char *fth_bragg_param(int i, const char **unit);

FTH_END_DECLS
#endif
