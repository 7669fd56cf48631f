/* test_lzf.c - LZF chunks by hand: literals, copies, and every way a stream can be damaged.
 * seconds: 1
 */
#include "io/lzf.h"
#include "testing/test.h"

/* Unpacks into exactly `room` bytes. */
static size_t unpack(const char *in, size_t bytes, char *out, size_t room)
{
    return fth__lzf_unpack((const unsigned char *)in, bytes, (unsigned char *)out, room);
}

TEST(literals_and_copies)
{
    char out[300];
    EQ_U64(unpack("\x05"
                  "fathom",
                  7, out, 6),
           6);
    SAME_BYTES(out, "fathom", 6);
    /* "abcd", then 8 bytes from 4 back: the copy overlaps itself */
    EQ_U64(unpack("\x03"
                  "abcd\xc0\x03",
                  7, out, 12),
           12);
    SAME_BYTES(out, "abcdabcdabcd", 12);
    /* "x", then 7 + 200 + 2 bytes from 1 back */
    EQ_U64(unpack("\x00x\xe0\xc8\x00", 5, out, sizeof out), 210);
    for (int i = 0; i < 210; i++) EQ_I64(out[i], 'x');
}

TEST(distances_use_both_bytes)
{
    char in[280], out[300];
    size_t n = 0;
    for (int i = 0; i < 260; i++) {
        if (i % 32 == 0) in[n++] = (char)(i + 32 <= 260 ? 31 : 260 - i - 1);
        in[n++] = (char)(i % 251);
    }
    in[n++] = (char)(1 << 5 | 1); /* 3 bytes from (1 << 8) + 3 + 1 back */
    in[n++] = 3;
    EQ_U64(unpack(in, n, out, sizeof out), 263);
    for (int i = 0; i < 3; i++) EQ_I64(out[260 + i], i % 251);
}

TEST(damage_is_refused)
{
    char out[16];
    EQ_U64(unpack("\x05"
                  "fath",
                  5, out, 16),
           0); /* cut inside of literals */
    EQ_U64(unpack("\x05"
                  "fathom",
                  7, out, 5),
           0);                                      /* no room for literals */
    EQ_U64(unpack("\x00x\x20\x01", 4, out, 16), 0); /* from before the start */
    EQ_U64(unpack("\x00x\xc0\x00", 4, out, 8), 0);  /* no room for the copy */
    EQ_U64(unpack("\x00x\xe0", 3, out, 16), 0);     /* the length is missing */
    EQ_U64(unpack("\x00x\xe0\x01", 4, out, 16), 0); /* the distance is missing */
    EQ_U64(unpack("\x00x\x20", 3, out, 16), 0);     /* so it is here */
    EQ_U64(unpack("", 0, out, 16), 0);
}

TEST_MAIN()
