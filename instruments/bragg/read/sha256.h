/* sha256.h - SHA-256 of a file (FIPS 180-4): records which list a dump was made from. */
#ifndef BRAGG_SHA256_H
#define BRAGG_SHA256_H

#include <fathom/fathom.h>

enum { BR_SHA256_HEX = 65 };

/* 64 hexadecimal digits and a zero byte into `hex`. */
fth_status br_sha256_file(const char *path, fth_mem *mem, char *hex, fth_err *err);

#endif
