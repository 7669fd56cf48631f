/* testing/job/sample.h - a folder with the results of many jobs, and the view of it.
 *
 * Made from a seed: figures and logs are real files, numbers are plausible, some jobs failed.
 */
#ifndef FATHOM_TESTING_SAMPLE_H
#define FATHOM_TESTING_SAMPLE_H

#include "testing/job/view.h"

typedef struct t_sample {
    const char *root; /* canonical; exists */
    int64_t jobs;
    int figures;    /* of each job */
    int side;       /* pixels of a figure's width; 0: 480 */
    bool running;   /* some jobs are still at it */
    bool no_figure; /* figures are listed but not drawn */
} t_sample;
/* Fill an empty view with three stages for each job; FAILs what cannot be written. */
void t_sample_make(fth_view *view, const t_sample *sample);
/* Write the ledgers of its output directories. */
void t_sample_write(const fth_view *view);

#endif
