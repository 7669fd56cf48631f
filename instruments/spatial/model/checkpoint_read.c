/* checkpoint_read.c - a model from its file alone: neither config nor defaults are consulted.
 *
 * Everything is checked before it is used: the format, a hash of the settings, the settings, a hash
 * of each tensor, and every axis of every tensor against the one length that the settings give it.
 */
#include "checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- settings ---- */

static fth_status check_format(const fth_safetensors *f, fth_err *err)
{
    const char *format = fth_safetensors_meta(f, "format");
    if (format && strcmp(format, SP_FORMAT) == 0) return FTH_OK;
    if (!format)
        FTH_FAIL(err, FTH_E_FILE_FORMAT,
                 "this is not a model of the instrument spatial: its metadata have no format");
    else
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "the format is \"%.40s\"; \"%s\" is expected", format,
                 SP_FORMAT);
    fth_err_hint(err, "give a %s that `fathom spatial train` of this version wrote", SP_CHECKPOINT);
    return FTH_E_FILE_FORMAT;
}

static fth_status check_seal(const fth_safetensors *f, fth_err *err)
{
    uint64_t sum = 0;
    char text[20];
    for (int64_t i = 0; i < fth_safetensors_meta_count(f); i++) {
        const char *key = NULL, *value = fth_safetensors_meta_at(f, i, &key);
        if (sp_is_sealed(key)) sum += sp_seal_entry(key, value);
    }
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    const char *then = fth_safetensors_meta(f, SP_SEAL);
    if (then && strcmp(then, text) == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "the settings in the header have the hash %s, but the file says %.20s: they "
                    "were changed or damaged",
                    text, then ? then : "nothing");
}

static fth_status read_settings(sp_model *m, const fth_safetensors *f, fth_err *err)
{
    for (int i = 0; i < sp_settings_count(); i++) {
        const bool needed = sp_setting_family(i) == SP_FAMILY_MODEL;
        char key[48];
        snprintf(key, sizeof key, "%s%s", needed ? "" : SP_TRAIN_PREFIX, sp_setting_name(i));
        const char *value = fth_safetensors_meta(f, key);
        if (!value) value = sp_setting_older(i);
        if (!value && !needed) continue;
        if (!value) return FTH_FAIL(err, FTH_E_FILE_KEY, "the setting %s is missing", key);
        if (!sp_setting_set(&m->set, i, value))
            return FTH_FAIL(err, FTH_E_FILE_KEY, "the setting %s is \"%.40s\", an invalid value",
                            key, value);
    }
    sp_settings_derive(&m->set);
    const char *model = fth_safetensors_meta(f, "model");
    if (model && strcmp(model, sp_kinds[m->set.kind].name) == 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY, "the model is \"%.40s\", but its settings are those of %s",
                    model ? model : "", sp_kinds[m->set.kind].name);
}

/* Impossible lengths would fail later with a worse message. */
static fth_status check_lengths(const sp_settings *s, fth_err *err)
{
    const bool induces = s->spatial && !s->local;
    const struct {
        const char *name;
        int64_t value, least;
    } row[] = {
        {"cells", s->cells, 1},          {"genes", s->genes, 1},
        {"n_groups", s->n_groups, 1},    {"n_components", s->n_components, 1},
        {"M", s->M, induces ? 1 : 0},    {"K", s->K, s->local ? 1 : 0},
        {"R", s->R, s->local ? 1 : 0},   {"nonspatial_components", s->nonspatial_components, 0},
        {"n_sections", s->n_sections, 0}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].value < row[i].least || row[i].value > INT32_MAX)
            return FTH_FAIL(err, FTH_E_FILE_KEY, "the setting %s is %" PRId64 ", an invalid value",
                            row[i].name, row[i].value);
    if (s->size_factors == SP_SIZE_TOTAL && !(s->size_median > 0 && isfinite(s->size_median)))
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "the setting size_median is %g; sizes of cells need one above 0",
                        s->size_median);
    if (s->n_sections > 0 ? !(s->section_gap > 0 && isfinite(s->section_gap)) : s->section_gap != 0)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "the setting section_gap is %g with n_sections %" PRId64
                        "; sections have a gap above 0, and only they",
                        s->section_gap, s->n_sections);
    if (s->train_lengthscale && !s->spatial)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "the setting train_lengthscale is true, but pnmf has no lengthscales");
    if (sp_is_hybrid(s) && !s->spatial)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "the setting nonspatial_components is %" PRId64
                        ", but pnmf has no spatial factors beside them",
                        s->nonspatial_components);
    if (s->training_mode == SP_NATURAL && s->spatial)
        return FTH_FAIL(
            err, FTH_E_FILE_KEY,
            "the setting training_mode is natural, but only pnmf has natural gradients");
    if (s->local && s->M != s->cells)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "a local model has as many inducing points as cells, but M is %" PRId64
                        " and cells %" PRId64,
                        s->M, s->cells);
    return FTH_OK;
}

