/* spatial.h - what all files of this instrument share: models, settings, sizes, file names.
 *
 * Counts Y[cell, gene] of a tissue section are explained by L factors: Y ~ Poisson(exp(F) W^T).
 * W[gene factor] >= 0 are loadings, F[factor cell] latent log-factors with the prior of one of five
 * models. The names of axes are those of the whole instrument:
 *
 *   cell   N   cells or spots           induce, induce2  M  inducing points
 *   cellb  Nb  cells of the batch       nbr, nbr2        K  conditioning neighbours
 *   gene   D   genes                    rank             R  columns of the local covariance factor
 *   geneb  Db  genes of the batch       group            G  cell types
 *   factor L   latent factors           draw             E  Monte Carlo draws
 *   entry      stored counts            dim              2  coordinates
 *   section    tissue sections, where the data have several (model 21)
 *
 * A hybrid has T factors more, without positions: `factor` are all L + T, `sfactor` the L spatial
 * ones, which come first, and `tfactor` the T others.
 */
#ifndef SPATIAL_H
#define SPATIAL_H

#include <fathom/fathom.h>

enum { SP_NAME = 64 };

/* ---- models ---- */

typedef enum sp_kind {
#define SP_MODEL(id, name, spatial, groups, local, prior) SP_##id,
#include "models.def"
#undef SP_MODEL
    SP_KIND_COUNT
} sp_kind;
typedef struct sp_kind_info {
    const char *name;
    bool spatial, groups, local;
    const char *prior;
} sp_kind_info;
extern const sp_kind_info sp_kinds[SP_KIND_COUNT];

/* ---- choices, in the order of the schema (schema.c) ---- */

typedef enum sp_mode { SP_EXPANDED, SP_SIMPLE, SP_LOWER_BOUND } sp_mode;
typedef enum sp_loadings {
    SP_PROJECTED,
    SP_MULTIPLICATIVE,
    SP_LOADINGS_SOFTPLUS,
    SP_LOADINGS_EXP
} sp_loadings;
typedef enum sp_training { SP_STANDARD, SP_NATURAL } sp_training;
typedef enum sp_count_law { SP_POISSON, SP_NB } sp_count_law;
typedef enum sp_size_rule { SP_SIZE_NONE, SP_SIZE_TOTAL } sp_size_rule;
typedef enum sp_kernel {
#define SP_KERNEL(id, name, root, power) SP_##id,
#include "kernels.def"
#undef SP_KERNEL
    SP_KERNEL_COUNT
} sp_kernel;
typedef enum sp_cholesky { SP_CHOLESKY_EXP, SP_CHOLESKY_SOFTPLUS } sp_cholesky;
typedef enum sp_parametrization { SP_RAW, SP_WHITENED } sp_parametrization;
typedef enum sp_allocation { SP_PROPORTIONAL, SP_EQUAL, SP_DERIVED } sp_allocation;
typedef enum sp_neighbours { SP_KNN, SP_PROBABILISTIC } sp_neighbours;
typedef enum sp_init {
    SP_INIT_RANDOM,
    SP_INIT_NNDSVD,
    SP_INIT_NNDSVDA,
    SP_INIT_NNDSVDAR,
    SP_INIT_KMEANS,
    SP_INIT_AUTO, /* nndsvd when L <= min(N, D), else random */
    SP_INIT_NMF
} sp_init;
typedef enum sp_init_mu { SP_MU_RANDOM, SP_MU_SMOOTH } sp_init_mu;
typedef enum sp_init_Lam { SP_LAM_FIXED, SP_LAM_RANK } sp_init_Lam;
typedef enum sp_optimizer { SP_ADAM, SP_ADAMW, SP_NADAM, SP_SGD, SP_RMSPROP } sp_optimizer;
typedef enum sp_scheduler { SP_ONE_CYCLE, SP_PLATEAU, SP_NO_SCHEDULE } sp_scheduler;
typedef enum sp_adam { SP_ADAM_DENSE, SP_ADAM_LAZY } sp_adam;
typedef enum sp_holdout { SP_HOLDOUT_RANDOM, SP_HOLDOUT_LAST } sp_holdout;

/* ---- settings: what a model is made with, after clamping ---- */

