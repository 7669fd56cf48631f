/* test_focus_input.c - files become stacks: kinds, order, selection, and every problem at once.
 *
 * seconds: 2 */
#include "instruments/focus/input/input.h"
#include "instruments/focus/input/paths.h"
#include "testing/io/files.h"

enum { Y = 5, X = 7 };

static const fo_selection everything = {
    .channel = "", .wells = "", .times = {0, -1, 1}, .planes = {0, -1, 1}};

/* Pixel of plane z of stack b. */
static uint16_t pixel(int64_t b, int64_t z, int64_t y, int64_t x)
{
    return (uint16_t)(b * 10000 + z * 100 + y * 10 + x);
}

static char *save(fth_mem *mem, const char *name, int n_axes, const int64_t *size)
{
    static char paths[40][1200];
    static int at;
    char *path = paths[at++ % 40];
    uint16_t data[2000];
    int64_t n = 0;
    const int64_t b = n_axes == 4 ? size[0] : 1, z = n_axes >= 3 ? size[n_axes - 3] : 1;
    for (int64_t i = 0; i < b; i++)
        for (int64_t k = 0; k < z; k++)
            for (int64_t y = 0; y < size[n_axes - 2]; y++)
                for (int64_t x = 0; x < size[n_axes - 1]; x++) data[n++] = pixel(i, k, y, x);
    snprintf(path, sizeof paths[0], "%s", t_temp_path(name));
    OK(fth_npy_save(mem, path, FTH_U16, n_axes, size, data, NULL));
    return path;
}

static fth_status open_all(fo_input *in, fth_mem *mem, const fo_selection *s, fth_err *err, int n,
                           const char *const *path)
{
    return fo_input_open(in, mem, path, n, s, err);
}

TEST(natural_order)
{
    static const char *const order[] = {"",     "a",     "a1",   "a2",    "a02",
                                        "a10",  "a10b",  "a11",  "aa",    "b",
                                        "z1_2", "z1_10", "z2_1", "z12_1", "z99999999999999999999"};
    const int n = sizeof order / sizeof order[0];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const int c = fo_natural_compare(order[i], order[j]);
            if ((c > 0) - (c < 0) != (i > j) - (i < j))
                if (!(strcmp(order[i], "a02") == 0 || strcmp(order[j], "a02") == 0))
                    FAIL("%s and %s: %d", order[i], order[j], c);
        }
    IS_TRUE(fo_natural_compare("a02", "a2") != 0);
    IS_TRUE(fo_natural_compare("a02", "a2") == -fo_natural_compare("a2", "a02"));
}

TEST(stems)
{
    static const char *const t[][2] = {
        {"dir/a.tif", "a"}, {"a.ome.tif", "a"},     {"a.OME.TIFF", "a"}, {"x/y.ome.zarr/", "y"},
        {"a.b.nd2", "a.b"}, {".hidden", ".hidden"}, {"plain", "plain"},  {"é ü.npy", "é ü"}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        char stem[200];
        fo_path_stem(t[i][0], stem, sizeof stem);
        EQ_STR(stem, t[i][1]);
    }
}

