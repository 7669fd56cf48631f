/* test_focus_job.c - `fathom focus run` of a made-up plate: images, tables, resume and refusals.
 *
 * seconds: 6 */
#include "instruments/focus/process/command.h"
#include "instruments/focus/toy/toy.h"
#include "testing/io/files.h"

#include <fathom/nd2.h>

#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 24 };
typedef struct words {
    const char *flag[MOST], *value[MOST];
    int n;
} words;

static const char *value_of(void *user, const char *flag)
{
    const words *w = user;
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->flag[i], flag) == 0) return w->value[i];
    return NULL;
}

typedef struct limits {
    int threads;
    int64_t fail_write;
} limits;

static char said[60000], root[1000];

/* `run`, with "--flag=value" words behind those that name the plate. */
static fth_status call_with(const limits *lim, const fth_verb *verb, const char *extra,
                            fth_err *err)
{
    char text[2000];
    words w = {{"data-root", "exp", "microscope"}, {root, "20250101_toy", "YX1"}, 3};
    snprintf(text, sizeof text, "%s", extra);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *eq = strchr(word, '=');
        if (eq) *eq = '\0';
        int i = 0;
        while (i < w.n && strcmp(w.flag[i], word + 2) != 0) i++;
        w.flag[i] = word + 2;
        w.value[i] = eq ? eq + 1 : "";
        w.n += i == w.n;
    }
    fth_context *ctx = NULL;
    fth_options opt;
    char *out_text = NULL;
    size_t bytes = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 27;
    opt.mem.fail_write = lim->fail_write;
    opt.threads = lim->threads ? lim->threads : 1;
    OK(fth_context_create(&ctx, &opt, NULL));
    FILE *out = open_memstream(&out_text, &bytes);
    const fth_status s = verb->run(ctx, 0, NULL, value_of, &w, out, err);
    fclose(out);
    snprintf(said, sizeof said, "%s", out_text);
    free(out_text);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}
#define RUN(extra, err) call_with(&(limits){0}, &fo_verb_run, (extra), (err))

static void shell(const char *fmt, ...) FTH_PRINTF(1, 2);
static void shell(const char *fmt, ...)
{
    char line[3000], command[6000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    snprintf(command, sizeof command, "cd '%s' && %s", root, line);
    if (system(command) != 0) FAIL("%s", command);
}

static void make_plate(void)
{
    const fo_toy toy = {.dir = root,
                        .exp = "20250101_toy",
                        .wells = 4,
                        .times = 2,
                        .planes = 4,
                        .rows = 40,
                        .columns = 36,
                        .seed = 3};
    fth_mem *mem = t_mem(1 << 26);
    fth_err err = {0};
    snprintf(root, sizeof root, "%s/plate", t_temp_dir());
    mkdir(root, 0777);
    shell("rm -rf ./*");
    OKE(fo_toy_make_yx1(&toy, mem, &err), &err);
    OK(fth_mem_destroy(mem, NULL));
}

#define IMAGES "built_image_data/stitched_FF_images/20250101_toy"
#define RUNS "built_image_data/focus_runs/20250101_toy"
#define RAW "raw_image_data/YX1/20250101_toy"
#define TABLE "metadata/well_metadata/20250101_toy_well_metadata.csv"

static bool there(const char *name)
{
    char path[2000];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return t_file_exists(path);
}

static char *text_of(const char *name)
{
    char path[2000];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", root, name);
    char *text = (char *)t_file_read(path, &n);
    text[n] = '\0';
    return text;
}

/* Hash of images and tables; run.json tells how it was, so it is left out. */
static uint64_t hash_all(void)
{
    char command[3000], text[100] = "";
    snprintf(
        command, sizeof command,
        "cd '%s' && find built_image_data metadata/built_metadata_files -type f ! -name run.json "
        "| LC_ALL=C sort | xargs cat | cksum",
        root);
    FILE *p = popen(command, "r");
    IS_TRUE(p && fgets(text, sizeof text, p) != NULL);
    IS_TRUE(pclose(p) == 0);
    return fth_hash_bytes(text, strlen(text), 0);
}

TEST(a_plate_becomes_images_and_tables)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    IS_TRUE(there(IMAGES "/A01_t0000_ch00_stitch.jpg") &&
            there(IMAGES "/D01_t0001_ch00_stitch.jpg") && there(IMAGES "/.ff_complete"));
    char *text = text_of(IMAGES "/.ff_complete");
    EQ_STR(text, "rows=8\n");
    free(text);
    text = text_of(RUNS "/metrics.csv");
    HAS(text, "\nA01_t0000_ch00_stitch,A01,0,0,4,");
    HAS(text, "\nD01_t0001_ch00_stitch,D01,1,0,4,");
    free(text);
    text = text_of(RUNS "/run.json");
    HAS(text, "\"images\": {\"total\":8,\"done\":8,\"skipped\":0,\"failed\":0}");
    HAS(text, "\"device_reason\": ");
    HAS(text, "\"bound\": \"");
    HAS(text, "\"method\": \"log-smooth\"");
    HAS(text, "\"missing_frames\": []");
    free(text);
    text = text_of("metadata/built_metadata_files/20250101_toy_metadata.csv");
    HAS(text, "\n20250101_toy_A01,A01,1,YX1,0,129.388,116.4492,40,36,0,"); /* height from y */
    free(text);
    IS_TRUE(there(RUNS "/series_well_mapping.csv") && there(RUNS "/mapping_provenance.json"));
    HAS(said, "bound: ");
}

