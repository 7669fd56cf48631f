/* test_base_err.c - statuses, error texts as people see them, and no overflow. seconds: 1 */
#include "testing/test.h"

#include "base/str.h"

static fth_site at(const char *file, int line, const char *func)
{
    return (fth_site){.file = file, .func = func, .line = line};
}

TEST(every_status_has_all_its_facts)
{
    for (int i = 0; i < FTH_STATUS_COUNT; i++) {
        const fth_status_info *info = fth_status_get_info((fth_status)i);
        IS_TRUE(info->name && info->code && info->brief && info->hint);
        HAS(info->code, "FTH-");
        if (i == FTH_OK) continue;
        IS_TRUE(info->brief[0] && info->hint[0]);
        const int e = info->exit_code;
        IS_TRUE((e >= 1 && e <= 7) || e == 70);
        for (int k = 0; k < i; k++)
            IS_TRUE(strcmp(info->code, fth_status_get_info((fth_status)k)->code) != 0);
    }
    EQ_STR(fth_status_get_info(FTH_E_AXIS_SIZE)->code, "FTH-AXIS-002");
    EQ_I64(fth_status_get_info(FTH_E_NO_FIT)->exit_code, 4);
    EQ_I64(fth_status_get_info(FTH_OK)->exit_code, 0);
}

TEST(unknown_numbers_are_our_bug)
{
    EQ_STR(fth_status_get_info((fth_status)-1)->name, "INTERNAL");
    EQ_STR(fth_status_get_info(FTH_STATUS_COUNT)->name, "INTERNAL");
    EQ_STR(fth_status_get_info((fth_status)123456)->name, "INTERNAL");
}

TEST(version_is_the_header_s)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", FTH_VERSION_MAJOR, FTH_VERSION_MINOR,
             FTH_VERSION_PATCH);
    EQ_STR(fth_version(), text);
}

TEST(a_whole_error_reads_like_this)
{
    fth_err err = {0};
    IS(fth_err_set(&err, at("src/graph/build.c", 80, "fth_add_"), FTH_E_AXIS_SIZE,
                   "axis '%s' is %d here\nand %d there", "patch", 128, 32),
       FTH_E_AXIS_SIZE);
    fth_err_origin(&err, at("program.c", 12, "main"));
    fth_err_hint(&err, "declare it once\nand from the data");
    IS(fth_err_note(&err, at("src/job/run.c", 7, "stage"), FTH_E_AXIS_SIZE, "running %s", "train"),
       FTH_E_AXIS_SIZE);
    char text[1024];
    const size_t n = fth_err_format(&err, text, sizeof text);
    EQ_STR(text, "error FTH-AXIS-002: an axis has two lengths\n"
                 "  axis 'patch' is 128 here\n"
                 "  and 32 there\n"
                 "  at       program.c:12\n"
                 "  hint     declare it once\n"
                 "           and from the data\n"
                 "  from     src/graph/build.c:80 fth_add_\n"
                 "  from     src/job/run.c:7 stage: running train\n");
    EQ_U64(n, strlen(text));
}

TEST(the_general_hint_stands_in)
{
    fth_err err = {0};
    (void)fth_err_set(&err, at("a.c", 1, "f"), FTH_E_SCRATCH, "%s", "");
    char text[512];
    fth_err_format(&err, text, sizeof text);
    EQ_STR(text, "error FTH-MEM-006: the scratch directory has too little room\n"
                 "  hint     choose another directory with --scratch\n"
                 "  from     a.c:1 f\n");
}

TEST(no_error_is_said_plainly)
{
    char text[64];
    fth_err err = {0};
    fth_err_format(&err, text, sizeof text);
    EQ_STR(text, "no error\n");
    fth_err_format(NULL, text, sizeof text);
    EQ_STR(text, "no error\n");
}

/* A callee's cause was once replaced by "could not open": the reason was gone. */
TEST(the_first_cause_is_kept)
{
    fth_err err = {0};
    IS(FTH_FAIL(&err, FTH_E_NOMEM, "first"), FTH_E_NOMEM);
    IS(FTH_FAIL(&err, FTH_E_FILE_OPEN, "second %d", 2), FTH_E_FILE_OPEN);
    IS(err.status, FTH_E_NOMEM);
    EQ_STR(err.text, "first");
    EQ_I64(err.n_frames, 2);
    EQ_STR(err.frame[1].note, "second 2");
    fth_err_origin(&err, at("inner.c", 1, "f"));
    fth_err_origin(&err, at("outer.c", 2, "g"));
    EQ_STR(err.origin.file, "inner.c");
}

TEST(an_error_can_be_used_again)
{
    fth_err err = {0};
    (void)FTH_FAIL(&err, FTH_E_NOMEM, "first");
    fth_err_hint(&err, "a hint");
    fth_err_origin(&err, at("a.c", 1, "f"));
    fth_err_clear(&err);
    IS(err.status, FTH_OK);
    IS(FTH_FAIL(&err, FTH_E_USAGE, "new"), FTH_E_USAGE);
    EQ_STR(err.text, "new");
    EQ_STR(err.hint, "");
    EQ_I64(err.n_frames, 1);
    IS_TRUE(err.origin.file == NULL);
}

