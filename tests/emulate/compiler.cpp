/* compiler.cpp - the compiler of the emulated device: the texts of kernels that are made at run
 * time become C++ for the CPU, by the compiler that made this. The first run of a program is
 * interpreted, later ones are compiled, where the context keeps code. Under a sanitizer they are
 * compiled without it: what is looked for there is the memory they are called with. */
#include "cuda/program/jit.h"
#include "cuda/program/worth.h"

extern "C" {
#include "graph/graph.h"
}

#include <dlfcn.h>
#include <map>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string>

struct fth__jit_code {
    void (*kernel)(const fth__ew_args &);
    int64_t done; /* work, as cuda/program/worth.h counts it */
};

enum { TEXT = 1 << 17 };
static const char *const head = "#include \"cuda_runtime.h\"\n#include <string.h>\n"
                                "#define FTH__SHARED(name) static uint4 name[4096]\n";

/* Where this library lies: kernels are linked with it. */
static std::string own_path(void)
{
    Dl_info info;
    return dladdr((const void *)head, &info) && info.dli_fname ? info.dli_fname : "";
}

static fth_status compile(const std::string &text, const std::string &name, fth__jit_code *code,
                          fth_err *err)
{
    FILE *f = fopen((name + ".cpp").c_str(), "w");
    const bool written = f && fputs(head, f) >= 0 && fputs(text.c_str(), f) >= 0;
    if ((f && fclose(f) != 0) || !written)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "cannot write %s.cpp", name.c_str());
    const std::string command = "'" FTH_CXX "' -std=c++20 -O0 -fPIC -shared -w -D_GNU_SOURCE "
                                "-D_GLIBCXX_BITS_SPECFUN_H=1 " /* as cmake/Cuda.cmake says */
                                "-ffp-contract=off -fno-strict-aliasing -fno-math-errno "
                                "-I'" FTH_ROOT "/tests/emulate' -I'" FTH_ROOT "/include' "
                                "-I'" FTH_ROOT "/src' '" +
                                name + ".cpp' -o '" + name + ".so' '" + own_path() + "'";
    void *library = system(command.c_str()) == 0 ? dlopen((name + ".so").c_str(), RTLD_NOW) : NULL;
    if (library) code->kernel = (void (*)(const fth__ew_args &))dlsym(library, "fth_kernel");
    if (!code->kernel)
        return FTH_FAIL(err, FTH_E_DEVICE, "cannot compile %s.cpp: %s", name.c_str(),
                        library ? "it has no kernel" : "see what the compiler said");
    return FTH_OK;
}

static std::mutex lock; /* of what follows: workers prepare beside each other */
static std::map<std::string, fth__jit_code> known;
static int64_t compiled; /* of them */

/* Empty: it is too long. */
static std::string text_of(const fth__program *p, const fth__ew_shape *shape, bool vec)
{
    std::string text(TEXT, '\0');
    if (fth__cuda_source(p, shape, vec, text.data(), TEXT) > TEXT) return "";
    text.resize(strlen(text.c_str()));
    return text;
}

fth_status fth__jit_get(fth_device *, const fth_node *node, const fth__program *p,
                        const fth__ew_shape *shape, bool vec, int64_t work, void *,
                        const fth__jit_code **out, fth_err *err)
{
    const char *const dir = node->graph ? fth_context_cache_dir(node->graph->ctx) : NULL;
    *out = NULL;
    if (!dir) return FTH_OK;
    const std::string text = text_of(p, shape, vec);
    if (text.empty()) return FTH_FAIL(err, FTH_E_INTERNAL, "the text of a kernel is too long");
    const std::lock_guard<std::mutex> held(lock);
    fth__jit_code *const code = &known[text];
    int64_t elements = 1;
    for (int k = 0; k < p->n_axes; k++) elements *= p->size[k];
    code->done += work;
    if (code->done <= fth__worth_of(p, elements)) return FTH_OK;
    const std::string name = std::string(dir) + "/kernel" + std::to_string(compiled);
    if (!code->kernel) {
        FTH_TRY(compile(text, name, code, err));
        compiled++;
    }
    *out = code;
    return FTH_OK;
}

bool fth__jit_has(fth_device *, const fth__program *p, const fth__ew_shape *shape, bool vec)
{
    const std::lock_guard<std::mutex> held(lock);
    if (compiled == 0) return false;
    const auto found = known.find(text_of(p, shape, vec));
    return found != known.end() && found->second.kernel;
}

fth_status fth__jit_launch(const fth_call *, const fth__jit_code *code, dim3 blocks,
                           unsigned threads, unsigned, const fth__ew_args *args)
{
    const fth__ew_args a = *args;
    emulate::run(blocks, dim3(threads), [=] { code->kernel(a); });
    return FTH_OK;
}
