/* test_slurm.c - tasks into job arrays, what Slurm's programs print, settings: all without Slurm.
 * seconds: 2 */
#include "job/slurm/slurm.h"
#include "mem/inject.h"
#include "testing/job/toy.h"
#include "testing/test.h"

#include <stdlib.h>
#include <string.h>

/* ---- arrays ---- */

static fth__slurm_item after(int stage, int64_t kind, int n, const int64_t *before)
{
    fth__slurm_item it = {.stage = stage, .kind = kind, .n_before = n, .array = -1};
    for (int k = 0; k < n; k++) it.before[k] = before[k];
    return it;
}

static fth_mem *memory(void)
{
    fth_mem *mem = NULL;
    OK(fth_mem_create(&mem, NULL, NULL));
    return mem;
}

TEST(a_chain_of_stages_keeps_its_index)
{
    enum { N = 5 };
    fth__slurm_item item[3 * N];
    fth__slurm_arrays a;
    fth_mem *mem = memory();
    for (int64_t j = 0; j < N; j++) {
        item[3 * j] = after(0, 0, 0, NULL);
        item[3 * j + 1] = after(1, 1, 1, (int64_t[]){3 * j});
        item[3 * j + 2] = after(2, 2, 2, (int64_t[]){3 * j, 3 * j + 1}); /* the first is implied */
    }
    OK(fth__slurm_place(&a, mem, item, 3 * N, 0, 1000, NULL));
    EQ_I64(a.n, 3);
    for (int64_t j = 0; j < 3 * N; j++) {
        EQ_I64(item[j].array, j % 3);
        EQ_I64(item[j].index, j / 3);
    }
    IS_TRUE(a.array[0].wait == FTH__SLURM_WAIT_NONE);
    IS_TRUE(a.array[2].wait == FTH__SLURM_WAIT_CORR);
    EQ_I64(a.array[2].n_on, 1);
    EQ_I64(a.array[2].on[0], 1);
    fth__slurm_arrays_clear(&a);
    OK(fth_mem_destroy(mem, NULL));
}

/* `dirs` shared stages with `models` behind each. */
static fth__slurm_item *shared(int64_t dirs, int64_t models)
{
    fth__slurm_item *item = calloc((size_t)(dirs * (models + 1)), sizeof *item);
    for (int64_t d = 0; d < dirs; d++) {
        const int64_t first = d * (models + 1);
        item[first] = after(0, 0, 0, NULL);
        for (int64_t m = 1; m <= models; m++) item[first + m] = after(1, 1, 1, &first);
    }
    return item;
}

