/* schema.c - every setting of the instrument: one row with its type, range, default and models.
 *
 * Defaults are those of the public pipeline, so that its configs mean the same here. Choices are
 * listed in the order of the enums in spatial.h.
 */
#include "../read/loaders.h"

#include <stdlib.h>
#include <string.h>

#define SPATIAL "svgp mggp_svgp lcgp mggp_lcgp"
#define INDUCED "svgp mggp_svgp"
#define LOCAL "lcgp mggp_lcgp"
#define GROUPED "mggp_svgp mggp_lcgp"

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_NAME_KEYS("42"),
    FTH_KEY(CHOICE, "dataset",
            "format of the data: a preset of keys in the file; anndata is the general one",
            .choices =
                "slideseq tenxvisium sdmbench liver merfish osmfish colon anndata spatialdata tenx "
                "visium visium_hd xenium merscope cosmx toy arrays",
            .value = "slideseq"),
    FTH_INSTRUMENT_DIR_KEY("outputs"),

    FTH_KEY(SECTION, "preprocessing", "From a file to positions, counts and groups."),
    FTH_KEY(PATH, "preprocessing.path",
            "the h5ad file, .zarr folder, 10x .h5 file, output folder of Space Ranger, Xenium, "
            "MERSCOPE or CosMx, or folder of arrays"),
    FTH_KEY(
        PATH, "preprocessing.paths",
        "such files or folders in place of path, a tissue section each; genes are those that all "
        "have; one alone is one section",
        .list = true),
    FTH_KEY(PATH, "preprocessing.h5ad_path", "the h5ad file, where the dataset is colon"),
    FTH_KEY(PATH, "preprocessing.labels_path",
            "CSV with columns of labels, rows as the cells; the first column is ignored"),
    FTH_KEY(PATH, "preprocessing.positions_path",
            "tissue_positions(_list).csv of a 10x .h5 file; not given: beside it, or in spatial/; "
            "of an "
            "output folder its table of cells, also .parquet or packed"),
    FTH_KEY(BOOL, "preprocessing.in_tissue", "only spots under tissue, in visium and visium_hd",
            .value = "true"),
    FTH_KEY(TEXT, "preprocessing.table",
            "table of a SpatialData store; needed where it has several"),
    FTH_KEY(TEXT, "preprocessing.region",
            "keep only cells of this region of a SpatialData table, by its region_key"),
    FTH_KEY(TEXT, "preprocessing.image_library",
            "which library of uns['spatial'] has the tissue image; needed where several have one",
            .aliases = "figures.image_library"),
    FTH_KEY(TEXT, "preprocessing.image",
            "image of a SpatialData store to draw under the cells; needed where it has several"),
    FTH_KEY(TEXT, "preprocessing.image_channels",
            "one to three channels of that image, by name or number from 0: grey, or red, green "
            "and blue; needed where it is no photograph",
            .list = true),
    FTH_KEY(TEXT, "preprocessing.coordinate_system",
            "coordinate system of the store in which cells and image meet; not given: global, or "
            "the only one that both are in"),
    FTH_KEY(TEXT, "preprocessing.coord_key",
            "positions: key in obsm; not given: as the dataset says"),
    FTH_KEY(TEXT, "preprocessing.coord_columns",
            "positions: two columns of obs, in place of coord_key", .list = true),
    FTH_KEY(INT, "preprocessing.coord_axes",
            "which two columns of coord_key are x and y, counted from 0; needed where it has more",
            .list = true, .range = "[0, 4095]"),
    FTH_KEY(TEXT, "preprocessing.counts",
            "counts: X, raw, or the name of a layer; not given: as the dataset says"),
    FTH_KEY(
        TEXT, "preprocessing.feature_types",
        "features of 10x, MERSCOPE and CosMx that are taken, by their type; [all] takes every one",
        .list = true, .value = "[Gene Expression]"),
    FTH_KEY(REAL, "preprocessing.pixel_microns",
            "micrometres of a pixel in cosmx, for scale bars; not given: 0.12028; of instruments "
            "before 2022 0.18",
            .range = "(0, inf)"),
    FTH_KEY(TEXT, "preprocessing.group_column",
            "cell types: column of obs or of the labels; not given: as the dataset says"),
    FTH_KEY(TEXT, "preprocessing.region_column",
            "cell types of the dataset sdmbench; not given: Region"),
    FTH_KEY(TEXT, "preprocessing.cell_type_column",
            "cell types of the dataset liver; not given: Cell_Type, or Cell_Type_final"),
    FTH_KEY(TEXT, "preprocessing.section_column",
            "tissue sections: column of obs, of the labels, or of the table of cells of merscope "
            "and cosmx; each is centred by itself, all share loadings, and factors of two sections "
            "are independent"),
    FTH_KEY(TEXT, "preprocessing.sections",
            "sections that are taken, in this order; not given: all that section_column names; "
            "with paths, the name of each file; not given: the names of the files",
            .list = true),
    FTH_KEY(TEXT, "preprocessing.sample_id", "keep only cells whose obs sample_id is this"),
    FTH_KEY(INT, "preprocessing.subsample", "keep every n-th cell, starting with the first",
            .range = "[1, inf)"),
    FTH_KEY(BOOL, "preprocessing.rescale",
            "bring positions to the common scale, where an extent is about 4 spatial_scale",
            .value = "true"),
    FTH_KEY(REAL, "preprocessing.spatial_scale",
            "a quarter of the typical extent of the rescaled positions", .value = "50.0",
            .range = "(0, inf)"),
    FTH_KEY(BOOL, "preprocessing.filter_mt",
            "drop mitochondrial genes (mt-...); not given: only in slideseq and tenxvisium",
            .value = "true"),
    FTH_KEY(INT, "preprocessing.min_counts",
            "minimum counts of a cell; not given: only in slideseq and tenxvisium", .value = "100",
            .range = "[0, inf)"),
    FTH_KEY(INT, "preprocessing.min_genes", "minimum number of genes with a count in a cell",
            .range = "[0, inf)"),
    FTH_KEY(REAL, "preprocessing.max_mt_percent",
            "keep cells with less than this share of mitochondrial counts; not given: 20 in "
            "slideseq and tenxvisium, any elsewhere",
            .range = "[0, 100]"),
    FTH_KEY(INT, "preprocessing.min_cells",
            "minimum number of cells with a gene; not given: only in slideseq and tenxvisium",
            .value = "10", .range = "[0, inf)"),
    FTH_KEY(TEXT, "preprocessing.genes", "keep only these genes", .list = true),
    FTH_KEY(PATH, "preprocessing.genes_file",
            "keep only the genes of this text, a name on each line; with genes: those too"),
    FTH_KEY(INT, "preprocessing.highly_variable",
            "keep so many genes, those that vary most between cells", .range = "[1, inf)"),
    FTH_KEY(CHOICE, "preprocessing.highly_variable_flavor",
            "how variation is measured: seurat_v3 and seurat as in scanpy, deviance from constant "
            "Poisson rates; not given: seurat_v3",
            .choices = "seurat_v3 seurat deviance"),
    FTH_KEY(REAL, "preprocessing.min_group_fraction",
            "minimum share of the cells in a group; replaces min_group_size", .range = "[0, 1]"),
    FTH_KEY(INT, "preprocessing.min_group_size", "minimum number of cells of a group",
            .value = "10", .range = "[0, inf)"),

    FTH_KEY(SECTION, "model", "The factor model and its prior."),
    FTH_KEY(INT, "model.n_components", "factors", .value = "10", .range = "[1, 4096]"),
    FTH_KEY(
        INT, "model.nonspatial_components",
        "further factors without positions, which share the loadings: a hybrid model that tells "
        "spatial genes from others",
        .value = "0", .range = "[0, 4096]", .applies = SPATIAL),
    FTH_KEY(BOOL, "model.spatial",
            "factors are smooth in space; a config without this key stands for all five models",
            .value = "false"),
    FTH_KEY(BOOL, "model.groups", "and related but different across cell types", .value = "false",
            .applies = GROUPED),
    FTH_KEY(BOOL, "model.local", "every cell is an inducing point, conditioned on its neighbours",
            .value = "false", .applies = LOCAL),
    FTH_KEY(CHOICE, "model.prior", "name of the prior; must agree with spatial and local",
            .choices = "GaussianPrior SVGP LCGP"),
    FTH_KEY(CHOICE, "model.mode", "how the expected log-likelihood is estimated",
            .choices = "expanded simple lower-bound", .value = "expanded"),
    FTH_KEY(CHOICE, "model.loadings_mode", "how loadings stay non-negative",
            .choices = "projected multiplicative softplus exp", .value = "projected"),
    FTH_KEY(CHOICE, "model.likelihood",
            "distribution of a count given its rate: poisson, or nb, the negative binomial with a "
            "dispersion of each gene that is trained",
            .choices = "poisson nb", .value = "poisson"),
    FTH_KEY(
        CHOICE, "model.size_factors",
        "sizes that multiply the rates of a cell: none, or total, its counts over the median of "
        "the training cells",
        .choices = "none total", .value = "none"),
    FTH_KEY(PATH, "model.loadings_file",
            "loadings from a .npy file [genes, n_components], of hybrids [genes, n_components + "
            "nonspatial_components], that stay as they are: only factors are fitted, from the best "
            "Poisson fit to the counts, whatever init says"),
    FTH_KEY(CHOICE, "model.training_mode",
            "how variational parameters move: by the optimiser, or, of pnmf alone, along natural "
            "gradients at a tenth of the learning rate",
            .choices = "standard natural", .value = "standard"),
    FTH_KEY(INT, "model.E", "Monte Carlo draws of a step", .value = "3", .range = "[1, 1000]"),
    FTH_KEY(CHOICE, "model.init",
            "where loadings and factors start; auto is nndsvd where it can be, else random; nmf, "
            "which `generate` writes, is the Poisson factorisation of the counts",
            .choices = "random nndsvd nndsvda nndsvdar k-means auto nmf", .value = "random"),
    FTH_KEY(CHOICE, "model.init_mu",
            "where the means of local models start; smooth: means over neighbours. With init: nmf "
            "they are those of its factors",
            .choices = "random smooth", .value = "random", .applies = LOCAL),
    FTH_KEY(
        CHOICE, "model.init_Lam",
        "where the covariance's factor of local models starts: 0.1 normal, or rank: normal over "
        "the root of the rank, variances of about 1, as the public project has it",
        .choices = "fixed rank", .value = "fixed", .applies = LOCAL),
    FTH_KEY(BOOL, "model.scale_ll_D", "scale the likelihood of a batch of genes to all genes",
            .value = "true"),
    FTH_KEY(BOOL, "model.scale_kl_NM",
            "weight the divergence with N/M, cells over inducing points; false: the textbook bound",
            .value = "true", .applies = INDUCED),
    FTH_KEY(CHOICE, "model.kernel", "covariance function", .choices = "Matern32 Matern52 RBF",
            .value = "Matern32", .applies = SPATIAL),
    FTH_KEY(REAL, "model.lengthscale",
            "lengthscale of the kernel, in rescaled positions; 8 is a good start", .value = "1.0",
            .range = "(0, inf)", .applies = SPATIAL),
    FTH_KEY(REAL, "model.sigma", "its standard deviation", .value = "1.0", .range = "(0, inf)",
            .applies = SPATIAL),
    FTH_KEY(BOOL, "model.train_lengthscale",
            "train a lengthscale of each factor, from lengthscale on", .value = "false",
            .applies = SPATIAL),
    FTH_KEY(REAL, "model.jitter", "added to the diagonal of covariances", .value = "1e-5",
            .range = "[0, inf)", .applies = SPATIAL),
    FTH_KEY(INT, "model.num_inducing", "inducing points", .value = "3000", .range = "[1, 1e6]",
            .applies = INDUCED),
    FTH_KEY(CHOICE, "model.cholesky_mode",
            "how the diagonal of the covariance's factor stays positive", .choices = "exp softplus",
            .value = "exp", .applies = INDUCED),
    FTH_KEY(BOOL, "model.diagonal_only", "the variational covariance is diagonal", .value = "false",
            .applies = INDUCED),
    FTH_KEY(CHOICE, "model.parametrization",
            "the variational posterior is that of the values at the inducing points, or of "
            "whitened values",
            .choices = "raw whitened", .value = "raw", .applies = INDUCED),
    FTH_KEY(PATH, "model.inducing_file",
            "inducing points from a .npy file [M, 2], in rescaled positions", .applies = INDUCED),
    FTH_KEY(INT, "model.K", "neighbours that a cell is conditioned on", .value = "50",
            .range = "[1, 1000]", .applies = LOCAL),
    FTH_KEY(TEXT, "model.rank", "columns of the covariance's factor: K, a number, or spectral",
            .value = "K", .applies = LOCAL),
    FTH_KEY(INT, "model.rank_cap",
            "largest rank, whatever rank says; the public project has 250; not given: no limit",
            .range = "[1, 100000]", .applies = LOCAL),
    FTH_KEY(CHOICE, "model.neighbors",
            "the nearest, or sampled with probability proportional to the covariance",
            .choices = "knn probabilistic", .value = "knn", .applies = LOCAL),
    FTH_KEY(BOOL, "model.precompute_knn", "accepted; neighbours are always found once",
            .value = "true", .applies = LOCAL),
    FTH_KEY(REAL, "model.group_diff_param",
            "distance between cell types: 0 merges them, a large value separates them",
            .value = "10.0", .applies = GROUPED),
    FTH_KEY(PATH, "model.group_distance",
            "distances between cell types, .npy or .csv [G, G]; not given: all the same",
            .applies = GROUPED),
    FTH_KEY(CHOICE, "model.inducing_allocation", "how inducing points are shared among cell types",
            .choices = "proportional equal derived", .value = "proportional", .applies = GROUPED),
    FTH_KEY(BOOL, "model.allocation_compat",
            "the first group takes the whole remainder, as in the public project", .value = "false",
            .applies = "mggp_svgp"),
    FTH_KEY(BOOL, "model.allow_empty_groups",
            "cell types may be left without inducing points when there are too few",
            .value = "false", .applies = "mggp_svgp"),
    FTH_KEY(CHOICE, "model.missing_group_rule",
            "derived: which cell types give points to those without any: those above their share, "
            "or every one",
            .choices = "shares donors", .value = "shares", .applies = "mggp_svgp"),
    FTH_KEY(INT, "model.posterior_K", "neighbours for the means in analyze; not given: K",
            .range = "[1, 4096]", .applies = LOCAL),
    FTH_KEY(TEXT, "model.model_name_override",
            "name of the folder in output_dir; not given: the name of the model"),

    FTH_KEY(SECTION, "training", "How the model is fitted."),
    FTH_KEY(INT, "training.max_iter", "steps", .value = "10000", .range = "[1, 1e9]"),
    FTH_KEY(INT, "training.restarts",
            "train this many times with other random numbers, keep the best by its objective, and "
            "report how well the others found the same factors; with init: nmf every second one "
            "starts from random",
            .value = "1", .range = "[1, 100]"),
    FTH_KEY(INT, "training.first_restart",
            "number of the first restart: training with 7 has the random numbers of the eighth "
            "restart of a series; `consensus` gives each of its trainings another",
            .value = "0", .range = "[0, 1e6]"),
    FTH_KEY(REAL, "training.learning_rate", "learning rate; the highest of a cycle",
            .value = "0.01", .range = "(0, inf)"),
    FTH_KEY(REAL, "training.lengthscale_rate",
            "learning rate of lengthscales that are trained, as a multiple of learning_rate",
            .value = "1.0", .range = "(0, 1000]", .applies = SPATIAL),
    FTH_KEY(REAL, "training.lengthscale_warmup",
            "share of the steps before lengthscales start to move: factors must have formed by "
            "then",
            .value = "0.3", .range = "[0, 1)", .applies = SPATIAL),
    FTH_KEY(CHOICE, "training.optimizer", "optimiser", .choices = "Adam AdamW NAdam SGD RMSprop",
            .value = "Adam"),
    FTH_KEY(CHOICE, "training.scheduler", "how the learning rate changes",
            .choices = "one_cycle plateau none", .value = "one_cycle"),
    FTH_KEY(CHOICE, "training.adam", "lazy: parameters without a gradient in a step do not move",
            .choices = "dense lazy", .value = "dense", .applies = LOCAL),
    FTH_KEY(CHOICE, "training.moments",
            "where the optimiser's moments are: auto puts them into the scratch folder when memory "
            "is short",
            .choices = "auto memory scratch", .value = "auto"),
    FTH_KEY(REAL, "training.tol",
            "stop when the objective changes by less from one step to the next", .value = "1e-4",
            .range = "[0, inf)"),
    FTH_KEY(BOOL, "training.verbose", "a line in the log every hundred steps", .value = "false"),
    FTH_KEY(TEXT, "training.device",
            "auto, cpu, cuda or cuda:N; gpu is auto with a notice; --device wins", .value = "auto"),
    FTH_KEY(INT, "training.batch_size", "cells of a step; not given: all", .range = "[1, inf)",
            .aliases = "training.x_batch"),
    FTH_KEY(INT, "training.y_batch_size", "genes of a step; not given: all", .range = "[1, inf)",
            .aliases = "training.y_batch"),
    FTH_KEY(BOOL, "training.shuffle", "accepted; every batch is drawn anew", .value = "true"),
    FTH_KEY(INT, "training.analyze_batch_size",
            "most cells at a time in analyze; the memory budget may require fewer",
            .value = "10000", .range = "[1, inf)"),
    FTH_KEY(BOOL, "training.video",
            "keep frames of the factors while training, for an animation; as --video",
            .value = "false"),
    FTH_KEY(INT, "training.video_interval", "steps between frames", .value = "20",
            .range = "[1, inf)"),
    FTH_KEY(INT, "training.log_every",
            "on a GPU: steps between two readings of the objective; results do not depend on it",
            .value = "20", .range = "[1, 256]"),
    FTH_KEY(INT, "training.checkpoint_interval", "steps between checkpoints", .value = "1000",
            .range = "[1, inf)"),
    FTH_KEY(REAL, "training.holdout_fraction",
            "share of the cells held out from training, to evaluate the model", .value = "0",
            .range = "[0, 0.9]"),
    FTH_KEY(CHOICE, "training.holdout", "which cells are held out", .choices = "random last",
            .value = "random"),
    FTH_KEY(SIZE, "training.memory_budget",
            "memory budget; --memory wins; not given: 90 % of what is free"),
    FTH_KEY(BOOL, "training.deterministic",
            "accepted; results never depend on threads, chunks or memory", .value = "true"),

    FTH_KEY(SECTION, "analyze", "What is computed from a model."),
    FTH_KEY(CHOICE, "analyze.group_loadings", "update rule of the loadings of each cell type",
            .choices = "euclidean poisson", .value = "euclidean"),
    FTH_KEY(CHOICE, "analyze.deviance",
            "which deviance of held-out cells is reported beside the Poisson one",
            .choices = "poisson nsf", .value = "poisson"),
    FTH_KEY(BOOL, "analyze.export", "put the results into a copy of the h5ad file",
            .value = "true"),
    {.name = "figures",
     .type = FTH_CONFIG_SECTION,
     .doc = "How results are drawn. `figures: all` is short for `figures: {which: all}`."},
    FTH_KEY(CHOICE, "figures.which", "the ten main figures of a model, or all figures",
            .choices = "main all", .value = "main", .aliases = "figures"),
    FTH_KEY(CHOICE, "figures.formats",
            "formats of the files; each figure is written in all of them", .list = true,
            .choices = "png svg pdf", .value = "[png]"),
    FTH_KEY(TEXT, "figures.unit",
            "unit of the positions in the file, for the scale bar: um, px, ...; not given: as "
            "the file says"),
    FTH_KEY(REAL, "figures.microns",
            "micrometres in one unit of the file's positions; the scale bar is then in um or mm",
            .range = "(0, inf)"),
    FTH_KEY(CHOICE, "figures.image",
            "draw the tissue image under maps of cells: auto where there is one; true makes a "
            "missing one an error",
            .choices = "auto true false", .value = "auto"),
    FTH_KEY(PATH, "figures.image_file",
            "an image of your own, PNG, JPEG, TIFF or WebP, in place of the source's"),
    FTH_KEY(REAL, "figures.image_scale",
            "pixels of image_file in one unit of the source's positions; not given: 1",
            .range = "(0, inf)"),
    FTH_KEY(REAL, "figures.image_offset",
            "position [x, y], as the source has them, of the upper left corner of image_file; not "
            "given: [0, 0]",
            .list = true),
    FTH_KEY(REAL, "figures.image_alpha", "opacity of the image", .value = "1.0", .range = "(0, 1]"),
    FTH_KEY(REAL, "figures.dot_scale",
            "diameter of cells over an image, in diameters of a spot; size of scanpy",
            .value = "1.0", .range = "(0, 10]"),
    FTH_KEY(REAL, "figures.dot_alpha", "opacity of cells over an image", .value = "0.8",
            .range = "(0, 1]"),
    FTH_KEY(BOOL, "figures.heatmaps",
            "draw the heat maps of genes and cell types, with which: all; as --no-heatmap when "
            "false",
            .value = "true"),
    {.name = "figures.dpi",
     .type = FTH_CONFIG_REAL,
     .value = "150",
     .range = "[30, 600]",
     .doc = "dots per inch"},
};

