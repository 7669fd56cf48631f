/* test_distinct.c - equal values are made once, constants while planning, and the bits stay.
 * seconds: 3
 */
#include "graph/graph.h"
#include "graph/program.h"
#include "ops/ops.h"
#include "plan/plan.h"
#include "testing/job/plan_stage.h"

static const fth_limits as_written = {.no_fuse = true};

static fth_plan *plan_of(stage *s, const fth_val *outs, int n, const fth_limits *limits)
{
    fth_err err = {0};
    fth_plan *p = fth_plan_make(s->g, outs, n, limits, &err);
    if (!p) OKE(err.status, &err);
    return p;
}

static int units_of(const fth_plan *p, const fth_op *op)
{
    int n = 0;
    for (int64_t i = 0; i < p->n_units; i++) n += p->unit[i].node->op == op;
    return n;
}

/* Units of an operation in a plan of one value. */
static int made(stage *s, fth_val v, const fth_op *op)
{
    fth_plan *p = plan_of(s, &v, 1, NULL);
    const int n = units_of(p, op);
    fth_plan_destroy(p);
    return n;
}

/* The program of a plan that is one fused unit. */
static fth__program program_of(stage *s, fth_val v)
{
    fth_plan *p = plan_of(s, &v, 1, NULL);
    EQ_I64(p->n_units, 1);
    IS_TRUE(p->unit[0].node->op == &fth__op_fused);
    const fth__program pr = *(const fth__program *)p->unit[0].node->attr;
    fth_plan_destroy(p);
    return pr;
}

/* The bits of the program as it is written: each node a step of its own. */
static void same_as_written(stage *s, fth_val v)
{
    fth_plan_info info;
    same_at(s, v, as_written, &info);
    same_at(s, v, (fth_limits){.memory_bytes = info.peak_bytes / 2}, &info);
}

static void open_numbers(stage *s, fth_val *x, fth_val *y)
{
    open_stage(s, t_temp_dir());
    *x = waves(s, "x");
    *y = waves(s, "y");
}

/* ---- inside a program ---- */

TEST(a_program_computes_what_is_equal_once)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const fth_val once = fth_add(fth_exp(x), fth_exp(x));
    fth__program pr = program_of(&s, once);
    EQ_I64(pr.n_instr, 2); /* exp, add */
    EQ_I64(pr.n_in, 1);
    same_as_written(&s, once);
    /* the other order, in sums and products, not in differences; constants as well */
    const fth_val half = fth_const(s.g, FTH_F32, 0.5), again = fth_const(s.g, FTH_F32, 0.5);
    const fth_val a = fth_mul(fth_add(x, half), fth_mul(x, y)),
                  b = fth_mul(fth_mul(y, x), fth_add(again, x)), turned = fth_sub(a, b);
    pr = program_of(&s, turned);
    EQ_I64(pr.n_instr, 4); /* add, mul, mul, sub */
    EQ_I64(pr.n_const, 1);
    same_as_written(&s, turned);
    pr = program_of(&s, fth_mul(fth_sub(x, y), fth_sub(y, x)));
    EQ_I64(pr.n_instr, 3);
    pr = program_of(&s, fth_mul(fth_max(x, y), fth_max(y, x))); /* +0 and -0: not the same bits */
    EQ_I64(pr.n_instr, 3);
    close_stage(&s);
}

/* exp(x) of a sum and of the quotient by it: no block for it, before as after. */
TEST(what_programs_make_on_the_way_is_not_stored_to_be_made_once)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const fth_val total = fth_sum(fth_exp(x), "row"), v = fth_div(fth_exp(x), total);
    fth_plan *p = plan_of(&s, &v, 1, NULL);
    EQ_I64(p->n_units, 2);
    for (int64_t i = 0; i < p->n_bufs; i++) {
        const fth__buf *b = &p->buf[i];
        if (b->input < 0 && b->value != v.id && !b->role) LE_F64((double)b->bytes, 4096.0);
    }
    fth_plan_destroy(p);
    same_as_written(&s, v);
    close_stage(&s);
}

/* ---- in the graph ---- */

