/* test_jobs_identity.c - jobs that would write to one place are refused; the others have names.
 * seconds: 4 */
#include "testing/job/jobs.h"

#include "job/find/index.h"
#include "job/find/path.h"

#include <time.h>

static void put(const char *name, const char *output_dir, const char *more)
{
    char text[2000];
    snprintf(text, sizeof text, "instrument: spatial\nname: x\noutput_dir: %s\n%s", output_dir,
             more);
    jt_put(name, text);
}

static const char spatial[] = "model: {spatial: true}\n", plain[] = "model: {spatial: false}\n";

/* Two configs that must not go together: nothing is made, and both are named. */
static void refuse(const char *one, const char *two, const char *part)
{
    const uint64_t before = jt_listing();
    jt_bench b = jt_refused(one, two, FTH_E_COLLISION);
    EQ_U64(jt_listing(), before);
    HAS(b.err.text, one);
    HAS(b.err.text, two);
    HAS(b.err.text, part);
    jt_drop(&b);
}

static void allow(const char *one, const char *two, const char *name_one, const char *name_two)
{
    jt_bench b = jt_found(one, two);
    EQ_I64(fth_jobs_count(b.jobs), 2);
    EQ_STR(fth_jobs_get(b.jobs, 0)->name, name_one);
    EQ_STR(fth_jobs_get(b.jobs, 1)->name, name_two);
    jt_drop(&b);
}

/* The founding failure: liver healthy and diseased had one name, and one status. */
TEST(same_dataset_and_model_in_two_folders_are_two_jobs)
{
    jt_clean();
    put("a.yaml", "out/liver/healthy", "model: {spatial: true}\ndataset: liver\n");
    put("b.yaml", "out/liver/diseased", "model: {spatial: true}\ndataset: liver\n");
    allow("a.yaml", "b.yaml", "healthy_svgp", "diseased_svgp");
}

TEST(one_folder_and_model_is_refused)
{
    jt_clean();
    put("a.yaml", "out/x", spatial);
    put("b.yaml", "out/x", spatial);
    refuse("a.yaml", "b.yaml", "would both write model 'svgp' in ");
    put("b.yaml", "out/y/../x/.", spatial); /* y does not exist */
    refuse("a.yaml", "b.yaml", "would both write model 'svgp' in ");
    mkdir(t_temp_path("real"), 0777);
    jt_link("real", "link");
    put("a.yaml", "real/not/yet", spatial);
    put("b.yaml", "link/not/yet", spatial);
    refuse("a.yaml", "b.yaml", "/real/not/yet");
    jt_link("real/not", "dangling"); /* to a folder that is not there yet */
    put("b.yaml", "dangling/yet", spatial);
    refuse("a.yaml", "b.yaml", "/real/not/yet");
    put("b.yaml", t_temp_path("real/not/yet"), spatial);
    refuse("a.yaml", "b.yaml", "/real/not/yet");
}

TEST(a_general_config_and_one_of_its_models_elsewhere)
{
    jt_clean();
    put("c/general.yaml", "out", "dataset: liver\n");
    put("d/mine.yaml", "out", "dataset: liver\nmodel: {spatial: true}\n");
    jt_bench b = jt_refused("c", "d", FTH_E_COLLISION);
    HAS(b.err.text, "c/general.yaml (svgp) and d/mine.yaml would both write model 'svgp'");
    jt_drop(&b);
    put("c/general.yaml", "out", "model: {name: same}\n"); /* all variants are called the same */
    b = jt_refused("c", NULL, FTH_E_COLLISION);
    HAS(b.err.text, "c/general.yaml (pnmf) and c/general.yaml (svgp) would both write model "
                    "'same'");
    jt_drop(&b);
    put("c/general.yaml", "out", "");
    put("c/general2.yaml", "out2", "");
    b = jt_refused("c/general.yaml", "c/general2.yaml", FTH_E_COLLISION);
    HAS(b.err.text, "c/general.yaml (pnmf) and c/general2.yaml (pnmf) would both generate ");
    HAS(b.err.hint, "another folder");
    jt_drop(&b);
}

TEST(an_output_dir_inside_what_another_job_writes)
{
    jt_clean();
    put("a.yaml", "out", spatial);
    put("b.yaml", "out/svgp", plain);
    refuse("a.yaml", "b.yaml", "the first keeps its model in ");
    put("b.yaml", "out/svgp/deep/down", plain);
    refuse("a.yaml", "b.yaml", "/out/svgp, which holds the output_dir of the second");
    put("b.yaml", "out/logs/x", plain);
    refuse("a.yaml", "b.yaml", "is inside 'logs' of the first's");
    put("b.yaml", "out/.fathom", plain);
    refuse("a.yaml", "b.yaml", "is inside '.fathom' of the first's");
    put("b.yaml", "out/liver", plain); /* beside the models: fine */
    allow("a.yaml", "b.yaml", "out_svgp", "liver_pnmf");
    put("b.yaml", "out/svgp2", plain);
    allow("a.yaml", "b.yaml", "out_svgp", "svgp2_pnmf");
}

