/* test_files.c - paths, folders, files in place, sets of files, arrays on the disk.
 * seconds: 2 */
#include "testing/io/files.h"

#include "mem/disk.h"
#include "mem/inject.h"

#include <fathom/files.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

static void holds(const char *path, const char *text)
{
    size_t bytes = 0;
    unsigned char *now = t_file_read(path, &bytes);
    EQ_U64(bytes, strlen(text));
    SAME_BYTES(now, text, bytes);
    free(now);
}

/* ---- paths ---- */

TEST(paths_are_joined_and_taken_apart)
{
    char path[FTH_PATH];
    OK(fth_path_join(path, "/a/b", "c.npy", NULL));
    EQ_STR(path, "/a/b/c.npy");
    EQ_STR(fth_path_name(path), "c.npy");
    EQ_STR(fth_path_name("c"), "c");
    EQ_STR(fth_path_name("a/"), "");
    OK(fth_path_beside(path, "/a/b", "tmp", NULL));
    EQ_STR(path, "/a/b.tmp");
    static const char *const parent[][2] = {{"/a/b", "/a"},   {"/a", "/"}, {"a", "."},
                                            {"a/b/c", "a/b"}, {"", "."},   {"a/", "a"}};
    for (size_t i = 0; i < sizeof parent / sizeof parent[0]; i++) {
        OK(fth_path_parent(path, parent[i][0], NULL));
        EQ_STR(path, parent[i][1]);
    }
}

/* The longest path that fits, and one byte more. */
TEST(a_path_that_is_too_long_is_an_error_with_a_remedy)
{
    char dir[FTH_PATH + 8], path[FTH_PATH];
    fth_err err = {0};
    memset(dir, 'd', sizeof dir);
    dir[FTH_PATH - 4] = '\0';
    OK(fth_path_join(path, dir, "nn", NULL));
    EQ_U64(strlen(path), FTH_PATH - 1);
    IS(fth_path_join(path, dir, "nnn", &err), FTH_E_FILE_OPEN);
    HAS(err.text, "nnn");
    HAS(err.text, "4095");
    HAS(err.hint, "shorter");
    OK(fth_path_beside(path, dir, "nn", NULL));
    IS(fth_path_beside(path, dir, "nnn", NULL), FTH_E_FILE_OPEN);
    memset(dir, 'd', sizeof dir);
    dir[FTH_PATH] = '/', dir[FTH_PATH + 1] = '\0';
    IS(fth_path_parent(path, dir, NULL), FTH_E_FILE_OPEN);
    memmove(dir, dir + 1, FTH_PATH + 1);
    OK(fth_path_parent(path, dir, NULL));
    EQ_U64(strlen(path), FTH_PATH - 1);
}

TEST(what_a_path_leads_to)
{
    const char *file = t_temp_path("look");
    fth_path_info info;
    fth_err err = {0};
    EQ_I64(fth_path_kind_of(file), FTH_PATH_ABSENT);
    IS_TRUE(!fth_path_exists(file) && !fth_path_is_readable(file) && fth_path_is_writable(file));
    IS(fth_path_stat(file, &info, &err), FTH_E_FILE_OPEN);
    HAS(err.text, file);
    HAS(err.text, "No such file");
    t_file_write(file, "abc", 3);
    EQ_I64(fth_path_kind_of(file), FTH_PATH_FILE);
    EQ_I64(fth_path_kind_of(t_temp_dir()), FTH_PATH_FOLDER);
    EQ_I64(fth_path_kind_of("/dev/null"), FTH_PATH_DEVICE);
    OK(fth_path_stat(file, &info, NULL));
    EQ_I64(info.kind, FTH_PATH_FILE);
    EQ_U64(info.bytes, 3);
    const struct timespec then = {1700000000, 123456789};
    EQ_I64(utimensat(AT_FDCWD, file, (struct timespec[]){then, then}, 0), 0);
    OK(fth_path_stat(file, &info, NULL));
    EQ_I64(info.mtime_ns, 1700000000123456789);
    IS_TRUE(fth_path_exists(file) && fth_path_is_readable(file) && fth_path_is_writable(file));
    IS_TRUE(!fth_path_is_writable("/no/such/folder/x"));
    const char *pipe = t_temp_path("pipe");
    EQ_I64(mkfifo(pipe, 0600), 0);
    EQ_I64(fth_path_kind_of(pipe), FTH_PATH_SPECIAL);
    remove(pipe);
    fth_mem *mem = t_mem(1 << 20);
    OK(fth_path_remove(mem, file, NULL));
    OK(fth_path_remove(mem, file, NULL));
    IS(fth_path_remove(mem, t_temp_dir(), &err), FTH_E_FILE_WRITE);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_disk_of_a_path_is_that_of_the_nearest_folder)
{
    fth_path_disk_info here, below, other;
    struct statvfs fs;
    struct stat st;
    fth_err err = {0};
    EQ_I64(statvfs(t_temp_dir(), &fs) | stat(t_temp_dir(), &st), 0);
    OK(fth_path_disk(t_temp_dir(), &here, NULL));
    EQ_U64(here.id, st.st_dev);
    const uint64_t now = (uint64_t)fs.f_bavail * fs.f_frsize, near = 1 << 30; /* others write */
    IS_TRUE(here.free_bytes < now + near && here.free_bytes + near > now);
    OK(fth_path_disk(t_temp_path("no/such/folder"), &below, NULL));
    EQ_U64(below.id, here.id);
    OK(fth_path_disk("/proc/no/such", &other, NULL));
    IS_TRUE(other.id != here.id);
    const char *file = t_temp_path("plain");
    t_file_write(file, "abc", 3);
    IS(fth_path_disk(t_temp_path("plain/below"), &below, &err), FTH_E_FILE_OPEN);
    HAS(err.text, "Not a directory");
    remove(file);
}

