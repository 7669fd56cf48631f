/* staging.c - how many threads the sources and sinks of a plan keep busy, and with which buffers.
 *
 * Threads are started when there is work for them; on a device each brings pinned memory, which is
 * taken beforehand, so plans that copy little have one.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "plan/plan.h"

enum {
    WORTH_BYTES = 8 << 20,  /* copied in all before a second thread is worth its buffers: less goes
                               through one buffer of the first at once; */
    LITTLE = 64 << 10,      /* or, without them, its start */
    PART_BYTES = 1 << 20,   /* of such a buffer: two for each of many threads stay small, */
    LARGEST_PART = 64 << 20 /* unless a source is decoded in larger parts; still bounded */
};

typedef struct sums {
    uint64_t shared; /* bytes that several threads may move */
    uint64_t part;   /* the largest that is decoded or encoded at once */
} sums;

static void add(sums *s, fth_dtype dtype, int n_axes, const int64_t *size, const int64_t *part)
{
    uint64_t bytes = (uint64_t)fth_dtype_size(dtype), grain = 0;
    for (int d = n_axes - 1; d >= 0; d--) {
        if (part[d] > 1) grain = bytes * (uint64_t)fth__min_i64(part[d], size[d]);
        bytes *= (uint64_t)size[d];
    }
    s->shared += bytes;
    s->part = fth__max_u64(s->part, grain);
}

static bool is_wanted(const fth_plan *p, uint32_t value)
{
    for (int i = 0; i < p->n_outs; i++)
        if (p->out_value[i] == value) return true;
    return p->is_read[value];
}

fth__staging fth__plan_staging(const fth_plan *p, const fth_sink *sinks)
{
    sums s = {0, PART_BYTES};
    for (int64_t i = 0; i < p->graph->n_inputs; i++) {
        const fth__input *in = &p->graph->input[i];
        const fth_source *from = &in->source;
        if (fth__plan_in_place(p, in) || !is_wanted(p, in->value)) continue;
        if (from->concurrent || !from->read)
            add(&s, from->dtype, from->n_axes, from->size, from->part);
    }
    for (int i = 0; sinks && i < p->n_outs; i++)
        if ((sinks[i].concurrent || !sinks[i].write) && !p->out_direct[i])
            add(&s, sinks[i].dtype, sinks[i].n_axes, sinks[i].size, sinks[i].part);
    const uint64_t worth = p->device_memory ? WORTH_BYTES : LITTLE;
    fth__staging out = {.threads = s.shared >= worth ? p->io_threads : 1};
    FTH_ASSERT(out.threads >= 1);
    out.part_bytes = fth__min_u64(s.part, LARGEST_PART);
    if (p->device_memory)
        out.bytes = fth__max_u64(FTH_STAGING_BYTES, 2 * out.part_bytes) +
                    (uint64_t)(out.threads - 1) * 2 * out.part_bytes;
    return out;
}
