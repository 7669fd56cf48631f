/* monitor.c - a thread that looks at the cards and at this process, now and then.
 *
 * The table of the cards is that of `nvidia-smi dmon`, character by character, since people have
 * scripts that read it. Each row is one write, so a reader never sees half of one.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "mem/heap.h"
#include "mem/inject.h"
#include "trace/nvml.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_ROWS = 30, /* between two headers, so that one is on every screen */
    ROW_BYTES = 512,  /* all columns of dmon, wide */
    PATH_BYTES = 4096
};

typedef struct column {
    char group;
    const char *name, *unit;
} column;
static const column columns[FTH__GPU_VALUES] = {
#define FTH__GPU_VALUE(id, group, name, unit) {group, name, unit},
#include "trace/dmon.def"
#undef FTH__GPU_VALUE
};

typedef struct out_file {
    int fd, error; /* errno of the first failure; then nothing more is written */
    char path[PATH_BYTES];
} out_file;

/* Of this process, since it started. */
typedef struct usage {
    double cpu_s;
    bool io; /* the system tells them */
    uint64_t read_bytes, written_bytes;
} usage;

struct fth_monitor {
    fth_mem *mem;
    fth_trace *trace;
    fth__nvml *nvml; /* NULL: no cards */
    char groups[16];
    int64_t period_ns, start_ns, before_ns;
    usage first, before;
    out_file gpu, host;
    int64_t rows;
    fth_monitor_summary sum; /* means are sums until the end */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop; /* under the lock */
};

/* ---- files ---- */

