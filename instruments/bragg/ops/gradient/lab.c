/* lab.c - a view with what derivatives need. */
#include "jacobian.h"

#include <string.h>

int64_t br_lab_numbers(const br_scene *s)
{
    return (s->phis + 1) * s->mosaics * 9 + s->phis;
}

uint64_t br_lab_bytes(const br_scene *s)
{
    return br_view_bytes(s) + (uint64_t)br_lab_numbers(s) * sizeof(double) + sizeof(br_lab);
}

/* Rotations of all domains at an angle of the spindle: its three columns are rotated unit
 * vectors.
 */
static void rotations_make(const br_scene *s, double angle, const double *domain, double *out)
{
    for (int64_t m = 0; m < s->mosaics; m++, out += 9)
        for (int c = 0; c < 3; c++) {
            double axis[3] = {0}, spun[3];
            const double *u = domain + 9 * m;
            axis[c] = 1;
            br_rotate_axis(axis, s->spindle, angle, spun);
            for (int i = 0; i < 3; i++)
                out[3 * i + c] = s->mosaic_given ? u[3 * i] * spun[0] + u[3 * i + 1] * spun[1] +
                                                       u[3 * i + 2] * spun[2]
                                                 : spun[i];
        }
}

void br_lab_fill(br_lab *lab, const double *param, const double *mosaic_rotation, double *work)
{
    const br_scene *s = lab->view.scene;
    const int64_t row = s->mosaics * 9;
    double *angle = work + (s->phis + 1) * row;
    br_placed placed;
    br_place(s, param, &placed);
    br_spindle_angles(s, placed.phi0.v, angle);
    for (int64_t i = 0; i < s->phis; i++)
        rotations_make(s, angle[i], mosaic_rotation, work + i * row);
    rotations_make(s, 0, mosaic_rotation, work + s->phis * row);
    lab->rotations = work;
    lab->fluence = placed.fluence.v;
    br_metric(&placed, lab->metric);
    br_slopes_make(s, &placed, &lab->slopes);
}

void *br_lab_make(const fth_call *call, br_lab **out)
{
    const br_scene *s = &((const br_op_attr *)call->node->attr)->scene;
    br_view view;
    double *work = br_op_view(call, &view);
    br_lab *lab = (br_lab *)(void *)(work + br_lab_numbers(s));
    lab->view = view;
    br_lab_fill(lab, call->in[BR_IN_PARAM].data, call->in[BR_IN_MOSAIC].data, work);
    *out = lab;
    return lab + 1;
}

const br_jacobian_loops *br_jacobian_at(int level)
{
    return FTH_ISA_AT(br_jacobian, level);
}

const br_jacobian_loops *br_jacobian_for(const br_lab *lab)
{
    const br_scene *s = lab->view.scene;
    const bool running = br_has(s, BR_QUIRK_RUNNING_SUM) &&
                         (s->oversample_thick || s->oversample_polar || s->oversample_omega);
    if (running || !br_table_fits(&lab->view)) return &br_jacobian_plain;
    return FTH_ISA_BEST(br_jacobian);
}
