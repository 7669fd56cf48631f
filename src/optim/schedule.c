/* schedule.c - learning rates and momenta as functions of the step. */
#include <fathom/optim.h>

#include <math.h>

static const double pi = 3.14159265358979323846;

/* From a to b along half a cosine, t in [0, 1]. */
static double half_cosine(double a, double b, double t)
{
    return b + (a - b) * 0.5 * (1.0 + cos(pi * t));
}

static double constant(const fth_schedule *s, double t)
{
    (void)t;
    return s->rate;
}

static double exponential(const fth_schedule *s, double t)
{
    return s->rate * pow(s->last / s->rate, t);
}

static double cosine(const fth_schedule *s, double t)
{
    return half_cosine(s->rate, s->last, t);
}

static double linear(const fth_schedule *s, double t)
{
    return s->rate + (s->last - s->rate) * t;
}

static double (*const schedules[FTH_SCHEDULE_COUNT])(const fth_schedule *, double) = {
    [FTH_SCHEDULE_CONSTANT] = constant,
    [FTH_SCHEDULE_EXPONENTIAL] = exponential,
    [FTH_SCHEDULE_COSINE] = cosine,
    [FTH_SCHEDULE_LINEAR] = linear,
};

/* One cycle (Smith & Topin 2019): `low` to `high` over the rise, then to `end`. The rise ends one
 * step early, at rise * steps - 1, which need not be a whole number; with three steps or fewer it
 * lies before step 0 and there is none. */
static double one_cycle(const fth_schedule *s, int64_t step, double low, double high, double end)
{
    const double steps = (double)(s->steps - s->warmup), rise = s->rise > 0.0 ? s->rise : 0.3;
    const double top = rise * steps - 1.0, bottom = steps - 1.0;
    const double i = fmin((double)(step - s->warmup), bottom);
    if (top > 0.0 && i <= top) return half_cosine(low, high, i / top);
    return half_cosine(high, end, bottom > top ? (i - top) / (bottom - top) : 1.0);
}

double fth_schedule_rate(const fth_schedule *s, int64_t step)
{
    if (step < 0) step = 0;
    if (step < s->warmup) return s->rate * (double)(step + 1) / (double)s->warmup;
    if (s->kind == FTH_SCHEDULE_ONE_CYCLE) {
        /* 25 here, 1e4 below and the momenta of fth_schedule_momentum are torch's defaults */
        const double low = s->rate / 25.0;
        return one_cycle(s, step, low, s->rate, low / 1e4);
    }
    const int64_t length = s->steps - s->warmup > 1 ? s->steps - s->warmup - 1 : 1;
    double t = (double)(step - s->warmup) / (double)length;
    if (t > 1.0) t = 1.0;
    return schedules[s->kind](s, t);
}

double fth_schedule_momentum(const fth_schedule *s, int64_t step, double usual)
{
    if (s->kind != FTH_SCHEDULE_ONE_CYCLE) return usual;
    if (step < 0) step = 0;
    return one_cycle(s, step < s->warmup ? s->warmup : step, 0.95, 0.85, 0.95);
}
