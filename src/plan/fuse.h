/* fuse.h - groups of nodes that become one program, shared by what finds them and what they read.
 */
#ifndef FTH_PLAN_FUSE_H
#define FTH_PLAN_FUSE_H

#include "ops/ops.h"
#include "plan/look.h"
#include "plan/plan.h"

/* The graph as the plan makes it. */
typedef struct fth__fuse_nodes {
    const fth_node *const *node;
    const fth__value *value;
    int64_t n_nodes, n_values;
} fth__fuse_nodes;

typedef struct fth__fuser {
    fth_plan *p;
    const fth__fuse_nodes *g;
    const bool *needed;
    int *group;     /* per node: index of the group's last node; -1: none yet */
    int *early;     /* per node: the one beside which a comparison is made early (masks.c); -1 */
    bool *hosts;    /* per node: some are made beside it */
    bool *moved;    /* per node: it runs right after what makes its operand (masks.c) */
    bool *is_out;   /* per value */
    int64_t *first; /* per value: its readers are reader[first[v] .. first[v+1]) */
    int *reader;
    int *inner;       /* per node, for a group's last node: the reduction inside; -1 */
    int *product;     /* per node, for a group's last node: the dot that joins it; -1 */
    int *head, *next; /* per node: the first of the group that ends there; the next of its group */
    bool *is_view;    /* per node: a view that only programs and such views read */
    bool *is_read;    /* per value of such a view: by a program that does not look through it */
    bool any_view;
} fth__fuser;

typedef struct fth__group {
    int root;
    int n;
    int member[FTH_PROGRAM_INSTRS * 2]; /* ascending */
    fth_desc space;
    bool plain; /* reads its operands themselves: the epilogue of a product */
    int inner; /* a reduction whose result is all that the root reduces; its axis is the last of the
                  space; -1: none */
} fth__group;

/* What a program has room for beside the operands it reads anyway. */
typedef struct fth__fuse_room {
    int views, inputs, consts, instrs, made;
} fth__fuse_room;

/* What the group reads instead of an operand: a value along a path, with the axes that are not read
 * plainly, of it and of the indices of its rows; or nothing, what it makes itself. */
typedef struct fth__looked {
    fth__look_path path;
    int n_axes, n_rows_axes[FTH__LOOK_ROWS];
    fth__view_axis axis[FTH_MAX_AXES], rows_axis[FTH__LOOK_ROWS][FTH_MAX_AXES];
    bool makes;
    fth__made made;
} fth__looked;

static inline const fth_node *fth__fuse_node(const fth__fuser *f, uint32_t value)
{
    return f->g->node[f->g->value[value].node];
}

static inline bool fth__fuse_const(const fth__fuser *f, uint32_t v)
{
    return fth__fuse_node(f, v)->op == &fth__op_const;
}
static inline bool fth__fuse_tail(const fth_node *n)
{
    if (n->op != &fth__op_reduce) return false;
    return ((const fth__reduce_attr *)n->attr)->red != FTH_RED_LOGSUMEXP;
}

static inline bool fth__in_group(const fth__group *gr, int node)
{
    for (int i = 0; i < gr->n; i++)
        if (gr->member[i] == node) return true;
    return false;
}

enum { FTH__MASKS = 3 }; /* of one value, so that a program has room for them */

/* ---- masks.c: comparisons to make early ---- */
fth_status fth__fuse_find_masks(fth__fuser *f, fth_err *err);

/* What the operands of the group leave room for, each as an input of its own. */
fth__fuse_room fth__fuse_room_of(const fth__fuser *f, const fth__group *gr, uint32_t leading);
/* What the group reads instead of operand v, and how: through as many views as can be put together,
 * but not to a value of more than twice the elements, which would have to be kept for a small part
 * of it. */
void fth__fuse_look(const fth__fuser *f, const fth__group *gr, uint32_t v,
                    const fth__fuse_room *left, fth__looked *out);

#endif
