/* fathom/zstd.h - decompress a whole zstd frame.
 *
 *   FTH_TRY(fth_zstd_unpack(mem, "a.spz, positions", packed, n, to, bytes, err));
 *
 * Apart from the two blocks it needs the fixed memory of one decoder, whatever the compressed bytes
 * say.
 *
 * Threads:   any thread.
 * Failure:   FTH_E_FILE_FORMAT: damaged, or not exactly `bytes` bytes.
 */
#ifndef FATHOM_ZSTD_H
#define FATHOM_ZSTD_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

/* Decompress n bytes into exactly `bytes` at `to`; `label` names the data in messages. */
FTH_API FTH_MUST_USE fth_status fth_zstd_unpack(fth_mem *mem, const char *label, const void *packed,
                                                uint64_t n, void *to, uint64_t bytes, fth_err *err);

FTH_END_DECLS
#endif /* FATHOM_ZSTD_H */
