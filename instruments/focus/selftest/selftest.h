/* selftest.h - `fathom focus selftest`: checks known results of this program on this machine. */
#ifndef FOCUS_SELFTEST_SELFTEST_H
#define FOCUS_SELFTEST_SELFTEST_H

#include "../devices/devices.h"
#include "checks.h"

extern const fth_verb fo_verb_selftest;

/* All checks on all devices; formats go through a folder of their own in `folder`. FTH_E_JOB_FAILED
 * when one failed; all are run regardless. */
fth_status fo_selftest(fo_checks *c, fth_context *ctx, const fo_devices *devices,
                       const fo_expected *table, const char *folder, fth_err *err);

#endif