/* What somebody finds who is not root, to whom everything is allowed. */
static int look_without_rights(const char *dir, const char *file, const char *absent)
{
    int wrong = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) _exit(100);
        _exit((fth_path_kind_of(file) != FTH_PATH_FILE) + 2 * fth_path_is_readable(file) +
              4 * fth_path_is_writable(file) + 8 * fth_path_is_writable(absent) +
              16 * !fth_path_is_readable(dir));
    }
    waitpid(child, &wrong, 0);
    return WIFEXITED(wrong) ? WEXITSTATUS(wrong) : -1;
}

TEST(rights_are_looked_at)
{
    char dir[] = "/tmp/fathom-rights-XXXXXX", file[64], absent[64];
    IS_TRUE(mkdtemp(dir) != NULL);
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(absent, sizeof absent, "%s/absent", dir);
    t_file_write(file, "abc", 3);
    EQ_I64(chmod(file, 0), 0);
    EQ_I64(chmod(dir, 0555), 0);
    const int wrong = look_without_rights(dir, file, absent);
    EQ_I64(chmod(dir, 0755), 0);
    remove(file), rmdir(dir);
    if (wrong == 100) SKIP("root cannot become another user here");
    EQ_I64(wrong, 0);
}

TEST(a_finished_file_gets_its_name)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    const char *from = t_temp_path("made"), *to = t_temp_path("named");
    t_file_write(from, "new", 3);
    t_file_write(to, "old one", 7);
    OK(fth_path_rename(mem, from, to, NULL));
    holds(to, "new");
    IS(fth_path_rename(mem, from, to, &err), FTH_E_FILE_WRITE);
    HAS(err.text, to);
    holds(to, "new");
    EQ_I64(t_file_count(), 1);
    remove(to);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- folders ---- */

