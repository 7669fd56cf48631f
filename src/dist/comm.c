/* comm.c - see comm.h: what is the same for every backend. */
#include "dist/comm.h"

#include "base/clock.h"
#include "base/str.h"

#include <string.h>

int fth_ranks_rank(const fth_ranks *ranks)
{
    return ranks ? ((const fth__comm *)(const void *)ranks)->rank : 0;
}

int fth_ranks_count(const fth_ranks *ranks)
{
    return ranks ? ((const fth__comm *)(const void *)ranks)->size : 1;
}

int fth_ranks_local(const fth_ranks *ranks)
{
    const fth__comm *c = (const fth__comm *)(const void *)ranks;
    return !c ? 1 : c->local > 0 ? c->local : c->size;
}

int fth_ranks_core_share(const fth_ranks *ranks)
{
    const fth__comm *c = (const fth__comm *)(const void *)ranks;
    return c && c->core_share > 0 ? c->core_share : fth_ranks_local(ranks);
}

fth_status fth_ranks_agree(fth_ranks *ranks, int64_t *value, fth_err *err)
{
    return ranks ? fth__comm_agree(fth__comm_of(ranks), value, err) : FTH_OK;
}

fth_status fth_ranks_check_parts(const fth_ranks *ranks, const char *what, int64_t parts,
                                 fth_err *err)
{
    const int count = fth_ranks_count(ranks);
    if (count < 2 || parts >= count) return FTH_OK;
    if (parts < 2) {
        FTH_FAIL(err, FTH_E_RANKS, "%s has no work that %d ranks would share", what, count);
        fth_err_hint(err, "start it without mpirun, or on fewer ranks where --plan --ranks R shows "
                          "a gain");
    } else {
        FTH_FAIL(err, FTH_E_RANKS, "%s can be shared by at most %lld ranks, and there are %d", what,
                 (long long)parts, count);
        fth_err_hint(
            err,
            "start at most %lld: --plan --ranks R says what a number of ranks gains; longer "
            "axes and larger batches have more parts",
            (long long)parts);
    }
    return FTH_E_RANKS;
}

void fth_ranks_abort(fth_ranks *ranks, int exit_code)
{
    fth__comm *c = fth__comm_of(ranks);
    if (c && c->ops->abort) c->ops->abort(c, exit_code);
}

void fth_ranks_close(fth_ranks *ranks)
{
    fth__comm *c = fth__comm_of(ranks);
    if (c) c->ops->close(c);
}

fth_status fth__comm_send(fth__comm *c, int to, const void *data, uint64_t bytes, fth_err *err)
{
    if (bytes == 0) return FTH_OK;
    const double t0 = fth__clock_seconds();
    const fth_status s = c->ops->send(c, to, data, bytes, err);
    c->sent_bytes += bytes;
    c->seconds += fth__clock_seconds() - t0;
    return s;
}

fth_status fth__comm_receive(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err)
{
    if (bytes == 0) return FTH_OK;
    const double t0 = fth__clock_seconds();
    const fth_status s = c->ops->receive(c, from, data, bytes, err);
    c->received_bytes += bytes;
    c->seconds += fth__clock_seconds() - t0;
    return s;
}

fth_status fth__comm_broadcast(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err)
{
    if (bytes == 0 || c->size < 2) return FTH_OK;
    const double t0 = fth__clock_seconds();
    const fth_status s = c->ops->broadcast(c, from, data, bytes, err);
    *(from == c->rank ? &c->sent_bytes : &c->received_bytes) += bytes;
    c->seconds += fth__clock_seconds() - t0;
    return s;
}

fth_status fth__comm_agree(fth__comm *c, int64_t *value, fth_err *err)
{
    if (c->size < 2) return FTH_OK;
    const double t0 = fth__clock_seconds();
    const fth_status s = c->ops->agree(c, value, err);
    c->seconds += fth__clock_seconds() - t0;
    return s;
}

fth_status fth__comm_send_begin(fth__comm *c, int to, const void *data, uint64_t bytes,
                                void **request, fth_err *err)
{
    *request = NULL;
    if (bytes == 0 || !c->ops->send_begin) return fth__comm_send(c, to, data, bytes, err);
    const double t0 = fth__clock_seconds();
    const fth_status s = c->ops->send_begin(c, to, data, bytes, request, err);
    c->sent_bytes += bytes;
    c->seconds += fth__clock_seconds() - t0;
    return s;
}

