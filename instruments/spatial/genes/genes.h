/* genes.h - numbers of every gene: spatial variation, and how much of it the model explains
 * (model 14.11), and scores of sets of genes (model 14.12). */
#ifndef SPATIAL_GENES_H
#define SPATIAL_GENES_H

#include "../data/data.h"
#include "../statistics/moran.h"

/* Streams of random numbers, behind those of spatial.h and toy.h. */
enum { SP_STREAM_SHUFFLED = 100, SP_STREAM_SHUFFLED_GENES, SP_STREAM_SHUFFLED_GROUPS };

/* ---- memory ---- */

/* What is left of the budget beside what is held and what the library itself takes. */
uint64_t sp_genes_left(fth_context *ctx);

/* ---- Moran's I of every gene (gene_moran.c) ---- */

typedef enum sp_normalise {
    SP_NORMALISE_LOG1P, /* log1p(y median depth / depth of the cell) */
    SP_NORMALISE_RAW
} sp_normalise;

typedef struct sp_gene_moran {
    int64_t genes;
    double *mean, *fraction; /* [gene]: mean count, share of cells with one */
    double *I, *score, *p, *q;
    double *p_perm, *q_perm; /* NaN without permutations */
    int64_t *order;          /* [gene]: room */
    int64_t passes;          /* over the counts */
    void *block;
    fth_mem *mem;
} sp_gene_moran;
typedef struct sp_gene_moran_options {
    sp_normalise normalise;
    int64_t permutations, seed;
} sp_gene_moran_options;
/* Bytes beside opened data: the least, which reads the counts many times, and with which they are
 * read twice. */
uint64_t sp_gene_moran_bytes(const sp_sizes *size, int threads, bool least);
/* Over the cells of `data`. Counts are held gene by gene, as many genes as the budget has room for;
 * the result does not depend on how many. */
fth_status sp_gene_moran_run(sp_gene_moran *out, fth_context *ctx, const sp_data *data,
                             const sp_gene_moran_options *opt, fth_err *err);
void sp_gene_moran_clear(sp_gene_moran *m); /* an empty one is allowed */

/* ---- deviance of every gene (gene_fit.c) ---- */

typedef struct sp_gene_fit {
    int64_t genes;
    double *deviance, *null; /* [gene]: of the model, of a constant rate */
    double *share;           /* 1 - deviance / null; NaN: a gene without counts */
    int64_t *top;            /* [gene]: factor that gives most of the expected counts */
    double *top_share;       /* what part of them */
    void *block;
    fth_mem *mem;
} sp_gene_fit;
/* F is f32 [cell factor] of all rows of the folder, `size` f32 [cell] multiplies it (kind NULL: not
 * at all), W f32 [gene factor]; held_out bool [cell] marks rows that do not count, NULL: none. With
 * `answer` it is planned and nothing runs. */
fth_status sp_gene_fit_run(sp_gene_fit *out, fth_context *ctx, const sp_data *data, fth_source F,
                           fth_source size, fth_tensor *W, fth_tensor *held_out, fth_answer *answer,
                           fth_err *err);
uint64_t sp_gene_fit_bytes(int64_t genes); /* of the result, which is held */
void sp_gene_fit_clear(sp_gene_fit *f);    /* an empty one is allowed */

#endif
