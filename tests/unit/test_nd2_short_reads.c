/* test_nd2_short_reads.c - a read may give fewer bytes than it was asked for, or be interrupted:
 * network file systems do so. Frames are the same.
 *
 * The test is the system: its preadv gives a few bytes at a time. */
#include "testing/files.h"

#include <fathom/images.h>

#include <dlfcn.h>
#include <errno.h>
#include <sys/uio.h>

static size_t most; /* bytes of one call; 0: as the system does */
static int calls;

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

/* All frames of the file, to be freed. */
static uint8_t *read_all(const char *path, uint64_t *bytes)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_images *images = NULL;
    fth_source s;
    fth_err err = {0};
    const int64_t lo[FTH_MAX_AXES] = {0};
    OKE(fth_images_open(&images, mem, path, NULL, &err), &err);
    OKE(fth_images_source(images, &s, &err), &err);
    *bytes = (uint64_t)fth_dtype_size(s.dtype);
    for (int a = 0; a < s.n_axes; a++) *bytes *= (uint64_t)s.size[a];
    uint8_t *data = malloc(*bytes);
    OKE(s.read(s.self, lo, s.size, data, &err), &err);
    fth_source_close(&s);
    fth_images_close(images);
    OK(fth_mem_destroy(mem, NULL));
    return data;
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

TEST_MAIN()
