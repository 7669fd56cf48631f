/* device.h - what the cases of a device share: the peer in PyTorch, copies, one way to compare.
 *
 * Arrays are parameters, so they stay on the device from run to run. Seconds are those of the host,
 * of both sides: from a call with nothing queued until the device is done. What the kernels took of
 * them, by the device's own marks, and PyTorch's by its events, stands beside it. Both take turns.
 */
#ifndef FATHOM_BENCH_DEVICE_H
#define FATHOM_BENCH_DEVICE_H

#include "bench.h"

typedef struct device {
    bench *b;
    peer_python *torch; /* NULL: there is none, and why_not says why */
    const char *why_not;
    fth_backend_found found;
    fth_device *card;
    fth_device_info info;
    double copy_rate;  /* GB/s read and written, of the backend's own copies */
    double torch_rate; /* and of PyTorch's; 0: none */
} device;

typedef struct device_task {
    const char *name, *shape;
    bench_program *p;
    double amount; /* in 1e9 `unit`s */
    const char *unit;
    double limit;          /* 1e9 `unit`s per second; 0: not known */
    const char *peer;      /* what the peer calls it, with its sizes; NULL: no peer of PyTorch */
    const char *peer_name; /* how it is printed */
    double bar;
    int pairs;
} device_task;

/* Ours against PyTorch; the peer's median seconds, 0 without one. */
double device_compare(device *d, const device_task *t);
/* Ours against seconds that are known. */
void device_against(device *d, const device_task *t, double seconds);
/* An axis of n / divide elements, at least 8. */
int64_t device_size(const device *d, int64_t n);
/* Close and count what went wrong as a failure. */
void device_close(device *d, bench_program *p);

/* ---- cases ---- */

void device_replay(device *d);
void device_copy(device *d);
void device_chain(device *d);
void device_sums(device *d);
void device_filters(device *d);
void device_products(device *d);
void device_convolutions(device *d);
void device_transforms(device *d);
void device_solvers(device *d);
void device_squares(device *d);
void device_densify(device *d);
void device_reading(device *d);
void device_spatial(device *d);

#endif
