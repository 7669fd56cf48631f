/* scratch.c - slots of one unlinked file, written and read whole by the I/O thread. */
#include "run/scratch.h"

#include "base/assert.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

typedef struct slot {
    fth__runner *r;
    uint64_t offset;
} slot;

static uint64_t slot_offset(const fth_plan *p, int number)
{
    uint64_t offset = 0;
    for (int64_t i = 0; i < p->n_items; i++)
        if (p->item[i].kind == FTH__SPILL && p->item[i].unit < number)
            offset += (p->buf[p->item[i].in[0]].bytes + PAGE - 1) / PAGE * PAGE;
    return offset;
}

fth_status fth__scratch_open(fth__runner *r)
{
    const char *dir = r->p->ctx->scratch_dir;
    r->scratch = -1;
    if (r->p->spilled == 0) return FTH_OK;
    const int why = fth__disk_open_nameless(NULL, dir, &r->scratch);
    if (!why) return FTH_OK;
    return FTH_FAIL(r->err, FTH_E_SCRATCH, "no scratch file can be made in '%s': %s", dir,
                    strerror(why));
}

void fth__scratch_close(fth__runner *r)
{
    if (r->scratch >= 0) close(r->scratch);
    r->scratch = -1;
}

static fth_status write_slot(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    const slot *s = self;
    const uint64_t offset = s->offset + (uint64_t)lo[0], bytes = (uint64_t)n[0];
    uint64_t done;
    const int why = fth__disk_write(s->r->p->mem, s->r->scratch, offset, bytes, src, &done);
    if (!why) return FTH_OK;
    return FTH_FAIL(err, FTH_E_SCRATCH, "writing %llu bytes to the scratch file: %s",
                    (unsigned long long)bytes, strerror(why));
}

static fth_status read_slot(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    const slot *s = self;
    const uint64_t offset = s->offset + (uint64_t)lo[0], bytes = (uint64_t)n[0];
    uint64_t done;
    const int why = fth__disk_read(s->r->scratch, offset, bytes, dst, &done);
    if (!why && done == bytes) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_READ, "reading the scratch file: %s",
                    why ? strerror(why) : "it ends too early");
}

static fth_status transfer(fth__runner *r, const fth__buf *b, int number, bool out)
{
    FTH_ASSERT(r->scratch >= 0 && number >= 0 && number < r->p->spilled);
    FTH_ASSERT(b->owner_loop < 0 && !b->double_buffered); /* whole blocks alone are spilled */
    slot s = {.r = r, .offset = slot_offset(r->p, number)};
    const fth_source source = {
        .kind = "scratch", .self = &s, .dtype = FTH_U8, .n_axes = 1, .read = read_slot};
    const fth_sink sink = {
        .kind = "scratch", .self = &s, .dtype = FTH_U8, .n_axes = 1, .write = write_slot};
    fth__io_job job = {.source = out ? NULL : &source,
                       .sink = out ? &sink : NULL,
                       .n = {(int64_t)b->bytes},
                       .data = r->arena + b->offset};
    fth__job_name(r, b, &job);
    return fth__io_wait(r->io, fth__run_post(r, &job), r->err);
}

fth_status fth__scratch_write(fth__runner *r, const fth__buf *b, int number)
{
    return transfer(r, b, number, true);
}

fth_status fth__scratch_read(fth__runner *r, const fth__buf *b, int number)
{
    return transfer(r, b, number, false);
}
