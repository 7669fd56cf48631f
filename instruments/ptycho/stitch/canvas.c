/* canvas.c - see canvas.h. */
#include "canvas.h"

#include "../ops/stitch.h"

#include <math.h>

fth_status pt_canvas_make(pt_canvas *c, fth_mem *mem, const double *off, int64_t groups, int64_t n,
                          int64_t crop, fth_err *err)
{
    double mean[2] = {0, 0}, most = 0;
    *c = (pt_canvas){.mem = mem, .crop = crop};
    if (crop < 2 || crop > n || crop % 2) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "stitch_crop %lld: expected an even number from 2 to %lld, the side of a patch",
                 (long long)crop, (long long)n);
        return FTH_E_COMMAND;
    }
    for (int64_t i = 0; i < groups; i++)
        for (int d = 0; d < 2; d++) mean[d] += off[2 * i + d];
    for (int d = 0; d < 2; d++) mean[d] /= (double)(groups > 0 ? groups : 1);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY,
                         sizeof *c->shift * 2 * (uint64_t)(groups > 0 ? groups : 1),
                         "places on the canvas", (void **)&c->shift, err));
    for (int64_t i = 0; i < groups; i++)
        for (int d = 0; d < 2; d++) {
            const float shift = (float)(off[2 * i + d] - mean[d]);
            c->shift[2 * i + d] = shift;
            if (fabs((double)shift) > most) most = fabs((double)shift);
        }
    if (!(most < 1e6)) {
        pt_canvas_clear(c);
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "positions lie %g pixels from their middle: no canvas is that large", most);
    }
    int64_t pad = (int64_t)ceil(most);
    pad += pad % 2;
    c->side = crop + 2 * pad;
    for (int d = 0; d < 2; d++) c->origin[d] = mean[d] - (double)c->side / 2;
    return FTH_OK;
}

void pt_canvas_clear(pt_canvas *c)
{
    if (c->shift) fth_mem_release(c->mem, c->shift, NULL);
    *c = (pt_canvas){0};
}

fth_val pt_canvas_build(const pt_canvas *c, fth_val patches, fth_val shift)
{
    fth_graph *g = patches.graph;
    if (!fth_val_ok(patches)) return patches;
    const int64_t n = fth_val_size(patches, 1);
    fth_axis(g, "srow", c->crop);
    fth_axis(g, "scol", c->crop);
    fth_axis(g, "orow", c->side);
    fth_axis(g, "ocol", c->side);
    const int64_t from = n / 2 - c->crop / 2;
    const fth_val middle = fth_slice(fth_slice(patches, "row", from, "srow"), "col", from, "scol");
    return pt_stitched(middle, shift);
}
