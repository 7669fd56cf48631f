/* vendor.h - output folders of MERSCOPE (Vizgen) and CosMx (NanoString): counts and cells as
 * tables.
 *
 * Both write a dense table of counts as CSV and a table of cells with their centres. Files are
 * found by how their names end; rows of the two tables are joined by the name of the cell.
 */
#ifndef SPATIAL_VENDOR_H
#define SPATIAL_VENDOR_H

#include "tenx.h"

/* Whether a dataset has such a folder. */
bool sp_vendor_is(const char *kind);
/* "an output folder of MERSCOPE". */
const char *sp_vendor_title(const char *kind);
/* The files of a folder; `table` replaces that of the cells unless "". */
fth_status sp_vendor_files_find(sp_tenx_files *f, fth_mem *mem, const char *kind, const char *dir,
                                const char *table, fth_err *err);
/* Which of these datasets a folder is of; f->kind NULL: of none. Several of them in one folder are
 * an error that names them. */
fth_status sp_vendor_files_guess(sp_tenx_files *f, fth_mem *mem, const char *dir, fth_err *err);
/* Types of features by their names, as 10x calls those that are genes. */
fth_status sp_vendor_types(fth_mem *mem, const char *kind, const fth_texts *names, fth_texts **out,
                           fth_err *err);

/* ---- counts as a table ---- */

enum { SP_CELL_NAME = 520 };
/* Names of the genes and of the cells; `background` [cells] marks rows that are of no cell. */
fth_status sp_table_genes(sp_matrix *m, fth_texts **out, fth_err *err);
fth_status sp_table_cells(sp_matrix *m, fth_texts **out, bool *background, fth_err *err);

#endif
