/* npz.c - the scan file of PtychoPINN: arrays by name in an NPZ. */
#include "parts.h"

#include <math.h>
#include <string.h>

static bool has(const fth_npz *npz, const char *name)
{
    for (int64_t i = 0; i < fth_npz_count(npz); i++)
        if (strcmp(fth_npz_name(npz, i), name) == 0) return true;
    return false;
}

/* ---- positions ---- */

static fth_status read_reals(pt_draft *d, fth_npz *npz, const char *name, double **out, int64_t *n,
                             fth_err *err)
{
    fth_source s;
    FTH_TRY(fth_npz_source(npz, name, &s, err));
    FTH_TRY(pt_load_reals(d->scan, &s, name, out, n, err));
    return pt_check_positions(d, *out, *n, name, err);
}

static fth_status read_pair(pt_draft *d, fth_npz *npz, const char *x_name, const char *y_name,
                            double **x, double **y, int64_t *n, fth_err *err)
{
    int64_t m = 0;
    FTH_TRY(read_reals(d, npz, x_name, x, n, err));
    FTH_TRY(read_reals(d, npz, y_name, y, &m, err));
    if (m == *n) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: '%s' has %lld positions and '%s' has %lld: they must have one length",
                    d->scan->path, x_name, (long long)*n, y_name, (long long)m);
}

static fth_status read_positions(pt_draft *d, fth_npz *npz, fth_err *err)
{
    pt_scan *scan = d->scan;
    int64_t n = 0;
    FTH_TRY(read_pair(d, npz, "xcoords", "ycoords", &scan->x, &scan->y, &scan->n, err));
    scan->start_x = scan->x;
    scan->start_y = scan->y;
    const bool start_x = has(npz, "xcoords_start"), start_y = has(npz, "ycoords_start");
    if (!start_x && !start_y) return FTH_OK;
    FTH_TRY(read_pair(d, npz, "xcoords_start", "ycoords_start", &scan->start_x, &scan->start_y, &n,
                      err));
    if (n == scan->n) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: 'xcoords_start' has %lld positions and 'xcoords' has %lld: they must have "
                    "one length",
                    scan->path, (long long)n, (long long)scan->n);
}

static fth_status read_index(pt_draft *d, fth_npz *npz, fth_err *err)
{
    double *v = NULL;
    int64_t n = 0;
    if (!has(npz, "scan_index")) return FTH_OK;
    FTH_TRY(read_reals(d, npz, "scan_index", &v, &n, err));
    return pt_set_index(d, v, n, "scan_index", err);
}

/* ---- units ---- */

static fth_status one_text(fth_npz *npz, const char *name, char *text, size_t bytes, fth_err *err)
{
    fth_texts *all = NULL;
    FTH_TRY(fth_npz_strings(npz, name, &all, err));
    snprintf(text, bytes, "%s", fth_texts_count(all) > 0 ? fth_texts_get(all, 0) : "");
    fth_texts_free(all);
    return FTH_OK;
}

/* Units are declared by two texts that belong together, or not at all. */
static fth_status read_units(pt_draft *d, fth_npz *npz, fth_err *err)
{
    static const struct {
        const char *version, *domain;
        pt_kind kind;
    } known[] = {{"ci_intensity_v2", "count_intensity", PT_COUNTS},
                 {"legacy_v1", "normalized_amplitude", PT_AMPLITUDE}};
    static const char *const names[2] = {"scale_contract_version", "measurement_domain"};
    pt_scan *scan = d->scan;
    const bool version = has(npz, names[0]), domain = has(npz, names[1]);
    char a[80], b[80];
    if (!version && !domain) return FTH_OK;
    if (!version || !domain) {
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "%s: the units are only half declared: found '%s' without '%s'", scan->path,
                 names[version ? 0 : 1], names[version ? 1 : 0]);
        fth_err_hint(err, "write both or neither");
        return FTH_E_FILE_KEY;
    }
    FTH_TRY(one_text(npz, names[0], a, sizeof a, err));
    FTH_TRY(one_text(npz, names[1], b, sizeof b, err));
    for (int i = 0; i < 2; i++) {
        if (strcmp(a, known[i].version) != 0 || strcmp(b, known[i].domain) != 0) continue;
        if (d->opt->kind >= 0 && d->opt->kind != (int)known[i].kind) {
            FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: the file declares %s (%s), and data.kind is %s",
                     scan->path, pt_kind_names[known[i].kind], b, pt_kind_names[d->opt->kind]);
            fth_err_hint(err, "leave data.kind out, or correct the file");
            return FTH_E_FILE_FORMAT;
        }
        scan->kind = known[i].kind;
        scan->kind_is_declared = true;
        return FTH_OK;
    }
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s: scale_contract_version '%s' with measurement_domain '%s'; known are "
                    "ci_intensity_v2 with count_intensity, and legacy_v1 with "
                    "normalized_amplitude",
                    scan->path, a, b);
}

