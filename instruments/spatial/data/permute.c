/* permute.c - batches without replacement: a keyed permutation that is never stored (model 10.3).
 *
 * A Feistel network computes the image of an element from its index and the key alone: in each
 * round the two halves of the bits are swapped and one is changed by a keyed function of the other,
 * which is invertible, so images are distinct. The network permutes a power of four; an image of n
 * or more is fed through it again until it is below n. So a batch needs neither a table of all
 * cells nor the batches before it.
 */
#include "permute.h"

#include <fathom/ops.h>

enum { ROUNDS = 8 }; /* small N need many: with four rounds some pairs are visibly more frequent */

typedef struct network {
    int half; /* bits of a half */
    uint64_t mask;
    uint64_t key[ROUNDS];
} network;

static network network_make(int64_t n, int64_t seed, int64_t stream, int64_t iteration)
{
    network w = {.half = 1};
    while (w.half < 31 && (int64_t)1 << (2 * w.half) < n) w.half++;
    w.mask = ((uint64_t)1 << w.half) - 1;
    for (int r = 0; r < ROUNDS; r++) w.key[r] = fth_random_bits_at(seed, iteration, stream, r);
    return w;
}

/* Every bit of the result depends on every bit of x. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static uint64_t once(const network *w, uint64_t x)
{
    uint64_t left = x >> w->half, right = x & w->mask;
    for (int r = 0; r < ROUNDS; r++) {
        const uint64_t next = left ^ (mix(right + w->key[r]) >> (64 - w->half));
        left = right;
        right = next;
    }
    return left << w->half | right;
}

/* Walked until it is below n. */
static int64_t image(const network *w, int64_t i, int64_t n)
{
    uint64_t x = (uint64_t)i;
    do x = once(w, x);
    while (x >= (uint64_t)n);
    return (int64_t)x;
}

static void sink(int64_t *v, int64_t at, int64_t n)
{
    const int64_t x = v[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && v[child + 1] > v[child]) child++;
        if (v[child] <= x) break;
        v[at] = v[child];
        at = child;
    }
    v[at] = x;
}

/* Heap sort: in place, O(n log n) in every case. */
static void sort(int64_t *v, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--) sink(v, i, n);
    for (int64_t end = n - 1; end > 0; end--) {
        const int64_t largest = v[0];
        v[0] = v[end];
        v[end] = largest;
        sink(v, 0, end);
    }
}

void sp_permute_first(int64_t *out, int64_t count, int64_t n, int64_t seed, int64_t stream,
                      int64_t iteration)
{
    if (count >= n) {
        for (int64_t i = 0; i < n; i++) out[i] = i;
        return;
    }
    const network w = network_make(n, seed, stream, iteration);
    for (int64_t i = 0; i < count; i++) out[i] = image(&w, i, n);
    sort(out, count);
}

void sp_permute_all(int32_t *out, int64_t n, int64_t seed, int64_t stream, int64_t iteration)
{
    const network w = network_make(n, seed, stream, iteration);
    for (int64_t i = 0; i < n; i++) out[i] = (int32_t)image(&w, i, n);
}
