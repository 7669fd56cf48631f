/* detector.c - where the detector stands (model 4.3, 4.4). */
#include "place.h"

#include <float.h>

static BR_BOTH br_dual absolute(br_dual a)
{
    return a.v < 0 ? br_neg(a) : br_chain(fabs(a.v), 1, &a);
}

/* R and then W of model 4.3. */
static BR_BOTH void swing(const br_scene *scene, const br_dual *p, br_dual *v)
{
    br_rotate3(v, &p[BR_RX]);
    br_rotate_axis3(v, scene->twotheta_axis, p[BR_TT]);
}

/* The direct beam on the detector along fast and slow, from the beam centre of the convention. */
static BR_BOTH void beam_spot(const br_scene *scene, const br_dual *p, br_dual *fast, br_dual *slow)
{
    const br_dual half = br_num(0.5 * scene->pixel);
    *fast = p[BR_XB];
    *slow = p[BR_YB];
    if (scene->convention == BR_ADXV) {
        *slow = br_sub(br_num(scene->detsize[1]), p[BR_YB]);
    } else if (scene->convention == BR_MOSFLM) {
        *fast = br_add(p[BR_YB], half);
        *slow = br_add(p[BR_XB], half);
    } else if (scene->convention == BR_DENZO) {
        *fast = p[BR_YB];
        *slow = p[BR_XB];
    }
}

/* -fast f - slow s + far o */
static BR_BOTH void corner(const br_dual *fast, const br_dual *slow, const br_dual *far,
                           const br_dual *f, const br_dual *s, const br_dual *o, br_dual *out)
{
    for (int i = 0; i < 3; i++) {
        const br_dual in = br_sub(br_mul(br_neg(*fast), f[i]), br_mul(*slow, s[i]));
        out[i] = br_add(in, br_mul(*far, o[i]));
    }
}

/* What follows from the final pix0 and the axes. */
static BR_BOTH void derive(const br_scene *scene, const br_dual *beam, br_dual ratio,
                           br_placed *out)
{
    out->fclose = -br_dot3(out->pix0, out->fdet).v;
    out->sclose = -br_dot3(out->pix0, out->sdet).v;
    out->close = br_dot3(out->pix0, out->odet);
    out->distance = br_div(out->close, ratio);
    br_dual spot[3];
    for (int i = 0; i < 3; i++) spot[i] = br_sub(br_mul(out->distance, beam[i]), out->pix0[i]);
    out->fbeam = br_dot3(out->fdet, spot).v;
    out->sbeam = br_dot3(out->sdet, spot).v;
    out->ratio = ratio.v;
    out->org[0] = out->fclose / scene->pixel + 0.5;
    out->org[1] = out->sclose / scene->pixel + 0.5;
    const double x = out->pix0[0].v, y = out->pix0[1].v, z = out->pix0[2].v;
    /* products with the axes of that frame keep the signs of zeros */
    out->dials_origin[0] = 1000.0 * (x * 0.0 + y * 0.0 + z * 1.0);
    out->dials_origin[1] = 1000.0 * (x * 0.0 + y * 1.0 + z * 0.0);
    out->dials_origin[2] = 1000.0 * (x * -1.0 + y * 0.0 + z * 0.0);
}

BR_BOTH void br_place_detector(const br_scene *scene, const br_dual *p, br_placed *out)
{
    br_dual beam[3], normal[3];
    br_num3(scene->beam, beam);
    br_num3(scene->fdet, out->fdet);
    br_num3(scene->sdet, out->sdet);
    br_num3(scene->odet, out->odet);
    br_num3(scene->odet, normal);
    br_rotate3(normal, &p[BR_RX]); /* without two theta, as in the reference */
    br_dual ratio = br_dot3(beam, normal);
    if (ratio.v == 0) ratio = br_num(DBL_MIN);
    const br_dual close = scene->dist_is_close ? p[BR_DIST] : absolute(br_mul(ratio, p[BR_DIST]));
    const br_dual distance = br_div(close, ratio);

    if (scene->pivot == BR_PIVOT_SAMPLE) {
        corner(&p[BR_XB], &p[BR_YB], &close, out->fdet, out->sdet, out->odet, out->pix0);
        swing(scene, p, out->pix0);
    }
    swing(scene, p, out->fdet);
    swing(scene, p, out->sdet);
    swing(scene, p, out->odet);
    if (scene->pivot != BR_PIVOT_SAMPLE) {
        br_dual fast, slow;
        beam_spot(scene, p, &fast, &slow);
        corner(&fast, &slow, &distance, out->fdet, out->sdet, beam, out->pix0);
    }
    if (scene->pix0_given && !br_has(scene, BR_QUIRK_PIX0_IGNORED)) br_num3(scene->pix0, out->pix0);
    derive(scene, beam, ratio, out);
}
