/* fathom/zip.h - read and write whole members of zip files by name.
 *
 *   fth_zip *z;
 *   FTH_TRY(fth_zip_open(&z, mem, path, err));
 *   s = fth_zip_load(z, "meta.json", 1 << 20, &data, &bytes, err);    fth_mem_release gives it back
 *   fth_zip_close(z);
 *
 * Stored and deflated members and zip64 are read; checksums are compared. Equal members give equal
 * files: no time goes into them.
 *
 * Ownership: what open and create return belongs to the caller until close, commit or abandon.
 * Threads:   one thread at a time per object.
 * Failure:   on failure *out is NULL; a file appears whole or not at all.
 */
#ifndef FATHOM_ZIP_H
#define FATHOM_ZIP_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef struct fth_zip fth_zip;
FTH_API FTH_MUST_USE fth_status fth_zip_open(fth_zip **out, fth_mem *mem, const char *path,
                                             fth_err *err);
FTH_API void fth_zip_close(fth_zip *z); /* NULL is allowed */
/* Whether the archive has a member of this name. */
FTH_API bool fth_zip_has(const fth_zip *z, const char *name);
/* Load a whole member, followed by a zero byte; release *data with fth_mem_release.
 * FTH_E_FILE_OPEN: no such member; FTH_E_FILE_FEATURE: it has more than `most` bytes. */
FTH_API FTH_MUST_USE fth_status fth_zip_load(fth_zip *z, const char *name, uint64_t most,
                                             void **data, uint64_t *bytes, fth_err *err);

typedef struct fth_zip_writer fth_zip_writer;
FTH_API FTH_MUST_USE fth_status fth_zip_create(fth_zip_writer **out, fth_mem *mem, const char *path,
                                               fth_err *err);
/* Add a member, deflated if `packed`, else stored. Each member is below 4 GiB, and all but the last
 * together below 2 GiB. */
FTH_API FTH_MUST_USE fth_status fth_zip_add(fth_zip_writer *w, const char *name, const void *data,
                                            uint64_t bytes, bool packed, fth_err *err);
/* Ends the writer either way. */
FTH_API FTH_MUST_USE fth_status fth_zip_commit(fth_zip_writer *w, fth_err *err);
FTH_API void fth_zip_abandon(fth_zip_writer *w); /* NULL is allowed */

FTH_END_DECLS
#endif /* FATHOM_ZIP_H */