static bool is(const fth_config *cfg, const char *key)
{
    return fth_config_bool(cfg, key);
}

/* Reject a prior that contradicts the switches: the model would not be the one it names. */
static void check_prior(fth_config *cfg)
{
    if (!fth_config_has(cfg, "model.prior")) return;
    const int prior = fth_config_choice(cfg, "model.prior"); /* index in the list of choices */
    const int want = !is(cfg, "model.spatial") ? 0 : is(cfg, "model.local") ? 2 : 1;
    static const char *const name[] = {"GaussianPrior", "SVGP", "LCGP"};
    if (prior >= 0 && prior != want)
        fth_config_complain(cfg, "model.prior model.spatial model.local",
                            "set spatial and local as the prior needs them, or leave prior out",
                            "prior is %s, but spatial: %s and local: %s make it %s", name[prior],
                            is(cfg, "model.spatial") ? "true" : "false",
                            is(cfg, "model.local") ? "true" : "false", name[want]);
}

static void check_rank(fth_config *cfg)
{
    const char *rank = fth_config_text(cfg, "model.rank");
    if (strcmp(rank, "K") == 0 || strcmp(rank, "spectral") == 0) return;
    char *end;
    const long long n = strtoll(rank, &end, 10);
    if (*end || end == rank || n < 1 || n > 100000)
        fth_config_complain(cfg, "model.rank", "write K, spectral, or a number",
                            "rank is '%s', which is neither K nor spectral nor a number from 1",
                            rank);
}

