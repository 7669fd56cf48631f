/* test_splat_sog.c - models as SOG and as version 4 of SPZ: what comes back, and what is refused.
 * seconds: 5 */
#include "instruments/splat/model/edit.h"
#include "instruments/splat/model/kmeans.h"
#include "instruments/splat/model/model.h"
#include "testing/io/files.h"

#include <fathom/zip.h>

#include <math.h>
#include <zlib.h>
#include <zstd.h>

/* Rows whose coefficients are near one of eight, as those of a trained model are. */
static gs_model make_model(fth_mem *mem, int64_t n, int degree)
{
    gs_model m;
    t_random r = t_random_make(5);
    OK(gs_model_create(&m, mem, n, degree, NULL));
    const int64_t k = 3 * gs_coefficients(degree);
    for (int64_t g = 0; g < n; g++) {
        for (int i = 0; i < 3; i++) {
            m.at[GS_MEANS][3 * g + i] = (float)(20 * t_random_f64(&r) - 10);
            m.at[GS_SCALING][3 * g + i] = (float)(-6 + 4 * t_random_f64(&r));
            m.at[GS_SH_0][3 * g + i] = (float)(2 * t_random_f64(&r) - 1);
        }
        for (int i = 0; i < 4; i++)
            m.at[GS_ROTATION][4 * g + i] = (float)(2 * t_random_f64(&r) - 1);
        m.at[GS_OPACITY][g] = (float)(8 * t_random_f64(&r) - 4);
        for (int64_t i = 0; i < k; i++)
            m.at[GS_SH_N][g * k + i] =
                (float)(0.3 * sin((double)((g % 8) * (i + 1))) + 0.01 * t_random_f64(&r));
    }
    return m;
}

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

/* The row of `m` at the place of row g of `back`. */
static int64_t find_row(const gs_model *m, const gs_model *back, int64_t g)
{
    int64_t best = 0;
    double least = (double)INFINITY;
    for (int64_t i = 0; i < m->n; i++) {
        double square = 0;
        for (int k = 0; k < 3; k++) {
            const double off =
                (double)m->at[GS_MEANS][3 * i + k] - (double)back->at[GS_MEANS][3 * g + k];
            square += off * off;
        }
        if (square < least) {
            least = square;
            best = i;
        }
    }
    LE_F64(sqrt(least), 2e-3);
    return best;
}

static void check_near(const gs_model *m, const gs_model *back)
{
    const int64_t k = 3 * gs_coefficients(m->degree);
    EQ_I64(back->n, m->n);
    EQ_I64(back->degree, m->degree);
    for (int64_t g = 0; g < m->n; g++) {
        const int64_t i = find_row(m, back, g);
        const float *p = m->at[GS_ROTATION] + 4 * i, *q = back->at[GS_ROTATION] + 4 * g;
        double norm = 0, dot = 0;
        for (int c = 0; c < 4; c++) {
            norm += (double)p[c] * (double)p[c];
            dot += (double)p[c] * (double)q[c];
        }
        NEAR(fabs(dot) / sqrt(norm), 1, 1e-4);
        NEAR(sigmoid((double)m->at[GS_OPACITY][i]), sigmoid((double)back->at[GS_OPACITY][g]),
             0.51 / 255);
        for (int c = 0; c < 3; c++) {
            NEAR(m->at[GS_SCALING][3 * i + c], back->at[GS_SCALING][3 * g + c], 0.03);
            NEAR(m->at[GS_SH_0][3 * i + c], back->at[GS_SH_0][3 * g + c], 0.02);
        }
        for (int64_t c = 0; c < k; c++)
            NEAR(m->at[GS_SH_N][i * k + c], back->at[GS_SH_N][g * k + c], 0.03);
    }
}

static void round_trip(const char *name, int64_t n, int degree, void (*change)(gs_model *))
{
    fth_mem *mem = t_mem(64 << 20);
    fth_err err = {0};
    gs_model m = make_model(mem, n, degree), back;
    gs_model_info info;
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path(name));
    if (change) change(&m);
    OKE(gs_model_save(&m, path, GS_FORMAT_SOG, &err), &err);
    OKE(gs_model_look(mem, path, &info, &err), &err);
    EQ_I64(info.format, GS_FORMAT_SOG);
    EQ_I64(info.n, n);
    EQ_I64(info.degree, degree);
    OKE(gs_model_load(&back, mem, path, GS_FORMAT_SOG, &err), &err);
    check_near(&m, &back);
    gs_model_free(&back);
    gs_model_free(&m);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_REPEAT(sog_keeps_what_its_bytes_can)
{
    round_trip("a.sog", 1, 0, NULL);
    round_trip("a.sog", 17, 3, NULL);
    round_trip("a.sog", 900, 2, NULL);
    round_trip("a.sog", 3000, 3, NULL); /* more rows than the palette has */
    round_trip("folder/meta.json", 300, 1, NULL);
}

