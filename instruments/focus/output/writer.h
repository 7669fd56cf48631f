/* writer.h - a sink that turns rectangles of fused values [stack y x] into image files.
 *
 * Each output of the graph has a sink here. An image is assembled in a buffer, converted on the
 * way, and encoded and written by the thread that delivers its last row: several threads, several
 * images at once. All memory is taken when the writer is created, so a later plan counts it.
 *
 * Ownership: the sinks end with the writer. Threads: any number may write.
 */
#ifndef FOCUS_OUTPUT_WRITER_H
#define FOCUS_OUTPUT_WRITER_H

#include "../watch/watch.h"
#include "format.h"
#include "room.h"
#include "scalebar.h"

#include <fathom/pictures.h>

typedef struct fo_writer_options {
    int64_t n_stacks, rows, columns;
    double um_per_px;                /* 0: not known */
    fo_scalebar scalebar;            /* drawn into images, not into maps */
    double depth_unit, depth_offset; /* of the depth map: (planes + offset) * unit */
    int64_t first_plane;             /* added to indices */
    int64_t planes;                  /* of the file: 256 and more need u16 */
    fo_format format;
    bool wanted[FO_OUT_KINDS];
    int others;       /* images of other channels */
    fth_dtype values; /* of the image as it arrives */
    /* The file of a stack. */
    fth_status (*path)(void *user, int64_t stack, fo_port port, char path[FTH_PATH], fth_err *err);
    /* Called when all files of a stack are written; may be NULL. From any thread, one at a time. */
    void (*done)(void *user, int64_t stack);
    void *user;
    fo_watch *watch; /* NULL: none */
} fo_writer_options;

typedef struct fo_writer fo_writer;
fth_status fo_writer_create(fo_writer **out, fth_context *ctx, const fo_writer_options *opt,
                            fth_err *err);
void fo_writer_destroy(fo_writer *w); /* NULL is allowed */
/* Bytes of a file of a stack, once `values` is known. */
fo_amount fo_writer_amount(const fo_writer_options *opt, fo_port port);
/* Stack i of the sink is stack chosen[i]; NULL: stack i. `chosen` lives as long as the sink. */
fth_sink fo_writer_sink(fo_writer *w, fo_port port, const int64_t *chosen, int64_t n);
/* Seconds that threads spent in encoding and in writing. */
void fo_writer_seconds(const fo_writer *w, double *encode, double *write);

#endif
