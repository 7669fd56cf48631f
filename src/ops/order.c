/* order.c - the sort behind the plain loops that put elements in order. */
#include "ops/order.h"

#include "base/checked.h"

const fth__keyed *fth__order_sort(fth__keyed *a, fth__keyed *b, int64_t n)
{
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * run) {
            const int64_t mid = fth__min_i64(lo + run, n), hi = fth__min_i64(lo + 2 * run, n);
            int64_t i = lo, k = mid;
            for (int64_t to = lo; to < hi; to++) {
                const bool left = i < mid && (k >= hi || a[i].key <= a[k].key);
                b[to] = left ? a[i++] : a[k++];
            }
        }
        fth__keyed *other = a;
        a = b;
        b = other;
    }
    return a;
}
