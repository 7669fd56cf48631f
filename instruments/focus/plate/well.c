/* well.c - see well.h. */
#include "well.h"

const char *fo_well_name(int well, char name[FO_WELL_NAME])
{
    const int column = well % FO_COLUMNS + 1;
    name[0] = (char)('A' + well / FO_COLUMNS);
    name[1] = (char)('0' + column / 10);
    name[2] = (char)('0' + column % 10);
    name[3] = 0;
    return name;
}

int fo_well_parse(const char *text)
{
    const int row = (text[0] & ~0x20) - 'A'; /* the case of a letter is one bit */
    int64_t column = 0;
    if (row < 0 || row >= FO_ROWS || text[1] < '0' || text[1] > '9') return -1;
    if (!fth_int_parse(text + 1, &column) || column < 1 || column > FO_COLUMNS) return -1;
    return row * FO_COLUMNS + (int)column - 1;
}
