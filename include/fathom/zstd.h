/* fathom/zstd.h - bytes packed by zstd, whole.
 *
 *   FTH_TRY(fth_zstd_unpack(mem, "a.spz, positions", packed, n, to, bytes, err));
 *
 * Memory beside the two blocks is that of one decoder and known; nothing in the packed bytes makes
 * it more.
 *
 * Threads:   any number at once.
 * Failure:   FTH_E_FILE_FORMAT: damaged, or not of `bytes` bytes.
 */
#ifndef FATHOM_ZSTD_H
#define FATHOM_ZSTD_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

/* Exactly `bytes` at `to`; `label` names them in messages. */
FTH_API FTH_MUST_USE fth_status fth_zstd_unpack(fth_mem *mem, const char *label, const void *packed,
                                                uint64_t n, void *to, uint64_t bytes, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_ZSTD_H */
