/* data.h - the scans of a job: files that the config names, or simulated ones; and stage `data`. */
#ifndef PTYCHO_DATA_DATA_H
#define PTYCHO_DATA_DATA_H

#include <fathom/fathom.h>
#include <fathom/files.h>

/* Simulated scans in the output folder: to reconstruct or train on, and to test on. */
#define PT_SCAN_NPZ "scan.npz"
#define PT_SCAN_TEST_NPZ "scan_test.npz"

FTH_STAGE_FUNCTIONS(pt_data_stage);
fth_status pt_data_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err);

/* Path of the scan of a job: train_data_file, or the simulated one. With `test` the scan to test a
 * trained model on: test_data_file, the second simulated one (n_test_images), or the same. */
fth_status pt_job_scan(const fth_stage_call *call, bool test, char path[FTH_PATH], fth_err *err);
/* A job is solved or learned (key `method`): stages of the other method do nothing. */
bool pt_job_is_learned(const fth_config *cfg);

#endif
