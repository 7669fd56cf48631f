/* test_jobs.c - from paths to jobs: which files, which models, which names, and what is refused.
 * seconds: 6 */
#include "instruments/list.h"
#include "testing/job/jobs.h"

#include <sys/wait.h>

static const char general[] = "instrument: spatial\nname: g\nseed: 7\ndataset: liver\n"
                              "output_dir: out\npreprocessing: {scale: 20}\n"
                              "model: {n_components: 5, kernel: Matern32}\n"
                              "training:\n  max_iter: 10\n";
static const char svgp[] = "instrument: spatial\nname: s\noutput_dir: %s\nmodel: {spatial: true}\n";

static void put_svgp(const char *name, const char *output_dir)
{
    char text[1000];
    snprintf(text, sizeof text, svgp, output_dir);
    jt_put(name, text);
}

static const fth_job *job(const jt_bench *b, int64_t i)
{
    const fth_job *j = fth_jobs_get(b->jobs, i);
    if (!j) FAIL("there are only %lld jobs", (long long)fth_jobs_count(b->jobs));
    return j;
}

static const char *below(const char *name)
{
    static char path[8][4096];
    static int next;
    char *real = realpath(t_temp_dir(), NULL);
    char *out = path[next++ % 8];
    snprintf(out, sizeof path[0], "%s/%s", real, name);
    free(real);
    return out;
}

/* ---- which files ---- */

TEST(a_file_is_one_job)
{
    jt_clean();
    put_svgp("a/one.yaml", "results/liver");
    jt_bench b = jt_found("a/one.yaml", NULL);
    EQ_I64(fth_jobs_count(b.jobs), 1);
    EQ_STR(job(&b, 0)->config_path, below("a/one.yaml"));
    EQ_STR(job(&b, 0)->output_dir, below("results/liver"));
    EQ_STR(job(&b, 0)->model, "svgp");
    EQ_STR(job(&b, 0)->name, "liver_svgp");
    EQ_STR(job(&b, 0)->dir_name, "liver");
    IS_TRUE(job(&b, 0)->general_path == NULL);
    EQ_I64(fth_config_int(job(&b, 0)->config, "seed"), 42);
    EQ_STR(b.log->text, "");
    IS_TRUE(fth_jobs_get(b.jobs, 1) == NULL && fth_jobs_get(b.jobs, -1) == NULL);
    jt_drop(&b);
}

TEST(a_folder_is_searched_for_one_name)
{
    jt_clean();
    put_svgp("c/z/pick.yaml", "z");
    put_svgp("c/a/deep/pick.yaml", "a");
    put_svgp("c/B/pick.yaml", "b");
    put_svgp("c/B/other.yaml", "b2");
    put_svgp("c/.hidden/pick.yaml", "h");
    jt_bench b = jt_start();
    b.path[0] = "c";
    b.opt.config_name = "pick.yaml";
    OKE(jt_find(&b), &b.err);
    EQ_I64(fth_jobs_count(b.jobs), 3); /* sorted by bytes: capitals first */
    EQ_STR(job(&b, 0)->config_path, below("c/B/pick.yaml"));
    EQ_STR(job(&b, 1)->config_path, below("c/a/deep/pick.yaml"));
    EQ_STR(job(&b, 2)->config_path, below("c/z/pick.yaml"));
    jt_drop(&b);
}

TEST(without_that_name_every_config_counts)
{
    jt_clean();
    put_svgp("c/one.yaml", "1");
    put_svgp("c/d/two.yml", "2");
    jt_put("c/three.json", "{\"instrument\": \"echo\", \"name\": \"x\", \"output_dir\": \"3\"}");
    jt_put("c/run_status.json", "{\"jobs\": {}}");
    jt_put("c/.fathom/train.json", "{}");
    jt_put("c/notes.txt", "not one");
    jt_bench b = jt_found("c", NULL);
    EQ_I64(fth_jobs_count(b.jobs), 3);
    EQ_STR(job(&b, 0)->config_path, below("c/d/two.yml"));
    EQ_STR(job(&b, 2)->config_path, below("c/three.json"));
    EQ_STR(job(&b, 2)->model, "echo");
    jt_drop(&b);
}

