/* backend.c - opening a backend's shared object, with the reason in words when it cannot be. */
#include "run/backend.h"

#include "base/str.h"

#include <dlfcn.h>
#include <string.h>

static const char file_name[] = "libfathom_cuda.so";

/* The folder that holds this very code: a backend is installed beside it. */
static void beside_us(char *path, size_t bytes)
{
    Dl_info here;
    path[0] = 0;
    union {
        fth_status (*function)(const char *, const fth_backend **, void **, fth_err *);
        const void *address;
    } us = {fth__backend_load};
    if (dladdr(us.address, &here) == 0 || !here.dli_fname) return;
    const char *slash = strrchr(here.dli_fname, '/');
    if (!slash) return;
    snprintf(path, bytes, "%.*s/%s", (int)(slash - here.dli_fname), here.dli_fname, file_name);
}

/* The last error of dlopen, on one line. */
static void *open_one(const char *path, char *why, size_t bytes)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *text = library ? NULL : dlerror();
    if (text) snprintf(why, bytes, "%s", text);
    return library;
}

static void *open_any(const char *path, char *why, size_t bytes)
{
    char beside[4096], lib[4096 + 16], first[512] = "";
    if (path) return open_one(path, why, bytes);
    beside_us(beside, sizeof beside);
    void *library = beside[0] ? open_one(beside, first, sizeof first) : NULL;
    if (!library && beside[0]) { /* a program that took the static library: bin/ beside lib/ */
        char *slash = strrchr(beside, '/');
        *slash = 0;
        snprintf(lib, sizeof lib, "%s/../lib/%s", beside, file_name);
        char other[512];
        library = open_one(lib, other, sizeof other);
    }
    if (!library) library = open_one(file_name, why, bytes);
    if (!library && first[0]) snprintf(why, bytes, "%s", first);
    return library;
}

static fth_status check(const fth_backend *b, fth_err *err)
{
    if (!b || b->abi != FTH_BACKEND_ABI)
        return FTH_FAIL(err, FTH_E_DEVICE, "the backend speaks version %u and %u is wanted",
                        b ? b->abi : 0u, (unsigned)FTH_BACKEND_ABI);
    if (!b->version || strcmp(b->version, FTH_VERSION_TEXT) != 0)
        return FTH_FAIL(err, FTH_E_DEVICE, "the backend is of Fathom %s and this is %s",
                        b->version ? b->version : "?", FTH_VERSION_TEXT);
    if (!b->find || !b->device)
        return FTH_FAIL(err, FTH_E_DEVICE, "the backend '%s' has no device", b->name);
    return FTH_OK;
}

fth_status fth__backend_load(const char *path, const fth_backend **out, void **library,
                             fth_err *err)
{
    char why[512] = "";
    *out = NULL;
    *library = open_any(path, why, sizeof why);
    if (!*library) return FTH_FAIL(err, FTH_E_DEVICE, "no CUDA backend: %s", why);
    union {
        void *symbol;
        fth_backend_get_fn *get;
    } entry = {dlsym(*library, FTH_BACKEND_SYMBOL)};
    const fth_backend *b = entry.symbol ? entry.get() : NULL;
    fth_status s = entry.symbol ? check(b, err)
                                : FTH_FAIL(err, FTH_E_DEVICE, "%s has no symbol %s",
                                           path ? path : file_name, FTH_BACKEND_SYMBOL);
    if (s == FTH_OK) {
        *out = b;
        return FTH_OK;
    }
    dlclose(*library);
    *library = NULL;
    return s;
}
