/* test_nd2_trees.c - loops, points and pictures of ND2 files, from trees written by hand.
 *
 * Files that the library writes say little of what microscopes say: positions that were switched
 * off, several time loops, stacks that go down, lists of old versions.
 * seconds: 1 */
#include "testing/io/files.h"

#include "io/nd2.h"
#include "mem/heap.h"
#include "text/deflate.h"

#include <math.h>

/* ---- trees ---- */

typedef struct tree {
    fth_mem *mem;
    fth_err err;
    fth__lv_writer w;
} tree;

static void begin(tree *t)
{
    *t = (tree){.mem = t_mem(1 << 22)};
    t->w = (fth__lv_writer){.mem = t->mem, .err = &t->err};
}

static void end(tree *t)
{
    fth__lv_writer_clear(&t->w);
    OK(fth_mem_destroy(t->mem, NULL));
}

/* Bytes of 1 but for one, which is 0. */
static void put_flags(fth__lv_writer *w, const char *name, int64_t n, int64_t off)
{
    fth__lv_put_ones(w, name, n);
    w->data[w->bytes - n + off] = 0;
}

static void open_loop(fth__lv_writer *w, const char *name, int64_t type)
{
    fth__lv_open(w, name);
    fth__lv_put_u32(w, "eType", type);
    fth__lv_open(w, "uLoopPars");
}

static fth__nd2_loops read_loops(tree *t)
{
    fth__nd2_loops l;
    const fth__lv root = fth__lv_root(t->w.data, (uint64_t)t->w.bytes);
    OKE(fth__nd2_loops_read(&l, t->mem, fth__lv_level(root, "SLxExperiment"), "x.nd2", &t->err),
        &t->err);
    return l;
}

/* ---- time ---- */

TEST(periods_that_were_switched_off_do_not_count)
{
    tree t;
    begin(&t);
    open_loop(&t.w, "SLxExperiment", 8);
    fth__lv_open(&t.w, "pPeriod");
    for (int i = 0; i < 3; i++) {
        fth__lv_open(&t.w, "");
        fth__lv_put_u32(&t.w, "uiCount", 10 << i);
        fth__lv_put_f64(&t.w, "dPeriod", 100 + i);
        fth__lv_close(&t.w);
    }
    fth__lv_close(&t.w);
    put_flags(&t.w, "pPeriodValid", 3, 0);
    fth__lv_close(&t.w);
    fth__lv_close(&t.w);
    fth__nd2_loops l = read_loops(&t);
    EQ_I64(l.n, 1);
    EQ_I64(l.loop[0].axis, FTH_IMAGES_T);
    EQ_I64(l.loop[0].count, 60);
    EQ_F64(l.period_ms, 101); /* of the first that counts */
    fth__nd2_loops_clear(&l);
    end(&t);
}

/* ---- positions ---- */

static void put_point(fth__lv_writer *w, const char *name, double x, double y, double z)
{
    fth__lv_open(w, "");
    fth__lv_put_f64(w, "dPosX", x);
    fth__lv_put_f64(w, "dPosY", y);
    fth__lv_put_f64(w, "dPosZ", z);
    fth__lv_put_text(w, "dPosName", name);
    fth__lv_close(w);
}

TEST(points_that_were_switched_off_are_no_positions)
{
    tree t;
    begin(&t);
    open_loop(&t.w, "SLxExperiment", 2);
    fth__lv_put_u32(&t.w, "uiCount", 3);
    fth__lv_put_bool(&t.w, "bRelativeXY", true);
    fth__lv_put_f64(&t.w, "dReferenceX", 1000);
    fth__lv_put_f64(&t.w, "dReferenceY", -500);
    fth__lv_open(&t.w, "Points");
    for (int i = 0; i < 3; i++) put_point(&t.w, (const char *[]){"a", "b", "c"}[i], i, 10 * i, 7);
    fth__lv_close(&t.w);
    fth__lv_close(&t.w);
    put_flags(&t.w, "pItemValid", 3, 1);
    fth__lv_close(&t.w);
    fth__nd2_loops l = read_loops(&t);
    EQ_I64(l.loop[0].axis, FTH_IMAGES_P);
    EQ_I64(l.loop[0].count, 2);
    EQ_I64(l.n_points, 2);
    EQ_STR(l.point[0].name, "a");
    EQ_STR(l.point[1].name, "c");
    EQ_F64(l.point[1].x, 1002); /* from the reference on */
    EQ_F64(l.point[1].y, -480);
    EQ_F64(l.point[1].z, 7);
    IS_TRUE(!l.use_z);
    fth__nd2_loops_clear(&l);
    end(&t);
}

