/* little.c - see little.h. A timeline shows reads and writes of the thread for files, so with one
 * everything goes there. */
#include "run/little.h"

#include "array/tensor.h"
#include "base/assert.h"
#include "run/device.h"

static const uint64_t LITTLE = 64 << 10; /* drivers copy that much without waiting */

static uint64_t bytes_of(const fth__buf *b)
{
    return (uint64_t)fth_desc_count(&b->desc) * (uint64_t)b->element;
}

static bool is_little(const fth__runner *r, const fth__buf *b)
{
    return r->dev && !r->p->ctx->trace && bytes_of(b) <= LITTLE;
}

static void *data_of(const fth__runner *r, const fth__buf *b)
{
    fth__range all[FTH_MAX_AXES];
    fth_tile t;
    for (int d = 0; d < b->desc.n_axes; d++) all[d] = (fth__range){0, b->desc.size[d]};
    fth__tile_of(r, b, all, 0, &t);
    return t.data;
}

bool fth__little_source(const fth__runner *r, const fth__buf *b)
{
    return is_little(r, b) && r->p->graph->input[b->input].source.data;
}

bool fth__little_sink(const fth__runner *r, const fth__buf *b, int output)
{
    if (!is_little(r, b)) return false;
    for (int o = output; o >= 0; o = r->p->out_next[o])
        if (!r->sinks[o].data) return false;
    return true;
}

fth_status fth__little_read(fth__runner *r, const fth__buf *b)
{
    const uint64_t bytes = bytes_of(b);
    FTH_ASSERT(bytes <= LITTLE && b->owner_loop < 0);
    if (bytes == 0) return FTH_OK;
    r->read_bytes += bytes;
    return fth__device_copy(r, data_of(r, b), r->p->graph->input[b->input].source.data, bytes);
}

fth_status fth__little_write(fth__runner *r, const fth__buf *b, int output)
{
    const uint64_t bytes = bytes_of(b);
    for (int o = output; bytes > 0 && o >= 0; o = r->p->out_next[o]) {
        fth_tensor *t = fth__sink_tensor(&r->sinks[o]);
        if (t) (void)fth_tensor_data(t); /* the host's copy is the newer one now */
        r->written_bytes += bytes;
        FTH_TRY(fth__device_copy(r, r->sinks[o].data, data_of(r, b), bytes));
    }
    return FTH_OK;
}
