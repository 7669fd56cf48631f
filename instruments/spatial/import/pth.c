/* pth.c - see pth.h. Tensors are looked up by name and copied element by element; a storage is
 * loaded for each of them and released at once.
 */
#include "pth.h"

#include "../prior/loadings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the file ---- */

/* torch.save calls the folder in the zip after the file, without its ending. */
static bool find_root(sp_pth *f)
{
    const char *slash = strrchr(f->path, '/'), *name = slash ? slash + 1 : f->path,
               *dot = strrchr(name, '.');
    const int stem = (int)(dot ? (size_t)(dot - name) : strlen(name));
    const char *const tried[] = {name, "archive", "model"};
    for (int i = 0; i < 3; i++) {
        char member[100];
        snprintf(f->root, sizeof f->root, "%.*s", i == 0 && stem < 60 ? stem : 60, tried[i]);
        snprintf(member, sizeof member, "%s/data.pkl", f->root);
        if (fth_zip_has(f->zip, member)) return true;
    }
    return false;
}

static fth_status read_pickle(sp_pth *f, fth_err *err)
{
    char member[100];
    uint64_t bytes = 0;
    if (!find_root(f)) {
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: there is no data.pkl in it", f->path);
        fth_err_hint(err, "give a file that torch.save wrote, under the name it was saved with");
        return FTH_E_FILE_FORMAT;
    }
    snprintf(member, sizeof member, "%s/data.pkl", f->root);
    FTH_TRY(fth_zip_load(f->zip, member, 1u << 24, &f->text, &bytes, err));
    return sp_pickle_read(&f->pickle, f->mem, f->path, f->text, bytes, err);
}

fth_status sp_pth_open(sp_pth *f, fth_mem *mem, const char *path, fth_err *err)
{
    *f = (sp_pth){.mem = mem, .path = path};
    fth_status s = fth_zip_open(&f->zip, mem, path, err);
    if (s == FTH_OK) s = read_pickle(f, err);
    if (s != FTH_OK) sp_pth_close(f);
    return s;
}

void sp_pth_close(sp_pth *f)
{
    sp_pickle_free(f->pickle);
    if (f->text) fth_mem_release(f->mem, f->text, NULL);
    fth_zip_close(f->zip);
    *f = (sp_pth){0};
}

/* ---- tensors ---- */

/* Of the prior, by its own name or by that in the state of the whole model; or at the top. */
static sp_value find(const sp_pth *f, const char *name)
{
    const sp_pickle *p = f->pickle;
    const sp_value root = sp_pickle_root(p);
    char whole[64];
    snprintf(whole, sizeof whole, "prior.%.48s", name);
    sp_value v = sp_pickle_get(p, sp_pickle_get(p, root, "prior_state_dict"), name);
    if (!v) v = sp_pickle_get(p, sp_pickle_get(p, root, "model_state_dict"), whole);
    return v ? v : sp_pickle_get(p, root, name);
}

static fth_status tensor_of(const sp_pth *f, const char *name, int n_axes, sp_pickle_tensor *t,
                            fth_err *err)
{
    const sp_value v = find(f, name);
    if (!v) return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no tensor %s", f->path, name);
    if (!sp_pickle_tensor_of(f->pickle, v, t))
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: %s is not a tensor that lies inside its storage", f->path, name);
    if (t->n_axes != n_axes)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s has %d axes; %d are expected", f->path, name,
                        t->n_axes, n_axes);
    return FTH_OK;
}

typedef struct storage_type {
    const char *name;
    int bytes;
    fth_dtype dtype;
} storage_type;
static const storage_type types[] = {{"FloatStorage", 4, FTH_F32},
                                     {"DoubleStorage", 8, FTH_F64},
                                     {"LongStorage", 8, FTH_I64},
                                     {"IntStorage", 4, FTH_I32}};

static double number_at(const storage_type *type, const void *data, int64_t i)
{
    if (type->dtype == FTH_F32) return (double)((const float *)data)[i];
    if (type->dtype == FTH_F64) return ((const double *)data)[i];
    if (type->dtype == FTH_I64) return (double)((const int64_t *)data)[i];
    return (double)((const int32_t *)data)[i];
}

static fth_status load(sp_pth *f, const sp_pickle_tensor *t, const storage_type **type, void **data,
                       fth_err *err)
{
    char member[120];
    uint64_t bytes = 0;
    *type = NULL;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, t->type) == 0) *type = &types[i];
    if (!*type)
        return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: a tensor in a %s, which is not read", f->path,
                        t->type);
    const uint64_t want = (uint64_t)t->elements * (uint64_t)(*type)->bytes;
    snprintf(member, sizeof member, "%s/data/%s", f->root, t->key);
    FTH_TRY(fth_zip_load(f->zip, member, want, data, &bytes, err));
    if (bytes == want) return FTH_OK;
    fth_mem_release(f->mem, *data, NULL);
    *data = NULL;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s has %" PRIu64 " bytes; %" PRIu64 " are expected",
                    f->path, member, bytes, want);
}