/* Old files have three lists of numbers, and flags as a level of bools. */
TEST(lists_of_numbers_are_positions)
{
    static const char *const keys[] = {"dPosX", "dPosY", "dPosZ"};
    tree t;
    begin(&t);
    open_loop(&t.w, "SLxExperiment", 2);
    fth__lv_put_u32(&t.w, "uiCount", 3);
    fth__lv_put_bool(&t.w, "bRelativeXY", false);
    fth__lv_put_f64(&t.w, "dReferenceX", 1000);
    for (int k = 0; k < 3; k++) {
        fth__lv_open(&t.w, keys[k]);
        for (int i = 0; i < (k == 2 ? 2 : 3); i++) fth__lv_put_f64(&t.w, "", 100 * k + i);
        fth__lv_close(&t.w);
    }
    fth__lv_close(&t.w);
    fth__lv_open(&t.w, "pItemValid");
    for (int i = 0; i < 3; i++) fth__lv_put_bool(&t.w, "", i != 0);
    fth__lv_close(&t.w);
    fth__lv_close(&t.w);
    fth__nd2_loops l = read_loops(&t);
    EQ_I64(l.n_points, 2);
    for (int i = 0; i < 2; i++) {
        EQ_F64(l.point[i].x, i + 1); /* the reference counts for relative places alone */
        EQ_F64(l.point[i].y, 101 + i);
        EQ_F64(l.point[i].z, i == 0 ? 201 : 0);
    }
    fth__nd2_loops_clear(&l);
    end(&t);
}

/* ---- stacks ---- */

typedef struct stack {
    int64_t type;
    bool inverted;
    int64_t n;
    double low, high, home, step; /* as the file has them */
    double z_step;
    int64_t z_home; /* as they are read */
} stack;

TEST(home_is_where_the_stage_stood)
{
    static const stack cases[] = {
        {0, false, 5, -2, 2, 0, 1, 1, 2},     {0, false, 4, -2, 2, 0, 1, 1, 1}, /* in the middle */
        {2, false, 7, 10, 16, 12, 1, 1, 2},   {2, true, 7, 10, 16, 12, 1, 1, 4},
        {6, false, 7, 10, 16, 12, 1, 1, 4},   {7, true, 7, 10, 16, 12, 1, 1, 2},
        {3, false, 7, 10, 16, 11.5, 1, 1, 2}, /* not on a plane: the next */
        {2, false, 7, 16, 10, 14, -1, 1, 2},  /* downwards */
        {2, false, 7, 10, 16, 12, 0, 1, 2},   /* no step: from its ends */
        {2, false, 3, 0, 90, 80, 1, 1, 2},    /* beyond its planes */
        {0, false, 5, 0, 0, 0, -1.5, 1.5, 2}, /* no ends, and downwards */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const stack *c = &cases[i];
        tree t;
        begin(&t);
        open_loop(&t.w, "SLxExperiment", 4);
        fth__lv_put_u32(&t.w, "uiCount", c->n);
        fth__lv_put_f64(&t.w, "dZLow", c->low);
        fth__lv_put_f64(&t.w, "dZHigh", c->high);
        fth__lv_put_f64(&t.w, "dZHome", c->home);
        fth__lv_put_f64(&t.w, "dZStep", c->step);
        fth__lv_put_bool(&t.w, "bZInverted", c->inverted);
        fth__lv_put_i32(&t.w, "iType", c->type);
        fth__lv_close(&t.w);
        fth__lv_close(&t.w);
        fth__nd2_loops l = read_loops(&t);
        EQ_F64(l.z_step, c->z_step);
        if (l.z_home != c->z_home)
            FAIL("case %d: home is plane %d, not %d", (int)i, (int)l.z_home, (int)c->z_home);
        fth__nd2_loops_clear(&l);
        end(&t);
    }
}

/* ---- nests ---- */

/* Each position may have a loop of its own: the longest counts, wherever it stands. */
TEST(the_longest_of_loops_side_by_side_counts)
{
    for (int longest = 0; longest < 3; longest++) {
        tree t;
        begin(&t);
        open_loop(&t.w, "SLxExperiment", 1);
        fth__lv_put_u32(&t.w, "uiCount", 4);
        fth__lv_close(&t.w);
        fth__lv_open(&t.w, "ppNextLevelEx");
        for (int i = 0; i < 3; i++) {
            open_loop(&t.w, "", 4);
            fth__lv_put_u32(&t.w, "uiCount", i == longest ? 9 : 5);
            fth__lv_put_f64(&t.w, "dZStep", i == longest ? 2 : 1);
            fth__lv_close(&t.w);
            fth__lv_close(&t.w);
        }
        fth__lv_close(&t.w);
        fth__lv_close(&t.w);
        fth__nd2_loops l = read_loops(&t);
        EQ_I64(l.n, 2);
        EQ_I64(l.loop[1].count, 9);
        EQ_F64(l.z_step, 2);
        fth__nd2_loops_clear(&l);
        end(&t);
    }
}

