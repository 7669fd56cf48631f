/* names.c - models by name, and paths. */
#include "spatial.h"

const sp_kind_info sp_kinds[SP_KIND_COUNT] = {
#define SP_MODEL(id, name, spatial, groups, local, prior) {name, spatial, groups, local, prior},
#include "models.def"
#undef SP_MODEL
};

fth_status sp_path(char path[SP_PATH], const char *dir, const char *name, fth_err *err)
{
    const int n = snprintf(path, SP_PATH, "%s/%s", dir, name);
    if (n > 0 && n < SP_PATH) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_OPEN, "the path of %s is longer than %d bytes", name, SP_PATH - 1);
    fth_err_hint(err, "choose an output_dir with a shorter path");
    return s;
}
