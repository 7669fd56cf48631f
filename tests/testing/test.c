/* test.c - what the macros of test.h do: say both sides, then end the case.
 *
 * cmocka runs the cases and catches crashes; the counting of skipped cases is
 * ours, because cmocka does not tell.
 */
#include "testing/test.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MAX_CASES = 4096, PATHS = 8, PATH_BYTES = 4096, EXIT_SKIPPED = 77 };

typedef struct entry {
    const char *name;
    t_case_fn *run;
    const char *file;
    int line;
    bool repeat;
} entry;

static entry entries[MAX_CASES];
static size_t n_entries;
static int n_skipped;
static char temp_dir[PATH_BYTES];
static pid_t temp_owner;

void t_register(const char *name, t_case_fn *run, const char *file, int line)
{
    if (n_entries == MAX_CASES) {
        fprintf(stderr, "more than %d cases in one program\n", MAX_CASES);
        exit(EXIT_FAILURE);
    }
    entries[n_entries++] = (entry){name, run, file, line, false};
}

void t_register_repeat(const char *name, t_case_fn *run, const char *file, int line)
{
    t_register(name, run, file, line);
    entries[n_entries - 1].repeat = true;
}

static bool leaves_repeats_out(void)
{
#ifdef __SANITIZE_ADDRESS__
    return !getenv("FTH_TEST_FULL") && !getenv("FATHOM_TEST_DEVICE");
#else
    return false;
#endif
}

static int by_line(const void *a, const void *b)
{
    return ((const entry *)a)->line - ((const entry *)b)->line;
}

static void run_entry(void **state)
{
    ((const entry *)*state)->run();
}

static int list_cases(const char *file)
{
    for (size_t i = 0; i < n_entries; i++)
        if (strcmp(entries[i].file, file) == 0) puts(entries[i].name);
    return EXIT_SUCCESS;
}

void (*t_at_end)(void);

int t_main(int argc, char **argv, const char *file)
{
    static struct CMUnitTest cases[MAX_CASES];
    size_t n = 0;
    if (argc > 1 && strcmp(argv[1], "--list") == 0) return list_cases(file);
    setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the order of lines when a case crashes */
    qsort(entries, n_entries, sizeof entries[0], by_line);
    for (size_t i = 0; i < n_entries; i++) {
        if (strcmp(entries[i].file, file) != 0) continue; /* of another test in this program */
        if (argc > 1 ? !strstr(entries[i].name, argv[1])
                     : entries[i].repeat && leaves_repeats_out())
            continue;
        cases[n++] = (struct CMUnitTest){
            .name = entries[i].name, .test_func = run_entry, .initial_state = &entries[i]};
    }
    if (n == 0) {
        fprintf(stderr, "%s: no case matches '%s'\n", file, argc > 1 ? argv[1] : "");
        return EXIT_FAILURE;
    }
    const int failed = _cmocka_run_group_tests(file, cases, n, NULL, NULL);
    printf("cases: %d passed, %d failed, %d skipped\n", (int)n - failed - n_skipped, failed,
           n_skipped);
    if (t_at_end) t_at_end();
    if (failed) return EXIT_FAILURE;
    return n_skipped == (int)n ? EXIT_SKIPPED : EXIT_SUCCESS;
}

/* "unit/test_mem" is the program of .../unit/test_mem.c, or of that file in a room of unit/. */
const char *t_file_of(const char *program)
{
    const char *slash = strchr(program, '/');
    if (!slash) return NULL;
    char kind[64], name[128];
    snprintf(kind, sizeof kind, "/%.*s/", (int)(slash - program), program);
    snprintf(name, sizeof name, "%s.c", slash);
    for (size_t i = 0; i < n_entries; i++) {
        const char *file = entries[i].file, *last = strrchr(file, '/');
        if (last && strcmp(last, name) == 0 && strstr(file, kind)) return file;
    }
    return NULL;
}

_Noreturn void t_fail(t_place at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%s:%d: ", at.file, at.line);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n    replay with FTH_TEST_SEED=%" PRIu64 "\n", t_seed());
    va_end(args);
    _fail(at.file, at.line);
    exit(EXIT_FAILURE); /* only when called outside a case */
}

void t_needs_long_double(t_place at)
{
    volatile long double one = 1.0L, less = 0x1p-60L;
    if (one + less == one) t_skip(at, "long double is no wider than double here");
}

_Noreturn void t_skip(t_place at, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    printf("SKIP: ");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
    n_skipped++;
    _skip(at.file, at.line);
    exit(EXIT_SKIPPED);
}

static const char *status_name(fth_status s)
{
    return s == FTH_OK ? "OK" : fth_status_get_info(s)->name;
}

void t_status(fth_status got, fth_status wanted, const char *text, const fth_err *err, t_place at)
{
    if (got == wanted) return;
    char shown[4096] = "";
    if (err && err->status != FTH_OK) fth_err_format(err, shown, sizeof shown);
    t_fail(at, "%s\n    gave %s, wanted %s\n%s", text, status_name(got), status_name(wanted),
           shown);
}

void t_one_of(fth_status got, fth_status one, fth_status other, const char *text, t_place at)
{
    if (got == one || got == other) return;
    t_fail(at, "%s\n    gave %s, wanted %s or %s", text, status_name(got), status_name(one),
           status_name(other));
}

