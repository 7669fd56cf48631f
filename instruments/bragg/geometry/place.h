/* place.h - vectors of dual numbers, and the two halves of br_place. */
#ifndef BRAGG_PLACE_H
#define BRAGG_PLACE_H

#include "scene.h"

/* The value part of each is the plain formula, term by term: the console shows signs of zero. */
static inline BR_BOTH br_dual br_dot3(const br_dual *a, const br_dual *b)
{
    return br_add(br_add(br_mul(a[0], b[0]), br_mul(a[1], b[1])), br_mul(a[2], b[2]));
}
static inline BR_BOTH void br_cross3(const br_dual *a, const br_dual *b, br_dual *out)
{
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        out[i] = br_sub(br_mul(a[j], b[k]), br_mul(a[k], b[j]));
    }
}
static inline BR_BOTH void br_scale3(br_dual *v, br_dual k)
{
    for (int i = 0; i < 3; i++) v[i] = br_mul(k, v[i]);
}
static inline BR_BOTH void br_num3(const double *v, br_dual *out)
{
    for (int i = 0; i < 3; i++) out[i] = br_num(v[i]);
}

/* Rotates v in place: X first, then Y, then Z. An angle of 0 leaves the value as it is, but not the
 * derivative. */
BR_BOTH void br_rotate3(br_dual *v, const br_dual *angle);
/* Rotation about a constant axis, which need not be a unit vector (two theta in c mode). */
BR_BOTH void br_rotate_axis3(br_dual *v, const double *axis, br_dual angle);

/* `p` holds the parameters as duals. */
BR_BOTH void br_place_detector(const br_scene *scene, const br_dual *p,
                               br_placed *out); /* model 4.3, 4.4 */
BR_BOTH void br_place_crystal(const br_scene *scene, const br_dual *p,
                              br_placed *out); /* model 5 */

#endif
