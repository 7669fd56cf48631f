/* fft.c - Fourier transforms of tiles, one axis after the other.
 *
 * Rows are transformed by cpu/fft, as many at a time as a vector has lanes. Where the last of
 * several axes lies without gaps, images are transformed one by one, so that what the rows leave is
 * still in the cache for the columns; a third axis follows when all images of a volume are done.
 * Where the output cannot be cut into pieces for all workers, one volume or image is shared by
 * them.
 */
#include "ops/fft.h"

#include "base/assert.h"
#include "base/checked.h"
#include "cpu/fft/sweep.h"
#include "ops/loop.h"

static int64_t round64(int64_t bytes)
{
    return (bytes + 63) & ~(int64_t)63;
}

static const fth__fft_attr *attr_of(const fth_node *node)
{
    return node->attr;
}

static int workers(const fth_call *call)
{
    return call->threads > 1 ? call->threads : 1;
}

static fth_dtype real_of(const fth_node *node)
{
    return fth_dtype_real_of(node->out[0].dtype);
}

/* Kinds of the transforms along the axes: of several, only the last is real. */
static fth_fft_kind kind_of(const fth__fft_attr *attr, int i)
{
    const fth_fft_kind kind = (fth_fft_kind)attr->kind;
    if (i == attr->n - 1) return kind;
    if (kind == FTH_FFT_REAL) return FTH_FFT_FORWARD;
    return kind == FTH_FFT_REAL_INVERSE ? FTH_FFT_INVERSE : kind;
}

/* ---- scratch: passes, tables, room of each worker, half spectra ---- */

/* Half spectra of an inverse over several axes, those of one transform at a time: the real result
 * has no room for them. */
static int64_t half_bytes(const fth_node *node, const fth__fft_axis *axis)
{
    const fth__fft_attr *attr = attr_of(node);
    if (attr->n == 1 || attr->kind != FTH_FFT_REAL_INVERSE) return 0;
    int64_t n = fth_dtype_size(node->in[0].dtype);
    for (int i = 0; i < attr->n; i++) n *= axis[i].in;
    return round64(n);
}

/* Rows along axis i, at most. */
static int64_t rows_of(const fth_call *call, const fth__fft_axis *axis, int i)
{
    int64_t rows = 1;
    for (int d = 0; d < call->node->in[0].n_axes; d++)
        if (d != axis[i].dim) rows *= fth__max_i64(call->in[0].extent[d], call->out[0].extent[d]);
    return rows;
}

static int64_t pass_bytes(const fth_call *call, const fth__fft_axis *axis, int i)
{
    const fth_node *node = call->node;
    const fth_fft_kind kind = kind_of(attr_of(node), i);
    const int64_t size = fth_dtype_size(real_of(node)), n = axis[i].points,
                  rows = rows_of(call, axis, i), threads = workers(call);
    return round64(threads * (int64_t)sizeof(fth__fft_transform)) +
           round64((int64_t)fth__fft_transform_bytes(kind, n, size, rows)) +
           (threads - 1) * round64((int64_t)fth__fft_room_bytes(kind, n, size, rows));
}

static uint64_t scratch(const fth_call *call)
{
    const fth_node *node = call->node;
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_axes(node, axis);
    int64_t bytes = half_bytes(node, axis);
    for (int i = 0; i < attr_of(node)->n; i++) bytes += pass_bytes(call, axis, i);
    return (uint64_t)bytes;
}

/* Bytes of both sides that no cache holds as a rule. */
enum { FAR = 16 << 20 };

static int64_t tile_bytes(const fth_node *node, const fth_tile *in, const fth_tile *out)
{
    int64_t from = fth_dtype_size(node->in[0].dtype), to = fth_dtype_size(node->out[0].dtype);
    for (int d = 0; d < node->in[0].n_axes; d++) {
        from *= in->extent[d];
        to *= out->extent[d];
    }
    return from + to;
}

