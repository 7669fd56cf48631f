/* calibrate.c - fathom doctor --calibrate: the rates that predictions of plans stand on. */
#include "doctor.h"

#include <string.h>

static fth_status measure_on(const cli_probes *p, const fth_options *opt, fth_err *err)
{
    fth_context *ctx = NULL;
    FTH_TRY(p->context(p->user, &ctx, opt, err));
    const bool wanted =
        strcmp(opt->device, "cpu") == 0 || strcmp(fth_context_device(ctx), "cpu") != 0;
    const fth_status s = wanted ? fth_rates_measure(ctx, err) : FTH_OK;
    const fth_status closed = fth_context_destroy(ctx, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

/* The processors, and then the device that runs would have, if there is one. */
fth_status doctor_calibrate(const cli_call *call, const cli_probes *p, fth_err *err)
{
    fth_options opt;
    FTH_TRY(cli_context_options(call, p->free_memory(p->user), &opt, err));
    const char *device = opt.device ? opt.device : "auto";
    opt.device = "cpu";
    opt.trace = NULL;
    FTH_TRY(measure_on(p, &opt, err));
    opt.device = device;
    return strcmp(device, "cpu") == 0 ? FTH_OK : measure_on(p, &opt, err);
}

void doctor_look_rates(fth_context *ctx, doctor_report *r)
{
    snprintf(r->rates, sizeof r->rates, "%s", fth_context_rates(ctx));
    for (r->n_rates = 0; r->n_rates < DOCTOR_RATES; r->n_rates++)
        if (!fth_context_get_rate(ctx, r->n_rates, &r->rate[r->n_rates])) break;
}

void doctor_show_rates(FILE *out, const doctor_report *r, bool all)
{
    if (!r->rates[0]) return;
    fprintf(out, "  %-12s %s\n", "rates", r->rates);
    for (int i = 0; all && i < r->n_rates; i++)
        fprintf(out, "  %-12s %10.4g %-8s %s\n", r->rate[i].name, r->rate[i].value, r->rate[i].unit,
                r->rate[i].what);
}

void doctor_show_rates_json(fth_json_writer *j, const doctor_report *r)
{
    fth_json_open(j, "rates", '{');
    fth_json_text(j, "source", r->rates[0] ? r->rates : NULL);
    for (int i = 0; i < r->n_rates; i++) fth_json_real(j, r->rate[i].name, r->rate[i].value);
    fth_json_close(j);
}
