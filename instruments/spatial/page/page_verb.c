/* page_verb.c - `fathom spatial page`. */
#include "../answer.h"
#include "page.h"

#include <inttypes.h>
#include <string.h>

static fth_status read_number(const char *text, const char *flag, int64_t least, int64_t most,
                              int64_t *out, fth_err *err)
{
    const fth_text_field f = {.text = text, .n = text ? strlen(text) : 0};
    if (!text || (fth_text_int(&f, out) && *out >= least && *out <= most)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND,
                    "--%s %.40s: a whole number from %" PRId64 " to %" PRId64 " is expected", flag,
                    text, least, most);
}

static fth_status tell_files(const sp_results *r, const char *path, fth_answer *a, fth_err *err)
{
    FTH_TRY(sp_answer_data(a, &r->data, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_FACTORS, NULL, err));
    FTH_TRY(sp_answer_named(a, FTH_FILE_INPUT, r->dir, SP_LOADINGS, NULL, err));
    fth_answer_file(a, FTH_FILE_OUTPUT, path, -1, "a page for a browser");
    return FTH_OK;
}

static void tell(const sp_page *p, const char *path, fth_answer *a)
{
    fprintf(a->notes,
            "%s: %" PRId64 " of %" PRId64 " cells, %" PRId64 " factors, %" PRId64 " genes\n", path,
            p->cells, p->rows, p->results->n_factors, p->n_genes);
    if (!a->json) return;
    fth_json_writer *w = fth_answer_facts(a);
    fth_json_text(w, "file", path);
    fth_json_text(w, "model", p->results->name);
    fth_json_int(w, "cells", p->cells);
    fth_json_int(w, "of", p->rows);
    fth_json_int(w, "factors", p->results->n_factors);
    fth_json_int(w, "genes", p->n_genes);
}

static fth_status work(sp_results *r, const sp_page_options *opt, const char *path, fth_answer *a,
                       fth_err *err)
{
    sp_page p = {0};
    fth_mem_stats now;
    FTH_TRY(tell_files(r, path, a, err));
    if (a->plan) {
        uint64_t image = 0;
        FTH_TRY(sp_page_images_bytes(r, &image, err));
        fth_mem_get_stats(r->mem, &now);
        fth_answer_memory(a, now.used_bytes + sp_page_bytes(r, opt) + image,
                          "at most: a code for each shown cell, factor and gene");
        return FTH_OK;
    }
    FTH_TRY(sp_page_open(&p, r, opt, err));
    fth_status s = sp_page_fill(&p, err);
    if (s == FTH_OK) s = sp_page_save(&p, path, err);
    if (s == FTH_OK) tell(&p, path, a);
    sp_page_close(&p);
    return s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    (void)n_args, (void)arg;
    sp_results r;
    fth_answer a;
    char own[FTH_PATH];
    sp_page_options opt = {.cells = SP_PAGE_CELLS, .top = SP_PAGE_TOP};
    const char *path = value(user, "output") ? value(user, "output") : own;
    FTH_TRY(read_number(value(user, "cells"), "cells", 1, 2000000, &opt.cells, err));
    FTH_TRY(read_number(value(user, "top"), "top", 1, 50, &opt.top, err));
    FTH_TRY(sp_results_open(&r, ctx, "page", value(user, "config"), out, err));
    opt.genes = value(user, "genes");
    opt.seed = fth_config_int(r.config, "seed");
    fth_status s = sp_results_path(&r, "page.html", own, err);
    const fth_path_use use[] = {{FTH_FILE_INPUT, "-c", value(user, "config")},
                                {FTH_FILE_OUTPUT, "-o", path}};
    if (s == FTH_OK) s = fth_paths_check(use, 2, r.mem, err);
    if (s == FTH_OK) s = fth_answer_begin(&a, ctx, value, user, out, err);
    if (s == FTH_OK) s = fth_answer_end(&a, work(&r, &opt, path, &a, err), err);
    const fth_status end = sp_results_close(&r, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

static const fth_flag flags[] = {
    {.name = "config", .value = FTH_FLAG_FILE, .letter = 'c', .doc = "config of one model"},
    {.name = "output",
     .value = FTH_FLAG_FILE,
     .letter = 'o',
     .doc = "the page to write; the default is page.html in the folder of the model"},
    {.name = "genes",
     .value = FTH_FLAG_WORD,
     .doc = "genes to show beside the top ones, their names parted by commas"},
    {.name = "top",
     .value = FTH_FLAG_COUNT,
     .doc = "genes of each factor that have maps, the ones with the largest loadings; default 8"},
    {.name = "cells",
     .value = FTH_FLAG_COUNT,
     .doc = "the most cells to show; of more, as many are drawn at random; default 100000"},
    {0}};

const fth_verb sp_verb_page = {
    .name = "page",
    .args = "",
    .brief = "write a page with maps of factors, genes and groups to explore in a browser",
    .doc = "One HTML file that needs no network: choose a factor for its map, its genes and the "
           "groups that have it; a gene for its counts and its loadings; a group for its cells. "
           "Zoom and move the map, point at a cell for its numbers, search genes. It can be sent "
           "by mail.\n\n"
           "Positions and factors are stored with 16 bits, counts with 8: exactly where they are "
           "whole numbers below 256, else their logarithm. Results of 'fathom spatial genes' are "
           "shown where they are there.",
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
