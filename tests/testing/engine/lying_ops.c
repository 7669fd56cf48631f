/* lying_ops.c - see lying_ops.h. Two honest operations, and how each can go wrong.
 *
 * `second`: v[x-1] - 2 v[x] + v[x+1] along x of [y x], HALO; its second output is twice the first.
 * `total`: the sum of v along x of [y x], in blocks of 8, and the largest value of each row (its
 * second output), ACCUMULATE; `running`: the sum so far, CARRY.
 */
#include "testing/engine/lying_ops.h"

#include "testing/test.h"

#include <math.h>

typedef enum lie {
    HONEST,
    /* second */
    SHORT_HALO,
    SAYS_SAME,
    LOCAL_BORDER,
    DENSE_INPUT,
    DENSE_OUTPUT,
    PAST_TILE,
    SMALL_SCRATCH,
    GREEDY_SCRATCH,
    LEAVES_ONE,
    NAN_OF_PLACE,
    ADDS_UP,
    TRUSTS_SCRATCH,
    OTHER_SHAPE,
    FEWER_OUTPUTS,
    CHANGES_INPUT,
    NEEDS_FIRST,
    COUNTS_CALLS,
    SHARED_ROOM,
    TEAM_DECIDES,
    IN_PLACE,
    UPDATES,
    FAILS,
    FAILS_SILENTLY,
    FAILS_OUTSIDE,
    ENDLESS_FLOPS,
    WRONG_SLOPE,
    WRONG_BAR,
    NO_BAR,
    OTHER_RELATION,
    OTHER_DIVISOR,
    NEGATIVE_FLOPS,
    CHANGES_ATTR,
    /* total and running */
    NO_START,
    START_WITH_DATA,
    SMALL_STATE,
    WRONG_STATE,
    COARSE_BLOCKS,
    MEAN_OF_PIECE,
    OTHER_STATE,
    OTHER_GRID,
    LOOKS_AT_OUTPUTS,
    JOINS_TWICE,
    OFF_THE_GRID,
    NO_FINISH,
    FORGETS
} lie;

static int calls; /* what no operation may have */
static float room[4096];

static bool tells(const fth_node *n, lie l)
{
    return *(const int *)n->attr == (int)l;
}

/* ---- second ---- */

static fth_status second_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(fth_infer_like(node, FTH_F32, 2, err));
    node->n_out = tells(node, UPDATES) || tells(node, IN_PLACE) ? 1 : 2;
    node->out[1] = node->out[0];
    if (tells(node, OTHER_SHAPE) && calls++ % 2) node->out[1].dtype = FTH_F64;
    if (tells(node, FEWER_OUTPUTS) && calls++ % 2) node->n_out = 1;
    return FTH_OK;
}

static void second_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    fth_relation_same(node, in, dim, out);
    const bool same = tells(node, SAYS_SAME) || tells(node, UPDATES);
    if (dim == 1 && !same)
        *out =
            (fth_relation){.along = FTH_HALO, .out_dim = 1, .mul = 1, .div = 1, .lo = 1, .hi = 1};
    if (dim == 1 && tells(node, SHORT_HALO)) out->hi = 0;
    if (dim == 1 && tells(node, OTHER_RELATION) && calls++ % 2) out->lo = 2;
    if (dim == 1 && tells(node, OTHER_DIVISOR) && calls++ % 2) out->div = 2;
}

static uint64_t second_scratch(const fth_call *call)
{
    const uint64_t row = (uint64_t)call->out[0].extent[1] * sizeof(float);
    if (tells(call->node, GREEDY_SCRATCH)) return row + (uint64_t)(calls++ % 7) * 64;
    return tells(call->node, SMALL_SCRATCH) && row > 0 ? row - sizeof(float) : row;
}

static double second_flops(const fth_call *call)
{
    if (tells(call->node, NEGATIVE_FLOPS)) return -1.0;
    return tells(call->node, ENDLESS_FLOPS) ? (double)NAN : 3.0 * (double)call->out[0].extent[1];
}

static float at(const fth_call *c, int64_t y, int64_t x)
{
    const fth_tile *t = &c->in[0];
    const int64_t row = tells(c->node, DENSE_INPUT) ? t->extent[1] : t->stride[0];
    return ((const float *)t->data)[(y - t->origin[0]) * row + (x - t->origin[1]) * t->stride[1]];
}

