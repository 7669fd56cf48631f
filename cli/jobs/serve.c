/* serve.c - `fathom serve`: the report as a page that refreshes itself.
 *
 * Read-only, on this machine alone unless asked, and every request needs a token unless told
 * otherwise: other users of the machine reach its loopback too. Requests are answered by one thread
 * of libmicrohttpd, one after the other; the main thread waits for the signal that ends it, and
 * ends connections that take too long. A view is read again when it is older than a second.
 */
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <microhttpd.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

typedef struct server {
    fth_mem *mem;
    const char *dir;
    const char *token; /* NULL: none is needed */
    char cookie[24];   /* its name: a browser sends cookies of all ports of a machine */
    serve_links links;
    fth_view *view;
    double read_at;
    serve_text text[2]; /* data and page of the view, made when they are asked for */
    fth_err err;        /* why there is no view */
} server;

/* Connections in all and from one address, so that one cannot take them all; seconds without a
 * byte. */
enum { CONNECTIONS = 128, PER_ADDRESS = 32, SILENT_S = 30 };

/* ---- answers ---- */

static serve_link *link_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* An answer of so many bytes. */
static enum MHD_Result answer(server *s, struct MHD_Connection *c, unsigned status,
                              struct MHD_Response *r, const char *type, uint64_t bytes)
{
    if (!r) return MHD_NO;
    serve_link_answers(&s->links, link_of(c), bytes);
    static const char *const headers[][2] = {
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cache-Control", "no-store"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        MHD_add_response_header(r, headers[i][0], headers[i][1]);
    MHD_add_response_header(r, "Content-Type", type);
    /* The page carries a policy of its own; nothing else may do anything at all. */
    MHD_add_response_header(r, "Content-Security-Policy",
                            strncmp(type, "text/html", 9) == 0
                                ? "frame-ancestors 'none'"
                                : "default-src 'none'; style-src 'unsafe-inline'; sandbox");
    const enum MHD_Result got = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return got;
}

static enum MHD_Result say(server *s, struct MHD_Connection *c, unsigned status, const char *text)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                             MHD_RESPMEM_MUST_COPY);
    if (r && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, "Allow", "GET, HEAD");
    if (r && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(r, "WWW-Authenticate", "Bearer realm=\"fathom\"");
    return answer(s, c, status, r, "text/plain; charset=utf-8", strlen(text));
}

/* The newest view; when it cannot be read, the one before, if there is one. */
static const fth_view *get_view(server *s)
{
    const double now = serve_now();
    if (s->view && now - s->read_at < 1) return s->view;
    fth_view *fresh = NULL;
    s->err = (fth_err){0};
    if (fth_view_read(&fresh, s->mem, s->dir, &s->err) == FTH_OK) {
        fth_view_destroy(s->view);
        for (int i = 0; i < 2; i++) serve_text_free(&s->text[i]);
        s->view = fresh;
        s->read_at = now;
    }
    return s->view;
}

