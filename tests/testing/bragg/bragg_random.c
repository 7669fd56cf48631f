/* bragg_random.c - scenes in which every option of the render is drawn at random. */
#include "testing/bragg/bragg.h"

static bool often(t_random *r, int one_of)
{
    return t_random_i64(r, 1, one_of) == 1;
}

static void random_frame(tb_case *c, t_random *r)
{
    br_scene *s = &c->s;
    c->param[BR_LAM] = 1e-10 * (0.8 + t_random_f64(r));
    for (int k = 0; k < 3; k++) {
        c->param[BR_A + k] = 30 + 60 * t_random_f64(r);
        c->param[BR_AL + k] = br_radians(75 + 30 * t_random_f64(r));
        c->param[BR_MX + k] = br_radians(360 * t_random_f64(r));
        if (often(r, 2)) c->param[BR_RX + k] = br_radians(20 * t_random_f64(r) - 10);
        s->cells[k] = (double)t_random_i64(r, 1, 9);
    }
    if (often(r, 3)) c->param[BR_TT] = br_radians(20 * t_random_f64(r));
    s->quirks = (uint32_t)t_random_u64(r) & BR_QUIRKS_C;
    if (often(r, 3)) s->quirks = often(r, 2) ? BR_QUIRKS_C : 0;
    s->shape = (int32_t)(often(r, 2) ? BR_SQUARE : t_random_i64(r, 0, 3));
    s->fudge = often(r, 2) ? 1 : 0.5 + t_random_f64(r);
    s->kahn = often(r, 2) ? 0 : 2 * t_random_f64(r) - 1;
    s->nopolar = often(r, 5);
    s->point_pixel = often(r, 6);
    s->curved = often(r, 6);
}

static void random_sampling(tb_case *c, t_random *r)
{
    br_scene *s = &c->s;
    s->oversample = t_random_i64(r, 1, 2);
    s->oversample_thick = often(r, 4);
    s->oversample_polar = often(r, 4);
    s->oversample_omega = often(r, 4);
    if (often(r, 3)) {
        s->thickness = 300e-6;
        s->mu = 1 / 400e-6;
        s->layers = t_random_i64(r, 1, 3);
        s->layer_step = s->thickness / (double)s->layers;
    }
    if (often(r, 3)) s->dmin = 1e-10 * (2 + 6 * t_random_f64(r));
    if (often(r, 4)) s->water = 1e-6 * t_random_f64(r);
    if (often(r, 3)) {
        s->roi[0] = t_random_i64(r, 0, s->fast - 1);
        s->roi[1] = t_random_i64(r, s->roi[0], s->fast - 1);
        s->roi[2] = t_random_i64(r, 0, s->slow - 1);
        s->roi[3] = t_random_i64(r, s->roi[2], s->slow - 1);
    }
}

static void random_arrays(tb_case *c, t_random *r)
{
    br_scene *s = &c->s;
    tb_wavelengths(c, 0.05 * t_random_f64(r), t_random_i64(r, 1, 3));
    s->weight_sum = 0;
    for (int64_t j = 0; j < s->sources; j++) {
        double *src = c->source + j * BR_SRC_COLUMNS;
        for (int k = 0; k < 3; k++) src[k] += 0.01 * t_random_normal(r);
        br_unit(src, src);
        src[BR_SRC_WEIGHT] = 0.5 + t_random_f64(r);
        s->weight_sum += src[BR_SRC_WEIGHT];
    }
    tb_domains(c, r, often(r, 3) ? 0 : 0.02, t_random_i64(r, 1, 4));
    const double start[4] = {0, -1, 1.5, 33};
    tb_spindle(c, start[t_random_i64(r, 0, 3)], 2, t_random_i64(r, 1, 4));
    if (!often(r, 3)) tb_table_random(c, r, t_random_i64(r, 3, 16));
    s->interpolate = s->hkls > 0 && often(r, 2);
    if (!often(r, 4)) return;
    c->mask = calloc((size_t)(s->slow * s->fast), sizeof *c->mask);
    if (!c->mask) FAIL("no memory for a mask");
    for (int64_t i = 0; i < s->slow * s->fast; i++)
        c->mask[i] = (uint16_t)(often(r, 3) ? 0 : t_random_i64(r, 1, 65535));
}

void tb_random(tb_case *c, t_random *r)
{
    tb_make(c);
    tb_detector(c, 16, 0.5 + t_random_f64(r), 30 + 60 * t_random_f64(r));
    c->s.fast = t_random_i64(r, 1, 40);
    c->s.slow = t_random_i64(r, 1, 12);
    c->s.roi[1] = c->s.fast - 1;
    c->s.roi[3] = c->s.slow - 1;
    random_frame(c, r);
    random_sampling(c, r);
    random_arrays(c, r);
    tb_ready(c);
}
