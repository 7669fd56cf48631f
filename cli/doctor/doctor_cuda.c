/* doctor_cuda.c - why a graphics card cannot be used, the first cause from the driver up.
 *
 * The order: the driver's library, its start, cards at all, CUDA_VISIBLE_DEVICES, the age of the
 * driver, then each card (kernels for it, who may use it, who does, its memory, its instances),
 * and at last our own backend. What hides every card ends the search: the rest would be guesses.
 */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* CUDA writes "0000:0a:00.0", NVML "00000000:0A:00.0". */
static bool same_bus(const char *a, const char *b)
{
    const size_t tail = 12, n = strlen(a), m = strlen(b);
    return n >= tail && m >= tail && strcasecmp(a + n - tail, b + m - tail) == 0;
}

const fth_gpu *doctor_gpu(const doctor_report *r, int i)
{
    for (int k = 0; k < r->gpus.n; k++)
        if (same_bus(r->api.card[i].bus_id, r->gpus.gpu[k].bus_id)) return &r->gpus.gpu[k];
    return NULL;
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

/* Whether an entry of the list can be a card of this machine. */
static bool names_card(const char *entry, size_t n, const fth_gpus *gpus)
{
    const size_t digits = strspn(entry, "0123456789");
    if (digits > 0 && digits == n)
        return digits < 6 && (gpus->n == 0 || strtol(entry, NULL, 10) < gpus->n);
    if (n >= 4 && strncmp(entry, "MIG-", 4) == 0) return true;
    if (n < 4 || strncmp(entry, "GPU-", 4) != 0) return false;
    bool found = gpus->n == 0;
    for (int i = 0; i < gpus->n; i++) found |= strncmp(gpus->gpu[i].uuid, entry, n) == 0;
    return found;
}

/* The first entry that names no card: CUDA reads no further. */
static bool find_invalid(const char *list, const fth_gpus *gpus, char *entry, size_t bytes)
{
    for (const char *at = list; *at;) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, ", ");
        if (!names_card(at, n, gpus)) {
            snprintf(entry, bytes, "%.*s", (int)n, at);
            return true;
        }
        at += n;
        at += strspn(at, " ");
        at += *at == ',';
    }
    return false;
}

/* True: it hides every card. */
static bool judge_visible(doctor_report *r)
{
    const char *list = doctor_variable(r, "CUDA_VISIBLE_DEVICES");
    char entry[64];
    if (!list) return false;
    if (!*list || strcmp(list, "-1") == 0) {
        doctor_add(r, "cuda", "unset it, or name a card: CUDA_VISIBLE_DEVICES=0",
                   "CUDA_VISIBLE_DEVICES is '%.40s', which hides every card.", list);
        return true;
    }
    if (!find_invalid(list, &r->gpus, entry, sizeof entry)) return false;
    doctor_add(r, r->api.n ? "gpu" : "cuda",
               "name cards that exist ('nvidia-smi -L' lists them), or unset it",
               "CUDA_VISIBLE_DEVICES is '%.80s': there is no card '%s', and the list ends there, "
               "so %d can be seen.",
               list, entry, r->api.n);
    return r->api.n == 0;
}

/* ---- the driver ---- */

typedef struct init_error {
    int status;
    const char *remedy;
} init_error;

static const char *init_remedy(int status)
{
    static const init_error known[] = {
        {34, "take the toolkit's folder 'stubs' out of LD_LIBRARY_PATH"},
        {802, "start the fabric manager: systemctl start nvidia-fabricmanager"},
        {803,
         "restart the machine: the driver was updated, but the old kernel module is still loaded"},
        {804, "take the libraries of cuda-compat out of LD_LIBRARY_PATH, or update the driver"},
        {999, "load the module for memory as root: modprobe nvidia_uvm; else restart the machine"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].status == status) return known[i].remedy;
    return "run nvidia-smi; when it fails too, install the driver again";
}

