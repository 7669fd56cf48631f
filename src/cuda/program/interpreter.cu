/* interpreter.cu - fused programs where there is no compiler at run time, or little to do.
 *
 * One element per thread, one instruction at a time, registers in memory: slow, and the same bits
 * as compiled code, because expressions, functions and the order of sums are the same texts. Of few
 * sums the elements are evaluated by all threads of a block and lie in shared memory before they
 * are joined: an element takes a microsecond and a half, an addition a hundredth of it.
 */
#define FTH__MATH static __device__ __noinline__ __attribute__((unused))
#define FTH__CELL_FN static __device__ __noinline__
#include "base/assert.h"
#include "cuda/program/fused.h"
#include "cuda/program/join.h"
#include "ops/border.h"
#include "ops/cell_types.h"
#include "ops/philox.h"

namespace
{

/* Elements in the shared memory of a block of threads: as long as the longest block of a reduction,
 * and with their lanes 32 KiB of complex numbers. */
enum { AT_ONCE = 1024 };
enum { THREADS = 256, REGISTERS = FTH_PROGRAM_INPUTS + FTH_PROGRAM_CONSTS + FTH_PROGRAM_INSTRS };

struct code {
    int32_t n_in, n_looks, n_const, n_instr, n_out, n_made;
    int32_t inner_red, inner_to;    /* of the reduction before the tail's: its results */
    int32_t made[FTH_PROGRAM_MADE]; /* fth_random_kind, or FTH__MADE_INDEX */
    uint8_t dtype[REGISTERS];
    int16_t out_reg[FTH_PROGRAM_OUTS];
    fth__instr instr[FTH_PROGRAM_INSTRS];
};
/* The launch carries both by value. */
struct both {
    fth__ew_args a;
    code c;
};
static_assert(sizeof(both) <= 8192,
              "arguments of a kernel; since CUDA 12.1 there may be 32,764 bytes");

struct place {
    int64_t off[FTH__EW_OPERANDS];
};

__device__ void locate(const both &b, int n_ops, uint32_t i, place &p)
{
    for (int j = 0; j < n_ops; j++) p.off[j] = 0;
    for (int k = b.a.n_axes - 1; k >= 0; k--) {
        const uint32_t q = (__umulhi(i, b.a.magic[k]) + i) >> b.a.shift[k];
        const uint32_t r = k > 0 ? i - q * b.a.extent[k] : i;
        for (int j = 0; j < n_ops; j++) p.off[j] += (int64_t)r * b.a.operand[j].stride[k];
        i = q;
    }
}

__device__ int bytes_of(int dtype)
{
    switch (dtype) {
    case FTH__D_BOOL:
    case FTH__D_U8:
    case FTH__D_I8: return 1;
    case FTH__D_U16:
    case FTH__D_I16:
    case FTH__D_F16:
    case FTH__D_BF16: return 2;
    case FTH__D_I32:
    case FTH__D_U32:
    case FTH__D_F32: return 4;
    case FTH__D_C128: return 16;
    default: return 8;
    }
}

__device__ __noinline__ void load(int dtype, const char *p, fth__cell *v)
{
    switch (dtype) {
    case FTH__D_BOOL:
    case FTH__D_U8:
    case FTH__D_I8: v->u8 = *(const uint8_t *)p; break;
    case FTH__D_I16:
    case FTH__D_U16: v->u16 = *(const uint16_t *)p; break;
    case FTH__D_U32:
    case FTH__D_I32: v->i32 = *(const int32_t *)p; break;
    case FTH__D_I64: v->i64 = *(const int64_t *)p; break;
    case FTH__D_F16: v->f32 = fth__dev_f16_to_f32(*(const uint16_t *)p); break;
    case FTH__D_BF16: v->f32 = fth__dev_bf16_to_f32(*(const uint16_t *)p); break;
    case FTH__D_F32: v->f32 = *(const float *)p; break;
    case FTH__D_F64: v->f64 = *(const double *)p; break;
    case FTH__D_C64: v->c64 = *(const fth_c64 *)p; break;
    case FTH__D_C128: v->c128 = *(const fth_c128 *)p; break;
    }
}

__device__ __noinline__ void store(int dtype, char *p, const fth__cell *v)
{
    switch (dtype) {
    case FTH__D_BOOL:
    case FTH__D_U8:
    case FTH__D_I8: *(uint8_t *)p = v->u8; break;
    case FTH__D_I16:
    case FTH__D_U16: *(uint16_t *)p = v->u16; break;
    case FTH__D_U32:
    case FTH__D_I32: *(int32_t *)p = v->i32; break;
    case FTH__D_I64: *(int64_t *)p = v->i64; break;
    case FTH__D_F16: *(uint16_t *)p = fth__dev_f32_to_f16(v->f32); break;
    case FTH__D_BF16: *(uint16_t *)p = fth__dev_f32_to_bf16(v->f32); break;
    case FTH__D_F32: *(float *)p = v->f32; break;
    case FTH__D_F64: *(double *)p = v->f64; break;
    case FTH__D_C64: *(fth_c64 *)p = v->c64; break;
    case FTH__D_C128: *(fth_c128 *)p = v->c128; break;
    }
}

/* As fth__settled: the one NaN where something was computed. */
__device__ __noinline__ void store_settled(int dtype, char *p, const fth__cell *v)
{
    switch (dtype) {
    case FTH__D_F16: *(uint16_t *)p = fth__settled_f16(v->f32); break;
    case FTH__D_BF16: *(uint16_t *)p = fth__settled_bf16(v->f32); break;
    case FTH__D_F32: *(float *)p = fth__settled(v->f32); break;
    case FTH__D_F64: *(double *)p = fth__settled(v->f64); break;
    case FTH__D_C64: *(fth_c64 *)p = fth__settled(v->c64); break;
    case FTH__D_C128: *(fth_c128 *)p = fth__settled(v->c128); break;
    default: store(dtype, p, v); break;
    }
}

__device__ float round_16(int dtype, float v)
{
    return dtype == FTH__D_F16 ? fth__round_f16(v) : fth__round_bf16(v);
}

__device__ void map(int op, int dtype, const fth__cell *x, const fth__cell *y, const fth__cell *z,
                    fth__cell *out)
{
    switch (dtype) {
    case FTH__D_BOOL: map_b(op, x, y, z, out); break;
    case FTH__D_U8: map_u8(op, x, y, z, out); break;
    case FTH__D_U16: map_u16(op, x, y, z, out); break;
    case FTH__D_I32: map_i32(op, x, y, z, out); break;
    case FTH__D_I64: map_i64(op, x, y, z, out); break;
    case FTH__D_U32: map_u32(op, x, y, z, out); break;
    case FTH__D_I16: map_i16(op, x, y, z, out); break;
    case FTH__D_I8: map_i8(op, x, y, z, out); break;
    case FTH__D_F64: map_f64(op, x, y, z, out); break;
    case FTH__D_C64: map_c64(op, x, y, z, out); break;
    case FTH__D_C128: map_c128(op, x, y, z, out); break;
    default: map_f32(op, x, y, z, out); break;
    }
}

/* Whole numbers, logic and reals as they are; the cast then is one of a few conversions. */
__device__ __noinline__ void cast(int from, int to, const fth__cell *x, fth__cell *out)
{
    const bool whole = fth__is_whole(from), complex = from == FTH__D_C64 || from == FTH__D_C128;
    const int64_t i = from == FTH__D_BOOL  ? x->b != 0
                      : from == FTH__D_U8  ? x->u8
                      : from == FTH__D_U16 ? x->u16
                      : from == FTH__D_I32 ? x->i32
                      : from == FTH__D_U32 ? x->u32
                      : from == FTH__D_I16 ? x->i16
                      : from == FTH__D_I8  ? x->i8
                      : whole              ? x->i64
                                           : 0;
    const double f = whole ? (double)i : from == FTH__D_F64 ? x->f64 : complex ? 0.0 : x->f32;
    const fth_c128 c = from == FTH__D_C128  ? x->c128
                       : from == FTH__D_C64 ? fth__to_c128(x->c64)
                                            : fth_c128{f, 0.0};
    switch (to) {
    case FTH__D_BOOL: out->b = (uint8_t)(whole ? i != 0 : f != 0.0); break;
    case FTH__D_U8: out->u8 = (uint8_t)i; break;
    case FTH__D_U16: out->u16 = (uint16_t)i; break;
    case FTH__D_I32: out->i32 = (int32_t)i; break;
    case FTH__D_I64: out->i64 = i; break;
    case FTH__D_U32: out->u32 = (uint32_t)i; break;
    case FTH__D_I16: out->i16 = (int16_t)i; break;
    case FTH__D_I8: out->i8 = (int8_t)i; break;
    case FTH__D_F16:
    case FTH__D_BF16: out->f32 = round_16(to, fth__odd_f32(f)); break;
    case FTH__D_F32: out->f32 = whole ? (float)i : (float)f; break;
    case FTH__D_F64: out->f64 = f; break;
    case FTH__D_C64: out->c64 = fth_c64{whole ? (float)i : (float)c.re, (float)c.im}; break;
    case FTH__D_C128: out->c128 = c; break;
    }
}

/* The row of look l that an element of its index chooses, raw in all of the index. */
__device__ int64_t row_at(const both &b, const fth__ew_look &look, int l, int64_t raw, int64_t off,
                          const char **instead)
{
    const char *const index = b.a.operand[look.rows].data;
    const int64_t row = look.wide ? ((const int64_t *)index)[off] : ((const int32_t *)index)[off];
    int64_t at = -1;
    if (row < 0 || row >= look.limit)
        fth_cuda_complain((fth_fault *)b.a.fault, (uint64_t)raw, row, (uint32_t)l);
    else
        at = fth__border_index(look.border, look.size, look.mul * row + look.add);
    if (at < 0) *instead = (const char *)&look.fill;
    return at < 0 ? 0 : at;
}

/* What the program makes at p. */
__device__ void make(const both &b, const place &p, const fth__instr &in, fth__cell *reg)
{
    const int l = b.c.n_looks - b.c.n_made + in.from, j = b.c.n_in + l, kind = b.c.made[in.from];
    const int64_t n = (int64_t)b.a.operand[j].data - FTH__EW_RAW + p.off[j];
    fth__cell *const out = &reg[in.dst];
    if (kind == FTH__MADE_INDEX) {
        out->i64 = n;
        return;
    }
    const fth__random_key key =
        fth__random_key_make(reg[in.src[0]].i64, reg[in.src[1]].i64, b.a.look[l].size);
    const fth__philox bits = fth__random_bits(&key, (uint64_t)n);
    if (kind == FTH_RANDOM_BITS)
        out->i64 = (int64_t)((uint64_t)bits.v[1] << 32 | bits.v[0]);
    else if (kind == FTH_RANDOM_UNIFORM && in.to == FTH__D_F32)
        out->f32 = fth__uniform_f32(bits.v[0]);
    else if (kind == FTH_RANDOM_UNIFORM)
        out->f64 = fth__uniform_f64(bits.v[0], bits.v[1]);
    else if (in.to == FTH__D_F32)
        out->f32 = fth__normal_f32(&bits);
    else
        out->f64 = fth__normal_f64(&bits);
}

/* Input i, which looks may move, or put a number in the place of. */
__device__ void load_input(const both &b, const place &p, int i, fth__cell *v)
{
    int64_t off = p.off[i];
    const char *instead = NULL;
    for (int l = 0; l < b.c.n_looks; l++) {
        const fth__ew_look &look = b.a.look[l];
        const int j = b.c.n_in + l;
        if (look.in != i) continue;
        const int64_t raw = (int64_t)b.a.operand[j].data - FTH__EW_RAW + p.off[j];
        if (look.rows >= 0) {
            off += row_at(b, look, l, raw, p.off[look.rows], &instead) * look.stride;
            continue;
        }
        const int64_t at = fth__border_divided(look.border, look.size, raw, look.div);
        if (at < 0) instead = (const char *)&look.fill;
        off += (look.div == 1 ? at - raw : at - look.origin) * look.stride;
    }
    const int dtype = b.c.dtype[i];
    load(dtype, instead ? instead : b.a.operand[i].data + off * bytes_of(dtype), v);
}

/* Registers for the element at p. */
__device__ __noinline__ void evaluate(const both &b, const place &p, fth__cell *reg)
{
    for (int i = 0; i < b.c.n_in; i++) load_input(b, p, i, &reg[i]);
    for (int i = 0; i < b.c.n_const; i++)
        memcpy(&reg[b.c.n_in + i], &b.a.constant[i], sizeof reg[0]);
    for (int i = 0; i < b.c.n_instr; i++) {
        const fth__instr in = b.c.instr[i];
        if (in.op == FTH__INSTR_MAKE) {
            make(b, p, in, reg);
            continue;
        }
        const fth__cell *x = &reg[in.src[0]];
        if (in.op == FTH__INSTR_CAST) {
            cast(in.from, in.to, x, &reg[in.dst]);
            continue;
        }
        map(in.op, in.from, x, in.src[1] >= 0 ? &reg[in.src[1]] : x,
            in.src[2] >= 0 ? &reg[in.src[2]] : x, &reg[in.dst]);
        if (in.to == FTH__D_F16 || in.to == FTH__D_BF16)
            reg[in.dst].f32 = round_16(in.to, reg[in.dst].f32);
    }
}

__global__ void __launch_bounds__(THREADS) interpret_map(const both __grid_constant__ b)
{
    fth__cell reg[REGISTERS];
    place p;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < b.a.count; i += gridDim.x * THREADS) {
        locate(b, b.c.n_in + b.c.n_looks + b.c.n_out, i, p);
        evaluate(b, p, reg);
        for (int k = 0; k < b.c.n_out; k++) {
            const int j = b.c.n_in + b.c.n_looks + k, r = b.c.out_reg[k];
            if (!b.a.operand[j].data) continue;
            char *const to = b.a.operand[j].data + p.off[j] * bytes_of(b.c.dtype[r]);
            if (r >= b.c.n_in + b.c.n_const)
                store_settled(b.c.dtype[r], to, &reg[r]);
            else
                store(b.c.dtype[r], to, &reg[r]);
        }
    }
}

