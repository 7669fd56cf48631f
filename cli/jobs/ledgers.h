/* ledgers.h - the commands that read ledgers: status, logs, clean; and waiting. */
#ifndef FATHOM_CLI_LEDGERS_H
#define FATHOM_CLI_LEDGERS_H

#include "../cli.h"

fth_status cli_run_status(const cli_call *call, fth_err *err);
fth_status cli_run_logs(const cli_call *call, fth_err *err);
fth_status cli_run_clean(const cli_call *call, fth_err *err);

/* Memory for a command that computes nothing. */
fth_status cli_small_mem(fth_mem **out, fth_err *err);
/* From now on SIGINT and SIGTERM only make cli_end_asked true. */
void cli_catch_end(void);
bool cli_end_asked(void);
/* Wait, at most until the command is interrupted. */
void cli_nap(double seconds);
double cli_seconds(void); /* of a monotonic clock */

#endif
