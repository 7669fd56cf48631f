/* gene_sets.h - sets of genes of a GMT file, and their scores in each factor (model 14.12).
 *
 * A line of a GMT file is a set: its name, a description, and the names of its genes, parted by
 * tabs.
 */
#ifndef SPATIAL_GENE_SETS_H
#define SPATIAL_GENE_SETS_H

#include "../spatial.h"

#define SP_GENE_SETS_CSV "gene_set_scores.csv"

/* The longest line: sets have thousands of genes at most. */
enum { SP_GMT_LINE = 1 << 20 };

typedef struct sp_gene_sets {
    fth_mem *mem;
    fth_texts *names;
    int64_t n;       /* sets */
    int64_t unknown; /* sets without a gene of the data */
    int64_t *listed; /* [n]: genes in the file, each once */
    int64_t *begin;  /* [n + 1]: in `gene` */
    int64_t *gene;   /* genes of the data, each once in a set */
    void *block;
} sp_gene_sets;
/* Errors name file and line. An empty file and a set that is there twice are refused. */
fth_status sp_gene_sets_read(sp_gene_sets *out, fth_mem *mem, const char *path,
                             const fth_texts *gene_names, fth_err *err);
void sp_gene_sets_free(sp_gene_sets *s); /* an empty one is allowed */

typedef struct sp_gene_sets_options {
    const float *W; /* [gene][factor] */
    const fth_texts *gene_names;
    int64_t genes, factors;
    int64_t top;                /* genes of each factor that are its list */
    int64_t permutations, seed; /* of genes; 0: none */
} sp_gene_sets_options;
/* Bytes of scoring, at most. */
uint64_t sp_gene_sets_bytes(const sp_gene_sets *s, const sp_gene_sets_options *opt);
/* Writes gene_set_scores.csv. */
fth_status sp_gene_sets_score(const sp_gene_sets *s, const sp_gene_sets_options *opt,
                              const char *path, fth_err *err);
/* The chance of so many hits or more among `top` of `genes`, of which `known` are in the set. */
double sp_hypergeometric(int64_t hits, int64_t known, int64_t top, int64_t genes);

#endif
