/* stage_faults.h - the stages of an instrument without memory and without room on the disk.
 *
 * After each failure: a status that says so, no temporary file, nothing held; and the next run ends
 * with the bytes of an undisturbed one.
 */
#ifndef TESTING_STAGE_FAULTS_H
#define TESTING_STAGE_FAULTS_H

#include <fathom/fathom.h>

typedef struct t_stage_faults {
    const fth_instrument *instrument;
    const char *model, *config; /* of a small job */
    uint64_t budget;
    int64_t request_step, write_step; /* after failure n comes n + 1 + n / step */
    /* Names of files that hold times, or what was there before: " a.json b.bin "; NULL: none. */
    const char *except;
} t_stage_faults;

/* At least so many requests and writes of the stage must fail. Stages before it are run first. */
void t_stage_fail(const t_stage_faults *of, int stage, int64_t requests, int64_t writes);
/* A failure takes the record of the first stage away. */
void t_stage_fail_record(const t_stage_faults *of);

#endif
