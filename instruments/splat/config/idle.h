/* idle.h - keys that were given and change nothing, for want of another one. */
#ifndef SPLAT_CONFIG_IDLE_H
#define SPLAT_CONFIG_IDLE_H

#include "settings.h"

/* `why`, with the names of keys or, with `flags`, of flags: "--pose-lr has no effect without
 * --pose-opt direct or mlp". */
typedef void gs_idle_fn(void *user, const char *key, const char *why);
/* Every key of a checked config whose value is not its default, and that has no effect. */
fth_status gs_settings_idle(const fth_config *cfg, fth_mem *mem, bool flags, gs_idle_fn *tell,
                            void *user, fth_err *err);

#endif