static bool get_int(const fth_safetensors *f, const char *key, int64_t *out)
{
    return fth_int_parse(fth_safetensors_meta(f, key), out);
}

static bool get_hash(const fth_safetensors *f, const char *key, uint64_t *out)
{
    const char *text = fth_safetensors_meta(f, key);
    char *end = NULL;
    if (text) *out = strtoull(text, &end, 16);
    return text && end != text && *end == '\0';
}

static bool get_real(const fth_safetensors *f, const char *key, double *out)
{
    return fth_real_parse(fth_safetensors_meta(f, key), out) && isfinite(*out);
}

/* Absent for folders that do not record how they were rescaled. */
static void read_frame(sp_model *m, const fth_safetensors *f)
{
    sp_frame r = {0};
    r.known = get_real(f, "offset_x", &r.offset[0]) && get_real(f, "offset_y", &r.offset[1]) &&
              get_real(f, "scale", &r.scale) && r.scale > 0;
    m->frame = r.known ? r : (sp_frame){0};
}

/* Metadata have a hash of every tensor. */
static void read_identity(sp_model *m, const fth_safetensors *f)
{
    for (int64_t i = 0; i < fth_safetensors_meta_count(f); i++) {
        const char *key = NULL, *value = fth_safetensors_meta_at(f, i, &key);
        m->identity += sp_seal_entry(key, value);
    }
}

static fth_status read_facts(sp_model *m, const fth_safetensors *f, fth_err *err)
{
    const char *missing = !get_int(f, "iterations", &m->iterations)    ? "iterations"
                          : !get_hash(f, "genes_hash", &m->genes_hash) ? "genes_hash"
                          : !get_hash(f, "data_hash", &m->data_hash)   ? "data_hash"
                          : !fth_safetensors_meta(f, "elbo")           ? "elbo"
                          : !fth_safetensors_meta(f, "group_distance") ? "group_distance"
                                                                       : NULL;
    if (missing || m->iterations < 0)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s is missing in the metadata, or is not a number",
                        missing ? missing : "iterations");
    m->elbo = fth_strtod(fth_safetensors_meta(f, "elbo"), NULL);
    get_int(f, "step", &m->optimizer_steps);
    get_int(f, "step_of_lengthscales", &m->ell_steps);
    read_frame(m, f);
    read_identity(m, f);
    return FTH_OK;
}

static fth_status take_names(sp_model *m, const fth_json_value *list, fth_err *err)
{
    const int64_t n = fth_json_count(list);
    if (n != m->set.n_groups)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "group_names has %" PRId64 " names, but n_groups is %" PRId64, n,
                        m->set.n_groups);
    FTH_TRY(fth_texts_create(&m->group_names, m->mem, err));
    for (int64_t i = 0; i < n; i++) {
        const char *name = fth_json_get_text(fth_json_at(list, i), NULL, NULL);
        if (!name) return FTH_FAIL(err, FTH_E_FILE_KEY, "group_names is not a list of texts");
        FTH_TRY(fth_texts_add(m->group_names, name, strlen(name), err));
    }
    return FTH_OK;
}

