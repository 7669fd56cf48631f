/* near.c - see near.h.
 *
 * The tree is an order of the points: the middle of a range halves it along the longest side of its
 * box, down to ranges of a dozen. Only distances come out, so ties do not matter.
 */
#include "near.h"

#include <math.h>
#include <string.h>

enum {
    LEAF = 12,
    BLOCK = 256,
    DEEP = 64
}; /* points of a leaf; per task; depth: halved each time */

typedef struct tree {
    const float (*from)[3];
    float (*at)[3]; /* in the order of the tree */
    int32_t *id;
    uint8_t *axis; /* of the range whose middle this is */
    int64_t n;
    double (*square)[GS_NEAR];
    uint8_t *count;
} tree;

/* ---- building ---- */

/* A strict order along an axis: no two points are equal. */
static bool is_before(const tree *t, int32_t a, int32_t b, int axis)
{
    const float x = t->from[a][axis], y = t->from[b][axis];
    return x < y || (!(y < x) && a < b);
}

static void swap(int32_t *a, int32_t *b)
{
    const int32_t keep = *a;
    *a = *b;
    *b = keep;
}

/* Puts the point that belongs there to `nth` of [lo, hi), smaller ones before it. */
static void select_nth(const tree *t, int64_t lo, int64_t hi, int64_t nth, int axis)
{
    int32_t *id = t->id;
    while (hi - lo > 1) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (is_before(t, id[middle], id[lo], axis)) swap(&id[middle], &id[lo]);
        if (is_before(t, id[hi - 1], id[lo], axis)) swap(&id[hi - 1], &id[lo]);
        if (is_before(t, id[hi - 1], id[middle], axis)) swap(&id[hi - 1], &id[middle]);
        const int32_t pivot = id[middle];
        int64_t i = lo, j = hi - 1;
        while (i <= j) {
            while (is_before(t, id[i], pivot, axis)) i++;
            while (is_before(t, pivot, id[j], axis)) j--;
            if (i <= j) swap(&id[i++], &id[j--]);
        }
        if (nth <= j)
            hi = j + 1;
        else if (nth >= i)
            lo = i;
        else
            return;
    }
}

static int longest_side(const tree *t, int64_t lo, int64_t hi)
{
    float low[3], high[3];
    memcpy(low, t->from[t->id[lo]], sizeof low);
    memcpy(high, low, sizeof high);
    for (int64_t i = lo + 1; i < hi; i++)
        for (int k = 0; k < 3; k++) {
            const float v = t->from[t->id[i]][k];
            if (v < low[k]) low[k] = v;
            if (v > high[k]) high[k] = v;
        }
    int best = 0;
    for (int k = 1; k < 3; k++)
        if (high[k] - low[k] > high[best] - low[best]) best = k;
    return best;
}

typedef struct range {
    int64_t lo, hi;
} range;

static void build(tree *t)
{
    range stack[DEEP];
    int depth = 0;
    stack[depth++] = (range){0, t->n};
    while (depth > 0) {
        const range r = stack[--depth];
        if (r.hi - r.lo <= LEAF) continue;
        const int64_t middle = r.lo + (r.hi - r.lo) / 2;
        const int axis = longest_side(t, r.lo, r.hi);
        select_nth(t, r.lo, r.hi, middle, axis);
        t->axis[middle] = (uint8_t)axis;
        stack[depth++] = (range){middle + 1, r.hi};
        stack[depth++] = (range){r.lo, middle};
    }
    for (int64_t i = 0; i < t->n; i++) memcpy(t->at[i], t->from[t->id[i]], sizeof t->at[i]);
}

/* ---- searching ---- */

typedef struct nearest {
    double at[3];
    double square[GS_NEAR + 1]; /* ascending */
} nearest;

static void look_at(nearest *q, const float p[3])
{
    double d = 0;
    for (int k = 0; k < 3; k++) d += (q->at[k] - (double)p[k]) * (q->at[k] - (double)p[k]);
    if (!(d < q->square[GS_NEAR])) return;
    int i = GS_NEAR;
    for (; i > 0 && q->square[i - 1] > d; i--) q->square[i] = q->square[i - 1];
    q->square[i] = d;
}

static void search(const tree *t, nearest *q)
{
    struct {
        range r;
        double beyond; /* squared distance to the plane that cuts it off */
    } stack[DEEP];
    int depth = 0;
    stack[depth++].r = (range){0, t->n};
    stack[0].beyond = 0;
    while (depth > 0) {
        const range r = stack[--depth].r;
        if (stack[depth].beyond >= q->square[GS_NEAR]) continue;
        if (r.hi - r.lo <= LEAF) {
            for (int64_t i = r.lo; i < r.hi; i++) look_at(q, t->at[i]);
            continue;
        }
        const int64_t middle = r.lo + (r.hi - r.lo) / 2;
        const int axis = t->axis[middle];
        const double side = q->at[axis] - (double)t->at[middle][axis];
        const range below = {r.lo, middle}, above = {middle + 1, r.hi};
        look_at(q, t->at[middle]);
        stack[depth].r = side < 0 ? above : below; /* the far half, later */
        stack[depth++].beyond = side * side;
        stack[depth].r = side < 0 ? below : above;
        stack[depth++].beyond = 0;
    }
}

static void search_block(void *arg, int64_t block, int worker)
{
    const tree *t = arg;
    const int64_t from = block * BLOCK, end = from + BLOCK < t->n ? from + BLOCK : t->n;
    (void)worker;
    for (int64_t i = from; i < end; i++) {
        nearest q;
        for (int k = 0; k < 3; k++) q.at[k] = (double)t->from[i][k];
        for (int k = 0; k <= GS_NEAR; k++) q.square[k] = (double)INFINITY;
        search(t, &q);
        int n = 0;
        for (int k = 0; k <= GS_NEAR && n < GS_NEAR; k++)
            if (q.square[k] > 1e-8 && isfinite(q.square[k])) t->square[i][n++] = q.square[k];
        t->count[i] = (uint8_t)n;
    }
}

fth_status gs_near_find(fth_context *ctx, const float (*point)[3], int64_t n,
                        double (*square)[GS_NEAR], uint8_t *count, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    const uint64_t each = sizeof(float[3]) + sizeof(int32_t) + sizeof(uint8_t);
    void *block = NULL;
    if (n > INT32_MAX)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "expected at most %d points, found %lld", INT32_MAX,
                        (long long)n);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * each + 1, "tree of points", &block, err));
    tree t = {.from = point, .n = n, .square = square, .count = count, .at = block};
    t.id = (int32_t *)(void *)(t.at + n);
    t.axis = (uint8_t *)(t.id + n);
    for (int64_t i = 0; i < n; i++) t.id[i] = (int32_t)i;
    build(&t);
    const fth_status s =
        fth_context_loop(ctx, "nearest points", (n + BLOCK - 1) / BLOCK, search_block, &t, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