TEST(folders_are_made_listed_and_removed)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    char deep[FTH_PATH], path[FTH_PATH];
    const char *top = t_temp_path("top");
    OK(fth_path_join(deep, top, "b/c", NULL));
    IS(fth_folder_make(mem, deep, &err), FTH_E_FILE_WRITE);
    HAS(err.text, deep);
    HAS(err.text, "cannot be made: No such file");
    OK(fth_folder_make_all(mem, deep, NULL));
    OK(fth_folder_make_all(mem, deep, NULL));
    OK(fth_folder_make(mem, deep, NULL));
    static const char *const name[] = {"z", "a", ".hidden", "B"};
    for (int i = 0; i < 4; i++) {
        OK(fth_path_join(path, top, name[i], NULL));
        t_file_write(path, "x", 1);
    }
    fth_texts *list = NULL;
    OK(fth_folder_list(&list, mem, top, NULL));
    static const char *const sorted[] = {".hidden", "B", "a", "b", "z"};
    EQ_I64(fth_texts_count(list), 5);
    for (int i = 0; i < 5; i++) EQ_STR(fth_texts_get(list, i), sorted[i]);
    fth_texts_free(list);
    OK(fth_folder_list(&list, mem, deep, NULL));
    EQ_I64(fth_texts_count(list), 0);
    fth_texts_free(list);
    /* a file in the place of a folder */
    OK(fth_path_join(path, top, "a", NULL));
    fth_err_clear(&err);
    IS(fth_folder_make(mem, path, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "should be a folder");
    OK(fth_path_join(path, top, "a/d", NULL));
    IS(fth_folder_make_all(mem, path, NULL), FTH_E_FILE_WRITE);
    OK(fth_path_join(path, top, "z", NULL));
    fth_err_clear(&err);
    IS(fth_folder_remove(mem, path, &err), FTH_E_FILE_WRITE);
    HAS(err.text, "it cannot be removed: Not a directory");
    IS_TRUE(fth_path_exists(path));
    /* a link is removed, what it leads to stays */
    const char *outside = t_temp_path("outside");
    OK(fth_folder_make(mem, outside, NULL));
    OK(fth_path_join(path, top, "link", NULL));
    EQ_I64(symlink(outside, path), 0);
    OK(fth_folder_remove(mem, top, NULL));
    IS_TRUE(!fth_path_exists(top) && fth_path_exists(outside));
    OK(fth_folder_remove(mem, top, NULL));
    IS(fth_folder_list(&list, mem, top, NULL), FTH_E_FILE_OPEN);
    EQ_PTR(list, NULL);
    OK(fth_folder_remove(mem, outside, NULL));
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

/* Nothing is made of a path that does not fit. */
TEST(folders_of_a_path_that_is_too_long)
{
    fth_mem *mem = t_mem(1 << 20);
    char path[FTH_PATH + 1];
    memset(path, 'd', FTH_PATH);
    path[FTH_PATH] = '\0';
    const int n = snprintf(path, sizeof path, "%s/", t_temp_path("long"));
    path[n] = 'd';
    IS(fth_folder_make_all(mem, path, NULL), FTH_E_FILE_WRITE);
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

/* A folder has at most 32 of ours below each other: a deeper one is somebody else's. */
TEST(folders_are_removed_down_to_a_depth)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    char path[FTH_PATH];
    for (int depth = 32; depth <= 33; depth++) {
        size_t n = (size_t)snprintf(path, sizeof path, "%s", t_temp_path("deep"));
        for (int i = 0; i < depth; i++)
            n += (size_t)snprintf(path + n, sizeof path - n, "/%02d", i);
        OK(fth_folder_make_all(mem, path, NULL));
        if (depth == 32)
            OK(fth_folder_remove(mem, t_temp_path("deep"), NULL));
        else
            IS(fth_folder_remove(mem, t_temp_path("deep"), &err), FTH_E_FILE_WRITE);
        EQ_I64(fth_path_exists(path), depth == 33);
    }
    HAS(err.text, path);
    EQ_I64(rmdir(path), 0);
    OK(fth_folder_remove(mem, t_temp_path("deep"), NULL));
    OK(fth_mem_destroy(mem, NULL));
}

enum { RACES = 400 };

static void *make_folders(void *top)
{
    char path[FTH_PATH];
    for (int i = 0; i < RACES; i++) {
        snprintf(path, sizeof path, "%s/%d", (const char *)top, i);
        if (fth_folder_make(NULL, path, NULL) != FTH_OK) return top;
    }
    return NULL;
}

TEST(several_threads_make_the_same_folders)
{
    fth_mem *mem = t_mem(1 << 20);
    char top[FTH_PATH];
    pthread_t thread[4];
    snprintf(top, sizeof top, "%s", t_temp_path("race"));
    OK(fth_folder_make(mem, top, NULL));
    for (int i = 0; i < 4; i++) EQ_I64(pthread_create(&thread[i], NULL, make_folders, top), 0);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(thread[i], &bad);
        EQ_PTR(bad, NULL);
    }
    OK(fth_folder_remove(mem, top, NULL));
    OK(fth_mem_destroy(mem, NULL));
}

static void make_folder_with(const char *dir, const char *text)
{
    char path[FTH_PATH];
    OK(fth_folder_make(NULL, dir, NULL));
    OK(fth_path_join(path, dir, "file", NULL));
    t_file_write(path, text, strlen(text));
}

