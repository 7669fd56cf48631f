/* rates.c - see rates.h. A file that is not there is no notice; one that is not taken is. */
#include "plan/rates.h"

#include "base/hash.h"
#include "base/str.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <errno.h>
#include <fathom/isa.h>
#include <fathom/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CPU_TEXT = 160, PATH_TEXT = 4200 };

static const fth_rate row[FTH__RATE_COUNT] = {
#define FTH__RATE(NAME, name, value, unit, what) {name, unit, what, value},
#include "plan/rates.def"
};

static void add_field(fth__text *t, const char *line, const char *key)
{
    const size_t n = strlen(key);
    if (strncmp(line, key, n) != 0) return;
    const char *value = line + n + strspn(line + n, " \t");
    if (*value != ':') return; /* "model" is not "model name" */
    value += 1 + strspn(value + 1, " \t");
    fth__text_add(t, "%s%.*s", t->wanted > 0 ? ", " : "", (int)strcspn(value, "\n"), value);
}

/* "AMD EPYC, 26, 2": hypervisors shorten the name, so family and model belong to it. */
static void name_cpu(char *text, size_t bytes)
{
    static const char *const key[] = {"model name", "cpu family", "model"};
    fth__text t;
    fth__text_init(&t, text, bytes);
    char line[512];
    for (int k = 0; k < 3; k++) {
        FILE *f = fopen("/proc/cpuinfo", "re");
        while (f && fgets(line, sizeof line, f) && line[0] != '\n') add_field(&t, line, key[k]);
        if (f) (void)fclose(f);
    }
    if (t.wanted == 0) fth__text_add(&t, "unknown CPU");
}

static bool file_of(const fth_context *ctx, char *path, size_t bytes)
{
    if (!ctx->cache_dir[0]) return false;
    const int n = snprintf(path, bytes, "%s/rates.json", ctx->cache_dir);
    return n > 0 && (size_t)n < bytes;
}

void fth__rates_device(const fth_context *ctx, char *name, size_t bytes)
{
    fth_device_info info;
    if (bytes > 0) name[0] = '\0';
    if (!ctx->gpu) return;
    ctx->backend->device->get_info(ctx->gpu, &info);
    fth__str_copy(name, bytes, info.name);
}

static bool is_rate(double v)
{
    return v > 1e-9 && v < 1e9; /* and no NaN */
}

/* What stands in the file is taken as a whole or not at all; "why" is empty when it is taken. */
static void take_file(fth__rates *r, const fth_context *ctx, const fth_json_value *v,
                      const char *cpu, fth__text *why)
{
    double of[FTH__RATE_COUNT];
    char device[sizeof r->device];
    const char *theirs = fth_json_get_text(v, "cpu", ""),
               *version = fth_json_get_text(v, "fathom", "");
    const int isa = (int)fth_json_get_int(v, "isa", -1);
    if (strcmp(theirs, cpu) != 0)
        fth__text_add(why, "it was measured on %s", theirs[0] ? theirs : "another CPU");
    else if (strcmp(version, fth_version()) != 0)
        fth__text_add(why, "Fathom %s measured it, and this is %s", version, fth_version());
    else if (isa != fth_isa_level())
        fth__text_add(why, "it was measured with instruction set level %d", isa);
    const fth_json_value *rates = fth_json_get(v, "rates");
    for (int i = 0; i < FTH__RATE_COUNT; i++) {
        of[i] = fth_json_get_real(rates, row[i].name, (double)NAN);
        if (why->wanted == 0 && !is_rate(of[i]))
            fth__text_add(why, "its %s is missing or no rate", row[i].name);
    }
    if (why->wanted > 0) return;
    memcpy(r->of, of, sizeof of);
    fth__str_copy(r->device, sizeof r->device, fth_json_get_text(v, "device", ""));
    fth__rates_device(ctx, device, sizeof device);
    for (int i = FTH__RATE_GPU_MEMORY; ctx->gpu && i < FTH__RATE_COUNT; i++)
        if (strcmp(device, r->device) != 0) r->of[i] = row[i].value; /* of another device */
    const bool both = r->device[0] && (!ctx->gpu || strcmp(device, r->device) == 0);
    snprintf(r->source, sizeof r->source, "measured on this CPU, %s, with %lld workers%s%.80s", cpu,
             (long long)fth_json_get_int(v, "workers", 0), both ? ", and on " : "",
             both ? r->device : "");
}

