/* test_spatial_restarts.c - training.restarts: the best is kept, and nothing depends on a stop.
 * seconds: 4
 */
#include "instruments/spatial/model/model.h"

#include "testing/spatial/spatial_training.h"

#include <math.h>
#include <sys/wait.h>

static const char three[] = "  restarts: 3\n";
static const char *const leftovers[] = {SP_CHECKPOINT_BEFORE, "restarts.best.safetensors",
                                        "restarts.best.prev.safetensors",
                                        "restarts.done.safetensors", ".video_frames.part"};

static void same_run(const ss_bench *a, const ss_bench *b)
{
    ss_same(a, b, SP_CHECKPOINT);
    ss_same(a, b, SP_ELBO_CSV);
    ss_same(a, b, SP_ELBO_NPY);
}

static void nothing_left(const ss_bench *b)
{
    for (size_t i = 0; i < sizeof leftovers / sizeof leftovers[0]; i++) {
        char path[PATH_MAX + 128];
        snprintf(path, sizeof path, "%s/%s/%s", b->dir, b->job.model, leftovers[i]);
        if (t_file_exists(path)) FAIL("%s is left", leftovers[i]);
    }
}

static fth_json *training_of(const ss_bench *b)
{
    fth_json *doc = NULL;
    char path[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s/%s/" SP_TRAINING, b->dir, b->job.model);
    OK(fth_json_load(&doc, b->mem, path, NULL));
    return doc;
}

static void read_model(const ss_bench *b, sp_model *m)
{
    fth_err err = {0};
    char path[PATH_MAX + 128];
    snprintf(path, sizeof path, "%s/%s/" SP_CHECKPOINT, b->dir, b->job.model);
    OKE(sp_model_read(m, b->mem, path, NULL, true, true, &err), &err);
}

/* The mean of the last tenth of 12 iterations: two. */
static double objective(const sp_model *m)
{
    const double *elbo = fth_tensor_data(m->history);
    EQ_I64(m->iterations, 12);
    return (elbo[10] + elbo[11]) / 2;
}

TEST(the_best_is_kept)
{
    for (int kind = SP_PNMF; kind < SP_KIND_COUNT; kind++) {
        char name[64];
        snprintf(name, sizeof name, "one_%s", sp_kinds[kind].name);
        ss_bench *one = ss_open(name, (sp_kind)kind, NULL);
        snprintf(name, sizeof name, "three_%s", sp_kinds[kind].name);
        ss_bench *all = ss_open(name, (sp_kind)kind, three);
        sp_model first = {0}, best = {0};
        OKE(ss_train(one), &one->err);
        OKE(ss_train(all), &all->err);
        EQ_I64(all->iterations, 36);
        read_model(one, &first);
        read_model(all, &best);
        IS_TRUE(first.stability == NULL && best.stability != NULL);
        fth_json *doc = training_of(all);
        const fth_json_value *r = fth_json_get(fth_json_root(doc), "restarts"),
                             *elbo = fth_json_get(r, "elbo"),
                             *match = fth_json_get(r, "matched_correlation");
        const int64_t kept = fth_json_get_int(r, "kept", -1);
        EQ_I64(fth_json_get_int(r, "n", -1), 3);
        double most = -(double)INFINITY, mean = 0;
        for (int i = 0; i < 3; i++) {
            const double x = fth_json_get_real(fth_json_at(elbo, i), NULL, 0),
                         c = fth_json_get_real(fth_json_at(match, i), NULL, 9);
            most = fmax(most, x);
            IS_TRUE(c >= -1 && c <= 1 && (c == 1) == (i == kept));
            mean += c / 2 * (i != kept);
            if (i == 0) NEAR(x, objective(&first), 1e-9 * fabs(x)); /* the run without restarts */
            for (int k = 0; k < i; k++)
                IS_TRUE(x != fth_json_get_real(fth_json_at(elbo, k), NULL, 0));
        }
        NEAR(objective(&best), most, 1e-9 * fabs(most));
        EQ_F64(fth_json_get_real(fth_json_at(elbo, kept), NULL, 0), most);
        double stability = 0; /* of factors, over restarts: the mean of both is one */
        for (int l = 0; l < 3; l++)
            stability += (double)((const float *)fth_tensor_data(best.stability))[l] / 3;
        NEAR(stability, mean, 1e-5);
        HAS(all->said, "restart 3 of 3: ELBO = ");
        HAS(all->said, "kept restart ");
        fth_json_destroy(doc);
        sp_model_clear(&first);
        sp_model_clear(&best);
        nothing_left(all);
        ss_close(one);
        ss_close(all);
    }
}

/* ---- how far two restarts agree ---- */

/* Loadings as the model uses them. */
static double loading(const sp_model *m, int gene, int factor)
{
    const double raw =
        (double)((const float *)fth_tensor_data(m->param[SP_P_W]))[gene * 3 + factor];
    if (m->set.loadings_mode == SP_LOADINGS_EXP) return exp(raw);
    return m->set.loadings_mode == SP_LOADINGS_SOFTPLUS ? log(1 + exp(raw)) : raw;
}

static double pearson(const sp_model *a, int i, const sp_model *b, int k)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    for (int g = 0; g < 24; g++) {
        const double u = loading(a, g, i), v = loading(b, g, k);
        x += u / 24, y += v / 24, xx += u * u / 24, yy += v * v / 24, xy += u * v / 24;
    }
    return (xy - x * y) / sqrt((xx - x * x) * (yy - y * y));
}