/* Natural C: both operands call the same function. */
TEST(operations_that_are_no_part_of_programs_run_once)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const fth_val v =
        fth_mul(fth_sqrt(fth_abs(fth_cumsum(x, "col"))), fth_cumsum(fth_mul(x, x), "col"));
    EQ_I64(made(&s, v, &fth__op_scan), 2); /* of other operands */
    const fth_val w = fth_mul(fth_sqrt(fth_abs(fth_cumsum(x, "col"))), fth_cumsum(x, "col"));
    EQ_I64(made(&s, w, &fth__op_scan), 1);
    same_as_written(&s, w);
    /* with what they are made of, and with another attribute */
    const fth_val u =
        fth_add(fth_cumsum(fth_exp(x), "col"), fth_sqrt(fth_cumsum(fth_exp(x), "col")));
    EQ_I64(made(&s, u, &fth__op_scan), 1);
    EQ_I64(made(&s, u, &fth__op_fused), 2);
    same_as_written(&s, u);
    EQ_I64(made(&s, fth_sub(fth_cumsum(x, "col"), fth_cumsum(x, "row")), &fth__op_scan), 2);
    close_stage(&s);
}

TEST(an_operation_of_several_outputs_runs_once)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const fth_val values = fth_sort(x, "col", false), place = fth_out(fth_sort(x, "col", false), 1);
    const fth_val v = fth_add(fth_cast(place, FTH_F32), values);
    EQ_I64(made(&s, v, &fth__op_sort), 1);
    same_as_written(&s, v);
    EQ_I64(made(&s, fth_add(fth_sort(x, "col", true), values), &fth__op_sort), 2);
    close_stage(&s);
}

/* The first value would have to wait where most bytes are alive: then it is made again. */
TEST(a_value_does_not_wait_at_the_peak)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    fth_axis(s.g, "wide", 16);
    const fth_val first = fth_sum(fth_cumsum(x, "row"), "row");
    const fth_val grown =
        fth_sort(fth_mul(fth_expand(y, "wide"), fth_expand(x, "wide")), "row", false);
    const fth_val peak = fth_sum(fth_sum(fth_add(grown, fth_flip(grown, "row")), "wide"), "row");
    const fth_val last = fth_mul(fth_mul(fth_cumsum(x, "row"), first), peak);
    fth_plan *p = plan_of(&s, &last, 1, NULL);
    EQ_I64(units_of(p, &fth__op_scan), 2);
    fth_plan_destroy(p);
    same_as_written(&s, last);
    /* four sums of 20000 do, and nobody needs what they are the sums of again */
    const fth_val late = fth_sum(fth_cumsum(x, "row"), "row");
    EQ_I64(made(&s, fth_mul(fth_add(late, first), peak), &fth__op_scan), 1);
    /* without that peak it waits */
    const fth_val small = fth_sum(fth_sqr(y), "row");
    const fth_val again = fth_cumsum(x, "row");
    const fth_val waited = fth_mul(fth_mul(again, first), small);
    EQ_I64(made(&s, waited, &fth__op_scan), 1);
    same_as_written(&s, waited);
    close_stage(&s);
}

/* What stands for a value has its label where it has none itself, and a plan counts. */
TEST(a_plan_shows_the_label_of_a_value_that_is_not_made)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const fth_val first = fth_cumsum(x, "col"), again = fth_label(fth_cumsum(x, "col"), "running");
    const fth_val v = fth_mul(fth_sort(first, "row", false), again);
    fth_plan *p = plan_of(&s, &v, 1, NULL);
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    OK(fth_plan_print(p, f));
    fclose(f);
    HAS(text, "running f32 [row=20000 col=4]");
    HAS(text, "\n1 values are equal to others and not made, 0 are constants\n");
    free(text);
    fth_plan_destroy(p);
    close_stage(&s);
    open_numbers(&s, &x, &y); /* with two labels, its own */
    const fth_val named = fth_label(fth_cumsum(x, "col"), "running"),
                  other = fth_label(fth_cumsum(x, "col"), "again");
    const fth_val w = fth_mul(fth_sort(named, "row", false), other);
    p = plan_of(&s, &w, 1, NULL);
    f = open_memstream(&text, &bytes);
    OK(fth_plan_print(p, f));
    fclose(f);
    HAS(text, "running f32 [row=20000 col=4]");
    HAS_NOT(text, "again f32");
    free(text);
    fth_plan_destroy(p);
    close_stage(&s);
}