static void read_file(fth__rates *r, const fth_context *ctx, const char *cpu)
{
    char path[PATH_TEXT], reason[200] = "";
    fth__text why;
    fth_json *doc = NULL;
    fth_err err = {0};
    fth__text_init(&why, reason, sizeof reason);
    if (!file_of(ctx, path, sizeof path) || access(path, F_OK) != 0) return;
    if (fth_json_load(&doc, ctx->mem, path, &err) == FTH_OK)
        take_file(r, ctx, fth_json_root(doc), cpu, &why);
    else
        fth__text_add(&why, "it cannot be read: %.100s", err.text);
    fth_json_destroy(doc);
    if (why.wanted == 0) return;
    fth_log_line(&ctx->log, FTH_LOG_WARN, "%s is not used: %s", path, reason);
    snprintf(r->source, sizeof r->source, "built in, because of the file of measured ones %s",
             reason);
}

void fth__rates_built_in(double value[FTH__RATE_COUNT])
{
    for (int i = 0; i < FTH__RATE_COUNT; i++) value[i] = row[i].value;
}

fth_status fth__rates_create(fth__rates **out, const fth_context *ctx, fth_err *err)
{
    char cpu[CPU_TEXT];
    fth__rates *r = fth__heap_alloc(ctx->mem, sizeof *r);
    if (!r) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the rates of the machine");
    memset(r, 0, sizeof *r);
    fth__rates_built_in(r->of);
    fth__str_copy(r->source, sizeof r->source, "built in, of an AMD EPYC 9005");
    if (ctx->cache_dir[0] && fth_ranks_count(ctx->ranks) < 2) {
        name_cpu(cpu, sizeof cpu);
        read_file(r, ctx, cpu);
    }
    fth__hash h;
    fth__hash_init(&h, 0);
    fth__hash_add(&h, r->of, sizeof r->of);
    r->key = fth__hash_get(&h);
    *out = r;
    return FTH_OK;
}

/* Those above the file; what cannot be made is told by writing the file. */
static void make_folders(fth_mem *mem, char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)fth__disk_mkdir(mem, path);
        *at = '/';
    }
}

void fth__rates_make_folder(const fth_context *ctx)
{
    char path[PATH_TEXT];
    if (file_of(ctx, path, sizeof path)) make_folders(ctx->mem, path);
}

static fth_status no_folder(fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_USAGE, "there is no cache directory for measured rates");
    fth_err_hint(err, "set fth_options.cache_dir");
    return s;
}

fth_status fth__rates_check_folder(const fth_context *ctx, fth_err *err)
{
    char path[PATH_TEXT];
    if (!file_of(ctx, path, sizeof path)) return no_folder(err);
    fth__rates_make_folder(ctx);
    if (access(ctx->cache_dir, W_OK | X_OK) == 0) return FTH_OK;
    const fth_status s = FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: no file can be made there: %s",
                                  ctx->cache_dir, strerror(errno));
    fth_err_hint(err, "measured rates are kept in that folder; XDG_CACHE_HOME names another");
    return s;
}

fth_status fth__rates_save(const fth_context *ctx, const double *value, int threads, fth_err *err)
{
    char path[PATH_TEXT], cpu[CPU_TEXT], device[sizeof ctx->rates->device];
    if (!file_of(ctx, path, sizeof path)) return no_folder(err);
    fth__rates_make_folder(ctx);
    name_cpu(cpu, sizeof cpu);
    fth_json_writer w;
    fth_json_begin(&w, ctx->mem, true);
    fth_json_open(&w, NULL, '{');
    fth_json_text(&w, "cpu", cpu);
    fth_json_text(&w, "fathom", fth_version());
    fth_json_int(&w, "isa", fth_isa_level());
    fth_json_int(&w, "workers", threads);
    fth__rates_device(ctx, device, sizeof device);
    fth_json_text(&w, "device", ctx->gpu ? device : ctx->rates->device);
    fth_json_open(&w, "rates", '{');
    for (int i = 0; i < FTH__RATE_COUNT; i++) fth_json_real(&w, row[i].name, value[i]);
    fth_json_close(&w);
    fth_json_close(&w);
    return fth_json_save(&w, path, err);
}

bool fth_context_get_rate(const fth_context *ctx, int i, fth_rate *out)
{
    if (i < 0 || i >= FTH__RATE_COUNT) return false;
    *out = row[i];
    out->value = ctx->rates->of[i];
    return true;
}

const char *fth_context_rates(const fth_context *ctx)
{
    return ctx->rates->source;
}
