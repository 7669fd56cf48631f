/* hit.c - where the beam meets the plane of the detector.
 *
 * The distance and the beam centre of the headers (model 4.3) leave out the two-theta rotation of
 * the detector, as the original does. Programs that read the vectors beside them expect the point
 * that the beam really hits.
 */
#include "experiment.h"

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

br_hit br_beam_hit(const br_experiment *e)
{
    const br_scene *s = &e->scene;
    const br_placed *f = &e->placed;
    double pix0[3], fast[3], slow[3], normal[3], at[3];
    for (int i = 0; i < 3; i++) {
        pix0[i] = f->pix0[i].v;
        fast[i] = f->fdet[i].v;
        slow[i] = f->sdet[i].v;
    }
    for (int i = 0; i < 3; i++) /* of the plane itself: -odet_vector may be any direction */
        normal[i] = fast[(i + 1) % 3] * slow[(i + 2) % 3] - fast[(i + 2) % 3] * slow[(i + 1) % 3];
    const double along = dot(s->beam, normal), ff = dot(fast, fast), ss = dot(slow, slow),
                 fs = dot(fast, slow), area = ff * ss - fs * fs;
    br_hit h = {f->distance.v, f->fbeam / s->pixel, f->sbeam / s->pixel};
    if (along == 0 || !(area > 0)) return h; /* the beam misses it */
    h.distance = dot(pix0, normal) / along;
    for (int i = 0; i < 3; i++) at[i] = h.distance * s->beam[i] - pix0[i];
    const double x = dot(at, fast), y = dot(at, slow); /* the axes need not be perpendicular */
    h.fast = (x * ss - y * fs) / area / s->pixel;
    h.slow = (y * ff - x * fs) / area / s->pixel;
    return h;
}
