/* test_bragg_inputs.c - readers of reflections, matrices, columns and sources.
 * seconds: 1 */
#include "testing/bragg/bragg_scene.h"
#include "testing/io/files.h"

#include "instruments/bragg/experiment/sources.h"
#include "instruments/bragg/ops/ops.h"
#include "instruments/bragg/read/sha256.h"

#include <unistd.h>

#define INPUT(name) "tests/golden/bragg/inputs/" name
#define LOG(name) "tests/golden/bragg/public/" name ".stdout.txt"

typedef struct bench {
    fth_mem *mem;
    fth_err err;
    br_reflections r;
} bench;

static bench start(void)
{
    return (bench){.mem = t_mem(1 << 24)};
}

static void end(bench *b)
{
    br_reflections_clear(&b->r);
    fth_err err = {0};
    OKE(fth_mem_destroy(b->mem, &err), &err);
}

static const char *file(const char *text)
{
    const char *path = t_temp_path("input.txt");
    t_file_write(path, text, strlen(text));
    return path;
}

static fth_status hkl(bench *b, const char *text, double default_F, bool strict)
{
    br_reflections_clear(&b->r);
    fth_err_clear(&b->err);
    return br_hkl_read(&b->r, b->mem, file(text), default_F, strict, &b->err);
}

static double F(const bench *b, int64_t h, int64_t k, int64_t l)
{
    const double *v = fth_tensor_data(b->r.table);
    return v[((h - b->r.h_min) * fth_tensor_size(b->r.table, 1) + k - b->r.k_min) *
                 fth_tensor_size(b->r.table, 2) +
             l - b->r.l_min];
}

TEST(golden_list_in_both_modes)
{
    bench b = start();
    for (int strict = 0; strict < 2; strict++) {
        OKE(br_hkl_read(&b.r, b.mem, INPUT("P1_full.hkl"), 0, strict, &b.err), &b.err);
        EQ_I64(b.r.hkls, 9261);
        EQ_I64(b.r.h_min, -10);
        EQ_I64(b.r.l_max, 10);
        EQ_I64(fth_tensor_size(b.r.table, 0), 22);
        EQ_F64(F(&b, -10, -10, -10), 65.3555);
        EQ_F64(F(&b, -10, -10, -8), 25.4595);
        EQ_F64(F(&b, -10, -10, 11), 0); /* the plane behind the end */
        EQ_I64(b.r.fractional, 0);
        br_reflections_clear(&b.r);
    }
    end(&b);
}

TEST(holes_get_the_default_but_not_the_planes_behind)
{
    bench b = start();
    OKE(hkl(&b, "0 0 0 5\n2 1 1 6\n2 1 1 7\n", 25, false), &b.err);
    EQ_I64(b.r.hkls, 3);
    EQ_F64(F(&b, 0, 0, 0), 5);
    EQ_F64(F(&b, 1, 1, 0), 25);
    EQ_F64(F(&b, 2, 1, 1), 7); /* the last wins */
    for (int64_t h = 0; h < 4; h++)
        for (int64_t k = 0; k < 3; k++) {
            EQ_F64(F(&b, h, k, 2), 0);
            if (h == 3 || k == 2) EQ_F64(F(&b, h, k, 0), 0);
        }
    end(&b);
}

