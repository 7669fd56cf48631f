/* nvrtc.h - the compiler of kernels at run time, opened by name where there is one.
 *
 * It needs no GPU. Machine code is kept in a folder, when one is given: a file per kernel, written
 * whole or not at all, and looked at with suspicion.
 */
#ifndef FTH_CUDA_NVRTC_H
#define FTH_CUDA_NVRTC_H

#include <fathom/base.h>

FTH_BEGIN_DECLS

typedef struct fth__nvrtc {
    void *library; /* NULL: there is none, and `why` says what was tried */
    int major, minor;
    char why[160];
    /* its functions */
    int (*version)(int *major, int *minor);
    int (*create)(void **program, const char *source, const char *name, int n_headers,
                  const char *const *headers, const char *const *names);
    int (*destroy)(void **program);
    int (*compile)(void *program, int n, const char *const *options);
    int (*code_bytes)(void *program, size_t *bytes);
    int (*code)(void *program, char *code);
    int (*log_bytes)(void *program, size_t *bytes);
    int (*log)(void *program, char *log);
    const char *(*error)(int code);
} fth__nvrtc;
void fth__nvrtc_open(fth__nvrtc *n);
void fth__nvrtc_close(fth__nvrtc *n);

/* Machine code for compute capability major.minor from a text of cuda/source.h. *program is
 * released with fth__nvrtc_release, whatever the status. */
FTH_MUST_USE fth_status fth__nvrtc_compile(const fth__nvrtc *n, const char *source, int major,
                                           int minor, void **program, size_t *bytes, fth_err *err);
FTH_MUST_USE fth_status fth__nvrtc_code(const fth__nvrtc *n, void *program, char *code,
                                        fth_err *err);
void fth__nvrtc_release(const fth__nvrtc *n, void *program);

/* ---- kept code ---- */
enum { FTH__CODE_KEY = 128 };
/* What code is good for: the text and all headers, the chip, the compiler and the driver. */
void fth__code_key(char key[FTH__CODE_KEY], const char *source, int major, int minor,
                   const fth__nvrtc *n, int driver);
/* Bytes of the code that `dir` keeps under this key; 0: none, or not whole. */
size_t fth__code_find(const char *dir, const char *key);
/* Reads it; false: it is not there or not what was written. */
bool fth__code_read(const char *dir, const char *key, char *code, size_t bytes);
/* Keeps it; false: the folder does not take it, which is nobody's error. */
bool fth__code_write(const char *dir, const char *key, const char *code, size_t bytes);

FTH_END_DECLS
#endif
