/* console.h - the text of the reference that is printed before the render. */
#ifndef BRAGG_CONSOLE_H
#define BRAGG_CONSOLE_H

#include "../experiment/experiment.h"
#include "../flags/flags.h"

void br_console_before(FILE *out, const br_flags *f, const br_experiment *e);
void br_console_usage(FILE *out, const br_flags *f);

#endif