TEST(links_are_followed_once_and_circles_survived)
{
    jt_clean();
    put_svgp("c/real/general.yaml", "1");
    jt_link("..", "c/real/up");
    jt_link("real", "c/again");
    jt_link("../elsewhere", "c/out");
    put_svgp("elsewhere/general.yaml", "2");
    jt_link("nowhere", "c/dangling");
    jt_bench b = jt_found("c", "c/real/general.yaml");
    EQ_I64(fth_jobs_count(b.jobs), 2);
    EQ_STR(job(&b, 0)->config_path, below("elsewhere/general.yaml"));
    EQ_STR(job(&b, 1)->config_path, below("c/real/general.yaml"));
    EQ_I64(b.log->warnings, 1);
    HAS(b.log->text, "c/real/general.yaml: it is the same file as one named before");
    jt_drop(&b);
    jt_link("nowhere", "c/real/general.yml");
    jt_link("../nowhere", "elsewhere/pick.yaml");
    b = jt_start();
    b.path[0] = "c";
    b.opt.config_name = "pick.yaml";
    IS(jt_find(&b), FTH_E_FILE_OPEN);
    HAS(b.err.text, "c/out/pick.yaml: it is a link to nowhere");
    jt_drop(&b);
}

TEST(paths_that_lead_to_nothing)
{
    jt_clean();
    put_svgp("configs/general.yaml", "1");
    jt_bench b = jt_refused("configs/genral.yaml", NULL, FTH_E_FILE_OPEN);
    HAS(b.err.text, "configs/genral.yaml: there is no such file or folder");
    EQ_STR(b.err.hint, "did you mean 'configs/general.yaml'?");
    jt_drop(&b);
    b = jt_refused("elsewhere/x", NULL, FTH_E_FILE_OPEN);
    HAS(b.err.hint, t_temp_dir());
    jt_drop(&b);
    jt_put("empty/notes.txt", "");
    b = jt_refused("empty", NULL, FTH_E_NO_JOB);
    HAS(b.err.text, "empty: neither general.yaml nor any other .yaml");
    HAS(b.err.hint, "--config-name");
    jt_drop(&b);
    b = jt_refused(NULL, NULL, FTH_E_COMMAND);
    HAS(b.err.hint, "-c PATH");
    jt_drop(&b);
    b = jt_refused("", NULL, FTH_E_COMMAND);
    jt_drop(&b);
    b = jt_refused("/dev/null", NULL, FTH_E_FILE_OPEN);
    HAS(b.err.text, "/dev/null: it is neither a file nor a folder");
    jt_drop(&b);
}

/* Root may look into everything: the search is done by nobody. Exit codes tell what went wrong. */
static void search_as_nobody(void)
{
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    jt_bench b = jt_start();
    b.path[0] = "c";
    const fth_status s = jt_find(&b);
    if (s != FTH_E_FILE_OPEN) _exit(3);
    if (!strstr(b.err.text, "c/closed: the folder cannot be searched: Permission denied")) _exit(4);
    _exit(strstr(b.err.hint, "readable") ? 0 : 5);
}

TEST(a_folder_that_may_not_be_read_is_an_error)
{
    jt_clean();
    put_svgp("c/general.yaml", "1");
    put_svgp("c/closed/general.yaml", "2");
    chmod(t_temp_dir(), 0755);
    chmod(t_temp_path("c/closed"), 0);
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0) search_as_nobody();
    EQ_I64(waitpid(pid, &status, 0), pid);
    chmod(t_temp_path("c/closed"), 0755);
    EQ_I64(status, 0);
}

/* ---- instruments and stages ---- */

TEST(a_config_without_an_instrument_is_spatial)
{
    jt_clean();
    jt_put("a.yaml", "name: x\nmodel: {spatial: true}\n");
    jt_bench b = jt_found("a.yaml", NULL);
    IS_TRUE(job(&b, 0)->instrument == &jt_spatial);
    EQ_STR(b.log->text, "a.yaml:1:1: it names no instrument and is taken as 'spatial'\n");
    EQ_I64(b.log->errors, 0);
    jt_drop(&b);
    b = jt_start();
    b.path[0] = "a.yaml";
    b.opt.instrument = jt_instruments + 1;
    b.opt.n_instruments = 1;
    IS(jt_find(&b), FTH_E_CONFIG);
    HAS(b.log->text, "a.yaml:1:1: it names no instrument, and 'spatial'");
    HAS(b.log->text, "known are: echo");
    jt_drop(&b);
}

