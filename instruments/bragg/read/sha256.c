/* sha256.c - SHA-256 of a file (FIPS 180-4). */
#include "sha256.h"
#include "read.h"

#include <string.h>

enum { BLOCK = 64 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t right(uint32_t v, int n)
{
    return v >> n | v << (32 - n);
}

static void block(uint32_t *h, const unsigned char *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (right(a, 7) ^ right(a, 18) ^ a >> 3) + w[i - 7] +
               (right(b, 17) ^ right(b, 19) ^ b >> 10);
    }
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t s1 = right(e, 6) ^ right(e, 11) ^ right(e, 25);
        const uint32_t s0 = right(a, 2) ^ right(a, 13) ^ right(a, 22);
        const uint32_t t1 = v[7] + s1 + ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
        const uint32_t t2 = s0 + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

/* The remaining bytes, a 1 bit, zeros and the length in bits: one block or two. */
static void last(uint32_t *h, const char *rest, size_t n, uint64_t bytes)
{
    unsigned char end[2 * BLOCK] = {0};
    const size_t size = n + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    memcpy(end, rest, n);
    end[n] = 0x80;
    for (int i = 0; i < 8; i++) end[size - 1 - (size_t)i] = (unsigned char)(bytes * 8 >> 8 * i);
    for (size_t i = 0; i < size; i += BLOCK) block(h, end + i);
}

static fth_status digest(fth_reader *t, uint32_t *h, fth_err *err)
{
    uint64_t bytes = 0;
    for (;;) {
        FTH_TRY(fth_reader_fill(t, BLOCK, err));
        if (t->n - t->at < BLOCK) break;
        for (; t->n - t->at >= BLOCK; t->at += BLOCK, bytes += BLOCK)
            block(h, (const unsigned char *)t->buffer + t->at);
    }
    last(h, t->buffer + t->at, t->n - t->at, bytes + t->n - t->at);
    return FTH_OK;
}

fth_status br_sha256_file(const char *path, fth_mem *mem, char *hex, fth_err *err)
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    fth_reader t;
    FTH_TRY(fth_reader_open(&t, mem, path, BR_AS_WRITTEN, err));
    const fth_status s = digest(&t, h, err);
    fth_reader_close(&t);
    for (int i = 0; s == FTH_OK && i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", (unsigned)h[i]);
    return s;
}