/* The mean correlation of pairs, when each factor has the partner that makes it largest. */
static double agreement(const sp_model *a, const sp_model *b)
{
    double most = -1;
    for (int p = 0; p < 6; p++) {
        const int first = p / 2, second = (first + 1 + p % 2) % 3, third = 3 - first - second;
        most = fmax(most,
                    (pearson(a, 0, b, first) + pearson(a, 1, b, second) + pearson(a, 2, b, third)) /
                        3);
    }
    return most;
}

static ss_bench *open_with(const char *name, const char *more, const char *mode, int seed)
{
    ss_bench *b = ss_open(name, SP_PNMF, more);
    char text[4000], set[80];
    OK(fth_config_destroy(b->cfg, NULL));
    ss_config(text, sizeof text, SP_PNMF, more);
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    OK(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), NULL));
    snprintf(set, sizeof set, "model.loadings_mode=%s", mode);
    OK(fth_config_set(b->cfg, set, NULL));
    snprintf(set, sizeof set, "seed=%d", seed);
    OK(fth_config_set(b->cfg, set, NULL));
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    b->job.config = b->cfg;
    return b;
}

/* The first restart is the run without restarts: where the second is kept, both are known. */
TEST(loadings_are_compared_as_the_model_uses_them)
{
    static const char *const mode[] = {"multiplicative", "exp", "softplus"};
    for (int k = 0; k < 3; k++) {
        bool compared = false;
        for (int seed = 1; seed < 9 && !compared; seed++) {
            char name[64];
            snprintf(name, sizeof name, "one_%s_%d", mode[k], seed);
            ss_bench *one = open_with(name, NULL, mode[k], seed);
            snprintf(name, sizeof name, "two_%s_%d", mode[k], seed);
            ss_bench *two = open_with(name, "  restarts: 2\n", mode[k], seed);
            sp_model first = {0}, best = {0};
            OKE(ss_train(one), &one->err);
            OKE(ss_train(two), &two->err);
            read_model(one, &first);
            read_model(two, &best);
            fth_json *doc = training_of(two);
            const fth_json_value *r = fth_json_get(fth_json_root(doc), "restarts"),
                                 *match = fth_json_get(r, "matched_correlation");
            compared = fth_json_get_int(r, "kept", -1) == 1;
            if (compared)
                NEAR(fth_json_get_real(fth_json_at(match, 0), NULL, 9), agreement(&best, &first),
                     1e-5);
            fth_json_destroy(doc);
            sp_model_clear(&first);
            sp_model_clear(&best);
            ss_close(one);
            ss_close(two);
        }
        IS_TRUE(compared);
    }
}

