/* test_bragg_cases.c - the 45 golden command lines, from their words to files and text.
 *
 * c mode, f64. Every pixel within 1e-5 of the reference (+ 1e-9 of the largest), the sum within
 * 1e-6; of p20, whose spots have sharp edges, 0.1 % of the pixels may differ. Headers and text are
 * compared exactly. Where all floats are those of the reference, so are all files, by their hashes.
 * On a device (FATHOM_TEST_DEVICE) the same images, from any budget.
 * labels: gpu
 * seconds: 20 */
#include "testing/bragg/bragg_run.h"

#include "instruments/bragg/read/read.h"

#include <math.h>

/* How often each comparison was made. */
static struct {
    int images, equal_images, texts, files;
} made;

static const char *const kinds[3] = {"intimage.img", "image.pgm", "noiseimage.img"};

static void compare_floats(const bg_case *c, const float *got, const float *want, bool *same)
{
    int64_t off = 0, differ = 0;
    double sum = 0;
    for (int64_t i = 0; i < c->pixels; i++) {
        const double x = (double)got[i], y = (double)want[i];
        sum += x;
        differ += memcmp(&got[i], &want[i], sizeof *got) != 0;
        off += !(fabs(x - y) <= 1e-5 * fabs(y) + 1e-9 * c->max);
    }
    const bool sharp = strstr(c->args, "-tophat") != NULL;
    if (off > (sharp ? c->pixels / 1000 : 0))
        FAIL("%s: %lld of %lld pixels are too far off", c->name, (long long)off,
             (long long)c->pixels);
    if (!sharp) NEAR(sum, c->sum, 1e-6 * c->sum);
    *same = differ == 0;
    made.images++;
    made.equal_images += *same;
    if (differ > 0) printf("%s: %lld floats differ\n", c->name, (long long)differ);
}

/* The int image of our own floats. */
static void compare_ints(const bg_case *c, const unsigned char *got, const unsigned char *want)
{
    SAME_BYTES(got, want, 512);
    int64_t off = 0;
    for (int64_t i = 0; i < c->pixels; i++) {
        uint16_t a, b;
        memcpy(&a, got + 512 + 2 * i, 2);
        memcpy(&b, want + 512 + 2 * i, 2);
        IS_TRUE(abs(a - b) <= 1);
        off += a != b;
    }
    IS_TRUE(off <= c->pixels / 1000);
}

static void compare_files(const bg_case *c, bool same)
{
    const char *const ending[3] = {".int.img", ".pgm", ".noise.img"};
    const char *const sha[3] = {c->sha_int, c->sha_pgm, c->sha_noise};
    for (int k = 0; k < 3; k++) {
        size_t bytes = 0, golden_bytes = 0;
        unsigned char *got = t_file_read(kinds[k], &bytes);
        char text[65];
        if (same) EQ_STR(bg_sha256(got, bytes, text), sha[k]);
        char path[PATH_MAX + 300];
        snprintf(path, sizeof path, "golden/%s%s", c->name, ending[k]);
        if (t_file_exists(path)) {
            unsigned char *want = t_file_read(path, &golden_bytes);
            EQ_U64(bytes, golden_bytes);
            if (k == 0) compare_ints(c, got, want);
            if (k == 2) SAME_BYTES(got, want, 512);
            made.files++;
            free(want);
        }
        free(got);
    }
}

/* Numbers of the image itself follow its last bits; all other lines are equal in any case. */
static bool near_line(const char *a, const char *b)
{
    static const char *const of_image[] = {
        "max_I = ", "mean= ", "intfile_scale = ", "pgm_scale = "};
    const char *photons = strstr(b, " photons on noise image");
    if (photons && photons < b + strcspn(b, "\n")) /* other floats, another path of the stream */
        return fabs(atof(a) - atof(b)) <= 6 * sqrt(atof(b));
    bool image = false;
    for (size_t i = 0; i < sizeof of_image / sizeof of_image[0]; i++)
        image = image || !strncmp(b, of_image[i], strlen(of_image[i]));
    while (image && *a && *b && *b != '\n') {
        char *end_a = NULL, *end_b = NULL;
        const double x = strtod(a, &end_a), y = strtod(b, &end_b);
        if ((end_a == a) != (end_b == b)) return false;
        if (end_b == b ? *a != *b : fabs(x - y) > 1e-5 * fabs(y)) return false;
        a = end_b == b ? a + 1 : end_a;
        b = end_b == b ? b + 1 : end_b;
    }
    return image;
}