/* Natural gradients are those of independent normal factors. */
static void check_natural(fth_config *cfg)
{
    if (!is(cfg, "model.spatial") || fth_config_choice(cfg, "model.training_mode") != SP_NATURAL)
        return;
    fth_config_complain(cfg, "model.training_mode model.spatial",
                        "set model.training_mode: standard, or model.spatial: false for pnmf",
                        "natural gradients are those of pnmf: spatial priors, and hybrids with "
                        "them, are trained with standard");
}

static void check_device(fth_config *cfg)
{
    const char *device = fth_config_text(cfg, "training.device");
    const bool known = strcmp(device, "cpu") == 0 || strcmp(device, "gpu") == 0 ||
                       strcmp(device, "auto") == 0 || strncmp(device, "cuda", 4) == 0;
    if (!known)
        fth_config_complain(cfg, "training.device", "write auto, cpu, gpu or cuda:N",
                            "device is '%s', which is not a device", device);
}

static void check_paths(fth_config *cfg)
{
    static const char *const others[] = {"path", "h5ad_path", "labels_path", "positions_path",
                                         "section_column"};
    const char *const key = "preprocessing.paths", *const names = "preprocessing.sections";
    if (!sp_source_is_several(cfg)) return;
    if (fth_config_count(cfg, key) < 1)
        fth_config_complain(cfg, key, "list the files, a section each: [A.h5ad, B.h5ad]",
                            "at least one file is expected, not none");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char other[SP_NAME], both[2 * SP_NAME];
        snprintf(other, sizeof other, "preprocessing.%s", others[i]);
        snprintf(both, sizeof both, "%s %s", key, other);
        if (fth_config_has(cfg, other))
            fth_config_complain(
                cfg, both, "leave one of them out",
                "every file of paths is a section of its own, and %s is of one file", others[i]);
    }
    if (fth_config_has(cfg, names) && fth_config_count(cfg, names) != fth_config_count(cfg, key))
        fth_config_complain(cfg, "preprocessing.sections preprocessing.paths",
                            "give each file a name, in their order", "%lld files have %lld names",
                            (long long)fth_config_count(cfg, key),
                            (long long)fth_config_count(cfg, names));
}