static enum MHD_Result send_view(server *s, struct MHD_Connection *c, bool page)
{
    const fth_view *view = get_view(s);
    serve_text *t = &s->text[page];
    fth_err err = {0};
    if (!view) return say(s, c, MHD_HTTP_INTERNAL_SERVER_ERROR, s->err.text);
    if (!t->plain && serve_text_make(t, view, page, &err) != FTH_OK)
        return say(s, c, MHD_HTTP_INTERNAL_SERVER_ERROR, err.text);
    const char *type = page ? "text/html; charset=utf-8" : "application/json";
    const bool known =
        serve_has_tag(MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match"), t->tag);
    const bool packed =
        t->packed &&
        serve_takes_gzip(MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept-Encoding"));
    const size_t bytes = known ? 0 : packed ? t->packed_bytes : t->bytes;
    /* A copy: the text may be replaced while it is sent. */
    struct MHD_Response *r = MHD_create_response_from_buffer(bytes,
                                                             known    ? NULL
                                                             : packed ? t->packed
                                                                      : t->plain,
                                                             MHD_RESPMEM_MUST_COPY);
    if (r) {
        char tag[sizeof t->tag + 2];
        snprintf(tag, sizeof tag, "W/%s", t->tag); /* the same, packed or not */
        MHD_add_response_header(r, "ETag", tag);
        MHD_add_response_header(r, "Vary", "Accept-Encoding");
        if (packed && !known) MHD_add_response_header(r, "Content-Encoding", "gzip");
    }
    return answer(s, c, known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r, type, bytes);
}

static enum MHD_Result send_file(server *s, struct MHD_Connection *c, bool log)
{
    const char *path = NULL;
    size_t bytes = 0;
    MHD_lookup_connection_value_n(c, MHD_GET_ARGUMENT_KIND, "path", 4, &path, &bytes);
    if (path && strlen(path) != bytes) path = NULL; /* a zero inside hides what follows */
    const fth_view *view = get_view(s);
    uint64_t size = 0, from = 0;
    const int fd = view ? serve_open(view, path, log, &size) : -1;
    if (fd < 0) return say(s, c, MHD_HTTP_NOT_FOUND, "no such file among the jobs\n");
    uint64_t n = size;
    const char *range = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Range");
    const int kind = serve_range(range, size, &from, &n);
    char text[96];
    snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)from,
             (unsigned long long)(from + n - 1), (unsigned long long)size);
    if (kind == 416) {
        close(fd);
        snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
        struct MHD_Response *none =
            MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
        if (none) MHD_add_response_header(none, "Content-Range", text);
        return answer(s, c, MHD_HTTP_RANGE_NOT_SATISFIABLE, none, "text/plain", 0);
    }
    struct MHD_Response *r = MHD_create_response_from_fd_at_offset64(n, fd, from);
    if (!r) {
        close(fd);
        return MHD_NO;
    }
    MHD_add_response_header(r, "Accept-Ranges", "bytes");
    if (kind == 206) MHD_add_response_header(r, "Content-Range", text);
    return answer(s, c, kind == 206 ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, r,
                  log ? "text/plain; charset=utf-8" : serve_type(path), n);
}

/* ---- access control ---- */

static bool has_token(const server *s, struct MHD_Connection *c)
{
    const char *cookie = MHD_lookup_connection_value(c, MHD_COOKIE_KIND, s->cookie);
    const char *head = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    if (cookie && serve_same(cookie, s->token)) return true;
    return head && strncmp(head, "Bearer ", 7) == 0 && serve_same(head + 7, s->token);
}

/* A token in the address becomes a cookie, and leaves the address. */
static enum MHD_Result welcome(server *s, struct MHD_Connection *c)
{
    char cookie[512];
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", s->cookie,
             s->token);
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Set-Cookie", cookie);
    MHD_add_response_header(r, "Location", "/");
    return answer(s, c, MHD_HTTP_SEE_OTHER, r, "text/plain", 0);
}

static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **request)
{
    server *s = user;
    (void)version, (void)upload, (void)upload_bytes;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return say(s, c, MHD_HTTP_METHOD_NOT_ALLOWED, "this server is read-only\n");
    if (!*request) { /* only its head has been read */
        *request = s;
        return MHD_YES;
    }
    const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
    if (!s->token && !serve_host_is_local(host))
        return say(s, c, MHD_HTTP_FORBIDDEN, "ask for localhost, 127.0.0.1 or another 127.x.y.z\n");
    const char *given = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "token");
    if (s->token && given && serve_same(given, s->token)) return welcome(s, c);
    if (s->token && !has_token(s, c))
        return say(s, c, MHD_HTTP_UNAUTHORIZED,
                   "a token is needed: open the address that 'fathom serve' printed\n");
    if (strcmp(url, "/") == 0) return send_view(s, c, true);
    if (strcmp(url, "/data.json") == 0) return send_view(s, c, false);
    if (strcmp(url, "/file") == 0) return send_file(s, c, false);
    if (strcmp(url, "/log") == 0) return send_file(s, c, true);
    return say(s, c, MHD_HTTP_NOT_FOUND, "no such page\n");
}

/* ---- starting and ending ---- */

static void begin_or_end(void *user, struct MHD_Connection *c, void **link,
                         enum MHD_ConnectionNotificationCode code)
{
    server *s = user;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *link = info ? serve_link_open(&s->links, info->connect_fd) : NULL;
    else if (*link)
        serve_link_close(&s->links, *link);
}

static void completed(void *user, struct MHD_Connection *c, void **request,
                      enum MHD_RequestTerminationCode code)
{
    server *s = user;
    (void)request, (void)code;
    serve_link_rests(&s->links, link_of(c));
}