/* Exact where the image is; shows the first line that differs. */
static void compare_text(const bg_case *c, const char *got, bool same)
{
    char path[300];
    size_t bytes = 0;
    snprintf(path, sizeof path, "golden/%s.stdout.txt", c->name);
    if (!t_file_exists(path)) return;
    char *want = (char *)t_file_read(path, &bytes);
    want[bytes] = '\0';
    const char *a = got, *b = want;
    while (*a || *b) {
        const size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if ((n != m || memcmp(a, b, n) != 0) && (same || !near_line(a, b)))
            FAIL("%s: a line is\n  '%.*s'\nand not\n  '%.*s'", c->name, (int)n, a, (int)m, b);
        a += n + (a[n] != 0);
        b += m + (b[m] != 0);
    }
    free(want);
    made.texts++;
}

static void check_case(const bg_case *c)
{
    bg_run r = {.args = c->args};
    char golden[PATH_MAX + 100];
    bg_enter(&r, c->name);
    snprintf(golden, sizeof golden, "%s/" BG_PUBLIC, r.cwd);
    if (symlink(golden, "golden") != 0) FAIL("no link to %s", golden);
    OKE(bg_go(&r), &r.err);
    size_t bytes = 0;
    float *got = (float *)t_file_read("floatimage.bin", &bytes);
    EQ_U64(bytes, (uint64_t)c->pixels * sizeof *got);
    snprintf(golden, sizeof golden, "golden/%s.float.bin", c->name);
    bool same = false;
    if (t_file_exists(golden)) { /* not of p44 */
        float *want = (float *)t_file_read(golden, &bytes);
        compare_floats(c, got, want, &same);
        free(want);
    }
    compare_text(c, r.text, same);
    compare_files(c, same);
    free(got);
    free(r.text);
    bg_leave(&r);
}

TEST(all_cases)
{
    bg_manifest m = bg_open();
    for (int i = 0; i < BG_CASES; i++) check_case(&m.at[i]);
    printf("%d of %d images are equal in every float\n", made.equal_images, made.images);
    EQ_I64(made.images, 44);
    EQ_I64(made.texts, 26);
    EQ_I64(made.files, 15);
    bg_close(&m);
}

/* ---- beyond the cases ---- */

static const bg_case *find_case(const bg_manifest *m, const char *name)
{
    for (int i = 0; i < BG_CASES; i++)
        if (!strncmp(m->at[i].name, name, strlen(name))) return &m->at[i];
    FAIL("no case %s", name);
}

/* A fresh rotation for every step: p23 from the words of p22. */
TEST(spindle_without_the_carry_over)
{
    bg_manifest m = bg_open();
    const bg_case *c = find_case(&m, "p23");
    for (int k = 0; k < 3; k++) {
        bg_run r = {.args = find_case(&m, "p22")->args,
                    .compat = k < 2 ? "spec" : "c",
                    .quirk = k == 1   ? "phi-carryover=on"
                             : k == 2 ? "phi-carryover=off"
                                      : NULL};
        char folder[20];
        size_t bytes = 0;
        snprintf(folder, sizeof folder, "spindle%d", k);
        float *want = (float *)bg_file(k == 1 ? find_case(&m, "p22") : c, ".float.bin", &bytes);
        bg_enter(&r, folder);
        OKE(bg_go(&r), &r.err);
        float *got = (float *)t_file_read("floatimage.bin", &bytes);
        bool same;
        compare_floats(k == 1 ? find_case(&m, "p22") : c, got, want, &same);
        if (k < 2) HAS(r.text, "ledger "); /* the three numbers */
        free(r.text);
        free(got);
        free(want);
        bg_leave(&r);
    }
    bg_close(&m);
}

static void only_on_the_cpu(void)
{
    if (t_device()) SKIP("this is about the memory of the host and its files");
}

typedef struct output {
    unsigned char *data[4];
    size_t bytes[4];
    char *text;
} output;

static const char *const all_files[4] = {"floatimage.bin", "intimage.img", "image.pgm",
                                         "noiseimage.img"};

static output run_in(const char *folder, bg_run *r)
{
    output o = {0};
    bg_enter(r, folder);
    OKE(bg_go(r), &r->err);
    for (int i = 0; i < 4; i++) o.data[i] = t_file_read(all_files[i], &o.bytes[i]);
    o.text = r->text;
    bg_leave(r);
    return o;
}

