/* io/texts.h - a list of strings that grows. */
#ifndef FTH_IO_TEXTS_H
#define FTH_IO_TEXTS_H

#include <fathom/io.h>

fth_status fth__texts_create(fth_texts **out, fth_mem *mem, fth_err *err);
/* `chars` need not be terminated. FTH_E_BUDGET when the list would pass the memory budget. */
fth_status fth__texts_add(fth_texts *t, const char *chars, uint64_t n, fth_err *err);

#endif
