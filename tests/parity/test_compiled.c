/* test_compiled - programs that are compiled at run time give the bits of the interpreter.
 *
 * A device interprets a program until so much was done that compiling would have paid; so the same
 * call is repeated until it is compiled, which the folder of kept code tells, and both results are
 * compared. The interpreter itself is held against the reference by the tests of operations. Needs
 * a device with a compiler.
 * seconds: 40 labels: gpu */
#include "cuda/program/worth.h"
#include "graph/program.h"
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "testing/engine/op_device.h"
#include "testing/full.h"
#include "testing/io/files.h"

#include <fathom/graph.h>

typedef struct shape {
    int n_axes;
    int64_t size[3];
    int tail; /* -1: none */
} shape;

/* The first operand lacks the last axis, the taps of a window over another, through which it is
 * read; so it is over the next axis as well, whose taps are reduced before. Or rows of it are, by
 * an index along the first axis or along all of them; and numbers that the program makes are added.
 */
typedef enum rows { WINDOW, WINDOWS, BY_ROW, BY_ELEMENT } rows;
typedef struct window {
    shape shape;
    int axis;
    fth_border border;
    rows rows;
} window;
enum { ROWS = 50, INSIDE = 3 };

static const shape shapes[] = {
    {1, {5000003}, -1},     {2, {2048, 2304}, -1}, {2, {4099, 1031}, -1}, {2, {2048, 2304}, 1},
    {2, {2048, 2304}, 0},   {2, {100, 50001}, 1},  {1, {5000003}, 0},     {3, {1280, 5, 720}, 1},
    {2, {1600001, 3}, 1},   {2, {60000, 100}, 1},  {2, {70001, 64}, 0},   {3, {64, 1031, 72}, 0},
    {3, {40, 1500, 96}, 1}, {2, {4200, 1024}, 1},  {2, {9000, 500}, 1},   {2, {2400, 2000}, 1},
    {2, {300, 16384}, 1},
};
enum { SHAPES = (int)(sizeof shapes / sizeof *shapes) };

typedef struct stage {
    fth_device *device;
    const fth_device_table *table;
    fth_mem_system memory;
    fth_graph *g;         /* of a context that keeps code */
    const window *window; /* NULL: operands are read as they lie */
    fth_err err;
} stage;

static void *block(stage *s, uint64_t bytes)
{
    void *p = s->memory.map(s->memory.self, FTH_MEM_DIRECT, bytes ? bytes : 1);
    if (!p) FAIL("the device gives no %llu bytes", (unsigned long long)bytes);
    OKE(s->table->fill(s->device, FTH_LANE_COMPUTE, p, 0xa5, bytes ? bytes : 1, &s->err), &s->err);
    return p;
}

static void give_back(stage *s, void *p, uint64_t bytes)
{
    IS_TRUE(s->memory.unmap(s->memory.self, FTH_MEM_DIRECT, p, bytes ? bytes : 1));
}

static uint64_t bytes_of(const fth_desc *d)
{
    return (uint64_t)(fth_desc_count(d) * fth_dtype_size(d->dtype));
}

static void add(fth__program *p, fth_ew op, fth_dtype t, int x, int y)
{
    fth__instr *in = &p->instr[p->n_instr++];
    *in = (fth__instr){.op = (int16_t)op,
                       .from = (uint8_t)t,
                       .to = (uint8_t)t,
                       .dst = (int16_t)p->n_reg,
                       .src = {(int16_t)x, (int16_t)y, -1}};
    p->reg_dtype[p->n_reg] = (uint8_t)t;
    p->out_reg[0] = (int16_t)p->n_reg++;
}

enum { PLAIN = -1, MORE = 35, OFTEN = 1 << 30 };

static void view_window(fth_node *node, fth__program *p, const shape *sh, const window *w)
{
    node->in[0].n_axes--;
    p->n_views = 1;
    p->view[0] = (fth__view_axis){.mul = 1,
                                  .tap_mul = 1,
                                  .add = -(sh->size[sh->n_axes - 1] / 2),
                                  .div = 1,
                                  .dim = (int16_t)w->axis,
                                  .along = (int16_t)w->axis,
                                  .tap = (int16_t)(sh->n_axes - 1),
                                  .border = (int16_t)w->border,
                                  .rows = -1};
}