static void same_output(const output *a, const output *b, bool text)
{
    for (int i = 0; i < 4; i++) {
        EQ_U64(a->bytes[i], b->bytes[i]);
        SAME_BYTES(a->data[i], b->data[i], a->bytes[i]);
    }
    if (text) EQ_STR(a->text, b->text);
}

static void free_output(output *o)
{
    for (int i = 0; i < 4; i++) free(o->data[i]);
    free(o->text);
}

/* Mosaic domains, the latch, noise of few counts, layers, spindle steps, a mask; in both modes. The
 * detectors without a mask have more and smaller pixels, so that the passes are cut. */
TEST(budget_and_workers_change_no_byte)
{
    only_on_the_cpu();
    static const char *const names[] = {"p21", "p06", "p37", "p31", "p45", "p35"};
    bg_manifest m = bg_open();
    char folder[40], args[1000];
    for (int k = 0; k < 6; k++)
        for (int spec = 0; spec < 2; spec++) {
            bg_run r = {.args = args, .compat = spec ? "spec" : "c"};
            snprintf(args, sizeof args, "%s%s", find_case(&m, names[k])->args,
                     k < 5 ? " -detpixels 160 -pixel 0.16" : "");
            snprintf(folder, sizeof folder, "want-%s-%d", names[k], spec);
            output want = run_in(folder, &r);
            for (int way = 0; way < 2; way++) {
                r.threads = 1 + way;
                r.budget_bytes = 6124 << 10; /* 5.6 MiB are set apart for libraries */
                snprintf(folder, sizeof folder, "got-%s-%d-%d", names[k], spec, way);
                output got = run_in(folder, &r);
                same_output(&got, &want, !spec);
                free_output(&got);
            }
            free_output(&want);
        }
    bg_close(&m);
}

/* Rows come in other pieces, and the run is another one. */
TEST(budgets_of_a_device_change_no_byte)
{
    static const char *const names[] = {"p21", "p06", "p37", "p31", "p45", "p35"};
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no device");
    bg_manifest m = bg_open();
    char folder[40], args[1000];
    for (int k = 0; k < 6; k++) {
        snprintf(args, sizeof args, "%s%s", find_case(&m, names[k])->args,
                 k < 5 ? " -detpixels 1000 -pixel 0.0256" : "");
        output o[2];
        for (int way = 0; way < 2; way++) {
            bg_run r = {.args = args, .device_bytes = way ? 4 << 20 : 1 << 30};
            snprintf(folder, sizeof folder, "device-%s-%d", names[k], way);
            o[way] = run_in(folder, &r);
        }
        same_output(&o[0], &o[1], true);
        free_output(&o[0]);
        free_output(&o[1]);
    }
    bg_close(&m);
}

/* A budget that is too small is refused before anything runs, with one that is not. */
TEST(a_device_with_too_little_memory_is_refused_in_words)
{
    if (!t_device()) SKIP("FATHOM_TEST_DEVICE names no device");
    bg_manifest m = bg_open();
    bg_run r = {.args = find_case(&m, "p21")->args, .device_bytes = 1 << 10};
    bg_enter(&r, "refused");
    IS(bg_go(&r), FTH_E_NO_FIT);
    HAS(r.err.hint, "would fit: device_memory_bytes = ");
    unsigned long long bytes = 0;
    const int found = sscanf(strstr(r.err.hint, " = ") + 3, "%llu", &bytes);
    printf("%s\n%s\n", r.err.text, r.err.hint);
    IS_TRUE(found == 1 && bytes > r.device_bytes);
    IS_TRUE(!t_file_exists("floatimage.bin"));
    free(r.text);
    r.device_bytes = bytes;
    OKE(bg_go(&r), &r.err);
    IS_TRUE(t_file_exists("floatimage.bin"));
    free(r.text);
    bg_leave(&r);
    bg_close(&m);
}

