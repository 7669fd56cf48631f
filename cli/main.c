/* main.c - the program: parse, run the command, and turn its status into an exit code. */
#include "cli.h"

#include <stdlib.h>
#include <unistd.h>

static int exit_code(const cli_call *call, const fth_err *err)
{
    return call->link ? call->link->code : fth_status_get_info(err->status)->exit_code;
}

static int fail(const cli_call *call, const fth_err *err)
{
    char text[4096];
    fth_err_format(err, text, sizeof text);
    fputs(text, stderr);
    return exit_code(call, err);
}

int main(int argc, char **argv)
{
    const char *no_colour = getenv("NO_COLOR");
    cli_call call = {.out = stdout};
    if (isatty(STDOUT_FILENO)) {
        call.screen = stdout;
        call.out = cli_plain_stream(stdout);
    }
    call.colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
    fth_err err = {0};
    cli_take_link(&call, argv[0]);
    if (cli_check_limits(&err) != FTH_OK) _exit(fail(&call, &err)); /* libraries may not end */
    if (cli_parse(&call, argc, argv, &err) != FTH_OK) return fail(&call, &err);
    if (!call.command && !cli_get(&call, "help")) {
        cli_help_all(stderr);
        return fth_status_get_info(FTH_E_COMMAND)->exit_code;
    }
    fth_status s = FTH_OK;
    if (!call.command && call.group)
        cli_help_group(stdout, call.group);
    else if (!call.command)
        cli_help_all(stdout);
    else if (cli_get(&call, "help"))
        cli_help_command(stdout, call.command);
    else if ((s = cli_ranks_begin(&call, &err)) == FTH_OK &&
             (s = cli_trace_begin(&call, &err)) == FTH_OK)
        s = cli_trace_end(&call, call.command->run(&call, &err), &err);
    if ((fflush(call.out) != 0 || fflush(stdout) != 0 || ferror(stdout)) && s == FTH_OK) {
        s = FTH_FAIL(&err, FTH_E_FILE_WRITE, "standard output could not be written");
        fth_err_hint(&err, "check the disk or the program that reads it");
    }
    const bool alone = !call.ranks;
    cli_ranks_end(&call, s, s == FTH_OK ? 0 : exit_code(&call, &err), &err);
    if (s == FTH_OK) return 0;
    return alone ? fail(&call, &err) : exit_code(&call, &err);
}
