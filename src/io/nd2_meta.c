/* nd2_meta.c - what an ND2 file says of its pictures: size, type, calibration, channels, objective.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/nd2.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const part_names[FTH__ND2_PARTS] = {[FTH__ND2_ATTRIBUTES] = "ImageAttributesLV!",
                                                       [FTH__ND2_EXPERIMENT] = "ImageMetadataLV!",
                                                       [FTH__ND2_PICTURE] = "ImageMetadataSeqLV|0!",
                                                       [FTH__ND2_TEXT] = "ImageTextInfoLV!",
                                                       [FTH__ND2_TIMES] =
                                                           "CustomData|AcqTimesCache!",
                                                       [FTH__ND2_X] = "CustomData|X!",
                                                       [FTH__ND2_Y] = "CustomData|Y!",
                                                       [FTH__ND2_Z] = "CustomData|Z1!"};

const char *fth__nd2_part_name(fth__nd2_part part)
{
    FTH_ASSERT((unsigned)part < FTH__ND2_PARTS);
    return part_names[part];
}

/* ---- pixels ---- */

fth_status fth__nd2_attributes_read(fth__nd2_meta *m, fth__lv root, const char *path, fth_err *err)
{
    /* Far above any camera and any filter set: a damaged file must not claim terabytes. */
    enum { LONGEST = 1 << 24, MOST_COMPONENTS = 1 << 10 };
    static const char *const lossy = "the pictures were packed with loss, which is not read";
    const fth__lv a = fth__lv_level(root, "SLxImageAttributes");
    m->width = fth__lv_i64(a, "uiWidth", 0);
    m->height = fth__lv_i64(a, "uiHeight", 0);
    m->components = fth__lv_i64(a, "uiComp", 1);
    m->sequences = fth__max_i64(fth__lv_i64(a, "uiSequenceCount", 0), 0);
    m->bits = (int)fth__min_i64(fth__max_i64(fth__lv_i64(a, "uiBpcInMemory", 0), 0), 1000);
    const int64_t significant = fth__lv_i64(a, "uiBpcSignificant", 0);
    m->significant = significant > 0 && significant <= m->bits ? (int)significant : m->bits;
    const int64_t packing = fth__lv_i64(a, "eCompression", 2);
    m->packed = packing == 0;
    if (m->width < 1 || m->height < 1 || m->components < 1 || m->width > LONGEST ||
        m->height > LONGEST || m->components > MOST_COMPONENTS)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: %s says that a picture has %" PRId64 " x %" PRId64
                        " pixels of %" PRId64 " components",
                        path, part_names[FTH__ND2_ATTRIBUTES], m->height, m->width, m->components);
    if (m->bits != 8 && m->bits != 16 && m->bits != 32)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE,
                        "%s: components have %d bits in memory; 8, 16 and 32 are read", path,
                        m->bits);
    if (packing == 1) {
        (void)FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: %s", path, lossy);
        fth_err_hint(err, "save it without compression in NIS-Elements, or as TIFF");
        return FTH_E_FILE_FEATURE;
    }
    const uint64_t needed = (uint64_t)(m->width * m->components) * (uint64_t)(m->bits / 8);
    const int64_t row = fth__lv_i64(a, "uiWidthBytes", 0);
    m->row_bytes = row > 0 ? (uint64_t)row : (needed + 3) / 4 * 4;
    if (m->row_bytes < needed || m->row_bytes > needed + (1 << 20))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: %s says that a row has %" PRIu64 " bytes; %" PRId64
                        " pixels of %" PRId64 " components need %" PRIu64,
                        path, part_names[FTH__ND2_ATTRIBUTES], m->row_bytes, m->width,
                        m->components, needed);
    return FTH_OK;
}

/* ---- channels ---- */

void fth__nd2_meta_clear(fth__nd2_meta *m)
{
    for (int64_t i = 0; i < m->n_channels; i++) fth__heap_free(m->mem, m->channel[i]);
    fth__heap_free(m->mem, m->channel);
    fth__heap_free(m->mem, m->objective);
    fth__heap_free(m->mem, m->description);
    m->channel = NULL;
    m->objective = m->description = NULL;
    m->n_channels = 0;
}

