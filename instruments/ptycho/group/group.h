/* group.h - groups of neighbouring patterns. A scan is grouped when it is used, from positions
 * alone. Random draws come from the compat generator in the order of PtychoPINN, so equal settings
 * give its groups.
 */
#ifndef PTYCHO_GROUP_GROUP_H
#define PTYCHO_GROUP_GROUP_H

#include <fathom/fathom.h>

typedef struct pt_group_options {
    int64_t gridsize;   /* a group has gridsize^2 patterns */
    int64_t n_groups;   /* 0: one for each pattern */
    int64_t neighbours; /* nearest patterns that a group is drawn from */
    int64_t pool;       /* pool of oversampling; 0: as many as neighbours */
    int64_t seed;
    bool sequential; /* around the first patterns, not around random ones */
    bool oversample; /* more groups than patterns are allowed */
} pt_group_options;

/* Keys of a config; n_groups is 0 where the key has no value. */
pt_group_options pt_group_settings(const fth_config *cfg);

typedef struct pt_groups {
    fth_mem *mem;
    int64_t n, chan;
    int64_t *idx; /* [group chan] numbers of patterns */
    double *off;  /* [group xy] mean of their positions */
    double *rel;  /* [group chan xy] off - position */
    bool capped;  /* fewer groups than requested: there are no more patterns */
} pt_groups;

/* x, y [scan] in pixels. FTH_E_COMMAND for inconsistent settings, FTH_E_FILE_SHAPE for a scan that
 * is too small. */
fth_status pt_groups_make(pt_groups *out, fth_context *ctx, const double *x, const double *y,
                          int64_t n, const pt_group_options *opt, fth_err *err);
void pt_groups_clear(pt_groups *g); /* a cleared one is allowed */
/* Upper bound of the memory of pt_groups_make, results included. */
uint64_t pt_groups_bytes(int64_t n, const pt_group_options *opt);

/* n_subsample patterns of n, ascending, into out[0..keep); drawn with `seed`. */
fth_status pt_subsample(fth_mem *mem, int64_t n, int64_t keep, int64_t seed, int64_t *out,
                        fth_err *err);

#endif
