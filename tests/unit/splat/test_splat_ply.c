/* test_splat_ply.c - PLY in each of its codings is one model, the packed one of PlayCanvas bit by
 * bit, points as nerfstudio writes them, files that are cut, and what errors say. seconds: 2 */
#include "instruments/splat/file/ply.h"
#include "instruments/splat/model/formats.h"
#include "testing/splat/splat.h"

#include <math.h>

enum { COLUMNS = 14 + 9, ROWS = 3, FILE_BYTES = 1 << 16 };

static const char *const codings[] = {"binary_little_endian", "binary_big_endian", "ascii"};
static const char *const columns[14] = {"scale_1", "x",       "f_dc_0",  "rot_3", "y",
                                        "f_dc_2",  "opacity", "rot_0",   "z",     "f_dc_1",
                                        "rot_1",   "scale_0", "scale_2", "rot_2"};

typedef struct text {
    char at[FILE_BYTES];
    size_t n;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    t->n += (size_t)vsnprintf(t->at + t->n, sizeof t->at - t->n, fmt, args);
    va_end(args);
}

static void add_bytes(text *t, const void *from, size_t n, bool turned)
{
    for (size_t i = 0; i < n; i++) t->at[t->n++] = ((const char *)from)[turned ? n - 1 - i : i];
}

/* An element in front, columns in no order, the x of a row as a double. */
static void write_model(text *t, int coding, const float value[ROWS][COLUMNS])
{
    t->n = 0;
    add(t, "ply\nformat %s 1.0\ncomment made\nelement camera 2\nproperty short w\n",
        codings[coding]);
    add(t, "element vertex %d\n", ROWS);
    for (int i = 0; i < COLUMNS; i++) {
        if (i < 14)
            add(t, "property %s %s\n", i == 1 ? "double" : "float", columns[i]);
        else
            add(t, "property float32 f_rest_%d\n", i - 14);
    }
    add(t, "end_header\n");
    for (int row = -2; row < ROWS; row++) {
        const int16_t w = 300;
        if (row < 0 && coding == 2) add(t, "300\n");
        if (row < 0 && coding < 2) add_bytes(t, &w, sizeof w, coding == 1);
        for (int i = 0; row >= 0 && i < COLUMNS; i++) {
            const double wide = (double)value[row][i];
            if (coding == 2)
                add(t, "%s%.9g%s", i % 3 ? " " : "\t", wide, i + 1 < COLUMNS ? "" : "\r\n");
            else if (i == 1)
                add_bytes(t, &wide, sizeof wide, coding == 1);
            else
                add_bytes(t, &value[row][i], sizeof value[row][i], coding == 1);
        }
    }
}

static fth_status load(fth_mem *mem, const text *t, gs_model *m, fth_err *err)
{
    t_file_write(t_temp_path("x.ply"), t->at, t->n);
    return gs_model_load(m, mem, t_temp_path("x.ply"), GS_FORMAT_PLY, err);
}

TEST(every_coding_is_the_same_model)
{
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(3);
    float value[ROWS][COLUMNS];
    static text t;
    t_random_fill_f32(&r, &value[0][0], ROWS * COLUMNS);
    for (int coding = 0; coding < 3; coding++) {
        gs_model m;
        gs_model_info info;
        fth_err err = {0};
        write_model(&t, coding, (const float(*)[COLUMNS])value);
        OKE(load(mem, &t, &m, &err), &err);
        OK(gs_model_look(mem, t_temp_path("x.ply"), &info, NULL));
        IS_TRUE(info.n == ROWS && info.degree == 1 && info.format == GS_FORMAT_PLY);
        for (int g = 0; g < ROWS; g++) {
            EQ_F64((double)m.at[GS_MEANS][3 * g], (double)value[g][1]);
            EQ_F64((double)m.at[GS_MEANS][3 * g + 2], (double)value[g][8]);
            EQ_F64((double)m.at[GS_SH_0][3 * g + 1], (double)value[g][9]);
            EQ_F64((double)m.at[GS_SCALING][3 * g], (double)value[g][11]);
            EQ_F64((double)m.at[GS_ROTATION][4 * g + 3], (double)value[g][3]);
            EQ_F64((double)m.at[GS_OPACITY][g], (double)value[g][6]);
            /* channel after channel in the file */
            EQ_F64((double)m.at[GS_SH_N][9 * g + 3 * 2 + 1], (double)value[g][14 + 3 + 2]);
        }
        gs_model_free(&m);
        size_t end = t.n; /* a number that lost its last digits is one */
        while (coding == 2 && t.at[end - 1] != ' ' && t.at[end - 1] != '\t') end--;
        for (t.n = 0; t.n < end; t.n++) {
            const fth_status s = load(mem, &t, &m, &err);
            IS_TRUE(s == FTH_E_FILE_SHORT || s == FTH_E_FILE_FORMAT);
            HAS(err.text, "byte");
            err = (fth_err){0};
        }
    }
    OK(fth_mem_destroy(mem, NULL));
}

