/* survey.h - what the survey leaves, for the other stages; and the table of a real survey. */
#ifndef SOUNDING_SURVEY_H
#define SOUNDING_SURVEY_H

#include <fathom/fathom.h>

/* The arrays of its file, a row for each sounding: km, and m. */
enum { SO_PLACES, SO_DEPTHS, SO_TRUTH, SO_ARRAYS };
fth_status so_soundings_open(fth_arrays *a, const fth_stage_call *call, fth_err *err);
/* Their shapes, of sources made by `make`; true: there may be fewer rows. */
bool so_soundings_plan(fth_arrays *a, const fth_config *cfg,
                       fth_source (*make)(fth_dtype, int, const int64_t *));

enum { SO_COLUMNS = 3 }; /* of the table: x, y in km, depth in m */
/* The CSV file that the config names, or NULL: the floor is made up. */
const char *so_table_path(const fth_config *cfg);
/* Its n rows in an array on the disk, f32 [survey.cells column]: how many there are is known only
 * behind the last line. The caller destroys it. */
fth_status so_table_read(fth_scratch **rows, int64_t *n, const fth_stage_call *call, fth_err *err);

#endif