static float slope(const fth_call *c, int64_t y, int64_t x)
{
    const fth_tile *out = &c->out[0];
    const bool local = tells(c->node, LOCAL_BORDER);
    const int64_t first = local ? out->origin[1] : 0,
                  end = local ? out->origin[1] + out->extent[1] : c->node->out[0].size[1];
    return (x > first ? at(c, y, x - 1) : 0.0f) - 2.0f * at(c, y, x) +
           (x + 1 < end ? at(c, y, x + 1) : 0.0f);
}

/* What a row becomes, in the order of the lie. */
static void make_row(const fth_call *c, int64_t y, float *made)
{
    const fth_tile *out = &c->out[0];
    if (tells(c->node, TRUSTS_SCRATCH) && !(made[0] == made[0] && made[0] >= 0.0f)) made[0] = 0.0f;
    for (int64_t x = 0; x < out->extent[1]; x++) {
        const float v = slope(c, out->origin[0] + y, out->origin[1] + x);
        made[x] = x == 0 && tells(c->node, TRUSTS_SCRATCH) ? made[0] + v : v;
    }
}

static void put_row(const fth_call *c, int k, int64_t y, const float *made)
{
    const fth_tile *t = &c->out[k];
    const int64_t row = tells(c->node, DENSE_OUTPUT) ? t->extent[1] : t->stride[0];
    float *to = (float *)t->data + y * row;
    int64_t n = t->extent[1];
    if (tells(c->node, LEAVES_ONE) && t->origin[1] + n == c->node->out[0].size[1]) n--;
    for (int64_t x = 0; x < n; x++) {
        const float v = (float)(k + 1) * made[x];
        to[x * t->stride[1]] = tells(c->node, ADDS_UP) ? v + to[x * t->stride[1]] : v;
    }
    const uint32_t bits = 0x7fc00000u | (uint32_t)t->origin[0]; /* a NaN, and where the tile is */
    if (tells(c->node, NAN_OF_PLACE) && t->origin[1] == 0 && n > 0) memcpy(to, &bits, sizeof bits);
    if (tells(c->node, PAST_TILE) && n > 0) to[n * t->stride[1]] = 1.0f;
}

/* Elements one after the other, where outputs lie over inputs. */
static void run_over(const fth_call *c)
{
    const fth_tile *out = &c->out[0];
    for (int64_t y = 0; y < out->extent[0]; y++)
        for (int64_t x = 0; x < out->extent[1]; x++) {
            const int64_t gx = tells(c->node, UPDATES) ? 0 : out->origin[1] + x;
            const float v = tells(c->node, UPDATES) ? -at(c, out->origin[0] + y, x + out->origin[1])
                                                    : slope(c, out->origin[0] + y, gx);
            ((float *)out->data)[y * out->stride[0] + x * out->stride[1]] = v;
        }
    if (!tells(c->node, UPDATES)) return;
    for (int64_t y = 0; y < out->extent[0]; y++) /* reads again what is overwritten */
        for (int64_t x = 0; x < out->extent[1]; x++)
            ((float *)out->data)[y * out->stride[0] + x * out->stride[1]] +=
                2.0f * at(c, out->origin[0] + y, out->origin[1] + x);
}

static fth_status second_fails(const fth_call *c)
{
    if (tells(c->node, FAILS)) return FTH_FAIL(c->err, FTH_E_NUMERIC, "no such luck");
    if (tells(c->node, FAILS_SILENTLY)) return FTH_E_NUMERIC;
    if (!tells(c->node, FAILS_OUTSIDE) || at(c, c->out[0].origin[0], c->out[0].origin[1]) != 0.0f)
        return FTH_OK;
    ((float *)c->out[0].data)[-1] = 0.0f;
    return FTH_OK;
}

static void wrong_memory(const fth_call *c)
{
    union {
        const void *from;
        int *attr;
    } cast = {c->node->attr};
    if (tells(c->node, CHANGES_ATTR)) cast.attr[1]++;
    if (tells(c->node, CHANGES_INPUT) && c->in[0].extent[0] * c->in[0].extent[1] > 0)
        *(float *)c->in[0].data += 1.0f;
}

static fth_status second_run(const fth_call *c)
{
    const fth_tile *out = &c->out[0];
    if (out->extent[0] == 0 || out->extent[1] == 0) return FTH_OK;
    FTH_TRY(second_fails(c));
    wrong_memory(c);
    if (c->node->n_out == 1) return run_over(c), FTH_OK;
    float *made = tells(c->node, SHARED_ROOM) ? room : c->scratch;
    const float more = tells(c->node, COUNTS_CALLS)   ? (float)calls++
                       : tells(c->node, TEAM_DECIDES) ? (float)(c->threads - 1)
                                                      : 0.0f;
    for (int64_t y = 0; y < out->extent[0]; y++) {
        make_row(c, y, made);
        made[0] += more;
        if (tells(c->node, SHARED_ROOM)) {
            volatile double wait = 0.0;
            for (int i = 0; i < 20000; i++) wait += 1.0;
            (void)wait;
        }
        if (out->data) put_row(c, 0, y, made);
        if (c->out[1].data && (out->data || !tells(c->node, NEEDS_FIRST))) put_row(c, 1, y, made);
    }
    return FTH_OK;
}