TEST(four_at_a_time_wherever_lines_end)
{
    bench b = start();
    OKE(hkl(&b, "1 2\n3 4 1 2 4\n\n5.5", 0, false), &b.err);
    EQ_I64(b.r.hkls, 2);
    EQ_F64(F(&b, 1, 2, 4), 5.5);
    /* five columns are misread: 1 2 3 4 | 9 1 2 5 | 7 9 ... */
    OKE(hkl(&b, "1 2 3 4 9\n1 2 5 7 9\n", 0, false), &b.err);
    EQ_I64(b.r.hkls, 2);
    EQ_I64(b.r.h_max, 9);
    EQ_F64(F(&b, 9, 1, 2), 5);
    /* it ends at the first word; an entry that is cut short does not count */
    OKE(hkl(&b, "1 2 3 4\n1 2 4 5\nend 1 1 1", 0, false), &b.err);
    EQ_I64(b.r.hkls, 2);
    OKE(hkl(&b, "1 2 3 4x 1 2 3 4", 0, false), &b.err);
    EQ_I64(b.r.hkls, 1);
    EQ_F64(F(&b, 1, 2, 3), 4);
    OKE(hkl(&b, "1 2 3 0x1p3 1 2 3 4p", 0, false), &b.err);
    EQ_I64(b.r.hkls, 2);
    OKE(hkl(&b, "1-2-3 4", 0, false), &b.err);
    EQ_F64(F(&b, 1, -2, -3), 4);
    end(&b);
}

/* Numbers end where those of scanf end. */
TEST(numbers_are_those_of_scanf)
{
    static const char *const texts[] = {
        "5e",    "5e+",     "5e+x", "0x",     "0x1p", "0x1pz", "-0X",  "1.5E", "4x",  "1e5",
        "0x1fe", "inf",     "nan",  "infe",   "nane", "-.5e",  ".e",   "1..2", "--1", "+",
        "1-2",   "0x1.8p1", "1,5",  "12e3.5", "1e-",  "0e",    "00x1", "e5"};
    bench b = start();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double want = 0, got = 0;
        int length = 0;
        const int n = sscanf(texts[i], "%lg%n", &want, &length);
        fth_reader t;
        bool found, digits;
        OKE(fth_reader_open(&t, b.mem, file(texts[i]), NULL, &b.err), &b.err);
        OKE(fth_reader_scan(&t, &got, &found, &digits, &b.err), &b.err);
        if (found != (n == 1) || (found && (int)t.at != length))
            FAIL("\"%s\": found %d at %zu; scanf %d at %d", texts[i], found, t.at, n, length);
        if (found) EQ_F64(got, want);
        fth_reader_close(&t);
    }
    end(&b);
}

/* The second reading takes whole numbers: it ends at the first point. */
TEST(fractional_indices_are_counted_and_end_the_table)
{
    bench b = start();
    OKE(hkl(&b, "1 1 1 4\n1.5 1 1 5\n3 -1.9 1 6\n", 0, false), &b.err);
    EQ_I64(b.r.hkls, 3);
    EQ_I64(b.r.fractional, 2);
    EQ_I64(b.r.k_min, -1);
    EQ_F64(F(&b, 1, 1, 1), 4);
    EQ_F64(F(&b, 3, -1, 1), 0);
    IS(hkl(&b, "1 1 1 4\n1.5 1 1 5\n", 0, true), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "input.txt:2");
    OKE(hkl(&b, "1.0 1 1 4\n", 0, true), &b.err);
    EQ_F64(F(&b, 1, 1, 1), 4);
    end(&b);
}

TEST(strict_lists_have_lines_and_comments)
{
    bench b = start();
    OKE(hkl(&b, "# h k l F\n\n1 2 3 4 0.1 more\r\n  1 2 4 5#x\n   # y\n1 2 5 6", 0, true), &b.err);
    EQ_I64(b.r.hkls, 3);
    EQ_F64(F(&b, 1, 2, 3), 4);
    EQ_F64(F(&b, 1, 2, 4), 5);
    EQ_F64(F(&b, 1, 2, 5), 6);
    IS(hkl(&b, "1 2 3 4\n1 2 3\n", 0, true), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "input.txt:2: expected \"h k l F\", found \"1 2 3\"");
    IS(hkl(&b, "1 2 3 4\n\n1 2 3 4x\n", 0, true), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "input.txt:3");
    IS(hkl(&b, "1 2 3 nan\n", 0, true), FTH_E_FILE_FORMAT);
    end(&b);
}

