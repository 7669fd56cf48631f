/* test_lz4.c - chunks of LZ4 and of Bitshuffle with LZ4: made by hand and at random, damaged at
 * every byte, cut at every byte. Files of hdf5plugin were read once;
 * tests/python/test_ptycho_scan.py packs its own. seconds: 2 */
#include "io/lz4.h"
#include "testing/test.h"

#include <string.h>

enum { MOST = 4096 };

/* Greedy LZ4: a copy wherever four bytes were seen before, near enough. */
static size_t pack(const unsigned char *in, size_t n, unsigned char *out)
{
    size_t at = 0, from = 0, made = 0;
    while (at <= n) {
        size_t back = 0, length = 0;
        for (size_t b = 1; at < n && b <= at && b < 300; b++) {
            size_t k = 0;
            while (at + k < n && in[at + k] == in[at + k - b]) k++;
            if (k > length) length = k, back = b;
        }
        if (at < n && length < 4) {
            at++;
            continue;
        }
        const size_t literals = at - from, copy = at < n ? length - 4 : 0;
        unsigned char *token = &out[made++];
        *token = (unsigned char)((literals < 15 ? literals : 15) << 4 | (copy < 15 ? copy : 15));
        for (size_t rest = literals; rest >= 15; rest -= 255) {
            out[made++] = (unsigned char)(rest - 15 < 255 ? rest - 15 : 255);
            if (rest - 15 < 255) break;
        }
        memcpy(out + made, in + from, literals);
        made += literals;
        if (at == n) break;
        out[made++] = (unsigned char)(back & 255);
        out[made++] = (unsigned char)(back >> 8);
        for (size_t rest = copy; rest >= 15; rest -= 255) {
            out[made++] = (unsigned char)(rest - 15 < 255 ? rest - 15 : 255);
            if (rest - 15 < 255) break;
        }
        at += length;
        from = at;
    }
    return made;
}

static void put(unsigned char *out, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, v >>= 8) out[i] = (unsigned char)(v & 255);
}

/* Bit b of all elements together. */
static void sort_bits(const unsigned char *in, size_t n, size_t item, unsigned char *out)
{
    memset(out, 0, n * item);
    for (size_t e = 0; e < n; e++)
        for (size_t b = 0; b < 8 * item; b++)
            if (in[e * item + b / 8] >> (b % 8) & 1)
                out[b * (n / 8) + e / 8] |= (unsigned char)(1u << (e % 8));
}

/* A chunk of n elements in blocks of `block`; item 0: bytes, not sorted. */
static size_t make_chunk(const unsigned char *data, size_t n, size_t item, size_t block,
                         unsigned char *out)
{
    const size_t one = item ? item : 1, whole = item ? n / 8 * 8 : n;
    static unsigned char room[MOST], packed[2 * MOST];
    size_t made = 12;
    put(out, n * one, 8);
    put(out + 8, block * one, 4);
    for (size_t at = 0; at < whole; at += block) {
        const size_t m = whole - at < block ? whole - at : block;
        if (item)
            sort_bits(data + at * one, m, one, room);
        else
            memcpy(room, data + at, m);
        size_t bytes = pack(room, m * one, packed);
        const bool raw = !item && bytes >= m * one; /* Bitshuffle packs every block */
        if (raw) bytes = m * one;
        put(out + made, bytes, 4);
        memcpy(out + made + 4, raw ? room : packed, bytes);
        made += 4 + bytes;
    }
    memcpy(out + made, data + whole * one, (n - whole) * one);
    return made + (n - whole) * one;
}

static bool unpack(const unsigned char *in, size_t bytes, unsigned char *out, size_t want,
                   size_t item)
{
    static unsigned char room[MOST];
    return item ? fth__bitshuffle_chunk(in, bytes, out, want, item, room)
                : fth__lz4_chunk(in, bytes, out, want);
}

