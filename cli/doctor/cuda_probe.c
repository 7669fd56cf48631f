/* cuda_probe.c - asking the CUDA driver's library what there is, without using a card.
 *
 * No context is made there: that costs seconds and memory on the card. The library stays open,
 * since its threads outlive a dlclose. Our own backend is asked as well, and opens one card.
 */
#include "doctor.h"

#include <dlfcn.h>
#include <string.h>

/* Its functions, written out: the header comes with the toolkit, the library with the driver. */
#define FUNCTIONS                                                                                  \
    F(init, "cuInit", (unsigned))                                                                  \
    F(version, "cuDriverGetVersion", (int *))                                                      \
    F(count, "cuDeviceGetCount", (int *))                                                          \
    F(get, "cuDeviceGet", (int *, int))                                                            \
    F(name, "cuDeviceGetName", (char *, int, int))                                                 \
    F(bus_id, "cuDeviceGetPCIBusId", (char *, int, int))                                           \
    F(memory, "cuDeviceTotalMem_v2", (size_t *, int))                                              \
    F(attribute, "cuDeviceGetAttribute", (int *, int, int))                                        \
    F(error_name, "cuGetErrorName", (int, const char **))

typedef struct functions {
#define F(name, symbol, args) int(*name) args;
    FUNCTIONS
#undef F
} functions;

enum { UNITS = 16, MODE = 20, MAJOR = 75, MINOR = 76 }; /* attributes */

#define ASK(f, name, ...) ((f)->name && (f)->name(__VA_ARGS__) == 0)

static void look_card(const functions *f, int i, doctor_cuda *out)
{
    int card = 0, major = 0, minor = 0, mode = 0;
    size_t bytes = 0;
    if (!ASK(f, get, &card, i)) return;
    if (!ASK(f, name, out->card[i].name, sizeof out->card[i].name, card))
        snprintf(out->card[i].name, sizeof out->card[i].name, "no name");
    if (!ASK(f, bus_id, out->card[i].bus_id, sizeof out->card[i].bus_id, card))
        out->card[i].bus_id[0] = '\0';
    if (ASK(f, memory, &bytes, card)) out->card[i].total_bytes = bytes;
    if (ASK(f, attribute, &major, MAJOR, card) && ASK(f, attribute, &minor, MINOR, card))
        out->card[i].capability = 10 * major + minor;
    if (!ASK(f, attribute, &out->card[i].units, UNITS, card)) out->card[i].units = 0;
    const bool known =
        ASK(f, attribute, &mode, MODE, card) && mode >= 0 && mode < FTH_GPU_MODE_COUNT;
    out->card[i].mode = known ? (fth_gpu_mode)mode : FTH_GPU_MODE_UNKNOWN;
}

void doctor_look_cuda(void *user, doctor_cuda *out)
{
    (void)user;
    memset(out, 0, sizeof *out);
    void *const so = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!so) {
        const char *why = dlerror();
        snprintf(out->library_error, sizeof out->library_error, "%s", why ? why : "libcuda.so.1");
        return;
    }
    functions f;
#define F(name, symbol, args) *(void **)&f.name = dlsym(so, symbol);
    FUNCTIONS
#undef F
    if (!f.init) {
        snprintf(out->library_error, sizeof out->library_error, "libcuda.so.1 has no cuInit");
        return;
    }
    out->library = true;
    out->init = f.init(0);
    const char *name = NULL;
    if (out->init != 0)
        snprintf(out->init_name, sizeof out->init_name, "%s",
                 ASK(&f, error_name, out->init, &name) && name ? name : "an error without a name");
    if (!ASK(&f, version, &out->version)) out->version = 0;
    if (out->init != 0 || !ASK(&f, count, &out->n)) out->n = 0;
    if (out->n > FTH_GPUS) out->n = FTH_GPUS;
    for (int i = 0; i < out->n; i++) look_card(&f, i, out);
}

static void look_opened(fth_device *card, const fth_device_table *t, doctor_backend *out)
{
    out->opened = true;
    t->get_info(card, &out->card);
    if (t->get_libraries) t->get_libraries(card, &out->card);
    t->close(card);
}

/* It stays open, as the driver's library does. */
void doctor_look_backend(void *user, int index, doctor_backend *out)
{
    (void)user;
    fth_backend_found found;
    fth_err err = {0};
    *out = (doctor_backend){0};
    if (fth_backend_probe(NULL, &found, &err) != FTH_OK) {
        snprintf(out->why, sizeof out->why, "%.790s", err.text);
        return;
    }
    const fth_device_table *t = found.backend->device;
    out->table = found.backend;
    out->driver_needed = t->driver_needed;
    out->capability_needed = t->capability_needed;
    snprintf(out->file, sizeof out->file, "%s", found.file);
    fth_device *card = NULL;
    if (t->open(&card, index, &err) == FTH_OK)
        look_opened(card, t, out);
    else
        snprintf(out->refusal, sizeof out->refusal, "%.390s", err.text);
}