/* True: nothing behind the driver can be asked. */
static bool judge_driver(doctor_report *r)
{
    if (!r->api.library && !r->cuda_driver[0]) {
        doctor_add(r, "cuda",
                   "on a machine with an NVIDIA card, install its driver; in a container, pass the "
                   "card through (docker: --gpus all)",
                   "There is no NVIDIA driver: %s.", r->api.library_error);
        return true;
    }
    if (!r->api.library) {
        doctor_add(r, "cuda",
                   "install the driver's libraries of the same version; in a container, pass them "
                   "through (NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
                   "NVIDIA driver %s is loaded, but its library is not there: %s.", r->cuda_driver,
                   r->api.library_error);
        return true;
    }
    if (r->api.init == 0 || r->api.init == DOCTOR_NO_DEVICE) return false;
    doctor_add(r, "cuda", init_remedy(r->api.init), "The NVIDIA driver does not start: %s (%d).",
               r->api.init_name, r->api.init);
    return true;
}

static bool without_instance(const fth_gpu *g)
{
    return g && g->mig == 1 && g->mig_instances == 0;
}

/* No card can be seen, and CUDA_VISIBLE_DEVICES is not why. */
static void judge_no_card(doctor_report *r)
{
    for (int i = 0; i < r->gpus.n; i++) {
        if (!without_instance(&r->gpus.gpu[i])) continue;
        doctor_add(r, "cuda",
                   "create an instance (nvidia-smi mig -cgi 0 -C), or disable MIG (nvidia-smi "
                   "-mig 0)",
                   "GPU %s is in MIG mode and has no instances.", r->gpus.gpu[i].name);
        return;
    }
    doctor_add(r, "cuda",
               "ask the scheduler or the container for a card (Slurm: --gpus=1, docker: --gpus "
               "all)",
               "The NVIDIA driver%s%s is there, but no card can be reached%s.",
               r->cuda_driver[0] ? " " : "", r->cuda_driver,
               r->card_file ? "" : ": there is no /dev/nvidia0");
}

static bool judge_age(doctor_report *r)
{
    const int needed = r->backend.driver_needed;
    if (r->api.version == 0 || r->api.version >= needed) return false;
    doctor_add(r, "cuda", "update the driver: https://www.nvidia.com/drivers",
               "The NVIDIA driver%s%s supports CUDA %d.%d, and this build needs %d.%d or later.",
               r->cuda_driver[0] ? " " : "", r->cuda_driver, r->api.version / 1000,
               r->api.version / 10 % 100, needed / 1000, needed / 10 % 100);
    return true;
}

/* ---- each card ---- */

/* Processes other than this one. */
static int n_others(const doctor_report *r, const fth_gpu *g)
{
    int n = g ? g->n_processes : 0;
    for (int i = 0; g && i < g->n_processes && i < FTH_GPU_PROCESSES; i++)
        n -= g->process[i].pid == r->own_pid;
    return n;
}

static bool is_exclusive(fth_gpu_mode mode)
{
    return mode == FTH_GPU_ONE_THREAD || mode == FTH_GPU_ONE_PROCESS;
}

static bool is_usable(const doctor_report *r, int i)
{
    const fth_gpu_mode mode = r->api.card[i].mode;
    const fth_gpu *g = doctor_gpu(r, i);
    return r->api.card[i].capability >= r->backend.capability_needed &&
           mode != FTH_GPU_PROHIBITED && !(is_exclusive(mode) && n_others(r, g) > 0);
}

