/* batches.c - mini-batches read one step ahead: two buffers and one reader, or several.
 *
 * The reader is the I/O thread that runs use, with a queue of one. A read that fails must not end
 * that thread, because the caller may ask again: the outcome is stored here, and the job reports
 * success to the queue. Waiting for the queue also makes the outcome visible to the caller. Several
 * readers are a team of workers among which this thread divides the batch; of several failures the
 * one of the lowest row is reported.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"
#include "mem/inject.h"
#include "mem/object.h"
#include "run/io.h"

#include <fathom/io.h>
#include <fathom/op.h>

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

struct fth_batches {
    fth_mem *mem;
    fth_source base, reader; /* `reader` is what the I/O thread sees */
    int64_t rows;            /* at most, per batch */
    fth_tensor *buffer[2];
    int into; /* index of the buffer that is read into next; the other is the caller's */
    fth__io *io;
    fth_team *team; /* reads parts, with the I/O thread; NULL: that reads alone */
    int threads;

    /* the batch asked for: written before the job is posted, read by the reader */
    bool asked, taken;
    int64_t ticket, number, n, *index;
    fth_site asked_at;

    /* how it went: written by the readers, read after waiting for the ticket */
    pthread_mutex_t lock;
    int64_t failed; /* row of the batch that a part begins with; INT64_MAX: none */
    fth_status status;
    fth_err err;
};

/* ---- the reader ---- */

static int64_t row_bytes(const fth_batches *b)
{
    FTH_ASSERT(b->rows > 0);
    return (int64_t)fth_tensor_bytes(b->buffer[0]) / b->rows;
}

static void copy_rows(const fth_batches *b, const int64_t *index, int64_t n, char *dst)
{
    const size_t row = (size_t)row_bytes(b);
    const char *from = b->base.data;
    for (int64_t i = 0; i < n; i++, dst += row) {
        FTH_ASSERT(index[i] >= 0 && index[i] < b->base.size[0]); /* check_ask refused others */
        memcpy(dst, from + (size_t)index[i] * row, row);
    }
}

static fth_status read_rows(const fth_batches *b, const int64_t *index, int64_t n, void *dst,
                            fth_err *err)
{
    const fth_source *s = &b->base;
    if (s->data) {
        copy_rows(b, index, n, dst);
        return FTH_OK;
    }
    if (s->read_rows) return s->read_rows(s->self, index, n, dst, err);
    return fth__rows_by_read(s->kind, s->read, s->self, s->dtype, s->n_axes, s->size, index, n, dst,
                             err);
}

static void note_failure(fth_batches *b, int64_t row, fth_status s, fth_err *err)
{
    FTH_ASSERT(s != FTH_OK && row >= 0 && row < b->n);
    fth_err_note(err, FTH_HERE, s, "reading batch %" PRId64 " ahead", b->number);
    fth_err_origin(err, b->asked_at);
    pthread_mutex_lock(&b->lock);
    if (row < b->failed) {
        b->failed = row;
        b->status = s;
        b->err = *err;
    }
    pthread_mutex_unlock(&b->lock);
}

enum {
    PARTS = 4,              /* per reader, so that none waits long for the slowest; not tuned */
    PART_BYTES = 256 << 10, /* reading less takes no longer than waking a thread; not tuned */
};

typedef struct reading {
    fth_batches *b;
    int64_t n, parts; /* rows of the batch */
    char *dst;
} reading;

static void read_part(void *arg, int64_t i, int worker)
{
    const reading *r = arg;
    fth_batches *b = r->b;
    const int64_t row = row_bytes(b), from = r->n * i / r->parts,
                  n = r->n * (i + 1) / r->parts - from;
    char *const dst = r->dst + from * row;
    fth_err err = {0};
    (void)worker;
    FTH_ASSERT(i >= 0 && i < r->parts && n > 0 && from + n <= b->rows);
    const fth_status s = read_rows(b, b->index + from, n, dst, &err);
    if (s == FTH_OK)
        fth__bools_settle(b->base.dtype, n * row, dst);
    else
        note_failure(b, from, s, &err);
}

