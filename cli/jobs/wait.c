/* wait.c - commands that poll until they are interrupted. */
#include "ledgers.h"

#include <signal.h>
#include <time.h>

static volatile sig_atomic_t end_asked; /* handlers reach nothing else */

static void on_signal(int number)
{
    (void)number;
    end_asked = 1;
}

void cli_catch_end(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_end_asked(void)
{
    return end_asked != 0;
}

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_nap(double seconds)
{
    if (seconds <= 0 || end_asked) return;
    const time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)(1e9 * (seconds - (double)whole))}, NULL);
}

fth_status cli_small_mem(fth_mem **out, fth_err *err)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 64 << 20; /* of data blocks, which they do not take */
    return fth_mem_create(out, &opt, err);
}
