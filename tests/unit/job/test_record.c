/* test_record.c - records of finished stages: what they hold, and why a stage runs again.
 * seconds: 8 */
#include "testing/job/toy.h"

#include "base/hash.h"
#include "job/stage/record.h"
#include "mem/heap.h"

#include <fcntl.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

static const char *const ids[] = {"make", "use.m"};

static fth__job_record *read_record(toy *t, int stage)
{
    fth__job_record *r = NULL;
    OKE(fth__record_read(&r, t->mem, t->dir, ids[stage], &t->err), &t->err);
    if (!r) FAIL("there is no record of %s", ids[stage]);
    return r;
}

/* "": it would do the same; or why not. */
static const char *reason(toy *t, int stage)
{
    static char text[600];
    bool same = true;
    fth__job_record *r = read_record(t, stage);
    OKE(fth__record_check(r, &t->job, &toy_stages[stage], &same, text, sizeof text, &t->err),
        &t->err);
    fth__record_destroy(r);
    IS_TRUE(same == (text[0] == '\0'));
    return text;
}

/* The same folder under another config. */
static const char *reason_with(const char *name, const char *text, int stage)
{
    toy *t = toy_open(name, text);
    const char *why = reason(t, stage);
    toy_close(t);
    return why;
}

static toy *done(const char *name, const char *text)
{
    toy *t = toy_open(name, text);
    OKE(toy_run(t, 0, NULL), &t->err);
    OKE(toy_run(t, 1, NULL), &t->err);
    return t;
}

static const char *in(const toy *t, const char *name)
{
    static char path[2][PATH_MAX];
    static int turn;
    toy_path(path[turn ^= 1], t->dir, name);
    return path[turn];
}

