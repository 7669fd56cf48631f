/* stage.h - the commands of the instruments. */
#ifndef FATHOM_CLI_STAGE_H
#define FATHOM_CLI_STAGE_H

#include "cli.h"

/* One stage of one job, in this process. */
fth_status cli_run_stage(const cli_call *call, fth_err *err);
fth_status cli_run_generate(const cli_call *call, fth_err *err);
fth_status cli_run_verb(const cli_call *call, fth_err *err);

#endif
