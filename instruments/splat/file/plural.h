/* plural.h - "1 view", "2 views". */
#ifndef SPLAT_FILE_PLURAL_H
#define SPLAT_FILE_PLURAL_H

#include <stdint.h>

static inline const char *gs_s(int64_t n)
{
    return n == 1 ? "" : "s";
}

#endif