/* Over the axis behind as well; the second operand is weights of its taps. */
static void view_windows(fth_node *node, fth__program *p, const shape *sh, const window *w)
{
    const int inside = sh->n_axes;
    view_window(node, p, sh, w);
    p->view[p->n_views] = p->view[0];
    p->view[p->n_views].dim = p->view[p->n_views].along = (int16_t)(w->axis + 1);
    p->view[p->n_views++].tap = (int16_t)inside;
    p->axis[inside] = inside;
    p->size[inside] = INSIDE;
    p->inner_red = FTH_RED_SUM + 1;
}

/* Operand 2 is the index. */
static void view_rows(fth_node *node, fth__program *p, const shape *sh, const window *w)
{
    p->n_views = 1;
    p->view[0] = (fth__view_axis){
        .mul = 1, .div = 1, .limit = ROWS, .along = -1, .tap = -1, .border = -1, .rows = 2};
    node->in[0].axis[0] = sh->n_axes;
    node->in[0].size[0] = ROWS;
    node->in[2] = (fth_desc){.dtype = w->rows == BY_ROW ? FTH_I32 : FTH_I64,
                             .n_axes = w->rows == BY_ROW ? 1 : sh->n_axes};
    for (int k = 0; k < node->in[2].n_axes; k++) {
        node->in[2].axis[k] = k;
        node->in[2].size[k] = sh->size[k];
    }
    p->reg_dtype[2] = (uint8_t)node->in[2].dtype;
}

/* The result with an index and with random numbers added to it; both are of every axis. */
static void add_made(fth__program *p, fth_dtype t)
{
    const int sum = p->out_reg[0], seed = p->n_in, n = p->n_reg;
    p->n_made = 2;
    p->made[0] = (fth__made){.kind = FTH_RANDOM_NORMAL, .stream = 3, .add = 7, .step = {1, 300, 5}};
    p->made[1] = (fth__made){.kind = FTH__MADE_INDEX, .add = 2, .step = {3, 1, 2}};
    for (int i = 0; i < 2; i++) {
        const int s = i == 0 ? seed : -1;
        add(p, FTH_EW_ADD, i == 0 ? t : FTH_I64, s, s);
        p->instr[p->n_instr - 1].op = FTH__INSTR_MAKE;
        p->instr[p->n_instr - 1].from = (uint8_t)i;
    }
    add(p, FTH_EW_ADD, t, n + 1, -1);
    p->instr[p->n_instr - 1].op = FTH__INSTR_CAST;
    p->instr[p->n_instr - 1].from = FTH_I64;
    add(p, FTH_EW_ADD, t, n, n + 2);
    add(p, FTH_EW_ADD, t, n + 3, sum);
}

/* PLAIN: the first operand as it is. Else x * x + y, with y of the last axis alone, and a function
 * where there is one. The smallest of y and that, `more` times, makes it a program that nobody
 * compiled yet. */
static void make(fth_node *node, fth__program *p, const shape *sh, const window *w, fth_dtype t,
                 fth_red red, int more)
{
    memset(p, 0, sizeof *p);
    const bool by_index = w && w->rows >= BY_ROW, twice = w && w->rows == WINDOWS;
    p->n_axes = sh->n_axes;
    p->n_in = node->n_in = more == PLAIN ? 1 : by_index ? 3 : 2;
    p->n_const = by_index;
    p->n_reg = p->n_in + p->n_const;
    p->n_out = 1;
    p->tail_dim = sh->tail;
    p->tail_red = (int32_t)red;
    for (int i = 0; i < p->n_in; i++) {
        node->in[i].dtype = t;
        p->reg_dtype[i] = (uint8_t)t;
    }
    for (int k = 0; k < sh->n_axes; k++) {
        p->axis[k] = node->in[0].axis[k] = k;
        p->size[k] = node->in[0].size[k] = sh->size[k];
    }
    node->in[0].n_axes = sh->n_axes;
    if (w) (by_index ? view_rows : twice ? view_windows : view_window)(node, p, sh, w);
    if (by_index) {
        p->reg_dtype[p->n_in] = FTH_I64;
        p->constant_i64[0] = 11;
    }
    node->in[1].n_axes = 1;
    node->in[1].axis[0] = twice ? sh->n_axes : sh->n_axes - 1;
    node->in[1].size[0] = twice ? INSIDE : sh->size[sh->n_axes - 1];
    if (more != PLAIN) {
        add(p, t == FTH_BOOL ? FTH_EW_XOR : FTH_EW_MUL, t, 0, 0);
        add(p, t == FTH_BOOL ? FTH_EW_OR : FTH_EW_ADD, t, p->out_reg[0], 1);
        if (fth__ew_dtype(FTH_EW_EXP, t) == t) add(p, FTH_EW_EXP, t, p->out_reg[0], -1);
    }
    if (by_index) add_made(p, t);
    const fth_ew pair = t == FTH_BOOL                       ? FTH_EW_OR
                        : fth__ew_dtype(FTH_EW_MIN, t) == t ? FTH_EW_MIN
                                                            : FTH_EW_ADD;
    for (int i = 0; i < more; i++) add(p, pair, t, p->out_reg[0], 1);
    node->op = &fth__op_fused;
    node->attr = p;
    node->attr_bytes = sizeof *p;
    fth_err err = {0};
    OKE(node->op->infer(node, &err), &err);
}

