/* smv_header.h - the header of an SMV image, as it is written. */
#ifndef BRAGG_SMV_HEADER_H
#define BRAGG_SMV_HEADER_H

#include "../experiment/experiment.h"

enum { BR_HEADER = 512, BR_HEADER_MOST = 2048 };

/* The header of an SMV image with 16 or 32 bits per pixel (model 12.3): 512 bytes, or more where
 * the numbers need them. */
typedef struct br_smv_head {
    char text[BR_HEADER_MOST];
    int64_t bytes;
} br_smv_head;
void br_smv_header(const br_experiment *e, int bits, int64_t least, br_smv_head *out);

#endif
