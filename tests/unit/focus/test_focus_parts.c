/* test_focus_parts.c - the ends of a fusion by themselves: what is read of which file, how pictures
 * are put together, and tables that are read again.
 * seconds: 2 */
#include "instruments/focus/output/tables.h"
#include "instruments/focus/output/writer.h"
#include "testing/io/nd2_made.h"

#include <fathom/pictures.h>

#include <dirent.h>
#include <math.h>

/* ---- input ---- */

static const fo_selection everything = {
    .channel = "", .wells = "", .times = {0, -1, 1}, .planes = {0, -1, 1}};

static fo_selection with_planes(int64_t first, int64_t end)
{
    fo_selection s = everything;
    s.has_planes = true;
    s.planes = (fo_range){first, end, 1};
    return s;
}

/* Planes of 3 x 4 floats that count on. */
static const char *save(fth_mem *mem, const char *name, int64_t planes, float first)
{
    float v[200];
    const char *path = t_temp_path(name);
    for (int64_t i = 0; i < planes * 12; i++) v[i] = first + (float)i;
    OK(fth_npy_save(mem, path, FTH_F32, planes > 1 ? 3 : 2,
                    planes > 1 ? (const int64_t[]){planes, 3, 4} : (const int64_t[]){3, 4}, v,
                    NULL));
    return path;
}

static float value_at(fo_input *in, int64_t stack, int64_t z, int64_t i)
{
    fo_input_view view = {.input = in};
    const fth_source s = fo_input_source(&view);
    float v[12];
    fth_err err = {0};
    OKE(s.read(s.self, (const int64_t[]){stack, z, 0, 0}, (const int64_t[]){1, 1, 3, 4}, v, &err),
        &err);
    return v[i];
}

TEST(planes_from_behind_the_last_are_refused)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *path = save(mem, "a.npy", 4, 0);
    fo_input in;
    fth_err err = {0};
    const fo_selection none = with_planes(4, -1), last = with_planes(3, -1);
    IS(fo_input_open(&in, mem, &path, 1, &none, &err), FTH_E_COMMAND);
    HAS(err.text, "--z-range: planes 4 to 4, but there are 4");
    OK(fo_input_open(&in, mem, &path, 1, &last, NULL));
    EQ_I64(in.planes, 1);
    EQ_F64(value_at(&in, 0, 0, 5), 41);
    fo_input_close(&in);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A stack that is not so deep ends in planes that are not there, from wherever planes are taken. */
TEST(shorter_stacks_from_a_plane_on)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *path[2] = {save(mem, "deep.npy", 4, 0), save(mem, "flat.npy", 2, 1000)};
    fo_input in;
    fth_err err = {0};
    const fo_selection from_1 = with_planes(1, -1);
    OKE(fo_input_open(&in, mem, path, 2, &from_1, &err), &err);
    EQ_I64(in.planes, 3);
    EQ_I64(in.stack[1].planes, 1);
    static const uint8_t has[6] = {1, 1, 1, 1, 0, 0};
    SAME_BYTES(in.present, has, 6);
    EQ_F64(value_at(&in, 1, 0, 0), 1012);
    EQ_F64(value_at(&in, 1, 1, 0), 0);
    EQ_F64(value_at(&in, 0, 2, 11), 47);
    fo_input_close(&in);
    for (int i = 0; i < 2; i++) remove(path[i]);
    OK(fth_mem_destroy(mem, NULL));
}

