/* vecmath.h - the mathematics of elementwise operations, defined once, for every kernel.
 *
 * Plain C without branches, tables or contraction, so that a compiler turns a loop over any of
 * these into vector code and scalar and vector execution agree bit for bit on every instruction
 * set; only sin, cos and what uses them branch to a call for huge arguments, and have a "near" form
 * without (vecmath_trig.h). The accuracy of each function is stated beside it and checked by
 * tests/unit/test_vecmath.c. Only NaN is a NaN: which of two NaN payloads survives is not defined,
 * so what a kernel stores is the one of array/nan.h.
 */
#ifndef FTH_OPS_VECMATH_H
#define FTH_OPS_VECMATH_H

#include "ops/vecmath_complex.h"
#include "ops/vecmath_f32.h"
#include "ops/vecmath_f64.h"
#include "ops/vecmath_gamma.h"
#include "ops/vecmath_trig.h"

#endif
