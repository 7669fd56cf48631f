/* both.h - BR_BOTH stands before functions that are also compiled for a device (ops/device.h). */
#ifndef BRAGG_BOTH_H
#define BRAGG_BOTH_H

#ifndef BR_BOTH
#define BR_BOTH
#endif

#endif
