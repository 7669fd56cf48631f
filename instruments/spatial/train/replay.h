/* replay.h - random numbers from a file, and into one (model 10.8).
 *
 * Given batches, noise and start values determine a run: the trajectory of another program can be
 * compared with ours step by step.
 */
#ifndef SPATIAL_REPLAY_H
#define SPATIAL_REPLAY_H

#include "../model/model.h"

/* ---- from a file ---- */

typedef struct sp_replay {
    fth_mem *mem;
    fth_npz *npz; /* NULL: nothing is replayed */
    char path[FTH_PATH];
    fth_source idx, idy, eps; /* `read` is NULL where the file has none */
    void *room;               /* a row of any of them, as it is stored */
} sp_replay;
/* Lengths of the arrays override the settings: max_iter, batches, M, K, R. */
fth_status sp_replay_open(sp_replay *r, fth_mem *mem, const char *path, sp_settings *set,
                          fth_err *err);
void sp_replay_close(sp_replay *r); /* an empty one is allowed */
bool sp_replay_has(const sp_replay *r, const char *name);
/* Replaces tensors of the model by those of the file. */
fth_status sp_replay_start(sp_replay *r, sp_model *m, fth_err *err);
/* Row i of idx and idy; a list that the file does not have is unchanged. */
fth_status sp_replay_batch(sp_replay *r, int64_t i, int64_t *cell, int64_t *gene,
                           const sp_settings *set, fth_err *err);
/* Row i of eps, into f32 [draw factor cellb]. */
fth_status sp_replay_noise(sp_replay *r, int64_t i, fth_tensor *eps, fth_err *err);

/* ---- into a file ---- */

typedef struct sp_record {
    fth_mem *mem;
    char path[FTH_PATH];   /* "": nothing is recorded */
    fth_file *spool[3];    /* idx, idy, eps of the iterations so far */
    fth_tensor *start[10]; /* copies of what the run starts from */
    const char *name[10];
    int n_start;
    fth_tensor *eps; /* f32 [draw factor cellb]: the step puts its noise here */
    int64_t cells, genes, n;
} sp_record;
/* Copies the model as it starts; spools go to `dir`. */
fth_status sp_record_open(sp_record *r, const sp_model *m, const char *path, const char *dir,
                          fth_err *err);
void sp_record_close(sp_record *r); /* an empty one is allowed; nothing is written */
/* One iteration: its lists (NULL: all), and the noise in r->eps. */
fth_status sp_record_add(sp_record *r, const int64_t *cell, const int64_t *gene, fth_err *err);
/* Writes the file atomically. */
fth_status sp_record_save(sp_record *r, fth_err *err);

#endif