TEST(it_goes_on_where_it_was_ended)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    const uint64_t whole = hash_all();
    shell("rm " IMAGES "/B01* " IMAGES "/.ff_complete && : > " IMAGES
          "/C01_t0000_ch00_stitch.jpg"); /* an empty image counts as none */
    shell("printf x > " IMAGES "/.B01_t0000_ch00_stitch.jpg.77-5f3a.tmp && printf x > " RUNS
          "/.run.json.77-5f3a.tmp"); /* what a kill leaves */
    OKE(RUN("", &err), &err);
    HAS(said, "3 images made, 5 existed");
    EQ_U64(hash_all(), whole);
    shell("rm -r " RUNS "/metrics.csv " RUNS "/planes.csv"); /* ended before they were written */
    OKE(RUN("", &err), &err);
    HAS(said, "0 images made, 8 existed");
    EQ_U64(hash_all(), whole);
    OKE(RUN("--overwrite", &err), &err);
    HAS(said, "8 images made, 0 existed");
    EQ_U64(hash_all(), whole);
}

/* A disk that fails at any write: what is there is whole, and a second run ends with the same. */
TEST(every_write_may_fail)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    const uint64_t whole = hash_all();
    for (int64_t n = 1; n < 1000; n += 3) {
        err = (fth_err){0};
        shell("rm -rf built_image_data metadata/built_metadata_files");
        const fth_status s = call_with(&(limits){2, n}, &fo_verb_run, "", &err);
        if (s == FTH_OK) return;
        EQ_I64(fth_status_get_info(s)->exit_code, 3);
        IS_TRUE(!there(IMAGES "/.ff_complete") || s == FTH_OK);
        err = (fth_err){0};
        OKE(RUN("", &err), &err);
        EQ_U64(hash_all(), whole);
    }
    FAIL("it never succeeds");
}

TEST(other_settings_are_refused_and_listed)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    const uint64_t whole = hash_all();
    IS(RUN("--method=log --sigma=3", &err), FTH_E_CONFIG);
    HAS(err.text, "focus.method: \"log\"");
    HAS(err.text, "focus.sigma: ");
    EQ_U64(hash_all(), whole);
    err = (fth_err){0};
    OKE(RUN("--method=log --force-config", &err), &err);
    HAS(said, "0 images made, 8 existed");
    EQ_U64(hash_all(), whole);
    OKE(RUN("--method=log --overwrite", &err), &err);
    IS_TRUE(hash_all() != whole);
    OKE(RUN("--method=log", &err), &err);
}