static void make_pass(fth__fft_rows_pass *p, const fth_call *call, const fth__fft_axis *axis, int i,
                      double divide, fth__asking *ask, char *memory)
{
    const fth_node *node = call->node;
    const fth_fft_kind kind = kind_of(attr_of(node), i);
    const int64_t r = fth_dtype_size(real_of(node)), n = axis[i].points,
                  rows = rows_of(call, axis, i);
    *p = (fth__fft_rows_pass){.points = n,
                              .n_out = axis[i].out,
                              .in_size = kind == FTH_FFT_REAL ? r : 2 * r,
                              .out_size = kind == FTH_FFT_REAL_INVERSE ? r : 2 * r,
                              .transform = (fth__fft_transform *)(void *)memory};
    if (n == 0) return;
    memory += round64(workers(call) * (int64_t)sizeof(fth__fft_transform));
    fth__fft_transform_make(&p->transform[0], kind, n, r, rows, 1.0 / divide,
                            r == 8 ? FTH_ISA_BEST(fth__fft_f64) : FTH_ISA_BEST(fth__fft_f32), ask,
                            memory);
    memory += round64((int64_t)fth__fft_transform_bytes(kind, n, r, rows));
    p->transform[0].far = tile_bytes(node, &call->in[0], &call->out[0]) > FAR;
    for (int w = 1; w < workers(call); w++) {
        p->transform[w] = p->transform[0];
        p->transform[w].ask = NULL;
        fth__fft_transform_move(&p->transform[w], memory);
        memory += round64((int64_t)fth__fft_room_bytes(kind, n, r, rows));
    }
}

/* ---- the operation ---- */

typedef struct job {
    const fth_call *call;
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_rows_pass pass[FTH__FFT_AXES];
    int n;
    bool back;           /* a real inverse: the last axis comes last */
    bool small;          /* a transform takes no time to speak of, and nobody shares it */
    bool rows;           /* long ones, which say themselves how far they are */
    double numbers;      /* of a transform */
    fth__asking *ask;    /* in numbers, along each axis, */
    fth__asking *inside; /* and inside of what is counted already */
} job;

/* What a pass reads or writes: numbers of a tile, or of a part of it. */
typedef struct array {
    char *data;
    const int64_t *stride;
} array;

static double total(const job *j)
{
    const fth__fft_attr *attr = attr_of(j->call->node);
    double n = 1.0;
    for (int i = 0; i < j->n; i++) n *= (double)j->axis[i].points;
    return attr->kind == FTH_FFT_FORWARD || attr->kind == FTH_FFT_REAL || n == 0.0 ? 1.0 : n;
}

/* What is divided by is the whole number of points, in the pass that comes last. */
static void make_passes(job *j)
{
    char *memory = j->call->scratch;
    const double n = total(j);
    for (int i = 0; i < j->n; i++) {
        make_pass(&j->pass[i], j->call, j->axis, i, i == (j->back ? j->n - 1 : 0) ? n : 1.0,
                  j->inside, memory);
        memory += pass_bytes(j->call, j->axis, i);
    }
}

/* Rows along axis i, over the axes of `over` (a set of bits): their extents are those of what is
 * written, or of what is read where the two differ because a later pass is real. */
static fth__fft_sweep sweep_of(const job *j, int i, array from, array to, uint32_t over)
{
    const int dim = j->axis[i].dim;
    fth__fft_sweep s = {.pass = &j->pass[i],
                        .from = from.data,
                        .to = to.data,
                        .s_in = from.stride[dim],
                        .s_out = to.stride[dim]};
    const fth_tile *extents = j->back && i < j->n - 1 ? &j->call->in[0] : &j->call->out[0];
    for (int d = 0; d < j->call->node->in[0].n_axes; d++)
        if (d != dim && (over >> d & 1))
            fth__fft_sweep_add(&s, extents->extent[d], from.stride[d], to.stride[d]);
    return s;
}