TEST(one_file_is_one_stack)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    fth_err err = {0};
    const char *path = save(mem, "a.npy", 3, (const int64_t[]){4, Y, X});
    OKE(open_all(&in, mem, &everything, &err, 1, &path), &err);
    EQ_I64(in.n_stacks, 1);
    EQ_I64(in.planes, 4);
    EQ_I64(in.rows, Y);
    EQ_I64(in.columns, X);
    EQ_I64(in.dtype, FTH_U16);
    EQ_I64(in.significant_bits, 16);
    EQ_I64(in.stack[0].present, 4);
    fo_input_view view = {.input = &in};
    const fth_source s = fo_input_source(&view);
    uint16_t got[2 * 2 * 3];
    const int64_t lo[] = {0, 1, 2, 3}, n[] = {1, 2, 2, 3};
    OKE(s.read(s.self, lo, n, got, &err), &err);
    for (int64_t i = 0; i < 12; i++) EQ_I64(got[i], pixel(0, 1 + i / 6, 2 + i / 3 % 2, 3 + i % 3));
    fo_input_close(&in);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(files_of_one_plane_are_one_stack_in_natural_order)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    fth_err err = {0};
    const char *path[3] = {t_temp_path("z10.npy")};
    char names[3][1200];
    for (int i = 0; i < 3; i++) {
        static const int number[] = {10, 9, 2};
        uint16_t data[Y * X];
        for (int k = 0; k < Y * X; k++) data[k] = (uint16_t)(number[i] * 100 + k);
        snprintf(names[i], sizeof names[i], "%s/z%d.npy", t_temp_dir(), number[i]);
        OK(fth_npy_save(mem, names[i], FTH_U16, 2, (const int64_t[]){Y, X}, data, NULL));
        path[i] = names[i];
    }
    OKE(open_all(&in, mem, &everything, &err, 3, path), &err);
    IS_TRUE(in.of_planes);
    EQ_I64(in.n_stacks, 1);
    EQ_I64(in.planes, 3);
    fo_input_view view = {.input = &in};
    const fth_source s = fo_input_source(&view);
    uint16_t got[3];
    OKE(s.read(s.self, (const int64_t[]){0, 0, 0, 1}, (const int64_t[]){1, 3, 1, 1}, got, &err),
        &err);
    EQ_I64(got[0], 201);
    EQ_I64(got[1], 901);
    EQ_I64(got[2], 1001);
    fo_input_close(&in);
    char pattern[1200];
    const char *only = pattern;
    snprintf(pattern, sizeof pattern, "%s/z*.npy", t_temp_dir());
    OKE(open_all(&in, mem, &everything, &err, 1, &only), &err);
    EQ_I64(in.planes, 3);
    HAS(in.file[0].path, "z2.npy");
    HAS(in.file[2].path, "z10.npy");
    fo_input_close(&in);
    OK(fth_mem_destroy(mem, NULL));
}

/* The dtype of an NPY file of u16, replaced. */
static const char *save_as(fth_mem *mem, const char *name, const char *dtype)
{
    size_t n;
    const char *path = save(mem, name, 3, (const int64_t[]){2, Y, X});
    unsigned char *bytes = t_file_read(path, &n);
    char *descr = strstr((char *)bytes + 10, "<u2"); /* behind the magic, which holds a zero */
    IS_TRUE(descr != NULL);
    memcpy(descr, dtype, 3);
    t_file_write(path, bytes, n);
    free(bytes);
    return path;
}

