/* nd2_write_meta.c - the trees of metadata of an ND2 file that is written.
 *
 * Keys and their types are those of files from microscopes. A plane needs a probe, or a public
 * reader refuses the file.
 */
#include "base/assert.h"
#include "io/nd2.h"

#include <math.h>
#include <string.h>

uint64_t fth__nd2_row_bytes(const fth_nd2_options *o)
{
    const uint64_t unit = o->row_multiple > 0 ? (uint64_t)o->row_multiple : 4;
    const uint64_t bytes = (uint64_t)(o->size[FTH_IMAGES_C] * o->size[FTH_IMAGES_X]) *
                           (uint64_t)fth_dtype_size(o->dtype);
    return (bytes + unit - 1) / unit * unit;
}

static void put_attributes(fth__lv_writer *w, const fth_nd2_options *o)
{
    const int64_t bits = 8 * fth_dtype_size(o->dtype), c = o->size[FTH_IMAGES_C];
    fth__lv_open(w, "SLxImageAttributes");
    fth__lv_put_u32(w, "uiWidth", o->size[FTH_IMAGES_X]);
    fth__lv_put_u32(w, "uiWidthBytes", (int64_t)fth__nd2_row_bytes(o));
    fth__lv_put_u32(w, "uiHeight", o->size[FTH_IMAGES_Y]);
    fth__lv_put_u32(w, "uiComp", c);
    fth__lv_put_u32(w, "uiBpcInMemory", bits);
    fth__lv_put_u32(w, "uiBpcSignificant", o->significant_bits > 0 ? o->significant_bits : bits);
    fth__lv_put_u32(w, "uiSequenceCount",
                    o->size[FTH_IMAGES_T] * o->size[FTH_IMAGES_P] * o->size[FTH_IMAGES_Z]);
    fth__lv_put_u32(w, "uiTileWidth", o->size[FTH_IMAGES_X]);
    fth__lv_put_u32(w, "uiTileHeight", o->size[FTH_IMAGES_Y]);
    fth__lv_put_i32(w, "eCompression", o->packed ? 0 : 2);
    fth__lv_put_f64(w, "dCompressionParam", 0);
    fth__lv_put_i32(w, "ePixelType", o->dtype == FTH_F32 ? 2 : 1);
    fth__lv_put_u32(w, "uiVirtualComponents", c);
    fth__lv_close(w);
}

/* ---- loops ---- */

static void put_time_loop(fth__lv_writer *w, const fth_nd2_options *o)
{
    fth__lv_put_u32(w, "uiCount", o->size[FTH_IMAGES_T]);
    fth__lv_put_f64(w, "dStart", 0);
    fth__lv_put_f64(w, "dPeriod", o->period_ms);
    fth__lv_put_f64(w, "dDuration", o->period_ms * (double)o->size[FTH_IMAGES_T]);
    fth__lv_put_f64(w, "dMinPeriodDiff", 0);
    fth__lv_put_f64(w, "dMaxPeriodDiff", 0);
    fth__lv_put_f64(w, "dAvgPeriodDiff", 0);
}

static double known_or_0(double v)
{
    return isnan(v) ? 0 : v;
}

static void put_position_loop(fth__lv_writer *w, const fth_nd2_options *o)
{
    bool use_z = o->position != NULL;
    for (int64_t i = 0; use_z && i < o->size[FTH_IMAGES_P]; i++)
        use_z = !isnan(o->position[i].z_um);
    fth__lv_put_u32(w, "uiCount", o->size[FTH_IMAGES_P]);
    fth__lv_put_bool(w, "bUseZ", use_z);
    fth__lv_put_bool(w, "bRelativeXY", false);
    fth__lv_put_f64(w, "dReferenceX", 0);
    fth__lv_put_f64(w, "dReferenceY", 0);
    fth__lv_open(w, "Points");
    for (int64_t i = 0; i < o->size[FTH_IMAGES_P]; i++) {
        static const fth_images_position none = {0};
        const fth_images_position *at = o->position ? &o->position[i] : &none;
        fth__lv_open(w, "");
        fth__lv_put_f64(w, "dPosX", known_or_0(at->x_um));
        fth__lv_put_f64(w, "dPosY", known_or_0(at->y_um));
        fth__lv_put_f64(w, "dPosZ", known_or_0(at->z_um));
        fth__lv_put_f64(w, "dPFSOffset", -1);
        fth__lv_put_text(w, "dPosName", at->name);
        fth__lv_close(w);
    }
    fth__lv_close(w);
}

static void put_stack_loop(fth__lv_writer *w, const fth_nd2_options *o)
{
    const int64_t n = o->size[FTH_IMAGES_Z], home = (n - 1) / 2;
    fth__lv_put_u32(w, "uiCount", n);
    fth__lv_put_f64(w, "dZLow", -(double)home * o->z_step_um);
    fth__lv_put_f64(w, "dZHigh", (double)(n - 1 - home) * o->z_step_um);
    fth__lv_put_f64(w, "dZStep", o->z_step_um);
    fth__lv_put_f64(w, "dZHome", 0);
    fth__lv_put_bool(w, "bZInverted", false);
    fth__lv_put_i32(w, "iType", 2); /* from below; home lies as far from the lowest plane */
    fth__lv_put_text(w, "wsZDevice", "Z");
}

/* In the order of fth_images_axis. */
static const struct loop {
    int64_t type;
    void (*put)(fth__lv_writer *w, const fth_nd2_options *o);
} loops[3] = {{1, put_time_loop}, {2, put_position_loop}, {4, put_stack_loop}};

