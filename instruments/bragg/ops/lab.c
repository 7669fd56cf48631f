/* lab.c - a view made ready for derivatives. */
#include "jacobian.h"

#include <string.h>

uint64_t br_lab_bytes(const br_scene *s)
{
    const uint64_t turns = (uint64_t)(s->phis + 1) * (uint64_t)s->mosaics * 9;
    return br_view_bytes(s) + (turns + (uint64_t)s->phis) * sizeof(double) + sizeof(br_lab);
}

/* Rotations of all domains at an angle of the spindle: its three columns are turned unit vectors.
 */
static void turns_make(const br_scene *s, double angle, const double *domain, double *out)
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

void *br_lab_make(const fth_call *call, br_lab **out)
{
    const br_scene *s = &((const br_op_attr *)call->node->attr)->scene;
    const int64_t row = s->mosaics * 9;
    const double *turn = call->in[BR_IN_TURN].data;
    br_view view;
    br_frame frame;
    double *turns = br_op_view(call, &view), *angle = turns + (s->phis + 1) * row;
    br_lab *lab = (br_lab *)(void *)(angle + s->phis);
    br_place(s, call->in[BR_IN_PARAM].data, &frame);
    br_spindle_angles(s, frame.phi0.v, angle);
    for (int64_t i = 0; i < s->phis; i++) turns_make(s, angle[i], turn, turns + i * row);
    turns_make(s, 0, turn, turns + s->phis * row);
    *lab = (br_lab){.view = view, .turns = turns, .fluence = frame.fluence.v};
    br_metric(&frame, lab->metric);
    br_slopes_make(s, &frame, &lab->slopes);
    *out = lab;
    return lab + 1;
}
