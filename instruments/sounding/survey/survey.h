/* survey.h - what the survey leaves, opened for the other stages; and the table of a real survey.
 */
#ifndef SOUNDING_SURVEY_H
#define SOUNDING_SURVEY_H

#include <fathom/fathom.h>

/* The arrays of its file: places in km, depths and the true floor in m. */
enum { SO_PLACES, SO_DEPTHS, SO_TRUTH, SO_ARRAYS };

typedef struct so_data {
    fth_safetensors *file;
    fth_source array[SO_ARRAYS];
    int64_t cells;
    bool bound; /* planned, and no more cells than that */
} so_data;
fth_status so_data_open(so_data *d, const fth_stage_call *call, fth_err *err);
void so_data_close(so_data *d);
/* The same shapes without data, for plans. */
so_data so_data_planned(const fth_config *cfg);

enum { SO_COLUMNS = 3 }; /* of the table: x, y in km, depth in m */
/* The CSV file that the config names, or NULL: the floor is made up. */
const char *so_table_path(const fth_config *cfg);
/* Its n rows in an array on the disk, f32 [survey.cells column]: how many there are is known only
 * behind the last line. The caller destroys it. */
fth_status so_table_read(fth_scratch **rows, int64_t *n, const fth_stage_call *call, fth_err *err);

#endif