static fth_status read_names(sp_model *m, const fth_safetensors *f, fth_err *err)
{
    const char *text = fth_safetensors_meta(f, "group_names");
    if (!text) return FTH_FAIL(err, FTH_E_FILE_KEY, "group_names is missing in the metadata");
    fth_json *doc = NULL;
    FTH_TRY(fth_json_parse(&doc, m->mem, "group_names", text, strlen(text), err));
    const fth_status s = take_names(m, fth_json_root(doc), err);
    fth_json_destroy(doc);
    return s;
}

static fth_status read_sections(sp_model *m, const fth_safetensors *f, fth_err *err)
{
    const char *names = fth_safetensors_meta(f, SP_SECTION_NAMES),
               *rest = fth_safetensors_meta(f, SP_SECTIONS);
    if (m->set.n_sections == 0) return FTH_OK;
    if (!names || !rest)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s is missing in the metadata",
                        names ? SP_SECTIONS : SP_SECTION_NAMES);
    fth_json *list = NULL, *doc = NULL;
    fth_status s = fth_json_parse(&list, m->mem, SP_SECTION_NAMES, names, strlen(names), err);
    if (s == FTH_OK) s = fth_json_parse(&doc, m->mem, SP_SECTIONS, rest, strlen(rest), err);
    if (s == FTH_OK)
        s = sp_sections_parse(&m->sections, m->mem, fth_json_root(list), fth_json_root(doc),
                              "metadata", err);
    fth_json_destroy(list);
    fth_json_destroy(doc);
    FTH_TRY(s);
    if (m->sections.n == m->set.n_sections && m->sections.gap == m->set.section_gap) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                    "%" PRId64 " sections %g apart are described, but the settings say %" PRId64
                    " and %g",
                    m->sections.n, m->sections.gap, m->set.n_sections, m->set.section_gap);
}

/* ---- tensors ---- */

/* Where the name of axis number a starts. */
static const char *axis_at(const char *axes, int a)
{
    for (; a > 0; a--) axes += strcspn(axes, " ") + 1;
    return axes;
}

static fth_status check_axes(const sp_model *m, const fth_safetensors *f, const sp_slot *slot,
                             const fth_source *src, fth_err *err)
{
    char key[40];
    snprintf(key, sizeof key, "axes.%.24s", slot->name);
    const char *axes = fth_safetensors_meta(f, key);
    if (!axes || strcmp(axes, slot->axes) != 0)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "the axes of %s are \"%.60s\"; \"%s\" are expected",
                        slot->name, axes ? axes : "", slot->axes);
    int64_t size[FTH_MAX_AXES];
    const int n = slot->use == SP_SLOT_HISTORY ? (size[0] = m->iterations, 1)
                                               : sp_slot_sizes(&m->set, axes, size);
    if (src->n_axes != n || src->dtype != slot->dtype)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %d axes of %s; %d of %s are expected",
                        slot->name, src->n_axes, fth_dtype_name(src->dtype), n,
                        fth_dtype_name(slot->dtype));
    for (int a = 0; a < n; a++) {
        if (src->size[a] == size[a]) continue;
        const char *name = axis_at(axes, a);
        return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                        "%.*s is %" PRId64 " in %s but the header says %" PRId64,
                        (int)strcspn(name, " "), name, src->size[a], slot->name, size[a]);
    }
    return FTH_OK;
}

static fth_status read_slot(sp_model *m, fth_safetensors *f, const sp_slot *slot, fth_err *err)
{
    fth_source src;
    FTH_TRY(fth_safetensors_source(f, slot->name, &src, err));
    fth_status s = check_axes(m, f, slot, &src, err);
    if (s == FTH_OK)
        s = fth_tensor_create(slot->at, m->mem, slot->name, src.dtype, src.n_axes, src.size, err);
    const int64_t lo[FTH_MAX_AXES] = {0};
    if (s == FTH_OK) s = src.read(src.self, lo, src.size, fth_tensor_data(*slot->at), err);
    fth_source_close(&src);
    return s;
}

