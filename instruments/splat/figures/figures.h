/* figures.h - what there is to see of a training: its curves, scores, sizes and opacities. */
#ifndef SPLAT_FIGURES_FIGURES_H
#define SPLAT_FIGURES_FIGURES_H

#include <fathom/fathom.h>

FTH_STAGE_FUNCTIONS(gs_figures_stage);
extern const fth_stage_file gs_figure_files[]; /* ends with a row that has no name */

#endif
