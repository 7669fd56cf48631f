/* show.c - format numbers of tasks as short texts. */
#include "job/view/show.h"

#include "base/str.h"

#include <math.h>

const char *fth__show_size(uint64_t bytes, char word[FTH__WORD])
{
    double v = (double)bytes;
    int unit = 0;
    for (; v >= 999.5 && unit < 6; unit++) v /= 1024;
    fth__text t;
    fth__text_init(&t, word, FTH__WORD);
    const unsigned tenths = (unsigned)lround(v * 10);
    if (unit > 0 && tenths < 100)
        fth__text_add(&t, "%u.%u%c", tenths / 10, tenths % 10, "BKMGTPE"[unit]);
    else
        fth__text_add(&t, "%u%c", (unsigned)lround(v), "BKMGTPE"[unit]);
    return word;
}

const char *fth__show_seconds(double seconds, char word[FTH__WORD])
{
    fth__text t;
    fth__text_init(&t, word, FTH__WORD);
    if (!(seconds >= 0) || seconds > 1e12) return word;
    const unsigned long long s = (unsigned long long)llround(seconds);
    if (seconds < 9.95)
        fth__text_add(&t, "%u.%us", (unsigned)(lround(seconds * 10) / 10),
                      (unsigned)(lround(seconds * 10) % 10));
    else if (s < 60)
        fth__text_add(&t, "%llus", s);
    else if (s < 3600)
        fth__text_add(&t, "%llu:%02llu", s / 60, s % 60);
    else if (s < 100 * 3600)
        fth__text_add(&t, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
    else
        fth__text_add(&t, "%llud %02lluh", s / 86400, s / 3600 % 24);
    return word;
}

const char *fth__show_value(double value, char word[FTH__WORD])
{
    fth__text t;
    fth__text_init(&t, word, FTH__WORD);
    if (isfinite(value)) fth__text_add(&t, "%.5g", value);
    for (size_t i = 0; i < t.used; i++)
        if (word[i] == ',') word[i] = '.';
    return word;
}

double fth__task_remaining(const fth_task *task)
{
    if (task->state != FTH_STATE_RUNNING) return 0;
    double left = task->remaining_s;
    if (!(left > 0) && task->done > 0 && task->total > task->done)
        left = task->seconds * (double)(task->total - task->done) / (double)task->done;
    if (!(left > 0)) left = task->planned_seconds - task->seconds;
    return left > 0 && isfinite(left) ? left : 0;
}

const char *fth__task_state(const fth_task *task)
{
    return task->cached && task->state == FTH_STATE_COMPLETED ? "cached"
                                                              : fth_state_name(task->state);
}

int fth__state_place(fth_state state)
{
    static const int place[FTH_STATE_COUNT] = {
        [FTH_STATE_RUNNING] = 0, [FTH_STATE_PENDING] = 1,     [FTH_STATE_BLOCKED] = 2,
        [FTH_STATE_FAILED] = 3,  [FTH_STATE_INTERRUPTED] = 4, [FTH_STATE_SKIPPED] = 5,
        [FTH_STATE_STALE] = 6,   [FTH_STATE_COMPLETED] = 7,
    };
    return (unsigned)state < FTH_STATE_COUNT ? place[state] : FTH_STATE_COUNT;
}
