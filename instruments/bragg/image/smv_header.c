/* smv_header.c - the header of an SMV image, as it is written (model 12.3).
 *
 * A header has 512 bytes. A longer one has the next multiple of it, and HEADER_BYTES says so. The
 * original always declares 512: its text runs on, and the pixels follow the closing brace. In c
 * mode ours does the same.
 */
#include "smv_header.h"

#include <inttypes.h>
#include <string.h>

enum { LINE = 48 }; /* one key with a number */

/* Lines that the original lacks and tools need. DIALS accepts only an integer for the offset. */
static int write_ours(const br_experiment *e, int bits, char *text, size_t room)
{
    char wide[LINE] = "", offset[LINE] = "";
    if (bits == 32) snprintf(wide, sizeof wide, "Data_type=long int;\n");
    if (!e->compat_c) snprintf(offset, sizeof offset, "ADC_OFFSET=%.15g;\n", round(e->out.adc));
    return snprintf(text, room, "%s%s", wide, offset);
}

static int write_text(const br_experiment *e, int bits, int64_t bytes, char *text, size_t room)
{
    const br_scene *s = &e->scene;
    const br_placed *f = &e->placed;
    char ours[2 * LINE];
    (void)write_ours(e, bits, ours, sizeof ours);
    return snprintf(
        text, room,
        "{\nHEADER_BYTES=%" PRId64 ";\nDIM=2;\nBYTE_ORDER=little_endian;\nTYPE=%s;\n"
        "SIZE1=%" PRId64 ";\nSIZE2=%" PRId64 ";\nPIXEL_SIZE=%g;\nDISTANCE=%g;\nWAVELENGTH=%g;\n"
        "BEAM_CENTER_X=%g;\nBEAM_CENTER_Y=%g;\nADXV_CENTER_X=%g;\nADXV_CENTER_Y=%g;\n"
        "MOSFLM_CENTER_X=%g;\nMOSFLM_CENTER_Y=%g;\nDENZO_X_BEAM=%g;\nDENZO_Y_BEAM=%g;\n"
        "DIALS_ORIGIN=%g,%g,%g\nXDS_ORGX=%g;\nXDS_ORGY=%g;\nCLOSE_DISTANCE=%g;\n"
        "PHI=%g;\nOSC_START=%g;\nOSC_RANGE=%g;\nTWOTHETA=%g;\n%sDETECTOR_SN=000;\n"
        "BEAMLINE=fake;\n}\f",
        bytes, bits == 32 ? "long_integer" : "unsigned_short", s->fast, s->slow, s->pixel * 1000.0,
        f->distance.v * 1000.0, e->param[BR_LAM] * 1e10, e->xbeam * 1000.0, e->ybeam * 1000.0,
        f->fbeam * 1000.0, (s->detsize[1] - f->sbeam) * 1000.0,
        (f->sbeam - 0.5 * s->pixel) * 1000.0, (f->fbeam - 0.5 * s->pixel) * 1000.0,
        f->sbeam * 1000.0, f->fbeam * 1000.0, f->dials_origin[0], f->dials_origin[1],
        f->dials_origin[2], f->org[0], f->org[1], f->close.v * 1000.0, e->param[BR_PHI] * BR_RTD,
        e->param[BR_PHI] * BR_RTD, e->osc * BR_RTD, e->param[BR_TT] * BR_RTD, ours);
}

_Static_assert(BR_HEADER_MOST >= 512 + 30 * 24, "every number fits, however long");

void br_smv_header(const br_experiment *e, int bits, int64_t least, br_smv_head *out)
{
    memset(out->text, ' ', sizeof out->text);
    out->bytes = BR_HEADER;
    while (!e->compat_c && out->bytes < least) out->bytes += BR_HEADER;
    int n = write_text(e, bits, out->bytes, out->text, sizeof out->text);
    if (e->compat_c) { /* the text runs on, and the pixels follow it */
        if (n > out->bytes) out->bytes = n;
    } else
        while (n > out->bytes) {
            out->bytes += BR_HEADER;
            n = write_text(e, bits, out->bytes, out->text, sizeof out->text);
        }
    out->text[n] = ' '; /* of the zero byte at its end */
}
