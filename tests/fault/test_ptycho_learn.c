/* test_ptycho_learn.c - building blocks, a training and an inference that run out of memory or of
 * disk at many points: a status says so, and nothing stays allocated or half written.
 *
 * seconds: 15 */
#include "instruments/ptycho/blocks/block.h"
#include "instruments/ptycho/infer/infer.h"
#include "instruments/ptycho/train/train.h"
#include "testing/files.h"

#include <fathom/files.h>
#include <math.h>
#include <string.h>

typedef struct call {
    const fth_verb *verb;
    const char *word[3];
    const char *out;
    int64_t fail_alloc, fail_write;
} call;

static const char *value_of(void *user, const char *flag)
{
    static const char *const flags[][2] = {
        {"n_filters_scale", "1"}, {"n_groups", "4"}, {"batch_size", "2"},
        {"nepochs", "1"},         {"force", ""},     {"stitch_crop", "16"}};
    const call *c = user;
    if (strcmp(flag, "out") == 0) return c->out;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(flags[i][0], flag) == 0) return flags[i][1];
    return NULL;
}

static fth_status run(call *c, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    char *text = NULL, word[3][FTH_PATH], *arg[3];
    size_t bytes = 0;
    int n = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = (uint64_t)1 << 28;
    opt.mem.fail_alloc = c->fail_alloc;
    opt.mem.fail_write = c->fail_write;
    opt.threads = 1;
    *err = (fth_err){0};
    fth_status s = fth_context_create(&ctx, &opt, err);
    if (s != FTH_OK) return s;
    for (; n < 3 && c->word[n]; n++) {
        snprintf(word[n], sizeof word[n], "%s", c->word[n]);
        arg[n] = word[n];
    }
    FILE *out = open_memstream(&text, &bytes);
    s = c->verb->run(ctx, n, arg, value_of, c, out, err);
    fclose(out);
    free(text);
    OK(fth_context_destroy(ctx, NULL)); /* nothing stays allocated */
    return s;
}

/* Every `step`-th request and every `write`-th write fails until one run gets through. */
static void survive(call c, int64_t step, int64_t write)
{
    fth_err err;
    for (int kind = 0; kind < 2; kind++) {
        int64_t n = 1;
        for (;; n += kind ? write : step) {
            c.fail_alloc = kind ? 0 : n;
            c.fail_write = kind ? n : 0;
            const fth_status s = run(&c, &err);
            if (s == FTH_OK) break;
            IS_TRUE(err.text[0] != 0);
            ONE_OF(s, kind ? FTH_E_FILE_WRITE : FTH_E_NOMEM, FTH_E_BUDGET);
            IS_TRUE(n < 100000);
        }
        IS_TRUE(n > 1);
    }
}

static void no_remains(const char *folder)
{
    fth_texts *left = NULL;
    fth_mem *mem = t_mem(1 << 20);
    OK(fth_folder_list(&left, mem, folder, NULL));
    for (int64_t i = 0; i < fth_texts_count(left); i++)
        IS_TRUE(fth_texts_get(left, i)[0] != '.' || strcmp(fth_texts_get(left, i), ".fathom") == 0);
    fth_texts_free(left);
    OK(fth_mem_destroy(mem, NULL));
}

#define PTYCHO "tests/golden/ptycho/"

TEST(building_blocks)
{
    static const struct {
        const char *name, *file;
        int64_t step;
    } blocks[] = {{"translate", PTYCHO "g1_translate.npz", 7},
                  {"merge", PTYCHO "g2_reassemble.npz", 29},
                  {"diffract", PTYCHO "g3_diffract_loss.npz", 29},
                  {"loss", PTYCHO "g3_diffract_loss.npz", 29}};
    char out[FTH_PATH];
    snprintf(out, sizeof out, "%s", t_temp_path("out.npz"));
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        survive((call){.verb = &pt_verb_op, .word = {blocks[i].name, blocks[i].file, out}},
                blocks[i].step, 2);
}

/* Eight patterns of 64 x 64 with a round probe. */
static void write_scan(const char *path)
{
    enum { M = 8, N = 64 };
    static const fth_file_item item[] = {{"xcoords", FTH_F64, 1, {M}, NULL},
                                         {"ycoords", FTH_F64, 1, {M}, NULL},
                                         {"diff3d", FTH_F32, 3, {M, N, N}, NULL},
                                         {"probeGuess", FTH_C64, 2, {N, N}, NULL}};
    static double xy[2][M];
    static float amp[M * N * N];
    static fth_c64 probe[N * N];
    const void *const data[] = {xy[0], xy[1], amp, probe};
    fth_mem *mem = t_mem(1 << 24);
    fth_npz_writer *w = NULL;
    t_random r = t_random_make(1);
    for (int i = 0; i < M; i++) {
        xy[0][i] = 40 + 3 * i % 7;
        xy[1][i] = 40 + 5 * i % 9;
    }
    for (int i = 0; i < M * N * N; i++) amp[i] = (float)fabs(t_random_normal(&r));
    for (int i = 0; i < N * N; i++) {
        const double y = i / N - 31.5, x = i % N - 31.5;
        probe[i] = (fth_c64){(float)exp(-(x * x + y * y) / 100), 0};
    }
    OK(fth_npz_create(&w, mem, path, item, 4, NULL));
    for (int i = 0; i < 4; i++) {
        fth_sink sink;
        OK(fth_npz_sink(w, item[i].name, &sink, NULL));
        OK(fth_sink_put(&sink, data[i], NULL));
    }
    OK(fth_npz_commit(w, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(training_and_inference)
{
    char scan[FTH_PATH], model[FTH_PATH + 32], out[FTH_PATH], recon[FTH_PATH];
    snprintf(scan, sizeof scan, "%s", t_temp_path("scan.npz"));
    snprintf(out, sizeof out, "%s", t_temp_path("model"));
    snprintf(recon, sizeof recon, "%s", t_temp_path("recon"));
    snprintf(model, sizeof model, "%s/model.safetensors", out);
    write_scan(scan);
    survive((call){.verb = &pt_verb_train, .word = {scan}, .out = out}, 1009, 9);
    no_remains(out);
    survive((call){.verb = &pt_verb_infer, .word = {model, scan}, .out = recon}, 809, 9);
    no_remains(recon);
}

TEST_MAIN()
