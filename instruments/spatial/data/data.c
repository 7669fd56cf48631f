/* data.c - a preprocessed folder, opened and checked: positions and groups in memory, counts not.
 */
#include "data.h"

#include "metadata.h"
#include "permute.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static fth_status hint(fth_err *err, fth_status s)
{
    if (err && err->hint[0]) return s;
    fth_err_hint(err,
                 "write the folder again with `fathom spatial preprocess --force`; what each file "
                 "of it holds is in docs/spatial.md");
    return s;
}

/* ---- positions and groups ---- */

static fth_status check_places(const sp_data *d, const char *path, fth_err *err)
{
    const float *xy = fth_tensor_data(d->xy);
    for (int64_t i = 0; i < 2 * d->rows; i++)
        if (!isfinite(xy[i]))
            return hint(err, FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                      "%s: cell %" PRId64 " has the coordinate %g on axis %d; all "
                                      "have to be finite",
                                      path, i / 2, (double)xy[i], (int)(i % 2)));
    return FTH_OK;
}

/* f64 is accepted too: it is the default of NumPy. */
static fth_status load_places(sp_data *d, const fth_source *s, float *to, fth_err *err)
{
    enum { PIECE = 8192 };
    const int64_t all[2] = {d->rows, 2}, zero[2] = {0, 0};
    if (s->dtype == FTH_F32) return s->read(s->self, zero, all, to, err);
    double piece[PIECE];
    for (int64_t at = 0; at < d->rows;) {
        const int64_t left = d->rows - at, m = left < PIECE / 2 ? left : PIECE / 2;
        FTH_TRY(s->read(s->self, (int64_t[2]){at, 0}, (int64_t[2]){m, 2}, piece, err));
        for (int64_t i = 0; i < 2 * m; i++) to[2 * at + i] = (float)piece[i];
        at += m;
    }
    return FTH_OK;
}

static fth_status open_places(sp_data *d, fth_err *err)
{
    char path[FTH_PATH];
    fth_source s = {0};
    FTH_TRY(fth_path_join(path, d->dir, SP_X, err));
    FTH_TRY(fth_npy_open(&s, d->mem, path, err));
    fth_status status = FTH_OK;
    if (s.n_axes != 2 || s.size[1] != 2 || s.size[0] < 1 ||
        (s.dtype != FTH_F32 && s.dtype != FTH_F64))
        status = hint(err, FTH_FAIL(err, FTH_E_FILE_SHAPE,
                                    "%s: positions are f32 [cell 2]; this is %s with %d axes, the "
                                    "last of %" PRId64,
                                    path, fth_dtype_name(s.dtype), s.n_axes,
                                    s.n_axes > 0 ? s.size[s.n_axes - 1] : 1));
    d->rows = s.size[0];
    if (status == FTH_OK)
        status = fth_tensor_create(&d->xy, d->mem, "positions", FTH_F32, 2, s.size, err);
    if (status == FTH_OK) status = load_places(d, &s, fth_tensor_data(d->xy), err);
    if (status == FTH_OK) status = check_places(d, path, err);
    if (status == FTH_OK) d->hash = fth_hash_bytes(fth_tensor_data(d->xy), (size_t)d->rows * 8, 0);
    fth_source_close(&s);
    return status;
}

/* Groups or sections: codes of the cells. */
typedef struct codes {
    const char *file, *one, *all;
    int64_t n;
    fth_tensor **to;
} codes;

/* The hash is of i64, as the file has them. */
static fth_status take_codes(sp_data *d, const codes *c, const char *path, const int64_t *code,
                             fth_err *err)
{
    int32_t *to = fth_tensor_data(*c->to);
    for (int64_t i = 0; i < d->rows; i++) {
        if (code[i] < 0 || code[i] >= c->n)
            return hint(err, FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                      "%s: cell %" PRId64 " has the %s %" PRId64
                                      "; %s are 0 to %" PRId64 " by %s",
                                      path, i, c->one, code[i], c->all, c->n - 1, SP_METADATA));
        to[i] = (int32_t)code[i];
    }
    d->hash = fth_hash_bytes(code, (size_t)d->rows * 8, d->hash);
    return FTH_OK;
}

