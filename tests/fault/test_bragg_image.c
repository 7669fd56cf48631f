/* test_bragg_image.c - every request for memory and every write of an image fails once.
 *
 * After each failure: a status that says so, nothing held, no temporary file, and the files of the
 * run before as they were, unless it was the naming of the new ones that failed: then each is
 * whole, the old or the new. Outputs that cannot be written are refused before anything is
 * computed. seconds: 10 */
#include "instruments/bragg/image/image.h"
#include "testing/bragg/bragg_experiment.h"
#include "testing/io/files.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 6 };
static const char *const names[FILES] = {"image.bin", "image.img", "image.pgm",
                                         "noise.img", "smv32.img", "image.cbf"};

typedef struct bench {
    tb_case scene;
    fth_context *ctx;
    br_experiment e;
    fth_err err;
    char text[4000];
    int threads;
    uint64_t budget;
    bool preview;
    int64_t checkpoint;
} bench;

/* A small scene with a mask, interpolation and its latch: every pass is needed. */
static void make_scene(tb_case *c, int64_t pixels)
{
    tb_make(c);
    tb_detector(c, pixels, 0.4 * 64 / (double)pixels, 61.3);
    tb_table(c, "tests/golden/bragg/inputs/P1_tiny.hkl");
    c->s.default_F = 5;
    c->s.interpolate = 1;
    c->s.masked = 1;
    c->mask = malloc((size_t)(pixels * pixels) * sizeof *c->mask);
    for (int64_t i = 0; i < pixels * pixels; i++) c->mask[i] = i % 7 != 0;
    tb_ready(c);
}

static fth_status fill(bench *b)
{
    br_outputs *o = &b->e.out;
    FTH_TRY(te_fill(&b->e, fth_context_mem(b->ctx), &b->scene, &b->err));
    char *const path[FILES] = {o->float_file, o->int_file,   o->pgm_file,
                               o->noise_file, o->smv32_file, o->cbf_file};
    for (int i = 0; i < FILES; i++) snprintf(path[i], FTH_PATH, "%s/%s", t_temp_dir(), names[i]);
    o->progress = true;
    return FTH_OK;
}

/* One image in a context of its own; `change` alters the experiment before. */
static fth_status run(bench *b, int64_t fail_alloc, int64_t fail_write, void (*change)(bench *))
{
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = b->threads ? b->threads : 1;
    opt.mem.budget_bytes = b->budget ? b->budget : 64 << 20;
    opt.mem.fail_alloc = fail_alloc;
    opt.mem.fail_write = fail_write;
    fth_err_clear(&b->err);
    b->ctx = NULL;
    fth_status s = fth_context_create(&b->ctx, &opt, &b->err);
    if (s != FTH_OK) return s;
    s = fill(b);
    if (s == FTH_OK && change) change(b);
    memset(b->text, 0, sizeof b->text);
    FILE *out = fmemopen(b->text, sizeof b->text - 1, "w");
    br_statistics stats;
    const br_image_job job = {.context = b->ctx,
                              .experiment = &b->e,
                              .out = out,
                              .checkpoint = b->checkpoint,
                              .preview = b->preview ? t_temp_path("preview.png") : NULL};
    if (s == FTH_OK) s = br_image_make(&job, &stats, &b->err);
    fclose(out);
    te_empty(&b->e);
    fth_err leak = {0};
    OKE(fth_context_destroy(b->ctx, &leak), &leak);
    return s;
}

typedef struct folder {
    unsigned char *data[FILES];
    size_t bytes[FILES];
} folder;

static folder look(void)
{
    folder f = {0};
    for (int i = 0; i < FILES; i++)
        if (t_file_exists(t_temp_path(names[i])))
            f.data[i] = t_file_read(t_temp_path(names[i]), &f.bytes[i]);
    return f;
}

static void forget(folder *f)
{
    for (int i = 0; i < FILES; i++) free(f->data[i]);
}

static void set_old(void)
{
    for (int i = 0; i < FILES; i++) t_file_write(t_temp_path(names[i]), names[i], 9);
}

/* How many files are the new ones; the others must be the old ones. */
static int new_files(const folder *want)
{
    folder now = look();
    int n = 0;
    for (int i = 0; i < FILES; i++) {
        IS_TRUE(now.data[i] != NULL);
        if (now.bytes[i] == want->bytes[i] && !memcmp(now.data[i], want->data[i], want->bytes[i])) {
            n++;
            continue;
        }
        EQ_U64(now.bytes[i], 9);
        SAME_BYTES(now.data[i], names[i], 9);
    }
    forget(&now);
    return n;
}

static void start(bench *b, int64_t pixels)
{
    memset(b, 0, sizeof *b);
    make_scene(&b->scene, pixels);
}

static bench *the_bench(int64_t pixels)
{
    bench *b = malloc(sizeof *b);
    start(b, pixels);
    return b;
}

static void drop(bench *b)
{
    tb_free(&b->scene);
    free(b);
}

