/* hdf5.c - which layout an HDF5 file has, and its reader. */
#include "parts.h"

fth_status pt_read_hdf5(pt_draft *d, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: HDF5 files of scans are not read yet",
                    d->scan->path);
}
