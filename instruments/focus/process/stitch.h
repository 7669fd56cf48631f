/* stitch.h - the mosaics of a plate of tiles: which tiles, which files, how. */
#ifndef FOCUS_PROCESS_STITCH_H
#define FOCUS_PROCESS_STITCH_H

#include "work.h"

/* Called by fo_work_open and fo_work_close; nothing for an experiment without tiles. */
fth_status fo_work_open_mosaics(fo_work *w, fth_err *err);
void fo_work_close_mosaics(fo_work *w);

#endif
