/* fake_cuda.c - an NVIDIA driver to put any fault there: libcuda.so.1 and libnvidia-ml.so.1.
 *
 * Built twice, once for each name, and found by LD_LIBRARY_PATH. The machine is written in
 * FAKE_CUDA as words "key=number", for example "cards=2 version=11020 mode=2"; what is not
 * written is healthy. Cards are numbered against each other in the two libraries, as on real
 * machines. "without=NAME" makes that function fail as if it were not supported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const char *key)
{
    const char *all = getenv("FAKE_CUDA");
    const size_t n = strlen(key);
    for (const char *at = all; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, key, n) == 0 && at[n] == '=') return at + n + 1;
    }
    return NULL;
}

static long number(const char *key, long otherwise)
{
    const char *at = word(key);
    return at ? strtol(at, NULL, 10) : otherwise;
}

static long cards(void)
{
    return number("cards", 1);
}

static unsigned long long gib(const char *key, long otherwise)
{
    return (unsigned long long)number(key, otherwise) << 30;
}

#ifdef FAKE_CUDA_DRIVER

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *card, int i);
int cuDeviceGetName(char *name, int bytes, int card);
int cuDeviceGetPCIBusId(char *id, int bytes, int card);
int cuDeviceTotalMem_v2(size_t *bytes, int card);
int cuDeviceGetAttribute(int *value, int attribute, int card);
int cuGetErrorName(int status, const char **name);

int cuInit(unsigned flags)
{
    (void)flags;
    return (int)number("init", 0);
}

int cuDriverGetVersion(int *version)
{
    *version = (int)number("version", 13000);
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = (int)number("seen", cards());
    return 0;
}

int cuDeviceGet(int *card, int i)
{
    *card = i;
    return 0;
}

int cuDeviceGetName(char *name, int bytes, int card)
{
    (void)card;
    snprintf(name, (size_t)bytes, "Fake Card");
    return 0;
}

int cuDeviceGetPCIBusId(char *id, int bytes, int card)
{
    snprintf(id, (size_t)bytes, "0000:%02lx:00.0", 10 + cards() - card);
    return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int card)
{
    (void)card;
    *bytes = gib("total", 80);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int card)
{
    (void)card;
    const long capability = number("capability", 90);
    *value = attribute == 20   ? (int)number("mode", 0)
             : attribute == 75 ? (int)capability / 10
             : attribute == 76 ? (int)capability % 10
                               : 0;
    return 0;
}

int cuGetErrorName(int status, const char **name)
{
    *name = status == 999   ? "CUDA_ERROR_UNKNOWN"
            : status == 100 ? "CUDA_ERROR_NO_DEVICE"
                            : "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
    return 0;
}

#else

/* Whether a function says that the card cannot do it. */
static int refused(const char *name)
{
    const char *without = word("without");
    return without && strncmp(without, name, strlen(name)) == 0 ? 3 : 0;
}

typedef struct space {
    unsigned long long total, free, used;
} space;
typedef struct space2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} space2;
typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;
typedef struct violation {
    unsigned long long reference_ns, violation_ns;
} violation;
typedef struct field_value {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, status;
    unsigned long long value;
} field_value;
typedef struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} pci;

static char handles[16];

static long index_of(const void *card)
{
    return (const char *)card - handles;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int status);
int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **card);
int nvmlDeviceGetName(void *card, char *text, unsigned bytes);
int nvmlDeviceGetUUID(void *card, char *text, unsigned bytes);
int nvmlDeviceGetPciInfo_v3(void *card, pci *out);
int nvmlDeviceGetMemoryInfo(void *card, space *out);
int nvmlDeviceGetMemoryInfo_v2(void *card, space2 *out);
int nvmlDeviceGetBAR1MemoryInfo(void *card, space *out);
int nvmlDeviceGetComputeMode(void *card, int *mode);
int nvmlDeviceGetMigMode(void *card, unsigned *now, unsigned *later);
int nvmlDeviceGetMaxMigDeviceCount(void *card, unsigned *most);
int nvmlDeviceGetMigDeviceHandleByIndex(void *card, unsigned i, void **instance);
int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, process *out);
int nvmlDeviceGetUtilizationRates(void *card, unsigned *two);
int nvmlDeviceGetEncoderUtilization(void *card, unsigned *value, unsigned *period);
int nvmlDeviceGetClockInfo(void *card, int clock, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *card, unsigned *mw);
int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *degrees);
int nvmlDeviceGetFieldValues(void *card, int n, field_value *out);
int nvmlDeviceGetViolationStatus(void *card, int reason, violation *out);
int nvmlDeviceGetPcieThroughput(void *card, int counter, unsigned *kb);
int nvmlDeviceGetTotalEccErrors(void *card, int type, int counter, unsigned long long *count);

