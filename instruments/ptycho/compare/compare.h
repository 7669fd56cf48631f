/* compare.h - several reconstructions of one scan side by side. */
#ifndef PTYCHO_COMPARE_COMPARE_H
#define PTYCHO_COMPARE_COMPARE_H

#include "../evaluate/evaluate.h"

extern const fth_verb pt_verb_compare;

enum { PT_MOST_COMPARED = 7 }; /* and the truth */

/* A model: its name in tables and files, and the path of its reconstruction. */
typedef struct pt_candidate {
    char name[48];
    const char *path;
} pt_candidate;

typedef struct pt_comparison {
    fth_context *ctx;
    const fth_config *config;
    const char *truth, *folder;
    const pt_candidate *model;
    int n;
    FILE *out;              /* a human-readable table; NULL: none */
    fth_json_writer *facts; /* the same as JSON; NULL: none */
} pt_comparison;

/* comparison_plot.png, comparison_metrics.csv, NAME_frc_curves.csv, frc.png, reconstructions.npz
 * and reconstructions_aligned.npz in the folder, which is made as needed. */
fth_status pt_compare(const pt_comparison *c, fth_err *err);

/* "NAME=FILE", or FILE, whose folder or stem is the name. FTH_E_COMMAND when it has no good name.
 */
fth_status pt_candidate_parse(pt_candidate *out, const char *word, fth_err *err);

#endif
