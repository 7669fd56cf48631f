/* answer.c - the answer of a command: text for people, or one JSON document with the same facts.
 *
 * The document grows in memory and is written at the end, so a verb that fails leaves no half of
 * one. It has three parts in a fixed order: files, plans, facts; the first value of a part closes
 * the one before it.
 */
#include <fathom/instrument.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES, PLANS, FACTS };

static ssize_t forget(void *nothing, const char *text, size_t bytes)
{
    (void)nothing, (void)text;
    return (ssize_t)bytes;
}

fth_status fth_answer_begin(fth_answer *a, fth_context *ctx,
                            const char *(*value)(void *user, const char *flag), void *user,
                            FILE *out, fth_err *err)
{
    *a = (fth_answer){.plan = value(user, "plan") != NULL,
                      .json = value(user, "json") != NULL,
                      .out = out,
                      .notes = out,
                      .to = out,
                      .mem = fth_context_mem(ctx)};
    const bool quiet = value(user, "quiet") != NULL;
    if (!a->json && !quiet) return FTH_OK;
    a->nowhere = fopencookie(NULL, "w", (cookie_io_functions_t){.write = forget});
    if (!a->nowhere) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a stream");
    a->notes = a->nowhere;
    if (!a->json) return FTH_OK;
    a->out = a->nowhere;
    fth_json_begin(&a->writer, a->mem, true);
    fth_json_open(&a->writer, NULL, '{');
    if (a->plan) fth_json_bool(&a->writer, "plan", true);
    fth_json_open(&a->writer, "files", '[');
    return FTH_OK;
}

/* Closes what is open, up to the part that comes next. */
static void turn_to(fth_answer *a, int section)
{
    if (a->section == section) return;
    fth_json_close(&a->writer);
    if (a->section < PLANS && section == PLANS) fth_json_open(&a->writer, "plans", '[');
    if (section == FACTS && a->section == PLANS) {
        fth_json_u64(&a->writer, "planned_bytes", a->most);
        fth_json_u64(&a->writer, "device_planned_bytes", a->device_most);
    }
    a->section = section;
}

static int64_t bytes_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

void fth_answer_file(fth_answer *a, fth_file_kind kind, const char *path, int64_t bytes,
                     const char *what, ...)
{
    static const char *const does[FTH_FILE_KIND_COUNT] = {
        [FTH_FILE_INPUT] = "reads", [FTH_FILE_OUTPUT] = "writes", [FTH_FILE_FIGURE] = "draws"};
    char text[256] = "", size[24] = "";
    if (what) {
        va_list args;
        va_start(args, what);
        vsnprintf(text, sizeof text, what, args);
        va_end(args);
    }
    /* Of a file that will be replaced, the bytes of now say nothing. */
    if (bytes < 0 && !(a->plan && kind != FTH_FILE_INPUT)) bytes = bytes_of(path);
    if (a->json) {
        fth_json_writer *w = &a->writer;
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "path", path);
        fth_json_text(w, "use", does[kind]);
        if (bytes >= 0) fth_json_int(w, "bytes", bytes);
        if (text[0]) fth_json_text(w, "holds", text);
        fth_json_close(w);
    } else if (a->plan) {
        if (bytes >= 0) fth_mem_format_size((uint64_t)bytes, size, sizeof size);
        fprintf(a->to, "%-6s %s%s%s%s%s\n", does[kind], path, text[0] ? ": " : "", text,
                size[0] ? ", " : "", size);
    }
}

fth_status fth_answer_plan(fth_answer *a, const char *name, const fth_plan *plan, fth_err *err)
{
    fth_plan_info info;
    fth_plan_needs needs;
    fth_plan_get_info(plan, &info);
    fth_plan_get_needs(plan, &needs);
    if (needs.host_bytes > a->most) a->most = needs.host_bytes;
    if (needs.device_bytes > a->device_most) a->device_most = needs.device_bytes;
    if (!a->json) {
        fprintf(a->to, "%s\n", name);
        if (fth_plan_print(plan, a->to) == FTH_OK) return FTH_OK;
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "the plan could not be written");
    }
    turn_to(a, PLANS);
    fth_json_writer *w = &a->writer;
    fth_json_open(w, NULL, '{');
    fth_json_text(w, "name", name);
    fth_json_u64(w, "planned_bytes", needs.host_bytes);
    fth_json_u64(w, "device_planned_bytes", needs.device_bytes);
    fth_json_u64(w, "scratch_bytes", info.scratch_bytes);
    fth_json_int(w, "passes", info.passes);
    fth_json_int(w, "chunks", info.chunks);
    fth_json_close(w);
    return FTH_OK;
}

void fth_answer_memory(fth_answer *a, uint64_t bytes, const char *what)
{
    char size[24];
    if (bytes > a->most) a->most = bytes;
    if (a->json) {
        turn_to(a, PLANS);
        turn_to(a, FACTS);
        fth_json_text(&a->writer, "memory", what);
    } else
        fprintf(a->to, "memory %s: %s\n", fth_mem_format_size(a->most, size, sizeof size), what);
}

fth_json_writer *fth_answer_facts(fth_answer *a)
{
    turn_to(a, FACTS);
    return &a->writer;
}

static fth_status write_document(fth_answer *a, fth_err *err)
{
    turn_to(a, FACTS);
    fth_json_close(&a->writer);
    FTH_TRY(fth_json_end(&a->writer, err));
    const size_t n = (size_t)a->writer.used;
    if (fwrite(a->writer.data, 1, n, a->to) == n) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "the answer could not be written");
}

fth_status fth_answer_end(fth_answer *a, fth_status s, fth_err *err)
{
    if (a->json && s == FTH_OK) s = write_document(a, err);
    if (a->json) fth_json_free(&a->writer);
    if (a->nowhere) fclose(a->nowhere);
    *a = (fth_answer){0};
    return s;
}
