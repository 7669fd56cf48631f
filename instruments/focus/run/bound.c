/* bound.c - see bound.h. */
#include "bound.h"

#include <string.h>

typedef struct share {
    const char *name;
    double seconds;
} share;

enum { SHARES = 6 };

/* Duration of each part. They overlap; the longest limits the run. */
static void find_shares(const fo_pipeline *p, share out[SHARES])
{
    const fth_run_report *r = &p->report;
    const double pictures = p->encode_s + p->write_s; /* of all threads together */
    const double encode = pictures > 0 ? r->write_seconds * p->encode_s / pictures : 0;
    double known = 0;
    out[0] = (share){"storage", r->read_seconds + r->write_seconds - encode};
    out[1] = (share){"copy", r->copy_seconds};
    out[2] = (share){"kernel", r->kernel_seconds};
    out[3] = (share){"encode", encode};
    out[4] = (share){"stitch", p->stitch_s};
    for (int i = 0; i < SHARES - 1; i++) known += out[i].seconds;
    out[5] = (share){"other", r->seconds > known ? r->seconds - known : 0};
}

/* "storage 91 %, encode 4 %": largest first. */
static void format_bound(const fo_pipeline *p, char *text, size_t bytes)
{
    share s[SHARES];
    double sum = 0;
    size_t used = 0;
    find_shares(p, s);
    for (int i = 0; i < SHARES; i++) sum += s[i].seconds;
    for (int i = 1; i < SHARES; i++)
        for (int k = i; k > 0 && s[k].seconds > s[k - 1].seconds; k--) {
            const share now = s[k];
            s[k] = s[k - 1];
            s[k - 1] = now;
        }
    text[0] = '\0';
    for (int i = 0; i < SHARES && used < bytes; i++)
        if (p->stitch_s > 0 || strcmp(s[i].name, "stitch") != 0) /* few have tiles */
            used += (size_t)snprintf(text + used, bytes - used, "%s%s %.0f %%", used ? ", " : "",
                                     s[i].name, sum > 0 ? 100 * s[i].seconds / sum : 0);
}

void fo_bound_print(const fo_pipeline *p, FILE *out)
{
    char text[1000];
    if (p->plans == 0 && !(p->stitch_s > 0)) return;
    fth_run_report_format(&p->report, text, sizeof text);
    fprintf(out, "%s", text);
    format_bound(p, text, sizeof text);
    fprintf(out, "bound: %s\n", text);
}

void fo_bound_add(const fo_pipeline *p, fth_json_writer *w)
{
    char text[200];
    format_bound(p, text, sizeof text);
    fth_json_text(w, "device", fth_context_device(p->ctx));
    fth_json_text(w, "device_reason", fth_context_device_reason(p->ctx));
    fth_json_text(w, "bound", text);
    fth_json_u64(w, "planned_bytes", p->report.planned_bytes);
    fth_json_u64(w, "peak_bytes", p->report.ledger_bytes);
}
