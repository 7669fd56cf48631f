/* display.c - colours of groups and the unit of positions, from the source to the figures. */
#include "display.h"

#include "../data/metadata.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

bool sp_colour_parse(const char *text, fth_colour *out)
{
    uint8_t digit[8] = {0};
    const size_t n = text && text[0] == '#' ? strlen(text + 1) : 0;
    if (n != 3 && n != 6 && n != 8) return false;
    for (size_t i = 0; i < n; i++) {
        const char c = text[1 + i];
        if (!isxdigit((unsigned char)c)) return false;
        digit[i] = (uint8_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    uint8_t level[3];
    for (int k = 0; k < 3; k++)
        level[k] =
            n == 3 ? (uint8_t)(17 * digit[k]) : (uint8_t)(16 * digit[2 * k] + digit[2 * k + 1]);
    *out = fth_rgb(level[0], level[1], level[2]);
    return true;
}

/* ---- of a source ---- */

static void notice(const sp_source *s, const char *what, const char *why)
{
    if (s->call) fth_stage_say(s->call, "note: %s is not used: %s", what, why);
}

static fth_status find_colours(sp_display *d, const sp_source *s, fth_err *err)
{
    char object[FTH_PATH], why[200] = "";
    fth_err failed = {0};
    fth_texts *t = NULL;
    fth_colour colour;
    snprintf(object, sizeof object, "/uns/%s_colors", s->column);
    if (!s->column[0] || !s->group.names || sp_store_kind(&s->h5ad.store, object) != FTH_H5_DATASET)
        return FTH_OK;
    const fth_status status = sp_store_strings(&s->h5ad.store, object, NULL, &t, &failed);
    if (status == FTH_E_NOMEM || status == FTH_E_BUDGET) {
        if (err) *err = failed;
        return status;
    }
    const int64_t groups = fth_texts_count(s->group.names),
                  n = status == FTH_OK ? fth_texts_count(t) : 0;
    if (status != FTH_OK)
        snprintf(why, sizeof why, "%.190s", failed.text);
    else if (n != groups)
        snprintf(why, sizeof why, "it has %lld colours for %lld groups", (long long)n,
                 (long long)groups);
    for (int64_t i = 0; !why[0] && i < n; i++)
        if (!sp_colour_parse(fth_texts_get(t, i), &colour))
            snprintf(why, sizeof why, "'%.60s' is not a colour like #1f77b4", fth_texts_get(t, i));
    if (why[0]) {
        notice(s, object + 1, why);
        if (status == FTH_OK) fth_texts_free(t);
        return FTH_OK;
    }
    d->colours = t;
    return FTH_OK;
}

/* Micrometres of a pixel, as the vendor has it for instruments from 2022 on; before it was 0.18. */
#define COSMX_PIXEL 0.12028

/* uns['spatial'][library]['scalefactors']: positions are pixels of the full picture. */
static fth_status find_unit(sp_display *d, const sp_source *s, fth_err *err)
{
    fth_texts *libraries = NULL;
    if (s->loader->flags & SP_LOAD_TENX) snprintf(d->unit, sizeof d->unit, "px");
    if (s->files.kind) d->microns = sp_tenx_microns(s->mem, &s->files);
    if (s->files.kind && !(s->loader->flags & SP_LOAD_TISSUE)) /* Xenium, MERSCOPE */
        snprintf(d->unit, sizeof d->unit, "um");
    if (strcmp(s->loader->name, "cosmx") == 0) {
        static const char key[] = "preprocessing.pixel_microns";
        snprintf(d->unit, sizeof d->unit, "px");
        d->microns = fth_config_has(s->cfg, key) ? fth_config_real(s->cfg, key) : COSMX_PIXEL;
    }
    if (!sp_store_is_open(&s->h5ad.store) || s->loader->flags & SP_LOAD_TENX ||
        sp_store_kind(&s->h5ad.store, "/uns/spatial") != FTH_H5_GROUP)
        return FTH_OK;
    FTH_TRY(sp_store_list(&s->h5ad.store, "/uns/spatial", &libraries, err));
    fth_status status = FTH_OK;
    for (int64_t i = 0; status == FTH_OK && i < fth_texts_count(libraries) && !d->unit[0]; i++) {
        char group[256];
        snprintf(group, sizeof group, "/uns/spatial/%.200s/scalefactors",
                 fth_texts_get(libraries, i));
        if (sp_store_kind(&s->h5ad.store, group) != FTH_H5_GROUP) continue;
        snprintf(d->unit, sizeof d->unit, "px");
        status = sp_store_number(&s->h5ad.store, group, "microns_per_pixel", &d->microns, err);
    }
    fth_texts_free(libraries);
    return status;
}

fth_status sp_display_find(sp_display *d, const sp_source *s, fth_err *err)
{
    *d = (sp_display){0};
    if (s->n_parts > 0) return find_unit(d, &s->part[0], err); /* groups are those of all files */
    fth_status status = sp_store_is_open(&s->h5ad.store) ? find_colours(d, s, err) : FTH_OK;
    if (status == FTH_OK) status = find_unit(d, s, err);
    if (status != FTH_OK) sp_display_free(d);
    return status;
}

void sp_display_free(sp_display *d)
{
    fth_texts_free(d->colours);
    *d = (sp_display){0};
}

/* How long a unit of the folder is in the file: positions may have been rescaled. */
static double unit_length(const sp_prepared *p)
{
    if (p->sections.n > 0) return 1 / p->frame.scale; /* sections have one scale */
    double low[2] = {(double)INFINITY, (double)INFINITY},
           high[2] = {-(double)INFINITY, -(double)INFINITY};
    for (int64_t i = 0; i < p->cells.n; i++) {
        const double x[2] = {(double)p->source.xy[2 * p->cells.row[i]], (double)p->cells.xy[2 * i]};
        for (int k = 0; k < 2; k++) low[k] = fmin(low[k], x[k]), high[k] = fmax(high[k], x[k]);
    }
    const double length = (high[0] - low[0]) / (high[1] - low[1]);
    return isfinite(length) && length > 0 ? length : 0;
}

void sp_display_put(fth_json_writer *w, const sp_display *d, const sp_prepared *p)
{
    fth_json_open(w, "display", '{');
    if (d->colours && p->group_map) {
        fth_json_open(w, "group_colors", '[');
        for (int64_t g = 0; g < fth_texts_count(d->colours); g++)
            if (p->group_map[g] >= 0) fth_json_text(w, NULL, fth_texts_get(d->colours, g));
        fth_json_close(w);
    }
    if (d->unit[0]) fth_json_text(w, "unit", d->unit);
    if (d->microns > 0) fth_json_real(w, "unit_microns", d->microns);
    fth_json_real(w, "unit_length", unit_length(p));
    fth_json_close(w);
}

/* ---- of a preprocessed folder ---- */

fth_status sp_shown_read(sp_shown *out, fth_colour *colours, int64_t groups, fth_mem *mem,
                         const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    fth_json *doc = NULL;
    *out = (sp_shown){0};
    FTH_TRY(fth_path_join(path, dir, SP_METADATA, err));
    FTH_TRY(sp_metadata_member(&doc, mem, path, "display", err));
    const fth_json_value *v = fth_json_root(doc), *list = fth_json_get(v, "group_colors");
    out->coloured = groups > 0 && fth_json_count(list) == groups;
    for (int64_t g = 0; out->coloured && g < groups; g++)
        out->coloured =
            sp_colour_parse(fth_json_get_text(fth_json_at(list, g), NULL, ""), &colours[g]);
    snprintf(out->unit, sizeof out->unit, "%.15s", fth_json_get_text(v, "unit", ""));
    out->microns = fth_json_get_real(v, "unit_microns", 0);
    out->length = fth_json_get_real(v, "unit_length", 0);
    fth_json_destroy(doc);
    return FTH_OK;
}
