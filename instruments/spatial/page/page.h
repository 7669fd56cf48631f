/* page.h - `fathom spatial page`: maps of factors, genes and groups in one HTML file.
 *
 * The page has page.html, a description as JSON, arrays as base64, and page.js. Arrays have a
 * number for each cell that is shown:
 *
 *   positions  u16 x and y        low + code * step, in units of the folder
 *   groups     u16                index into the groups
 *   factors    u16, one for each  code / 65535 * most
 *   genes      u8, one for each   the count itself where all are whole and below 256 ("count"),
 *                                 else expm1(code / 255 * log1p(most)) ("log1p")
 *   image      a JPEG for each tissue image: one, or one of each section that has one
 */
#ifndef SPATIAL_PAGE_H
#define SPATIAL_PAGE_H

#include "../image/image.h"
#include "../results/results.h"

#include <fathom/pictures.h>
#include <fathom/plot.h>

enum { SP_STREAM_SHOWN = 102, SP_PAGE_CELLS = 100000, SP_PAGE_TOP = 8, SP_PAGE_MOST_GENES = 1000 };

typedef struct sp_page_gene {
    int64_t gene;           /* of the folder */
    double most;            /* largest count of the shown cells */
    bool whole;             /* all are whole numbers */
    double moran, q, share; /* of genes.csv; NaN: not known */
} sp_page_gene;

typedef struct sp_page_image {
    sp_image at; /* without pixels */
    void *jpeg;
    uint64_t bytes;
} sp_page_image;

typedef struct sp_page {
    fth_mem *mem;
    sp_results *results; /* of the shown cells */
    int64_t cells, rows; /* shown, in the folder */
    int64_t top;         /* genes listed of each factor */
    int64_t n_genes;
    sp_page_gene *gene;
    double *factor_most; /* [factor] */
    double *moran;       /* [factor]; NaN: not known */
    int64_t *top_gene;   /* [factor][top] */
    uint16_t *factor;    /* [factor][cell] */
    uint8_t *count;      /* [gene][cell] */
    fth_colour *colour;  /* [group] */
    double low[2], step; /* of positions */
    sp_sections packed;  /* sections as they are shown; none: the data name none */
    double each;         /* of `unit` in one unit of positions */
    char unit[24];
    sp_page_image *image;
    int64_t n_images;
    void *block[4];
} sp_page;

/* `genes` are names that are shown beside the top ones, parted by commas; NULL: none. */
typedef struct sp_page_options {
    int64_t cells, top, seed;
    const char *genes;
} sp_page_options;
/* Keeps only the shown cells in the data of the results. */
fth_status sp_page_open(sp_page *p, sp_results *r, const sp_page_options *opt, fth_err *err);
void sp_page_close(sp_page *p); /* an empty one is allowed */
/* Bytes of its arrays without the image, for plans: at most. */
uint64_t sp_page_bytes(const sp_results *r, const sp_page_options *opt);
/* Reads the results into the arrays, then writes the file, whole or not at all. */
fth_status sp_page_fill(sp_page *p, fth_err *err);
fth_status sp_page_save(const sp_page *p, const char *path, fth_err *err);

/* ---- tissue images (page_image.c) ---- */

/* As the config says, and as files of at most 3 MiB together; none where there is none. */
fth_status sp_page_images_fill(sp_page *p, fth_err *err);
void sp_page_images_free(sp_page *p);
fth_status sp_page_images_bytes(const sp_results *r, uint64_t *bytes, fth_err *err);
void sp_page_images_put(fth_json_writer *w, const sp_page *p);

#endif