TEST(lists_without_sense_are_errors)
{
    static const char *const wrong[] = {
        "",          "\n\n  \n",   "h k l F\n", "1 2 3",       "nan 1 1 5",
        "1 inf 1 5", "1 1 -inf 5", "1e9 0 0 1", "1 1 1e300 5", "0 -2000000000 0 1"};
    bench b = start();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int strict = 0; strict < 2; strict++) {
            IS(hkl(&b, wrong[i], 0, strict), FTH_E_FILE_FORMAT);
            HAS(b.err.text, "input.txt");
            IS_TRUE(b.r.table == NULL);
        }
    /* a table that the budget does not take: said before it is tried */
    IS(hkl(&b, "0 0 0 1\n900 900 900 1\n", 0, false), FTH_E_BUDGET);
    IS(hkl(&b, "-1000000 -1000000 -1000000 1\n1000000 1000000 1000000 1\n", 0, true),
       FTH_E_SIZE_OVERFLOW);
    IS(br_hkl_read(&b.r, b.mem, t_temp_path("none"), 0, false, NULL), FTH_E_FILE_OPEN);
    IS(br_hkl_read(&b.r, b.mem, t_temp_dir(), 0, false, NULL), FTH_E_FILE_READ);
    end(&b);
}

/* The list is read twice. */
TEST(a_pipe_is_no_list)
{
    bench b = start();
    int fd[2];
    EQ_I64(pipe(fd), 0);
    EQ_I64(write(fd[1], "1 2 3 4\n", 8), 8);
    close(fd[1]);
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd[0]);
    IS(br_hkl_read(&b.r, b.mem, path, 0, false, &b.err), FTH_E_FILE_READ);
    HAS(b.err.text, "read twice");
    IS_TRUE(b.r.table == NULL);
    close(fd[0]);
    end(&b);
}

TEST(numbers_and_lines_across_the_buffer)
{
    bench b = start();
    enum { N = 30000 };
    char *text = malloc(N * 24);
    size_t at = 0;
    for (int i = 0; i < N; i++)
        at += (size_t)sprintf(text + at, "%d 0 %d %d.5\n", i % 100, i / 100, i);
    for (int strict = 0; strict < 2; strict++) {
        OKE(hkl(&b, text, 0, strict), &b.err);
        EQ_I64(b.r.hkls, N);
        for (int i = 0; i < N; i++)
            if (F(&b, i % 100, 0, i / 100) != i + 0.5) FAIL("entry %d", i);
    }
    /* 70000 blanks, and digits without end */
    memset(text, ' ', 70000);
    strcpy(text + 70000, "1 2 3 4");
    OKE(hkl(&b, text, 0, false), &b.err);
    EQ_I64(b.r.hkls, 1);
    IS(hkl(&b, text, 0, true), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "a line has more than");
    memset(text, '0', 600);
    IS(hkl(&b, text, 0, false), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "a number has more than");
    free(text);
    end(&b);
}

/* model 6.3: blanks, two bytes, elements; bytes that look like white space are elements too. */
TEST(dumps_keep_every_byte)
{
    bench b = start();
    OKE(hkl(&b, "-1 0 2 5\n0 0 2 6\n", 0, false), &b.err);
    double *v = fth_tensor_data(b.r.table);
    memset(v, '\f', sizeof *v);
    memset(v + 1, ' ', sizeof *v);
    const double first = v[0], second = v[1];
    const char *path = t_temp_path("Fdump.bin");
    OKE(br_dump_write(&b.r, b.mem, path, &b.err), &b.err);
    size_t bytes;
    unsigned char *data = t_file_read(path, &bytes);
    SAME_BYTES(data, "-1 0 0 0 2 2\n\f\f\f\f\f\f\f\f\f        ", 14 + 16);
    EQ_U64(bytes, 14 + 8 * 3 * 2 * 2);
    br_reflections_clear(&b.r);
    OKE(br_dump_read(&b.r, b.mem, path, &b.err), &b.err);
    EQ_I64(b.r.hkls, 2); /* of a dump: the range */
    EQ_I64(b.r.h_min, -1);
    EQ_I64(b.r.l_max, 2);
    EQ_F64(F(&b, -1, 0, 2), first);
    EQ_F64(F(&b, -1, 0, 3), second);
    EQ_F64(F(&b, 0, 0, 2), 6);
    br_reflections_clear(&b.r);
    for (size_t n = 0; n <= bytes + 1; n++) { /* cut at every byte, and one too long */
        unsigned char *part = calloc(bytes + 1, 1);
        memcpy(part, data, n < bytes ? n : bytes);
        t_file_write(path, part, n);
        free(part);
        fth_err_clear(&b.err);
        const fth_status s = br_dump_read(&b.r, b.mem, path, &b.err);
        if (n == bytes)
            OK(s);
        else
            ONE_OF(s, FTH_E_FILE_FORMAT, FTH_E_FILE_SHORT);
        br_reflections_clear(&b.r);
    }
    free(data);
    end(&b);
}

