/* limits.c - limits of the shell (ulimit) that would make the program hang or be killed.
 *
 * OpenBLAS starts a thread per core when it is loaded; each reserves 128 MiB of addresses and
 * retries forever when that fails, so the program would never end. A limit that is too small for
 * that is an error at startup.
 */
#include "../cli.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const uint64_t base_bytes = (uint64_t)160 << 20, thread_bytes = (uint64_t)128 << 20;

static int blas_threads(void)
{
    const char *given = getenv("OPENBLAS_NUM_THREADS");
    const long n = given ? strtol(given, NULL, 10) : 0;
    cpu_set_t set;
    if (n > 0) return n < 1024 ? (int)n : 1024;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

fth_status cli_check_limits(fth_err *err)
{
    struct rlimit most;
    /* A file that grows too large is then an error of the write, as on a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return FTH_OK;
    const uint64_t need = base_bytes + (uint64_t)blas_threads() * thread_bytes;
    if (most.rlim_cur >= need) return FTH_OK;
    char is[32], wanted[32], one[32];
    FTH_FAIL(err, FTH_E_NOMEM,
             "this shell limits the address space to %s (ulimit -v), and %s are needed",
             fth_mem_format_size(most.rlim_cur, is, sizeof is),
             fth_mem_format_size(need, wanted, sizeof wanted));
    fth_err_hint(err,
                 "'ulimit -v unlimited' lifts it; with OPENBLAS_NUM_THREADS=1 %s are enough; "
                 "--memory limits the memory in use",
                 fth_mem_format_size(base_bytes + thread_bytes, one, sizeof one));
    return FTH_E_NOMEM;
}