/* Sections are of a column, or of the folder where there are no columns. */
static void check_sections(fth_config *cfg)
{
    const char *const key = "preprocessing.sections";
    const sp_loader *loader = sp_loader_of(cfg);
    check_paths(cfg);
    if (!fth_config_has(cfg, key)) return;
    if (!fth_config_has(cfg, "preprocessing.section_column") && loader &&
        !(loader->flags & SP_LOAD_ARRAYS) && !sp_source_is_several(cfg))
        fth_config_complain(cfg, "preprocessing.sections preprocessing.section_column",
                            "name the column with preprocessing.section_column",
                            "sections are listed, but no column says of which one a cell is");
    for (int64_t i = 0; i < fth_config_count(cfg, key); i++)
        for (int64_t j = 0; j < i; j++)
            if (strcmp(fth_config_text_at(cfg, key, i), fth_config_text_at(cfg, key, j)) == 0)
                fth_config_complain(cfg, key, "list every section once",
                                    "the section '%s' is listed twice",
                                    fth_config_text_at(cfg, key, i));
}

/* Every dataset needs a path; loaders.def names its key. */
static void check_source(fth_config *cfg)
{
    const sp_loader *loader = sp_loader_of(cfg);
    if (!loader || sp_source_path(cfg)[0]) return;
    char about[64], hint[96];
    snprintf(about, sizeof about, "preprocessing.%.30s dataset", loader->file);
    snprintf(hint, sizeof hint, "write the path of the %s there", sp_loader_reads(loader));
    fth_config_complain(cfg, about, hint, "the dataset '%s' needs the key preprocessing.%s",
                        loader->name, loader->file);
}