/* Fields of SP_SETTING; checkpoints hold those of the family MODEL. */
#define SP_FIELD_INT int64_t
#define SP_FIELD_CHOICE int64_t
#define SP_FIELD_REAL double
#define SP_FIELD_BOOL bool
typedef struct sp_settings {
#define SP_SETTING(field, type, key, family, older) SP_FIELD_##type field;
#include "settings.def"
#undef SP_SETTING
    sp_kind kind;
    bool trainable_W; /* W is moved by the optimiser: every loadings_mode but multiplicative */
    int64_t restart;  /* index of the restart: other random numbers, the same held-out cells */
} sp_settings;
/* All factors: L of the model's own prior, and the T of a hybrid without positions (model 18.1). */
static inline int64_t sp_factors(const sp_settings *s)
{
    return s->n_components + s->nonspatial_components;
}
static inline bool sp_is_hybrid(const sp_settings *s)
{
    return s->nonspatial_components > 0;
}
/* pnmf that moves by natural gradients (model 20). */
static inline bool sp_is_natural(const sp_settings *s)
{
    return s->training_mode == SP_NATURAL && !s->spatial;
}
/* The number of a restart in its series, from 0 (model 10.7). */
static inline int64_t sp_restart_number(const sp_settings *s)
{
    return s->first_restart + s->restart;
}
/* The seed of the random numbers of training (model 1.3a). */
static inline int64_t sp_draw_seed(const sp_settings *s)
{
    return s->seed ^ (int64_t)((uint64_t)sp_restart_number(s) * UINT64_C(0x9e3779b97f4a7c15) >> 1);
}

/* How positions were rescaled: x = (x of the source - offset) scale. Unknown for folders of other
 * programs and for their models. */
typedef struct sp_frame {
    bool known;
    double offset[2], scale;
} sp_frame;

/* Sizes of the data. */
typedef struct sp_sizes {
    int64_t cells, genes, groups;
    int64_t entries;      /* stored counts, of all cells; a bound when `bound` */
    int64_t most_entries; /* stored counts of the fullest row; a bound when `bound` */
    /* Of data that name their sections (model 21); 0: they do not. */
    int64_t sections;
    int64_t least_section; /* cells of the smallest; 0: not known */
    double section_gap;    /* cells of two sections are at least so far apart */
    bool bound;            /* the data do not exist yet: these are upper bounds */
} sp_sizes;

/* From a checked config and the data; lengths are clamped to the data (model 10.1), and `note`,
 * which may be NULL, gets one line for each that was. `extent` is the larger extent of the
 * positions, for rank: spectral (0: not known yet, K is assumed). FTH_E_CONFIG when they do not fit
 * together. */
typedef struct sp_notes {
    char text[8][160];
    int n;
} sp_notes;
fth_status sp_settings_from(sp_settings *out, const fth_config *cfg, const sp_sizes *sizes,
                            double extent, sp_notes *notes, fth_err *err);
/* The smallest R whose eigenvalues hold 90 % of their sum (model 7.7), in [1, cells]. */
int64_t sp_spectral_rank(double lengthscale, double extent, int64_t cells);
/* Weights of the objective: loss = b KL - a ELL (model 3.2). */
double sp_weight_ell(const sp_settings *s);
double sp_weight_kl(const sp_settings *s);
double sp_weight_kl_cells(const sp_settings *s); /* of factors without positions: pnmf, hybrids */

/* Cells that a section needs: six neighbours (model 14.2), the cell itself, and one more. */
enum { SP_SECTION_LEAST = 8 };

/* Lengthscales that are trained start at this logarithm, and stay there for so many steps of a
 * cycle (model 19.3); 0 steps where they are not trained. */
double sp_ell_start(const sp_settings *s);
int64_t sp_ell_warmup(const sp_settings *s);

/* One setting as text, and back: for checkpoints, training.json and messages. */
typedef enum sp_family { SP_FAMILY_MODEL, SP_FAMILY_TRAIN } sp_family;
int sp_settings_count(void);
const char *sp_setting_name(int i);
const char *sp_setting_key(int i);
sp_family sp_setting_family(int i);
bool sp_setting_is_text(int i); /* a word: in quotes in JSON */
/* The value that a file without this setting means; NULL: every file has it. */
const char *sp_setting_older(int i);
/* It has that value: files leave it out. */
bool sp_setting_is_implied(const sp_settings *s, int i);
const char *sp_setting_get(const sp_settings *s, int i, char *text, size_t bytes);
/* false: not a value of that setting. */
bool sp_setting_set(sp_settings *s, int i, const char *text);
/* Derives kind and trainable_W after all fields were set by hand or from a file. */
void sp_settings_derive(sp_settings *s);

/* ---- the config ---- */

