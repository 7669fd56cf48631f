/* doctor_data.c - --data-root and --exp: the instruments inspect an experiment. */
#include "doctor.h"
#include "instruments/list.h"

#include <string.h>

typedef struct looking {
    const cli_probes *probes;
    doctor_data *data;
} looking;

static double measure(void *user, const char *path)
{
    const looking *l = user;
    doctor_storage found = {0};
    if (!l->probes->storage(l->probes->user, path, &found)) return 0;
    return found.read_rate > 0 ? found.read_rate : found.direct_rate;
}

static void take(void *user, fth_finding finding, const char *about, const char *advice,
                 const char *text)
{
    doctor_data *d = ((const looking *)user)->data;
    if (d->n == DOCTOR_FINDINGS) return;
    doctor_finding *f = &d->finding[d->n++];
    f->finding = finding;
    snprintf(f->about, sizeof f->about, "%s", about);
    snprintf(f->text, sizeof f->text, "%s", text);
    snprintf(f->advice, sizeof f->advice, "%s", advice);
}

static fth_status missing(const char *flag, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "--%s is not given", flag);
    fth_err_hint(err, "write 'fathom doctor --data-root D --exp E'");
    return FTH_E_COMMAND;
}

fth_status doctor_look_data(const cli_call *call, const cli_probes *probes, doctor_data *data,
                            fth_context *ctx, fth_err *err)
{
    const char *root = cli_get(call, "data-root"), *exp = cli_get(call, "exp"),
               *microscope = cli_get(call, "microscope");
    looking l = {probes, data};
    *data = (doctor_data){0};
    if (!root && !exp && !microscope) return FTH_OK;
    if (!root || !exp) return missing(root ? "exp" : "data-root", err);
    data->root = root;
    data->exp = exp;
    if (!ctx) return FTH_OK; /* already reported */
    const fth_examination about = {.context = ctx,
                                   .data_root = root,
                                   .exp = exp,
                                   .microscope = microscope ? microscope : "",
                                   .measure = measure,
                                   .tell = take,
                                   .user = &l};
    for (int i = 0; i < fth_n_instruments; i++)
        if (fth_instruments[i]->examine) FTH_TRY(fth_instruments[i]->examine(&about, err));
    return FTH_OK;
}

static const char *const words[] = {"ok", "warn", "FAIL"};

void doctor_show_data(FILE *out, const doctor_data *d)
{
    if (!d->root) return;
    fprintf(out, "\ndata of %s\n", d->exp);
    for (int i = 0; i < d->n; i++) {
        const doctor_finding *f = &d->finding[i];
        char line[1600];
        fprintf(out, "  [%s]%*s %-8s ", words[f->finding], 4 - (int)strlen(words[f->finding]), "",
                f->about);
        snprintf(line, sizeof line, "%s%s%s", f->text, f->advice[0] ? " - " : "", f->advice);
        cli_wrap(out, line, 18, 18);
    }
}

void doctor_show_data_json(fth_json_writer *j, const doctor_data *d)
{
    if (!d->root) return;
    fth_json_open(j, "data", '{');
    fth_json_text(j, "data_root", d->root);
    fth_json_text(j, "exp", d->exp);
    fth_json_open(j, "findings", '[');
    for (int i = 0; i < d->n; i++) {
        const doctor_finding *f = &d->finding[i];
        fth_json_open(j, NULL, '{');
        fth_json_text(j, "finding", words[f->finding]);
        fth_json_text(j, "about", f->about);
        fth_json_text(j, "text", f->text);
        fth_json_text(j, "advice", f->advice[0] ? f->advice : NULL);
        fth_json_close(j);
    }
    fth_json_close(j);
    fth_json_close(j);
}