TEST(a_folder_takes_the_place_of_another)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *dir = t_temp_path("data"), *made = t_temp_path("data.tmp"),
               *file = t_temp_path("data/file"), *old = t_temp_path("data.old");
    make_folder_with(made, "first");
    OK(fth_folder_replace(mem, dir, made, NULL)); /* there was none */
    holds(file, "first");
    make_folder_with(made, "second");
    make_folder_with(old, "of a killed run");
    OK(fth_folder_replace(mem, dir, made, NULL));
    holds(file, "second");
    EQ_I64(t_file_count(), 1);
    fth_err err = {0};
    IS(fth_folder_replace(mem, dir, made, &err), FTH_E_FILE_WRITE); /* nothing was made */
    HAS(err.text, dir);
    holds(file, "second");
    OK(fth_folder_remove(mem, dir, NULL));
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- whole files ---- */

TEST(a_small_file_is_saved_loaded_and_appended_to)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    const char *path = t_temp_path("small");
    char *data = NULL;
    uint64_t bytes = 0;
    OK(fth_file_save(mem, path, "one\n", 4, NULL));
    struct stat st;
    EQ_I64(chmod(path, 0640), 0);
    OK(fth_file_save(mem, path, "one\n", 4, NULL));
    EQ_I64(stat(path, &st), 0);
    EQ_I64(st.st_mode & 07777, 0640); /* of the file before it */
    OK(fth_file_append(mem, path, "two\n", 4, NULL));
    holds(path, "one\ntwo\n");
    OK(fth_file_load(mem, path, 8, &data, &bytes, NULL));
    EQ_U64(bytes, 8);
    EQ_STR(data, "one\ntwo\n");
    OK(fth_mem_release(mem, data, NULL));
    IS(fth_file_load(mem, path, 7, &data, &bytes, &err), FTH_E_FILE_FORMAT);
    EQ_PTR(data, NULL);
    HAS(err.text, path);
    HAS(err.text, "8 bytes");
    OK(fth_file_save(mem, path, "abc", 3, NULL));
    OK(fth_file_load(mem, path, 3, &data, &bytes, NULL)); /* where a longer one has been */
    EQ_STR(data, "abc");
    OK(fth_mem_release(mem, data, NULL));
    OK(fth_file_save(mem, path, NULL, 0, NULL));
    OK(fth_file_load(mem, path, 0, &data, &bytes, NULL));
    EQ_U64(bytes, 0);
    EQ_STR(data, "");
    OK(fth_mem_release(mem, data, NULL));
    remove(path);
    OK(fth_file_append(mem, path, "new", 3, NULL)); /* is made */
    holds(path, "new");
    remove(path);
    IS(fth_file_load(mem, path, 7, &data, &bytes, NULL), FTH_E_FILE_OPEN);
    IS(fth_file_append(mem, t_temp_dir(), "x", 1, NULL), FTH_E_FILE_WRITE);
    IS(fth_file_save(mem, t_temp_dir(), "x", 1, NULL), FTH_E_FILE_WRITE);
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_longest_name_can_be_saved)
{
    fth_mem *mem = t_mem(1 << 20);
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    const char *path = t_temp_path(name);
    OK(fth_file_save(mem, path, "x", 1, NULL));
    holds(path, "x");
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

/* A disk that takes only a part of a line. */
TEST(a_part_that_is_appended_is_a_failure)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("part");
    struct rlimit before, few;
    EQ_I64(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = before;
    few.rlim_cur = 4;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    EQ_I64(setrlimit(RLIMIT_FSIZE, &few), 0);
    const fth_status s = fth_file_append(mem, path, "12345678", 8, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    IS(s, FTH_E_FILE_WRITE);
    holds(path, "1234");
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_stream_appears_when_it_is_committed)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("text");
    fth_file_stream *s = NULL;
    OK(fth_file_stream_create(&s, mem, path, NULL));
    for (int i = 0; i < 100000; i++) fprintf(fth_file_stream_file(s), "%06d\n", i);
    IS_TRUE(!t_file_exists(path));
    OK(fth_file_stream_commit(s, NULL));
    size_t bytes = 0;
    unsigned char *all = t_file_read(path, &bytes);
    EQ_U64(bytes, 700000);
    SAME_BYTES(all + 7 * 4711, "004711\n", 7);
    free(all);
    OK(fth_file_stream_create(&s, mem, path, NULL));
    fputs("never", fth_file_stream_file(s));
    fth_file_stream_abandon(s);
    fth_file_stream_abandon(NULL);
    fth_path_info info;
    OK(fth_path_stat(path, &info, NULL));
    EQ_U64(info.bytes, 700000);
    remove(path);
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- in place ---- */

TEST(bytes_are_written_and_read_in_place)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    const char *path = t_temp_path("place");
    char got[8] = "";
    fth_file *f = NULL;
    OK(fth_file_open_update(&f, mem, path, NULL));
    EQ_U64(fth_file_bytes(f), 0);
    OK(fth_file_write(f, 4, 3, "efg", "rows", NULL));
    EQ_U64(fth_file_bytes(f), 7);
    OK(fth_file_write(f, 0, 2, "ab", "rows", NULL));
    EQ_U64(fth_file_bytes(f), 7);
    OK(fth_file_read(f, 0, 7, got, "rows", NULL));
    SAME_BYTES(got, "ab\0\0efg", 7);
    IS(fth_file_read(f, 5, 3, got, "rows", &err), FTH_E_FILE_SHORT);
    HAS(err.text, path);
    HAS(err.text, "byte 5");
    HAS(err.text, "rows");
    fth_err_clear(&err);
    IS(fth_file_read(f, 9, 1, got, "rows", &err), FTH_E_FILE_SHORT); /* behind the end */
    HAS(err.text, "the file ends at byte 7");
    OK(fth_file_resize(f, 5, NULL));
    OK(fth_file_sync(f, NULL));
    EQ_U64(fth_file_bytes(f), 5);
    fth_file_close(f);
    OK(fth_file_open_update(&f, mem, path, NULL)); /* keeps what is there */
    EQ_U64(fth_file_bytes(f), 5);
    fth_file_close(f);
    OK(fth_file_open(&f, mem, path, NULL));
    OK(fth_file_read(f, 4, 1, got, "rows", NULL));
    EQ_I64(got[0], 'e');
    IS(fth_file_write(f, 0, 1, "x", "rows", NULL), FTH_E_STATE);
    fth_file_close(f);
    remove(path);
    IS(fth_file_open(&f, mem, path, NULL), FTH_E_FILE_OPEN);
    IS(fth_file_open_update(&f, mem, t_temp_dir(), NULL), FTH_E_FILE_OPEN);
    EQ_PTR(f, NULL);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_pipe_is_no_file)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    fth_file *f = NULL;
    const char *pipe = t_temp_path("pipe");
    EQ_I64(mkfifo(pipe, 0600), 0);
    alarm(20); /* nobody writes: who waits is killed */
    IS(fth_file_open(&f, mem, pipe, &err), FTH_E_FILE_OPEN);
    alarm(0);
    HAS(err.text, "this is something else");
    EQ_PTR(f, NULL);
    IS(fth_file_save(mem, pipe, "x", 1, NULL), FTH_E_FILE_WRITE);
    EQ_I64(fth_path_kind_of(pipe), FTH_PATH_SPECIAL);
    remove(pipe);
    OK(fth_mem_destroy(mem, NULL));
}

