/* checkpoint.h - a model in a file: its options, parameters and the state of its training.
 *
 * model.safetensors holds everything that inference and resumed training need. No time, path or
 * budget is in it: equal runs give equal bytes.
 */
#ifndef PTYCHO_TRAIN_CHECKPOINT_H
#define PTYCHO_TRAIN_CHECKPOINT_H

#include "stepper.h"

#define PT_MODEL_FILE "model.safetensors"
#define PT_HISTORY_FILE "training_history.json"

/* State of a training after some epochs. */
typedef struct pt_standing {
    int64_t epoch;        /* that are done */
    bool finished;        /* nothing is left to do */
    double rate;          /* of the next epoch */
    double plateau_best;  /* lowest loss of the validation */
    int64_t plateau_wait; /* epochs since */
    double stop_best;     /* lowest loss of the training */
    int64_t stop_wait;
} pt_standing;

/* Lines of metadata: names and values. */
enum { PT_FACTS = 64 };
typedef struct pt_facts {
    int n;
    char key[PT_FACTS][40], value[PT_FACTS][64];
} pt_facts;
void pt_facts_text(pt_facts *f, const char *key, const char *value);
void pt_facts_number(pt_facts *f, const char *key, double value);
/* What a model is, so that another program can use it. */
void pt_facts_model(pt_facts *f, const pt_model_options *opt);

typedef struct pt_history {
    double *loss, *val; /* [epoch] */
    int64_t room;
} pt_history;

/* `own` are facts that decide whether a training may go on from it. */
fth_status pt_checkpoint_write(const char *path, fth_mem *mem, const pt_trained *t,
                               const pt_standing *at, const pt_history *h, const pt_facts *own,
                               fth_err *err);
/* The first fact that differs, for people, into `why`; true: none does. */
bool pt_checkpoint_fits(fth_safetensors *file, const pt_facts *own, char *why, size_t bytes);
/* Into a model that was created with the options of the file. With `at` also the optimiser's
 * averages, the history and the standing. */
fth_status pt_checkpoint_read(fth_safetensors *file, pt_trained *t, pt_standing *at, pt_history *h,
                              fth_err *err);
/* Options of the model of a file; FTH_E_FILE_KEY where it is none of ours. */
fth_status pt_checkpoint_options(fth_safetensors *file, const char *path, pt_model_options *out,
                                 double *factor, fth_err *err);

/* {"loss": [..], "val_loss": [..]} */
fth_status pt_history_write(const char *path, fth_mem *mem, const pt_history *h, int64_t n,
                            fth_err *err);

#endif