TEST(dumps_that_lie_are_errors)
{
    static const char *const wrong[] = {"0 -1 0 0 0 0\n\f",
                                        "0  0 0 0 0 0\n\f",
                                        "0 0 0 0 0 0\n\n",
                                        "0 0 0 0 0 0 0\n\f",
                                        "0 0 0 0 0 x\n\f",
                                        "0 9999999999 0 0 0 0\n\f",
                                        "0 1000000 0 1000000 0 1000000\n\f",
                                        "+0 0 0 0 0 0\n\f"};
    bench b = start();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fth_err_clear(&b.err);
        ONE_OF(br_dump_read(&b.r, b.mem, file(wrong[i]), &b.err), FTH_E_FILE_FORMAT,
               FTH_E_FILE_SHORT);
        IS_TRUE(b.r.table == NULL);
    }
    IS(br_dump_read(&b.r, b.mem, t_temp_path("none"), NULL), FTH_E_FILE_OPEN);
    end(&b);
}

/* By a link, so that a mistake here does not cost the machine its /dev/null. */
TEST(a_dump_to_a_device_goes_nowhere)
{
    bench b = start();
    const char *path = t_temp_path("null");
    EQ_I64(symlink("/dev/null", path), 0);
    OKE(hkl(&b, "1 0 2 5\n", 0, false), &b.err);
    OKE(br_dump_write(&b.r, b.mem, path, &b.err), &b.err);
    OKE(br_dump_note(path, t_temp_path("input.txt"), b.mem, &b.err), &b.err);
    char to[20] = {0};
    EQ_I64(readlink(path, to, sizeof to), 9);
    EQ_STR(to, "/dev/null");
    IS_TRUE(!t_file_exists(t_temp_path("null.sha256")));
    end(&b);
}

/* FIPS 180-4 and the lengths around the end of a block; a hash of 70000 bytes by sha256sum. */
TEST(hashes_of_lists)
{
    static const struct known {
        const char *text, *hex;
    } known[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    bench b = start();
    char hex[BR_SHA256_HEX];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        OKE(br_sha256_file(file(known[i].text), b.mem, hex, &b.err), &b.err);
        EQ_STR(hex, known[i].hex);
    }
    char *text = malloc(70001);
    memset(text, 'a', 70000);
    text[70000] = 0;
    OKE(br_sha256_file(file(text), b.mem, hex, &b.err), &b.err);
    EQ_STR(hex, "66915c0872933db504e7578828dd85b7e74a4e0a061f9756793b89c4151bd4b5");
    free(text);
    const char *path = file("abc");
    OKE(br_dump_note(t_temp_path("Fdump.bin"), path, b.mem, &b.err), &b.err);
    char want[400];
    const int n = snprintf(want, sizeof want, "%s  %s\n", known[1].hex, path);
    size_t bytes;
    unsigned char *data = t_file_read(t_temp_path("Fdump.bin.sha256"), &bytes);
    EQ_I64((int64_t)bytes, n);
    SAME_BYTES(data, want, bytes);
    free(data);
    IS(br_dump_note(path, t_temp_path("none"), b.mem, NULL), FTH_E_FILE_OPEN);
    end(&b);
}

