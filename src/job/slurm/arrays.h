/* job/slurm/arrays.h - tasks into job arrays: which array, which index, and what each array waits
 * for.
 *
 * A pure function: no Slurm, no files. Tasks of one kind (stage and resources) share an array. A
 * task takes the index of the task that it waits for, so that `aftercorr` ties element to element;
 * where several tasks wait for one (models behind a shared stage), there is an array for each of
 * them, or one array behind that element with `afterok`, whichever makes fewer arrays. Predecessors
 * of predecessors are left out: who waits for `fit` need not wait for `survey`, too.
 */
#ifndef FTH_JOB_SLURM_ARRAYS_H
#define FTH_JOB_SLURM_ARRAYS_H

#include "base/str.h"
#include "job/run/graph.h"

/* A task that is to be placed, or with `placed` one that an earlier call has placed. */
typedef struct fth__slurm_item {
    int64_t task; /* for the caller */
    int stage;    /* number of its stage: above those of all that it waits for */
    int64_t kind; /* items of equal numbers may share an array */
    int n_before;
    int64_t before[FTH__GRAPH_STAGES]; /* numbers of items; reduced to the direct ones */
    bool placed;
    int64_t array, index; /* the result; `array` is a number over all calls */
} fth__slurm_item;

typedef enum fth__slurm_wait {
    FTH__SLURM_WAIT_NONE,
    FTH__SLURM_WAIT_CORR, /* element i for element i of each array of `on` */
    FTH__SLURM_WAIT_OK    /* all elements for each element of `on` */
} fth__slurm_wait;

typedef struct fth__slurm_array {
    int64_t number; /* the first new one is the `next` of the call */
    int64_t kind;
    int64_t n; /* elements */
    fth__slurm_wait wait;
    int n_on;
    int64_t on[FTH__GRAPH_STAGES], on_index[FTH__GRAPH_STAGES];
} fth__slurm_array;

typedef struct fth__slurm_arrays {
    fth_mem *mem;
    fth__slurm_array *array;
    int64_t n, cap;
} fth__slurm_arrays;

/* `most`: elements of one array, and the limit of its indices. */
fth_status fth__slurm_place(fth__slurm_arrays *out, fth_mem *mem, fth__slurm_item *item, int64_t n,
                            int64_t next, int64_t most, fth_err *err);
void fth__slurm_arrays_clear(fth__slurm_arrays *a);

/* "0-3,7,9-11" of ascending numbers. */
void fth__slurm_format_indices(fth__text *t, const int64_t *index, int64_t n);

#endif