extern const fth_schema sp_schema;
extern const fth_variant sp_variants[];
extern const int sp_n_variants;
sp_kind sp_kind_of(const fth_config *cfg);
bool sp_is_general(const fth_config *cfg);
bool sp_expand(const fth_config *cfg, int64_t i, fth_variant_made *out);
fth_status sp_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err);

/* ---- random numbers: streams (model 1.3). (seed, stream, iteration, index) gives the number ----
 */

enum {
    SP_STREAM_W = 1,
    SP_STREAM_F,
    SP_STREAM_MU,
    SP_STREAM_LU,
    SP_STREAM_CELLS,
    SP_STREAM_GENES,
    SP_STREAM_NOISE,
    SP_STREAM_KMEANS,
    SP_STREAM_NEIGHBOURS,
    SP_STREAM_TRANSFORM,
    SP_STREAM_HOLDOUT,
    SP_STREAM_TOY, /* and the following ones (toy.h) */
    SP_STREAM_CONSENSUS = 64
};

/* ---- files ---- */

#define SP_PREPROCESSED "preprocessed" /* folder in the output directory, with these files */
#define SP_X "X.npy"
#define SP_Y "Y.npz"
#define SP_C "C.npy"
#define SP_S "S.npy" /* i64 [cell]: sections; only where the data name them */
#define SP_METADATA "metadata.json"
#define SP_ROWS "rows.npy" /* i64 [cell]: which row of the source each cell is */
#define SP_GENE_SELECTION "gene_selection.csv"        /* variable genes, where they were chosen */
#define SP_CHECKPOINT "model.safetensors"             /* in the folder of the model */
#define SP_CHECKPOINT_BEFORE "model.prev.safetensors" /* backup while training */
#define SP_TRAINING "training.json"
#define SP_ELBO_CSV "elbo_history.csv"
#define SP_ELBO_NPY "elbo_history.npy"
#define SP_CONFIG "config.yaml"
/* Version of the preprocessing algorithm, recorded in the metadata of its folders. */
enum { SP_PREPROCESS_ALGORITHM = 1 };
#define SP_FRAMES "video_frames.npy"
#define SP_FRAME_ITERS "video_frame_iters.npy"
#define SP_FACTORS "factors.npy"
#define SP_SCALES "scales.npy"
#define SP_SIZE_FACTORS "size_factors.npy" /* f32 [cell]; only where the model has sizes */
#define SP_DISPERSION "dispersion.csv"     /* theta of each gene; only where likelihood is nb */
#define SP_LENGTHSCALES "lengthscales.csv" /* of each factor; only where they are trained */
#define SP_HELD_OUT                                                                                \
    "held_out.npy" /* bool [cell]: training did not see it; only where some were                   \
                    */
#define SP_LOADINGS "loadings.npy"
#define SP_Z "Z.npy"
#define SP_GROUPS_Z "groupsZ.npy"
#define SP_LU "Lu.npy"
#define SP_MORAN "moran_i.csv"
#define SP_ENRICHMENT "gene_enrichment.json"
#define SP_SECTIONS_CSV "sections.csv" /* of data with sections, as the next */
#define SP_SECTION_COMPARISON "section_comparison.csv"
#define SP_GENES_CSV "genes.csv" /* of the verb genes */
#define SP_METRICS "metrics.json"
#define SP_IMPORTANCE "gene_importance.csv" /* of hybrids, as the next */
#define SP_SHARES "gene_shares.npy"
#define SP_PCA "pca_gene_order.npy"
#define SP_PCA_GROUP "pca_gene_order_by_celltype.npy"
#define SP_GROUPWISE "groupwise_factors"
#define SP_FIGURES "figures"

/* ---- stages ---- */

#define SP_STAGE(name)                                                                             \
    fth_status sp_##name##_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);   \
    fth_status sp_##name##_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,       \
                                fth_err *err);                                                     \
    fth_status sp_##name##_run(const fth_stage_call *call, fth_err *err);
SP_STAGE(preprocess)
SP_STAGE(train)
SP_STAGE(analyze)
SP_STAGE(figures)
#undef SP_STAGE
extern const fth_flag sp_preprocess_flags[], sp_train_flags[], sp_analyze_flags[],
    sp_figures_flags[];

/* ---- verbs ---- */

#define SP_VERB(name) extern const fth_verb sp_verb_##name;
SP_VERB(toy)
SP_VERB(info)
SP_VERB(multianalyze)
SP_VERB(project)
SP_VERB(export)
SP_VERB(genes)
SP_VERB(page)
SP_VERB(sweep)
SP_VERB(consensus)
SP_VERB(recovery)
#undef SP_VERB

#endif
