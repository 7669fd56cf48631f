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

static bool is_of_cards(const doctor_fault *f)
{
    return strcmp(f->about, "cuda") == 0 || strcmp(f->about, "gpu") == 0;
}

static void show_faults(FILE *out, const doctor_report *r, bool cards, bool colour)
{
    for (int i = 0; i < r->n_faults; i++) {
        const doctor_fault *f = &r->fault[i];
        if (is_of_cards(f) != cards) continue;
        const char *on = !colour ? "" : f->stops ? "\033[31m" : "\033[33m";
        fprintf(out, "  %s%s%s ", on, f->stops ? "fault: " : "notice:", colour ? "\033[0m" : "");
        cli_wrap(out, f->text, 10, 10);
        fprintf(out, "          to do: ");
        cli_wrap(out, f->remedy, 17, 17);
    }
}

static void show_card(FILE *out, const doctor_report *r, int i)
{
    char a[32], b[32], name[24];
    const fth_gpu *g = doctor_gpu(r, i);
    snprintf(name, sizeof name, "cuda:%d", i);
    fprintf(out, "  %-12s %s, %d.%d, %s", name, r->api.card[i].name, r->api.card[i].capability / 10,
            r->api.card[i].capability % 10,
            fth_mem_format_size(r->api.card[i].total_bytes, a, sizeof a));
    if (g) {
        fprintf(out, ", %s free", fth_mem_format_size(g->free_bytes, b, sizeof b));
        if (g->pcie_generation) fprintf(out, ", PCIe gen%d x%d", g->pcie_generation, g->pcie_lanes);
        if (g->ecc >= 0) fprintf(out, ", ECC %s", g->ecc ? "on" : "off");
        fprintf(out, "\n  %-12s %s", "", g->uuid);
    }
    fputc('\n', out);
}

/* The backend, and what its card said when it was opened. */
static void show_backend(FILE *out, const doctor_backend *b)
{
    char a[32];
    if (!b->table) {
        fprintf(out, "  %-12s ", "backend");
        cli_wrap(out, b->why, 15, 15);
        return;
    }
    fprintf(out, "  %-12s %s, for drivers of CUDA %d.%d and cards of %d.%d or later\n", "backend",
            b->file, b->driver_needed / 1000, b->driver_needed / 10 % 100,
            b->capability_needed / 10, b->capability_needed % 10);
    if (!b->opened) {
        fprintf(out, "  %-12s ", "");
        cli_wrap(out, b->refusal, 15, 15);
        return;
    }
    fprintf(out, "  %-12s %s for itself on cuda:%d, %s\n", "",
            b->card.context_bytes ? fth_mem_format_size(b->card.context_bytes, a, sizeof a)
                                  : "an unknown size",
            b->card.index,
            b->card.address_ranges ? "pages of a reserved range" : "plain allocations");
    fprintf(out, "  %-12s %s; %s; %s\n", "", b->card.compiler, b->card.products, b->card.factors);
}

static void limit(FILE *out, const char *name, uint64_t value, bool bytes)
{
    char a[32];
    if (value == DOCTOR_NO_LIMIT)
        fprintf(out, "%s unlimited", name);
    else if (bytes)
        fprintf(out, "%s %s", name, fth_mem_format_size(value, a, sizeof a));
    else
        fprintf(out, "%s %llu", name, (unsigned long long)value);
}

static void show_system(FILE *out, const doctor_report *r, bool colour)
{
    title(out, "system", colour);
    fprintf(out, "  %-12s %s%s%s, %s\n", "os", r->os, r->os[0] ? ", " : "", r->kernel, r->libc);
    fprintf(out, "  %-12s ", "limits");
    limit(out, "open files", r->limit[DOCTOR_FILES], false);
    limit(out, ", locked", r->limit[DOCTOR_LOCKED], true);
    limit(out, ", addresses", r->limit[DOCTOR_ADDRESS], true);
    fprintf(out, "\n  %-12s %s; NUMA nodes %s\n", "huge pages",
            r->huge_pages[0] ? r->huge_pages : "unknown",
            r->numa_nodes[0] ? r->numa_nodes : "unknown");
}

static void show_environment(FILE *out, const doctor_report *r, bool colour)
{
    title(out, "environment", colour);
    for (int i = 0; i < doctor_n_variables; i++)
        if (r->variable_set[i]) fprintf(out, "  %s=%.100s\n", doctor_variables[i], r->variable[i]);
}