TEST(a_shared_stage_must_mean_the_same_for_all)
{
    jt_clean();
    put("a.yaml", "out", "model: {spatial: true}\npreprocessing: {scale: 50.0}\n");
    put("b.yaml", "out", plain); /* the default is 50 */
    allow("a.yaml", "b.yaml", "out_svgp", "out_pnmf");
    put("b.yaml", "out", "model: {spatial: false}\npreprocessing: {scale: 20}\n");
    refuse("a.yaml", "b.yaml", "preprocessing.scale: 50 (a.yaml:5:24) and 20 (b.yaml:5:24)");
    put("b.yaml", "out", "model: {spatial: false}\ndataset: other\n");
    refuse("a.yaml", "b.yaml", "stage 'preprocess' works once for both, but differ in dataset");
    put("b.yaml", "out", "model: {spatial: false}\ntraining: {max_iter: 3}\nseed: 1\n");
    allow("a.yaml", "b.yaml", "out_svgp", "out_pnmf"); /* not of a shared stage */
    jt_put("b.yaml", "instrument: echo\nname: x\noutput_dir: out\n");
    refuse("a.yaml", "b.yaml", "are of different instruments: spatial and echo");
}

/* What counts of a path is where it leads, not how it is written. */
TEST(inputs_of_a_shared_stage_are_compared_by_place)
{
    jt_clean();
    put("c/a.yaml", "out", "model: {spatial: true}\npreprocessing: {path: data/x.h5}\n");
    put("c/b.yaml", "out", "model: {spatial: false}\npreprocessing: {path: ./data/../data/x.h5}\n");
    allow("c/a.yaml", "c/b.yaml", "out_svgp", "out_pnmf");
    put("c/b.yaml", "out", "model: {spatial: false}\npreprocessing: {path: data/y.h5}\n");
    refuse("c/a.yaml", "c/b.yaml", "preprocessing.path: ");
    /* the same words, but beside another config */
    char out[4096], text[4200];
    snprintf(out, sizeof out, "%s/out", t_temp_dir());
    snprintf(text, sizeof text, "paths: config\npreprocessing: {path: x.h5}\n%s", spatial);
    put("c/a.yaml", out, text);
    snprintf(text, sizeof text, "paths: config\npreprocessing: {path: x.h5}\n%s", plain);
    put("d/b.yaml", out, text);
    refuse("c/a.yaml", "d/b.yaml", "/c/x.h5 and ");
    put("c/b.yaml", out, text);
    allow("c/a.yaml", "c/b.yaml", "out_svgp", "out_pnmf");
}

/* ---- names ---- */

/* Names of configs with these output folders, in order. */
static void names(const char *const *folder, const char *const *wanted)
{
    jt_clean();
    for (int i = 0; folder[i]; i++) {
        char name[40];
        snprintf(name, sizeof name, "c/%d.yaml", i);
        put(name, folder[i], spatial);
    }
    jt_bench b = jt_found("c", NULL);
    for (int64_t i = 0; wanted[i]; i++) EQ_STR(fth_jobs_get(b.jobs, i)->name, wanted[i]);
    jt_drop(&b);
}

TEST(names_are_the_shortest_that_differ)
{
    names((const char *[]){"liver/healthy", "liver/ill", NULL},
          (const char *[]){"healthy_svgp", "ill_svgp", NULL});
    names((const char *[]){"liver/test", "colon/test", "colon/full", NULL},
          (const char *[]){"liver_test_svgp", "colon_test_svgp", "full_svgp", NULL});
    names((const char *[]){"a/x/test", "b/x/test", "c/y/test", NULL},
          (const char *[]){"a_x_test_svgp", "b_x_test_svgp", "y_test_svgp", NULL});
}

TEST(names_that_cannot_differ_get_a_number)
{
    /* all parts are used up, and joined they are still the same */
    names((const char *[]){"/q_w", "/q/w", "/e/w", NULL},
          (const char *[]){"q_w_svgp", "q_w_svgp#2", "e_w_svgp", NULL});
    names((const char *[]){"/q_w", "/q/w", "/e/w", "/q_w_svgp", NULL},
          (const char *[]){"q_w_svgp", "q_w_svgp#2", "e_w_svgp", "q_w_svgp_svgp", NULL});
}

