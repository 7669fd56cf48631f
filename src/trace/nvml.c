/* nvml.c - NVML behind one face. No other file knows its names.
 *
 * The structs are written out here, since the header comes with CUDA and the library with the
 * driver. A function that is missing or refuses leaves its value unknown.
 */
#include "trace/nvml.h"

#include "base/assert.h"
#include "base/str.h"
#include "mem/heap.h"

#include <dlfcn.h>
#include <string.h>

/* ---- its types ---- */

typedef void *device; /* a handle */
typedef struct two {
    unsigned a, b;
} two;
typedef struct space {
    unsigned long long total, free, used;
} space;
typedef struct space2 { /* what the driver keeps for itself is apart */
    unsigned version;
    unsigned long long total, reserved, free, used;
} space2;
typedef struct violation {
    unsigned long long reference_ns, violation_ns;
} violation;
typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;
typedef struct field_value {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, status;
    union {
        double d;
        unsigned u;
        unsigned long ul;
        unsigned long long ull;
        long long ll;
        int i;
    } value;
} field_value;
typedef struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} pci;

enum { SUCCESS = 0, TOO_SMALL = 7, FIELD_MEMORY_TEMPERATURE = 82, CLOCK_SM = 1, CLOCK_MEMORY = 2 };

/* Name in this file, name in the library, arguments: all return a status. */
#define FUNCTIONS                                                                                  \
    F(init, "nvmlInit_v2", (void))                                                                 \
    F(shutdown, "nvmlShutdown", (void))                                                            \
    F(driver_version, "nvmlSystemGetDriverVersion", (char *, unsigned))                            \
    F(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", (int *))                                  \
    F(count, "nvmlDeviceGetCount_v2", (unsigned *))                                                \
    F(by_index, "nvmlDeviceGetHandleByIndex_v2", (unsigned, device *))                             \
    F(name, "nvmlDeviceGetName", (device, char *, unsigned))                                       \
    F(uuid, "nvmlDeviceGetUUID", (device, char *, unsigned))                                       \
    F(pci_info, "nvmlDeviceGetPciInfo_v3", (device, pci *))                                        \
    F(memory, "nvmlDeviceGetMemoryInfo", (device, space *))                                        \
    F(memory2, "nvmlDeviceGetMemoryInfo_v2", (device, space2 *))                                   \
    F(bar1, "nvmlDeviceGetBAR1MemoryInfo", (device, space *))                                      \
    F(protected_memory, "nvmlDeviceGetConfComputeProtectedMemoryUsage", (device, space *))         \
    F(mode, "nvmlDeviceGetComputeMode", (device, int *))                                           \
    F(mig, "nvmlDeviceGetMigMode", (device, unsigned *, unsigned *))                               \
    F(mig_most, "nvmlDeviceGetMaxMigDeviceCount", (device, unsigned *))                            \
    F(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", (device, unsigned, device *))           \
    F(ecc, "nvmlDeviceGetEccMode", (device, unsigned *, unsigned *))                               \
    F(ecc_errors, "nvmlDeviceGetTotalEccErrors", (device, int, int, unsigned long long *))         \
    F(replays, "nvmlDeviceGetPcieReplayCounter", (device, unsigned *))                             \
    F(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", (device, unsigned *))                \
    F(pcie_lanes, "nvmlDeviceGetCurrPcieLinkWidth", (device, unsigned *))                          \
    F(pcie_rate, "nvmlDeviceGetPcieThroughput", (device, int, unsigned *))                         \
    F(slowed, "nvmlDeviceGetCurrentClocksThrottleReasons", (device, unsigned long long *))         \
    F(processes, "nvmlDeviceGetComputeRunningProcesses_v3", (device, unsigned *, process *))       \
    F(utilization, "nvmlDeviceGetUtilizationRates", (device, two *))                               \
    F(encoder, "nvmlDeviceGetEncoderUtilization", (device, unsigned *, unsigned *))                \
    F(decoder, "nvmlDeviceGetDecoderUtilization", (device, unsigned *, unsigned *))                \
    F(jpeg, "nvmlDeviceGetJpgUtilization", (device, unsigned *, unsigned *))                       \
    F(flow, "nvmlDeviceGetOfaUtilization", (device, unsigned *, unsigned *))                       \
    F(clock, "nvmlDeviceGetClockInfo", (device, int, unsigned *))                                  \
    F(power, "nvmlDeviceGetPowerUsage", (device, unsigned *))                                      \
    F(temperature, "nvmlDeviceGetTemperature", (device, int, unsigned *))                          \
    F(fields, "nvmlDeviceGetFieldValues", (device, int, field_value *))                            \
    F(violations, "nvmlDeviceGetViolationStatus", (device, int, violation *))

typedef struct functions {
#define F(name, symbol, args) int(*name) args;
    FUNCTIONS
#undef F
} functions;

struct fth__nvml {
    fth_mem *mem; /* NULL: on the caller's stack */
    void *so;
    functions f;
    int n;
    device card[FTH_GPUS];
    violation before[FTH_GPUS][2]; /* power, temperature */
};

/* A call that may be missing. */
#define ASK(n, name, ...) ((n)->f.name && (n)->f.name(__VA_ARGS__) == SUCCESS)

/* ---- open and close ---- */

static const char *error_text(void *so, int status)
{
    const char *(*text)(int);
    *(void **)&text = dlsym(so, "nvmlErrorString");
    const char *s = text ? text(status) : NULL;
    return s ? s : "no reason given";
}

/* C has no cast from an object's address to a function's; POSIX means that the bytes agree. */
static void find_functions(void *so, functions *f)
{
#define F(name, symbol, args) *(void **)&f->name = dlsym(so, symbol);
    FUNCTIONS
#undef F
}

static bool open_library(fth__nvml *n, char *why, size_t bytes)
{
    why[0] = '\0';
    n->so = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->so) {
        fth__str_copy(why, bytes, "there is no NVIDIA driver: libnvidia-ml.so.1 cannot be opened");
        return false;
    }
    find_functions(n->so, &n->f);
    unsigned count = 0;
    const int status = n->f.init ? n->f.init() : -1;
    if (!n->f.init)
        fth__str_copy(why, bytes, "libnvidia-ml.so.1 is too old to be asked");
    else if (status != SUCCESS)
        snprintf(why, bytes, "the NVIDIA driver does not answer: %s", error_text(n->so, status));
    else if (!ASK(n, count, &count) || count == 0)
        fth__str_copy(why, bytes, "the NVIDIA driver knows no card");
    for (unsigned i = 0; i < count && n->n < FTH_GPUS; i++)
        if (ASK(n, by_index, i, &n->card[n->n])) n->n++;
    if (count > 0 && n->n == 0) fth__str_copy(why, bytes, "no NVIDIA card can be reached");
    if (n->n > 0) return true;
    if (status == SUCCESS && n->f.shutdown) n->f.shutdown();
    dlclose(n->so);
    n->so = NULL;
    return false;
}

