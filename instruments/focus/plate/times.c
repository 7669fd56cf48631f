/* times.c - see times.h.
 *
 * A jump of the clock is an interval over twice the median and over ten times the median deviation
 * from it: a slow round of the stage is neither.
 */
#include "times.h"

#include "../linear/median.h"

#include <math.h>

/* Intervals between known times, whatever lies between them. */
static int64_t intervals(const double *seconds, int64_t n, double *out)
{
    int64_t count = 0, last = -1;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(seconds[i])) continue;
        if (last >= 0) out[count++] = seconds[i] - seconds[last];
        last = i;
    }
    return count;
}

static void find_jumps(double *seconds, int64_t n, double *work, bool fix, fo_times_report *r)
{
    const int64_t count = intervals(seconds, n, work);
    if (count < 2) return;
    for (int64_t i = 0; i < count; i++) work[i] = fabs(work[i] - r->cycle_s);
    const double deviation = fo_median(work, count), cycle = r->cycle_s;
    double moved = 0, before = (double)NAN; /* `before` is the last known time as the file has it */
    for (int64_t i = 0; i < n; i++) {
        if (isnan(seconds[i])) continue;
        const double found = seconds[i], interval = found - before;
        const bool jumped =
            i > 0 && !isnan(seconds[i - 1]) && interval > 2 * cycle && interval > 10 * deviation;
        if (jumped) {
            if (r->first_jump < 0) r->first_jump = i;
            r->jumps++;
            moved += interval - cycle;
        }
        if (fix) seconds[i] = found - moved;
        before = found;
    }
}

/* Between two known times. */
static double between(const double *seconds, int64_t i, int64_t n)
{
    int64_t next = i + 1;
    while (next < n && isnan(seconds[next])) next++;
    return seconds[i - 1] + (seconds[next] - seconds[i - 1]) / (double)(next - i + 1);
}

static void impute(double *seconds, int64_t n, bool compat, fo_times_report *r)
{
    int64_t first = 0, last = n - 1;
    while (first < n && isnan(seconds[first])) first++;
    if (first == n) {
        for (int64_t i = 0; i < n; i++) seconds[i] = (double)i * FO_DEFAULT_CYCLE_S;
        r->imputed = n;
        return;
    }
    while (isnan(seconds[last])) last--;
    r->imputed = first + (n - 1 - last);
    for (int64_t i = 0; i < first; i++)
        seconds[i] = seconds[first] - (double)(first - i) * r->cycle_s;
    for (int64_t i = last + 1; i < n; i++)
        seconds[i] = seconds[last] + (double)(i - last) * r->cycle_s;
    for (int64_t i = first; i < last; i++) {
        if (!isnan(seconds[i])) continue;
        r->imputed++;
        seconds[i] = compat ? seconds[0] + (double)i * r->cycle_s : between(seconds, i, n);
    }
}

fo_times_report fo_times_complete(double *seconds, int64_t n, bool compat, bool fix_jumps,
                                  double *work)
{
    fo_times_report r = {.cycle_s = FO_DEFAULT_CYCLE_S, .first_jump = -1};
    const int64_t count = intervals(seconds, n, work);
    if (count > 0) r.cycle_s = fo_median(work, count);
    find_jumps(seconds, n, work, fix_jumps, &r);
    impute(seconds, n, compat, &r);
    for (int64_t i = 1; i < n; i++)
        if (seconds[i] < seconds[i - 1]) seconds[i] = seconds[i - 1];
    return r;
}
