/* test_focus_stack.c - `fathom focus stack`: files to images, maps and tables, and every refusal.
 *
 * seconds: 4 */
#include "instruments/focus/stack/stack.h"
#include "testing/io/nd2_made.h"

#include <fathom/images.h>
#include <fathom/pictures.h>
#include <fathom/tiff.h>

#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 24 };

/* A command line: words that are no flags, and flags with their values. */
typedef struct line {
    const char *arg[MOST], *flag[MOST], *value[MOST];
    int n_args, n_flags;
} line;

static const char *value_of(void *user, const char *flag)
{
    const line *l = user;
    for (int i = 0; i < l->n_flags; i++)
        if (strcmp(l->flag[i], flag) == 0) return l->value[i];
    return NULL;
}

/* "a.npy -o out.png --method log" with %s filled in before; words are cut in place. */
static line parse(char *text)
{
    line l = {0};
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) {
        if (strcmp(w, "-o") == 0) {
            l.flag[l.n_flags] = "output";
            l.value[l.n_flags++] = strtok(NULL, " ");
        } else if (strncmp(w, "--", 2) == 0) {
            char *eq = strchr(w, '=');
            if (eq) *eq = '\0';
            l.flag[l.n_flags] = w + 2;
            l.value[l.n_flags++] = eq ? eq + 1 : "";
        } else
            l.arg[l.n_args++] = w;
    }
    return l;
}

typedef struct limits {
    uint64_t budget;
    int threads;
    int64_t fail_alloc, fail_write;
} limits;

static char said[20000];

/* Flags with values are written --flag=value here. "@" stands for the folder of the test. */
static fth_status call_with(const limits *lim, fth_err *err, const char *fmt, ...) FTH_PRINTF(3, 4);
static fth_status call_with(const limits *lim, fth_err *err, const char *fmt, ...)
{
    char with[4000], text[8000];
    size_t n = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(with, sizeof with, fmt, args);
    va_end(args);
    for (const char *c = with; *c && n < sizeof text - 1; c++)
        if (*c == '@')
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", t_temp_dir());
        else
            text[n++] = *c;
    text[n] = '\0';
    line l = parse(text);
    fth_context *ctx = NULL;
    fth_options opt;
    char *out_text = NULL;
    size_t bytes = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = lim->budget ? lim->budget : 1 << 28;
    opt.mem.fail_alloc = lim->fail_alloc;
    opt.mem.fail_write = lim->fail_write;
    opt.threads = lim->threads ? lim->threads : 1;
    fth_status s = fth_context_create(&ctx, &opt, err);
    if (s != FTH_OK) return s;
    FILE *out = open_memstream(&out_text, &bytes);
    s = fo_verb_stack.run(ctx, l.n_args, (char *const *)(uintptr_t)l.arg, value_of, &l, out, err);
    fclose(out);
    snprintf(said, sizeof said, "%s", out_text);
    free(out_text);
    OK(fth_context_destroy(ctx, NULL));
    return s;
}
#define CALL(err, ...) call_with(&(limits){0}, (err), __VA_ARGS__)

#define STACK "tests/golden/focus/stack_u16.npy"
#define ND2 "tests/golden/focus/synth_T2P3Z5.nd2"
enum { Z = 7, Y = 96, X = 80 };

static const char *at(const char *name)
{
    return t_temp_path(name);
}

/* Our TIFF files end with their pixels. */
static void load_end(const char *name, int64_t bytes, void *out)
{
    size_t all;
    unsigned char *file = t_file_read(at(name), &all);
    IS_TRUE(memcmp(file, "II*", 3) == 0 && (int64_t)all > bytes);
    memcpy(out, file + all - bytes, (size_t)bytes);
    free(file);
}

