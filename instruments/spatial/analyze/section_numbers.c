/* section_numbers.c - numbers of each section, and how sections differ (model 21.4).
 *
 *   sections.csv            section,factor,cells,mean,sd,share,moran_i
 *   section_comparison.csv  factor,group,section,cells,mean,log2_ratio   "": all groups
 *
 * Factors are numbered from 1, as in top_genes.csv. Fit and means are of the training cells.
 */
#include "analyze.h"

#include <math.h>
#include <string.h>

/* ---- passes over the counts ---- */

/* Sections of the training cells, then of those held out: i32 [all cells]. */
static fth_status make_bins(sp_analysis *a, fth_err *err)
{
    sp_section_numbers *n = &a->of_sections;
    FTH_TRY(fth_tensor_create(&n->bin, a->mem, "sections", FTH_I32, 1, &a->rows, err));
    if (a->planning) return FTH_OK;
    int32_t *bin = fth_tensor_data(n->bin);
    const int32_t *section = fth_tensor_data(a->data.section), *held = NULL;
    if (a->held > 0) held = fth_tensor_data(a->held_section);
    for (int64_t i = 0; i < a->held; i++) bin[a->data.absent[i]] = held[i] + (int32_t)n->count;
    for (int64_t i = 0; i < a->cells; i++) bin[a->data.row ? a->data.row[i] : i] = section[i];
    return FTH_OK;
}

fth_status sp_analysis_sections_make(sp_analysis *a, fth_err *err)
{
    sp_section_numbers *n = &a->of_sections;
    if (n->count == 0) return FTH_OK;
    FTH_TRY(make_bins(a, err));
    n->in = a->in;
    n->in_mean = a->in_mean;
    n->in.bin = n->in_mean.bin = fth_tensor_source(n->bin);
    n->in.bins = n->in_mean.bins = 2 * n->count;
    FTH_TRY(sp_sums_create(&n->sums, a->mem, &n->in, false, err));
    if (a->held > 0) FTH_TRY(sp_sums_create(&n->mean_sums, a->mem, &n->in_mean, false, err));
    const uint64_t each = (uint64_t)(a->groups * a->factors + a->groups) * 2 + 8 +
                          (uint64_t)a->factors,
                   bytes = ((uint64_t)n->count * each + (uint64_t)a->factors) * sizeof(double);
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, bytes, "numbers of sections", &block, err));
    double *v = n->block = memset(block, 0, (size_t)bytes);
    const int64_t S = n->count, G = a->groups, L = a->factors;
    n->mean = v;                      /* [section][group][factor] */
    n->square = n->mean + S * G * L;  /* likewise */
    n->cells = n->square + S * G * L; /* [section][group] */
    n->moran = n->cells + S * G;      /* [section][factor] */
    n->fit = n->moran + S * L;        /* [section] */
    n->held_fit = n->fit + S;
    n->held = n->held_fit + S; /* [section]: cells held out */
    n->loading = n->held + S;  /* [factor] */
    return FTH_OK;
}

fth_status sp_analysis_sections_plan(sp_analysis *a, fth_err *err)
{
    sp_section_numbers *n = &a->of_sections;
    if (n->count == 0) return FTH_OK;
    FTH_TRY(sp_sums_plan(&n->pass, a->ctx, &n->in, a->W, &n->sums, NULL, err));
    if (a->held == 0) return FTH_OK;
    return sp_sums_plan(&n->mean_pass, a->ctx, &n->in_mean, a->W, &n->mean_sums, NULL, err);
}

void sp_analysis_sections_end(sp_analysis *a)
{
    sp_section_numbers *n = &a->of_sections;
    sp_pass_clear(&n->pass);
    sp_pass_clear(&n->mean_pass);
    sp_sums_clear(&n->sums);
    sp_sums_clear(&n->mean_sums);
    fth_tensor_release(n->bin);
    if (a->mem) fth_mem_release(a->mem, n->block, NULL);
    *n = (sp_section_numbers){0};
}

uint64_t sp_analysis_sections_bytes(const sp_analysis *a)
{
    if (a->of_sections.count == 0) return 0;
    return (uint64_t)a->cells * (2 + (uint64_t)a->factors) * sizeof(float);
}

/* ---- numbers ---- */

/* Mean deviance of the cells of each section, from bin `first` on. */
static fth_status find_fit(sp_analysis *a, const sp_sums *s, const sp_sums_input *in, int64_t first,
                           double *to, fth_err *err)
{
    const sp_section_numbers *n = &a->of_sections;
    const float *W = fth_tensor_data(a->W);
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_META, (uint64_t)in->bins * sizeof(double), "floor", &block,
                         err));
    double *more = memset(block, 0, (size_t)in->bins * sizeof(double));
    fth_status status = FTH_OK;
    if (*(double *)fth_tensor_data(s->least) < SP_RATE_FLOOR)
        status = sp_floor_rates(more, a->mem, in, W, err);
    for (int64_t i = 0; status == FTH_OK && i < n->count; i++) {
        sp_fit f;
        double cells = n->held[i];
        for (int64_t g = 0; first == 0 && g < a->groups; g++)
            cells = (g > 0 ? cells : 0) + n->cells[i * a->groups + g];
        sp_fit_of(&f, s, in, W, first + i, first + i + 1, (int64_t)cells, more[first + i]);
        to[i] = cells > 0 ? f.mean : (double)NAN;
    }
    fth_mem_release(a->mem, block, NULL);
    return status;
}

