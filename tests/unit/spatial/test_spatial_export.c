/* test_spatial_export.c - results in a copy of the h5ad file, in a new one, and as lists.
 *
 * seconds: 10 */
#include "instruments/spatial/export/export.h"
#include "instruments/spatial/read/anndata.h"
#include "testing/spatial/spatial_results.h"

#include <string.h>
#include <unistd.h>

#define SAMPLE "tests/golden/spatial/sample_v0_8.h5ad"

enum { CELLS = 300, GENES = 24, KEPT = 100 };

static fth_mem_options plain(void)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 27;
    return opt;
}

/* Results of every third cell of a file, backwards, and of all but its first two genes. */
typedef struct subset {
    t_results r;
    char dir[1024], out[1100];
    fth_mem *mem;
    fth_texts *obs, *var;
    const char *cell[KEPT], *gene[GENES];
    int64_t rows, genes, kept, kept_genes;
} subset;

static int64_t row_of(const subset *s, int64_t cell)
{
    return s->rows - 1 - 3 * cell;
}

static void open_subset(subset *s, const char *file, const char *name)
{
    sp_anndata a;
    fth_err err = {0};
    *s = (subset){.mem = t_mem(1 << 24)};
    OKE(sp_anndata_open(&a, s->mem, file, &err), &err);
    OKE(sp_anndata_names(&a, "/obs", -1, &s->obs, &err), &err);
    OKE(sp_anndata_names(&a, "/var", -1, &s->var, &err), &err);
    OKE(sp_names_unique(&s->var, s->mem, &(int64_t){0}, &err), &err); /* as a loader does */
    sp_anndata_close(&a);
    s->rows = fth_texts_count(s->obs);
    s->genes = fth_texts_count(s->var);
    s->kept = s->rows / 3 < KEPT ? s->rows / 3 : KEPT;
    s->kept_genes = s->genes - 2 < GENES ? s->genes - 2 : GENES;
    for (int64_t i = 0; i < s->kept; i++) s->cell[i] = fth_texts_get(s->obs, row_of(s, i));
    for (int64_t i = 0; i < s->kept_genes; i++) s->gene[i] = fth_texts_get(s->var, i + 2);
    snprintf(s->dir, sizeof s->dir, "%s", t_temp_path(name));
    snprintf(s->out, sizeof s->out, "%s/out.h5ad", s->dir);
    s->r = (t_results){.dir = s->dir,
                       .model = "svgp",
                       .cells = s->kept,
                       .genes = s->kept_genes,
                       .factors = 3,
                       .groups = 2,
                       .points = 5,
                       .cell_names = s->cell,
                       .gene_names = s->gene};
    t_results_make(&s->r);
}

static void close_subset(subset *s)
{
    fth_texts_free(s->obs);
    fth_texts_free(s->var);
    OK(fth_mem_destroy(s->mem, NULL));
}

static fth_status export_with(const subset *s, const char *source, const fth_mem_options *opt,
                              fth_err *err)
{
    t_stage stage;
    char preprocessed[1100];
    snprintf(preprocessed, sizeof preprocessed, "%s/" SP_PREPROCESSED, s->dir);
    t_stage_open(&stage, &s->r, "spatial: true, prior: SVGP", opt);
    const sp_export e = {.context = stage.ctx,
                         .config = stage.cfg,
                         .source = source,
                         .path = s->out,
                         .preprocessed = preprocessed,
                         .dir = s->dir,
                         .model = &s->r.model,
                         .n_models = 1};
    const fth_status status = sp_export_write(&e, err);
    t_stage_close(&stage);
    return status;
}

static fth_status export(const subset *s, const char *source, fth_err *err)
{
    const fth_mem_options opt = plain();
    return export_with(s, source, &opt, err);
}

/* ---- looking at a file ---- */

static void check_text(fth_h5 *h5, const char *object, const char *attr, const char *wanted)
{
    fth_texts *t = NULL;
    fth_err err = {0};
    OKE(fth_h5_attr_text(h5, object, attr, &t, &err), &err);
    EQ_STR(fth_texts_get(t, 0), wanted);
    fth_texts_free(t);
}

static void check_encoding(fth_h5 *h5, const char *object, const char *type, const char *version)
{
    check_text(h5, object, "encoding-type", type);
    check_text(h5, object, "encoding-version", version);
}

static fth_tensor *load(fth_mem *mem, fth_h5 *h5, const char *object)
{
    fth_source s;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(fth_h5_source(h5, object, &s, &err), &err);
    OKE(fth_source_load(&s, mem, "t", &t, &err), &err);
    fth_source_close(&s);
    return t;
}

