/* standard.c - what settings would be, were only the strategy and the profile given. */
#include "settings.h"

#include <stdio.h>
#include <string.h>

enum { VALUE = 512 };

fth_status gs_settings_standard(const fth_config *cfg, fth_mem *mem, fth_config **out, fth_err *err)
{
    static const char *const kept[] = {"strategy", "profile"};
    char value[VALUE], line[VALUE + 40];
    FTH_TRY(fth_config_create(out, mem, err));
    fth_status s = fth_config_set(*out, "name=splat", err);
    for (int i = 0; s == FTH_OK && i < 2; i++) {
        gs_setting_text(cfg, kept[i], value, sizeof value);
        snprintf(line, sizeof line, "%s=%s", kept[i], value);
        s = fth_config_set(*out, line, err);
    }
    return s == FTH_OK ? fth_config_check(*out, &gs_schema, NULL, err) : s;
}

bool gs_setting_is_same(const fth_config *cfg, const fth_config *other, const char *key)
{
    char is[VALUE], its[VALUE];
    gs_setting_text(cfg, key, is, sizeof is);
    gs_setting_text(other, key, its, sizeof its);
    return strcmp(is, its) == 0;
}