static fth_status keep(char *text, char **to, fth_err *err)
{
    *to = text;
    return text ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory for the metadata of an ND2 file");
}

/* Each component has a name: that of its plane, or its colour where one plane is a colour picture.
 */
static fth_status read_channels(fth__nd2_meta *m, fth__lv picture, fth_err *err)
{
    static const char *const colours[3] = {"red", "green", "blue"};
    void *block = NULL;
    FTH_TRY(fth__heap_take(m->mem, m->components, sizeof *m->channel, &block, err));
    m->channel = block;
    fth__lv planes = fth__lv_level(picture, "sPicturePlanes/sPlaneNew");
    if (!planes.at) planes = fth__lv_level(picture, "sPicturePlanes/sPlane");
    fth__lv_item item;
    while (m->n_channels < m->components && fth__lv_next(&planes, &item)) {
        const fth__lv plane = fth__lv_inside(&item);
        if (!plane.at) continue;
        const int64_t parts = fth__max_i64(fth__lv_i64(plane, "uiCompCount", 1), 1);
        m->rgb = m->n_channels == 0 && parts == 3 && m->components == 3;
        for (int64_t i = 0; i < parts && m->n_channels < m->components; i++) {
            FTH_ASSERT(!m->rgb || i < 3);
            char *name = m->rgb ? fth__heap_strdup(m->mem, colours[i])
                                : fth__lv_text(plane, "sDescription", m->mem);
            FTH_TRY(keep(name, &m->channel[m->n_channels], err));
            m->n_channels++;
        }
    }
    while (m->n_channels < m->components) {
        FTH_TRY(keep(fth__heap_strdup(m->mem, ""), &m->channel[m->n_channels], err));
        m->n_channels++;
    }
    return FTH_OK;
}

/* ---- the rest ---- */

static double finite_or(double v, double otherwise)
{
    return isfinite(v) ? v : otherwise;
}

/* 60 of "Plan Apo 60x Oil"; 0: no such thing in it. */
static double find_magnification(const char *text)
{
    for (const char *s = text; *s; s++) {
        if (*s < '0' || *s > '9') continue;
        double v = 0;
        for (; *s >= '0' && *s <= '9' && v < 1e6; s++) v = 10 * v + (*s - '0');
        if (*s == 'x' || *s == 'X') return v;
        if (!*s) break;
    }
    return 0;
}

fth_status fth__nd2_picture_read(fth__nd2_meta *m, fth__lv picture, fth__lv text, fth_err *err)
{
    const double scale = fth__lv_f64(picture, "dCalibration", 0);
    const bool known = fth__lv_i64(picture, "bCalibrated", 1) != 0;
    m->um_per_px = known && isfinite(scale) && scale > 0 ? scale : 0;
    m->julian_day = finite_or(fth__lv_f64(picture, "dTimeAbsolute", 0), 0);
    m->x = fth__lv_f64(picture, "dXPos", (double)NAN);
    m->y = fth__lv_f64(picture, "dYPos", (double)NAN);
    m->z = fth__lv_f64(picture, "dZPos", (double)NAN);
    FTH_TRY(read_channels(m, picture, err));
    FTH_TRY(keep(fth__lv_text(picture, "wsObjectiveName", m->mem), &m->objective, err));
    FTH_TRY(keep(fth__lv_text(text, "TextInfoItem_5", m->mem), &m->description, err));
    m->magnification = finite_or(fth__lv_f64(picture, "dObjectiveMag", 0), 0);
    if (m->magnification <= 0) {
        char *optics = NULL;
        FTH_TRY(keep(fth__lv_text(text, "TextInfoItem_13", m->mem), &optics, err));
        m->magnification = find_magnification(optics);
        fth__heap_free(m->mem, optics);
        if (m->magnification <= 0) m->magnification = find_magnification(m->objective);
    }
    return FTH_OK;
}
