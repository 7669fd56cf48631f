/* video.h - the factors at all cells, kept every few iterations, for an animation.
 *
 * Frames go to a file as they are made and never stay in memory; at the end they become
 * video_frames.npy, behind those of the cycles before.
 */
#ifndef SPATIAL_VIDEO_H
#define SPATIAL_VIDEO_H

#include "../prior/prior.h"

typedef struct sp_video {
    sp_model *model; /* NULL: no frames are wanted */
    const fth_stage_call *call;
    sp_model_graph net;
    fth_plan *plan;
    fth_file *file;
    int64_t n; /* frames of this cycle, in the file */
    char part[FTH_PATH];
    fth_run_report report;
} sp_video;

/* Plans a prediction at the training cells. `kept` frames of an interrupted cycle are in the file
 * already. When `planning`, `data` is NULL and no file is made. */
fth_status sp_video_open(sp_video *v, fth_context *ctx, const fth_stage_call *call, sp_model *m,
                         const sp_data *data, int64_t kept, fth_err *err);
void sp_video_close(sp_video *v); /* an empty one is allowed; the frames stay on disk */
/* exp(f) of the model as it is. */
fth_status sp_video_add(sp_video *v, fth_err *err);
/* Syncs added frames to disk, before a checkpoint. */
fth_status sp_video_sync(sp_video *v, fth_err *err);
/* video_frames.npy and video_frame_iters.npy; frames are those of iterations that are multiples of
 * `interval`, after iteration `first`. */
fth_status sp_video_save(sp_video *v, int64_t first, int64_t interval, fth_err *err);
/* Removes the frames of an earlier training, which are not those of the model that is there now. */
fth_status sp_video_forget(const fth_stage_call *call, fth_err *err);

#endif
