/* test_files.c - every step of every function of fathom/files.h fails once.
 *
 * After each failure: a status that says so and names the path, the old content, no temporary file,
 * no file left open, and nothing held.
 * seconds: 5 */
#include "testing/io/files.h"

#include "mem/inject.h"

#include <fathom/files.h>

static const char *path, *other; /* where there is old content */

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static void old_file(const char *at)
{
    t_file_write(at, "old", 3);
}

static bool is_old(const char *at)
{
    size_t bytes = 0;
    unsigned char *now = t_file_read(at, &bytes);
    const bool same = bytes == 3 && memcmp(now, "old", 3) == 0;
    free(now);
    return same;
}

/* ---- jobs: each leaves new content in `path`, or what was there ---- */

static fth_status save(fth_mem *mem, fth_err *err)
{
    return fth_file_save(mem, path, "new content", 11, err);
}

static fth_status stream(fth_mem *mem, fth_err *err)
{
    fth_file_stream *s = NULL;
    FTH_TRY(fth_file_stream_create(&s, mem, path, err));
    for (int i = 0; i < 20000; i++) fprintf(fth_file_stream_file(s), "%d\n", i);
    return fth_file_stream_commit(s, err);
}

static fth_status set(fth_mem *mem, fth_err *err)
{
    fth_file_set *set = NULL;
    const char *at[2] = {path, other}, *temp;
    FTH_TRY(fth_file_set_create(&set, mem, err));
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < 2; i++) {
        s = fth_file_set_add(set, at[i], &temp, err);
        if (s == FTH_OK) s = fth_file_save(mem, temp, "new content", 11, err);
    }
    if (s == FTH_OK) s = fth_file_set_commit(set, err);
    fth_file_set_destroy(set);
    return s;
}

typedef fth_status job(fth_mem *mem, fth_err *err);

/* Fail the n-th write, then the n-th request for memory, until the job succeeds. */
static void fail_each(job *run, bool second, bool memory, int64_t at_least)
{
    fth_status s = FTH_E_INTERNAL;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth_err err = {0};
        old_file(path);
        if (second) old_file(other);
        const int open = open_files();
        fth__mem_inject(mem, memory ? n : 0, memory ? 0 : n);
        s = run(mem, &err);
        EQ_I64(open_files(), open);
        EQ_I64(t_file_count(), second ? 2 : 1); /* no temporary */
        if (s != FTH_OK) {
            EQ_I64(s, memory ? FTH_E_NOMEM : FTH_E_FILE_WRITE);
            if (!memory)
                IS_TRUE(strstr(err.text, path) || (second && strstr(err.text, other)) ||
                        strstr(err.text, ".part"));
            IS_TRUE(is_old(path) && (!second || is_old(other)));
        } else {
            IS_TRUE(!is_old(path) && (!second || !is_old(other)));
        }
        OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(n - 2 >= at_least);
    remove(path);
    if (second) remove(other);
}

TEST(old_content_survives_each_failed_step)
{
    path = t_temp_path("first");
    other = t_temp_path("second");
    fail_each(save, false, false, 4);   /* create, write, sync, rename */
    fail_each(stream, false, false, 5); /* several writes */
    fail_each(set, true, false, 11);    /* two files, two syncs, a link, two renames */
    fail_each(save, false, true, 2);
    fail_each(stream, false, true, 3);
    fail_each(set, true, true, 5);
}

/* Of many failures behind the first, the first is reported: which byte, and why. */
TEST(a_stream_reports_its_first_failure)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    path = t_temp_path("first");
    fth__mem_inject(mem, 0, 2); /* behind the creation */
    IS(stream(mem, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "writing at byte 0: No space left");
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

/* A set whose files are new: after a failure there are none. */
TEST(a_set_of_new_files_leaves_none_behind)
{
    path = t_temp_path("first");
    other = t_temp_path("second");
    fth_status s = FTH_E_INTERNAL;
    for (int64_t n = 1; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth__mem_inject(mem, 0, n);
        s = set(mem, NULL);
        EQ_I64(t_file_count(), s == FTH_OK ? 2 : 0);
        OK(fth_mem_destroy(mem, NULL));
    }
    remove(path), remove(other);
}

/* ---- folders ---- */

static void folder_with(const char *dir, const char *text)
{
    char file[FTH_PATH];
    OK(fth_folder_make(NULL, dir, NULL));
    OK(fth_path_join(file, dir, "file", NULL));
    t_file_write(file, text, strlen(text));
}

TEST(an_old_folder_survives_each_failed_step)
{
    const char *dir = t_temp_path("data"), *made = t_temp_path("data.tmp"),
               *old = t_temp_path("data.old"), *file = t_temp_path("data/file");
    fth_status s = FTH_E_INTERNAL;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth_err err = {0};
        OK(fth_folder_remove(NULL, dir, NULL));
        OK(fth_folder_remove(NULL, made, NULL));
        folder_with(dir, "old");
        folder_with(made, "new");
        OK(fth_folder_make(NULL, old, NULL)); /* of a killed run */
        fth__mem_inject(mem, 0, n);
        s = fth_folder_replace(mem, dir, made, &err);
        EQ_I64(is_old(file), s != FTH_OK);
        if (s != FTH_OK) HAS(err.text, dir);
        OK(fth_mem_destroy(mem, NULL));
    }
    EQ_I64(n - 2, 3); /* what was left removed, the old moved, the new moved */
    EQ_I64(t_file_count(), 1);
    OK(fth_folder_remove(NULL, dir, NULL));
}

