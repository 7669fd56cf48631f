/* paths.h - names of files: patterns, natural order, stems. */
#ifndef FOCUS_INPUT_PATHS_H
#define FOCUS_INPUT_PATHS_H

#include <fathom/fathom.h>

/* Order of names in which runs of digits count as numbers: z2 is before z10. Equal numbers are
 * ordered by their leading zeros, so only equal names compare as 0. */
int fo_natural_compare(const char *a, const char *b);
/* "run 1" of "dir/run 1.ome.tif": what stands before .ome.tif, .ome.tiff, .ome.zarr or the last
 * ending. */
void fo_path_stem(const char *path, char *stem, size_t bytes);
/* Adds `path`, or where there is nothing of that name and it has * ? or [ behind its last slash,
 * every file that matches, in natural order. FTH_E_FILE_OPEN when nothing does. */
fth_status fo_paths_add(fth_texts *list, fth_mem *mem, const char *path, fth_err *err);

#endif
