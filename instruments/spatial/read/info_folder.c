/* info_folder.c - what is in an output folder of 10x, MERSCOPE or CosMx, and which keys of a config
 * would read it. */
#include "info.h"
#include "loaders.h"
#include "vendor.h"

#include <inttypes.h>
#include <string.h>

typedef struct tally {
    int64_t rows, inside;
} tally;

static fth_status count_row(void *user, const sp_place *p, int64_t row, fth_err *err)
{
    tally *t = user;
    (void)row, (void)err;
    t->rows++;
    t->inside += p->inside;
    return FTH_OK;
}

static fth_status open_counts(sp_matrix *m, sp_anndata *a, const sp_tenx_files *f, fth_mem *mem,
                              char group[256], fth_err *err)
{
    bool found = false;
    if (f->text) return sp_matrix_open_mtx(m, mem, f->counts, err);
    if (sp_vendor_is(f->kind))
        return sp_matrix_open_table(m, mem, f->counts, strcmp(f->kind, "cosmx") == 0, err);
    FTH_TRY(sp_anndata_open(a, mem, f->counts, err));
    FTH_TRY(sp_tenx_find(a->h5, group, &found, err));
    if (!found)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no /matrix as in 10x files", f->counts);
    return sp_matrix_open_tenx(m, mem, a->h5, f->counts, group, err);
}

/* "4 Gene Expression, 2 Negative Control Probe"; "": the file does not say. */
static fth_status types_of(sp_matrix *m, const sp_anndata *a, const sp_tenx_files *f, fth_mem *mem,
                           const char *group, char *text, size_t bytes, fth_err *err)
{
    fth_texts *types = NULL, *names = NULL;
    char path[FTH_PATH];
    text[0] = '\0';
    if (m->table) {
        FTH_TRY(sp_table_genes(m, &names, err));
        const fth_status s = sp_vendor_types(mem, f->kind, names, &types, err);
        fth_texts_free(names);
        FTH_TRY(s);
    } else if (!f->text)
        FTH_TRY(sp_tenx_types(a->h5, group, &types, err));
    else if (sp_mtx_file(f->counts, "features.tsv", path))
        FTH_TRY(sp_mtx_names(mem, path, 2, true, &types, err));
    if (types) sp_tenx_tally(types, NULL, text, bytes);
    fth_texts_free(types);
    return FTH_OK;
}

static void print_config(const sp_tenx_files *f, const char *dir, const sp_told *t)
{
    fprintf(t->out,
            "a config that reads it\n"
            "  instrument: spatial\n"
            "  name: my_data\n"
            "  dataset: %s\n"
            "  output_dir: outputs/my_data\n"
            "  preprocessing:\n"
            "    path: %s\n"
            "  model: {n_components: 10, lengthscale: 8.0, loadings_mode: multiplicative}\n",
            f->kind, dir);
    if (!t->w) return;
    fth_json_text(t->w, "dataset", f->kind);
    fth_json_open(t->w, "preprocessing", '{');
    fth_json_text(t->w, "path", dir);
    fth_json_close(t->w);
}

static fth_status describe(const sp_tenx_files *f, const sp_matrix *m, const char *types,
                           fth_mem *mem, const char *dir, const sp_told *t, fth_err *err)
{
    tally n = {0, 0};
    const bool spots = strncmp(f->kind, "visium", 6) == 0;
    const sp_places_how how = {.kind = f->kind};
    FTH_TRY(sp_places_read(mem, f->places, &how, count_row, &n, err));
    const double microns = sp_tenx_microns(mem, f);
    sp_tenx_image image;
    FTH_TRY(sp_tenx_image_find(&image, mem, f, dir, err));
    const char *title = m->table ? sp_vendor_title(f->kind) : sp_tenx_files_title(f->kind);
    fprintf(t->out, "%s: %s\n", dir, title);
    fprintf(t->out, "counts\n  %s\n", f->counts);
    fprintf(t->out, "  %-16s %" PRId64 "\n", spots ? "spots" : "cells", m->rows);
    fprintf(t->out, "  %-16s %" PRId64 "%s%s\n", "features", m->cols, types[0] ? ": " : "", types);
    if (!m->table) fprintf(t->out, "  %-16s %" PRId64 "\n", "stored", m->entries);
    fprintf(t->out, "positions\n  %s\n  %-16s %" PRId64 "\n", f->places, "rows", n.rows);
    if (spots) fprintf(t->out, "  %-16s %" PRId64 "\n", "under tissue", n.inside);
    if (microns > 0) fprintf(t->out, "  %-16s %.6g\n", "um per pixel", microns);
    if (image.path[0]) fprintf(t->out, "tissue image\n  %s\n", image.path);
    if (t->w) {
        if (image.path[0]) fth_json_text(t->w, "image", image.path);
        fth_json_open(t->w, "counts", '{');
        fth_json_text(t->w, "file", f->counts);
        fth_json_int(t->w, "cells", m->rows);
        fth_json_int(t->w, "genes", m->cols);
        if (!m->table) fth_json_int(t->w, "stored", m->entries);
        fth_json_close(t->w);
        fth_json_text(t->w, "types", types);
        fth_json_text(t->w, "positions", f->places);
        fth_json_int(t->w, "rows", n.rows);
        if (spots) fth_json_int(t->w, "under_tissue", n.inside);
    }
    print_config(f, dir, t);
    return FTH_OK;
}

fth_status sp_info_folder(fth_mem *mem, const sp_tenx_files *f, const char *dir, const sp_told *t,
                          fth_err *err)
{
    char group[256] = "", types[400] = "";
    sp_anndata a = {0};
    sp_matrix m = {0};
    fth_status s = open_counts(&m, &a, f, mem, group, err);
    if (s == FTH_OK) s = types_of(&m, &a, f, mem, group, types, sizeof types, err);
    if (s == FTH_OK) s = describe(f, &m, types, mem, dir, t, err);
    sp_matrix_close(&m);
    sp_anndata_close(&a);
    return s;
}