__device__ void widen(int dtype, const fth__cell *v, double *w)
{
    *w = dtype == FTH__D_F64 ? v->f64 : (double)v->f32;
}
__device__ void widen(int dtype, const fth__cell *v, int64_t *w)
{
    fth__load_wide(dtype, (const char *)v, w);
}
__device__ void widen(int dtype, const fth__cell *v, fth_c128 *w)
{
    fth__load_wide(dtype, (const char *)v, w);
}

/* Element i of the axis, or what the axis inside comes to there; p is at the first place of the
 * piece. */
template <class W>
__device__ void element(const both &b, const place &p, int64_t i, fth__cell *reg, W *v)
{
    place at;
    const int n = b.c.n_in + b.c.n_looks, out = b.c.out_reg[0];
    for (int j = 0; j < n; j++) at.off[j] = p.off[j] + i * b.a.operand[j].along;
    if (b.a.inner == 0) {
        evaluate(b, at, reg);
        widen(b.c.dtype[out], &reg[out], v);
        return;
    }
    W sum, next;
    fth__join_start(b.c.inner_red, b.c.inner_to, &sum);
    for (int64_t k = 0; k < b.a.inner; k++) {
        evaluate(b, at, reg);
        widen(b.c.dtype[out], &reg[out], &next);
        sum = fth__join(b.c.inner_red, sum, next);
        for (int j = 0; j < n; j++) at.off[j] += b.a.operand[j].inner;
    }
    fth__cell rounded; /* as it would lie in memory */
    fth__store_wide(b.c.inner_to, (char *)&rounded, sum);
    fth__load_wide(b.c.inner_to, (const char *)&rounded, v);
}