static void load(const char *name, fth_dtype dtype, int64_t n, void *out)
{
    const char *end = strrchr(name, '.');
    if (end && (strncmp(end, ".tif", 4) == 0 || strcmp(end, ".x") == 0)) {
        load_end(name, n * fth_dtype_size(dtype), out);
        return;
    }
    fth_mem *mem = t_mem(1 << 26);
    fth_picture p;
    fth_err err = {0};
    OKE(fth_picture_load(mem, at(name), &p, &err), &err);
    EQ_I64(p.dtype, dtype);
    EQ_I64(p.height * p.width, n);
    memcpy(out, p.pixels, (size_t)(n * fth_dtype_size(dtype)));
    fth_picture_free(mem, &p);
    OK(fth_mem_destroy(mem, NULL));
}

static void load_npy(const char *path, fth_dtype dtype, int64_t n, void *out)
{
    fth_mem *mem = t_mem(1 << 26);
    fth_tensor *t = NULL;
    OK(fth_npy_load(mem, path, "x", &t, NULL));
    EQ_I64(fth_tensor_dtype(t), dtype);
    EQ_U64(fth_tensor_bytes(t), (uint64_t)(n * fth_dtype_size(dtype)));
    memcpy(out, fth_tensor_data(t), fth_tensor_bytes(t));
    OK(fth_tensor_release(t));
    OK(fth_mem_destroy(mem, NULL));
}

/* All files of the folder are removed. */
static void sweep(void)
{
    char command[5000];
    snprintf(command, sizeof command, "rm -rf '%s'/*", t_temp_dir());
    IS_TRUE(system(command) == 0);
}

TEST(one_stack_to_one_file_with_maps_and_tables)
{
    static uint16_t stack[Z * Y * X], image[Y * X];
    static uint8_t index[Y * X], eight[Y * X];
    static float depth[Y * X], sure[Y * X];
    fth_err err = {0};
    sweep();
    OKE(CALL(&err, STACK " -o @/a.npy --index-map --depth-map --confidence --metrics --z-step=5"),
        &err);
    EQ_I64(t_file_count(), 6);
    load_npy(STACK, FTH_U16, Z * Y * X, stack);
    load_npy(at("a.npy"), FTH_U16, Y * X, image);
    load("a.index.tif", FTH_U8, Y * X, index);
    load("a.depth.tif", FTH_F32, Y * X, depth);
    load("a.confidence.tif", FTH_F32, Y * X, sure);
    const double lo = 1583.1997000000001, hi = 9847.956800000044;
    for (int i = 0; i < Y * X; i++) {
        IS_TRUE(index[i] < Z);
        double n = ((double)stack[index[i] * Y * X + i] - lo) / (hi - lo);
        n = n < 0 ? 0 : n > 1 ? 1 : n;
        EQ_I64(image[i], (int64_t)(n * 65535));
        IS_TRUE(depth[i] >= 0 && depth[i] <= 5 * (Z - 1) && sure[i] >= 1);
        LE_F64(depth[i] / 5 - (float)index[i], 3);
    }
    size_t bytes;
    char *csv = (char *)t_file_read(at("a.metrics.csv"), &bytes);
    csv[bytes] = '\0';
    HAS(csv, "name,well,t,c,n_total,n_sharp,n_stable,n_kept,peak_log,mean_log,best_z,min_corr,"
             "median_corr,lo,hi,saturated\na,,0,0,7,");
    HAS(csv, ",1583.1997000000001,9847.956800000044,0\n");
    free(csv);
    csv = (char *)t_file_read(at("a.planes.csv"), &bytes);
    csv[bytes] = '\0';
    HAS(csv, "name,z,mean_log,corr_next,kept\na,0,471.2267578125,");
    HAS(csv, "\na,6,");
    free(csv);
    HAS(said, "bound: ");
    /* 8 bits are the upper half of 16. */
    OKE(CALL(&err, STACK " -o @/a.png"), &err);
    load("a.png", FTH_U8, Y * X, eight);
    for (int i = 0; i < Y * X; i++) EQ_I64(eight[i], image[i] >> 8);
    sweep();
}

