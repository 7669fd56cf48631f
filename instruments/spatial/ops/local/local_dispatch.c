/* local_dispatch.c - selects the loops for this processor. */
#include "local.h"

const sp_local_loops *sp_local_loops_at(int level)
{
    return level == 0 ? &sp_local_plain : FTH_ISA_AT(sp_local, level);
}

const sp_local_loops *sp_local_best(void)
{
    return FTH_ISA_BEST(sp_local);
}