static void find_means(sp_analysis *a)
{
    sp_section_numbers *n = &a->of_sections;
    const int64_t G = a->groups, L = a->factors;
    const float *F = fth_tensor_data(a->F);
    const int32_t *section = fth_tensor_data(a->data.section), *group = fth_tensor_data(a->group);
    for (int64_t i = 0; i < a->cells; i++) {
        const int64_t at = section[i] * G + group[i];
        n->cells[at]++;
        for (int64_t l = 0; l < L; l++) {
            const double v = (double)F[i * L + l];
            n->mean[at * L + l] += v;
            n->square[at * L + l] += v * v;
        }
    }
    const float *W = fth_tensor_data(a->W);
    for (int64_t i = 0; i < a->genes * L; i++) n->loading[i % L] += (double)W[i];
    for (int64_t i = 0; i < a->held; i++)
        n->held[((const int32_t *)fth_tensor_data(a->held_section))[i]]++;
}

/* Of the cells of each section by themselves. */
static fth_status find_moran(sp_analysis *a, fth_err *err)
{
    sp_section_numbers *n = &a->of_sections;
    const int64_t L = a->factors;
    const float *xy = fth_tensor_data(a->xy), *F = fth_tensor_data(a->F);
    const int32_t *section = fth_tensor_data(a->data.section);
    void *block = NULL;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, sp_analysis_sections_bytes(a), "cells of a section",
                         &block, err));
    float *own_xy = block, *own = own_xy + 2 * a->cells;
    fth_status s = FTH_OK;
    for (int64_t k = 0; s == FTH_OK && k < n->count; k++) {
        sp_moran m;
        int64_t at = 0;
        for (int64_t i = 0; i < a->cells; i++) {
            if (section[i] != k) continue;
            memcpy(own_xy + 2 * at, xy + 2 * i, 2 * sizeof *xy);
            memcpy(own + at++ * L, F + i * L, (size_t)L * sizeof *F);
        }
        for (int64_t l = 0; l < L; l++) n->moran[k * L + l] = (double)NAN;
        if (at < 2) continue;
        s = sp_moran_run(&m, a->ctx, own_xy, own, at, L, err);
        if (s == FTH_OK) memcpy(n->moran + k * L, m.I, (size_t)L * sizeof *m.I);
        if (s == FTH_OK) sp_moran_clear(&m);
    }
    fth_mem_release(a->mem, block, NULL);
    return s;
}

fth_status sp_analysis_sections_find(sp_analysis *a, fth_err *err)
{
    sp_section_numbers *n = &a->of_sections;
    if (n->count == 0) return FTH_OK;
    find_means(a);
    FTH_TRY(find_moran(a, err));
    FTH_TRY(sp_analysis_run_pass(a, &n->pass, err));
    sp_analysis_end_pass(a, &n->pass);
    FTH_TRY(find_fit(a, &n->sums, &n->in, 0, n->fit, err));
    if (a->held == 0) return FTH_OK;
    FTH_TRY(sp_analysis_run_pass(a, &n->mean_pass, err));
    sp_analysis_end_pass(a, &n->mean_pass);
    return find_fit(a, &n->mean_sums, &n->in_mean, n->count, n->held_fit, err);
}

/* ---- files ---- */

typedef struct moments {
    double cells, mean, sd;
} moments;

/* Of factor l in section s, of group g or, below 0, of all. */
static moments moments_of(const sp_analysis *a, int64_t s, int64_t g, int64_t l)
{
    const sp_section_numbers *n = &a->of_sections;
    const int64_t G = a->groups, L = a->factors;
    moments m = {0};
    double square = 0;
    for (int64_t h = g < 0 ? 0 : g; h < (g < 0 ? G : g + 1); h++) {
        m.cells += n->cells[s * G + h];
        m.mean += n->mean[(s * G + h) * L + l];
        square += n->square[(s * G + h) * L + l];
    }
    m.mean = m.cells > 0 ? m.mean / m.cells : (double)NAN;
    m.sd = m.cells > 0 ? sqrt(fmax(square / m.cells - m.mean * m.mean, 0)) : (double)NAN;
    return m;
}

/* The share of a factor in the expected counts of a section (model 21.4a). */
static double share_of(const sp_analysis *a, int64_t s, int64_t l)
{
    double sum = 0;
    const double *loading = a->of_sections.loading;
    for (int64_t k = 0; k < a->factors; k++) sum += moments_of(a, s, -1, k).mean * loading[k];
    return moments_of(a, s, -1, l).mean * loading[l] / sum;
}