TEST(some_wells_and_times)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("--wells=B01,D01 --times=1:2 --index-map --image-format=png", &err), &err);
    IS_TRUE(there(IMAGES "/B01_t0001_ch00_stitch.png") &&
            there(IMAGES "/D01_t0001_ch00_stitch.index.tif"));
    IS_TRUE(!there(IMAGES "/A01_t0001_ch00_stitch.png") &&
            !there(IMAGES "/B01_t0000_ch00_stitch.png"));
    IS(RUN("--wells=B01,H12,Q9", &err), FTH_E_COMMAND);
    HAS(err.text, "no position shows well 'H12'");
    HAS(err.text, "there is no well 'Q9'");
}

/* Wells and times are a choice, not a setting: a plate may be made in parts, in any order. */
TEST(parts_make_the_whole)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    const uint64_t whole = hash_all();
    shell("rm -r built_image_data metadata/built_metadata_files");
    OKE(RUN("--wells=B01", &err), &err);
    IS_TRUE(!there(IMAGES "/.ff_complete"));
    OKE(RUN("--wells=A01,D01 --times=1:2", &err), &err);
    IS_TRUE(!there(IMAGES "/.ff_complete"));
    char *text = text_of("metadata/built_metadata_files/20250101_toy_metadata.csv");
    HAS(text, "\n20250101_toy_A01,A01,1,YX1,1,");
    HAS(text, "\n20250101_toy_B01,B01,2,YX1,0,"); /* of the first run */
    HAS(text, "\n20250101_toy_B01,B01,2,YX1,1,");
    HAS_NOT(text, "C01");
    free(text);
    OKE(RUN("", &err), &err);
    HAS(said, "4 images made, 4 existed");
    EQ_U64(hash_all(), whole);
    shell("rm " IMAGES "/.ff_complete " IMAGES "/C01_t0001_ch00_stitch.jpg");
    OKE(RUN("--wells=C01", &err), &err); /* with the last part, it is complete */
    text = text_of(IMAGES "/.ff_complete");
    EQ_STR(text, "rows=8\n");
    free(text);
    IS(RUN("--wells=C01 --scale=experiment", &err), FTH_E_CONFIG);
    OKE(RUN("--scale=experiment --overwrite", &err), &err);
    err = (fth_err){0};
    IS(RUN("--scale=experiment --wells=C01", &err), FTH_E_CONFIG); /* its range is of all wells */
    HAS(err.text, "focus.wells");
}

/* The number of rows of metrics.csv, and of those that hold `name`. */
static int rows_with(const char *name)
{
    char *text = text_of(RUNS "/metrics.csv");
    int n = 0;
    for (const char *at = strchr(text, '\n'); at && at[1]; at = strchr(at + 1, '\n'))
        n += strncmp(at + 1, name, strlen(name)) == 0;
    free(text);
    return n;
}

/* Parts alone, in any order, leave the tables of one run; also where a table was lost on the way.
 */
TEST(parts_have_the_tables_of_the_whole)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    const uint64_t whole = hash_all();
    for (int lost = 0; lost < 3; lost++) {
        shell("rm -r built_image_data metadata/built_metadata_files");
        OKE(RUN("--wells=D01", &err), &err);
        OKE(RUN("--wells=B01,A01 --times=1:2", &err), &err);
        EQ_I64(rows_with(""), 4);
        if (lost == 1) shell("rm " RUNS "/planes.csv");
        if (lost == 2) shell("sed -i /D01_t0001/d " RUNS "/metrics.csv");
        OKE(RUN("--times=0:1", &err), &err);
        EQ_I64(rows_with("D01"), 2);
        OKE(RUN("--wells=C01", &err), &err);
        EQ_U64(hash_all(), whole);
        OKE(RUN("--wells=C01 --overwrite", &err), &err); /* its rows are found again in place */
        EQ_U64(hash_all(), whole);
    }
}

