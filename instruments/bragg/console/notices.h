/* notices.h - notices about settings that have no effect or cannot be written. */
#ifndef BRAGG_NOTICES_H
#define BRAGG_NOTICES_H

#include "../experiment/experiment.h"
#include "../flags/flags.h"

enum { BR_NOTICE = 300 }; /* bytes that hold any of them */

/* For a file with pixels of a curved detector: its header describes a flat one. */
#define BR_CURVED_NOTE                                                                             \
    "the detector is curved: neither CBF nor NXmx can express it, and their geometry is that of "  \
    "the "                                                                                         \
    "flat detector it touches; do not index it as such"

/* Points of the detector that were given without effect, and the flags to give instead. */
bool br_notice_places(const br_flags *f, char *text, size_t bytes);
/* Geometry that the container, or with `cbf` a CBF image, cannot express. */
bool br_notice_header(const br_experiment *e, bool cbf, char *text, size_t bytes);

#endif
