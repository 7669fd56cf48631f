/* region.c - which part of which axis an iteration of the loops touches.
 *
 * Everything follows from two rules. A loop's chunk owns a part of every axis that follows the
 * loop, and the parts of all chunks cover the axis once. A step makes its own part, widened by
 * the halo its readers need; what it reads follows from the operation's relations.
 */
#include "array/rows.h"
#include "base/assert.h"
#include "base/checked.h"
#include "plan/plan.h"

int fth__sweep_path(const fth_plan *p, int loop, int path[FTH__MAX_DEPTH])
{
    int depth = 0, up[FTH__MAX_DEPTH];
    for (int l = loop; l >= 0; l = p->loop[l].parent) {
        FTH_ASSERT(depth < FTH__MAX_DEPTH && l < p->n_loops && p->loop[l].parent < l);
        up[depth++] = l;
    }
    for (int i = 0; i < depth; i++) path[i] = up[depth - 1 - i];
    FTH_ASSERT(depth == 0 || p->loop[loop].depth == depth - 1);
    return depth;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t clip(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Index on an axis where the driver's index `at` falls. */
static int64_t map_index(const fth__map *m, int64_t size, int64_t at)
{
    FTH_ASSERT(m->in && m->num > 0 && m->den > 0);
    const int64_t i = floor_div(at * m->num, m->den) + m->off;
    return m->row_ptr ? m->row_ptr[clip(i, 0, m->rows)] : clip(i, 0, size);
}

fth__range fth__sweep_part(const fth__sweep *l, fth_axis_id axis, int64_t size, int64_t k)
{
    const fth__map *m = &l->map[axis];
    const int64_t a = k * l->chunk, b = fth__min_i64(a + l->chunk, l->size);
    fth__range r;
    FTH_ASSERT(m->in && k >= 0 && k < l->n_chunks);
    r.lo = k == 0 ? 0 : map_index(m, size, a);
    r.hi = k == l->n_chunks - 1 ? size : map_index(m, size, b);
    FTH_ASSERT(r.lo >= 0 && r.lo <= r.hi && r.hi <= size);
    return r;
}

fth__range fth__relation_need(const fth_relation *r, fth__range out, int64_t in_size)
{
    switch (r->along) {
    case FTH_SAME:
    case FTH_CARRY: FTH_ASSERT(out.lo >= 0 && out.lo <= out.hi && out.hi <= in_size); return out;
    case FTH_HALO: {
        FTH_ASSERT(r->mul >= 1 && r->div >= 1);
        fth__range in = {floor_div(out.lo * r->mul, r->div) - r->lo,
                         -floor_div(-(out.hi * r->mul), r->div) + r->hi};
        in.lo = clip(in.lo, 0, in_size);
        in.hi = clip(in.hi, in.lo, in_size);
        if (out.lo >= out.hi) in.hi = in.lo; /* nothing wanted, nothing needed */
        return in;
    }
    case FTH_SPREAD:
        if (out.lo >= out.hi) return (fth__range){0, 0};
        return (fth__range){fth__row_of(r->row_ptr, r->rows, out.lo),
                            fth__row_of(r->row_ptr, r->rows, out.hi - 1) + 1};
    case FTH_COLLECT:
        FTH_ASSERT(out.lo >= 0 && out.lo <= out.hi && out.hi <= r->rows);
        return (fth__range){r->row_ptr[out.lo], r->row_ptr[out.hi]};
    case FTH_ACCUMULATE:
    case FTH_WHOLE: break;
    }
    return (fth__range){0, in_size};
}

void fth__item_region(const fth_plan *p, const fth__item *it, const int64_t *iteration,
                      fth__range *out)
{
    FTH_ASSERT(it->kind == FTH__STEP && it->unit >= 0 && it->unit < p->n_units);
    const fth_desc *d = &p->unit[it->unit].node->out[0];
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, it->loop, path);
    for (int i = 0; i < d->n_axes; i++) out[i] = (fth__range){0, d->size[i]};
    for (int i = 0; i < depth; i++) {
        const int dim = it->sdim[i];
        if (dim < 0) continue;
        FTH_ASSERT(dim < d->n_axes && it->halo_lo[i] >= 0 && it->halo_hi[i] >= 0);
        fth__range r = fth__sweep_part(&p->loop[path[i]], d->axis[dim], d->size[dim], iteration[i]);
        r.lo = fth__max_i64(r.lo - it->halo_lo[i], 0);
        r.hi = fth__min_i64(r.hi + it->halo_hi[i], d->size[dim]);
        out[dim] = r;
    }
}

void fth__item_need(const fth_plan *p, const fth__item *it, const int64_t *iteration,
                    const fth__range *out, int k, fth__range *in)
{
    const fth__unit *u = &p->unit[it->unit];
    const fth_desc *d = &u->node->in[k];
    int path[FTH__MAX_DEPTH];
    const int depth = fth__sweep_path(p, it->loop, path);
    FTH_ASSERT(k < u->node->n_in && it->acc < depth);
    for (int i = 0; i < d->n_axes; i++) {
        const fth_relation *r = &u->rel[k][i];
        in[i] = (fth__range){0, d->size[i]};
        /* an operand may be summed over axes that do not follow the loop as well: those are whole
         */
        const bool summed =
            r->along == FTH_ACCUMULATE && it->acc >= 0 && p->loop[path[it->acc]].map[d->axis[i]].in;
        if (summed)
            in[i] = fth__sweep_part(&p->loop[path[it->acc]], d->axis[i], d->size[i],
                                    iteration[it->acc]);
        else if (r->out_dim >= 0)
            in[i] = fth__relation_need(r, out[r->out_dim], d->size[i]);
    }
}

int fth__buf_storage(const fth_plan *p, int buf)
{
    FTH_ASSERT(buf < p->n_bufs);
    while (buf >= 0 && p->buf[buf].kind == FTH__BUF_VIEW) {
        FTH_ASSERT(p->buf[buf].base >= 0 && p->buf[buf].base < buf); /* so this ends */
        buf = p->buf[buf].base;
    }
    return buf;
}

void fth__buf_region(const fth_plan *p, const fth__buf *b, const int64_t *iteration,
                     fth__range *out)
{
    for (int i = 0; i < b->desc.n_axes; i++) out[i] = (fth__range){0, b->desc.size[i]};
    for (int i = 0; i < b->n_span; i++) {
        const fth__span *s = &b->span[i];
        const fth__sweep *l = &p->loop[s->loop];
        FTH_ASSERT(s->dim >= 0 && s->dim < b->desc.n_axes && s->lo >= 0 && s->hi >= 0);
        fth__range r =
            fth__sweep_part(l, b->desc.axis[s->dim], b->desc.size[s->dim], iteration[l->depth]);
        r.lo = fth__max_i64(r.lo - s->lo, 0);
        r.hi = fth__min_i64(r.hi + s->hi, b->desc.size[s->dim]);
        out[s->dim] = r;
    }
}

static int add_sample(const fth__sweep *l, int64_t k, int64_t *list, int n)
{
    FTH_ASSERT(n >= 0 && n <= FTH__SAMPLES);
    if (k < 0 || k >= l->n_chunks || n == FTH__SAMPLES) return n;
    for (int i = 0; i < n; i++)
        if (list[i] == k) return n;
    list[n] = k;
    return n + 1;
}

/* Chunk in which index `at` of an axis lies, as if the axis went on at both ends. */
static int64_t chunk_at(const fth__sweep *l, fth_axis_id axis, int64_t at)
{
    const fth__map *m = &l->map[axis];
    FTH_ASSERT(m->in && m->num > 0 && l->chunk > 0);
    return floor_div(floor_div((at - m->off) * m->den, m->num), l->chunk);
}

int fth__sweep_ends(const fth__sweep *l, int64_t *list)
{
    const int64_t n = l->n_chunks;
    int count = 0;
    if (n <= 8) {
        for (int64_t i = 0; i < n; i++) list[count++] = i;
        return count;
    }
    const int64_t ends[8] = {0, 1, 2, n / 2, n / 2 + 1, n - 3, n - 2, n - 1};
    for (int i = 0; i < 8; i++) count = add_sample(l, ends[i], list, count);
    return count;
}

int fth__sweep_add_place(const fth__sweep *l, fth_axis_id axis, int64_t at, int64_t *list,
                         int count)
{
    if (l->map[axis].row_ptr) return count;
    const int64_t k = chunk_at(l, axis, at);
    for (int64_t d = -2; d <= 2; d++) count = add_sample(l, k + d, list, count);
    return count;
}

int fth__sweep_add_axis(const fth_plan *p, const fth__sweep *l, fth_axis_id axis, int64_t *list,
                        int count)
{
    const fth__map *m = &l->map[axis];
    const int64_t size = p->graph->axis[axis]->size;
    if (!m->in || axis == l->axis) return count;
    if (m->row_ptr) return add_sample(l, m->heavy, list, count);
    count = fth__sweep_add_place(l, axis, 0, list, count);
    count = fth__sweep_add_place(l, axis, size, list, count);
    return add_sample(l, (chunk_at(l, axis, 0) + chunk_at(l, axis, size)) / 2, list, count);
}

bool fth__sweep_is_even(const fth_plan *p, const fth__sweep *l)
{
    for (int64_t a = 0; a < p->graph->n_axes; a++) {
        const fth__map *m = &l->map[a];
        if (!m->in || a == l->axis) continue;
        if (m->row_ptr || m->off != 0) return false;
        if (chunk_at(l, (fth_axis_id)a, p->graph->axis[a]->size - 1) != l->n_chunks - 1)
            return false;
    }
    return true;
}

int fth__sweep_samples(const fth_plan *p, const fth__sweep *l, int64_t *list)
{
    int count = fth__sweep_ends(l, list);
    for (int64_t a = 0; a < p->graph->n_axes; a++)
        count = fth__sweep_add_axis(p, l, (fth_axis_id)a, list, count);
    return count;
}

/* Entries are not spread evenly over rows: of all chunks, remember the one with most. */
static void find_heavy(fth__sweep *l, fth_axis_id axis)
{
    fth__map *m = &l->map[axis];
    const int64_t size = m->row_ptr[m->rows];
    int64_t most = -1;
    for (int64_t k = 0; k < l->n_chunks; k++) {
        const fth__range r = fth__sweep_part(l, axis, size, k);
        if (r.hi - r.lo <= most) continue;
        most = r.hi - r.lo;
        m->heavy = k;
    }
    FTH_ASSERT(most >= 0);
}

void fth__sweep_set_chunk(fth__sweep *l, int64_t chunk)
{
    l->chunk = chunk > 0 ? chunk : 1;
    l->n_chunks = l->size > 0 ? fth__ceil_div_i64(l->size, l->chunk) : 1;
    FTH_ASSERT(l->chunk % l->grid == 0 || l->chunk >= l->size);
    FTH_ASSERT((l->n_chunks - 1) * l->chunk < fth__max_i64(l->size, 1));
    for (int64_t a = 0; l->ragged && a < l->n_map; a++)
        if (l->map[a].row_ptr) find_heavy(l, (fth_axis_id)a);
}
