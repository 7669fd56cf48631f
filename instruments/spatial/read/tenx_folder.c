/* tenx_folder.c - which files an output folder of Space Ranger or of the Xenium Analyzer has. */
#include "tenx.h"

#include <string.h>

enum { TABLES = 5 };

typedef struct kind {
    const char *name, *title, *counts;
    const char *table[TABLES]; /* the first that is there */
    const char *own;           /* the tables by which a folder is known, from the front */
} kind;

static const kind kinds[] = {
    {"xenium",
     "an output folder of the Xenium Analyzer",
     "cell_feature_matrix",
     {"cells.parquet", "cells.csv.gz", "cells.csv"},
     "cells.csv"},
    {"visium_hd",
     "an output folder of Space Ranger, Visium HD",
     "filtered_feature_bc_matrix",
     {"spatial/tissue_positions.parquet", "spatial/tissue_positions.csv",
      "spatial/tissue_positions.csv.gz"},
     "spatial/tissue_positions.parquet"},
    {"visium",
     "an output folder of Space Ranger, Visium",
     "filtered_feature_bc_matrix",
     {"spatial/tissue_positions.csv", "spatial/tissue_positions_list.csv",
      "spatial/tissue_positions.csv.gz", "spatial/tissue_positions_list.csv.gz",
      "spatial/tissue_positions.parquet"},
     "spatial/tissue_positions_list.csv.gz"}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const kind *kind_of(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

const char *sp_tenx_files_title(const char *name)
{
    const kind *k = kind_of(name);
    return k ? k->title : "";
}

static bool file_in(char path[FTH_PATH], const char *dir, const char *name, const char *ending)
{
    const int n = snprintf(path, FTH_PATH, "%s/%s%s", dir, name, ending);
    return n > 0 && n < FTH_PATH && fth_path_exists(path);
}

/* The .h5 file, else the folder of texts. */
static bool find_counts(sp_tenx_files *f, const kind *k, const char *dir)
{
    char path[FTH_PATH];
    f->text = false;
    if (file_in(f->counts, dir, k->counts, ".h5")) return true;
    f->text = file_in(f->counts, dir, k->counts, "") && sp_mtx_file(f->counts, "matrix.mtx", path);
    return f->text;
}

static bool find_table(sp_tenx_files *f, const kind *k, const char *dir, bool own)
{
    for (int i = 0; i < TABLES && k->table[i]; i++) {
        if (file_in(f->places, dir, k->table[i], "")) return true;
        if (own && strcmp(k->table[i], k->own) == 0) break;
    }
    f->places[0] = '\0';
    return false;
}

static void find_scale(sp_tenx_files *f, const kind *k, const char *dir)
{
    if (strcmp(k->name, "xenium") == 0 ||
        !file_in(f->scale, dir, "spatial/scalefactors_json.json", ""))
        f->scale[0] = '\0';
}

static fth_status no_folder(const kind *k, const char *dir, fth_err *err)
{
    const bool file = fth_path_exists(dir);
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: expected %s, found %s", dir, k->title,
                                  file ? "a file" : "nothing of that name");
    if (file)
        fth_err_hint(err, "write the folder that it is in, or dataset: tenx for a .h5 file alone");
    else
        fth_err_hint(err, "check preprocessing.path");
    return s;
}

/* The folder above those of the bin sizes is a common slip. */
static void hint_bins(const char *dir, fth_err *err)
{
    static const char *const bins[] = {"square_008um", "binned_outputs/square_008um",
                                       "outs/binned_outputs/square_008um", "outs"};
    char path[FTH_PATH];
    for (size_t i = 0; i < sizeof bins / sizeof bins[0]; i++)
        if (file_in(path, dir, bins[i], "")) {
            fth_err_hint(err, "write preprocessing.path: %.300s", path);
            return;
        }
    fth_err_hint(err, "see what there is: fathom spatial info %.300s", dir);
}

fth_status sp_tenx_files_find(sp_tenx_files *f, const char *name, const char *dir,
                              const char *table, fth_err *err)
{
    const kind *k = kind_of(name);
    *f = (sp_tenx_files){0};
    if (!k) return FTH_FAIL(err, FTH_E_INTERNAL, "no folder of the dataset '%s'", name);
    f->kind = k->name;
    if (fth_path_kind_of(dir) != FTH_PATH_FOLDER) return no_folder(k, dir, err);
    if (!find_counts(f, k, dir)) {
        const fth_status s = FTH_FAIL(
            err, FTH_E_FILE_OPEN, "%s: there is neither %s.h5 nor %s/matrix.mtx.gz in this folder",
            dir, k->counts, k->counts);
        hint_bins(dir, err);
        return s;
    }
    find_scale(f, k, dir);
    if (table[0]) {
        snprintf(f->places, sizeof f->places, "%s", table);
        return FTH_OK;
    }
    if (find_table(f, k, dir, false)) return FTH_OK;
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there is no %s in this folder", dir, k->table[0]);
    fth_err_hint(err, "name the table of positions with preprocessing.positions_path");
    return s;
}

bool sp_tenx_files_guess(sp_tenx_files *f, const char *dir)
{
    for (int i = 0; i < KINDS; i++) {
        *f = (sp_tenx_files){.kind = kinds[i].name};
        if (!find_counts(f, &kinds[i], dir) || !find_table(f, &kinds[i], dir, true)) continue;
        find_scale(f, &kinds[i], dir);
        return true;
    }
    *f = (sp_tenx_files){0};
    return false;
}

double sp_tenx_microns(fth_mem *mem, const sp_tenx_files *f)
{
    fth_json *doc = NULL;
    if (!f->scale[0] || fth_json_load(&doc, mem, f->scale, NULL) != FTH_OK) return 0;
    const double v = fth_json_get_real(fth_json_root(doc), "microns_per_pixel", 0);
    fth_json_destroy(doc);
    return v > 0 && v < 1e6 ? v : 0;
}

fth_status sp_tenx_image_find(sp_tenx_image *out, fth_mem *mem, const sp_tenx_files *f,
                              const char *dir, fth_err *err)
{
    static const struct {
        const char *file, *scale;
    } size[] = {{"spatial/tissue_hires_image.png", "tissue_hires_scalef"},
                {"spatial/tissue_lowres_image.png", "tissue_lowres_scalef"}};
    fth_json *doc = NULL;
    fth_err failed = {0};
    *out = (sp_tenx_image){0};
    if (!f->kind || strncmp(f->kind, "visium", 6) != 0) return FTH_OK;
    int i = 0;
    while (i < 2 && !file_in(out->path, dir, size[i].file, "")) i++;
    if (i == 2) out->path[0] = '\0';
    if (i == 2 || !f->scale[0]) return FTH_OK;
    const fth_status s = fth_json_load(&doc, mem, f->scale, &failed);
    if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) {
        if (err) *err = failed;
        return s;
    }
    if (s != FTH_OK) return FTH_OK;
    out->scale = fth_json_get_real(fth_json_root(doc), size[i].scale, 0);
    out->spot = fth_json_get_real(fth_json_root(doc), "spot_diameter_fullres", 0);
    fth_json_destroy(doc);
    return FTH_OK;
}