/* Channels are within a frame: loops below a spectral one stand where it stands. */
TEST(a_spectral_loop_adds_no_level)
{
    tree t;
    begin(&t);
    open_loop(&t.w, "SLxExperiment", 1);
    fth__lv_put_u32(&t.w, "uiCount", 4);
    fth__lv_close(&t.w);
    fth__lv_open(&t.w, "ppNextLevelEx");
    for (int i = 0; i < 2; i++) { /* below the first directly, below the second over channels */
        if (i == 1) {
            open_loop(&t.w, "", 6);
            fth__lv_put_u32(&t.w, "uiCount", 3);
            fth__lv_close(&t.w);
            fth__lv_open(&t.w, "ppNextLevelEx");
        }
        open_loop(&t.w, "", 4);
        fth__lv_put_u32(&t.w, "uiCount", 5 + i);
        fth__lv_close(&t.w);
        fth__lv_close(&t.w);
        if (i == 1) fth__lv_close(&t.w), fth__lv_close(&t.w);
    }
    fth__lv_close(&t.w);
    fth__lv_close(&t.w);
    fth__nd2_loops l = read_loops(&t);
    EQ_I64(l.n, 2);
    EQ_I64(l.loop[1].axis, FTH_IMAGES_Z);
    EQ_I64(l.loop[1].count, 6); /* side by side: the longer one */
    fth__nd2_loops_clear(&l);
    end(&t);
}

TEST(parameters_may_be_a_list_of_one)
{
    tree t;
    begin(&t);
    open_loop(&t.w, "SLxExperiment", 1);
    fth__lv_open(&t.w, "");
    fth__lv_put_u32(&t.w, "uiCount", 12);
    fth__lv_put_f64(&t.w, "dPeriod", 250);
    fth__lv_close(&t.w);
    fth__lv_close(&t.w);
    fth__lv_close(&t.w);
    fth__nd2_loops l = read_loops(&t);
    EQ_I64(l.loop[0].count, 12);
    EQ_F64(l.period_ms, 250);
    fth__nd2_loops_clear(&l);
    end(&t);
}

/* ---- pictures ---- */

static void put_attributes(fth__lv_writer *w, int64_t width, int64_t significant)
{
    fth__lv_open(w, "SLxImageAttributes");
    fth__lv_put_u32(w, "uiWidth", width);
    fth__lv_put_u32(w, "uiHeight", 4);
    fth__lv_put_u32(w, "uiBpcInMemory", 16);
    fth__lv_put_u32(w, "uiBpcSignificant", significant);
    fth__lv_close(w);
}

TEST(attributes_that_are_not_said)
{
    static const struct {
        int64_t width, significant, bits;
        uint64_t row;
    } cases[] = {{7, 12, 12, 16}, {8, 16, 16, 16}, {9, 17, 16, 20}, {1, 0, 16, 4}};
    for (int i = 0; i < 4; i++) {
        tree t;
        fth__nd2_meta m = {0};
        begin(&t);
        put_attributes(&t.w, cases[i].width, cases[i].significant);
        OKE(fth__nd2_attributes_read(&m, fth__lv_root(t.w.data, (uint64_t)t.w.bytes), "x.nd2",
                                     &t.err),
            &t.err);
        EQ_I64(m.significant, cases[i].bits);
        EQ_U64(m.row_bytes, cases[i].row); /* rows are padded to 4 bytes */
        EQ_I64(m.components, 1);
        IS_TRUE(!m.packed);
        end(&t);
    }
}

static void put_plane(fth__lv_writer *w, const char *name, int64_t parts)
{
    fth__lv_open(w, "");
    fth__lv_put_u32(w, "uiCompCount", parts);
    fth__lv_put_text(w, "sDescription", name);
    fth__lv_close(w);
}

static fth__nd2_meta read_picture(tree *t, int64_t components)
{
    fth__nd2_meta m = {.mem = t->mem, .components = components};
    const fth__lv root = fth__lv_root(t->w.data, (uint64_t)t->w.bytes);
    OKE(fth__nd2_picture_read(&m, fth__lv_level(root, "picture"), fth__lv_level(root, "text"),
                              &t->err),
        &t->err);
    return m;
}