/* The dump of a list is what its reader reads back, and what the reference takes without a list. */
TEST(dump_is_read_back)
{
    only_on_the_cpu();
    bg_manifest m = bg_open();
    const bg_case *c = find_case(&m, "p04");
    bg_run r = {.args = c->args};
    bg_enter(&r, "dump");
    OKE(bg_go(&r), &r.err);
    fth_mem *mem = t_mem(16 << 20);
    br_reflections list, dump;
    OKE(br_hkl_read(&list, mem, "P1_sparse.hkl", 25, false, &r.err), &r.err);
    OKE(br_dump_read(&dump, mem, "Fdump.bin", &r.err), &r.err);
    EQ_I64(dump.h_min, list.h_min);
    EQ_I64(dump.l_max, list.l_max);
    EQ_U64(fth_tensor_bytes(dump.table), fth_tensor_bytes(list.table));
    SAME_BYTES(fth_tensor_data(dump.table), fth_tensor_data(list.table),
               fth_tensor_bytes(list.table));
    br_reflections_clear(&list);
    br_reflections_clear(&dump);
    OK(fth_mem_destroy(mem, NULL));
    size_t bytes = 0, again = 0;
    unsigned char *want = t_file_read("floatimage.bin", &bytes);
    free(r.text);
    r.args = "-cell 40 45 50 90 90 90 -misset 10 20 30 -default_F 25 -N 4 -lambda 1.0 -distance "
             "61.3 -pixel 0.4 -detpixels 64 -noprogress -seed 1 -floatfile again.bin";
    OKE(bg_go(&r), &r.err);
    unsigned char *got = t_file_read("again.bin", &again);
    EQ_U64(again, bytes);
    SAME_BYTES(got, want, bytes);
    free(got);
    free(want);
    free(r.text);
    bg_leave(&r);
    bg_close(&m);
}