/* [rows][3]: factors of the kept ones at their rows, NaN elsewhere. */
static void check_factors(const subset *s, fth_h5 *h5, const char *object, float scale)
{
    fth_tensor *t = load(s->mem, h5, object);
    const float *v = fth_tensor_data(t);
    EQ_I64(fth_tensor_size(t, 0), s->rows);
    EQ_I64(fth_tensor_size(t, 1), 3);
    int64_t found = 0;
    for (int64_t row = 0; row < s->rows; row++) {
        const int64_t back = s->rows - 1 - row, cell = back % 3 == 0 ? back / 3 : -1;
        for (int64_t l = 0; l < 3; l++)
            EQ_F64(v[3 * row + l],
                   cell >= 0 && cell < s->kept ? scale * t_results_factor(&s->r, cell, l) : NAN);
        found += cell >= 0 && cell < s->kept;
    }
    EQ_I64(found, s->kept);
    fth_tensor_release(t);
}

static void check_loadings(const subset *s, fth_h5 *h5, const char *object)
{
    fth_tensor *t = load(s->mem, h5, object);
    const float *v = fth_tensor_data(t);
    EQ_I64(fth_tensor_size(t, 0), s->genes);
    for (int64_t i = 0; i < s->genes * 3; i++) {
        const int64_t k = i - 6;
        if (k < 0 || k >= 3 * s->kept_genes)
            IS_TRUE(isnan(v[i]));
        else
            EQ_F64(v[i], 0.05f + (float)((k * 37 + k / 5) % 97) / 97);
    }
    fth_tensor_release(t);
}

static void check_kept(const subset *s, fth_h5 *h5, const char *object)
{
    fth_tensor *t = load(s->mem, h5, object);
    const uint8_t *v = fth_tensor_data(t);
    EQ_I64(fth_tensor_dtype(t), FTH_BOOL);
    for (int64_t row = 0; row < s->rows; row++) {
        const int64_t back = s->rows - 1 - row;
        EQ_I64(v[row], back % 3 == 0 && back / 3 < s->kept);
    }
    fth_tensor_release(t);
}

static void check_uns(const subset *s, fth_h5 *h5)
{
    fth_tensor *t = load(s->mem, h5, "/uns/fathom/svgp/moran");
    EQ_F64(((double *)fth_tensor_data(t))[1], 0.887);
    fth_tensor_release(t);
    check_encoding(h5, "/uns/fathom", "dict", "0.1.0");
    check_encoding(h5, "/uns/fathom/svgp/metrics", "dict", "0.1.0");
    check_encoding(h5, "/uns/fathom/svgp/metrics/reconstruction_error", "numeric-scalar", "0.2.0");
    check_encoding(h5, "/uns/fathom/svgp/metrics/timestamp", "string", "0.2.0");
    check_encoding(h5, "/uns/fathom/svgp/metrics/names", "string-array", "0.2.0");
    check_encoding(h5, "/uns/fathom/svgp/metrics/values", "array", "0.2.0");
    t = load(s->mem, h5, "/uns/fathom/svgp/metrics/poisson_deviance/mean");
    IS_TRUE(isnan(*(double *)fth_tensor_data(t)));
    fth_tensor_release(t);
    t = load(s->mem, h5, "/uns/fathom/svgp/metrics/poisson_deviance/total");
    EQ_I64(fth_tensor_dtype(t), FTH_I64);
    EQ_I64(*(int64_t *)fth_tensor_data(t), 12);
    fth_tensor_release(t);
    t = load(s->mem, h5, "/uns/fathom/svgp/metrics/of_two");
    EQ_I64(fth_tensor_dtype(t), FTH_BOOL);
    fth_tensor_release(t);
    EQ_I64(fth_h5_kind_of(h5, "/uns/fathom/svgp/metrics/mixed"), FTH_H5_NONE);
}

static void check_columns(fth_h5 *h5, const char *const *column, int64_t n)
{
    fth_texts *t = NULL;
    OK(fth_h5_attr_text(h5, "/obs", "column-order", &t, NULL));
    EQ_I64(fth_texts_count(t), n);
    for (int64_t i = 0; i < n; i++) EQ_STR(fth_texts_get(t, i), column[i]);
    fth_texts_free(t);
}

/* ---- a copy ---- */