static fth_status open_codes(sp_data *d, const codes *c, fth_err *err)
{
    char path[FTH_PATH];
    fth_source s = {0};
    FTH_TRY(fth_path_join(path, d->dir, c->file, err));
    FTH_TRY(fth_npy_open(&s, d->mem, path, err));
    fth_status status = FTH_OK;
    fth_tensor *code = NULL;
    if (s.n_axes != 1 || s.dtype != FTH_I64)
        status = hint(err, FTH_FAIL(err, FTH_E_FILE_SHAPE,
                                    "%s: %s are i64 [cell]; this is %s with %d axes", path, c->all,
                                    fth_dtype_name(s.dtype), s.n_axes));
    else if (s.size[0] != d->rows)
        status =
            hint(err, FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %" PRId64 " cells, but %s has %" PRId64,
                               path, s.size[0], SP_X, d->rows));
    if (status == FTH_OK)
        status = fth_tensor_create(c->to, d->mem, c->all, FTH_I32, 1, s.size, err);
    if (status == FTH_OK) status = fth_source_load(&s, d->mem, "codes", &code, err);
    if (status == FTH_OK) status = take_codes(d, c, path, fth_tensor_data(code), err);
    fth_tensor_release(code);
    fth_source_close(&s);
    return status;
}

/* Cells of one section are nearer to each other than the gap, and to others they are not: what the
 * kernel and nearest neighbours rely on. */
static fth_status check_sections(const sp_data *d, fth_err *err)
{
    const float *xy = fth_tensor_data(d->xy);
    const int32_t *section = fth_tensor_data(d->section);
    for (int64_t i = 0; i < d->rows; i++)
        if (!sp_sections_holds(&d->sections, section[i], xy + 2 * i))
            return hint(err, FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                      "%s/%s: cell %" PRId64 " lies outside of its section '%s'",
                                      d->dir, SP_X, i, sp_sections_name(&d->sections, section[i])));
    return FTH_OK;
}

static fth_status open_groups(sp_data *d, fth_err *err)
{
    const codes group = {SP_C, "group", "groups", d->size.groups, &d->group},
                section = {SP_S, "section", "sections", d->sections.n, &d->section};
    FTH_TRY(open_codes(d, &group, err));
    if (d->sections.n == 0) return FTH_OK;
    FTH_TRY(open_codes(d, &section, err));
    return check_sections(d, err);
}

/* ---- counts ---- */

/* Extents of the cells of one section, or of all: the larger; how many there are. */
static double extent_of(const sp_data *d, int64_t section, int64_t *cells)
{
    const float *xy = fth_tensor_data(d->xy);
    const int32_t *of = d->section ? fth_tensor_data(d->section) : NULL;
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    *cells = 0;
    for (int64_t i = 0; i < d->size.cells; i++) {
        if (of && of[i] != section) continue;
        ++*cells;
        for (int a = 0; a < 2; a++) {
            low[a] = fminf(low[a], xy[2 * i + a]);
            high[a] = fmaxf(high[a], xy[2 * i + a]);
        }
    }
    return fmax((double)high[0] - (double)low[0], (double)high[1] - (double)low[1]);
}

/* Recompute what depends on the chosen cells. */
static void measure(sp_data *d)
{
    const int64_t *ptr = fth_csr_row_ptr(d->counts);
    d->size.entries = d->size.most_entries = 0;
    for (int64_t i = 0; i < d->size.cells; i++) {
        const int64_t r = d->row ? d->row[i] : i, n = ptr[r + 1] - ptr[r];
        d->size.entries += n;
        if (n > d->size.most_entries) d->size.most_entries = n;
    }
    d->extent = 0;
    d->size.sections = d->sections.n;
    d->size.section_gap = d->sections.gap;
    d->size.least_section = d->section ? d->size.cells : 0;
    for (int64_t s = 0; s < (d->section ? d->sections.n : 1); s++) {
        int64_t cells = 0;
        d->extent = fmax(d->extent, extent_of(d, s, &cells));
        if (d->section && cells < d->size.least_section) d->size.least_section = cells;
    }
}

