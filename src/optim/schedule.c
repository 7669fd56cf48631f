/* schedule.c - learning rates as functions of the step. */
#include <fathom/optim.h>

#include <math.h>

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
    return s->last + (s->rate - s->last) * 0.5 * (1.0 + cos(3.14159265358979323846 * t));
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

double fth_schedule_rate(const fth_schedule *s, int64_t step)
{
    if (step < s->warmup) return s->rate * (double)(step + 1) / (double)s->warmup;
    const int64_t length = s->steps - s->warmup > 1 ? s->steps - s->warmup - 1 : 1;
    double t = (double)(step - s->warmup) / (double)length;
    if (t > 1.0) t = 1.0;
    return schedules[s->kind](s, t);
}
