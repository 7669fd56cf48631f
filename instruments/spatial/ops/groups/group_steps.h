/* group_steps.h - iterations of the loadings of all groups as an operation (../group_steps.h). */
#ifndef SPATIAL_OPS_GROUP_STEPS_H
#define SPATIAL_OPS_GROUP_STEPS_H

#include <fathom/fathom.h>

enum {
    SP_STEPS_W,      /* f64 [group gene factor] */
    SP_STEPS_BEFORE, /* the same: one iteration earlier */
    SP_STEPS_YF,     /* the same */
    SP_STEPS_FF,     /* f64 [group factor factor2] */
    SP_STEPS_N,      /* i64 [group]: how many iterations each makes */
    SP_STEPS_INPUTS
};
enum { SP_STEPS_FACTORS = 256 }; /* upper limit on devices */

/* The loadings, and fth_out(.., 1): those before the last iteration, or as they were where there is
 * none. The same bits on every device. */
fth_val sp_group_steps_(fth_site site, const fth_val in[SP_STEPS_INPUTS]);

#endif
