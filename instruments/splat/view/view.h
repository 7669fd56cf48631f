/* view.h - a model as one HTML page with a viewer in it, which needs no network. */
#ifndef SPLAT_VIEW_VIEW_H
#define SPLAT_VIEW_VIEW_H

#include "../model/model.h"

/* By the ending of the name, .html. */
bool gs_view_is(const char *path);
/* Whole or not at all. */
fth_status gs_view_save(const gs_model *m, const char *path, fth_err *err);

#endif
