/* focus.h - one stack of a plate in memory and its fusion, for the cases of focus. */
#ifndef FATHOM_BENCH_FOCUS_H
#define FATHOM_BENCH_FOCUS_H

#include "bench.h"

#include "instruments/focus/fuse/fuse.h"

enum { FOCUS_PLANES = 17, FOCUS_ROWS = 2189, FOCUS_COLUMNS = 1152 };

typedef struct focus_stack {
    bench_program p;
    const bench *b;
    const struct focus_stack *single; /* the same on one thread */
    peer_python *python;              /* the same as others write it */
    uint16_t *data;
    uint8_t *present, *image;
    double *stats;
} focus_stack;

/* Memory and program of a stack whose pixels are to be filled in, s->data[z][y][x]. */
void focus_stack_make(focus_stack *s, fo_method method, int threads);
/* After that, with the pixels. */
void focus_stack_plan(focus_stack *s);
void focus_stack_drop(focus_stack *s);

#endif
