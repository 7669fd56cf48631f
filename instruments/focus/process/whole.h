/* whole.h - tables of all existing images, where a run makes only some of them.
 *
 * With --wells or --times a plate is made in parts. Rows of images from other parts come from
 * existing tables; numbers in no table are measured again, so that the tables have the same bytes
 * however the plate was divided.
 */
#ifndef FOCUS_PROCESS_WHOLE_H
#define FOCUS_PROCESS_WHOLE_H

#include "work.h"

/* Reads what is on the disk, before the run; does nothing where everything is selected. */
fth_status fo_whole_open(fo_work *w, fth_err *err);
void fo_whole_close(fo_work *w);
/* Of what was chosen and is there, the numbers go to the results of the work. */
fth_status fo_whole_load(fo_work *w, const char *metrics, const char *planes, fth_err *err);
/* Numbers of the others that no table has. */
fth_status fo_whole_measure(fo_work *w, fth_err *err);
fth_status fo_whole_save(fo_work *w, const char *metrics, const char *planes, fth_err *err);

#endif