typedef struct place {
    struct sockaddr_storage address;
    socklen_t bytes;
    bool loopback, any;              /* any: all addresses of the machine */
    char text[INET6_ADDRSTRLEN + 2]; /* as an address of the web writes it */
} place;

static fth_status find_place(place *out, const char *bind_to, const char *port, fth_err *err)
{
    const char *address = strcmp(bind_to, "localhost") == 0 ? "127.0.0.1" : bind_to;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    if (getaddrinfo(address, port, &hints, &found) != 0 || !found) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "--bind %s: expected an address of this machine, such as "
                 "127.0.0.1, ::1 or 0.0.0.0",
                 bind_to);
        return FTH_E_COMMAND;
    }
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->bytes = found->ai_addrlen;
    freeaddrinfo(found);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&out->address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&out->address;
    const bool four = out->address.ss_family == AF_INET;
    out->loopback =
        four ? ntohl(v4->sin_addr.s_addr) >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    out->any =
        four ? v4->sin_addr.s_addr == htonl(INADDR_ANY) : IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
    char plain[INET6_ADDRSTRLEN] = "";
    inet_ntop(out->address.ss_family, four ? (const void *)&v4->sin_addr : &v6->sin6_addr, plain,
              sizeof plain);
    snprintf(out->text, sizeof out->text, four ? "%s" : "[%s]", plain);
    return FTH_OK;
}

static fth_status listen_there(int *out, const place *where, const char *port, fth_err *err)
{
    const int one = 1;
    *out = socket(where->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*out >= 0) setsockopt(*out, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (*out >= 0 && bind(*out, (const struct sockaddr *)&where->address, where->bytes) == 0 &&
        listen(*out, 64) == 0)
        return FTH_OK;
    const int code = errno;
    if (*out >= 0) close(*out);
    if (code == EADDRINUSE) {
        FTH_FAIL(err, FTH_E_COMMAND, "port %s of %s is in use", port, where->text);
        fth_err_hint(err, "choose another with --port; --port 0 takes any that is free");
    } else {
        FTH_FAIL(err, FTH_E_COMMAND, "port %s of %s cannot be opened: %s", port, where->text,
                 strerror(code));
        fth_err_hint(err, "ports below 1024 belong to the system; --bind takes an address of this "
                          "machine");
    }
    return FTH_E_COMMAND;
}

static fth_status make_token(char token[33], fth_err *err)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return FTH_FAIL(err, FTH_E_STATE, "the system returned no random bytes for a token");
    for (int i = 0; i < 16; i++) snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return FTH_OK;
}

static fth_status check_token(const char *token, fth_err *err)
{
    const size_t n = strlen(token);
    const size_t plain = strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789-._~");
    if (n >= 8 && n <= 256 && plain == n) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--token: expected 8 to 256 letters, digits or -._~");
}

static unsigned port_of(int fd)
{
    struct sockaddr_storage real;
    socklen_t bytes = sizeof real;
    if (getsockname(fd, (struct sockaddr *)&real, &bytes) != 0) return 0;
    return ntohs(real.ss_family == AF_INET
                     ? ((const struct sockaddr_in *)(const void *)&real)->sin_port
                     : ((const struct sockaddr_in6 *)(const void *)&real)->sin6_port);
}

static void print_address(const cli_call *call, const server *s, const char *host, unsigned port)
{
    fprintf(call->out, "http://%s:%u/%s%s\n", host, port, s->token ? "?token=" : "",
            s->token ? s->token : "");
}

/* 0.0.0.0 cannot be opened in a browser: the addresses that it stands for, this machine's name for
 * itself first. */
static void print_each(const cli_call *call, const server *s, const place *where, unsigned port)
{
    struct ifaddrs *all = NULL;
    char plain[INET6_ADDRSTRLEN], host[INET6_ADDRSTRLEN + 2];
    print_address(call, s, "127.0.0.1", port);
    if (getifaddrs(&all) != 0) return;
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        if (!at->ifa_addr || !(at->ifa_flags & IFF_UP) || (at->ifa_flags & IFF_LOOPBACK)) continue;
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)at->ifa_addr;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)at->ifa_addr;
        const bool four = at->ifa_addr->sa_family == AF_INET;
        const bool six = at->ifa_addr->sa_family == AF_INET6 &&
                         where->address.ss_family == AF_INET6 &&
                         !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr); /* needs a scope: few take it */
        if (!four && !six) continue;
        inet_ntop(at->ifa_addr->sa_family, four ? (const void *)&v4->sin_addr : &v6->sin6_addr,
                  plain, sizeof plain);
        snprintf(host, sizeof host, four ? "%s" : "[%s]", plain);
        print_address(call, s, host, port);
    }
    freeifaddrs(all);
}

