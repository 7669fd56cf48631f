/* spz.c - models as .spz of Niantic: quantised arrays, one after the other.
 *
 * Versions 2 and 3, one stream of gzip, and version 4, a stream of zstd for each array, are read; 3
 * is written. Its axes are right, up, back: y and z change their sign,
 * and with them parts of rotations and of spherical harmonics.
 */
#include "formats.h"

#include "../file/bytes.h"

#include <fathom/gzip.h>
#include <fathom/zstd.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAGIC = 0x5053474e, HEADER = 16, BATCH = 4096, MOST_BITS = 12, POSITIONS = 9 };
#define COLOUR 0.15 /* what sh0 is scaled with */
#define ROOT_HALF 0.70710678118654752

typedef struct header {
    uint32_t magic, version, n;
    uint8_t degree, bits, flags, zero;
} header;

/* Signs of the coefficients when y and z turn round. */
static const float turn_sh[GS_COEFFICIENTS] = {-1, -1, 1, -1, 1, 1, -1, 1, -1, 1, -1, -1, 1, -1, 1};
static const float turn[3] = {1, -1, -1}; /* of x y z, in positions and in quaternions */

static bool is(const uint8_t *head, uint64_t n, uint64_t size, const char *path)
{
    (void)size, (void)path;
    return (n >= 2 && head[0] == 0x1f && head[1] == 0x8b) ||
           (n >= 4 && memcmp(head, "NGSP", 4) == 0);
}

static int rotation_bytes(uint32_t version)
{
    return version >= 3 ? 4 : 3;
}

static uint64_t row_bytes(const header *h)
{
    return POSITIONS + 1 + 3 + 3 + (uint64_t)rotation_bytes(h->version) +
           3 * (uint64_t)gs_coefficients(h->degree);
}

/* The part that all versions share; `where` is "byte" or "packed byte". */
static fth_status check_header(const header *h, bool packed, const char *path, fth_err *err)
{
    const char *where = packed ? "packed byte" : "byte";
    if (h->magic != MAGIC)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, %s 0: expected the mark of SPZ, 0x%x, found 0x%" PRIx32, path, where,
                        MAGIC, h->magic);
    if (packed ? h->version != 2 && h->version != 3 : h->version != 4) {
        FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s, %s 4: expected SPZ version %s, found %" PRIu32, path,
                 where, packed ? "2 or 3" : "4", h->version);
        fth_err_hint(err, "export it as SPZ version 3, or as PLY");
        return FTH_E_FILE_FEATURE;
    }
    if (h->degree >= GS_DEGREES || h->bits > 24)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, %s 12: expected a degree of 0 to 3 and at most 24 fractional "
                        "bits, found %d and %d",
                        path, where, h->degree, h->bits);
    return FTH_OK;
}

static fth_status open_file(fth_gzip **z, header *h, fth_mem *mem, const char *path, fth_err *err)
{
    FTH_TRY(fth_gzip_open(z, mem, path, err));
    fth_status s = fth_gzip_read(*z, h, HEADER, "the SPZ header", err);
    if (s == FTH_OK) s = check_header(h, true, path, err);
    if (s == FTH_OK && (uint64_t)h->n > fth_gzip_most(*z) / row_bytes(h))
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s, packed byte 8: expected at most %" PRIu64
                     " rows in a file of this size, found a count of %" PRIu32,
                     path, fth_gzip_most(*z) / row_bytes(h), h->n);
    if (s == FTH_OK) return FTH_OK;
    fth_gzip_close(*z);
    *z = NULL;
    return s;
}

/* ---- version 4: the header is not packed, a table says where the streams are ---- */

typedef struct header4 {
    header front; /* its last byte: the number of streams */
    uint32_t table;
    uint8_t zero[12];
} header4;
typedef struct stream {
    uint64_t packed, bytes;
} stream;

/* zstd packs no tighter than 1 to about 30000; what SPZ packs is no constant. */
enum { MOST_RATIO = 1024, STREAMS = GS_ATTRIBUTES };

/* Without coefficients beyond the first, most writers leave their empty stream out. */
static bool is_right_count(const header *h)
{
    return h->zero == STREAMS || (h->degree == 0 && h->zero == STREAMS - 1);
}

