/* json.h - the two things of JSON that are easily wrong: characters of a text, and numbers. */
#ifndef BRAGG_JSON_H
#define BRAGG_JSON_H

#include <math.h>
#include <stdio.h>

typedef struct br_json_piece {
    char text[32];
} br_json_piece;

/* A character as it stands between quotes. */
static inline br_json_piece br_json_char(char c)
{
    br_json_piece p;
    if ((unsigned char)c < 0x20)
        snprintf(p.text, sizeof p.text, "\\u%04x", (unsigned)(unsigned char)c);
    else
        snprintf(p.text, sizeof p.text, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
    return p;
}

/* 17 digits; JSON has no word for what is not finite. */
static inline br_json_piece br_json_number(double v)
{
    br_json_piece p = {"null"};
    if (isfinite(v)) snprintf(p.text, sizeof p.text, "%.17g", v);
    return p;
}

#endif