/* A model may be called so that folder and model look like another folder and model. */
TEST(names_of_jobs_and_folders_never_meet)
{
    jt_clean();
    put("c/1.yaml", "k/a", "model: {spatial: true, name: b_c}\n");
    put("c/2.yaml", "k/a_b", "model: {spatial: true, name: c}\n");
    put("c/3.yaml", "k/a_b_c", "model: {spatial: true, name: d}\n");
    jt_bench b = jt_found("c", NULL);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t k = 0; k < 3; k++) {
            const fth_job *x = fth_jobs_get(b.jobs, i), *y = fth_jobs_get(b.jobs, k);
            IS_TRUE(i == k || strcmp(x->name, y->name) != 0);
            IS_TRUE(strcmp(x->name, y->dir_name) != 0);
        }
    jt_drop(&b);
}

/* ---- many ---- */

enum { MANY = 5000 };

/* Of this process: other work on the machine must not decide. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How long it takes to find the jobs of the configs of that name. */
static double seconds(const char *config_name, int64_t wanted)
{
    jt_bench b = jt_start();
    fth_mem_stats stats;
    b.path[0] = "c";
    b.opt.config_name = config_name;
    const double start = cpu_seconds();
    OKE(jt_find(&b), &b.err);
    const double s = cpu_seconds() - start;
    EQ_I64(fth_jobs_count(b.jobs), wanted);
    fth_mem_get_stats(b.mem, &stats);
    printf("%lld jobs of %s: %.3f s, %.1f KiB each\n", (long long)wanted, config_name, s,
           (double)stats.meta_bytes / 1024 / (double)wanted);
    jt_drop(&b);
    return s;
}

/* Ten times as many may take twenty times as long, not a hundred: nothing is compared in pairs. */
TEST_REPEAT(five_thousand_jobs_take_no_time)
{
    jt_clean();
    for (int i = 0; i < MANY; i++) {
        char name[40], folder[40];
        snprintf(name, sizeof name, "c/%d/%s.yaml", i, i % 10 ? "most" : "few");
        snprintf(folder, sizeof folder, "out/%d/run", i / 2);
        put(name, folder, i % 2 ? plain : spatial);
    }
    const double few = seconds("few.yaml", MANY / 10);
    LE_F64(seconds("every.yaml", MANY), 20 * few + 0.5);
    jt_clean();
    for (int i = 0; i < MANY / 5; i++) {
        char name[40], folder[40];
        snprintf(name, sizeof name, "c/%d/general.yaml", i);
        snprintf(folder, sizeof folder, "out/%d/run", i);
        put(name, folder, "training: {max_iter: 7}\n");
    }
    (void)seconds("general.yaml", MANY / 5 * 3);
}

