/* figures_sections.c - sections side by side: drawn closer together than they lie in the plane.
 *
 * In the plane of the data sections are so far apart that their neighbours do not meet (model
 * 21.1); a drawing of that would be mostly empty. Cells are moved by the shift of their section.
 */
#include "figures.h"

fth_status sp_draw_pack(sp_drawing *d, fth_err *err)
{
    if (d->data.sections.n == 0) return FTH_OK;
    FTH_TRY(sp_sections_copy(&d->packed, d->mem, &d->data.sections, err));
    d->above = sp_sections_pack(&d->packed, &d->data.sections);
    sp_draw_pack_cells(d, &d->data);
    return FTH_OK;
}

void sp_draw_pack_cells(const sp_drawing *d, const sp_data *data)
{
    float *xy = fth_tensor_data(data->xy);
    const int32_t *section = data->section ? fth_tensor_data(data->section) : NULL;
    for (int64_t i = 0; section && i < data->size.cells; i++)
        sp_sections_shift(&d->packed, &d->data.sections, section[i], xy + 2 * i);
}

void sp_draw_pack_points(const sp_drawing *d, float *xy, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t s = 0; s < d->packed.n; s++)
            if (sp_sections_holds(&d->data.sections, s, xy + 2 * i)) {
                sp_sections_shift(&d->packed, &d->data.sections, s, xy + 2 * i);
                break;
            }
}

void sp_draw_section_names(const sp_drawing *d, fth_panel *p)
{
    for (int64_t i = 0; i < d->packed.n; i++) {
        char text[40];
        const sp_section *s = &d->packed.of[i];
        fth_panel_text(p, (s->low[0] + s->high[0]) / 2, s->low[1] - 0.25 * d->above,
                       sp_draw_short(sp_sections_name(&d->packed, i), 14, text, sizeof text),
                       &(fth_note){.size = 6, .anchor = FTH_ANCHOR_ABOVE});
    }
}
