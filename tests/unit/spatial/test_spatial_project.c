/* test_spatial_project.c - factors of cells by a model that is done.
 *
 * seconds: 10
 */
#include "instruments/spatial/model/model.h"
#include "instruments/spatial/statistics/moran.h"

#include "testing/spatial/spatial_training.h"

#include <math.h>
#include <sys/stat.h>

typedef struct words {
    char model[PATH_MAX + 64], data[PATH_MAX + 64], output[PATH_MAX + 64];
    bool least_squares;
} words;

static const char *value_of(void *user, const char *flag)
{
    const words *w = user;
    if (strcmp(flag, "model") == 0) return w->model;
    if (strcmp(flag, "data") == 0) return w->data;
    if (strcmp(flag, "output") == 0) return w->output[0] ? w->output : NULL;
    return w->least_squares && strcmp(flag, "least-squares") == 0 ? "" : NULL;
}

static fth_status project(words *w, uint64_t budget, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fth_options_default(&opt);
    opt.mem.budget_bytes = budget;
    opt.threads = 2;
    FILE *out = fopen("/dev/null", "w");
    OKE(fth_context_create(&ctx, &opt, err), err);
    const fth_status s = sp_verb_project.run(ctx, 0, NULL, value_of, w, out, err);
    fclose(out);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}

/* A trained model, and words that project its own cells. */
static ss_bench *trained(const char *name, sp_kind kind, words *w)
{
    static const char *const video[] = {"video", NULL};
    ss_bench *b = ss_open(name, kind, NULL);
    OK(fth_config_destroy(b->cfg, NULL));
    char text[4000];
    ss_config(text, sizeof text, kind, NULL);
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    OK(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), NULL));
    OK(fth_config_set(b->cfg, "training.video_interval=12", NULL));
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    b->job.config = b->cfg;
    b->flags = video;
    OKE(ss_train(b), &b->err);
    *w = (words){0};
    snprintf(w->model, sizeof w->model, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    snprintf(w->data, sizeof w->data, "%s", b->dir);
    return b;
}

static float *load(const ss_bench *b, const char *name, size_t count)
{
    size_t n;
    unsigned char *file = ss_file(b, name, &n);
    float *v = malloc(count * sizeof *v);
    IS_TRUE(n > count * sizeof *v);
    memcpy(v, file + n - count * sizeof *v, count * sizeof *v);
    free(file);
    return v;
}

/* Columns of `frame` in the order of Moran's I, as every file of a model has them. */
static void put_in_order(const ss_bench *b, float *frame)
{
    fth_err err = {0};
    char path[PATH_MAX + 128];
    fth_context *ctx = NULL;
    fth_options opt;
    sp_data d;
    sp_moran moran;
    float copy[900];
    fth_options_default(&opt);
    opt.threads = 2;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    snprintf(path, sizeof path, "%s/" SP_PREPROCESSED, b->dir);
    OKE(sp_data_open(&d, fth_context_mem(ctx), path, &err), &err);
    OKE(sp_moran_run(&moran, ctx, fth_tensor_data(d.xy), frame, 300, 3, &err), &err);
    memcpy(copy, frame, sizeof copy);
    for (int i = 0; i < 900; i++) frame[i] = copy[i / 3 * 3 + moran.order[i % 3]];
    sp_moran_clear(&moran);
    sp_data_close(&d);
    OK(fth_context_destroy(ctx, NULL));
}

/* The last frame of the animation is exp(f) at the cells: predictions at their places are that, in
 * the order of analyze. There was no analysis here: the cells of training give the order. */
static void own_places(sp_kind kind)
{
    words w;
    ss_bench *b = trained(sp_kinds[kind].name, kind, &w);
    for (int i = 0; i < 2; i++) {
        OKE(project(&w, (uint64_t)(i ? 64 : 16) << 20, &b->err), &b->err);
        float *frame = load(b, SP_FRAMES, 900), *factors = load(b, "projected/" SP_FACTORS, 900),
              *scales = load(b, "projected/" SP_SCALES, 900);
        put_in_order(b, frame);
        SAME_BYTES(frame, factors, 900 * sizeof *frame);
        for (int k = 0; k < 900; k++) IS_TRUE(scales[k] > 0 && scales[k] < 10);
        free(frame);
        free(factors);
        free(scales);
    }
    ss_close(b);
}

TEST(spatial_models_predict_at_places)
{
    own_places(SP_SVGP);
    own_places(SP_MGGP_SVGP);
    own_places(SP_LCGP);
    own_places(SP_MGGP_LCGP);
}

