/* near.h - distances of points in space to their nearest ones, exactly, by a k-d tree. */
#ifndef SPLAT_INIT_NEAR_H
#define SPLAT_INIT_NEAR_H

#include <fathom/fathom.h>

enum { GS_NEAR = 3 };

/* Of each point, squared distances to its nearest others, the smallest first: of the GS_NEAR + 1
 * that lie nearest, itself among them, those beyond 1e-4 that are not the same place. count[i] of
 * them, 0 to 3. Takes 17 bytes a point while it works. */
fth_status gs_near_find(fth_context *ctx, const float (*point)[3], int64_t n,
                        double (*square)[GS_NEAR], uint8_t *count, fth_err *err);

#endif