/* The advice is one that can be followed: to a type that images have. */
TEST(numbers_of_other_types_are_refused_with_a_type_that_does)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    fth_err err = {0};
    const char *path = save_as(mem, "text.npy", "<U2");
    IS(open_all(&in, mem, &everything, &err, 1, &path), FTH_E_FILE_FORMAT);
    HAS(err.text, "'<U2'");
    HAS(err.hint, "u8, u16 or f32");
    HAS(err.hint, "float32");
    err = (fth_err){0};
    path = save_as(mem, "i16.npy", "<i2");
    IS(open_all(&in, mem, &everything, &err, 1, &path), FTH_E_FILE_FORMAT);
    HAS(err.text, "expected pixels of u8, u16 or f32, found i16");
    HAS(err.hint, "float32");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(files_of_stacks_with_unequal_depths)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    fth_err err = {0};
    const char *path[] = {save(mem, "a.npy", 3, (const int64_t[]){2, Y, X}),
                          save(mem, "b.npy", 4, (const int64_t[]){2, 3, Y, X})};
    OKE(open_all(&in, mem, &everything, &err, 2, path), &err);
    EQ_I64(in.n_stacks, 3);
    EQ_I64(in.planes, 3);
    EQ_I64(in.stack[0].present, 2);
    EQ_I64(in.present[2], 0); /* plane 2 of the shallow one */
    EQ_I64(in.present[3], 1);
    EQ_I64(in.stack[2].b, 1);
    EQ_I64(in.missing_frames, 0);
    const int64_t chosen[] = {2, 0};
    fo_input_view view = {.input = &in, .chosen = chosen, .n = 2};
    const fth_source s = fo_input_source(&view);
    uint16_t got[6];
    OKE(s.read(s.self, (const int64_t[]){0, 0, 4, 6}, (const int64_t[]){2, 3, 1, 1}, got, &err),
        &err);
    const uint16_t want[] = {pixel(1, 0, 4, 6), pixel(1, 1, 4, 6), pixel(1, 2, 4, 6),
                             pixel(0, 0, 4, 6), pixel(0, 1, 4, 6), 0};
    SAME_BYTES(got, want, sizeof want);
    fo_input_close(&in);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(planes_are_selected)
{
    static const struct {
        int64_t keep, first, count;
    } t[] = {{12, 2, 13}, {17, 0, 17}, {30, 0, 17}, {1, 8, 1}, {2, 7, 3}};
    fth_mem *mem = t_mem(1 << 22);
    fth_err err = {0};
    const char *path = save(mem, "a.npy", 3, (const int64_t[]){17, Y, X});
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        fo_input in;
        fo_selection s = everything;
        s.z_keep = t[i].keep;
        OKE(open_all(&in, mem, &s, &err, 1, &path), &err);
        EQ_I64(in.first_plane, t[i].first);
        EQ_I64(in.planes, t[i].count);
        EQ_I64(in.file_planes, 17);
        fo_input_close(&in);
    }
    fo_input in;
    fo_selection s = everything;
    s.has_planes = true;
    s.planes = (fo_range){3, 5, 1};
    OKE(open_all(&in, mem, &s, &err, 1, &path), &err);
    fo_input_view view = {.input = &in};
    const fth_source source = fo_input_source(&view);
    uint16_t got[2];
    OKE(source.read(source.self, (const int64_t[]){0, 0, 0, 0}, (const int64_t[]){1, 2, 1, 1}, got,
                    &err),
        &err);
    EQ_I64(got[0], pixel(0, 3, 0, 0));
    EQ_I64(got[1], pixel(0, 4, 0, 0));
    fo_input_close(&in);
    s.planes = (fo_range){3, 18, 1};
    IS(open_all(&in, mem, &s, &err, 1, &path), FTH_E_COMMAND);
    HAS(err.text, "--z-range: planes 3 to 18, but there are 17");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(all_problems_are_told_at_once)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    fth_err err = {0};
    const char *path[] = {t_temp_path("none.npy"), NULL, NULL, NULL};
    char missing[1200], text[1200], cut[1200];
    snprintf(missing, sizeof missing, "%s/none.npy", t_temp_dir());
    snprintf(text, sizeof text, "%s/notes.txt", t_temp_dir());
    snprintf(cut, sizeof cut, "%s/cut.npy", t_temp_dir());
    t_file_write(text, "hello", 5);
    t_file_write(cut, "\x93NUMPY\x01", 7);
    path[0] = missing;
    path[1] = text;
    path[2] = cut;
    path[3] = "no*such?files";
    IS(open_all(&in, mem, &everything, &err, 4, path), FTH_E_FILE_FORMAT);
    HAS(err.text, "4 problems:");
    HAS(err.text, "none.npy: no such file");
    HAS(err.text, "notes.txt: ");
    HAS(err.text, "cut.npy");
    HAS(err.text, "no*such?files: no file matches");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(mixtures_are_refused)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    const char *plane = save(mem, "p.npy", 2, (const int64_t[]){Y, X}),
               *stack = save(mem, "s.npy", 3, (const int64_t[]){2, Y, X}),
               *wide = save(mem, "w.npy", 3, (const int64_t[]){2, Y, X + 1});
    const float f[2 * Y * X] = {0};
    char floats[1200];
    snprintf(floats, sizeof floats, "%s/f.npy", t_temp_dir());
    OK(fth_npy_save(mem, floats, FTH_F32, 3, (const int64_t[]){2, Y, X}, f, NULL));
    fth_err err = {0};
    IS(open_all(&in, mem, &everything, &err, 2, (const char *const[]){plane, stack}),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "p.npy has one plane and ");
    HAS(err.text, "s.npy has 2 frames: a mixture");
    err = (fth_err){0};
    IS(open_all(&in, mem, &everything, &err, 3, (const char *const[]){stack, wide, floats}),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "w.npy: expected y=5 x=7 as in ");
    HAS(err.text, "found y=5 x=8");
    HAS(err.text, "f.npy: expected u16 as in ");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(shapes_and_dtypes_that_are_no_stacks)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    char path[1200];
    const char *only = path;
    const double d[24] = {0};
    fth_err err = {0};
    snprintf(path, sizeof path, "%s/d.npy", t_temp_dir());
    OK(fth_npy_save(mem, path, FTH_F64, 3, (const int64_t[]){2, 3, 4}, d, NULL));
    IS(open_all(&in, mem, &everything, &err, 1, &only), FTH_E_FILE_FORMAT);
    HAS(err.text, "expected pixels of u8, u16 or f32, found f64");
    err = (fth_err){0};
    OK(fth_npy_save(mem, path, FTH_F32, 5, (const int64_t[]){1, 1, 2, 3, 4}, d, NULL));
    IS(open_all(&in, mem, &everything, &err, 1, &only), FTH_E_FILE_FORMAT);
    HAS(err.text, "expected axes y x, z y x or b z y x, found 5 axes");
    err = (fth_err){0};
    OK(fth_npy_save(mem, path, FTH_F32, 3, (const int64_t[]){0, 3, 4}, d, NULL));
    IS(open_all(&in, mem, &everything, &err, 1, &only), FTH_E_FILE_FORMAT);
    HAS(err.text, "axis z is empty");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(nan_is_named_with_its_plane)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    fth_err err = {0};
    char path[1200];
    const char *only = path;
    float v[4 * Y * X] = {0};
    v[2 * Y * X + 3 * X + 1] = strtof("nan", NULL);
    snprintf(path, sizeof path, "%s/n.npy", t_temp_dir());
    OK(fth_npy_save(mem, path, FTH_F32, 3, (const int64_t[]){4, Y, X}, v, NULL));
    OKE(open_all(&in, mem, &everything, &err, 1, &only), &err);
    fo_input_view view = {.input = &in};
    const fth_source s = fo_input_source(&view);
    float got[4 * Y * X];
    IS(s.read(s.self, (const int64_t[]){0, 1, 0, 0}, (const int64_t[]){1, 3, Y, X}, got, &err),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "n.npy: plane 2 has NaN at y=3 x=1");
    EQ_I64(view.failed, 0);
    fo_input_close(&in);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(raw_bytes)
{
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    fth_err err = {0};
    char path[1200];
    const char *only = path;
    uint8_t bytes[100];
    for (int i = 0; i < 100; i++) bytes[i] = (uint8_t)i;
    snprintf(path, sizeof path, "%s/a.bin", t_temp_dir());
    t_file_write(path, bytes, sizeof bytes);
    fo_selection s = everything;
    s.is_raw = true;
    s.raw = (fth_raw_layout){.dtype = FTH_U8, .n_axes = 3, .size = {3, 4, 8}, .offset = 4};
    OKE(open_all(&in, mem, &s, &err, 1, &only), &err);
    EQ_I64(in.planes, 3);
    EQ_I64(in.significant_bits, 8);
    fo_input_view view = {.input = &in};
    const fth_source source = fo_input_source(&view);
    uint8_t got = 0;
    OKE(source.read(source.self, (const int64_t[]){0, 2, 3, 7}, (const int64_t[]){1, 1, 1, 1}, &got,
                    &err),
        &err);
    EQ_I64(got, 99);
    fo_input_close(&in);
    s.raw.size[0] = 4;
    IS(open_all(&in, mem, &s, &err, 1, &only), FTH_E_FILE_FORMAT);
    HAS(err.text, "a.bin");
    OK(fth_mem_destroy(mem, NULL));
}

