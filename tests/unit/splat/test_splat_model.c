/* test_splat_model.c - models: PLY byte for byte, what .splat and .spz keep, files that are cut,
 * boxes and turns, of which colours know nothing.
 * seconds: 2 */
#include "instruments/splat/model/edit.h"
#include "testing/full.h"
#include "testing/splat/splat.h"

#include <math.h>

#define REAL double
#define SH(name) sh_##name
#include "instruments/splat/sh/sh.h"

static gs_model random_model(fth_mem *mem, t_random *r, int64_t n, int degree)
{
    gs_model m;
    OK(gs_model_create(&m, mem, n, degree, NULL));
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        t_random_fill_f32(r, m.at[a], n * gs_columns((gs_attribute)a, degree));
    return m;
}

static gs_model reload(const gs_model *m, const char *name, gs_format want)
{
    const char *path = t_temp_path(name);
    gs_format format;
    gs_model_info info;
    gs_model back;
    OK(gs_format_of_path(path, &format, NULL));
    EQ_I64(format, want);
    OK(gs_model_save(m, path, format, NULL));
    OK(gs_model_look(m->mem, path, &info, NULL));
    EQ_I64(info.format, want);
    EQ_I64(info.n, m->n);
    OK(gs_model_load(&back, m->mem, path, format, NULL));
    EQ_I64(back.n, m->n);
    return back;
}

