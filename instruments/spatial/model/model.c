/* model.c - the tensors of a model: which exist, and the lengths of their axes.
 *
 * Every length comes from the settings by the name of the axis, so two tensors cannot disagree.
 */
#include "slots.h"

#include <math.h>
#include <string.h>

/* ---- what there is ---- */

static const sp_param_info params[SP_PARAMS] = {
#define SP_PARAM(id, name, axes, whose) {name, axes},
#include "params.def"
#undef SP_PARAM
};

const char *sp_param_name(sp_param p)
{
    return params[p].name;
}

/* Of hybrids: factors of each prior have an axis of their own. */
static const char *hybrid_axes(const sp_settings *s, sp_param p)
{
    switch (p) {
    case SP_P_W: return params[p].axes;
    case SP_P_THETA: return s->likelihood == SP_NB ? params[p].axes : NULL;
    case SP_P_MEAN:
    case SP_P_RAW: return "tfactor cell";
    case SP_P_ELL: return s->train_lengthscale ? "sfactor" : NULL;
    case SP_P_MU: return s->local ? "sfactor cell" : "sfactor induce";
    case SP_P_LU:
        return s->local ? NULL : s->diagonal_only ? "sfactor induce" : "sfactor induce induce2";
    case SP_P_LAM: return s->local ? "sfactor cell rank" : NULL;
    case SP_P_NATURAL1:
    case SP_P_NATURAL2:
    case SP_PARAMS: break;
    }
    return NULL;
}

const char *sp_param_axes(const sp_settings *s, sp_param p)
{
    const bool inducing = s->spatial && !s->local;
    if (sp_is_hybrid(s)) return hybrid_axes(s, p);
    switch (p) {
    case SP_P_W: return params[p].axes;
    case SP_P_THETA: return s->likelihood == SP_NB ? params[p].axes : NULL;
    case SP_P_MEAN:
    case SP_P_RAW: return s->spatial || sp_is_natural(s) ? NULL : params[p].axes;
    case SP_P_NATURAL1:
    case SP_P_NATURAL2: return sp_is_natural(s) ? params[p].axes : NULL;
    case SP_P_ELL: return s->train_lengthscale ? params[p].axes : NULL;
    case SP_P_MU: return !s->spatial ? NULL : s->local ? "factor cell" : params[p].axes;
    case SP_P_LU: return !inducing ? NULL : s->diagonal_only ? "factor induce" : params[p].axes;
    case SP_P_LAM: return s->local ? params[p].axes : NULL;
    case SP_PARAMS: break;
    }
    return NULL;
}

bool sp_param_is_optimized(const sp_settings *s, sp_param p)
{
    if (p == SP_P_NATURAL1 || p == SP_P_NATURAL2) return false;
    return p != SP_P_W || s->trainable_W;
}

double sp_model_lengthscale(const sp_model *m, int64_t factor)
{
    fth_tensor *t = m->param[SP_P_ELL];
    if (!t) return m->set.lengthscale;
    return exp(m->real == FTH_F64 ? ((const double *)fth_tensor_data(t))[factor]
                                  : (double)((const float *)fth_tensor_data(t))[factor]);
}

int64_t sp_axis_length(const sp_settings *s, const char *axis)
{
    const struct {
        const char *name;
        int64_t length;
    } known[] = {{"cell", s->cells},
                 {"gene", s->genes},
                 {"factor", sp_factors(s)},
                 {"sfactor", s->n_components},
                 {"tfactor", s->nonspatial_components},
                 {"induce", s->M},
                 {"induce2", s->M},
                 {"nbr", s->K},
                 {"rank", s->R},
                 {"dim", 2},
                 {"group", s->n_groups},
                 {"group2", s->n_groups},
                 {"nbr2", s->K},
                 {"draw", s->E},
                 {"cellb", s->batch_size},
                 {"geneb", s->y_batch_size}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, axis) == 0) return known[i].length;
    return -1;
}

static const char *fixed_axes(const sp_settings *s, int i)
{
    switch (i) {
    case 0: return s->spatial ? "induce dim" : NULL;
    case 1: return s->groups ? "induce" : NULL;
    case 2:
    case 3: return s->local ? "cell nbr" : NULL;
    case 4: return s->groups ? "group group2" : NULL;
    case 5: return "iteration";
    default: return "factor";
    }
}

