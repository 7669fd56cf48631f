/* backend.h - finding a backend's shared object. */
#ifndef FTH_RUN_BACKEND_H
#define FTH_RUN_BACKEND_H

#include <fathom/backend.h>

/* `path`, or what lies beside our own library or where the system looks. The caller closes
 * *library (dlclose) when nothing of the backend is used any more. */
fth_status fth__backend_load(const char *path, const fth_backend **out, void **library,
                             fth_err *err);

#endif
