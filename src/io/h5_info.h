/* io/h5_info.h - facts of an open HDF5 file for readers that do not know libhdf5. */
#ifndef FTH_IO_H5_INFO_H
#define FTH_IO_H5_INFO_H

#include <fathom/io.h>

fth_mem *fth__h5_mem(const fth_h5 *h5);
const char *fth__h5_path(const fth_h5 *h5);

#endif