static void touch(const char *path, long seconds)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000 + seconds}};
    IS_TRUE(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void change_byte(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    fseek(f, at, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
    touch(path, 7);
}

TEST(a_record_says_what_was_done)
{
    toy *t = toy_open("says", "name: x\nmake: {n: 50, extra: true}\n");
    t->opt.attempt = "attempt-1";
    OKE(toy_run(t, 0, NULL), &t->err);
    fth_stage_result result;
    OKE(toy_run(t, 1, &result), &t->err);
    fth__job_record *r = read_record(t, 1);
    EQ_STR(r->attempt, "attempt-1");
    EQ_STR(r->version, fth_version());
    EQ_STR(r->config, "use.factor: 2\nuse.fail: false\nuse.wait: 0\n");
    EQ_U64(r->config_hash, fth__hash_str(r->config, 0));
    IS_TRUE(r->started > 1.5e9 && r->ended >= r->started && r->ended < r->started + 60);
    EQ_I64(r->n_before, 1);
    EQ_STR(r->before[0].id, "make");
    EQ_I64(r->n_files, 3);
    EQ_STR(r->file[0].path, in(t, "m/sum.npy"));
    EQ_STR(r->file[0].title, "sum");
    EQ_U64(r->file[0].bytes, 128 + 8);
    IS_TRUE(r->file[0].kind == FTH_FILE_OUTPUT && r->file[1].kind == FTH_FILE_INPUT);
    EQ_STR(r->file[1].path, in(t, "numbers.npy"));
    EQ_STR(r->file[2].path, in(t, "extra.npy"));
    EQ_I64(r->file[1].task, 1);
    size_t bytes;
    unsigned char *data = t_file_read(in(t, "numbers.npy"), &bytes);
    EQ_U64(r->file[1].bytes, bytes);
    EQ_U64(r->file[1].hash, fth__hash_bytes(data, bytes, 0));
    free(data);
    EQ_STR(r->result.device, "cpu");
    EQ_STR(r->result.bound_by, result.bound_by);
    EQ_STR(r->result.plan.text, "n=50");
    EQ_U64(r->result.ledger_bytes, result.ledger_bytes);
    EQ_F64(r->result.seconds, result.seconds);
    EQ_F64(r->result.compute_seconds, result.compute_seconds);
    EQ_STR(reason(t, 1), "");
    EQ_STR(reason(t, 0), "");
    fth__record_destroy(r);
    toy_close(t);
}

TEST(changed_keys_are_named_with_both_values)
{
    toy *t = done("keys", "name: x\nmake: {n: 50}\n");
    EQ_STR(reason_with("keys", "name: other\nmake: {n: 5e1}\noutput_dir: elsewhere\n", 0), "");
    EQ_STR(reason_with("keys", "name: x\nmake:\n  n: 60\n", 0),
           "make.n was 50, is 60 (toy.yaml:3:6)");
    EQ_STR(reason_with("keys", "name: x\nmake: {n: 60}\n", 1), ""); /* none of its keys */
    EQ_STR(reason_with("keys", "name: x\nseed: 9\n", 0),
           "seed was 1, is 9 (toy.yaml:2:7), make.n was 50, is 1000 (default)");
    HAS(reason_with("keys", "name: x\nseed: 9\nmake: {n: 60, start: 3, extra: true}", 0),
        "make.start was 0.5, is 3 (toy.yaml:3:22) and 1 more");
    toy_close(t);
}

/* A key is one of a stage when it is named, or lies in a section that is. */
TEST(only_keys_of_the_stage_are_recorded)
{
    static const char *const keys[] = {"make", "make.n", "ma", "make.", "name mak make.nn"};
    static const char *const wanted[] = {"make.n: 9\n", "make.n: 9\n", "", "", "name: \"x\"\n"};
    toy *t = toy_open("keys", "name: x\nmake: {n: 9}\n");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char *lines = NULL;
        OKE(fth__record_lines(t->mem, t->cfg, keys[i], &lines, &t->err), &t->err);
        if (wanted[i][0])
            HAS(lines, wanted[i]);
        else
            EQ_STR(lines, "");
        if (strncmp(keys[i], "make", 4) != 0) HAS_NOT(lines, "make");
        fth__heap_free(t->mem, lines);
    }
    toy_close(t);
}

TEST(files_are_compared_by_content_when_their_time_changed)
{
    toy *t = done("files", "name: x\n");
    touch(in(t, "numbers.npy"), 1);
    touch(in(t, "m/sum.npy"), 1);
    EQ_STR(reason(t, 0), "");
    EQ_STR(reason(t, 1), "");
    change_byte(in(t, "m/sum.npy"), 130);
    EQ_STR(reason(t, 1), "output m/sum.npy changed");
    change_byte(in(t, "m/sum.npy"), 130);
    EQ_STR(reason(t, 1), "");
    change_byte(in(t, "numbers.npy"), 200);
    EQ_STR(reason(t, 0), "output numbers.npy changed");
    EQ_STR(reason(t, 1), "input numbers.npy changed");
    remove(in(t, "numbers.npy"));
    EQ_STR(reason(t, 0), "output numbers.npy is missing");
    EQ_STR(reason(t, 1), "input numbers.npy is missing");
    remove(in(t, "m/sum.npy"));
    EQ_STR(reason(t, 1), "output m/sum.npy is missing");
    toy_close(t);
}

static fth_status name_nothing(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    (void)call, (void)list, (void)err;
    return FTH_OK;
}

TEST(inputs_come_and_go)
{
    char text[PATH_MAX + 40];
    const char *list = t_temp_path("list.txt");
    t_file_write(list, "a\n", 2);
    toy *t = done("inputs", "name: x\nmake: {n: 9}\n");
    snprintf(text, sizeof text, "name: x\nmake: {n: 9, list: %s}\n", list);
    HAS(reason_with("inputs", text, 0), "make.list was ~, is ");
    toy_close(t);
    t = done("inputs", text);
    EQ_STR(reason(t, 0), "");
    bool same = true;
    fth_stage other = toy_stages[0]; /* of a version that reads less */
    fth__job_record *r = read_record(t, 0);
    char why[600];
    other.files = name_nothing;
    OKE(fth__record_check(r, &t->job, &other, &same, why, sizeof why, &t->err), &t->err);
    EQ_STR(why, "input list.txt is not read any more");
    IS_TRUE(!same);
    fth__record_destroy(r);
    t_file_write(list, "b\nc\n", 4);
    EQ_STR(reason(t, 0), "input list.txt changed");
    remove(list);
    EQ_STR(reason(t, 0), "input list.txt is missing");
    toy_close(t);
}

TEST(the_stages_before_count)
{
    toy *t = done("before", "name: x\nmake: {n: 9}\n");
    OKE(toy_run(t, 0, NULL), &t->err); /* again, with the same bytes */
    EQ_STR(reason(t, 1), "");
    toy_close(t);
    t = toy_open("before", "name: x\nmake: {n: 9, extra: true}\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    EQ_STR(reason(t, 1), "input extra.npy is new");
    OKE(toy_run(t, 1, NULL), &t->err);
    EQ_STR(reason(t, 1), "");
    toy_close(t);
    t = toy_open("before", "name: x\nmake: {n: 9}\n");
    OKE(toy_run(t, 0, NULL), &t->err);
    EQ_STR(reason(t, 1), "input extra.npy is not made by make any more");
    OK(fth__record_remove(t->dir, "make", NULL));
    OK(fth__record_remove(t->dir, "make", NULL));
    EQ_STR(reason(t, 1), "make has to run first");
    toy_close(t);
}

TEST(a_moved_folder_keeps_its_records)
{
    toy *t = done("here", "name: x\n");
    fth__job_record *a = read_record(t, 1);
    char there[PATH_MAX];
    snprintf(there, sizeof there, "%s", t->dir);
    strcpy(strrchr(there, '/'), "/there");
    IS_TRUE(rename(t->dir, there) == 0);
    EQ_STR(reason_with("there", "name: x\n", 0), "");
    EQ_STR(reason_with("there", "name: x\n", 1), "");
    fth__job_record *b = NULL;
    OK(fth__record_read(&b, t->mem, there, "use.m", NULL));
    EQ_U64(a->input_hash, b->input_hash);
    fth__record_destroy(a);
    fth__record_destroy(b);
    toy_close(t);
}

/* A plan whose seconds are no number is a poor guess, but its stage is done. */
TEST(a_guess_that_is_no_number_is_zero)
{
    toy *t = done("guess", "name: x\n");
    fth__job_record *a = NULL, *b = NULL;
    OKE(fth__record_read(&a, t->mem, t->dir, "make", &t->err), &t->err);
    a->result.plan.seconds = (double)NAN;
    a->result.seconds = 0.1;
    OKE(fth__record_write(a, t->dir, "make", &t->err), &t->err);
    OKE(fth__record_read(&b, t->mem, t->dir, "make", &t->err), &t->err);
    EQ_F64(b->result.plan.seconds, 0);
    EQ_F64(b->result.seconds, 0.1);
    fth__record_destroy(a);
    fth__record_destroy(b);
    toy_close(t);
}

/* Whatever byte is changed, and wherever it is cut. */
TEST(damage_is_found)
{
    toy *t = done("damage", "name: x\n");
    char path[PATH_MAX];
    toy_path(path, t->dir, ".fathom/use.m.json");
    size_t bytes;
    unsigned char *data = t_file_read(path, &bytes);
    fth__job_record *r = NULL;
    for (size_t i = 0; i < bytes; i += 7) {
        data[i] ^= 1;
        t_file_write(path, data, bytes);
        IS(fth__record_read(&r, t->mem, t->dir, "use.m", &t->err), FTH_E_FILE_FORMAT);
        IS_TRUE(r == NULL);
        data[i] ^= 1;
        t_file_write(path, data, i);
        fth_err_clear(&t->err);
        IS(fth__record_read(&r, t->mem, t->dir, "use.m", &t->err), FTH_E_FILE_FORMAT);
        HAS(t->err.text, ".fathom/use.m.json");
    }
    free(data);
    IS_TRUE(unlink(path) == 0);
    OK(fth__record_read(&r, t->mem, t->dir, "use.m", NULL));
    IS_TRUE(r == NULL);
    toy_close(t);
}

/* A record that is whole but lacks a fact, or has one of another type. */
TEST(every_fact_is_asked_for)
{
    static const char *const facts[] = {"record",   "version", "attempt",      "started",
                                        "config",   "device",  "ledger_bytes", "config_hash",
                                        "seconds",  "files",   "before",       "path",
                                        "mtime_ns", "xxh64",   "kind"};
    toy *t = done("facts", "name: x\n");
    char path[PATH_MAX], key[40], hex[17];
    toy_path(path, t->dir, ".fathom/make.json");
    size_t bytes;
    char *data = (char *)t_file_read(path, &bytes);
    data[bytes] = '\0';
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        snprintf(key, sizeof key, "\"%s\":", facts[i]);
        char *at = strstr(data, key);
        if (!at) FAIL("no %s in the record", key);
        at[1] ^= 1; /* another name */
        char *end = strstr(data, ",\n  \"check\"");
        fth__hash_hex(fth__hash_bytes(data, (size_t)(end - data), 0), hex);
        memcpy(end + 14, hex, 16);
        t_file_write(path, data, bytes);
        fth__job_record *r = NULL;
        fth_err_clear(&t->err);
        IS(fth__record_read(&r, t->mem, t->dir, "make", &t->err), FTH_E_FILE_FORMAT);
        HAS(t->err.text, facts[i]);
        at[1] ^= 1;
    }
    free(data);
    toy_close(t);
}

/* Records by a hostile hand: the hash is right and the rest is not. Nothing worse than a refusal,
 * or a reason to run again. */
TEST(random_damage_with_a_right_hash)
{
    toy *t = done("hostile", "name: x\nmake: {extra: true}\n");
    t_random rnd = t_random_make(3);
    char path[PATH_MAX], hex[17], why[300];
    toy_path(path, t->dir, ".fathom/use.m.json");
    size_t bytes;
    unsigned char *good = t_file_read(path, &bytes);
    char *data = malloc(bytes);
    int refused = 0, read = 0;
    for (int turn = 0; turn < 2000; turn++) {
        memcpy(data, good, bytes);
        for (int64_t k = t_random_i64(&rnd, 1, 3); k > 0; k--) {
            static const char signs[] = "{}[]:,\"\\0123456789-.eE/x \xff";
            data[t_random_i64(&rnd, 0, (int64_t)bytes - 35)] =
                signs[t_random_i64(&rnd, 0, sizeof signs - 2)];
        }
        fth__hash_hex(fth__hash_bytes(data, bytes - 34, 0), hex);
        memcpy(data + bytes - 20, hex, 16);
        t_file_write(path, data, bytes);
        fth__job_record *r = NULL;
        fth_err_clear(&t->err);
        const fth_status s = fth__record_read(&r, t->mem, t->dir, "use.m", &t->err);
        if (s == FTH_OK) {
            bool same = false;
            OKE(fth__record_check(r, &t->job, &toy_stages[1], &same, why, sizeof why, &t->err),
                &t->err);
            read++;
        } else {
            if (s != FTH_E_FILE_FORMAT) FAIL("turn %d gave %s", turn, t->err.text);
            refused++;
        }
        fth__record_destroy(r);
    }
    IS_TRUE(refused > 100 && read > 100);
    free(data);
    free(good);
    toy_close(t);
}

/* A thousand cached jobs of four stages are asked at every start of a run. */
TEST_REPEAT(four_thousand_checks_are_quick)
{
    toy *t = done("quick", "name: x\nmake: {extra: true}\n");
    const clock_t start = clock(); /* of this process: others may be busy */
    for (int i = 0; i < 4000; i++) EQ_STR(reason(t, 1), "");
    const double took = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("4000 checks: %.3f s of the processor\n", took);
    if (!T_SANITIZED) LE_F64(took, 0.8);
    toy_close(t);
}

TEST(results_of_another_algorithm_are_not_used)
{
    toy *t = done("algorithm", "name: x\n");
    fth_stage newer = toy_stages[1];
    newer.algorithm = 2;
    char text[200];
    bool same = true;
    fth__job_record *r = read_record(t, 1);
    EQ_I64(r->algorithm, 0);
    OKE(fth__record_check(r, &t->job, &newer, &same, text, sizeof text, &t->err), &t->err);
    EQ_STR(text, "algorithm 0 -> 2");
    IS_TRUE(!same);
    fth__record_destroy(r);
    t->opt.stage = &newer;
    OKE(fth_stage_execute(&t->opt, NULL, &t->err), &t->err);
    r = read_record(t, 1);
    EQ_I64(r->algorithm, 2);
    OKE(fth__record_check(r, &t->job, &newer, &same, text, sizeof text, &t->err), &t->err);
    IS_TRUE(same);
    EQ_STR(reason(t, 1), "algorithm 2 -> 0"); /* an older program does not use newer ones either */
    fth__record_destroy(r);
    toy_close(t);
}

/* A file with holes: a byte over 1 GiB, and no room on the disk. */
static void make_large(const char *path)
{
    FILE *f = fopen(path, "wb");
    IS_TRUE(f && ftruncate(fileno(f), ((off_t)1 << 30) + 1) == 0);
    fclose(f);
    touch(path, 7);
}

static const char *reason_verified(toy *t, bool *ends)
{
    static char text[300];
    bool same = false;
    fth__job_record *r = read_record(t, 0);
    *ends = false;
    for (int64_t i = 0; i < r->n_files; i++) *ends = *ends || r->file[i].ends;
    r->verify = true;
    OKE(fth__record_check(r, &t->job, &toy_stages[0], &same, text, sizeof text, &t->err), &t->err);
    fth__record_destroy(r);
    return text;
}

TEST(a_large_input_is_known_by_its_ends_unless_asked)
{
    char text[PATH_MAX + 40];
    bool ends = false;
    const char *list = t_temp_path("large");
    make_large(list);
    snprintf(text, sizeof text, "name: x\nmake: {n: 9, list: %s}\n", list);
    toy *t = toy_open("large_input", text);
    const clock_t start = clock();
    OKE(toy_run(t, 0, NULL), &t->err);
    const double quick = (double)(clock() - start) / CLOCKS_PER_SEC;
    EQ_STR(reason(t, 0), "");
    EQ_STR(reason_verified(t, &ends), "");
    IS_TRUE(ends);
    change_byte(list, 1 << 29); /* its middle, and the time is put back: nobody can see it */
    EQ_STR(reason(t, 0), "");
    touch(list, 8);
    EQ_STR(reason(t, 0), "input large changed: its time did, and only its ends are known");
    change_byte(list,
                1 << 30); /* its last byte; only a verifying check reads what looks the same */
    HAS(reason_verified(t, &ends), "input large changed");
    t->opt.verify = true;
    const clock_t again = clock();
    OKE(toy_run(t, 0, NULL), &t->err);
    const double whole = (double)(clock() - again) / CLOCKS_PER_SEC;
    printf("by its ends %.3f s, whole %.3f s\n", quick, whole);
    IS_TRUE(quick < 0.5 * whole);
    touch(list, 9);
    EQ_STR(reason(t, 0), ""); /* all of it was hashed: its time alone does not count */
    touch(list, 7);
    change_byte(list, 1 << 29);
    EQ_STR(reason_verified(t, &ends), "input large changed");
    IS_TRUE(!ends);
    toy_close(t);
    remove(list);
}

/* Bytes that this process has asked the system for. */
static int64_t bytes_read(void)
{
    long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    if (!f || fscanf(f, "rchar: %lld", &n) != 1) SKIP("/proc/self/io cannot be read");
    fclose(f);
    return n;
}

TEST(outputs_are_hashed_once)
{
    enum { N = 1 << 20 };
    toy *t = toy_open("once", "name: x\nmake: {n: 1048576}\n");
    const int64_t before = bytes_read();
    OKE(toy_run(t, 0, NULL), &t->err);
    const int64_t read = bytes_read() - before;
    printf("%lld bytes read for an output of %d\n", (long long)read, 8 * N + 128);
    IS_TRUE(read >= 8 * N && read < 12 * N);
    toy_close(t);
}

/* ---- results of another config ---- */

static fth_status run_as(toy *t, const char *config_path, int stage)
{
    t->job.config_path = config_path;
    return toy_run(t, stage, NULL);
}

/* A config file of the test's own; the path is good until the fourth call after it. */
static const char *write_config(const char *name, const char *text)
{
    static char path[4][PATH_MAX];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], PATH_MAX, "%s", t_temp_path(name));
    t_file_write(path[turn], text, strlen(text));
    return path[turn];
}

