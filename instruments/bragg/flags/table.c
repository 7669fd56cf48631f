/* table.c - the flags of nanoBragg beside their keys and meaning in Fathom. */
#include "flag_row.h"

#include <string.h>

/* Text of a table cell, with bars escaped. */
static void cell(FILE *out, const char *text)
{
    for (; *text; text++) fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

/* "`-lambda x`, `-wave`" */
static void names(FILE *out, const br_flag_info *info)
{
    const char *w = info->names;
    for (int i = 0; *w; i++) {
        const size_t n = strcspn(w, " ");
        fprintf(out, "%s`%.*s", i ? ", " : "", (int)n, w);
        if (i == 0 && info->args[0]) {
            fputc(' ', out);
            cell(out, info->args);
        }
        fputc('`', out);
        w += n;
        w += *w == ' ';
    }
}

/* How nanoBragg matches it. */
static void match(FILE *out, const br_flag_row *row)
{
    const char *w = row->info.needles ? row->info.needles : row->info.names;
    const bool same = !row->info.needles;
    if (same) {
        fputs("contains", out);
        return;
    }
    for (int i = 0; *w; i++) {
        const size_t n = strcspn(w, " ");
        const bool exact = *w == '=';
        fprintf(out, "%s%s `%.*s`", i ? ", " : "", exact ? "is" : "contains", (int)n - exact,
                w + exact);
        w += n;
        w += *w == ' ';
    }
}

static void effects(FILE *out, const br_flag_row *row)
{
    if (row->pivot)
        fprintf(out, "; a custom convention then has the %s pivot",
                row->pivot == 'B' ? "beam" : "sample");
    if (row->stop) fputs("; the token must match exactly", out);
    if (row->follow && !row->info.args[0]) fputs("; not as the last word in c mode", out);
}

/* Differences of the modes beside the quirks. */
static const struct {
    const char *what, *c, *spec;
} modes[] = {
    {"seeds that are not given", "the clock, for the noise and a random orientation",
     "1, and it is printed; a random orientation takes the seed of the noise"},
    {"`-hkl`", "numbers are read four at a time, whatever the line ends",
     "one reflection per line, `#` comments, a malformed line is an error with its number"},
    {"`-sourcefile`", "a `#` line is a source like any other",
     "`#` comments; a wavelength of 0 or less is an error"},
    {"dump file", "written after every list", "the same, and `FILE.sha256` says from which list"},
    {"`-twotheta_axis`", "used as typed", "normalised"},
    {"`-hdivsteps`, `-vdivsteps`, `-dispsteps` without a range", "1 radian; one wavelength",
     "an error"},
    {"`-pix0_vector` with a beam centre", "both are accepted, and the origin is ignored",
     "an error"},
    {"a beam centre, or a near point, that the pivot leaves out", "no message",
     "a notice says what to give"},
    {"printed solid angle", "divided by all steps", "divided by layers and subpixels"},
    {"console", "the lines of nanoBragg, and no other", "the same lines, and notices"},
};

static void print_modes(FILE *out)
{
    fputs("\n| beside the quirks | c mode | spec mode |\n|---|---|---|\n", out);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        fprintf(out, "| %s | %s | %s |\n", modes[i].what, modes[i].c, modes[i].spec);
}

void br_flags_markdown(FILE *out)
{
    fputs("| flag | unit | default | in c mode a token | config key | meaning |\n"
          "|---|---|---|---|---|---|\n",
          out);
    for (int i = 0; i < BR_FLAG_COUNT; i++) {
        const br_flag_row *row = &br_flag_rows[i];
        fputs("| ", out);
        names(out, &row->info);
        fputs(" | ", out);
        cell(out, row->info.unit);
        fputs(" | ", out);
        cell(out, row->info.fallback);
        fputs(" | ", out);
        match(out, row);
        fprintf(out, " | %s%s%s | ", row->info.key[0] ? "`" : "", row->info.key,
                row->info.key[0] ? "`" : "");
        cell(out, row->info.doc);
        effects(out, row);
        fputs(" |\n", out);
    }
    fputs("\n| quirk | on, as in c mode | off, as in spec mode |\n|---|---|---|\n", out);
    for (int q = 0; q < BR_QUIRKS; q++)
        fprintf(out, "| `%s` | %s | %s |\n", br_quirks[q].name, br_quirks[q].on, br_quirks[q].off);
    print_modes(out);
}