/* More than the system is asked for at once. */
TEST(many_bytes_go_in_pieces)
{
    fth_mem *mem = t_mem(1 << 20);
    const uint64_t bytes = (20 << 20) + 8;
    int64_t *data = malloc(bytes), *back = calloc(1, bytes);
    fth_file *f = NULL;
    const char *path = t_temp_path("large");
    for (uint64_t i = 0; i < bytes / 8; i++) data[i] = (int64_t)i;
    OK(fth_file_save(mem, path, data, bytes, NULL));
    OK(fth_file_open(&f, mem, path, NULL));
    EQ_U64(fth_file_bytes(f), bytes);
    OK(fth_file_read(f, 0, bytes, back, "numbers", NULL));
    SAME_BYTES(back, data, bytes);
    fth_file_close(f);
    int fd;
    uint64_t got = 0;
    memset(back, 0, bytes);
    EQ_I64(fth__disk_open(NULL, path, O_RDONLY, &fd), 0);
    EQ_I64(fth__disk_read(fd, 0, bytes, back, &got), 0);
    EQ_U64(got, bytes);
    SAME_BYTES(back, data, bytes);
    close(fd);
    remove(path);
    free(data);
    free(back);
    OK(fth_mem_destroy(mem, NULL));
}

/* A write that ends in the middle does not make the file shorter. */
TEST(a_write_that_fails_leaves_the_size)
{
    fth_mem *mem = t_mem(1 << 20);
    const uint64_t piece = 8 << 20;
    char *data = calloc(1, 2 * piece);
    fth_file *f = NULL;
    OK(fth_file_open_scratch(&f, mem, t_temp_dir(), "rows", NULL));
    OK(fth_file_resize(f, 12 << 20, NULL));
    fth__mem_inject(mem, 0, 2);
    IS(fth_file_write(f, 0, 2 * piece, data, "rows", NULL), FTH_E_FILE_WRITE);
    fth__mem_inject(mem, 0, 0);
    EQ_U64(fth_file_bytes(f), 12 << 20);
    fth_file_close(f);
    free(data);
    OK(fth_mem_destroy(mem, NULL));
}