/* Relative difference of the counts of a cell from the sum of its rates, over all cells. */
static double misfit(const ss_bench *b, const words *w, const float *factors)
{
    sp_model m;
    sp_data d;
    fth_err err = {0};
    char path[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s/" SP_PREPROCESSED, b->dir);
    OKE(sp_data_open(&d, b->mem, path, &err), &err);
    OKE(sp_model_read(&m, b->mem, w->model, &d, false, false, &err), &err);
    const float *W = fth_tensor_data(m.param[SP_P_W]);
    float *counts = malloc(300 * 24 * sizeof *counts);
    const fth_source all = fth_csr_source(d.counts);
    OK(all.read(all.self, (int64_t[]){0, 0}, (int64_t[]){300, 24}, counts, NULL));
    double off = 0, total = 0;
    for (int n = 0; n < 300; n++) {
        double sum = 0, rate = 0;
        for (int g = 0; g < 24; g++) {
            sum += (double)counts[n * 24 + g];
            for (int l = 0; l < 3; l++) rate += (double)(W[g * 3 + l] * factors[n * 3 + l]);
        }
        off += fabs(sum - rate);
        total += sum;
    }
    free(counts);
    sp_model_clear(&m);
    sp_data_close(&d);
    return off / total;
}

TEST(pnmf_is_fitted_to_counts)
{
    words w;
    ss_bench *b = trained("counts", SP_PNMF, &w);
    for (int i = 0; i < 2; i++) {
        w.least_squares = i == 1;
        snprintf(w.output, sizeof w.output, "%s/pnmf/p%d", b->dir, i);
        OKE(project(&w, (uint64_t)64 << 20, &b->err), &b->err);
        float *factors = load(b, i ? "p1/" SP_FACTORS : "p0/" SP_FACTORS, 900);
        LE_F64(misfit(b, &w, factors), 0.3);
        free(factors);
    }
    char path[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s/pnmf/p1/" SP_SCALES, b->dir);
    IS_TRUE(!t_file_exists(path)); /* least squares have none */
    ss_close(b);
}

/* The codes of groups are those of one folder: the model knows them by their names. */
TEST(groups_are_told_by_their_names)
{
    words w;
    ss_bench *b = trained("named", SP_MGGP_SVGP, &w);
    char path[PATH_MAX + 128];
    size_t n;
    OKE(project(&w, (uint64_t)64 << 20, &b->err), &b->err);
    float *want = load(b, "projected/" SP_FACTORS, 900);
    snprintf(w.data, sizeof w.data, "%s/turned", b->dir);
    t_spatial_folder(w.data);
    snprintf(path, sizeof path, "%s/" SP_METADATA, w.data);
    unsigned char *text = t_file_read(path, &n);
    unsigned char *first = memmem(text, n, "type0", 5), *second = memmem(text, n, "type1", 5);
    IS_TRUE(first && second);
    first[4] = '1';
    second[4] = '0';
    t_file_write(path, text, n);
    free(text);
    snprintf(path, sizeof path, "%s/" SP_C, w.data);
    text = t_file_read(path, &n);
    int64_t code[300];
    memcpy(code, text + n - sizeof code, sizeof code);
    for (int i = 0; i < 300; i++) code[i] = code[i] < 2 ? 1 - code[i] : code[i];
    memcpy(text + n - sizeof code, code, sizeof code);
    t_file_write(path, text, n);
    free(text);
    OKE(project(&w, (uint64_t)64 << 20, &b->err), &b->err);
    float *got = load(b, "projected/" SP_FACTORS, 900);
    SAME_BYTES(got, want, 900 * sizeof *got);
    free(got);
    free(want);
    ss_close(b);
}

/* What analyze leaves beside a model, as far as it is about the order of factors. */
static void write_metrics(const ss_bench *b, uint64_t identity, const char *order)
{
    char path[PATH_MAX + 128], text[200];
    snprintf(path, sizeof path, "%s/%s/" SP_METRICS, b->dir, b->job.model);
    const int n = snprintf(text, sizeof text,
                           "{\"fathom\": {\"model\": \"%016llx\"}, "
                           "\"moran_i\": {\"sorted_indices\": %s}}",
                           (unsigned long long)identity, order);
    t_file_write(path, text, (size_t)n);
}

/* An order counts when it is of this very file and names every factor once; else the cells of
 * training give it, and those only. */
TEST(the_order_is_that_of_an_analysis_of_this_file)
{
    static const struct {
        bool mine, used;
        const char *order;
    } t[] = {{true, true, "[1, 2, 0]"},   {true, true, "[2, 0, 1]"},  {false, false, "[1, 2, 0]"},
             {false, false, "[2, 0, 1]"}, {true, false, "[1, 1, 0]"}, {true, false, "[2, 0]"},
             {true, false, "[1, 2, 3]"}};
    words w;
    sp_model m;
    ss_bench *b = trained("order", SP_SVGP, &w);
    OKE(sp_model_read(&m, b->mem, w.model, NULL, true, false, &b->err), &b->err);
    const uint64_t identity = m.identity;
    sp_model_clear(&m);
    OKE(project(&w, (uint64_t)64 << 20, &b->err), &b->err);
    float *own = load(b, "projected/" SP_FACTORS, 900), *frame = load(b, SP_FRAMES, 900);
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        write_metrics(b, identity + !t[i].mine, t[i].order);
        OKE(project(&w, (uint64_t)64 << 20, &b->err), &b->err);
        float *got = load(b, "projected/" SP_FACTORS, 900);
        for (int k = 0; k < 900; k++)
            EQ_F64(got[k],
                   t[i].used ? frame[k / 3 * 3 + t[i].order[1 + 3 * (k % 3)] - '0'] : own[k]);
        free(got);
    }
    free(own);
    free(frame);
    char path[PATH_MAX + 128];
    size_t n;
    snprintf(path, sizeof path, "%s/%s/" SP_METRICS, b->dir, b->job.model);
    remove(path);
    snprintf(w.data, sizeof w.data, "%s/elsewhere", b->dir);
    t_spatial_folder(w.data);
    OKE(project(&w, (uint64_t)64 << 20, &b->err), &b->err);
    snprintf(path, sizeof path, "%s/" SP_PREPROCESSED "/" SP_X, b->dir);
    unsigned char *text = t_file_read(path, &n);
    text[n - 1] ^= 1; /* not the cells of training any more */
    t_file_write(path, text, n);
    free(text);
    IS(project(&w, (uint64_t)64 << 20, &b->err), FTH_E_FILE_OPEN);
    HAS(b->err.text, "the order of its factors is not known");
    ss_close(b);
}

TEST(what_does_not_fit_is_refused)
{
    words w;
    ss_bench *b = trained("wrong", SP_MGGP_SVGP, &w);
    w.least_squares = true;
    IS(project(&w, (uint64_t)64 << 20, &b->err), FTH_E_COMMAND);
    HAS(b->err.text, "--least-squares is for pnmf");
    fth_err_clear(&b->err);
    w.least_squares = false;
    /* a group of another name */
    char path[PATH_MAX + 128];
    size_t n;
    snprintf(path, sizeof path, "%s/" SP_PREPROCESSED "/" SP_METADATA, b->dir);
    unsigned char *text = t_file_read(path, &n), *at = memmem(text, n, "type2", 5);
    IS_TRUE(at != NULL);
    memcpy(at, "typeX", 5);
    t_file_write(path, text, n);
    free(text);
    IS(project(&w, (uint64_t)64 << 20, &b->err), FTH_E_FILE_KEY);
    HAS(b->err.text, "group \"typeX\", which the model does not know");
    HAS(b->err.hint, "type0, type1, type2, type3");
    ss_close(b);
    fth_err err = {0};
    /* a model that is nowhere: no analysis and no cells to find the order of its factors by */
    b = trained("moved", SP_SVGP, &w);
    text = t_file_read(w.model, &n);
    snprintf(path, sizeof path, "%s/alone", b->dir);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/alone/deep", b->dir);
    mkdir(path, 0777);
    snprintf(w.model, sizeof w.model, "%s/alone/deep/" SP_CHECKPOINT, b->dir);
    t_file_write(w.model, text, n);
    free(text);
    IS(project(&w, (uint64_t)64 << 20, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "the order of its factors is not known");
    fth_err_clear(&err);
    /* positions of another scale than is known */
    snprintf(w.model, sizeof w.model, "%s/svgp/" SP_CHECKPOINT, b->dir);
    snprintf(w.data, sizeof w.data, "%s/other", b->dir);
    t_spatial_folder(w.data);
    snprintf(path, sizeof path, "%s/other/" SP_METADATA, b->dir);
    text = t_file_read(path, &n);
    char *said = malloc(n + 100);
    const int used = snprintf(said, n + 100, "{\"offset\": [0, 0], \"scale\": 2,%.*s", (int)n - 1,
                              (char *)text + 1);
    t_file_write(path, said, (size_t)used);
    OKE(project(&w, (uint64_t)64 << 20, &err), &err); /* its own cells */
    snprintf(path, sizeof path, "%s/other/" SP_X, b->dir);
    free(text);
    text = t_file_read(path, &n);
    text[n - 1] ^= 1; /* another cell */
    t_file_write(path, text, n);
    free(text);
    free(said);
    IS(project(&w, (uint64_t)64 << 20, &err), FTH_E_FILE_KEY);
    HAS(err.text, "does not say how the positions of its training cells were rescaled");
    ss_close(b);
    fth_err_clear(&err);
    b = trained("genes", SP_PNMF, &w);
    snprintf(path, sizeof path, "%s/" SP_PREPROCESSED "/" SP_METADATA, b->dir);
    text = t_file_read(path, &n), at = memmem(text, n, "gene7", 5);
    IS_TRUE(at != NULL);
    memcpy(at, "geneX", 5);
    t_file_write(path, text, n);
    free(text);
    IS(project(&w, (uint64_t)64 << 20, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "24 genes that are not the 24 of the model");
    ss_close(b);
}

TEST_MAIN()
