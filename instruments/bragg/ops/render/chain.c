/* chain.c - where the chain of spindle angles begins (phi-carryover, model 10).
 *
 * The reference rotates the cell only where the angle is not zero; else the cell of the step before
 * remains. Only the first sample of a run has no step before it: the first one that dmin does not
 * cut, in the first rendered pixels.
 */
#include "view.h"

/* Group (pixel, layer, subs, subf, source) of the pixel's first sample; -1: all are cut. */
static int64_t first_group(const br_view *v, const br_row *row, int64_t i)
{
    const br_scene *s = v->scene;
    const int64_t O = s->oversample, pix = row->slow * s->fast + row->fast + i;
    int64_t group = pix * s->layers * O * O * s->sources;
    for (int64_t at = 0; at < s->layers * O * O; at++) {
        const int64_t sub[3] = {at / (O * O), at / O % O, at % O};
        double pos[3], d[3], q[3], stol;
        br_position(v, row, i, sub, pos);
        br_unit(pos, d);
        for (int64_t j = 0; j < s->sources; j++, group++)
            if (br_scatter(v, j, d, q, &stol)) return group;
    }
    return -1;
}

static fth_status search(const br_view *v, const fth_source *mask, uint16_t *line, int64_t *start,
                         fth_err *err)
{
    const br_scene *s = v->scene;
    for (int64_t slow = s->roi[2]; slow <= s->roi[3]; slow++) {
        br_row row = {.slow = slow, .n = s->fast, .mask = line, .mask_step = 1};
        if (line)
            FTH_TRY(
                mask->read(mask->self, (int64_t[]){slow, 0}, (int64_t[]){1, s->fast}, line, err));
        for (int64_t i = 0; i < row.n; i++) {
            const int64_t group = br_rendered(v, &row, i) ? first_group(v, &row, i) : -1;
            if (group < 0) continue;
            *start = group * s->phis * s->mosaics;
            return FTH_OK;
        }
    }
    return FTH_OK;
}

/* The cell is not used: one placeholder. */
static br_scene one_cell(const br_scene *scene)
{
    br_scene one = *scene;
    one.phis = one.mosaics = 1;
    one.mosaic_given = 0;
    one.precision = BR_F64;
    return one;
}

fth_status br_chain_start(const br_scene *scene, const double *param, const double *source,
                          const fth_source *mask, fth_mem *mem, int64_t *start, fth_err *err)
{
    *start = -1;
    br_placed placed;
    br_place(scene, param, &placed);
    if (!br_has(scene, BR_QUIRK_PHI_CARRYOVER) || placed.phi0.v != 0) return FTH_OK;
    const br_scene one = one_cell(scene);
    const uint64_t bytes = br_view_bytes(&one);
    void *work = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes + sizeof(uint16_t) * (uint64_t)scene->fast,
                         "start of the chain", &work, err));
    br_view v;
    br_view_make(&v, &one, &(br_arrays){.param = param, .source = source}, work);
    v.scene = scene;
    uint16_t *line = scene->masked ? (uint16_t *)(void *)((char *)work + bytes) : NULL;
    const fth_status s = search(&v, mask, line, start, err);
    fth_mem_release(mem, work, NULL);
    return s;
}