TEST(matrices_are_nine_numbers)
{
    bench b = start();
    double m[9];
    OKE(br_matrix_read(INPUT("A.mat"), b.mem, m, &b.err), &b.err);
    EQ_F64(m[0], -0.000916198);
    EQ_F64(m[1], -0.022102070);
    EQ_F64(m[8], 0.015877396);
    OKE(br_matrix_read(file("1 2 3 4\n5 6 7 8 9 words"), b.mem, m, &b.err), &b.err);
    EQ_F64(m[8], 9);
    IS(br_matrix_read(file("1 2 3\n4 5 x 7 8 9"), b.mem, m, &b.err), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "input.txt:2");
    HAS(b.err.text, "after 5");
    IS(br_matrix_read(file("1 2 3 4 5 6 7 8 nan"), b.mem, m, NULL), FTH_E_FILE_FORMAT);
    IS(br_matrix_read(file(""), b.mem, m, NULL), FTH_E_FILE_FORMAT);
    IS(br_matrix_read(t_temp_path("none"), b.mem, m, NULL), FTH_E_FILE_OPEN);
    end(&b);
}

TEST(columns_have_delimiters_and_holes)
{
    bench b = start();
    br_columns c;
    OKE(br_columns_read(&c, b.mem, file("1,2;3\n\n \t \r\n 4 : 5 ! 6 7\r\n8"), 3, false, &b.err),
        &b.err);
    EQ_I64(c.rows, 3);
    const double want[9] = {1, 2, 3, 4, 5, 6, 8, (double)NAN, (double)NAN};
    const double *v = fth_tensor_data(c.table);
    for (int i = 0; i < 9; i++) EQ_F64(v[i], want[i]);
    fth_tensor_release(c.table);
    /* no comments: every word is a number, 0 where it is none */
    OKE(br_columns_read(&c, b.mem, file("# a 3x 5\n# 3x \n7x\n"), 5, false, &b.err), &b.err);
    v = fth_tensor_data(c.table);
    EQ_F64(v[0], 0);
    EQ_F64(v[1], 0);
    EQ_F64(v[2], 3);
    EQ_F64(v[3], 5);
    IS_TRUE(isnan(v[4]));
    /* and after a last word that is none, 0 where columns are missing */
    for (int i = 0; i < 10; i++) EQ_F64(v[5 + i], i == 1 ? 3 : i == 5 ? 7 : 0);
    fth_tensor_release(c.table);
    OKE(br_columns_read(&c, b.mem, file("# a\n1 2 # b\n"), 4, true, &b.err), &b.err);
    EQ_I64(c.rows, 1);
    v = fth_tensor_data(c.table);
    EQ_F64(v[1], 2);
    IS_TRUE(isnan(v[2]));
    fth_tensor_release(c.table);
    IS(br_columns_read(&c, b.mem, file("1 2\n1 3x\n"), 2, true, &b.err), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "input.txt:2: expected a number, found \"3x\"");
    IS_TRUE(c.table == NULL);
    IS(br_columns_read(&c, b.mem, file("\n"), 2, false, NULL), FTH_E_FILE_FORMAT);
    IS(br_columns_read(&c, b.mem, file("nan 1\n"), 2, true, NULL), FTH_E_FILE_FORMAT);
    end(&b);
}

static const double *row(fth_tensor *t, int i)
{
    return (const double *)fth_tensor_data(t) + i * BR_SRC_COLUMNS;
}