static void announce(const cli_call *call, const server *s, const place *where, unsigned port)
{
    if (where->any)
        print_each(call, s, where, port);
    else
        print_address(call, s, where->text, port);
    if (!cli_get(call, "quiet")) fprintf(stderr, "serving %s, read-only; Ctrl+C ends it\n", s->dir);
    fflush(call->out);
}

/* A handler, and no blocked signal: libraries have threads that were there before and would get it.
 */
static int wake[2];
static void end_it(int number)
{
    const int code = errno;
    (void)number;
    if (write(wake[1], "", 1) < 0) { /* the pipe is full of the same */
    }
    errno = code;
}

/* Answer until SIGINT or SIGTERM comes. */
static fth_status run(const cli_call *call, server *s, const place *where, const char *port,
                      fth_err *err)
{
    if (pipe2(wake, O_CLOEXEC) != 0)
        return FTH_FAIL(err, FTH_E_STATE, "no pipe for signals: %s", strerror(errno));
    const struct sigaction end = {.sa_handler = end_it};
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    signal(SIGPIPE, SIG_IGN);
    int fd = -1;
    FTH_TRY(listen_there(&fd, where, port, err));
    const unsigned number = port_of(fd);
    snprintf(s->cookie, sizeof s->cookie, "fathom_%u", number);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, handle, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)PER_ADDRESS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENT_S,
        MHD_OPTION_NOTIFY_CONNECTION, begin_or_end, s, MHD_OPTION_NOTIFY_COMPLETED, completed, s,
        MHD_OPTION_END);
    if (!daemon) {
        close(fd);
        return FTH_FAIL(err, FTH_E_STATE, "libmicrohttpd does not start");
    }
    announce(call, s, where, number);
    struct pollfd end_asked = {.fd = wake[0], .events = POLLIN};
    while (poll(&end_asked, 1, 1000) <= 0) serve_links_sweep(&s->links);
    MHD_stop_daemon(daemon); /* closes the socket */
    return FTH_OK;
}

fth_status cli_run_serve(const cli_call *call, fth_err *err)
{
    const char *port = cli_get(call, "port"), *bind_to = cli_get(call, "bind");
    char token[33];
    place where = {0};
    server s = {.dir = call->n_args > 0 ? call->arg[0] : ".", .token = cli_get(call, "token")};
    const bool open_to_all = cli_get(call, "no-token") != NULL;
    if (!port) port = "8700";
    if (strtoull(port, NULL, 10) > 65535)
        return FTH_FAIL(err, FTH_E_COMMAND, "--port: expected at most 65535, found %s", port);
    FTH_TRY(find_place(&where, bind_to ? bind_to : "127.0.0.1", port, err));
    if (s.token) FTH_TRY(check_token(s.token, err));
    if (open_to_all && s.token)
        return FTH_FAIL(err, FTH_E_COMMAND, "--token and --no-token exclude each other");
    if (open_to_all && !where.loopback) {
        FTH_FAIL(err, FTH_E_COMMAND, "--no-token: other machines reach %s, so a token is needed",
                 where.text);
        fth_err_hint(err, "leave it out, or listen on this machine alone: --bind 127.0.0.1");
        return FTH_E_COMMAND;
    }
    if (!s.token && !open_to_all) {
        FTH_TRY(make_token(token, err));
        s.token = token;
    }
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    FTH_TRY(fth_mem_create(&s.mem, &opt, err));
    pthread_mutex_init(&s.links.lock, NULL);
    fth_status status = fth_view_read(&s.view, s.mem, s.dir, err); /* mistakes show at once */
    s.read_at = serve_now();
    if (status == FTH_OK) status = run(call, &s, &where, port, err);
    for (int i = 0; i < 2; i++) serve_text_free(&s.text[i]);
    fth_view_destroy(s.view);
    pthread_mutex_destroy(&s.links.lock);
    const fth_status end = fth_mem_destroy(s.mem, status == FTH_OK ? err : NULL);
    return status == FTH_OK ? end : status;
}
