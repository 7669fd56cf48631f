/* format.h - formats of images, and names of the files that a stack becomes. */
#ifndef FOCUS_OUTPUT_FORMAT_H
#define FOCUS_OUTPUT_FORMAT_H

#include "../input/input.h"

/* What a file of a stack holds. */
typedef enum fo_kind {
    FO_OUT_IMAGE,
    FO_OUT_INDEX,      /* .index.tif: u8, u16 from 256 planes */
    FO_OUT_DEPTH,      /* .depth.tif: f32, um, or planes where the step is not known */
    FO_OUT_CONFIDENCE, /* .confidence.tif: f32 */
    FO_OUT_KINDS
} fo_kind;
/* A file of a stack: one of the kinds, or FO_OUT_KINDS + i: the image of its other channel i. */
typedef int fo_port;
enum { FO_MOST_OTHERS = 15, FO_PORTS = FO_OUT_KINDS + FO_MOST_OTHERS };
fo_kind fo_port_kind(fo_port port);

typedef struct fo_format {
    const char *name;   /* "png16" */
    const char *ending; /* "png" */
    fth_dtype dtype;    /* of its pixels; npy: u16 of scaled values */
    bool values;        /* can hold fused values as they are (--scale none) */
    int quality;        /* of jpg, else 0 */
} fo_format;
/* "jpg:90"; "" and an output without a known ending: `standard`. A folder has no ending.
 * FTH_E_COMMAND lists the formats; a contradicting extension is an error, because programs that
 * rely on it could not read the file. */
fth_status fo_format_choose(const char *wanted, const char *output, const char *standard,
                            fo_format *out, fth_err *err);

/* Whether a path ends as one of the formats does. */
bool fo_format_is_ending(const char *path);

/* Where the files of a command go: the file OUT, or OUT/STEM[_p000][_t0000][_c00][_b0000].EXT. */
typedef struct fo_names {
    const fo_input *in;
    char out[FTH_PATH]; /* file, or folder without its last slash */
    bool folder;
    bool numbered; /* stems are not unique: files are numbered as _b0000 */
    fo_format format;
} fo_names;
void fo_names_begin(fo_names *n, const fo_input *in, const char *out, const fo_format *format);
/* "STEM_t0003" of a stack; of a single file, the stem of OUT. Other channels have stems of their
 * own.
 */
void fo_names_stem(const fo_names *n, int64_t stack, fo_port port, char *stem, size_t bytes);
fth_status fo_names_path(const fo_names *n, int64_t stack, fo_port port, char path[FTH_PATH],
                         fth_err *err);
/* OUT's ".metrics.csv" beside a file, "metrics.csv" in a folder. */
fth_status fo_names_table(const fo_names *n, const char *table, char path[FTH_PATH], fth_err *err);

#endif