/* Whole numbers up to `most`, or reals. */
static void fill_input(stage *s, const fth_desc *d, void *to, uint64_t stream, int64_t most)
{
    const int64_t n = fth_desc_count(d);
    char *host = malloc(bytes_of(d));
    t_random r = t_random_make(stream);
    for (int64_t i = 0; i < n; i++) {
        const fth__cell whole = {.i64 = t_random_i64(&r, most > 200 ? most - 5 : 0, most)},
                        real = {.f64 = t_random_f64(&r) * 2.0 - 1.0};
        const bool exact = d->dtype == FTH_BOOL || fth_dtype_is_int(d->dtype);
        fth__cell v = {.c128 = {0.0, 0.0}};
        (void)fth__cell_cast(exact ? FTH_I64 : FTH_F64, d->dtype, exact ? &whole : &real, &v);
        fth__cell_store(d->dtype, &v, host + i * fth_dtype_size(d->dtype));
    }
    OKE(s->table->copy(s->device, FTH_LANE_COMPUTE, to, host, bytes_of(d), &s->err), &s->err);
    OKE(s->table->drain(s->device, FTH_LANE_COMPUTE, &s->err), &s->err);
    free(host);
}

static void take_output(stage *s, void *host, const void *from, uint64_t bytes)
{
    OKE(s->table->copy(s->device, FTH_LANE_COMPUTE, host, from, bytes, &s->err), &s->err);
    OKE(s->table->drain(s->device, FTH_LANE_COMPUTE, &s->err), &s->err);
}

/* Sums of whole numbers are exact. */
static void check_sums(stage *s, const shape *sh, const fth_node *node, const void *from,
                       const int64_t *sums)
{
    uint8_t *host = malloc(bytes_of(&node->in[0]));
    int64_t after = 1, n = sh->size[sh->tail];
    take_output(s, host, from, bytes_of(&node->in[0]));
    for (int i = sh->tail + 1; i < sh->n_axes; i++) after *= sh->size[i];
    for (int64_t o = 0; o < fth_desc_count(&node->out[0]); o++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = (o / after * n + i) * after + o % after;
            sum += node->in[0].dtype == FTH_U8 ? host[at] : ((const uint16_t *)host)[at];
        }
        EQ_I64(sums[o], sum);
    }
    free(host);
}

/* `again`: the program was compiled for another shape, so nothing is interpreted. */
static void compare(stage *s, const shape *sh, fth_dtype t, fth_red red, int more, int64_t most,
                    bool again)
{
    fth__program_node room;
    fth_node *node = fth__program_node_clear(&room);
    fth__program p;
    make(node, &p, sh, s->window, t, red, more);
    node->graph = s->g;
    const int64_t kept_before = t_file_count();
    const fth_kernel *kernel = t_device_find(node);
    IS_TRUE(kernel != NULL);
    fth_call call = {.node = node, .first = true, .last = true, .threads = 1, .err = &s->err};
    const uint64_t bytes = bytes_of(&node->out[0]),
                   kept = node->op->state(node, 0) * (uint64_t)fth_desc_count(&node->out[0]);
    for (int i = 0; i < node->n_in; i++) t_whole_tile(&node->in[i], &call.in[i]);
    t_whole_tile(&node->out[0], &call.out[0]);
    t_whole_tile(&node->out[0], &call.state[0]);
    const uint64_t scratch = kernel->scratch ? kernel->scratch(&call) : 0;
    for (int i = 0; i < node->n_in; i++) {
        call.in[i].data = block(s, bytes_of(&node->in[i]));
        fill_input(s, &node->in[i], call.in[i].data, (uint64_t)i + 1, most);
    }
    call.out[0].data = block(s, bytes);
    call.state[0].data = block(s, kept);
    call.scratch = block(s, scratch);
    call.device = s->device;
    call.stream = s->table->stream(s->device, FTH_LANE_COMPUTE);
    char *first = malloc(bytes + 1), *last = malloc(bytes + 1);
    OKE(kernel->run(&call), &s->err);
    take_output(s, first, call.out[0].data, bytes);
    const int64_t work = fth__worth_of(&p, fth_desc_count(&node->in[0]));
    EQ_I64(t_file_count(), kept_before); /* the first was interpreted */
    if (fth_desc_count(&node->in[0]) < FTH__WORTH_NOTHING && !again) { /* as in a plan of many */
        OKE(kernel->run(&call), &s->err);
        EQ_I64(t_file_count(), kept_before);
        OKE(kernel->prepare(node, s->device, OFTEN, &s->err), &s->err);
        IS_TRUE(t_file_count() > kept_before);
    }
    for (int64_t done = 0; !again && done <= FTH__WORTH_COMPILING && t_file_count() == kept_before;
         done += work)
        OKE(kernel->run(&call), &s->err);
    IS_TRUE(again || t_file_count() > kept_before);
    OKE(s->table->fill(s->device, FTH_LANE_COMPUTE, call.out[0].data, 0xa5, bytes, &s->err),
        &s->err);
    OKE(kernel->run(&call), &s->err);
    take_output(s, last, call.out[0].data, bytes);
    SAME_BYTES(last, first, bytes);
    if (more == PLAIN && node->out[0].dtype == FTH_I64)
        check_sums(s, sh, node, call.in[0].data, (const int64_t *)last);
    free(first);
    free(last);
    for (int i = 0; i < node->n_in; i++) give_back(s, call.in[i].data, bytes_of(&node->in[i]));
    give_back(s, call.out[0].data, bytes);
    give_back(s, call.state[0].data, kept);
    give_back(s, call.scratch, scratch);
}