fth_status fth__comm_send_end(fth__comm *c, void **request, fth_err *err)
{
    if (!*request) return FTH_OK;
    const double t0 = fth__clock_seconds();
    const fth_status s = c->ops->send_end(c, request, err);
    *request = NULL;
    c->seconds += fth__clock_seconds() - t0;
    return s;
}

void fth__comm_push(fth__comm *c)
{
    if (c->ops->push) c->ops->push(c);
}

/* The largest value is of the lowest rank that failed. */
static int64_t pack_status(const fth__comm *c, fth_status s)
{
    return s == FTH_OK ? 0 : ((int64_t)(c->size - c->rank) << 32) + (int64_t)s;
}

/* What the others hear: with the room that was needed, so that all of them plan for it. */
typedef struct words {
    char text[FTH_ERR_TEXT], hint[FTH_ERR_HINT];
    int64_t need;
} words;

fth_status fth__comm_settle(fth__comm *c, fth_status s, fth_err *err)
{
    if (!c || c->size < 2) return s;
    fth_err lost = {0};
    const fth_status begun = fth__comm_settle_begin(c, s, &lost);
    if (begun == FTH_OK) return fth__comm_settle_end(c, s, err);
    if (s == FTH_OK && err) *err = lost;
    return s == FTH_OK ? begun : s;
}

fth_status fth__comm_settle_begin(fth__comm *c, fth_status s, fth_err *err)
{
    c->vote = pack_status(c, s);
    return c->ops->agree_begin ? c->ops->agree_begin(c, c->vote, err) : FTH_OK;
}

static fth_status agree_end(fth__comm *c, int64_t *value, fth_err *err)
{
    *value = c->vote;
    if (!c->ops->agree_begin) return fth__comm_agree(c, value, err);
    const double t0 = fth__clock_seconds();
    const fth_status s = c->ops->agree_end(c, value, err);
    c->seconds += fth__clock_seconds() - t0;
    return s;
}

fth_status fth__comm_settle_end(fth__comm *c, fth_status s, fth_err *err)
{
    int64_t worst;
    fth_err lost = {0};
    const fth_status met = agree_end(c, &worst, &lost);
    if (met != FTH_OK) { /* what went wrong here comes first */
        if (s == FTH_OK && err) *err = lost;
        return s == FTH_OK ? met : s;
    }
    if (worst == 0) return FTH_OK;
    const int from = c->size - (int)(worst >> 32);
    const fth_status theirs = (fth_status)(worst & 0x7fffffff);
    words w = {0};
    if (from == c->rank && err) {
        fth__str_copy(w.text, sizeof w.text, err->text);
        fth__str_copy(w.hint, sizeof w.hint, err->hint);
        w.need = err->need;
    }
    (void)fth__comm_broadcast(c, from, &w, sizeof w, &lost);
    if (from == c->rank) return s;
    w.text[sizeof w.text - 1] = w.hint[sizeof w.hint - 1] = '\0';
    fth_err_clear(err);
    if (theirs == FTH_E_CANCELLED)
        return fth_err_set(err, FTH_HERE, theirs, "%s",
                           w.text[0] ? w.text : "the run was cancelled");
    (void)fth_err_set(err, FTH_HERE, theirs, "rank %d: %s", from, w.text);
    if (w.hint[0]) fth_err_hint(err, "%s", w.hint);
    if (err) err->need = w.need;
    return theirs;
}

fth_status fth__comm_check_same(fth__comm *c, const char *same, fth_err *err)
{
    if (!c || c->size < 2) return FTH_OK;
    char first[256] = "";
    fth__str_copy(first, sizeof first, same);
    FTH_TRY(fth__comm_broadcast(c, 0, first, sizeof first, err));
    first[sizeof first - 1] = '\0';
    fth_status s = FTH_OK;
    if (strncmp(first, same, sizeof first - 1) != 0) {
        s = FTH_FAIL(err, FTH_E_RANKS, "rank 0 computes with %s, rank %d with %s", first, c->rank,
                     same);
        fth_err_hint(err, "results would depend on which rank computes them: use nodes of one kind "
                          "and one build of Fathom");
    }
    return fth__comm_settle(c, s, err);
}