static int second_update(const fth_node *node, int out)
{
    return tells(node, UPDATES) && out == 0 ? 0 : -1;
}

static fth_status second_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                             fth_err *err);

#define SECOND                                                                                     \
    .name = "second", .brief = "second difference", .infer = second_infer,                         \
    .relation = second_relation, .scratch = second_scratch, .flops = second_flops,                 \
    .vjp = second_vjp, .run = second_run
static const fth_op second = {SECOND};
static const fth_op second_team = {SECOND, .flags = FTH_OP_TEAM};
static const fth_op second_may_fail = {SECOND, .flags = FTH_OP_MAY_FAIL};
static const fth_op second_in_place = {SECOND, .flags = FTH_OP_IN_PLACE_0};
static const fth_op second_updates = {SECOND, .update_of = second_update};

/* Symmetric: what it does is its own transpose. */
static fth_status second_vjp(const fth_node *node, const fth_val *out_bar, fth_val *in_bar,
                             fth_err *err)
{
    const int honest[2] = {HONEST, 0};
    fth_val bar = fth_add(out_bar[0], fth_mul(fth_const(node->graph, FTH_F32, 2), out_bar[1]));
    if (tells(node, NO_BAR)) return FTH_FAIL(err, FTH_E_NUMERIC, "not today");
    if (tells(node, WRONG_SLOPE)) bar = out_bar[0];
    if (tells(node, WRONG_BAR)) bar = fth_sum(bar, "y");
    in_bar[0] = tells(node, WRONG_BAR)
                    ? bar
                    : fth_custom(node->graph, &second, 1, &bar, honest, sizeof honest);
    return FTH_OK;
}

/* ---- total and running ---- */

typedef struct part {
    float sum, block; /* of whole blocks, and of the one at hand */
    int64_t n;        /* elements in that */
} part;
enum { BLOCK = 8 };

static bool runs(const fth_node *n)
{
    return strcmp(n->op->name, "running") == 0;
}

static fth_status total_infer(fth_node *node, fth_err *err)
{
    FTH_TRY(fth_infer_like(node, FTH_F32, 2, err));
    if (!runs(node)) fth_desc_drop(&node->out[0], 1);
    node->n_out = runs(node) ? 1 : 2;
    node->out[1] = node->out[0];
    return FTH_OK;
}

static void total_relation(const fth_node *node, int in, int dim, fth_relation *out)
{
    (void)in;
    *out = (fth_relation){.along = FTH_SAME, .out_dim = dim};
    if (dim == 1) out->along = runs(node) ? FTH_CARRY : FTH_ACCUMULATE;
    if (dim == 1 && !runs(node)) out->out_dim = -1;
}

static int64_t total_grid(const fth_node *node, int in, int dim)
{
    if (runs(node) || in < 0 || dim != 1) return 1;
    if (tells(node, OTHER_GRID) && calls++ % 2) return 2 * BLOCK;
    return tells(node, COARSE_BLOCKS) ? BLOCK / 2 : BLOCK;
}

static uint64_t total_state(const fth_node *node, int out)
{
    if (tells(node, OTHER_STATE)) return sizeof(part) + (uint64_t)(calls++ % 2) * 8;
    if (tells(node, SMALL_STATE) && out == 0) return sizeof(part) - 8;
    return out == 0 ? sizeof(part) : sizeof(float);
}

static void *state_at(const fth_call *c, int k, int64_t y)
{
    const int64_t size = (int64_t)total_state(c->node, k);
    return (char *)c->state[k].data + y * c->state[k].stride[0] * size;
}

static void add_to(part *p, float v)
{
    p->block += v;
    if (++p->n < BLOCK) return;
    p->sum += p->block;
    p->block = 0.0f;
    p->n = 0;
}

/* Blocks of COARSE_BLOCKS begin where the piece does, as if those were the grid. */
static void begin_row(const fth_call *c, int64_t y, part *p)
{
    const int other = tells(c->node, WRONG_STATE);
    const bool start = c->first && !tells(c->node, NO_START) &&
                       !(tells(c->node, START_WITH_DATA) && c->in[0].extent[1] == 0);
    *p = (part){0};
    if (!start) memcpy(p, state_at(c, 0, y), sizeof *p);
    if (!start && tells(c->node, COARSE_BLOCKS)) *p = (part){.sum = p->sum + p->block};
    if (start && !runs(c->node)) *(float *)state_at(c, 1, other ? 0 : y) = -INFINITY;
}