/* Of images that other settings made there are no rows, unless these are to stay. */
TEST(rows_are_of_images_of_these_settings)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    OKE(RUN("--wells=A01 --method=max --overwrite", &err), &err);
    EQ_I64(rows_with(""), 2);
    EQ_I64(rows_with("A01"), 2);
    make_plate();
    OKE(RUN("", &err), &err);
    shell("rm " IMAGES "/A01_t0000*");
    OKE(RUN("--wells=A01 --method=max --force-config", &err), &err);
    EQ_I64(rows_with(""), 8);
}

/* The table of the plate was wrong, and is corrected after a run. */
TEST(wells_that_moved_are_made_again)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("--index-map", &err), &err);
    const uint64_t first = hash_all();
    shell("cp " TABLE " table.csv && sed -i 's/^A01\\(.*\\),1$/A01\\1,x/; "
          "s/^B01\\(.*\\),2$/B01\\1,1/; s/x$/2/' " TABLE);
    OKE(call_with(&(limits){0}, &fo_verb_plan, "--index-map", &err), &err);
    HAS(said, "todo    4 images, 4 done");
    EQ_U64(hash_all(), first);
    IS(RUN("--index-map --metadata-only", &err), FTH_E_CONFIG);
    HAS(err.text, "series");
    EQ_U64(hash_all(), first);
    err = (fth_err){0};
    OKE(RUN("--index-map --wells=D01", &err), &err); /* nothing of the old A01 and B01 stays */
    HAS(said, "A01 was series 1 and is series 2");
    IS_TRUE(!there(IMAGES "/A01_t0000_ch00_stitch.jpg") &&
            !there(IMAGES "/B01_t0001_ch00_stitch.index.tif") &&
            there(IMAGES "/C01_t0001_ch00_stitch.index.tif") && !there(IMAGES "/.ff_complete"));
    OKE(RUN("--index-map", &err), &err);
    HAS(said, "4 images made, 4 existed");
    const uint64_t second = hash_all();
    IS_TRUE(second != first);
    OKE(RUN("--index-map --overwrite", &err), &err);
    EQ_U64(hash_all(), second);
    shell("cp table.csv " TABLE " && rm table.csv");
    OKE(RUN("--index-map", &err), &err);
    EQ_U64(hash_all(), first);
}

/* Another file under the same name: its images are not those that are there. */
TEST(another_raw_file_is_refused)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    const uint64_t whole = hash_all();
    shell("cp " RAW "/20250101_toy.nd2 copy && touch copy && cp copy " RAW "/20250101_toy.nd2");
    OKE(RUN("", &err), &err); /* a copy is the same file */
    HAS(said, "0 images made, 8 existed");
    shell("printf x >> " RAW "/20250101_toy.nd2");
    IS(RUN("", &err), FTH_E_CONFIG);
    HAS(err.text, "made from another file");
    HAS(err.hint, "--overwrite");
    shell("cp copy " RAW "/20250101_toy.nd2 && printf x | dd of=" RAW
          "/20250101_toy.nd2 bs=1 seek=100 conv=notrunc 2>/dev/null");
    err = (fth_err){0};
    IS(RUN("", &err), FTH_E_CONFIG);
    HAS(err.text, "has other contents");
    EQ_U64(hash_all(), whole);
    shell("mv copy " RAW "/20250101_toy.nd2");
    err = (fth_err){0};
    OKE(RUN("", &err), &err);
}