static fth_status open_counts(sp_data *d, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, d->dir, SP_Y, err));
    FTH_TRY(fth_npz_open(&d->npz, d->mem, path, err));
    FTH_TRY(fth_csr_open_npz(&d->counts, d->npz, err));
    if (fth_csr_dtype(d->counts) != FTH_F32)
        return hint(err, FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: counts are f32, these are %s", path,
                                  fth_dtype_name(fth_csr_dtype(d->counts))));
    if (fth_csr_rows(d->counts) != d->rows || fth_csr_cols(d->counts) != d->size.genes)
        return hint(err, FTH_FAIL(err, FTH_E_FILE_SHAPE,
                                  "%s: %" PRId64 " cells and %" PRId64 " genes, but %s has %" PRId64
                                  " cells and %s %" PRId64 " genes",
                                  path, fth_csr_rows(d->counts), fth_csr_cols(d->counts), SP_X,
                                  d->rows, SP_METADATA, d->size.genes));
    if (fth_csr_row_ptr(d->counts)[d->rows] == 0)
        return hint(err, FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                  "%s: every count of %" PRId64 " cells and %" PRId64
                                  " genes is 0: there is nothing to explain",
                                  path, d->rows, d->size.genes));
    return FTH_OK;
}

/* ---- all of it ---- */

static fth_status open_names(sp_data *d, fth_err *err)
{
    char path[FTH_PATH];
    sp_metadata m;
    FTH_TRY(fth_path_join(path, d->dir, SP_METADATA, err));
    FTH_TRY(sp_metadata_read(&m, d->mem, path, err));
    d->gene_names = m.gene_names;
    d->cell_names = m.cell_names;
    d->group_names = m.group_names;
    d->size.genes = m.genes;
    d->size.groups = m.groups;
    d->frame = m.frame;
    d->sections = m.sections;
    if (m.sections.n > 0 && !(m.sections.gap > 0)) {
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no '%s' that says where its sections lie", path,
                 SP_SECTIONS);
        fth_err_hint(err, "run `fathom spatial preprocess` on this folder with dataset: arrays, "
                          "which arranges them");
        return FTH_E_FILE_KEY;
    }
    for (int64_t i = 0; i < m.genes; i++) {
        const char *name = fth_texts_get(d->gene_names, i);
        d->genes_hash = fth_hash_bytes(name, strlen(name) + 1, d->genes_hash);
    }
    if (m.cells == d->rows) return FTH_OK;
    return hint(err, FTH_FAIL(err, FTH_E_FILE_SHAPE,
                              "%s: n_spots is %" PRId64 ", but %s has %" PRId64 " cells", path,
                              m.cells, SP_X, d->rows));
}

fth_status sp_data_open(sp_data *d, fth_mem *mem, const char *dir, fth_err *err)
{
    *d = (sp_data){.mem = mem};
    fth_status s = FTH_OK;
    if (snprintf(d->dir, sizeof d->dir, "%s", dir) >= (int)sizeof d->dir)
        s = FTH_FAIL(err, FTH_E_FILE_OPEN, "the path %.60s... is too long", dir);
    if (s == FTH_OK) s = open_places(d, err);
    if (s == FTH_OK) s = open_names(d, err);
    if (s == FTH_OK) s = open_groups(d, err);
    if (s == FTH_OK) s = open_counts(d, err);
    d->size.cells = d->rows;
    if (s == FTH_E_FILE_OPEN) s = hint(err, s);
    if (s == FTH_OK)
        measure(d);
    else
        sp_data_close(d);
    return s;
}

void sp_data_close(sp_data *d)
{
    fth_tensor_release(d->xy);
    fth_tensor_release(d->group);
    fth_tensor_release(d->section);
    sp_sections_clear(&d->sections);
    fth_csr_close(d->counts);
    fth_npz_close(d->npz);
    fth_texts_free(d->gene_names);
    fth_texts_free(d->cell_names);
    fth_texts_free(d->group_names);
    if (d->mem) {
        (void)fth_mem_release(d->mem, d->row, NULL);
        (void)fth_mem_release(d->mem, d->absent, NULL);
    }
    *d = (sp_data){0};
}

/* ---- some of the cells ---- */