TEST(an_unknown_instrument_names_the_nearest)
{
    jt_clean();
    jt_put("a.yaml", "name: x\ninstrument: spatail\n");
    jt_bench b = jt_refused("a.yaml", NULL, FTH_E_CONFIG);
    HAS(b.log->text, "a.yaml:2:13: instrument: expected one of spatial echo, found 'spatail'; did "
                     "you mean 'spatial'?");
    jt_drop(&b);
    b = jt_start(); /* a value of the command line counts, too */
    b.path[0] = "a.yaml";
    b.set[0] = "instrument=echo";
    OKE(jt_find(&b), &b.err);
    IS_TRUE(job(&b, 0)->instrument == &jt_echo);
    jt_drop(&b);
}

TEST(stages_are_in_the_order_of_the_pipeline)
{
    jt_clean();
    put_svgp("a.yaml", "1");
    jt_put("e.yaml", "instrument: echo\nname: e\noutput_dir: 2\n");
    jt_bench b = jt_start();
    b.path[0] = "a.yaml";
    b.path[1] = "e.yaml";
    b.opt.stages = "train listen preprocess";
    OKE(jt_find(&b), &b.err);
    EQ_STR(fth_jobs_stage(b.jobs, job(&b, 0), 0)->name, "preprocess");
    EQ_STR(fth_jobs_stage(b.jobs, job(&b, 0), 1)->name, "train");
    IS_TRUE(fth_jobs_stage(b.jobs, job(&b, 0), 2) == NULL);
    EQ_STR(fth_jobs_stage(b.jobs, job(&b, 1), 0)->name, "listen");
    jt_drop(&b);
    b = jt_start();
    b.path[0] = "a.yaml";
    b.path[1] = "e.yaml";
    b.opt.stages = "listen"; /* one of them has fewer tasks */
    OKE(jt_find(&b), &b.err);
    IS_TRUE(fth_jobs_stage(b.jobs, job(&b, 0), 0) == NULL);
    IS_TRUE(fth_jobs_stage(b.jobs, job(&b, 1), 0) != NULL);
    jt_drop(&b);
    b = jt_start();
    b.path[0] = "a.yaml";
    b.opt.stages = "listen";
    IS(jt_find(&b), FTH_E_NO_JOB);
    HAS(b.err.text, "none of the jobs (1) has a stage of: listen");
    jt_drop(&b);
    b = jt_start();
    b.path[0] = "a.yaml";
    b.opt.stages = "preprocess trian";
    IS(jt_find(&b), FTH_E_COMMAND);
    HAS(b.err.text, "there is no stage 'trian'");
    EQ_STR(b.err.hint, "did you mean 'train'? There are: all preprocess train listen");
    jt_drop(&b);
}

/* ---- mistakes ---- */

TEST(all_mistakes_of_all_files_are_said_at_once)
{
    jt_clean();
    jt_put("c/a.yaml", "instrument: spatial\n"
                       "sede: 3\n"                    /* unknown, and name is missing */
                       "output_dir: ${NOWHERE}/x\n"   /* not set      */
                       "preprocessing: {scale: -1}\n" /* range        */
                       "model:\n"
                       "  spatial: maybe\n"    /* type         */
                       "  kernel: rbf\n"       /* choice       */
                       "  n_components: 1.5\n" /* not whole    */
                       "  n_components: 2\n"   /* twice        */
                       "training: 7\n"         /* no section   */
                       "extra: {a: 1}\n");     /* unknown      */
    jt_put("c/b.yaml", "instrument: spatial\nname: b\nmodel: {spatial: false, groups: true}\n");
    jt_put("c/damaged.yaml", "a: [1\nb: 2\n");
    put_svgp("c/good.yaml", "out");
    const uint64_t before = jt_listing();
    jt_bench b = jt_refused("c", NULL, FTH_E_CONFIG);
    EQ_U64(jt_listing(), before);
    EQ_I64(b.log->errors, 12);
    HAS(b.err.text, "12 mistakes in 4 configs; nothing was done");
    HAS(b.log->text, "c/a.yaml:2:1: unknown key 'sede'; did you mean 'seed'?");
    HAS(b.log->text, "c/a.yaml:1:1: required key 'name' is missing");
    HAS(b.log->text, "c/a.yaml:3:13: output_dir: expected the variable NOWHERE to be set");
    HAS(b.log->text, "c/a.yaml:4:24: preprocessing.scale: expected");
    HAS(b.log->text, "c/a.yaml:6:12: model.spatial: expected");
    HAS(b.log->text, "c/a.yaml:7:11: model.kernel: expected one of");
    HAS(b.log->text, "c/a.yaml:8:17: model.n_components: expected");
    HAS(b.log->text, "c/a.yaml:9:3: 'model.n_components' is given a second time");
    HAS(b.log->text, "c/a.yaml:10:11: training: expected a section");
    HAS(b.log->text, "c/a.yaml:11:1: unknown key 'extra'");
    HAS(b.log->text, "c/b.yaml:3:33: model.groups: groups needs spatial (write spatial: true)");
    HAS(b.log->text, "c/damaged.yaml:");
    jt_drop(&b);
}