void sp_model_slots(sp_model *m, sp_slot slot[SP_SLOTS])
{
    static const char *const prefix[3] = {"", "adam_m.", "adam_v."};
    int n = 0;
    for (int use = 0; use < 3; use++)
        for (int p = 0; p < SP_PARAMS; p++, n++) {
            const bool moves = use == 0 || sp_param_is_optimized(&m->set, (sp_param)p);
            slot[n] = (sp_slot){.axes = moves ? sp_param_axes(&m->set, (sp_param)p) : NULL,
                                .dtype = m->real,
                                .use = (sp_slot_use)(SP_SLOT_PARAM + use),
                                .at = use == 0   ? &m->param[p]
                                      : use == 1 ? &m->first[p]
                                                 : &m->second[p],
                                .file = use == 0   ? NULL
                                        : use == 1 ? &m->first_at[p]
                                                   : &m->second_at[p]};
            snprintf(slot[n].name, sizeof slot[n].name, "%s%s", prefix[use], params[p].name);
        }
    const sp_slot rest[] = {
        {.name = "Z", .dtype = FTH_F32, .use = SP_SLOT_FIXED, .at = &m->Z},
        {.name = "groupsZ", .dtype = FTH_I32, .use = SP_SLOT_FIXED, .at = &m->groupsZ},
        {.name = "nbr_kl", .dtype = FTH_I32, .use = SP_SLOT_FIXED, .at = &m->nbr_kl},
        {.name = "nbr_inf", .dtype = FTH_I32, .use = SP_SLOT_FIXED, .at = &m->nbr_inf},
        {.name = "group_distance", .dtype = FTH_F64, .use = SP_SLOT_DISTANCE, .at = &m->distance},
        {.name = "elbo_history", .dtype = FTH_F64, .use = SP_SLOT_HISTORY, .at = &m->history},
        {.name = "stability", .dtype = FTH_F32, .use = SP_SLOT_STABILITY, .at = &m->stability}};
    for (int i = 0; n < SP_SLOTS; i++, n++) {
        slot[n] = rest[i];
        slot[n].axes = fixed_axes(&m->set, i);
    }
}

int sp_slot_sizes(const sp_settings *s, const char *axes, int64_t size[FTH_MAX_AXES])
{
    int n = 0;
    for (const char *w = axes; *w && n < FTH_MAX_AXES; n++) {
        char name[16];
        const size_t length = strcspn(w, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, w);
        size[n] = sp_axis_length(s, name);
        w += length + strspn(w + length, " ");
    }
    return n;
}

fth_status sp_slot_create(sp_model *m, const sp_slot *slot, fth_err *err)
{
    int64_t size[FTH_MAX_AXES];
    const int n = sp_slot_sizes(&m->set, slot->axes, size);
    return fth_tensor_create(slot->at, m->mem, slot->name, slot->dtype, n, size, err);
}

/* ---- making and ending ---- */

static bool is_wanted(const sp_model *m, const sp_slot *slot, bool moments)
{
    if (!slot->axes) return false;
    const int carries = fth_optim_carries((fth_optim_kind)m->set.optimizer);
    switch (slot->use) {
    case SP_SLOT_PARAM:
    case SP_SLOT_FIXED: return true;
    case SP_SLOT_FIRST: return moments && (carries & 1);
    case SP_SLOT_SECOND: return moments && (carries & 2);
    case SP_SLOT_DISTANCE:
    case SP_SLOT_HISTORY:
    case SP_SLOT_STABILITY: break;
    }
    return false;
}

fth_status sp_model_create(sp_model *m, fth_mem *mem, const sp_settings *set, fth_dtype real,
                           bool moments, fth_err *err)
{
    *m = (sp_model){.mem = mem, .set = *set, .real = real};
    sp_settings_derive(&m->set);
    sp_slot slot[SP_SLOTS];
    sp_model_slots(m, slot);
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < SP_SLOTS; i++)
        if (is_wanted(m, &slot[i], moments)) s = sp_slot_create(m, &slot[i], err);
    if (s != FTH_OK) sp_model_clear(m);
    return s;
}

void sp_model_clear(sp_model *m)
{
    sp_slot slot[SP_SLOTS];
    sp_model_slots(m, slot);
    for (int i = 0; i < SP_SLOTS; i++) fth_tensor_release(*slot[i].at);
    fth_texts_free(m->group_names);
    sp_sections_clear(&m->sections);
    *m = (sp_model){0};
}

fth_status sp_model_tie(sp_model *m, const sp_data *data, fth_err *err)
{
    fth_texts *names = NULL;
    sp_sections sections;
    FTH_TRY(sp_sections_copy(&sections, m->mem, &data->sections, err));
    fth_status s = fth_texts_create(&names, m->mem, err);
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(data->group_names); i++) {
        const char *name = fth_texts_get(data->group_names, i);
        s = fth_texts_add(names, name, strlen(name), err);
    }
    if (s != FTH_OK) {
        fth_texts_free(names);
        sp_sections_clear(&sections);
        return s;
    }
    fth_texts_free(m->group_names);
    sp_sections_clear(&m->sections);
    m->group_names = names;
    m->sections = sections;
    m->data_hash = data->hash;
    m->genes_hash = data->genes_hash;
    m->frame = data->frame;
    return FTH_OK;
}