static fth_status open_file(out_file *f, const char *folder, const char *name, fth_err *err)
{
    fth__text t;
    fth__text_init(&t, f->path, sizeof f->path);
    fth__text_add(&t, "%s/%s", folder, name);
    if (fth__text_is_cut(&t))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the path of the monitor has %zu characters",
                        strlen(folder));
    f->fd = open(f->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (f->fd >= 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s could not be created: %s", f->path, strerror(errno));
}

static void put(fth_monitor *m, out_file *f, const fth__text *row)
{
    size_t done = 0;
    while (f->error == 0 && done < row->used) {
        const bool fails = fth__mem_write_fails(m->mem);
        const ssize_t n = fails ? -1 : write(f->fd, row->data + done, row->used - done);
        if (fails) errno = ENOSPC;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            f->error = n < 0 ? errno : ENOSPC;
        else
            done += (size_t)n;
    }
}

/* ---- the cards ---- */

/* Columns come in the order of the groups asked for, as in dmon: number i, -1 beyond the last. */
static int column_at(const fth_monitor *m, int i)
{
    for (const char *g = m->groups; *g; g++)
        for (int k = 0; k < FTH__GPU_VALUES; k++)
            if (columns[k].group == *g && i-- == 0) return k;
    return -1;
}

static void put_header(fth_monitor *m)
{
    char text[2 * ROW_BYTES];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    fth__text_add(&t, "# gpu");
    for (int i = 0, k; (k = column_at(m, i)) >= 0; i++) fth__text_add(&t, " %6s", columns[k].name);
    fth__text_add(&t, " \n# Idx");
    for (int i = 0, k; (k = column_at(m, i)) >= 0; i++) fth__text_add(&t, " %6s", columns[k].unit);
    fth__text_add(&t, " \n");
    FTH_ASSERT(!fth__text_is_cut(&t)); /* seven groups of columns at most */
    put(m, &m->gpu, &t);
}

static void put_row(fth_monitor *m, int card, const int64_t *value)
{
    char text[ROW_BYTES];
    fth__text t;
    if (m->rows++ % HEADER_ROWS == 0) put_header(m);
    fth__text_init(&t, text, sizeof text);
    fth__text_add(&t, "%5d", card);
    for (int i = 0, k; (k = column_at(m, i)) >= 0; i++) {
        if (value[k] < 0)
            fth__text_add(&t, " %6s", "-");
        else
            fth__text_add(&t, " %6" PRId64, value[k]);
    }
    fth__text_add(&t, " \n");
    put(m, &m->gpu, &t);
}

static void sample_cards(fth_monitor *m)
{
    int64_t value[FTH__GPU_VALUES];
    FTH_ASSERT(m->sum.n_gpus >= 0 && m->sum.n_gpus <= FTH_GPUS);
    for (int i = 0; m->nvml && i < m->sum.n_gpus; i++) {
        fth__nvml_sample(m->nvml, i, value);
        put_row(m, i, value);
        const double busy = (double)value[FTH__GPU_SM];
        if (busy >= 0) {
            m->sum.gpu[i].samples++;
            m->sum.gpu[i].mean += busy;
            if (busy > m->sum.gpu[i].peak) m->sum.gpu[i].peak = busy;
        }
        if (value[FTH__GPU_FB] >= 0) {
            const uint64_t bytes = (uint64_t)value[FTH__GPU_FB] << 20;
            if (bytes > m->sum.gpu[i].peak_bytes) m->sum.gpu[i].peak_bytes = bytes;
        }
        char name[32];
        snprintf(name, sizeof name, "gpu %d busy %%", i);
        if (busy >= 0) fth_trace_add_counter(m->trace, name, fth_trace_now(m->trace), busy);
    }
}

/* ---- this process ---- */

static bool number_behind(const char *text, const char *key, uint64_t *value)
{
    const char *at = strstr(text, key);
    if (!at) return false;
    *value = strtoull(at + strlen(key), NULL, 10);
    return true;
}

static usage now_used(void)
{
    usage u = {0};
    struct rusage r;
    if (getrusage(RUSAGE_SELF, &r) == 0)
        u.cpu_s = (double)r.ru_utime.tv_sec + (double)r.ru_stime.tv_sec +
                  1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
    char text[512];
    const int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return u;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    u.io = number_behind(text, "\nread_bytes: ", &u.read_bytes) &&
           number_behind(text, "\nwrite_bytes: ", &u.written_bytes);
    return u;
}

/* Percent of a core since the row before, in tenths; numbers without a point that a locale could
 * change. */
static void sample_host(fth_monitor *m)
{
    const int64_t now = fth__clock_ns();
    const usage u = now_used();
    const uint64_t bytes = fth__mem_process_bytes();
    const double wall = 1e-9 * (double)(now - m->before_ns);
    const double cpu = wall > 0 ? 100 * (u.cpu_s - m->before.cpu_s) / wall : 0;
    const int64_t ms = (now - m->start_ns) / 1000000, tenths = (int64_t)(10 * cpu + 0.5);
    char text[ROW_BYTES];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    if (m->sum.samples == 0) fth__text_add(&t, "time,rss,read_bytes,write_bytes,cpu%%\n");
    fth__text_add(&t, "%" PRId64 ".%03d,%" PRIu64 ",", ms / 1000, (int)(ms % 1000), bytes);
    if (u.io) fth__text_add(&t, "%" PRIu64 ",%" PRIu64, u.read_bytes, u.written_bytes);
    fth__text_add(&t, "%s,%" PRId64 ".%d\n", u.io ? "" : ",", tenths / 10, (int)(tenths % 10));
    put(m, &m->host, &t);
    fth_trace_add_counter(m->trace, "process cpu %", fth_trace_now(m->trace), cpu);
    fth_trace_add_counter(m->trace, "process bytes", fth_trace_now(m->trace), (double)bytes);
    m->sum.samples++;
    /* Of a short time, such as that before the last row, a share says little. */
    if (now - m->before_ns >= m->period_ns / 2 && cpu > m->sum.cpu_peak) m->sum.cpu_peak = cpu;
    if (bytes > m->sum.peak_bytes) m->sum.peak_bytes = bytes;
    m->before = u;
    m->before_ns = now;
}

/* ---- the thread ---- */

static void wait_until(fth_monitor *m, int64_t ns)
{
    const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (!m->stop && pthread_cond_timedwait(&m->wake, &m->lock, &t) != ETIMEDOUT) continue;
}

/* A sample that takes longer than the period makes the next ones later, never more. */
static void *watch(void *user)
{
    fth_monitor *m = user;
    int64_t next = fth__clock_ns();
    pthread_mutex_lock(&m->lock);
    do {
        pthread_mutex_unlock(&m->lock);
        sample_host(m);
        sample_cards(m);
        pthread_mutex_lock(&m->lock);
        const int64_t now = fth__clock_ns();
        next = next + m->period_ns > now ? next + m->period_ns : now + m->period_ns;
        wait_until(m, next);
    } while (!m->stop);
    pthread_mutex_unlock(&m->lock);
    sample_host(m); /* the totals of the end */
    return NULL;
}

static bool make_lock(fth_monitor *m)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) return false;
    bool ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(&m->wake, &attr) == 0;
    pthread_condattr_destroy(&attr);
    if (ok && pthread_mutex_init(&m->lock, NULL) != 0) {
        pthread_cond_destroy(&m->wake);
        ok = false;
    }
    return ok;
}