template <class W> __device__ W join_lanes(const fth__ew_tail &t, W *lane)
{
    for (int half = t.lanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] = fth__join(t.red, lane[l], lane[l + half]);
    return lane[0];
}

/* One block of the axis in its order. */
template <class W>
__device__ W join_block(const both &b, const place &p, int64_t from, int64_t to, fth__cell *reg)
{
    const fth__ew_tail &t = b.a.tail;
    W lane[8], v;
    const int lanes = b.a.tail.lanes;
    for (int l = 0; l < lanes; l++) fth__join_start(t.red, t.to, &lane[l]);
    for (int64_t i = from; i < to; i++) {
        element(b, p, i, reg, &v);
        const int l = (int)((i - from) % lanes);
        lane[l] = fth__join(t.red, lane[l], v);
    }
    return join_lanes(t, lane);
}

template <class W>
__global__ void __launch_bounds__(THREADS) interpret_tail(const both __grid_constant__ b)
{
    fth__cell reg[REGISTERS];
    place p;
    const fth__ew_tail &t = b.a.tail;
    const int out = b.c.n_in + b.c.n_looks, kept = out + 1;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < b.a.count; i += gridDim.x * THREADS) {
        locate(b, kept + 1, i, p);
        fth__total<W> total;
        char *const out_at = b.a.operand[out].data + p.off[out] * bytes_of(t.to);
        char *const kept_at = b.a.operand[kept].data + p.off[kept] * t.state;
        if (!t.partial) total.begin(t.red, t, out_at, kept_at);
        for (int64_t s = blockIdx.y; s < t.segments; s += gridDim.y) {
            const int64_t from = s * t.block, to = from + t.block < t.n ? from + t.block : t.n;
            const W v = join_block<W>(b, p, from, to, reg);
            if (t.partial)
                ((W *)t.partial)[s * b.a.count + i] = v;
            else
                total.add(t.red, t, v, t.lo + to);
        }
        if (!t.partial) total.end(t, out_at, kept_at);
    }
}