static void show_devices(FILE *out, const doctor_report *r, bool colour)
{
    title(out, "devices", colour);
    fprintf(out, "  %-12s %s, %d of %d cores", "cpu", r->cpu, r->cores_usable, r->cores_online);
    if (r->cores_quota > 0) fprintf(out, ", the cgroup gives %.3g", r->cores_quota);
    fprintf(out, "\n  %-12s %s", "cuda", r->cuda ? "can be used" : "cannot be used");
    if (r->cuda_driver[0]) fprintf(out, ", driver %s", r->cuda_driver);
    if (r->api.version)
        fprintf(out, " supports CUDA %d.%d", r->api.version / 1000, r->api.version / 10 % 100);
    fputc('\n', out);
    for (int i = 0; i < r->api.n; i++) show_card(out, r, i);
    show_backend(out, &r->backend);
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
    fprintf(out, "  %-12s %s, %s free%s%s\n", "scratch", r->scratch,
            r->scratch_known ? fth_mem_format_size(r->scratch_free, a, sizeof a) : "nothing",
            r->scratch_system[0] ? ", " : "", r->scratch_system);
    rate(out, "copying", r->copy_rate);
    rate(out, "writing", r->write_rate);
    rate(out, "reading", r->read_rate);
    doctor_show_rates(out, r, r->calibrated);
}

void doctor_show(FILE *out, const doctor_report *r, bool colour)
{
    fprintf(out, "fathom %s\n", fth_version());
    show_system(out, r, colour);
    show_devices(out, r, colour);
    show_memory(out, r, colour);
    if (r->storage.there) title(out, "storage", colour);
    doctor_show_storage(out, &r->storage);
    if (r->slurm.there) title(out, "cluster", colour);
    doctor_show_slurm(out, &r->slurm);
    title(out, "libraries", colour);
    for (int i = 0; i < r->n_libraries; i++)
        fprintf(out, "  %-12s %.60s\n", cli_libraries[i].name,
                r->library_found[i] ? r->library_version[i] : "not found");
    show_environment(out, r, colour);
    if (r->n_cases) title(out, "self-test: largest difference from the reference", colour);
    for (int i = 0; i < r->n_cases; i++) {
        const doctor_case *c = &r->cases[i];
        fprintf(out, "  %-14s", c->name);
        if (c->absent)
            fprintf(out, " has no kernel on this device\n");
        else if (c->status == FTH_OK)
            fprintf(out, " %-8.2g of %-6.0e %s\n", c->difference, c->allowed,
                    c->difference <= c->allowed ? "good" : "TOO MUCH");
        else
            fprintf(out, " FAILED: %s\n", fth_status_get_info(c->status)->brief);
    }
    bool others = false;
    for (int i = 0; i < r->n_faults; i++) others |= !is_of_cards(&r->fault[i]);
    if (others) title(out, "worth knowing", colour);
    show_faults(out, r, false, colour);
}

static void json_system(fth_json_writer *j, const doctor_report *r)
{
    static const char *const names[] = {"open_files", "locked_bytes", "address_bytes"};
    fth_json_open(j, "system", '{');
    fth_json_text(j, "os", r->os[0] ? r->os : NULL);
    fth_json_text(j, "kernel", r->kernel);
    fth_json_text(j, "libc", r->libc);
    fth_json_text(j, "huge_pages", r->huge_pages[0] ? r->huge_pages : NULL);
    fth_json_text(j, "numa_nodes", r->numa_nodes[0] ? r->numa_nodes : NULL);
    fth_json_open(j, "limits", '{');
    for (int i = 0; i < 3; i++) {
        if (r->limit[i] == DOCTOR_NO_LIMIT)
            fth_json_text(j, names[i], NULL);
        else
            fth_json_u64(j, names[i], r->limit[i]);
    }
    fth_json_close(j);
    fth_json_close(j);
    fth_json_open(j, "environment", '{');
    for (int i = 0; i < doctor_n_variables; i++)
        if (r->variable_set[i]) fth_json_text(j, doctor_variables[i], r->variable[i]);
    fth_json_close(j);
}

static void json_card(fth_json_writer *j, const doctor_report *r, int i)
{
    static const char *const modes[] = {"default", "exclusive thread", "prohibited",
                                        "exclusive process"};
    const fth_gpu_mode mode = r->api.card[i].mode;
    const fth_gpu *g = doctor_gpu(r, i);
    fth_json_open(j, NULL, '{');
    fth_json_text(j, "name", r->api.card[i].name);
    fth_json_text(j, "bus_id", r->api.card[i].bus_id);
    fth_json_real(j, "capability", r->api.card[i].capability / 10.0);
    fth_json_u64(j, "total_bytes", r->api.card[i].total_bytes);
    fth_json_text(j, "mode", mode >= 0 && mode < FTH_GPU_MODE_COUNT ? modes[mode] : NULL);
    if (g) {
        fth_json_text(j, "uuid", g->uuid);
        fth_json_u64(j, "free_bytes", g->free_bytes);
        fth_json_u64(j, "processes", (uint64_t)g->n_processes);
        fth_json_u64(j, "pcie_generation", (uint64_t)g->pcie_generation);
        fth_json_u64(j, "pcie_lanes", (uint64_t)g->pcie_lanes);
        fth_json_u64(j, "slowed", g->slowed);
        if (g->mig >= 0) fth_json_bool(j, "mig", g->mig);
        if (g->ecc >= 0) fth_json_bool(j, "ecc", g->ecc);
    }
    fth_json_close(j);
}

