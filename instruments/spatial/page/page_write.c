/* page_write.c - the file of a page: page.html, JSON, arrays as base64, page.js. */
#include "../statistics/enrichment.h"
#include "page.h"

#include <stdio.h>
#include <string.h>

extern const char sp_page_html[], sp_page_js[]; /* made from the files when this is built */

enum { ENRICHED = 5 }; /* genes listed of a group and a factor */

static const char *gene_name(const sp_page *p, int64_t gene)
{
    return fth_texts_get(p->results->data.gene_names, gene);
}

/* ---- base64 ---- */

typedef struct text64 {
    FILE *file;
    uint32_t bits;
    int n; /* bytes in `bits` */
} text64;

static void put_letters(text64 *t)
{
    static const char letter[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char four[4];
    if (t->n == 0) return;
    for (int i = 0; i < 4; i++)
        four[i] = i <= t->n ? letter[t->bits << 8 * (3 - t->n) >> (18 - 6 * i) & 63] : '=';
    fwrite(four, 1, sizeof four, t->file); /* what fails is reported when the stream ends */
    t->n = 0;
    t->bits = 0;
}

static void put_byte(text64 *t, unsigned byte)
{
    t->bits = t->bits << 8 | (byte & 255);
    if (++t->n == 3) put_letters(t);
}

static text64 begin_array(FILE *file, const char *name, int64_t i)
{
    if (i < 0)
        fprintf(file, "<script id=\"array-%s\" type=\"text/plain\">", name);
    else
        fprintf(file, "<script id=\"array-%s%lld\" type=\"text/plain\">", name, (long long)i);
    return (text64){.file = file};
}

static void end_array(text64 *t)
{
    put_letters(t);
    fprintf(t->file, "</script>\n");
}

/* Little-endian on every machine. */
static void put_u16(text64 *t, unsigned v)
{
    put_byte(t, v);
    put_byte(t, v >> 8);
}

static void put_arrays(const sp_page *p, FILE *file)
{
    const float *xy = fth_tensor_data(p->results->data.xy);
    const int32_t *group = fth_tensor_data(p->results->data.group);
    text64 t = begin_array(file, "positions", -1);
    for (int64_t i = 0; i < 2 * p->cells; i++)
        put_u16(&t, (unsigned)(((double)xy[i] - p->low[i % 2]) / p->step + 0.5));
    end_array(&t);
    t = begin_array(file, "groups", -1);
    for (int64_t i = 0; i < p->cells; i++) put_u16(&t, (unsigned)group[i]);
    end_array(&t);
    for (int64_t k = 0; k < p->n_images; k++) {
        const sp_page_image *image = &p->image[k];
        t = begin_array(file, "image", k);
        for (uint64_t i = 0; i < image->bytes; i++) put_byte(&t, ((const uint8_t *)image->jpeg)[i]);
        end_array(&t);
    }
    for (int64_t l = 0; l < p->results->n_factors; l++) {
        t = begin_array(file, "factor", l);
        for (int64_t i = 0; i < p->cells; i++) put_u16(&t, p->factor[l * p->cells + i]);
        end_array(&t);
    }
    for (int64_t g = 0; g < p->n_genes; g++) {
        t = begin_array(file, "gene", g);
        for (int64_t i = 0; i < p->cells; i++) put_byte(&t, p->count[g * p->cells + i]);
        end_array(&t);
    }
}

/* ---- the description ---- */

static void put_positions(fth_json_writer *w, const sp_page *p)
{
    fth_json_open(w, "positions", '{');
    fth_json_real(w, "x", p->low[0]);
    fth_json_real(w, "y", p->low[1]);
    fth_json_real(w, "step", p->step);
    fth_json_real(w, "each", p->each);
    fth_json_text(w, "unit", p->unit);
    if (p->results->data.frame.known && p->packed.n == 0) { /* as the source has them */
        const sp_frame *f = &p->results->data.frame;
        fth_json_real(w, "source_x", p->low[0] / f->scale + f->offset[0]);
        fth_json_real(w, "source_y", p->low[1] / f->scale + f->offset[1]);
        fth_json_real(w, "source_step", p->step / f->scale);
    }
    fth_json_close(w);
}

/* Boxes in the units of positions, and where the source has the first corner. */
static void put_sections(fth_json_writer *w, const sp_page *p)
{
    const sp_data *d = &p->results->data;
    if (p->packed.n == 0) return;
    fth_json_open(w, "sections", '[');
    for (int64_t i = 0; i < p->packed.n; i++) {
        const sp_section *s = &p->packed.of[i], *from = &d->sections.of[i];
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "name", sp_sections_name(&p->packed, i));
        fth_json_open(w, "box", '[');
        for (int a = 0; a < 2; a++) fth_json_real(w, NULL, (s->low[a] - p->low[a]) / p->step);
        for (int a = 0; a < 2; a++) fth_json_real(w, NULL, (s->high[a] - p->low[a]) / p->step);
        fth_json_close(w);
        fth_json_open(w, "source", '[');
        for (int a = 0; a < 2; a++)
            fth_json_real(w, NULL, from->low[a] / d->frame.scale + from->offset[a]);
        fth_json_close(w);
        fth_json_real(w, "step", p->step / d->frame.scale);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_groups(fth_json_writer *w, const sp_page *p)
{
    fth_json_open(w, "groups", '[');
    for (int64_t g = 0; g < p->results->data.size.groups; g++) {
        char colour[16];
        snprintf(colour, sizeof colour, "#%06x", (unsigned)(p->colour[g] & 0xffffff));
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "name", fth_texts_get(p->results->data.group_names, g));
        fth_json_text(w, "colour", colour);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_factors(fth_json_writer *w, const sp_page *p)
{
    const int64_t L = p->results->n_factors;
    const float *W = fth_tensor_data(p->results->W);
    fth_json_open(w, "factors", '[');
    for (int64_t l = 0; l < L; l++) {
        fth_json_open(w, NULL, '{');
        fth_json_real(w, "most", p->factor_most[l]);
        fth_json_real(w, "moran", p->moran[l]);
        fth_json_open(w, "top", '[');
        for (int64_t i = 0; i < p->top; i++) {
            const int64_t gene = p->top_gene[l * p->top + i];
            fth_json_open(w, NULL, '[');
            fth_json_text(w, NULL, gene_name(p, gene));
            fth_json_real(w, NULL, (double)W[gene * L + l]);
            fth_json_close(w);
        }
        fth_json_close(w);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void put_genes(fth_json_writer *w, const sp_page *p)
{
    const int64_t L = p->results->n_factors;
    const float *W = fth_tensor_data(p->results->W);
    fth_json_open(w, "genes", '[');
    for (int64_t i = 0; i < p->n_genes; i++) {
        const sp_page_gene *g = &p->gene[i];
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "name", gene_name(p, g->gene));
        fth_json_text(w, "code", g->whole && g->most < 256 ? "count" : "log1p");
        fth_json_real(w, "most", g->most);
        fth_json_real(w, "moran", g->moran);
        fth_json_real(w, "q", g->q);
        fth_json_real(w, "share", g->share);
        fth_json_open(w, "loadings", '[');
        for (int64_t l = 0; l < L; l++) fth_json_real(w, NULL, (double)W[g->gene * L + l]);
        fth_json_close(w);
        fth_json_close(w);
    }
    fth_json_close(w);
}

/* ---- genes that groups have more of ---- */

static fth_status load_group(const sp_page *p, int64_t g, fth_tensor **out, fth_err *err)
{
    const sp_results *r = p->results;
    char name[64], path[FTH_PATH];
    fth_source file = {0};
    *out = NULL;
    snprintf(name, sizeof name, "loadings_group_%lld.npy", (long long)g);
    FTH_TRY(sp_results_path(r, name, path, err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_npy_open(&file, p->mem, path, err));
    fth_status s = FTH_OK;
    if (file.n_axes != 2 || file.dtype != FTH_F32 || file.size[0] != r->data.size.genes ||
        file.size[1] != r->n_factors)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: f32 [gene=%lld, factor=%lld] was expected", path,
                     (long long)r->data.size.genes, (long long)r->n_factors);
    if (s == FTH_OK) s = fth_source_load(&file, p->mem, "loadings of a group", out, err);
    fth_source_close(&file);
    return s;
}

/* Of each factor: [["name", log2 change], ...]; a group without loadings of its own has none. */
static void put_group(fth_json_writer *w, const sp_page *p, const float *Wg, double *lfc)
{
    const int64_t D = p->results->data.size.genes, L = p->results->n_factors;
    const float *W = fth_tensor_data(p->results->W);
    double *value = lfc + D * L;
    int64_t *order = (int64_t *)(void *)(value + D);
    fth_json_open(w, NULL, '[');
    if (Wg) sp_lfc(lfc, Wg, W, D, L, sp_lfc_pseudo(W, D, L));
    for (int64_t l = 0; Wg && l < L; l++) {
        sp_enriched e;
        sp_enriched_find(&e, lfc, D, L, l, value, order);
        fth_json_open(w, NULL, '[');
        for (int i = 0; i < e.n_top && i < ENRICHED; i++) {
            fth_json_open(w, NULL, '[');
            fth_json_text(w, NULL, gene_name(p, e.top[i].gene));
            fth_json_real(w, NULL, e.top[i].lfc);
            fth_json_close(w);
        }
        fth_json_close(w);
    }
    fth_json_close(w);
}

static fth_status put_enriched(fth_json_writer *w, const sp_page *p, fth_err *err)
{
    const int64_t D = p->results->data.size.genes, L = p->results->n_factors;
    void *room = NULL;
    FTH_TRY(fth_mem_take(p->mem, FTH_MEM_ANY, (uint64_t)(D * (L + 2)) * 8, "changes of genes",
                         &room, err));
    fth_status s = FTH_OK;
    fth_json_open(w, "enriched", '[');
    for (int64_t g = 0; s == FTH_OK && g < p->results->data.size.groups; g++) {
        fth_tensor *Wg = NULL;
        s = load_group(p, g, &Wg, err);
        if (s == FTH_OK) put_group(w, p, Wg ? fth_tensor_data(Wg) : NULL, room);
        fth_tensor_release(Wg);
    }
    fth_json_close(w);
    fth_mem_release(p->mem, room, NULL);
    return s;
}

static fth_status put_description(const sp_page *p, FILE *file, const char *path, fth_err *err)
{
    fth_json_writer w;
    fth_json_begin_file(&w, file, path, false);
    w.nan = FTH_JSON_NAN_NULL;
    w.digits = 9; /* those of f32 */
    fth_json_open(&w, NULL, '{');
    fth_json_text(&w, "title", fth_config_text(p->results->config, "name"));
    fth_json_text(&w, "model", p->results->name);
    fth_json_int(&w, "cells", p->cells);
    fth_json_int(&w, "of", p->rows);
    fth_json_int(&w, "all_genes", p->results->data.size.genes);
    put_positions(&w, p);
    sp_page_images_put(&w, p);
    put_groups(&w, p);
    put_sections(&w, p);
    put_factors(&w, p);
    put_genes(&w, p);
    const fth_status s = put_enriched(&w, p, err);
    fth_json_close(&w);
    const fth_status end = fth_json_end(&w, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? end : s;
}

fth_status sp_page_save(const sp_page *p, const char *path, fth_err *err)
{
    fth_file_stream *stream = NULL;
    FTH_TRY(fth_file_stream_create(&stream, p->mem, path, err));
    FILE *file = fth_file_stream_file(stream);
    fprintf(file, "%s<script id=\"description\" type=\"application/json\">", sp_page_html);
    const fth_status s = put_description(p, file, path, err);
    if (s != FTH_OK) {
        fth_file_stream_abandon(stream);
        return s;
    }
    fprintf(file, "</script>\n");
    put_arrays(p, file);
    fprintf(file, "<script>\n%s</script>\n</body>\n</html>\n", sp_page_js);
    return fth_file_stream_commit(stream, err);
}
