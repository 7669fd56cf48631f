/* cbf.h - images as CBF: a text header, and 32-bit pixels packed by their differences. */
#ifndef BRAGG_CBF_H
#define BRAGG_CBF_H

#include "../experiment/experiment.h"

/* Memory that br_cbf_write takes. */
uint64_t br_cbf_bytes(const br_experiment *e);
/* Packs `pixels`, i32 [slow fast] and above -2^30, into a file that is complete but not committed:
 * *out has to be committed or closed. The pixels are read twice, row by row. */
fth_status br_cbf_write(fth_sink *out, const char *path, const br_experiment *e,
                        const fth_source *pixels, fth_err *err);

#endif