/* run.json says what made the images, whatever was asked for since. */
TEST(the_record_tells_what_made_the_images)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("", &err), &err);
    OKE(RUN("--method=log --force-config", &err), &err); /* keeps all of them */
    char *text = text_of(RUNS "/run.json");
    HAS(text, "\"method\": \"log-smooth\"");
    HAS(text, "\"mixed_settings\": false");
    free(text);
    OKE(RUN("", &err), &err);
    IS(RUN("--method=log", &err), FTH_E_CONFIG);
    shell("rm " IMAGES "/A01_t0000_ch00_stitch.jpg");
    err = (fth_err){0};
    OKE(RUN("--method=log --force-config", &err), &err); /* makes one */
    text = text_of(RUNS "/run.json");
    HAS(text, "\"mixed_settings\": true");
    free(text);
    IS(RUN("--method=log", &err), FTH_E_CONFIG);
    HAS(err.text, "with several settings");
    err = (fth_err){0};
    OKE(RUN("--method=log --overwrite --wells=B01", &err), &err); /* others stay as they were */
    IS(RUN("--method=log", &err), FTH_E_CONFIG);
    err = (fth_err){0};
    OKE(RUN("--method=log --overwrite", &err), &err);
    OKE(RUN("--method=log", &err), &err);
    make_plate();
    OKE(RUN("--metadata-only", &err), &err);
    OKE(RUN("--method=log", &err), &err); /* no image is there that had other settings */
}

TEST(the_new_layout)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("--layout=v2", &err), &err);
    IS_TRUE(there("built_image_data/20250101_toy/stitched_ff_images/A01/BF/A01_BF_t0001.tif"));
    char *text = text_of("experiment_metadata/20250101_toy/scope_metadata.csv");
    HAS(text, "\n20250101_toy,20250101_toy_B01,B01,20250101_toy_B01_BF_f0001,1,3.2347,36,40,4,1900,"
              "2025-01-01T00:00:00Z,1900,YX1,BF,,1\n");
    free(text);
    IS_TRUE(there("experiment_metadata/20250101_toy/plate_metadata.csv") &&
            there("experiment_metadata/20250101_toy/series_number_map.csv"));
    OKE(RUN("", &err), &err); /* images of the old layout are others: each has its record */
    HAS(said, "8 images made, 0 existed");
    IS_TRUE(there(RUNS "/run.json") && there(RUNS "/v2/run.json"));
}

static fth_status draw_channels(void *user, int64_t t, int64_t p, int64_t z, void *pixels,
                                bool *present, fth_err *err)
{
    (void)user, (void)present, (void)err;
    for (int i = 0; i < 3 * 400; i++)
        ((uint16_t *)pixels)[i] = (uint16_t)(i * (7 + t + p + z) % (100 * (1 + i / 400)));
    return FTH_OK;
}

/* Names that become one word: an image, and a row, of each all the same. */
TEST(channels_of_one_name_have_images_of_their_own)
{
    static const char *const channels[] = {"EYES - Dia", "EYES - GFP", "Empty"};
    static const char *const names[] = {"BF", "GFP", "BF_ch02"};
    const fth_nd2_options o = {
        .size = {2, 4, 3, 3, 20, 20}, .dtype = FTH_U16, .um_per_px = 1, .channel = channels};
    char path[2200];
    fth_mem *mem = t_mem(1 << 26);
    fth_err err = {0};
    make_plate();
    snprintf(path, sizeof path, "%s/" RAW "/20250101_toy.nd2", root);
    OKE(fth_nd2_write(mem, path, &o, draw_channels, NULL, &err), &err);
    OK(fth_mem_destroy(mem, NULL));
    OKE(RUN("--layout=v2 --channels=each", &err), &err);
    char *text = text_of("experiment_metadata/20250101_toy/scope_metadata.csv");
    for (int c = 0; c < 3; c++) {
        snprintf(path, sizeof path,
                 "built_image_data/20250101_toy/stitched_ff_images/B01/%s/"
                 "B01_%s_t0001.tif",
                 names[c], names[c]);
        IS_TRUE(there(path));
        snprintf(path, sizeof path, "B01_%s_f0001,1,", names[c]);
        HAS(text, path);
    }
    free(text);
}

