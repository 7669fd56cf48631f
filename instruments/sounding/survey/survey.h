/* survey.h - what the survey leaves, for the other stages; and the table of a real survey. */
#ifndef SOUNDING_SURVEY_H
#define SOUNDING_SURVEY_H

#include <fathom/fathom.h>

/* The arrays of its file, a row for each sounding: km, and m. */
enum { SO_PLACES, SO_DEPTHS, SO_TRUTH, SO_ARRAYS };
/* For a plan `make` makes sources of the most rows that there may be; NULL: from the file. */
fth_status so_soundings_open(fth_arrays *a, const fth_stage_call *call,
                             fth_source (*make)(fth_dtype, int, const int64_t *), fth_err *err);

enum { SO_COLUMNS = 3 }; /* of the table: x, y in km, depth in m */
/* The rows of survey.file: an array on the disk, f32 [cell column], since how many there are is
 * known only behind the last line. The caller destroys it. */
fth_status so_table_read(fth_scratch **table, fth_source *rows, const fth_stage_call *call,
                         fth_err *err);

#endif
