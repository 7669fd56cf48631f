/* devices.h - devices by name, one after the other: "cpu", "cuda:0", ... */
#ifndef FOCUS_DEVICES_DEVICES_H
#define FOCUS_DEVICES_DEVICES_H

#include <fathom/fathom.h>

enum { FO_MOST_DEVICES = 16, FO_DEVICE_NAME = 16 };

typedef struct fo_devices {
    int n;
    char name[FO_MOST_DEVICES][FO_DEVICE_NAME];
    char no_gpu[200]; /* why none is among them that was looked for; "" where one is */
} fo_devices;

/* Those of a list "cpu,cuda:0"; NULL: the CPU and every GPU there is. FTH_E_COMMAND for an invalid
 * list. Whether one can be used is known when it is opened. */
fth_status fo_devices_list(fo_devices *out, const char *list, fth_err *err);
/* A context on that device, with the workers and the budget of `ctx`, which outlives it and is
 * asked for cancellation. */
fth_status fo_device_open(fth_context **out, fth_context *ctx, const char *device, fth_err *err);

/* The same with a budget of its own. */
fth_status fo_device_open_with(fth_context **out, fth_context *ctx, const char *device,
                               uint64_t budget, fth_err *err);

#endif
