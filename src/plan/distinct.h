/* distinct.h - shared by the files that decide which nodes of a graph a plan makes.
 *
 * distinct.c finds nodes that are equal, stand.c says where one may stand for the other, and
 * known.c finds nodes whose values are known without running them.
 */
#ifndef FTH_PLAN_DISTINCT_H
#define FTH_PLAN_DISTINCT_H

#include "plan/plan.h"

/* When values are alive if nodes run in the order of the graph. */
typedef struct fth__spans {
    fth_plan *p;
    const bool *needed; /* per node */
    int64_t *last;      /* per value: the last node that reads it, or makes it */
    bool *stored;       /* per value: no program makes it on the way to something else */
    bool *direct;       /* per value: it goes straight into a sink's memory, */
    bool *goes_out;     /* or to any */
    int64_t *live;      /* per node: bytes alive while it runs, */
    int64_t most;       /* and the most of these as the graph is written */
} fth__spans;

/* ---- stand.c ---- */
fth_status fth__spans_make(fth__spans *s, fth_plan *p, const bool *needed, fth_err *err);
void fth__spans_clear(fth__spans *s);
/* May node i stand for the later node j, equal to it? Operands are those of p->node. */
bool fth__spans_may_stand(const fth__spans *s, int64_t i, int64_t j);
/* Value v is alive until the last use of value `until`, and goes where that one goes. */
void fth__spans_lengthen(fth__spans *s, uint32_t v, uint32_t until);
/* Node i stands for node j. */
void fth__spans_stand(fth__spans *s, int64_t i, int64_t j);

/* ---- known.c; operands are those of p->node ---- */
/* The constant that node k is; false: it is none. */
bool fth__node_constant(const fth_plan *p, int64_t k, fth__const_attr *out);
/* The value whose bits the one result of node k has; 0: none is known. */
uint32_t fth__node_passes_on(const fth_plan *p, int64_t k);

#endif