TEST(a_ply_goes_through_byte_for_byte)
{
    fth_mem *mem = t_mem(8 << 20);
    size_t n = 0, k = 0;
    gs_model m;
    OK(gs_model_load(&m, mem, SPLAT("tiny/splat_8.ply"), GS_FORMAT_PLY, NULL));
    EQ_I64(m.n, 8);
    EQ_I64(m.degree, 3);
    OK(gs_model_save(&m, t_temp_path("a.ply"), GS_FORMAT_PLY, NULL));
    unsigned char *a = t_file_read(SPLAT("tiny/splat_8.ply"), &n),
                  *b = t_file_read(t_temp_path("a.ply"), &k);
    EQ_I64((int64_t)n, (int64_t)k);
    SAME_BYTES(a, b, n);
    free(a);
    free(b);
    gs_model_free(&m);
    t_random r = t_random_make(1);
    for (int degree = 0; degree < 4; degree++) {
        gs_model one = random_model(mem, &r, 1025, degree);
        gs_model two = reload(&one, "b.ply", GS_FORMAT_PLY);
        for (int at = 0; at < GS_ATTRIBUTES; at++) {
            const int64_t all = one.n * gs_columns((gs_attribute)at, degree);
            if (at != GS_ROTATION) SAME_BYTES(one.at[at], two.at[at], all * 4);
        }
        for (int64_t g = 0; g < two.n; g++) {
            double norm = 0, dot = 0;
            const float *p = one.at[GS_ROTATION] + 4 * g, *q = two.at[GS_ROTATION] + 4 * g;
            for (int i = 0; i < 4; i++) {
                norm += (double)p[i] * (double)p[i];
                dot += (double)p[i] * (double)q[i];
            }
            NEAR(dot / sqrt(norm), 1, 1e-6);
        }
        gs_model_free(&one);
        gs_model_free(&two);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(columns_of_a_ply_may_have_any_order_and_type_and_be_missing)
{
    static const char text[] = "ply\r\nformat binary_little_endian 1.0\ncomment hello\n"
                               "element vertex 2\nproperty uchar z\nproperty double y\n"
                               "property float f_dc_2\nproperty float f_dc_0\nproperty float x\n"
                               "property float f_dc_1\nelement face 1\nproperty list uchar int i\n"
                               "end_header\n";
    unsigned char file[sizeof text - 1 + 2 * 25 + 9];
    memcpy(file, text, sizeof text - 1);
    unsigned char *at = file + sizeof text - 1;
    for (int row = 0; row < 2; row++) {
        const double y = 0.25 + row;
        const float rest[4] = {12, 10, -1.5f, 11};
        *at++ = (unsigned char)(200 + row);
        memcpy(at, &y, 8);
        memcpy(at + 8, rest, 16);
        at += 24;
    }
    memset(at, 0, 9);
    fth_mem *mem = t_mem(8 << 20);
    OK(fth_file_save(mem, t_temp_path("c.ply"), file, sizeof file, NULL));
    gs_model m;
    OK(gs_model_load(&m, mem, t_temp_path("c.ply"), GS_FORMAT_PLY, NULL));
    EQ_I64(m.degree, 0);
    EQ_F64(m.at[GS_MEANS][3], -1.5);
    EQ_F64(m.at[GS_MEANS][4], 1.25);
    EQ_F64(m.at[GS_MEANS][5], 201);
    EQ_F64(m.at[GS_SH_0][5], 12);
    EQ_F64(m.at[GS_SCALING][5], -5);
    EQ_F64(m.at[GS_ROTATION][4], 1);
    EQ_F64(m.at[GS_ROTATION][5], 0);
    EQ_F64(m.at[GS_OPACITY][1], 0);
    gs_model_free(&m);
    OK(fth_mem_destroy(mem, NULL));
}

static const char *const endings[GS_FORMATS] = {"x.ply", "x.splat", "x.spz", "x.sog",
                                                "x.safetensors"};

/* A model in every format that is read; the arrays of a training are written by it alone. */
static fth_status save(const gs_model *m, const char *path, gs_format format)
{
    fth_file_tensor t[GS_ATTRIBUTES];
    if (format != GS_FORMAT_CHECKPOINT) return gs_model_save(m, path, format, NULL);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        t[a] = (fth_file_tensor){gs_attribute_names[a], m->tensor[a], gs_attribute_axes[a]};
    return fth_safetensors_save(m->mem, path, t, GS_ATTRIBUTES, &(fth_safetensors_options){0},
                                NULL);
}

TEST(checkpoints_are_models)
{
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(7);
    gs_model m = random_model(mem, &r, 5, 2), back;
    gs_model_info info;
    const char *path = t_temp_path("x.safetensors");
    OK(save(&m, path, GS_FORMAT_CHECKPOINT));
    OK(gs_model_look(mem, path, &info, NULL));
    IS_TRUE(info.format == GS_FORMAT_CHECKPOINT);
    EQ_I64(info.n, 5);
    EQ_I64(info.degree, 2);
    OK(gs_model_load(&back, mem, path, info.format, NULL));
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        SAME_BYTES(back.at[a], m.at[a],
                   (size_t)(5 * gs_columns((gs_attribute)a, 2)) * sizeof(float));
    gs_model_free(&back);
    IS(gs_model_save(&m, path, GS_FORMAT_CHECKPOINT, NULL), FTH_E_USAGE);
    gs_model_free(&m);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(models_cut_at_every_byte_are_refused)
{
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(2);
    gs_model m = random_model(mem, &r, 3, 1);
    for (int f = 0; f < GS_FORMATS; f++) {
        size_t n = 0;
        char path[FTH_PATH];
        snprintf(path, sizeof path, "%s", t_temp_path(endings[f]));
        OK(save(&m, path, (gs_format)f));
        unsigned char *data = t_file_read(path, &n);
        for (size_t cut = 0; cut < n; cut++) {
            fth_err err = {0};
            gs_model back;
            if (f == GS_FORMAT_SPLAT && cut % 32 == 0) continue; /* whole rows */
            t_file_write(path, data, cut);
            const fth_status s = gs_model_load(&back, mem, path, (gs_format)f, &err);
            IS_TRUE(s == FTH_E_FILE_SHORT || s == FTH_E_FILE_FORMAT);
            HAS(err.text, "byte");
        }
        free(data);
    }
    gs_model_free(&m);
    OK(fth_mem_destroy(mem, NULL));
}

/* One byte after another says more than there is: that is found before memory is taken for it. */
TEST(lengths_that_are_not_there_take_no_memory)
{
    static const uint8_t values[] = {0xff, '9'};
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(4);
    gs_model m = random_model(mem, &r, 3, 1);
    for (int f = 0; f < GS_FORMATS; f++) {
        size_t n = 0;
        char path[FTH_PATH];
        snprintf(path, sizeof path, "%s", t_temp_path(endings[f]));
        OK(save(&m, path, (gs_format)f));
        unsigned char *data = t_file_read(path, &n);
        fth_mem *bound = t_mem(2 * n + (64 << 20));
        for (size_t i = 0; i<n; i += n> 600 ? 5 : 1)
            for (int k = 0; k < 2; k++) {
                gs_model back;
                const unsigned char kept = data[i];
                data[i] = values[k];
                t_file_write(path, data, n);
                const fth_status s = gs_model_load(&back, bound, path, (gs_format)f, NULL);
                if (s == FTH_OK) gs_model_free(&back);
                IS_TRUE(s != FTH_E_BUDGET && s != FTH_E_NOMEM);
                data[i] = kept;
            }
        free(data);
        OK(fth_mem_destroy(bound, NULL));
    }
    gs_model_free(&m);
    OK(fth_mem_destroy(mem, NULL));
}

/* Every format in turn with the n-th allocation or write failing: an error, nothing held. */
TEST(no_memory_and_a_full_disk_leave_nothing)
{
    t_random r = t_random_make(3);
    for (int f = 0; f < GS_FORMATS; f++)
        for (int kind = 0; kind < 2; kind++)
            for (int64_t nth = 1, done = 0; !done; nth += t_one_in(1, 3)) {
                fth_mem *mem = t_mem(8 << 20);
                gs_model m = random_model(mem, &r, 2, 1), back = {0};
                gs_format format = (gs_format)f;
                fth_mem_options opt;
                fth_mem_options_default(&opt);
                opt.budget_bytes = 8 << 20;
                if (kind == 0)
                    opt.fail_alloc = nth;
                else
                    opt.fail_write = nth;
                fth_mem *weak = NULL;
                OK(fth_mem_create(&weak, &opt, NULL));
                gs_model borrowed = m;
                borrowed.mem = weak;
                const char *path = t_temp_path(endings[f]);
                fth_status s = save(&borrowed, path, format);
                if (s == FTH_OK) s = gs_model_load(&back, weak, path, format, NULL);
                done = s == FTH_OK;
                gs_model_free(&back);
                OK(fth_mem_destroy(weak, NULL));
                gs_model_free(&m);
                OK(fth_mem_destroy(mem, NULL));
                IS_TRUE(nth < 400);
            }
}

TEST(splat_files_keep_bytes_and_are_largest_first)
{
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(4);
    gs_model m = random_model(mem, &r, 500, 2);
    gs_model back = reload(&m, "d.splat", GS_FORMAT_SPLAT);
    EQ_I64(back.degree, 0);
    double last = (double)INFINITY;
    for (int64_t g = 0; g < back.n; g++) {
        const float *s = back.at[GS_SCALING] + 3 * g;
        int64_t from = 0; /* the row that it was: its position says so */
        while (from < m.n && memcmp(m.at[GS_MEANS] + 3 * from, back.at[GS_MEANS] + 3 * g, 12))
            from++;
        IS_TRUE(from < m.n);
        const double o = 1 / (1 + exp(-(double)m.at[GS_OPACITY][from])),
                     size = o * exp((double)m.at[GS_SCALING][3 * from] +
                                    (double)m.at[GS_SCALING][3 * from + 1] +
                                    (double)m.at[GS_SCALING][3 * from + 2]);
        IS_TRUE(size <= last);
        last = size;
        NEAR(1 / (1 + exp(-(double)back.at[GS_OPACITY][g])), o, 0.51 / 255);
        for (int k = 0; k < 3; k++) {
            NEAR((double)s[k], (double)m.at[GS_SCALING][3 * from + k], 1e-5);
            const double c = 0.5 + GS_SH0 * (double)m.at[GS_SH_0][3 * from + k];
            NEAR(0.5 + GS_SH0 * (double)back.at[GS_SH_0][3 * g + k],
                 c < 0   ? 0
                 : c > 1 ? 1
                         : c,
                 0.51 / 255);
        }
    }
    gs_model_free(&m);
    gs_model_free(&back);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(spz_keeps_what_its_steps_allow)
{
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(5);
    for (int degree = 0; degree < 4; degree++)
        for (int far = 0; far < 2; far++) {
            gs_model m = random_model(mem, &r, 700, degree);
            for (int64_t i = 0; i < 3 * m.n && far; i++) m.at[GS_MEANS][i] *= 3000;
            gs_model back = reload(&m, "e.spz", GS_FORMAT_SPZ);
            EQ_I64(back.degree, degree);
            for (int64_t i = 0; i < 3 * m.n; i++) {
                NEAR((double)back.at[GS_MEANS][i], (double)m.at[GS_MEANS][i],
                     far ? 0.5 / 256 + 1e-3 : 0.5001 / 4096);
                NEAR((double)back.at[GS_SCALING][i], (double)m.at[GS_SCALING][i], 0.5001 / 16);
                const double c = (double)m.at[GS_SH_0][i], most = 0.5 / 0.15;
                NEAR((double)back.at[GS_SH_0][i], fmin(fmax(c, -most), most), 0.51 / (255 * 0.15));
            }
            for (int64_t i = 0; i < 3 * m.n * gs_coefficients(degree); i++) {
                const double v = (double)m.at[GS_SH_N][i];
                const int64_t column = i % (3 * gs_coefficients(degree));
                if (fabs(v) < 0.9)
                    NEAR((double)back.at[GS_SH_N][i], v, (column < 9 ? 4.6 : 8.6) / 128);
            }
            for (int64_t g = 0; g < m.n; g++) {
                double norm = 0, dot = 0;
                const float *p = m.at[GS_ROTATION] + 4 * g, *q = back.at[GS_ROTATION] + 4 * g;
                for (int i = 0; i < 4; i++) {
                    norm += (double)p[i] * (double)p[i];
                    dot += (double)p[i] * (double)q[i];
                }
                IS_TRUE(fabs(dot) / sqrt(norm) > 1 - 1e-5);
            }
            gs_model_free(&m);
            gs_model_free(&back);
        }
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- boxes and turns ---- */

TEST(a_box_keeps_rows_in_their_order)
{
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(6);
    gs_model m = random_model(mem, &r, 400, 2), all = random_model(mem, &r, 400, 2);
    for (int a = 0; a < GS_ATTRIBUTES; a++)
        memcpy(all.at[a], m.at[a], (size_t)(m.n * gs_columns((gs_attribute)a, 2)) * 4);
    const double low[3] = {-0.5, -1, -9}, high[3] = {1, 0.7, 9};
    gs_model_crop(&m, low, high);
    gs_model_lower(&m, 1);
    int64_t kept = 0;
    for (int64_t g = 0; g < all.n; g++) {
        const float *p = all.at[GS_MEANS] + 3 * g;
        if (p[0] < -0.5f || p[0] > 1 || p[1] < -1 || p[1] > 0.7f) continue;
        SAME_BYTES(m.at[GS_MEANS] + 3 * kept, p, 12);
        SAME_BYTES(m.at[GS_SH_N] + 9 * kept, all.at[GS_SH_N] + 24 * g, 36);
        kept++;
    }
    EQ_I64(m.n, kept);
    IS_TRUE(kept > 50 && kept < 350);
    gs_model_free(&m);
    gs_model_free(&all);
    OK(fth_mem_destroy(mem, NULL));
}

static double colour(const gs_model *m, int64_t g, int c, const double d[3])
{
    double b[16];
    sh_basis(m->degree, d[0], d[1], d[2], b);
    double sum = b[0] * (double)m->at[GS_SH_0][3 * g + c];
    for (int k = 0; k < gs_coefficients(m->degree); k++)
        sum += b[k + 1] * (double)m->at[GS_SH_N][(g * gs_coefficients(m->degree) + k) * 3 + c];
    return sum;
}

/* R diag(exp 2 s) R^T of a row. */
static void covariance(const gs_model *m, int64_t g, double out[3][3])
{
    const float *q = m->at[GS_ROTATION] + 4 * g;
    const double r = (double)q[0], x = (double)q[1], y = (double)q[2], z = (double)q[3],
                 n = r * r + x * x + y * y + z * z;
    const double R[3][3] = {
        {1 - 2 * (y * y + z * z) / n, 2 * (x * y - r * z) / n, 2 * (x * z + r * y) / n},
        {2 * (x * y + r * z) / n, 1 - 2 * (x * x + z * z) / n, 2 * (y * z - r * x) / n},
        {2 * (x * z - r * y) / n, 2 * (y * z + r * x) / n, 1 - 2 * (x * x + y * y) / n}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            out[i][j] = 0;
            for (int k = 0; k < 3; k++)
                out[i][j] += R[i][k] * R[j][k] * exp(2 * (double)m->at[GS_SCALING][3 * g + k]);
        }
}

TEST(a_turned_model_has_the_same_colours_from_the_turned_side)
{
    static const char json[] = "{\"matrix\": [[0, -2, 0, 1], [1.2, 0, -1.6, 2], [1.6, 0, 1.2, 3],"
                               " [0, 0, 0, 1]]}";
    static const char mirror[] = "[[-1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]";
    fth_mem *mem = t_mem(8 << 20);
    t_random r = t_random_make(7);
    gs_similarity t;
    gs_model a = random_model(mem, &r, 20, 3), b = random_model(mem, &r, 20, 3);
    for (int at = 0; at < GS_ATTRIBUTES; at++)
        memcpy(b.at[at], a.at[at], (size_t)(a.n * gs_columns((gs_attribute)at, 3)) * 4);
    OK(fth_file_save(mem, t_temp_path("m.json"), json, sizeof json - 1, NULL));
    OK(gs_similarity_load(&t, mem, t_temp_path("m.json"), NULL));
    NEAR(t.size, 2, 1e-12);
    gs_model_transform(&b, &t);
    for (int64_t g = 0; g < a.n; g++) {
        double n[3] = {0.36, -0.48, 0.8}, turned[3], before[3][3], after[3][3];
        for (int i = 0; i < 3; i++) {
            turned[i] = 0;
            double mean = t.shift[i];
            for (int j = 0; j < 3; j++) {
                turned[i] += t.rotation[i][j] * n[j];
                mean += 2 * t.rotation[i][j] * (double)a.at[GS_MEANS][3 * g + j];
            }
            NEAR((double)b.at[GS_MEANS][3 * g + i], mean, 1e-5);
        }
        for (int c = 0; c < 3; c++) NEAR(colour(&b, g, c, turned), colour(&a, g, c, n), 1e-5);
        covariance(&a, g, before);
        covariance(&b, g, after);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                double want = 0, size = 0;
                for (int p = 0; p < 3; p++)
                    for (int q = 0; q < 3; q++) {
                        want += 4 * t.rotation[i][p] * before[p][q] * t.rotation[j][q];
                        size += fabs(before[p][q]);
                    }
                NEAR(after[i][j], want, 1e-5 * size);
            }
    }
    fth_err err = {0};
    OK(fth_file_save(mem, t_temp_path("m.json"), mirror, sizeof mirror - 1, NULL));
    IS(gs_similarity_load(&t, mem, t_temp_path("m.json"), &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "mirrors");
    gs_model_free(&a);
    gs_model_free(&b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
