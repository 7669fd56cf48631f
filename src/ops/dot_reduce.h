/* ops/dot_reduce.h - a dot whose product goes through a program and a reduction, tile by tile.
 *
 * The product never exists whole: each (m, n) tile of it is made in scratch over all of k, mapped
 * by the program and reduced over one free axis by the fused operation. in[0] and in[1] are the
 * dot's operands, in[2..] the further operands of the program, whose input 0 is the product.
 */
#ifndef FTH_OPS_DOT_REDUCE_H
#define FTH_OPS_DOT_REDUCE_H

#include "graph/program.h"
#include "ops/dot.h"

typedef struct fth__dot_reduce_attr {
    fth__dot_attr dot;
    fth__program program;
} fth__dot_reduce_attr;

extern const fth_op fth__op_dot_reduce;

/* Make the node that replaces `dot` followed by the fused `program`: operands, shapes and `attr`,
 * which must live as long as the node. in_val of further operands and out_val are the caller's.
 * false: the pair cannot be joined (no reduction, or one over an axis both operands have). */
bool fth__dot_reduce_make(const fth_node *dot, const fth__program *program,
                          const fth_desc *extra_in, int n_extra, fth__dot_reduce_attr *attr,
                          fth__program_node *out);

/* What the variants share: the walk over tiles. */
typedef struct fth__dot_reduce_how {
    /* Bytes beside the product that product() needs, and one tile of the product over all of k, in
     * the accumulator's dtype: m by n, by columns when `cols`. m0 and n0 are offsets in the
     * operands' tiles. */
    uint64_t (*room)(const fth_call *call, const fth__dot_shape *s);
    fth_status (*product)(const fth_call *call, const fth__dot_shape *s, const char *a,
                          const char *b, int64_t m0, int64_t m, int64_t n0, int64_t n, bool cols,
                          void *p, void *room);
    /* The fused operation. */
    uint64_t (*scratch)(const fth_call *call);
    fth_status (*run)(const fth_call *call);
    /* Larger tiles than the shape's, from whole sizes: the reduced axis in multiples of it, the
     * other as is. NULL: the shape's. */
    void (*tiles)(const fth__dot_shape *s, bool reduces_m, int64_t *m, int64_t *n);
    /* n numbers of a product become f16 or bf16. NULL: here and now. */
    fth_status (*round)(const fth_call *call, fth_dtype t, void *dst, const void *src, int64_t n);
} fth__dot_reduce_how;
uint64_t fth__dot_reduce_scratch(const fth_call *call, const fth__dot_reduce_how *how);
fth_status fth__dot_reduce_run(const fth_call *call, const fth__dot_reduce_how *how);
/* The fused operation that works on tiles of the product, as a node. */
void fth__dot_reduce_fused(const fth_node *node, fth__program_node *room);

#endif
