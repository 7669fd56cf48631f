/* test_progress.c - lines in any pieces, garbage, long lines, and the progress of other programs.
 * seconds: 2 */
#include "job/progress.h"
#include "testing/files.h"

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
        fth__lines lines = {0};
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
        fth__lines lines = {0};
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
        fth__lines lines = {0};
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
