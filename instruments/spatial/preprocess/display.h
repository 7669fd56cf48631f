/* display.h - what a source says about display: colours of groups and the unit of positions. Kept
 * in metadata.json under "display"; only figures use it.
 */
#ifndef SPATIAL_DISPLAY_H
#define SPATIAL_DISPLAY_H

#include "preprocess.h"

#include <fathom/plot.h>

/* "#1f77b4", "#1f77b4ff" or "#abc"; false: it is none of these. */
bool sp_colour_parse(const char *text, fth_colour *out);

/* ---- of a source ---- */

typedef struct sp_display {
    fth_texts *colours; /* of the groups of the source; NULL: it has none */
    char unit[16];      /* "px", "um"; "": it does not say */
    double microns;     /* of one unit; 0: not known */
} sp_display;
/* uns['<column>_colors'], and the scale factors of Visium data in uns['spatial']. What cannot be
 * used is left out with a notice. */
fth_status sp_display_find(sp_display *d, const sp_source *s, fth_err *err);
void sp_display_free(sp_display *d); /* an empty one is allowed */
/* As the member "display" of metadata.json. */
void sp_display_put(fth_json_writer *w, const sp_display *d, const sp_prepared *p);

/* ---- of a preprocessed folder ---- */

typedef struct sp_shown {
    bool coloured;  /* colours of all groups were given */
    char unit[16];  /* of the file's positions; "": not known */
    double microns; /* of one unit; 0: not known */
    double length;  /* units of the file in one of the folder; 0: not known */
} sp_shown;
/* `colours` has room for one of each group. */
fth_status sp_shown_read(sp_shown *out, fth_colour *colours, int64_t groups, fth_mem *mem,
                         const char *dir, fth_err *err);

#endif