TEST(notices_of_a_general_config_are_said_once)
{
    jt_clean();
    jt_put("general.yaml", "instrument: spatial\nname: g\nmodel: {n_components: 600}\n");
    jt_bench b = jt_found("general.yaml", NULL);
    EQ_STR(b.log->text, "general.yaml:3:23: model.n_components: that is a lot\n");
    jt_drop(&b);
}

TEST(mistakes_of_a_general_config_are_said_once)
{
    jt_clean();
    jt_put("general.yaml", "instrument: spatial\nname: g\nmodel: {n_components: 0, kernal: RBF}\n");
    jt_bench b = jt_refused("general.yaml", NULL, FTH_E_CONFIG);
    EQ_STR(b.log->text,
           "general.yaml:3:23: model.n_components: expected an integer in [1, inf), found '0'\n"
           "general.yaml:3:26: unknown key 'model.kernal'; did you mean 'model.kernel'?\n");
    jt_drop(&b);
    b = jt_start(); /* the user can repair one, and be lenient about the other */
    b.path[0] = "general.yaml";
    b.set[0] = "model.n_components=3";
    b.opt.lenient = true;
    OKE(jt_find(&b), &b.err);
    EQ_I64(b.log->errors, 0);
    EQ_I64(b.log->warnings, 1);
    EQ_I64(fth_config_int(job(&b, 2)->config, "model.n_components"), 3);
    jt_drop(&b);
}

static void count_mistake(void *user, const fth_config_mistake *m)
{
    int *n = user;
    n[m->notice]++;
    EQ_STR(m->at.file, m->at.line > 0 ? "a.yaml" : "--set #1");
}

TEST(a_program_gets_the_mistakes_as_they_are)
{
    jt_clean();
    jt_put("a.yaml", "name: x\nmodel: {spatial: 3}\n");
    int n[2] = {0};
    jt_bench b = jt_start();
    b.path[0] = "a.yaml";
    b.set[0] = "seed=-1";
    b.opt.mistake = count_mistake;
    b.opt.user = n;
    b.opt.log = (fth_log){0};
    IS(jt_find(&b), FTH_E_CONFIG);
    EQ_I64(n[0], 2);
    EQ_I64(n[1], 1);
    HAS(b.err.text, "2 mistakes in 1 config; nothing was done. The first is:\na.yaml:2:18: ");
    jt_drop(&b);
    b = jt_start();
    b.path[0] = "a.yaml";
    b.set[0] = "seed";
    IS(jt_find(&b), FTH_E_CONFIG_SYNTAX);
    HAS(b.err.text, "--set #1: expected key=value, found 'seed'");
    jt_drop(&b);
}

TEST(models_have_names_fit_for_folders)
{
    static const char *const wrong[] = {"''",   "a/b",     "..",  ".x",
                                        "logs", ".fathom", "a b", "refused"};
    jt_clean();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "instrument: spatial\nname: x\nmodel: {spatial: true, name: %s}\n", wrong[i]);
        jt_put("a.yaml", text);
        jt_bench b = jt_refused("a.yaml", NULL, FTH_E_CONFIG);
        EQ_I64(b.log->errors, 1);
        HAS(b.log->text,
            i < 7 ? "a.yaml: the model is called '" : "a.yaml: such a model cannot be");
        jt_drop(&b);
    }
}

TEST(an_output_dir_must_be_able_to_be_a_folder)
{
    jt_clean();
    jt_put("file", "x");
    jt_link("circle", "circle");
    put_svgp("1.yaml", "file/x");
    put_svgp("2.yaml", "circle/x");
    put_svgp("3.yaml", "''");
    jt_bench b = jt_start();
    b.path[0] = "1.yaml", b.path[1] = "2.yaml", b.path[2] = "3.yaml";
    IS(jt_find(&b), FTH_E_CONFIG);
    EQ_I64(b.log->errors, 3);
    HAS(b.log->text, "1.yaml:3:13: output_dir ");
    HAS(b.log->text, "/file, a folder is needed");
    HAS(b.log->text, "links lead in a circle");
    HAS(b.log->text, "3.yaml:3:13: output_dir is empty");
    jt_drop(&b);
}

