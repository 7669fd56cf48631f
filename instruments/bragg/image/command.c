/* command.c - `fathom bragg [nanoBragg flags]`, and the program under the name nanoBragg. */
#include "../console/console.h"
#include "../console/notices.h"
#include "../experiment/resolve.h"
#include "image.h"
#include "summary.h"

#include <stdlib.h>
#include <string.h>

typedef struct command {
    const fth_direct_call *call;
    br_flags flags;
    br_experiment experiment;
    FILE *out; /* the text; discarded with --quiet and --json */
} command;

/* A stream that discards everything. */
static ssize_t forget(void *nothing, const char *text, size_t bytes)
{
    (void)nothing;
    (void)text;
    return (ssize_t)bytes;
}

static FILE *nowhere(void)
{
    return fopencookie(NULL, "w", (cookie_io_functions_t){.write = forget});
}

static fth_status show_plan(const command *c, fth_err *err)
{
    const br_experiment *e = &c->experiment;
    br_passes *p = NULL;
    FTH_TRY(br_passes_create(&p, c->call->context, e, br_outputs_wanted(&e->out), err));
    const bool json = c->call->value(c->call->user, "json") != NULL;
    const fth_status s =
        json ? br_passes_print_json(p, c->call->out) : br_passes_print(p, c->call->out);
    br_passes_destroy(p);
    return s;
}

/* All checks have passed: the text begins, and the reflections are kept. */
static fth_status ready(void *user, fth_err *err)
{
    command *c = user;
    br_console_before(c->out, &c->flags, &c->experiment);
    return br_experiment_dump(&c->experiment, err);
}

/* --preview FILE, --preview-scale log|linear */
static fth_status set_preview(const fth_direct_call *call, br_image_job *job, fth_err *err)
{
    const char *scale = call->value(call->user, "preview-scale");
    job->preview = call->value(call->user, "preview");
    job->preview_linear = scale && !strcmp(scale, "linear");
    if (!scale || job->preview_linear || !strcmp(scale, "log")) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "--preview-scale takes log or linear, not '%.200s'", scale);
    fth_err_hint(err, "write --preview-scale=log");
    return FTH_E_COMMAND;
}

/* --smv32 FILE, --cbf FILE */
static fth_status set_photon_files(const fth_direct_call *call, br_outputs *out, fth_err *err)
{
    static const char *const flag[2] = {"smv32", "cbf"};
    char *const to[2] = {out->smv32_file, out->cbf_file};
    for (int i = 0; i < 2; i++) {
        const char *path = call->value(call->user, flag[i]);
        if (path && snprintf(to[i], FTH_PATH, "%s", path) >= FTH_PATH)
            return FTH_FAIL(err, FTH_E_COMMAND, "--%s: the path is too long", flag[i]);
    }
    return FTH_OK;
}

/* Notices beside nanoBragg's text; c mode prints none about nanoBragg's own flags. */
static void say_notices(const command *c)
{
    const br_experiment *e = &c->experiment;
    char text[BR_NOTICE];
    if (!c->call->notes) return;
    if (c->flags.spec && br_notice_places(&c->flags, text, sizeof text))
        fprintf(c->call->notes, "NOTICE: %s\n", text);
    if (e->out.cbf_file[0] && br_notice_header(e, true, text, sizeof text))
        fprintf(c->call->notes, "NOTICE: %s\n", text);
}

/* No input may be overwritten, and no output by another. */
static fth_status check_files(const command *c, const char *preview, fth_err *err)
{
    fth_path_use use[BR_FLAGS_READS + 1];
    int n = br_flags_reads(&c->flags, use);
    use[n++] = (fth_path_use){FTH_FILE_OUTPUT, "--preview", preview};
    return br_outputs_distinct(&c->experiment.out, use, n, fth_context_mem(c->call->context), err);
}

static fth_status run(command *c, fth_err *err)
{
    const fth_direct_call *call = c->call;
    br_image_job job = {.context = call->context,
                        .experiment = &c->experiment,
                        .out = c->out,
                        .progress = call->progress,
                        .progress_user = call->progress_user,
                        .ready = ready,
                        .ready_user = c};
    const char *rows = call->value(call->user, "checkpoint"); /* a checked number */
    job.checkpoint = rows ? strtoll(rows, NULL, 10) : 0;
    FTH_TRY(set_preview(call, &job, err));
    FTH_TRY(br_flags_of_call(&c->flags, call, err));
    /* In c mode the text has the reference's own progress meter. */
    if (call->hide_progress && (!c->flags.spec || !c->flags.progress))
        call->hide_progress(call->progress_user);
    if (!br_flags_enough(&c->flags)) {
        br_console_usage(c->out, &c->flags);
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "structure factors (-hkl, -default_F) and a crystal (-cell, -mat) are "
                        "needed");
    }
    FTH_TRY(br_experiment_resolve(&c->experiment, fth_context_mem(call->context), &c->flags, err));
    fth_status s = set_photon_files(call, &c->experiment.out, err);
    br_statistics stats;
    if (s == FTH_OK) s = check_files(c, job.preview, err);
    if (s == FTH_OK) say_notices(c);
    if (s == FTH_OK) s = call->plan ? show_plan(c, err) : br_image_make(&job, &stats, err);
    if (s == FTH_OK && !call->plan && call->value(call->user, "json"))
        s = br_summary_json(call->out, &c->experiment, &stats, err);
    br_experiment_clear(&c->experiment);
    return s;
}

static fth_status run_quietly(command *c, fth_err *err)
{
    c->out = nowhere();
    if (!c->out)
        return FTH_FAIL(err, FTH_E_NOMEM, "the system refused to create a stream in memory");
    const fth_status s = run(c, err);
    fclose(c->out);
    return s;
}

fth_status br_image_command(const fth_direct_call *call, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->context);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(command), "bragg command", &block, err));
    command *c = memset(block, 0, sizeof *c);
    c->call = call;
    c->out = call->out;
    const bool quiet = call->value(call->user, "quiet") || call->value(call->user, "json");
    const fth_status s = quiet ? run_quietly(c, err) : run(c, err);
    (void)fth_mem_release(mem, block, NULL);
    return s;
}
