/* each.h - loops on the workers of a context whose body may fail.
 *
 *   FTH_TRY(pt_each(ctx, "survey", n, look_at_one, &pass, err));
 */
#ifndef PTYCHO_SCAN_EACH_H
#define PTYCHO_SCAN_EACH_H

#include <fathom/fathom.h>

/* fth_context_loop; of the i that failed, the error of the first. The others may or may not have
 * been done. */
fth_status pt_each(fth_context *ctx, const char *name, int64_t n,
                   fth_status (*fn)(void *arg, int64_t i, fth_err *err), void *arg, fth_err *err);

/* fth_source_load, by all workers where the source may be read so. */
fth_status pt_load(fth_context *ctx, const fth_source *source, const char *label, fth_tensor **out,
                   fth_err *err);

#endif
