/* test_cuda_source - programs as CUDA C++: every operation, dtype, tail and shape compiles.
 *
 * NVRTC needs no GPU; where there is none, the cases that compile are skipped. Every text
 * is made; of them NVRTC, which sanitizers cannot see into, compiles a sample.
 * seconds: 60 */
#include "testing/full.h"

#include "cuda/program/nvrtc.h"
#include "cuda/program/source.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/view.h"

enum { TEXT = 1 << 17 };

static fth__nvrtc nvrtc;

static bool have_compiler(void)
{
    if (!nvrtc.library) fth__nvrtc_open(&nvrtc);
    return nvrtc.library != NULL;
}

/* A program over axes "row col" with inputs of these dtypes, all of them of both axes. */
static void start(fth__program *p, fth_desc *in, int n_in, const fth_dtype *dtype)
{
    memset(p, 0, sizeof *p);
    p->n_axes = 2;
    p->axis[0] = 0, p->axis[1] = 1;
    p->size[0] = 300, p->size[1] = 400;
    p->n_in = p->n_reg = n_in;
    p->tail_dim = -1;
    p->n_out = 1;
    for (int i = 0; i < n_in; i++) {
        p->reg_dtype[i] = (uint8_t)dtype[i];
        in[i] = (fth_desc){.dtype = dtype[i], .n_axes = 2, .axis = {0, 1}, .size = {300, 400}};
    }
}

static int16_t add(fth__program *p, int op, fth_dtype from, fth_dtype to, int x, int y, int z)
{
    fth__instr *in = &p->instr[p->n_instr++];
    *in = (fth__instr){.op = (int16_t)op,
                       .from = (uint8_t)from,
                       .to = (uint8_t)to,
                       .dst = (int16_t)p->n_reg,
                       .src = {(int16_t)x, (int16_t)y, (int16_t)z}};
    p->reg_dtype[p->n_reg] = (uint8_t)to;
    p->out_reg[0] = (int16_t)p->n_reg;
    return (int16_t)p->n_reg++;
}

static void compiles_as(const fth__program *p, const fth__ew_shape *shape, bool vec)
{
    char *text = malloc(TEXT);
    IS_TRUE(text != NULL);
    fth_err err = {0};
    void *program;
    size_t bytes;
    IS_TRUE(fth__cuda_source(p, shape, vec, text, TEXT) <= TEXT);
    static int made;
    if (made++ % t_one_in(6, 64) != 0) {
        free(text);
        return;
    }
    const fth_status s = fth__nvrtc_compile(&nvrtc, text, 9, 0, &program, &bytes, &err);
    if (s != FTH_OK) fputs(text, stderr);
    fth__nvrtc_release(&nvrtc, program);
    free(text);
    OKE(s, &err);
    IS_TRUE(bytes > 1000);
}

/* vec: the kernel for items of neighbours; lanes of a tail, 0: blocks are single elements. */
static void compiles(const fth__program *p, const fth_desc *in, bool vec, int lanes)
{
    fth__ew_shape shape;
    fth__ew_shape_of(p, in, &shape);
    shape.lanes = lanes;
    shape.brief = lanes == 0;
    if (shape.rows && lanes > 0) fth__ew_shape_rows(&shape, lanes == 8 ? 16 : 64, 400);
    compiles_as(p, &shape, vec);
}

/* One program per dtype with every operation that has it: as many as instructions fit. */
TEST(every_operation)
{
    if (!have_compiler()) SKIP("%s", nvrtc.why);
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        int op = 0;
        while (op < FTH_EW_COUNT) {
            const fth_dtype dt = (fth_dtype)t, dtype[4] = {FTH_BOOL, dt, dt, dt};
            fth__program p;
            fth_desc in[4];
            start(&p, in, 4, dtype);
            p.n_out = 0;
            for (; op < FTH_EW_COUNT && p.n_out < FTH_PROGRAM_OUTS; op++) {
                const fth_dtype to = fth__ew_dtype((fth_ew)op, dt);
                if (to == FTH_DTYPE_COUNT) continue;
                const int first = op == FTH_EW_SELECT ? 0 : 1;
                const int16_t reg = add(&p, op, dt, to, first, 2, 3);
                p.out_reg[p.n_out++] = reg;
            }
            if (p.n_out > 0) compiles(&p, in, op % 2, 1);
        }
    }
}

TEST(every_cast)
{
    if (!have_compiler()) SKIP("%s", nvrtc.why);
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        for (int to = 0; to < FTH_DTYPE_COUNT;) {
            const fth_dtype dtype[1] = {(fth_dtype)t};
            fth__program p;
            fth_desc in[1];
            start(&p, in, 1, dtype);
            p.n_out = 0;
            for (; to < FTH_DTYPE_COUNT && p.n_out < FTH_PROGRAM_OUTS; to++) {
                const fth_dtype from = (fth_dtype)t, goal = (fth_dtype)to;
                if (to == t || !fth__cast_allowed(from, goal) || fth__cast_may_fail(from, goal))
                    continue;
                const int16_t reg = add(&p, FTH__INSTR_CAST, from, goal, 0, -1, -1);
                p.out_reg[p.n_out++] = reg;
            }
            if (p.n_out > 0) compiles(&p, in, t % 2, 1);
        }
}

