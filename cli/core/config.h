/* config.h - commands about configs. */
#ifndef FATHOM_CLI_CONFIG_H
#define FATHOM_CLI_CONFIG_H

#include "../cli.h"

fth_status cli_run_config_check(const cli_call *call, fth_err *err);
fth_status cli_run_config_docs(const cli_call *call, fth_err *err);

/* The same with instruments of the caller's, and lines about configs going to `lines`. */
fth_status cli_config_check(const cli_call *call, const fth_instrument *const *instrument, int n,
                            FILE *lines, fth_err *err);
fth_status cli_config_docs(const cli_call *call, const fth_instrument *const *instrument, int n,
                           fth_err *err);

#endif