TEST(every_failure_leaves_whole_files)
{
    bench *b = the_bench(16);
    OKE(run(b, 0, 0, NULL), &b->err);
    HAS(b->text, "WARNING: out of range for three point interpolation");
    HAS(b->text, " photons on noise image (");
    folder want = look();
    EQ_I64(t_file_count(), FILES);
    b->preview = true;
    for (int writes = 0; writes < 2; writes++) {
        int64_t failed = 0, half = 0, quiet = 0;
        for (int64_t n = 1; quiet < 3; n += 1 + (writes ? 0 : n / 40)) {
            set_old();
            remove(t_temp_path("preview.png"));
            const fth_status s = run(b, writes ? 0 : n, writes ? n : 0, NULL);
            EQ_I64(t_file_count(), FILES + t_file_exists(t_temp_path("preview.png")));
            const int done = new_files(&want);
            quiet = s == FTH_OK ? quiet + 1 : 0;
            if (s == FTH_OK) {
                EQ_I64(done, FILES);
                continue;
            }
            if (s != (writes ? FTH_E_FILE_WRITE : FTH_E_NOMEM)) FAIL("%s", b->err.text);
            IS_TRUE(b->err.text[0] != '\0');
            half += done > 0;
            failed++;
        }
        printf("%lld %s failed, %lld while files got their names\n", (long long)failed,
               writes ? "writes" : "requests", (long long)half);
        IS_TRUE(failed >= (writes ? 15 : 60));
        IS_TRUE(half <= (writes ? 2 * (FILES - 2) : 0)); /* sync and rename of each but the first */
    }
    IS_TRUE(t_file_exists(t_temp_path("preview.png")));
    remove(t_temp_path("preview.png"));
    forget(&want);
    drop(b);
}

/* With checkpoints: one stays only when rows are in it, and what comes after is the same. */
TEST(failures_with_checkpoints)
{
    bench *b = the_bench(16);
    OKE(run(b, 0, 0, NULL), &b->err);
    folder want = look();
    const char *state = "image.bin.checkpoint";
    int64_t failed = 0, kept = 0, quiet = 0;
    b->checkpoint = 4;
    for (int64_t n = 1; quiet < 3; n += 1 + n / 30) {
        set_old();
        const fth_status s = run(b, n, 0, NULL);
        quiet = s == FTH_OK ? quiet + 1 : 0;
        failed += s != FTH_OK;
        if (s != FTH_OK) IS(s, FTH_E_NOMEM);
        const bool there = t_file_exists(t_temp_path(state));
        kept += there;
        IS_TRUE(!there || s != FTH_OK);
        EQ_I64(t_file_count(), FILES + there);
        if (s == FTH_OK) EQ_I64(new_files(&want), FILES);
    }
    printf("%lld requests failed, %lld left a checkpoint\n", (long long)failed, (long long)kept);
    IS_TRUE(failed > 50 && kept > 0);
    forget(&want);
    drop(b);
}

static void no_folder(bench *b)
{
    snprintf(b->e.out.pgm_file, FTH_PATH, "%s/none/image.pgm", t_temp_dir());
}
static void a_folder(bench *b)
{
    snprintf(b->e.out.noise_file, FTH_PATH, "%s", t_temp_dir());
}
static void one_name(bench *b)
{
    memcpy(b->e.out.noise_file, b->e.out.int_file, FTH_PATH);
}

TEST(what_cannot_be_written_is_refused_first)
{
    bench *b = the_bench(16);
    set_old();
    folder old = look();
    void (*const change[])(bench *) = {no_folder, a_folder, one_name};
    const char *const part[] = {"none/image.pgm", "not a regular file", "two outputs"};
    for (int i = 0; i < 3; i++) {
        IS(run(b, 0, 0, change[i]), FTH_E_FILE_WRITE);
        HAS(b->err.text, part[i]);
        EQ_STR(b->text, "");
        EQ_I64(t_file_count(), FILES);
        EQ_I64(new_files(&old), FILES);
    }
    forget(&old);
    drop(b);
}

static void to_null(bench *b)
{
    snprintf(b->e.out.float_file, FTH_PATH, "/dev/null");
    snprintf(b->e.out.pgm_file, FTH_PATH, "/dev/null");
}
static void only_float(bench *b)
{
    b->e.out.int_file[0] = b->e.out.pgm_file[0] = b->e.out.noise_file[0] = '\0';
    b->e.out.smv32_file[0] = b->e.out.cbf_file[0] = '\0';
}

/* Pixels may go nowhere; the other files and the text are as ever. */
TEST(devices_and_files_that_are_not_wanted)
{
    bench *b = the_bench(16);
    OKE(run(b, 0, 0, NULL), &b->err);
    folder want = look();
    set_old();
    OKE(run(b, 0, 0, to_null), &b->err);
    HAS(b->text, "writing /dev/null as 256 4-byte floats\n");
    EQ_I64(new_files(&want), FILES - 2);
    struct stat st;
    IS_TRUE(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    set_old();
    OKE(run(b, 0, 0, only_float), &b->err);
    EQ_I64(new_files(&want), 1);
    HAS_NOT(b->text, "2-byte");
    EQ_I64(t_file_count(), FILES);
    forget(&want);
    drop(b);
}

/* The same bytes in any budget, with one worker or two. */
TEST(budget_and_workers_change_no_byte)
{
    bench *b = the_bench(200);
    OKE(run(b, 0, 0, NULL), &b->err);
    folder want = look();
    char text[sizeof b->text];
    memcpy(text, b->text, sizeof text);
    for (int k = 0; k < 4; k++) {
        b->threads = 1 + k % 2;
        b->budget = k < 2 ? 6528 << 10 : 6084 << 10; /* 5.6 MiB are set apart for libraries */
        set_old();
        OKE(run(b, 0, 0, NULL), &b->err);
        EQ_I64(new_files(&want), FILES);
        EQ_STR(b->text, text);
    }
    forget(&want);
    drop(b);
}

TEST_MAIN()
