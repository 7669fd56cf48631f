/* test_one_writer.c - of several ranks one writes: what a reader does to files leaves no trace.
 * seconds: 2 */
#include "testing/io/files.h"

#include "mem/disk.h"
#include "mem/inject.h"

#include <fathom/files.h>
#include <fathom/io.h>

#include <sys/stat.h>
#include <unistd.h>

static int met;

static fth_status settle(void *user, fth_status s, fth_err *err)
{
    (void)user;
    (void)err;
    met++;
    return s;
}

static fth_status refuse(void *user, fth_status s, fth_err *err)
{
    (void)user;
    (void)s;
    return FTH_FAIL(err, FTH_E_MESSAGE, "the others are gone");
}

static fth_mem *memory(bool reader)
{
    fth_mem *mem = NULL;
    met = 0;
    OK(fth_mem_create(&mem, NULL, NULL));
    fth__disk_set_role(mem, &(fth__disk_role){.reader = reader, .owner = 4711, .settle = settle});
    return mem;
}

static void put(const char *name, const char *text)
{
    t_file_write(t_temp_path(name), text, strlen(text));
}

static void holds(const char *name, const char *text)
{
    size_t bytes = 0;
    unsigned char *now = t_file_read(t_temp_path(name), &bytes);
    EQ_U64(bytes, strlen(text));
    SAME_BYTES(now, text, bytes);
    free(now);
}

TEST(a_reader_saves_nothing_and_leaves_nothing)
{
    fth_mem *mem = memory(true);
    put("old.txt", "old");
    const int64_t files = t_file_count();
    OK(fth_file_save(mem, t_temp_path("old.txt"), "new!", 4, NULL));
    OK(fth_file_save(mem, t_temp_path("none.txt"), "new!", 4, NULL));
    EQ_I64(met, 4); /* before and after each */
    OK(fth_file_append(mem, t_temp_path("old.txt"), "more", 4, NULL));
    OK(fth_path_remove(mem, t_temp_path("old.txt"), NULL));
    fth_path_discard(mem, t_temp_path("old.txt"));
    OK(fth_path_rename(mem, t_temp_path("old.txt"), t_temp_path("moved.txt"), NULL));
    holds("old.txt", "old");
    IS_TRUE(!fth_path_exists(t_temp_path("none.txt")) &&
            !fth_path_exists(t_temp_path("moved.txt")));
    EQ_I64(t_file_count(), files);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_writer_does_all_of_it)
{
    fth_mem *mem = memory(false);
    put("old.txt", "old");
    OK(fth_file_save(mem, t_temp_path("old.txt"), "new!", 4, NULL));
    EQ_I64(met, 2);
    OK(fth_file_append(mem, t_temp_path("old.txt"), "more", 4, NULL));
    holds("old.txt", "new!more");
    OK(fth_path_rename(mem, t_temp_path("old.txt"), t_temp_path("moved.txt"), NULL));
    EQ_I64(met, 4);
    holds("moved.txt", "new!more");
    fth_path_discard(mem, t_temp_path("moved.txt"));
    IS_TRUE(!fth_path_exists(t_temp_path("moved.txt")));
    OK(fth_mem_destroy(mem, NULL));
}

/* Ranks find the files of a set under the names that the writer gave them. */
TEST(a_set_has_the_names_of_the_writer)
{
    fth_mem *writer = memory(false), *reader = memory(true);
    fth_file_set *a = NULL, *b = NULL;
    const char *to = NULL, *seen = NULL;
    OK(fth_file_set_create(&a, writer, NULL));
    OK(fth_file_set_create(&b, reader, NULL));
    OK(fth_file_set_add(a, t_temp_path("set.txt"), &to, NULL));
    OK(fth_file_set_add(b, t_temp_path("set.txt"), &seen, NULL));
    EQ_STR(to, seen);
    HAS(to, "4711");
    OK(fth_file_save(writer, to, "written", 7, NULL));
    OK(fth_file_save(reader, seen, "discarded", 9, NULL));
    fth_file_set_destroy(b); /* does not take the file of the writer */
    OK(fth_file_set_commit(a, NULL));
    fth_file_set_destroy(a);
    holds("set.txt", "written");
    OK(fth_mem_destroy(reader, NULL));
    OK(fth_mem_destroy(writer, NULL));
}

TEST(a_reader_updates_a_copy)
{
    fth_mem *mem = memory(true);
    fth_file *f = NULL;
    char now[8] = "";
    put("state.bin", "12345678");
    OK(fth_file_open_update(&f, mem, t_temp_path("state.bin"), NULL));
    EQ_U64(fth_file_bytes(f), 8);
    OK(fth_file_write(f, 2, 2, "xx", "bytes", NULL));
    OK(fth_file_read(f, 0, 8, now, "bytes", NULL));
    SAME_BYTES(now, "12xx5678", 8);
    OK(fth_file_resize(f, 4, NULL));
    fth_file_close(f);
    holds("state.bin", "12345678");
    OK(fth_file_open_update(&f, mem, t_temp_path("absent.bin"), NULL));
    EQ_U64(fth_file_bytes(f), 0);
    OK(fth_file_write(f, 0, 3, "abc", "bytes", NULL));
    fth_file_close(f);
    IS_TRUE(!fth_path_exists(t_temp_path("absent.bin")));
    EQ_I64(met, 4);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(folders_of_a_reader_stay_as_they_are)
{
    fth_mem *mem = memory(true);
    char made[FTH_PATH], path[FTH_PATH];
    snprintf(path, sizeof path, "%s", t_temp_path("folder"));
    snprintf(made, sizeof made, "%s", t_temp_path("folder.tmp"));
    OK(fth_folder_make(NULL, path, NULL));
    OK(fth_folder_make(mem, made, NULL)); /* of use to all */
    OK(fth_folder_replace(mem, path, made, NULL));
    EQ_I64(met, 2);
    OK(fth_folder_remove(mem, path, NULL));
    IS_TRUE(fth_path_kind_of(path) == FTH_PATH_FOLDER && fth_path_kind_of(made) == FTH_PATH_FOLDER);
    OK(fth_folder_remove(NULL, path, NULL));
    OK(fth_folder_remove(NULL, made, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

TEST(ranks_that_are_gone_are_an_error_of_the_commit)
{
    fth_mem *mem = memory(false);
    fth_err err = {0};
    fth__disk_set_role(mem, &(fth__disk_role){.settle = refuse});
    put("kept.txt", "old");
    const int64_t files = t_file_count();
    IS(fth_file_save(mem, t_temp_path("kept.txt"), "new", 3, &err), FTH_E_MESSAGE);
    HAS(err.text, "gone");
    holds("kept.txt", "old");
    EQ_I64(t_file_count(), files);
    OK(fth_mem_destroy(mem, NULL));
}

/* Of one that fails between the meetings the others must hear. */
TEST(a_failure_of_the_writer_is_settled)
{
    fth_mem *mem = memory(false);
    put("kept.txt", "old");
    fth__mem_inject(mem, 0, 3); /* the sync, after opening and writing */
    IS(fth_file_save(mem, t_temp_path("kept.txt"), "new", 3, NULL), FTH_E_FILE_WRITE);
    EQ_I64(met, 2);
    fth__mem_inject(mem, 0, 1);
    IS(fth_path_rename(mem, t_temp_path("kept.txt"), t_temp_path("other.txt"), NULL),
       FTH_E_FILE_WRITE);
    EQ_I64(met, 4);
    holds("kept.txt", "old");
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
