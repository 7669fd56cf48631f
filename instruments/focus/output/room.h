/* room.h - checks before writing that all outputs fit on their disks.
 *
 *   fo_room room = {0};
 *   FTH_TRY(fo_room_add(&room, path, fo_amount_of_picture(...), err));      for every file
 *   FTH_TRY(fo_room_check(&room, false, notes, err));
 */
#ifndef FOCUS_OUTPUT_ROOM_H
#define FOCUS_OUTPUT_ROOM_H

#include "format.h"

/* Bytes of a file that is not there yet. Both are the same where its size is known. */
typedef struct fo_amount {
    uint64_t likely, most;
} fo_amount;
fo_amount fo_amount_of_picture(const char *format, int quality, fth_dtype dtype, int64_t pixels);
/* So many files that are each like this one. */
fo_amount fo_amount_times(fo_amount each, int64_t n);

/* What goes to one file system. */
typedef struct fo_room_disk {
    uint64_t id, free_bytes;
    int64_t likely, most; /* below 0: what is replaced is larger */
    char path[FTH_PATH];  /* of the first file */
} fo_room_disk;
typedef struct fo_room {
    fo_room_disk disk[4];
    int n;
    int last;              /* disk of the last file, */
    char folder[FTH_PATH]; /* which lay here */
} fo_room;
/* Adds a file that will be written; an existing one is replaced, and its bytes are freed. */
fth_status fo_room_add(fo_room *r, const char *path, fo_amount amount, fth_err *err);
/* FTH_E_FILE_WRITE with both numbers where it likely does not fit; with `anyway`, or where only the
 * upper bound does not fit, it becomes a note. `notes` may be NULL. */
fth_status fo_room_check(const fo_room *r, bool anyway, fth_texts *notes, fth_err *err);
/* "1.2 GiB of 68 GiB free": the first disk. */
void fo_room_format(const fo_room *r, char *text, size_t bytes);

#endif
