/* test_ptycho_learn.c - building blocks, a training and an inference that run out of memory or of
 * disk at many points: a status says so, and nothing stays allocated or half written.
 *
 * seconds: 20 */
#include "instruments/ptycho/blocks/block.h"
#include "instruments/ptycho/infer/infer.h"
#include "instruments/ptycho/train/train.h"
#include "testing/full.h"
#include "testing/ptycho/ptycho_faults.h"

#include <math.h>

static const char *const flags[] = {"n_filters_scale",
                                    "1",
                                    "n_groups",
                                    "4",
                                    "batch_size",
                                    "2",
                                    "nepochs",
                                    "1",
                                    "force",
                                    "",
                                    "stitch_crop",
                                    "16",
                                    "keep",
                                    "best",
                                    "realspace_weight",
                                    "1",
                                    "realspace_mae_weight",
                                    "1",
                                    "probe_mask",
                                    "true",
                                    NULL};

static void survive(const fth_verb *verb, const char *const word[3], const char *out, int64_t step,
                    int64_t write)
{
    pf_survive((pf_call){.verb = verb,
                         .word = {word[0], word[1], word[2]},
                         .flag = flags,
                         .out = out,
                         .memory = (uint64_t)1 << 28},
               step, write, NULL);
    if (out) pf_no_remains(out);
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
        survive(&pt_verb_op, (const char *[3]){blocks[i].name, blocks[i].file, out}, NULL,
                blocks[i].step, 2);
}

/* Eight patterns of 64 x 64 with a round probe, a true object and a mask for each. */
static void write_scan(const char *path)
{
    enum { M = 8, N = 64, SIDE = 90 };
    static const fth_file_item item[] = {{"xcoords", FTH_F64, 1, {M}, NULL},
                                         {"ycoords", FTH_F64, 1, {M}, NULL},
                                         {"diff3d", FTH_F32, 3, {M, N, N}, NULL},
                                         {"probeGuess", FTH_C64, 2, {N, N}, NULL},
                                         {"objectGuess", FTH_C64, 2, {SIDE, SIDE}, NULL},
                                         {"mask", FTH_BOOL, 3, {M, N, N}, NULL}};
    static double xy[2][M];
    static float amp[M * N * N];
    static fth_c64 probe[N * N], object[SIDE * SIDE];
    static uint8_t mask[M * N * N];
    const void *const data[] = {xy[0], xy[1], amp, probe, object, mask};
    fth_mem *mem = t_mem(1 << 24);
    fth_npz_writer *w = NULL;
    t_random r = t_random_make(1);
    for (int i = 0; i < M; i++) {
        xy[0][i] = 40 + 3 * i % 7;
        xy[1][i] = 40 + 5 * i % 9;
    }
    for (int i = 0; i < M * N * N; i++) {
        amp[i] = (float)fabs(t_random_normal(&r));
        mask[i] = i % 97 != 0;
    }
    for (int i = 0; i < SIDE * SIDE; i++) object[i] = (fth_c64){0.5f + (float)(i % 7) / 9, 0.1f};
    for (int i = 0; i < N * N; i++) {
        const double y = i / N - 31.5, x = i % N - 31.5;
        probe[i] = (fth_c64){(float)exp(-(x * x + y * y) / 100), 0};
    }
    OK(fth_npz_create(&w, mem, path, item, 6, NULL));
    for (int i = 0; i < 6; i++) {
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
    const int64_t wider = t_full() ? 1 : 6; /* a training for each */
    survive(&pt_verb_train, (const char *[3]){scan}, out, 1009 * wider, 9 * wider);
    survive(&pt_verb_infer, (const char *[3]){model, scan}, recon, 809 * wider, 9 * wider);
}

TEST_MAIN()
