/* dot_reduce.cu - a product with a program and a reduction behind it, a slab at a time.
 *
 * A slab of the product is made in scratch over all of k, as long along the reduced axis as it
 * gets, and the fused kernel maps and reduces it from there. So the product costs no more memory
 * than one slab, and reading it back once costs little beside k multiplications an element.
 *
 * By parts on the matrix units, an operand is packed for the slabs that share it at once, where
 * that takes little enough room, and slab by slab elsewhere.
 */
#include "base/assert.h"
#include "cuda/device/device.h"
#include "cuda/product/product.h"
#include "cuda/product/split.h"

extern "C" {
#include "graph/program.h"
#include "ops/dot_reduce.h"
}

#include <string.h>

static constexpr int64_t SLAB = 26 << 20; /* elements: bounds the scratch at 104 MiB of f32 */
static constexpr int64_t ALONG = 8192;    /* of the reduced axis, unless its tile is longer */
/* Of the other: 66 tiles of 128, which with any number of them along the reduced axis fill the
 * turns of 132 processors. */
static constexpr int64_t ACROSS = 66 * 128;
static constexpr int64_t TILE_K = 4096; /* k of one product: four tiles of 1024, as dot of halves */

/* The record of the fused operation, as the backend would find it. */
extern "C" {
extern const fth_kernel *const __start_fth_kernels[] __attribute__((visibility("hidden")));
extern const fth_kernel *const __stop_fth_kernels[] __attribute__((visibility("hidden")));
}
static const fth_kernel *fused_kernel(const fth_node *fused)
{
    for (const fth_kernel *const *k = __start_fth_kernels; k < __stop_fth_kernels; k++)
        if (strcmp((*k)->op, "fused") == 0)
            return !(*k)->supports || (*k)->supports(fused) ? *k : NULL;
    return NULL;
}

static void tiles(const fth__dot_shape *s, bool reduces_m, int64_t *m, int64_t *n)
{
    int64_t *along = reduces_m ? m : n, *across = reduces_m ? n : m;
    const int64_t whole = reduces_m ? s->m.size : s->n.size;
    const int64_t most = whole < ALONG ? whole : ALONG;
    if (*along < most) *along = (most + *along - 1) / *along * *along;
    const int64_t rows = *along < whole ? *along : whole;
    const int64_t fit = SLAB / (rows > 0 ? rows : 1) / 128 * 128;
    *across = fit < 128 ? 128 : fit < ACROSS || whole < 2048 ? fit : ACROSS;
}

static fth__cuda_product product_of(const fth_call *call, const fth__dot_shape *s, int64_t m0,
                                    int64_t m, int64_t n0, int64_t n, bool cols, void *c)
{
    const fth_tile *ta = &call->in[0], *tb = &call->in[1];
    fth__cuda_product p = {};
    p.am = fth__tile_stride(ta, s->m.a), p.ak = fth__tile_stride(ta, s->k.a);
    p.bk = fth__tile_stride(tb, s->k.b), p.bn = fth__tile_stride(tb, s->n.b);
    p.cm = cols ? 1 : n, p.cn = cols ? m : 1;
    p.m = m, p.n = n;
    p.m0 = fth__tile_origin(ta, s->m.a) + m0, p.n0 = fth__tile_origin(tb, s->n.b) + n0;
    p.c = (char *)c;
    p.batch = p.batches = 1;
    p.out = s->acc;
    p.c_cols = cols;
    p.c_matrix = true;
    p.sums = fth__cuda_sums_of(call, s);
    return p;
}

/* ---- by parts on the matrix units ---- */

/* Bytes of an operand that is packed at once, lines of all slabs and all of k. */
#ifdef FTH_EMULATED
static constexpr uint64_t PACKED = (uint64_t)256 << 10; /* so that tests see both ways */
#else
static constexpr uint64_t PACKED = (uint64_t)160 << 20;
#endif

/* Bytes of both operands packed at once; 0: slab by slab. */
typedef struct packed {
    uint64_t a, b;
} packed;

static packed packed_of(const fth_call *call, const fth__dot_shape *s)
{
    const int64_t k = fth__tile_extent(&call->in[0], s->k.a);
    const uint64_t a = fth__cuda_split_bytes(fth__tile_extent(&call->in[0], s->m.a), k),
                   b = fth__cuda_split_bytes(fth__tile_extent(&call->in[1], s->n.b), k);
    return s->n_sum == 0 && a <= PACKED && b <= PACKED ? packed{a, b} : packed{0, 0};
}

static bool reduces_m(const fth_node *node, const fth__dot_shape *s)
{
    return ((const fth__dot_reduce_attr *)node->attr)->program.tail_dim == s->m.out;
}

static uint64_t room(const fth_call *call, const fth__dot_shape *s)
{
    if (!fth__cuda_split_takes(call->node, s)) return 0;
    const packed p = packed_of(call, s);
    if (p.a + p.b > 0) return FTH__SPLIT_HEAD + p.a + p.b;
    int64_t m = s->tile_m, n = s->tile_n;
    tiles(s, reduces_m(call->node, s), &m, &n);
    const int64_t most_m = fth__tile_extent(&call->in[0], s->m.a),
                  most_n = fth__tile_extent(&call->in[1], s->n.b);
    return fth__cuda_split_scratch(s, m < most_m ? m : most_m, n < most_n ? n : most_n,
                                   fth__tile_extent(&call->in[0], s->k.a), 1);
}

/* Is the operand the same for all loops around the matrices? */
static bool is_shared(const fth__dot_shape *s, bool a)
{
    bool shared = true;
    for (int i = 0; i < s->n_loop; i++) shared = shared && (a ? s->loop[i].a : s->loop[i].b) < 0;
    return shared;
}

