/* settings.h - the config of a job: its keys, the corresponding flags, lists as grids of jobs. */
#ifndef BRAGG_SETTINGS_H
#define BRAGG_SETTINGS_H

#include "../flags/flags.h"

/* Folder of finished frames until all are done; no output may have its name. */
#define BR_PARTS "frames"

extern const fth_schema br_schema;
fth_status br_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err);
/* Whether a key has a value: neither omitted nor reset with ~. */
bool br_given(const fth_config *cfg, const char *key);
/* Lists where a number is expected: one job for each combination. */
bool br_is_general(const fth_config *cfg);
bool br_expand(const fth_config *cfg, int64_t i, fth_variant_made *out);
/* The flags of a checked config. */
fth_status br_job_flags(br_flags *flags, const fth_config *cfg, fth_err *err);

#endif