/* ---- general configs ---- */

static char *read_text(const char *name)
{
    size_t n = 0;
    char *text = (char *)t_file_read(t_temp_path(name), &n);
    text[n] = '\0';
    return text;
}

TEST(a_general_config_becomes_its_variants)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    const uint64_t before = jt_listing();
    jt_bench b = jt_found("c", NULL);
    EQ_U64(jt_listing(), before); /* nothing is written yet */
    EQ_I64(fth_jobs_count(b.jobs), 3);
    EQ_STR(job(&b, 2)->name, "out_mggp_svgp");
    EQ_STR(job(&b, 2)->dir_name, "out");
    EQ_STR(job(&b, 1)->config_path, below("c/svgp.yaml"));
    EQ_STR(job(&b, 1)->general_path, below("c/general.yaml"));
    EQ_STR(fth_config_text(job(&b, 1)->config, "model.kernel"), "Matern32");
    EQ_STR(fth_config_text(job(&b, 0)->config, "model.kernel"), "RBF"); /* not for pnmf */
    EQ_STR(fth_config_text(job(&b, 0)->config, "name"), "liver_pnmf");
    int64_t n = -1;
    OKE(fth_jobs_generate(b.jobs, false, &n, &b.err), &b.err);
    EQ_I64(n, 3);
    jt_drop(&b);
    char *text = read_text("c/svgp.yaml");
    HAS(text, "# Made by fathom from general.yaml");
    HAS(text, "\ninstrument: spatial\nname: liver_svgp\nseed: 7\noutput_dir: out\ndataset: liver\n"
              "\npreprocessing:\n  scale: 20\n"
              "\nmodel:\n  spatial: true\n  n_components: 5\n  kernel: Matern32\n"
              "\ntraining:\n  max_iter: 10\n");
    free(text);
    text = read_text("c/pnmf.yaml");
    HAS_NOT(text, "kernel");
    free(text);
}

/* An instrument whose variants are made from a list in the config. */
static bool listed(const fth_config *cfg)
{
    return fth_config_peek_count(cfg, "preprocessing.scale") >= 0;
}
static bool expand_list(const fth_config *cfg, int64_t i, fth_variant_made *out)
{
    const char *value = fth_config_peek_at(cfg, "preprocessing.scale", i);
    if (!value) return false;
    memset(out, 0, sizeof *out);
    snprintf(out->text, 100, "scale%s", value);
    snprintf(out->text + 100, 100, "preprocessing.scale=%s", value);
    snprintf(out->text + 200, 100, "output_dir=out/%s", value);
    out->variant.name = out->text;
    out->variant.set[0] = out->text + 100;
    out->variant.set[1] = out->text + 200;
    return true;
}

TEST(a_config_can_span_its_variants)
{
    fth_instrument grid = jt_spatial;
    grid.n_variants = 0;
    grid.general = listed;
    grid.expand = expand_list;
    const fth_instrument *const instruments[] = {&grid};
    jt_clean();
    jt_put("c/a.yaml", "instrument: spatial\nname: g\npreprocessing:\n  scale: [5, 2e1, 70]\n");
    for (int turn = 0; turn < 2; turn++) { /* once more with the files that were generated */
        jt_bench b = jt_start();
        b.opt.instrument = instruments;
        b.opt.n_instruments = 1;
        b.path[0] = "c";
        OKE(jt_find(&b), &b.err);
        EQ_I64(fth_jobs_count(b.jobs), 3);
        EQ_STR(job(&b, 1)->config_path, below("c/scale2e1.yaml"));
        EQ_STR(job(&b, 1)->output_dir, below("out/2e1"));
        EQ_F64(fth_config_real(job(&b, 1)->config, "preprocessing.scale"), 20);
        int64_t n = -1;
        OKE(fth_jobs_generate(b.jobs, false, &n, &b.err), &b.err);
        EQ_I64(n, turn ? 0 : 3);
        jt_drop(&b);
    }
    jt_put("d/a.yaml", "instrument: spatial\nname: g\npreprocessing:\n  scale: [5, oops]\n");
    jt_bench b = jt_start();
    b.opt.instrument = instruments;
    b.opt.n_instruments = 1;
    b.path[0] = "d";
    IS(jt_find(&b), FTH_E_CONFIG);
    HAS(b.log->text, "preprocessing.scale");
    jt_drop(&b);
}

