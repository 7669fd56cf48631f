/* checkpoint.c - writing a model: every setting and every tensor, and no time or place, so that
 * equal runs give equal bytes.
 */
#include "checkpoint.h"

#include <inttypes.h>

enum { FACTS = 96, VALUE = 96 };

typedef struct facts {
    fth_file_meta meta[FACTS];
    char key[FACTS][32], value[FACTS][VALUE];
    int64_t n;
    bool full;
} facts;

static void add(facts *f, const char *prefix, const char *key, const char *value)
{
    if (f->n == FACTS) {
        f->full = true;
        return;
    }
    const int64_t i = f->n++;
    snprintf(f->key[i], sizeof f->key[i], "%s%s", prefix, key);
    snprintf(f->value[i], sizeof f->value[i], "%s", value);
    f->meta[i] = (fth_file_meta){f->key[i], f->value[i]};
}

static void add_number(facts *f, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    add(f, "", key, text);
}

static void add_hash(facts *f, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    add(f, "", key, text);
}

static void add_real(facts *f, const char *key, double value)
{
    char text[VALUE];
    add(f, "", key, fth_number_format(text, sizeof text, value, 17));
}

static void add_model(facts *f, const sp_model *m, bool moments)
{
    char text[VALUE];
    add(f, "", "format", SP_FORMAT);
    add(f, "", "model", sp_kinds[m->set.kind].name);
    add(f, "", "version", fth_version());
    for (int i = 0; i < sp_settings_count(); i++) {
        if (sp_setting_is_implied(&m->set, i)) continue;
        add(f, sp_setting_family(i) == SP_FAMILY_MODEL ? "" : SP_TRAIN_PREFIX, sp_setting_name(i),
            sp_setting_get(&m->set, i, text, sizeof text));
    }
    add(f, "", "group_distance", m->distance ? "matrix" : SP_EQUIDISTANT);
    add(f, "", "packed", "false");
    add_number(f, "gene_count", m->set.genes);
    add_hash(f, "genes_hash", m->genes_hash);
    add_hash(f, "data_hash", m->data_hash);
    if (m->frame.known) {
        add_real(f, "offset_x", m->frame.offset[0]);
        add_real(f, "offset_y", m->frame.offset[1]);
        add_real(f, "scale", m->frame.scale);
    }
    add_number(f, "iterations", m->iterations);
    if (moments) add_number(f, "step", m->optimizer_steps);
    if (moments && m->param[SP_P_ELL]) add_number(f, "step_of_lengthscales", m->ell_steps);
    add_real(f, "elbo", m->elbo);
}

/* Sections: their names, and where they lie. */
static fth_status list_sections(const sp_model *m, fth_json_writer *names, fth_json_writer *rest,
                                fth_err *err)
{
    fth_json_begin(names, m->mem, false);
    fth_json_begin(rest, m->mem, false);
    sp_sections_put_names(names, NULL, &m->sections);
    sp_sections_put(rest, NULL, &m->sections);
    FTH_TRY(fth_json_end(names, err));
    return fth_json_end(rest, err);
}

static fth_status list_names(const sp_model *m, fth_json_writer *w, fth_err *err)
{
    fth_json_begin(w, m->mem, false);
    fth_json_open(w, NULL, '[');
    for (int64_t i = 0; m->group_names && i < fth_texts_count(m->group_names); i++)
        fth_json_text(w, NULL, fth_texts_get(m->group_names, i));
    fth_json_close(w);
    return fth_json_end(w, err);
}

/* ---- tensors ---- */

typedef struct items {
    fth_file_item item[SP_SLOTS];
    const sp_slot *slot[SP_SLOTS];
    int64_t n;
} items;

static bool is_moment(const sp_slot *slot)
{
    return slot->use == SP_SLOT_FIRST || slot->use == SP_SLOT_SECOND;
}

static void choose(items *list, const sp_model *m, const sp_slot *slot, bool moments)
{
    for (int i = 0; i < SP_SLOTS; i++) {
        const bool filed = slot[i].file && slot[i].file->read;
        if (!slot[i].axes || !(*slot[i].at || filed) || (is_moment(&slot[i]) && !moments)) continue;
        fth_file_item *to = &list->item[list->n];
        *to = (fth_file_item){
            .name = slot[i].name, .dtype = slot[i].dtype, .axes = slot[i].axes, .n_axes = 1};
        if (slot[i].use == SP_SLOT_HISTORY)
            to->size[0] = m->iterations;
        else
            to->n_axes = sp_slot_sizes(&m->set, slot[i].axes, to->size);
        list->slot[list->n++] = &slot[i];
    }
}

static fth_status store(const sp_model *m, const sp_slot *slot, const fth_sink *sink, fth_err *err)
{
    if (*slot->at && slot->use != SP_SLOT_HISTORY) return fth_sink_store(sink, *slot->at, err);
    if (!*slot->at) return fth_source_copy(slot->file, sink, m->mem, NULL, NULL, err);
    return fth_sink_put(sink, fth_tensor_data(*slot->at), err); /* the iterations there are */
}

static fth_status write_file(const sp_model *m, const char *path, const facts *f, const items *list,
                             fth_err *err)
{
    const fth_safetensors_options opt = {.meta = f->meta, .n_meta = f->n, .keep_previous = true};
    fth_safetensors_writer *w;
    FTH_TRY(fth_safetensors_create(&w, m->mem, path, list->item, list->n, &opt, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < list->n; i++) {
        fth_sink sink;
        s = fth_safetensors_sink(w, list->item[i].name, &sink, err);
        if (s == FTH_OK) s = store(m, list->slot[i], &sink, err);
    }
    if (s == FTH_OK) return fth_safetensors_commit(w, err);
    fth_safetensors_abandon(w);
    return s;
}

static fth_status seal(facts *f, fth_err *err)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < f->n; i++) sum += sp_seal_entry(f->meta[i].key, f->meta[i].value);
    add_hash(f, SP_SEAL, sum);
    return f->full ? FTH_FAIL(err, FTH_E_INTERNAL, "a model has more settings than its file takes")
                   : FTH_OK;
}

fth_status sp_model_write(const sp_model *m, const char *path, bool moments,
                          const fth_file_meta *extra, int64_t n_extra, fth_err *err)
{
    facts f = {.n = 0};
    items list = {.n = 0};
    sp_slot slot[SP_SLOTS];
    sp_model_slots((sp_model *)(uintptr_t)m, slot); /* the list is only read here */
    choose(&list, m, slot, moments);
    add_model(&f, m, moments);
    for (int64_t i = 0; i < n_extra; i++) add(&f, "", extra[i].key, extra[i].value);
    fth_json_writer names, section_names, sections;
    fth_status s = list_names(m, &names, err);
    const fth_status t = list_sections(m, &section_names, &sections, err);
    if (s == FTH_OK) s = t;
    if (s == FTH_OK) {
        if (f.n < FACTS) f.meta[f.n++] = (fth_file_meta){"group_names", names.data};
        if (m->sections.n > 0 && f.n + 1 < FACTS) {
            f.meta[f.n++] = (fth_file_meta){SP_SECTION_NAMES, section_names.data};
            f.meta[f.n++] = (fth_file_meta){SP_SECTIONS, sections.data};
        }
        s = seal(&f, err);
    }
    if (s == FTH_OK) s = write_file(m, path, &f, &list, err);
    fth_json_free(&names);
    fth_json_free(&section_names);
    fth_json_free(&sections);
    return s == FTH_OK ? FTH_OK : fth_err_note(err, FTH_HERE, s, "writing the model %s", path);
}
