/* tables.h - metrics.csv and planes.csv: the quality of stacks and of their planes. */
#ifndef FOCUS_OUTPUT_TABLES_H
#define FOCUS_OUTPUT_TABLES_H

#include "../fuse/fuse.h"
#include "../input/input.h"
#include "room.h"

typedef enum fo_state {
    FO_WAITING,
    FO_DONE,
    FO_SKIPPED, /* its image is there */
    FO_FAILED,
    FO_EMPTY /* no frame of it exists, so there is no image */
} fo_state;

/* Results of a run for each stack. */
typedef struct fo_results {
    fth_mem *mem;
    int64_t n, planes;
    double *stats;       /* [stack][FO_STATS] */
    double *mean_log;    /* [stack][z] */
    double *corr_next;   /* [stack][z] */
    uint8_t *kept;       /* [stack][z] */
    uint8_t *state;      /* [stack]: fo_state */
    uint8_t *known;      /* [stack]: its numbers are known */
    fth_texts *failures; /* a line for each stack that failed */
} fo_results;
fth_status fo_results_create(fo_results *r, fth_mem *mem, int64_t n, int64_t planes, fth_err *err);
void fo_results_free(fo_results *r); /* an empty one is allowed */
/* All about one stack, of results with as many planes. */
void fo_results_copy(fo_results *to, int64_t to_stack, const fo_results *from, int64_t from_stack);
int64_t fo_results_count(const fo_results *r, fo_state state);

/* Names of the stacks in the tables. */
typedef struct fo_labels {
    void (*name)(void *user, int64_t stack, char *text, size_t bytes);
    void (*well)(void *user, int64_t stack, char *text, size_t bytes);
    void *user;
} fo_labels;
/* Both tables together: rows of numbers with all their digits, or with half of them. */
fo_amount fo_tables_amount(const fo_results *r);
/* Reads the rows of stacks in state FO_SKIPPED from existing tables: those need no measuring. */
fth_status fo_tables_load(fo_results *r, const fo_input *in, const fo_labels *labels,
                          const char *metrics, const char *planes, fth_err *err);
/* Stacks whose numbers are known, in their order; no times, so equal runs give equal files. */
fth_status fo_tables_save(const fo_results *r, const fo_input *in, const fo_labels *labels,
                          const char *metrics, const char *planes, fth_err *err);

#endif