/* ---- the rest ---- */

static fth_status read_object(pt_draft *d, fth_npz *npz, fth_err *err)
{
    pt_scan *scan = d->scan;
    fth_source s;
    char shape[120];
    if (!has(npz, "objectGuess")) return FTH_OK;
    FTH_TRY(fth_npz_source(npz, "objectGuess", &s, err));
    const fth_source kept = s;
    FTH_TRY(pt_scan_keep(scan, &s, err));
    if (kept.n_axes != 2 || !fth_dtype_is_complex(kept.dtype) || kept.size[0] < 1 ||
        kept.size[1] < 1)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%s: 'objectGuess' is %s of %s; expected complex numbers [row col]",
                        scan->path, pt_shape_text(&kept, shape, sizeof shape),
                        fth_dtype_name(kept.dtype));
    scan->object = kept;
    return FTH_OK;
}

static fth_status look_at_truth(pt_draft *d, fth_npz *npz, fth_err *err)
{
    fth_source s;
    if (!has(npz, "Y")) return FTH_OK;
    if (fth_npz_source(npz, "Y", &s, NULL) != FTH_OK)
        return pt_scan_warn(d->scan, err, "'Y' cannot be read and is ignored");
    const int64_t n = s.n_axes > 0 ? s.size[0] : 0;
    fth_source_close(&s);
    if (n == d->scan->n) return FTH_OK;
    return pt_scan_warn(d->scan, err, "'Y' has %lld patches for %lld patterns and is ignored",
                        (long long)n, (long long)d->scan->n);
}

/* An array with a misspelt name. */
static fth_status look_for_slips(pt_draft *d, fth_npz *npz, fth_err *err)
{
    static const char known[] = "xcoords ycoords xcoords_start ycoords_start diff3d diffraction "
                                "probeGuess objectGuess mask scan_index Y _metadata "
                                "scale_contract_version measurement_domain";
    for (int64_t i = 0; i < fth_npz_count(npz); i++) {
        const char *name = fth_npz_name(npz, i), *at = known;
        const int near = fth_word_nearest(known, name);
        if (near < 0) continue;
        for (int k = 0; k < near; k++) at = strchr(at, ' ') + 1;
        const size_t n = strcspn(at, " ");
        if (strlen(name) == n && strncmp(name, at, n) == 0) continue;
        FTH_TRY(pt_scan_warn(d->scan, err, "'%.60s' is ignored: did you mean '%.*s'?", name, (int)n,
                             at));
    }
    return FTH_OK;
}

static fth_status read_texts(pt_draft *d, fth_npz *npz, fth_err *err)
{
    fth_texts *texts = NULL;
    if (!has(npz, "_metadata")) return FTH_OK;
    if (fth_npz_strings(npz, "_metadata", &texts, NULL) != FTH_OK)
        return pt_scan_warn(d->scan, err, "'_metadata' cannot be read as text and is ignored");
    const fth_status s = pt_read_metadata(d, texts, err);
    fth_texts_free(texts);
    return s;
}

static fth_status read_arrays(pt_draft *d, fth_npz *npz, fth_err *err)
{
    pt_scan *scan = d->scan;
    fth_source s;
    const char *name = has(npz, "diff3d") || !has(npz, "diffraction") ? "diff3d" : "diffraction";
    FTH_TRY(read_positions(d, npz, err));
    FTH_TRY(fth_npz_source(npz, name, &s, err));
    d->slow = !fth_npz_is_in_place(npz, name);
    FTH_TRY(pt_set_patterns(d, &s, name, scan->n, err));
    FTH_TRY(read_index(d, npz, err));
    FTH_TRY(read_units(d, npz, err));
    if (d->opt->guess == PT_GUESS_AUTO || d->opt->guess == PT_GUESS_FILE) {
        FTH_TRY(fth_npz_source(npz, "probeGuess", &s, err));
        FTH_TRY(pt_set_probe(d, &s, "probeGuess", err));
    }
    if (has(npz, "mask")) {
        FTH_TRY(fth_npz_source(npz, "mask", &s, err));
        FTH_TRY(pt_set_mask(d, &s, "mask", err));
    }
    FTH_TRY(read_object(d, npz, err));
    FTH_TRY(look_at_truth(d, npz, err));
    FTH_TRY(look_for_slips(d, npz, err));
    return read_texts(d, npz, err);
}

fth_status pt_read_npz(pt_draft *d, fth_err *err)
{
    fth_npz *npz = NULL;
    d->own_sign = 1;
    d->own_rule = PT_MASK_GOOD;
    FTH_TRY(fth_npz_open(&npz, d->scan->mem, d->scan->path, err));
    const fth_status s = read_arrays(d, npz, err);
    fth_npz_close(npz);
    return s;
}
