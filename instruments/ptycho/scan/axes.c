/* axes.c - a source with other axes than [scan row col], reordered to these; and its copy. */
#include "copy.h"
#include "parts.h"

#include <string.h>

enum { PIECE = 4 << 20 };

typedef struct axes {
    fth_mem *mem;
    fth_source base;
    int axis[3];
    bool in_order;
} axes;

static inline void copy_item(char *to, const char *from, int64_t item)
{
    memcpy(to, from, (size_t)item);
}

/* The elements of base axes in their order, to [scan row col]. */
static void transpose(const axes *a, const int64_t n[3], const char *from, char *to)
{
    const int64_t item = fth_dtype_size(a->base.dtype);
    int64_t stride[FTH_MAX_AXES], step = 1;
    for (int k = a->base.n_axes; k-- > 0;) {
        stride[k] = step;
        for (int j = 0; j < 3; j++)
            if (a->axis[j] == k) step *= n[j];
    }
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++, to += item)
                copy_item(to,
                          from + item * (i * stride[a->axis[0]] + j * stride[a->axis[1]] +
                                         k * stride[a->axis[2]]),
                          item);
}

static fth_status read_base(const axes *a, const int64_t lo[3], const int64_t n[3], void *dst,
                            fth_err *err)
{
    int64_t first[FTH_MAX_AXES] = {0}, count[FTH_MAX_AXES];
    for (int k = 0; k < FTH_MAX_AXES; k++) count[k] = 1;
    for (int j = 0; j < 3; j++) {
        first[a->axis[j]] = lo[j];
        count[a->axis[j]] = n[j];
    }
    return a->base.read(a->base.self, first, count, dst, err);
}

static fth_status axes_read(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const axes *a = self;
    if (a->in_order) return read_base(a, lo, n, dst, err);
    const int64_t item = fth_dtype_size(a->base.dtype), frame = n[1] * n[2] * item;
    if (n[0] == 0 || frame == 0) return FTH_OK;
    int64_t most = PIECE / frame < 1 ? 1 : PIECE / frame;
    void *room = NULL;
    if (fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)(n[0] * frame), "frames", &room, NULL) ==
        FTH_OK)
        most = n[0];
    else
        FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)(most * frame), "frames", &room, err));
    fth_status s = FTH_OK;
    for (int64_t at = 0; s == FTH_OK && at < n[0]; at += most) {
        const int64_t first[3] = {lo[0] + at, lo[1], lo[2]},
                      some[3] = {n[0] - at < most ? n[0] - at : most, n[1], n[2]};
        s = read_base(a, first, some, room, err);
        if (s == FTH_OK) transpose(a, some, room, (char *)dst + at * frame);
    }
    fth_mem_release(a->mem, room, NULL);
    return s;
}

fth_status pt_axes_view(pt_scan *scan, const fth_source *base, const int axis[3], fth_source *out,
                        fth_err *err)
{
    void *block = NULL;
    FTH_TRY(pt_scan_hold(scan, sizeof(axes), "axes of a scan", &block, err));
    axes *a = block;
    *a = (axes){.mem = scan->mem, .base = *base};
    memcpy(a->axis, axis, sizeof a->axis);
    a->in_order = axis[0] < axis[1] && axis[1] < axis[2];
    *out = (fth_source){.kind = base->kind,
                        .self = a,
                        .dtype = base->dtype,
                        .n_axes = 3,
                        .size = {base->size[axis[0]], base->size[axis[1]], base->size[axis[2]]},
                        .read = axes_read,
                        .libraries = base->libraries,
                        .billed_bytes = base->billed_bytes};
    return FTH_OK;
}

/* ---- a copy on the disk ---- */

fth_status pt_copy_frames(pt_scan *scan, const fth_source *from, const fth_sink *to, fth_err *err)
{
    enum { MOST = 64 << 20 }; /* bytes per copy, to bound memory */
    const int64_t frame = from->size[1] * from->size[2] * fth_dtype_size(from->dtype);
    fth_mem_stats stats;
    fth_mem_get_stats(scan->mem, &stats);
    const uint64_t left =
        stats.budget_bytes > stats.used_bytes ? stats.budget_bytes - stats.used_bytes : 0;
    int64_t rows = (int64_t)(left / 4 < MOST ? left / 4 : MOST) / (frame > 0 ? frame : 1);
    if (rows < 1) rows = 1;
    if (rows > from->size[0]) rows = from->size[0];
    void *room = NULL;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(rows * frame), "frames", &room, err));
    fth_status s = FTH_OK;
    for (int64_t at = 0; s == FTH_OK && at < from->size[0]; at += rows) {
        const int64_t lo[3] = {at, 0, 0},
                      n[3] = {from->size[0] - at < rows ? from->size[0] - at : rows, from->size[1],
                              from->size[2]};
        s = from->read(from->self, lo, n, room, err);
        if (s == FTH_OK) s = to->write(to->self, lo, n, room, err);
    }
    fth_mem_release(scan->mem, room, NULL);
    return s;
}

/* The scratch folder of the context, else that of the scan, else the current one. The file is
 * unnamed, so nothing is left behind. */
static fth_status find_folder(const pt_scan *scan, char folder[FTH_PATH], fth_err *err)
{
    const char *given = fth_context_scratch_dir(scan->ctx);
    if (given) {
        snprintf(folder, FTH_PATH, "%s", given);
        return FTH_OK;
    }
    FTH_TRY(fth_path_parent(folder, scan->path, err));
    if (fth_path_is_writable(folder)) return FTH_OK;
    snprintf(folder, FTH_PATH, ".");
    if (fth_path_is_writable(folder)) return FTH_OK;
    FTH_FAIL(err, FTH_E_SCRATCH,
             "%s: compressed patterns must be unpacked for random access, and neither its folder "
             "nor the current one is writable",
             scan->path);
    fth_err_hint(err, "name a folder with --scratch");
    return FTH_E_SCRATCH;
}

fth_status pt_unpack(pt_scan *scan, const fth_source *from, fth_source *out, fth_err *err)
{
    fth_scratch *scratch = NULL;
    char folder[FTH_PATH];
    FTH_TRY(find_folder(scan, folder, err));
    FTH_TRY(fth_scratch_create(&scratch, scan->mem, folder, "patterns", from->dtype, from->n_axes,
                               from->size, err));
    FTH_TRY(pt_scan_keep_scratch(scan, scratch, err));
    const fth_sink sink = fth_scratch_sink(scratch);
    FTH_TRY(pt_copy_frames(scan, from, &sink, err));
    if (sink.commit) FTH_TRY(sink.commit(sink.self, err));
    *out = fth_scratch_source(scratch);
    return FTH_OK;
}
