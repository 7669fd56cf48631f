/* well.h - wells of a 96-well plate: A01 to A12, B01, ... H12, numbered by rows from 0. */
#ifndef FOCUS_PLATE_WELL_H
#define FOCUS_PLATE_WELL_H

#include <fathom/fathom.h>

enum { FO_ROWS = 8, FO_COLUMNS = 12, FO_WELLS = FO_ROWS * FO_COLUMNS, FO_WELL_NAME = 4 };
#define FO_WELL_PITCH_UM 9000.0 /* between neighbours, by the standard of plates */

/* "A01". */
const char *fo_well_name(int well, char name[FO_WELL_NAME]);
/* "A01", "a1"; -1: no well. */
int fo_well_parse(const char *text);

#endif