TEST(results_stand_beside_what_was_there)
{
    subset s;
    fth_err err = {0};
    fth_h5 *h5 = NULL;
    open_subset(&s, SAMPLE, "sample");
    OKE(export(&s, SAMPLE, &err), &err);
    OK(fth_h5_open(&h5, s.mem, s.out, NULL));
    check_factors(&s, h5, "/obsm/fathom_svgp_factors", 1);
    check_factors(&s, h5, "/obsm/fathom_svgp_scales", 0.2f);
    check_encoding(h5, "/obsm/fathom_svgp_factors", "array", "0.2.0");
    check_loadings(&s, h5, "/varm/fathom_svgp_loadings");
    check_loadings(&s, h5, "/raw/varm/fathom_svgp_loadings");
    check_kept(&s, h5, "/obs/fathom_kept");
    check_encoding(h5, "/obs/fathom_kept", "array", "0.2.0");
    check_columns(h5, (const char *const[]){"ClusterName", "center_x", "n", "fathom_kept"}, 4);
    check_uns(&s, h5);
    EQ_I64(fth_h5_kind_of(h5, "/layers/dense"), FTH_H5_DATASET);
    EQ_I64(fth_h5_kind_of(h5, "/obs/ClusterName/categories"), FTH_H5_DATASET);
    fth_h5_close(h5);
    close_subset(&s);
}

/* rows.npy says where cells are; rows whose cells have other names than those of the folder, as in
 * a file that was reversed, would put every factor on the wrong cell. */
