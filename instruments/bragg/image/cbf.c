/* cbf.c - one image of a CBF file, as pixel array detectors write it.
 *
 * Byte offset packing: each pixel is its difference from the one before, in one byte if that is
 * enough, else after an escape in two, else after another in four. The length of the packed pixels
 * precedes them, so they are read twice.
 */
#include "cbf.h"

#include "../console/notices.h"

#include <string.h>

enum { TEXT = 4096, PADDING = 4095, PIXEL_MOST = 7 };

static size_t pack(int64_t delta, unsigned char *to)
{
    const uint64_t d = (uint64_t)delta;
    if (delta >= -127 && delta <= 127) {
        to[0] = (unsigned char)d;
        return 1;
    }
    to[0] = 0x80;
    const bool two = delta >= -32767 && delta <= 32767;
    const uint64_t first = two ? d : 0x8000;
    to[1] = (unsigned char)first;
    to[2] = (unsigned char)(first >> 8);
    if (two) return 3;
    for (int i = 0; i < 4; i++) to[3 + i] = (unsigned char)(d >> 8 * i);
    return 7;
}

typedef struct packer {
    const br_experiment *e;
    const fth_source *pixels;
    void *block;
    int32_t *row;
    unsigned char *packed;
    int32_t last; /* pixel before this row */
} packer;

static fth_status pack_row(packer *p, int64_t slow, int64_t *bytes, fth_err *err)
{
    const int64_t n = p->e->scene.fast;
    FTH_TRY(
        p->pixels->read(p->pixels->self, ((int64_t[]){slow, 0}), ((int64_t[]){1, n}), p->row, err));
    size_t at = 0;
    if (slow == 0) p->last = 0;
    for (int64_t i = 0; i < n; i++) {
        at += pack((int64_t)p->row[i] - p->last, p->packed + at);
        p->last = p->row[i];
    }
    *bytes = (int64_t)at;
    return FTH_OK;
}

/* The header of detectors of this kind: the fields that readers expect. GENERIC_MINI is the name
 * for simulated images: with the name of a real detector ("SLS_1.0") DIALS looks for its modules.
 * The fields cannot describe a curved detector, so it gets a name that DIALS does not know. */
static int write_text(const br_experiment *e, char *text, size_t bytes, int64_t packed)
{
    const br_scene *s = &e->scene;
    const br_hit hit = br_beam_hit(e);
    const double sign = 180.0 / 3.14159265358979323846;
    char sensor[80] = ""; /* without a thickness there is no sensor line: readers divide by it */
    if (s->thickness > 0)
        snprintf(sensor, sizeof sensor, "# %s sensor, thickness %g m\r\n",
                 strcmp(e->material, "Si") == 0 ? "Silicon" : e->material, s->thickness);
    const char *kind = s->curved ? "FATHOM_CURVED" : "GENERIC_MINI";
    const char *curved = s->curved ? "# Fathom_note " BR_CURVED_NOTE "\r\n" : "";
    return snprintf(text, bytes,
                    "###CBF: VERSION 1.5\r\n"
                    "\r\n"
                    "data_image\r\n"
                    "\r\n"
                    "_array_data.header_convention \"%s\"\r\n"
                    "_array_data.header_contents\r\n"
                    ";\r\n"
                    "# Detector: simulated by Fathom bragg %s\r\n"
                    "# Pixel_size %g m x %g m\r\n"
                    "%s"
                    "# Exposure_time %g s\r\n"
                    "# Exposure_period %g s\r\n"
                    "# Count_cutoff %d counts\r\n"
                    "# Wavelength %.8g A\r\n"
                    "# Detector_distance %.8g m\r\n"
                    "# Beam_xy (%.4f, %.4f) pixels\r\n"
                    "# Flux %g\r\n"
                    "# Start_angle %.6f deg.\r\n"
                    "# Angle_increment %.6f deg.\r\n"
                    "# Detector_2theta %.6f deg.\r\n"
                    "# Polarization %g\r\n"
                    "# Fathom_quirks 0x%x\r\n"
                    "%s"
                    ";\r\n"
                    "\r\n"
                    "_array_data.data\r\n"
                    ";\r\n"
                    "--CIF-BINARY-FORMAT-SECTION--\r\n"
                    "Content-Type: application/octet-stream;\r\n"
                    "     conversions=\"x-CBF_BYTE_OFFSET\"\r\n"
                    "Content-Transfer-Encoding: BINARY\r\n"
                    "X-Binary-Size: %lld\r\n"
                    "X-Binary-ID: 1\r\n"
                    "X-Binary-Element-Type: \"signed 32-bit integer\"\r\n"
                    "X-Binary-Element-Byte-Order: LITTLE_ENDIAN\r\n"
                    "X-Binary-Number-of-Elements: %lld\r\n"
                    "X-Binary-Size-Fastest-Dimension: %lld\r\n"
                    "X-Binary-Size-Second-Dimension: %lld\r\n"
                    "X-Binary-Size-Padding: %d\r\n"
                    "\r\n"
                    "\x0c\x1a\x04\xd5",
                    kind, fth_version(), s->pixel, s->pixel, sensor, e->exposure, e->exposure,
                    INT32_MAX - 1, e->placed.lambda.v * 1e10, hit.distance, hit.fast, hit.slow,
                    e->flux, e->param[BR_PHI] * sign, e->osc * sign, e->param[BR_TT] * sign,
                    s->kahn, s->quirks, curved, (long long)packed, (long long)(s->fast * s->slow),
                    (long long)s->fast, (long long)s->slow, PADDING);
}

