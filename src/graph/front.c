/* front.c - limits by the names that whoever reads a message knows. */
#include "graph/context.h"

#include <stdio.h>

typedef struct words {
    const char *before, *after;
} words;
/* By front, whether it is a device's memory, and whether the limit is the context's. */
static const words limit[FTH_FRONT_CLI + 1][2][2] = {
    [FTH_FRONT_C] = {{{"memory_bytes = ", ""}, {"mem.budget_bytes = ", ""}},
                     {{"device_bytes = ", ""}, {"device_memory_bytes = ", ""}}},
    [FTH_FRONT_PYTHON] = {{{"memory=", ""}, {"Context(memory=", ")"}},
                          {{"Context(device_memory=", ")"}, {"Context(device_memory=", ")"}}},
    [FTH_FRONT_CLI] = {{{"--memory ", ""}, {"--memory ", ""}},
                       {{"--device-memory ", ""}, {"--device-memory ", ""}}}};

const char *fth__limit_text(fth_front front, bool device, bool of_context, uint64_t bytes,
                            char text[FTH__LIMIT_TEXT])
{
    const words *w = &limit[front][device][of_context];
    snprintf(text, FTH__LIMIT_TEXT, "%s%llu%s", w->before, (unsigned long long)bytes, w->after);
    return text;
}

fth_status fth__threads_check(int threads, fth_err *err)
{
    enum { MOST = 4096 }; /* more than any machine has; sums of workspace stay far from 2^64 */
    if (threads >= 0 && threads <= MOST) return FTH_OK;
    return FTH_FAIL(err, FTH_E_USAGE, "threads must be 0 to %d, not %d", MOST, threads);
}