TEST(results_of_another_config_are_not_replaced)
{
    static const char *const force[] = {"force", NULL};
    static const char n50[] = "name: x\nmake: {n: 50}\n", n60[] = "name: x\nmake: {n: 60}\n";
    const char *a = write_config("a.yaml", n50), *b = write_config("b.yaml", n50);
    toy *t = toy_open("two", n50);
    OKE(run_as(t, a, 0), &t->err);
    toy_close(t);
    t = toy_open("two", "name: y\nmake: {n: 50}\n"); /* another file with the same keys */
    OKE(run_as(t, b, 0), &t->err);
    OKE(run_as(t, a, 0), &t->err);
    toy_close(t);
    t = toy_open("two", n60);
    (void)write_config("a.yaml", n60);
    OKE(run_as(t, a, 0), &t->err); /* the same file was edited */
    toy_close(t);
    t = toy_open("two", "name: x\nmake: {n: 70}\n");
    size_t bytes;
    unsigned char *kept = t_file_read(in(t, "numbers.npy"), &bytes);
    IS(run_as(t, b, 0), FTH_E_COLLISION);
    char want[3 * PATH_MAX];
    snprintf(want, sizeof want,
             "the results of 'make' were made by %s, and %s would replace them: make.n was 60, is "
             "70",
             a, b);
    HAS(t->err.text, want);
    HAS(t->err.hint, "--force");
    size_t now_bytes;
    unsigned char *now = t_file_read(in(t, "numbers.npy"), &now_bytes);
    IS_TRUE(now_bytes == bytes && memcmp(now, kept, bytes) == 0);
    free(now);
    free(kept);
    EQ_STR(reason(t, 0), "make.n was 60, is 70 (toy.yaml:2:11)"); /* the record stays, too */
    t->opt.attempt = "by-a-runner";                               /* who has looked before */
    OKE(run_as(t, b, 0), &t->err);
    t->opt.attempt = NULL;
    t->opt.flags = force;
    OKE(run_as(t, "/configs/c.yaml", 0), &t->err);
    toy_close(t);
}

