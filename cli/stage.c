/* stage.c - one stage of one job, in this process. */
#include "stage.h"

fth_status cli_run_stage(const cli_call *call, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_INTERNAL, "'fathom %s' is built next", call->command->name);
}

fth_status cli_run_generate(const cli_call *call, fth_err *err)
{
    return cli_run_stage(call, err);
}

fth_status cli_run_verb(const cli_call *call, fth_err *err)
{
    return cli_run_stage(call, err);
}
