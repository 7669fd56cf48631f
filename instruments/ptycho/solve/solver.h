/* solver.h - the iterative solvers: data in, object, probe and positions out, epoch by epoch.
 *
 * A solver holds the state between epochs and the plans of the engine that change it. The first
 * plan is made when the solver is: what does not fit is refused then. Patterns are read piece by
 * piece, one ahead; pieces begin at batches, so their length, which follows from the budget,
 * changes no bit.
 *
 *   FTH_TRY(pt_solver_create(&s, ctx, call, &options, &data, err));
 *   FTH_TRY(pt_solver_begin(s, err));
 *   while (s->epoch < options.iterations) FTH_TRY(pt_solver_step(s, err));
 *   FTH_TRY(pt_solver_finish(s, err));
 *   ... s->object, s->probe, s->x, s->history ...
 *   pt_solver_destroy(s);
 */
#ifndef PT_SOLVE_SOLVER_H
#define PT_SOLVE_SOLVER_H

#include "../ops/exits.h"

typedef enum pt_algorithm {
    PT_SOLVE_RPIE,
    PT_SOLVE_EPIE,
    PT_SOLVE_DM,
    PT_SOLVE_RAAR,
    PT_SOLVE_LSQML,
    PT_SOLVE_PIE,
    PT_SOLVE_MPIE,
    PT_SOLVERS
} pt_algorithm;
extern const char *const pt_algorithm_names[PT_SOLVERS]; /* the words of the key `algorithm` */

typedef enum pt_batching { PT_BATCH_RANDOM, PT_BATCH_UNIFORM, PT_BATCH_COMPACT } pt_batching;
typedef enum pt_object_init { PT_OBJECT_ONES, PT_OBJECT_RANDOM, PT_OBJECT_FILE } pt_object_init;

typedef struct pt_solve_options {
    pt_algorithm algorithm;
    int64_t iterations, batch, modes;
    double object_alpha, probe_alpha;
    double raar_beta, dm_alpha;
    bool poisson, ptypy, wide, compat_rng, subpixel;
    int64_t probe_start;    /* epochs before the probe is updated */
    int64_t position_start; /* epochs before positions are; below 0: never */
    double position_step, position_limit;
    bool rescale_probe, orthogonalise, probe_power_file;
    int64_t scale_every; /* 0: never */
    double object_inertia, probe_inertia;
    int64_t overlap_iterations;
    double power_bound; /* below 0: none; NAN: from the data */
    pt_batching batching;
    pt_object_init object_init;
    double clip_low, clip_high; /* of the object's amplitude; NAN: none */
    bool clip_phase;
    double phase_low, phase_high; /* of the object */
    double smooth, tv;            /* weights of the object's smoothness and total variation */
    double raster[2];             /* periods in x and y whose peaks are removed; 0: none */
    bool probe_mask;
    double mask_diameter, mask_sigma;
    double probe_threshold, probe_aperture; /* 0: none */
    bool keep_mean_position;
    double probe_power; /* to which the probe is scaled after each epoch; NAN: none */
    bool centre_probe;
    double momentum;        /* gain of lsqml's; 0: none */
    int64_t momentum_every; /* updates of mpie */
    double object_momentum, probe_momentum;
    int64_t opr;             /* eigenprobes of lsqml */
    const char *scratch_dir; /* NULL: the context's */
    bool plan_only;          /* patterns are not read */
    uint64_t seed;
    const int64_t *order; /* [order_epochs scan]: visits in this order; NULL: drawn */
    int64_t order_epochs;
} pt_solve_options;

/* What is solved. Nothing is copied but the probe and the positions. */
typedef struct pt_solve_data {
    int64_t patterns, n;
    fth_source source; /* [scan row col] */
    bool counts, centred;
    const double *x, *y;    /* [scan], pixels */
    const fth_c128 *probe;  /* [modes row col] */
    int64_t modes;          /* of it */
    const fth_c128 *object; /* [object_rows object_cols]; NULL: none */
    int64_t object_rows, object_cols;
    double object_x, object_y; /* of its pixel (0,0) */
    double object_beyond;      /* amplitude where it does not reach; 0: 1 */
    const uint8_t *mask;       /* [row col], 1 is good; NULL: all are */
    fth_source masks;          /* [scan row col] of bool; n_axes 0: none */
} pt_solve_data;

typedef struct pt_waves pt_waves;       /* exit waves, of DM and RAAR */
typedef struct pt_momentum pt_momentum; /* of lsqml */
typedef struct pt_mpie pt_mpie;
typedef struct pt_constraints pt_constraints;