/* Killed in any restart, between them, and before the end, the same bytes come out. */
TEST(killed_anywhere_it_ends_the_same)
{
    static const struct {
        const char *at;
        int64_t nth;
    } kill[] = {{"iteration", 7},      {"iteration", 9}, {"after_checkpoint", 2}, {"iteration", 15},
                {"before_outputs", 1}, {"mid_run", 1},   {"after_outputs", 1}};
    static const char *const video[] = {"video", NULL};
    ss_bench *a = ss_open("calm", SP_SVGP, three), *b = ss_open("killed", SP_SVGP, three);
    a->flags = b->flags = video;
    OKE(ss_train(a), &a->err);
    for (size_t i = 0; i < sizeof kill / sizeof kill[0]; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            b->die_at = kill[i].at;
            b->die_nth = kill[i].nth;
            _exit(ss_train(b) == FTH_OK ? 0 : 1);
        }
        int status = 0;
        EQ_I64(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 9)
            FAIL("at %s, number %d, it ended with %d", kill[i].at, (int)i, status);
    }
    OKE(ss_train(b), &b->err);
    same_run(a, b);
    ss_same(a, b, SP_FRAMES);
    ss_same(a, b, SP_FRAME_ITERS);
    nothing_left(b);
    ss_close(a);
    ss_close(b);
}

/* Frames are those of the model that is kept: the last of them is where it ended. */
TEST(the_animation_is_that_of_the_best)
{
    static const char *const video[] = {"video", NULL};
    ss_bench *b = ss_open("film", SP_PNMF, "  restarts: 4\n");
    OK(fth_config_destroy(b->cfg, NULL));
    char text[4000];
    OK(fth_config_create(&b->cfg, b->mem, NULL));
    ss_config(text, sizeof text, SP_PNMF, "  restarts: 4\n");
    OK(fth_config_parse(b->cfg, "c.yaml", text, strlen(text), NULL));
    OK(fth_config_set(b->cfg, "training.video_interval=12", NULL));
    OKE(fth_config_check(b->cfg, &sp_schema, NULL, &b->err), &b->err);
    b->job.config = b->cfg;
    b->flags = video;
    OKE(ss_train(b), &b->err);
    sp_model m = {0};
    read_model(b, &m);
    size_t n;
    unsigned char *file = ss_file(b, SP_FRAMES, &n);
    IS_TRUE(n > 900 * sizeof(float));
    for (int i = 0; i < 900; i++) {
        float frame;
        memcpy(&frame, file + n - (900 - (size_t)i) * sizeof frame, sizeof frame);
        const double mean =
            (double)((const float *)fth_tensor_data(m.param[SP_P_MEAN]))[i % 3 * 300 + i / 3];
        NEAR((double)frame, exp(mean), 1e-5 * exp(mean));
    }
    free(file);
    sp_model_clear(&m);
    ss_close(b);
}

TEST_REPEAT(budgets_and_workers_do_not_show)
{
    ss_bench *a = ss_open("wide", SP_LCGP, three), *b = ss_open("narrow", SP_LCGP, three);
    a->threads = 1;
    b->budget = (uint64_t)40 << 20;
    b->threads = 3;
    OKE(ss_train(a), &a->err);
    OKE(ss_train(b), &b->err);
    same_run(a, b);
    ss_close(a);
    ss_close(b);
}

/* One more cycle, a record and a replay are one run each, and say so. */
TEST(a_run_that_goes_on_is_one_run)
{
    static const char *const resume[] = {"resume", NULL};
    ss_bench *b = ss_open("resumed", SP_PNMF, three);
    OKE(ss_train(b), &b->err);
    b->flags = resume;
    OKE(ss_train(b), &b->err);
    EQ_I64(b->iterations, 12);
    HAS(b->said, "training.restarts is ignored");
    ss_close(b);
}

TEST_MAIN()
