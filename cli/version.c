/* version.c - the version, how the program was built, and the libraries it found. */
#include "cli.h"

static const char compiler[] =
#if defined(__clang__)
    __VERSION__; /* names itself */
#elif defined(__GNUC__)
    "gcc " __VERSION__;
#else
    "unknown";
#endif

/* The engine has OpenBLAS choose its kernels anew when it starts, and those are to be named. When
 * it does not start, the libraries speak for themselves. */
static void start_engine(void)
{
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.device = "cpu";
    opt.threads = 1;
    if (fth_context_create(&ctx, &opt, NULL) == FTH_OK) (void)fth_context_destroy(ctx, NULL);
}

static void as_json(FILE *out)
{
    cli_json j = {.out = out};
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "version", fth_version());
    cli_json_open(&j, "build", '{');
    cli_json_text(&j, "type", CLI_BUILD_TYPE);
    cli_json_text(&j, "compiler", compiler);
    cli_json_text(&j, "sanitizers", CLI_SANITIZE);
    cli_json_close(&j, '}');
    cli_json_open(&j, "libraries", '[');
    for (int i = 0; i < cli_n_libraries; i++) {
        char version[256], file[512];
        const bool found =
            cli_library_find(&cli_libraries[i], version, sizeof version, file, sizeof file);
        cli_json_open(&j, NULL, '{');
        cli_json_text(&j, "name", cli_libraries[i].name);
        cli_json_text(&j, "version", found ? version : NULL);
        cli_json_text(&j, "file", found ? file : NULL);
        cli_json_text(&j, "use", cli_libraries[i].use);
        cli_json_close(&j, '}');
    }
    cli_json_close(&j, ']');
    cli_json_close(&j, '}');
}

fth_status cli_run_version(const cli_call *call, fth_err *err)
{
    (void)err;
    FILE *const out = call->out;
    if (cli_get(call, "json") || cli_get(call, "verbose")) start_engine();
    if (cli_get(call, "json")) {
        as_json(out);
        return FTH_OK;
    }
    fprintf(out, "fathom %s\n", fth_version());
    if (!cli_get(call, "verbose")) return FTH_OK;
    fprintf(out, "build       %s, %s%s%s\n", CLI_BUILD_TYPE, compiler,
            CLI_SANITIZE[0] ? ", sanitizers " : "", CLI_SANITIZE);
    for (int i = 0; i < cli_n_libraries; i++) {
        char version[256], file[512];
        const bool found =
            cli_library_find(&cli_libraries[i], version, sizeof version, file, sizeof file);
        fprintf(out, "%-11s %s\n", cli_libraries[i].name, found ? version : "not found");
        if (found) fprintf(out, "            %s\n", file);
        fprintf(out, "            for %s\n", cli_libraries[i].use);
    }
    return FTH_OK;
}
