/* test_rank_first_steps.c - the first example, which checks its own results, on several ranks.
 * seconds: 3
 */
#include "testing/engine/ranks.h"

#include <fathom/fathom.h>

static fth_ranks *ranks_here;

static void with_ranks(fth_options *opt)
{
    fth_options_default(opt);
    opt->ranks = ranks_here;
}

int first_steps_main(void);
#define fth_options_default with_ranks
#define main first_steps_main
#include "examples/first_steps.c"
#undef main
#undef fth_options_default

typedef struct found {
    int exit_code;
    char text[1 << 16];
} found;

static void steps_here(fth_ranks *ranks, void *user, void *found_)
{
    found *f = found_;
    (void)user;
    ranks_here = ranks;
    stdout = fmemopen(f->text, sizeof f->text, "w");
    f->exit_code = first_steps_main();
    fclose(stdout);
}

TEST(first_steps)
{
    const int counts[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++) {
        char *block = t_ranks(counts[i], steps_here, NULL, sizeof(found));
        for (int r = 0; r < counts[i]; r++) {
            const found *f = (const found *)(void *)(block + (uint64_t)r * sizeof *f);
            EQ_I64(f->exit_code, 0);
            if (counts[i] > 1) HAS(f->text, "ranks share 1 of 1 passes");
        }
        t_ranks_free(block, counts[i], sizeof(found));
    }
}

TEST_MAIN()
