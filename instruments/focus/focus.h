/* focus.h - what the rooms offer to instrument.c. */
#ifndef FOCUS_H
#define FOCUS_H

#include "bench/bench.h"
#include "convert/convert.h"
#include "diagnose/examine.h"
#include "figures/sheet_verb.h"
#include "info/info.h"
#include "plate/init_verb.h"
#include "process/command.h"
#include "selftest/selftest.h"
#include "settings/settings.h"
#include "stack/stack.h"
#include "stages/stages.h"
#include "toy/toy.h"

#endif
