/* testing/io/io_jobs.h - one small job per file format and direction, for tests that make it fail.
 *
 * A writer puts two rectangles or two arrays in place of the file `path`; a reader opens it (or the
 * golden file of its format), reads all and closes. Whatever fails, everything is given back.
 */
#ifndef FATHOM_TESTING_IO_JOBS_H
#define FATHOM_TESTING_IO_JOBS_H

#include <fathom/io.h>

typedef fth_status io_job(fth_mem *mem, const char *path, fth_err *err);
io_job io_write_npy, io_write_raw, io_write_npz, io_write_safetensors, io_write_h5;
io_job io_read_npy, io_read_raw, io_read_npz, io_read_safetensors, io_read_h5; /* npz: and CSR */
io_job io_write_nd2, io_read_nd2, io_write_jpeg, io_write_tiff;
io_job io_read_pictures; /* JPEG, OME-TIFF, TIFF of every packing */

#endif