TEST(every_tail)
{
    if (!have_compiler()) SKIP("%s", nvrtc.why);
    for (int t = 0; t < FTH_DTYPE_COUNT; t++)
        for (int red = 0; red < FTH_RED_LOGSUMEXP; red++) {
            const fth_dtype dtype[1] = {(fth_dtype)t};
            if (fth__reduce_dtype((fth_red)red, dtype[0]) == FTH_DTYPE_COUNT) continue;
            fth__program p;
            fth_desc in[1];
            start(&p, in, 1, dtype);
            p.tail_red = red;
            static const int lanes[] = {8, 1, 0};
            p.tail_dim = (t + red) % 2;
            compiles(&p, in, red % 3 != 0, lanes[t % 3]);
        }
}

/* Rows with blocks of every length, in one lane or eight, in superblocks, or joined in any order.
 */
/* An input that is read through views: along the items, along rows of them, or for each alone; at
 * even distances, beyond its ends, divided. */
TEST(every_view)
{
    if (!have_compiler()) SKIP("%s", nvrtc.why);
    static const fth_dtype types[] = {FTH_F32, FTH_U16, FTH_C128, FTH_F16};
    for (int k = 0; k < 4 * 3 * 3 * 2; k++) {
        const fth_dtype dtype[2] = {types[k % 4], types[k % 4]};
        const int along = k / 4 % 3, kind = k / 12 % 3, tail = k / 36 - 1;
        fth__program p;
        fth_desc in[2];
        start(&p, in, 2, dtype);
        p.n_views = 1;
        p.view[0] = (fth__view_axis){.mul = kind == 0 ? -1 : 1,
                                     .add = kind == 0 ? 399 : -2,
                                     .div = kind == 2 ? 3 : 1,
                                     .in = 0,
                                     .dim = along == 0 ? 1 : 0,
                                     .along = along == 0 ? 1 : 0,
                                     .tap = -1,
                                     .border = kind == 1 ? FTH_BORDER_MIRROR : FTH__BORDER_NONE};
        if (along == 2) in[0].n_axes = 1;
        p.tail_dim = tail < 0 ? -1 : 0;
        p.tail_red = FTH_RED_SUM;
        add(&p, FTH_EW_ADD, dtype[0], dtype[0], 0, 1, -1);
        compiles(&p, in, k % 2, 1);
        compiles(&p, in, k % 2 == 0, 1);
    }
}

TEST(every_way_along_rows)
{
    static const fth_dtype types[] = {FTH_BOOL, FTH_I32, FTH_F16, FTH_F32, FTH_C64, FTH_C128};
    if (!have_compiler()) SKIP("%s", nvrtc.why);
    for (int t = 0; t < 6; t++) {
        const bool exact = types[t] == FTH_BOOL || types[t] == FTH_I32;
        fth__program p;
        fth_desc in[1];
        fth__ew_shape shape;
        start(&p, in, 1, &types[t]);
        p.tail_dim = 1;
        fth__ew_shape_of(&p, in, &shape);
        IS_TRUE(shape.rows && shape.blocks > 1 && shape.unroll == 8);
        static const int blocks[] = {2, 4, 8, 16, 32, 256};
        for (int i = 0; i < 6; i++) {
            shape.lanes = i == t ? 1 : 8;
            fth__ew_shape_rows(&shape, blocks[i], 64 * blocks[i]);
            IS_TRUE(shape.inside == 0 || shape.inside == blocks[i]);
            compiles_as(&p, &shape, shape.vec > 1 && (t + i) % 3 > 0);
        }
        fth__ew_shape_of(&p, in, &shape);
        shape.lanes = 8;
        shape.free = exact;
        shape.super = !exact;
        if (!exact) fth__ew_shape_rows(&shape, 1024, 1 << 20);
        compiles_as(&p, &shape, shape.vec > 1 && t % 2 == 0);
    }
}

/* Operands of every shape beside each other: whole, lacking an axis, transposed, one number. */
TEST(every_shape)
{
    if (!have_compiler()) SKIP("%s", nvrtc.why);
    for (int tail = -1; tail < 2; tail++) {
        const fth_dtype dtype[5] = {FTH_F32, FTH_F32, FTH_F32, FTH_F32, FTH_F32};
        fth__program p;
        fth_desc in[5];
        fth__ew_shape shape;
        start(&p, in, 5, dtype);
        in[1] = (fth_desc){.dtype = FTH_F32, .n_axes = 1, .axis = {0}, .size = {300}};
        in[2] = (fth_desc){.dtype = FTH_F32, .n_axes = 1, .axis = {1}, .size = {400}};
        in[3] = (fth_desc){.dtype = FTH_F32, .n_axes = 2, .axis = {1, 0}, .size = {400, 300}};
        in[4] = (fth_desc){.dtype = FTH_F32};
        int16_t reg = 0;
        for (int i = 1; i < 5; i++) reg = add(&p, FTH_EW_ADD, FTH_F32, FTH_F32, reg, i, -1);
        p.tail_dim = tail;
        fth__ew_shape_of(&p, in, &shape);
        EQ_I64(shape.where[0], FTH__EW_DENSE);
        EQ_I64(shape.where[1], FTH__EW_SPREAD);
        EQ_I64(shape.where[3], FTH__EW_FAR);
        EQ_I64(shape.where[4], FTH__EW_HELD);
        EQ_I64(shape.vec, 4);
        compiles(&p, in, true, tail == 1 ? 8 : 1);
        compiles(&p, in, false, 1);
    }
}

TEST_MAIN()