/* Blocks of the axis that lie in shared memory, joined in the order of join_block: a thread for
 * each lane of them. */
template <class W>
__device__ void join_blocks(const fth__ew_tail &t, const W *v, int64_t n, W *lane)
{
    const int64_t blocks = (n + t.block - 1) / t.block;
    for (int64_t k = threadIdx.x; k < blocks * t.lanes; k += THREADS) {
        const int64_t from = k / t.lanes * t.block, to = from + t.block < n ? from + t.block : n;
        W sum;
        fth__join_start(t.red, t.to, &sum);
        for (int64_t i = from + k % t.lanes; i < to; i += t.lanes)
            sum = fth__join(t.red, sum, v[i]);
        lane[k] = sum;
    }
}

/* Blocks of the axis whose elements, and whose lanes, find room. */
__host__ __device__ inline int64_t blocks_at_once(const fth__ew_tail &t)
{
    return AT_ONCE / (t.block > t.lanes ? t.block : t.lanes);
}

/* A block of threads for a sum, or for some blocks of its axis where those go through memory. */
template <class W>
__global__ void __launch_bounds__(THREADS) interpret_few(const both __grid_constant__ b)
{
    FTH_SHARED(W, v); /* [AT_ONCE], then lanes [AT_ONCE] */
    W *const lane = v + AT_ONCE;
    fth__cell reg[REGISTERS];
    place p;
    const fth__ew_tail &t = b.a.tail;
    const int out = b.c.n_in + b.c.n_looks, kept = out + 1;
    const int64_t each = blocks_at_once(t);
    const uint32_t i = blockIdx.x;
    locate(b, kept + 1, i, p);
    fth__total<W> total;
    char *const out_at = b.a.operand[out].data + p.off[out] * bytes_of(t.to);
    char *const kept_at = b.a.operand[kept].data + p.off[kept] * t.state;
    if (!t.partial && threadIdx.x == 0) total.begin(t.red, t, out_at, kept_at);
    for (int64_t s = blockIdx.y * each; s < t.segments; s += gridDim.y * each) {
        const int64_t from = s * t.block, left = t.n - from,
                      n = left < each * t.block ? left : each * t.block;
        for (int64_t k = threadIdx.x; k < n; k += THREADS) element(b, p, from + k, reg, &v[k]);
        __syncthreads();
        join_blocks(t, v, n, lane);
        __syncthreads();
        const int64_t blocks = (n + t.block - 1) / t.block;
        for (int64_t k = threadIdx.x; t.partial && k < blocks; k += THREADS)
            ((W *)t.partial)[(s + k) * b.a.count + i] = join_lanes(t, lane + k * t.lanes);
        for (int64_t k = 0; !t.partial && threadIdx.x == 0 && k < blocks; k++) {
            const int64_t end = from + (k + 1) * t.block;
            total.add(t.red, t, join_lanes(t, lane + k * t.lanes), t.lo + (end < t.n ? end : t.n));
        }
        __syncthreads();
    }
    if (!t.partial && threadIdx.x == 0) total.end(t, out_at, kept_at);
}