TEST(sources_from_a_file)
{
    bench b = start();
    fth_tensor *t;
    const double beam[3] = {1, 0, 0};
    OKE(br_sources_read(&t, b.mem, INPUT("sources.txt"), beam, true, &b.err), &b.err);
    EQ_I64(fth_tensor_size(t, 0), 3);
    const double *s = row(t, 1);
    const double m = sqrt(100 + 0.02 * 0.02);
    EQ_F64(s[BR_SRC_X], -10 / m);
    EQ_F64(s[BR_SRC_Y], -0.02 / m);
    EQ_F64(s[BR_SRC_FIXED], 1.01e-10);
    EQ_F64(s[BR_SRC_PART], 0);
    EQ_F64(s[BR_SRC_WEIGHT], 0.5);
    fth_tensor_release(t);
    /* what is missing: direction of the beam, its wavelength, weight 1 */
    OKE(br_sources_read(&t, b.mem, file("-10\n-1 1\n"), beam, true, &b.err), &b.err);
    s = row(t, 0);
    EQ_F64(s[BR_SRC_X], -1);
    EQ_F64(s[BR_SRC_Y], 0);
    EQ_F64(s[BR_SRC_FIXED], 0);
    EQ_F64(s[BR_SRC_PART], 1);
    EQ_F64(s[BR_SRC_WEIGHT], 1);
    EQ_F64(row(t, 1)[BR_SRC_Y], 1 / sqrt(2));
    fth_tensor_release(t);
    br_columns c;
    OKE(br_source_rows(&c, b.mem, file("-10 0.5\n"), beam, true, &b.err), &b.err);
    const double *v = fth_tensor_data(c.table);
    EQ_F64(v[0], -10);
    EQ_F64(v[1], 0.5);
    EQ_F64(v[3], 1);
    IS_TRUE(isnan(v[4]));
    fth_tensor_release(c.table);
    end(&b);
}

/* model 7.1: a comment of five words is a source without direction and wavelength, but not in spec
 * mode.
 */
