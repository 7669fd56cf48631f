/* focus.h - what the rooms offer to instrument.c. */
#ifndef FOCUS_H
#define FOCUS_H

#include "info/info.h"
#include "process/command.h"
#include "settings/settings.h"
#include "stack/stack.h"
#include "toy/toy.h"

#endif
