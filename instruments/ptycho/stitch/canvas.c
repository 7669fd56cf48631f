/* canvas.c - see canvas.h. */
#include "canvas.h"

#include "../ops/stitch.h"

#include <math.h>

fth_status pt_canvas_make(pt_canvas *c, fth_mem *mem, const double *place, int64_t patches,
                          int64_t n, const fth_config *cfg, fth_err *err)
{
    const int64_t crop = fth_config_int(cfg, "stitch_crop");
    const bool square = fth_config_choice(cfg, "stitch.canvas") == 0;
    double mean[2] = {0, 0}, most[2] = {0, 0};
    *c = (pt_canvas){.mem = mem, .crop = crop};
    if (crop < 2 || crop > n || crop % 2) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "stitch_crop %lld: expected an even number from 2 to %lld, the side of a patch",
                 (long long)crop, (long long)n);
        return FTH_E_COMMAND;
    }
    for (int64_t i = 0; i < patches; i++)
        for (int d = 0; d < 2; d++) {
            if (!isfinite(place[2 * i + d]))
                return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                "%c of the position of patch %lld is %s (off, coords_relative): "
                                "expected a number of pixels",
                                "xy"[d], (long long)i,
                                isnan(place[2 * i + d]) ? "NaN" : "infinite");
            mean[d] += place[2 * i + d];
        }
    for (int d = 0; d < 2; d++) mean[d] /= (double)(patches > 0 ? patches : 1);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY,
                         sizeof *c->shift * 2 * (uint64_t)(patches > 0 ? patches : 1),
                         "places on the canvas", (void **)&c->shift, err));
    for (int64_t i = 0; i < patches; i++)
        for (int d = 0; d < 2; d++) {
            const float shift = (float)(place[2 * i + d] - mean[d]);
            const double reach = fabs((double)shift);
            c->shift[2 * i + d] = shift;
            if (reach > most[d] || isnan(reach)) most[d] = reach;
        }
    const double far = fmax(most[0], most[1]);
    if (!(most[0] < 1e6 && most[1] < 1e6)) {
        pt_canvas_clear(c);
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "positions lie %g pixels from their middle: too large for a canvas", far);
    }
    int64_t side[2]; /* x, y */
    for (int d = 0; d < 2; d++) {
        const int64_t pad = (int64_t)ceil(square ? far : most[d]);
        side[d] = crop + 2 * (pad + pad % 2);
        c->origin[d] = mean[d] - (double)side[d] / 2;
    }
    c->cols = side[0];
    c->rows = side[1];
    return FTH_OK;
}

void pt_canvas_clear(pt_canvas *c)
{
    if (c->shift) fth_mem_release(c->mem, c->shift, NULL);
    *c = (pt_canvas){0};
}

/* The sum of patches times their weights, divided by that of the weights. */
static fth_val weighted(fth_val patches, fth_val weight, fth_val shift)
{
    const fth_dtype real = fth_val_dtype(shift);
    const fth_val zero = fth_const(patches.graph, real, 0),
                  all = fth_expand(weight, fth_val_axis(patches, 0)),
                  sum = pt_stitch(fth_mul(patches, fth_complex(all, zero)), shift),
                  of = pt_stitch(all, shift),
                  share = fth_recip(fth_add(of, fth_const(patches.graph, real, 1e-9)));
    return fth_label(fth_mul(sum, fth_complex(share, zero)), "canvas");
}

fth_val pt_canvas_build(const pt_canvas *c, fth_val patches, fth_val shift, fth_val probe)
{
    fth_graph *g = patches.graph;
    if (!fth_val_ok(patches)) return patches;
    const int64_t n = fth_val_size(patches, 1), from = n / 2 - c->crop / 2;
    fth_axis(g, "srow", c->crop);
    fth_axis(g, "scol", c->crop);
    fth_axis(g, "orow", c->rows);
    fth_axis(g, "ocol", c->cols);
    const fth_val middle = fth_slice(fth_slice(patches, "row", from, "srow"), "col", from, "scol");
    if (!probe.graph) return pt_stitched(middle, shift);
    const fth_val light = fth_sum(fth_abs2(probe), "mode"), part = fth_rmax(light, "row col"),
                  lit = fth_slice(fth_slice(light, "row", from, "srow"), "col", from, "scol");
    return weighted(middle, fth_cast(fth_mul(lit, fth_recip(part)), fth_val_dtype(shift)), shift);
}