typedef struct pt_solver {
    fth_context *ctx;
    fth_mem *mem;
    const fth_stage_call *call; /* NULL: there is none */
    pt_solve_options opt;
    pt_solve_data data;
    int64_t n, modes, rows, cols;
    int64_t origin_x, origin_y; /* of pixel (0,0) of the canvas */
    fth_dtype real;
    fth_tensor *object; /* [part orow ocol] */
    fth_tensor *probe;  /* [mode part row col] */
    fth_tensor *change; /* like the object: the direction of an epoch; NULL: batches change it */
    double *x, *y;      /* [scan] as they are now */
    double *alpha;      /* [scan] steps of the Poisson model */
    double *history;    /* [iterations] R of each epoch */
    int64_t epoch;
    double counts_mean, counts_max; /* of the sums over a pattern, masked pixels left out */
    double model_mean;              /* the same of the first model */

    /* pieces of an epoch */
    int64_t piece;
    int64_t *order; /* [scan + piece] of this epoch */
    fth_tensor *visits, *told, *mask;
    double switches[PT_SWITCHES];
    fth_batches *batches, *mask_batches;
    fth_graph *graph;
    fth_graph *look_graph;
    fth_plan *plan, *look;            /* look: compares only */
    fth_tensor *frames, *frame_masks; /* all patterns, where they fit; NULL: read in pieces */

    /* light, and the weight of lsqml's direction */
    fth_tensor *all_visits; /* [scan visit] */
    fth_tensor *light, *weight;
    double blend;
    fth_graph *light_graph;
    fth_plan *light_plan;
    bool light_known; /* of an epoch before */
    fth_graph *scale_graph;
    fth_plan *scale_plan; /* scale.c; NULL: the scale is left as it is */

    pt_waves *waves;
    bool waves_on_disk; /* even where memory would hold them */
    int64_t most_piece; /* patterns; 0: as many as fit */
    pt_momentum *momentum;
    pt_mpie *mpie;
    pt_constraints *constraints;
    fth_tensor *eigen;        /* [opr part row col]; NULL: none */
    fth_tensor *piece_shares; /* [pattern share] of a piece */
    double *shares;           /* [scan share] of the probe and of each eigenprobe */
    void *generator;          /* of compat orders, and epochs that it has drawn */
    int64_t drawn;
} pt_solver;

fth_status pt_solver_create(pt_solver **out, fth_context *ctx, const fth_stage_call *call,
                            const pt_solve_options *opt, const pt_solve_data *data, fth_err *err);
/* Before the first epoch, unless a state was loaded: brings the probe to the power of the data. */
fth_status pt_solver_begin(pt_solver *s, fth_err *err);
void pt_solver_destroy(pt_solver *s); /* NULL is allowed */
/* One epoch. FTH_E_NUMERIC: the state is no longer made of numbers. */
fth_status pt_solver_step(pt_solver *s, fth_err *err);
/* After the last epoch: DM and RAAR make modes orthogonal and centre the probe only now. */
fth_status pt_solver_finish(pt_solver *s, fth_err *err);

/* Steps along the way. */
fth_status pt_solver_canvas(pt_solver *s, fth_err *err); /* start.c */
fth_status pt_solver_start_fields(pt_solver *s, fth_err *err);
fth_status pt_solver_measure(pt_solver *s, fth_err *err); /* counts_mean, counts_max */
void pt_solver_corner(const pt_solver *s, int64_t j, double *visit);
fth_status pt_solver_make_order(pt_solver *s, fth_err *err); /* order.c */
fth_status pt_solver_plan_light(pt_solver *s, fth_err *err); /* light.c */
fth_status pt_solver_light(pt_solver *s, bool weigh, fth_err *err);
fth_status pt_solver_plan_scale(pt_solver *s, fth_err *err); /* scale.c */
fth_status pt_solver_share_scale(pt_solver *s, fth_err *err);
fth_status pt_sweeps_create(pt_solver *s, fth_err *err); /* sweeps.c */
fth_status pt_sweeps_epoch(pt_solver *s, fth_err *err);
void pt_sweeps_destroy(pt_solver *s);
fth_status pt_waves_create(pt_solver *s, fth_err *err); /* waves.c */
bool pt_waves_are_here(const pt_solver *s);             /* in memory */
fth_plan *pt_waves_plan(const pt_solver *s);            /* of the Fourier step */
enum { PT_WAVES_PLANS = 5 };
int pt_waves_plans(const pt_solver *s, fth_plan **out); /* all, PT_WAVES_PLANS at most */
/* Plan the step again: with what is known and held by now. */
fth_status pt_waves_plan_step(pt_solver *s, fth_err *err);
fth_status pt_waves_first(pt_solver *s, fth_err *err);
fth_status pt_waves_measure(pt_solver *s, fth_err *err);
fth_status pt_waves_epoch(pt_solver *s, fth_err *err);
void pt_waves_destroy(pt_solver *s);
fth_status pt_opr_create(pt_solver *s, fth_err *err); /* opr.c */
void pt_opr_destroy(pt_solver *s);
void pt_opr_start(pt_solver *s);
fth_status pt_opr_refine(pt_solver *s, fth_err *err);
void pt_opr_scale(pt_solver *s, double by);              /* the probe was multiplied by this */
fth_status pt_solver_refine(pt_solver *s, fth_err *err); /* refine.c */

/* Elements of a tensor of f32 or f64, whatever it is. */
double pt_get(const void *data, fth_dtype real, int64_t i);
void pt_put(void *data, fth_dtype real, int64_t i, double v);

#endif