/* Does the experiment loop over it? Positions are told even when there is one. */
static bool is_loop(const fth_nd2_options *o, int axis)
{
    return o->size[axis] > 1 || (axis == FTH_IMAGES_P && o->position);
}

static int next_loop(const fth_nd2_options *o, const char **order)
{
    static const char names[] = "tpz";
    for (; **order; (*order)++) {
        const char *at = strchr(names, **order);
        FTH_ASSERT(at); /* fth_nd2_write refuses other letters */
        const int axis = (int)(at - names);
        if (is_loop(o, axis)) return axis;
    }
    return -1;
}

static void put_experiment(fth__lv_writer *w, const fth_nd2_options *o)
{
    const char *order = o->order ? o->order : "tpz";
    int depth = 0;
    for (int axis = next_loop(o, &order); axis >= 0; depth++) {
        fth__lv_open(w, depth == 0 ? "SLxExperiment" : "");
        fth__lv_put_u32(w, "eType", loops[axis].type);
        fth__lv_open(w, "uLoopPars");
        loops[axis].put(w, o);
        fth__lv_close(w);
        fth__lv_put_ones(w, "pItemValid", o->size[axis]);
        order++;
        axis = next_loop(o, &order);
        fth__lv_put_u32(w, "uiNextLevelCount", axis >= 0);
        if (axis >= 0) fth__lv_open(w, "ppNextLevelEx");
    }
    for (int i = 0; i < depth; i++) {
        if (i > 0) fth__lv_close(w);
        fth__lv_close(w);
    }
}

/* ---- pictures ---- */

static void put_plane(fth__lv_writer *w, const fth_nd2_options *o, int64_t i)
{
    char key[24], name[40];
    snprintf(key, sizeof key, "a%d", (int)i);
    snprintf(name, sizeof name, "channel %d", (int)i + 1);
    fth__lv_open(w, key);
    fth__lv_put_u32(w, "uiCompCount", o->rgb ? 3 : 1);
    fth__lv_put_u32(w, "uiSampleIndex", i);
    fth__lv_put_text(w, "sDescription", o->channel ? o->channel[i] : name);
    fth__lv_open(w, "pFluorescentProbe");
    fth__lv_put_u32(w, "m_uiColor", 0);
    fth__lv_close(w);
    fth__lv_put_u32(w, "uiColor", 0xffffff);
    fth__lv_put_u32(w, "uiModalityMask", 1);
    fth__lv_close(w);
}

static void put_picture(fth__lv_writer *w, const fth_nd2_options *o)
{
    static const fth_images_position none = {0};
    const fth_images_position *at = o->position ? o->position : &none;
    const int64_t planes = o->rgb ? 1 : o->size[FTH_IMAGES_C];
    fth__lv_open(w, "SLxPictureMetadata");
    fth__lv_put_f64(w, "dTimeMSec", o->time_ms ? o->time_ms[0] : 0);
    fth__lv_put_f64(w, "dTimeAbsolute", o->unix_seconds / 86400 + 2440587.5);
    fth__lv_put_f64(w, "dXPos", known_or_0(at->x_um));
    fth__lv_put_f64(w, "dYPos", known_or_0(at->y_um));
    fth__lv_put_f64(w, "dZPos", known_or_0(at->z_um));
    fth__lv_put_bool(w, "bCalibrated", o->um_per_px > 0);
    fth__lv_put_f64(w, "dCalibration", o->um_per_px > 0 ? o->um_per_px : 1);
    fth__lv_put_f64(w, "dAspect", 1);
    fth__lv_put_f64(w, "dObjectiveMag", o->magnification > 0 ? o->magnification : -1);
    fth__lv_put_f64(w, "dObjectiveNA", -1);
    fth__lv_put_text(w, "wsObjectiveName", o->objective);
    fth__lv_put_f64(w, "dZoom", 1);
    fth__lv_put_u32(w, "ePictureXAxis", 1);
    fth__lv_put_u32(w, "ePictureYAxis", 1);
    fth__lv_open(w, "sPicturePlanes");
    fth__lv_put_u32(w, "uiCount", planes);
    fth__lv_put_u32(w, "uiSampleCount", planes);
    fth__lv_open(w, "sPlaneNew");
    for (int64_t i = 0; i < planes; i++) put_plane(w, o, i);
    fth__lv_close(w);
    fth__lv_close(w);
    fth__lv_close(w);
}

static void put_text(fth__lv_writer *w, const fth_nd2_options *o)
{
    fth__lv_open(w, "SLxImageTextInfo");
    fth__lv_put_text(w, "TextInfoItem_5", o->description);
    fth__lv_put_text(w, "TextInfoItem_13", o->objective);
    fth__lv_close(w);
}

void fth__nd2_put_part(fth__lv_writer *w, fth__nd2_part part, const fth_nd2_options *options)
{
    static void (*const put[FTH__ND2_PARTS])(fth__lv_writer *, const fth_nd2_options *) = {
        [FTH__ND2_ATTRIBUTES] = put_attributes,
        [FTH__ND2_EXPERIMENT] = put_experiment,
        [FTH__ND2_PICTURE] = put_picture,
        [FTH__ND2_TEXT] = put_text};
    FTH_ASSERT((unsigned)part < FTH__ND2_PARTS && put[part] && w->depth == 0);
    put[part](w, options);
    FTH_ASSERT(w->depth == 0); /* every level was closed */
}