void t_true(bool got, const char *text, t_place at)
{
    if (!got) t_fail(at, "not true: %s", text);
}

void t_eq_i64(int64_t a, int64_t b, const char *text, t_place at)
{
    if (a != b) t_fail(at, "%s\n    %" PRId64 " is not %" PRId64, text, a, b);
}

void t_eq_u64(uint64_t a, uint64_t b, const char *text, t_place at)
{
    if (a != b) t_fail(at, "%s\n    %" PRIu64 " is not %" PRIu64, text, a, b);
}

void t_eq_f64(double a, double b, const char *text, t_place at)
{
    if (a == b || (isnan(a) && isnan(b))) return;
    t_fail(at, "%s\n    %.17g is not %.17g", text, a, b);
}

void t_eq_str(const char *a, const char *b, const char *text, t_place at)
{
    if (a == b || (a && b && strcmp(a, b) == 0)) return;
    t_fail(at, "%s\n    \"%s\"\n    is not\n    \"%s\"", text, a ? a : "(null)", b ? b : "(null)");
}

void t_eq_ptr(const void *a, const void *b, const char *text, t_place at)
{
    if (a != b) t_fail(at, "%s\n    %p is not %p", text, a, b);
}

void t_le_f64(double a, double b, const char *text, t_place at)
{
    if (!(a <= b)) t_fail(at, "%s\n    %.17g is not at most %.17g", text, a, b);
}

void t_near(double a, double b, double tol, const char *text, t_place at)
{
    if (!(fabs(a - b) <= tol))
        t_fail(at, "%s\n    %.17g and %.17g differ by %.3g, allowed %.3g", text, a, b, fabs(a - b),
               tol);
}

void t_has(const char *text, const char *part, const char *expr, t_place at)
{
    if (!text || !strstr(text, part))
        t_fail(at, "%s\n    \"%s\"\n    does not hold \"%s\"", expr, text ? text : "(null)", part);
}

void t_has_not(const char *text, const char *part, const char *expr, t_place at)
{
    if (!text || strstr(text, part))
        t_fail(at, "%s\n    \"%s\"\n    holds \"%s\"", expr, text ? text : "(null)", part);
}

void t_same_bytes(const void *a, const void *b, size_t n, const char *text, t_place at)
{
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            t_fail(at, "%s\n    differ first at byte %zu of %zu: 0x%02x and 0x%02x", text, i, n,
                   x[i], y[i]);
}

uint64_t t_seed(void)
{
    const char *text = getenv("FTH_TEST_SEED");
    return text ? strtoull(text, NULL, 0) : 20250117u;
}

bool t_slowed(void)
{
    return getenv("FTH_TEST_SLOWED") != NULL;
}

t_random t_random_make(uint64_t stream)
{
    t_random r = {t_seed() ^ (stream * 0xd1342543de82ef95u)};
    (void)t_random_u64(&r);
    return r;
}

uint64_t t_random_u64(t_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t t_random_i64(t_random *r, int64_t low, int64_t high)
{
    const uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    const uint64_t step = span ? t_random_u64(r) % span : t_random_u64(r);
    return (int64_t)((uint64_t)low + step);
}

double t_random_f64(t_random *r)
{
    return (double)(t_random_u64(r) >> 11) * 0x1p-53;
}

double t_random_normal(t_random *r)
{
    const double u = 1.0 - t_random_f64(r); /* never 0 */
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * t_random_f64(r));
}

void t_random_fill_f32(t_random *r, float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) v[i] = (float)t_random_normal(r);
}

void t_random_fill_f64(t_random *r, double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) v[i] = t_random_normal(r);
}

static char *next_path(void)
{
    static char paths[PATHS][PATH_BYTES];
    static int next;
    next = (next + 1) % PATHS;
    return paths[next];
}

const char *t_data_path(const char *name)
{
    const char *root = getenv("FATHOM_DATA");
    if (!root || !root[0]) SKIP("FATHOM_DATA is not set; %s is needed", name);
    char *path = next_path();
    struct stat info;
    if (snprintf(path, PATH_BYTES, "%s/%s", root, name) >= PATH_BYTES || stat(path, &info) != 0)
        SKIP("%s is not in the folder FATHOM_DATA names", name);
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

static void remove_temp_dir(void)
{
    if (getpid() == temp_owner) /* not when a forked test ends */
        nftw(temp_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *t_temp_dir(void)
{
    if (temp_dir[0]) return temp_dir;
    const char *root = getenv("TMPDIR");
    snprintf(temp_dir, sizeof temp_dir, "%s/fathom-test-XXXXXX", root && root[0] ? root : "/tmp");
    if (!mkdtemp(temp_dir)) FAIL("cannot make %s: %s", temp_dir, strerror(errno));
    temp_owner = getpid();
    atexit(remove_temp_dir);
    return temp_dir;
}

const char *t_temp_path(const char *name)
{
    char *path = next_path();
    if (snprintf(path, PATH_BYTES, "%s/%s", t_temp_dir(), name) >= PATH_BYTES)
        FAIL("the path of %s is too long", name);
    return path;
}