/* Where a picture lies is said of one that the config names. */
static void check_image(fth_config *cfg)
{
    static const char *const of[] = {"figures.image_scale", "figures.image_offset"};
    const bool file = fth_config_has(cfg, "figures.image_file");
    for (int i = 0; i < 2; i++)
        if (!file && fth_config_has(cfg, of[i]))
            fth_config_complain(cfg, of[i], "name the image with figures.image_file",
                                "the source says where its own image lies");
    const char *const channels = "preprocessing.image_channels";
    const int64_t used = fth_config_count(cfg, channels);
    if (fth_config_has(cfg, channels) && (used < 1 || used > 3))
        fth_config_complain(cfg, channels, "write [DAPI] or [a, b, c]",
                            "one to three channels can be drawn, not %lld", (long long)used);
    const int64_t n = fth_config_count(cfg, of[1]);
    if (fth_config_has(cfg, of[1]) && n != 2)
        fth_config_complain(cfg, of[1], "write [x, y]", "a corner has two numbers, not %lld",
                            (long long)n);
}

static void check(fth_config *cfg, void *user)
{
    (void)user;
    const bool spatial = is(cfg, "model.spatial");
    if (!spatial && is(cfg, "model.local"))
        fth_config_complain(cfg, "model.local model.spatial", "set model.spatial: true",
                            "local models are spatial, but spatial is false");
    if (!spatial && is(cfg, "model.groups"))
        fth_config_complain(cfg, "model.groups model.spatial", "set model.spatial: true",
                            "models with groups are spatial, but spatial is false");
    if (fth_config_has(cfg, "preprocessing.coord_columns") &&
        fth_config_count(cfg, "preprocessing.coord_columns") != 2)
        fth_config_complain(cfg, "preprocessing.coord_columns", "write [x_column, y_column]",
                            "positions have two columns, not %lld",
                            (long long)fth_config_count(cfg, "preprocessing.coord_columns"));
    const int64_t axes = fth_config_count(cfg, "preprocessing.coord_axes");
    if (fth_config_has(cfg, "preprocessing.coord_axes") &&
        (axes != 2 || fth_config_int_at(cfg, "preprocessing.coord_axes", 0) ==
                          fth_config_int_at(cfg, "preprocessing.coord_axes", 1)))
        fth_config_complain(cfg, "preprocessing.coord_axes", "write [0, 1]",
                            "positions have two different axes");
    check_prior(cfg);
    check_rank(cfg);
    check_natural(cfg);
    check_device(cfg);
    check_source(cfg);
    check_image(cfg);
    check_sections(cfg);
}