TEST(a_config_that_asks_for_the_same_today_loses_nothing)
{
    static const char now[] = "name: x\nmake: {n: 80}\n", old[] = "name: x\nmake: {n: 50}\n";
    const char *path = write_config("a.yaml", old);
    toy *t = toy_open("agree", old);
    OKE(run_as(t, path, 0), &t->err);
    toy_close(t);
    t = toy_open("agree", now);
    IS(run_as(t, "/configs/b.yaml", 0), FTH_E_COLLISION);
    (void)write_config("a.yaml", now); /* both were edited alike */
    OKE(run_as(t, "/configs/b.yaml", 0), &t->err);
    toy_close(t);
}

static const char *variable(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "WHAT") == 0 ? "list" : NULL;
}

/* A toy whose config is checked as the program does it: variables, --set, and a folder that
 * relative paths start at. */
static toy *open_in(const char *name, const char *text, const char *cwd, const char *set)
{
    toy *t = toy_open(name, text);
    OK(fth_config_destroy(t->cfg, NULL));
    OK(fth_config_create(&t->cfg, t->mem, NULL));
    OKE(fth_config_parse(t->cfg, "configs/toy.yaml", text, strlen(text), &t->err), &t->err);
    if (set) OKE(fth_config_set(t->cfg, set, &t->err), &t->err);
    const fth_config_options opt = {.lookup = variable, .cwd = cwd};
    OKE(fth_config_check(t->cfg, &toy_schema, &opt, &t->err), &t->err);
    t->job.config = t->cfg;
    return t;
}

