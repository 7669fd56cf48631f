/* resolve_steps.c - the number of steps of a range, when not everything was given.
 *
 * Three numbers describe each: range, step and count. Which two override the third differs between
 * the spindle, the divergences and the sensor; these are the rules of the reference.
 */
#include "resolve.h"

static int64_t count_of(double range, double step)
{
    const double n = ceil(range / step);
    return n < 2147483647.0 ? (int64_t)n : 2147483647;
}

static void nothing(br_steps *s)
{
    *s = (br_steps){0, 0, 1};
}

/* Only the step was given; it is the range as well. */
static void one_step(br_steps *s)
{
    s->range = s->step;
    s->n = 2;
}

void br_resolve_spindle(br_steps *s)
{
    if (s->n < 0) {
        if (s->range < 0 && s->step <= 0)
            nothing(s);
        else if (s->range < 0)
            one_step(s);
        else if (s->step <= 0)
            s->n = 2, s->step = s->range / 2.0;
        else
            s->n = count_of(s->range, s->step);
        return;
    }
    if (s->n == 0) s->n = 1;
    if (s->range < 0 && s->step <= 0) {
        s->range = 1.0 / BR_RTD;
        s->step = s->range / (double)s->n;
    } else if (s->range < 0) {
        one_step(s);
    } else if (s->step < 0) {
        s->step = s->range / (double)s->n;
    }
}

/* A count of 0 or less was not given. `alone`: the range of a count without one. */
static void pick_range(br_steps *s, double alone)
{
    if (s->range < 0 && s->step > 0)
        one_step(s);
    else if (s->range < 0 && s->n <= 0)
        nothing(s);
    else if (s->range < 0)
        s->range = alone, s->step = s->range / (double)s->n;
    else if (s->step > 0 && s->n <= 0)
        s->n = count_of(s->range, s->step);
}

static void drop_empty(br_steps *s)
{
    if (s->range <= 0 || s->step <= 0 || s->n <= 0) nothing(s);
}

void br_resolve_range(br_steps *s)
{
    const bool said = s->range >= 0 && s->step <= 0;
    pick_range(s, 1.0);
    if (said && s->n <= 0) {
        s->step = s->range;
        s->n = 2;
    } else if (said) {
        if (s->n < 2) s->n = 2;
        s->step = s->range / (double)(s->n - 1);
    }
    drop_empty(s);
}

void br_resolve_layers(br_steps *s, bool span_to_end)
{
    const bool said = s->range >= 0 && s->step <= 0;
    pick_range(s, 0.5e-6);
    if (said && s->n <= 0) {
        s->n = 2;
        s->step = s->range / 2.0;
    } else if (said && span_to_end) {
        if (s->n < 2) s->n = 2;
        s->step = s->range / (double)(s->n - 1);
    } else if (said) {
        s->step = s->range / (double)s->n;
    }
    drop_empty(s);
}

void br_resolve_mosaic(double *spread, int64_t *domains)
{
    const bool some = *spread > 0;
    if (*domains <= 0)
        *domains = some ? 10 : 1;
    else if (!some)
        *domains = 1;
    if (!some) *spread = 0;
}