static fth_status write_sections(const sp_analysis *a, const char *path, fth_err *err)
{
    const sp_section_numbers *n = &a->of_sections;
    const int64_t *order = fth_tensor_data(a->order);
    fth_lines t;
    fth_lines_begin(&t, a->mem);
    fth_lines_add(&t, "section,factor,cells,mean,sd,share,moran_i\n");
    for (int64_t s = 0; s < n->count; s++)
        for (int64_t i = 0; i < a->factors; i++) {
            const int64_t l = order[i];
            const moments m = moments_of(a, s, -1, l);
            const double v[] = {m.mean, m.sd, share_of(a, s, l), n->moran[s * a->factors + l]};
            fth_lines_field(&t, sp_sections_name(&a->data.sections, s));
            fth_lines_add(&t, ",%lld,%.0f", (long long)i + 1, m.cells);
            for (int k = 0; k < 4; k++) {
                fth_lines_add(&t, ",");
                fth_lines_real(&t, v[k]);
            }
            fth_lines_add(&t, "\n");
        }
    return fth_lines_save(&t, path, err);
}

/* log2 of the means of the sections over their mean (model 21.4b). */
static void compare(const sp_analysis *a, fth_lines *t, int64_t place, int64_t g)
{
    const int64_t l = ((const int64_t *)fth_tensor_data(a->order))[place];
    double sum = 0;
    int64_t with = 0;
    for (int64_t s = 0; s < a->of_sections.count; s++) {
        const moments m = moments_of(a, s, g, l);
        if (m.cells > 0) sum += m.mean, with++;
    }
    for (int64_t s = 0; s < a->of_sections.count; s++) {
        const moments m = moments_of(a, s, g, l);
        if (!(m.cells > 0)) continue;
        fth_lines_add(t, "%lld,", (long long)place + 1);
        fth_lines_field(t, g < 0 ? "" : fth_texts_get(a->data.group_names, g));
        fth_lines_add(t, ",");
        fth_lines_field(t, sp_sections_name(&a->data.sections, s));
        fth_lines_add(t, ",%.0f,", m.cells);
        fth_lines_real(t, m.mean);
        fth_lines_add(t, ",");
        fth_lines_real(t, log2(m.mean * (double)with / sum));
        fth_lines_add(t, "\n");
    }
}

static fth_status write_comparison(const sp_analysis *a, const char *path, fth_err *err)
{
    fth_lines t;
    fth_lines_begin(&t, a->mem);
    fth_lines_add(&t, "factor,group,section,cells,mean,log2_ratio\n");
    for (int64_t i = 0; i < a->factors; i++) {
        compare(a, &t, i, -1);
        for (int64_t g = 0; a->groups > 1 && g < a->groups; g++) compare(a, &t, i, g);
    }
    return fth_lines_save(&t, path, err);
}

fth_status sp_analysis_sections_write(sp_analysis *a, fth_err *err)
{
    char table[FTH_PATH], comparison[FTH_PATH];
    FTH_TRY(fth_path_join(table, a->call->model_dir, SP_SECTIONS_CSV, err));
    FTH_TRY(fth_path_join(comparison, a->call->model_dir, SP_SECTION_COMPARISON, err));
    if (a->of_sections.count == 0) { /* from an earlier analysis */
        FTH_TRY(fth_path_remove(a->mem, table, err));
        return fth_path_remove(a->mem, comparison, err);
    }
    FTH_TRY(write_sections(a, table, err));
    FTH_TRY(write_comparison(a, comparison, err));
    FTH_TRY(fth_stage_wrote(a->call, FTH_FILE_OUTPUT, table, "factors of each section", err));
    return fth_stage_wrote(a->call, FTH_FILE_OUTPUT, comparison, "differences between sections",
                           err);
}

void sp_analysis_sections_tell(fth_json_writer *w, const sp_analysis *a)
{
    const sp_section_numbers *n = &a->of_sections;
    if (n->count == 0) return;
    fth_json_open(w, "sections", '[');
    for (int64_t s = 0; s < n->count; s++) {
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "name", sp_sections_name(&a->data.sections, s));
        fth_json_int(w, "n_cells", (int64_t)moments_of(a, s, -1, 0).cells);
        fth_json_real(w, "poisson_deviance", n->fit[s]);
        if (a->held > 0) {
            fth_json_int(w, "n_held_out", (int64_t)n->held[s]);
            if (n->held[s] > 0) fth_json_real(w, "holdout_deviance", n->held_fit[s]);
        }
        fth_json_open(w, "moran_i", '[');
        for (int64_t i = 0; i < a->factors; i++)
            fth_json_real(
                w, NULL,
                n->moran[s * a->factors + ((const int64_t *)fth_tensor_data(a->order))[i]]);
        fth_json_close(w);
        fth_json_close(w);
    }
    fth_json_close(w);
}