TEST(an_index_gives_the_number_of_a_text)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__index index = {.mem = mem};
    char text[500][8];
    EQ_I64(fth__index_find(&index, "0"), -1);
    for (int i = 0; i < 500; i++) {
        int64_t number = i;
        snprintf(text[i], sizeof text[i], "%d", i % 250);
        OK(fth__index_add(&index, text[i], &number, NULL));
        EQ_I64(number, i % 250);
    }
    EQ_I64(index.n, 250);
    EQ_I64(fth__index_find(&index, "249"), 249);
    EQ_I64(fth__index_find(&index, "250"), -1);
    fth__index_empty(&index);
    EQ_I64(fth__index_find(&index, "249"), -1);
    fth__index_clear(&index);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(canonical_paths)
{
    static const char *const pair[][2] = {
        {"/a/b", "/a/b"},        {"/", "/"},        {"//a//b/", "/a/b"},
        {"/a/./b/..", "/a"},     {"/../..", "/"},   {"x", "/no/where/x"},
        {"../x/./y", "/no/x/y"}, {"", "/no/where"}, {"/no/../../x", "/x"}};
    fth_mem *mem = t_mem(1 << 20);
    fth__store store = {.mem = mem};
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
        fth__canonical c;
        OK(fth__path_canonical(&store, "/no/where", pair[i][0], &c, NULL));
        EQ_STR(c.path, pair[i][1]);
        IS_TRUE(c.block == NULL);
    }
    jt_clean();
    jt_put("file", "x");
    fth__canonical at;
    OK(fth__path_canonical(&store, t_temp_dir(), "file", &at, NULL));
    EQ_STR(at.block, at.path); /* there is one, and it is no folder */
    OK(fth__path_canonical(&store, t_temp_dir(), "file/below", &at, NULL));
    EQ_STR(fth__path_leaf(at.block), "file");
    OK(fth__path_canonical(&store, t_temp_dir(), "file/../beside", &at, NULL));
    IS_TRUE(at.block == NULL);
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    fth__canonical c;
    fth_err err = {0};
    IS(fth__path_canonical(&store, "/", longest, &c, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "longer than");
    fth__store_clear(&store);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(folders_of_models_that_lead_to_one_place_are_refused)
{
    jt_clean();
    mkdir(t_temp_path("one"), 0777);
    mkdir(t_temp_path("out"), 0777);
    mkdir(t_temp_path("out2"), 0777);
    put("a.yaml", "out", spatial);
    put("b.yaml", "out2", plain);
    allow("a.yaml", "b.yaml", "out_svgp", "out2_pnmf");
    jt_link("../one", "out/svgp");
    allow("a.yaml", "b.yaml", "out_svgp", "out2_pnmf");
    jt_link("../one", "out2/pnmf");
    refuse("a.yaml", "b.yaml", "the folders of their models, 'svgp' and 'pnmf', lead to ");
    put("b.yaml", "one/deep", plain); /* inside of it */
    refuse("a.yaml", "b.yaml", "the first keeps its model in ");
    mkdir(t_temp_path("logs"), 0777);
    mkdir(t_temp_path("three"), 0777);
    put("a.yaml", "three", spatial);
    put("b.yaml", "four", plain);
    mkdir(t_temp_path("four"), 0777);
    jt_link("../logs", "three/logs");
    jt_link("../logs", "four/logs");
    refuse("a.yaml", "b.yaml", "'logs' in the output_dir of both leads to ");
    unlink(t_temp_path("three/logs")); /* the link of one to the folder of the other */
    unlink(t_temp_path("four/logs"));
    mkdir(t_temp_path("three/logs"), 0777);
    allow("a.yaml", "b.yaml", "three_svgp", "four_pnmf");
    jt_link("../three/logs", "four/logs");
    refuse("a.yaml", "b.yaml", "'logs' in the output_dir of both leads to ");
    unlink(t_temp_path("four/logs"));
    jt_link("../four/.fathom", "three/.fathom"); /* which will be made */
    refuse("a.yaml", "b.yaml", "'.fathom' in the output_dir of both leads to ");
}

/* A key that names the model stands for both functions. */
TEST(a_key_names_the_model)
{
    static const fth_variant named[] = {{.name = "deep", .set = {"model.name=deep"}},
                                        {.name = "flat", .set = {"model.name=flat"}}};
    static const struct {
        const char *path, *config;
        int64_t jobs;
    } row[] = {{"one.yaml", "instrument: spatial\nname: a\nmodel.name: flat\n", 1},
               {"all.yaml", "instrument: spatial\nname: a\n", 2}};
    fth_instrument in = jt_spatial;
    fth_err err = {0};
    in.general = NULL;
    in.model = NULL;
    in.model_key = "model.names";
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
    HAS(err.text, "model_key of instrument 'spatial' is 'model.names', which is no key");
    in.model_key = "model.name";
    in.variant = named;
    in.n_variants = 2;
    const fth_instrument *const list[] = {&in};
    for (int i = 0; i < 2; i++) {
        jt_clean();
        jt_put(row[i].path, row[i].config);
        jt_bench b = jt_start();
        b.opt.instrument = list;
        b.opt.n_instruments = 1;
        b.path[0] = row[i].path;
        OKE(jt_find(&b), &b.err);
        EQ_I64(fth_jobs_count(b.jobs), row[i].jobs);
        EQ_STR(fth_jobs_get(b.jobs, row[i].jobs - 1)->model, "flat");
        jt_drop(&b);
    }
}

/* Without a table of variants the choices of that key are what a general config stands for. */
TEST(the_choices_of_a_key_are_the_models)
{
    static const fth_config_key keys[] = {
        FTH_INSTRUMENT_KEYS("1", "out"), FTH_KEY(SECTION, "model", "What is fitted."),
        FTH_KEY(CHOICE, "model.kind", "its shape", .choices = "deep flat", .required = true)};
    static const fth_schema schema = {.name = "spatial",
                                      .brief = "for this test",
                                      .key = keys,
                                      .n_keys = sizeof keys / sizeof keys[0]};
    fth_instrument in = jt_spatial;
    fth_err err = {0};
    in.general = NULL;
    in.model = NULL;
    in.variant = NULL;
    in.n_variants = 0;
    in.schema = &schema;
    in.model_key = "model.kind";
    OKE(fth_instrument_check(&in, &err), &err);
    const fth_instrument *const list[] = {&in};
    jt_clean();
    jt_put("all.yaml", "instrument: spatial\nname: a\n");
    jt_bench b = jt_start();
    b.opt.instrument = list;
    b.opt.n_instruments = 1;
    b.path[0] = "all.yaml";
    OKE(jt_find(&b), &b.err);
    EQ_I64(fth_jobs_count(b.jobs), 2);
    EQ_STR(fth_jobs_get(b.jobs, 0)->model, "deep");
    EQ_STR(fth_jobs_get(b.jobs, 1)->model, "flat");
    jt_drop(&b);
}

TEST_MAIN()