/* General configs are expanded first; the list is still in the order of the files. */
TEST(jobs_are_in_the_order_of_their_files)
{
    jt_clean();
    put_svgp("own.yaml", "elsewhere");
    jt_put("c/general.yaml", general);
    jt_bench b = jt_found("own.yaml", "c");
    EQ_STR(job(&b, 0)->config_path, below("own.yaml"));
    EQ_STR(job(&b, 1)->model, "pnmf");
    EQ_STR(job(&b, 3)->model, "mggp_svgp");
    jt_drop(&b);
}

TEST(unchanged_files_are_not_written_again)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    jt_bench b = jt_found("c", NULL);
    OK(fth_jobs_generate(b.jobs, false, NULL, NULL));
    jt_drop(&b);
    const uint64_t before = jt_listing();
    b = jt_found("c", NULL);
    int64_t n = -1;
    OKE(fth_jobs_generate(b.jobs, true, &n, &b.err), &b.err);
    EQ_I64(n, 0);
    EQ_U64(jt_listing(), before);
    jt_drop(&b);
    char text[1000]; /* a change of the general one reaches them */
    snprintf(text, sizeof text, "%s  learning_rate: 0.5\n", general);
    jt_put("c/general.yaml", text);
    b = jt_found("c", NULL);
    EQ_STR(b.log->text, "");
    OKE(fth_jobs_generate(b.jobs, false, &n, &b.err), &b.err);
    EQ_I64(n, 3);
    jt_drop(&b);
    char *now = read_text("c/pnmf.yaml");
    HAS(now, "learning_rate: 0.5");
    free(now);
}

TEST(values_of_the_command_line_are_not_generated)
{
    jt_clean();
    jt_put("general.yaml", general);
    jt_bench b = jt_start();
    b.path[0] = "general.yaml";
    b.set[0] = "training.max_iter=99";
    OKE(jt_find(&b), &b.err);
    EQ_I64(fth_config_int(job(&b, 0)->config, "training.max_iter"), 99);
    OKE(fth_jobs_generate(b.jobs, false, NULL, &b.err), &b.err);
    jt_drop(&b);
    char *text = read_text("pnmf.yaml");
    HAS(text, "max_iter: 10\n");
    free(text);
    b = jt_start(); /* with this the config is of one model, and no general one */
    b.path[0] = "general.yaml";
    b.set[0] = "model={spatial: true}";
    OKE(jt_find(&b), &b.err);
    EQ_I64(fth_jobs_count(b.jobs), 1);
    EQ_STR(job(&b, 0)->config_path, below("general.yaml"));
    jt_drop(&b);
}

/* Append a line to a file of the folder. */
static void edit(const char *name, const char *line)
{
    char *text = read_text(name), whole[4000];
    snprintf(whole, sizeof whole, "%s%s", text, line);
    free(text);
    jt_put(name, whole);
}

TEST(an_edited_file_is_kept_and_used)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    jt_bench b = jt_found("c", NULL);
    OK(fth_jobs_generate(b.jobs, false, NULL, NULL));
    jt_drop(&b);
    edit("c/svgp.yaml", "  learning_rate: 0.25\n");
    jt_put("c/pnmf.yaml", "instrument: spatial\nname: mine\noutput_dir: ./out\n"
                          "preprocessing: {scale: 20}\ndataset: liver\nmodel: {spatial: false}\n");
    b = jt_found("c", NULL);
    HAS(b.log->text, "c/svgp.yaml: it was edited since it was generated; it is used as it is");
    HAS(b.log->text, "c/pnmf.yaml: it was not generated, but written by hand");
    EQ_F64(fth_config_real(job(&b, 1)->config, "training.learning_rate"), 0.25);
    EQ_STR(fth_config_text(job(&b, 0)->config, "name"), "mine");
    const uint64_t before = jt_listing();
    int64_t n = -1;
    OKE(fth_jobs_generate(b.jobs, false, &n, &b.err), &b.err);
    EQ_I64(n, 0);
    EQ_U64(jt_listing(), before);
    OKE(fth_jobs_generate(b.jobs, true, &n, &b.err), &b.err); /* forced */
    EQ_I64(n, 2);
    EQ_F64(fth_config_real(job(&b, 1)->config, "training.learning_rate"), 0.01);
    jt_drop(&b);
    b = jt_found("c", NULL);
    EQ_STR(b.log->text, "");
    jt_drop(&b);
}

