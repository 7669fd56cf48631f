/* preprocess.h - what the files of the stage share. */
#ifndef SPATIAL_PREPROCESS_H
#define SPATIAL_PREPROCESS_H

#include "../data/sections.h"
#include "tissue.h"
#include "variable.h"

enum { SP_WRITTEN_BYTES = 512 }; /* of what is kept of a picture that was written */

/* A source after all filters, ready to be written. */
typedef struct sp_prepared {
    sp_source source;
    sp_cells cells;
    sp_count_walk walk;
    sp_rules rules;
    sp_variable variable; /* empty unless genes were chosen by it */
    int64_t groups, entries;
    int32_t *group_map; /* new number of each group of the source; NULL: there are none */
    int64_t dropped[SP_DROP_KINDS];
    sp_frame frame;
    sp_tissues tissues;
    sp_sections sections; /* none: the config names none */
    uint64_t rows_hash;   /* of what rows.npy holds */
    uint64_t hash;        /* of the source file; 0 for folders */
    int64_t bytes;
} sp_prepared;

/* The folder `dir`, whole or not at all: under another name first, then renamed. */
fth_status sp_folder_write(sp_prepared *p, const fth_stage_call *call, const char *dir,
                           fth_err *err);

/* Whether there is a folder with counts. */
bool sp_folder_exists(const char *dir);
typedef enum sp_folder_maker {
    SP_MADE_HERE,     /* by this program */
    SP_MADE_EARLIER,  /* by a version that recorded less */
    SP_MADE_ELSEWHERE /* by another program */
} sp_folder_maker;
/* Settings that differ from the current config and source, of which only path, hash and bytes are
 * read: "" if none does. */
fth_status sp_folder_compare(const sp_prepared *now, const fth_config *cfg, const char *dir,
                             char *text, size_t bytes, sp_folder_maker *maker, fth_err *err);

#endif
