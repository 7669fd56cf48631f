/* sizes.c - sizes of the data, for plans made before they exist. */
#include "../data/data.h"
#include "../data/metadata.h"
#include "../preprocess/preprocess.h"
#include "../read/loaders.h"

/* The folder: exact. */
static fth_status of_folder(sp_sizes *out, fth_mem *mem, const char *dir, fth_err *err)
{
    char path[FTH_PATH];
    sp_metadata m;
    sp_matrix counts;
    FTH_TRY(fth_path_join(path, dir, SP_METADATA, err));
    FTH_TRY(sp_metadata_counts(&m, mem, path, err));
    *out = (sp_sizes){.groups = m.groups, .sections = m.sections.n, .section_gap = m.sections.gap};
    for (int64_t i = 0; i < m.sections.n; i++)
        if (i == 0 || m.sections.of[i].cells < out->least_section)
            out->least_section = m.sections.of[i].cells;
    sp_sections_clear(&m.sections);
    FTH_TRY(fth_path_join(path, dir, SP_Y, err));
    FTH_TRY(sp_matrix_open_npz(&counts, mem, path, err));
    out->cells = counts.rows;
    out->genes = counts.cols;
    out->entries = counts.entries;
    out->most_entries = sp_matrix_fullest(&counts);
    sp_matrix_close(&counts);
    return FTH_OK;
}

/* The header of the source: filters only make it smaller. */
static fth_status of_source(sp_sizes *out, const fth_stage_call *call, fth_err *err)
{
    sp_source s;
    FTH_TRY(sp_source_open(&s, fth_context_mem(call->context), call->config, NULL, err));
    const sp_matrix *m = &s.counts;
    *out = (sp_sizes){.cells = m->rows,
                      .genes = m->cols,
                      .entries = m->entries,
                      .most_entries = sp_matrix_fullest(m),
                      .bound = true};
    const sp_rules rules = sp_rules_of(call->config, s.loader);
    if (rules.variable > 0 && rules.variable < out->genes) out->genes = rules.variable;
    if (out->most_entries > out->genes) out->most_entries = out->genes;
    if (fth_config_has(call->config, "preprocessing.subsample")) {
        const int64_t step = fth_config_int(call->config, "preprocessing.subsample");
        out->cells = (m->rows + step - 1) / step;
    }
    const fth_status status = sp_source_groups(&s, &out->groups, err);
    /* which there are is not known yet: as many as a model would need more memory for, one */
    if (sp_source_has_sections(&s)) out->sections = 1, out->section_gap = 1;
    sp_source_close(&s);
    return status;
}

fth_status sp_data_sizes(sp_sizes *out, const fth_stage_call *call, fth_err *err)
{
    char dir[FTH_PATH];
    *out = (sp_sizes){0};
    FTH_TRY(fth_path_join(dir, call->output_dir, SP_PREPROCESSED, err));
    return sp_folder_exists(dir) ? of_folder(out, fth_context_mem(call->context), dir, err)
                                 : of_source(out, call, err);
}
