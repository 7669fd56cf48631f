/* table.h - the soundings of a real survey: a CSV file of any length, put into an array on the
 * disk. How many there are is known only behind its last line. */
#ifndef SOUNDING_TABLE_H
#define SOUNDING_TABLE_H

#include <fathom/fathom.h>

enum { SO_TABLE_COLUMNS = 3 }; /* x, y in km, depth in m */

typedef struct so_table {
    fth_scratch *rows; /* f32 [survey.cells column]: room for the most that there may be */
    int64_t n;         /* rows that were read */
} so_table;

/* The file that the config names, or NULL: the floor is made up. */
const char *so_table_path(const fth_config *cfg);
fth_status so_table_read(so_table *t, const fth_stage_call *call, fth_err *err);
void so_table_clear(so_table *t); /* one that was not read is allowed */

#endif