TEST(planes_name_the_channels)
{
    static const char *const lists[] = {"sPlaneNew", "sPlane"}; /* of new and of old files */
    for (int i = 0; i < 2; i++) {
        tree t;
        begin(&t);
        fth__lv_open(&t.w, "picture");
        fth__lv_open(&t.w, "sPicturePlanes");
        fth__lv_put_u32(&t.w, "uiCount", 2);
        fth__lv_open(&t.w, lists[i]);
        put_plane(&t.w, "dia", 1);
        put_plane(&t.w, "colour", 3);
        fth__lv_close(&t.w);
        fth__lv_close(&t.w);
        fth__lv_close(&t.w);
        fth__nd2_meta m = read_picture(&t, 4);
        EQ_I64(m.n_channels, 4);
        EQ_STR(m.channel[0], "dia");
        for (int c = 1; c < 4; c++) EQ_STR(m.channel[c], "colour");
        IS_TRUE(!m.rgb); /* it is one where there is nothing else */
        fth__nd2_meta_clear(&m);
        end(&t);
    }
}

/* Three components of which one plane has only two are no colour picture. */
TEST(a_colour_picture_stands_alone)
{
    for (int first = 0; first < 2; first++) {
        tree t;
        begin(&t);
        fth__lv_open(&t.w, "picture");
        fth__lv_open(&t.w, "sPicturePlanes");
        fth__lv_open(&t.w, "sPlaneNew");
        if (!first) put_plane(&t.w, "dia", 1);
        put_plane(&t.w, "colour", 3);
        fth__lv_close(&t.w);
        fth__lv_close(&t.w);
        fth__lv_close(&t.w);
        fth__nd2_meta m = read_picture(&t, 3);
        EQ_I64(m.rgb, first);
        EQ_STR(m.channel[0], first ? "red" : "dia");
        EQ_STR(m.channel[2], first ? "blue" : "colour");
        fth__nd2_meta_clear(&m);
        end(&t);
    }
}

TEST(calibration_and_magnification)
{
    static const struct {
        bool calibrated;
        double scale;
        const char *optics, *objective;
        double um_per_px, magnification;
    } cases[] = {{true, 0.65, "", "Plan Apo 10X DIC", 0.65, 10},
                 {false, 1, "", "20x", 0, 20},
                 {true, -1, "Camera 2, 60x Oil", "4x", 0, 60},
                 {true, 2, "Camera 2", "none", 2, 0}};
    for (int i = 0; i < 4; i++) {
        tree t;
        begin(&t);
        fth__lv_open(&t.w, "picture");
        fth__lv_put_bool(&t.w, "bCalibrated", cases[i].calibrated);
        fth__lv_put_f64(&t.w, "dCalibration", cases[i].scale);
        fth__lv_put_f64(&t.w, "dObjectiveMag", -1);
        fth__lv_put_text(&t.w, "wsObjectiveName", cases[i].objective);
        fth__lv_close(&t.w);
        fth__lv_open(&t.w, "text");
        fth__lv_put_text(&t.w, "TextInfoItem_13", cases[i].optics);
        fth__lv_close(&t.w);
        fth__nd2_meta m = read_picture(&t, 1);
        EQ_F64(m.um_per_px, cases[i].um_per_px);
        EQ_F64(m.magnification, cases[i].magnification);
        EQ_STR(m.channel[0], "");
        fth__nd2_meta_clear(&m);
        end(&t);
    }
}

/* ---- values ---- */

TEST(numbers_of_every_type)
{
    tree t;
    begin(&t);
    fth__lv_put_i32(&t.w, "i", -7);
    fth__lv_put_u32(&t.w, "u", 0xfffffff9);
    fth__lv_put_bool(&t.w, "b", true);
    t.w.data[t.w.bytes - 1] = 255; /* any byte but 0 */
    fth__lv_put_f64(&t.w, "f", -2.75);
    fth__lv_put_f64(&t.w, "far", 1e30);
    fth__lv_put_text(&t.w, "text", "7");
    const fth__lv root = fth__lv_root(t.w.data, (uint64_t)t.w.bytes);
    EQ_I64(fth__lv_i64(root, "i", 1), -7);
    EQ_F64(fth__lv_f64(root, "i", 1), -7);
    EQ_I64(fth__lv_i64(root, "u", 1), 0xfffffff9);
    EQ_I64(fth__lv_i64(root, "b", 5), 1);
    EQ_F64(fth__lv_f64(root, "f", 1), -2.75);
    EQ_I64(fth__lv_i64(root, "f", 1), -2);
    EQ_I64(fth__lv_i64(root, "far", 3), 3);
    EQ_I64(fth__lv_i64(root, "text", 4), 4);
    EQ_I64(fth__lv_i64(root, "none", 5), 5);
    end(&t);
}

