/* clash.c - see clash.h. */
#include "clash.h"

/* One output against all inputs. A different size or time means another file: that leaves few to
 * compare by their resolved paths, however many files there are. */
static fth_status check_one(const fo_input *in, const fth_path_info *inputs, const char *path,
                            fth_mem *mem, fth_err *err)
{
    fth_path_info at;
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_path_stat(path, &at, err));
    for (int64_t i = 0; i < in->n_files; i++) {
        if (inputs[i].bytes != at.bytes || inputs[i].mtime_ns != at.mtime_ns) continue;
        const fth_path_use use[] = {{FTH_FILE_INPUT, "IN", in->file[i].path},
                                    {FTH_FILE_OUTPUT, "OUT", path}};
        FTH_TRY(fth_paths_check(use, 2, mem, err));
    }
    return FTH_OK;
}

static fth_status check_all(const fo_names *n, const bool wanted[FO_OUT_KINDS],
                            fth_path_info *inputs, fth_mem *mem, fth_err *err)
{
    const fo_input *in = n->in;
    char path[FTH_PATH];
    for (int64_t i = 0; i < in->n_files; i++)
        FTH_TRY(fth_path_stat(in->file[i].path, &inputs[i], err));
    for (int64_t i = 0; i < in->n_stacks; i++)
        for (fo_port port = 0; port < FO_OUT_KINDS + (int)in->others; port++) {
            if (port < FO_OUT_KINDS && !wanted[port]) continue;
            FTH_TRY(fo_names_path(n, i, port, path, err));
            FTH_TRY(check_one(in, inputs, path, mem, err));
        }
    return FTH_OK;
}

fth_status fo_names_check(const fo_names *n, const bool wanted[FO_OUT_KINDS], fth_mem *mem,
                          fth_err *err)
{
    fth_path_info *inputs = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, (uint64_t)(n->in->n_files + 1) * sizeof *inputs,
                         "inputs", (void **)&inputs, err));
    const fth_status s = check_all(n, wanted, inputs, mem, err);
    (void)fth_mem_release(mem, inputs, NULL);
    return s;
}