/* ---- outputs, parameters, errors ---- */

/* Outputs that are equal: each sink gets all of it, whether it has memory or takes pieces. */
TEST(equal_outputs_go_to_every_sink)
{
    enum { OUTS = 4, N = ROWS * COLS };
    stage s;
    fth_val x, y, outs[OUTS];
    open_numbers(&s, &x, &y);
    for (int o = 0; o < OUTS; o++) outs[o] = fth_cumsum(fth_neg(x), "col");
    fth_plan_info info;
    float *want = evaluate(&s, outs[0], as_written, &info);
    for (int memory = 0; memory < 16; memory++) {
        fth_err err = {0};
        fth_sink sinks[OUTS];
        taken t[OUTS];
        for (int o = 0; o < OUTS; o++) {
            t[o] = (taken){.n_axes = 2, .size = {ROWS, COLS}, .data = calloc(N, sizeof(float))};
            sinks[o] = (fth_sink){.kind = "taken",
                                  .self = &t[o],
                                  .dtype = FTH_F32,
                                  .n_axes = 2,
                                  .size = {ROWS, COLS},
                                  .write = take,
                                  .data = memory >> o & 1 ? t[o].data : NULL};
        }
        fth_plan *p = plan_of(&s, outs, OUTS, &(fth_limits){.sinks = sinks});
        OKE(fth_run(p, sinks, NULL, NULL, &err), &err);
        for (int o = 0; o < OUTS; o++) {
            SAME_BYTES(t[o].data, want, N * sizeof(float));
            free(t[o].data);
        }
        if (memory == 0) EQ_I64(units_of(p, &fth__op_scan), 1);
        if (memory == 15) EQ_I64(units_of(p, &fth__op_scan), OUTS); /* no bytes of the plan's */
        fth_plan_destroy(p);
    }
    free(want);
    close_stage(&s);
}

/* An assign runs after every read, so equal values read the parameter as it was; two parameters may
 * take what is one value. */
TEST(parameters_are_read_before_they_change)
{
    enum { N = ROWS * COLS };
    float *end[2][3];
    for (int fused = 0; fused < 2; fused++) {
        stage s;
        fth_val x, y;
        fth_err err = {0};
        fth_tensor *t[2];
        const int64_t size[2] = {ROWS, COLS};
        open_numbers(&s, &x, &y);
        fth_val p[2];
        for (int i = 0; i < 2; i++) {
            const char name[2] = {"pq"[i], 0};
            OKE(fth_tensor_create(&t[i], fth_context_mem(s.ctx), name, FTH_F32, 2, size, &err),
                &err);
            for (int k = 0; k < N; k++) ((float *)fth_tensor_data(t[i]))[k] = (float)(k % 1009 + i);
            p[i] = fth_param(s.g, name, "row col", t[i]);
        }
        const fth_val next = fth_cumsum(fth_add(p[0], x), "col");
        const fth_val outs[3] = {fth_assign(p[0], next),
                                 fth_assign(p[1], fth_cumsum(fth_add(p[0], x), "col")),
                                 fth_sub(fth_cumsum(fth_add(x, p[0]), "col"), p[1])};
        taken out = {.n_axes = 2, .size = {ROWS, COLS}, .data = calloc(N, sizeof(float))};
        fth_sink sinks[3] = {{0}};
        sinks[2] = (fth_sink){.kind = "taken",
                              .self = &out,
                              .dtype = FTH_F32,
                              .n_axes = 2,
                              .size = {ROWS, COLS},
                              .write = take};
        fth_plan *plan = plan_of(&s, outs, 3, &(fth_limits){.no_fuse = !fused});
        EQ_I64(units_of(plan, &fth__op_scan), fused ? 1 : 3);
        for (int run = 0; run < 2; run++) OKE(fth_run(plan, sinks, NULL, NULL, &err), &err);
        end[fused][2] = out.data;
        fth_plan_destroy(plan);
        for (int i = 0; i < 2; i++) {
            end[fused][i] = malloc(N * sizeof(float));
            memcpy(end[fused][i], fth_tensor_data(t[i]), N * sizeof(float));
            fth_tensor_release(t[i]);
        }
        close_stage(&s);
    }
    for (int i = 0; i < 3; i++) {
        SAME_BYTES(end[1][i], end[0][i], N * sizeof(float));
        free(end[0][i]);
        free(end[1][i]);
    }
}

