/* outlook.h - predicts the time of a run and its bottleneck from a short measurement on this
 * machine: part of the file is read, and a small synthetic stack is fused and encoded. */
#ifndef FOCUS_RUN_OUTLOOK_H
#define FOCUS_RUN_OUTLOOK_H

#include "pipeline.h"

/* Seconds of all images that are to do; each overlaps with the others. 0: could not be measured. */
typedef struct fo_outlook {
    uint64_t bytes;   /* that will be read */
    double read_rate; /* bytes per second; the cache may have helped */
    double storage_s, kernel_s, encode_s;
    double copy_s;       /* to a card and back; 0 where there is none */
    uint64_t copy_bytes; /* to the card */
    int threads;         /* that encode */
    const char *bound;   /* "storage", "copies", "kernels" or "encoding": the longest */
} fo_outlook;

/* `raw` is the file of the stacks; "": its rate is `read_rate`. Nothing is written. */
fo_outlook fo_outlook_find(const fo_pipeline *p, int64_t images, const char *raw, double read_rate);
/* "storage 449.5 GB at 1.9 GB/s = 3.9 min <- bound; H2D 449.5 GB = 18 s; kernels 4 s; encoding 9 s
 * on 8 threads"; H2D only where there is a card. */
void fo_outlook_format(const fo_outlook *o, char *text, size_t bytes);

#endif