/* Where elements go, in the order of the tensor's axes. */
typedef void put_fn(void *to, int64_t i, double v);

static fth_status copy(sp_pth *f, const char *name, int n_axes, const int64_t *size, put_fn *put,
                       void *to, fth_err *err)
{
    sp_pickle_tensor t;
    const storage_type *type = NULL;
    void *data = NULL;
    FTH_TRY(tensor_of(f, name, n_axes, &t, err));
    int64_t n = 1;
    for (int a = 0; a < n_axes; a++) {
        n *= size[a];
        if (t.size[a] != size[a])
            return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                            "%s: axis %d of %s has %" PRId64 " elements; %" PRId64 " are expected",
                            f->path, a, name, t.size[a], size[a]);
    }
    FTH_TRY(load(f, &t, &type, &data, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        int64_t at = t.offset, left = i;
        for (int a = n_axes - 1; a >= 0; a--) {
            at += left % size[a] * t.stride[a];
            left /= size[a];
        }
        const double v = number_at(type, data, at);
        if (!isfinite(v))
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %s has a number that is not finite", f->path,
                         name);
        put(to, i, v);
    }
    fth_mem_release(f->mem, data, NULL);
    return s;
}

static void put_number(void *to, int64_t i, double v)
{
    ((double *)to)[i] = v;
}

/* ---- settings ---- */

static void note(sp_notes *notes, const char *name, double was, double is)
{
    if (!notes || was == is || notes->n >= (int)(sizeof notes->text / sizeof notes->text[0]))
        return;
    snprintf(notes->text[notes->n++], sizeof notes->text[0],
             "note: %s is %.9g in the file, and was %.9g in the config", name, is, was);
}

/* A number of the kernel, where the file has it: a tensor of one element. */
static fth_status kernel_number(sp_pth *f, const char *name, const char *key, double *to,
                                sp_notes *notes, fth_err *err)
{
    sp_pickle_tensor t;
    double v = 0;
    if (!find(f, name)) return FTH_OK;
    if (sp_pickle_tensor_of(f->pickle, find(f, name), &t) && t.n_axes <= 1) {
        FTH_TRY(copy(f, name, t.n_axes, (int64_t[]){1}, put_number, &v, err));
    } else if (!sp_pickle_real(f->pickle, find(f, name), &v)) {
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: %s is not one number", f->path, name);
    }
    if ((float)*to == (float)v) return FTH_OK; /* 0.1, and not what f32 has for it */
    note(notes, key, *to, v);
    *to = v;
    return FTH_OK;
}

/* Whether the kernel has a lengthscale of each factor: a vector of as many elements. */
static bool has_lengthscales(const sp_pth *f, const sp_settings *set)
{
    sp_pickle_tensor t;
    return find(f, "kernel.lengthscale") &&
           sp_pickle_tensor_of(f->pickle, find(f, "kernel.lengthscale"), &t) && t.n_axes == 1 &&
           t.size[0] == set->n_components && t.size[0] > 1;
}

/* The lengthscale of the settings is then their geometric mean. */
static fth_status take_lengthscales(sp_pth *f, sp_settings *set, sp_notes *notes, fth_err *err)
{
    void *block = NULL;
    const int64_t L = set->n_components;
    if (!has_lengthscales(f, set))
        return kernel_number(f, "kernel.lengthscale", "lengthscale", &set->lengthscale, notes, err);
    FTH_TRY(fth_mem_take(f->mem, FTH_MEM_META, sizeof(double) * (uint64_t)L, "lengthscales", &block,
                         err));
    double *v = block, sum = 0;
    fth_status s = copy(f, "kernel.lengthscale", 1, &L, put_number, v, err);
    for (int64_t l = 0; s == FTH_OK && l < L; l++) {
        sum += log(fabs(v[l]));
        if (!(fabs(v[l]) > 0))
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: lengthscale %" PRId64 " of the kernel is 0",
                         f->path, l);
    }
    if (s == FTH_OK) {
        note(notes, "train_lengthscale", set->train_lengthscale, 1);
        set->train_lengthscale = true;
        set->lengthscale = exp(sum / (double)L);
    }
    fth_mem_release(f->mem, block, NULL);
    return s;
}

static fth_status check_kind(const sp_pth *f, const sp_settings *set, fth_err *err)
{
    const bool mean = find(f, "mean"), local = find(f, "Lu"), induced = find(f, "Lu._raw"),
               groups = find(f, "groupsZ");
    const char *found = mean      ? "pnmf"
                        : local   ? groups ? "mggp_lcgp" : "lcgp"
                        : induced ? groups ? "mggp_svgp" : "svgp"
                                  : NULL;
    if (!found)
        return FTH_FAIL(err, FTH_E_FILE_KEY,
                        "%s: it has neither mean nor Lu, which every model has one of", f->path);
    if (strcmp(found, sp_kinds[set->kind].name) == 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s is a model %s, but the config is of %s", f->path, found,
             sp_kinds[set->kind].name);
    fth_err_hint(err, "use the config of %s", found);
    return FTH_E_FILE_SHAPE;
}

