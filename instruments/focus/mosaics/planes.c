/* planes.c - the stitched planes of the tiles, as a z-stack of 8 bits; see mosaics.h.
 *
 * One plane is in memory at a time. It has the positions and the canvas of the image, so that both
 * coincide, and its own brightness.
 */
#include "mosaics.h"

#include <fathom/tiff.h>

/* Tiles of one plane onto the bench. */
static fth_status load_plane(const fo_mosaics *m, fo_bench *b, int64_t i, int64_t z, fth_err *err)
{
    char path[FTH_PATH];
    fo_bench_begin(b, m->mosaic[i].tiles);
    for (int k = 0; k < m->mosaic[i].tiles; k++) {
        FTH_TRY(m->names.tile(m->names.user, i, k, path, err));
        if (path[0]) FTH_TRY(m->names.plane(m->names.user, i, k, z, fo_bench_tile(b, k), err));
    }
    return FTH_OK;
}

static fth_status write_planes(const fo_mosaics *m, fo_bench *b, int64_t i, const fth_sink *sink,
                               fth_err *err)
{
    for (int64_t z = 0; z < m->names.planes; z++) {
        const int64_t lo[] = {z, 0, 0}, n[] = {1, sink->size[1], sink->size[2]};
        FTH_TRY(load_plane(m, b, i, z, err));
        fo_bench_draw(b, m->place + m->mosaic[i].place, 255);
        FTH_TRY(sink->write(sink->self, lo, n, fo_bench_bytes_of(b), err));
    }
    return sink->commit ? sink->commit(sink->self, err) : FTH_OK;
}

fth_status fo_mosaics_save_stack(const fo_mosaics *m, fo_bench *b, int64_t i, fth_err *err)
{
    char path[FTH_PATH];
    fth_sink sink;
    fth_tiff_stack stack = {.flavour = FTH_TIFF_PLAIN,
                            .dtype = FTH_U8,
                            .axes = "zyx",
                            .size = {m->names.planes},
                            .um_per_px = m->how.um_per_px};
    fo_mosaic_canvas(&m->how, m->mosaic[i].tiles, &stack.size[1], &stack.size[2]);
    FTH_TRY(m->names.stack(m->names.user, i, path, err));
    FTH_TRY(fth_tiff_create(&sink, m->mem, path, &stack, err));
    const fth_status s = write_planes(m, b, i, &sink, err);
    fth_sink_close(&sink);
    return s;
}
