/* settings.h - checked settings, from options of a command or keys of a config.
 *
 * Both are one: a given flag becomes a value of a config, so it has the type, range and default of
 * its row in options.def, and all mistakes are found at once.
 */
#ifndef FOCUS_SETTINGS_H
#define FOCUS_SETTINGS_H

#include "../fuse/fuse.h"

#include <fathom/fathom.h>
#include <fathom/images.h>

extern const fth_schema fo_schema;

/* Rows of options.def as flags; each list ends with a row that has no name. */
typedef struct fo_option {
    const char *flag, *key; /* "z-keep", "focus.z_keep" */
    bool stack, plate;      /* of `stack`; of `run` and `plan` */
    bool python;            /* of fathom.focus */
} fo_option;
extern const fo_option fo_options[]; /* ends with a row that has no flag */
/* The flag that stands for a key, "z-keep" for "focus.z_keep"; NULL: none. */
const char *fo_flag_of(const char *key);

/* Values A, A + step, ... below `end`; of a text A:B or A:B:STEP, either end left out. */
typedef struct fo_range {
    int64_t first, end, step; /* end -1: to the last */
} fo_range;
bool fo_range_parse(const char *text, fo_range *out);
int64_t fo_range_count(const fo_range *r, int64_t size);

typedef enum fo_channels { FO_CHANNELS_ONE, FO_CHANNELS_ALL, FO_CHANNELS_EACH } fo_channels;

/* Which pixels of the files are used. Texts live as long as the config. */
typedef struct fo_selection {
    const char *channel; /* name or number; "": choose */
    fo_channels channels;
    const char *wells; /* "A01,B03"; "": all */
    fo_range times, planes;
    int64_t z_keep; /* 0: all */
    bool has_planes;
    double z_step_um, um_per_px; /* 0: as the file says */
    bool is_raw;
    fth_raw_layout raw; /* z y x */
    fth_images_options images;
} fo_selection;
/* FTH_E_CONFIG lists every key with a mistake that the table cannot check. */
fth_status fo_selection_read(const fth_config *cfg, fo_selection *out, fth_err *err);

/* Most threads that read and that encode at once; 0: no limit of their own. */
typedef struct fo_workers {
    int read, encode;
} fo_workers;
/* "4" for both, "4,2" for each. */
fth_status fo_workers_read(const fth_config *cfg, fo_workers *out, fth_err *err);

/* How stacks are fused. `plate`: polarity and compat are those of a plate. The size of a filter in
 * um needs the size of a pixel, 0 where it is not known. Settled, not yet checked against the data.
 */
typedef struct fo_pixels {
    double um_per_px;
    int significant_bits;
} fo_pixels;
fth_status fo_fusion_read(const fth_config *cfg, bool plate, const fo_pixels *pixels,
                          fo_fusion *out, fth_err *err);

/* A checked config of the flags that were given. `stack`: of that verb. FTH_E_COMMAND lists every
 * mistake, each by its flag. */
fth_status fo_settings_from_flags(fth_config **out, fth_mem *mem, bool stack,
                                  fth_flag_value_fn *value, void *user, fth_err *err);

#endif
