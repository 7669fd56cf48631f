/* chain.c - where the chain of spindle angles begins (phi-carryover, model 10).
 *
 * The reference rotates the cell only where the angle is not zero; else the cell of the step before
 * remains. Only the first sample of a run has no step before it: the first one that dmin does not
 * cut, in the first rendered pixels.
 */
#include "view.h"

#include <math.h>

/* Samples of one layer of a pixel: subpixels from `from` to before `to`, slow and fast. */
typedef struct part {
    const br_row *row;
    int64_t pixel, layer, from[2], to[2];
} part;

static void sample(const br_view *v, const part *p, int64_t slow, int64_t fast, double pos[3],
                   double d[3])
{
    br_position(v, p->row, p->pixel, (int64_t[]){p->layer, slow, fast}, pos);
    br_unit(pos, d);
}

/* Whether dmin certainly cuts them all. No direction in the part differs from that of its middle by
 * more than its reach over the distance, and no q by more than that over the wavelength. */
static bool is_cut(const br_view *v, const part *p)
{
    const br_scene *s = v->scene;
    if (s->curved || !(s->dmin > 0)) return false;
    double pos[3], d[3], q[3], stol;
    sample(v, p, (p->from[0] + p->to[0]) / 2, (p->from[1] + p->to[1]) / 2, pos, d);
    const double reach = s->pixel / (double)s->oversample *
                         (double)(p->to[0] - p->from[0] + p->to[1] - p->from[1]),
                 away = sqrt(pos[0] * pos[0] + pos[1] * pos[1] + pos[2] * pos[2]) - reach;
    if (!(away > 0)) return false;
    for (int64_t j = 0; j < s->sources; j++) {
        (void)br_scatter(v, j, d, q, &stol);
        const double least = stol - 0.5 * reach / away / v->beams[j].lambda;
        if (!(least > 0 && s->dmin * (1 - 1e-9) > 0.5 / least)) return false;
    }
    return true;
}

/* The first sample of the part that dmin does not cut, counted in the layer: its subpixels in
 * order, all sources of each; -1: none. Samples may be so fine that looking at each would take
 * hours, so parts are halved, slow lines first, and left out where all is cut. */
static int64_t first_sample(const br_view *v, const part *p)
{
    const br_scene *s = v->scene;
    const int axis = p->to[0] - p->from[0] > 1 ? 0 : 1;
    if (p->to[axis] - p->from[axis] == 1) {
        double pos[3], d[3], q[3], stol;
        sample(v, p, p->from[0], p->from[1], pos, d);
        for (int64_t j = 0; j < s->sources; j++)
            if (br_scatter(v, j, d, q, &stol))
                return (p->from[0] * s->oversample + p->from[1]) * s->sources + j;
        return -1;
    }
    if (is_cut(v, p)) return -1;
    part first = *p, second = *p;
    first.to[axis] = second.from[axis] = (p->from[axis] + p->to[axis]) / 2;
    const int64_t found = first_sample(v, &first);
    return found >= 0 ? found : first_sample(v, &second);
}

/* Group (pixel, layer, subs, subf, source) of the pixel's first sample; -1: all are cut. */
static int64_t first_group(const br_view *v, const br_row *row, int64_t i)
{
    const br_scene *s = v->scene;
    const int64_t O = s->oversample, pix = row->slow * s->fast + row->fast + i;
    for (int64_t layer = 0; layer < s->layers; layer++) {
        const part all = {row, i, layer, {0, 0}, {O, O}};
        const int64_t found = first_sample(v, &all);
        if (found >= 0) return (pix * s->layers + layer) * O * O * s->sources + found;
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