static fth_status put(const fth_sink *sink, int64_t *at, const void *bytes, int64_t n, fth_err *err)
{
    const fth_status s = sink->write(sink->self, at, &n, bytes, err);
    *at += n;
    return s;
}

static fth_status write_file(packer *p, fth_sink *out, const char *path, fth_err *err)
{
    static const char end[] = "\r\n--CIF-BINARY-FORMAT-SECTION----\r\n;\r\n\r\n";
    const int64_t rows = p->e->scene.slow;
    char text[TEXT], zeros[PADDING] = {0};
    int64_t packed = 0, at = 0, bytes = 0;
    for (int64_t i = 0; i < rows; i++, packed += bytes) FTH_TRY(pack_row(p, i, &bytes, err));
    const int head = write_text(p->e, text, sizeof text, packed);
    if (head < 0 || head >= TEXT)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: its header would be longer than %d bytes", path,
                        (int)TEXT);
    const int64_t tail = (int64_t)sizeof end - 1;
    const fth_raw_layout layout = {
        .dtype = FTH_U8, .n_axes = 1, .size = {packed + PADDING + tail}, .offset = (uint64_t)head};
    FTH_TRY(fth_raw_create(out, p->e->mem, path, &layout, text, err));
    for (int64_t i = 0; i < rows; i++) {
        FTH_TRY(pack_row(p, i, &bytes, err));
        FTH_TRY(put(out, &at, p->packed, bytes, err));
    }
    FTH_TRY(put(out, &at, zeros, PADDING, err));
    return put(out, &at, end, tail, err);
}

uint64_t br_cbf_bytes(const br_experiment *e)
{
    return (uint64_t)e->scene.fast * (sizeof(int32_t) + PIXEL_MOST);
}

fth_status br_cbf_write(fth_sink *out, const char *path, const br_experiment *e,
                        const fth_source *pixels, fth_err *err)
{
    const uint64_t n = (uint64_t)e->scene.fast;
    packer p = {.e = e, .pixels = pixels};
    *out = (fth_sink){0};
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_ANY, br_cbf_bytes(e), "row of a CBF", &p.block, err));
    p.row = p.block;
    p.packed = (unsigned char *)(p.row + n);
    const fth_status s = write_file(&p, out, path, err);
    if (s != FTH_OK) fth_sink_close(out);
    (void)fth_mem_release(e->mem, p.block, NULL);
    return s;
}