TEST(an_edited_file_must_not_become_another_job)
{
    static const char *const edits[] = {
        "instrument: spatial\nname: x\noutput_dir: out2\nmodel: {spatial: true}\n",
        "instrument: spatial\nname: x\noutput_dir: out\nmodel: {spatial: false}\n",
        "instrument: echo\nname: x\noutput_dir: out\n",
        "instrument: spatial\nname: x\noutput_dir: out\n",
        "instrument: spatial\nname: x\noutput_dir: out\nmodel: {spatial: 3}\n",
        "a: [",
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        jt_clean();
        jt_put("c/general.yaml", general);
        jt_put("c/svgp.yaml", edits[i]);
        const uint64_t before = jt_listing();
        jt_bench b = jt_refused("c", NULL, FTH_E_CONFIG);
        EQ_U64(jt_listing(), before);
        EQ_I64(b.log->errors, 1);
        HAS(b.log->text, "c/svgp.yaml:");
        if (i < 2) HAS(b.log->text, "it stands for 'svgp' of c/general.yaml, but is another job");
        jt_drop(&b);
        b = jt_start(); /* force is the way out */
        b.path[0] = "c";
        b.opt.force = true;
        OKE(jt_find(&b), &b.err);
        int64_t n = 0;
        OKE(fth_jobs_generate(b.jobs, false, &n, &b.err), &b.err);
        EQ_I64(n, 3);
        jt_drop(&b);
    }
}

/* The stage would expand it again, and run other models than the one it stands for. */
TEST(a_kept_file_must_not_be_general)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    jt_put("c/pnmf.yaml", general);
    jt_bench b = jt_refused("c", NULL, FTH_E_CONFIG);
    EQ_STR(b.log->text, "c/pnmf.yaml: it stands for 'pnmf' of c/general.yaml, but is general "
                        "itself (generate it again with force, or give it another name and use it "
                        "by itself)\n");
    jt_drop(&b);
}

TEST(a_generated_file_is_the_job_of_its_general_config)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    jt_bench b = jt_found("c", NULL);
    OK(fth_jobs_generate(b.jobs, false, NULL, NULL));
    jt_drop(&b);
    put_svgp("c/own.yaml", "other");
    b = jt_start(); /* no such name: every config, so the general one and all it generated */
    b.path[0] = "c";
    b.path[1] = "c/svgp.yaml";
    b.opt.config_name = "none.yaml";
    OKE(jt_find(&b), &b.err);
    EQ_I64(fth_jobs_count(b.jobs), 4);
    EQ_STR(job(&b, 0)->config_path, below("c/pnmf.yaml"));
    IS_TRUE(job(&b, 0)->general_path != NULL);
    EQ_STR(job(&b, 3)->config_path, below("c/own.yaml"));
    jt_drop(&b);
    b = jt_found("c/svgp.yaml", NULL); /* by itself it is a config as any other */
    EQ_I64(fth_jobs_count(b.jobs), 1);
    IS_TRUE(job(&b, 0)->general_path == NULL);
    jt_drop(&b);
    b = jt_start();
    b.path[0] = "c";
    b.opt.skip_general = true;
    OKE(jt_find(&b), &b.err);
    EQ_I64(fth_jobs_count(b.jobs), 4);
    EQ_STR(job(&b, 0)->config_path, below("c/mggp_svgp.yaml"));
    jt_drop(&b);
    jt_clean();
    jt_put("c/general.yaml", general);
    b = jt_start();
    b.path[0] = "c";
    b.opt.skip_general = true;
    IS(jt_find(&b), FTH_E_NO_JOB);
    HAS(b.err.hint, "--skip-general");
    jt_drop(&b);
}

TEST(what_is_written_meanwhile_is_not_replaced)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    jt_bench b = jt_found("c", NULL);
    jt_put("c/svgp.yaml", "name: mine\n");
    int64_t n = -1;
    IS(fth_jobs_generate(b.jobs, false, &n, &b.err), FTH_E_CONFIG);
    HAS(b.err.text, "c/svgp.yaml: somebody wrote it while");
    EQ_I64(n, 1);
    jt_drop(&b);
    char *text = read_text("c/svgp.yaml");
    EQ_STR(text, "name: mine\n");
    free(text);
}

