/* rotate.c - rotations of plain vectors and of duals, and the angles of the spindle.
 *
 * Zero terms of the matrices are added too: they decide signs of zero, which the console prints.
 */
#include "place.h"

/* out = the rotation about one lab axis; v may be out. */
static BR_BOTH void about(const double *v, int axis, double angle, double *out)
{
    if (angle == 0) {
        for (int i = 0; i < 3; i++) out[i] = v[i];
        return;
    }
    const double c = cos(angle), s = sin(angle);
    double m[3][3] = {{0}};
    const int j = (axis + 1) % 3, k = (axis + 2) % 3;
    m[axis][axis] = 1;
    m[j][j] = c;
    m[j][k] = -s;
    m[k][j] = s;
    m[k][k] = c;
    double r[3];
    for (int i = 0; i < 3; i++) r[i] = v[0] * m[i][0] + v[1] * m[i][1] + v[2] * m[i][2];
    for (int i = 0; i < 3; i++) out[i] = r[i];
}

BR_BOTH void br_rotate(const double *v, double x, double y, double z, double *out)
{
    about(v, 0, x, out);
    about(out, 1, y, out);
    about(out, 2, z, out);
}

BR_BOTH void br_rotate_axis(const double *v, const double *axis, double angle, double *out)
{
    const double c = cos(angle), s = sin(angle);
    const double along = (axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2]) * (1.0 - c);
    const double r[3] = {
        axis[0] * along + v[0] * c + (-axis[2] * v[1] + axis[1] * v[2]) * s,
        axis[1] * along + v[1] * c + (axis[2] * v[0] - axis[0] * v[2]) * s,
        axis[2] * along + v[2] * c + (-axis[1] * v[0] + axis[0] * v[1]) * s,
    };
    for (int i = 0; i < 3; i++) out[i] = r[i];
}

BR_BOTH void br_rotate3(br_dual *v, const br_dual *angle)
{
    const double start[3] = {v[0].v, v[1].v, v[2].v};
    double value[3];
    br_rotate(start, angle[0].v, angle[1].v, angle[2].v, value);
    for (int axis = 0; axis < 3; axis++) {
        const int j = (axis + 1) % 3, k = (axis + 2) % 3;
        const br_dual c = br_cos(angle[axis]), s = br_sin(angle[axis]);
        const br_dual vj = br_sub(br_mul(c, v[j]), br_mul(s, v[k]));
        v[k] = br_add(br_mul(s, v[j]), br_mul(c, v[k]));
        v[j] = vj;
    }
    for (int i = 0; i < 3; i++) v[i].v = value[i];
}

BR_BOTH void br_rotate_axis3(br_dual *v, const double *axis, br_dual angle)
{
    const double start[3] = {v[0].v, v[1].v, v[2].v};
    double value[3];
    br_rotate_axis(start, axis, angle.v, value);
    const br_dual c = br_cos(angle), s = br_sin(angle);
    br_dual u[3], cross[3];
    br_num3(axis, u);
    br_cross3(u, v, cross);
    const br_dual along = br_mul(br_dot3(u, v), br_sub(br_num(1), c));
    for (int i = 0; i < 3; i++) {
        const br_dual r = br_add(br_mul(u[i], along), br_mul(v[i], c));
        v[i] = br_add(r, br_mul(cross[i], s));
    }
    for (int i = 0; i < 3; i++) v[i].v = value[i];
}

BR_BOTH void br_spindle_angles(const br_scene *scene, double phi0, double *angle)
{
    double last = 0; /* the last that is not 0: the state before the first step */
    for (int64_t i = 0; i < scene->phis; i++) {
        angle[i] = phi0 + scene->phi_step * (double)i;
        if (angle[i] != 0) last = angle[i];
    }
    if (!br_has(scene, BR_QUIRK_PHI_CARRYOVER)) return;
    for (int64_t i = 0; i < scene->phis; i++)
        if (angle[i] == 0) angle[i] = i > 0 ? angle[i - 1] : last;
}
