/* notices.c - notices about settings that have no effect or cannot be written.
 *
 * They are about points of the detector that were given and do not enter its geometry, and about
 * geometry that file formats cannot express. The command prints them to its stream of notices, a
 * job to its log.
 */
#include "notices.h"

#include "../experiment/resolve.h"

/* A convention that pivots about the beam centre has its own default centre, not the near point. */
static bool has_own_centre(br_convention c)
{
    return c == BR_ADXV || c == BR_MOSFLM || c == BR_DENZO;
}

/* Whether convention and pivot ignore the two flags that start with `first` (model 4.1, 4.2). */
static bool left_out(const br_flags *f, br_flag_id first, br_pivot pivot)
{
    if (f->convention == BR_CUSTOM) return false;
    if (first == BR_FLAG_XBEAM) return pivot == BR_PIVOT_SAMPLE;
    if (first == BR_FLAG_ORGX) return pivot == BR_PIVOT_BEAM && has_own_centre(f->convention);
    return pivot == BR_PIVOT_SAMPLE || has_own_centre(f->convention);
}

bool br_notice_places(const br_flags *f, char *text, size_t bytes)
{
    static const struct {
        br_flag_id x, y;
        const char *key;
    } pair[] = {{BR_FLAG_XBEAM, BR_FLAG_YBEAM, "detector.beam"},
                {BR_FLAG_XCLOSE, BR_FLAG_YCLOSE, "detector.close"},
                {BR_FLAG_ORGX, BR_FLAG_ORGY, "detector.org"}};
    const br_pivot pivot = br_pivot_of(f);
    const bool sample = pivot == BR_PIVOT_SAMPLE;
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++) {
        if (!(f->given[pair[i].x] || f->given[pair[i].y]) || !left_out(f, pair[i].x, pivot))
            continue;
        const char *give = sample ? "-ORGX and -ORGY (detector.org)"
                                  : "-Xbeam and -Ybeam (detector.beam)",
                   *turn = sample ? "beam" : "sample";
        const bool would_turn = pair[i].x != BR_FLAG_XCLOSE; /* with the other pivot it is used */
        snprintf(text, bytes,
                 "%s and %s (%s) are not used: here the detector pivots about the %s; give %s%s%s",
                 br_flag_get_info(pair[i].x)->names, br_flag_get_info(pair[i].y)->names,
                 pair[i].key, sample ? "sample" : "beam centre", give,
                 would_turn ? ", or -pivot " : "", would_turn ? turn : "");
        return true;
    }
    return false;
}

static bool is_tilted(const br_experiment *e)
{
    double along = 0;
    for (int i = 0; i < 3; i++) along += e->placed.odet[i].v * e->scene.beam[i];
    return fabs(along) < 1 - 1e-12; /* 1e-6 rad: far below a pixel */
}

bool br_notice_header(const br_experiment *e, bool cbf, char *text, size_t bytes)
{
    if (e->scene.curved) {
        snprintf(text, bytes, "%s", BR_CURVED_NOTE);
        return true;
    }
    if (!cbf || !is_tilted(e)) return false;
    snprintf(text, bytes,
             "a CBF header cannot express that the detector is tilted: readers assume it "
             "perpendicular to the beam; the container of a job has the whole geometry");
    return true;
}