static fth_status take_length(const sp_pth *f, const char *name, int n_axes, int axis,
                              const char *key, int64_t *to, sp_notes *notes, fth_err *err)
{
    sp_pickle_tensor t;
    FTH_TRY(tensor_of(f, name, n_axes, &t, err));
    if (t.size[axis] < 1 || t.size[axis] > INT32_MAX)
        return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: axis %d of %s has %" PRId64 " elements",
                        f->path, axis, name, t.size[axis]);
    note(notes, key, (double)*to, (double)t.size[axis]);
    *to = t.size[axis];
    return FTH_OK;
}

fth_status sp_pth_settings(sp_pth *f, sp_settings *set, sp_notes *notes, fth_err *err)
{
    FTH_TRY(check_kind(f, set, err));
    if (sp_is_hybrid(set) || set->likelihood == SP_NB || set->size_factors == SP_SIZE_TOTAL)
        return FTH_FAIL(err, FTH_E_CONFIG,
                        "%s: models of the public project have no nonspatial_components, no "
                        "likelihood nb and no size_factors",
                        f->path);
    FTH_TRY(take_length(f, "components", 2, 0, "n_components", &set->n_components, notes, err));
    if (!set->spatial) return FTH_OK;
    if (set->local)
        FTH_TRY(take_length(f, "Lu", 3, 2, "rank", &set->R, notes, err));
    else
        FTH_TRY(take_length(f, "Z", 2, 0, "num_inducing", &set->M, notes, err));
    FTH_TRY(take_lengthscales(f, set, notes, err));
    FTH_TRY(kernel_number(f, "kernel.sigma", "sigma", &set->sigma, notes, err));
    if (set->groups)
        FTH_TRY(kernel_number(f, "kernel.group_diff_param", "group_diff_param",
                              &set->group_diff_param, notes, err));
    return FTH_OK;
}

/* ---- parameters ---- */

static void put_f32(void *to, int64_t i, double v)
{
    ((float *)to)[i] = (float)v;
}

static void put_log(void *to, int64_t i, double v)
{
    ((float *)to)[i] = (float)log(fabs(v));
}

static void put_i32(void *to, int64_t i, double v)
{
    ((int32_t *)to)[i] = v >= 0 && v < INT32_MAX ? (int32_t)v : -1;
}

/* components[factor, gene] becomes the parameter W[gene, factor]. */
typedef struct loadings {
    float *to;
    int64_t genes, factors;
    sp_loadings mode;
} loadings;

static void put_loading(void *self, int64_t i, double v)
{
    const loadings *l = self;
    l->to[i % l->genes * l->factors + i / l->genes] = (float)sp_loadings_raw(l->mode, v);
}

static fth_status fill(sp_pth *f, const char *name, fth_tensor *t, put_fn *put, fth_err *err)
{
    int64_t size[FTH_MAX_AXES];
    if (!t) return FTH_OK;
    for (int a = 0; a < fth_tensor_axes(t); a++) size[a] = fth_tensor_size(t, a);
    return copy(f, name, fth_tensor_axes(t), size, put, fth_tensor_data(t), err);
}

fth_status sp_pth_fill(sp_pth *f, sp_model *m, fth_err *err)
{
    const sp_settings *s = &m->set;
    loadings l = {fth_tensor_data(m->param[SP_P_W]), s->genes, s->n_components,
                  (sp_loadings)s->loadings_mode};
    FTH_TRY(copy(f, "components", 2, (int64_t[]){s->n_components, s->genes}, put_loading, &l, err));
    FTH_TRY(fill(f, "mean", m->param[SP_P_MEAN], put_f32, err));
    FTH_TRY(fill(f, "scale._raw", m->param[SP_P_RAW], put_f32, err));
    FTH_TRY(fill(f, "mu", m->param[SP_P_MU], put_f32, err));
    if (has_lengthscales(f, s))
        FTH_TRY(fill(f, "kernel.lengthscale", m->param[SP_P_ELL], put_log, err));
    else if (m->param[SP_P_ELL])
        for (int64_t i = 0; i < s->n_components; i++)
            put_f32(fth_tensor_data(m->param[SP_P_ELL]), i, sp_ell_start(s));
    FTH_TRY(fill(f, "Lu._raw", m->param[SP_P_LU], put_f32, err));
    FTH_TRY(fill(f, "Lu", m->param[SP_P_LAM], put_f32, err));
    if (s->local || !s->spatial) return FTH_OK; /* their points are the cells */
    FTH_TRY(fill(f, "Z", m->Z, put_f32, err));
    FTH_TRY(fill(f, "groupsZ", m->groupsZ, put_i32, err));
    return sp_model_check(m, f->path, err);
}