static bool has_tensor(const fth_safetensors *f, const char *name)
{
    for (int64_t i = 0; i < fth_safetensors_count(f); i++)
        if (strcmp(fth_safetensors_name(f, i), name) == 0) return true;
    return false;
}

static bool is_needed(const sp_slot *slot, bool matrix)
{
    return slot->use == SP_SLOT_PARAM || slot->use == SP_SLOT_FIXED ||
           (slot->use == SP_SLOT_DISTANCE && matrix);
}

static fth_status read_tensors(sp_model *m, fth_safetensors *f, bool moments, fth_err *err)
{
    sp_slot slot[SP_SLOTS];
    const bool matrix = strcmp(fth_safetensors_meta(f, "group_distance"), SP_EQUIDISTANT) != 0;
    sp_model_slots(m, slot);
    for (int i = 0; i < SP_SLOTS; i++) {
        const bool moment = slot[i].use == SP_SLOT_FIRST || slot[i].use == SP_SLOT_SECOND;
        if (!slot[i].axes || (moment && !moments)) continue;
        if (has_tensor(f, slot[i].name))
            FTH_TRY(read_slot(m, f, &slot[i], err));
        else if (is_needed(&slot[i], matrix))
            return FTH_FAIL(err, FTH_E_FILE_KEY, "there is no tensor %s [%s], which %s has",
                            slot[i].name, slot[i].axes, sp_kinds[m->set.kind].name);
    }
    return FTH_OK;
}

/* The dtype of all parameters is that of W. */
static fth_status read_dtype(sp_model *m, fth_safetensors *f, fth_err *err)
{
    fth_source src;
    if (!has_tensor(f, "W"))
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "there is no tensor W [gene factor], which every "
                        "model has");
    FTH_TRY(fth_safetensors_source(f, "W", &src, err));
    m->real = src.dtype;
    fth_source_close(&src);
    return m->real == FTH_F32 || m->real == FTH_F64
               ? FTH_OK
               : FTH_FAIL(err, FTH_E_FILE_SHAPE, "W is %s; f32 or f64 is expected",
                          fth_dtype_name(m->real));
}

/* ---- what the tensors say to each other ---- */

/* The first element outside [0, n); -1: none. */
static int64_t find_outside(fth_tensor *t, int64_t n)
{
    const int32_t *v = fth_tensor_data(t);
    const int64_t count = (int64_t)(fth_tensor_bytes(t) / sizeof *v);
    for (int64_t i = 0; i < count; i++)
        if (v[i] < 0 || v[i] >= n) return i;
    return -1;
}

static fth_status check_list(fth_tensor *t, const char *name, int64_t cells, bool others,
                             fth_err *err)
{
    const int32_t *v = fth_tensor_data(t);
    const int64_t bad = find_outside(t, cells), K = fth_tensor_size(t, 1);
    if (bad >= 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s names the neighbour %d of cell %" PRId64 "; there are %" PRId64
                        " cells",
                        name, v[bad], bad / K, cells);
    for (int64_t i = 0; others && i < cells * K; i++)
        if (v[i] == i / K)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s conditions cell %" PRId64 " on itself",
                            name, i / K);
    return FTH_OK;
}

/* Every inducing point is in a section. */
static fth_status check_points(const sp_model *m, fth_err *err)
{
    const float *z = m->Z && m->sections.n > 0 ? fth_tensor_data(m->Z) : NULL;
    for (int64_t i = 0; z && i < fth_tensor_size(m->Z, 0); i++) {
        int64_t s = 0;
        while (s < m->sections.n && !sp_sections_holds(&m->sections, s, z + 2 * i)) s++;
        if (s == m->sections.n)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "Z has the point %" PRId64 " at (%g, %g), where no section is", i,
                            (double)z[2 * i], (double)z[2 * i + 1]);
    }
    return FTH_OK;
}

