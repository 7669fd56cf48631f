/* ome_write.c - the OME-XML of a stack that is written: sizes, channels, and when planes were
 * taken.
 *
 * Pages run over channels first, then planes, then time points.
 */
#include "io/tiff.h"
#include "text/number.h"

#include <inttypes.h>
#include <string.h>

/* A text as the value of an attribute. */
static void add_escaped(fth__text *t, const char *s)
{
    static const struct {
        char c;
        const char *text;
    } special[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    while (*s) {
        const size_t n = fth__utf8_length(s, strlen(s));
        const char *text = n == 0 || (unsigned char)*s < 32 ? "?" : NULL;
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
            if (*s == special[i].c) text = special[i].text;
        fth__text_add_chars(t, text ? text : s, text ? strlen(text) : n);
        s += n > 0 ? n : 1;
    }
}

static void add_real(fth__text *t, const char *name, double v, const char *unit)
{
    if (!(v > 0)) return;
    fth__text_add(t, " %s=\"", name);
    fth__number_print(t, v);
    fth__text_add(t, "\" %sUnit=\"%s\"", name, unit);
}

static void add_planes(fth__text *t, const fth_tiff_stack *stack, const fth__tiff_sizes *n)
{
    for (int64_t k = 0; stack->time_s && k < n->t * n->z * n->c; k++) {
        fth__text_add(
            t, "<Plane TheT=\"%" PRId64 "\" TheZ=\"%" PRId64 "\" TheC=\"%" PRId64 "\" DeltaT=\"",
            k / (n->z * n->c), k / n->c % n->z, k % n->c);
        fth__number_print(t, stack->time_s[k / (n->z * n->c)]);
        fth__text_add(t, "\" DeltaTUnit=\"s\"/>");
    }
}

void fth__ome_describe(fth__text *t, const fth_tiff_stack *stack, const fth__tiff_sizes *n)
{
    static const char um[] = "\xc2\xb5m";
    static const char *const type[FTH_DTYPE_COUNT] = {
        [FTH_U8] = "uint8",  [FTH_U16] = "uint16", [FTH_U32] = "uint32", [FTH_I8] = "int8",
        [FTH_I16] = "int16", [FTH_I32] = "int32",  [FTH_F32] = "float"};
    fth__text_add(t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
                     "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
                     "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                     "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
                     "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" "
                     "Creator=\"Fathom " FTH_VERSION_TEXT "\"><Image ID=\"Image:0\"");
    if (stack->name) {
        fth__text_add(t, " Name=\"");
        add_escaped(t, stack->name);
        fth__text_add(t, "\"");
    }
    fth__text_add(t,
                  "><Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"%s\" SizeX=\"%" PRId64
                  "\" SizeY=\"%" PRId64 "\" SizeZ=\"%" PRId64 "\" SizeC=\"%" PRId64
                  "\" SizeT=\"%" PRId64 "\"",
                  type[stack->dtype], n->x, n->y, n->z, n->c, n->t);
    add_real(t, "PhysicalSizeX", stack->um_per_px, um);
    add_real(t, "PhysicalSizeY", stack->um_per_px, um);
    add_real(t, "PhysicalSizeZ", stack->z_step_um, um);
    add_real(t, "TimeIncrement", stack->period_s, "s");
    fth__text_add(t, ">");
    for (int64_t c = 0; c < n->c; c++) {
        fth__text_add(t, "<Channel ID=\"Channel:0:%" PRId64 "\"", c);
        if (stack->channels && stack->channels[c]) {
            fth__text_add(t, " Name=\"");
            add_escaped(t, stack->channels[c]);
            fth__text_add(t, "\"");
        }
        fth__text_add(t, " SamplesPerPixel=\"1\"/>");
    }
    fth__text_add(t, "<TiffData IFD=\"0\" PlaneCount=\"%" PRId64 "\"/>", n->t * n->z * n->c);
    add_planes(t, stack, n);
    fth__text_add(t, "</Pixels></Image></OME>");
}
