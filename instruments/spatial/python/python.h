/* python.h - stages and predictions for other languages: what bindings/python calls.
 *
 * Data and results pass through files: the binding writes a config and a folder of arrays, or names
 * an h5ad file, and reads what the stages leave. So results are those of the program, bit for bit.
 */
#ifndef SPATIAL_PYTHON_PYTHON_H
#define SPATIAL_PYTHON_PYTHON_H

#include <fathom/fathom.h>

FTH_BEGIN_DECLS

/* One stage of a config. Functions may be NULL; they are called with `user`. */
typedef struct fth_spatial_call {
    const char *config;                         /* path of the config of one model */
    const char *stage;                          /* "preprocess", "train", "analyze" or "figures" */
    const char *device;                         /* NULL: as the config says */
    uint64_t memory_bytes, device_memory_bytes; /* 0: as the config says */
    int32_t threads;
    void (*progress)(void *user, const char *json); /* as of fth_stage_options */
    bool (*stop)(void *user);                       /* true: save a resumable state, and end */
    void (*say)(void *user, const char *line);      /* notes of the stage */
    void (*mistake)(void *user, const char *line);  /* of the config */
    void *user;
} fth_spatial_call;
/* Run it in this process, as `fathom spatial STAGE -c CONFIG` would. FTH_E_CANCELLED: it was
 * stopped, and the next call of the same stage resumes. */
FTH_API FTH_MUST_USE fth_status fth_spatial_stage(const fth_spatial_call *call, fth_err *err);

/* Factors at other places: `fathom spatial project -m MODEL --data DATA -o OUT`. */
FTH_API FTH_MUST_USE fth_status fth_spatial_project(fth_context *ctx, const char *model,
                                                    const char *data, const char *out,
                                                    fth_err *err);

/* Name of key number i of a config, sections apart; NULL beyond the last. *path: it is a path. */
FTH_API const char *fth_spatial_key(int i, bool *path);
/* What makes a config of a model: "model.spatial=true", ...; NULL beyond the last. */
FTH_API const char *fth_spatial_model(const char *model, int i);

FTH_END_DECLS
#endif
