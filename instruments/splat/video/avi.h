/* avi.h - a video of JPEG pictures (Motion-JPEG in AVI), one after the other.
 *
 *   FTH_TRY(gs_avi_create(&v, mem, "tour.avi", width, height, 30, err));
 *   s = gs_avi_add(v, rgb, err);              [i j c] of floats, as often as there are frames
 *   s = gs_avi_commit(v, err);                ends it either way; gs_avi_abandon drops it
 *
 * The file appears whole or not at all. It has at most 2^31 bytes, which every player reads.
 */
#ifndef SPLAT_VIDEO_AVI_H
#define SPLAT_VIDEO_AVI_H

#include <fathom/files.h>

typedef struct gs_avi gs_avi;
fth_status gs_avi_create(gs_avi **out, fth_mem *mem, const char *path, int64_t width,
                         int64_t height, int64_t per_second, fth_err *err);
fth_status gs_avi_add(gs_avi *v, const float *rgb, fth_err *err);
fth_status gs_avi_commit(gs_avi *v, fth_err *err);
void gs_avi_abandon(gs_avi *v); /* NULL is allowed */

#endif
