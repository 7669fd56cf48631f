/* lanes.h - how many of a device's lanes are patient: the last ones of fth_lane. Their kernels give
 * way to those of the others. */
#ifndef FTH_BASE_LANES_H
#define FTH_BASE_LANES_H

enum { FTH__PATIENT_LANES = 2 };

#endif
