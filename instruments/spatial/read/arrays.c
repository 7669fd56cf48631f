/* arrays.c - a folder of arrays as a source: X.npy, Y.npz, and optionally C.npy, S.npy and
 * metadata.json.
 */
#include "loaders.h"

#include "../data/metadata.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

fth_status sp_arrays_open(sp_source *s, fth_err *err)
{
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, s->path, SP_Y, err));
    return sp_matrix_open_npz(&s->counts, s->mem, path, err);
}

/* All elements of an NPY file, one by one, as doubles. */
typedef void take_fn(void *to, int64_t i, double v);
static fth_status read_npy(const sp_source *s, const char *path, int64_t width, take_fn *take,
                           void *to, fth_err *err)
{
    enum { PIECE = 4096 };
    char raw[PIECE * 8];
    fth_source npy = {0};
    FTH_TRY(fth_npy_open(&npy, s->mem, path, err));
    fth_status status = FTH_OK;
    const int axes = width > 1 ? 2 : 1;
    if (npy.n_axes != axes || npy.size[0] != s->counts.rows ||
        (axes == 2 && npy.size[1] != width) || fth_dtype_is_complex(npy.dtype) ||
        npy.dtype == FTH_F16)
        status =
            FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "%s: numbers of %" PRId64 " cells%s were expected, as many as %s has; this "
                     "is %s with %d axes, the first of %" PRId64,
                     path, s->counts.rows, axes == 2 ? " and 2 axes" : "", SP_Y,
                     fth_dtype_name(npy.dtype), npy.n_axes, npy.n_axes > 0 ? npy.size[0] : 1);
    for (int64_t at = 0; status == FTH_OK && at < npy.size[0];) {
        const int64_t left = npy.size[0] - at, m = left < PIECE / width ? left : PIECE / width;
        const int64_t lo[2] = {at, 0}, n[2] = {m, width};
        status = npy.read(npy.self, lo, n, raw, err);
        for (int64_t i = 0; status == FTH_OK && i < m * width; i++)
            take(to, at * width + i, sp_number_at(npy.dtype, raw, i));
        at += m;
    }
    fth_source_close(&npy);
    return status;
}

static void take_place(void *to, int64_t i, double v)
{
    ((float *)to)[i] = (float)v;
}

/* Codes that are no whole number above -1 are missing. */
static void take_code(void *to, int64_t i, double v)
{
    ((int32_t *)to)[i] = v >= 0 && v < (double)INT32_MAX ? (int32_t)v : -1;
}

static fth_status make_names(const sp_source *s, const char *stem, int64_t n, fth_texts **out,
                             fth_err *err)
{
    fth_texts *t = NULL;
    FTH_TRY(fth_texts_create(&t, s->mem, err));
    fth_status status = FTH_OK;
    for (int64_t i = 0; status == FTH_OK && i < n; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s%" PRId64, stem, i);
        status = fth_texts_add(t, name, strlen(name), err);
    }
    if (status == FTH_OK)
        *out = t;
    else
        fth_texts_free(t);
    return status;
}

/* Names of the folder, or generated ones. */
static fth_status load_names(sp_source *s, sp_sections *sections, fth_err *err)
{
    char path[FTH_PATH];
    sp_metadata m;
    FTH_TRY(fth_path_join(path, s->path, SP_METADATA, err));
    if (!fth_path_exists(path)) return make_names(s, "gene", s->counts.cols, &s->genes, err);
    FTH_TRY(sp_metadata_read(&m, s->mem, path, err));
    s->genes = m.gene_names;
    s->cells = m.cell_names;
    s->group.names = m.group_names;
    s->frame = m.frame;
    *sections = m.sections;
    if (m.genes == s->counts.cols && m.cells == s->counts.rows) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%s: it names %" PRId64 " cells and %" PRId64 " genes, %s has %" PRId64
                    " and %" PRId64,
                    path, m.cells, m.genes, SP_Y, s->counts.rows, s->counts.cols);
}

/* Codes of a file; without it there are no names either. */
static fth_status load_codes(const sp_source *s, sp_labels *l, const char *file, const char *what,
                             fth_err *err)
{
    char path[FTH_PATH];
    void *block = NULL;
    FTH_TRY(fth_path_join(path, s->path, file, err));
    if (!fth_path_exists(path)) {
        fth_texts_free(l->names);
        l->names = NULL;
        return FTH_OK;
    }
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->counts.rows * 4, "labels", &block, err));
    l->mem = s->mem;
    l->code = block;
    l->n = s->counts.rows;
    FTH_TRY(read_npy(s, path, 1, take_code, block, err));
    int32_t most = -1;
    for (int64_t i = 0; i < s->counts.rows; i++)
        if (l->code[i] > most) most = l->code[i];
    if (!l->names) return make_names(s, "", (int64_t)most + 1, &l->names, err);
    if (most < fth_texts_count(l->names)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: there is a cell of %s %d, but %s names %" PRId64,
                    path, what, most, SP_METADATA, fth_texts_count(l->names));
}

/* Sections that were arranged in a plane get back the positions of their sources: they are arranged
 * anew, with those that are taken. */
static fth_status load_sections(sp_source *s, sp_sections *was, fth_err *err)
{
    s->section.names = was->names;
    was->names = NULL;
    FTH_TRY(load_codes(s, &s->section, SP_S, "section", err));
    if (!s->section.names || was->gap <= 0 || !s->frame.known) return FTH_OK;
    for (int64_t i = 0; i < 2 * s->counts.rows; i++) {
        const int32_t code = s->section.code[i / 2];
        if (code >= 0)
            s->xy[i] = (float)((double)s->xy[i] / s->frame.scale + was->of[code].offset[i % 2]);
    }
    s->frame = (sp_frame){0};
    return FTH_OK;
}

fth_status sp_arrays_load(sp_source *s, fth_err *err)
{
    char path[FTH_PATH];
    void *block = NULL;
    FTH_TRY(fth_path_join(path, s->path, SP_X, err));
    snprintf(s->where, sizeof s->where, "%s", SP_X);
    FTH_TRY(
        fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->counts.rows * 8, "positions", &block, err));
    s->xy = block;
    FTH_TRY(read_npy(s, path, 2, take_place, s->xy, err));
    sp_sections sections = {0};
    fth_status status = load_names(s, &sections, err);
    if (status == FTH_OK) status = load_codes(s, &s->group, SP_C, "group", err);
    if (status == FTH_OK) status = load_sections(s, &sections, err);
    sp_sections_clear(&sections);
    return status;
}