static fth_status check_choice(const sp_data *d, const int64_t *row, int64_t n, fth_err *err)
{
    if (d->row) return FTH_FAIL(err, FTH_E_USAGE, "cells of %s were chosen before", d->dir);
    for (int64_t i = 0; i < n; i++)
        if (row[i] < 0 || row[i] >= d->rows || (i > 0 && row[i] <= row[i - 1]))
            return FTH_FAIL(err, FTH_E_USAGE,
                            "row %" PRId64 " of %" PRId64 " cells was chosen at place %" PRId64
                            "; rows ascend",
                            row[i], d->rows, i);
    return n > 0 ? FTH_OK : FTH_FAIL(err, FTH_E_USAGE, "no cell of %s was chosen", d->dir);
}

/* Both lists, in blocks of their own. */
static fth_status make_lists(sp_data *d, const int64_t *row, int64_t n, fth_err *err)
{
    void *kept = NULL, *left = NULL;
    const uint64_t others = (uint64_t)(d->rows - n);
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, (uint64_t)n * 8, "chosen cells", &kept, err));
    const fth_status s = fth_mem_take(d->mem, FTH_MEM_ANY, others * 8, "other cells", &left, err);
    if (s != FTH_OK) {
        (void)fth_mem_release(d->mem, kept, NULL);
        return s;
    }
    d->row = kept;
    d->absent = left;
    memcpy(d->row, row, (size_t)n * 8);
    int64_t at = 0, k = 0;
    for (int64_t r = 0; r < d->rows; r++) {
        if (at < n && row[at] == r)
            at++;
        else
            d->absent[k++] = r;
    }
    return FTH_OK;
}

static void choose_codes(fth_tensor *to, fth_tensor *from, const int64_t *row, int64_t n)
{
    const int32_t *code = fth_tensor_data(from);
    int32_t *chosen = fth_tensor_data(to);
    for (int64_t i = 0; i < n; i++) chosen[i] = code[row[i]];
}

fth_status sp_data_choose(sp_data *d, const int64_t *row, int64_t n, fth_err *err)
{
    FTH_TRY(check_choice(d, row, n, err));
    fth_tensor *xy = NULL, *group = NULL, *section = NULL;
    const int64_t size[2] = {n, 2};
    fth_status s = fth_tensor_create(&xy, d->mem, "positions", FTH_F32, 2, size, err);
    if (s == FTH_OK) s = fth_tensor_create(&group, d->mem, "groups", FTH_I32, 1, &n, err);
    if (s == FTH_OK && d->section)
        s = fth_tensor_create(&section, d->mem, "sections", FTH_I32, 1, &n, err);
    if (s == FTH_OK) s = make_lists(d, row, n, err);
    if (s != FTH_OK) {
        fth_tensor_release(xy);
        fth_tensor_release(group);
        fth_tensor_release(section);
        return s;
    }
    const float *from = fth_tensor_data(d->xy);
    float *to = fth_tensor_data(xy);
    for (int64_t i = 0; i < n; i++) memcpy(to + 2 * i, from + 2 * row[i], 2 * sizeof *to);
    choose_codes(group, d->group, row, n);
    if (section) choose_codes(section, d->section, row, n);
    fth_tensor_release(d->xy);
    fth_tensor_release(d->group);
    fth_tensor_release(d->section);
    d->xy = xy;
    d->group = group;
    d->section = section;
    d->size.cells = n;
    measure(d);
    return FTH_OK;
}

/* Training cells are round((1 - fraction) N) of N, halves to even, as the scripts of the field do
 * it. */
fth_status sp_data_hold_out(sp_data *d, double fraction, sp_holdout how, int64_t seed, fth_err *err)
{
    const int64_t n = d->rows, keep = (int64_t)nearbyint((1 - fraction) * (double)n);
    if (fraction <= 0 || keep >= n) return FTH_OK;
    if (keep < 1)
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "training.holdout_fraction %g leaves none of the %" PRId64 " cells of %s",
                        fraction, n, d->dir);
    void *block = NULL;
    FTH_TRY(fth_mem_take(d->mem, FTH_MEM_ANY, (uint64_t)n * 8, "held-out cells", &block, err));
    int64_t *row = block, at = 0;
    if (how == SP_HOLDOUT_RANDOM) {
        /* the held-out ones at the end of the block; kept rows never run past them */
        int64_t *out = row + keep, k = 0;
        sp_permute_first(out, n - keep, n, seed, SP_STREAM_HOLDOUT, 0);
        for (int64_t r = 0; r < n; r++) {
            if (k < n - keep && out[k] == r)
                k++;
            else
                row[at++] = r;
        }
    } else
        for (; at < keep; at++) row[at] = at;
    const fth_status s = sp_data_choose(d, row, keep, err);
    (void)fth_mem_release(d->mem, block, NULL);
    return s;
}

