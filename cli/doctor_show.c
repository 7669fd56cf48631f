/* doctor_show.c - the findings of doctor, for people and for programs. */
#include "doctor.h"

#include <string.h>

static void title(FILE *out, const char *text, bool colour)
{
    fprintf(out, colour ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

static void rate(FILE *out, const char *name, double bytes_per_second)
{
    if (bytes_per_second > 0)
        fprintf(out, "  %-12s %.3g GB/s\n", name, bytes_per_second / 1e9);
    else
        fprintf(out, "  %-12s not measured\n", name);
}

static void show_faults(FILE *out, const doctor_report *r, bool cuda, bool colour)
{
    for (int i = 0; i < r->n_faults; i++) {
        const doctor_fault *f = &r->fault[i];
        if ((strcmp(f->about, "cuda") == 0) != cuda) continue;
        const char *on = !colour ? "" : f->stops ? "\033[31m" : "\033[33m";
        fprintf(out, "  %s%s%s ", on, f->stops ? "fault: " : "notice:", colour ? "\033[0m" : "");
        cli_wrap(out, f->text, 10, 10);
        fprintf(out, "          to do: ");
        cli_wrap(out, f->remedy, 17, 17);
    }
}

static void show_devices(FILE *out, const doctor_report *r, bool colour)
{
    title(out, "devices", colour);
    fprintf(out, "  %-12s %s, %d of %d cores", "cpu", r->cpu, r->cores_usable, r->cores_online);
    if (r->cores_quota > 0) fprintf(out, ", the cgroup gives %.3g", r->cores_quota);
    fprintf(out, "\n  %-12s %s", "cuda", r->cuda ? "can be used" : "cannot be used");
    if (r->cuda_driver[0]) fprintf(out, ", driver %s", r->cuda_driver);
    fputc('\n', out);
    if (r->device[0])
        fprintf(out, "  %-12s %s (%s), %d worker%s\n", "used", r->device, r->reason, r->threads,
                r->threads == 1 ? "" : "s");
    show_faults(out, r, true, colour);
}

static void show_memory(FILE *out, const doctor_report *r, bool colour)
{
    char a[32], b[32];
    title(out, "memory and disk", colour);
    fprintf(out, "  %-12s %s of %s\n", "free", fth_mem_format_size(r->memory_free, a, sizeof a),
            fth_mem_format_size(r->memory_total, b, sizeof b));
    fprintf(out, "  %-12s %s\n", "cgroup limit",
            r->memory_limit ? fth_mem_format_size(r->memory_limit, a, sizeof a) : "none");
    if (r->budget)
        fprintf(out, "  %-12s %s\n", "budget", fth_mem_format_size(r->budget, a, sizeof a));
    fprintf(out, "  %-12s %s, %s free\n", "scratch", r->scratch,
            r->scratch_known ? fth_mem_format_size(r->scratch_free, a, sizeof a) : "nothing");
    rate(out, "copying", r->copy_rate);
    rate(out, "writing", r->write_rate);
    rate(out, "reading", r->read_rate);
}

void doctor_show(FILE *out, const doctor_report *r, bool colour)
{
    fprintf(out, "fathom %s\n", fth_version());
    show_devices(out, r, colour);
    show_memory(out, r, colour);
    title(out, "libraries", colour);
    for (int i = 0; i < r->n_libraries; i++)
        fprintf(out, "  %-12s %.60s\n", cli_libraries[i].name,
                r->library_found[i] ? r->library_version[i] : "not found");
    if (r->n_cases) title(out, "self-test: largest difference from the reference", colour);
    for (int i = 0; i < r->n_cases; i++) {
        const doctor_case *c = &r->cases[i];
        fprintf(out, "  %-14s", c->name);
        if (c->status == FTH_OK)
            fprintf(out, " %-8.2g of %-6.0e %s\n", c->difference, c->allowed,
                    c->difference <= c->allowed ? "good" : "TOO MUCH");
        else
            fprintf(out, " FAILED: %s\n", fth_status_get_info(c->status)->brief);
    }
    bool others = false;
    for (int i = 0; i < r->n_faults; i++) others |= strcmp(r->fault[i].about, "cuda") != 0;
    if (others) title(out, "worth knowing", colour);
    show_faults(out, r, false, colour);
}

static void json_machine(cli_json *j, const doctor_report *r)
{
    cli_json_open(j, "cpu", '{');
    cli_json_text(j, "model", r->cpu);
    cli_json_int(j, "cores", (uint64_t)r->cores_online);
    cli_json_int(j, "cores_usable", (uint64_t)r->cores_usable);
    cli_json_real(j, "cores_quota", r->cores_quota);
    cli_json_close(j, '}');
    cli_json_open(j, "cuda", '{');
    cli_json_bool(j, "usable", r->cuda);
    cli_json_text(j, "driver", r->cuda_driver[0] ? r->cuda_driver : NULL);
    cli_json_close(j, '}');
    cli_json_open(j, "device", '{');
    cli_json_text(j, "asked", r->asked);
    cli_json_text(j, "used", r->device[0] ? r->device : NULL);
    cli_json_text(j, "reason", r->device[0] ? r->reason : NULL);
    cli_json_int(j, "threads", (uint64_t)r->threads);
    cli_json_close(j, '}');
    cli_json_open(j, "memory", '{');
    cli_json_int(j, "total_bytes", r->memory_total);
    cli_json_int(j, "free_bytes", r->memory_free);
    cli_json_int(j, "cgroup_limit_bytes", r->memory_limit);
    cli_json_int(j, "budget_bytes", r->budget);
    cli_json_real(j, "copy_bytes_per_s", r->copy_rate);
    cli_json_close(j, '}');
    cli_json_open(j, "scratch", '{');
    cli_json_text(j, "folder", r->scratch);
    cli_json_bool(j, "writable", r->scratch_writable);
    cli_json_int(j, "free_bytes", r->scratch_free);
    cli_json_real(j, "write_bytes_per_s", r->write_rate);
    cli_json_real(j, "read_bytes_per_s", r->read_rate);
    cli_json_close(j, '}');
}

void doctor_show_json(cli_json *j, const doctor_report *r)
{
    cli_json_text(j, "version", fth_version());
    json_machine(j, r);
    cli_json_open(j, "libraries", '[');
    for (int i = 0; i < r->n_libraries; i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "name", cli_libraries[i].name);
        cli_json_text(j, "version", r->library_found[i] ? r->library_version[i] : NULL);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
    cli_json_open(j, "selftest", '[');
    for (int i = 0; i < r->n_cases; i++) {
        const doctor_case *c = &r->cases[i];
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "name", c->name);
        cli_json_bool(j, "passed", c->status == FTH_OK && c->difference <= c->allowed);
        cli_json_real(j, "difference", c->difference);
        cli_json_real(j, "allowed", c->allowed);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
    cli_json_open(j, "faults", '[');
    for (int i = 0; i < r->n_faults; i++) {
        cli_json_open(j, NULL, '{');
        cli_json_text(j, "about", r->fault[i].about);
        cli_json_bool(j, "stops", r->fault[i].stops);
        cli_json_text(j, "text", r->fault[i].text);
        cli_json_text(j, "remedy", r->fault[i].remedy);
        cli_json_close(j, '}');
    }
    cli_json_close(j, ']');
}