/* Behind the table, which is read to `s`; a stream that is left out is one of no bytes. */
static fth_status open_file4(gs_bytes *b, header *h, stream s[STREAMS], fth_mem *mem,
                             const char *path, fth_err *err)
{
    header4 all;
    FTH_TRY(gs_bytes_open(b, mem, path, err));
    fth_status st = gs_bytes_take(b, &all, sizeof all, "the SPZ header", err);
    if (st == FTH_OK) st = check_header(&all.front, false, path, err);
    if (st == FTH_OK && (!is_right_count(&all.front) || all.table < sizeof all))
        st = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                      "%s, byte 15: expected %d streams and their table from byte 32 on, found %d "
                      "and byte %" PRIu32,
                      path, STREAMS, all.front.zero, all.table);
    if (st == FTH_OK && (uint64_t)all.front.n * POSITIONS / MOST_RATIO > b->size)
        st = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                      "%s, byte 8: expected a count that a file of %" PRIu64
                      " bytes can hold, found %" PRIu32,
                      path, b->size, all.front.n);
    if (st == FTH_OK) /* records of extensions are passed over */
        st = gs_bytes_skip(b, all.table - sizeof all, 1, "extensions", err);
    memset(s, 0, STREAMS * sizeof *s);
    if (st == FTH_OK)
        st = gs_bytes_take(b, s, all.front.zero * sizeof *s, "the table of streams", err);
    *h = all.front;
    if (st != FTH_OK) gs_bytes_close(b);
    return st;
}

static bool is_version4(fth_mem *mem, const char *path)
{
    char mark[4] = {0};
    gs_bytes b;
    if (gs_bytes_open(&b, mem, path, NULL) != FTH_OK) return false;
    const bool plain = gs_bytes_take(&b, mark, 4, "its mark", NULL) == FTH_OK;
    gs_bytes_close(&b);
    return plain && memcmp(mark, "NGSP", 4) == 0;
}

static fth_status look(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err)
{
    fth_gzip *z = NULL;
    header h;
    if (is_version4(mem, path)) {
        gs_bytes b;
        stream s[STREAMS];
        FTH_TRY(open_file4(&b, &h, s, mem, path, err));
        gs_bytes_close(&b);
    } else {
        FTH_TRY(open_file(&z, &h, mem, path, err));
    }
    info->n = h.n;
    info->degree = h.degree;
    info->version = (int)h.version;
    fth_gzip_close(z);
    return FTH_OK;
}

/* ---- one row of one array, unpacked and packed ---- */

/* What a row of an array needs to know beside its bytes. */
typedef struct about {
    int bits, degree;
    uint32_t version;
} about;

static void unpack_means(const about *a, const uint8_t *from, float *to)
{
    for (int k = 0; k < 3; k++, from += 3) {
        const uint32_t bits =
            (uint32_t)from[0] << 8 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 24;
        int32_t v;
        memcpy(&v, &bits, sizeof v);
        to[k] = turn[k] * (float)ldexp((double)(v >> 8), -a->bits);
    }
}

static void unpack_opacity(const about *a, const uint8_t *from, float *to)
{
    (void)a;
    *to = gs_logit(*from / 255.0);
}

static void unpack_sh0(const about *a, const uint8_t *from, float *to)
{
    (void)a;
    for (int k = 0; k < 3; k++) to[k] = (float)((from[k] / 255.0 - 0.5) / COLOUR);
}

static void unpack_scaling(const about *a, const uint8_t *from, float *to)
{
    (void)a;
    for (int k = 0; k < 3; k++) to[k] = (float)(from[k] / 16.0 - 10);
}