/* ---- positions of other cells ---- */

static fth_status not_rescaled(const sp_data *d, const sp_frame *training, const char *model,
                               fth_err *err)
{
    if (training->known) {
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "%s/%s does not say how its positions were rescaled, so that they cannot be "
                 "brought to the scale of %s",
                 d->dir, SP_METADATA, model);
        fth_err_hint(err, "preprocess the data again with --force; or write \"offset\": [0, 0], "
                          "\"scale\": 1 into it where positions are those of the source");
    } else {
        FTH_FAIL(err, FTH_E_FILE_KEY,
                 "%s does not say how the positions of its training cells were rescaled, so that "
                 "those of %s cannot be brought to their scale",
                 model, d->dir);
        fth_err_hint(err, "preprocess its data again with --force, and train again");
    }
    return FTH_E_FILE_KEY;
}

void sp_data_source_place(const sp_data *d, int64_t cell, float to[2])
{
    const float *xy = (const float *)fth_tensor_data(d->xy) + 2 * cell;
    const double *offset =
        d->section ? d->sections.of[((const int32_t *)fth_tensor_data(d->section))[cell]].offset
                   : d->frame.offset;
    for (int a = 0; a < 2; a++)
        to[a] = d->frame.known ? (float)((double)xy[a] / d->frame.scale + offset[a]) : xy[a];
}

/* Sections are a matter of names: without them the places of cells are not known. */
static fth_status not_of_sections(const sp_data *d, const char *model, bool has, fth_err *err)
{
    const fth_status s =
        has ? FTH_FAIL(err, FTH_E_FILE_KEY,
                       "%s is of one tissue, but the cells of %s are of %" PRId64 " sections",
                       model, d->dir, d->sections.n)
            : FTH_FAIL(err, FTH_E_FILE_KEY,
                       "%s is of sections, but %s does not say of which section its cells are",
                       model, d->dir);
    fth_err_hint(err, has ? "preprocess them without preprocessing.section_column"
                          : "name the section: of a whole file with preprocessing.paths: [FILE] "
                            "and sections: [NAME] in place of path, of its cells with "
                            "preprocessing.section_column; then preprocess again");
    return s;
}

fth_status sp_data_rescale(sp_data *d, const sp_rescaling *t, int64_t *unknown, fth_err *err)
{
    const sp_frame *training = t->frame;
    if (unknown) *unknown = 0;
    if (d->frame.known != training->known) return not_rescaled(d, training, t->model, err);
    if ((d->sections.n > 0) != (t->of->n > 0))
        return not_of_sections(d, t->model, d->sections.n > 0, err);
    const bool same = d->frame.scale == training->scale &&
                      d->frame.offset[0] == training->offset[0] &&
                      d->frame.offset[1] == training->offset[1];
    if (d->sections.n == 0 && (!training->known || same)) return FTH_OK;
    float *xy = fth_tensor_data(d->xy), nowhere[2] = {0, 0};
    const int32_t *section = d->section ? fth_tensor_data(d->section) : NULL;
    if (section) sp_sections_nowhere(t->of, t->lengthscale, nowhere);
    for (int64_t i = 0; i < d->size.cells; i++) {
        const int64_t to =
            section ? sp_sections_find(t->of, sp_sections_name(&d->sections, section[i])) : -1;
        const double *had = section ? d->sections.of[section[i]].offset : d->frame.offset,
                     *gets = to >= 0 ? t->of->of[to].offset : training->offset;
        for (int a = 0; a < 2; a++) {
            const double raw = (double)xy[2 * i + a] / d->frame.scale + had[a];
            xy[2 * i + a] = (float)((raw - gets[a]) * training->scale);
        }
        if (!section || (to >= 0 && sp_sections_holds(t->of, to, xy + 2 * i))) continue;
        memcpy(xy + 2 * i, nowhere, sizeof nowhere);
        if (unknown) ++*unknown;
    }
    d->frame = *training;
    measure(d);
    return FTH_OK;
}
