/* test_isa.c - the level of this processor against what the system says of it, and the choice among
 * kernels of several instruction sets. seconds: 1
 */
#include <fathom/isa.h>

#include "base/processor.h"
#include "testing/test.h"

#include <string.h>

/* Whether the system lists `flag` in this row of the first processor. */
static bool says(const char *row, const char *flag)
{
    static char line[16384];
    FILE *f = fopen("/proc/cpuinfo", "r");
    bool found = false;
    if (!f) SKIP("/proc/cpuinfo cannot be read");
    while (fgets(line, sizeof line, f) && strncmp(line, row, strlen(row)) != 0) {
    }
    fclose(f);
    for (char *word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n"))
        found |= strcmp(word, flag) == 0;
    return found;
}

static bool listed(const char *flag)
{
    return says("flags", flag);
}

TEST(the_maker_is_whom_the_system_names)
{
    if (t_slowed()) SKIP("an emulator of the processor may be another's");
    EQ_I64(fth__is_amd(), says("vendor_id", "AuthenticAMD"));
}

TEST(the_level_is_what_the_system_lists)
{
#if defined(__x86_64__)
    const bool v3 = listed("avx2") && listed("fma") && listed("bmi2"),
               v4 = v3 && listed("avx512bw") && listed("avx512dq") && listed("avx512vl") &&
                    listed("avx512cd");
    const int most = v4 ? 4 : v3 ? 3 : 1;
    if (t_slowed()) /* an emulator of the processor may have less */
        IS_TRUE(fth_isa_level() <= most);
    else
        EQ_I64(fth_isa_level(), most);
#else
    IS_TRUE(!listed("avx2"));
    EQ_I64(fth_isa_level(), 1);
#endif
}

/* What kernel files would export. */
static const int which_base = 1;
#ifdef FTH_HAVE_ISA_V3
static const int which_v3 = 3;
#endif
#ifdef FTH_HAVE_ISA_V4
static const int which_v4 = 4;
#endif

/* Builds with sanitizers leave one out. */
static bool has_set(int level)
{
#ifdef FTH_HAVE_ISA_V3
    if (level == 3) return true;
#endif
#ifdef FTH_HAVE_ISA_V4
    if (level == 4) return true;
#endif
    return level == 1;
}

TEST(a_level_is_there_or_it_is_null)
{
    for (int level = -1; level <= 6; level++) {
        const int *at = FTH_ISA_AT(which, level);
        if (has_set(level) && level <= fth_isa_level())
            EQ_I64(*at, level);
        else
            IS_TRUE(at == NULL);
    }
}

TEST(the_best_is_the_highest_there_is)
{
    EQ_I64(*FTH_ISA_BEST(which), fth_isa_level());
    IS_TRUE(FTH_ISA_BEST(which) == FTH_ISA_AT(which, fth_isa_level()));
}

#define FTH_ISA v3
TEST(a_kernel_file_names_what_it_exports_by_its_set)
{
    const int FTH_ISA_NAME(blur) = 7;
    EQ_I64(blur_v3, 7);
}

/* A build for the lowest set alone. */
#undef FATHOM_ISA_H
#undef FTH_HAVE_ISA_V3
#undef FTH_HAVE_ISA_V4
#undef FTH__ISA_DECLARE_V3
#undef FTH__ISA_DECLARE_V4
#undef FTH__ISA_V3
#undef FTH__ISA_V4
#undef FTH__ISA_TO_V3
#undef FTH__ISA_TO_V4
#include <fathom/isa.h>

static const int only_base = 1;

TEST(a_build_for_one_set_uses_that)
{
    for (int level = 2; level <= 4; level++) IS_TRUE(FTH_ISA_AT(only, level) == NULL);
    EQ_I64(*FTH_ISA_AT(only, 1), 1);
    EQ_I64(*FTH_ISA_BEST(only), 1);
}

TEST_MAIN()