static uint32_t bit_of(const job *j, int i)
{
    return 1u << j->axis[i].dim;
}

static fth_team *team_of(const job *j)
{
    return j->small || j->rows ? NULL : j->call->team;
}

/* What follows runs through so many numbers. */
static void announce(const job *j, double numbers)
{
    if (!j->small && !j->rows) fth__asking_loop(j->ask, numbers);
}

static void run_sweep(const job *j, const fth__fft_sweep *s, double numbers)
{
    announce(j, numbers);
    fth__fft_sweep_team(s, team_of(j), workers(j->call) == 1);
}

/* ---- images: the last two axes, one image after the other ---- */

typedef struct images {
    const job *j;
    array from, mid, to; /* the rows, or the columns of a real inverse, are written to `mid` */
    int64_t step[3];     /* bytes from image to image */
} images;

static array moved(array a, int64_t bytes)
{
    return (array){a.data + bytes, a.stride};
}

static void run_image(void *arg, int64_t k, int worker)
{
    const images *m = arg;
    const job *j = m->j;
    const int x = j->n - 1, y = j->n - 2, first = j->back ? y : x, second = j->back ? x : y;
    const uint32_t both = bit_of(j, x) | bit_of(j, y);
    const array from = moved(m->from, k * m->step[0]), mid = moved(m->mid, k * m->step[1]),
                to = moved(m->to, k * m->step[2]);
    const fth__fft_sweep a = sweep_of(j, first, from, mid, both),
                         b = sweep_of(j, second, mid, to, both);
    fth__fft_sweep_run(&a, worker);
    fth__fft_sweep_run(&b, worker);
}

/* One image, by the whole team. */
static void share_image(const images *m)
{
    const job *j = m->j;
    const int x = j->n - 1, y = j->n - 2, first = j->back ? y : x, second = j->back ? x : y;
    const uint32_t both = bit_of(j, x) | bit_of(j, y);
    const fth__fft_sweep a = sweep_of(j, first, m->from, m->mid, both),
                         b = sweep_of(j, second, m->mid, m->to, both);
    run_sweep(j, &a, j->numbers);
    run_sweep(j, &b, j->numbers);
}

/* Bytes between neighbours along axis i of the transform. */
static int64_t step_of(const job *j, int i, const int64_t *stride, fth_dtype t)
{
    return stride[j->axis[i].dim] * fth_dtype_size(t);
}

/* One transform over two or three axes, the last of which has no gaps: from `in`, by way of `half`
 * where it is a real inverse, to `out`. */
static void run_one(const job *j, array in, array half, array out)
{
    const fth_node *node = j->call->node;
    const fth_dtype from = node->in[0].dtype, to = node->out[0].dtype;
    images m = {.j = j, .from = in, .mid = j->back ? half : out, .to = out};
    if (j->n == 2) {
        share_image(&m);
        return;
    }
    const uint32_t all = bit_of(j, 0) | bit_of(j, 1) | bit_of(j, 2);
    if (j->back) {
        const fth__fft_sweep z = sweep_of(j, 0, in, half, all);
        run_sweep(j, &z, j->numbers);
        m.from = half;
        m.step[0] = m.step[1] = step_of(j, 0, half.stride, from);
    } else {
        m.step[0] = step_of(j, 0, in.stride, from);
        m.step[1] = step_of(j, 0, out.stride, to);
    }
    m.step[2] = step_of(j, 0, out.stride, to);
    announce(j, 2.0 * j->numbers);
    fth_team_run(team_of(j), j->axis[0].in, run_image, &m);
    if (j->back) return;
    const fth__fft_sweep z = sweep_of(j, 0, out, out, all);
    run_sweep(j, &z, j->numbers);
}

static bool is_transformed(const job *j, int dim)
{
    for (int i = 0; i < j->n; i++)
        if (j->axis[i].dim == dim) return true;
    return false;
}