#define ND2 "tests/golden/focus/synth_T2P3Z5.nd2"

TEST(positions_times_and_channels_of_nd2)
{
    fth_mem *mem = t_mem(1 << 23);
    fo_input in;
    fth_err err = {0};
    const char *path = ND2;
    OKE(open_all(&in, mem, &everything, &err, 1, &path), &err);
    EQ_I64(in.n_stacks, 6);
    EQ_I64(in.planes, 5);
    EQ_I64(in.size[FO_P], 3);
    EQ_I64(in.size[FO_T], 2);
    IS_TRUE(in.um_per_px > 0 && in.z_step_um > 0);
    EQ_I64(in.stack[1].p, 0); /* all time points of a position, then the next */
    EQ_I64(in.stack[1].t, 1);
    EQ_I64(in.stack[2].p, 1);
    fo_input_close(&in);
    fo_selection s = everything;
    s.times = (fo_range){1, 2, 1};
    s.wells = "0,2";
    s.um_per_px = 7;
    OKE(open_all(&in, mem, &s, &err, 1, &path), &err);
    EQ_I64(in.n_stacks, 2);
    EQ_I64(in.stack[1].p, 2);
    EQ_I64(in.stack[1].t, 1);
    EQ_I64(in.size[FO_T], 1);
    EQ_F64(in.um_per_px, 7);
    fo_input_close(&in);
    s.times.end = 3;
    s.wells = "0,Q9";
    s.channel = "GFP";
    IS(open_all(&in, mem, &s, &err, 1, &path), FTH_E_COMMAND);
    HAS(err.text, "no channel 'GFP'; the channels are 0");
    OK(fth_mem_destroy(mem, NULL));
}