static void close_library(fth__nvml *n)
{
    if (!n->so) return;
    if (n->f.shutdown) n->f.shutdown();
    dlclose(n->so);
}

fth__nvml *fth__nvml_open(fth_mem *mem, char *why, size_t bytes)
{
    fth__nvml *n = fth__heap_alloc(mem, sizeof *n);
    if (!n) {
        fth__str_copy(why, bytes, "no memory");
        return NULL;
    }
    n->mem = mem;
    if (open_library(n, why, bytes)) return n;
    fth__heap_free(mem, n);
    return NULL;
}

void fth__nvml_close(fth__nvml *n)
{
    if (!n) return;
    close_library(n);
    fth__heap_free(n->mem, n);
}

int fth__nvml_count(const fth__nvml *n)
{
    return n->n;
}

/* As nvidia-smi shows it; old drivers count what they keep for themselves as used. */
static bool ask_memory(const fth__nvml *n, device d, space *out)
{
    space2 v = {.version = (unsigned)sizeof v | 2u << 24};
    if (!ASK(n, memory2, d, &v)) return ASK(n, memory, d, out);
    *out = (space){v.total, v.free, v.used};
    return true;
}

/* ---- what a card is ---- */

static void read_instances(const fth__nvml *n, device d, fth_gpu *g)
{
    unsigned now = 0, later = 0, most = 0;
    device instance = NULL;
    g->mig = ASK(n, mig, d, &now, &later) ? now != 0 : -1;
    if (g->mig != 1 || !ASK(n, mig_most, d, &most)) return;
    for (unsigned i = 0; i < most; i++) g->mig_instances += ASK(n, mig_by_index, d, i, &instance);
}

