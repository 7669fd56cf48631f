/* stage.h - the commands of the instruments, and what commands that compute have in common. */
#ifndef FATHOM_CLI_STAGE_H
#define FATHOM_CLI_STAGE_H

#include "../cli.h"

/* One stage of one job, in this process. */
fth_status cli_run_stage(const cli_call *call, fth_err *err);
/* What every stage of every job of a config would take. */
fth_status cli_run_plan(const cli_call *call, fth_err *err);
fth_status cli_run_generate(const cli_call *call, fth_err *err);
fth_status cli_run_verb(const cli_call *call, fth_err *err);
fth_status cli_run_direct(const cli_call *call, fth_err *err);

/* From here on the first SIGINT or SIGTERM only asks to end; a second SIGINT ends at once. */
void cli_catch_signals(void);
bool cli_asked_to_end(void);
/* The same for SIGUSR1, from now on: mpirun passes it to all ranks, and kills them soon after
 * others.
 */
void cli_catch_usr1(void);

/* What a plan for several ranks says of them: a key of a document; nothing for one rank. */
void cli_ranks_json(fth_json_writer *j, const fth_stage_plan *plan);

/* The jobs of -c with the sets of --set and --seed; mistakes go to standard error. `stages` as in
 * fth_jobs_options. */
fth_status cli_find_jobs(const cli_call *call, fth_mem *mem, const char *stages, fth_jobs **out,
                         fth_err *err);

/* ---- how far a stage is, for people (bar.c) ---- */

typedef struct cli_bar {
    FILE *out;
    bool terminal, colour, shown;
    const char *figure; /* number that is shown beside; NULL: none */
    double first_at, shown_at;
    double first_done; /* iterations when it was first asked */
} cli_bar;
/* One line of progress as fth_stage_options hands it out. */
void cli_bar_show(cli_bar *bar, const char *json);
/* The same from the share that is done; a terminal only. */
void cli_bar_share(cli_bar *bar, const fth_progress *progress);
/* Take the bar off the terminal: something else is to be written. */
void cli_bar_clear(cli_bar *bar);
/* The bar of a command that computes (direct.c): begin it, and give it to the context or to a run.
 * The first progress catches signals; after one the run is asked to end. */
typedef struct cli_shown {
    cli_bar bar;
    bool caught;
} cli_shown;
void cli_shown_begin(cli_shown *s, const cli_call *call);
bool cli_shown_progress(void *shown, const fth_progress *progress);
/* A number of a line of progress; false: it has none of that name. */
bool cli_progress_number(const char *json, const char *name, double *out);

#endif
