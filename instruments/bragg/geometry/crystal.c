/* crystal.c - the cell in the laboratory (model 5), and the placement of the whole scene
 * (br_place). */
#include "place.h"

#include <float.h>

typedef struct angles { /* of one cell, direct or reciprocal: al be ga */
    br_dual sin[3], cos[3];
} angles;

/* Of the typed cell, A^3. */
static BR_BOTH br_dual cell_volume(const br_dual *p)
{
    const br_dual al = p[BR_AL], be = p[BR_BE], ga = p[BR_GA];
    const br_dual sig = br_scale(br_add(br_add(al, be), ga), 0.5);
    br_dual skew = br_mul(br_sin(sig), br_sin(br_sub(sig, al)));
    skew = br_mul(br_mul(skew, br_sin(br_sub(sig, be))), br_sin(br_sub(sig, ga)));
    if (skew.v < 0) skew = br_neg(skew);
    const br_dual edges = br_mul(br_mul(br_scale(p[BR_A], 2.0), p[BR_B]), p[BR_C]);
    const br_dual v = br_mul(edges, br_sqrt(skew));
    return v.v <= 0 ? br_num(DBL_MIN) : v;
}

/* Where clipping acts the value is a constant. */
static BR_BOTH br_dual clamp(br_dual a)
{
    return a.v > 1 ? br_num(1) : a.v < -1 ? br_num(-1) : a;
}

/* Edges and angles of the reciprocal cell. `edge` is a b c, `star` a* b* c*. */
static BR_BOTH void reciprocal(const br_dual *edge, const angles *cell, br_dual v_star,
                               br_dual *star, angles *out)
{
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        star[i] = br_mul(br_mul(br_mul(edge[j], edge[k]), cell->sin[i]), v_star);
        if (star[i].v < 0) star[i] = br_neg(star[i]); /* for angles beyond 180 degrees */
        if (star[i].v == 0) star[i] = br_num(DBL_MIN);
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, k = (i + 2) % 3;
        /* divided by the earlier letter first, as a quotient of three */
        const int first = j < k ? j : k, second = j < k ? k : j;
        out->sin[i] = clamp(br_div(br_div(br_mul(edge[i], v_star), star[first]), star[second]));
        const br_dual over = br_sub(br_mul(cell->cos[j], cell->cos[k]), cell->cos[i]);
        const br_dual c = br_div(over, br_mul(cell->sin[j], cell->sin[k]));
        out->cos[i] = c.v * c.v > 1 ? br_num(1) : c;
    }
}

/* a* b* c* of the typed cell in the standard orientation (model 5.1). */
static BR_BOTH void from_cell(const br_scene *scene, const br_dual *p, br_dual v,
                              br_dual star[3][3])
{
    const br_dual edge[3] = {p[BR_A], p[BR_B], p[BR_C]};
    angles cell, recip;
    for (int i = 0; i < 3; i++) {
        cell.sin[i] = br_sin(p[BR_AL + i]);
        cell.cos[i] = br_cos(p[BR_AL + i]);
    }
    br_dual s[3];
    reciprocal(edge, &cell, br_div(br_num(1), v), s, &recip);
    const br_dual *cs = recip.cos, sin_ga = recip.sin[2];
    star[0][0] = s[0];
    star[0][1] = star[0][2] = star[1][2] = br_num(0);
    star[1][0] = br_mul(s[1], cs[2]);
    star[1][1] = br_mul(s[1], sin_ga);
    star[2][0] = br_mul(s[2], cs[1]);
    star[2][1] = br_div(br_mul(s[2], br_sub(cs[0], br_mul(cs[1], cs[2]))), sin_ga);
    if (br_has(scene, BR_QUIRK_CSTAR_Z)) {
        const br_dual edges = br_mul(br_mul(br_mul(edge[0], edge[1]), edge[2]), sin_ga);
        star[2][2] = br_div(br_mul(s[2], v), edges);
    } else {
        star[2][2] = br_div(br_num(1), edge[2]);
    }
}

/* a* b* c* of the matrix: its wavelength is taken out (model 5.2). */
static BR_BOTH void from_matrix(const br_scene *scene, const br_dual *p, br_dual star[3][3])
{
    const br_dual k = br_div(br_num(1e-10), p[BR_LAM]);
    for (int i = 0; i < 3; i++)
        for (int x = 0; x < 3; x++) star[i][x] = br_mul(k, br_num(scene->mat[3 * x + i]));
}

/* v made as long as `length`. */
static BR_BOTH void rescale(br_dual *v, br_dual length)
{
    br_dual old = br_sqrt(br_dot3(v, v));
    if (old.v <= 0) old = br_num(1);
    br_scale3(v, br_div(length, old));
}

BR_BOTH void br_place_crystal(const br_scene *scene, const br_dual *p, br_placed *out)
{
    br_dual(*star)[3] = out->star, (*abc)[3] = out->abc;
    const br_dual typed = scene->cell_given ? cell_volume(p) : br_num(0);
    if (scene->mat_given)
        from_matrix(scene, p, star);
    else
        from_cell(scene, p, typed, star);
    for (int i = 0; i < 3; i++) br_rotate3(star[i], &p[BR_MX]);

    for (int i = 0; i < 3; i++) br_cross3(star[(i + 1) % 3], star[(i + 2) % 3], abc[i]);
    br_dual v_star = br_dot3(star[0], abc[0]);
    if (scene->cell_given) {
        v_star = br_div(br_num(1), typed);
        for (int i = 0; i < 3; i++) rescale(abc[i], br_div(p[BR_A + i], typed));
    }
    const br_dual v = br_div(br_num(1), v_star);
    for (int i = 0; i < 3; i++) br_scale3(abc[i], v);
    for (int i = 0; i < 3; i++) {
        br_cross3(abc[(i + 1) % 3], abc[(i + 2) % 3], star[i]);
        br_scale3(star[i], v_star);
    }
    for (int i = 0; i < 3; i++) br_scale3(abc[i], br_num(1e-10));
    out->volume = v.v;
}

BR_BOTH void br_place(const br_scene *scene, const double *param, br_placed *out)
{
    br_dual p[BR_PARAMS];
    for (int i = 0; i < BR_PARAMS; i++) p[i] = br_var(param[i], (br_param)i);
    out->lambda = p[BR_LAM];
    out->fluence = p[BR_FLU];
    out->phi0 = p[BR_PHI];
    br_place_detector(scene, p, out);
    br_place_crystal(scene, p, out);
}