/* Both make an alpha of 255 everywhere, which WebP leaves out. */
static void make_opaque(gs_model *m)
{
    for (int64_t g = 0; g < m->n; g++) m->at[GS_OPACITY][g] = 9;
}

static void turn_around_z(gs_model *m)
{
    for (int64_t g = 0; g < m->n; g++)
        for (int c = 0; c < 4; c++) m->at[GS_ROTATION][4 * g + c] = c == 3 ? 1.0f : 0.1f;
}

TEST(pictures_without_alpha_are_opaque)
{
    round_trip("a.sog", 300, 1, make_opaque);
    round_trip("a.sog", 300, 0, turn_around_z);
}

TEST(a_folder_is_a_model_too)
{
    fth_mem *mem = t_mem(64 << 20);
    gs_model_info info;
    round_trip("folder/meta.json", 50, 0, NULL);
    OK(gs_model_look(mem, t_temp_path("folder"), &info, NULL));
    EQ_I64(info.n, 50);
    OK(fth_mem_destroy(mem, NULL));
}

/* Equal models give equal files. */
TEST(sog_files_are_the_same_each_time)
{
    fth_mem *mem = t_mem(64 << 20);
    gs_model m = make_model(mem, 2500, 1);
    size_t n[2];
    unsigned char *file[2];
    for (int i = 0; i < 2; i++) {
        OK(gs_model_save(&m, t_temp_path("s.sog"), GS_FORMAT_SOG, NULL));
        file[i] = t_file_read(t_temp_path("s.sog"), &n[i]);
    }
    EQ_U64(n[0], n[1]);
    SAME_BYTES(file[0], file[1], n[0]);
    free(file[0]);
    free(file[1]);
    gs_model_free(&m);
    OK(fth_mem_destroy(mem, NULL));
}

/* Another meta.json in a folder that was written. */
static void refuse(const char *text, fth_status status, const char *says)
{
    fth_mem *mem = t_mem(64 << 20);
    fth_err err = {0};
    gs_model back;
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path("folder/meta.json"));
    t_file_write(path, text, strlen(text));
    IS(gs_model_load(&back, mem, path, GS_FORMAT_SOG, &err), status);
    HAS(err.text, says);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(bad_meta_data_is_refused)
{
    round_trip("folder/meta.json", 20, 0, NULL);
    refuse("{\"count\": 20}", FTH_E_FILE_FEATURE, "expected version 2, found version 1");
    refuse("{\"version\": 2}", FTH_E_FILE_FORMAT, "\"count\"");
    refuse("{\"version\": 2, \"count\": 20, \"shN\": {\"count\": 70000, \"bands\": 1}}",
           FTH_E_FILE_FORMAT, "found 70000");
    refuse("{\"version\": 2, \"count\": 20}", FTH_E_FILE_FORMAT, "name of a picture");
    refuse("{\"version\": 2, \"count\": 2000, \"scales\": {\"files\": [\"scales.webp\"]}}",
           FTH_E_FILE_SHAPE, "2000 pixels");
    refuse("{\"version\": 2, \"count\": 20, \"scales\": {\"files\": [\"../x.webp\"]}}",
           FTH_E_FILE_FORMAT, "beside it");
    refuse("{\"version\": 2, \"count\": 20, \"scales\": {\"files\": [\"scales.webp\"]},"
           "\"means\": {\"mins\": [0, 0]}}",
           FTH_E_FILE_FORMAT, "expected 3 numbers");
    refuse("[", FTH_E_FILE_FORMAT, "meta.json");
}

