/* command.c - the command that makes the refined model.
 *
 * Later flags override earlier ones, so refined values are appended to the given flags. Choices
 * derived from parameters (oversampling, cells of a crystal of given size) are written out: they
 * belong to the fitted model, and could otherwise change.
 */
#include "refine.h"

#include <stdarg.h>
#include <string.h>

typedef struct line {
    char *text;
    size_t n, bytes;
} line;

static void add(line *l, const char *fmt, ...) FTH_PRINTF(2, 3);
static void add(line *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const size_t left = l->n < l->bytes ? l->bytes - l->n : 0;
    const int n = vsnprintf(left ? l->text + l->n : NULL, left, fmt, args);
    va_end(args);
    l->n += n > 0 ? (size_t)n : 0;
}

/* A word quoted for a shell. */
static void add_word(line *l, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=+.,:/@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        add(l, " %s", word);
        return;
    }
    add(l, " '");
    for (; *word; word++) {
        if (*word == '\'')
            add(l, "'\\''");
        else
            add(l, "%c", *word);
    }
    add(l, "'");
}

static double typed(const br_experiment *e, int p)
{
    return e->param[p] / br_params[p].scale;
}

static void add_value(line *l, const br_experiment *e, const char *flag, int p)
{
    add(l, " %s %.13g", flag, typed(e, p));
}

static bool any(const br_variables *v, int first, int last)
{
    for (int p = first; p <= last; p++)
        if (v->of[p] >= 0) return true;
    return false;
}

static void add_crystal(line *l, const br_experiment *e, const br_variables *v,
                        const br_words *words)
{
    const br_scene *s = &e->scene;
    if (words->matrix || any(v, BR_A, BR_GA)) {
        add(l, " -cell");
        for (int p = BR_A; p <= BR_GA; p++) add(l, " %.13g", typed(e, p));
    }
    if (words->matrix || any(v, BR_MX, BR_MZ)) {
        add(l, " -misset");
        for (int p = BR_MX; p <= BR_MZ; p++) add(l, " %.13g", typed(e, p));
    }
    if (words->sized)
        add(l, " -xtalsize 0 -Na %.0f -Nb %.0f -Nc %.0f %s", s->cells[0], s->cells[1], s->cells[2],
            s->interpolate ? "-interpolate" : "-nointerpolate");
}

static void add_detector(line *l, const br_experiment *e, const br_variables *v)
{
    const br_scene *s = &e->scene;
    const bool by_origin = s->pivot == BR_PIVOT_SAMPLE && s->convention != BR_CUSTOM;
    if (v->of[BR_DIST] >= 0)
        add_value(l, e, s->dist_is_close ? "-close_distance" : "-distance", BR_DIST);
    if (by_origin && any(v, BR_XB, BR_YB))
        add(l, " -ORGX %.13g -ORGY %.13g", e->param[BR_XB] / s->pixel + 0.5,
            e->param[BR_YB] / s->pixel + 0.5);
    else if (any(v, BR_XB, BR_YB)) {
        add_value(l, e, "-Xbeam", BR_XB);
        add_value(l, e, "-Ybeam", BR_YB);
    }
    if (v->of[BR_RX] >= 0) add_value(l, e, "-detector_rotx", BR_RX);
    if (v->of[BR_RY] >= 0) add_value(l, e, "-detector_roty", BR_RY);
    if (v->of[BR_RZ] >= 0) add_value(l, e, "-detector_rotz", BR_RZ);
    if (v->of[BR_TT] >= 0) add_value(l, e, "-twotheta", BR_TT);
    if (s->convention == BR_CUSTOM)
        add(l, " -pivot %s", s->pivot == BR_PIVOT_SAMPLE ? "sample" : "beam");
}

/* The mode, and each quirk that differs from the mode. */
static void add_mode(line *l, const br_experiment *e)
{
    const uint32_t usual = e->compat_c ? BR_QUIRKS_C : 0;
    if (e->compat_c) add(l, " --compat c");
    for (int q = 0; q < BR_QUIRKS; q++) {
        const uint32_t bit = 1u << q;
        if ((e->scene.quirks ^ usual) & bit)
            add(l, " --quirk %s=%s", br_quirks[q].name, e->scene.quirks & bit ? "on" : "off");
    }
}

size_t br_refined_command(const br_experiment *e, const br_variables *v, const br_words *words,
                          char *text, size_t bytes)
{
    line l = {.text = text, .bytes = bytes};
    if (bytes) text[0] = '\0';
    add(&l, "fathom bragg");
    for (int i = 0; i < words->n; i++) {
        if (words->matrix && strncmp(words->word[i], "-mat", 4) == 0)
            i++;
        else
            add_word(&l, words->word[i]);
    }
    add_crystal(&l, e, v, words);
    if (v->of[BR_LAM] >= 0) add_value(&l, e, "-lambda", BR_LAM);
    add_detector(&l, e, v);
    if (v->of[BR_PHI] >= 0) add_value(&l, e, "-phi", BR_PHI);
    if (v->of[BR_FLU] >= 0) add(&l, " -flux 0 -fluence %.13g", e->param[BR_FLU]);
    add(&l, " -oversample %lld", (long long)e->scene.oversample);
    add_mode(&l, e);
    if (words->fdump) {
        add(&l, " --fdump");
        add_word(&l, words->fdump);
    }
    return l.n;
}