/* Levels end with a table of their items, in the order of their names: another reader may search
 * it. */
TEST(items_are_listed_by_name)
{
    static const char *const names[] = {"b", "aa", "c", "a", "ab"};
    static const int order[] = {3, 1, 4, 0, 2};
    tree t;
    begin(&t);
    fth__lv_open(&t.w, "level");
    int64_t start[5];
    for (int i = 0; i < 5; i++) {
        start[i] = t.w.bytes;
        fth__lv_put_u32(&t.w, names[i], i);
    }
    fth__lv_close(&t.w);
    for (int i = 0; i < 5; i++) {
        int64_t offset;
        memcpy(&offset, t.w.data + t.w.bytes - 8 * (5 - i), 8);
        EQ_I64(offset, start[order[i]]);
    }
    end(&t);
}

/* What we write of a stack is what microscopes write: home between its ends. */
TEST(a_stack_is_written_around_its_home)
{
    tree t;
    begin(&t);
    const fth_nd2_options o = {.size = {1, 1, 6, 1, 4, 4}, .dtype = FTH_U16, .z_step_um = 1.5};
    fth__nd2_put_part(&t.w, FTH__ND2_EXPERIMENT, &o);
    const fth__lv pars =
        fth__lv_level(fth__lv_root(t.w.data, (uint64_t)t.w.bytes), "SLxExperiment/uLoopPars");
    EQ_F64(fth__lv_f64(pars, "dZLow", 0), -3);
    EQ_F64(fth__lv_f64(pars, "dZHigh", 0), 4.5);
    EQ_F64(fth__lv_f64(pars, "dZHome", 1), 0);
    end(&t);
}

/* ---- packed trees ---- */

typedef struct packed {
    char *data;
    uint64_t used;
} packed;

static void collect(void *to, const void *bytes, uint64_t n)
{
    packed *p = to;
    memcpy(p->data + p->used, bytes, n);
    p->used += n;
}

static fth_status read_chunk(tree *t, const char *path, fth__lv *root, void **block)
{
    fth_file *f = NULL;
    OK(fth_file_open(&f, t->mem, path, NULL));
    const fth__nd2_chunk chunk = {4096, FTH__ND2_UNKNOWN};
    const fth_status s = fth__lv_read(root, block, f, &chunk, "ImageTextInfoLV!", &t->err);
    fth_file_close(f);
    return s;
}

/* A chunk whose tree is packed: type 76, eleven bytes that nobody needs, a stream of zlib. */
TEST(a_packed_tree)
{
    static char file[1 << 16];
    tree t;
    begin(&t);
    const char *path = t_temp_path("packed.nd2");
    for (int i = 0; i < 9000; i++) fth__lv_put_u32(&t.w, "some", i * 7919); /* over 64 KiB */
    fth__lv_put_u32(&t.w, "last", 42);
    IS_TRUE(t.w.bytes > 100000);
    const uint32_t magic = FTH__ND2_MAGIC, name = 32;
    memcpy(file + 4096, &magic, 4);
    memcpy(file + 4100, &name, 4);
    strcpy(file + 4112, "ImageTextInfoLV!");
    packed out = {file + 4096 + 16 + 32, 12};
    out.data[0] = FTH__LV_PACKED;
    void *room = malloc(fth__deflate_bytes());
    fth__deflate *z = fth__deflate_begin(room, FTH__WRAP_ZLIB, collect, &out);
    fth__deflate_add(z, t.w.data, (uint64_t)t.w.bytes);
    IS_TRUE(fth__deflate_end(z));
    free(room);
    const uint64_t bytes = out.used, all = 4096 + 48 + bytes;
    IS_TRUE(all < sizeof file);
    memcpy(file + 4104, &bytes, 8);
    t_file_write(path, file, all);
    fth__lv root;
    void *block = NULL;
    OKE(read_chunk(&t, path, &root, &block), &t.err);
    EQ_I64(fth__lv_i64(root, "last", 0), 42);
    fth__heap_free(t.mem, block);

    file[all - 9] ^= 0x55; /* damaged near its end */
    t_file_write(path, file, all);
    IS(read_chunk(&t, path, &root, &block), FTH_E_FILE_FORMAT);
    HAS(t.err.text, "cannot be unpacked");
    EQ_PTR(block, NULL);
    remove(path);
    end(&t);
}

TEST_MAIN()
