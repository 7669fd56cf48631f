/* test_fused.c - random programs: the interpreter against the reference, bit for bit, whole and
 * cut.
 *
 * seconds: 20 labels: gpu
 */
#include "cpu/vec.h"
#include "graph/graph.h"
#include "graph/program.h"
#include "ops/fused.h"
#include "ops/ops.h"
#include "run/team.h"
#include "testing/engine/op_harness.h"
#include "testing/full.h"

#include <math.h>

extern const fth_kernel fth__cpu_fused;

/* ---- making programs ------------------------------------------------------------------ */

typedef struct maker {
    fth_graph *g;
    fth__program p;
    fth_val in[FTH_MAX_IN];
    t_random r;
} maker;

static int64_t pick(maker *m, int64_t low, int64_t high)
{
    return t_random_i64(&m->r, low, high);
}

static void make_space(maker *m, int n_axes, const int64_t *size)
{
    char text[256] = "";
    for (int i = 0; i < n_axes; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %c=%lld", 'a' + i,
                 (long long)size[i]);
    m->g = t_graph(text);
    m->p.n_axes = n_axes;
    for (int i = 0; i < n_axes; i++) {
        m->p.axis[i] = i;
        m->p.size[i] = size[i];
    }
    m->p.tail_dim = -1;
}

