/* check.c - see check.h. */
#include "check.h"

#include "../probe/probe.h"
#include "../settings/verb.h"
#include "orient.h"

#include <math.h>
#include <string.h>

/* Another orientation fits better when its R is below the fraction `clearly` of the current one
 * (the right one had 0.024 of a curved probe, others 0.044 or more); and the best of the others has
 * to be below the fraction `tie` of it to be considered at all. */
static const double clearly = 0.85, tie = 0.98;

enum { PIECE = 1 << 20 }; /* bytes of the object per read */

typedef struct verdict {
    pt_survey survey;
    pt_orientation tried[PT_ORIENTATIONS];
    int64_t patterns; /* patterns that were reconstructed; 0: none */
    int best;         /* 0: as the scan is read now */
    bool better, sign_is_open;
} verdict;

static void judge(verdict *v)
{
    const pt_orientation *t = v->tried;
    for (int k = 1; k < PT_ORIENTATIONS; k++)
        if (t[k].r < (v->best ? 1 : tie) * t[v->best].r || (isnan(t[v->best].r) && !isnan(t[k].r)))
            v->best = k;
    v->better = v->best != 0 && (isnan(t[0].r) || t[v->best].r < clearly * t[0].r);
    /* flipping both axes negates the positions */
    v->sign_is_open = fabs(t[3].r - t[0].r) < 0.02 * fabs(t[0].r);
}

/* The keys that give the positions of the file this orientation. */
static void keys_of(const pt_scan_options *now, const pt_orientation *o, char *text, size_t bytes)
{
    const bool fx = (now->swap_xy ? o->flip_y : o->flip_x) != now->flip_x,
               fy = (now->swap_xy ? o->flip_x : o->flip_y) != now->flip_y,
               swap = now->swap_xy != o->swap_xy;
    snprintf(text, bytes, "--flip_x %s --flip_y %s --swap_xy %s", fx ? "true" : "false",
             fy ? "true" : "false", swap ? "true" : "false");
}

static fth_status note(pt_scan *scan, const char *text, fth_err *err)
{
    return fth_texts_add(scan->notes, text, strlen(text), err);
}

static fth_status tell_orientation(pt_scan *scan, const pt_scan_options *opt, const verdict *v,
                                   fth_err *err)
{
    char keys[80], text[400];
    if (v->patterns == 0)
        return note(scan, "too few patterns to try other orientations of the positions", err);
    if (v->better) {
        keys_of(opt, &v->tried[v->best], keys, sizeof keys);
        snprintf(text, sizeof text,
                 "another orientation of the positions fits better: R %.4f with %s, %.4f now",
                 v->tried[v->best].r, keys, v->tried[0].r);
        FTH_TRY(note(scan, text, err));
        if (!opt->strict) return FTH_OK;
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %s", scan->path, text);
        return FTH_E_FILE_FORMAT;
    }
    if (v->sign_is_open)
        return note(scan,
                    "the patterns do not determine the sign of the positions: the probe is its own "
                    "mirror image, or is not known well enough",
                    err);
    return FTH_OK;
}

/* ---- answers ---- */

static void print(FILE *out, const pt_scan *scan, const verdict *v)
{
    fprintf(out, "patterns    %lld of %lld x %lld, %s\n", (long long)scan->n, (long long)scan->N,
            (long long)scan->N, pt_kind_names[scan->kind]);
    const double f = pt_count_factor(scan);
    fprintf(out, "counts      %.6g per pattern on average, %.6g at most\n",
            f * v->survey.mean_power, f * v->survey.max_power);
    if (v->patterns) {
        fprintf(out, "orientation R-factors of %lld patterns in the middle of the scan\n",
                (long long)v->patterns);
        for (int k = 0; k < PT_ORIENTATIONS; k++)
            fprintf(out, "  %-6s %-6s %-4s  R %.4f%s\n", v->tried[k].flip_x ? "flip_x" : "",
                    v->tried[k].flip_y ? "flip_y" : "", v->tried[k].swap_xy ? "swap" : "",
                    v->tried[k].r,
                    k == 0         ? "  as it is"
                    : k == v->best ? "  best"
                                   : "");
    }
    for (int64_t i = 0; i < fth_texts_count(scan->notes); i++)
        fprintf(out, "warning     %s\n", fth_texts_get(scan->notes, i));
    if (fth_texts_count(scan->notes) == 0) fprintf(out, "no problems found\n");
}

