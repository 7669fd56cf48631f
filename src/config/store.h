/* config/store.h - memory that is only given back all at once.
 *
 * The nodes, texts and values of a config live exactly as long as the config, so they are cut
 * from a few larger blocks and never freed one by one: a failure half way leaks nothing.
 */
#ifndef FTH_CONFIG_STORE_H
#define FTH_CONFIG_STORE_H

#include <fathom/memory.h>

typedef struct fth__store {
    fth_mem *mem;
    uint64_t block; /* bytes asked for at a time; 0: 4096. Tests ask for each piece alone */
    struct fth__store_block *last; /* newest first */
} fth__store;

/* `bytes` zeroed bytes aligned to 16; NULL when there is no memory. */
void *fth__store_take(fth__store *s, uint64_t bytes);
/* A copy of n bytes, terminated. */
char *fth__store_text(fth__store *s, const char *text, size_t n);
/* What printf would give. */
char *fth__store_print(fth__store *s, const char *fmt, ...) FTH_PRINTF(2, 3);
char *fth__store_printv(fth__store *s, const char *fmt, va_list args) FTH_PRINTF(2, 0);
void fth__store_clear(fth__store *s);

#endif