/* Blocks of threads that a sum has in interpret_few. */
int64_t tasks_of(const fth__ew_tail &t)
{
    const int64_t each = blocks_at_once(t), tasks = (t.segments + each - 1) / each;
    return !t.partial || tasks < 1 ? 1 : tasks < 0x7fff ? tasks : 0x7fff;
}

/* Whether a thread for each sum, or for each block of its axis, takes longer than a block of
 * threads does; in elements one after the other, on a card that has room for some thousand threads.
 */
bool are_few(const both *b)
{
    const fth__ew_tail &t = b->a.tail;
    const int64_t room = 512, threads = 1 << 17; /* at a time, of either kind */
    if (blocks_at_once(t) < 1) return false;
    const int64_t count = b->a.count, tasks = tasks_of(t),
                  alone = (count * (t.partial ? t.segments : 1) / threads + 1) *
                          (t.partial ? t.block : t.n),
                  shared = (count * tasks / room + 1) * ((t.n / tasks + THREADS - 1) / THREADS + 4);
    return 2 * shared < alone;
}

template <class W> void queue_few(const fth_call *call, const both *b)
{
    FTH_LAUNCH_SHARED((interpret_few<W>), dim3(b->a.count, (unsigned)tasks_of(b->a.tail)), THREADS,
                      2 * AT_ONCE * sizeof(W), fth_cuda_stream(call), *b);
}

