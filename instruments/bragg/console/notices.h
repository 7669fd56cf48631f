/* notices.h - what a user has to know of a setting and no error says. */
#ifndef BRAGG_NOTICES_H
#define BRAGG_NOTICES_H

#include "../experiment/experiment.h"
#include "../flags/flags.h"

enum { BR_NOTICE = 300 }; /* bytes that hold any of them */

/* Of a file whose pixels are those of a curved detector: its numbers tell of a flat one. */
#define BR_CURVED_NOTE                                                                             \
    "the detector is curved: neither CBF nor NXmx can say so, and their geometry is that of the "  \
    "flat detector it touches; do not index it as such"

/* Typed points of the detector that do not enter its geometry, and what to type in their place. */
bool br_notice_places(const br_flags *f, char *text, size_t bytes);
/* Geometry that the container, or with `cbf` a CBF image, cannot tell. */
bool br_notice_header(const br_experiment *e, bool cbf, char *text, size_t bytes);

#endif