static void read_processes(const fth__nvml *n, device d, fth_gpu *g)
{
    process p[64];
    unsigned count = sizeof p / sizeof p[0];
    const int status = n->f.processes ? n->f.processes(d, &count, p) : -1;
    if (status == TOO_SMALL) g->n_processes = (int)count; /* too many to name */
    if (status != SUCCESS) return;
    g->n_processes = (int)count;
    for (int i = 0; i < g->n_processes && i < FTH_GPU_PROCESSES; i++) {
        g->process[i].pid = p[i].pid;
        g->process[i].bytes = p[i].used == ~0ull ? 0 : p[i].used; /* not told in containers */
    }
}

static void read_card(const fth__nvml *n, device d, fth_gpu *g)
{
    unsigned now = 0, later = 0;
    int mode = 0;
    space s = {0};
    pci bus;
    memset(&bus, 0, sizeof bus);
    if (!ASK(n, name, d, g->name, sizeof g->name)) g->name[0] = '\0';
    if (!ASK(n, uuid, d, g->uuid, sizeof g->uuid)) g->uuid[0] = '\0';
    if (ASK(n, pci_info, d, &bus)) fth__str_copy(g->bus_id, sizeof g->bus_id, bus.bus_id);
    if (ask_memory(n, d, &s)) {
        g->total_bytes = s.total;
        g->free_bytes = s.free;
        g->used_bytes = s.used;
    }
    const bool known = ASK(n, mode, d, &mode) && mode >= 0 && mode < FTH_GPU_MODE_COUNT;
    g->mode = known ? (fth_gpu_mode)mode : FTH_GPU_MODE_UNKNOWN;
    g->ecc = ASK(n, ecc, d, &now, &later) ? now != 0 : -1;
    if (ASK(n, pcie_generation, d, &now)) g->pcie_generation = (int)now;
    if (ASK(n, pcie_lanes, d, &now)) g->pcie_lanes = (int)now;
    unsigned long long bits = 0;
    if (ASK(n, slowed, d, &bits)) g->slowed = bits;
    read_instances(n, d, g);
    read_processes(n, d, g);
}

bool fth_gpus_read(fth_gpus *out)
{
    fth__nvml n;
    memset(&n, 0, sizeof n);
    memset(out, 0, sizeof *out);
    if (!open_library(&n, out->why, sizeof out->why)) return false;
    if (!ASK(&n, driver_version, out->driver, sizeof out->driver)) out->driver[0] = '\0';
    if (!ASK(&n, cuda_version, &out->cuda_version)) out->cuda_version = 0;
    for (out->n = 0; out->n < n.n; out->n++) read_card(&n, n.card[out->n], &out->gpu[out->n]);
    close_library(&n);
    return true;
}

/* ---- what a card does ---- */

/* A number that was asked for first, by ASK. */
#define GOT(asked, number) ((asked) ? count_of(number) : -1)
static int64_t count_of(uint64_t value)
{
    return value <= INT64_MAX ? (int64_t)value : -1;
}