static void end_row(const fth_call *c, int64_t y, const part *p)
{
    const int64_t n = tells(c->node, MEAN_OF_PIECE) ? c->in[0].extent[1] : 1;
    memcpy(state_at(c, 0, y), p, sizeof *p);
    if (!c->last || runs(c->node)) return;
    if (c->out[0].data)
        ((float *)c->out[0].data)[y * c->out[0].stride[0]] = (p->sum + p->block) / (float)n;
    if (c->out[1].data)
        ((float *)c->out[1].data)[y * c->out[1].stride[0]] =
            *(float *)state_at(c, 1, tells(c->node, WRONG_STATE) ? 0 : y);
}

static fth_status total_run(const fth_call *c)
{
    for (int64_t y = 0; y < c->out[0].extent[0]; y++) {
        part p;
        begin_row(c, y, &p);
        if (tells(c->node, FORGETS)) p = (part){0};
        for (int64_t x = 0; x < c->in[0].extent[1]; x++) {
            const float v = at(c, c->out[0].origin[0] + y, c->in[0].origin[1] + x);
            float *most =
                runs(c->node) ? NULL : state_at(c, 1, tells(c->node, WRONG_STATE) ? 0 : y);
            add_to(&p, v);
            if (most && v > *most) *most = v;
            if (runs(c->node))
                ((float *)c->out[0].data)[y * c->out[0].stride[0] + x * c->out[0].stride[1]] =
                    p.sum + p.block;
        }
        end_row(c, y, &p);
    }
    return FTH_OK;
}

static int64_t total_grain(const fth_node *node, int in, int dim)
{
    (void)in, (void)dim;
    return tells(node, OFF_THE_GRID) ? BLOCK + BLOCK / 2 : BLOCK;
}

static bool total_in_state(const fth_node *node, int out)
{
    (void)node, (void)out;
    return true;
}

static void total_add(const fth_partial *into, const fth_partial *from)
{
    const fth_node *n = into->node;
    for (int64_t y = 0; y < n->out[0].size[0]; y++) {
        part *a = (part *)into->state[0] + y;
        const part *b = (const part *)from->state[0] + y;
        a->sum = (a->sum + a->block) + (b->sum + b->block) * (tells(n, JOINS_TWICE) ? 2.0f : 1.0f);
        a->block = 0.0f;
        a->n = 0;
        float *most = (float *)into->state[1] + y;
        if (tells(n, LOOKS_AT_OUTPUTS) && from->out[0]) a->sum = -1.0f;
        const float other = ((const float *)from->state[1])[y];
        if (other > *most) *most = other;
    }
}

static void total_finish(const fth_partial *p)
{
    for (int64_t y = 0; !tells(p->node, NO_FINISH) && y < p->node->out[0].size[0]; y++) {
        const part *a = (const part *)p->state[0] + y;
        ((float *)p->out[0])[y] = a->sum + a->block;
        ((float *)p->out[1])[y] = ((const float *)p->state[1])[y];
    }
}

static const fth_join total_join = {
    .grain = total_grain, .in_state = total_in_state, .add = total_add, .finish = total_finish};

#define TOTAL                                                                                      \
    .brief = "sums", .infer = total_infer, .relation = total_relation, .grid = total_grid,         \
    .state = total_state, .run = total_run
static const fth_op total = {TOTAL, .name = "total", .join = &total_join};
static const fth_op running = {TOTAL, .name = "running"};

/* ---- rows ---- */

