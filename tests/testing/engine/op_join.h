/* testing/engine/op_join.h - parts of an accumulated axis, joined as ranks do (fth_join). */
#ifndef FATHOM_TESTING_OP_JOIN_H
#define FATHOM_TESTING_OP_JOIN_H

#include "testing/test.h"

#include <fathom/op.h>

typedef struct t_join {
    const fth_node *node;
    char *const *in;                           /* dense and whole */
    char *const *want;                         /* outputs of one call */
    uint64_t (*scratch)(const fth_call *call); /* NULL: 0 */
    fth_status (*run)(const fth_call *call);
} t_join;

/* Cut every axis that can be at its grain, join the parts, and compare bits. Nodes that have
 * nothing to join pass. */
void t_check_join(const t_join *j, const char *what, t_random *r);

#endif
