/* parts.cu - a value put together from parts along an axis: concat, and pad, whose outer parts are
 * one number.
 *
 * Long parts are copies of their own. Short ones (columns of a table) are written by one kernel in
 * the order of the result, because pieces of a line of memory that are written at different times
 * cost a whole line each.
 */
#include "cuda/copy/move.cuh"

#include <string.h>

enum {
    AXES = FTH_MAX_AXES,
    LONG_PART = 512,
    SMALL = 1 << 20,
    FEW = 16, /* one in so many may lie in short parts */
    THREADS = FTH__SPACE_THREADS,
    EACH = 8,
    TABLE = 256
};

/* What the kernel gets; steps are in bytes, counts in units. */
typedef struct seam {
    int32_t n_axes, n;
    uint32_t count;
    fth__div inner, joined; /* units behind the joined axis, units along it */
    fth__div extent[AXES];
    int64_t dst_step[AXES];
    uint32_t end[FTH__CUDA_PARTS];
    const char *src[FTH__CUDA_PARTS]; /* where the first element of the result would be */
    int64_t step[FTH__CUDA_PARTS][AXES];
} seam;

/* What differs from part to part lies in shared memory, because neighbouring threads look at
 * different parts: where they begin, their steps, and which one a short axis has at each place. */
template <class T, bool INNER>
static __global__ void put_parts(const seam __grid_constant__ s, char *dst, T element)
{
    __shared__ uint32_t end[FTH__CUDA_PARTS];
    __shared__ const char *source[FTH__CUDA_PARTS];
    __shared__ int64_t step[FTH__CUDA_PARTS][AXES];
    __shared__ uint8_t part[TABLE];
    const bool table = s.joined.d <= TABLE;
    for (int k = threadIdx.x; k < s.n * AXES; k += THREADS)
        step[k / AXES][k % AXES] = s.step[k / AXES][k % AXES];
    for (int k = threadIdx.x; k < s.n; k += THREADS) {
        end[k] = s.end[k];
        source[k] = s.src[k];
    }
    for (uint32_t k = threadIdx.x; table && k < s.joined.d; k += THREADS) {
        int p = 0;
        while (k >= s.end[p]) p++;
        part[k] = (uint8_t)p;
    }
    __syncthreads();
    const uint32_t first = blockIdx.x * (THREADS * EACH) + threadIdx.x;
    T v[EACH];
    int64_t to[EACH];
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        uint32_t i = first + u * THREADS;
        if (i >= s.count) continue;
        const uint32_t row = INNER ? fth__div_by(i, s.inner) : i, line = fth__div_by(row, s.joined);
        const uint32_t at = row - line * s.joined.d;
        int p = table ? part[at] : 0;
        while (!table && at >= end[p]) p++;
        const char *from = source[p];
        const bool there = from != NULL;
        int d = s.n_axes - 1;
        to[u] = 0;
        if (!INNER) { /* the joined axis is the innermost */
            to[u] = (int64_t)at * s.dst_step[d];
            from += (int64_t)at * step[p][d--];
            i = line;
        }
        for (; d > 0; d--) {
            const uint32_t q = fth__div_by(i, s.extent[d]), r = i - q * s.extent[d].d;
            to[u] += (int64_t)r * s.dst_step[d];
            from += (int64_t)r * step[p][d];
            i = q;
        }
        if (d == 0) {
            to[u] += (int64_t)i * s.dst_step[0];
            from += (int64_t)i * step[p][0];
        }
        v[u] = there ? *(const T *)from : element;
    }
#pragma unroll
    for (int u = 0; u < EACH; u++)
        if (first + u * THREADS < s.count) *(T *)(dst + to[u]) = v[u];
}

/* Axes and parts while they are put together on the host. */
typedef struct plan {
    fth__cuda_parts p;
    int n;
    int64_t size, extent[AXES], dst_step[AXES];
    char *dst;
} plan;

static void drop(plan *m, int d)
{
    m->n--;
    if (m->p.dim > d) m->p.dim--;
    for (int i = d; i < m->n; i++) {
        m->extent[i] = m->extent[i + 1];
        m->dst_step[i] = m->dst_step[i + 1];
        for (int k = 0; k < m->p.n; k++) m->p.step[k][i] = m->p.step[k][i + 1];
    }
}

/* Does axis i follow axis i - 1 without a gap everywhere? */
static bool follows(const plan *m, int i)
{
    bool same = i != m->p.dim && m->dst_step[i - 1] == m->extent[i] * m->dst_step[i];
    for (int k = 0; k < m->p.n; k++)
        same &= !m->p.src[k] || m->p.step[k][i - 1] == m->extent[i] * m->p.step[k][i];
    return same;
}

static void join_axes(plan *m)
{
    for (int i = m->n - 1; i >= 0; i--)
        if (m->extent[i] == 1 && i != m->p.dim) drop(m, i);
    for (int i = m->n - 1; i > 0; i--) {
        if (!follows(m, i)) continue;
        if (i - 1 == m->p.dim)
            for (int k = 0; k < m->p.n; k++) m->p.end[k] *= m->extent[i];
        const int64_t dst_step = m->dst_step[i], extent = m->extent[i - 1] * m->extent[i];
        int64_t step[FTH__CUDA_PARTS];
        for (int k = 0; k < m->p.n; k++) step[k] = m->p.step[k][i];
        drop(m, i);
        m->extent[i - 1] = extent;
        m->dst_step[i - 1] = dst_step;
        for (int k = 0; k < m->p.n; k++) m->p.step[k][i - 1] = step[k];
    }
}

