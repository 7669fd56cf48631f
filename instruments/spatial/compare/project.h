/* project.h - a trained model on cells it has not seen (model 15.5). */
#ifndef SPATIAL_PROJECT_H
#define SPATIAL_PROJECT_H

#include "../answer.h"
#include "../prior/prior.h"

typedef struct sp_project {
    fth_context *ctx;
    sp_model *model;
    const sp_data *data;
    fth_tensor *order;        /* i64 [factor]: of the model, most spatial first, as in analyze */
    fth_sink factors, scales; /* f32 [cell factor], factors in that order */
    int64_t unknown;          /* cells of no section of the model, or far outside of theirs */
    uint64_t held_bytes;      /* measured for least squares, which have no plan; else 0 */
    fth_answer *answer;       /* if set, receives the plan, and nothing runs */
} sp_project;

/* The order of the factors of a model, from the analysis beside its file `model` or, where there is
 * none, from its training cells. An error when neither is there. */
fth_status sp_project_order(fth_tensor **out, fth_context *ctx, sp_model *m, const char *model,
                            fth_err *err);

/* Places to predict at: tensors in the scale and group codes of the model; NULL where it has none.
 */
typedef struct sp_places_asked {
    fth_tensor *xy, *group, *nbr;
    bool trained;       /* they are the training cells, in their order */
    fth_answer *answer; /* as of the project */
} sp_places_asked;
/* exp(f) and, where there is a second sink, s; in the order given (NULL: that of the model). */
fth_status sp_project_predict(fth_context *ctx, sp_model *m, const sp_places_asked *at,
                              fth_tensor *order, const fth_sink sink[2], fth_err *err);

/* pnmf does not use positions: the factors of each cell are fitted to its counts with W fixed. By
 * the variational fit of training, or by least squares, which has no scales. */
fth_status sp_project_counts(sp_project *p, bool least_squares, fth_err *err);

#endif
