/* stage.h - the stage that draws a reconstruction on one page. */
#ifndef PTYCHO_FIGURES_STAGE_H
#define PTYCHO_FIGURES_STAGE_H

#include <fathom/fathom.h>

#define PT_PAGE_PNG "page.png"

FTH_STAGE_FUNCTIONS(pt_figures);
extern const fth_stage_file pt_figures_leaves[];

#endif