TEST(formats)
{
    static const struct {
        const char *out, *format, *file;
        fth_dtype dtype;
    } t[] = {{"a.png", "", "a.png", FTH_U8},
             {"a.tif", "tif16", "a.tif", FTH_U16},
             {"a.tiff", "", "a.tiff", FTH_U8},
             {"a.jpg", "jpg:95", "a.jpg", FTH_U8},
             {"a", "png16", "a", FTH_U16},
             {"a.x", "tif32", "a.x", FTH_F32},
             {"d/", "jpg", "d/stack_u16.jpg", FTH_U8},
             {"d/e/", "", "d/e/stack_u16.png", FTH_U8}};
    static float pixels[Y * X];
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        fth_err err = {0};
        sweep();
        OKE(CALL(&err, STACK " -o @/%s %s%s", t[i].out, t[i].format[0] ? "--image-format=" : "",
                 t[i].format),
            &err);
        load(t[i].file, t[i].dtype, Y * X, pixels);
    }
    sweep();
}

TEST(values_as_they_are)
{
    static uint16_t stack[Z * Y * X], image[Y * X];
    static float mean[Y * X];
    fth_err err = {0};
    sweep();
    OKE(CALL(&err, STACK " -o @/v.npy --scale=none --method=max"), &err);
    load_npy(STACK, FTH_U16, Z * Y * X, stack);
    load_npy(at("v.npy"), FTH_U16, Y * X, image);
    for (int i = 0; i < Y * X; i++) {
        uint16_t most = 0;
        for (int z = 0; z < Z; z++)
            if (stack[z * Y * X + i] > most) most = stack[z * Y * X + i];
        EQ_I64(image[i], most);
    }
    OKE(CALL(&err, STACK " -o @/v.npy --scale=none --method=mean"), &err);
    load_npy(at("v.npy"), FTH_F32, Y * X, mean);
    OKE(CALL(&err, STACK " -o @/v.tif --scale=none --method=mean --image-format=tif32"), &err);
    sweep();
}

