/* pieces.c - where a job is cut. */
#include "run/pieces.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"

static int n_axes(const fth__io_job *j)
{
    return j->source ? j->source->n_axes : j->sink->n_axes;
}

static uint64_t element(const fth__io_job *j)
{
    return (uint64_t)fth_dtype_size(j->source ? j->source->dtype : j->sink->dtype);
}

uint64_t fth__job_bytes(const fth__io_job *j)
{
    return element(j) * (uint64_t)fth__rect_count(n_axes(j), j->n);
}

bool fth__job_is_shared(const fth__io_job *j)
{
    /* memory without functions of its own is copied */
    return j->source ? j->source->concurrent || !j->source->read
                     : j->sink->concurrent || !j->sink->write;
}

/* `grain`: where parts begin along each axis; NULL: anywhere. */
static fth__pieces cut(const fth__io_job *j, const int64_t *grain, uint64_t aim)
{
    fth__pieces p = {.n_axes = n_axes(j), .cut = -1, .count = 1, .inner = element(j)};
    p.first = p.step = p.across = 1;
    if (p.n_axes == 0) return p;
    int last = p.n_axes - 1; /* beyond it cuts would go through grains */
    for (int d = p.n_axes - 1; grain && d >= 0; d--)
        if (grain[d] > 1 && j->n[d] > 1) last = d;
    for (p.cut = p.n_axes - 1; p.cut > 0; p.cut--) {
        if (p.cut <= last && p.inner * (uint64_t)j->n[p.cut] > aim) break;
        p.inner *= (uint64_t)j->n[p.cut];
    }
    const int64_t n = j->n[p.cut], g = grain && grain[p.cut] > 1 ? grain[p.cut] : 1;
    p.step = p.inner > 0 ? (int64_t)fth__min_u64(aim / p.inner, (uint64_t)n) : n;
    p.step = fth__max_i64(p.step / g, 1) * g;
    FTH_ASSERT(p.step >= 1 && p.step % g == 0);
    p.first = fth__min_i64(p.step - j->lo[p.cut] % g, n);
    p.across = n > p.first ? 1 + fth__ceil_div_i64(n - p.first, p.step) : 1;
    p.count = p.across;
    for (int d = 0; d < p.cut; d++) p.count *= j->n[d];
    return p;
}

fth__pieces fth__job_cut(const fth__io_job *j, uint64_t aim, uint64_t most)
{
    const fth__pieces p = cut(j, j->source ? j->source->part : j->sink->part, aim);
    const int64_t longest = fth__max_i64(p.first, p.across > 1 ? p.step : 0);
    if (most == 0 || p.inner * (uint64_t)longest <= most) return p;
    return cut(j, NULL, fth__min_u64(aim, most));
}

fth__piece fth__job_piece(const fth__pieces *p, const fth__io_job *j, int64_t i)
{
    FTH_ASSERT(i >= 0 && i < p->count);
    fth__piece out = {.bytes = p->inner};
    for (int d = 0; d < FTH_MAX_AXES; d++) {
        out.lo[d] = j->lo[d];
        out.n[d] = d < p->cut ? 1 : j->n[d];
    }
    if (p->cut < 0) return out;
    int64_t row = i / p->across;
    const int64_t k = i % p->across, from = k == 0 ? 0 : p->first + (k - 1) * p->step;
    out.lo[p->cut] += from;
    out.n[p->cut] = fth__min_i64(k == 0 ? p->first : p->step, j->n[p->cut] - from);
    out.offset = p->inner * (uint64_t)(row * j->n[p->cut] + from);
    out.bytes = p->inner * (uint64_t)out.n[p->cut];
    for (int d = p->cut - 1; d >= 0; d--) {
        out.lo[d] += row % j->n[d];
        row /= j->n[d];
    }
    FTH_ASSERT(row == 0 && out.n[p->cut] > 0);
    FTH_ASSERT(out.offset + out.bytes <= fth__job_bytes(j));
    return out;
}