TEST(comments_among_sources)
{
    bench b = start();
    fth_tensor *t;
    const double beam[3] = {0, 0, 1};
    const char *text = "# five words of comment\n0 0 -10 1 1e-10\n";
    OKE(br_sources_read(&t, b.mem, file(text), beam, false, &b.err), &b.err);
    EQ_I64(fth_tensor_size(t, 0), 2);
    for (int i = 0; i < 3; i++) EQ_F64(row(t, 0)[i], 0);
    EQ_F64(row(t, 0)[BR_SRC_FIXED], 0);
    EQ_F64(row(t, 0)[BR_SRC_PART], 0);
    fth_tensor_release(t);
    OKE(br_sources_read(&t, b.mem, file(text), beam, true, &b.err), &b.err);
    EQ_I64(fth_tensor_size(t, 0), 1);
    fth_tensor_release(t);
    static const char *const wrong[] = {"0 0 -10 1 0\n", "0 0 -10 1 -1e-10\n", "0 0 0\n",
                                        "0 0 -10 -1\n", "# nothing\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        IS(br_sources_read(&t, b.mem, file(wrong[i]), beam, true, NULL), FTH_E_FILE_FORMAT);
    end(&b);
}

typedef struct seen {
    char text[2000];
    size_t at;
} seen;

static void note(void *user, double h, double v)
{
    seen *s = user;
    s->at += (size_t)snprintf(s->text + s->at, sizeof s->text - s->at,
                              "divergence deviation: %g %g\n", h, v);
}

static void in_log(const char *path, br_convention c, const br_fan *fan, double lambda)
{
    bench b = start();
    br_scene scene;
    double p[BR_PARAMS];
    t_scene(&scene, p, c);
    fth_tensor *t;
    seen s = {.at = 0};
    OKE(br_sources_make(&t, b.mem, &scene, fan, note, &s, &b.err), &b.err);
    size_t bytes;
    char *log = (char *)t_file_read(path, &bytes);
    log[bytes] = 0;
    HAS(log, s.text);
    const int n = (int)fth_tensor_size(t, 0);
    s.at = (size_t)snprintf(s.text, sizeof s.text, "  created a total of %d sources:\n", n);
    for (int i = 0; i < n; i++) {
        const double *v = row(t, i);
        s.at += (size_t)snprintf(s.text + s.at, sizeof s.text - s.at, "%g %g %g   %g %g\n",
                                 10 * v[0], 10 * v[1], 10 * v[2], v[BR_SRC_WEIGHT] / n,
                                 v[BR_SRC_FIXED] + v[BR_SRC_PART] * lambda);
    }
    HAS(log, s.text);
    free(log);
    fth_tensor_release(t);
    end(&b);
}

TEST(fans_are_those_of_the_logs)
{
    in_log(LOG("p27_divergence_round"), BR_MOSFLM,
           &(br_fan){.h_range = 20.0 / 1000,
                     .h_step = 20.0 / 1000 / 4,
                     .v_range = 12.0 / 1000,
                     .v_step = 12.0 / 1000 / 3,
                     .hs = 5,
                     .vs = 4,
                     .wavelengths = 1,
                     .round = true},
           1e-10);
    in_log(LOG("p28_divergence_square"), BR_MOSFLM,
           &(br_fan){.h_range = 15.0 / 1000,
                     .h_step = 15.0 / 1000 / 2,
                     .v_range = 15.0 / 1000,
                     .v_step = 15.0 / 1000 / 2,
                     .hs = 3,
                     .vs = 3,
                     .wavelengths = 1},
           1e-10);
    in_log(LOG("p26_dispersion"), BR_MOSFLM,
           &(br_fan){.hs = 1,
                     .vs = 1,
                     .wavelengths = 4,
                     .dispersion = 0.03,
                     .dispersion_step = 0.03 / 3,
                     .round = true},
           1e-10);
    const br_fan one = {.hs = 1, .vs = 1, .wavelengths = 1, .round = true};
    in_log(LOG("p09_xds"), BR_XDS, &one, 1e-10);
    in_log(LOG("p12_dials_rot"), BR_DIALS, &one, 1e-10);
    in_log(LOG("p01_simple_cubic"), BR_MOSFLM, &one, 6.2e-10);
}

static int64_t count(const br_fan *fan)
{
    bench b = start();
    br_scene scene;
    double p[BR_PARAMS];
    t_scene(&scene, p, BR_MOSFLM);
    fth_tensor *t;
    OKE(br_sources_make(&t, b.mem, &scene, fan, NULL, NULL, &b.err), &b.err);
    const int64_t n = fth_tensor_size(t, 0);
    fth_tensor_release(t);
    end(&b);
    return n;
}

TEST(trimming_needs_both_ranges)
{
    br_fan f = {
        .h_range = 0.02, .h_step = 0.005, .hs = 5, .vs = 1, .wavelengths = 2, .round = true};
    EQ_I64(count(&f), 10);
    f.v_range = 0.02;
    f.v_step = 0.005;
    f.vs = 5;
    EQ_I64(count(&f), 2 * 13); /* of 25: 4 (h^2 + v^2) <= 1.1 */
    f.round = false;
    EQ_I64(count(&f), 50);
    f = (br_fan){.h_range = 0.1,
                 .h_step = 0.005,
                 .v_range = 0.1,
                 .v_step = 0.005,
                 .hs = 21,
                 .vs = 21,
                 .wavelengths = 1,
                 .round = true};
    int64_t inside = 0; /* of 4 (h^2 + v^2) <= 1.1 in steps of a twentieth of the range */
    for (int i = -10; i <= 10; i++)
        for (int j = -10; j <= 10; j++) inside += i * i + j * j < 110;
    EQ_I64(count(&f), inside);
}

TEST(grids_that_no_memory_holds_are_refused_at_once)
{
    bench b = start();
    br_scene scene;
    double p[BR_PARAMS];
    t_scene(&scene, p, BR_MOSFLM);
    fth_tensor *t;
    br_fan f = {.h_range = 1,
                .h_step = 1e-9,
                .hs = 1000000000,
                .v_range = 1,
                .v_step = 1e-9,
                .vs = 1000000000,
                .wavelengths = 1000000000};
    IS(br_sources_make(&t, b.mem, &scene, &f, NULL, NULL, &b.err), FTH_E_BUDGET);
    HAS(b.err.text, "1e+27 sources");
    f.hs = 0;
    IS(br_sources_make(&t, b.mem, &scene, &f, NULL, NULL, NULL), FTH_E_USAGE);
    end(&b);
}

TEST_MAIN()
