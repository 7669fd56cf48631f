/* grid.c - an input of stacks whose planes are files of their own: see fo_input_open_grid.
 *
 * A plate has a hundred thousand of them. Each is opened once, for its header; only its name is
 * kept, because all have one size and dtype.
 */
#include "input.h"

#include "problems.h"
#include "reopen.h"

#include <string.h>

/* One file, compared with the first. */
static fth_status look_at(fo_input *in, int64_t i, fo_problems *problems, fth_err *err)
{
    fo_file f = {0}, *first = &in->file[0];
    fth_err found = {0};
    const char *path = fth_texts_get(in->names, i);
    const fth_status s = fo_file_open(&f, in->mem, path, in->selection, &found);
    if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) return FTH_FAIL(err, s, "%s", found.text);
    if (s != FTH_OK) {
        fo_problems_take(problems, &found);
        return FTH_OK;
    }
    const fth_source shape = f.source;
    fo_file_close(&f);
    f.source =
        (fth_source){.dtype = shape.dtype, .n_axes = shape.n_axes, .libraries = shape.libraries};
    memcpy(f.source.size, shape.size, sizeof shape.size);
    memcpy(f.source.part, shape.part, sizeof shape.part);
    const int64_t pictures = f.size[FO_B] * f.size[FO_T] * f.size[FO_P] * f.size[FO_Z];
    if (pictures != 1 || (f.size[FO_C] > 1 && !f.rgb) || f.dtype == FTH_F32)
        fo_problems_add(problems, true, NULL,
                        "%.300s: expected one picture of u8 or u16, grey or RGB, found %lld of %s "
                        "with %lld channels",
                        path, (long long)pictures, fth_dtype_name(f.dtype),
                        (long long)f.size[FO_C]);
    else if (!first->path)
        *first = f;
    else if (f.size[FO_Y] != first->size[FO_Y] || f.size[FO_X] != first->size[FO_X] ||
             f.dtype != first->dtype || f.rgb != first->rgb)
        fo_problems_add(
            problems, true, NULL,
            "%.300s: expected y=%lld x=%lld %s%s as in %.300s, found y=%lld x=%lld %s%s", path,
            (long long)first->size[FO_Y], (long long)first->size[FO_X],
            fth_dtype_name(first->dtype), first->rgb ? " RGB" : "", first->path,
            (long long)f.size[FO_Y], (long long)f.size[FO_X], fth_dtype_name(f.dtype),
            f.rgb ? " RGB" : "");
    return FTH_OK;
}

/* A hash of its name, size and both ends: another image has other noise in its first rows, and the
 * microscope writes the time after the last. The modification time is ignored: a copy is the
 * same. */
static fth_status add_identity(fth_mem *mem, const char *path, uint64_t bytes, uint64_t *hash,
                               fth_err *err)
{
    enum { END = 4096 };
    char block[END];
    fth_file *f = NULL;
    const uint64_t n = bytes < END ? bytes : END;
    const char *name = fth_path_name(path);
    FTH_TRY(fth_file_open(&f, mem, path, err));
    *hash = fth_hash_bytes(name, strlen(name), *hash ^ bytes);
    fth_status s = fth_file_read(f, 0, n, block, "its start", err);
    if (s == FTH_OK) *hash = fth_hash_bytes(block, (size_t)n, *hash);
    if (s == FTH_OK) s = fth_file_read(f, bytes - n, n, block, "its end", err);
    if (s == FTH_OK) *hash = fth_hash_bytes(block, (size_t)n, *hash);
    fth_file_close(f);
    return s;
}

static fth_status know_again(fth_mem *mem, const char *path, fo_grid_files *files,
                             uint64_t *identity, fth_err *err)
{
    fth_path_info info;
    FTH_TRY(fth_path_stat(path, &info, err));
    FTH_TRY(add_identity(mem, path, info.bytes, identity, err));
    const uint64_t facts[2] = {info.bytes, (uint64_t)info.mtime_ns};
    files->n++;
    files->bytes += info.bytes;
    if (info.mtime_ns > files->newest_ns) files->newest_ns = info.mtime_ns;
    files->hash = fth_hash_bytes(path, strlen(path), files->hash);
    files->hash = fth_hash_bytes(facts, sizeof facts, files->hash);
    return FTH_OK;
}