/* All rows of the batch, as the I/O thread asks for it. */
static fth_status read_batch(void *self, const int64_t *lo, const int64_t *n, void *dst,
                             fth_err *err)
{
    fth_batches *b = self;
    const int64_t most = b->team ? (int64_t)PARTS * b->threads : 1,
                  worth = n[0] * n[1] / PART_BYTES + 1, parts = worth < most ? worth : most;
    reading r = {.b = b, .n = n[0], .parts = parts < n[0] ? parts : n[0], .dst = dst};
    FTH_ASSERT(n[0] == b->n && n[0] <= b->rows && n[1] == row_bytes(b));
    (void)lo;
    (void)err;
    fth_team_run(b->team, r.parts, read_part, &r);
    return FTH_OK;
}

/* ---- making and ending ---- */

/* The sizes of a full batch; FTH_E_USAGE when there can be none. */
static fth_status batch_size(const fth_source *base, int64_t rows, int64_t *size, fth_err *err)
{
    if (!base || !base->read || base->n_axes < 1 || base->n_axes > FTH_MAX_AXES)
        return FTH_FAIL(err, FTH_E_USAGE, "batches are rows of a source; this one has none");
    if (rows < 1)
        return FTH_FAIL(err, FTH_E_USAGE, "batches of %" PRId64 " rows were asked for", rows);
    memcpy(size, base->size, sizeof base->size);
    size[0] = rows;
    return FTH_OK;
}

uint64_t fth_batches_bytes(const fth_mem *mem, const fth_source *base, int64_t rows)
{
    int64_t size[FTH_MAX_AXES];
    uint64_t bytes, index, twice, sum;
    if (!mem || batch_size(base, rows, size, NULL) != FTH_OK ||
        fth__shape_check(base->dtype, base->n_axes, size, NULL, &bytes, NULL) != FTH_OK ||
        !fth__mul_u64((uint64_t)rows, sizeof(int64_t), &index))
        return UINT64_MAX;
    bytes = fth__mem_cost(mem, FTH_MEM_POOL, bytes); /* as tensors do */
    index = fth__mem_cost(mem, FTH_MEM_ANY, index);
    return fth__mul_u64(bytes, 2, &twice) && fth__add_u64(twice, index, &sum) ? sum : UINT64_MAX;
}

static fth_status take_memory(fth_batches *b, fth_site site, const int64_t *size, fth_err *err)
{
    for (int i = 0; i < 2; i++)
        FTH_TRY(fth_tensor_create_(&b->buffer[i], b->mem, site, i ? "batch ahead" : "batch",
                                   b->base.dtype, b->base.n_axes, size, err));
    uint64_t bytes;
    if (!fth__mul_u64((uint64_t)b->rows, sizeof(int64_t), &bytes)) bytes = UINT64_MAX;
    void *index;
    FTH_TRY(fth_mem_take_(b->mem, site, FTH_MEM_ANY, bytes, "batch rows", &index, err));
    b->index = index;
    return FTH_OK;
}

fth_status fth_batches_create_(fth_batches **out, fth_mem *mem, fth_site site,
                               const fth_source *base, int64_t rows, fth_err *err)
{
    *out = NULL;
    int64_t size[FTH_MAX_AXES];
    FTH_TRY(batch_size(base, rows, size, err));
    fth_batches *b = fth__heap_alloc(mem, sizeof *b);
    if (!b) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for batches of %s", base->kind);
    b->mem = mem;
    b->base = *base;
    b->rows = rows;
    pthread_mutex_init(&b->lock, NULL);
    fth_status s = take_memory(b, site, size, err);
    if (s == FTH_OK) {
        const int64_t row = row_bytes(b);
        b->reader = (fth_source){.kind = "batches",
                                 .self = b,
                                 .dtype = FTH_U8,
                                 .n_axes = 2,
                                 .size = {rows, row},
                                 .read = read_batch};
    }
    if (s == FTH_OK) s = fth__io_create(&b->io, mem, NULL, NULL, 1, err);
    if (s != FTH_OK)
        fth_batches_destroy(b);
    else
        *out = b;
    return s;
}

