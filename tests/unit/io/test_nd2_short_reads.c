/* test_nd2_short_reads.c - a read may give fewer bytes than it was asked for, or be interrupted:
 * network file systems do so. Frames are the same.
 *
 * The test is the system: its preadv gives a few bytes at a time.
 * seconds: 10 */
#include "testing/io/files.h"

#include <fathom/images.h>

#include <dlfcn.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t most; /* bytes of one call; 0: as the system does */
static int calls;
static int64_t first_row; /* that is read: others do not begin with a page */

/* In the place of the C library's; other tests of the program get that one. */
ssize_t preadv(int fd, const struct iovec *parts, int n, off_t at)
{
    ssize_t (*real)(int, const struct iovec *, int, off_t) = NULL;
    void *found = dlsym(RTLD_NEXT, "preadv");
    memcpy(&real, &found, sizeof real);
    if (most == 0) return real(fd, parts, n, at);
    if (++calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    struct iovec some[64];
    size_t left = most;
    int used = 0;
    for (; used < n && used < 64 && left > 0; used++) {
        some[used] = parts[used];
        if (some[used].iov_len > left) some[used].iov_len = left;
        left -= some[used].iov_len;
    }
    return real(fd, some, used, at);
}

/* All frames of the file, to be freed; NULL: it cannot be read in this way. */
static uint8_t *read_in(fth_read_mode mode, const char *path, uint64_t *bytes)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_images *images = NULL;
    fth_source s;
    fth_err err = {0};
    int64_t lo[FTH_MAX_AXES] = {0}, size[FTH_MAX_AXES];
    const fth_status opened =
        fth_images_open(&images, mem, path, &(fth_images_options){.read_mode = mode}, &err);
    if (opened == FTH_E_FILE_FEATURE && mode == FTH_READ_DIRECT) {
        HAS(err.hint, "pread");
        OK(fth_mem_destroy(mem, NULL));
        return NULL;
    }
    OKE(opened, &err);
    OKE(fth_images_source(images, &s, &err), &err);
    memcpy(size, s.size, sizeof size);
    lo[FTH_IMAGES_Y] = first_row;
    size[FTH_IMAGES_Y] -= first_row;
    *bytes = (uint64_t)fth_dtype_size(s.dtype);
    for (int a = 0; a < s.n_axes; a++) *bytes *= (uint64_t)size[a];
    uint8_t *data = malloc(*bytes);
    OKE(s.read(s.self, lo, size, data, &err), &err);
    fth_source_close(&s);
    fth_images_close(images);
    OK(fth_mem_destroy(mem, NULL));
    return data;
}

static uint8_t *read_all(const char *path, uint64_t *bytes)
{
    return read_in(FTH_READ_PREAD, path, bytes);
}

TEST(frames_that_come_in_pieces_are_the_same)
{
    static const size_t pieces[] = {1, 7, 100, 8191, 20000};
    uint64_t n, again;
    uint8_t *whole = read_all("tests/golden/focus/synth_T2P3Z5.nd2", &n);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        most = pieces[i];
        calls = 0;
        uint8_t *got = read_all("tests/golden/focus/synth_T2P3Z5.nd2", &again);
        most = 0;
        IS_TRUE(calls > 2); /* else this shows nothing */
        EQ_U64(again, n);
        SAME_BYTES(got, whole, n);
        free(got);
    }
    free(whole);
}

/* Plain, packed, with padded rows, several channels, missing frames. */
TEST(all_ways_of_reading_give_the_same)
{
    static const char *const files[] = {"synth_T2P3Z5.nd2", "synth_T2P3Z5_zlib.nd2",
                                        "synth_T2P3Z5_missing.nd2", "synth_Z5C2.nd2"};
    for (int i = 0; i < 8; i++) {
        char path[100];
        uint64_t n, again;
        first_row = i < 4 ? 0 : 3;
        snprintf(path, sizeof path, "tests/golden/focus/%s", files[i % 4]);
        uint8_t *whole = read_all(path, &n);
        for (int mode = FTH_READ_MMAP; mode <= FTH_READ_DIRECT; mode++) {
            uint8_t *got = read_in((fth_read_mode)mode, path, &again);
            if (!got) continue; /* the file system of the sources does not let us */
            EQ_U64(again, n);
            SAME_BYTES(got, whole, n);
            free(got);
        }
        free(whole);
    }
    first_row = 0;
}

/* Pages behind the end of a mapped file would end the process. */
TEST(a_file_that_is_cut_while_it_is_read_is_an_error)
{
    size_t n;
    unsigned char *bytes = t_file_read("tests/golden/focus/synth_T2P3Z5.nd2", &n);
    for (int mode = FTH_READ_PREAD; mode <= FTH_READ_DIRECT; mode++) {
        const char *path = t_temp_path("cut.nd2");
        const int64_t lo[FTH_MAX_AXES] = {0};
        fth_mem *mem = t_mem(1 << 24);
        fth_images *images = NULL;
        fth_source s;
        fth_err err = {0};
        static uint8_t to[1 << 20];
        t_file_write(path, bytes, n);
        const fth_images_options how = {.read_mode = (fth_read_mode)mode};
        if (fth_images_open(&images, mem, path, &how, &err) == FTH_OK) {
            OK(fth_images_source(images, &s, NULL));
            EQ_I64(truncate(path, 9000), 0);
            EQ_I64(fth_status_get_info(s.read(s.self, lo, s.size, to, &err))->exit_code, 3);
            fth_source_close(&s);
            fth_images_close(images);
        } else {
            EQ_I64(mode, FTH_READ_DIRECT);
        }
        OK(fth_mem_destroy(mem, NULL));
    }
    free(bytes);
}

TEST_MAIN()
