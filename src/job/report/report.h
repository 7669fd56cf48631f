/* job/report/report.h - the parts of the page of a report.
 *
 * page.html is the frame, with marks such as @DATA@ where C puts something in; page.css and
 * page.js go in as they are, and the page's Content-Security-Policy names their hashes, so nothing
 * else can run in it. What the page shows is made by page.js from data in <script> elements that
 * are not scripts: the view as JSON, what only the report knows (links, ends of logs), and
 * thumbnails.
 */
#ifndef FTH_JOB_REPORT_H
#define FTH_JOB_REPORT_H

#include "io/file.h"
#include "job/ledger/view.h"
#include <fathom/json.h>

/* Made from the files by cmake/Embed.cmake; the texts are terminated. */
extern const char fth__page_html[], fth__page_css[], fth__page_js[];
extern const char fth__page_html_hash[], fth__page_css_hash[],
    fth__page_js_hash[]; /* "sha256-..." */

typedef struct fth__report {
    fth_mem *mem;
    const fth_view *view;
    const fth_report_options *opt;
    char folder[4096]; /* canonical, of the page */
    FILE *file;
} fth__report;

/* The way from a folder to a file as a link: relative, percent-encoded, terminated. False: it does
 * not fit. Both are absolute. */
bool fth__link_between(const char *folder, const char *path, char *link, size_t bytes);

/* The end of a part of a file: at most `lines` lines and `most` bytes, in `text` (not
 * terminated). `to` 0: the end of the file. A log that is gone has an empty end. */
size_t fth__log_tail(fth_mem *mem, const char *path, uint64_t from, uint64_t to, int lines,
                     char *text, size_t most);

/* Thumbnails, at most `bytes` of them as written; with `embed` also the figures themselves. */
fth_status fth__report_figures(const fth__report *r, fth_err *err);
/* Bytes of a file as base64. */
fth_status fth__base64_file(fth_mem *mem, const char *path, FILE *to, fth_err *err);
void fth__base64_put(const uint8_t *bytes, uint64_t n, FILE *to);

#endif
