/* focus_run.c - `fathom focus run` of a made-up plate: reading, fusing and encoding at once.
 *
 * The plate is an ND2 file of full-size stacks in a folder for temporary files; --stacks says how
 * many. From the page cache, against the kernels alone on a stack in memory: what is missing to
 * 1.00 is what reading and encoding hold up. From the disk, against reading the file from front to
 * back. */
#include "focus.h"

#include "instruments/focus/process/command.h"
#include "instruments/focus/toy/scene.h"
#include "instruments/focus/toy/toy.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char exp_name[] = "20250101_toy";

typedef struct plate {
    const bench *b;
    char root[4000], file[4100];
    int64_t stacks;
    int threads;
    const char *method;
    bool from_disk;
    focus_stack kernels;
    fth_status status;
} plate;

/* ---- the plate ---- */

static bool fail(const char *what, const fth_err *err)
{
    fprintf(stderr, "%s: %s\n", what, err ? err->text : strerror(errno));
    return false;
}

static bool make_plate(plate *p, fth_context *ctx)
{
    const char *tmp = getenv("TMPDIR");
    fth_err err = {0};
    snprintf(p->root, sizeof p->root, "%.3000s/fathom-bench-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(p->root)) return fail(p->root, NULL);
    snprintf(p->file, sizeof p->file, "%s/raw_image_data/YX1/%s/%s.nd2", p->root, exp_name,
             exp_name);
    const fo_toy toy = {.dir = p->root,
                        .exp = exp_name,
                        .wells = p->stacks,
                        .times = 1,
                        .planes = FOCUS_PLANES,
                        .rows = FOCUS_ROWS,
                        .columns = FOCUS_COLUMNS,
                        .seed = 1,
                        .ctx = ctx};
    return fo_toy_make_yx1(&toy, fth_context_mem(ctx), &err) == FTH_OK || fail(p->file, &err);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_plate(const plate *p)
{
    if (p->file[0]) (void)nftw(p->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A specimen of the plate in memory, for the kernels. */
static bool draw_stack(focus_stack *s)
{
    fo_scene scene;
    fth_err err = {0};
    if (fo_scene_create(&scene, fth_context_mem(s->p.ctx), FOCUS_ROWS, FOCUS_COLUMNS, FOCUS_PLANES,
                        &err) != FTH_OK)
        return fail("a specimen", &err);
    fo_scene_make(&scene, 1000, 0);
    for (int64_t z = 0; z < FOCUS_PLANES; z++)
        fo_scene_draw(&scene, z, s->data + z * FOCUS_ROWS * FOCUS_COLUMNS);
    fo_scene_free(&scene);
    return true;
}

/* ---- ours ---- */

static const char *value_of(void *user, const char *flag)
{
    const plate *p = user;
    const char *const flags[][2] = {{"data-root", p->root}, {"exp", exp_name},
                                    {"microscope", "YX1"},  {"overwrite", ""},
                                    {"method", p->method},  {"quiet", ""}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(flags[i][0], flag) == 0) return flags[i][1];
    return NULL;
}

/* The file is to come from the disk: clean pages leave the cache. */
static void forget_file(const plate *p)
{
    const int fd = open(p->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void run_plate(void *arg)
{
    plate *p = arg;
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    char *text = NULL;
    size_t bytes = 0;
    if (p->status != FTH_OK) return;
    fth_options_default(&opt);
    opt.threads = p->threads;
    p->status = fth_context_create(&ctx, &opt, &err);
    FILE *out = open_memstream(&text, &bytes);
    if (p->status == FTH_OK && out)
        p->status = fo_verb_run.run(ctx, 0, NULL, value_of, p, out, &err);
    if (out) fclose(out);
    free(text);
    if (p->status != FTH_OK) (void)fail("focus run", &err);
    (void)fth_context_destroy(ctx, NULL);
}

/* ---- what bounds it ---- */

static double run_kernels(void *arg)
{
    plate *p = arg;
    const double start = bench_now(p->b, p->threads);
    for (int64_t i = 0; i < p->stacks; i++) bench_go(&p->kernels.p);
    return bench_now(p->b, p->threads) - start;
}

static double read_file(void *arg)
{
    enum { PIECE = 4 << 20 };
    const plate *p = arg;
    char *piece = bench_array(PIECE);
    const int fd = open(p->file, O_RDONLY | O_CLOEXEC);
    const double start = bench_now(p->b, 1);
    while (fd >= 0 && read(fd, piece, PIECE) > 0) {
    }
    const double seconds = bench_now(p->b, 1) - start;
    if (fd >= 0) close(fd);
    free(piece);
    forget_file(p); /* for the turn of ours */
    return seconds;
}

static void run_from_disk(void *arg)
{
    run_plate(arg);
    forget_file(arg);
}

static void compare(bench *b, plate *p, const char *name)
{
    char shape[64];
    snprintf(shape, sizeof shape, "%lld x 17x2189x1152", (long long)p->stacks);
    const bench_pair pair = {.name = name,
                             .shape = shape,
                             .threads = p->threads,
                             .amount = (double)p->stacks,
                             .unit = "stack/s",
                             .ours = p->from_disk ? run_from_disk : run_plate,
                             .peer = p->from_disk ? read_file : run_kernels,
                             .peer_name = p->from_disk ? "sequential read" : "kernels alone",
                             .bar = p->from_disk ? 0.9 : 0.85,
                             .pairs = 3,
                             .turns = 2,
                             .arg = p};
    bench_pairs(b, &pair);
    if (p->status != FTH_OK) b->failed++;
}

static void one(bench *b, plate *p, const char *name, fo_method method, int threads, bool from_disk)
{
    if (!bench_wants(b, name)) return;
    p->threads = threads;
    p->method = fo_method_names[method];
    p->from_disk = from_disk;
    p->kernels = (focus_stack){.b = b};
    focus_stack_make(&p->kernels, method, threads);
    if (p->kernels.p.status == FTH_OK && draw_stack(&p->kernels)) {
        focus_stack_plan(&p->kernels);
        if (from_disk) forget_file(p);
        compare(b, p, name);
    }
    focus_stack_drop(&p->kernels);
}

void bench_focus_run(bench *b)
{
    plate p = {.b = b, .stacks = b->stacks};
    if (!bench_wants(b, "focus_run") && !bench_wants(b, "focus_run_2") &&
        !bench_wants(b, "focus_run_disk"))
        return;
    fth_options opt;
    fth_context *ctx = NULL;
    fth_options_default(&opt);
    opt.threads = 2;
    bool made = fth_context_create(&ctx, &opt, NULL) == FTH_OK;
    made = made && make_plate(&p, ctx);
    (void)fth_context_destroy(ctx, NULL);
    if (made) {
        one(b, &p, "focus_run", FO_LOG_SMOOTH, 1, false);
        one(b, &p, "focus_run_2", FO_LOG_SMOOTH, 2, false);
        one(b, &p, "focus_run_disk", FO_MAX, 2, true);
    } else
        b->failed++;
    remove_plate(&p);
}