TEST(null_errors_are_allowed)
{
    fth_err_clear(NULL);
    IS(FTH_FAIL(NULL, FTH_E_NOMEM, "x"), FTH_E_NOMEM);
    IS(fth_err_note(NULL, FTH_HERE, FTH_E_USAGE, "x"), FTH_E_USAGE);
    fth_err_hint(NULL, "x");
    fth_err_origin(NULL, FTH_HERE);
}

TEST(hints_and_origins_need_an_error)
{
    fth_err err = {0};
    fth_err_hint(&err, "x");
    fth_err_origin(&err, FTH_HERE);
    IS(fth_err_note(&err, FTH_HERE, FTH_OK, "x"), FTH_OK);
    EQ_STR(err.hint, "");
    IS_TRUE(err.origin.file == NULL);
    EQ_I64(err.n_frames, 0);
}

TEST(a_silent_callee_still_leaves_its_status)
{
    fth_err err = {0};
    IS(fth_err_note(&err, FTH_HERE, FTH_E_FILE_READ, "reading %s", "x.h5"), FTH_E_FILE_READ);
    IS(err.status, FTH_E_FILE_READ);
    EQ_STR(err.frame[0].note, "reading x.h5");
}

TEST(failing_with_no_error_is_our_bug)
{
    fth_err err = {0};
    IS(FTH_FAIL(&err, FTH_OK, "x"), FTH_E_INTERNAL);
}

static fth_status inner(fth_err *err)
{
    return FTH_FAIL(err, FTH_E_FILE_SHORT, "cut");
}
static fth_status outer(fth_err *err)
{
    FTH_TRY_CTX(inner(err), err, "reading chunk %d", 3);
    return FTH_OK;
}
static fth_status outermost(fth_err *err)
{
    FTH_TRY(outer(err));
    return FTH_OK;
}

TEST(context_travels_up)
{
    fth_err err = {0};
    IS(outermost(&err), FTH_E_FILE_SHORT);
    EQ_I64(err.n_frames, 2);
    EQ_STR(err.frame[0].site.func, "inner");
    EQ_STR(err.frame[1].site.func, "outer");
    EQ_STR(err.frame[1].note, "reading chunk 3");
}

/* Guards around the error and its text must survive texts of every length. */
TEST(long_texts_never_overflow)
{
    enum { N = 6000 };
    static char big[N + 1];
    struct {
        uint64_t before;
        fth_err err;
        uint64_t after;
    } g = {.before = 0xabcdef, .after = 0xfedcba};
    for (size_t n = 0; n <= N; n += n < 200 ? 1 : 97) {
        memset(big, 'x', n);
        big[n] = '\0';
        g.err = (fth_err){0};
        (void)FTH_FAIL(&g.err, FTH_E_USAGE, "%s", big);
        fth_err_hint(&g.err, "%s", big);
        for (int i = 0; i < 20; i++) (void)fth_err_note(&g.err, FTH_HERE, FTH_E_USAGE, "%s", big);
        EQ_U64(g.before, 0xabcdef);
        EQ_U64(g.after, 0xfedcba);
        EQ_I64(g.err.n_frames, FTH_ERR_FRAMES);
        EQ_U64(strlen(g.err.text), n < FTH_ERR_TEXT ? n : FTH_ERR_TEXT - 1);
        EQ_U64(strlen(g.err.hint), n < FTH_ERR_HINT ? n : FTH_ERR_HINT - 1);
        if (n >= FTH_ERR_TEXT) EQ_STR(g.err.text + FTH_ERR_TEXT - 4, "...");
    }
}

TEST(formatting_stops_at_the_end_of_the_buffer)
{
    fth_err err = {0};
    (void)FTH_FAIL(&err, FTH_E_USAGE, "some text\nin two lines");
    char whole[1024], part[1024];
    const size_t n = fth_err_format(&err, whole, sizeof whole);
    EQ_U64(fth_err_format(&err, NULL, 0), n);
    for (size_t bytes = 1; bytes <= n + 1; bytes++) {
        memset(part, 'z', sizeof part);
        EQ_U64(fth_err_format(&err, part, bytes), n);
        EQ_U64(strlen(part), bytes - 1);
        SAME_BYTES(part, whole, bytes - 1);
        EQ_I64(part[bytes], 'z');
    }
}

static char seen[4096];
static int n_seen;
static void listen(void *user, fth_log_level level, const char *line)
{
    EQ_PTR(user, seen);
    EQ_I64(level, FTH_LOG_WARN);
    n_seen++;
    fth__str_copy(seen, sizeof seen, line);
}

TEST(log_lines_are_filtered_and_bounded)
{
    const fth_log log = {.write = listen, .user = seen, .level = FTH_LOG_WARN};
    fth_log_line(NULL, FTH_LOG_ERROR, "x");
    fth_log_line(&(fth_log){.level = FTH_LOG_DEBUG}, FTH_LOG_ERROR, "x");
    fth_log_line(&log, FTH_LOG_INFO, "x");
    EQ_I64(n_seen, 0);
    fth_log_line(&log, FTH_LOG_WARN, "%d%%", 50);
    EQ_STR(seen, "50%");
    static char big[9000];
    memset(big, 'y', sizeof big - 1);
    fth_log_line(&log, FTH_LOG_WARN, "%s", big);
    EQ_I64(n_seen, 2);
    EQ_STR(seen + strlen(seen) - 4, "y...");
}

TEST_MAIN()