TEST(an_error_names_the_first_of_equal_lines)
{
    stage s;
    fth_val x, y;
    fth_err err = {0};
    open_numbers(&s, &x, &y);
    const fth_val bad = fth_log(fth_sub(x, x)); /* -inf */
    const int line = __LINE__ + 1;
    const fth_val first = fth_cast(bad, FTH_I32);
    const fth_val second = fth_cast(bad, FTH_I32);
    const fth_val v = fth_cast(fth_add(fth_flip(first, "row"), second), FTH_F32);
    fth_plan *p = plan_of(&s, &v, 1, NULL);
    EQ_I64(units_of(p, &fth__op_checked_cast), 1);
    taken t = {.n_axes = 2, .size = {ROWS, COLS}, .data = calloc(ROWS * COLS, sizeof(float))};
    const fth_sink sink = {.kind = "taken",
                           .self = &t,
                           .dtype = FTH_F32,
                           .n_axes = 2,
                           .size = {ROWS, COLS},
                           .write = take};
    IS(fth_run(p, &sink, NULL, NULL, &err), FTH_E_CAST_RANGE);
    EQ_I64(err.origin.line, line);
    free(t.data);
    fth_plan_destroy(p);
    close_stage(&s);
}

/* ---- constants, and what changes nothing ---- */

TEST(constants_are_computed_while_planning)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const fth_val tenth = fth_const(s.g, FTH_F32, 0.1), fifth = fth_const(s.g, FTH_F32, 0.2);
    const fth_val third =
        fth_cast(fth_div(fth_const(s.g, FTH_F64, 1.0), fth_const(s.g, FTH_F64, 3.0)), FTH_F32);
    const fth_val v = fth_mul(fth_add(x, fth_add(tenth, fifth)), third);
    const fth__program pr = program_of(&s, v);
    EQ_I64(pr.n_instr, 2);
    EQ_I64(pr.n_const, 2);
    EQ_F64(pr.constant[0].re, (double)(0.1f + 0.2f));
    EQ_F64(pr.constant[1].re, (double)(float)(1.0 / 3.0));
    same_as_written(&s, v);
    fth_plan *p = plan_of(&s, &v, 1, NULL);
    EQ_I64(p->folded, 3); /* a sum, a quotient, a cast */
    fth_plan_destroy(p);
    /* what does not fit a number is left to the run, and so is what libraries may round */
    const fth_val inf = fth_div(fth_const(s.g, FTH_F32, 1.0), fth_const(s.g, FTH_F32, 0.0));
    EQ_I64(made(&s, fth_add(x, inf), &fth__op_fused), 2);
    EQ_I64(made(&s, fth_add(x, fth_exp(tenth)), &fth__op_fused), 2);
    same_as_written(&s, fth_add(x, fth_exp(tenth)));
    /* a whole number that wraps, by way of a dtype that holds it */
    const fth_val most = fth_const_i64(s.g, FTH_I32, INT32_MAX),
                  one = fth_const_i64(s.g, FTH_I32, 1);
    const fth_val wrapped = fth_add(x, fth_cast(fth_add(most, one), FTH_F32));
    EQ_F64(program_of(&s, wrapped).constant[0].re, -2147483648.0);
    same_as_written(&s, wrapped);
    close_stage(&s);
}

/* Numbers that a double does not tell apart are two; so are draws of two streams. */
TEST(numbers_that_differ_in_the_last_digit)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const int64_t much = (int64_t)1 << 53;
    const fth_val i = fth_expand(fth_index(s.g, "row"), "col"),
                  a = fth_add(i, fth_const_i64(s.g, FTH_I64, much)),
                  b = fth_add(i, fth_const_i64(s.g, FTH_I64, much + 1));
    same_as_written(&s, fth_mul(x, fth_cast(fth_sub(b, a), FTH_F32)));
    EQ_I64(program_of(&s, fth_mul(x, fth_cast(fth_sub(b, a), FTH_F32))).n_const, 2);
    /* and so is one number of two dtypes */
    const fth_val half = fth_const(s.g, FTH_F32, 0.5), wide = fth_const(s.g, FTH_F64, 0.5);
    const fth_val both = fth_mul(fth_cast(fth_add(x, half), FTH_F64), wide);
    EQ_I64(program_of(&s, both).n_const, 2);
    same_as_written(&s, fth_cast(both, FTH_F32));
    const fth_val seed = fth_const_i64(s.g, FTH_I64, 3), step = fth_const_i64(s.g, FTH_I64, 0),
                  u = fth_cumsum(fth_uniform(FTH_F32, "row col", seed, step, 1), "col"),
                  w = fth_cumsum(fth_uniform(FTH_F32, "row col", seed, step, 2), "col");
    EQ_I64(made(&s, fth_sub(u, w), &fth__op_scan), 2);
    same_as_written(&s, fth_sub(u, w));
    close_stage(&s);
}

