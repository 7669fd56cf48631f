/* test_cuda_code - machine code that is kept in a folder: found again, never trusted.
 * seconds: 1 */
#include "testing/io/files.h"

#include "cuda/program/nvrtc.h"

#include <sys/stat.h>
#include <unistd.h>

enum { CODE = 5000 };
static const char source[] = "extern \"C\" __global__ void k() {}";

static void make_code(char *code)
{
    t_random r = t_random_make(1);
    for (int i = 0; i < CODE; i++) code[i] = (char)t_random_u64(&r);
}

static void make_key(char *key, const char *text, int minor, int nvrtc, int driver)
{
    const fth__nvrtc n = {.major = 13, .minor = nvrtc};
    fth__code_key(key, text, 9, minor, &n, driver);
}

/* The one file of a folder; "" when there is none, and more than one fails the case. */
static void only_file(const char *dir, char *path, size_t bytes)
{
    DIR *d = opendir(dir);
    path[0] = 0;
    if (!d) FAIL("no folder %s", dir);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        if (path[0]) FAIL("%s has more than one file", dir);
        snprintf(path, bytes, "%s/%s", dir, e->d_name);
    }
    closedir(d);
}

TEST(what_was_kept_is_found)
{
    char code[CODE], back[CODE], key[FTH__CODE_KEY], path[600];
    const char *dir = t_temp_path("kernels/of/this"); /* folders are made */
    make_code(code);
    make_key(key, source, 0, 0, 13000);
    EQ_U64(fth__code_find(dir, key), 0);
    IS_TRUE(fth__code_write(dir, key, code, CODE));
    EQ_U64(fth__code_find(dir, key), CODE);
    IS_TRUE(fth__code_read(dir, key, back, CODE));
    SAME_BYTES(back, code, CODE);
    only_file(dir, path, sizeof path); /* nothing unfinished was left */
    IS_TRUE(path[0] != 0);
    IS_TRUE(!fth__code_read(dir, key, back, CODE - 1));
}

TEST(another_compiler_chip_driver_or_text_is_another_key)
{
    char a[FTH__CODE_KEY], b[FTH__CODE_KEY];
    make_key(a, source, 0, 0, 13000);
    make_key(b, source, 0, 0, 13000);
    SAME_BYTES(a, b, FTH__CODE_KEY);
    make_key(b, source, 1, 0, 13000);
    IS_TRUE(memcmp(a, b, FTH__CODE_KEY) != 0);
    make_key(b, source, 0, 1, 13000);
    IS_TRUE(memcmp(a, b, FTH__CODE_KEY) != 0);
    make_key(b, source, 0, 0, 12080);
    IS_TRUE(memcmp(a, b, FTH__CODE_KEY) != 0);
    make_key(b, "another", 0, 0, 13000);
    IS_TRUE(memcmp(a, b, FTH__CODE_KEY) != 0);
}

/* Any byte of the file that changes, and any length it is cut to, makes it as good as none; and it
 * is replaced. */
TEST(what_is_not_as_written_is_replaced)
{
    char code[CODE], back[CODE], key[FTH__CODE_KEY], path[600];
    const char *dir = t_temp_path("damaged");
    size_t bytes;
    make_code(code);
    make_key(key, source, 0, 0, 13000);
    IS_TRUE(fth__code_write(dir, key, code, CODE));
    only_file(dir, path, sizeof path);
    unsigned char *file = t_file_read(path, &bytes);
    for (size_t at = 0; at < bytes; at += at < 200 ? 1 : 97) {
        file[at] ^= 0x10;
        t_file_write(path, file, bytes);
        IS_TRUE(fth__code_find(dir, key) != CODE || !fth__code_read(dir, key, back, CODE));
        file[at] ^= 0x10;
    }
    for (size_t cut = 0; cut < bytes; cut += 61) {
        t_file_write(path, file, cut);
        EQ_U64(fth__code_find(dir, key), 0);
        IS_TRUE(!fth__code_read(dir, key, back, CODE));
    }
    IS_TRUE(fth__code_write(dir, key, code, CODE));
    IS_TRUE(fth__code_find(dir, key) == CODE && fth__code_read(dir, key, back, CODE));
    SAME_BYTES(back, code, CODE);
    free(file);
}

TEST(a_folder_that_takes_nothing_is_no_error)
{
    char code[CODE], key[FTH__CODE_KEY], path[600];
    const char *file = t_temp_path("a_file");
    make_code(code);
    make_key(key, source, 0, 0, 13000);
    t_file_write(file, "x", 1);
    IS_TRUE(!fth__code_write(file, key, code, CODE)); /* not a folder */
    EQ_U64(fth__code_find(file, key), 0);
    IS_TRUE(!fth__code_write(NULL, key, code, CODE));
    EQ_U64(fth__code_find(NULL, key), 0);
    char far[2000];
    memset(far, 'd', sizeof far - 1);
    far[0] = '/';
    far[sizeof far - 1] = 0;
    IS_TRUE(!fth__code_write(far, key, code, CODE));
    const char *dir = t_temp_path("locked");
    IS_TRUE(mkdir(dir, 0500) == 0);
    if (geteuid() == 0) return; /* root writes everywhere */
    IS_TRUE(!fth__code_write(dir, key, code, CODE));
    only_file(dir, path, sizeof path);
    EQ_STR(path, "");
}

TEST_MAIN()
