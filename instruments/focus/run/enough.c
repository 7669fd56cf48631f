/* enough.c - see enough.h. */
#include "enough.h"

#include "../devices/devices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 32 }; /* the budget doubles each time: enough for any machine */

/* The budget that an error names; 0: none, as where the device has too little. */
static uint64_t named_in(const char *hint)
{
    static const char *const flags[] = {" --memory ", "mem.budget_bytes = "};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(hint, flags[i]);
        char *end;
        if (!at) continue;
        const uint64_t n = strtoull(at + strlen(flags[i]), &end, 10);
        return *end == 'M' ? n << 20 : n;
    }
    return 0;
}

fth_status fo_enough(fth_context *ctx, fth_status s, fo_try_fn *try_it, void *user, fth_err *err)
{
    if (!err || (s != FTH_E_BUDGET && s != FTH_E_NO_FIT)) return s;
    uint64_t budget = s == FTH_E_NO_FIT ? named_in(err->hint) : 1 << 20;
    for (int i = 0; i < TRIES && budget > 0; i++) {
        fth_context *own = NULL;
        fth_err found = {0};
        fth_status got = fo_device_open_with(&own, ctx, fth_context_device(ctx), budget, &found);
        if (got == FTH_OK) got = try_it(user, own, &found);
        (void)!fth_context_destroy(own, NULL);
        if (got == FTH_OK) {
            fth_err_hint(err, "would fit: --memory %" PRIu64, budget);
            return s;
        }
        if (got != FTH_E_BUDGET && got != FTH_E_NO_FIT) return s; /* another error */
        const uint64_t named = got == FTH_E_NO_FIT ? named_in(found.hint) : 0;
        if (got == FTH_E_NO_FIT && named == 0) return s;
        budget = named > budget ? named : 2 * budget;
    }
    return s;
}
