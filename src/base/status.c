/* status.c - the table of errors.def, and the version. */
#include <fathom/base.h>

static const fth_status_info table[FTH_STATUS_COUNT] = {
    [FTH_OK] = {.name = "OK", .code = "FTH-OK", .brief = "no error", .hint = "", .exit_code = 0},
#define FTH_ERROR(name_, code_, exit_, brief_, hint_)                                              \
    [FTH_E_##name_] = {                                                                            \
        .name = #name_, .code = code_, .brief = brief_, .hint = hint_, .exit_code = exit_},
#include <fathom/errors.def>
#undef FTH_ERROR
};

const fth_status_info *fth_status_get_info(fth_status status)
{
    const int i = (int)status;
    if (i < 0 || i >= FTH_STATUS_COUNT) return &table[FTH_E_INTERNAL];
    return &table[i];
}

const char *fth_version(void)
{
    return FTH_VERSION_TEXT;
}