fth_status fth_batches_share(fth_batches *b, int threads, fth_err *err)
{
    fth_team *team = NULL;
    FTH_TRY(fth__mem_check_process(b->mem, err));
    if (threads < 1 || b->asked)
        return FTH_FAIL(err, FTH_E_USAGE, "%d threads were to read batches%s", threads,
                        b->asked ? " while one is asked for" : "");
    if (threads > 1 && (b->base.data || b->base.concurrent))
        FTH_TRY(fth_team_create(&team, b->mem, threads, err));
    fth_team_destroy(b->team);
    b->team = team;
    b->threads = threads;
    return FTH_OK;
}

void fth_batches_destroy(fth_batches *b)
{
    if (!b || fth__mem_check_process(b->mem, NULL) != FTH_OK) return;
    fth__io_destroy(b->io); /* first: it writes to the buffers, with the team */
    fth_team_destroy(b->team);
    for (int i = 0; i < 2; i++) fth_tensor_release(b->buffer[i]);
    (void)fth_mem_release(b->mem, b->index, NULL);
    pthread_mutex_destroy(&b->lock);
    fth__heap_free(b->mem, b);
}

/* ---- asking and taking ---- */

static fth_status check_ask(const fth_batches *b, const int64_t *index, int64_t n, fth_err *err)
{
    if (b->asked) {
        const fth_status s = FTH_FAIL(
            err, FTH_E_USAGE, "batch %" PRId64 " was asked for at %s:%d and is not taken yet",
            b->number, b->asked_at.file, b->asked_at.line);
        fth_err_hint(err, "take each batch before the one after it is asked for");
        return s;
    }
    if (n < 0 || n > b->rows || (n > 0 && !index))
        return FTH_FAIL(err, FTH_E_USAGE,
                        "%" PRId64 " rows were asked for; these batches have room for %" PRId64, n,
                        b->rows);
    for (int64_t i = 0; i < n; i++)
        if (index[i] < 0 || index[i] >= b->base.size[0])
            return FTH_FAIL(err, FTH_E_INDEX_RANGE,
                            "place %" PRId64 " of the batch asks for row %" PRId64
                            " of a %s source with %" PRId64 " rows",
                            i, index[i], b->base.kind, b->base.size[0]);
    return FTH_OK;
}

fth_status fth_batches_ask_(fth_batches *b, fth_site site, const int64_t *index, int64_t n,
                            fth_err *err)
{
    FTH_TRY(fth__mem_check_process(b->mem, err));
    const fth_status s = check_ask(b, index, n, err);
    if (s != FTH_OK) {
        fth_err_origin(err, site);
        return s;
    }
    if (n > 0) memcpy(b->index, index, (size_t)n * sizeof *index);
    b->asked = true;
    b->asked_at = site;
    b->n = n;
    b->number++;
    b->status = FTH_OK;
    b->failed = INT64_MAX;
    fth_err_clear(&b->err);
    const fth__io_job job = {.source = &b->reader,
                             .n = {n, b->reader.size[1]},
                             .data = fth_tensor_data(b->buffer[b->into])};
    b->ticket = fth__io_post(b->io, &job);
    return FTH_OK;
}

fth_status fth_batches_take(fth_batches *b, fth_source *out, fth_err *err)
{
    memset(out, 0, sizeof *out);
    FTH_TRY(fth__mem_check_process(b->mem, err));
    if (!b->asked) return FTH_FAIL(err, FTH_E_USAGE, "a batch was to be taken, none was asked for");
    FTH_TRY(fth__io_wait(b->io, b->ticket, err));
    b->asked = false;
    if (b->status != FTH_OK) {
        if (err && err->status == FTH_OK) *err = b->err;
        return b->status;
    }
    *out = fth_tensor_source(b->buffer[b->into]);
    out->kind = "batch";
    out->size[0] = b->n;
    b->into = 1 - b->into;
    b->taken = true;
    return FTH_OK;
}

fth_tensor *fth_batches_tensor(const fth_batches *b)
{
    return b->taken ? b->buffer[1 - b->into] : NULL;
}