/* As table rows want it: the memory's temperature comes as whatever type the driver likes. */
static int64_t memory_temperature(const fth__nvml *n, device d)
{
    field_value v = {.field = FIELD_MEMORY_TEMPERATURE};
    if (!ASK(n, fields, d, 1, &v) || v.status != SUCCESS) return -1;
    switch (v.type) {
    case 0: return (int64_t)v.value.d;
    case 1: return v.value.u;
    case 2: return count_of(v.value.ul);
    case 3: return count_of(v.value.ull);
    case 4: return v.value.ll;
    case 5: return v.value.i;
    default: return -1;
    }
}

/* Percent of the time since the sample before that the clocks were held down for a reason. */
static int64_t held_down(fth__nvml *n, int i, int reason)
{
    violation v = {0};
    if (!ASK(n, violations, n->card[i], reason, &v)) return -1;
    violation *b = &n->before[i][reason];
    const bool first = b->reference_ns == 0;
    const double time = (double)(v.reference_ns - b->reference_ns);
    const double held = (double)(v.violation_ns - b->violation_ns);
    *b = v;
    if (first || time <= 0 || held <= 0) return 0;
    return (int64_t)(held < time ? 100 * held / time + 0.5 : 100);
}

void fth__nvml_sample(fth__nvml *n, int i, int64_t value[FTH__GPU_VALUES])
{
    FTH_ASSERT(i >= 0 && i < n->n);
    const device d = n->card[i];
    const uint64_t mb = 1 << 20;
    unsigned u = 0, period = 0;
    unsigned long long errors = 0;
    space s = {0};
    two busy = {0};
    const bool known = ASK(n, utilization, d, &busy);
    value[FTH__GPU_SM] = GOT(known, busy.a);
    value[FTH__GPU_MEM] = GOT(known, busy.b);
    value[FTH__GPU_PWR] = GOT(ASK(n, power, d, &u), (u + 500) / 1000);
    value[FTH__GPU_GTEMP] = GOT(ASK(n, temperature, d, 0, &u), u);
    value[FTH__GPU_MTEMP] = memory_temperature(n, d);
    value[FTH__GPU_ENC] = GOT(ASK(n, encoder, d, &u, &period), u);
    value[FTH__GPU_DEC] = GOT(ASK(n, decoder, d, &u, &period), u);
    value[FTH__GPU_JPG] = GOT(ASK(n, jpeg, d, &u, &period), u);
    value[FTH__GPU_OFA] = GOT(ASK(n, flow, d, &u, &period), u);
    value[FTH__GPU_MCLK] = GOT(ASK(n, clock, d, CLOCK_MEMORY, &u), u);
    value[FTH__GPU_PCLK] = GOT(ASK(n, clock, d, CLOCK_SM, &u), u);
    value[FTH__GPU_PVIOL] = held_down(n, i, 0);
    const int64_t hot = held_down(n, i, 1);
    value[FTH__GPU_TVIOL] = hot > 0 ? 1 : hot;
    value[FTH__GPU_FB] = GOT(ask_memory(n, d, &s), (s.used + mb / 2) / mb);
    value[FTH__GPU_BAR1] = GOT(ASK(n, bar1, d, &s), s.used / mb);
    value[FTH__GPU_CCPM] = GOT(ASK(n, protected_memory, d, &s), s.used / mb);
    value[FTH__GPU_SBECC] = GOT(ASK(n, ecc_errors, d, 0, 0, &errors), errors);
    value[FTH__GPU_DBECC] = GOT(ASK(n, ecc_errors, d, 1, 0, &errors), errors);
    value[FTH__GPU_PCI] = GOT(ASK(n, replays, d, &u), u);
    value[FTH__GPU_TXPCI] = GOT(ASK(n, pcie_rate, d, 0, &u), u / 1024);
    value[FTH__GPU_RXPCI] = GOT(ASK(n, pcie_rate, d, 1, &u), u / 1024);
}
