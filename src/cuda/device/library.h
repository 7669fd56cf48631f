/* library.h - libraries of the machine that are opened by name, and what the card's driver counts.
 *
 * Nothing of the CUDA toolkit is linked or shipped: it is found where it is installed, by its
 * version of 13 or 12, and whoever needs it says in words when it is not there.
 */
#ifndef FTH_CUDA_LIBRARY_H
#define FTH_CUDA_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

/* dlopen of "libNAME.so.13" or ".12" ("nvrtc", "cublasLt"): where the system looks, then where the
 * toolkit is put by default. NULL: `why` says it. */
void *fth__cuda_library(const char *name, char *why, size_t bytes);
/* "NVRTC 13.0", "cuBLASLt 13.0.2" and "cuSOLVER 12.0.4", or why there is none: for fth_device_info.
 */
void fth__cuda_describe_compiler(char *text, size_t bytes);
void fth__cuda_describe_products(char *text, size_t bytes);
void fth__cuda_describe_factors(char *text, size_t bytes);

/* What the driver's library for counting (NVML) knows of a card; no context is needed. Starting it
 * takes a while, so it is started once for several questions. */
typedef struct fth__cuda_counter {
    void *library, *card;
} fth__cuda_counter;
/* False: it is not there. Whoever got true calls end. */
bool fth__cuda_counter_begin(fth__cuda_counter *c, int index);
void fth__cuda_counter_end(fth__cuda_counter *c);
/* Bytes in use, by all processes and by this one alone; 0: it does not say. */
uint64_t fth__cuda_used_by_all(const fth__cuda_counter *c);
uint64_t fth__cuda_used_by_us(const fth__cuda_counter *c);

#endif