static int files_here(void)
{
    DIR *d = opendir(".");
    int n = -2;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Undoes the packing, from its definition. */
static void unpack(const unsigned char *file, size_t bytes, int64_t n, int32_t *out)
{
    const unsigned char *at = NULL;
    for (size_t i = 0; !at && i + 4 < bytes; i++)
        if (!memcmp(file + i, "\x0c\x1a\x04\xd5", 4)) at = file + i + 4;
    IS_TRUE(at != NULL);
    const unsigned char *start = at;
    for (int64_t i = 0, v = 0; i < n; i++) {
        int64_t d = (int8_t)*at++;
        if (d == INT8_MIN) {
            d = (int16_t)(at[0] | at[1] << 8);
            at += 2;
        }
        if (d == INT16_MIN) {
            d = (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                          (uint32_t)at[3] << 24);
            at += 4;
        }
        v += d;
        out[i] = (int32_t)v;
    }
    char line[60];
    snprintf(line, sizeof line, "X-Binary-Size: %lld\r\n", (long long)(at - start));
    HAS((const char *)file, line);
    EQ_I64(file + bytes - at, 4095 + 40); /* padding and the end */
}

/* Counts of all sizes: bytes, words and long words in the CBF; overloads of 16 bits fit here. */
TEST(photons_with_32_bits)
{
    only_on_the_cpu();
    static const char *const names[] = {"p38", "p35", "p17"};
    bg_manifest m = bg_open();
    for (int k = 0; k < 3; k++) {
        const bg_case *c = find_case(&m, names[k]);
        char folder[40], args[1000];
        snprintf(folder, sizeof folder, "photons-%s", names[k]);
        snprintf(args, sizeof args, "%s%s", c->args, k == 2 ? " -nonoise" : "");
        bg_run r = {.args = args, .smv32 = "smv32.img", .cbf = "image.cbf"};
        bg_enter(&r, folder);
        OKE(bg_go(&r), &r.err);
        size_t bytes = 0, n = (size_t)c->pixels;
        unsigned char *smv = t_file_read("smv32.img", &bytes), *noise = NULL;
        EQ_U64(bytes, 512 + 4 * n);
        IS_TRUE(strstr((char *)smv, "\nTYPE=long_integer;\nSIZE1=64;\n") != NULL);
        IS_TRUE(strstr((char *)smv, "\n}\f   ") != NULL);
        float *image = (float *)t_file_read("floatimage.bin", &bytes);
        if (k < 2) noise = t_file_read("noiseimage.img", &bytes);
        unsigned char *cbf = t_file_read("image.cbf", &bytes);
        int32_t *pixel = malloc(n * sizeof *pixel);
        unpack(cbf, bytes, c->pixels, pixel);
        int64_t unseen = 0, wide = 0;
        for (size_t i = 0; i < n; i++) {
            uint16_t low;
            int32_t whole;
            const double adc = k == 0 ? 10 : 40;
            memcpy(&whole, smv + 512 + 4 * i, 4);
            unseen += pixel[i] == -1;
            wide += pixel[i] > 65535;
            if (pixel[i] >= 0 && pixel[i] < INT32_MAX - 1) EQ_F64(whole, pixel[i] + adc);
            if (noise) memcpy(&low, noise + 512 + 2 * i, 2);
            if (noise && low < 65535) EQ_I64(whole, low);
            if (!noise)
                EQ_F64(pixel[i], fmin(floor((double)image[i] + 0.5), (double)(INT32_MAX - 1)));
        }
        printf("%s: %lld not rendered, %lld above 16 bits\n", names[k], (long long)unseen,
               (long long)wide);
        IS_TRUE((unseen > 0) == (k == 1) && (wide > 0) == (k != 1));
        free(pixel);
        free(cbf);
        free(image);
        free(noise);
        free(smv);
        free(r.text);
        bg_leave(&r);
    }
    bg_close(&m);
}

/* --plan tells of every pass and touches nothing. */
TEST(plan_writes_nothing)
{
    only_on_the_cpu();
    bg_manifest m = bg_open();
    bg_run r = {.args = find_case(&m, "p06")->args, .plan = true};
    bg_enter(&r, "plan");
    const int before = files_here();
    OKE(bg_go(&r), &r.err);
    EQ_I64(files_here(), before);
    HAS(r.text, "latch: ");
    HAS(r.text, "render: ");
    HAS(r.text, "spread: ");
    HAS(r.text, "store: ");
    free(r.text);
    r.json = true;
    OKE(bg_go(&r), &r.err);
    json_error_t wrong;
    json_t *plan = json_loads(r.text, 0, &wrong);
    if (!plan) FAIL("%s", wrong.text);
    const json_t *passes = json_object_get(plan, "passes");
    EQ_I64((int64_t)json_array_size(passes), 4);
    IS_TRUE(json_is_object(json_object_get(json_array_get(passes, 1), "plan")));
    json_decref(plan);
    free(r.text);
    r.json = false;
    r.budget_bytes = 1 << 20;
    IS(bg_go(&r), FTH_E_NO_FIT);
    r.plan = false;
    free(r.text);
    IS(bg_go(&r), FTH_E_NO_FIT);
    EQ_STR(r.text, "");
    EQ_I64(files_here(), before);
    free(r.text);
    bg_leave(&r);
    bg_close(&m);
}

/* Also a picture is only begun when it can be drawn. */
TEST(previews_in_too_little_memory)
{
    only_on_the_cpu();
    bg_manifest m = bg_open();
    bg_run r = {
        .args = find_case(&m, "p03")->args, .preview = "image.png", .budget_bytes = 6150 << 10};
    bg_enter(&r, "preview");
    const int before = files_here();
    IS(bg_go(&r), FTH_E_NO_FIT);
    HAS(r.err.text, "drawing image.png needs ");
    EQ_STR(r.text, "");
    EQ_I64(files_here(), before);
    free(r.text);
    r.args = "-cell 40 45 50 90 90 90 -default_F 100 -N 6 -lambda 1 -distance 61 -detpixels 1600 "
             "-floatfile /dev/null";
    r.preview = NULL;
    r.budget_bytes = 14 << 20; /* with rows of an image in a file this is enough */
    IS(bg_go(&r), FTH_E_NO_FIT);
    EQ_STR(r.text, "");
    free(r.text);
    r.args = find_case(&m, "p03")->args;
    r.preview = "image.png";
    r.budget_bytes = 32 << 20;
    OKE(bg_go(&r), &r.err);
    EQ_I64(files_here(), before + 6);
    free(r.text);
    bg_leave(&r);
    bg_close(&m);
}

/* Refused before anything is printed or written. */
TEST(outputs_that_cannot_be_written)
{
    only_on_the_cpu();
    bg_manifest m = bg_open();
    char args[1000];
    snprintf(args, sizeof args, "%s -intfile nowhere/int.img", find_case(&m, "p03")->args);
    bg_run r = {.args = args};
    bg_enter(&r, "refused");
    const int before = files_here();
    IS(bg_go(&r), FTH_E_FILE_WRITE);
    HAS(r.err.text, "nowhere/int.img");
    EQ_STR(r.text, "");
    EQ_I64(files_here(), before);
    free(r.text);
    bg_leave(&r);
    bg_close(&m);
}

TEST_MAIN()
