/* schedule.h - the learning rate after an epoch, and when to stop. */
#ifndef PTYCHO_TRAIN_SCHEDULE_H
#define PTYCHO_TRAIN_SCHEDULE_H

#include "checkpoint.h"

/* The rate of the first epoch. */
double pt_schedule_first(const fth_config *cfg);
/* After epoch at->epoch (from 1) with these losses: sets at->rate of the next one and what the
 * rules remember. True: the loss has not fallen for early_stop_patience epochs. */
bool pt_schedule_next(const fth_config *cfg, pt_standing *at, double loss, double val);

#endif
