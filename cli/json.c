/* json.c - JSON to a file, indented, always valid: the writer sets commas and escapes. */
#include "cli.h"

#include <math.h>

/* One string, by the writer of the library: all JSON of the program escapes alike. */
static void text(FILE *out, const char *s)
{
    fth_json_writer w;
    fth_json_begin_file(&w, out, "the output", false);
    fth_json_text(&w, NULL, s);
}

static void begin(cli_json *j, const char *key)
{
    if (j->comma) fputc(',', j->out);
    if (j->depth) fprintf(j->out, "\n%*s", 2 * j->depth, "");
    if (key) {
        text(j->out, key);
        fputs(": ", j->out);
    }
    j->comma = true;
}

void cli_json_open(cli_json *j, const char *key, char bracket)
{
    begin(j, key);
    fputc(bracket, j->out);
    j->depth++;
    j->comma = false;
}

void cli_json_close(cli_json *j, char bracket)
{
    j->depth--;
    if (j->comma) fprintf(j->out, "\n%*s", 2 * j->depth, "");
    fputc(bracket, j->out);
    j->comma = true;
    if (j->depth == 0) fputc('\n', j->out);
}

void cli_json_text(cli_json *j, const char *key, const char *value)
{
    begin(j, key);
    if (value)
        text(j->out, value);
    else
        fputs("null", j->out);
}

void cli_json_int(cli_json *j, const char *key, uint64_t value)
{
    begin(j, key);
    fprintf(j->out, "%llu", (unsigned long long)value);
}

void cli_json_real(cli_json *j, const char *key, double value)
{
    begin(j, key);
    if (isfinite(value))
        fprintf(j->out, "%.6g", value);
    else
        fputs("null", j->out);
}

void cli_json_bool(cli_json *j, const char *key, bool value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->out);
}
