/* input.h - files become a list of stacks, and one source of all their pixels.
 *
 *   files -> fo_file (open, its axes known) -> fo_stack (file, b, t, p, c) -> source [stack z y x]
 *
 * Files of one plane each are one stack in natural order; files of several planes hold stacks. All
 * problems are found before a pixel is read, and reported together. All stacks of an input have one
 * size in y and x and one dtype; a stack with fewer planes than the deepest is padded with planes
 * that are not present.
 *
 * Ownership: fo_input_close ends everything, the source too. Threads: as fth_source.
 */
#ifndef FOCUS_INPUT_INPUT_H
#define FOCUS_INPUT_INPUT_H

#include "../settings/settings.h"
#include "problems.h"

#include <fathom/images.h>

/* Axes of a file in the order b t p z c y x. */
typedef enum fo_axis { FO_B, FO_T, FO_P, FO_Z, FO_C, FO_Y, FO_X, FO_AXES } fo_axis;

typedef struct fo_file {
    const char *path;
    fth_images *images;    /* NULL: .npy and raw */
    fth_source source;     /* while it is open */
    int axis_of[FO_AXES];  /* axis of the source; -1: it has none */
    int64_t size[FO_AXES]; /* 1 where it has none */
    fth_dtype dtype;
    int significant_bits;
    bool is_images; /* `images` can be opened */
    bool is_memory; /* of the caller: there is nothing to close */
    bool rgb;       /* its channels become one grey value */
    double um_per_px, z_step_um;
    int64_t channel; /* that is fused */
} fo_file;

typedef struct fo_stack {
    int32_t file, b, t, p, c;
    int32_t planes;  /* that the file has for it, after the selection */
    int32_t present; /* of those */
} fo_stack;

typedef struct fo_input {
    fth_mem *mem;
    struct fo_reopener *reopener; /* of files that are not kept open; NULL: all are */
    const fo_selection *selection;
    bool of_planes; /* one stack, whose plane i is file i */
    /* Stacks of a grid: [stack][plane of the file] number of a name, -1: no file. They are all like
     * file[0], the only one here. NULL: planes lie in their files. */
    int32_t *plane;
    fth_texts *names;
    uint64_t *identity; /* [stack] of a grid: names, sizes and ends of its files */
    fo_file *file;
    int64_t n_files;
    fo_stack *stack;
    int64_t n_stacks;
    uint8_t *present;              /* [stack][z] */
    int64_t planes, rows, columns; /* z of the deepest, y, x */
    int64_t first_plane;           /* number in the file of plane 0 */
    int64_t file_planes;           /* of the deepest, before the selection */
    int64_t size[FO_AXES];         /* largest of each axis of the result: b t p 1 c y x */
    fth_dtype dtype;
    int significant_bits;
    double um_per_px, z_step_um; /* 0: not known */
    int64_t missing_frames;
    int64_t others; /* channels that the chosen one decides for (--channels all) */
    void *grey;     /* buffer of one colour plane; NULL: none has colours */
    bool keep_open;
} fo_input;

/* Open and check everything. FTH_E_FILE_FORMAT or FTH_E_COMMAND list all problems. */
fth_status fo_input_open(fo_input *in, fth_mem *mem, const char *const *path, int n_paths,
                         const fo_selection *selection, fth_err *err);
/* The same of an array in memory, y x, z y x or b z y x, which outlives the input. */
fth_status fo_input_open_array(fo_input *in, fth_mem *mem, fth_dtype dtype, int n_axes,
                               const int64_t *size, const void *data, const fo_selection *selection,
                               fth_err *err);
void fo_input_close(fo_input *in); /* one that is all zero is allowed */

/* Stacks whose planes are files of one picture each: tiles of a microscope that writes so. */
typedef struct fo_grid {
    fth_texts *paths;      /* become the input's, also when it fails */
    const fo_stack *stack; /* b, t, p and c as the caller numbers them, `planes` of each */
    int64_t n, planes;     /* stacks; planes of the deepest */
    int32_t *plane;        /* [n][planes]; becomes the input's */
} fo_grid;
/* A fingerprint of all files. */
typedef struct fo_grid_files {
    int64_t n, newest_ns;
    uint64_t bytes, hash; /* of names, sizes and times */
} fo_grid_files;
/* Reads the header of every file. Errors go to `problems`; the input is then closed. */
fth_status fo_input_open_grid(fo_input *in, fth_mem *mem, const fo_grid *grid,
                              const fo_selection *selection, fo_grid_files *files,
                              fo_problems *problems, fth_err *err);
/* Those of `chosen` alone, n of them, when it is not NULL: then it lives as long as
 * the source. */
typedef struct fo_input_view {
    fo_input *input;
    const int64_t *chosen;
    int64_t n;
    int64_t other;  /* 0: the channel of each stack; n: its n-th other channel */
    int64_t planes; /* 0: all; of stacks that have fewer: those */
    int64_t failed; /* stack of the input whose pixels could not be read; -1: none */
} fo_input_view;
fth_source fo_input_source(fo_input_view *view);
/* "A01" or "p003" of a stack with positions; "" of one without. */
const char *fo_input_well(const fo_input *in, const fo_stack *s);

/* open.c: an array in memory, as a file that is called "array". */
fth_status fo_file_wrap(fo_file *f, fth_dtype dtype, int n_axes, const int64_t *size,
                        const void *data, const fo_selection *selection, fth_err *err);
/* open.c: one file, its header read. */
fth_status fo_file_open(fo_file *f, fth_mem *mem, const char *path, const fo_selection *selection,
                        fth_err *err);
void fo_file_close(fo_file *f);
/* input.c: first_plane and planes, those of `have` planes that are selected. */
void fo_input_select_planes(fo_input *in, int64_t have, fo_problems *problems);
/* source.c: the buffer of one colour plane, where a file has colours. */
fth_status fo_input_take_grey(fo_input *in, fth_err *err);
/* Its pixels, after its source was closed to save descriptors. */
fth_status fo_file_reopen(const fo_file *f, fth_mem *mem, const fo_selection *selection,
                          fth_source *out, fth_err *err);

#endif