TEST(models_behind_shared_stages_are_one_array_for_each_model)
{
    fth_mem *mem = memory();
    fth__slurm_arrays a;
    fth__slurm_item *item = shared(20, 3);
    OK(fth__slurm_place(&a, mem, item, 80, 7, 1000, NULL));
    EQ_I64(a.n, 4);
    EQ_I64(a.array[0].number, 7);
    for (int64_t k = 1; k < 4; k++) {
        IS_TRUE(a.array[k].wait == FTH__SLURM_WAIT_CORR);
        EQ_I64(a.array[k].n, 20);
        EQ_I64(a.array[k].on[0], 7);
    }
    for (int64_t i = 0; i < 80; i++) EQ_I64(item[i].index, i / 4);
    fth__slurm_arrays_clear(&a);
    free(item);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(many_models_behind_one_stage_are_one_array_behind_its_element)
{
    fth_mem *mem = memory();
    fth__slurm_arrays a;
    fth__slurm_item *item = shared(1, 30);
    OK(fth__slurm_place(&a, mem, item, 31, 0, 20, NULL));
    EQ_I64(a.n, 3); /* 30 models, 20 in an array */
    IS_TRUE(a.array[1].wait == FTH__SLURM_WAIT_OK);
    EQ_I64(a.array[1].on_index[0], 0);
    EQ_I64(a.array[1].n, 20);
    EQ_I64(a.array[2].n, 10);
    fth__slurm_arrays_clear(&a);
    free(item);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(arrays_are_split_at_the_limit_of_the_site)
{
    fth_mem *mem = memory();
    fth__slurm_arrays a;
    static fth__slurm_item item[2500];
    for (int64_t i = 0; i < 2500; i++) item[i] = after(0, i % 2, 0, NULL);
    OK(fth__slurm_place(&a, mem, item, 2500, 0, 1000, NULL));
    EQ_I64(a.n, 4);
    for (int64_t i = 0; i < 2500; i++) IS_TRUE(item[i].placed && item[i].index < 1000);
    fth__slurm_arrays_clear(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_waits_for_two_places_waits_for_their_elements)
{
    fth_mem *mem = memory();
    fth__slurm_arrays a;
    /* 0 and 1 are roots of one kind; 2 waits for both: their indices differ */
    fth__slurm_item item[] = {after(0, 0, 0, NULL), after(0, 0, 0, NULL),
                              after(1, 1, 2, (int64_t[]){0, 1})};
    OK(fth__slurm_place(&a, mem, item, 3, 0, 1000, NULL));
    EQ_I64(a.n, 2);
    IS_TRUE(a.array[1].wait == FTH__SLURM_WAIT_OK);
    EQ_I64(a.array[1].n_on, 2);
    EQ_I64(a.array[1].on_index[1], 1);
    fth__slurm_arrays_clear(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_was_placed_before_stays_and_is_waited_for)
{
    fth_mem *mem = memory();
    fth__slurm_arrays a;
    fth__slurm_item item[] = {{.stage = 0, .placed = true, .array = 3, .index = 42},
                              after(1, 1, 1, (int64_t[]){0})};
    OK(fth__slurm_place(&a, mem, item, 2, 9, 1000, NULL));
    EQ_I64(a.n, 1);
    EQ_I64(item[1].array, 9);
    EQ_I64(item[1].index, 42);
    EQ_I64(a.array[0].on[0], 3);
    fth__slurm_arrays_clear(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(placing_survives_every_allocation_that_fails)
{
    for (int64_t n = 1; n < 20; n++) {
        fth_mem *mem = memory();
        fth__slurm_item *item = shared(4, 2);
        fth__slurm_arrays a;
        fth__mem_inject(mem, n, 0);
        const fth_status s = fth__slurm_place(&a, mem, item, 12, 0, 1000, NULL);
        IS_TRUE(s == FTH_OK || s == FTH_E_NOMEM);
        fth__mem_inject(mem, 0, 0);
        fth__slurm_arrays_clear(&a);
        free(item);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(indices_are_ranges)
{
    char text[64];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    fth__slurm_format_indices(&t, (int64_t[]){0, 1, 2, 3, 7, 9, 10, 11}, 8);
    EQ_STR(text, "0-3,7,9-11");
}

/* ---- texts ---- */

TEST(times_of_slurm_are_minutes)
{
    EQ_I64(fth__slurm_minutes("90"), 90);
    EQ_I64(fth__slurm_minutes("90:30"), 91);
    EQ_I64(fth__slurm_minutes("1:30:00"), 90);
    EQ_I64(fth__slurm_minutes("2-00:00:00"), 2880);
    EQ_I64(fth__slurm_minutes("1-2"), 1560);
    EQ_I64(fth__slurm_minutes("UNLIMITED"), 0);
    EQ_I64(fth__slurm_minutes("infinite"), 0);
    EQ_I64(fth__slurm_minutes("soon"), -1);
    EQ_I64(fth__slurm_minutes(""), -1);
    EQ_I64(fth__slurm_minutes("1:2:3:4"), -1);
    EQ_I64(fth__slurm_minutes("-5"), -1);
}

TEST(every_state_of_slurm_is_told_apart)
{
    static const char *const names[] = {"PENDING",   "RUNNING",   "COMPLETED",     "FAILED",
                                        "CANCELLED", "TIMEOUT",   "OUT_OF_MEMORY", "NODE_FAIL",
                                        "PREEMPTED", "BOOT_FAIL", "DEADLINE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            EQ_I64(fth__slurm_parse_state(names[i]) == fth__slurm_parse_state(names[k]), i == k);
    IS_TRUE(fth__slurm_parse_state("CANCELLED by 1000") == FTH__SLURM_CANCELLED);
    IS_TRUE(fth__slurm_parse_state("COMPLETING") == FTH__SLURM_RUNNING);
    IS_TRUE(fth__slurm_parse_state("REQUEUED") == FTH__SLURM_PENDING);
    IS_TRUE(fth__slurm_parse_state("TIME") == FTH__SLURM_UNKNOWN);
}

typedef struct lines {
    int n;
    int64_t id, index;
    fth__slurm_state state;
    char comment[80];
} lines;

static void on_line(void *user, int64_t id, int64_t index, fth__slurm_state state,
                    const char *reason, const char *comment)
{
    lines *l = user;
    (void)reason;
    *l = (lines){.n = l->n + 1, .id = id, .index = index, .state = state};
    snprintf(l->comment, sizeof l->comment, "%s", comment);
}

TEST(lines_of_squeue_are_ours_or_nothing)
{
    char text[] = "slurm_load_jobs error: something\n"
                  "11|N/A|RUNNING|None|fathom:t:0\n"
                  "12|3|RUNNING|None|somebody's\n"
                  "12|4|TIMEOUT|TimeLimit|fathom:t:1\n"
                  "12|x|TIMEOUT|TimeLimit|fathom:t:1\n"
                  "12|5|PENDING";
    lines l = {0};
    fth__slurm_parse_queue(text, on_line, &l);
    EQ_I64(l.n, 1);
    EQ_I64(l.id, 12);
    EQ_I64(l.index, 4);
    IS_TRUE(l.state == FTH__SLURM_TIMEOUT);
    EQ_STR(l.comment, "fathom:t:1");
}

TEST(limits_of_the_site_are_read)
{
    char config[] = "AccountingStorageType   = accounting_storage/slurmdbd\n"
                    "ClusterName             = lab\nMaxArraySize            = 1001\n"
                    "MinJobAge               = 300 sec\nSLURM_VERSION           = 22.05.8\n";
    char nodes[] =
        "main*|up|1-00:00:00|4000+|4|gpu:a100:2(S:0)|3\nmain*|up|1-00:00:00|8000|16|(null)|1\n"
        "long|down|infinite|100|1|gpu:4|1\nnot a line\n";
    char none[] = "ClusterName = x\n", submit[] = "|\n500|\n|200\n";
    fth_slurm_info info = {0};
    fth_err err = {0};
    OK(fth__slurm_parse_config(config, &info, &err));
    fth__slurm_parse_partitions(nodes, &info);
    EQ_STR(info.version, "22.05.8");
    EQ_STR(info.cluster, "lab");
    IS_TRUE(info.accounting);
    EQ_I64(info.max_array, 1001);
    EQ_I64(info.min_job_age_s, 300);
    EQ_I64(info.n_partitions, 2);
    EQ_U64(info.partition[0].memory_bytes, (uint64_t)8000 << 20);
    EQ_I64(info.partition[0].cpus, 16);
    EQ_I64(info.partition[0].gpus, 2);
    EQ_I64(info.partition[0].nodes, 4);
    EQ_I64(info.partition[0].max_minutes, 1440);
    EQ_I64(info.partition[1].max_minutes, 0);
    EQ_I64(info.partition[1].gpus, 4);
    IS_TRUE(fth__slurm_find_partition(&info, "", NULL) == &info.partition[0]);
    IS_TRUE(fth__slurm_find_partition(&info, "nope", &err) == NULL);
    IS_TRUE(strstr(err.hint, "main long") != NULL);
    IS_TRUE(fth__slurm_parse_config(none, &info, &err) == FTH_E_EXECUTOR);
    EQ_I64(fth__slurm_parse_submit(submit), 200);
}

/* ---- settings ---- */

/* A job of the toy instrument with a config of one line. */
typedef struct told {
    fth_config *config;
    fth_job job;
} told;

static void tell(told *t, fth_mem *mem, const char *text)
{
    OK(fth_config_create(&t->config, mem, NULL));
    OK(fth_config_parse(t->config, "one.yaml", text, strlen(text), NULL));
    OK(fth_config_check(t->config, &toy_schema, NULL, NULL));
    t->job =
        (fth_job){.config = t->config, .instrument = &toy_instrument, .config_path = "/one.yaml"};
}

TEST(settings_are_options_of_sbatch_or_our_own)
{
    fth__slurm_settings s;
    static const char *const pair[] = {
        "partition=long",      "account=lab",  "partition=short", /* the last one wins */
        "exclusive=",          "cpus=8",       "gpus=2",
        "gpus=use=1",          "time=2:00:00", "modules=gcc/12 hdf5",
        "prologue=export A=1", "probe=false"};
    OK(fth__slurm_read(&s, NULL, pair, sizeof pair / sizeof *pair, NULL));
    EQ_STR(s.options, "#SBATCH --account=lab\n#SBATCH --partition=short\n#SBATCH --exclusive\n");
    EQ_STR(s.prologue, "module load gcc/12 hdf5 || exit 1\nexport A=1\n");
    EQ_STR(s.partition, "short");
    EQ_I64(s.minutes, 120);
    EQ_I64(s.cpus, 8);
    EQ_I64(fth__slurm_gpus(&s, "make"), 2);
    EQ_I64(fth__slurm_gpus(&s, "use"), 1);
    IS_TRUE(s.no_probe);
}

TEST(the_command_line_wins_over_the_config)
{
    fth_mem *mem = t_mem(1 << 22);
    fth__slurm_settings s;
    told t;
    tell(&t, mem,
         "name: a\nslurm: {partition: long, cpus: 2, time: 1:30:00, gpus: [use=1, 0], "
         "modules: [gcc, hdf5], probe: false, options: [exclusive, nice=100]}\n");
    OK(fth__slurm_read(&s, &t.job, NULL, 0, NULL));
    EQ_STR(s.partition, "long");
    EQ_STR(s.options, "#SBATCH --partition=long\n#SBATCH --exclusive\n#SBATCH --nice=100\n");
    EQ_STR(s.prologue, "module load gcc || exit 1\nmodule load hdf5 || exit 1\n");
    EQ_I64(s.minutes, 90);
    EQ_I64(s.cpus, 2);
    EQ_I64(fth__slurm_gpus(&s, "use"), 1);
    EQ_I64(fth__slurm_gpus(&s, "make"), 0);
    IS_TRUE(s.no_probe);
    static const char *const pair[] = {"partition=short", "modules=clang", "nice=5", "gpus=3"};
    fth__slurm_settings other;
    OK(fth__slurm_read(&other, &t.job, pair, 4, NULL));
    EQ_STR(other.options, "#SBATCH --exclusive\n#SBATCH --partition=short\n#SBATCH --nice=5\n");
    EQ_STR(other.prologue, "module load clang || exit 1\n");
    EQ_I64(fth__slurm_gpus(&other, "use"), 3);
    EQ_I64(other.minutes, 90);
    IS_TRUE(fth__slurm_is_same(&s, &s));
    IS_TRUE(!fth__slurm_is_same(&s, &other));
    OK(fth_config_destroy(t.config, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(settings_that_make_no_sense_are_refused)
{
    static const char *const bad[] = {"",        "=x",        "mem=4G",        "array=0-3",
                                      "cpus=0",  "cpus=many", "time=soon",     "probe=perhaps",
                                      "a b=c",   "comment=x", "time=0",        "account=a\nb",
                                      "gpus=-1", "nodes=2",   "account=\"",    "--account=lab",
                                      "gpus==1", "options=",  "options=mem=4G"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fth__slurm_settings s;
        fth_err err = {0};
        if (fth__slurm_read(&s, NULL, &bad[i], 1, &err) == FTH_OK) FAIL("'%s' was taken", bad[i]);
        EQ_STR(s.options, "");
    }
}

/* What is nearly a key is a slip; real options of sbatch are not. */
TEST(the_nearest_key_is_named)
{
    static const char *const near[][2] = {
        {"partiton=long", "'partition'"}, {"acount=lab", "'account'"}, {"cpu=4", "'cpus'"}};
    static const char *const options[] = {
        "gres=gpu:a100:1", "time-min=5",      "nice=1", "exclude=n1",  "nodelist=n1", "licenses=x",
        "mail-user=me",    "requeue=",        "tmp=1G", "begin=now",   "export=ALL",  "prefer=x",
        "mincpus=4",       "gpus-per-node=1", "hint=x", "profile=all", "contiguous=", "priority=1"};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        fth__slurm_settings s;
        fth_err err = {0};
        IS_TRUE(fth__slurm_read(&s, NULL, &near[i][0], 1, &err) == FTH_E_COMMAND);
        if (!strstr(err.hint, near[i][1])) FAIL("%s: %s", near[i][0], err.hint);
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        fth__slurm_settings s;
        fth_err err = {0};
        OKE(fth__slurm_read(&s, NULL, &options[i], 1, &err), &err);
    }
}

TEST_MAIN()