TEST(a_line_of_few_values_is_kept)
{
    fth_mem *mem = t_mem(1 << 20);
    float value[1000], codes[GS_CODES];
    uint8_t index[1000];
    for (int i = 0; i < 1000; i++) value[i] = (float)(i % 100) * (float)(i % 100);
    OK(gs_kmeans_line(mem, value, 1000, GS_KMEANS_ROUNDS, codes, index, NULL));
    for (int i = 0; i < 1000; i++) NEAR(codes[index[i]], value[i], 1e-3);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- SPZ 4 ---- */

static void put64(unsigned char *to, uint64_t v)
{
    memcpy(to, &v, 8);
}

/* What version 3 has in gzip, as version 4 with a stream of zstd for each array. */
static size_t make_v4(const char *v3, int streams, unsigned char *to, size_t room)
{
    static unsigned char plain[1 << 20];
    gzFile z = gzopen(v3, "rb");
    const int got = gzread(z, plain, sizeof plain);
    gzclose(z);
    IS_TRUE(got > 16);
    uint32_t n;
    memcpy(&n, plain + 8, 4);
    const size_t k = (size_t)(got - 16) / n - 20, bytes[6] = {9, 1, 3, 3, 4, k};
    memset(to, 0, 32 + (size_t)streams * 16);
    memcpy(to, plain, 15);
    to[4] = 4;
    to[15] = (unsigned char)streams;
    to[16] = 32;
    size_t from = 16, at = 32 + (size_t)streams * 16;
    for (int i = 0; i < streams; i++) {
        const size_t packed = ZSTD_compress(to + at, room - at, plain + from, bytes[i] * n, 3);
        IS_TRUE(!ZSTD_isError(packed));
        put64(to + 32 + 16 * i, packed);
        put64(to + 40 + 16 * i, bytes[i] * n);
        from += bytes[i] * n;
        at += packed;
    }
    return at;
}

TEST(spz_version_4_is_version_3_in_other_streams)
{
    static unsigned char file[1 << 20];
    fth_mem *mem = t_mem(64 << 20);
    for (int k = 0; k <= 4; k++) { /* the last without its empty stream */
        const int degree = k % 4;
        gs_model m = make_model(mem, 400, degree), three, four;
        gs_model_info info;
        fth_err err = {0};
        OK(gs_model_save(&m, t_temp_path("3.spz"), GS_FORMAT_SPZ, NULL));
        const size_t n = make_v4(t_temp_path("3.spz"), k == 4 ? 5 : 6, file, sizeof file);
        t_file_write(t_temp_path("4.spz"), file, n);
        OK(gs_model_load(&three, mem, t_temp_path("3.spz"), GS_FORMAT_SPZ, NULL));
        OKE(gs_model_look(mem, t_temp_path("4.spz"), &info, &err), &err);
        EQ_I64(info.version, 4);
        EQ_I64(info.n, 400);
        OKE(gs_model_load(&four, mem, t_temp_path("4.spz"), GS_FORMAT_SPZ, &err), &err);
        for (int a = 0; a < GS_ATTRIBUTES; a++)
            SAME_BYTES(three.at[a], four.at[a], 1600 * gs_columns((gs_attribute)a, degree));
        gs_model_free(&three);
        gs_model_free(&four);
        gs_model_free(&m);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(damaged_files_of_version_4_are_refused)
{
    static const struct {
        int offset;
        unsigned char byte;
        fth_status status;
        const char *says;
    } cases[] = {{4, 5, FTH_E_FILE_FEATURE, "expected SPZ version 4, found 5"},
                 {12, 4, FTH_E_FILE_FORMAT, "degree of 0 to 3"},
                 {15, 5, FTH_E_FILE_FORMAT, "expected 6 streams"},
                 {11, 255, FTH_E_FILE_FORMAT, "can hold"},
                 {41, 77, FTH_E_FILE_FORMAT, "means: expected a stream of"},
                 {33, 77, FTH_E_FILE_FORMAT, "packed as"}};
    static unsigned char file[1 << 20];
    fth_mem *mem = t_mem(64 << 20);
    gs_model m = make_model(mem, 40, 1), back;
    OK(gs_model_save(&m, t_temp_path("3.spz"), GS_FORMAT_SPZ, NULL));
    const size_t n = make_v4(t_temp_path("3.spz"), 6, file, sizeof file);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fth_err err = {0};
        const unsigned char was = file[cases[i].offset];
        file[cases[i].offset] = cases[i].byte;
        t_file_write(t_temp_path("4.spz"), file, n);
        file[cases[i].offset] = was;
        IS(gs_model_load(&back, mem, t_temp_path("4.spz"), GS_FORMAT_SPZ, &err), cases[i].status);
        HAS(err.text, cases[i].says);
    }
    for (size_t cut = 0; cut < n; cut++) {
        t_file_write(t_temp_path("4.spz"), file, cut);
        const fth_status s = gs_model_load(&back, mem, t_temp_path("4.spz"), GS_FORMAT_SPZ, NULL);
        IS_TRUE(s == FTH_E_FILE_SHORT || s == FTH_E_FILE_FORMAT);
    }
    gs_model_free(&m);
    OK(fth_mem_destroy(mem, NULL));
}