static int64_t count_open(void)
{
    int64_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

TEST(nothing_stays_open)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *path = t_temp_path("one"), *temp = NULL;
    const int64_t before = count_open();
    fth_file *f = NULL;
    fth_file_stream *s = NULL;
    fth_file_set *set = NULL;
    fth_texts *list = NULL;
    OK(fth_file_save(mem, path, "x", 1, NULL));
    OK(fth_file_append(mem, path, "x", 1, NULL));
    OK(fth_file_open(&f, mem, path, NULL));
    fth_file_close(f);
    IS(fth_file_open(&f, mem, t_temp_dir(), NULL), FTH_E_FILE_OPEN);
    OK(fth_file_stream_create(&s, mem, path, NULL));
    fth_file_stream_abandon(s);
    OK(fth_file_set_create(&set, mem, NULL));
    OK(fth_file_set_add(set, path, &temp, NULL));
    OK(fth_file_save(mem, temp, "y", 1, NULL));
    OK(fth_file_set_commit(set, NULL));
    fth_file_set_destroy(set);
    OK(fth_folder_list(&list, mem, t_temp_dir(), NULL));
    fth_texts_free(list);
    EQ_I64(count_open(), before);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct writer {
    fth_file *f;
    int i;
} writer;

static void *write_rows(void *user)
{
    const writer *w = user;
    for (int64_t r = w->i; r < 4000; r += 4)
        if (fth_file_write(w->f, (uint64_t)r * 8, 8, &r, "a row", NULL) != FTH_OK) return user;
    return NULL;
}

TEST(several_threads_write_one_file)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_file *f = NULL;
    OK(fth_file_open_scratch(&f, mem, t_temp_dir(), "rows", NULL));
    EQ_I64(t_file_count(), 0); /* it has no name */
    pthread_t thread[4];
    writer w[4];
    for (int i = 0; i < 4; i++) {
        w[i] = (writer){f, i};
        EQ_I64(pthread_create(&thread[i], NULL, write_rows, &w[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(thread[i], &bad);
        EQ_PTR(bad, NULL);
    }
    EQ_U64(fth_file_bytes(f), 32000);
    for (int64_t r = 0, v; r < 4000; r++) {
        OK(fth_file_read(f, (uint64_t)r * 8, 8, &v, "a row", NULL));
        EQ_I64(v, r);
    }
    fth_file_close(f);
    fth_err err = {0};
    IS(fth_file_open_scratch(&f, mem, "/no/such/folder", "rows", &err), FTH_E_FILE_OPEN);
    HAS(err.text, "/no/such/folder");
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- sets ---- */

TEST(files_of_a_set_appear_together)
{
    fth_mem *mem = t_mem(1 << 20);
    const char *one = t_temp_path("one"), *two = t_temp_path("two"), *temp[2];
    fth_file_set *set = NULL;
    char left[40];
    snprintf(left, sizeof left, ".one.%ld.old", (long)getpid());
    t_file_write(t_temp_path(left), "of a killed process", 19);
    t_file_write(one, "old", 3);
    OK(fth_file_set_create(&set, mem, NULL));
    OK(fth_file_set_add(set, one, &temp[0], NULL));
    OK(fth_file_set_add(set, two, &temp[1], NULL));
    EQ_I64(fth_path_name(temp[0])[0], '.');
    OK(fth_file_save(mem, temp[0], "new one", 7, NULL));
    OK(fth_file_save(mem, temp[1], "new two", 7, NULL));
    holds(one, "old");
    IS_TRUE(!t_file_exists(two));
    OK(fth_file_set_commit(set, NULL));
    IS(fth_file_set_commit(set, NULL), FTH_E_STATE);
    IS(fth_file_set_add(set, two, &temp[1], NULL), FTH_E_STATE);
    fth_file_set_destroy(set);
    holds(one, "new one");
    holds(two, "new two");
    EQ_I64(t_file_count(), 2);

    /* one of them was never written: nothing changes */
    fth_err err = {0};
    OK(fth_file_set_create(&set, mem, NULL));
    OK(fth_file_set_add(set, one, &temp[0], NULL));
    OK(fth_file_set_add(set, two, &temp[1], NULL));
    OK(fth_file_save(mem, temp[0], "newer", 5, NULL));
    IS(fth_file_set_commit(set, &err), FTH_E_FILE_WRITE);
    HAS(err.text, two);
    HAS(err.text, "opening what was written");
    fth_file_set_destroy(set);
    holds(one, "new one");
    EQ_I64(t_file_count(), 2);

    /* abandoned */
    OK(fth_file_set_create(&set, mem, NULL));
    OK(fth_file_set_add(set, one, &temp[0], NULL));
    OK(fth_file_save(mem, temp[0], "newer", 5, NULL));
    IS(fth_file_set_add(set, t_temp_dir(), &temp[1], NULL), FTH_E_FILE_WRITE);
    IS(fth_file_set_add(set, "/dev/null", &temp[1], NULL), FTH_E_FILE_WRITE);
    char longest[FTH_PATH];
    memset(longest, 'd', sizeof longest);
    longest[FTH_PATH - 63] = '\0'; /* no room for the names beside it */
    IS(fth_file_set_add(set, longest, &temp[1], NULL), FTH_E_FILE_WRITE);
    EQ_PTR(temp[1], NULL);
    fth_file_set_destroy(set);
    fth_file_set_destroy(NULL);
    holds(one, "new one");
    EQ_I64(t_file_count(), 2);
    remove(one), remove(two);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- arrays ---- */

TEST(an_array_on_the_disk_is_a_source_and_a_sink)
{
    fth_mem *mem = t_mem(1 << 20);
    const int64_t size[3] = {5, 4, 3}, lo[3] = {1, 0, 1}, n[3] = {3, 4, 2};
    float whole[60] = {0}, part[24];
    fth_scratch *a = NULL;
    OK(fth_scratch_create(&a, mem, t_temp_dir(), "moments", FTH_F32, 3, size, NULL));
    EQ_U64(fth_scratch_bytes(a), 240);
    EQ_I64(t_file_count(), 0);
    fth_source from = fth_scratch_source(a);
    fth_sink to = fth_scratch_sink(a);
    EQ_I64(from.n_axes, 3);
    EQ_I64(to.size[1], 4);
    t_source_check(&from, whole, 1, 10); /* zeros at first */
    for (int i = 0; i < 24; i++) part[i] = (float)i + 1;
    OK(to.write(to.self, lo, n, part, NULL));
    for (int i = 0; i < 24; i++) whole[(1 + i / 8) * 12 + i / 2 % 4 * 3 + 1 + i % 2] = (float)i + 1;
    t_source_check(&from, whole, 2, 60);
    fth_err err = {0};
    IS(from.read(from.self, ((int64_t[]){5, 0, 0}), ((int64_t[]){1, 1, 1}), part, &err),
       FTH_E_USAGE);
    HAS(err.text, "moments");
    fth_scratch_destroy(a);
    /* with no folder it is a shape */
    OK(fth_scratch_create(&a, mem, NULL, "planned", FTH_F64, 3, size, NULL));
    EQ_U64(fth_scratch_bytes(a), 480);
    from = fth_scratch_source(a);
    IS(from.read(from.self, lo, n, part, NULL), FTH_E_STATE);
    fth_scratch_destroy(a);
    fth_scratch_destroy(NULL);
    IS_TRUE(fth_scratch_create(&a, mem, t_temp_dir(), "bad", FTH_F32, 1, (int64_t[]){-1}, NULL) !=
            FTH_OK);
    EQ_PTR(a, NULL);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