static fth_context *keep_code(stage *s)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.device = "cpu";
    opt.cache_dir = t_temp_dir();
    OKE(fth_context_create(&ctx, &opt, &s->err), &s->err);
    s->g = fth_graph_create(ctx);
    return ctx;
}

/* Skips where nothing is compiled. */
static fth_context *begin(stage *s)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no backend");
    fth_device_info info;
    s->table = t_device_backend(&s->device)->device;
    memset(&info, 0, sizeof info);
    if (s->table->get_libraries) s->table->get_libraries(s->device, &info);
    s->table->get_memory(s->device, &s->memory);
    if (strncmp(info.compiler, "NVRTC", 5) != 0 && strncmp(info.compiler, "C++", 3) != 0)
        SKIP("this device has no compiler");
    return keep_code(s);
}

/* Every dtype on one shape or another, every shape with two dtypes, every reduction. */
TEST(compiled_and_interpreted_are_the_same)
{
    stage s = {.device = NULL};
    fth_context *ctx = begin(&s);
    /* every compilation takes seconds there, and its code is not sanitized */
    const int step = !t_full() ? 19 : t_slowed() ? 3 : 1;
    for (int k = 0; k < 2 * SHAPES; k += step) {
        const shape *sh = &shapes[k % SHAPES];
        const fth_dtype t = k < SHAPES ? FTH_F32 : (fth_dtype)(k % FTH_DTYPE_COUNT);
        fth_red red = (fth_red)(k % FTH_RED_LOGSUMEXP);
        if (k < SHAPES || fth__reduce_dtype(red, t) == FTH_DTYPE_COUNT) red = FTH_RED_SUM;
        compare(&s, sh, t, red, k, 200, false);
    }
    fth_graph_destroy(s.g);
    OK(fth_context_destroy(ctx, NULL));
}

/* Windows along the axis that threads go along, and along another; summed over their taps, or not.
 * Over two axes both are, one inside the other. */
TEST(windows_that_are_read_in_place)
{
    static const window windows[] = {{{3, {300, 2304, 5}, 2}, 1, FTH_BORDER_MIRROR, WINDOW},
                                     {{3, {301, 2304, 5}, 2}, 0, FTH_BORDER_WRAP, WINDOWS},
                                     {{3, {700, 1024, 5}, 2}, 0, FTH_BORDER_REFLECT, WINDOW},
                                     {{2, {200001, 7}, -1}, 0, FTH_BORDER_ZERO, WINDOW},
                                     {{3, {340, 1031, 4}, -1}, 0, FTH_BORDER_CLAMP, WINDOW},
                                     {{3, {200, 1500, 7}, 2}, 0, FTH_BORDER_ZERO, WINDOWS},
                                     {{3, {20000, 2, 5}, 2}, 0, FTH_BORDER_CLAMP, WINDOWS}};
    stage s = {.device = NULL};
    fth_context *ctx = begin(&s);
    const int n = t_full() ? (int)(sizeof windows / sizeof *windows) : 2;
    for (int i = 0; i < n; i++) {
        s.window = &windows[i];
        const fth_dtype t = (i + (windows[i].rows == WINDOWS)) % 2 ? FTH_U16 : FTH_F32;
        compare(&s, &windows[i].shape, t, FTH_RED_SUM, i, 200, false);
    }
    fth_graph_destroy(s.g);
    OK(fth_context_destroy(ctx, NULL));
}