/* An input with these axes of the space, "ca". */
static void add_input(maker *m, fth_dtype t, const char *axes)
{
    char list[32] = "", name[16];
    for (int i = 0; axes[i]; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%c", i ? " " : "", axes[i]);
    snprintf(name, sizeof name, "in%d", m->p.n_in);
    m->in[m->p.n_in] = t_noise(m->g, name, t, list, &m->r);
    m->p.reg_dtype[m->p.n_in++] = (uint8_t)t;
    m->p.n_reg++;
}

static void add_random_input(maker *m, fth_dtype t)
{
    char axes[FTH_MAX_AXES + 1] = "";
    int n = 0;
    const int keep = (int)pick(m, 0, 3); /* one in four is a scalar, most have every axis */
    for (int i = 0; i < m->p.n_axes; i++)
        if (keep > 1 || (keep == 1 && pick(m, 0, 1))) axes[n++] = (char)('a' + i);
    axes[n] = '\0';
    for (int i = n - 1; i > 0 && keep != 2; i--) {
        const int k = (int)pick(m, 0, i);
        const char c = axes[i];
        axes[i] = axes[k];
        axes[k] = c;
    }
    add_input(m, t, axes);
}

static void add_const(maker *m, fth_dtype t, double value)
{
    m->p.constant[m->p.n_const] = (fth_c128){value, fth_dtype_is_complex(t) ? 0.5 : 0.0};
    m->p.constant_i64[m->p.n_const++] = (int64_t)value;
    m->p.reg_dtype[m->p.n_reg++] = (uint8_t)t;
}

static int add_instr(maker *m, int op, fth_dtype from, fth_dtype to, int a, int b, int c)
{
    m->p.instr[m->p.n_instr++] = (fth__instr){(int16_t)op,
                                              (uint8_t)from,
                                              (uint8_t)to,
                                              (int16_t)m->p.n_reg,
                                              {(int16_t)a, (int16_t)b, (int16_t)c}};
    m->p.reg_dtype[m->p.n_reg] = (uint8_t)to;
    return m->p.n_reg++;
}

static int random_reg(maker *m, fth_dtype t)
{
    for (int tries = 0; tries < 60; tries++) {
        const int r = (int)pick(m, 0, m->p.n_reg - 1);
        if ((fth_dtype)m->p.reg_dtype[r] == t) return r;
    }
    return -1;
}

static void add_random_instr(maker *m)
{
    const int x = pick(m, 0, 2) ? m->p.n_reg - 1 : (int)pick(m, 0, m->p.n_reg - 1);
    const fth_dtype t = (fth_dtype)m->p.reg_dtype[x];
    if (pick(m, 0, 5) == 0) {
        const fth_dtype to = (fth_dtype)pick(m, 0, FTH_DTYPE_COUNT - 1);
        if (to != t && fth__cast_allowed(t, to) && !fth__cast_may_fail(t, to))
            add_instr(m, FTH__INSTR_CAST, t, to, x, -1, -1);
        return;
    }
    const fth_ew op = (fth_ew)pick(m, 0, FTH_EW_COUNT - 1);
    const fth_dtype to = fth__ew_dtype(op, t);
    const fth__ew_row *row = fth__ew_info(op);
    if (to == FTH_DTYPE_COUNT) return;
    int src[3] = {x, -1, -1};
    for (int k = 1; k < row->arity; k++)
        if ((src[k] = random_reg(m, t)) < 0) return;
    if (row->result == FTH__EW_PICK && (src[0] = random_reg(m, FTH_BOOL)) < 0) return;
    if (row->arity == 2 && pick(m, 0, 1)) {
        const int swap = src[0];
        src[0] = src[1];
        src[1] = swap;
    }
    add_instr(m, (int)op, t, to, src[0], src[1], src[2]);
}

/* ---- running them --------------------------------------------------------------------- */

static int64_t element_bytes(fth_dtype t)
{
    return fth_dtype_size(t);
}

static bool same_number(fth_dtype t, const char *a, const char *b)
{
    if (memcmp(a, b, (size_t)element_bytes(t)) == 0) return true;
    const double x = t_get(t, a, 0), y = t_get(t, b, 0), xi = t_get_im(t, a, 0),
                 yi = t_get_im(t, b, 0);
    return (x == y || (isnan(x) && isnan(y))) && (xi == yi || (isnan(xi) && isnan(yi))) &&
           (isnan(x) || isnan(xi));
}

static void dense_tile(fth_tile *t, const fth_desc *d, void *data)
{
    int64_t stride = 1;
    *t = (fth_tile){.data = data};
    for (int i = d->n_axes - 1; i >= 0; i--) {
        t->extent[i] = d->size[i];
        t->stride[i] = stride;
        stride *= d->size[i];
    }
}

static const char *listing(const fth__program *p)
{
    static char text[8192];
    int at = 0;
    for (int i = 0; i < p->n_instr; i++) {
        const fth__instr *in = &p->instr[i];
        at += snprintf(text + at, sizeof text - (size_t)at, "\n    r%d = %s %s r%d r%d r%d",
                       in->dst, in->op < 0 ? "cast" : fth__ew_info((fth_ew)in->op)->name,
                       fth_dtype_name((fth_dtype)in->from), in->src[0], in->src[1], in->src[2]);
    }
    snprintf(text + at, sizeof text - (size_t)at, "\n    out r%d, tail %d over %d", p->out_reg[0],
             p->tail_red, p->tail_dim);
    return text;
}

/* Whole and dense, by both; then the harness with its cuts. */
static void check_program(maker *m, bool cut)
{
    const fth_val v =
        fth_node_add_(m->g, FTH_HERE, &fth__op_fused, m->p.n_in, m->in, &m->p, sizeof m->p);
    MADE(v);
    const fth_node *node = fth__val_node(v);
    fth_err err = {0};
    fth_call call = {.node = node, .first = true, .last = true, .threads = 1, .err = &err};
    for (int i = 0; i < node->n_in; i++) dense_tile(&call.in[i], &node->in[i], t_data(m->in[i]));
    char *out[2][FTH_MAX_OUT];
    char *state = malloc((size_t)(fth_desc_count(&node->out[0]) * 64 + 64));
    dense_tile(&call.state[0], &node->out[0], state);
    const uint64_t bytes = fth__cpu_fused.scratch(&call);
    call.scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    for (int way = 0; way < 2; way++) {
        for (int k = 0; k < node->n_out; k++) {
            out[way][k] = malloc((size_t)(fth_desc_count(&node->out[k]) * 16 + 1));
            dense_tile(&call.out[k], &node->out[k], out[way][k]);
        }
        OKE(way ? fth__cpu_fused.run(&call) : node->op->run(&call), &err);
    }
    for (int k = 0; k < node->n_out; k++) {
        const fth_dtype t = node->out[k].dtype;
        const int64_t size = element_bytes(t);
        for (int64_t i = 0; i < fth_desc_count(&node->out[k]); i++)
            if (!same_number(t, out[0][k] + i * size, out[1][k] + i * size))
                FAIL("output %d element %lld: reference %.17g %.17g, interpreter %.17g %.17g%s", k,
                     (long long)i, t_get(t, out[0][k], i), t_get_im(t, out[0][k], i),
                     t_get(t, out[1][k], i), t_get_im(t, out[1][k], i), listing(&m->p));
        free(out[0][k]);
        free(out[1][k]);
    }
    free(call.scratch);
    free(state);
    if (cut) {
        void *whole = malloc((size_t)(t_count(v) * 16 + 1));
        t_eval(v, whole);
        free(whole);
    }
    t_graph_free(m->g);
}

static void random_program(uint64_t seed, int64_t largest, int instrs)
{
    maker m = {.r = t_random_make(seed)};
    int64_t size[4];
    const int n = (int)pick(&m, 0, 4);
    for (int i = 0; i < n; i++) size[i] = pick(&m, 0, 7) == 0 ? 1 : pick(&m, 1, largest);
    make_space(&m, n, size);
    const fth_dtype main_type = (fth_dtype)pick(&m, 0, FTH_DTYPE_COUNT - 1);
    const int inputs = (int)pick(&m, 1, 4);
    for (int i = 0; i < inputs; i++)
        add_random_input(&m,
                         pick(&m, 0, 2) ? main_type : (fth_dtype)pick(&m, 0, FTH_DTYPE_COUNT - 1));
    add_const(&m, main_type, 2.0);
    if (pick(&m, 0, 1)) add_const(&m, FTH_BOOL, 1.0);
    for (int tries = 0; tries < 4 * instrs && m.p.n_instr < instrs; tries++) add_random_instr(&m);
    m.p.out_reg[m.p.n_out++] = (int16_t)(m.p.n_reg - 1);
    const fth_dtype last = (fth_dtype)m.p.reg_dtype[m.p.n_reg - 1];
    const fth_red red = (fth_red)pick(&m, 0, FTH_RED_ALL);
    if (n > 0 && pick(&m, 0, 1) && fth__reduce_dtype(red, last) != FTH_DTYPE_COUNT) {
        m.p.tail_dim = (int32_t)pick(&m, 0, n - 1);
        m.p.tail_red = (int32_t)red;
    } else {
        while (m.p.n_out < 3 && pick(&m, 0, 1))
            m.p.out_reg[m.p.n_out++] = (int16_t)pick(&m, 0, m.p.n_reg - 1);
    }
    check_program(&m, true);
}

static uint64_t rounds(uint64_t n)
{
    return n / (uint64_t)(t_slowed() ? 5 : t_one_in(1, 3));
}

TEST(random_programs_on_small_spaces)
{
    t_cuts(4);
    for (uint64_t seed = 1; seed <= rounds(1500); seed++) random_program(seed, 9, 6);
}

TEST(random_programs_on_larger_spaces)
{
    t_cuts(3);
    for (uint64_t seed = 1; seed <= rounds(60); seed++) random_program(5000 + seed, 40, 10);
}

TEST(long_programs)
{
    t_cuts(1);
    for (uint64_t seed = 1; seed <= rounds(60); seed++)
        random_program(9000 + seed, 12, FTH_PROGRAM_INSTRS);
}

/* As many operands as a program can have, each of a kind. */
TEST(most_inputs_and_outputs)
{
    t_cuts(2);
    maker m = {.r = t_random_make(16)};
    make_space(&m, 2, (int64_t[]){5, 12});
    for (int i = 0; i < FTH_PROGRAM_INPUTS; i++) add_input(&m, FTH_F32, i % 3 == 2 ? "b" : "ab");
    int sum = 0;
    for (int i = 1; i < FTH_PROGRAM_INPUTS; i++) {
        sum = add_instr(&m, FTH_EW_ADD, FTH_F32, FTH_F32, sum, i, -1);
        if (i >= FTH_PROGRAM_INPUTS - FTH_PROGRAM_OUTS) m.p.out_reg[m.p.n_out++] = (int16_t)sum;
    }
    EQ_I64(m.p.n_out, FTH_PROGRAM_OUTS);
    check_program(&m, true);
}

/* The sum of operands with these axes of the space: by rows and by columns, repeated and not. */
static void try_sum(int n_axes, const int64_t *size, const char *const axes[3])
{
    maker m = {.r = t_random_make(7)};
    make_space(&m, n_axes, size);
    for (int i = 0; i < 3; i++) add_input(&m, FTH_F32, axes[i]);
    const int two = add_instr(&m, FTH_EW_ADD, FTH_F32, FTH_F32, 0, 1, -1);
    m.p.out_reg[m.p.n_out++] = (int16_t)add_instr(&m, FTH_EW_MUL, FTH_F32, FTH_F32, two, 2, -1);
    check_program(&m, true);
}

TEST(turned_and_repeated_operands)
{
    t_cuts(2);
    try_sum(2, (int64_t[]){48, 40}, (const char *const[]){"ab", "ba", "b"});
    try_sum(2, (int64_t[]){33, 64}, (const char *const[]){"ab", "ba", "a"});
    try_sum(2, (int64_t[]){37, 41}, (const char *const[]){"ba", "ab", ""});
    try_sum(3, (int64_t[]){3, 24, 60}, (const char *const[]){"abc", "acb", "bc"});
    try_sum(3, (int64_t[]){16, 5, 32}, (const char *const[]){"bc", "ab", "cba"});
    try_sum(4, (int64_t[]){2, 5, 9, 16}, (const char *const[]){"bcd", "acd", "abdc"});
}

/* ---- tails ---------------------------------------------------------------------------- */

/* Sizes around every edge of the grid: one by one, blocks of 2 to 1024, superblocks. */
static void try_tail(fth_dtype t, fth_red red, int64_t n, int64_t results, bool innermost,
                     bool fill)
{
    maker m = {.r = t_random_make((uint64_t)n)};
    const int64_t size[2] = {innermost ? results : n, innermost ? n : results};
    make_space(&m, 2, size);
    add_input(&m, t, fill ? "" : "ab");
    m.p.out_reg[m.p.n_out++] = 0;
    m.p.tail_dim = innermost ? 1 : 0;
    m.p.tail_red = (int32_t)red;
    check_program(&m, true);
}

TEST(tails_around_the_edges_of_the_grid)
{
    static const int64_t sizes[] = {0,   1,   2,   3,    7,    63,   64,   65,   100,
                                    127, 128, 129, 1000, 2047, 2048, 2049, 5000, 70000};
    t_cuts(3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < 4; way++) {
            if (t_one_in(1, 4) > 1 && way != (int)(i % 4)) continue;
            const int64_t results = way < 2 ? 3 : sizes[i] > 3000 ? 1 : 37;
            try_tail(FTH_F32, FTH_RED_SUM, sizes[i], results, way & 1, false);
            try_tail(FTH_F64, FTH_RED_SUM, sizes[i], results, way & 1, false);
            try_tail(FTH_C64, FTH_RED_PROD, sizes[i], results, way & 1, false);
            try_tail(FTH_BOOL, FTH_RED_SUM, sizes[i], results, way & 1, false);
            try_tail(FTH_F16, FTH_RED_SUM, sizes[i], results, way & 1, false);
            if (sizes[i] > 0) try_tail(FTH_F32, FTH_RED_MAX, sizes[i], results, way & 1, false);
            if (sizes[i] > 0) try_tail(FTH_I32, FTH_RED_MIN, sizes[i], results, way & 1, false);
            try_tail(FTH_F32, FTH_RED_SUM, sizes[i], results, way & 1, true);
        }
}

TEST(wide_results_across)
{
    t_cuts(2);
    try_tail(FTH_F32, FTH_RED_SUM, 300, 5000, false, false);
    try_tail(FTH_F32, FTH_RED_SUM, 3, 9000, true, false);
    try_tail(FTH_F64, FTH_RED_SUM, 70, 2500, false, false);
}

/* Bool sums once came back as the bits of a float: 1 became 1065353216. */
TEST(bool_sum_counts)
{
    maker m = {.r = t_random_make(1)};
    const int64_t size[1] = {1000};
    make_space(&m, 1, size);
    add_input(&m, FTH_BOOL, "a");
    m.p.out_reg[m.p.n_out++] = 0;
    m.p.tail_dim = 0;
    m.p.tail_red = FTH_RED_SUM;
    const fth_val v = fth_node_add_(m.g, FTH_HERE, &fth__op_fused, 1, m.in, &m.p, sizeof m.p);
    SHAPE(v, "i64 []");
    int64_t got, want = 0;
    t_eval(v, &got);
    for (int64_t i = 0; i < 1000; i++) want += ((const uint8_t *)t_data(m.in[0]))[i];
    EQ_I64(got, want);
    t_graph_free(m.g);
}

/* ---- workers -------------------------------------------------------------------------- */

static void run_tail(const fth_node *node, const fth_val *in, fth_team *team, int threads,
                     int64_t cut, void *out)
{
    fth_err err = {0};
    fth_call call = {.node = node, .threads = threads, .team = team, .err = &err};
    const int64_t n = node->in[0].size[0];
    char state[64 * 32];
    dense_tile(&call.out[0], &node->out[0], out);
    dense_tile(&call.state[0], &node->out[0], state);
    for (int piece = 0; piece < 2; piece++) {
        dense_tile(&call.in[0], &node->in[0], t_data(in[0]));
        const int64_t from = piece ? cut : 0, to = piece ? n : cut;
        call.in[0].data = (char *)call.in[0].data +
                          from * call.in[0].stride[0] * fth_dtype_size(node->in[0].dtype);
        call.in[0].origin[0] = from;
        call.in[0].extent[0] = to - from;
        call.first = piece == 0;
        call.last = piece == 1;
        const uint64_t bytes = fth__cpu_fused.scratch(&call);
        char *scratch = aligned_alloc(64, (bytes + 127) / 64 * 64);
        memset(scratch, 0x5a, (bytes + 127) / 64 * 64);
        call.scratch = scratch;
        OKE(fth__cpu_fused.run(&call), &err);
        EQ_I64(scratch[bytes], 0x5a);
        free(scratch);
    }
}

static void try_team(fth_dtype t, fth_red red, int64_t n, int64_t results)
{
    fth_team *team;
    maker m = {.r = t_random_make((uint64_t)n)};
    const int64_t size[2] = {n, results};
    make_space(&m, results > 1 ? 2 : 1, size);
    OK(fth_team_create(&team, m.g->mem, 3, NULL));
    add_input(&m, t, results > 1 ? "ab" : "a");
    m.p.out_reg[m.p.n_out++] = 0;
    m.p.tail_dim = 0;
    m.p.tail_red = (int32_t)red;
    const fth_val v = fth_node_add_(m.g, FTH_HERE, &fth__op_fused, 1, m.in, &m.p, sizeof m.p);
    const fth_node *node = fth__val_node(v);
    const int64_t grid = node->op->grid(node, 0, 0);
    char one[32 * 16] = {0}, three[32 * 16] = {0}, piecewise[32 * 16] = {0};
    run_tail(node, m.in, NULL, 1, 0, one);
    run_tail(node, m.in, team, 3, 0, three);
    run_tail(node, m.in, team, 3, n / 3 / grid * grid, piecewise);
    SAME_BYTES(one, three, sizeof one);
    SAME_BYTES(one, piecewise, sizeof one);
    fth_team_destroy(team);
    t_graph_free(m.g);
}

TEST(workers_change_no_bit)
{
    try_team(FTH_F32, FTH_RED_SUM, 1000003, 1);
    try_team(FTH_F32, FTH_RED_SUM, 200001, 7);
    try_team(FTH_F64, FTH_RED_PROD, 5000, 1);
    try_team(FTH_C64, FTH_RED_SUM, 300000, 1);
    try_team(FTH_BF16, FTH_RED_SUM, 100000, 30);
    try_team(FTH_I32, FTH_RED_SUM, 777777, 1);
    try_team(FTH_BOOL, FTH_RED_SUM, 50000, 5);
    try_team(FTH_F32, FTH_RED_MIN, 65537, 3);
}

/* ---- pairs ---------------------------------------------------------------------------- */

/* Every loop that joins two instructions, in every form, against the instructions one by one; once
 * with a huge number among them, which sines take another way. */
TEST(joined_instructions_round_twice)
{
    const fth__pair_list *list = fth__vec()->pairs;
    t_random r = t_random_make(11);
    enum { N = 77 };
    _Alignas(64) char in[3][N * 8], out[N * 8];
    for (int i = 0; i < list->n; i++) {
        const fth__vec_pair *row = &list->pair[i];
        const fth_dtype t = (fth_dtype)row->dtype;
        const int64_t size = fth_dtype_size(t);
        const bool two_first = fth__ew_info((fth_ew)row->first)->arity == 2,
                   two_second = fth__ew_info((fth_ew)row->second)->arity == 2;
        for (int form = 0; form < 2 * FTH__FORMS; form++) {
            fth__vec_fn *run = row->run[form % FTH__FORMS];
            if (!run) continue;
            for (int k = 0; k < 3; k++)
                for (int e = 0; e < N; e++) t_put(t, in[k], e, t_random_normal(&r), 0.0);
            if (form >= FTH__FORMS) t_put(t, in[0], 50, -3.3e33, 0.0);
            const void *src[3] = {in[0], in[1], in[2]};
            run(N, out, src);
            for (int e = 0; e < N; e++) {
                fth__cell a = {0}, b = {0}, c = {0}, first, want;
                fth__cell_load(t, in[0] + e * size, &a);
                fth__cell_load(t, in[1] + (form & 2 ? 0 : e) * size, &b);
                fth__cell_load(t, in[2] + (form & 1 ? 0 : e) * size, &c);
                fth__cell_map((fth_ew)row->first, t, &a, two_first ? &b : NULL, NULL, &first);
                fth__cell_map((fth_ew)row->second, t, row->swapped ? &c : &first,
                              !two_second    ? NULL
                              : row->swapped ? &first
                                             : &c,
                              NULL, &want);
                if (!same_number(t, (const char *)&want, out + e * size))
                    FAIL("%s then %s, form %d: %.17g, one by one %.17g",
                         fth__ew_info((fth_ew)row->first)->name,
                         fth__ew_info((fth_ew)row->second)->name, form, t_get(t, out, e),
                         t_get(t, &want, 0));
            }
        }
    }
}

/* ---- in place ------------------------------------------------------------------------- */

/* t = x*y goes to the first output while x, in whose memory it lies, is still needed for the
 * second. */
TEST(outputs_in_the_memory_of_operands)
{
    enum { N = 5000 };
    for (int aliased = 0; aliased < 2; aliased++) {
        maker m = {.r = t_random_make(7)};
        const int64_t size[1] = {N};
        make_space(&m, 1, size);
        add_input(&m, FTH_F32, "a");
        add_input(&m, FTH_F32, "a");
        const int t = add_instr(&m, FTH_EW_MUL, FTH_F32, FTH_F32, 0, 1, -1);
        const int u = add_instr(&m, FTH_EW_ADD, FTH_F32, FTH_F32, t, 0, -1);
        m.p.out_reg[m.p.n_out++] = (int16_t)t;
        m.p.out_reg[m.p.n_out++] = (int16_t)u;
        const fth_val v = fth_node_add_(m.g, FTH_HERE, &fth__op_fused, 2, m.in, &m.p, sizeof m.p);
        const fth_node *node = fth__val_node(v);
        float *x = t_data(m.in[0]), *y = t_data(m.in[1]), first[N], second[N], want[2][N];
        for (int i = 0; i < N; i++) want[0][i] = x[i] * y[i];
        for (int i = 0; i < N; i++) want[1][i] = want[0][i] + x[i];
        fth_err err = {0};
        fth_call call = {.node = node, .first = true, .last = true, .threads = 1, .err = &err};
        dense_tile(&call.in[0], &node->in[0], x);
        dense_tile(&call.in[1], &node->in[1], y);
        dense_tile(&call.out[0], &node->out[0], aliased ? x : first);
        dense_tile(&call.out[1], &node->out[1], aliased ? y : second);
        call.scratch = aligned_alloc(64, (fth__cpu_fused.scratch(&call) + 63) / 64 * 64);
        OKE(fth__cpu_fused.run(&call), &err);
        SAME_BYTES(call.out[0].data, want[0], sizeof first);
        SAME_BYTES(call.out[1].data, want[1], sizeof second);
        free(call.scratch);
        t_graph_free(m.g);
    }
}

TEST_MAIN()
