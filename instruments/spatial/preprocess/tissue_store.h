/* tissue_store.h - the picture of a SpatialData store: images/NAME, placed among the cells. */
#ifndef SPATIAL_TISSUE_STORE_H
#define SPATIAL_TISSUE_STORE_H

#include "tissue.h"

/* Whether the table `folder` is of a store that may have pictures, and where that is. */
bool sp_tissue_store_has(const char *folder, char root[FTH_PATH]);
/* The picture that preprocessing.image names, or the only one; name "": there is none, which is an
 * error where one is needed. Several without a name are an error. */
fth_status sp_tissue_store_choose(fth_mem *mem, const fth_config *cfg, const char *root,
                                  bool needed, char name[256], fth_err *err);
fth_status sp_tissue_of_store(sp_tissue *t, const sp_source *s, bool needed, fth_err *err);

#endif
