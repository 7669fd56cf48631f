/* order.c - argsort by a heap in place; ties by index. */
#include "order.h"

#include <math.h>

static bool is_before(double a, double b, bool descending)
{
    if (isnan(a) || isnan(b)) return !isnan(a) && isnan(b);
    return descending ? a > b : a < b;
}

static bool is_after(const double *v, int64_t a, int64_t b, bool descending)
{
    if (is_before(v[a], v[b], descending)) return false;
    return is_before(v[b], v[a], descending) || a > b;
}

static void sift(int64_t *heap, int64_t n, int64_t i, const double *v, bool descending)
{
    for (int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && is_after(v, heap[child + 1], heap[child], descending)) child++;
        if (!is_after(v, heap[child], heap[i], descending)) return;
        const int64_t t = heap[i];
        heap[i] = heap[child];
        heap[child] = t;
        i = child;
    }
}

void sp_order(int64_t *order, const double *v, int64_t n, bool descending)
{
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n / 2; i-- > 0;) sift(order, n, i, v, descending);
    for (int64_t end = n; end-- > 1;) {
        const int64_t t = order[0];
        order[0] = order[end];
        order[end] = t;
        sift(order, end, 0, v, descending);
    }
}

void sp_benjamini_hochberg(double *q, const double *p, int64_t n, int64_t *room)
{
    int64_t known = 0;
    sp_order(room, p, n, false);
    for (int64_t i = 0; i < n; i++) known += !isnan(p[i]);
    double least = 1;
    for (int64_t r = n; r-- > 0;) {
        const int64_t i = room[r];
        if (r < known) least = fmin(least, p[i] * (double)known / (double)(r + 1));
        q[i] = r < known ? least : (double)NAN;
    }
}