TEST(metadata_alone)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("--metadata-only", &err), &err);
    IS_TRUE(there("metadata/built_metadata_files/20250101_toy_metadata.csv"));
    IS_TRUE(!there(IMAGES "/A01_t0000_ch00_stitch.jpg") && !there(IMAGES "/.ff_complete"));
}

TEST(compat_is_the_same_for_any_batch_of_ours)
{
    fth_err err = {0};
    make_plate();
    OKE(RUN("--compat=morphseq --compat-batch=3", &err), &err);
    const uint64_t one = hash_all();
    OKE(call_with(&(limits){3, 0}, &fo_verb_run, "--compat=morphseq --compat-batch=3 --overwrite",
                  &err),
        &err);
    EQ_U64(hash_all(), one);
    OKE(RUN("--compat=morphseq --compat-batch=1 --overwrite", &err), &err);
    IS_TRUE(hash_all() != one); /* its accident: stacks of a batch share their range */
}

TEST(all_problems_are_told_and_nothing_is_written)
{
    fth_err err = {0};
    make_plate();
    shell("cp " RAW "/20250101_toy.nd2 " RAW "/second.nd2 && rm " TABLE);
    IS(RUN("", &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "second.nd2");
    HAS(err.text, "well_metadata");
    IS_TRUE(!there(RUNS "/run.json"));
    shell("test ! -e built_image_data");
    err = (fth_err){0};
    make_plate();
    shell("rm " RAW "/20250101_toy.nd2");
    IS(RUN("", &err), FTH_E_FILE_FORMAT);
    err = (fth_err){0};
    make_plate();
    shell("sed -i 's/^well,/wall,/' " TABLE); /* and that it maps no well follows from it */
    IS(RUN("", &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "no column \"well\"");
    HAS_NOT(err.text, "series_number_map");
    err = (fth_err){0};
    make_plate();
    shell("sed -i 2d " TABLE); /* A01 has images and no row */
    IS(RUN("--map=implicit", &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "A01");
    err = (fth_err){0};
    IS(RUN("--microscope=Zeiss", &err), FTH_E_COMMAND);
    HAS(err.text, "--microscope: expected ");
    err = (fth_err){0};
    make_plate();
    shell("printf 'not an nd2' > " RAW "/20250101_toy.nd2");
    IS(RUN("", &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "20250101_toy.nd2");
}

/* The microscope was stopped: stacks that have no frame are neither made nor there. */
TEST(an_acquisition_that_was_ended_early)
{
    fth_err err = {0};
    make_plate();
    shell("cp " RAW
          "/20250101_toy.nd2 whole && head -c $(($(stat -c %%s whole) * 7 / 10)) whole > " RAW
          "/20250101_toy.nd2");
    for (int i = 0; i < 2; i++) { /* the second time, too */
        OKE(RUN("", &err), &err);
        HAS(said, i ? "0 images made, 6 existed, 0 failed, 2 without frames"
                    : "6 images made, 0 existed, 0 failed, 2 without frames");
        HAS(said, i ? "todo    0 images, 6 done" : "todo    6 images, 0 done");
        HAS(said, "note    D01: frames_available=1/2\n");
        HAS_NOT(said, "A01: frames");
    }
    char *text = text_of(RUNS "/run.json");
    HAS(text, "\"images_without_frames\": 2");
    free(text);
    shell("mv whole " RAW "/20250101_toy.nd2");
    IS(RUN("", &err), FTH_E_CONFIG); /* stacks that lacked planes would stay as they are */
    HAS(err.text, "made from another file");
}

TEST(a_plan_writes_nothing)
{
    fth_err err = {0};
    make_plate();
    OKE(call_with(&(limits){0}, &fo_verb_plan, "", &err), &err);
    HAS(said, "wells   4 mapped by series_number_map");
    HAS(said, "todo    8 images, 0 done");
    shell("test ! -e built_image_data");
}

TEST_MAIN()
