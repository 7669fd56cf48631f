/* stages.h - the stages of a config: index, fuse, stitch, figures. */
#ifndef FOCUS_STAGES_STAGES_H
#define FOCUS_STAGES_STAGES_H

#include <fathom/instrument.h>

enum { FO_STAGES = 4 };
extern const fth_stage fo_stages[FO_STAGES];
/* The model of a config is its method. */
fth_status fo_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err);
/* fth_instrument.place: folders of an experiment's images and records. */
bool fo_place(const fth_config *cfg, int i, char *path, size_t bytes);

#endif
