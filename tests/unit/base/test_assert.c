/* test_assert.c - a broken invariant ends a test build with its place, and does nothing in a
 * release. seconds: 1 */
#include "testing/test.h"

#include "base/assert.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int evaluated;

static bool count_and_return(bool result)
{
    evaluated++;
    return result;
}

TEST(a_condition_that_holds_is_silent)
{
    evaluated = 0;
    FTH_ASSERT(count_and_return(true));
#ifdef NDEBUG
    EQ_I64(evaluated, 0);
#else
    EQ_I64(evaluated, 1);
#endif
}

#ifdef NDEBUG
TEST(a_release_does_not_evaluate_the_condition)
{
    evaluated = 0;
    FTH_ASSERT(count_and_return(false));
    EQ_I64(evaluated, 0);
}
#else
/* In a child: reads what it wrote to its standard error, and how it ended. */
static int broken_in_a_child(char *text, size_t size)
{
    int ends[2], status = 0;
    IS_TRUE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        FTH_ASSERT(2 + 2 == 5);
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < size && (got = read(ends[0], text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    close(ends[0]);
    IS_TRUE(waitpid(child, &status, 0) == child);
    return status;
}

TEST(a_broken_invariant_names_its_place_and_aborts)
{
    char text[512];
    const int status = broken_in_a_child(text, sizeof text);
    IS_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    HAS(text, "test_assert.c:");
    HAS(text, "invariant broken: 2 + 2 == 5");
}
#endif
TEST_MAIN()
