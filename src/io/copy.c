/* copy.c - all of a source into a sink, piece by piece, in the order of the elements.
 *
 * A piece is a box: whole along the last axes, some rows of one axis, one index of those before it.
 * Which axis is cut follows from how much fits into the buffer, so the buffer is bounded whatever
 * the shape.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/clock.h"
#include "io/dense.h"

/* Bytes of the buffer: it stays in a core's cache, and disks gain little from more; a page is the
 * least that a tight budget gets. */
enum { MOST = 256 << 10, LEAST = 4 << 10 };

typedef struct copying {
    const fth_source *from;
    const fth_sink *to;
    char *buffer;
    int cut;      /* the axis whose rows are shared out */
    int64_t rows; /* of it, in one piece */
    fth_progress_fn *progress;
    void *user;
    double start;
} copying;

static int64_t count_of(const fth_source *s, int first, int end)
{
    int64_t n = 1;
    for (int a = first; a < end; a++) n *= s->size[a];
    return n;
}

/* The outermost axis of which `room` elements hold more than a part of one row. */
static void choose_cut(copying *c, int64_t room)
{
    const fth_source *s = c->from;
    c->cut = 0;
    while (c->cut < s->n_axes - 1 && count_of(s, c->cut + 1, s->n_axes) > room) c->cut++;
    c->rows = room / count_of(s, c->cut + 1, s->n_axes);
    FTH_ASSERT(c->cut < s->n_axes && c->rows >= 1); /* or copy_pieces would never end */
}

/* A tight budget gets a smaller buffer, not an error. */
static fth_status take_buffer(copying *c, fth_mem *mem, int64_t elements, fth_err *err)
{
    const uint64_t one = (uint64_t)fth_dtype_size(c->from->dtype), all = one * (uint64_t)elements;
    uint64_t bytes = all < MOST ? all : MOST;
    void *block = NULL;
    fth_status s;
    fth_err own = {0};
    while ((s = fth_mem_take(mem, FTH_MEM_ANY, bytes, "copy", &block, &own)) == FTH_E_BUDGET &&
           bytes / 4 >= LEAST)
        bytes /= 4;
    if (s != FTH_OK && err) *err = own;
    c->buffer = block;
    if (s == FTH_OK) choose_cut(c, (int64_t)(bytes / one));
    return s;
}

static bool goes_on(const copying *c, double fraction)
{
    if (!c->progress) return true;
    const double elapsed = fth__clock_seconds() - c->start;
    return c->progress(c->user, &(fth_progress){.fraction = fraction,
                                                .elapsed_s = elapsed,
                                                .remaining_s = elapsed * (1 - fraction) / fraction,
                                                .what = "copy"});
}

static fth_status copy_pieces(const copying *c, fth_err *err)
{
    const fth_source *s = c->from;
    const int64_t outer = count_of(s, 0, c->cut), high = s->size[c->cut];
    int64_t lo[FTH_MAX_AXES] = {0}, n[FTH_MAX_AXES];
    for (int a = 0; a < s->n_axes; a++) n[a] = a < c->cut ? 1 : s->size[a];
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t a = c->cut - 1, rest = o; a >= 0; rest /= s->size[a--])
            lo[a] = rest % s->size[a];
        for (lo[c->cut] = 0; lo[c->cut] < high; lo[c->cut] += c->rows) {
            const int64_t left = high - lo[c->cut];
            n[c->cut] = left < c->rows ? left : c->rows;
            FTH_ASSERT(n[c->cut] > 0 && lo[c->cut] + n[c->cut] <= high);
            FTH_TRY(s->read(s->self, lo, n, c->buffer, err));
            FTH_TRY(c->to->write(c->to->self, lo, n, c->buffer, err));
            const double done = (double)o + (double)(lo[c->cut] + n[c->cut]) / (double)high;
            if (!goes_on(c, done / (double)outer))
                return FTH_FAIL(err, FTH_E_CANCELLED, "a copy was cancelled at %.0f %%",
                                100 * done / (double)outer);
        }
    }
    return FTH_OK;
}

static bool same_shape(const fth_source *a, const fth_sink *b)
{
    bool same = a->dtype == b->dtype && a->n_axes == b->n_axes;
    for (int i = 0; same && i < a->n_axes; i++) same = a->size[i] == b->size[i];
    return same;
}

fth_status fth_source_copy(const fth_source *from, const fth_sink *to, fth_mem *mem,
                           fth_progress_fn *progress, void *user, fth_err *err)
{
    if (!from || !from->read || !to || !to->write)
        return FTH_FAIL(err, FTH_E_USAGE, "nothing to copy, or nowhere to put it");
    if (!same_shape(from, to)) {
        char have[200], want[200];
        return FTH_FAIL(err, FTH_E_USAGE, "the sink takes %s, the source is %s",
                        fth__shape_text(to->dtype, to->n_axes, to->size, want, sizeof want),
                        fth__shape_text(from->dtype, from->n_axes, from->size, have, sizeof have));
    }
    copying c = {
        .from = from, .to = to, .progress = progress, .user = user, .start = fth__clock_seconds()};
    const int64_t elements = count_of(from, 0, from->n_axes);
    fth_status s = FTH_OK;
    if (from->n_axes == 0) { /* one number */
        _Alignas(16) char number[16];
        FTH_TRY(from->read(from->self, NULL, NULL, number, err));
        s = to->write(to->self, NULL, NULL, number, err);
    } else if (elements > 0) {
        FTH_TRY(take_buffer(&c, mem, elements, err));
        s = copy_pieces(&c, err);
        const fth_status end = fth_mem_release(mem, c.buffer, s == FTH_OK ? err : NULL);
        if (s == FTH_OK) s = end;
    }
    return s == FTH_OK && to->commit ? to->commit(to->self, err) : s;
}
