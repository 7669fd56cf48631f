/* test_deflate.c - zlib in given memory: round trips, the three wraps, damage, pieces of any size.
 * seconds: 3 */
#include "testing/test.h"

#include "text/deflate.h"

#include <zlib.h>

enum { MOST = 400000 };

typedef struct packed {
    uint8_t *bytes;
    uint64_t n, calls, largest;
} packed;

static void collect(void *to, const void *bytes, uint64_t n)
{
    packed *p = to;
    IS_TRUE(p->n + n <= MOST);
    memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
    p->calls++;
    if (n > p->largest) p->largest = n;
}

/* Text that packs well, then noise that does not. */
static uint8_t *make_data(uint64_t n)
{
    uint8_t *data = malloc(n + 1);
    uint32_t state = 1;
    for (uint64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = i < n / 2 ? (uint8_t)("depth"[i % 5]) : (uint8_t)(state >> 24);
    }
    return data;
}

static packed pack(const uint8_t *data, uint64_t n, fth__wrap wrap, uint64_t piece)
{
    packed p = {.bytes = malloc(MOST)};
    void *block = aligned_alloc(64, (fth__deflate_bytes() + 63) / 64 * 64);
    fth__deflate *d = fth__deflate_begin(block, wrap, collect, &p);
    for (uint64_t at = 0; at < n; at += piece)
        fth__deflate_add(d, data + at, n - at < piece ? n - at : piece);
    IS_TRUE(fth__deflate_end(d));
    free(block);
    return p;
}

/* Unpack with pieces of input and room; the state at the end. */
static fth__inflated unpack(const packed *p, fth__wrap wrap, uint64_t give, uint64_t room,
                            uint8_t *to, uint64_t *made)
{
    void *block = aligned_alloc(64, (fth__inflate_bytes() + 63) / 64 * 64);
    fth__inflate *z = fth__inflate_begin(block, wrap);
    IS_TRUE(z != NULL);
    const uint8_t *in = p->bytes;
    uint64_t left = p->n;
    fth__inflated state = FTH__INFLATE_MORE;
    *made = 0;
    while (state == FTH__INFLATE_MORE) {
        uint64_t n_in = left < give ? left : give, n_out = room;
        const uint64_t was_in = n_in;
        uint8_t *out = to + *made;
        state = fth__inflate_some(z, &in, &n_in, &out, &n_out);
        left -= was_in - n_in;
        *made += room - n_out;
        if (was_in == n_in && n_out == room) break; /* dry */
    }
    if (state == FTH__INFLATE_DAMAGED) IS_TRUE(fth__inflate_why(z) != NULL);
    fth__inflate_end(z);
    free(block);
    return state;
}

TEST(what_is_packed_comes_back)
{
    static const uint64_t sizes[] = {0, 1, 70, 32768, 100000};
    static const uint64_t pieces[] = {1, 1000, MOST};
    uint8_t *back = malloc(MOST + 100000);
    for (int wrap = FTH__WRAP_ZLIB; wrap <= FTH__WRAP_NONE; wrap++)
        for (size_t s = 0; s < 5; s++) {
            uint8_t *data = make_data(sizes[s]);
            packed first = {0};
            for (size_t k = 0; k < 3; k++) {
                packed p = pack(data, sizes[s], (fth__wrap)wrap, pieces[k]);
                uint64_t made = 0;
                EQ_I64(unpack(&p, (fth__wrap)wrap, pieces[k], pieces[2 - k] < 5 ? 100000 : 777,
                              back, &made),
                       FTH__INFLATE_ENDED);
                EQ_U64(made, sizes[s]);
                IS_TRUE(memcmp(back, data, made) == 0);
                IS_TRUE(p.largest <= 32768);
                if (k == 0) { /* the pieces do not show */
                    first = p;
                    continue;
                }
                EQ_U64(p.n, first.n);
                IS_TRUE(memcmp(p.bytes, first.bytes, p.n) == 0);
                free(p.bytes);
            }
            free(first.bytes);
            free(data);
        }
    free(back);
}

/* Others read it: zlib itself, and gzip by its header, which holds no time. */
TEST(the_wraps_are_those_of_the_formats)
{
    uint8_t *data = make_data(5000), back[5000];
    packed p = pack(data, 5000, FTH__WRAP_ZLIB, 5000);
    uLongf n = sizeof back;
    EQ_I64(uncompress(back, &n, p.bytes, (uLong)p.n), Z_OK);
    EQ_I64((int64_t)n, 5000);
    IS_TRUE(memcmp(back, data, 5000) == 0);
    packed g = pack(data, 5000, FTH__WRAP_GZIP, 5000);
    IS_TRUE(memcmp(g.bytes, "\x1f\x8b\x08\0\0\0\0\0", 8) == 0);
    packed r = pack(data, 5000, FTH__WRAP_NONE, 5000);
    EQ_U64(p.n, r.n + 6);
    IS_TRUE(memcmp(p.bytes + 2, r.bytes, r.n) == 0);
    free(p.bytes);
    free(g.bytes);
    free(r.bytes);
    free(data);
}

TEST(damage_is_seen_and_a_cut_ends_dry)
{
    uint8_t *data = make_data(3000), *back = malloc(1 << 20);
    packed p = pack(data, 3000, FTH__WRAP_ZLIB, 3000);
    const uint64_t n = p.n;
    uint64_t made = 0;
    for (p.n = 0; p.n < n; p.n += 37) {
        EQ_I64(unpack(&p, FTH__WRAP_ZLIB, 64, 4096, back, &made), FTH__INFLATE_MORE);
        IS_TRUE(made <= 3000 && memcmp(back, data, made) == 0);
    }
    p.n = n;
    p.bytes[n - 1] ^= 1; /* the checksum */
    EQ_I64(unpack(&p, FTH__WRAP_ZLIB, MOST, 4096, back, &made), FTH__INFLATE_DAMAGED);
    p.bytes[0] ^= 0x40; /* the head */
    EQ_I64(unpack(&p, FTH__WRAP_ZLIB, MOST, 4096, back, &made), FTH__INFLATE_DAMAGED);
    EQ_I64(unpack(&p, FTH__WRAP_GZIP, MOST, 4096, back, &made), FTH__INFLATE_DAMAGED);
    free(p.bytes);
    free(data);
    free(back);
    fth__inflate_end(NULL);
}

TEST(the_checksum_is_that_of_zip)
{
    EQ_U64(fth__crc32(0, "123456789", 9), 0xcbf43926u);
    EQ_U64(fth__crc32(fth__crc32(0, "1234", 4), "56789", 5), 0xcbf43926u);
    EQ_U64(fth__crc32(5, NULL, 0), 5);
}

TEST_MAIN()