const fth_schema sp_schema = {
    .name = "spatial",
    .brief = "Factor models of spatial transcriptomics: maps, loadings, uncertainty.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .check = check,
};

const fth_variant sp_variants[] = {
    {.name = "pnmf", .set = {"model.spatial=false", "model.prior=GaussianPrior"}},
    {.name = "svgp", .set = {"model.spatial=true", "model.prior=SVGP"}},
    {.name = "mggp_svgp", .set = {"model.spatial=true", "model.prior=SVGP", "model.groups=true"}},
    {.name = "lcgp", .set = {"model.spatial=true", "model.prior=LCGP", "model.local=true"}},
    {.name = "mggp_lcgp",
     .set = {"model.spatial=true", "model.prior=LCGP", "model.local=true", "model.groups=true"}},
};
const int sp_n_variants = sizeof sp_variants / sizeof sp_variants[0];

/* A model that is generated starts from the counts unless the general config says otherwise: from
 * random numbers some seeds end in a poor optimum. */
bool sp_expand(const fth_config *cfg, int64_t i, fth_variant_made *out)
{
    if (i >= sp_n_variants) return false;
    out->variant = sp_variants[i];
    int n = 0;
    while (out->variant.set[n]) n++;
    const char *mode = fth_config_peek(cfg, "model.training_mode");
    if (!fth_config_peek(cfg, "model.init")) out->variant.set[n++] = "model.init=nmf";
    if (i > 0 && mode && strcmp(mode, "natural") == 0) /* spatial models have none */
        out->variant.set[n] = "model.training_mode=standard";
    return true;
}

bool sp_is_general(const fth_config *cfg)
{
    return fth_config_peek(cfg, "model.spatial") == NULL;
}

static sp_kind find_kind(bool spatial, bool groups, bool local)
{
    for (int i = 0; i < SP_KIND_COUNT; i++)
        if (sp_kinds[i].spatial == spatial && sp_kinds[i].groups == groups &&
            sp_kinds[i].local == local)
            return (sp_kind)i;
    return SP_PNMF; /* rejected by `check` */
}

sp_kind sp_kind_of(const fth_config *cfg)
{
    return find_kind(is(cfg, "model.spatial"), is(cfg, "model.groups"), is(cfg, "model.local"));
}

void sp_settings_derive(sp_settings *s)
{
    s->kind = find_kind(s->spatial, s->groups, s->local);
    s->trainable_W = s->loadings_mode != SP_MULTIPLICATIVE;
}

fth_status sp_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err)
{
    (void)err;
    const bool given = fth_config_has(cfg, "model.model_name_override");
    snprintf(name, bytes, "%s",
             given ? fth_config_text(cfg, "model.model_name_override")
                   : sp_kinds[sp_kind_of(cfg)].name);
    return FTH_OK;
}
