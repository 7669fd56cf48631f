/* metadata.h - metadata.json of a preprocessed folder: sizes, names, where it comes from. */
#ifndef SPATIAL_METADATA_H
#define SPATIAL_METADATA_H

#include "sections.h"

typedef struct sp_metadata {
    int64_t cells, genes, groups;
    sp_frame frame;
    sp_sections sections;                             /* none: the data name none */
    fth_texts *gene_names, *cell_names, *group_names; /* cell_names: NULL when it says null */
} sp_metadata;

/* Counts and names must agree. Errors name the file and the key. On failure `m` is empty. */
fth_status sp_metadata_read(sp_metadata *m, fth_mem *mem, const char *path, fth_err *err);
/* The numbers alone, and the sections. */
fth_status sp_metadata_counts(sp_metadata *m, fth_mem *mem, const char *path, fth_err *err);
void sp_metadata_clear(sp_metadata *m);
/* The object at a top key ("fathom", "preprocessing"), parsed; *out is NULL when it is not there.
 */
fth_status sp_metadata_member(fth_json **out, fth_mem *mem, const char *path, const char *key,
                              fth_err *err);

#endif