/* Signals are for the threads of the program. */
static bool make_thread(fth_monitor *m)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool ok = fth__thread_start(&m->thread, watch, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

/* ---- start and stop ---- */

static void give_back(fth_monitor *m)
{
    if (m->gpu.fd >= 0) close(m->gpu.fd);
    if (m->host.fd >= 0) close(m->host.fd);
    fth__nvml_close(m->nvml);
    fth__heap_free(m->mem, m);
}

static fth_status check(const fth_monitor_options *opt, fth_err *err)
{
    if (!opt || !opt->mem || !opt->folder || !opt->folder[0])
        return FTH_FAIL(err, FTH_E_USAGE, "a monitor needs memory and a folder");
    if (!(opt->period_s >= 0.001 && opt->period_s <= 86400))
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a monitor samples every 0.001 to 86400 seconds, not every %g",
                        opt->period_s);
    if (opt->groups && (strspn(opt->groups, "pucvmet") != strlen(opt->groups) ||
                        strlen(opt->groups) == 0 || strlen(opt->groups) > 7))
        return FTH_FAIL(err, FTH_E_USAGE,
                        "groups of columns are letters of \"pucvmet\", not \"%.40s\"", opt->groups);
    return FTH_OK;
}

static fth_status begin(fth_monitor *m, const fth_monitor_options *opt, fth_err *err)
{
    FTH_TRY(open_file(&m->host, opt->folder, "host_monitor.csv", err));
    m->nvml = fth__nvml_open(m->mem, m->sum.why, sizeof m->sum.why);
    if (m->nvml) {
        m->sum.n_gpus = fth__nvml_count(m->nvml);
        FTH_TRY(open_file(&m->gpu, opt->folder, "gpu_monitor.log", err));
    }
    m->start_ns = m->before_ns = fth__clock_ns();
    m->first = m->before = now_used();
    if (!make_lock(m)) return FTH_FAIL(err, FTH_E_LIBRARY, "a lock could not be created");
    if (make_thread(m)) return FTH_OK;
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    return FTH_FAIL(err, FTH_E_LIBRARY, "a thread for the monitor could not be started");
}

fth_status fth_monitor_start(fth_monitor **out, const fth_monitor_options *opt, fth_err *err)
{
    if (!out) return FTH_FAIL(err, FTH_E_USAGE, "a monitor needs a place for it");
    *out = NULL;
    FTH_TRY(check(opt, err));
    fth_monitor *m = fth__heap_alloc(opt->mem, sizeof *m);
    if (!m) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a monitor");
    m->mem = opt->mem;
    m->trace = opt->trace;
    m->gpu.fd = m->host.fd = -1;
    m->period_ns = (int64_t)(1e9 * opt->period_s);
    fth__str_copy(m->groups, sizeof m->groups, opt->groups ? opt->groups : "pucvmt");
    const fth_status s = begin(m, opt, err);
    if (s != FTH_OK)
        give_back(m);
    else
        *out = m;
    return s;
}

static fth_status first_error(const fth_monitor *m, fth_err *err)
{
    const out_file *f = m->host.error ? &m->host : &m->gpu;
    if (!f->error) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: %s; rows are missing", f->path, strerror(f->error));
}

fth_status fth_monitor_stop(fth_monitor *m, fth_monitor_summary *out, fth_err *err)
{
    if (out) memset(out, 0, sizeof *out);
    if (!m) return FTH_OK;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    fth_monitor_summary *s = &m->sum;
    s->seconds = 1e-9 * (double)(m->before_ns - m->start_ns);
    if (s->seconds > 0) s->cpu_mean = 100 * (m->before.cpu_s - m->first.cpu_s) / s->seconds;
    if (s->cpu_peak < s->cpu_mean) s->cpu_peak = s->cpu_mean;
    s->read_bytes = m->before.read_bytes - m->first.read_bytes;
    s->written_bytes = m->before.written_bytes - m->first.written_bytes;
    for (int i = 0; i < s->n_gpus; i++)
        if (s->gpu[i].samples) s->gpu[i].mean /= (double)s->gpu[i].samples;
    if (out) *out = *s;
    const fth_status status = first_error(m, err);
    give_back(m);
    return status;
}

size_t fth_monitor_format(const fth_monitor_summary *s, char *text, size_t bytes)
{
    char a[32], b[32];
    fth__text t;
    fth__text_init(&t, text, bytes);
    for (int i = 0; i < s->n_gpus; i++) {
        fth__text_add(&t, "gpu %d ", i);
        if (s->gpu[i].samples)
            fth__text_add(&t, "busy %.0f %% (at most %.0f %%), ", s->gpu[i].mean, s->gpu[i].peak);
        fth__text_add(&t, "%s; ", fth_mem_format_size(s->gpu[i].peak_bytes, a, sizeof a));
    }
    if (s->n_gpus == 0) fth__text_add(&t, "no gpu (%s); ", s->why);
    fth__text_add(&t, "process busy %.0f %% of a core (at most %.0f %%), %s; ", s->cpu_mean,
                  s->cpu_peak, fth_mem_format_size(s->peak_bytes, a, sizeof a));
    fth__text_add(&t, "read %s, written %s", fth_mem_format_size(s->read_bytes, a, sizeof a),
                  fth_mem_format_size(s->written_bytes, b, sizeof b));
    return t.wanted;
}
