/* toy.h - synthetic cells with known factors: what the files of the verb share (model 16). */
#ifndef SPATIAL_TOY_H
#define SPATIAL_TOY_H

#include "../answer.h"
#include "../image/image.h"
#include "../model/kernel.h"

enum { SP_TOY_LENGTHS = 64 };
typedef struct sp_toy {
    fth_context *ctx;
    fth_mem *mem;
    int64_t cells, side; /* places are those of a lattice of `side` columns, row by row */
    int64_t sections;    /* such lattices, one after the other, of as many cells; 0: one, unnamed */
    int64_t genes, factors;
    int64_t others;  /* further factors, without positions: standard normal at each cell */
    int64_t groups;  /* all of them */
    int64_t missing; /* of those: groups of a few scattered cells */
    int64_t seed;
    double lengthscale, alpha, jitter; /* lengthscale: of the factors that are being drawn */
    double length[SP_TOY_LENGTHS];     /* factor l has length[l modulo n_lengths] */
    int n_lengths;
    double density;     /* share of counts above zero; 0: rates are not scaled */
    double dispersion;  /* theta of the negative binomial; 0: counts are Poisson */
    double depth;       /* the largest cell has so many times the rates of the smallest; 0: 1 */
    bool image;         /* a picture of the tissue, too */
    bool exact;         /* by the Cholesky factor of the whole covariance; else sequentially */
    fth_answer *answer; /* if set, receives the plans, and nothing is drawn */
    /* Results: */
    float *xy;             /* [cells][2] */
    int32_t *group;        /* [cells], by descending size */
    sp_sections plane;     /* where the sections lie */
    int64_t *size_of;      /* [groups] */
    float *factor;         /* [cells][factors]: log-factors */
    float *other;          /* [cells][others]: likewise */
    float *loading;        /* [genes][factors + others] */
    fth_tensor *projected; /* exact: inverse covariance times factors, f64 [cell2 factor] */
    double scale;          /* of all rates */
    int64_t entries;       /* counts above zero */
} sp_toy;

enum {
    SP_TOY_HALF = SP_STREAM_TOY, /* which cells change their group */
    SP_TOY_GROUP,                /* to which */
    SP_TOY_MISSING,              /* cells of the missing groups */
    SP_TOY_NOISE,                /* factors */
    SP_TOY_LOADING,
    SP_TOY_SAMPLE, /* rates that the scale is found from */
    SP_TOY_COUNT,
    SP_TOY_LARGE, /* counts of very large rates */
    SP_TOY_SIZE,  /* of cells */
    SP_TOY_OTHER, /* factors without positions */
    SP_TOY_NUCLEI /* of the picture */
};

sp_cov sp_toy_cov(const sp_toy *t);
/* The section of a cell. */
int64_t sp_toy_section(const sp_toy *t, int64_t cell);

/* xy, group, size_of and plane. */
fth_status sp_toy_place(sp_toy *t, fth_err *err);
/* factor, each with a positive sum; `projected` where exact. */
fth_status sp_toy_draw(sp_toy *t, fth_err *err);
fth_status sp_toy_draw_exact(sp_toy *t, fth_err *err);
fth_status sp_toy_draw_near(sp_toy *t, fth_err *err);
/* Log-factors as if every cell were of group g: f32 [cell factor] into a .npy file. */
fth_status sp_toy_write_group(const sp_toy *t, int64_t g, const char *path, fth_err *err);
fth_status sp_toy_write_group_exact(const sp_toy *t, int64_t g, const fth_sink *sink, fth_err *err);
fth_status sp_toy_write_group_near(const sp_toy *t, int64_t g, const fth_sink *sink, fth_err *err);
/* The same with several lengthscales (toy_lengths.c); and what they hold meanwhile. */
fth_status sp_toy_draw_lengths(sp_toy *t, fth_err *err);
fth_status sp_toy_write_group_lengths(const sp_toy *t, int64_t g, const char *path, fth_err *err);
uint64_t sp_toy_lengths_bytes(const sp_toy *t);
/* Size of a cell, which multiplies its rates: log-uniform, 1 in the middle. */
double sp_toy_size(const sp_toy *t, int64_t cell);
/* other: an index is a cell and a factor, so more of them change none. */
void sp_toy_draw_others(sp_toy *t);
/* loading and scale; where there are factors without positions, a gene has loadings of one kind
 * only, that of factor d modulo all of them, of which gene d has 2 more. Then the
 * counts, into a file of sparse rows; sets entries. */
fth_status sp_toy_load(sp_toy *t, fth_err *err);
fth_status sp_toy_write_counts(sp_toy *t, const char *path, fth_err *err);
/* image.png, and where it lies. */
fth_status sp_toy_write_image(const sp_toy *t, const char *dir, fth_err *err);
void sp_toy_image_place(const sp_toy *t, sp_image *out);
/* Upper bounds of the memory of the sequential sampler and of the counts. */
uint64_t sp_toy_near_bytes(const sp_toy *t);
uint64_t sp_toy_counts_bytes(const sp_toy *t);
/* Adds the files that sp_toy_make writes, and with `plan` its memory, to the answer. */
fth_status sp_toy_tell(sp_toy *t, fth_answer *a, const char *dir, const char *h5ad, fth_err *err);
/* All of it into the folder `dir`, which is made. `h5ad` (may be NULL): the same as one file. */
fth_status sp_toy_make(sp_toy *t, const char *dir, const char *h5ad, fth_err *err);

#endif