TEST(folders_name_what_could_not_be_made_or_removed)
{
    const char *top = t_temp_path("top"), *deep = t_temp_path("top/a/b");
    fth_status s = FTH_E_INTERNAL;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth_err err = {0};
        fth__mem_inject(mem, 0, n);
        /* folders above are there: that their mkdir fails is no failure */
        s = fth_folder_make_all(mem, deep, &err);
        if (s != FTH_OK) {
            EQ_I64(s, FTH_E_FILE_WRITE);
            HAS(err.text, top);
        } else if (fth__mem_write_count(mem) >= n)
            s = FTH_E_INTERNAL; /* of one that was there */
        OK(fth_mem_destroy(mem, NULL));
        if (s != FTH_OK) OK(fth_folder_remove(NULL, top, NULL));
    }
    IS_TRUE(n > 4);
    for (n = 1, s = FTH_E_INTERNAL; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth_err err = {0};
        OK(fth_folder_make_all(NULL, deep, NULL));
        fth__mem_inject(mem, 0, n);
        s = fth_folder_remove(mem, top, &err);
        if (s != FTH_OK) HAS(err.text, top);
        OK(fth_mem_destroy(mem, NULL));
    }
    EQ_I64(n - 2, 3);
    for (n = 1, s = FTH_E_INTERNAL; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth_texts *list = NULL;
        fth__mem_inject(mem, n, 0);
        s = fth_folder_list(&list, mem, "tests", NULL);
        EQ_I64(list != NULL, s == FTH_OK);
        fth_texts_free(list);
        OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(n > 5);
}

/* ---- in place ---- */

static fth_status in_place(fth_mem *mem, fth_err *err)
{
    fth_file *f = NULL;
    FTH_TRY(fth_file_open_update(&f, mem, path, err));
    fth_status s = fth_file_resize(f, 64, err);
    if (s == FTH_OK) s = fth_file_write(f, 8, 11, "new content", "rows", err);
    if (s == FTH_OK) s = fth_file_sync(f, err);
    fth_file_close(f);
    return s;
}

static fth_status append(fth_mem *mem, fth_err *err)
{
    return fth_file_append(mem, path, "line\n", 5, err);
}

static fth_status array(fth_mem *mem, fth_err *err)
{
    fth_scratch *a = NULL;
    const int64_t size[2] = {4, 3}, lo[2] = {1, 1}, n[2] = {2, 1};
    const float v[2] = {1, 2};
    FTH_TRY(fth_scratch_create(&a, mem, t_temp_dir(), "scratch", FTH_F32, 2, size, err));
    const fth_sink to = fth_scratch_sink(a);
    const fth_status s = to.write(to.self, lo, n, v, err);
    fth_scratch_destroy(a);
    return s;
}

static fth_status drop(fth_mem *mem, fth_err *err)
{
    return fth_path_remove(mem, path, err);
}

static fth_status name(fth_mem *mem, fth_err *err)
{
    return fth_path_rename(mem, path, path, err);
}

TEST(steps_in_place_say_where_they_failed)
{
    static const struct {
        job *run;
        int64_t writes, requests;
        const char *name;
    } of[] = {{in_place, 4, 2, "place"},
              {append, 2, 0, "place"},
              {array, 4, 3, "scratch"},
              {name, 1, 0, "place"},
              {drop, 1, 0, "place"}};
    path = t_temp_path("place");
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++)
        for (int memory = 0; memory < 2; memory++) {
            fth_status s = FTH_E_INTERNAL;
            int64_t n = 1;
            for (; s != FTH_OK; n++) {
                fth_mem *mem = t_mem(1 << 20);
                fth_err err = {0};
                old_file(path);
                const int open = open_files();
                fth__mem_inject(mem, memory ? n : 0, memory ? 0 : n);
                s = of[k].run(mem, &err);
                EQ_I64(open_files(), open);
                if (s != FTH_OK && !memory) HAS(err.text, of[k].name);
                if (s != FTH_OK && memory) EQ_I64(s, FTH_E_NOMEM);
                OK(fth_mem_destroy(mem, NULL));
            }
            if (memory)
                IS_TRUE(n - 2 >= of[k].requests);
            else
                EQ_I64(n - 2, of[k].writes);
        }
    remove(path);
    EQ_I64(t_file_count(), 0);
}

TEST_MAIN()
