/* testing/engine/op_device.h - one call of a kernel on a device, from and to memory of the host.
 *
 * FATHOM_TEST_DEVICE names the library of a backend (lib/libfathom_cuda.so); without it there is no
 * device and nothing here does anything. Everything a call may touch is copied to blocks of its own
 * on the device, bytes around the tiles included, and copied back, so whoever laid out guards on
 * the host finds what a kernel did to them. Each program ends with one line about what it ran.
 */
#ifndef FATHOM_TESTING_OP_DEVICE_H
#define FATHOM_TESTING_OP_DEVICE_H

#include "testing/test.h"
#include "trial/pieces.h"

#include <fathom/backend.h>

/* The block of the host that a tile lies in. */
typedef fth__check_span t_span;

/* Was a device asked for? Opens it the first time; skips the case when there is none. */
bool t_device(void);
/* Is the device alone to be tried? What a case finds out on the CPU by itself (kernels there,
 * cuttings of the reference, differences) was then tried by the same test without a device
 * (FTH_TEST_DEVICE_ONLY). */
bool t_device_only(void);
/* The prepared kernel for this node; NULL: there is none, which is counted and told at the end. */
const fth_kernel *t_device_find(const fth_node *node);
/* Does the device have one? (Not counted.) */
bool t_device_has(const fth_node *node);
/* Run it with addresses of the host. Outputs that are wanted, and the state, are copied back;
 * scratch is the kernel's own size, with guards. What was left in call->fault is explained. */
fth_status t_device_run(const fth_kernel *kernel, const fth_call *call, const t_span *in,
                        const t_span *out, const t_span *state);
/* All of a value, dense. */
void t_whole_tile(const fth_desc *d, fth_tile *t);
/* The backend and its open device, for what needs more than single calls. */
const fth_backend *t_device_backend(fth_device **device);
/* Must this operation give the very numbers of the reference? (It moves or makes elements.) */
bool t_device_exact(const fth_node *node);

#endif
