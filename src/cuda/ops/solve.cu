/* solve.cu - triangular systems of every layout as the one that triangle.h solves.
 *
 * An upper triangle is a lower one whose rows and columns are counted from the last on, and so is
 * the adjoint of a lower one; steps of either sign say all of it, and nothing is turned in memory.
 */
#include "cuda/copy/move.cuh"
#include "cuda/matrix/triangle.h"

extern "C" {
#include "ops/solve.h"
}

/* From this many rows on, a call of cuBLASLt per matrix pays; as HALVES in cholesky.cu. */
static constexpr int64_t LARGE = 512;

/* Everything that does not depend on tiles but for their steps. */
static fth__triangle triangle_of(const fth_node *node, const fth__solve_shape *s, const fth_tile *a,
                                 const fth_tile *b, const fth_tile *out)
{
    const int64_t size = fth_dtype_size(node->in[0].dtype), last = s->size - 1;
    const bool back = s->lower == s->adjoint;
    const int64_t a_row = a->stride[s->row], a_col = a->stride[s->col], sign = back ? -1 : 1;
    fth__triangle t = {};
    t.dtype = node->in[0].dtype;
    t.n = s->size;
    t.m = s->n < 0 ? 1 : out->extent[s->n];
    t.whole_m = s->n < 0 ? 1 : node->out[0].size[s->n];
    t.a_i = sign * (s->adjoint ? a_col : a_row);
    t.a_k = sign * (s->adjoint ? a_row : a_col);
    t.b_i = sign * b->stride[s->x];
    t.x_i = sign * out->stride[s->x];
    t.b_j = s->n < 0 ? 0 : b->stride[s->n];
    t.x_j = s->n < 0 ? 0 : out->stride[s->n];
    t.a = (const char *)a->data + (back ? last * (a_row + a_col) * size : 0);
    t.b = (const char *)b->data + (back ? last * b->stride[s->x] * size : 0);
    t.x = (char *)out->data + (back ? last * out->stride[s->x] * size : 0);
    t.conj = s->adjoint && fth_dtype_is_complex(t.dtype);
    t.rows = s->size;
    t.first = back ? last : 0;
    t.step = sign;
    t.products = s->size > LARGE;
    t.by_blocks = t.products && !fth_dtype_is_complex(t.dtype) && t.whole_m >= FTH__LEAST_SIDE;
    return t;
}

/* The matrices are numbered over the axes that a and b share, in the order of b. */
static bool is_batch(const fth_node *node, const fth__solve_shape *s, int i)
{
    return i != s->x && i != s->n && fth_desc_find(&node->in[0], node->in[1].axis[i]) >= 0;
}

static fth__triangle_space space_of(const fth_call *call, const fth__solve_shape *s)
{
    const fth_node *node = call->node;
    const fth_desc *b = &node->in[1];
    int64_t step[FTH_MAX_AXES], numbers = 1;
    for (int i = b->n_axes - 1; i >= 0; i--) {
        step[i] = is_batch(node, s, i) ? numbers : 0;
        if (is_batch(node, s, i)) numbers *= b->size[i];
    }
    fth__triangle_space o;
    for (int i = 0; i < b->n_axes; i++) {
        if (i == s->x || i == s->n) continue;
        const int in_a = fth_desc_find(&node->in[0], b->axis[i]);
        o.add(call->out[0].extent[i], in_a < 0 ? 0 : call->in[0].stride[in_a],
              call->in[1].stride[i], call->out[0].stride[i], step[i]);
        o.base[FTH__TRIANGLE_NUMBER] += call->in[1].origin[i] * step[i];
    }
    return o;
}

/* Halves are solved where the result will be. */
static void copy(const fth_call *call)
{
    const int64_t size = fth_dtype_size(call->node->out[0].dtype);
    fth__move m = {};
    m.n = call->node->out[0].n_axes;
    m.size = size;
    m.dst = (char *)call->out[0].data;
    m.src = (const char *)call->in[1].data;
    for (int i = 0; i < m.n; i++) {
        m.extent[i] = call->out[0].extent[i];
        m.dst_step[i] = call->out[0].stride[i] * size;
        m.src_step[i] = call->in[1].stride[i] * size;
    }
    fth__cuda_move(call, &m);
}

static fth_status run(const fth_call *call)
{
    const fth_node *node = call->node;
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    fth__triangle t = triangle_of(node, &s, &call->in[0], &call->in[1], &call->out[0]);
    fth__triangle_space w = space_of(call, &s);
    t.fault = call->fault;
    t.blocks = (char *)call->scratch;
    if (t.n == 0 || t.m == 0 || w.count() == 0) return FTH_OK;
    if (!fth__triangle_is_leaf(&t)) {
        if (call->in[1].data != call->out[0].data) copy(call);
        t.b = t.x, t.b_i = t.x_i, t.b_j = t.x_j;
        for (int i = 0; i < w.n; i++) w.step[i][FTH__TRIANGLE_B] = w.step[i][FTH__TRIANGLE_X];
    }
    return fth__triangle_solve(call, &t, &w);
}

static void dense(const fth_desc *d, fth_tile *t)
{
    int64_t step = 1;
    *t = {};
    for (int i = d->n_axes - 1; i >= 0; i--) {
        t->extent[i] = d->size[i];
        t->stride[i] = step;
        step *= d->size[i];
    }
}

/* As it would lie if nothing was cut. */
static fth__triangle whole(const fth_node *node)
{
    fth_tile a, b, out;
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    dense(&node->in[0], &a);
    dense(&node->in[1], &b);
    dense(&node->out[0], &out);
    return triangle_of(node, &s, &a, &b, &out);
}

static uint64_t scratch(const fth_call *call)
{
    const fth__triangle t = whole(call->node);
    return fth__triangle_bytes(&t);
}

static fth_status prepare(const fth_node *node, fth_device *device, int64_t, fth_err *)
{
    const fth__triangle t = whole(node);
    if (t.n > 0 && t.m > 0) fth__triangle_prepare(device, &t);
    return FTH_OK;
}

static fth_status explain(const fth_node *node, const fth_fault *fault, fth_err *err)
{
    fth__solve_shape s;
    fth__solve_shape_get(node, &s);
    int64_t at[FTH_MAX_AXES] = {}, number = (int64_t)fault->where / s.size;
    for (int i = node->in[1].n_axes - 1; i >= 0; i--)
        if (is_batch(node, &s, i)) {
            at[i] = number % node->in[1].size[i];
            number /= node->in[1].size[i];
        }
    return fth__solve_fail(node, at, (int64_t)fault->where % s.size, err);
}

FTH_CUDA_KERNEL(solve) = {
    .op = "solve", .scratch = scratch, .run = run, .prepare = prepare, .explain = explain};
