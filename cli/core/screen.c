/* screen.c - print untrusted text to a terminal: names, logs and contents of files cannot move the
 * cursor, rename the window or clear the screen.
 *
 * On a terminal the output of commands passes through a stream that shows controls as '?'. What
 * draws its own table writes to the terminal itself, and sees to the names in it, wherever it
 * goes. Logs and texts of files go into a file or a pipe as they are.
 */
#include "../cli.h"

#include <string.h>

size_t cli_plain(cli_plain_state *s, const char *in, size_t n, char *out)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)in[i];
        const unsigned before = s->before;
        s->before = c;
        if (before == '\r' && c != '\n') out[to++] = '\n'; /* else it would overwrite the line */
        if (c == '\r') continue;
        const bool more = (c & 0xc0) == 0x80;
        if (more && s->left > 0) {
            s->left--;
            if (before == 0xc2 && c < 0xa0) { /* one of the controls beyond ASCII */
                out[to - (to > 0)] = '?';
                to += to == 0;
                continue;
            }
            out[to++] = in[i];
            continue;
        }
        s->left = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
        const bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || more;
        out[to++] = control ? '?' : in[i];
    }
    return to;
}

typedef struct stream {
    cli_plain_state state;
    FILE *to;
} stream;

static ssize_t write_plain(void *cookie, const char *bytes, size_t n)
{
    stream *s = cookie;
    char text[2 * 1024];
    for (size_t done = 0; done < n;) {
        const size_t part = n - done < 1024 ? n - done : 1024;
        const size_t plain = cli_plain(&s->state, bytes + done, part, text);
        if (fwrite(text, 1, plain, s->to) != plain) return 0;
        done += part;
    }
    return fflush(s->to) == 0 ? (ssize_t)n : 0;
}

FILE *cli_plain_stream(FILE *to)
{
    static stream s; /* as long as standard output */
    s = (stream){.to = to};
    FILE *f = fopencookie(&s, "w", (cookie_io_functions_t){.write = write_plain});
    if (f) setvbuf(f, NULL, _IOLBF, BUFSIZ);
    return f ? f : to;
}

FILE *cli_screen(const cli_call *call)
{
    fflush(call->out);
    return call->screen ? call->screen : call->out;
}
