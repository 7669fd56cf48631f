/* ranks.c - a command as one of several ranks, started by mpirun or srun.
 *
 * Whoever starts ranks says so in the environment; without that MPI is never loaded. Rank 0 speaks;
 * the others are silent until they fail. A failure that only one rank has leaves the others waiting
 * somewhere, so it ends them all.
 */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Before a rank speaks of its failure: when rank 0 has the same one, a mistake in the config say,
 * it is faster and ends all, and the user reads it once; mpirun takes a second to
 * kill it. One that heard of the failure of another rank leaves the words to that one, and ends all
 * if that has not. */
enum { WAIT_MS = 2000, HEARD_MS = 5000 };

static int number(const char *variable)
{
    const char *text = getenv(variable);
    return text && *text ? (int)strtol(text, NULL, 10) : 0;
}

/* ---- who started this process ---- */

/* Tasks of this step; `ompi`: mpirun of Open MPI did. 1: alone. */
static int ranks_started(bool *ompi)
{
    const int of_ompi = number("OMPI_COMM_WORLD_SIZE");
    *ompi = of_ompi > 0;
    if (*ompi) return of_ompi;
    const int of_slurm = number("SLURM_STEP_NUM_TASKS"), of_pmi = number("PMI_SIZE");
    return of_slurm > 1 ? of_slurm : of_pmi > 1 ? of_pmi : 1;
}

static fth_status check_starter(int n, bool ompi, fth_err *err)
{
    const bool slurm = number("SLURM_STEP_NUM_TASKS") > 1, pmix = getenv("PMIX_RANK") != NULL;
    if (ompi || pmix) return FTH_OK;
    if (slurm)
        FTH_FAIL(err, FTH_E_RANKS, "srun started %d tasks without MPI for them to talk", n);
    else
        FTH_FAIL(err, FTH_E_RANKS,
                 "%d processes were started by mpiexec of another MPI (PMI_RANK is set)", n);
    fth_err_hint(err, slurm ? "use srun --mpi=pmix, or mpirun of Open MPI inside the job; for one "
                              "process, srun -n 1"
                            : "use mpirun of Open MPI; MPICH and its relatives are not supported");
    return FTH_E_RANKS;
}

static fth_status check_command(const cli_call *call, fth_err *err)
{
    const cli_command *c = call->command;
    if (!c->of_stage && !c->verb && !c->direct) {
        FTH_FAIL(err, FTH_E_RANKS, "mpirun is for one stage: 'fathom %s' runs in one process",
                 c->name);
        fth_err_hint(err,
                     "write mpirun -n R fathom INSTRUMENT STAGE -c CONFIG, or leave mpirun out");
        return FTH_E_RANKS;
    }
    if (c->instrument->ranks) return FTH_OK;
    FTH_FAIL(err, FTH_E_RANKS, "the instrument %s does not divide its work among ranks",
             c->instrument->name);
    fth_err_hint(err, "leave mpirun out; 'fathom run' runs several jobs side by side");
    return FTH_E_RANKS;
}

/* ---- begin ---- */

/* Standard output and error of a silent rank go nowhere; errors keep their way. */
static fth_status silence(cli_call *call, fth_err *err)
{
    const int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3),
              nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const bool ok = own >= 0 && nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0 &&
                    dup2(nowhere, STDERR_FILENO) >= 0 && (call->errors = fdopen(own, "w"));
    if (nowhere >= 0) close(nowhere);
    return ok ? FTH_OK
              : FTH_FAIL(err, FTH_E_FILE_OPEN, "the output of a rank cannot be redirected: %s",
                         strerror(errno));
}

/* Ranks of one node talk through its memory. Open MPI looks for networks all the same, which takes
 * 0.2 s; whoever wants one for that names it in this variable, or with mpirun --mca pml. */
static void leave_networks(void)
{
    const int local = number("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (local > 0 && local == number("OMPI_COMM_WORLD_SIZE")) setenv("OMPI_MCA_pml", "ob1", 0);
}

fth_status cli_ranks_begin(cli_call *call, fth_err *err)
{
    bool ompi;
    const int n = ranks_started(&ompi);
    if (n <= 1) return FTH_OK;
    FTH_TRY(check_starter(n, ompi, err));
    FTH_TRY(check_command(call, err));
    FTH_TRY(fth_mem_create(&call->ranks_mem, NULL, err));
    leave_networks();
    FTH_TRY(fth_ranks_open_mpi(&call->ranks, call->ranks_mem, err));
    if (fth_ranks_count(call->ranks) != n) {
        FTH_FAIL(err, FTH_E_RANKS, "%d processes were started, and Open MPI knows of %d", n,
                 fth_ranks_count(call->ranks));
        fth_err_hint(err, "mpirun and the library must be of one Open MPI; srun needs --mpi=pmix");
        return FTH_E_RANKS;
    }
    cli_catch_usr1();
    return fth_ranks_rank(call->ranks) > 0 ? silence(call, err) : FTH_OK;
}

/* ---- end ---- */

/* Whole, also after a signal: mpirun asks ranks to end before it kills them. */
static void wait_ms(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) continue;
}

static void print_failure(const cli_call *call, const fth_err *err)
{
    char text[4096], node[256] = "?";
    FILE *to = call->errors ? call->errors : stderr;
    (void)gethostname(node, sizeof node - 1);
    fth_err_format(err, text, sizeof text);
    fprintf(to, "rank %d on %s: %s", fth_ranks_rank(call->ranks), node, text);
    fflush(to);
}

/* Stopped ranks have agreed to stop and all come here; other failures end those that wait. */
void cli_ranks_end(cli_call *call, fth_status s, int code, const fth_err *err)
{
    if (!call->ranks) return;
    const int rank = fth_ranks_rank(call->ranks);
    const bool heard = strncmp(err->text, "rank ", 5) == 0;
    fflush(NULL);
    if (s == FTH_E_CANCELLED && rank == 0) print_failure(call, err);
    if (s != FTH_OK && s != FTH_E_CANCELLED) {
        if (rank > 0 || heard) wait_ms(heard ? HEARD_MS : WAIT_MS);
        print_failure(call, err);
        fth_ranks_abort(call->ranks, code);
    }
    fth_ranks_close(call->ranks);
    call->ranks = NULL;
    (void)fth_mem_destroy(call->ranks_mem, NULL);
}