/* As in move.cu: runs without a gap in units of up to 16 bytes; what is moved at once. */
static int64_t widen(plan *m)
{
    const int last = m->n - 1;
    bool run = m->dst_step[last] == m->size;
    uint64_t all = (uintptr_t)m->dst | (uint64_t)(m->extent[last] * m->size) | 16;
    for (int i = 0; i < last; i++) all |= (uint64_t)m->dst_step[i];
    for (int k = 0; k < m->p.n; k++) {
        if (last == m->p.dim) all |= (uint64_t)(m->p.end[k] * m->size);
        if (!m->p.src[k]) continue;
        run &= m->p.step[k][last] == m->size;
        all |= (uintptr_t)m->p.src[k];
        for (int i = 0; i < last; i++) all |= (uint64_t)m->p.step[k][i];
    }
    if (!run) return m->size;
    const int64_t unit = (int64_t)(all & (0 - all));
    m->extent[last] = m->extent[last] * m->size / unit;
    m->dst_step[last] = unit;
    for (int k = 0; k < m->p.n; k++) {
        if (last == m->p.dim) m->p.end[k] = m->p.end[k] * m->size / unit;
        m->p.step[k][last] = unit;
    }
    return unit;
}

static seam seam_of(const plan *m)
{
    seam s = {};
    int64_t count = 1, inner = 1;
    for (int i = 0; i < m->n; i++) {
        s.extent[i] = fth__div_make(m->extent[i]);
        s.dst_step[i] = m->dst_step[i];
        count *= m->extent[i];
        if (i > m->p.dim) inner *= m->extent[i];
    }
    s.n_axes = m->n;
    s.n = m->p.n;
    s.count = (uint32_t)count;
    s.inner = fth__div_make(inner);
    s.joined = s.extent[m->p.dim];
    for (int k = 0; k < m->p.n; k++) {
        const int64_t begin = k ? m->p.end[k - 1] : 0;
        s.end[k] = (uint32_t)m->p.end[k];
        s.src[k] = m->p.src[k] ? m->p.src[k] - begin * m->p.step[k][m->p.dim] : NULL;
        for (int i = 0; i < m->n; i++) s.step[k][i] = m->p.src[k] ? m->p.step[k][i] : 0;
    }
    return s;
}

template <class T> static void queue(const fth_call *call, const plan *m, const unsigned char *fill)
{
    const seam s = seam_of(m);
    T element;
    memcpy((void *)&element, fill, sizeof element);
    if (m->p.dim == m->n - 1)
        FTH_LAUNCH((put_parts<T, false>), fth__place_blocks(s.count, EACH), THREADS,
                   fth_cuda_stream(call), s, m->dst, element);
    else
        FTH_LAUNCH((put_parts<T, true>), fth__place_blocks(s.count, EACH), THREADS,
                   fth_cuda_stream(call), s, m->dst, element);
}

static void at_once(const fth_call *call, plan *m)
{
    unsigned char fill[16];
    for (int i = 0; i < 16; i++) fill[i] = m->p.element[i % m->size];
    switch (widen(m)) {
    case 1: queue<uint8_t>(call, m, fill); break;
    case 2: queue<uint16_t>(call, m, fill); break;
    case 4: queue<uint32_t>(call, m, fill); break;
    case 8: queue<uint2>(call, m, fill); break;
    default: queue<uint4>(call, m, fill); break;
    }
}

static void one_by_one(const fth_call *call, const plan *m)
{
    for (int k = 0; k < m->p.n; k++) {
        const int64_t begin = k ? m->p.end[k - 1] : 0;
        fth__move part = {};
        part.n = m->n;
        part.size = m->size;
        for (int i = 0; i < m->n; i++) {
            part.extent[i] = m->extent[i];
            part.dst_step[i] = m->dst_step[i];
            part.src_step[i] = m->p.step[k][i];
        }
        part.extent[m->p.dim] = m->p.end[k] - begin;
        part.dst = m->dst + begin * m->dst_step[m->p.dim];
        part.src = m->p.src[k];
        if (part.src)
            fth__cuda_move(call, &part);
        else
            fth__cuda_fill(call, &part, m->p.element);
    }
}

/* Leave out parts that have nothing in this tile. */
static void drop_empty(fth__cuda_parts *p)
{
    int n = 0;
    for (int k = 0; k < p->n; k++) {
        if (p->end[k] <= (n ? p->end[n - 1] : 0)) continue;
        p->end[n] = p->end[k];
        p->src[n] = p->src[k];
        memcpy(p->step[n], p->step[k], sizeof p->step[n]);
        n++;
    }
    p->n = n;
}

void fth__cuda_put_together(const fth_call *call, const fth__cuda_parts *parts)
{
    const fth_desc *d = &call->node->out[0];
    const fth_tile *t = &call->out[0];
    plan m = {
        .p = *parts, .n = d->n_axes, .size = fth_dtype_size(d->dtype), .dst = (char *)t->data};
    int64_t bytes = m.size, split = 0;
    for (int i = 0; i < m.n; i++) {
        m.extent[i] = t->extent[i];
        m.dst_step[i] = t->stride[i] * m.size;
        bytes *= t->extent[i];
    }
    if (bytes == 0) return;
    drop_empty(&m.p);
    join_axes(&m);
    for (int k = 0; k < m.p.n; k++) { /* how much of the result lies in short parts */
        const int64_t part = m.p.end[k] - (k ? m.p.end[k - 1] : 0);
        if (part * m.dst_step[m.p.dim] < LONG_PART) split += part;
    }
    if (bytes / m.size > FTH__SPACE_MOST || (bytes > SMALL && split * FEW <= m.extent[m.p.dim]))
        one_by_one(call, &m);
    else
        at_once(call, &m);
}