/* Two configs with the same text are two jobs where their relative paths lead to two files. */
TEST(equal_texts_that_lead_to_other_inputs)
{
    char text[PATH_MAX + 80], folder[2][PATH_MAX];
    toy *t = toy_open("led", "name: x\n");
    snprintf(text, sizeof text, "name: x\noutput_dir: %s\nmake: {n: 9, list: \"${WHAT}.txt\"}\n",
             t->dir);
    toy_close(t);
    for (int i = 0; i < 2; i++) {
        snprintf(folder[i], PATH_MAX, "%s", t_temp_path(i ? "led2" : "led1"));
        IS_TRUE(mkdir(folder[i], 0700) == 0);
        (void)write_config(i ? "led2/list.txt" : "led1/list.txt", i ? "b\n" : "a\n");
    }
    const char *a = write_config("led1/a.yaml", text), *b = write_config("led2/a.yaml", text);
    t = open_in("led", text, folder[0], NULL);
    OKE(run_as(t, a, 0), &t->err);
    toy_close(t);
    t = open_in("led", text, folder[1], NULL);
    IS(run_as(t, b, 0), FTH_E_COLLISION);
    HAS(t->err.text, "input list.txt is new");
    toy_close(t);
    /* both were edited alike, with a variable in both, and lead to one file */
    strcpy(strstr(text, "n: 9"), "n: 8, list: \"../led1/${WHAT}.txt\"}\n");
    (void)write_config("led1/a.yaml", text);
    t = open_in("led", text, folder[1], NULL);
    OKE(run_as(t, b, 0), &t->err);
    toy_close(t);
}

