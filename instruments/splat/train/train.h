/* train.h - training Gaussians on a capture: as a verb and as a stage. */
#ifndef SPLAT_TRAIN_TRAIN_H
#define SPLAT_TRAIN_TRAIN_H

#include "../config/settings.h"

#define GS_LOSS_FILE "loss.csv"
#define GS_MEMORY_FILE "memory.csv"

enum { GS_TRAIN_ALGORITHM = 2 }; /* increment when equal settings give other results */

/* Log level: all, warnings, nothing. */
typedef enum gs_level { GS_SAY_ALL, GS_SAY_WARNINGS, GS_SAY_NOTHING } gs_level;

/* One training. */
typedef struct gs_training {
    fth_context *ctx;
    const fth_stage_call *call; /* NULL: a verb */
    const fth_config *cfg;
    const char *data, *folder;
    bool fresh;         /* start over where a checkpoint could be resumed from */
    bool start_over;    /* start over, without an error, from a checkpoint of another training */
    const char *resume; /* a checkpoint to continue, with other settings too; NULL: none */
    FILE *notes;        /* log lines; NULL with a call */
    gs_level level;     /* of what is said there and in `log` */
    const char *log;    /* file that gets these lines too; NULL: none */
} gs_training;

fth_status gs_train(const gs_training *job, fth_err *err);

/* The plans that it would run, with how often: to `show`. */
typedef fth_status gs_show_fn(void *user, const fth_plan *plan, double runs, fth_err *err);
fth_status gs_train_foresee(const gs_training *job, gs_show_fn *show, void *user, fth_err *err);
/* Before the data exist: so many points, views and pixels. */
typedef struct gs_guess {
    int64_t points, views, width, height;
} gs_guess;
fth_status gs_train_guess(const gs_training *job, const gs_guess *guess, gs_show_fn *show,
                          void *user, fth_err *err);

extern const fth_verb gs_verb_train;
extern const fth_flag gs_train_flags[]; /* of the stage */
FTH_STAGE_FUNCTIONS(gs_train_stage);
fth_status gs_train_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

#endif
