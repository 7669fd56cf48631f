/* test_progress.c - lines in any pieces, garbage, long lines, and the progress of other programs.
 * seconds: 2 */
#include "job/run/progress.h"
#include "testing/io/files.h"

#include <math.h>

typedef struct seen {
    char text[65536];
    size_t used;
    int64_t lines, pieces;
} seen;

/* Writes it all out again, a '|' before each whole line and a '+' before each piece. */
static void see(void *user, const char *text, size_t n, char end, bool whole)
{
    seen *s = user;
    s->text[s->used++] = whole ? '|' : '+';
    memcpy(s->text + s->used, text, n);
    s->used += n;
    if (end) s->text[s->used++] = end;
    s->text[s->used] = '\0';
    if (whole)
        s->lines++;
    else
        s->pieces++;
}

TEST(lines_come_in_any_pieces)
{
    static const char text[] = "one\ntwo\r\nthree\rfour\n\nend";
    static const char wanted[] = "|one\n|two\r|\n|three\r|four\n|\n|end";
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        fth__progress_lines lines = {0};
        seen s = {0};
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            const size_t rest = sizeof text - 1 - at;
            fth__lines_feed(&lines, text + at, rest < piece ? rest : piece, see, &s);
        }
        fth__lines_flush(&lines, see, &s);
        EQ_STR(s.text, wanted);
        fth__lines_flush(&lines, see, &s); /* nothing is left */
        EQ_STR(s.text, wanted);
    }
}

TEST(a_long_line_is_handed_on_in_pieces_and_the_next_one_is_whole)
{
    static char text[3 * FTH__LINE_BYTES];
    memset(text, 'x', sizeof text);
    memcpy(text + 2 * FTH__LINE_BYTES + 7, "\nshort\n", 7);
    for (size_t piece = 1; piece < sizeof text; piece = piece * 5 + 1) {
        fth__progress_lines lines = {0};
        seen s = {0};
        const size_t n = 2 * FTH__LINE_BYTES + 14;
        for (size_t at = 0; at < n; at += piece)
            fth__lines_feed(&lines, text + at, n - at < piece ? n - at : piece, see, &s);
        EQ_I64(s.lines, 1);
        EQ_I64(s.pieces, 3);
        HAS(s.text, "|short\n");
        EQ_U64(s.used, n + 4);
    }
}

/* Property: whatever the bytes and the cuts, all of them come out again, in order. */
TEST(garbage_passes_unchanged)
{
    t_random rnd = t_random_make(1);
    for (int rep = 0; rep < 300; rep++) {
        static char text[20000];
        const size_t n = (size_t)t_random_i64(&rnd, 0, sizeof text);
        const int64_t often = t_random_i64(&rnd, 2, 3000);
        for (size_t i = 0; i < n; i++)
            text[i] = t_random_i64(&rnd, 0, often) ? (char)t_random_u64(&rnd) : '\n';
        fth__progress_lines lines = {0};
        seen s = {0};
        for (size_t at = 0; at < n;) {
            size_t piece = (size_t)t_random_i64(&rnd, 1, 9000);
            if (piece > n - at) piece = n - at;
            fth__lines_feed(&lines, text + at, piece, see, &s);
            at += piece;
        }
        fth__lines_flush(&lines, see, &s);
        EQ_U64(s.used - (size_t)(s.lines + s.pieces), n);
    }
}

static bool tell(fth__progress *p, fth_mem *mem, const char *line)
{
    return fth__progress_json(p, mem, line, strlen(line), "elbo");
}

