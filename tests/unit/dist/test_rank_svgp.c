/* test_rank_svgp.c - the streamed Gaussian process of examples/ on several ranks.
 * seconds: 5
 */
#include "testing/engine/ranks.h"

#include <fathom/fathom.h>

static fth_ranks *ranks_here;

static void with_ranks(fth_options *opt)
{
    fth_options_default(opt);
    opt->ranks = ranks_here;
}

int svgp_main(int argc, char **argv);
#define fth_options_default with_ranks
#define main svgp_main
#include "examples/svgp_analysis.c"
#undef main
#undef fth_options_default

typedef struct found {
    int exit_code;
    char text[1 << 16];
} found;

static void analyse_here(fth_ranks *ranks, void *user, void *found_)
{
    found *f = found_;
    char *argv[] = {(char[]){"svgp"},
                    (char[]){"4001"},
                    (char[]){"60"},
                    (char[]){"3"},
                    user,
                    (char[]){"--threads"},
                    (char[]){"1"},
                    NULL};
    ranks_here = ranks;
    stdout = fmemopen(f->text, sizeof f->text, "w");
    f->exit_code = svgp_main(7, argv);
    fclose(stdout);
}

/* The lines with hashes; sums beside them follow the order of writes. */
static void hashes_of(const char *text, char *hashes)
{
    const char *f = strstr(text, "\nF "), *s = strstr(text, "\nS ");
    IS_TRUE(f && s);
    snprintf(hashes, 64, "%.18s %.18s", f + 1, s + 1);
}

TEST(analysis_of_a_gaussian_process)
{
    char *budgets[] = {(char[]){"20M"}, (char[]){"16M"}};
    char want[64], got[64];
    const int counts[] = {1, 2, 3, 8};
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < 4; i++) {
            char *block = t_ranks(counts[i], analyse_here, budgets[b], sizeof(found));
            for (int r = 0; r < counts[i]; r++) {
                const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
                EQ_I64(f->exit_code, 0);
                hashes_of(f->text, b + i == 0 ? want : got);
                if (b + i > 0) EQ_STR(got, want);
                HAS_NOT(f->text, "NOT AS PLANNED");
                if (counts[i] > 1) HAS(f->text, "ranks share 1 of 1 passes");
            }
            t_ranks_free(block, counts[i], sizeof(found));
        }
}

TEST_MAIN()
