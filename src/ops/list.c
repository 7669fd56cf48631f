/* list.c - every operation of the engine. */
#include "ops/ops.h"

#include <stddef.h>

const fth_op *const fth__engine_ops[] = {&fth__op_input, &fth__op_const, &fth__op_assign,
#define FTH_OP(name, ...) &fth__op_##name,
#define FTH_OP_INNER(name, ...) &fth__op_##name,
#include <fathom/ops.def>
                                         NULL};
