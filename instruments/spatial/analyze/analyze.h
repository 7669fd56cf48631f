/* analyze.h - the stage analyze: what its files share.
 *
 * Everything is planned before anything runs: opening makes all tensors and all plans, so a stage
 * that does not fit fails before it starts. The same code plans from sizes alone, with tensors
 * whose pages are never touched.
 */
#ifndef SPATIAL_ANALYZE_H
#define SPATIAL_ANALYZE_H

#include "../prior/prior.h"
#include "../statistics/deviance.h"
#include "../statistics/group_loadings.h"
#include "../statistics/moran.h"

typedef enum sp_part {
    SP_PART_OPEN,
    SP_PART_PREDICT,
    SP_PART_MORAN,
    SP_PART_FIT,
    SP_PART_GROUPS,
    SP_PART_GROUPWISE,
    SP_PART_WRITE,
    SP_PARTS
} sp_part;
extern const char *const sp_part_names[SP_PARTS];

/* All cells of a folder from two tensors [cell factor]: training cells and held-out cells. */
typedef struct sp_both {
    fth_tensor *seen, *held;
    const int64_t *row; /* of the training cells, ascending */
    int64_t cells;      /* of them */
} sp_both;
/* A source over all cells; the struct outlives it. Without `held`, that of `seen`. */
fth_source sp_both_source(sp_both *b, int64_t rows);

/* What a likelihood says of some cells; NaN where it was not asked. */
typedef struct sp_scored {
    double like, per_count;               /* sum of logarithms; divided by the sum of the counts */
    double deviance, mean, mean_per_gene; /* of the negative binomial */
    double above; /* mean deviance from Poisson counts: comparable to that of Poisson models */
} sp_scored;

/* Numbers of sections, factors in the order of the model (section_numbers.c). */
typedef struct sp_section_numbers {
    int64_t count;   /* 0: the data name none */
    fth_tensor *bin; /* i32 [all cells]: the section; + count: of a cell that was held out */
    sp_sums_input in, in_mean;
    sp_sums sums, mean_sums;
    sp_pass pass, mean_pass;
    /* of training cells */
    double *mean, *square;         /* [section][group][factor]: sums of exp(f) and of its square */
    double *cells;                 /* [section][group] */
    double *moran;                 /* [section][factor] */
    double *fit, *held_fit, *held; /* [section]: mean deviances; cells that were held out */
    double *loading;               /* [factor]: sums over genes */
    void *block;
} sp_section_numbers;

typedef struct sp_analysis {
    const fth_stage_call *call;
    fth_context *ctx;
    fth_mem *mem;
    bool planning;
    bool other; /* the data are not those of training: --allow-other-data */

    sp_data data; /* the training cells; empty when planning */
    sp_model model;
    int64_t rows, cells, held; /* of the folder = training cells + held-out ones */
    int64_t genes, factors, groups;
    const int64_t *row_ptr;
    int64_t *row_ptr_made; /* when planning */

    fth_tensor *xy, *group;           /* of the training cells */
    fth_tensor *nbr;                  /* i32 [cell nbr] they are conditioned on; local models */
    fth_tensor *held_xy, *held_group; /* of those held out */
    fth_tensor *held_section;         /* NULL: the data name none */
    fth_tensor *held_nbr;
    fth_tensor *W;               /* f32 [gene factor] */
    fth_tensor *theta;           /* f64 [gene]; NULL: counts are Poisson */
    fth_tensor *size;            /* f32 [all cells]; NULL: all have size 1 */
    fth_tensor *F, *S;           /* f32 [cell factor]: exp(f) and s of the training cells */
    fth_tensor *held_F, *held_S; /* of those held out */
    fth_tensor *bin;             /* i32 [all cells]: the group, or `groups` for those held out */
    fth_tensor *order;           /* i64 [factor]: of the model, most spatial first */
    sp_both both_F, both_S;
    sp_sums_input in, in_mean; /* with exp(f), and with exp(f + s^2/2) */

    sp_pass predict, predict_held, sums_pass, mean_pass, fit, ratio, groupwise, groupwise_held, lu;
    sp_sums sums, mean_sums;
    sp_pass score_pass, score_mean_pass; /* likelihoods, with exp(f) and with exp(f + s^2/2) */
    sp_score score, score_mean;
    fth_tensor *A, *B, *a, *b; /* of `fit` and `ratio` */
    int64_t *cells_of;         /* [bin] */

    sp_section_numbers of_sections;
    sp_moran moran;
    sp_group_result group_result; /* factors in the order of the model, as everything above */
    sp_fit seen_fit, seen_mean, held_fit, held_mean;
    sp_scored seen_score, seen_score_mean, held_score_mean;
    double seconds[SP_PARTS];
    uint64_t planned_bytes, peak_bytes; /* planned; largest measured over all parts */
    bool broken;                        /* a run took more than its plan */
    double guess_s;
    int64_t chunks; /* of the prediction */
} sp_analysis;