/* Planes that are files of their own are counted as the selection says. */
TEST(files_from_a_plane_on)
{
    fth_mem *mem = t_mem(1 << 22);
    char name[4][1200];
    const char *path[4];
    for (int i = 0; i < 4; i++) {
        char own[20];
        snprintf(own, sizeof own, "z%d.npy", i);
        snprintf(name[i], sizeof name[i], "%s", save(mem, own, 1, (float)(100 * i)));
        path[i] = name[i];
    }
    fo_input in;
    const fo_selection some = with_planes(1, 3);
    OK(fo_input_open(&in, mem, path, 4, &some, NULL));
    IS_TRUE(in.of_planes);
    EQ_I64(in.planes, 2);
    for (int z = 0; z < 2; z++) EQ_F64(value_at(&in, 0, z, 3), 100 * (z + 1) + 3);
    fo_input_close(&in);
    for (int i = 0; i < 4; i++) remove(path[i]);
    OK(fth_mem_destroy(mem, NULL));
}

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Descriptors are few: many files are opened only while they are read. */
TEST(many_files_are_not_kept_open)
{
    enum { FILES = 140 };
    static char name[FILES][300];
    const char *path[FILES];
    fth_mem *mem = t_mem(1 << 24);
    for (int i = 0; i < FILES; i++) {
        char own[20];
        snprintf(own, sizeof own, "z%d.npy", i);
        snprintf(name[i], sizeof name[i], "%s", save(mem, own, 1, (float)(100 * i)));
        path[i] = name[i];
    }
    const int before = open_files();
    fo_input in;
    OK(fo_input_open(&in, mem, path, FILES, &everything, NULL));
    LE_F64(open_files() - before, 40);
    for (int z = 0; z < FILES; z += 17) EQ_F64(value_at(&in, 0, z, 3), 100 * z + 3);
    LE_F64(open_files() - before, 40);
    fo_input_close(&in);
    EQ_I64(open_files(), before);
    for (int i = 0; i < FILES; i++) remove(path[i]);
    OK(fth_mem_destroy(mem, NULL));
}