TEST(blocks_by_hand)
{
    /* "abcd", then 9 bytes from 4 back; "xy" */
    static const unsigned char in[] = {0x45, 'a', 'b', 'c', 'd', 4, 0, 0x20, 'x', 'y'};
    unsigned char out[32];
    EQ_U64(fth__lz4_block(in, sizeof in, out, sizeof out), 15);
    SAME_BYTES(out, "abcdabcdabcdaxy", 15);
    EQ_U64(fth__lz4_block(in, sizeof in, out, 14), 0);
    EQ_U64(fth__lz4_block(in, 7, out, sizeof out), 0); /* a copy is not the end */
    static const unsigned char far_back[] = {0x10, 'a', 2, 0, 0x10, 'b'};
    EQ_U64(fth__lz4_block(far_back, sizeof far_back, out, sizeof out), 0);
    static const unsigned char nowhere[] = {0x10, 'a', 0, 0, 0x10, 'b'};
    EQ_U64(fth__lz4_block(nowhere, sizeof nowhere, out, sizeof out), 0);
}

TEST(chunks_come_back)
{
    t_random r = t_random_make(1);
    static const size_t items[] = {0, 1, 2, 4, 8};
    for (int turn = 0; turn < 200; turn++) {
        const size_t item = items[turn % 5], one = item ? item : 1,
                     n = (size_t)t_random_i64(&r, 1, (int64_t)(MOST / one) - 1),
                     block = 8 * (size_t)t_random_i64(&r, 1, 40);
        static unsigned char data[MOST], chunk[4 * MOST], out[MOST + 1];
        for (size_t i = 0; i < n * one; i++) /* from all alike to all different */
            data[i] = (unsigned char)t_random_i64(&r, 0, turn % 4 == 0 ? 255 : turn % 4);
        const size_t bytes = make_chunk(data, n, item, block, chunk);
        out[n * one] = 77;
        IS_TRUE(unpack(chunk, bytes, out, n * one, item));
        SAME_BYTES(out, data, n * one);
        IS_TRUE(!unpack(chunk, bytes, out, n * one - one, item) || n == 1);
        EQ_I64(out[n * one], 77);
    }
}

/* 64 bytes that LZ4 makes 64 of: as they are in a chunk of LZ4, packed in one of Bitshuffle. */
TEST(a_packed_block_may_be_as_long_as_its_bytes)
{
    unsigned char data[64], chunk[12 + 4 + 64] = {0}, out[64], packed[64], sorted[64];
    for (int i = 0; i < 64; i++) data[i] = (unsigned char)(3 * i + 1);
    memcpy(data + 20, data + 5, 6);
    EQ_U64(pack(data, 64, packed), 64);
    put(chunk, 64, 8);
    put(chunk + 8, 64, 4);
    put(chunk + 12, 64, 4);
    memcpy(chunk + 16, packed, 64);
    IS_TRUE(unpack(chunk, sizeof chunk, out, 64, 0));
    SAME_BYTES(out, packed, 64);
    IS_TRUE(unpack(chunk, sizeof chunk, out, 64, 1));
    sort_bits(out, 64, 1, sorted);
    SAME_BYTES(sorted, data, 64);
}

TEST(damage_is_found_or_harmless)
{
    t_random r = t_random_make(2);
    for (int turn = 0; turn < 2; turn++) {
        enum { N = 100 };
        const size_t item = turn ? 2 : 0, one = item ? item : 1;
        static unsigned char data[2 * N], chunk[8 * N], bad[8 * N], out[2 * N + 1];
        for (size_t i = 0; i < N * one; i++) data[i] = (unsigned char)t_random_i64(&r, 0, 2);
        const size_t bytes = make_chunk(data, N, item, 32, chunk);
        out[N * one] = 77;
        for (size_t i = 0; i < bytes; i++) {
            unsigned char *cut = malloc(i + 1); /* of its size, so that sanitizers see its end */
            memcpy(cut, chunk, i);
            IS_TRUE(!unpack(cut, i, out, N * one, item));
            free(cut);
            for (int bit = 0; bit < 8; bit++) {
                memcpy(bad, chunk, bytes);
                bad[i] ^= (unsigned char)(1 << bit);
                (void)unpack(bad, bytes, out, N * one, item);
                EQ_I64(out[N * one], 77);
            }
        }
    }
}

TEST_MAIN()
