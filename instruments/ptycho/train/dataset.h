/* dataset.h - a scan as the network sees it: amplitudes, groups of patterns, and their scale. */
#ifndef PTYCHO_TRAIN_DATASET_H
#define PTYCHO_TRAIN_DATASET_H

#include "../group/group.h"
#include "../scan/scan.h"

typedef struct pt_dataset {
    fth_mem *mem;
    pt_scan scan;
    fth_source amplitude; /* [scan row col] f32, rows in any order */
    int64_t n;            /* patterns that are used */
    int64_t *kept;        /* [n] their numbers in the scan; NULL: all */
    double *x, *y;        /* [n] positions, in blocks of their own */
    pt_groups groups;     /* numbers are those of the scan */
    uint8_t *mask;        /* [row col], 1 where all patterns are good; NULL: everywhere */
    double mean_energy;   /* of a pattern, over all groups */
    uint64_t print;       /* hash of energies, positions and groups, to recognise the data */
} pt_dataset;

/* How many groups, where the key has no value: 512 to train with, all to infer with. */
typedef enum pt_dataset_use { PT_TO_TRAIN, PT_TO_INFER } pt_dataset_use;

/* `call` may be NULL. gridsize and neighbours 0: those of the config. Without `look` patterns are
 * not read, for plans: the mean energy is 0. On failure it is closed. */
fth_status pt_dataset_open(pt_dataset *d, fth_context *ctx, const fth_stage_call *call,
                           const fth_config *cfg, const char *path, pt_dataset_use use,
                           int64_t gridsize, int64_t neighbours, bool look, fth_err *err);
void pt_dataset_close(pt_dataset *d); /* a cleared one is allowed */

/* The side of merged regions for these groups by the key merge_size; *clipped groups would lose
 * something. */
int64_t pt_dataset_region(const pt_dataset *d, const fth_config *cfg, int64_t *clipped);

/* Relative positions of groups [from, from + n) of `order` as f32 [group chan xy]; order NULL: in
 * their own order. And the patterns of these groups, [group chan]. */
void pt_dataset_rel(const pt_dataset *d, const int64_t *order, int64_t from, int64_t n, float *out);
void pt_dataset_rows(const pt_dataset *d, const int64_t *order, int64_t from, int64_t n,
                     int64_t *out);

#endif