const lie_row lie_list[] = {
    {"second", "y x", &second, HONEST, NULL},
    {"second with a team", "y x", &second_team, HONEST, NULL},
    {"second may fail", "y x", &second_may_fail, HONEST, NULL},
    {"total", "y x", &total, HONEST, NULL},
    {"running", "y x", &running, HONEST, NULL},
    {"looks at outputs", "y x", &total, LOOKS_AT_OUTPUTS, NULL}, /* which a rank does not keep */
    {"short halo", "y x", &second, SHORT_HALO, "reads outside of the part that relation asks for"},
    {"says SAME", "y x", &second, SAYS_SAME, "when cut, axis 'x' at"},
    {"local border", "y x", &second, LOCAL_BORDER, "when cut, axis 'x' at"},
    {"dense input", "y x", &second, DENSE_INPUT, "when cut, axis 'x' at"},
    {"dense output", "y x", &second, DENSE_OUTPUT, "it writes outside the tile of output"},
    {"past the tile", "y x", &second, PAST_TILE, "it writes outside the tile of output"},
    {"small scratch", "y x", &second, SMALL_SCRATCH, "it writes behind the 144 bytes"},
    {"greedy scratch", "y x", &second, GREEDY_SCRATCH, "when asked again for the same call"},
    {"leaves one", "y x", &second, LEAVES_ONE, "it does not write element [y=0 x=36] of output 0"},
    {"another NaN", "y x", &second, NAN_OF_PLACE, ", expected 0x7fc00000"},
    {"adds up", "y x", &second, ADDS_UP, "when outputs, state and workspace held other garbage"},
    {"trusts scratch", "y x", &second, TRUSTS_SCRATCH, "held other garbage before"},
    {"other shape", "y x", &second, OTHER_SHAPE, "infer gives other outputs when asked again"},
    {"fewer outputs", "y x", &second, FEWER_OUTPUTS, "infer gives other outputs when asked again"},
    {"changes input", "y x", &second, CHANGES_INPUT, "it changes its input 0"},
    {"needs the first", "y x", &second, NEEDS_FIRST, "output 1 differs when it alone is wanted"},
    {"counts calls", "y x", &second, COUNTS_CALLS, "output 0 differs"},
    {"shared room", "y x", &second, SHARED_ROOM, "when pieces run at once on several threads"},
    {"team decides", "y x", &second_team, TEAM_DECIDES, "when a team of 3 works on it"},
    {"in place", "y x", &second_in_place, IN_PLACE, "when it takes the place of input 0"},
    {"updates", "y x", &second_updates, UPDATES, "overwrites the input that update_of names"},
    {"fails", "y x", &second, FAILS, "does not have FTH_OP_MAY_FAIL: no such luck"},
    {"fails silently", "y x", &second, FAILS_SILENTLY, "failed without a message"},
    {"fails outside", "y x", &second_may_fail, FAILS_OUTSIDE, "it writes outside the tile"},
    {"endless flops", "y x", &second, ENDLESS_FLOPS, "flops gives nan"},
    {"negative flops", "y x", &second, NEGATIVE_FLOPS, "flops gives -1"},
    {"wrong slope", "y x", &second, WRONG_SLOPE, "its vjp gives element"},
    {"wrong bar", "y x", &second, WRONG_BAR, "a cotangent f32 [x=37]"},
    {"no bar", "y x", &second, NO_BAR, "its vjp fails: not today"},
    {"other relation", "y x", &second, OTHER_RELATION, "relation says something else of axis 'x'"},
    {"other divisor", "y x", &second, OTHER_DIVISOR, "relation says something else of axis 'x'"},
    {"changes its attributes", "y x", &second, CHANGES_ATTR, "it changes its attributes"},
    {"no start", "y x", &total, NO_START, "held other garbage before"},
    {"starts with data", "y x", &total, START_WITH_DATA, "when cut, "},
    {"small state", "y x", &total, SMALL_STATE,
     "it writes outside the tile of the state of output 0"},
    {"wrong state", "y x", &total, WRONG_STATE, "output 1 differs"},
    {"coarse blocks", "y x", &total, COARSE_BLOCKS, "when cut, axis 'x' at"},
    {"mean of a piece", "y x", &total, MEAN_OF_PIECE, "output 0 differs when cut, axis 'x' at"},
    {"other state", "y x", &total, OTHER_STATE, "state says something else of output"},
    {"other grid", "y x", &total, OTHER_GRID, "grid says something else of axis 'x'"},
    {"joins twice", "y x", &total, JOINS_TWICE, "when parts of 8 elements of axis 'x' are joined"},
    {"joins off the grid", "y x", &total, OFF_THE_GRID,
     "joins parts of 12 elements of axis 'x', which is cut every 8"},
    {"no finish", "y x", &total, NO_FINISH, "are joined"},
    {"forgets", "y x", &running, FORGETS, "when cut, axis 'x' at"},
};
const int lie_count = (int)(sizeof lie_list / sizeof *lie_list);

fth_val lie_make(fth_graph *g, const lie_row *row)
{
    const int attr[2] = {row->lie, 0};
    const fth_source none = {.kind = "nothing",
                             .dtype = FTH_F32,
                             .n_axes = 2,
                             .size = {fth_axis_size(g, "y"), fth_axis_size(g, "x")}};
    const fth_val v = fth_input(g, "v", FTH_F32, row->axes, none);
    calls = 0;
    return fth_custom(g, row->op, 1, &v, attr, sizeof attr);
}
