/* backend.c - opening a backend's shared object, with the reason in words when it cannot be. */
#include "run/backend.h"

#include "base/str.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

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

/* Opened for good: the driver behind a backend has threads that outlive a dlclose. `folder` is
 * where a plain name was looked for before, NULL: nowhere. */
static void *open_one(const char *path, const char *folder, fth__text *why)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *text = library ? NULL : dlerror();
    if (!text) return library;
    fth__text_add(why, "%s", why->used ? "; " : "");
    if (strchr(path, '/') && access(path, F_OK) != 0)
        fth__text_add(why, "%s is not there", path);
    else if (folder && strstr(text, "No such file"))
        fth__text_add(why, "%s is neither in %s nor where the system looks", path, folder);
    else
        fth__text_add(why, "%s", text);
    return NULL;
}

/* `why` gets the reason for each place that was tried. */
static void *open_any(const char *path, fth__text *why)
{
    char beside[4096], lib[4096 + 32];
    if (path) return open_one(path, NULL, why);
    beside_us(beside, sizeof beside);
    char *end = strrchr(beside, '/');
    if (!end) return open_one(file_name, "its folder", why);
    void *library = access(beside, F_OK) == 0 ? open_one(beside, NULL, why) : NULL;
    if (library) return library;
    *end = 0; /* a program that took the static library: bin/ beside lib/ */
    snprintf(lib, sizeof lib, "%s/../lib/%s", beside, file_name);
    if (access(lib, F_OK) == 0) library = open_one(lib, NULL, why);
    return library ? library : open_one(file_name, beside, why);
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

/* The file that a symbol came from. */
static void name_file(void *symbol, char *file, size_t bytes)
{
    Dl_info info;
    const bool known = symbol && dladdr(symbol, &info) != 0 && info.dli_fname;
    fth__str_copy(file, bytes, known ? info.dli_fname : file_name);
}

fth_status fth_backend_probe(const char *path, fth_backend_found *out, fth_err *err)
{
    char words[800];
    fth__text why;
    fth__text_init(&why, words, sizeof words);
    *out = (fth_backend_found){0};
    out->library = open_any(path, &why);
    if (!out->library) return FTH_FAIL(err, FTH_E_DEVICE, "no CUDA backend: %s", words);
    union {
        void *symbol;
        fth_backend_get_fn *get;
    } entry = {dlsym(out->library, FTH_BACKEND_SYMBOL)};
    name_file(entry.symbol, out->file, sizeof out->file);
    const fth_backend *b = entry.symbol ? entry.get() : NULL;
    const fth_status s = entry.symbol ? check(b, err)
                                      : FTH_FAIL(err, FTH_E_DEVICE, "%s has no symbol %s",
                                                 path ? path : file_name, FTH_BACKEND_SYMBOL);
    if (s == FTH_OK)
        out->backend = b;
    else
        fth_backend_forget(out);
    return s;
}

void fth_backend_forget(fth_backend_found *found)
{
    if (!found || !found->library) return;
    dlclose(found->library);
    found->library = NULL;
    found->backend = NULL;
}

fth_status fth__backend_load(const char *path, const fth_backend **out, void **library,
                             fth_err *err)
{
    fth_backend_found found;
    *out = NULL;
    *library = NULL;
    FTH_TRY(fth_backend_probe(path, &found, err));
    *out = found.backend;
    *library = found.library;
    return FTH_OK;
}
