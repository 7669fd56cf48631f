/* results.h - the results of one analyzed model, opened for verbs that read them. */
#ifndef SPATIAL_RESULTS_H
#define SPATIAL_RESULTS_H

#include "../data/data.h"

typedef struct sp_results {
    fth_mem *mem;
    fth_config *config;
    char name[SP_NAME]; /* of the model */
    char dir[FTH_PATH]; /* its folder */
    sp_data data;       /* all cells of the folder */
    fth_source factors; /* f32 [cell factor]: factors.npy, the most spatial first */
    fth_tensor *W;      /* f32 [gene factor]: loadings.npy, the same order */
    int64_t n_factors;
    fth_tensor *held_out; /* bool [cell]; NULL: none was */
    int64_t n_held_out;
} sp_results;

/* By the config of one model; `verb` for messages. Mistakes of the config are listed in `out`. */
fth_status sp_results_open(sp_results *r, fth_context *ctx, const char *verb, const char *config,
                           FILE *out, fth_err *err);
fth_status sp_results_close(sp_results *r, fth_err *err); /* an empty one is allowed */
/* "DIR/NAME" of its folder. */
fth_status sp_results_path(const sp_results *r, const char *name, char path[FTH_PATH],
                           fth_err *err);

#endif
