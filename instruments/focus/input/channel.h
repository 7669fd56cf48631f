/* channel.h - which channel of a file is fused. */
#ifndef FOCUS_INPUT_CHANNEL_H
#define FOCUS_INPUT_CHANNEL_H

#include "input.h"
#include "problems.h"

/* Sets file->channel: the one asked for by name or number; BF; "EYES - Dia" or "Empty"; the only
 * one. Colours that become grey have channel 0; with --channels each, so does a file whose channels
 * are not known. What cannot be chosen is a problem. */
void fo_channel_choose(fo_file *file, const fo_selection *selection, fo_problems *problems);

#endif