/* The first slab of a loop packs what its loop has alone; the first of all also what they share. */
static fth_status product_by_parts(const fth_call *call, const fth__dot_shape *s,
                                   fth__cuda_product *p, int64_t m0, int64_t n0, void *scratch)
{
    const packed bytes = packed_of(call, s);
    const int64_t size = fth_dtype_size(s->dtype),
                  chunks = (p->k + FTH__SPLIT_CHUNK - 1) / FTH__SPLIT_CHUNK;
    const bool first = m0 == 0 && n0 == 0,
               first_of_all = first && p->a == call->in[0].data && p->b == call->in[1].data;
    fth__split_job all = fth__cuda_split_job(s, p), j = all;
    p->scratch = (char *)scratch;
    if (bytes.a + bytes.b == 0) {
        p->a += m0 * p->am * size, p->b += n0 * p->bn * size;
        p->room = room(call, s);
        return fth__cuda_split_run(call, s, p);
    }
    FTH_ASSERT(FTH__SPLIT_HEAD + bytes.a + bytes.b <= room(call, s));
    FTH_ASSERT(m0 % FTH__SPLIT_LINES == 0 && n0 % FTH__SPLIT_LINES == 0);
    all.a.given = j.a.given = (int *)scratch;
    all.a.packed = (char *)scratch + FTH__SPLIT_HEAD, all.b.packed = all.a.packed + bytes.a;
    all.a.pitch = all.b.pitch = j.a.pitch = j.b.pitch = chunks;
    all.a.first -= m0, all.b.first -= n0;
    if (first_of_all || (first && !is_shared(s, true)))
        FTH_TRY(
            fth__cuda_split_pack(call, &all.a, fth__tile_extent(&call->in[0], s->m.a), p->k, 1));
    if (first_of_all || (first && !is_shared(s, false)))
        FTH_TRY(
            fth__cuda_split_pack(call, &all.b, fth__tile_extent(&call->in[1], s->n.b), p->k, 1));
    j.a.from += m0 * p->am, j.b.from += n0 * p->bn;
    j.a.packed = all.a.packed + m0 / FTH__SPLIT_LINES * chunks * FTH__SPLIT_BLOCK;
    j.b.packed = all.b.packed + n0 / FTH__SPLIT_LINES * chunks * FTH__SPLIT_BLOCK;
    return fth__cuda_split_queue(call, &j);
}

/* ---- slabs ---- */

static fth_status product(const fth_call *call, const fth__dot_shape *s, const char *a,
                          const char *b, int64_t m0, int64_t m, int64_t n0, int64_t n, bool cols,
                          void *c, void *scratch)
{
    const int64_t size = fth_dtype_size(s->dtype), k = fth__tile_extent(&call->in[0], s->k.a);
    fth__cuda_product p = product_of(call, s, m0, m, n0, n, cols, c);
    if (fth__cuda_split_takes(call->node, s)) {
        p.a = a, p.b = b, p.k = k;
        return product_by_parts(call, s, &p, m0, n0, scratch);
    }
    for (int64_t k0 = 0; k0 < k || k0 == 0; k0 += TILE_K) {
        p.a = a + (m0 * p.am + k0 * p.ak) * size;
        p.b = b + (n0 * p.bn + k0 * p.bk) * size;
        p.k0 = k0;
        p.k = k - k0 < TILE_K ? k - k0 : TILE_K;
        p.add = k0 > 0;
        FTH_TRY(fth__cuda_product_run(call, s, &p));
    }
    return FTH_OK;
}

static fth_status round_product(const fth_call *call, fth_dtype t, void *dst, const void *src,
                                int64_t n)
{
    fth__cuda_plane p = {};
    p.dst = (char *)dst, p.src = (const char *)src;
    p.m = 1, p.n = n, p.batch = 1;
    p.dst_n = p.src_n = 1;
    return fth__cuda_to_half(call, t, &p);
}

static fth__dot_reduce_how how_of(const fth_node *node)
{
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    const fth_kernel *k = fused_kernel(&fused.node);
    fth__dot_reduce_how how = {};
    how.room = room;
    how.product = product;
    how.tiles = tiles;
    how.round = round_product;
    how.scratch = k ? k->scratch : NULL;
    how.run = k ? k->run : NULL;
    return how;
}

static bool supports(const fth_node *node)
{
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    return fused_kernel(&fused.node) != NULL;
}

static uint64_t scratch(const fth_call *call)
{
    const fth__dot_reduce_how how = how_of(call->node);
    return fth__dot_reduce_scratch(call, &how);
}

static fth_status run(const fth_call *call)
{
    const fth__dot_reduce_how how = how_of(call->node);
    return fth__dot_reduce_run(call, &how);
}

static fth_status prepare(const fth_node *node, fth_device *device, int64_t runs, fth_err *err)
{
    const fth__dot_reduce_attr *attr = (const fth__dot_reduce_attr *)node->attr;
    fth__program_node fused;
    fth__dot_reduce_fused(node, &fused);
    const fth_desc *space = &fused.in[0];
    fth__dot_shape s;
    fth__dot_shape_get(&attr->dot, &node->in[0], &node->in[1], space,
                       space->axis[attr->program.tail_dim], &s);
    if (!fth__cuda_split_takes(node, &s))
        fth__cuda_product_prepare(device, &s, s.acc, s.m.out > s.n.out, true, 1, false);
    const fth_kernel *k = fused_kernel(&fused.node);
    return k && k->prepare ? k->prepare(&fused.node, device, runs, err) : FTH_OK;
}

FTH_CUDA_KERNEL(dot_reduce) = {
    .op = "dot_reduce", .supports = supports, .scratch = scratch, .run = run, .prepare = prepare};
