/* schema.c - every setting of the instrument: one row with its type, range, default and models.
 *
 * Defaults are those of the public pipeline, so that its configs mean the same here. The words of
 * choices stand in the order of the enums in spatial.h.
 */
#include "loaders.h"

#include <stdlib.h>
#include <string.h>

#define SPATIAL "svgp mggp_svgp lcgp mggp_lcgp"
#define INDUCED "svgp mggp_svgp"
#define LOCAL "lcgp mggp_lcgp"
#define GROUPED "mggp_svgp mggp_lcgp"

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_NAME_KEYS("42"),
    {.name = "dataset",
     .type = FTH_CONFIG_CHOICE,
     .choices = "slideseq tenxvisium sdmbench liver merfish osmfish colon anndata tenx toy arrays",
     .value = "slideseq",
     .doc = "what the data are: a preset of places in the file; anndata is the general one"},
    FTH_INSTRUMENT_DIR_KEY("outputs"),

    {.name = "preprocessing",
     .type = FTH_CONFIG_SECTION,
     .doc = "From a file to positions, counts and groups."},
    {.name = "preprocessing.path",
     .type = FTH_CONFIG_PATH,
     .doc = "the h5ad file, 10x .h5 file, or folder of arrays"},
    {.name = "preprocessing.h5ad_path",
     .type = FTH_CONFIG_PATH,
     .doc = "the h5ad file, where the dataset is colon"},
    {.name = "preprocessing.labels_path",
     .type = FTH_CONFIG_PATH,
     .doc = "CSV with columns of labels, rows as the cells; the first column is ignored"},
    {.name = "preprocessing.positions_path",
     .type = FTH_CONFIG_PATH,
     .doc = "tissue_positions(_list).csv of a 10x .h5 file; not given: beside it, or in spatial/"},
    {.name = "preprocessing.coord_key",
     .type = FTH_CONFIG_TEXT,
     .doc = "positions: key in obsm; not given: as the dataset says"},
    {.name = "preprocessing.coord_columns",
     .type = FTH_CONFIG_TEXT,
     .list = true,
     .doc = "positions: two columns of obs, in place of coord_key"},
    {.name = "preprocessing.coord_axes",
     .type = FTH_CONFIG_INT,
     .list = true,
     .range = "[0, 4095]",
     .doc = "which two columns of coord_key are x and y, counted from 0; needed where it has more"},
    {.name = "preprocessing.counts",
     .type = FTH_CONFIG_TEXT,
     .doc = "counts: X, raw, or the name of a layer; not given: as the dataset says"},
    {.name = "preprocessing.feature_types",
     .type = FTH_CONFIG_TEXT,
     .list = true,
     .value = "[Gene Expression]",
     .doc = "features of a 10x .h5 file that are taken, by their type; [all] takes every one"},
    {.name = "preprocessing.group_column",
     .type = FTH_CONFIG_TEXT,
     .doc = "cell types: column of obs or of the labels; not given: as the dataset says"},
    {.name = "preprocessing.region_column",
     .type = FTH_CONFIG_TEXT,
     .doc = "cell types of the dataset sdmbench; not given: Region"},
    {.name = "preprocessing.cell_type_column",
     .type = FTH_CONFIG_TEXT,
     .doc = "cell types of the dataset liver; not given: Cell_Type, or Cell_Type_final"},
    {.name = "preprocessing.sample_id",
     .type = FTH_CONFIG_TEXT,
     .doc = "keep only cells whose obs sample_id is this"},
    {.name = "preprocessing.subsample",
     .type = FTH_CONFIG_INT,
     .range = "[1, inf)",
     .doc = "keep every so manieth cell, from the first"},
    {.name = "preprocessing.rescale",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .doc = "bring positions to the common scale, where an extent is about 4 spatial_scale"},
    {.name = "preprocessing.spatial_scale",
     .type = FTH_CONFIG_REAL,
     .value = "50.0",
     .range = "(0, inf)",
     .doc = "a quarter of the typical extent of the rescaled positions"},
    {.name = "preprocessing.filter_mt",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .doc = "drop mitochondrial genes, in slideseq and tenxvisium"},
    {.name = "preprocessing.min_counts",
     .type = FTH_CONFIG_INT,
     .value = "100",
     .range = "[0, inf)",
     .doc = "least counts of a cell, in slideseq and tenxvisium"},
    {.name = "preprocessing.min_cells",
     .type = FTH_CONFIG_INT,
     .value = "10",
     .range = "[0, inf)",
     .doc = "least cells with a gene, in slideseq and tenxvisium"},
    {.name = "preprocessing.min_group_fraction",
     .type = FTH_CONFIG_REAL,
     .range = "[0, 1]",
     .doc = "least share of the cells that a group has; in place of min_group_size"},
    {.name = "preprocessing.min_group_size",
     .type = FTH_CONFIG_INT,
     .value = "10",
     .range = "[0, inf)",
     .doc = "least cells of a group"},

    {.name = "model", .type = FTH_CONFIG_SECTION, .doc = "The factor model and its prior."},
    {.name = "model.n_components",
     .type = FTH_CONFIG_INT,
     .value = "10",
     .range = "[1, 4096]",
     .doc = "factors"},
    {.name = "model.spatial",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .doc = "factors are smooth in space; a config without this key stands for all five models"},
    {.name = "model.groups",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .applies = GROUPED,
     .doc = "and related but different across cell types"},
    {.name = "model.local",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .applies = LOCAL,
     .doc = "every cell is an inducing point, conditioned on its neighbours"},
    {.name = "model.prior",
     .type = FTH_CONFIG_CHOICE,
     .choices = "GaussianPrior SVGP LCGP",
     .doc = "name of the prior; must agree with spatial and local"},
    {.name = "model.mode",
     .type = FTH_CONFIG_CHOICE,
     .choices = "expanded simple lower-bound",
     .value = "expanded",
     .doc = "how the expected log-likelihood is estimated"},
    {.name = "model.loadings_mode",
     .type = FTH_CONFIG_CHOICE,
     .choices = "projected multiplicative softplus exp",
     .value = "projected",
     .doc = "how loadings stay non-negative"},
    {.name = "model.training_mode",
     .type = FTH_CONFIG_CHOICE,
     .choices = "standard",
     .value = "standard",
     .doc = "how variational parameters move"},
    {.name = "model.E",
     .type = FTH_CONFIG_INT,
     .value = "3",
     .range = "[1, 1000]",
     .doc = "Monte Carlo draws of a step"},
    {.name = "model.init",
     .type = FTH_CONFIG_CHOICE,
     .choices = "random nndsvd nndsvda nndsvdar k-means auto nmf",
     .value = "random",
     .doc = "where loadings and factors start; auto is nndsvd where it can be, else random; nmf, "
            "which `generate` writes, is the Poisson factorisation of the counts"},
    {.name = "model.init_mu",
     .type = FTH_CONFIG_CHOICE,
     .choices = "random smooth",
     .value = "random",
     .applies = LOCAL,
     .doc = "where the means of local models start; smooth: means over neighbours. With init: nmf "
            "they are those of its factors"},
    {.name = "model.scale_ll_D",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .doc = "the likelihood of a batch of genes stands for all genes"},
    {.name = "model.scale_kl_NM",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .applies = INDUCED,
     .doc = "weigh the divergence by cells over inducing points; false: the textbook bound"},
    {.name = "model.kernel",
     .type = FTH_CONFIG_CHOICE,
     .choices = "Matern32 Matern52 RBF",
     .value = "Matern32",
     .applies = SPATIAL,
     .doc = "covariance function"},
    {.name = "model.lengthscale",
     .type = FTH_CONFIG_REAL,
     .value = "1.0",
     .range = "(0, inf)",
     .applies = SPATIAL,
     .doc = "its length, in rescaled positions; 8 is a good start"},
    {.name = "model.sigma",
     .type = FTH_CONFIG_REAL,
     .value = "1.0",
     .range = "(0, inf)",
     .applies = SPATIAL,
     .doc = "its standard deviation"},
    {.name = "model.train_lengthscale",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .applies = SPATIAL,
     .doc = "must be false: the length is kept as it is given"},
    {.name = "model.jitter",
     .type = FTH_CONFIG_REAL,
     .value = "1e-5",
     .range = "[0, inf)",
     .applies = SPATIAL,
     .doc = "added to the diagonal of covariances"},
    {.name = "model.num_inducing",
     .type = FTH_CONFIG_INT,
     .value = "3000",
     .range = "[1, 1e6]",
     .applies = INDUCED,
     .doc = "inducing points"},
    {.name = "model.cholesky_mode",
     .type = FTH_CONFIG_CHOICE,
     .choices = "exp softplus",
     .value = "exp",
     .applies = INDUCED,
     .doc = "how the diagonal of the covariance's factor stays positive"},
    {.name = "model.diagonal_only",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .applies = INDUCED,
     .doc = "the variational covariance is diagonal"},
    {.name = "model.parametrization",
     .type = FTH_CONFIG_CHOICE,
     .choices = "raw whitened",
     .value = "raw",
     .applies = INDUCED,
     .doc = "whether the variational parameters are those of the values or of whitened ones"},
    {.name = "model.inducing_file",
     .type = FTH_CONFIG_PATH,
     .applies = INDUCED,
     .doc = "inducing points from a .npy file [M, 2], in rescaled positions"},
    {.name = "model.K",
     .type = FTH_CONFIG_INT,
     .value = "50",
     .range = "[1, 1000]",
     .applies = LOCAL,
     .doc = "neighbours that a cell is conditioned on"},
    {.name = "model.rank",
     .type = FTH_CONFIG_TEXT,
     .value = "K",
     .applies = LOCAL,
     .doc = "columns of the covariance's factor: K, a number, or spectral"},
    {.name = "model.neighbors",
     .type = FTH_CONFIG_CHOICE,
     .choices = "knn probabilistic",
     .value = "knn",
     .applies = LOCAL,
     .doc = "the nearest, or drawn with the covariance as weights"},
    {.name = "model.precompute_knn",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .applies = LOCAL,
     .doc = "accepted; neighbours are always found once"},
    {.name = "model.group_diff_param",
     .type = FTH_CONFIG_REAL,
     .value = "10.0",
     .applies = GROUPED,
     .doc = "how far cell types are apart: 0 merges them, much separates them"},
    {.name = "model.group_distance",
     .type = FTH_CONFIG_PATH,
     .applies = GROUPED,
     .doc = "distances between cell types, .npy or .csv [G, G]; not given: all the same"},
    {.name = "model.inducing_allocation",
     .type = FTH_CONFIG_CHOICE,
     .choices = "proportional equal derived",
     .value = "proportional",
     .applies = GROUPED,
     .doc = "how inducing points are shared among cell types"},
    {.name = "model.allocation_compat",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .applies = "mggp_svgp",
     .doc = "the first group in line takes the whole remainder, as in the public project"},
    {.name = "model.allow_empty_groups",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .applies = "mggp_svgp",
     .doc = "cell types may be left without inducing points when there are too few"},
    {.name = "model.missing_group_rule",
     .type = FTH_CONFIG_CHOICE,
     .choices = "shares donors",
     .value = "shares",
     .applies = "mggp_svgp",
     .doc = "derived: whom points of cell types without any are taken from; those above their "
            "share, or one from each"},
    {.name = "model.posterior_K",
     .type = FTH_CONFIG_INT,
     .range = "[1, 4096]",
     .applies = LOCAL,
     .doc = "neighbours for the means in analyze; not given: K"},
    {.name = "model.model_name_override",
     .type = FTH_CONFIG_TEXT,
     .doc = "name of the folder in output_dir; not given: the name of the model"},

    {.name = "training", .type = FTH_CONFIG_SECTION, .doc = "How the model is fitted."},
    {.name = "training.max_iter",
     .type = FTH_CONFIG_INT,
     .value = "10000",
     .range = "[1, 1e9]",
     .doc = "steps"},
    {.name = "training.restarts",
     .type = FTH_CONFIG_INT,
     .value = "1",
     .range = "[1, 100]",
     .doc = "train so many times with other random numbers, keep the best by its objective, and "
            "report how far the others found the same factors; with init: nmf every second one "
            "starts from random"},
    {.name = "training.learning_rate",
     .type = FTH_CONFIG_REAL,
     .value = "0.01",
     .range = "(0, inf)",
     .doc = "learning rate; the highest of a cycle"},
    {.name = "training.optimizer",
     .type = FTH_CONFIG_CHOICE,
     .choices = "Adam AdamW NAdam SGD RMSprop",
     .value = "Adam",
     .doc = "optimiser"},
    {.name = "training.scheduler",
     .type = FTH_CONFIG_CHOICE,
     .choices = "one_cycle plateau none",
     .value = "one_cycle",
     .doc = "how the learning rate changes"},
    {.name = "training.adam",
     .type = FTH_CONFIG_CHOICE,
     .choices = "dense lazy",
     .value = "dense",
     .applies = LOCAL,
     .doc = "lazy: what the batch does not touch is not moved"},
    {.name = "training.moments",
     .type = FTH_CONFIG_CHOICE,
     .choices = "auto memory scratch",
     .value = "auto",
     .doc = "where the optimiser's moments are: auto puts them into the scratch folder when memory "
            "is short"},
    {.name = "training.tol",
     .type = FTH_CONFIG_REAL,
     .value = "1e-4",
     .range = "[0, inf)",
     .doc = "stop when the objective changes by less from one step to the next"},
    {.name = "training.verbose",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .doc = "a line in the log every hundred steps"},
    {.name = "training.device",
     .type = FTH_CONFIG_TEXT,
     .value = "auto",
     .doc = "auto, cpu, cuda or cuda:N; gpu is auto with a notice; --device wins"},
    {.name = "training.batch_size",
     .type = FTH_CONFIG_INT,
     .range = "[1, inf)",
     .aliases = "training.x_batch",
     .doc = "cells of a step; not given: all"},
    {.name = "training.y_batch_size",
     .type = FTH_CONFIG_INT,
     .range = "[1, inf)",
     .aliases = "training.y_batch",
     .doc = "genes of a step; not given: all"},
    {.name = "training.shuffle",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .doc = "accepted; every batch is drawn anew"},
    {.name = "training.analyze_batch_size",
     .type = FTH_CONFIG_INT,
     .value = "10000",
     .range = "[1, inf)",
     .doc = "most cells at a time in analyze; the memory allowed may ask for fewer"},
    {.name = "training.video",
     .type = FTH_CONFIG_BOOL,
     .value = "false",
     .doc = "keep frames of the factors while training, for an animation; as --video"},
    {.name = "training.video_interval",
     .type = FTH_CONFIG_INT,
     .value = "20",
     .range = "[1, inf)",
     .doc = "steps between frames"},
    {.name = "training.checkpoint_interval",
     .type = FTH_CONFIG_INT,
     .value = "1000",
     .range = "[1, inf)",
     .doc = "steps between checkpoints"},
    {.name = "training.holdout_fraction",
     .type = FTH_CONFIG_REAL,
     .value = "0",
     .range = "[0, 0.9]",
     .doc = "share of the cells that training does not see, to judge the model by"},
    {.name = "training.holdout",
     .type = FTH_CONFIG_CHOICE,
     .choices = "random last",
     .value = "random",
     .doc = "which cells those are"},
    {.name = "training.memory_budget",
     .type = FTH_CONFIG_SIZE,
     .doc = "most memory; --memory wins; not given: 90 % of what is free"},
    {.name = "training.deterministic",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .doc = "accepted; results never depend on threads, chunks or memory"},

    {.name = "analyze", .type = FTH_CONFIG_SECTION, .doc = "What is worked out of a model."},
    {.name = "analyze.group_loadings",
     .type = FTH_CONFIG_CHOICE,
     .choices = "euclidean poisson",
     .value = "euclidean",
     .doc = "rule of the updates that give each cell type loadings of its own"},
    {.name = "analyze.deviance",
     .type = FTH_CONFIG_CHOICE,
     .choices = "poisson nsf",
     .value = "poisson",
     .doc = "which deviance of held-out cells is reported beside the Poisson one"},
    {.name = "analyze.export",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .doc = "put the results into a copy of the h5ad file"},
    {.name = "figures",
     .type = FTH_CONFIG_SECTION,
     .doc = "How results are drawn. `figures: all` is short for `figures: {which: all}`."},
    {.name = "figures.which",
     .type = FTH_CONFIG_CHOICE,
     .choices = "main all",
     .value = "main",
     .aliases = "figures",
     .doc = "the ten figures of a model that most people want, or every figure there is"},
    {.name = "figures.formats",
     .type = FTH_CONFIG_CHOICE,
     .list = true,
     .choices = "png svg pdf",
     .value = "[png]",
     .doc = "formats of the files; each figure is written in all of them"},
    {.name = "figures.unit",
     .type = FTH_CONFIG_TEXT,
     .doc = "what the positions of the file are in, for the scale bar: um, px, ...; not given: as "
            "the file says"},
    {.name = "figures.microns",
     .type = FTH_CONFIG_REAL,
     .range = "(0, inf)",
     .doc = "micrometres in one unit of the file's positions; the scale bar is then in um or mm"},
    {.name = "figures.heatmaps",
     .type = FTH_CONFIG_BOOL,
     .value = "true",
     .doc = "draw the heat maps of genes and cell types, with which: all; as --no-heatmap when "
            "false"},
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

/* A name that contradicts the switches would train another model than the user reads. */
static void check_prior(fth_config *cfg)
{
    if (!fth_config_has(cfg, "model.prior")) return;
    const int prior = fth_config_choice(cfg, "model.prior"); /* as the words stand */
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

static void check_device(fth_config *cfg)
{
    const char *device = fth_config_text(cfg, "training.device");
    const bool known = strcmp(device, "cpu") == 0 || strcmp(device, "gpu") == 0 ||
                       strcmp(device, "auto") == 0 || strncmp(device, "cuda", 4) == 0;
    if (!known)
        fth_config_complain(cfg, "training.device", "write auto, cpu, gpu or cuda:N",
                            "device is '%s', which is no device", device);
}

/* Every dataset is read from somewhere: which key says where is a column of loaders.def. */
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
    if (is(cfg, "model.train_lengthscale"))
        fth_config_complain(cfg, "model.train_lengthscale",
                            "set it to false, and compare lengthscales with 'fathom spatial sweep'",
                            "the lengthscale is not trained");
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
    check_device(cfg);
    check_source(cfg);
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
    if (!fth_config_peek(cfg, "model.init")) out->variant.set[n] = "model.init=nmf";
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
    return SP_PNMF; /* refused by the check */
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
