/* comm.h - messages between the processes of one run.
 *
 * A table of calls that a backend fills: MPI, or socket pairs in tests. All calls come from the
 * thread that runs plans, in the same order on all ranks. A rank that fails goes on to the next
 * fth__comm_settle, where the others meet it: between two of them nobody leaves.
 */
#ifndef FTH_DIST_COMM_H
#define FTH_DIST_COMM_H

#include <fathom/ranks.h>

typedef struct fth__comm fth__comm;
typedef struct fth__comm_ops {
    const char *name; /* "mpi", "pipes" (tests) */
    fth_status (*send)(fth__comm *c, int to, const void *data, uint64_t bytes, fth_err *err);
    fth_status (*receive)(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err);
    fth_status (*broadcast)(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err);
    fth_status (*agree)(fth__comm *c, int64_t *value, fth_err *err); /* largest over the ranks */
    /* The same in two halves, between which a rank computes. NULL: the whole is done in the first
     * half of a send, and in the second of an agreement, of which there is one at a time. */
    fth_status (*send_begin)(fth__comm *c, int to, const void *data, uint64_t bytes, void **request,
                             fth_err *err);
    fth_status (*send_end)(fth__comm *c, void **request, fth_err *err);
    fth_status (*agree_begin)(fth__comm *c, int64_t value, fth_err *err);
    fth_status (*agree_end)(fth__comm *c, int64_t *value, fth_err *err);
    void (*push)(fth__comm *c);                 /* messages on their way; NULL: they need no help */
    void (*abort)(fth__comm *c, int exit_code); /* ends all ranks; does not return under MPI */
    void (*close)(fth__comm *c);
} fth__comm_ops;

/* Backends split messages above 1 GiB. */
struct fth__comm {
    const fth__comm_ops *ops;
    int rank, size;
    uint64_t sent_bytes, received_bytes;
    double seconds; /* in calls, waiting for others included */
    void *self;
    int64_t vote;   /* of an agreement that has begun */
    int local;      /* ranks on this node, this one included; 0: all of them */
    int core_share; /* of these, those that may use the same cores; 0: all of them */
};

/* The public handle is the same object. */
static inline fth__comm *fth__comm_of(fth_ranks *ranks)
{
    return (fth__comm *)(void *)ranks;
}
static inline fth_ranks *fth__comm_ranks(fth__comm *c)
{
    return (fth_ranks *)(void *)c;
}

/* The calls of the table, counted and on the clock; of no bytes nothing is called. */
fth_status fth__comm_send(fth__comm *c, int to, const void *data, uint64_t bytes, fth_err *err);
fth_status fth__comm_receive(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err);
fth_status fth__comm_broadcast(fth__comm *c, int from, void *data, uint64_t bytes, fth_err *err);
fth_status fth__comm_agree(fth__comm *c, int64_t *value, fth_err *err);

/* A send that goes on while the caller computes: the data stay as they are until the end. *request
 * is NULL when there is nothing to wait for, and again after the end. */
fth_status fth__comm_send_begin(fth__comm *c, int to, const void *data, uint64_t bytes,
                                void **request, fth_err *err);
fth_status fth__comm_send_end(fth__comm *c, void **request, fth_err *err);
/* Give messages that have begun a chance to move, in the middle of long work. */
void fth__comm_push(fth__comm *c);

/* Meet: `s` is how it went here, with its words in `err`. FTH_OK when all say so. Else what the
 * lowest rank that failed says: that rank keeps its words, the others get them as "rank 3: ...".
 * NULL: returns s. */
fth_status fth__comm_settle(fth__comm *c, fth_status s, fth_err *err);
/* The same in two halves: a rank that has begun goes on computing until it needs to know. Between
 * them it sends and broadcasts nothing. A rank that fails meets such a beginning in a settle. */
fth_status fth__comm_settle_begin(fth__comm *c, fth_status s, fth_err *err);
fth_status fth__comm_settle_end(fth__comm *c, fth_status s, fth_err *err);

/* Every rank must compute the same bits: fails on all ranks when `same`, a text that says what they
 * depend on, is another one somewhere. */
fth_status fth__comm_check_same(fth__comm *c, const char *same, fth_err *err);

#endif
