/* libraries.c - versions of the loaded libraries, as they report them.
 *
 * They come with libfathom; the program asks for a symbol by name, so that it shows what is
 * loaded and not what it was compiled with. oneDNN is opened as the engine opens it.
 */
#include "../cli.h"

#include <dlfcn.h>
#include <string.h>

const cli_library cli_libraries[] = {
    {"OpenBLAS", "openblas_get_config", CLI_RETURNS_TEXT, NULL, "products and solvers",
     "libopenblas0-pthread", false},
    {"oneDNN", "dnnl_version", CLI_RETURNS_STRUCT, "libdnnl.so.2",
     "fast convolutions; plain loops without it", "libdnnl2", false},
    {"HDF5", "H5get_libversion", CLI_FILLS_THREE, NULL, "HDF5 files", "libhdf5-103-1", false},
    {"zlib", "zlibVersion", CLI_RETURNS_TEXT, NULL, "packed NPZ files, timelines and images",
     "zlib1g", false},
    {"jansson", "jansson_version_str", CLI_RETURNS_TEXT, NULL,
     "JSON files, and headers of safetensors files", "libjansson4", false},
    {"libyaml", "yaml_get_version_string", CLI_RETURNS_TEXT, NULL, "configs", "libyaml-0-2", false},
    {"xxHash", "XXH_versionNumber", CLI_RETURNS_NUMBER, NULL, "hashes", "libxxhash0", false},
    {"SQLite", "sqlite3_libversion", CLI_RETURNS_TEXT, NULL, "ledgers of jobs", "libsqlite3-0",
     false},
    {"cairo", "cairo_version_string", CLI_RETURNS_TEXT, NULL, "figures", "libcairo2", false},
    {"Open MPI", "MPI_Get_library_version", CLI_FILLS_TEXT, "libmpi.so.40",
     "one stage on several nodes (mpirun)", "openmpi-bin", true},
    {"libmicrohttpd", "MHD_get_version", CLI_RETURNS_TEXT, NULL, "fathom serve", "libmicrohttpd12",
     false},
};
const int cli_n_libraries = sizeof cli_libraries / sizeof cli_libraries[0];

/* C has no cast from an object's address to a function's; POSIX means that the bytes agree. */
typedef union function {
    void *address;
    const char *(*text)(void);
    unsigned (*number)(void);
    int (*three)(unsigned *, unsigned *, unsigned *);
    const int *(*fields)(void); /* a struct that starts with three ints */
    int (*fill)(char *text, int *length);
} function;

static void ask(const cli_library *library, void *symbol, char *version, size_t bytes)
{
    const function f = {.address = symbol};
    unsigned v[3] = {0};
    switch (library->kind) {
    case CLI_RETURNS_TEXT: snprintf(version, bytes, "%s", f.text()); break;
    case CLI_RETURNS_NUMBER: {
        const unsigned n = f.number();
        v[0] = n / 10000, v[1] = n / 100 % 100, v[2] = n % 100;
        break;
    }
    case CLI_FILLS_THREE: f.three(&v[0], &v[1], &v[2]); break;
    case CLI_FILLS_TEXT: {
        char text[8192]; /* more than Open MPI's 256 and MPICH's 8192 less one */
        int length = 0;
        if (f.fill(text, &length) == 0) snprintf(version, bytes, "%.*s", length, text);
        break;
    }
    case CLI_RETURNS_STRUCT:
        for (int i = 0; i < 3; i++) v[i] = (unsigned)f.fields()[i];
        break;
    }
    if (!version[0]) snprintf(version, bytes, "%u.%u.%u", v[0], v[1], v[2]);
    version[strcspn(version, "\n")] = '\0';
    for (size_t n = strlen(version); n > 0 && version[n - 1] == ' '; n--) version[n - 1] = '\0';
}

bool cli_library_find(const cli_library *library, char *version, size_t bytes, char *file,
                      size_t file_bytes)
{
    version[0] = file[0] = '\0';
    void *const so = library->open ? dlopen(library->open, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library->open && !so) return false;
    void *symbol = dlsym(so ? so : RTLD_DEFAULT, library->symbol);
    Dl_info info;
    if (symbol) {
        ask(library, symbol, version, bytes);
        if (dladdr(symbol, &info) && info.dli_fname)
            snprintf(file, file_bytes, "%s", info.dli_fname);
    }
    if (so) dlclose(so);
    return symbol != NULL;
}