#define POINTS "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\n"

TEST(mistakes_say_their_line)
{
    static const struct row {
        const char *text, *part;
    } bad[] = {
        {POINTS "end_header\n1 2\n3.75\n", "x.ply:8, byte "},
        {POINTS "end_header\n1 2\n3.75\n",
         "expected a line of 2 numbers, found 1 and then its end"},
        {POINTS "end_header\n1 2\n3 4 5\n", "found 2 and then '5'"},
        {POINTS "end_header\n1 2\n3 4e\n", "found 1 and then '4e'"},
        {POINTS "end_header\n1 2 3 4\n", "x.ply:7, byte "},
        {POINTS "end_header\n1\n2\n",
         "expected 2 rows of element vertex with at least 4 bytes each"},
        {POINTS "end_header\n\n1 2\n3 4", "x.ply:7, byte "},
        {POINTS "format binary_little_endian 1.0\nend_header\n1 2\n3 4\n", "expected one format"},
        {"ply\nelement vertex 1\nproperty float x\nend_header\n1\n", "a format before the first"},
        {"ply\nformat ascii 2.0\nend_header\n", "or ascii 1.0, found 'format ascii 2.0'"},
        {"ply\nformat ascii 1.0\nelement face 1\nproperty uchar x\nend_header\n1\n",
         "expected an element vertex"},
        {"ply\nformat binary_big_endian 1.0\nelement face 1\nproperty list uchar int i\nelement "
         "vertex 1\nproperty float x\nend_header\n12345678",
         "expected element vertex before those with lists, found 'face' first"},
        {"ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int i\nend_header\n1\n",
         "expected a property of one number"},
    };
    fth_mem *mem = t_mem(8 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fth_err err = {0};
        gs_ply p;
        t_file_write(t_temp_path("x.ply"), bad[i].text, strlen(bad[i].text));
        fth_status s = gs_ply_open(&p, mem, t_temp_path("x.ply"), &err);
        for (int64_t row = 0; s == FTH_OK && row < p.rows; row++) s = gs_ply_next(&p, &err);
        IS_TRUE(s == FTH_E_FILE_FORMAT || s == FTH_E_FILE_SHORT || s == FTH_E_FILE_FEATURE);
        HAS(err.text, bad[i].part);
        gs_ply_close(&p);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(points_in_ascii_have_their_colours)
{
    static const char file[] =
        "ply\nformat ascii 1.0\nelement edge 1\nproperty list uchar int ends\nelement vertex 2\n"
        "property float x\nproperty float y\nproperty float z\nproperty uint8 red\n"
        "property uint8 green\nproperty float blue\nend_header\n2 0 1\n1 2.5 -3e2 10 20 0.5\n"
        "0 0 0 255 0 1"; /* no last newline */
    fth_mem *mem = t_mem(8 << 20);
    float point[2][3];
    uint8_t colour[2][3];
    gs_ply p;
    t_file_write(t_temp_path("x.ply"), file, sizeof file - 1);
    OK(gs_ply_open(&p, mem, t_temp_path("x.ply"), NULL));
    EQ_I64(p.rows, 2);
    OK(gs_ply_points(&p, point, colour, NULL));
    EQ_F64((double)point[0][1], 2.5);
    EQ_F64((double)point[0][2], -300);
    EQ_I64(colour[0][1], 20);
    EQ_I64(colour[0][2], 128); /* floats are from 0 to 1 */
    EQ_I64(colour[1][2], 255);
    gs_ply_close(&p);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- packed ---- */

typedef struct packed {
    int64_t chunks, rows, sh_rows;
    bool coloured, turned;
    float infinite; /* put into the last bound */
} packed;

/* Rows i have words made of i; all others the same. */
static void write_packed(text *t, const packed *how)
{
    static const char *const ends[2] = {"min", "max"}, *const xyz[3] = {"x", "y", "z"},
                             *const rgb[3] = {"r", "g", "b"};
    t->n = 0;
    add(t, "ply\nformat %s 1.0\ncomment SuperSplat\nelement chunk %d\n", codings[how->turned],
        (int)how->chunks);
    for (int i = 0; i < (how->coloured ? 18 : 12); i++)
        add(t, "property float %s%s%s\n", ends[i / 3 % 2], i / 6 == 1 ? "_scale_" : "_",
            i < 12 ? xyz[i % 3] : rgb[i % 3]);
    add(t, "element vertex %d\nproperty uint packed_position\nproperty uint packed_rotation\n",
        (int)how->rows);
    add(t, "property uint packed_scale\nproperty uint packed_color\n");
    if (how->sh_rows >= 0) add(t, "element sh %d\n", (int)how->sh_rows);
    for (int i = 0; how->sh_rows >= 0 && i < 9; i++) add(t, "property uchar f_rest_%d\n", i);
    add(t, "end_header\n");
    for (int64_t c = 0; c < how->chunks; c++)
        for (int i = 0; i < (how->coloured ? 18 : 12); i++) {
            const bool low = i / 3 % 2 == 0;
            float v = i < 6    ? (low ? -1.0f : 3.0f)
                      : i < 12 ? (low ? -8.0f : -2.0f)
                               : (low ? -0.5f : 1.5f);
            if (i < 6 && c == 1) v += 100;
            if (how->infinite != 0 && c + 1 == how->chunks && i == 11) v = how->infinite;
            add_bytes(t, &v, sizeof v, how->turned);
        }
    for (int64_t g = 0; g < how->rows; g++) {
        /* x at 2047, y at 0, z at 0; w left out, its others 1/2, then the fourth left out */
        const uint32_t word[4] = {0xffe00000u,
                                  g == 256 ? 0xc0000000u | 512u << 20 | 512u << 10 | 1023u
                                           : 512u << 20 | 0u << 10 | 512u,
                                  g == 0 ? 0 : 0x7ffu, g == 0 ? 0xff0000ffu : 0x00800000u};
        for (int k = 0; k < 4; k++) add_bytes(t, &word[k], 4, how->turned);
    }
    for (int64_t g = 0; g < how->sh_rows; g++)
        for (int i = 0; i < 9; i++) t->at[t->n++] = (char)(i == 0 ? 0 : i == 1 ? 255 : 128 + i);
}

TEST(packed_rows_are_between_the_bounds_of_their_chunk)
{
    fth_mem *mem = t_mem(8 << 20);
    static text t;
    for (int kind = 0; kind < 4; kind++) {
        const packed how = {2, 257, kind < 2 ? 257 : -1, kind % 2 == 0, kind == 3, 0};
        const double half = 512.0 / 1023 - 0.5, root = sqrt(2);
        gs_model_info info;
        gs_model m;
        fth_err err = {0};
        write_packed(&t, &how);
        OKE(load(mem, &t, &m, &err), &err);
        OK(gs_model_look(mem, t_temp_path("x.ply"), &info, NULL));
        IS_TRUE(info.n == 257 && info.degree == (kind < 2) && m.n == 257 &&
                m.degree == info.degree);
        EQ_F64((double)m.at[GS_MEANS][0], 3);
        EQ_F64((double)m.at[GS_MEANS][1], -1);
        EQ_F64((double)m.at[GS_MEANS][3 * 255], 3);
        EQ_F64((double)m.at[GS_MEANS][3 * 256], 103);
        EQ_F64((double)m.at[GS_MEANS][3 * 256 + 2], 99);
        EQ_F64((double)m.at[GS_SCALING][0], -8);
        EQ_F64((double)m.at[GS_SCALING][3 + 2], -2); /* z has the lowest bits */
        EQ_F64((double)m.at[GS_SCALING][3 + 1], -8);
        const float *q = m.at[GS_ROTATION]; /* w is left out: x y z are 512, 0 and 512 */
        NEAR((double)q[1], half * root, 1e-7);
        NEAR((double)q[2], -0.5 * root, 1e-7);
        NEAR((double)q[3], half * root, 1e-7);
        NEAR((double)q[0], sqrt(0.5), 1e-6);
        q += 4 * 256; /* z is left out */
        NEAR((double)q[2], 0.5 * root, 1e-7);
        NEAR((double)q[3], sqrt(0.5), 1e-6);
        const double low = how.coloured ? -0.5 : 0, high = how.coloured ? 1.5 : 1;
        NEAR((double)m.at[GS_SH_0][0], (high - 0.5) / GS_SH0, 1e-6);
        NEAR((double)m.at[GS_SH_0][1], (low - 0.5) / GS_SH0, 1e-6);
        NEAR((double)m.at[GS_SH_0][3 + 1], (low + (high - low) * 128 / 255 - 0.5) / GS_SH0, 1e-6);
        NEAR((double)m.at[GS_OPACITY][0], (double)gs_logit(1), 1e-6);
        NEAR((double)m.at[GS_OPACITY][1], (double)gs_logit(0), 1e-6);
        if (m.degree == 1) {
            EQ_F64((double)m.at[GS_SH_N][9 * 5], -4);    /* f_rest_0 is red of the first */
            EQ_F64((double)m.at[GS_SH_N][9 * 5 + 3], 4); /* f_rest_1 red of the second */
            EQ_F64((double)m.at[GS_SH_N][9 * 5 + 1], 8 * ((131 + 0.5) / 256 - 0.5));
        }
        gs_model_free(&m);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(packed_files_that_are_cut_or_wrong_are_refused)
{
    static const struct row {
        packed how;
        const char *part;
    } rows[] = {{{1, 257, -1, true, false, 0}, "expected 2 chunks for 257 Gaussians, found 1"},
                {{1, 2, 3, true, false, 0}, "of 2 Gaussians in element sh, found 9 of 3"},
                {{1, 2, -1, true, false, INFINITY},
                 "chunk 0: expected finite bounds, found inf as max_scale_z"}};
    fth_mem *mem = t_mem(8 << 20);
    static text t;
    gs_model m;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fth_err err = {0};
        write_packed(&t, &rows[i].how);
        IS(load(mem, &t, &m, &err), FTH_E_FILE_FORMAT);
        HAS(err.text, rows[i].part);
        HAS(err.text, "x.ply, byte ");
    }
    write_packed(&t, &(packed){1, 2, 2, true, false, 0});
    const size_t whole = t.n;
    for (t.n = 0; t.n < whole; t.n++) {
        fth_err err = {0};
        const fth_status s = load(mem, &t, &m, &err);
        IS_TRUE(s == FTH_E_FILE_SHORT || s == FTH_E_FILE_FORMAT);
        HAS(err.text, "byte");
    }
    OK(load(mem, &t, &m, NULL));
    gs_model_free(&m);
    memcpy(memmem(t.at, t.n, "min_b", 5), "min_a", 5);
    fth_err err = {0};
    IS(load(mem, &t, &m, &err), FTH_E_FILE_KEY);
    HAS(err.text, "expected a property min_b of a packed PLY");
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
