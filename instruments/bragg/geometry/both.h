/* both.h - BR_BOTH stands before functions that are also compiled for a device (ops/device.h).
 *
 * BR_APART as well, before rarely called ones, which would cost the device loops registers if
 * inlined.
 */
#ifndef BRAGG_BOTH_H
#define BRAGG_BOTH_H

#ifndef BR_BOTH
#define BR_BOTH
#endif
#ifndef BR_APART
#define BR_APART
#endif

#endif
