/* record.h - run.json: how the existing images were made, with time and memory. */
#ifndef FOCUS_PROCESS_RECORD_H
#define FOCUS_PROCESS_RECORD_H

#include "work.h"

#define FO_RECORD "run.json"

/* {"ff_A01_t0001/im_p0000": "5f3a...", ...}: files that tiles are made of. */
#define FO_RECORD_TILES "tile_files_xxh64"

/* Writes the record of the work so far. */
fth_status fo_record_save(const fo_work *w, fth_err *err);

/* {"input": {...}, "focus": {...}}: the settings that affect the images, without excluded keys. */
void fo_record_add_config(fth_json_writer *w, const char *key, const fth_config *cfg,
                          bool (*is_left_out)(const void *user, const char *key), const void *user);
/* Of the first and the last MiB of a file. */
fth_status fo_record_hash(fth_mem *mem, const char *path, uint64_t *hash, fth_err *err);

#endif