void queue_tail(const fth_call *call, const both *b, fth_dtype from)
{
    if (are_few(b)) {
        if (fth_dtype_is_complex(from))
            queue_few<fth_c128>(call, b);
        else if (fth_dtype_is_real(from))
            queue_few<double>(call, b);
        else
            queue_few<int64_t>(call, b);
        return;
    }
    const dim3 blocks(fth_cuda_blocks(b->a.count, THREADS), !b->a.tail.partial ? 1
                                                            : b->a.tail.segments < 0x7fff
                                                                ? (unsigned)b->a.tail.segments
                                                                : 0x7fff);
    if (fth_dtype_is_complex(from))
        FTH_LAUNCH((interpret_tail<fth_c128>), blocks, THREADS, fth_cuda_stream(call), *b);
    else if (fth_dtype_is_real(from))
        FTH_LAUNCH((interpret_tail<double>), blocks, THREADS, fth_cuda_stream(call), *b);
    else
        FTH_LAUNCH((interpret_tail<int64_t>), blocks, THREADS, fth_cuda_stream(call), *b);
}

} // namespace

fth_status fth__ew_interpret(const fth_call *call, const fth__ew_program *e,
                             const fth__ew_args *args)
{
    FTH_ASSERT(e->p.n_in + e->p.n_const + e->p.n_instr <= REGISTERS);
    FTH_ASSERT(e->p.n_in + e->shape.looks + e->p.n_out + (e->p.tail_dim >= 0) <= FTH__EW_OPERANDS);
    FTH_ASSERT(e->p.n_const <= FTH__EW_CONSTS && e->p.n_reg <= REGISTERS);
    both b;
    b.a = *args;
    b.c.n_in = e->p.n_in;
    b.c.n_looks = e->shape.looks;
    b.c.n_made = e->p.n_made;
    for (int i = 0; i < e->p.n_made; i++) b.c.made[i] = e->p.made[i].kind;
    b.c.inner_red = e->p.inner_red > 0 ? e->p.inner_red - 1 : 0;
    b.c.inner_to = e->p.tail_dim >= 0 ? (int32_t)fth__ew_joined(&e->p) : 0;
    b.c.n_const = e->p.n_const;
    b.c.n_instr = e->p.n_instr;
    b.c.n_out = e->p.n_out;
    memcpy(b.c.dtype, e->p.reg_dtype, sizeof b.c.dtype);
    memcpy(b.c.out_reg, e->p.out_reg, sizeof b.c.out_reg);
    memcpy(b.c.instr, e->p.instr, sizeof b.c.instr);
    if (e->p.tail_dim >= 0)
        queue_tail(call, &b, (fth_dtype)e->p.reg_dtype[e->p.out_reg[0]]);
    else
        FTH_LAUNCH(interpret_map, fth_cuda_blocks(args->count, THREADS), THREADS,
                   fth_cuda_stream(call), b);
    FTH_CUDA_LAUNCHED(call);
    return FTH_OK;
}
