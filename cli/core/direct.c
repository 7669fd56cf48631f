/* direct.c - an instrument that is a command by itself: `fathom bragg -cell 40 40 40 ...`.
 *
 * The parser passes its words through. The bar is drawn on a terminal only; signals are caught from
 * the first report of progress on, when something can react to them.
 */
#include "stage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *flag_value(void *user, const char *flag)
{
    return cli_get(user, flag);
}

static const char *flag_value_at(void *user, const char *flag, int i)
{
    return cli_get_at(user, flag, i);
}

void cli_shown_begin(cli_shown *s, const cli_call *call)
{
    const char *no_colour = getenv("NO_COLOR");
    const bool terminal = isatty(STDERR_FILENO) && !cli_get(call, "quiet");
    *s = (cli_shown){.bar = {.out = stderr, .terminal = terminal}};
    s->bar.colour = terminal && !(no_colour && *no_colour);
}

bool cli_shown_progress(void *user, const fth_progress *progress)
{
    cli_shown *s = user;
    if (!s->caught) cli_catch_signals();
    s->caught = true;
    cli_bar_share(&s->bar, progress);
    if (progress->fraction >= 1) cli_bar_clear(&s->bar); /* text may come next */
    return !cli_asked_to_end();
}

static void hide_progress(void *user)
{
    cli_shown *s = user;
    cli_bar_clear(&s->bar);
    s->bar.terminal = false;
}

/* --device, or the word of the instrument that stands for it: the last one. */
static fth_status find_device(const cli_call *call, fth_options *opt, fth_err *err)
{
    const char *word = call->command->direct->device_word;
    for (int i = 0; word && !cli_get(call, "device") && i + 1 < call->n_args; i++) {
        if (strcmp(call->arg[i], word) != 0) continue;
        opt->device = call->arg[i + 1];
        if (cli_is_device(opt->device)) continue;
        FTH_FAIL(err, FTH_E_COMMAND, "%s takes cpu, cuda or cuda:N, not '%.100s'", word,
                 opt->device);
        fth_err_hint(err, "write %s cuda, or --device auto", word);
        return FTH_E_COMMAND;
    }
    if (!opt->device) opt->device = "auto";
    return FTH_OK;
}

fth_status cli_run_direct(const cli_call *call, fth_err *err)
{
    cli_shown bar;
    cli_shown_begin(&bar, call);
    fth_options opt;
    fth_context *ctx = NULL;
    FTH_TRY(cli_context_options(call, fth_mem_free_now(), &opt, err));
    FTH_TRY(find_device(call, &opt, err));
    FTH_TRY(fth_context_create(&ctx, &opt, err));
    const fth_direct_call direct = {.context = ctx,
                                    .n_words = call->n_args,
                                    .word = call->arg,
                                    .value = flag_value,
                                    .value_at = flag_value_at,
                                    .user = (void *)(uintptr_t)call,
                                    .plan = cli_get(call, "plan") != NULL,
                                    .by_link = call->link != NULL,
                                    .out = call->out,
                                    .notes = cli_get(call, "quiet") ? NULL : stderr,
                                    .progress = cli_shown_progress,
                                    .progress_user = &bar,
                                    .hide_progress = hide_progress};
    const fth_status s = call->command->direct->run(&direct, err);
    cli_bar_clear(&bar.bar);
    const fth_status closed = fth_context_destroy(ctx, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}
