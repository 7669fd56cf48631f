/* plate.h - the tree of a Keyence as stacks: which images are the planes of which tile, and when.
 *
 * A stack is a tile of a well at a time: b is the tile in its well, from 0, p the number of the
 * well's folder, t the time. Tiles that only other times of the well have are holes in its row.
 */
#ifndef FOCUS_KEYENCE_PLATE_H
#define FOCUS_KEYENCE_PLATE_H

#include "../input/input.h"
#include "../plate/well.h"
#include "header.h"
#include "tree.h"

typedef struct fo_keyence_choice {
    const char
        *channel; /* number behind CH, or what the text of the microscope calls it; "": choose */
    fo_range times;
    const bool *well; /* [FO_WELLS]: which are used */
} fo_keyence_choice;

typedef struct fo_keyence_plate {
    fth_mem *mem;
    int well[FO_WELLS], tiles[FO_WELLS]; /* of each folder; tiles: with holes */
    int64_t folder[FO_WELLS];            /* the number in its name */
    int64_t n_series;
    fo_stack *stack; /* by series, t, tile */
    double *seconds; /* [stack]: of its well and time */
    int32_t *plane;  /* [stack][planes]: number of a path */
    int64_t n, planes;
    fo_keyence_header header; /* of the first image */
} fo_keyence_plate;

/* Which wells there are: before the choice is made. */
void fo_keyence_wells(fo_keyence_plate *plate, const fo_keyence_tree *tree);
/* Lists the selection, and reads the text of the first image of each well and time. Errors go to
 * `problems`. */
fth_status fo_keyence_plate_make(fo_keyence_plate *plate, fth_mem *mem, const fo_keyence_tree *tree,
                                 const fo_keyence_choice *choice, fo_problems *problems,
                                 fth_err *err);
void fo_keyence_plate_free(fo_keyence_plate *plate); /* an empty one is allowed */

#endif
