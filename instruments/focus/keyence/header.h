/* header.h - what a Keyence BZ-X writes into its TIFF files: an XML text between <Data> and
 * </Data>. */
#ifndef FOCUS_KEYENCE_HEADER_H
#define FOCUS_KEYENCE_HEADER_H

#include <fathom/fathom.h>

enum { FO_KEYENCE_TEXT = 64 };

typedef struct fo_keyence_header {
    double time_s; /* since the year 1 */
    char objective[FO_KEYENCE_TEXT], channel[FO_KEYENCE_TEXT];
    int64_t width_px, height_px;
    double width_um, height_um;
} fo_keyence_header;

/* Reads the ends of the file, and all of it only where the text is not there. FTH_E_FILE_KEY names
 * the value that is missing. */
fth_status fo_keyence_header_read(fo_keyence_header *out, fth_mem *mem, const char *path,
                                  fth_err *err);
/* The same of the bytes of a file; `path` names them in errors. FTH_E_FILE_KEY also when there is
 * no such text. */
fth_status fo_keyence_header_parse(fo_keyence_header *out, const char *bytes, uint64_t n,
                                   const char *path, fth_err *err);

#endif