static void judge_busy(doctor_report *r, int i, const char *about)
{
    const fth_gpu *g = doctor_gpu(r, i);
    const int others = n_others(r, g);
    if (others <= 0) return;
    char list[200] = "", size[32]; /* stays empty when there are too many to be named */
    for (int k = 0; k < g->n_processes && k < FTH_GPU_PROCESSES; k++) {
        const size_t n = strlen(list);
        if (g->process[k].pid == r->own_pid || g->process[k].pid == 0) continue;
        snprintf(list + n, sizeof list - n, "%s pid %lld", n ? "," : "",
                 (long long)g->process[k].pid);
        const size_t m = strlen(list);
        if (g->process[k].bytes)
            snprintf(list + m, sizeof list - m, " with %s",
                     fth_mem_format_size(g->process[k].bytes, size, sizeof size));
    }
    const bool alone = is_exclusive(r->api.card[i].mode);
    doctor_add(r, about,
               alone ? "wait for it, or lift the mode as root: nvidia-smi -c DEFAULT"
                     : "wait for them, or choose another card with --device cuda:N",
               "GPU %d (%s) is %s by %d other process%s%s%s.", i, r->api.card[i].name,
               alone ? "for one process only (exclusive mode) and held" : "used", others,
               others == 1 ? "" : "es", list[0] ? ":" : "", list);
}

static void judge_card(doctor_report *r, int i, const char *about)
{
    const char *name = r->api.card[i].name;
    const int capability = r->api.card[i].capability, needed = r->backend.capability_needed;
    const fth_gpu *g = doctor_gpu(r, i);
    char a[32], b[32];
    if (capability < needed)
        doctor_add(r, about, "choose a newer card, or --device cpu",
                   "GPU %d (%s) has compute capability %d.%d, and this build has kernels for %d.%d "
                   "and later.",
                   i, name, capability / 10, capability % 10, needed / 10, needed % 10);
    if (r->api.card[i].mode == FTH_GPU_PROHIBITED)
        doctor_add(r, about, "lift the mode as root: nvidia-smi -c DEFAULT",
                   "GPU %d (%s) does not allow computations (mode 'prohibited').", i, name);
    else if (is_exclusive(r->api.card[i].mode) && n_others(r, g) <= 0)
        doctor_add(r, "gpu", "nothing to do for one job; for several: nvidia-smi -c DEFAULT",
                   "GPU %d (%s) takes one process at a time (exclusive mode).", i, name);
    judge_busy(r, i, is_exclusive(r->api.card[i].mode) ? about : "gpu");
    if (g && g->total_bytes && g->free_bytes < UINT64_C(2) << 30)
        doctor_add(r, "gpu", "wait until others are done, or choose another card",
                   "GPU %d (%s) has only %s of its %s free.", i, name,
                   fth_mem_format_size(g->free_bytes, a, sizeof a),
                   fth_mem_format_size(g->total_bytes, b, sizeof b));
}

static void judge_cards(doctor_report *r)
{
    int usable = 0;
    for (int i = 0; i < r->api.n; i++) usable += is_usable(r, i);
    for (int i = 0; i < r->api.n; i++) judge_card(r, i, usable ? "gpu" : "cuda");
    const int asked = r->asked && strncmp(r->asked, "cuda:", 5) == 0 ? atoi(r->asked + 5) : 0;
    if (asked >= r->api.n)
        doctor_add(r, "cuda", "ask for one of them, or for 'cuda'",
                   "cuda:%d was requested, and %d card%s can be seen, counted from 0.", asked,
                   r->api.n, r->api.n == 1 ? "" : "s");
    if (r->gpus.n == 0)
        doctor_add(r, "gpu", "install the driver's library libnvidia-ml.so.1 of the same version",
                   "Load and free memory of the cards are unknown: %s.", r->gpus.why);
}

void doctor_judge_cuda(doctor_report *r, const char *refusal)
{
    if (judge_driver(r)) return;
    const bool hidden = judge_visible(r);
    if (r->api.n == 0) {
        if (!hidden) judge_no_card(r);
        return;
    }
    if (judge_age(r)) return;
    judge_cards(r);
    if (!refusal) return;
    if (!r->backend.table)
        doctor_add(r, "cuda",
                   "build Fathom where nvcc is found, and put libfathom_cuda.so beside "
                   "libfathom.so; or --device cpu",
                   "The CUDA backend is missing: %.300s.", r->backend.why);
    else
        doctor_add(r, "cuda", "compute on the CPU: --device cpu, or auto to take what there is",
                   "The engine refuses: %s.", refusal);
}
