/* testing/focus/focus.h - stacks through fo_fuse and out again, and arrays of tests/golden/focus.
 */
#ifndef FATHOM_TESTING_FOCUS_H
#define FATHOM_TESTING_FOCUS_H

#include "instruments/focus/fuse/fuse.h"
#include "testing/test.h"

/* One run. Settings that nobody chose are settled first. */
typedef struct tf_job {
    fo_fusion how;
    fo_sizes n;
    fth_dtype dtype;
    const void *data;       /* [stack z y x] */
    const uint8_t *present; /* [stack z]; NULL: all exist */
    int threads;            /* 0: 1 */
    uint64_t memory;        /* of the plan; 0: any */
    const char *stream;     /* axis to stream; NULL: as the planner likes */
} tf_job;
/* What it gave; NULL what the method has not got. */
typedef struct tf_result {
    fth_status status;
    fth_err err;
    fth_dtype dtype; /* of image */
    void *image;
    uint8_t *image8, *kept;
    uint16_t *index;
    float *depth, *confidence;
    double *mean_log, *corr_next, *stats, *lo, *hi;
    uint64_t bytes[11]; /* of each of these, in the order of fo_fused */
} tf_result;

tf_job tf_job_of(fo_method method, fth_dtype dtype, const void *data, fo_sizes n);
/* Runs and fails the case when the run fails. */
tf_result tf_run(const tf_job *job);
/* Runs; the error is in the result. */
tf_result tf_try(const tf_job *job);
void tf_free(tf_result *r);
/* Fails the case where any output of the two differs in a byte. */
void tf_same(const tf_result *a, const tf_result *b, const char *what);

/* An array of tests/golden/focus: the file, or a member of an .npz. Freed by the caller. */
void *tf_golden(const char *file, const char *member, fth_dtype dtype, int64_t *count);
/* Peak signal to noise ratio of 8 bit images, in dB. */
double tf_psnr(const uint8_t *a, const uint8_t *b, int64_t n);

#endif