static int by_value(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

TEST(one_scale_for_all_stacks)
{
    enum { N = Z * Y * X };
    static uint16_t both[2 * N], own[Y * X], fixed[Y * X];
    double range[2];
    fth_err err = {0};
    sweep();
    load_npy(STACK, FTH_U16, N, both);
    load_npy("tests/golden/focus/stackB_u16.npy", FTH_U16, N, both + N);
    qsort(both, 2 * N, sizeof *both, by_value);
    for (int i = 0; i < 2; i++) {
        const double at = (2 * N - 1) * (i ? 99.99 : 0.01) / 100;
        const int k = (int)at;
        range[i] = both[k] + (at - k) * (both[k + 1] - both[k]);
    }
    OKE(CALL(&err, STACK " tests/golden/focus/stackB_u16.npy -o @/own --scale=experiment "
                         "--image-format=npy --method=log --metrics"),
        &err);
    OKE(CALL(&err,
             STACK " tests/golden/focus/stackB_u16.npy -o @/fixed --scale=fixed:%.17g,%.17g "
                   "--image-format=npy --method=log",
             range[0], range[1]),
        &err);
    for (int i = 0; i < 2; i++) {
        const char *const name = i ? "stackB_u16.npy" : "stack_u16.npy";
        char path[100];
        snprintf(path, sizeof path, "own/%s", name);
        load_npy(at(path), FTH_U16, Y * X, own);
        snprintf(path, sizeof path, "fixed/%s", name);
        load_npy(at(path), FTH_U16, Y * X, fixed);
        for (int j = 0; j < Y * X; j++) IS_TRUE(abs(own[j] - fixed[j]) <= 1);
    }
    sweep();
}

TEST(several_stacks_go_to_a_folder)
{
    static const char *const names[] = {"synth_T2P3Z5_p000_t0000.png",
                                        "synth_T2P3Z5_p002_t0001.png",
                                        "synth_T2P3Z5_p001_t0000.png", "metrics.csv", "planes.csv"};
    fth_err err = {0};
    sweep();
    OKE(CALL(&err, ND2 " -o @/out --metrics"), &err);
    for (int i = 0; i < 5; i++) {
        char path[300];
        snprintf(path, sizeof path, "out/%s", names[i]);
        IS_TRUE(t_file_exists(at(path)));
    }
    sweep();
    OKE(CALL(&err, ND2 " -o @/out --times=1:2 --wells=1"), &err); /* one stack: a file */
    struct stat st;
    IS_TRUE(stat(at("out"), &st) == 0 && S_ISREG(st.st_mode));
    sweep();
    OKE(CALL(&err, ND2 " -o @/out/ --times=1:2"), &err);
    IS_TRUE(t_file_exists(at("out/synth_T2P3Z5_p001.png")));
    sweep();
    OKE(CALL(&err, "tests/golden/focus/synth_Z5C2.nd2 -o @/out --channels=each"), &err);
    IS_TRUE(t_file_exists(at("out/synth_Z5C2_c00.png")) &&
            t_file_exists(at("out/synth_Z5C2_c01.png")));
    sweep();
}

/* Nobody has to know which channel is brightfield when each is fused for itself. */
TEST(channels_without_names_are_fused_each)
{
    enum { Z2 = 3, C2 = 2, S2 = 12, A2 = S2 * S2 };
    static uint16_t pixels[Z2 * C2 * A2], image[A2];
    fth_mem *mem = t_mem(1 << 24);
    const fth_tiff_stack stack = {
        .flavour = FTH_TIFF_IMAGEJ, .dtype = FTH_U16, .axes = "zcyx", .size = {Z2, C2, S2, S2}};
    const int64_t lo[4] = {0}, n[4] = {Z2, C2, S2, S2};
    fth_sink sink;
    fth_err err = {0};
    sweep();
    for (int i = 0; i < Z2 * C2 * A2; i++) pixels[i] = (uint16_t)(1 + i / A2);
    OKE(fth_tiff_create(&sink, mem, at("two.tif"), &stack, &err), &err);
    OK(sink.write(sink.self, lo, n, pixels, NULL));
    OK(sink.commit(sink.self, NULL));
    fth_sink_close(&sink);
    OK(fth_mem_destroy(mem, NULL));
    IS(CALL(&err, "@/two.tif -o @/out --method=max"), FTH_E_COMMAND);
    HAS(err.text, "no channel is recognised as brightfield: 0, 1");
    HAS(err.hint, "--channels each");
    OKE(CALL(&err, "@/two.tif -o @/out --channels=each --method=max --scale=none "
                   "--image-format=npy"),
        &err);
    for (int c = 0; c < C2; c++) {
        load_npy(at(c ? "out/two_c01.npy" : "out/two_c00.npy"), FTH_U16, A2, image);
        for (int i = 0; i < A2; i++) EQ_I64(image[i], 1 + (Z2 - 1) * C2 + c);
    }
    sweep();
}

/* The chosen channel decides for the others. */
TEST(one_channel_decides_for_all)
{
    enum { Y2 = 48, X2 = 38 };
    static uint16_t alone[Y2 * X2], both[Y2 * X2], other[Y2 * X2];
    static uint8_t index[Y2 * X2];
    fth_err err = {0};
    sweep();
    OKE(CALL(&err, "tests/golden/focus/synth_Z5C2.nd2 -o @/one.npy --scale=none"), &err);
    load_npy(at("one.npy"), FTH_U16, Y2 * X2, alone);
    OKE(CALL(&err, "tests/golden/focus/synth_Z5C2.nd2 -o @/all --channels=all --scale=none "
                   "--image-format=npy --index-map"),
        &err);
    load_npy(at("all/synth_Z5C2_c01.npy"), FTH_U16, Y2 * X2, both); /* BF is channel 1 */
    SAME_BYTES(alone, both, sizeof alone);
    load_npy(at("all/synth_Z5C2_c00.npy"), FTH_U16, Y2 * X2, other);
    load("all/synth_Z5C2_c01.index.tif", FTH_U8, Y2 * X2, index);
    fth_mem *mem = t_mem(1 << 24);
    fth_images *images = NULL;
    fth_source s;
    OK(fth_images_open(&images, mem, "tests/golden/focus/synth_Z5C2.nd2", NULL, NULL));
    OK(fth_images_source(images, &s, NULL));
    for (int i = 0; i < Y2 * X2; i += 7) {
        uint16_t v = 0;
        OK(s.read(s.self, (const int64_t[]){0, 0, index[i], 0, i / X2, i % X2},
                  (const int64_t[]){1, 1, 1, 1, 1, 1}, &v, NULL));
        EQ_I64(other[i], v);
    }
    fth_source_close(&s);
    fth_images_close(images);
    OK(fth_mem_destroy(mem, NULL));
    err = (fth_err){0};
    IS(CALL(&err, "tests/golden/focus/synth_Z5C2.nd2 -o @/no --channels=all --method=mean"),
       FTH_E_COMMAND);
    HAS(err.text, "method mean has no index");
    sweep();
}

/* Every channel is scaled by its own values. */
TEST(other_channels_have_their_own_scale)
{
    enum { Y2 = 48, X2 = 38 };
    static uint16_t fused[Y2 * X2], raw[Y2 * X2];
    fth_err err = {0};
    sweep();
    OKE(CALL(&err, "tests/golden/focus/synth_Z5C2.nd2 -o @/raw --channels=all --scale=none "
                   "--image-format=npy"),
        &err);
    OKE(CALL(&err, "tests/golden/focus/synth_Z5C2.nd2 -o @/all --channels=all --image-format=npy"),
        &err);
    load_npy(at("raw/synth_Z5C2_c00.npy"), FTH_U16, Y2 * X2, raw);
    load_npy(at("all/synth_Z5C2_c00.npy"), FTH_U16, Y2 * X2, fused);
    int least = 65535, most = 0;
    for (int i = 0; i < Y2 * X2; i++) {
        least = fused[i] < least ? fused[i] : least;
        most = fused[i] > most ? fused[i] : most;
        if (raw[i] > raw[0]) IS_TRUE(fused[i] >= fused[0]);
    }
    LE_F64(least, 6000); /* percentiles are those of all planes */
    LE_F64(60000, most);
    sweep();
}

/* A stack of which nothing is there is left out, and the others keep their own missing planes. */
TEST(missing_planes_behind_an_empty_stack)
{
    const fth_nd2_options o = {.size = {1, 3, 3, 1, 16, 16}, .dtype = FTH_U16};
    const int64_t missing[] = {0, 1, 2, 4};
    const t_nd2_scene scene = {&o, missing, 4};
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    sweep();
    OK(fth_nd2_write(mem, at("holes.nd2"), &o, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    OK(fth_mem_destroy(mem, NULL));
    OKE(CALL(&err, "@/holes.nd2 -o @/out --metrics --image-format=png"), &err);
    size_t bytes;
    char *csv = (char *)t_file_read(at("out/metrics.csv"), &bytes);
    csv[bytes] = '\0';
    HAS(csv, "holes_p001,,0,0,2,");
    HAS(csv, "holes_p002,,0,0,3,");
    HAS_NOT(csv, "holes_p000");
    free(csv);
    sweep();
}

TEST(the_index_counts_planes_of_the_file)
{
    static uint8_t index[Y * X];
    fth_err err = {0};
    sweep();
    OKE(CALL(&err, STACK " -o @/a.png --index-map --metrics --z-range=3:5"), &err);
    load("a.index.tif", FTH_U8, Y * X, index);
    for (int i = 0; i < Y * X; i++) IS_TRUE(index[i] == 3 || index[i] == 4);
    size_t bytes;
    char *csv = (char *)t_file_read(at("a.planes.csv"), &bytes);
    csv[bytes] = '\0';
    HAS(csv, "\na,3,");
    HAS(csv, "\na,4,");
    HAS_NOT(csv, "\na,0,");
    free(csv);
    sweep();
}

TEST(files_of_planes)
{
    static uint16_t stack[Z * Y * X], a[Y * X], b[Y * X];
    fth_mem *mem = t_mem(1 << 26);
    fth_err err = {0};
    sweep();
    load_npy(STACK, FTH_U16, Z * Y * X, stack);
    for (int z = 0; z < Z; z++) {
        char name[40];
        snprintf(name, sizeof name, "z%d.png", 7 + z); /* z10 is behind z9 */
        const fth_picture p = {
            .dtype = FTH_U16, .height = Y, .width = X, .channels = 1, .pixels = stack + z * Y * X};
        OKE(fth_picture_save(mem, at(name), &p, &(fth_picture_format){.kind = FTH_PICTURE_PNG16},
                             &err),
            &err);
    }
    OKE(CALL(&err, "@/z*.png -o @/planes.npy"), &err);
    OKE(CALL(&err, STACK " -o @/stack.npy"), &err);
    load_npy(at("planes.npy"), FTH_U16, Y * X, a);
    load_npy(at("stack.npy"), FTH_U16, Y * X, b);
    SAME_BYTES(a, b, sizeof a);
    OK(fth_mem_destroy(mem, NULL));
    sweep();
}

TEST(refusals)
{
    static const struct {
        const char *line;
        fth_status status;
        const char *text;
    } t[] = {
        {"", FTH_E_COMMAND, "no input file is given"},
        {STACK, FTH_E_COMMAND, "no output is given"},
        {STACK " -o @/a.png --method=logg", FTH_E_COMMAND, "did you mean 'log'"},
        {STACK " -o @/a.png --filter-size=4", FTH_E_COMMAND, "odd"},
        {STACK " -o @/a.png --filter-size=33", FTH_E_COMMAND, "--filter-size"},
        {STACK " -o @/a.png --channel=GFP", FTH_E_COMMAND, "no channel 'GFP'"},
        {STACK " -o @/a.png --z-range=0:8", FTH_E_COMMAND, "there are 7"},
        {STACK " -o @/a.png --times=0:2", FTH_E_COMMAND, "--times: 0 to 2, but"},
        {STACK " -o @/a.png --wells=A01", FTH_E_COMMAND, "no position is called 'A01'"},
        {STACK " -o @/a.pgm", FTH_E_COMMAND, "images are not written as pgm"},
        {STACK " -o @/a.gif", FTH_E_COMMAND, "images are not written as gif"},
        {STACK " -o @/a.png --image-format=npy", FTH_E_COMMAND, "the extension means png, but"},
        {STACK " -o @/a.png --sigma=33", FTH_E_COMMAND, "a number in (0, 32], in px, found '33'"},
        {STACK " -o @/a.png --levels=13", FTH_E_COMMAND, "in [1, 12], found '13'"},
        {ND2 " -o @/a.png", FTH_E_COMMAND, "a.png: 6 images cannot go into one file"},
        {STACK " -o @/a.png --image-format=bmp", FTH_E_COMMAND, "--image-format: expected png"},
        {STACK " -o @/a.png --image-format=png:3", FTH_E_COMMAND, "--image-format: expected png"},
        {STACK " -o @/a.jpg --image-format=jpg:0", FTH_E_COMMAND, "--image-format: expected png"},
        {STACK " -o @/a.png --scale=none", FTH_E_COMMAND, "npy, tif16 or tif32, not png"},
        {STACK " -o @/a.tif --scale=none --image-format=tif16 --method=mean", FTH_E_COMMAND,
         "f32 values"},
        {STACK " -o @/a.png --scale=fixed:5,1", FTH_E_COMMAND, "--scale: expected"},
        {STACK " -o @/a.png --filter-um=3", FTH_E_COMMAND, "size of a pixel is not known"},
        {STACK " -o @/a.png --method=max --index-map", FTH_E_COMMAND, "has no index"},
        {STACK " -o @/none/a.png", FTH_E_FILE_WRITE, "no such folder"},
        {STACK " -o " STACK, FTH_E_FILE_WRITE, "stack_u16.npy"},
        {"none.nd2 -o @/a.png", FTH_E_FILE_FORMAT, "none.nd2: no such file"},
        {"none.nd2 nor_this.tif -o @/a.png", FTH_E_FILE_FORMAT, "2 problems:"},
        {"tests/golden/focus/nd2_expected.json -o @/a.png", FTH_E_FILE_FORMAT, "nd2_expected.json"},
        {STACK " " ND2 " -o @/a.png", FTH_E_FILE_FORMAT, "expected y=96 x=80 as in"},
    };
    sweep();
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        fth_err err = {0};
        const fth_status s = CALL(&err, "%s", t[i].line);
        if (s != t[i].status) FAIL("%s: %s", t[i].line, err.text);
        HAS(err.text, t[i].text);
        EQ_I64(t_file_count(), 0);
    }
}

/* Images, maps and other channels: whatever its name, a file that is read is not written. */
TEST(no_input_is_replaced)
{
    static const struct {
        const char *input, *line;
    } t[] = {{"a.index.npy", "@/a.index.npy -o @/a.npy"}, /* harmless: the map would be a tif */
             {"a.index.tif", "@/a.index.tif -o @/a.png --index-map"},
             {"b.depth.tif", "@/b.depth.tif -o @/b.png --depth-map"},
             {"c.confidence.tif", "@/c.confidence.tif -o @/c.png --confidence"},
             {"d.tif", "@/d.tif -o @/link.tif"},
             {"stack_u16.tif", "tests/golden/focus/stackB_u16.npy @/stack_u16.tif -o @/ "
                               "--image-format=tif"}};
    fth_err err = {0};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        size_t before, after;
        sweep();
        unsigned char *was =
            t_file_read(i == 0 ? STACK : "tests/golden/focus/stack_u16.tif", &before);
        t_file_write(at(t[i].input), was, before);
        if (i == 4) IS_TRUE(link(at("d.tif"), at("link.tif")) == 0);
        const fth_status s = CALL(&err, "%s", t[i].line);
        IS(s, i == 0 ? FTH_OK : FTH_E_FILE_WRITE);
        if (i > 0) HAS(err.text, "it is read (IN), and would be replaced (OUT)");
        unsigned char *is = t_file_read(at(t[i].input), &after);
        EQ_U64(before, after);
        SAME_BYTES(was, is, before);
        free(was);
        free(is);
    }
    sweep();
}

TEST(a_plan_writes_nothing_and_too_little_memory_is_refused)
{
    fth_err err = {0};
    sweep();
    OKE(CALL(&err, STACK " -o @/a.png --plan"), &err);
    HAS(said, "reads  " STACK);
    HAS(said, "a.png");
    EQ_I64(t_file_count(), 0);
    const fth_status s = call_with(&(limits){.budget = 1 << 20}, &err, STACK " -o @/a.png");
    EQ_I64(fth_status_get_info(s)->exit_code, 4);
    EQ_I64(t_file_count(), 0);
}

TEST(a_stack_that_cannot_be_read_is_set_apart)
{
    enum { SIDE = 24, PLANES = 3 };
    static float v[2][PLANES * SIDE * SIDE];
    fth_mem *mem = t_mem(1 << 24);
    fth_err err = {0};
    sweep();
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < PLANES * SIDE * SIDE; i++) v[k][i] = (float)((i * 7919) % 251);
    v[1][2 * SIDE * SIDE + 5] = strtof("nan", NULL);
    OK(fth_npy_save(mem, at("good.npy"), FTH_F32, 3, (const int64_t[]){PLANES, SIDE, SIDE}, v[0],
                    NULL));
    char bad[1200];
    snprintf(bad, sizeof bad, "%s", at("bad.npy"));
    OK(fth_npy_save(mem, bad, FTH_F32, 3, (const int64_t[]){PLANES, SIDE, SIDE}, v[1], NULL));
    IS(CALL(&err, "@/bad.npy -o @/one.png"), FTH_E_FILE_FORMAT);
    HAS(err.text, "plane 2 has NaN");
    IS_TRUE(!t_file_exists(at("one.png")));
    err = (fth_err){0};
    IS(CALL(&err, "@/bad.npy @/good.npy -o @/out --metrics"), FTH_E_JOB_FAILED);
    HAS(err.text, "1 of 2 stacks failed");
    HAS(err.text, "plane 2 has NaN");
    HAS(said, "failed: bad: ");
    HAS_NOT(said, "input '");
    IS_TRUE(t_file_exists(at("out/good.png")) && !t_file_exists(at("out/bad.png")));
    /* Those that were fused before it failed have their numbers too. */
    OK(fth_npy_save(mem, at("another.npy"), FTH_F32, 3, (const int64_t[]){PLANES, SIDE, SIDE}, v[0],
                    NULL));
    IS(CALL(&err, "@/another.npy @/bad.npy @/good.npy -o @/three --metrics"), FTH_E_JOB_FAILED);
    size_t bytes;
    char *csv = (char *)t_file_read(at("three/metrics.csv"), &bytes);
    csv[bytes] = '\0';
    HAS(csv, "\nanother,,0,0,3,");
    HAS(csv, "\ngood,,0,0,3,");
    HAS_NOT(csv, "\nbad,");
    free(csv);
    OK(fth_mem_destroy(mem, NULL));
    sweep();
}

