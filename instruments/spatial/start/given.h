/* given.h - loadings from a file that training does not move, and factors that fit them
 * (model 13.8). */
#ifndef SPATIAL_GIVEN_H
#define SPATIAL_GIVEN_H

#include "init_parts.h"

/* Reads f32 or f64 [gene factor] from a .npy file into the parameter W. Refuses a wrong shape,
 * non-finite or negative numbers, and a factor whose loadings are all 0. */
fth_status sp_loadings_read(sp_model *m, const char *path, fth_err *err);

/* The loadings of the model into p->W, and into p->F the logarithms of the factors that fit the
 * counts best, by multiplicative updates: given W, cells are independent. */
fth_status sp_init_given(const sp_init_parts *p, const sp_model *m, fth_err *err);

#endif