TEST(rows_decide_where_they_are_kept)
{
    subset s;
    fth_err err = {0};
    fth_h5 *h5 = NULL;
    int64_t row[KEPT], reversed[KEPT];
    open_subset(&s, SAMPLE, "rows");
    for (int64_t i = 0; i < s.kept; i++) row[i] = row_of(&s, i);
    for (int64_t i = 0; i < s.kept; i++) reversed[i] = row[s.kept - 1 - i];
    fth_mem *mem = t_mem(1 << 24);
    t_results_npy(&s.r, mem, SP_PREPROCESSED, SP_ROWS, FTH_I64, 1, &s.kept, row);
    OKE(export(&s, SAMPLE, &err), &err);
    OK(fth_h5_open(&h5, s.mem, s.out, NULL));
    check_factors(&s, h5, "/obsm/fathom_svgp_factors", 1);
    fth_h5_close(h5);
    t_results_npy(&s.r, mem, SP_PREPROCESSED, SP_ROWS, FTH_I64, 1, &s.kept, reversed);
    IS(export(&s, SAMPLE, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "would be row ");
    HAS(err.hint, "preprocess again");
    fth_err_clear(&err);
    row[3] = CELLS;
    t_results_npy(&s.r, mem, SP_PREPROCESSED, SP_ROWS, FTH_I64, 1, &s.kept, row);
    IS(export(&s, SAMPLE, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, SP_ROWS);
    OK(fth_mem_destroy(mem, NULL));
    close_subset(&s);
}

/* Exporting into what was exported before changes nothing but its size. */
TEST(a_second_export_replaces_the_first)
{
    subset s;
    fth_h5 *h5 = NULL;
    fth_err err = {0};
    open_subset(&s, SAMPLE, "again");
    OK(export(&s, SAMPLE, NULL));
    OKE(export(&s, s.out, &err), &err);
    OK(fth_h5_open(&h5, s.mem, s.out, NULL));
    check_factors(&s, h5, "/obsm/fathom_svgp_factors", 1);
    check_columns(h5, (const char *const[]){"ClusterName", "center_x", "n", "fathom_kept"}, 4);
    check_uns(&s, h5);
    fth_h5_close(h5);
    close_subset(&s);
}

TEST(files_of_older_versions_get_the_same)
{
    static const char *const file[] = {"csc.h5ad", "middle.h5ad", "old.h5ad"};
    for (int i = 0; i < 3; i++) {
        const bool old = i == 2;
        subset s;
        fth_h5 *h5 = NULL;
        fth_err err = {0};
        char source[100];
        snprintf(source, sizeof source, "tests/golden/h5ad/%s", file[i]);
        open_subset(&s, source, file[i]);
        OKE(export(&s, source, &err), &err);
        OK(fth_h5_open(&h5, s.mem, s.out, NULL));
        check_factors(&s, h5, old ? "/uns/fathom/svgp/factors" : "/obsm/fathom_svgp_factors", 1);
        check_loadings(&s, h5, "/varm/fathom_svgp_loadings");
        check_kept(&s, h5, old ? "/uns/fathom/kept" : "/obs/fathom_kept");
        check_uns(&s, h5);
        if (i == 1) IS_TRUE(!fth_h5_attr_exists(h5, "/obs", "column-order"));
        fth_h5_close(h5);
        close_subset(&s);
    }
}

TEST(public_files_of_all_versions)
{
    static const char *const file[] = {"v0.5.0", "v0.7.0", "v0.7.8", "v0.11.4"};
    for (int i = 0; i < 4; i++) {
        char name[64];
        subset s;
        fth_h5 *h5 = NULL;
        fth_err err = {0};
        snprintf(name, sizeof name, "spatial/anndata/%s.h5ad", file[i]);
        const char *source = t_data_path(name);
        open_subset(&s, source, file[i]);
        OKE(export(&s, source, &err), &err);
        OK(fth_h5_open(&h5, s.mem, s.out, NULL));
        check_factors(&s, h5, i == 0 ? "/uns/fathom/svgp/factors" : "/obsm/fathom_svgp_factors", 1);
        check_kept(&s, h5, i == 0 ? "/uns/fathom/kept" : "/obs/fathom_kept");
        fth_h5_close(h5);
        close_subset(&s);
    }
}

/* ---- sizes of cells, dispersions of genes ---- */

static float size_of(int64_t cell)
{
    return 0.25f + (float)cell / 16;
}

/* Files of a model that has both; names of genes as CSV has them. */
static void write_scales(const subset *s, const char *change)
{
    float size[KEPT];
    char path[FTH_PATH];
    fth_lines t;
    fth_mem *mem = t_mem(1 << 24);
    for (int64_t i = 0; i < s->kept; i++) size[i] = size_of(i);
    t_results_npy(&s->r, mem, "svgp", SP_SIZE_FACTORS, FTH_F32, 1, &s->kept, size);
    fth_lines_begin(&t, mem);
    fth_lines_add(&t, "gene,theta\n");
    for (int64_t d = 0; d < s->kept_genes - (strcmp(change, "shorter") == 0); d++) {
        char name[64];
        snprintf(name, sizeof name, "%s", s->gene[d]);
        if (d == 2 && strcmp(change, "renamed") == 0) name[0]++; /* of the same length */
        fth_lines_field(&t, name);
        fth_lines_add(&t, ",%s", d == 3 && strcmp(change, "negative") == 0 ? "-" : "");
        fth_lines_real(&t, 0.5 + (double)d);
        fth_lines_add(&t, "\n");
    }
    if (strcmp(change, "longer") == 0) fth_lines_add(&t, "more,1\n");
    t_results_path(&s->r, path, "svgp", SP_DISPERSION);
    OK(fth_lines_save(&t, path, NULL));
    fth_lines_free(&t);
    OK(fth_mem_destroy(mem, NULL));
}

/* `file`: its rows and genes are those of the source, else those of the folder. */
static void check_scales(const subset *s, fth_h5 *h5, const char *size, const char *theta,
                         bool file)
{
    fth_tensor *t = load(s->mem, h5, size);
    EQ_I64(fth_tensor_axes(t), 1);
    EQ_I64(fth_tensor_dtype(t), FTH_F32);
    EQ_I64(fth_tensor_size(t, 0), file ? s->rows : s->kept);
    for (int64_t i = 0; i < fth_tensor_size(t, 0); i++) {
        const int64_t back = s->rows - 1 - i, cell = !file ? i : back % 3 == 0 ? back / 3 : -1;
        EQ_F64(((float *)fth_tensor_data(t))[i], cell >= 0 && cell < s->kept ? size_of(cell) : NAN);
    }
    fth_tensor_release(t);
    t = load(s->mem, h5, theta);
    EQ_I64(fth_tensor_dtype(t), FTH_F64);
    EQ_I64(fth_tensor_size(t, 0), file ? s->genes : s->kept_genes);
    for (int64_t i = 0; i < fth_tensor_size(t, 0); i++) {
        const int64_t d = file ? i - 2 : i;
        EQ_F64(((double *)fth_tensor_data(t))[i],
               d >= 0 && d < s->kept_genes ? 0.5 + (double)d : (double)NAN);
    }
    fth_tensor_release(t);
}

TEST(sizes_and_dispersions_are_columns)
{
    static const char *const source[] = {SAMPLE, "tests/golden/h5ad/old.h5ad", NULL};
    for (int i = 0; i < 3; i++) {
        subset s;
        fth_h5 *h5 = NULL;
        fth_err err = {0};
        fth_texts *t = NULL;
        open_subset(&s, source[i] ? source[i] : SAMPLE, (const char *[]){"a", "b", "c"}[i]);
        write_scales(&s, "");
        OKE(export(&s, source[i], &err), &err);
        if (i == 0) OKE(export(&s, s.out, &err), &err); /* again: the columns are replaced */
        OK(fth_h5_open(&h5, s.mem, s.out, NULL));
        check_scales(
            &s, h5, i == 1 ? "/uns/fathom/svgp/size_factor" : "/obs/fathom_svgp_size_factor",
            i == 1 ? "/uns/fathom/svgp/dispersion" : "/var/fathom_svgp_dispersion", i != 2);
        if (i == 0) {
            check_columns(h5,
                          (const char *const[]){"ClusterName", "center_x", "n",
                                                "fathom_svgp_size_factor", "fathom_kept"},
                          5);
            OK(fth_h5_attr_text(h5, "/var", "column-order", &t, NULL));
            EQ_STR(fth_texts_get(t, fth_texts_count(t) - 1), "fathom_svgp_dispersion");
            fth_texts_free(t);
        }
        fth_h5_close(h5);
        close_subset(&s);
    }
}

TEST(dispersions_of_another_analysis_are_refused)
{
    static const struct {
        const char *change, *about;
        fth_status status;
    } bad[] = {{"renamed", "line 4: gene ", FTH_E_FILE_FORMAT},
               {"negative", "line 5: gene ", FTH_E_FILE_FORMAT},
               {"shorter", "dispersions of 21 genes; 22 were", FTH_E_FILE_SHAPE},
               {"longer", "dispersions of 23 genes; 22 were", FTH_E_FILE_SHAPE}};
    subset s;
    open_subset(&s, SAMPLE, "refused");
    EQ_I64(s.kept_genes, 22);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fth_err err = {0};
        write_scales(&s, bad[i].change);
        IS(export(&s, SAMPLE, &err), bad[i].status);
        HAS(err.text, SP_DISPERSION);
        HAS(err.text, bad[i].about);
        HAS(err.hint, "analyze again");
        IS_TRUE(access(s.out, F_OK) != 0);
        fth_err_clear(&err);
    }
    close_subset(&s);
}

/* ---- a new file ---- */

TEST(cells_of_a_folder_become_a_file)
{
    subset s;
    fth_h5 *h5 = NULL;
    fth_err err = {0};
    fth_csr *csr = NULL;
    open_subset(&s, SAMPLE, "new");
    OKE(export(&s, NULL, &err), &err);
    OK(fth_h5_open(&h5, s.mem, s.out, NULL));
    check_encoding(h5, "/", "anndata", "0.1.0");
    check_encoding(h5, "/X", "csr_matrix", "0.1.0");
    check_encoding(h5, "/obs", "dataframe", "0.2.0");
    check_encoding(h5, "/obs/group", "categorical", "0.2.0");
    IS_TRUE(fth_h5_attr_exists(h5, "/obs/group", "ordered"));
    check_text(h5, "/obs", "_index", "_index");
    check_columns(h5, (const char *const[]){"group", "fathom_kept"}, 2);
    IS_TRUE(fth_h5_attr_exists(h5, "/var", "column-order"));
    OKE(fth_csr_open_h5(&csr, h5, "/X", &err), &err);
    EQ_I64(fth_csr_rows(csr), s.kept);
    EQ_I64(fth_csr_cols(csr), s.kept_genes);
    int64_t ptr[2];
    int32_t col[GENES];
    float val[GENES];
    for (int64_t i = 0; i < s.kept; i += 7) {
        OK(fth_csr_read(csr, i, 1, ptr, col, val, NULL));
        for (int64_t k = 0; k < ptr[1]; k++) EQ_F64(val[k], t_results_count(i, col[k]));
    }
    fth_csr_close(csr);
    fth_tensor *t = load(s.mem, h5, "/obsm/fathom_svgp_factors");
    for (int64_t i = 0; i < 3 * s.kept; i++)
        EQ_F64(((float *)fth_tensor_data(t))[i], t_results_factor(&s.r, i / 3, i % 3));
    fth_tensor_release(t);
    check_uns(&s, h5);
    fth_h5_close(h5);

    /* and what reads h5ad files reads it */
    sp_anndata a;
    sp_labels l;
    fth_texts *names = NULL;
    OKE(sp_anndata_open(&a, s.mem, s.out, &err), &err);
    OKE(sp_anndata_labels(&a, "/obs", "group", s.kept, &l, &err), &err);
    EQ_I64(fth_texts_count(l.names), 2);
    OKE(sp_anndata_names(&a, "/obs", s.kept, &names, &err), &err);
    EQ_STR(fth_texts_get(names, 1), s.cell[1]);
    fth_texts_free(names);
    sp_labels_free(&l);
    sp_anndata_close(&a);
    close_subset(&s);
}

/* ---- lists ---- */

TEST(lists_have_every_gene_once)
{
    subset s;
    t_stage stage;
    sp_data data;
    fth_err err = {0};
    size_t bytes = 0;
    char path[FTH_PATH];
    const fth_mem_options opt = plain();
    open_subset(&s, SAMPLE, "lists");
    t_stage_open(&stage, &s.r, "spatial: true, prior: SVGP", &opt);
    snprintf(path, sizeof path, "%s/" SP_PREPROCESSED, s.dir);
    OKE(sp_data_open(&data, fth_context_mem(stage.ctx), path, &err), &err);
    OKE(sp_export_genes(stage.ctx, &data, stage.model_dir, &err), &err);
    sp_data_close(&data);
    t_stage_close(&stage);
    snprintf(path, sizeof path, "%s/svgp/top_genes.csv", s.dir);
    char *text = (char *)t_file_read(path, &bytes);
    text[bytes] = '\0';
    HAS(text, "factor,rank,gene,loading\n1,1,");
    int64_t lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    EQ_I64(lines, 1 + 3 * s.kept_genes);
    free(text);
    snprintf(path, sizeof path, "%s/svgp/enriched_genes.csv", s.dir);
    text = (char *)t_file_read(path, &bytes);
    text[bytes] = '\0';
    HAS(text, "group,factor,direction,rank,gene,lfc\ngroup 0,1,enriched,1,");
    HAS(text, "\ngroup 1,3,depleted,10,");
    free(text);
    close_subset(&s);
}

/* ---- what does not fit, and faults ---- */

TEST(another_file_is_refused)
{
    subset s;
    fth_err err = {0};
    open_subset(&s, SAMPLE, "other");
    IS(export(&s, "tests/golden/h5ad/csc.h5ad", &err), FTH_E_FILE_KEY);
    HAS(err.text, "csc.h5ad");
    HAS(err.hint, "preprocess");
    IS_TRUE(access(s.out, F_OK) != 0);
    close_subset(&s);
}

TEST(names_that_are_there_twice_are_named)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_texts *have = NULL, *want = NULL;
    int64_t place[2], found = 0;
    fth_err err = {0};
    OK(fth_texts_create(&have, mem, NULL));
    OK(fth_texts_create(&want, mem, NULL));
    OK(fth_texts_add(have, "a", 1, NULL));
    OK(fth_texts_add(have, "b", 1, NULL));
    OK(fth_texts_add(want, "b", 1, NULL));
    OK(fth_texts_add(want, "c", 1, NULL));
    OK(sp_names_match(place, mem, want, have, &found, NULL));
    EQ_I64(found, 1);
    EQ_I64(place[0], 1);
    EQ_I64(place[1], -1);
    OK(fth_texts_add(have, "a", 1, NULL));
    IS(sp_names_match(place, mem, want, have, &found, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "'a'");
    fth_texts_free(have);
    fth_texts_free(want);
    OK(fth_mem_destroy(mem, NULL));
}

/* Requests and writes fail one after the other: a status, nothing held, no file. */
TEST(faults_leave_nothing_behind)
{
    subset s;
    open_subset(&s, SAMPLE, "faults");
    write_scales(&s, "");
    for (int kind = 0; kind < 2; kind++) {
        fth_status status = FTH_E_NOMEM;
        int64_t runs = 0;
        for (int64_t n = 1; status != FTH_OK; n += 1 + n / 8, runs++) {
            fth_mem_options opt = plain();
            opt.fail_alloc = kind == 0 ? n + 20 : 0; /* those before are of the context */
            opt.fail_write = kind == 1 ? n : 0;
            status = export_with(&s, kind == 0 && n % 2 ? NULL : SAMPLE, &opt, NULL);
            if (status != FTH_OK) {
                IS_TRUE(status == FTH_E_NOMEM || status == FTH_E_FILE_WRITE ||
                        status == FTH_E_LIBRARY || status == FTH_E_FILE_FORMAT);
                IS_TRUE(access(s.out, F_OK) != 0);
            }
            remove(s.out);
        }
        LE_F64(10, runs);
    }
    close_subset(&s);
}

TEST_MAIN()
