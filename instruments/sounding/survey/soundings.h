/* soundings.h - what the survey left, opened for the other stages. */
#ifndef SOUNDING_SOUNDINGS_H
#define SOUNDING_SOUNDINGS_H

#include <fathom/fathom.h>

typedef struct so_data {
    fth_safetensors *file;
    fth_source soundings, depths, truth;
    bool bound; /* planned, and no more than that */
} so_data;
fth_status so_data_open(so_data *d, const fth_stage_call *call, fth_err *err);
void so_data_close(so_data *d);
/* The same shapes, for plans; they read as zeros, so that figures can be planned too. */
so_data so_data_planned(const fth_config *cfg);

#endif
