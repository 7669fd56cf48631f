/* test_backward.c - what is alive from the forward to the backward pass, and gradients of it.
 * seconds: 4
 */
#include "graph/graph.h"
#include "plan/plan.h"
#include "testing/job/plan_stage.h"

#include <math.h>

static fth_plan *plan_of(fth_val v)
{
    fth_err err = {0};
    fth_plan *p = fth_plan_make(v.graph, &v, 1, NULL, &err);
    if (!p) OKE(err.status, &err);
    return p;
}

/* ---- pools ---- */

/* Numbers with many equal neighbours, and some NaN. */
static fth_val steps(stage *s, fth_val x)
{
    const fth_val eighths = fth_floor(fth_mul(x, fth_const(s->g, FTH_F32, 8)));
    return fth_sqrt(fth_add(eighths, fth_const(s->g, FTH_F32, 3.5)));
}

static float step_at(int64_t i, int64_t j)
{
    const float x = (float)((i * 7919 + j * 104729) % 1009) / 1009.0f - 0.5f;
    return sqrtf(floorf(x * 8.0f) + 3.5f);
}

/* 1 at the first of the largest of each block, or at its first NaN; 0 elsewhere. */
static void check_chosen(const float *got, int64_t blocks, int64_t factor)
{
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t j = 0; j < COLS; j++) {
            int64_t at = 0;
            for (int64_t k = 1; k < factor; k++) {
                const float best = step_at(b * factor + at, j), x = step_at(b * factor + k, j);
                if (x > best || (isnan(x) && !isnan(best))) at = k;
            }
            for (int64_t k = 0; k < factor; k++)
                EQ_F64(got[(b * factor + k) * COLS + j], k == at ? 1.0 : 0.0);
        }
}

static void pool_by(int64_t factor, fth_dtype place)
{
    stage s;
    open_stage(&s, t_temp_dir());
    const int64_t blocks = ROWS / factor;
    fth_axis(s.g, "cut", blocks * factor);
    fth_axis(s.g, "block", blocks);
    fth_val v = fth_slice(steps(&s, waves(&s, "x")), "row", 0, "cut"), gradient;
    const fth_val top = fth_pool_max(v, "cut", factor, "block");
    IS_TRUE(fth_val_dtype(fth_out(top, 1)) == place);
    OK(fth_grad(fth_sum(fth_sum(top, "block"), "col"), 1, &v, &gradient));

    fth_plan_info info;
    float *got = evaluate(&s, gradient, (fth_limits){0}, &info);
    check_chosen(got, blocks, factor);
    free(got);
    same_at(&s, gradient, (fth_limits){.no_fuse = true}, &info);
    same_at(&s, gradient, (fth_limits){.stream = "col"}, &info);
    if (blocks > 1) same_at(&s, gradient, (fth_limits){.min_pieces = 7}, &info);
    close_stage(&s);
}

TEST(a_pool_gives_its_gradient_to_the_first_of_the_largest)
{
    pool_by(1, FTH_U8);
    pool_by(3, FTH_U8);
    pool_by(256, FTH_U8);
    pool_by(257, FTH_I32);
    pool_by(ROWS, FTH_I32);
}

/* Places wait for the gradient as bytes, and nowhere become numbers of eight. */
TEST(a_pool_keeps_a_byte_for_its_gradient)
{
    stage s;
    open_stage(&s, t_temp_dir());
    fth_axis(s.g, "block", ROWS / 4);
    fth_val v = steps(&s, waves(&s, "x")), gradient;
    const fth_val top = fth_pool_max(v, "row", 4, "block");
    OK(fth_grad(fth_sum(fth_sum(fth_sqr(top), "block"), "col"), 1, &v, &gradient));
    fth_plan *p = plan_of(gradient);
    uint64_t places = 0;
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->value == fth_out(top, 1).id)
            places += (uint64_t)(fth_desc_count(&b->desc) * b->element);
        IS_TRUE(b->desc.dtype != FTH_I64 || b->desc.n_axes < 2);
    }
    EQ_U64(places, (uint64_t)ROWS / 4 * COLS);
    fth_plan_destroy(p);
    close_stage(&s);
}