/* What --set gave is part of what the results were made with, though no file says it. */
TEST(a_value_that_only_the_command_line_gave)
{
    char text[PATH_MAX + 80];
    toy *t = toy_open("set", "name: x\n");
    snprintf(text, sizeof text, "name: x\noutput_dir: %s\nmake: {n: 32}\n", t->dir);
    toy_close(t);
    const char *a = write_config("set-a.yaml", text), *b = write_config("set-b.yaml", text);
    t = open_in("set", text, "/", "make.n=33");
    OKE(run_as(t, a, 0), &t->err);
    toy_close(t);
    t = open_in("set", text, "/", NULL);
    IS(run_as(t, b, 0), FTH_E_COLLISION);
    HAS(t->err.text, "make.n was 33, is 32");
    OKE(run_as(t, a, 0), &t->err); /* its own */
    OKE(run_as(t, b, 0), &t->err);
    toy_close(t);
    (void)write_config("set-b.yaml", "name: x\noutput_dir: /elsewhere\nmake: {n: 32}\n");
    t = open_in("set", "name: x\nmake: {n: 32}\n", "/", "output_dir=out");
    OKE(run_as(t, a, 0), &t->err); /* b is elsewhere today */
    toy_close(t);
}

static char said[3 * PATH_MAX];
static void hear(void *user, const char *line)
{
    (void)user;
    if (strncmp(line, "notice:", 7) == 0) snprintf(said, sizeof said, "%s", line);
}