TEST(lines_of_stages_fill_in_what_they_name)
{
    fth_mem *mem = t_mem(1 << 20);
    fth__progress p = {.value = (double)NAN};
    IS_TRUE(tell(&p, mem, "{\"t\":1.5,\"event\":\"plan\",\"bytes\":1000,\"device_bytes\":7}"));
    EQ_U64(p.planned_bytes, 1000);
    EQ_U64(p.device_planned_bytes, 7);
    IS_TRUE(tell(&p, mem,
                 "{\"iter\":3,\"total\":10,\"what\":\"epoch\",\"elbo\":-2.5,\"lr\":1,"
                 "\"eta_s\":4.5,\"bytes\":123456789012}"));
    EQ_I64(p.done, 3);
    EQ_I64(p.total, 10);
    EQ_STR(p.what, "epoch");
    EQ_F64(p.value, -2.5);
    EQ_F64(p.remaining_s, 4.5);
    EQ_U64(p.bytes, 123456789012);
    IS_TRUE(tell(&p, mem, "{\"iter\":4}"));
    EQ_I64(p.done, 4);
    EQ_I64(p.total, 10); /* not named: as before */
    EQ_STR(p.what, "epoch");
    IS_TRUE(tell(&p, mem,
                 "{\"event\":\"end\",\"ledger_bytes\":5,\"growth_bytes\":6,\"read_bytes\":7,"
                 "\"io_seconds\":0.5,\"bound_by\":\"compute 98 %\"}"));
    EQ_U64(p.ledger_bytes + p.peak_bytes + p.read_bytes, 18);
    EQ_STR(p.bound_by, "compute 98 %");
    EQ_U64(p.planned_bytes, 1000);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_no_json_changes_nothing)
{
    fth_mem *mem = t_mem(1 << 20);
    static const char *const lines[] = {"",           "{",         "hello",    "[1,2]",
                                        "{\"iter\":", "null",      "\x01\xff", "{\"iter\":4} x",
                                        "12",         "{\"a\":{}]"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fth__progress p = {.done = 2, .total = 5, .value = 1};
        const fth__progress before = p;
        IS_TRUE(!tell(&p, mem, lines[i]));
        SAME_BYTES(&p, &before, sizeof p);
    }
    fth__progress p = {.done = 2, .total = 5, .value = 1};
    IS_TRUE(tell(&p, mem, "{\"iter\":\"many\",\"elbo\":null,\"what\":7}")); /* of other types */
    EQ_I64(p.done, 2);
    EQ_F64(p.value, 1);
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct foreign {
    const char *line;
    bool bar;
    int64_t done, total;
    double value, remaining_s;
} foreign;

TEST(text_of_other_programs_is_understood)
{
    static const foreign cases[] = {
        {"Iteration 500: ELBO = -12345.67", false, 500, 0, -12345.67, 0},
        {"PNMF fitting (expanded mode):  50%|#####     | 5000/10000 [01:23<02:45, 60.12it/s, "
         "ELBO=-5.475e+05, lr=5.2e-03]",
         true, 5000, 10000, -547500, 165},
        {"transform_W:  38%|###8      | 385/1000 [00:03<00:05, 109.52it/s, NLL=8353034.500000]",
         true, 385, 1000, 0, 5},
        {"Loading preprocessed data from: outputs/x/preprocessed/", false, 0, 0, 0, 0},
        {"100/1000 [00:01<1:00:09, 100.00it/s]", true, 100, 1000, 0, 3609},
        {"ELBO=", false, 0, 0, 0, 0},
        {"ELBO = nan", false, 0, 0, 0, 0},
        {"1/2", false, 0, 0, 0, 0},
        {"99999999999999999999/7 [", false, 0, 0, 0, 0},
        {"a/b [c/3 [ 4/5 [<7", true, 4, 5, 0, 0},
        {"", false, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fth__progress p = {0};
        EQ_I64(fth__progress_foreign(&p, cases[i].line, strlen(cases[i].line)), cases[i].bar);
        EQ_I64(p.done, cases[i].done);
        EQ_I64(p.total, cases[i].total);
        EQ_F64(p.value, cases[i].value);
        EQ_F64(p.remaining_s, cases[i].remaining_s);
    }
}

TEST(what_a_line_does_not_name_stays)
{
    fth__progress p = {.value = -7, .total = 9};
    const char *line = "Iteration 3: ELBO = x";
    IS_TRUE(!fth__progress_foreign(&p, line, strlen(line)));
    EQ_F64(p.value, -7);
    EQ_I64(p.total, 9);
    EQ_I64(p.done, 0);
}

TEST_MAIN()