/* Names are whole: A0 is not A01. Times go in steps. */
TEST(positions_and_times_that_are_chosen)
{
    const fth_images_position at[3] = {{"A0", 0, 0, 0}, {"A01", 0, 0, 0}, {"A012", 0, 0, 0}};
    const fth_nd2_options o = {.size = {6, 3, 2, 1, 4, 4}, .dtype = FTH_U16, .position = at};
    const t_nd2_scene scene = {.o = &o};
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("wells.nd2");
    OK(fth_nd2_write(mem, path, &o, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    fo_selection s = everything;
    s.wells = "A01";
    s.times = (fo_range){1, 6, 2};
    fo_input in;
    OK(fo_input_open(&in, mem, &path, 1, &s, NULL));
    EQ_I64(in.n_stacks, 3);
    for (int i = 0; i < 3; i++) {
        EQ_I64(in.stack[i].p, 1);
        EQ_I64(in.stack[i].t, 1 + 2 * i);
    }
    fo_input_close(&in);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Frames that a file lacks are those of the planes that are taken. */
TEST(missing_frames_from_a_plane_on)
{
    const fth_nd2_options o = {.size = {1, 2, 3, 1, 4, 4}, .dtype = FTH_U16};
    const int64_t missing[] = {0, 5};
    const t_nd2_scene scene = {&o, missing, 2};
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("missing.nd2");
    OK(fth_nd2_write(mem, path, &o, t_nd2_draw, (void *)(uintptr_t)&scene, NULL));
    fo_input in;
    const fo_selection from_1 = with_planes(1, -1);
    OK(fo_input_open(&in, mem, &path, 1, &from_1, NULL));
    static const uint8_t has[4] = {1, 1, 1, 0};
    SAME_BYTES(in.present, has, 4);
    EQ_I64(in.missing_frames, 1);
    fo_input_close(&in);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* Colours become their luminance, rounded; one after the other, for there is one buffer. */
TEST(colours_become_grey)
{
    uint8_t px[3 * 4 * 3];
    for (int i = 0; i < 36; i++) px[i] = (uint8_t)(i * 53 % 256);
    const fth_picture p = {FTH_U8, 3, 4, 3, px, 0};
    fth_mem *mem = t_mem(1 << 24);
    char name[2][1200];
    const char *path[2] = {name[0], name[1]};
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%s/c%d.png", t_temp_dir(), i);
        OK(fth_picture_save(mem, name[i], &p, &(fth_picture_format){.kind = FTH_PICTURE_PNG},
                            NULL));
    }
    fo_input in;
    OK(fo_input_open(&in, mem, path, 2, &everything, NULL));
    fo_input_view view = {.input = &in};
    const fth_source s = fo_input_source(&view);
    IS_TRUE(!s.concurrent);
    uint8_t got[24];
    OK(s.read(s.self, (int64_t[4]){0}, s.size, got, NULL));
    for (int i = 0; i < 24; i++) {
        const uint8_t *c = px + 3 * (i % 12);
        EQ_I64(got[i], (int64_t)floor(0.2125 * c[0] + 0.7154 * c[1] + 0.0721 * c[2] + 0.5));
    }
    fo_input_close(&in);
    for (int i = 0; i < 2; i++) remove(path[i]);
    OK(fth_mem_destroy(mem, NULL));
}

/* The stack that cannot be read is told by its number in the input. */
TEST(which_stack_failed)
{
    float v[3][2][12] = {{{0}}};
    v[2][1][7] = (float)NAN;
    fth_mem *mem = t_mem(1 << 22);
    fo_input in;
    const int64_t size[4] = {3, 2, 3, 4}, chosen[2] = {0, 2};
    OK(fo_input_open_array(&in, mem, FTH_F32, 4, size, v, &everything, NULL));
    fo_input_view view = {.input = &in, .chosen = chosen, .n = 2};
    const fth_source s = fo_input_source(&view);
    float got[24];
    fth_err err = {0};
    OK(s.read(s.self, (int64_t[]){0, 0, 0, 0}, (int64_t[]){1, 2, 3, 4}, got, NULL));
    EQ_I64(view.failed, -1);
    IS(s.read(s.self, (int64_t[]){1, 0, 0, 0}, (int64_t[]){1, 2, 3, 4}, got, &err),
       FTH_E_FILE_FORMAT);
    HAS(err.text, "plane 1 has NaN at y=1 x=3");
    EQ_I64(view.failed, 2);
    fo_input_close(&in);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(rectangles_of_an_array)
{
    static const int64_t sizes[3][4] = {{3, 4, 5, 6}, {4, 5, 6, 0}, {5, 6, 0, 0}};
    uint16_t v[360];
    for (int i = 0; i < 360; i++) v[i] = (uint16_t)(i * 181);
    for (int k = 0; k < 3; k++) {
        fth_mem *mem = t_mem(1 << 22);
        fo_input in;
        OK(fo_input_open_array(&in, mem, FTH_U16, 4 - k, sizes[k], v, &everything, NULL));
        fo_input_view view = {.input = &in};
        const fth_source s = fo_input_source(&view);
        t_source_check(&s, v, 3, 60);
        fo_input_close(&in);
        OK(fth_mem_destroy(mem, NULL));
    }
}

/* Planes that are files: those of the selection, all of one kind. */
static fth_texts *grid_paths(fth_mem *mem, char name[4][1200])
{
    fth_texts *paths = NULL;
    OK(fth_texts_create(&paths, mem, NULL));
    for (int i = 0; i < 4; i++) { /* the last has colours */
        uint8_t px[36];
        memset(px, 50 * (i + 1), sizeof px);
        const fth_picture p = {FTH_U8, 3, 4, i == 3 ? 3 : 1, px, 0};
        snprintf(name[i], 1200, "%s/g%d.png", t_temp_dir(), i);
        OK(fth_picture_save(mem, name[i], &p, &(fth_picture_format){.kind = FTH_PICTURE_PNG},
                            NULL));
        OK(fth_texts_add(paths, name[i], strlen(name[i]), NULL));
    }
    return paths;
}

static int32_t *grid_planes(fth_mem *mem, const int32_t *from, int n)
{
    void *block = NULL;
    OK(fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)n * sizeof *from, "planes", &block, NULL));
    return memcpy(block, from, (size_t)n * sizeof *from);
}

TEST(stacks_of_a_grid)
{
    char name[4][1200];
    fth_mem *mem = t_mem(1 << 24);
    const fo_stack stack[2] = {{.planes = 3}, {.planes = 3}};
    const int32_t plane[6] = {0, 1, 2, 2, 1, -1};
    fo_grid grid = {grid_paths(mem, name), stack, 2, 3, grid_planes(mem, plane, 6)};
    fo_grid_files files;
    fo_problems problems = {0};
    fo_input in;
    const fo_selection from_1 = with_planes(1, -1);
    OK(fo_input_open_grid(&in, mem, &grid, &from_1, &files, &problems, NULL));
    EQ_I64(problems.n, 0);
    EQ_I64(in.planes, 2);
    static const uint8_t has[4] = {1, 1, 1, 0};
    SAME_BYTES(in.present, has, 4);
    EQ_I64(in.missing_frames, 1);
    fo_input_view view = {.input = &in};
    const fth_source s = fo_input_source(&view);
    uint8_t got[48];
    OK(s.read(s.self, (int64_t[4]){0}, s.size, got, NULL));
    static const int shade[4] = {100, 150, 100, 0};
    for (int i = 0; i < 48; i++) EQ_I64(got[i], shade[i / 12]);
    /* a file that is gone is an error each time, and never a wait for what nobody gives back */
    remove(name[1]);
    for (int i = 0; i < 20; i++)
        IS_TRUE(s.read(s.self, (int64_t[4]){0}, (int64_t[]){1, 1, 3, 4}, got, NULL) != FTH_OK);
    fo_input_close(&in);

    /* grey and colours do not mix */
    const int32_t mixed[6] = {0, 3, 2, 2, 2, -1};
    grid.paths = grid_paths(mem, name);
    grid.plane = grid_planes(mem, mixed, 6);
    OK(fo_input_open_grid(&in, mem, &grid, &everything, &files, &problems, NULL));
    EQ_I64(problems.n, 1);
    fth_err err = {0};
    IS_TRUE(fo_problems_end(&problems, &err) != FTH_OK);
    HAS(err.text, "found y=3 x=4 u8 RGB");
    for (int i = 0; i < 4; i++) remove(name[i]);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- names ---- */

TEST(formats_with_a_quality)
{
    fo_format f;
    OK(fo_format_choose("jpg:35", "", "png", &f, NULL));
    EQ_I64(f.quality, 35);
    OK(fo_format_choose("jpg", "", "png", &f, NULL));
    EQ_I64(f.quality, 90);
    IS(fo_format_choose("png:35", "", "png", &f, NULL), FTH_E_COMMAND);
}

/* Files of one name are numbered; other channels count around the chosen one. */
TEST(names_of_files)
{
    fo_file file[2] = {{.path = "x/a.nd2"}, {.path = "y/a.nd2"}};
    fo_stack stack[2] = {{.file = 0, .c = 1}, {.file = 1, .c = 1}};
    fo_input in = {.file = file, .n_files = 2, .stack = stack, .n_stacks = 2};
    for (int a = 0; a < FO_AXES; a++) in.size[a] = 1;
    fo_names names;
    fo_format png;
    char stem[300];
    OK(fo_format_choose("png", "", "png", &png, NULL));
    fo_names_begin(&names, &in, "out", &png);
    for (int i = 0; i < 2; i++) {
        fo_names_stem(&names, i, FO_OUT_IMAGE, stem, sizeof stem);
        EQ_STR(stem, i ? "a_b0001" : "a_b0000");
    }
    file[1].path = "y/b.nd2";
    in.size[FO_C] = 3;
    in.others = 2;
    fo_names_begin(&names, &in, "out", &png);
    static const struct {
        fo_port port;
        const char *stem;
    } ports[] = {{FO_OUT_IMAGE, "b_c01"}, {FO_OUT_KINDS, "b_c00"}, {FO_OUT_KINDS + 1, "b_c02"}};
    for (int i = 0; i < 3; i++) {
        fo_names_stem(&names, 1, ports[i].port, stem, sizeof stem);
        EQ_STR(stem, ports[i].stem);
    }
}

/* ---- writer ---- */

enum { ROWS = 4, COLUMNS = 6, AREA = ROWS * COLUMNS };

typedef struct desk {
    fth_context *ctx;
    fo_writer *writer;
    int64_t done[4]; /* how often each stack was */
    fo_port refused; /* -1: none */
} desk;

static fth_status path_of(void *user, int64_t stack, fo_port port, char path[FTH_PATH],
                          fth_err *err)
{
    const desk *d = user;
    if (port == d->refused) return FTH_FAIL(err, FTH_E_FILE_WRITE, "no place for it");
    snprintf(path, FTH_PATH, "%s/s%d_%d", t_temp_dir(), (int)stack, port);
    return FTH_OK;
}

static void done(void *user, int64_t stack)
{
    ((desk *)user)->done[stack]++;
}

static void open_desk(desk *d, fo_writer_options opt, const char *format)
{
    fth_options options;
    fth_err err = {0};
    *d = (desk){.refused = -1};
    fth_options_default(&options);
    options.threads = 2;
    OK(fth_context_create(&d->ctx, &options, NULL));
    opt.rows = ROWS;
    opt.columns = COLUMNS;
    opt.path = path_of;
    opt.done = done;
    opt.user = d;
    OK(fo_format_choose(format, "", "png", &opt.format, NULL));
    OKE(fo_writer_create(&d->writer, d->ctx, &opt, &err), &err);
}

static void close_desk(desk *d)
{
    fo_writer_destroy(d->writer);
    OK(fth_context_destroy(d->ctx, NULL));
    char command[5000];
    snprintf(command, sizeof command, "rm -f '%s'/s?_?", t_temp_dir());
    IS_TRUE(system(command) == 0);
}

static fth_status bring(const desk *d, fo_port port, int64_t stack, const int64_t *corner,
                        const int64_t *extent, const void *src)
{
    const fth_sink s = fo_writer_sink(d->writer, port, NULL, 4);
    const int64_t lo[3] = {stack, corner[0], corner[1]}, n[3] = {1, extent[0], extent[1]};
    return s.write(s.self, lo, n, src, NULL);
}

static void bring_all(const desk *d, fo_port port, int64_t stack, const void *src)
{
    OK(bring(d, port, stack, (int64_t[]){0, 0}, (int64_t[]){ROWS, COLUMNS}, src));
}

/* The pixels with which a TIFF of ours ends. */
static size_t load_end(int64_t stack, fo_port port, void *out, size_t bytes)
{
    char name[20];
    size_t all;
    snprintf(name, sizeof name, "s%d_%d", (int)stack, port);
    unsigned char *file = t_file_read(t_temp_path(name), &all);
    IS_TRUE(all > bytes);
    memcpy(out, file + all - bytes, bytes);
    free(file);
    return all;
}

/* As documented: u16 from 256 planes on. */
TEST(planes_are_named_by_bytes_where_they_can)
{
    uint16_t index[AREA];
    for (int i = 0; i < AREA; i++) index[i] = (uint16_t)(i * 10);
    for (int64_t planes = 255; planes <= 256; planes++) {
        desk d;
        open_desk(&d,
                  (fo_writer_options){.n_stacks = 1,
                                      .planes = planes,
                                      .first_plane = 2,
                                      .values = FTH_U8,
                                      .wanted = {true, true}},
                  "png");
        bring_all(&d, FO_OUT_INDEX, 0, index);
        uint16_t wide[AREA];
        uint8_t narrow[AREA];
        if (planes < 256)
            load_end(0, FO_OUT_INDEX, narrow, sizeof narrow);
        else
            load_end(0, FO_OUT_INDEX, wide, sizeof wide);
        for (int i = 0; i < AREA; i++) EQ_I64(planes < 256 ? narrow[i] : wide[i], index[i] + 2);
        close_desk(&d);
    }
}

/* Depths count from the first plane of the file, and then have their unit. */
TEST(depths_have_their_offset_and_unit)
{
    float depth[AREA], got[AREA];
    for (int i = 0; i < AREA; i++) depth[i] = (float)i / 4;
    desk d;
    open_desk(&d,
              (fo_writer_options){.n_stacks = 1,
                                  .planes = 9,
                                  .values = FTH_U8,
                                  .depth_offset = 3,
                                  .depth_unit = 2.5,
                                  .wanted = {true, false, true}},
              "png");
    bring_all(&d, FO_OUT_DEPTH, 0, depth);
    load_end(0, FO_OUT_DEPTH, got, sizeof got);
    for (int i = 0; i < AREA; i++) EQ_F64(got[i], (i / 4.0 + 3) * 2.5);
    close_desk(&d);
}

TEST(values_are_widened_not_scaled)
{
    uint8_t v[AREA];
    uint16_t got[AREA];
    for (int i = 0; i < AREA; i++) v[i] = (uint8_t)(10 * i);
    desk d;
    open_desk(&d, (fo_writer_options){.n_stacks = 1, .values = FTH_U8, .wanted = {true}}, "tif16");
    bring_all(&d, FO_OUT_IMAGE, 0, v);
    load_end(0, FO_OUT_IMAGE, got, sizeof got);
    for (int i = 0; i < AREA; i++) EQ_I64(got[i], v[i]);
    close_desk(&d);
}

/* Rectangles of any size and order, pictures of one stack beside each other; a stack is done when
 * all of its files are. */
TEST(pictures_are_put_together)
{
    uint16_t image[AREA], got[AREA];
    float sure[AREA], got_sure[AREA];
    for (int i = 0; i < AREA; i++) image[i] = (uint16_t)(1000 + i), sure[i] = (float)i;
    desk d;
    open_desk(
        &d,
        (fo_writer_options){.n_stacks = 2, .values = FTH_U16, .wanted = {true, false, false, true}},
        "tif16");
    for (int64_t x = COLUMNS - 2; x >= 0; x -= 2)
        for (int64_t y = 0; y < ROWS; y += 2) {
            uint16_t a[4];
            float b[4];
            for (int i = 0; i < 4; i++) {
                const int64_t at = (y + i / 2) * COLUMNS + x + i % 2;
                a[i] = image[at], b[i] = sure[at];
            }
            EQ_I64(d.done[1], 0);
            OK(bring(&d, FO_OUT_IMAGE, 1, (int64_t[]){y, x}, (int64_t[]){2, 2}, a));
            EQ_I64(d.done[1], 0); /* the other file is not whole */
            OK(bring(&d, FO_OUT_CONFIDENCE, 1, (int64_t[]){y, x}, (int64_t[]){2, 2}, b));
        }
    EQ_I64(d.done[1], 1);
    load_end(1, FO_OUT_IMAGE, got, sizeof got);
    load_end(1, FO_OUT_CONFIDENCE, got_sure, sizeof got_sure);
    SAME_BYTES(got, image, sizeof got);
    SAME_BYTES(got_sure, sure, sizeof sure);
    close_desk(&d);
}

/* After a run that ended early, a stack begins anew. */
TEST(half_a_picture_is_forgotten)
{
    uint16_t old[AREA], image[AREA], got[AREA];
    for (int i = 0; i < AREA; i++) old[i] = 7, image[i] = (uint16_t)(1000 + i);
    desk d;
    open_desk(&d, (fo_writer_options){.n_stacks = 1, .values = FTH_U16, .wanted = {true}}, "tif16");
    OK(bring(&d, FO_OUT_IMAGE, 0, (int64_t[]){0, 0}, (int64_t[]){ROWS - 1, COLUMNS}, old));
    const fth_sink s = fo_writer_sink(d.writer, FO_OUT_IMAGE, NULL, 4);
    s.abandon(s.self);
    OK(bring(&d, FO_OUT_IMAGE, 0, (int64_t[]){ROWS - 1, 0}, (int64_t[]){1, COLUMNS},
             image + AREA - COLUMNS));
    EQ_I64(d.done[0], 0);
    OK(bring(&d, FO_OUT_IMAGE, 0, (int64_t[]){0, 0}, (int64_t[]){ROWS - 1, COLUMNS}, image));
    EQ_I64(d.done[0], 1);
    load_end(0, FO_OUT_IMAGE, got, sizeof got);
    SAME_BYTES(got, image, sizeof got);
    close_desk(&d);
}

TEST(a_file_that_fails_leaves_its_stack_undone)
{
    uint16_t image[AREA] = {0};
    float sure[AREA] = {0};
    desk d;
    open_desk(
        &d,
        (fo_writer_options){.n_stacks = 2, .values = FTH_U16, .wanted = {true, false, false, true}},
        "tif16");
    d.refused = FO_OUT_CONFIDENCE;
    for (int64_t i = 0; i < 2; i++) {
        bring_all(&d, FO_OUT_IMAGE, i, image);
        IS(bring(&d, FO_OUT_CONFIDENCE, i, (int64_t[]){0, 0}, (int64_t[]){ROWS, COLUMNS}, sure),
           FTH_E_FILE_WRITE);
        EQ_I64(d.done[i], 0);
    }
    close_desk(&d);
}

/* ---- tables ---- */

static void name_of(void *user, int64_t stack, char *text, size_t bytes)
{
    (void)user;
    snprintf(text, bytes, "s%d", (int)stack);
}

static void no_well(void *user, int64_t stack, char *text, size_t bytes)
{
    (void)user, (void)stack;
    snprintf(text, bytes, "A%02d", (int)stack + 1);
}

/* What was saved is known again, by its name, also when planes were left out at the start. */
TEST(tables_are_read_again)
{
    enum { N = 3, P = 2 };
    const fo_labels labels = {name_of, no_well, NULL};
    fth_mem *mem = t_mem(1 << 22);
    fo_stack stack[N] = {{0}};
    uint8_t present[N * P] = {1, 1, 1, 0, 1, 1};
    const fo_input in = {.mem = mem,
                         .stack = stack,
                         .n_stacks = N,
                         .present = present,
                         .planes = P,
                         .first_plane = 4};
    char metrics[1200], planes[1200];
    snprintf(metrics, sizeof metrics, "%s/metrics.csv", t_temp_dir());
    snprintf(planes, sizeof planes, "%s/planes.csv", t_temp_dir());
    fo_results a, b;
    OK(fo_results_create(&a, mem, N, P, NULL));
    for (int i = 0; i < N; i++) {
        a.known[i] = 1;
        for (int k = 0; k < FO_STATS; k++) a.stats[i * FO_STATS + k] = 10 * i + k;
        a.stats[i * FO_STATS + FO_STAT_BEST_Z] = i == 2 ? -1 : 1;
        for (int z = 0; z < P; z++) {
            a.mean_log[i * P + z] = 0.5 + i + z;
            a.corr_next[i * P + z] = z + 1 < P ? 0.25 : (double)NAN;
            a.kept[i * P + z] = (uint8_t)((i + z) % 2);
        }
    }
    OK(fo_tables_save(&a, &in, &labels, metrics, planes, NULL));
    size_t bytes;
    char *csv = (char *)t_file_read(metrics, &bytes);
    csv[bytes] = 0;
    HAS(csv, "\ns0,A01,0,0,0,1,2,3,4,5,5,"); /* the best plane as the file counts */
    HAS(csv, "\ns2,A03,0,0,20,21,22,23,24,25,-1,");
    free(csv);
    csv = (char *)t_file_read(planes, &bytes);
    csv[bytes] = 0;
    EQ_STR(csv, "name,z,mean_log,corr_next,kept\n"
                "s0,4,0.5,0.25,0\ns0,5,1.5,,1\ns1,4,1.5,0.25,1\ns2,4,2.5,0.25,0\ns2,5,3.5,,1\n");
    free(csv);

    OK(fo_results_create(&b, mem, N, P, NULL));
    for (int i = 0; i < N; i++) b.state[i] = i == 1 ? FO_WAITING : FO_SKIPPED;
    OK(fo_tables_load(&b, &in, &labels, metrics, planes, NULL));
    static const uint8_t known[N] = {1, 0, 1}; /* what is to be done is not looked up */
    SAME_BYTES(b.known, known, N);
    for (int i = 0; i < N; i += 2) {
        for (int k = 0; k < FO_STAT_CONSTANT; k++)
            EQ_F64(b.stats[i * FO_STATS + k], a.stats[i * FO_STATS + k]);
        for (int z = 0; z < P; z++) {
            EQ_F64(b.mean_log[i * P + z], a.mean_log[i * P + z]);
            EQ_I64(b.kept[i * P + z], a.kept[i * P + z]);
        }
    }
    fo_results_free(&b);

    /* one whose planes are not there is not known */
    t_file_write(planes, "name,z,mean_log,corr_next,kept\ns2,4,2.5,0.25,1\n", 47);
    OK(fo_results_create(&b, mem, N, P, NULL));
    memset(b.state, FO_SKIPPED, N);
    OK(fo_tables_load(&b, &in, &labels, metrics, planes, NULL));
    static const uint8_t one[N] = {0, 0, 1};
    SAME_BYTES(b.known, one, N);
    fo_results_free(&b);
    fo_results_free(&a);
    remove(metrics);
    remove(planes);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
