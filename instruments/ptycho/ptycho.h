/* ptycho.h - what the rooms offer to instrument.c: a line for each verb and stage. */
#ifndef PTYCHO_H
#define PTYCHO_H

#include "blocks/block.h"
#include "check/check.h"
#include "compare/compare.h"
#include "convert/convert.h"
#include "data/data.h"
#include "evaluate/evaluate.h"
#include "figures/stage.h"
#include "infer/infer.h"
#include "info/info.h"
#include "settings/settings.h"
#include "simulate/simulate.h"
#include "solve/job.h"
#include "study/study.h"
#include "train/train.h"
#include "view/view.h"

#endif