/* Whole rows, and an element of its own for each; kept, summed along the rows, down the columns. */
TEST(rows_by_an_index_and_numbers_that_are_made)
{
    static const window windows[] = {{{2, {300, 2304}, -1}, 0, FTH_BORDER_ZERO, BY_ROW},
                                     {{2, {300, 2304}, -1}, 0, FTH_BORDER_ZERO, BY_ELEMENT},
                                     {{2, {300, 2305}, 1}, 0, FTH_BORDER_ZERO, BY_ROW},
                                     {{2, {301, 2304}, 1}, 0, FTH_BORDER_ZERO, BY_ELEMENT},
                                     {{3, {300, 40, 96}, 1}, 0, FTH_BORDER_ZERO, BY_ROW},
                                     {{2, {70000, 3}, 1}, 0, FTH_BORDER_ZERO, BY_ELEMENT}};
    stage s = {.device = NULL};
    fth_context *ctx = begin(&s);
    const int n = t_full() ? (int)(sizeof windows / sizeof *windows) : 3;
    for (int i = 0; i < n; i++) {
        s.window = &windows[i];
        compare(&s, &windows[i].shape, i == 1 ? FTH_F64 : FTH_F32, FTH_RED_SUM, i, ROWS - 1, false);
    }
    fth_graph_destroy(s.g);
    OK(fth_context_destroy(ctx, NULL));
}

/* Sums of small numbers as they are: down columns, along rows, brief and not, odd and even. Sums of
 * the largest bytes would show in their neighbours if too many were added in 16 bits. */
TEST(sums_of_small_numbers)
{
    static const struct {
        shape shape;
        fth_dtype t;
        int64_t most;
    } sums[] = {{{2, {6000, 1024}, 0}, FTH_U8, 255},    {{2, {600, 16384}, 1}, FTH_U8, 255},
                {{2, {200000, 48}, 0}, FTH_U16, 65535}, {{2, {1600001, 3}, 1}, FTH_F32, 1},
                {{2, {1500003, 4}, 1}, FTH_F64, 1},     {{2, {2500002, 2}, 1}, FTH_F16, 1},
                {{3, {5000, 50, 32}, 1}, FTH_U8, 255},  {{2, {6001, 1023}, 0}, FTH_U8, 255},
                {{2, {600, 16384}, 1}, FTH_U16, 65535}, {{2, {700001, 7}, 1}, FTH_U8, 255},
                {{2, {300, 800000}, 0}, FTH_U8, 255}};
    stage s = {.device = NULL};
    fth_context *ctx = begin(&s);
    /* the last has so many outputs that one thread adds whole columns: nothing for a slow device */
    const int all = (int)(sizeof sums / sizeof *sums), n = !t_full()    ? 3
                                                           : t_slowed() ? all - 1
                                                                        : all;
    for (int i = 0; i < n; i++) {
        bool again = false;
        for (int k = 0; k < i; k++) again |= sums[k].t == sums[i].t && i > 1;
        compare(&s, &sums[i].shape, sums[i].t, FTH_RED_SUM, PLAIN, sums[i].most, again);
    }
    fth_graph_destroy(s.g);
    OK(fth_context_destroy(ctx, NULL));
}

/* Small values are interpreted until their plan ran often. */
TEST(small_values_of_plans_that_run_often)
{
    static const shape small[] = {{1, {4099}, -1},      {2, {30, 64}, -1}, {2, {70, 64}, 1},
                                  {3, {16, 40, 32}, 2}, {1, {50001}, 0},   {2, {37, 1000}, 0},
                                  {2, {3, 500}, 1},     {1, {1}, -1}};
    stage s = {.device = NULL};
    fth_context *ctx = begin(&s);
    const int n = !t_full() ? 3 : (int)(sizeof small / sizeof *small);
    for (int i = 0; i < n; i++)
        compare(&s, &small[i], i % 2 ? FTH_F64 : FTH_F32, FTH_RED_SUM, MORE + i, 200, false);
    fth_graph_destroy(s.g);
    OK(fth_context_destroy(ctx, NULL));
}

TEST_MAIN()