static void json_backend(fth_json_writer *j, const doctor_backend *b)
{
    fth_json_text(j, "backend", b->table ? b->file : NULL);
    fth_json_text(j, "backend_error", b->table ? b->opened ? NULL : b->refusal : b->why);
    if (!b->opened) return;
    fth_json_open(j, "opened", '{');
    fth_json_u64(j, "index", (uint64_t)b->card.index);
    fth_json_text(j, "name", b->card.name);
    fth_json_u64(j, "total_bytes", b->card.total_bytes);
    fth_json_u64(j, "free_bytes", b->card.free_bytes);
    fth_json_u64(j, "context_bytes", b->card.context_bytes);
    fth_json_bool(j, "address_ranges", b->card.address_ranges);
    fth_json_bool(j, "stream_pool", b->card.stream_pool);
    fth_json_text(j, "compiler", b->card.compiler);
    fth_json_text(j, "products", b->card.products);
    fth_json_text(j, "factors", b->card.factors);
    fth_json_close(j);
}

static void json_cuda(fth_json_writer *j, const doctor_report *r)
{
    fth_json_open(j, "cuda", '{');
    fth_json_bool(j, "usable", r->cuda);
    fth_json_text(j, "driver", r->cuda_driver[0] ? r->cuda_driver : NULL);
    fth_json_u64(j, "driver_supports", (uint64_t)r->api.version);
    json_backend(j, &r->backend);
    fth_json_text(j, "init", r->api.library ? r->api.init ? r->api.init_name : "good" : NULL);
    fth_json_open(j, "cards", '[');
    for (int i = 0; i < r->api.n; i++) json_card(j, r, i);
    fth_json_close(j);
    fth_json_close(j);
}

static void json_machine(fth_json_writer *j, const doctor_report *r)
{
    fth_json_open(j, "cpu", '{');
    fth_json_text(j, "model", r->cpu);
    fth_json_u64(j, "cores", (uint64_t)r->cores_online);
    fth_json_u64(j, "cores_usable", (uint64_t)r->cores_usable);
    fth_json_real(j, "cores_quota", r->cores_quota);
    fth_json_close(j);
    json_cuda(j, r);
    fth_json_open(j, "device", '{');
    fth_json_text(j, "asked", r->asked);
    fth_json_text(j, "used", r->device[0] ? r->device : NULL);
    fth_json_text(j, "reason", r->device[0] ? r->reason : NULL);
    fth_json_u64(j, "threads", (uint64_t)r->threads);
    fth_json_close(j);
    fth_json_open(j, "memory", '{');
    fth_json_u64(j, "total_bytes", r->memory_total);
    fth_json_u64(j, "free_bytes", r->memory_free);
    fth_json_u64(j, "cgroup_limit_bytes", r->memory_limit);
    fth_json_u64(j, "budget_bytes", r->budget);
    fth_json_real(j, "copy_bytes_per_s", r->copy_rate);
    fth_json_close(j);
    fth_json_open(j, "scratch", '{');
    fth_json_text(j, "folder", r->scratch);
    fth_json_text(j, "file_system", r->scratch_system[0] ? r->scratch_system : NULL);
    fth_json_bool(j, "writable", r->scratch_writable);
    fth_json_u64(j, "free_bytes", r->scratch_free);
    fth_json_real(j, "write_bytes_per_s", r->write_rate);
    fth_json_real(j, "read_bytes_per_s", r->read_rate);
    fth_json_close(j);
}

void doctor_show_json(fth_json_writer *j, const doctor_report *r)
{
    fth_json_text(j, "version", fth_version());
    json_system(j, r);
    json_machine(j, r);
    doctor_show_rates_json(j, r);
    if (r->storage.path) doctor_show_storage_json(j, &r->storage);
    if (r->slurm.there) doctor_show_slurm_json(j, &r->slurm);
    fth_json_open(j, "libraries", '[');
    for (int i = 0; i < r->n_libraries; i++) {
        fth_json_open(j, NULL, '{');
        fth_json_text(j, "name", cli_libraries[i].name);
        fth_json_text(j, "version", r->library_found[i] ? r->library_version[i] : NULL);
        fth_json_close(j);
    }
    fth_json_close(j);
    fth_json_open(j, "selftest", '[');
    for (int i = 0; i < r->n_cases; i++) {
        const doctor_case *c = &r->cases[i];
        fth_json_open(j, NULL, '{');
        fth_json_text(j, "name", c->name);
        fth_json_bool(j, "passed", c->status == FTH_OK && c->difference <= c->allowed);
        if (c->absent) fth_json_bool(j, "absent", true);
        fth_json_real(j, "difference", c->difference);
        fth_json_real(j, "allowed", c->allowed);
        fth_json_close(j);
    }
    fth_json_close(j);
    fth_json_open(j, "faults", '[');
    for (int i = 0; i < r->n_faults; i++) {
        fth_json_open(j, NULL, '{');
        fth_json_text(j, "about", r->fault[i].about);
        fth_json_bool(j, "stops", r->fault[i].stops);
        fth_json_text(j, "text", r->fault[i].text);
        fth_json_text(j, "remedy", r->fault[i].remedy);
        fth_json_close(j);
    }
    fth_json_close(j);
}
