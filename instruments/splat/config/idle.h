/* idle.h - keys that were set but have no effect, because another key is missing. */
#ifndef SPLAT_CONFIG_IDLE_H
#define SPLAT_CONFIG_IDLE_H

#include "settings.h"

/* `why`, with the names of keys or, with `flags`, of flags: "--pose-lr has no effect without
 * --pose-opt direct or mlp". */
typedef void gs_idle_fn(void *user, const char *key, const char *why);
/* Report every key of a checked config that differs from its default and has no effect. */
fth_status gs_settings_idle(const fth_config *cfg, fth_mem *mem, bool flags, gs_idle_fn *tell,
                            void *user, fth_err *err);

#endif