/* Version 2 has x, y, z and w follows; version 3 the three smallest, ten bits each. */
static void unpack_rotation(const about *a, const uint8_t *from, float *to)
{
    double q[4] = {0}, square = 0; /* x y z w */
    int largest = 3;
    if (a->version >= 3) {
        uint32_t bits = (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
                        (uint32_t)from[3] << 24;
        largest = (int)(bits >> 30);
        for (int k = 3; k >= 0; k--) {
            if (k == largest) continue;
            q[k] = ROOT_HALF * (double)(bits & 511) / 511;
            if (bits >> 9 & 1) q[k] = -q[k];
            bits >>= 10;
        }
    } else {
        for (int k = 0; k < 3; k++) q[k] = from[k] / 127.5 - 1;
    }
    for (int k = 0; k < 4; k++) square += q[k] * q[k];
    q[largest] = square < 1 ? sqrt(1 - square) : 0;
    to[0] = (float)q[3];
    for (int k = 0; k < 3; k++) to[1 + k] = turn[k] * (float)q[k];
}

static void unpack_rest(const about *a, const uint8_t *from, float *to)
{
    for (int i = 0; i < 3 * (int)gs_coefficients(a->degree); i++)
        to[i] = turn_sh[i / 3] * (float)(from[i] - 128) / 128.0f;
}

static uint8_t to_byte(double v)
{
    return v >= 255 ? 255 : v > 0 ? (uint8_t)(v + 0.5) : 0;
}

static void pack_means(const about *a, const float *from, uint8_t *to)
{
    const int32_t most = (1 << 23) - 1;
    for (int k = 0; k < 3; k++, to += 3) {
        const double v = rint(ldexp((double)(turn[k] * from[k]), a->bits));
        const int32_t whole = v > most ? most : v >= -most ? (int32_t)v : -most;
        for (int i = 0; i < 3; i++) to[i] = (uint8_t)((uint32_t)whole >> (8 * i));
    }
}

static void pack_opacity(const about *a, const float *from, uint8_t *to)
{
    (void)a;
    *to = to_byte(255 / (1 + exp(-(double)*from)));
}

static void pack_sh0(const about *a, const float *from, uint8_t *to)
{
    (void)a;
    for (int k = 0; k < 3; k++) to[k] = to_byte((double)from[k] * COLOUR * 255 + 127.5);
}

static void pack_scaling(const about *a, const float *from, uint8_t *to)
{
    (void)a;
    for (int k = 0; k < 3; k++) to[k] = to_byte(((double)from[k] + 10) * 16);
}

static void pack_rotation(const about *a, const float *from, uint8_t *to)
{
    double q[4], norm = 0;
    int largest = 0;
    (void)a;
    for (int k = 0; k < 4; k++) norm += (double)from[k] * (double)from[k];
    norm = norm > 0 ? sqrt(norm) : 1;
    for (int k = 0; k < 3; k++) q[k] = (double)(turn[k] * from[1 + k]) / norm;
    q[3] = (double)from[0] / norm;
    for (int k = 1; k < 4; k++)
        if (fabs(q[k]) > fabs(q[largest])) largest = k;
    uint32_t bits = (uint32_t)largest;
    for (int k = 0; k < 4; k++) {
        if (k == largest) continue;
        const bool negative = (q[k] < 0) != (q[largest] < 0);
        const double size = fmin(511 * fabs(q[k]) / ROOT_HALF + 0.5, 511);
        bits = bits << 10 | (uint32_t)negative << 9 | (uint32_t)size;
    }
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(bits >> (8 * i));
}

/* Steps of 8 for the first degree, of 16 above it. */
static void pack_rest(const about *a, const float *from, uint8_t *to)
{
    for (int i = 0; i < 3 * (int)gs_coefficients(a->degree); i++) {
        const int step = i < 9 ? 8 : 16;
        const double v = fmin(fmax((double)(turn_sh[i / 3] * from[i]) * 128, -1000), 1000);
        const int q = (int)floor((rint(v) + 128 + step / 2.0) / step) * step;
        to[i] = (uint8_t)(q > 255 ? 255 : q < 0 ? 0 : q);
    }
}

/* The arrays in their order in the file. */
static const struct array {
    gs_attribute attribute;
    void (*unpack)(const about *a, const uint8_t *from, float *to);
    void (*pack)(const about *a, const float *from, uint8_t *to);
} arrays[GS_ATTRIBUTES] = {
    {GS_MEANS, unpack_means, pack_means},
    {GS_OPACITY, unpack_opacity, pack_opacity},
    {GS_SH_0, unpack_sh0, pack_sh0},
    {GS_SCALING, unpack_scaling, pack_scaling},
    {GS_ROTATION, unpack_rotation, pack_rotation},
    {GS_SH_N, unpack_rest, pack_rest},
};

static uint64_t packed_bytes(gs_attribute attribute, const about *a)
{
    if (attribute == GS_MEANS) return POSITIONS;
    if (attribute == GS_ROTATION) return (uint64_t)rotation_bytes(a->version);
    return (uint64_t)gs_columns(attribute, a->degree);
}

/* ---- whole files ---- */

/* One stream, unpacked whole. */
static fth_status load_stream(gs_model *m, gs_bytes *b, const about *a, int i, const stream *s,
                              fth_err *err)
{
    const gs_attribute at = arrays[i].attribute;
    const uint64_t each = packed_bytes(at, a), bytes = (uint64_t)m->n * each;
    const int64_t columns = gs_columns(at, a->degree);
    void *block = NULL;
    if (s->bytes != bytes || s->packed > b->size - b->at)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, byte %" PRIu64 ": %s: expected a stream of %" PRIu64
                        " bytes inside the file, found one of %" PRIu64 ", packed as %" PRIu64,
                        b->path, b->at, gs_attribute_names[at], bytes, s->bytes, s->packed);
    if (bytes == 0) return gs_bytes_skip(b, s->packed, 1, gs_attribute_names[at], err);
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, bytes + s->packed, "a stream", &block, err));
    uint8_t *plain = block, *packed = plain + bytes;
    fth_status st = gs_bytes_take(b, packed, s->packed, gs_attribute_names[at], err);
    if (st == FTH_OK) st = fth_zstd_unpack(m->mem, b->path, packed, s->packed, plain, bytes, err);
    for (int64_t g = 0; st == FTH_OK && g < m->n; g++)
        arrays[i].unpack(a, plain + (uint64_t)g * each, m->at[at] + g * columns);
    (void)fth_mem_release(m->mem, block, NULL);
    return st;
}