/* analyze_open.c: data, model, tensors. With `sizes`, shapes alone of data of these sizes. */
fth_status sp_analysis_open(sp_analysis *a, const fth_stage_call *call, const sp_sizes *sizes,
                            fth_err *err);
void sp_analysis_close(sp_analysis *a); /* an empty one is allowed */
bool sp_analysis_has_groups(const sp_analysis *a);
/* Run a pass, account for it and remember its peak. */
fth_status sp_analysis_run_pass(sp_analysis *a, sp_pass *p, fth_err *err);
/* End a pass that will not run again and return its memory to the system: the next pass lays out
 * its values differently and would touch further pages. */
void sp_analysis_end_pass(sp_analysis *a, sp_pass *p);

/* analyze_predict.c: factors and scales, maps as if of one group, Lu. */
fth_status sp_analysis_plan_predict(sp_analysis *a, fth_err *err);
fth_status sp_analysis_predict(sp_analysis *a, fth_err *err);
fth_status sp_analysis_groupwise(sp_analysis *a, fth_err *err);
fth_status sp_analysis_lu(sp_analysis *a, fth_err *err);

/* analyze_fit.c: passes over the counts, loadings of groups, held-out cells. */
fth_status sp_analysis_make_sums(sp_analysis *a, fth_err *err);
fth_status sp_analysis_plan_fit(sp_analysis *a, fth_err *err);
fth_status sp_analysis_fit(sp_analysis *a, fth_err *err);
fth_status sp_analysis_group_loadings(sp_analysis *a, fth_err *err);

/* analyze_write.c, metrics.c: files. Factors are permuted into the order of Moran's I here. */
fth_status sp_analysis_write_arrays(sp_analysis *a, fth_err *err);
fth_status sp_analysis_write_genes(sp_analysis *a, fth_err *err);
fth_status sp_analysis_write_metrics(sp_analysis *a, fth_err *err);
/* importance.c: what spatial factors explain of each gene; removes the files of other models. */
fth_status sp_analysis_write_importance(sp_analysis *a, fth_err *err);

/* section_numbers.c; nothing where the data name no sections, but old files are removed. */
fth_status sp_analysis_sections_make(sp_analysis *a,
                                     fth_err *err); /* after the sums of all cells */
fth_status sp_analysis_sections_plan(sp_analysis *a, fth_err *err);
fth_status sp_analysis_sections_find(sp_analysis *a, fth_err *err);
fth_status sp_analysis_sections_write(sp_analysis *a, fth_err *err);
void sp_analysis_sections_tell(fth_json_writer *w,
                               const sp_analysis *a);      /* as a member of metrics.json */
uint64_t sp_analysis_sections_bytes(const sp_analysis *a); /* beside Moran's I of one of them */
void sp_analysis_sections_end(sp_analysis *a);

/* The plan of the stage for data of these sizes. */
fth_status sp_analyze_plan_for(const fth_stage_call *call, const sp_sizes *sizes,
                               fth_stage_plan *out, FILE *show, fth_err *err);

#endif