/* Files that a stack uses, and no others. */
static fth_status look_at_all(fo_input *in, fo_grid_files *files, fo_problems *problems,
                              fth_err *err)
{
    for (int64_t k = 0; k < in->n_stacks * in->file_planes; k++) {
        if (in->plane[k] < 0) continue;
        const char *path = fth_texts_get(in->names, in->plane[k]);
        uint64_t *identity = &in->identity[k / in->file_planes];
        const int before = problems->n;
        FTH_TRY(look_at(in, in->plane[k], problems, err));
        if (problems->n == before) FTH_TRY(know_again(in->mem, path, files, identity, err));
    }
    return FTH_OK;
}

static void mark(fo_input *in, int64_t i)
{
    fo_stack *s = &in->stack[i];
    const int64_t have = s->planes - in->first_plane;
    s->planes = (int32_t)(have < 0 ? 0 : have < in->planes ? have : in->planes);
    s->present = 0;
    for (int64_t z = 0; z < in->planes; z++) {
        const bool there = in->plane[i * in->file_planes + z + in->first_plane] >= 0;
        in->present[i * in->planes + z] = there;
        s->present += there;
    }
    in->missing_frames += s->planes - s->present;
}

static fth_status open_grid(fo_input *in, const fo_grid *grid, fo_grid_files *files,
                            fo_problems *problems, fth_err *err)
{
    const int before = problems->n;
    void *block = NULL;
    in->n_stacks = grid->n;
    in->file_planes = grid->planes;
    in->n_files = 1;
    FTH_TRY(fth_mem_take(in->mem, FTH_MEM_POOL, sizeof *in->file, "file", &block, err));
    in->file = block;
    *in->file = (fo_file){0};
    const uint64_t identities = (uint64_t)grid->n * sizeof *in->identity;
    FTH_TRY(fth_mem_take(in->mem, FTH_MEM_POOL, identities, "identities", &block, err));
    in->identity = memset(block, 0, identities);
    FTH_TRY(look_at_all(in, files, problems, err));
    if (!in->file->path || problems->n > before) return FTH_OK;
    const fo_file *f = in->file;
    in->rows = in->size[FO_Y] = f->size[FO_Y];
    in->columns = in->size[FO_X] = f->size[FO_X];
    in->dtype = f->dtype;
    in->significant_bits = f->significant_bits;
    in->um_per_px = f->um_per_px;
    in->z_step_um = f->z_step_um;
    fo_input_select_planes(in, grid->planes, problems);
    if (problems->n > before) return FTH_OK;
    FTH_TRY(fo_reopener_create(&in->reopener, in, err));
    FTH_TRY(fo_input_take_grey(in, err));
    const uint64_t n = (uint64_t)grid->n;
    FTH_TRY(fth_mem_take(in->mem, FTH_MEM_POOL, n * sizeof *in->stack, "stacks", &block, err));
    in->stack = block;
    memcpy(in->stack, grid->stack, n * sizeof *in->stack);
    FTH_TRY(fth_mem_take(in->mem, FTH_MEM_POOL, n * (uint64_t)in->planes, "present planes", &block,
                         err));
    in->present = block;
    for (int64_t i = 0; i < grid->n; i++) mark(in, i);
    return FTH_OK;
}

fth_status fo_input_open_grid(fo_input *in, fth_mem *mem, const fo_grid *grid,
                              const fo_selection *selection, fo_grid_files *files,
                              fo_problems *problems, fth_err *err)
{
    const int before = problems->n;
    *in =
        (fo_input){.mem = mem, .selection = selection, .names = grid->paths, .plane = grid->plane};
    *files = (fo_grid_files){0};
    for (int a = 0; a < FO_AXES; a++) in->size[a] = 1;
    const fth_status s = open_grid(in, grid, files, problems, err);
    if (s != FTH_OK || problems->n > before) fo_input_close(in);
    return s;
}