static void run_each(const job *j, char *half)
{
    const fth_call *call = j->call;
    const fth_node *node = call->node;
    const fth_tile *in = &call->in[0], *out = &call->out[0];
    union {
        const void *in;
        char *out;
    } cast = {in->data}; /* arrays are one type for both sides; this one is only read */
    int64_t dense[FTH_MAX_AXES] = {0}, step = 1; /* of half spectra */
    for (int i = j->n - 1; i >= 0; step *= j->axis[i--].in) dense[j->axis[i].dim] = step;
    fth__loop l = {0};
    for (int d = 0; d < node->in[0].n_axes; d++)
        if (!is_transformed(j, d))
            fth__loop_add(&l, out->extent[d], in->stride[d], out->stride[d], 0, 0);
    for (bool go = fth__loop_start(&l); go && !j->ask->off; go = fth__loop_next(&l)) {
        if (j->small ? !fth__asking_on(j->ask, j->n * j->numbers) : fth_team_cancelled(call->team))
            return;
        run_one(
            j, (array){cast.out + l.at[0] * fth_dtype_size(node->in[0].dtype), in->stride},
            (array){half, dense},
            (array){(char *)out->data + l.at[1] * fth_dtype_size(node->out[0].dtype), out->stride});
    }
}

/* Axis after axis over everything, in place from the second on. */
static void run_axes(const job *j)
{
    const fth_tile *in = &j->call->in[0], *out = &j->call->out[0];
    union {
        const void *in;
        char *out;
    } cast = {in->data};
    const array to = {out->data, out->stride};
    array from = {cast.out, in->stride};
    const double all = j->ask->all / j->n;
    for (int i = j->n - 1; i >= 0; i--, from = to) {
        const fth__fft_sweep s = sweep_of(j, i, from, to, ~0u);
        run_sweep(j, &s, all);
    }
}

static fth_status run(const fth_call *call)
{
    const fth__fft_attr *attr = attr_of(call->node);
    fth__asking ask = fth__asking_elements(call, attr->n), inside = ask;
    job j = {.call = call,
             .n = attr->n,
             .back = attr->kind == FTH_FFT_REAL_INVERSE,
             .numbers = 1.0,
             .ask = &ask,
             .inside = &inside};
    fth__fft_axes(call->node, j.axis);
    for (int i = 0; i < j.n; i++) j.numbers *= (double)j.axis[i].points;
    j.small = workers(call) == 1 && j.numbers < FTH__FFT_ASK;
    j.rows = j.n == 1 && !j.small && (workers(call) == 1 || ask.all <= j.numbers);
    inside.all =
        j.rows ? fth__fft_numbers(kind_of(attr, 0), j.axis[0].points, ask.all / j.numbers) : 0.0;
    ask.often = ask.due = inside.often = inside.due = FTH__FFT_ASK;
    make_passes(&j);
    char *half = (char *)call->scratch;
    for (int i = 0; i < j.n; i++) half += pass_bytes(call, j.axis, i);
    const int x = j.axis[j.n - 1].dim;
    FTH_ASSERT(call->in[0].extent[x] == j.axis[j.n - 1].in); /* rows are never cut */
    if (j.n > 1 && (j.back || (call->in[0].stride[x] == 1 && call->out[0].stride[x] == 1)))
        run_each(&j, half);
    else
        run_axes(&j);
    return FTH_OK;
}

static bool supports(const fth_node *node)
{
    fth__fft_axis axis[FTH__FFT_AXES];
    fth__fft_axes(node, axis);
    for (int i = 0; i < attr_of(node)->n; i++)
        if (axis[i].points > INT32_MAX) return false;
    return true;
}

const fth_kernel fth__cpu_fft = {
    .op = "fft", .supports = supports, .scratch = scratch, .run = run, .flags = FTH_OP_TEAM};