/* The same bytes for any budget and number of threads. */
TEST(the_same_bytes_however_it_is_run)
{
    static const limits lim[] = {{1 << 28, 1, 0, 0}, {1 << 28, 3, 0, 0}, {12 << 20, 2, 0, 0}};
    uint64_t hash[3][2];
    for (int i = 0; i < 3; i++) {
        fth_err err = {0};
        sweep();
        OKE(call_with(&lim[i], &err, ND2 " -o @/out --metrics --index-map"), &err);
        for (int k = 0; k < 2; k++) {
            size_t n;
            unsigned char *b =
                t_file_read(at(k ? "out/metrics.csv" : "out/synth_T2P3Z5_p002_t0001.png"), &n);
            hash[i][k] = fth_hash_bytes(b, n, 0);
            free(b);
        }
    }
    for (int i = 1; i < 3; i++)
        for (int k = 0; k < 2; k++) EQ_U64(hash[i][k], hash[0][k]);
    sweep();
}

TEST(the_nth_write_fails)
{
    for (int64_t n = 1; n < 1000; n++) {
        fth_err err = {0};
        sweep();
        const fth_status s = call_with(&(limits){.fail_write = n}, &err,
                                       ND2 " -o @/out --metrics --index-map --times=0:1");
        if (s == FTH_OK) return;
        EQ_I64(fth_status_get_info(s)->exit_code, 3);
        char command[5000];
        snprintf(command, sizeof command,
                 "test -z \"$(find '%s' -name '*tmp*' -o -size 0 -type f)\"", t_temp_dir());
        IS_TRUE(system(command) == 0); /* nothing half written */
    }
    FAIL("it never succeeds");
}

TEST(the_nth_allocation_fails)
{
    for (int64_t n = 1; n < 100000; n += n < 60 ? 1 : 23) {
        fth_err err = {0};
        sweep();
        const fth_status s =
            call_with(&(limits){.fail_alloc = n}, &err, STACK " -o @/a.png --metrics");
        if (s == FTH_OK) {
            sweep();
            return;
        }
        EQ_I64(fth_status_get_info(s)->exit_code, 4);
    }
    FAIL("it never succeeds");
}

TEST_MAIN()
