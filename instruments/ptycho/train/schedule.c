/* schedule.c - see schedule.h. */
#include "schedule.h"

#include <math.h>

enum { PLATEAU, CONSTANT, EXPONENTIAL, WARMUP_COSINE }; /* words of the key scheduler */

static void plateau(const fth_config *cfg, pt_standing *at, double val)
{
    const double least = fth_config_real(cfg, "plateau_min_lr"),
                 lower = at->rate * fth_config_real(cfg, "plateau_factor");
    if (val < at->plateau_best - 1e-4) {
        at->plateau_best = val;
        at->plateau_wait = 0;
        return;
    }
    if (++at->plateau_wait < fth_config_int(cfg, "plateau_patience")) return;
    at->plateau_wait = 0;
    if (at->rate > least) at->rate = lower > least ? lower : least;
}

static double warmup_cosine(const fth_config *cfg, int64_t epoch)
{
    const double rate = fth_config_real(cfg, "learning_rate"),
                 ratio = fth_config_real(cfg, "lr_min_ratio"),
                 rise = (double)fth_config_int(cfg, "warmup_epochs"),
                 all = (double)fth_config_int(cfg, "nepochs"), at = (double)epoch;
    if (at < rise) return rate * (0.1 + 0.9 * at / rise);
    const double part = all > rise ? (at - rise) / (all - rise) : 1;
    return rate * (ratio + (1 - ratio) * 0.5 * (1 + cos(3.14159265358979324 * fmin(part, 1))));
}

double pt_schedule_first(const fth_config *cfg)
{
    return fth_config_choice(cfg, "scheduler") == WARMUP_COSINE
               ? warmup_cosine(cfg, 0)
               : fth_config_real(cfg, "learning_rate");
}

bool pt_schedule_next(const fth_config *cfg, pt_standing *at, double loss, double val)
{
    const double rate = fth_config_real(cfg, "learning_rate");
    switch (fth_config_choice(cfg, "scheduler")) {
    case PLATEAU: plateau(cfg, at, val); break;
    case EXPONENTIAL: at->rate = rate * pow(0.95, (double)at->epoch); break;
    case WARMUP_COSINE: at->rate = warmup_cosine(cfg, at->epoch); break;
    default: break;
    }
    if (loss < at->stop_best) {
        at->stop_best = loss;
        at->stop_wait = 0;
        return false;
    }
    const int64_t patience = fth_config_int(cfg, "early_stop_patience");
    return ++at->stop_wait >= patience && patience > 0;
}
