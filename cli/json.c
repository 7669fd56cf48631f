/* json.c - JSON to a file, indented, always valid: the writer sets commas and escapes. */
#include "cli.h"

#include <math.h>

static void text(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f) /* what is not ASCII is taken as Latin-1: always valid */
            fprintf(out, "\\u%04x", (unsigned)c);
        else
            fputc(c, out);
    }
    fputc('"', out);
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