TEST(a_second_general_config_takes_over_aloud)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    jt_put("c/general_test.yaml", general);
    jt_bench b = jt_found("c/general.yaml", NULL);
    OK(fth_jobs_generate(b.jobs, false, NULL, NULL));
    jt_drop(&b);
    b = jt_found("c/general_test.yaml", NULL);
    int64_t n = 0;
    OKE(fth_jobs_generate(b.jobs, false, &n, &b.err), &b.err);
    EQ_I64(n, 3);
    EQ_I64(b.log->warnings, 3);
    HAS(b.log->text, "c/svgp.yaml: it was generated from another file, now c/general_test.yaml");
    jt_drop(&b);
}

static void generate_as_nobody(jt_bench *b)
{
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    if (fth_jobs_generate(b->jobs, false, NULL, &b->err) != FTH_E_FILE_WRITE) _exit(3);
    if (!strstr(b->err.text, "c/pnmf.yaml: ")) _exit(4);
    _exit(strstr(b->err.hint, "beside c/general.yaml: make its folder writable") ? 0 : 5);
}

TEST(a_read_only_folder_is_an_error)
{
    jt_clean();
    jt_put("c/general.yaml", general);
    chmod(t_temp_dir(), 0755);
    chmod(t_temp_path("c"), 0555);
    const uint64_t before = jt_listing();
    jt_bench b = jt_found("c", NULL);
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0) generate_as_nobody(&b);
    EQ_I64(waitpid(pid, &status, 0), pid);
    EQ_I64(status, 0);
    EQ_U64(jt_listing(), before);
    jt_drop(&b);
    chmod(t_temp_path("c"), 0755);
}

TEST(names_of_generated_configs_are_quoted_where_needed)
{
    jt_clean();
    jt_put("general.yaml", "instrument: spatial\nname: x\ndataset: \"a: b #1 \\\"q\\\"\"\n");
    jt_bench b = jt_found("general.yaml", NULL);
    EQ_STR(fth_config_text(job(&b, 0)->config, "name"), "a: b #1 _q__pnmf");
    EQ_STR(fth_config_text(job(&b, 0)->config, "dataset"), "a: b #1 \"q\"");
    jt_drop(&b);
}

TEST(a_stage_that_keeps_results_can_be_forced_or_is_refused)
{
    static const fth_flag other[] = {{.name = "loud", .doc = "nothing"}, {0}};
    static const fth_flag force[] = {FTH_STAGE_FORCE, {0}};
    fth_stage stage[2] = {{.name = "make"}, {.name = "use", .after = "make"}};
    fth_instrument in = jt_echo;
    fth_err err = {0};
    in.stage = stage;
    in.n_stages = 2;
    OKE(fth_instrument_check(&in, &err), &err);
    stage[1].keeps = "checkpoint";
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
    HAS(err.text, "stage 'use' of instrument 'echo' is refused: it keeps partial results "
                  "(checkpoint) and has no flag 'force'");
    stage[1].flag = other;
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
    const fth_instrument *const list[] = {&in};
    const char *path = "/nowhere";
    fth_mem *mem = t_mem(1 << 20);
    fth_jobs *jobs = NULL;
    const fth_jobs_options opt = {
        .mem = mem, .instrument = list, .n_instruments = 1, .path = &path, .n_paths = 1};
    IS(fth_jobs_find(&jobs, &opt, &err), FTH_E_USAGE); /* before anything is looked for */
    stage[1].flag = force;
    OKE(fth_instrument_check(&in, &err), &err);
    IS_TRUE(fth_jobs_find(&jobs, &opt, &err) != FTH_E_USAGE);
    fth_err_clear(&err);
    stage[1].after = "make other";
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
    HAS(err.text, "it comes after 'other', which is no stage before it");
    fth_err_clear(&err);
    stage[1].after = "make";
    stage[1].name = "make";
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
    HAS(err.text, "there are two of this name");
    stage[1].name = "";
    IS(fth_instrument_check(&in, &err), FTH_E_USAGE);
    IS(fth_instrument_check(NULL, &err), FTH_E_USAGE);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(every_instrument_of_the_program_can_be_registered)
{
    fth_err err = {0};
    for (int i = 0; i < fth_n_instruments; i++) {
        OKE(fth_instrument_check(fth_instruments[i], &err), &err);
        for (int k = 0; k < fth_instruments[i]->n_stages; k++)
            IS_TRUE(fth_instruments[i]->stage[k].algorithm > 0);
    }
}

TEST_MAIN()