/* A project that was moved or copied has records that name configs of the old place. */
TEST(a_config_that_is_gone_or_leads_elsewhere_is_no_rival)
{
    static const char old[] = "name: x\nmake: {n: 50}\n", now[] = "name: x\nmake: {n: 60}\n";
    const char *a = write_config("gone.yaml", old);
    toy *t = toy_open("gone", old);
    OKE(run_as(t, a, 0), &t->err);
    toy_close(t);
    t = toy_open("gone", now);
    t->opt.say = hear;
    IS(run_as(t, "/configs/b.yaml", 0), FTH_E_COLLISION);
    (void)write_config("gone.yaml", "name: x\noutput_dir: /elsewhere\nmake: {n: 50}\n");
    OKE(run_as(t, "/configs/b.yaml", 0), &t->err);
    HAS(said, "gone.yaml, which has another output_dir today; they are replaced: make.n was 50");
    toy_close(t);
    t = toy_open("gone", old);
    t->opt.say = hear;
    OKE(run_as(t, "/configs/a.yaml", 0), &t->err);
    HAS(said, "/configs/b.yaml, which is not there any more; they are replaced: make.n was 60");
    toy_close(t);
}

TEST(results_of_another_config_are_not_gone_on_with)
{
    static const char *const force[] = {"force", NULL};
    static const char n50[] = "name: x\nmake: {n: 50}\n", n60[] = "name: x\nmake: {n: 60}\n";
    const char *a = write_config("maker.yaml", n50);
    toy *t = toy_open("maker", n50);
    OKE(run_as(t, a, 0), &t->err);
    OKE(run_as(t, "/configs/b.yaml", 1), &t->err); /* another file with the same keys */
    toy_close(t);
    t = toy_open("maker", n60);
    t->opt.say = hear;
    IS(run_as(t, "/configs/b.yaml", 1), FTH_E_COLLISION);
    HAS(t->err.text, "'use' of /configs/b.yaml would build on the results of 'make', which were");
    HAS(t->err.text, "maker.yaml with other settings: make.n was 50, is 60");
    OKE(run_as(t, a, 1), &t->err); /* the same file was edited: with a word */
    HAS(said, "'make' would run again, its results are used as they are: make.n was 50, is 60");
    t->opt.flags = force;
    OKE(run_as(t, "/configs/b.yaml", 1), &t->err);
    toy_close(t);
}

TEST(other_inputs_are_another_job)
{
    char text[2 * PATH_MAX];
    const char *one = t_temp_path("one.txt"), *two = t_temp_path("two.txt");
    t_file_write(one, "a\n", 2);
    t_file_write(two, "a\n", 2);
    snprintf(text, sizeof text, "name: x\nmake: {n: 9, list: %s}\n", one);
    const char *a = write_config("inputs.yaml", text);
    toy *t = toy_open("other", text);
    OKE(run_as(t, a, 0), &t->err);
    toy_close(t);
    snprintf(text, sizeof text, "name: x\nmake: {n: 9, list: %s}\n", two);
    t = toy_open("other", text);
    IS(run_as(t, "/configs/b.yaml", 0), FTH_E_COLLISION);
    HAS(t->err.text, "make.list was ");
    toy_close(t);
}

TEST_MAIN()
