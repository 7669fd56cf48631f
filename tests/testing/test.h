/* testing/test.h - the thin layer over cmocka that every test is written in.
 *
 * TEST(name) { ... } registers itself; a file ends with TEST_MAIN(). A check
 * that does not hold prints both sides and ends its case, not the program.
 * Checks belong to the main thread: a worker hands its finding back instead.
 *
 * A test program takes part of a case's name as argument and then runs only
 * the cases that match. It exits with 77 when every case was skipped.
 */
#ifndef FATHOM_TESTING_TEST_H
#define FATHOM_TESTING_TEST_H

#include <fathom/base.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name)                                                                                 \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        t_register(#name, test_##name, __BASE_FILE__, __LINE__);                                   \
    }                                                                                              \
    static void test_##name(void)
/* A case that tries with more, or again with other numbers, what others of its file run, or that is
 * about time and amounts: the address sanitizer would see the same code once more. Its builds leave
 * it out, unless it is named, or FTH_TEST_FULL or FATHOM_TEST_DEVICE are set. */
#define TEST_REPEAT(name)                                                                          \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        t_register_repeat(#name, test_##name, __BASE_FILE__, __LINE__);                            \
    }                                                                                              \
    static void test_##name(void)
/* Weak: one program can hold every test of all files, and has a main of its own (all.c). */
#define TEST_MAIN()                                                                                \
    __attribute__((weak)) int main(int argc, char **argv)                                          \
    {                                                                                              \
        return t_main(argc, argv, __BASE_FILE__);                                                  \
    }

/* A status that must be FTH_OK; OKE shows the error object as well. */
#define OK(call) t_status((call), FTH_OK, #call, NULL, T_AT)
#define OKE(call, err) t_status((call), FTH_OK, #call, (err), T_AT)
#define IS(call, wanted) t_status((call), (wanted), #call, NULL, T_AT)
#define ONE_OF(call, one, other) t_one_of((call), (one), (other), #call, T_AT)

#define IS_TRUE(x) t_true((x), #x, T_AT)
#define EQ_I64(a, b) t_eq_i64((a), (b), #a " == " #b, T_AT)
#define EQ_U64(a, b) t_eq_u64((a), (b), #a " == " #b, T_AT)
#define EQ_F64(a, b) t_eq_f64((double)(a), (double)(b), #a " == " #b, T_AT)
#define EQ_STR(a, b) t_eq_str((a), (b), #a " == " #b, T_AT)
#define EQ_PTR(a, b) t_eq_ptr((a), (b), #a " == " #b, T_AT)
/* NaN on either side fails LE_F64 and NEAR; EQ_F64 takes NaN as equal to NaN. */
#define LE_F64(a, b) t_le_f64((double)(a), (double)(b), #a " <= " #b, T_AT)
#define NEAR(a, b, tol) t_near((double)(a), (double)(b), (double)(tol), #a " near " #b, T_AT)
#define HAS(text, part) t_has((text), (part), #text, T_AT)
#define HAS_NOT(text, part) t_has_not((text), (part), #text, T_AT)
#define SAME_BYTES(a, b, n) t_same_bytes((a), (b), (size_t)(n), #a " and " #b, T_AT)
#define FAIL(...) t_fail(T_AT, __VA_ARGS__)
#define SKIP(...) t_skip(T_AT, __VA_ARGS__)
/* Skips the case where long double has no more digits than double, as under valgrind: it is the
 * truth of some cases. */
#define NEEDS_LONG_DOUBLE() t_needs_long_double(T_AT)

/* A sanitizer takes memory and time of its own, valgrind too: what the process takes cannot be
 * judged. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define T_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define T_SANITIZED 1
#endif
#endif
#ifndef T_SANITIZED
#define T_SANITIZED t_slowed()
#endif

/* Random numbers of tests: splitmix64, the same on every machine. The seed is
 * fixed unless FTH_TEST_SEED gives another, and is printed when a case fails. */
typedef struct t_random {
    uint64_t state;
} t_random;
uint64_t t_seed(void);
/* Whether every instruction takes fifty times as long (valgrind): large cases are then thinned out,
 * so that each kind of case still runs. */
bool t_slowed(void);
t_random t_random_make(uint64_t stream); /* from t_seed() and the stream */
uint64_t t_random_u64(t_random *r);
int64_t t_random_i64(t_random *r, int64_t low, int64_t high); /* both ends can come */
double t_random_f64(t_random *r);                             /* in [0, 1) */
double t_random_normal(t_random *r);
void t_random_fill_f32(t_random *r, float *v, int64_t n);  /* standard normal */
void t_random_fill_f64(t_random *r, double *v, int64_t n); /* standard normal */

/* The path of a file or folder under FATHOM_DATA, valid until eight more calls.
 * Skips the case with a reason when the variable or the file is not there. */
const char *t_data_path(const char *name);
/* A fresh folder for files of this process, removed with all it holds when the
 * program ends; always the same one. */
const char *t_temp_dir(void);
/* A path inside t_temp_dir(), valid until eight more calls. */
const char *t_temp_path(const char *name);

/* What the macros above stand on. */
typedef struct t_place {
    const char *file;
    int line;
} t_place;
#define T_AT ((t_place){__FILE__, __LINE__})
typedef void t_case_fn(void);
void t_register(const char *name, t_case_fn *run, const char *file, int line);
void t_register_repeat(const char *name, t_case_fn *run, const char *file, int line);
/* Runs the cases that were written in `file`. */
int t_main(int argc, char **argv, const char *file);
/* Called after the last case, before libraries end as they do at exit. */
extern void (*t_at_end)(void);
/* The file with the cases of a program, by its last folder and name: "unit/test_mem". NULL: none.
 */
const char *t_file_of(const char *program);
void t_status(fth_status got, fth_status wanted, const char *text, const fth_err *err, t_place at);
void t_one_of(fth_status got, fth_status one, fth_status other, const char *text, t_place at);
void t_true(bool got, const char *text, t_place at);
void t_eq_i64(int64_t a, int64_t b, const char *text, t_place at);
void t_eq_u64(uint64_t a, uint64_t b, const char *text, t_place at);
void t_eq_f64(double a, double b, const char *text, t_place at);
void t_eq_str(const char *a, const char *b, const char *text, t_place at);
void t_eq_ptr(const void *a, const void *b, const char *text, t_place at);
void t_le_f64(double a, double b, const char *text, t_place at);
void t_near(double a, double b, double tol, const char *text, t_place at);
void t_has(const char *text, const char *part, const char *expr, t_place at);
void t_has_not(const char *text, const char *part, const char *expr, t_place at);
void t_same_bytes(const void *a, const void *b, size_t n, const char *text, t_place at);
_Noreturn void t_fail(t_place at, const char *fmt, ...) FTH_PRINTF(2, 3);
void t_needs_long_double(t_place at);
_Noreturn void t_skip(t_place at, const char *fmt, ...) FTH_PRINTF(2, 3);

#endif /* FATHOM_TESTING_TEST_H */
