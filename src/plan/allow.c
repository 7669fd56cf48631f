/* allow.c - room for what other libraries take while a plan runs.
 *
 * Kernels never allocate, but the libraries below some of them do, and so do those of file formats.
 * Only the rows of libraries.def that this plan really uses count.
 */
#include "base/assert.h"
#include "plan/plan.h"

/* An input may also go straight to a sink. */
static bool uses(const fth_plan *p, uint32_t value)
{
    for (int i = 0; i < p->n_outs; i++)
        if (p->out_value[i] == value) return true;
    return p->is_read[value];
}

uint64_t fth__plan_allowance_of(const fth_plan *p, const fth__allowance *a, int library)
{
    FTH_ASSERT(library >= 0 && library < FTH_LIBRARY_COUNT && FTH_LIBRARY_COUNT <= 32);
    const uint32_t bit = 1u << library;
    if (!(a->libraries & bit)) return 0;
    int threads = p->threads; /* those of a run have stacks of ours */
    if (library == FTH_LIB_FATHOM) threads += a->io_threads - 1;
    if ((a->by_files & bit) && a->io_threads > threads) threads = a->io_threads;
    return fth_library_allowance(bit, threads);
}

/* What sources and sinks take in each thread that uses them. */
static uint64_t by_threads(const fth_plan *p, const fth_sink *sinks, int threads)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < p->graph->n_inputs; i++) {
        const fth__input *in = &p->graph->input[i];
        if (uses(p, in->value))
            bytes += in->source.thread_bytes * (uint64_t)(in->source.concurrent ? threads : 1);
    }
    for (int i = 0; sinks && i < p->n_outs; i++)
        bytes += sinks[i].thread_bytes * (uint64_t)(sinks[i].concurrent ? threads : 1);
    return bytes;
}

fth__allowance fth__plan_allowance(const fth_plan *p, const fth_sink *sinks)
{
    fth__allowance a = {.libraries = 1u << FTH_LIB_FATHOM};
    for (int64_t i = 0; i < p->n_units; i++) {
        const fth__unit *u = &p->unit[i];
        uint64_t more = 0;
        if (u->kernel && u->kernel->libraries) a.libraries |= u->kernel->libraries(u->node, &more);
        more *= (uint64_t)p->threads;
        if (more > a.more) a.more = more; /* one step at a time */
    }
    for (int64_t i = 0; i < p->graph->n_inputs; i++) {
        const fth__input *in = &p->graph->input[i];
        if (!uses(p, in->value)) continue;
        a.by_files |= in->source.libraries;
        a.billed += in->source.billed_bytes;
    }
    for (int i = 0; sinks && i < p->n_outs; i++) {
        a.by_files |= sinks[i].libraries;
        a.billed += sinks[i].billed_bytes;
    }
    a.io_threads = fth__plan_staging(p, sinks).threads;
    a.libraries |= a.by_files;
    a.bytes = a.more + by_threads(p, sinks, a.io_threads);
    for (int i = 0; i < FTH_LIBRARY_COUNT; i++) a.bytes += fth__plan_allowance_of(p, &a, i);
    return a;
}

void fth__plan_allowance_add(const fth_plan *p, fth__text *t)
{
    const char *comma = "";
    char size[24];
    for (int i = 0; i < FTH_LIBRARY_COUNT; i++) {
        if (!(p->allow.libraries & (1u << i))) continue;
        const uint64_t bytes = fth__plan_allowance_of(p, &p->allow, i);
        fth__text_add(t, "%s%s %s", comma, fth_library_get_info((fth_library)i)->name,
                      fth_mem_format_size(bytes, size, sizeof size));
        comma = ", ";
    }
    if (p->allow.more > 0)
        fth__text_add(t, ", large calls %s", fth_mem_format_size(p->allow.more, size, sizeof size));
}
