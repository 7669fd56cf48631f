/* json.c - the layout of --json documents. */
#include "../cli.h"

void cli_json_begin(fth_json_writer *w, FILE *out)
{
    fth_json_begin_file(w, out, "standard output", true);
    w->digits = 6;
    w->tall = true;
}
