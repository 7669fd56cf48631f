/* flag_row.h - a row of flags.def as the parser and the setter see it. */
#ifndef BRAGG_FLAG_ROW_H
#define BRAGG_FLAG_ROW_H

#include "flags.h"

typedef enum br_flag_kind {
    BR_KIND_REAL,
    BR_KIND_INT,
    BR_KIND_TEXT,
    BR_KIND_SWITCH,
    BR_KIND_NOTHING, /* accepted and ignored */
    BR_KIND_CELL,
    BR_KIND_MISSET,
    BR_KIND_PIVOT,
    BR_KIND_ABSORPTION
} br_flag_kind;

/* How a typed number is converted: the reference divides where it could multiply, and the last bit
 * of a result depends on it. */
typedef enum br_flag_unit {
    BR_UNIT_ONE,
    BR_UNIT_MM, /* also mrad */
    BR_UNIT_DEG,
    BR_UNIT_WAVE,
    BR_UNIT_EV,
    BR_UNIT_UM,
    BR_UNIT_WATER,
    BR_UNIT_A,
    BR_UNIT_PERCENT
} br_flag_unit;

typedef enum br_flag_on {
    BR_ON_NOTHING,
    BR_ON_PGM,
    BR_ON_NOISE,
    BR_ON_PRINTOUT,
    BR_ON_POLAR
} br_flag_on;

typedef struct br_flag_row {
    br_flag_info info;
    br_flag_kind kind;
    br_flag_unit unit;
    size_t offset, size; /* of the field in br_flags; size of one element */
    int values;          /* numbers or words that follow */
    int copies;          /* fields that one value goes to */
    int on;              /* of a switch */
    br_flag_on turns_on;
    char pivot; /* 'B', 'S' or 0 */
    bool custom, stop, crash;
    int follow; /* tokens that must follow with substring-flags; 0: `values` */
} br_flag_row;

extern const br_flag_row br_flag_rows[BR_FLAG_COUNT];

/* Applies a row to values that are checked already, or need no check: atof and atoi accept
 * anything. `n` values; true: the reference looks for no further flag in the token. */
bool br_flag_apply(br_flags *f, br_flag_id id, const char *const *value, int n);
/* Checks `n` values against the row: integers, numbers, words. */
fth_status br_flag_check(br_flag_id id, const char *const *value, int n, fth_err *err);
/* Index of a flag by its name with its dash; -1: none. */
int br_flag_find(const char *name);
/* A flag of a successor of nanoBragg, and its values; *took: words used, 0 when it is not such a
 * flag. */
fth_status br_foreign_take(br_flags *f, const char *word, const char *const *next, int left,
                           int *took, fth_err *err);
/* The nearest name for a hint; "" when none is near. */
void br_flag_nearest(const char *name, char *near, size_t bytes);
/* Whether a text is a finite number and nothing else. */
bool br_is_number(const char *text);

#endif
