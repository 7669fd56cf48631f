/* version.c - the version, how the program was built, and the libraries it found. */
#include "../cli.h"

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

static fth_status as_json(FILE *out, fth_err *err)
{
    fth_json_writer j;
    cli_json_begin(&j, out);
    fth_json_open(&j, NULL, '{');
    fth_json_text(&j, "version", fth_version());
    fth_json_open(&j, "build", '{');
    fth_json_text(&j, "type", CLI_BUILD_TYPE);
    fth_json_text(&j, "compiler", compiler);
    fth_json_text(&j, "sanitizers", CLI_SANITIZE);
    fth_json_close(&j);
    fth_json_open(&j, "libraries", '[');
    for (int i = 0; i < cli_n_libraries; i++) {
        char version[256], file[512];
        const bool found =
            cli_library_find(&cli_libraries[i], version, sizeof version, file, sizeof file);
        fth_json_open(&j, NULL, '{');
        fth_json_text(&j, "name", cli_libraries[i].name);
        fth_json_text(&j, "version", found ? version : NULL);
        fth_json_text(&j, "file", found ? file : NULL);
        fth_json_text(&j, "use", cli_libraries[i].use);
        fth_json_close(&j);
    }
    fth_json_close(&j);
    fth_json_close(&j);
    return fth_json_end(&j, err);
}

fth_status cli_run_version(const cli_call *call, fth_err *err)
{
    FILE *const out = call->out;
    if (cli_get(call, "json") || cli_get(call, "verbose")) start_engine();
    if (cli_get(call, "json")) return as_json(out, err);
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