TEST(operations_that_change_no_bit_are_left_out)
{
    stage s;
    fth_val x, y;
    open_numbers(&s, &x, &y);
    const fth_val one = fth_const(s.g, FTH_F32, 1.0), zero = fth_const(s.g, FTH_F32, 0.0);
    const fth_val e = fth_exp(x);
    const fth_val same = fth_mul(one, fth_neg(fth_neg(fth_mul(e, one))));
    EQ_I64(program_of(&s, fth_sub(same, y)).n_instr, 2); /* exp, sub */
    same_as_written(&s, fth_sub(same, y));
    EQ_I64(program_of(&s, fth_sub(fth_add(e, zero), y)).n_instr, 3); /* -0 + 0 is +0 */
    EQ_I64(program_of(&s, fth_sub(fth_mul(x, one), y)).n_instr, 2);  /* x may hold any NaN */
    EQ_I64(program_of(&s, fth_sub(fth_neg(fth_neg(x)), y)).n_instr, 3);
    const fth_val cast = fth_cast(fth_cast(x, FTH_F64), FTH_F32); /* makes the one NaN as well */
    EQ_I64(program_of(&s, fth_sub(fth_mul(cast, one), y)).n_instr, 3);
    same_as_written(&s, fth_sub(fth_mul(cast, one), y));
    close_stage(&s);
}

/* ---- what it is for ---- */

/* Numbers of a step of Adam, per step and not per parameter. */
TEST(numbers_of_an_optimiser_are_made_once_per_step)
{
    enum { PARAMS = 5 };
    int64_t numbers[2];
    for (int many = 0; many < 2; many++) {
        const int n = many ? PARAMS : 1;
        stage s;
        fth_val x, y, outs[3 * PARAMS];
        fth_tensor *t[3 * PARAMS];
        fth_err err = {0};
        const int64_t size[2] = {ROWS, COLS};
        open_numbers(&s, &x, &y);
        const fth_source rate_from = {.kind = "memory", .dtype = FTH_F64, .data = &(double){1e-3}},
                         step_from = {.kind = "memory", .dtype = FTH_I64, .data = &(int64_t){3}};
        const fth_val rate = fth_input(s.g, "rate", FTH_F64, "", rate_from),
                      step = fth_input(s.g, "step", FTH_I64, "", step_from);
        for (int i = 0; i < n; i++) {
            fth_val v[3];
            for (int k = 0; k < 3; k++) {
                char name[16];
                snprintf(name, sizeof name, "%c%d", "pmv"[k], i);
                fth_tensor **to = &t[3 * i + k];
                OKE(fth_tensor_create(to, fth_context_mem(s.ctx), name, FTH_F32, 2, size, &err),
                    &err);
                v[k] = fth_param(s.g, name, "row col", *to);
            }
            const fth_adam adam = FTH_ADAM_DEFAULT;
            OK(fth_adam_step(&adam, v[0], fth_mul(v[0], x), v[1], v[2], rate, step, &outs[3 * i]));
        }
        fth_plan *p = plan_of(&s, outs, 3 * n, NULL);
        numbers[many] = 0;
        for (int64_t i = 0; i < p->n_units; i++)
            numbers[many] += p->unit[i].node->out[0].n_axes == 0;
        fth_plan_destroy(p);
        for (int i = 0; i < 3 * n; i++) fth_tensor_release(t[i]);
        close_stage(&s);
    }
    LE_F64(1.0, (double)numbers[0]);
    EQ_I64(numbers[1], numbers[0]);
}

TEST_MAIN()