int nvmlInit_v2(void)
{
    return (int)number("nvml", 0);
}

int nvmlShutdown(void)
{
    return 0;
}

const char *nvmlErrorString(int status)
{
    return status == 18 ? "Driver/library version mismatch" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    snprintf(text, bytes, "550.54.14");
    return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    *version = (int)number("version", 13000);
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)cards();
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **card)
{
    *card = handles + i;
    return i < sizeof handles ? 0 : 2;
}

int nvmlDeviceGetName(void *card, char *text, unsigned bytes)
{
    (void)card;
    snprintf(text, bytes, "Fake Card");
    return 0;
}

int nvmlDeviceGetUUID(void *card, char *text, unsigned bytes)
{
    snprintf(text, bytes, "GPU-0000-%ld", index_of(card));
    return 0;
}

int nvmlDeviceGetPciInfo_v3(void *card, pci *out)
{
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02lX:00.0", 11 + index_of(card));
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *card, space *out)
{
    (void)card;
    out->total = gib("total", 80);
    out->free = gib("free", 79);
    out->used = out->total - out->free;
    return refused("memory");
}

/* A bit more than half of a GiB is the driver's own. */
int nvmlDeviceGetMemoryInfo_v2(void *card, space2 *out)
{
    (void)card;
    if (out->version != (sizeof *out | 2u << 24)) return 25;
    out->total = gib("total", 80);
    out->free = gib("free", 79);
    out->reserved = (1u << 29) + (400u << 10); /* the rest is 511.6 MiB */
    out->used = out->total - out->free - out->reserved;
    return refused("memory");
}

int nvmlDeviceGetBAR1MemoryInfo(void *card, space *out)
{
    (void)card;
    *out = (space){.used = 3 << 20};
    return 0;
}

int nvmlDeviceGetComputeMode(void *card, int *mode)
{
    (void)card;
    *mode = (int)number("mode", 0);
    return 0;
}

int nvmlDeviceGetMigMode(void *card, unsigned *now, unsigned *later)
{
    (void)card;
    *now = *later = (unsigned)number("mig", 0);
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(void *card, unsigned *most)
{
    (void)card;
    *most = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *card, unsigned i, void **instance)
{
    *instance = card;
    return (long)i < number("instances", 0) ? 0 : 6;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, process *out)
{
    (void)card;
    const unsigned n = (unsigned)number("processes", 0);
    const unsigned room = *count;
    *count = n;
    if (n > room) return 7;
    for (unsigned i = 0; i < n; i++)
        out[i] = (process){.pid = 1000000 + i, .used = (unsigned long long)(i + 1) << 30};
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *card, unsigned *two)
{
    (void)card;
    static unsigned turn;
    two[0] = number("busy", -1) < 0 ? 10 * (turn++ % 11) : (unsigned)number("busy", 0);
    two[1] = 7;
    return refused("utilization");
}

int nvmlDeviceGetEncoderUtilization(void *card, unsigned *value, unsigned *period)
{
    (void)card;
    *value = *period = 0;
    return 0;
}

int nvmlDeviceGetClockInfo(void *card, int clock, unsigned *mhz)
{
    (void)card;
    *mhz = clock == 1 ? 1980 : clock == 2 ? 3201 : 0;
    return 0;
}

int nvmlDeviceGetPowerUsage(void *card, unsigned *mw)
{
    (void)card;
    *mw = 76543;
    return 0;
}

int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *degrees)
{
    (void)card;
    *degrees = 31;
    return sensor;
}

int nvmlDeviceGetFieldValues(void *card, int n, field_value *out)
{
    (void)card;
    for (int i = 0; i < n; i++) {
        out[i].status = out[i].field == 82 ? 0 : 3;
        out[i].type = 1;
        out[i].value = 38;
    }
    return 0;
}

/* Held down for a quarter of the time, by power alone. */
int nvmlDeviceGetViolationStatus(void *card, int reason, violation *out)
{
    (void)card;
    static unsigned long long turn;
    turn++;
    *out = (violation){1000000 * turn, reason == 0 ? 250000 * turn : 5};
    return 0;
}

int nvmlDeviceGetPcieThroughput(void *card, int counter, unsigned *kb)
{
    (void)card;
    *kb = counter == 0 ? 2048 : 5 * 1024;
    return 0;
}

int nvmlDeviceGetTotalEccErrors(void *card, int type, int counter, unsigned long long *count)
{
    (void)card;
    *count = (unsigned long long)(type + counter);
    return 0;
}

#endif
