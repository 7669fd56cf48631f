/* rules.h - quality control: which rules act, from the config and the preset (model 2.2).
 *
 * A key that is given acts for every dataset. One that is not given has its default in the presets
 * with quality control and no effect elsewhere.
 */
#ifndef SPATIAL_RULES_H
#define SPATIAL_RULES_H

#include "../read/loaders.h"

/* Why genes were dropped, in the order of the rules. */
typedef enum sp_gene_drop {
    SP_GENE_STAYS,
    SP_GENE_FEATURE,  /* another type of feature, a control: the source leaves it out */
    SP_GENE_CELLS,    /* in too few cells */
    SP_GENE_MT,       /* mitochondrial */
    SP_GENE_LIST,     /* not among the genes that were asked for */
    SP_GENE_VARIABLE, /* not among the most variable ones */
    SP_GENE_DROPS
} sp_gene_drop;
extern const char *const sp_gene_drop_names[SP_GENE_DROPS];

/* Choices of preprocessing.highly_variable_flavor. */
typedef enum sp_flavor { SP_SEURAT_V3, SP_SEURAT, SP_DEVIANCE } sp_flavor;

typedef struct sp_rules {
    bool cells;         /* one of those for cells acts */
    bool more;          /* a rule acts that is not the preset's */
    double max_mt;      /* per cent; below 0: any share */
    int64_t min_counts; /* 0: any */
    int64_t min_genes;  /* 0: any */
    bool genes;         /* one of those for genes acts */
    int64_t min_cells;  /* 0: any */
    bool filter_mt;     /* drop mitochondrial genes */
    bool listed;        /* keep only the genes of preprocessing.genes or genes_file */
    int64_t variable;   /* keep so many; 0: all */
    sp_flavor flavor;
    bool idle_flavor; /* one is given, but no number of genes */
} sp_rules;

sp_rules sp_rules_of(const fth_config *cfg, const sp_loader *loader);

/* Whether a key of `preprocessing` that has a value acts, if it is given or if it has its default:
 * neither the dataset nor another key of this config leaves it without effect. */
bool sp_rules_act(const fth_config *cfg, const sp_loader *loader, const char *key, bool given);

/* Mark the genes that the config lists in wanted[genes]. Every name has to be there, and not among
 * those that left_out[genes] marks (NULL: none); `source` is where they are looked for. */
fth_status sp_rules_listed(const fth_config *cfg, fth_mem *mem, const fth_texts *genes,
                           const bool *left_out, const char *source, bool *wanted, fth_err *err);

#endif