static fth_status load4(gs_model *m, fth_mem *mem, const char *path, fth_err *err)
{
    gs_bytes b;
    stream s[STREAMS];
    header h;
    FTH_TRY(open_file4(&b, &h, s, mem, path, err));
    const about a = {h.bits, h.degree, h.version};
    fth_status st = gs_model_create(m, mem, h.n, h.degree, err);
    for (int i = 0; st == FTH_OK && i < STREAMS; i++) st = load_stream(m, &b, &a, i, &s[i], err);
    if (st == FTH_OK) st = gs_bytes_end(&b, "the last stream", err);
    gs_bytes_close(&b);
    return st;
}

static fth_status load(gs_model *m, fth_mem *mem, const char *path, fth_err *err)
{
    if (is_version4(mem, path)) return load4(m, mem, path, err);
    uint8_t batch[BATCH];
    fth_gzip *z = NULL;
    header h;
    FTH_TRY(open_file(&z, &h, mem, path, err));
    const about a = {h.bits, h.degree, h.version};
    fth_status s = gs_model_create(m, mem, h.n, h.degree, err);
    for (int i = 0; s == FTH_OK && i < GS_ATTRIBUTES; i++) {
        const gs_attribute at = arrays[i].attribute;
        const uint64_t bytes = packed_bytes(at, &a);
        const int64_t columns = gs_columns(at, a.degree),
                      most = bytes ? (int64_t)(BATCH / bytes) : m->n;
        for (int64_t g = 0; s == FTH_OK && bytes > 0 && g < m->n; g += most) {
            const int64_t n = m->n - g < most ? m->n - g : most;
            s = fth_gzip_read(z, batch, (uint64_t)n * bytes, gs_attribute_names[at], err);
            for (int64_t k = 0; s == FTH_OK && k < n; k++)
                arrays[i].unpack(&a, batch + (uint64_t)k * bytes, m->at[at] + (g + k) * columns);
        }
    }
    if (s == FTH_OK) s = fth_gzip_finish(z, err);
    fth_gzip_close(z);
    return s;
}

/* As many fractional bits as leave room for the farthest position; -1: none do. */
static int fractional_bits(const gs_model *m)
{
    double most = 0;
    for (int64_t i = 0; i < 3 * m->n; i++) {
        const double v = fabs((double)m->at[GS_MEANS][i]);
        if (!(v < (1 << 23) - 1)) return -1;
        if (v > most) most = v;
    }
    int bits = MOST_BITS;
    while (bits > 0 && ldexp(most, bits) > (1 << 23) - 1) bits--;
    return bits;
}

static fth_status write_all(const gs_model *m, fth_gzip_writer *w, int bits, fth_err *err)
{
    uint8_t batch[BATCH];
    const header h = {.magic = MAGIC,
                      .version = 3,
                      .n = (uint32_t)m->n,
                      .degree = (uint8_t)m->degree,
                      .bits = (uint8_t)bits};
    const about a = {bits, m->degree, h.version};
    FTH_TRY(fth_gzip_write(w, &h, HEADER, err));
    for (int i = 0; i < GS_ATTRIBUTES; i++) {
        const gs_attribute at = arrays[i].attribute;
        const uint64_t bytes = packed_bytes(at, &a);
        const int64_t columns = gs_columns(at, a.degree);
        uint64_t used = 0;
        for (int64_t g = 0; bytes > 0 && g < m->n; g++) {
            arrays[i].pack(&a, m->at[at] + g * columns, batch + used);
            used += bytes;
            if (g + 1 < m->n && used + bytes <= BATCH) continue;
            FTH_TRY(fth_gzip_write(w, batch, used, err));
            used = 0;
        }
    }
    return FTH_OK;
}

static fth_status save(const gs_model *m, const char *path, fth_err *err)
{
    const int bits = fractional_bits(m);
    fth_gzip_writer *w = NULL;
    if (bits < 0)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: SPZ holds positions below 8388607, the model has larger ones", path);
    if (m->n > UINT32_MAX)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: SPZ holds fewer than 2^32 rows, not %" PRId64,
                        path, m->n);
    FTH_TRY(fth_gzip_create(&w, m->mem, path, err));
    const fth_status s = write_all(m, w, bits, err);
    if (s == FTH_OK) return fth_gzip_commit(w, err);
    fth_gzip_abandon(w);
    return s;
}

const gs_format_row gs_spz_format = {"SPZ", ".spz", is, look, load, save};