static void write(fth_json_writer *w, const pt_scan *scan, const verdict *v)
{
    fth_json_int(w, "patterns", scan->n);
    fth_json_int(w, "size", scan->N);
    fth_json_text(w, "kind", pt_kind_names[scan->kind]);
    fth_json_real(w, "mean_counts", pt_count_factor(scan) * v->survey.mean_power);
    fth_json_real(w, "max_counts", pt_count_factor(scan) * v->survey.max_power);
    fth_json_int(w, "zero_patterns", v->survey.zero);
    fth_json_open(w, "orientations", '[');
    for (int k = 0; v->patterns && k < PT_ORIENTATIONS; k++) {
        fth_json_open(w, NULL, '{');
        fth_json_bool(w, "flip_x", v->tried[k].flip_x);
        fth_json_bool(w, "flip_y", v->tried[k].flip_y);
        fth_json_bool(w, "swap_xy", v->tried[k].swap_xy);
        fth_json_real(w, "r", v->tried[k].r);
        fth_json_close(w);
    }
    fth_json_close(w);
    fth_json_int(w, "best", v->patterns ? v->best : 0);
    fth_json_bool(w, "another_fits_better", v->better);
    fth_json_open(w, "warnings", '[');
    for (int64_t i = 0; i < fth_texts_count(scan->notes); i++)
        fth_json_text(w, NULL, fth_texts_get(scan->notes, i));
    fth_json_close(w);
}

/* ---- the verb ---- */

/* Read to the end, where compressed data have their checksum: nothing else reads the object. */
static fth_status read_object(pt_scan *scan, fth_err *err)
{
    const fth_source *o = &scan->object;
    if (o->n_axes != 2 || o->size[0] < 1 || o->size[1] < 1) return FTH_OK;
    const int64_t row = o->size[1] * fth_dtype_size(o->dtype), piece = PIECE / row;
    int64_t n[2] = {piece < 1 ? 1 : piece < o->size[0] ? piece : o->size[0], o->size[1]};
    void *room = NULL;
    FTH_TRY(fth_mem_take(scan->mem, FTH_MEM_ANY, (uint64_t)(n[0] * row), "object", &room, err));
    fth_status s = FTH_OK;
    for (int64_t at[2] = {0, 0}; s == FTH_OK && at[0] < o->size[0]; at[0] += n[0]) {
        if (n[0] > o->size[0] - at[0]) n[0] = o->size[0] - at[0];
        s = o->read(o->self, at, n, room, err);
    }
    fth_mem_release(scan->mem, room, NULL);
    return s;
}

static fth_status look(pt_scan *scan, const fth_config *cfg, const pt_scan_options *opt, verdict *v,
                       fth_err *err)
{
    FTH_TRY(pt_scan_survey(scan, NULL, NULL, &v->survey, err));
    FTH_TRY(read_object(scan, err));
    FTH_TRY(pt_probe_settle(scan, cfg, err));
    /* patterns without overlap fit in every orientation, on a canvas that may be huge */
    if (pt_scan_spacing(scan) > (double)scan->N) return FTH_OK;
    FTH_TRY(pt_orient(scan, v->tried, &v->patterns, err));
    if (v->patterns) judge(v);
    return tell_orientation(scan, opt, v, err);
}

static fth_status check(const pt_call *call, fth_err *err)
{
    const char *path = call->arg[0];
    fth_answer *a = call->answer;
    pt_scan scan;
    pt_scan_options opt;
    verdict v = {0};
    pt_scan_options_read(call->cfg, &opt);
    FTH_TRY(pt_scan_open(&scan, call->ctx, path, &opt, err));
    fth_answer_file(a, FTH_FILE_INPUT, path, -1, "scan");
    const fth_status s = look(&scan, call->cfg, &opt, &v, err);
    if (s == FTH_OK) {
        print(a->out, &scan, &v);
        if (a->json) write(fth_answer_facts(a), &scan, &v);
    }
    pt_scan_close(&scan);
    return s;
}

PT_RUN(1, "one scan is", "fathom ptycho check SCAN", check)

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {0}};

const fth_verb pt_verb_check = {
    .name = "check",
    .args = "SCAN",
    .brief = "find problems of a scan before it is reconstructed",
    .doc = "Reads all patterns: NaN, negative values, data that are zero everywhere and arrays of "
           "mismatched shapes end it with exit code 3. Then it reconstructs 48 patterns in the "
           "middle of the scan with the positions in each of their 8 orientations, and names the "
           "keys (flip_x, flip_y, swap_xy) that fit better than those in use. Flipping both axes "
           "negates the positions.\n"
           "\n"
           "With --json: patterns, size, mean_counts, orientations with their R-factors, best, "
           "another_fits_better, warnings.",
    .max_args = 1,
    .flag = flags,
    .heeds = "json",
    .run = run};
