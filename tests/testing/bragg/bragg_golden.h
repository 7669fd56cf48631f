/* testing/bragg/bragg_golden.h - the golden cases of the bragg instrument, and SHA-256 to compare
 * with.
 *
 * manifest.json holds for every case its arguments and the hash of each of its files, also of those
 * that are not kept.
 */
#ifndef FATHOM_TESTING_BRAGG_GOLDEN_H
#define FATHOM_TESTING_BRAGG_GOLDEN_H

#include "testing/io/files.h"

#include <jansson.h>

#define BG_PUBLIC "tests/golden/bragg/public/"
#define BG_INPUTS "tests/golden/bragg/inputs/"
enum { BG_CASES = 45, BG_WORDS = 80 };

typedef struct bg_case {
    const char *name, *args;
    int64_t pixels;
    double sum, max;
    const char *sha_int, *sha_noise, *sha_pgm;
} bg_case;

typedef struct bg_manifest {
    json_t *root; /* owns the texts */
    bg_case at[BG_CASES];
} bg_manifest;

static inline bg_manifest bg_open(void)
{
    bg_manifest m = {0};
    json_error_t e;
    m.root = json_load_file(BG_PUBLIC "manifest.json", 0, &e);
    if (!m.root || json_array_size(m.root) != BG_CASES) FAIL("manifest: %s", e.text);
    for (size_t i = 0; i < BG_CASES; i++) {
        const json_t *c = json_array_get(m.root, i);
        m.at[i] = (bg_case){.name = json_string_value(json_object_get(c, "name")),
                            .args = json_string_value(json_object_get(c, "args")),
                            .pixels = json_integer_value(json_object_get(c, "n")),
                            .sum = json_number_value(json_object_get(c, "sum")),
                            .max = json_number_value(json_object_get(c, "max")),
                            .sha_int = json_string_value(json_object_get(c, "sha256_int")),
                            .sha_noise = json_string_value(json_object_get(c, "sha256_noise")),
                            .sha_pgm = json_string_value(json_object_get(c, "sha256_pgm"))};
    }
    return m;
}

static inline void bg_close(bg_manifest *m)
{
    json_decref(m->root);
}

/* The words of a command line, in `text`, which is a copy. */
static inline int bg_words(const char *args, char *text, size_t bytes, char *word[BG_WORDS])
{
    int n = 0;
    snprintf(text, bytes, "%s", args);
    for (char *t = strtok(text, " "); t && n < BG_WORDS; t = strtok(NULL, " ")) word[n++] = t;
    return n;
}

/* A file of a case: "p01_simple_cubic" ".int.img". NULL when it is not kept. */
static inline unsigned char *bg_file(const bg_case *c, const char *ending, size_t *bytes)
{
    char path[300];
    snprintf(path, sizeof path, BG_PUBLIC "%s%s", c->name, ending);
    return t_file_exists(path) ? t_file_read(path, bytes) : NULL;
}

/* ---- SHA-256 (FIPS 180-4) ---- */

static inline uint32_t bg_ror(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static inline void bg_sha_block(uint32_t h[8], const unsigned char *p)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (bg_ror(w[i - 15], 7) ^ bg_ror(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (bg_ror(w[i - 2], 17) ^ bg_ror(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t s1 = bg_ror(v[4], 6) ^ bg_ror(v[4], 11) ^ bg_ror(v[4], 25);
        const uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
        const uint32_t s0 = bg_ror(v[0], 2) ^ bg_ror(v[0], 13) ^ bg_ror(v[0], 22);
        const uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

/* 64 hexadecimal digits into `text`; returns it. */
static inline const char *bg_sha256(const void *data, size_t bytes, char text[65])
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const unsigned char *p = data;
    unsigned char end[128] = {0};
    const size_t left = bytes % 64, tail = left < 56 ? 64 : 128;
    for (size_t i = 0; i + 64 <= bytes; i += 64) bg_sha_block(h, p + i);
    memcpy(end, p + (bytes - left), left);
    end[left] = 0x80;
    for (int i = 0; i < 8; i++)
        end[tail - 1 - (size_t)i] = (unsigned char)((uint64_t)bytes * 8 >> 8 * i);
    for (size_t i = 0; i < tail; i += 64) bg_sha_block(h, end + i);
    for (int i = 0; i < 8; i++) snprintf(text + 8 * i, 9, "%08x", h[i]);
    return text;
}

#endif
