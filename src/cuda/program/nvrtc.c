/* nvrtc.c - opening the compiler, and one compilation. */
#include "cuda/program/nvrtc.h"

#include "base/str.h"
#include "cuda/program/source.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *symbol(fth__nvrtc *n, const char *name)
{
    void *s = n->library ? dlsym(n->library, name) : NULL;
    if (s || !n->library) return s;
    snprintf(n->why, sizeof n->why, "NVRTC without %s", name);
    (void)dlclose(n->library);
    n->library = NULL;
    return NULL;
}

/* dlsym gives data pointers; POSIX promises that they hold functions too. */
#define TAKE(member, name)                                                                         \
    do {                                                                                           \
        void *const found = symbol(n, name);                                                       \
        memcpy(&n->member, &found, sizeof found);                                                  \
    } while (0)

void fth__nvrtc_open(fth__nvrtc *n)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    memset(n, 0, sizeof *n);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !n->library; i++)
        n->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        const char *why = dlerror();
        fth__str_copy(n->why, sizeof n->why, why ? why : "libnvrtc.so was not found");
        return;
    }
    TAKE(version, "nvrtcVersion");
    TAKE(create, "nvrtcCreateProgram");
    TAKE(destroy, "nvrtcDestroyProgram");
    TAKE(compile, "nvrtcCompileProgram");
    TAKE(code_bytes, "nvrtcGetCUBINSize");
    TAKE(code, "nvrtcGetCUBIN");
    TAKE(log_bytes, "nvrtcGetProgramLogSize");
    TAKE(log, "nvrtcGetProgramLog");
    TAKE(error, "nvrtcGetErrorString");
    if (n->library) (void)n->version(&n->major, &n->minor);
}

void fth__nvrtc_close(fth__nvrtc *n)
{
    if (n->library) (void)dlclose(n->library);
    n->library = NULL;
}

/* The first lines of what the compiler said. */
static fth_status fail(const fth__nvrtc *n, void *program, int code, fth_err *err)
{
    char log[4096] = "";
    size_t bytes = 0;
    if (program && n->log_bytes(program, &bytes) == 0 && bytes > 0 && bytes <= sizeof log)
        (void)n->log(program, log);
    char *end = log;
    for (int lines = 0; *end && lines < 3; end++) lines += *end == '\n';
    *end = 0;
    return FTH_FAIL(err, FTH_E_DEVICE, "NVRTC %d.%d cannot compile a kernel: %s\n%s", n->major,
                    n->minor, n->error(code), log);
}

enum { MAX_HEADERS = 32 };

fth_status fth__nvrtc_compile(const fth__nvrtc *n, const char *source, int major, int minor,
                              void **program, size_t *bytes, fth_err *err)
{
    const char *text[MAX_HEADERS], *name[MAX_HEADERS];
    char arch[32];
    /* Rounding as the C compiler does it: nothing is contracted, nothing flushed or approximated.
     */
    const char *const options[] = {arch,         "-std=c++17",     "-default-device", "-fmad=false",
                                   "-ftz=false", "-prec-div=true", "-prec-sqrt=true"};
    *program = NULL;
    *bytes = 0;
    if (fth__cuda_n_headers > MAX_HEADERS)
        return FTH_FAIL(err, FTH_E_INTERNAL, "%d headers for NVRTC, at most %d are passed",
                        fth__cuda_n_headers, MAX_HEADERS);
    for (int i = 0; i < fth__cuda_n_headers; i++) {
        text[i] = fth__cuda_headers[i].text;
        name[i] = fth__cuda_headers[i].name;
    }
    snprintf(arch, sizeof arch, "-arch=sm_%d%d", major, minor);
    int code = n->create(program, source, "fused.cu", fth__cuda_n_headers, text, name);
    if (code == 0) code = n->compile(*program, (int)(sizeof options / sizeof options[0]), options);
    if (code == 0) code = n->code_bytes(*program, bytes);
    return code == 0 ? FTH_OK : fail(n, *program, code, err);
}

fth_status fth__nvrtc_code(const fth__nvrtc *n, void *program, char *to, fth_err *err)
{
    const int code = n->code(program, to);
    return code == 0 ? FTH_OK : fail(n, program, code, err);
}

void fth__nvrtc_release(const fth__nvrtc *n, void *program)
{
    if (program) (void)n->destroy(&program);
}
