/* meter.c - the lines "N% done" of the reference, whichever way the pixels are computed.
 *
 * The lines depend only on the number of pixels; a run reports how many are done.
 */
#include "meter.h"

fth_status br_meter_start(br_meter *m, FILE *out, const br_experiment *e, bool percents,
                          const br_latch_note *note, fth_err *err)
{
    const int64_t *roi = e->roi_typed;
    *m = (br_meter){.out = out, .note = note, .note_at = -1};
    m->total = (roi[1] - roi[0] + 1) * (roi[3] - roi[2] + 1);
    m->on = percents && m->total / 100 > 0;
    if (!m->on) { /* no pixels */
        fputs(note->text, out);
        return FTH_OK;
    }
    if (note->pixel >= 0) FTH_TRY(br_count_rendered(e, note->pixel, &m->note_at, err));
    return br_count_rendered(e, e->scene.fast * e->scene.slow, &m->rendered, err);
}

static bool is_told(const br_meter *m, int64_t i)
{
    const bool near_an_end = 10 * i < m->total || 10 * i > 9 * m->total;
    return i % (m->total / 20) == 0 || (near_an_end && i % (m->total / 100) == 0);
}

void br_meter_tell(br_meter *m, double fraction)
{
    if (!m->on) return;
    const double part = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    const int64_t until = (int64_t)(part * (double)m->rendered);
    const int64_t before = m->next;
    for (; m->next < until; m->next++) {
        if (m->next == m->note_at) fputs(m->note->text, m->out);
        if (is_told(m, m->next))
            fprintf(m->out, "%lld%% done\n", (long long)(m->next * 100 / m->total));
    }
    if (m->next != before) fflush(m->out);
}
