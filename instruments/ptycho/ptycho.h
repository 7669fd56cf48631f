/* ptycho.h - what the rooms offer to instrument.c: a line for each verb and stage. */
#ifndef PTYCHO_H
#define PTYCHO_H

#include "info/info.h"
#include "settings/settings.h"

#endif