TEST(missing_frames_are_not_present)
{
    fth_mem *mem = t_mem(1 << 23);
    fo_input in;
    fth_err err = {0};
    const char *path = "tests/golden/focus/synth_T2P3Z5_missing.nd2";
    OKE(open_all(&in, mem, &everything, &err, 1, &path), &err);
    int64_t present = 0;
    for (int64_t i = 0; i < in.n_stacks * in.planes; i++) present += in.present[i];
    EQ_I64(present + in.missing_frames, 30);
    IS_TRUE(in.missing_frames > 0);
    fo_input_close(&in);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(each_channel_is_a_stack)
{
    fth_mem *mem = t_mem(1 << 23);
    fo_input in;
    fth_err err = {0};
    const char *path = "tests/golden/focus/synth_Z5C2.nd2";
    fo_selection s = everything;
    s.channels = FO_CHANNELS_EACH;
    s.channel = "0";
    OKE(open_all(&in, mem, &s, &err, 1, &path), &err);
    EQ_I64(in.n_stacks, 2);
    EQ_I64(in.stack[1].c, 1);
    EQ_I64(in.size[FO_C], 2);
    fo_input_close(&in);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_nth_allocation_fails)
{
    const char *path = ND2;
    for (int64_t n = 1; n < 10000; n++) {
        fth_mem_options opt;
        fth_mem *mem = NULL;
        fo_input in;
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 23;
        opt.fail_alloc = n;
        if (fth_mem_create(&mem, &opt, NULL) != FTH_OK) continue;
        const fth_status s = open_all(&in, mem, &everything, NULL, 1, &path);
        if (s == FTH_OK) fo_input_close(&in);
        OK(fth_mem_destroy(mem, NULL));
        if (s == FTH_OK) return;
        EQ_I64(fth_status_get_info(s)->exit_code, 4);
    }
    FAIL("it never succeeds");
}

TEST_MAIN()