static fth_status check_values(const sp_model *m, fth_err *err)
{
    if (m->groupsZ) {
        const int64_t bad = find_outside(m->groupsZ, m->set.n_groups);
        if (bad >= 0)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "groupsZ has the group %d at %" PRId64 ", but n_groups is %" PRId64,
                            ((const int32_t *)fth_tensor_data(m->groupsZ))[bad], bad,
                            m->set.n_groups);
    }
    FTH_TRY(check_points(m, err));
    if (m->nbr_kl) FTH_TRY(check_list(m->nbr_kl, "nbr_kl", m->set.cells, true, err));
    if (m->nbr_inf) FTH_TRY(check_list(m->nbr_inf, "nbr_inf", m->set.cells, false, err));
    return FTH_OK;
}

static fth_status check_data(const sp_model *m, const sp_data *data, fth_err *err)
{
    fth_status s = FTH_OK;
    if (m->set.genes != data->size.genes)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "the model is of %" PRId64 " genes, but %s has %" PRId64, m->set.genes,
                     data->dir, data->size.genes);
    else if (m->genes_hash != data->genes_hash)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "the model is of other genes, or of another order of them, than %s",
                     data->dir);
    else if (m->data_hash != data->hash)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE,
                     "the model was trained on other cells than those of %s: their positions and "
                     "groups have the hash %016" PRIx64 ", not %016" PRIx64,
                     data->dir, data->hash, m->data_hash);
    if (s != FTH_OK)
        fth_err_hint(err, "train again on these data, or allow others with --allow-other-data");
    return s;
}

/* Every message starts with the file. */
static void name_file(fth_err *err, const char *path)
{
    if (!err || strstr(err->text, path)) return;
    char text[FTH_ERR_TEXT];
    memcpy(text, err->text, sizeof text);
    snprintf(err->text, sizeof err->text, "%.400s: %.900s", path, text);
}

fth_status sp_model_check(const sp_model *m, const char *path, fth_err *err)
{
    const fth_status s = check_values(m, err);
    if (s != FTH_OK) name_file(err, path);
    return s;
}

/* ---- all of it ---- */

static fth_status read_file(sp_model *m, fth_safetensors *f, const sp_data *data, bool moments,
                            fth_err *err)
{
    FTH_TRY(check_format(f, err));
    FTH_TRY(check_seal(f, err));
    FTH_TRY(read_settings(m, f, err));
    FTH_TRY(check_lengths(&m->set, err));
    FTH_TRY(read_facts(m, f, err));
    FTH_TRY(read_names(m, f, err));
    FTH_TRY(read_sections(m, f, err));
    if (data) FTH_TRY(check_data(m, data, err));
    FTH_TRY(read_dtype(m, f, err));
    int64_t checked = 0;
    FTH_TRY(fth_safetensors_verify(f, &checked, err));
    FTH_TRY(read_tensors(m, f, moments, err));
    if (checked != fth_safetensors_count(f))
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "%" PRId64 " of %" PRId64 " tensors have no hash in the metadata",
                        fth_safetensors_count(f) - checked, fth_safetensors_count(f));
    return check_values(m, err);
}

fth_status sp_model_read(sp_model *m, fth_mem *mem, const char *path, const sp_data *data,
                         bool other_data, bool moments, fth_err *err)
{
    *m = (sp_model){.mem = mem};
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, mem, path, err));
    const fth_status s = read_file(m, f, other_data ? NULL : data, moments, err);
    fth_safetensors_close(f);
    if (s == FTH_OK) return FTH_OK;
    sp_model_clear(m);
    name_file(err, path);
    return s;
}

fth_status sp_model_peek(sp_settings *set, fth_mem *mem, const char *path, fth_err *err)
{
    sp_model m = {.mem = mem};
    fth_safetensors *f = NULL;
    FTH_TRY(fth_safetensors_open(&f, mem, path, err));
    fth_status s = check_format(f, err);
    if (s == FTH_OK) s = check_seal(f, err);
    if (s == FTH_OK) s = read_settings(&m, f, err);
    if (s == FTH_OK) s = check_lengths(&m.set, err);
    fth_safetensors_close(f);
    if (s != FTH_OK)
        name_file(err, path);
    else
        *set = m.set;
    return s;
}
